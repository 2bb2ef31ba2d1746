#include "harness/live/live_log.h"

#include "harness/live/stop.h"
#include "harness/log/facts_head.h"
#include "harness/log/policy_head.h"
#include "harness/log/steplog.h"
#include "sim/readout.h"
#include "traces/decisions_servers.h"
#include "traces/writing.h"
#include "traces/text.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
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
    FILE *row;  /* of the step that is being put together, in memory */
    char *path;
    const fl_policy *policy;
    bool kernels;
    uint32_t kinds;                                    /* written */
    const char *server_signal[FL_SERVER_SIGNAL_COUNT]; /* names of the columns, where there is a server */
    size_t server_signals;
    bool servers;
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

/* ---- head -------------------------------------------------------------------------------------------------------- */

fl_status fl_live_log_head(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                           size_t layer_count, const char *platform, const char *mode, fl_diag *d) {
    const bool ok = (!platform || fl_head_set(h, "platform", platform)) && fl_head_set(h, "source", mode);
    fl_status s = ok ? fl_policy_head_put(h, policy, facts, layer, layer_count, d) : fl_no_memory(d, "the log");
    return s || platform ? s : fl_facts_to_head(facts, h, d);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void put_names(FILE *f, const char *before, fl_row_set set, uint64_t mask) {
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (mask >> i & 1)
            fprintf(f, ",%s%s", before, fl_rows_at(set, i)->name);
}

static void put_values(FILE *f, fl_row_set set, uint64_t mask, uint64_t valid, const double *value) {
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (mask >> i & 1) {
            fputc(',', f);
            if (value && valid >> i & 1)
                fl_put_real(f, value[i]);
        }
}

static const char *put_fresh(FILE *f, const char *joint, fl_row_set set, uint64_t fresh) {
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (fresh >> i & 1) {
            fprintf(f, "%s%s", joint, fl_rows_at(set, i)->name);
            joint = "+";
        }
    return joint;
}

static void put_sets(FILE *f, fl_row_set set, uint64_t mask, const fl_decided *decided) {
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (mask >> i & 1) {
            fputc(',', f);
            if (decided && decided[i].set && decided[i].value == FL_DEFAULT)
                fputs("default", f);
            else if (decided && decided[i].set)
                fl_put_real(f, decided[i].value);
        }
}

static void put_row(const fl_live_log *l, const fl_sample *s, const fl_decision *dec, uint32_t row) {
    const fl_policy *p = l->policy;
    const fl_gpu_sample *g = row ? &s->gpu[row - 1] : NULL;
    FILE *f = l->row;
    fl_put_int(f, (int64_t)s->step);
    fputc(',', f);
    fl_put_int(f, s->time_ns);
    fputc(',', f);
    fl_put_device(f, (int32_t)row - 1);
    put_values(f, FL_ROWS_HOST_SIGNAL, p->host_needs, s->host.valid, row ? NULL : s->host.value);
    put_values(f, FL_ROWS_GPU_SIGNAL, fl_policy_reads(p), g ? g->valid : 0, g ? g->value : NULL);
    if (p->wakes) {
        fputc(',', f);
        if (!row)
            fl_put_int(f, s->woken);
    }
    fputc(',', f);
    if (g)
        put_fresh(f, "", FL_ROWS_GPU_SIGNAL, g->fresh & g->valid & fl_policy_reads(p));
    else
        put_fresh(f, "", FL_ROWS_HOST_SIGNAL, s->host.fresh & s->host.valid & p->host_needs);
    put_sets(f, FL_ROWS_GPU_CONTROL, p->gpu_drives, row ? dec->gpu[row - 1] : NULL);
    put_sets(f, FL_ROWS_HOST_CONTROL, p->host_drives, row ? NULL : dec->host);
    if (p->wakes) {
        fputc(',', f);
        if (!row)
            fl_put_int(f, (int64_t)dec->wake);
    }
    fputc(',', f);
    if (!row)
        fl_put_int(f, dec->delay_ns);
    if (l->kernels)
        fl_put_kernel_cells(f, row ? 0 : s->record_lost);
    if (l->servers)
        fl_put_server_cells(f, l->server_signals);
    fputc('\n', f);
}

/* From after `device` to `delay_ns`. */
static size_t columns(const fl_policy *p) {
    return (size_t)__builtin_popcountll(p->host_needs) + (size_t)__builtin_popcountll(fl_policy_reads(p)) +
           (size_t)__builtin_popcountll(p->gpu_drives) + (size_t)__builtin_popcountll(p->host_drives) +
           (p->wakes ? 4 : 2);
}

static void put_servers(const fl_live_log *l, const fl_sample *s) {
    const fl_server_place at = {.step = (size_t)s->step,
                                .t_ns = s->time_ns,
                                .between = columns(l->policy) + (l->kernels ? FL_KERNEL_COLUMNS : 0),
                                .signal = l->server_signal,
                                .signals = l->server_signals};
    for (uint32_t k = 0; k < s->server_count; k++) {
        double value[FL_SERVER_SIGNAL_COUNT];
        bool fresh[FL_SERVER_SIGNAL_COUNT];
        for (size_t c = 0; c < l->server_signals; c++) {
            const int id = fl_rows_find(FL_ROWS_SERVER_SIGNAL, l->server_signal[c]);
            value[c] = fl_server_known(&s->server[k], id) ? s->server[k].value[id] : (double)NAN;
            fresh[c] = fl_server_fresh(&s->server[k], id);
        }
        fl_put_server_row(l->row, &at, k, k ? FL_STEPS_UNTOLD : fl_steps_lost(s), value, fresh);
    }
    for (uint64_t i = 0; s->batch && i < s->batch_count; i++) {
        const fl_logged_batch batch = fl_logged_batch_of(&s->batch[i]);
        fl_put_batch_row(l->row, &at, &batch);
    }
}

static void put_kernels(fl_live_log *l, const fl_sample *s) {
    const fl_step_place at = {(size_t)s->step, columns(l->policy),
                              l->servers ? fl_server_column_count(l->server_signals) : 0, s->time_ns};
    for (; l->kinds < s->kind_count; l->kinds++) {
        const fl_logged_kind kind = fl_logged_kind_of(&s->kind[l->kinds]);
        fl_put_kind_row(l->row, &at, l->kinds, &kind);
    }
    for (uint64_t i = 0; s->record && i < s->record_count; i++) {
        const fl_logged_kernel kernel = fl_logged_kernel_of(&s->record[i]);
        fl_put_kernel_row(l->row, &at, &kernel);
    }
}

/* ---- the writer -------------------------------------------------------------------------------------------------- */

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
    const uint32_t kinds = l->kinds;
    fl_status s = failed(l, d);
    if (s)
        return s;
    if (!(l->row = fl_text_open(&t)))
        return fl_no_memory(d, "the log");
    for (uint32_t row = 0; row <= sample->gpu_count; row++) {
        put_row(l, sample, decision, row);
        if (!row && l->kernels)
            put_kernels(l, sample);
        if (!row && l->servers)
            put_servers(l, sample);
    }
    char *text = fl_text_close(&t, &size);
    if (!text)
        return fl_no_memory(d, "the log");
    if (!hand_over(l, text, size, true))
        l->kinds = kinds;
    return FL_OK;
}

