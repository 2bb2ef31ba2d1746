/* Writes the decisions log of a live run on a thread of its own. */
#include "harness/live/host/inside.h"

#include "harness/live/guard/guard.h"
#include "harness/live/host/host.h"
#include "harness/log/log.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_MAX = 64 << 20 }; /* bytes: hours of control on a disk that stands still */

typedef struct step { /* the rows of one, or of more */
    struct step *next;
    char *text;
    size_t size;
} step;

struct fl_live_log {
    fl_output *output;
    FILE *file; /* of output: the writer's, from when it runs to its end */
    char *path;
    fl_steplog log; /* the columns, and the step that is being put together */
    size_t kinds;   /* written */
    pthread_t writer;
    bool writing;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t more;
    step *first, **last;
    size_t queued, room;
    uint64_t steps, lost;
    int error; /* what the file said, and then nothing more is written */
    bool ending;
};

/* ---- head ---- */

fl_status fl_live_log_head(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                           size_t layer_count, const char *platform, const char *mode, fl_diag *d) {
    const bool ok = (!platform || fl_head_set(h, "platform", platform)) && fl_head_set(h, "source", mode);
    fl_status s = ok ? fl_policy_head_put(h, policy, facts, layer, layer_count, d) : fl_no_memory(d, "the log");
    return s || platform ? s : fl_facts_to_head(facts, h, d);
}

/* ---- the writer ---- */

static void write_steps(fl_live_log *l, step *x) {
    bool ok = !l->error; /* a hole in the log would be worse than its end */
    for (step *next; x; x = next) {
        next = x->next;
        ok = ok && fwrite(x->text, 1, x->size, l->file) == x->size;
        pthread_mutex_lock(&l->lock);
        l->queued -= x->size;
        pthread_mutex_unlock(&l->lock);
        free(x->text);
        free(x);
    }
    if (l->error || (ok && !fflush(l->file)))
        return;
    pthread_mutex_lock(&l->lock);
    l->error = errno ? errno : EIO;
    pthread_mutex_unlock(&l->lock);
}

/* A disk that stands still holds up this thread, and not the steps of control. */
static void *writer(void *user) {
    fl_live_log *l = user;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->first && !l->ending)
            pthread_cond_wait(&l->more, &l->lock);
        step *x = l->first;
        if (!x)
            break;
        l->first = NULL;
        l->last = &l->first;
        pthread_mutex_unlock(&l->lock);
        write_steps(l, x);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static fl_status start_writer(fl_live_log *l, fl_diag *d) {
    const int error = fl_stop_thread(&l->writer, writer, l);
    l->writing = !error;
    return error ? fl_error(d, FL_HARDWARE, "cannot start the writer of the log: %s", fl_reason(error)) : FL_OK;
}

/* Takes the text over, of a step or of none. False where the queue is full: it is lost. */
static bool hand_over(fl_live_log *l, char *text, size_t size, bool of_step) {
    step *x = malloc(sizeof *x);
    pthread_mutex_lock(&l->lock);
    const bool fits = x && text && l->queued + size <= l->room;
    l->steps += of_step;
    l->lost += of_step && !fits;
    if (fits) {
        *x = (step){NULL, text, size};
        *l->last = x;
        l->last = &x->next;
        l->queued += size;
        pthread_cond_signal(&l->more);
    }
    pthread_mutex_unlock(&l->lock);
    if (!fits) {
        free(text);
        free(x);
    }
    return fits;
}

static fl_status failed(fl_live_log *l, fl_diag *d) {
    pthread_mutex_lock(&l->lock);
    const int error = l->error;
    pthread_mutex_unlock(&l->lock);
    return error ? fl_fail(d, FL_IO, l->path, 0, 0, "cannot write: %s", fl_reason(error)) : FL_OK;
}

fl_status fl_live_log_add(fl_live_log *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    fl_text t;
    size_t size = 0;
    fl_status s = failed(l, d);
    fl_steplog_forget(&l->log);
    l->log.log.gpu_count = sample->gpu_count;
    if (!s)
        s = fl_steplog_add(&l->log, sample, decision, d);
    if (s)
        return s;
    FILE *row = fl_text_open(&t);
    if (!row)
        return fl_no_memory(d, "the log");
    fl_decisions_put_step(row, &l->log.log, 0, (size_t)sample->step, l->kinds);
    char *text = fl_text_close(&t, &size);
    if (!text)
        return fl_no_memory(d, "the log");
    if (hand_over(l, text, size, true))
        l->kinds = l->log.log.kind_count;
    return FL_OK;
}

void fl_live_log_note(fl_live_log *l, const char *line) {
    char *text = NULL;
    const int size = asprintf(&text, "# %s\n", line);
    if (size > 0)
        hand_over(l, text, (size_t)size, false);
}

void fl_live_log_limit(fl_live_log *l, size_t room) { l->room = room; }

/* ---- opening, closing ---- */

fl_status fl_live_log_open(fl_live_log **out, const char *path, const fl_head *head, const fl_policy *policy,
                           fl_diag *d) {
    *out = NULL;
    fl_live_log *l = calloc(1, sizeof *l);
    fl_status s = l && (l->path = strdup(path)) ? FL_OK : fl_no_memory(d, "the log");
    if (s)
        goto out;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->more, NULL);
    l->last = &l->first;
    l->room = QUEUE_MAX;
    s = fl_steplog_open(&l->log, policy, 0, d);
    if (!s && fl_head_get(head, "servers"))
        s = fl_steplog_servers(&l->log, d);
    if (s)
        goto out;
    if (!(l->output = fl_output_stream(path, d))) {
        s = d ? d->status : FL_IO;
        goto out;
    }
    l->file = fl_output_file(l->output);
    if ((s = fl_put_head(l->file, path, "foldline-decisions", head, d)))
        goto out;
    fl_decisions_put_names(l->file, &l->log.log);
    if ((s = start_writer(l, d)))
        goto out;
    *out = l;
    return FL_OK;
out:
    fl_live_log_close(l, NULL);
    return s;
}

fl_status fl_live_log_close(fl_live_log *l, fl_diag *d) {
    fl_status s = FL_OK;
    if (!l)
        return FL_OK;
    if (l->writing) {
        pthread_mutex_lock(&l->lock);
        l->ending = true;
        pthread_cond_signal(&l->more);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->writer, NULL);
        s = failed(l, d);
    }
    if (l->output) {
        const fl_status ended = fl_output_commit(l->output, s ? NULL : d);
        s = s ? s : ended;
    }
    if (!s && l->lost)
        s = fl_fail(d, FL_IO, l->path, 0, 0,
                    "%llu of %llu steps are missing: the disk did not keep up. The log does not replay",
                    (unsigned long long)l->lost, (unsigned long long)l->steps);
    fl_steplog_free(&l->log);
    free(l->path);
    free(l);
    return s;
}
