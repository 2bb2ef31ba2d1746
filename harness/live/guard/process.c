/* The guardian's own process. */
#include "harness/live/guard/inside.h"

#include "harness/live/guard/guard.h"
#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 3, TRIES = 40 };
enum { LOG_MAX = 1 << 18 }; /* bytes of guardian.log, some thousand lines; then it starts again */

typedef struct watch {
    int controller, wire, said; /* said: the controller's standard error */
    struct fl_beat *beat;
    int64_t check_ns, late_ns; /* late_ns: how late the missed report was */
    fl_lock unit[UNITS_MAX];
    fl_record prior[UNITS_MAX]; /* the units' records, read as soon as they exist, because the files may be lost */
    size_t unit_count;
    fl_gpus gpus;
} watch;

typedef enum verdict { DISMISSED, ENDED, MISSED } verdict;

/* Records that cannot be read now are read when they are needed. */
static void keep_records(watch *w) {
    bool found;
    for (size_t i = 0; i < w->unit_count && !fl_mutated("records-on-disk-alone"); i++) {
        fl_record_free(&w->prior[i]);
        fl_record_read(fl_state_folder(), w->unit[i].unit, &w->prior[i], &found, NULL);
    }
}

/* What happened until `until_ns`: -1 = nothing. */
static int wait_until(watch *w, int64_t until_ns) {
    for (;;) {
        struct pollfd p[2] = {{.fd = w->controller, .events = POLLIN}, {.fd = w->wire, .events = POLLIN}};
        int64_t left = until_ns - fl_guard_now_ns();
        if (left < 0)
            left = 0;
        const struct timespec t = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
        int n = ppoll(p, 2, &t, NULL);
        char byte = 0;
        if (n > 0 && p[1].revents) {
            const bool told = read(w->wire, &byte, 1) == 1;
            if (told && byte == 'd')
                return DISMISSED;
            if (told)
                keep_records(w);
            if (!told || send(w->wire, "r", 1, MSG_NOSIGNAL) != 1)
                w->wire =
                    -1; /* the other side closed it, and its end will be seen; poll ignores a negative descriptor */
        }
        if (n > 0 && p[0].revents)
            return ENDED;
        if (n == 0)
            return -1;
    }
}

/* Watches the controller until there is something to do. Three consecutive looks past its time are a miss. A look that
 * itself came late, because this process or the machine was held up, proves nothing and restarts the count. */
static verdict look_on(watch *w) {
    int missed = 0;
    for (;;) {
        int64_t until = atomic_load_explicit(&w->beat->until_ns, memory_order_acquire), now = fl_guard_now_ns();
        atomic_store_explicit(&w->beat->looked_ns, now, memory_order_release);
        const int64_t far = now + FAR_CHECKS * w->check_ns; /* the controller may bring its time forward meanwhile */
        const int64_t wake = until > far ? far : until >= now ? until + 1 : now + w->check_ns;
        int what = wait_until(w, wake);
        if (what >= 0)
            return (verdict)what;
        bool overslept = fl_guard_now_ns() - wake > w->check_ns;
        until = atomic_load_explicit(&w->beat->until_ns, memory_order_acquire);
        w->late_ns = fl_guard_now_ns() - until;
        missed = overslept && !fl_mutated("verdict-after-oversleep") ? 0 : w->late_ns > 0 ? missed + 1 : 0;
        if (missed >= LOOKS || (missed && fl_mutated("verdict-after-oversleep")))
            return MISSED;
    }
}

static void end_controller(watch *w) {
    struct pollfd p = {.fd = w->controller, .events = POLLIN};
    if (fl_mutated("deadline-without-kill"))
        return;
    syscall(SYS_pidfd_send_signal, w->controller, SIGKILL, NULL, 0);
    while (poll(&p, 1, -1) <= 0) {
    }
}

/* What happened, and how it ended, in one line. */
static void put_verdict(FILE *f, const watch *w, verdict v, const fl_diag *d) {
    if (v == MISSED)
        fprintf(f, "the controller missed its time by %.3f s and was killed", (double)w->late_ns * 1e-9);
    else
        fprintf(f, "the controller ended");
    fprintf(f, "; %s%s\n", d->status ? "not restored: " : "restored", d->status ? d->message : "");
}