void fl_live_log_note(fl_live_log *l, const char *line) {
    char *text = NULL;
    const int size = asprintf(&text, "# %s\n", line);
    if (size > 0)
        hand_over(l, text, (size_t)size, false);
}

void fl_live_log_limit(fl_live_log *l, size_t room) { l->room = room; }

/* ---- opening, closing -------------------------------------------------------------------------------------------- */

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
    l->policy = policy;
    l->kernels = fl_takes_kernels(policy);
    l->servers = fl_head_get(head, "servers") != NULL;
    for (size_t i = 0; i < fl_rows_count(FL_ROWS_SERVER_SIGNAL); i++)
        if ((policy->server_needs | policy->server_uses) >> i & 1)
            l->server_signal[l->server_signals++] = fl_rows_at(FL_ROWS_SERVER_SIGNAL, i)->name;
    if (!(l->output = fl_output_stream(path, d))) {
        s = d ? d->status : FL_IO;
        goto out;
    }
    l->file = fl_output_file(l->output);
    if ((s = fl_put_head(l->file, path, "foldline-decisions", head, d)))
        goto out;
    fputs("step,t_ns,device", l->file);
    put_names(l->file, "", FL_ROWS_HOST_SIGNAL, policy->host_needs);
    put_names(l->file, "", FL_ROWS_GPU_SIGNAL, fl_policy_reads(policy));
    if (policy->wakes)
        fputs("," FL_LOGGED_WOKEN, l->file);
    fputs(",fresh", l->file);
    put_names(l->file, "set_", FL_ROWS_GPU_CONTROL, policy->gpu_drives);
    put_names(l->file, "set_", FL_ROWS_HOST_CONTROL, policy->host_drives);
    if (policy->wakes)
        fputs(",set_" FL_LOGGED_WAKE, l->file);
    fputs(",delay_ns", l->file);
    if (l->kernels)
        fl_put_kernel_names(l->file);
    if (l->servers)
        fl_put_server_names(l->file, l->server_signal, l->server_signals);
    fputc('\n', l->file);
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
    free(l->path);
    free(l);
    return s;
}