/* For later readers. */
static void log_verdict(const char *state, const watch *w, verdict v, const fl_diag *d) {
    struct timespec t;
    struct stat now;
    int fd;
    clock_gettime(CLOCK_REALTIME, &t);
    fl_state_file(state, "guardian", ".log", O_WRONLY | O_APPEND | O_CREAT, &fd, NULL);
    const bool fits = fd >= 0 && !fstat(fd, &now) && (now.st_size <= LOG_MAX || !ftruncate(fd, 0));
    FILE *f = fits ? fdopen(fd, "a") : NULL;
    if (!f) { /* it may not be a file of ours: there is then no log, and the GPUs are restored all the same */
        if (fd >= 0)
            close(fd);
        return;
    }
    fprintf(f, "%lld ", (long long)t.tv_sec);
    put_verdict(f, w, v, d);
    fclose(f);
}

/* Writes where the controller would have reported. This is the last thing that the process does, because the reader
 * there may be slow. */
static void tell_kill(const char *state, const watch *w, const fl_diag *d) {
    FILE *f = w->said >= 0 ? fdopen(w->said, "w") : NULL;
    if (!f)
        return;
    fprintf(f, "foldline live: killed by its guardian: ");
    put_verdict(f, w, MISSED, d);
    fprintf(f, "foldline live: --grace-ms is the time that a step may take; log of the guardian: %s/guardian.log\n",
            state);
    fclose(f);
}

/* Closes every other inherited descriptor, for example pipes of a pipeline: someone may wait for their end. */
static void close_others(const int *keep, size_t count) {
    for (int fd = 3; fd < 4096; fd++) {
        bool kept = false;
        for (size_t i = 0; i < count; i++)
            kept = kept || keep[i] == fd;
        if (!kept)
            close(fd);
    }
    syscall(SYS_close_range, 4096, ~0u, 0);
}

/* The units are all of one vendor. */
static fl_status open_gpus(watch *w, fl_diag *d) {
    const char *vendor = NULL;
    fl_text t;
    size_t size;
    FILE *f = fl_text_open(&t);
    for (size_t i = 0; f && i < w->unit_count; i++)
        if (strcmp(w->unit[i].unit, "cpu") != 0) {
            fprintf(f, "%s,", w->unit[i].unit);
            vendor = fl_vendor_of(w->unit[i].unit);
        }
    char *list = fl_text_close(&t, &size);
    if (!list)
        return fl_no_memory(d, NULL);
    fl_diag missing; /* A missing GPU must not keep the others from being restored. The restore reports it. */
    fl_status s = size ? fl_vendor_open(&w->gpus, vendor, list, &missing, d) : FL_OK;
    free(list);
    return s;
}

/* Restores from the kept record, else from the file. */
static fl_status restore_unit(watch *w, const char *state, size_t i, fl_diag *d) {
    const char *unit = w->unit[i].unit;
    if (!w->prior[i].count)
        return fl_restore_unit(state, unit, &w->gpus, NULL, d);
    fl_status s = fl_restore_record(&w->prior[i], &w->gpus, d);
    return s ? s : fl_record_remove(state, unit, d);
}

/* One attempt at all units. *again: a further attempt may succeed; it cannot where a record is unreadable. */
static fl_status restore_once(watch *w, const char *state, bool *again, fl_diag *d) {
    fl_status s = w->gpus.self ? FL_OK : open_gpus(w, d);
    *again = s != FL_OK;
    for (size_t i = 0; i < w->unit_count; i++) {
        if (fl_lock_superseded(state, &w->unit[i])) /* a controller that had given us up has restored it regularly */
            continue;
        fl_status one = restore_unit(w, state, i, s ? NULL : d);
        *again = *again || (one && one != FL_BAD_INPUT);
        s = s ? s : one;
    }
    return s;
}

/* Repeats the attempt while it fails: a driver that is busy now may answer soon, and a lost GPU may come back, which
 * only a newly opened library sees. If the attempt never succeeds, the record stays. */
static fl_status restore_all(watch *w, const char *state, fl_diag *d) {
    fl_status s = FL_OK;
    bool again = true;
    for (int attempt = 0; again && attempt < TRIES; attempt++) {
        *d = (fl_diag){0};
        if (attempt) {
            nanosleep(&(struct timespec){.tv_nsec = 250 * NS_PER_MS}, NULL);
            fl_gpus_close(&w->gpus);
        }
        s = restore_once(w, state, &again, d);
    }
    return s;
}

/* Parses the arguments after `live --guardian`: the descriptors of the controller, wire, beat and standard error, the
 * check interval, and the units. False where they are not those of fl_guardian_start. */
static bool take_arguments(watch *w, int argc, char **argv, int *keep, size_t *kept) {
    if (argc < ARGUMENTS || argc - ARGUMENTS > UNITS_MAX)
        return false;
    w->controller = keep[(*kept)++] = atoi(argv[0]);
    w->wire = keep[(*kept)++] = atoi(argv[1]);
    const int shared = keep[(*kept)++] = atoi(argv[2]);
    w->said = keep[(*kept)++] = atoi(argv[3]);
    w->check_ns = strtoll(argv[4], NULL, 10);
    for (int i = ARGUMENTS; i < argc; i++) {
        fl_lock *l = &w->unit[w->unit_count++];
        int used = 0;
        if (sscanf(argv[i], "%d:%d:%n", &l->fd, &l->held, &used) != 2 || !used)
            return false;
        keep[(*kept)++] = l->fd;
        keep[(*kept)++] = l->held;
        snprintf(l->unit, sizeof l->unit, "%s", argv[i] + used);
    }
    void *at = mmap(NULL, sizeof *w->beat, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
    w->beat = at == MAP_FAILED ? NULL : at;
    return w->beat != NULL;
}

/* Without its locks it would restore while a successor sets: a process that did not get them must not act as guardian.
 */
static bool has_locks(const watch *w) {
    for (size_t i = 0; i < w->unit_count; i++) {
        if (!fl_lock_is(w->unit[i].fd) || !fl_lock_is(w->unit[i].held))
            return false;
        fl_lock_guard(&w->unit[i]);
    }
    return true;
}

static fl_status put_back(watch *w, verdict v) {
    const char *state = fl_state_folder();
    fl_diag d = {0};
    fl_status s = restore_all(w, state, &d);
    log_verdict(state, w, v, &d);
    for (size_t i = 0; !s && i < w->unit_count; i++)
        fl_lock_unlink(state, &w->unit[i]);
    for (size_t i = 0; i < w->unit_count; i++) /* anyone who waits for one of them must find all in their final state */
        fl_lock_close(&w->unit[i]);
    if (v == MISSED && !fl_mutated("kill-untold"))
        tell_kill(state, w, &d);
    return s;
}

int fl_guardian_main(int argc, char **argv) {
    static watch w;
    int keep[KEPT_MAX];
    size_t kept = 0;
    fl_diag d = {0};
    if (!take_arguments(&w, argc, argv, keep, &kept))
        return 2;
    close_others(keep, kept);
    for (size_t i = 0; i < kept; i++)
        fcntl(keep[i], F_SETFD, FD_CLOEXEC);
    if (!has_locks(&w))
        return 3;
    keep_records(&w);        /* from a controller whose guardian was lost */
    if (open_gpus(&w, &d)) { /* the controller learns at once that we are not ready; what it has set until now is still
                                ours to restore */
        close(w.wire);
        w.wire = -1;
    } else if (send(w.wire, "r", 1, MSG_NOSIGNAL) !=
               1) { /* the controller is gone, or has given us up: its end will be seen */
        w.wire = -1;
    }
    const verdict v = look_on(&w);
    if (v != MISSED) { /* someone may wait for the end of the controller's output */
        close(w.said);
        w.said = -1;
    } else {
        end_controller(&w);
    }
    const fl_status s = v == DISMISSED ? FL_OK : put_back(&w, v);
    fl_gpus_close(&w.gpus);
    return s ? 3 : 0;
}
