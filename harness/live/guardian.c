#include "harness/live/guardian.h"

#include "harness/live/mutation.h"
#include "harness/live/restore.h"
#include "harness/live/vendor/vendors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct fl_beat { /* shared memory */
    _Atomic int64_t until_ns;
};

enum { UNITS_MAX = 1025, READY_MS = 20000, LOOKS = 3, TRIES = 40, NS_PER_MS = 1000000 };

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int pidfd_of(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

/* ---- the controller's side ----------------------------------------------------------------------------------------
 */

typedef struct arguments {
    char *text[UNITS_MAX + 10];
    size_t count;
    bool failed;
} arguments;

static void add_argument(arguments *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_argument(arguments *a, const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (a->count + 1 >= sizeof a->text / sizeof *a->text || vasprintf(&a->text[a->count], format, list) < 0)
        a->failed = true;
    else
        a->text[++a->count] = NULL;
    va_end(list);
}

static bool keep_open(int fd) { return fcntl(fd, F_SETFD, 0) == 0; }

/* Between fork and exec: system calls only. */
static void become(char *const *argv, const int *keep, size_t count) {
    const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
    sigset_t none;
    sigemptyset(&none);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDWR);
    bool ok = setsid() >= 0 && null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0;
    for (size_t i = 0; ok && i < count; i++)
        ok = keep_open(keep[i]);
    if (ok)
        execv("/proc/self/exe", argv);
    _exit(127);
}

static bool open_shared(fl_guardian *g) {
    if ((g->beat_fd = memfd_create("foldline-beat", MFD_CLOEXEC)) < 0 || ftruncate(g->beat_fd, sizeof *g->beat))
        return false;
    void *at = mmap(NULL, sizeof *g->beat, PROT_READ | PROT_WRITE, MAP_SHARED, g->beat_fd, 0);
    g->beat = at == MAP_FAILED ? NULL : at;
    return g->beat != NULL;
}

/* True once it has said that it is ready; false where it ended or took too long. */
static bool wait_ready(int wire) {
    struct pollfd p = {.fd = wire, .events = POLLIN};
    char byte;
    const int64_t end = now_ns() + READY_MS * INT64_C(1000000);
    while (now_ns() < end) {
        int n = poll(&p, 1, 100);
        if (n > 0)
            return read(wire, &byte, 1) == 1;
        if (n < 0 && errno != EINTR)
            return false;
    }
    return false;
}

static fl_status spawn(fl_guardian *g, const fl_lock *lock, size_t lock_count, fl_diag *d) {
    int wire[2] = {-1, -1}, keep[UNITS_MAX + 4];
    size_t kept = 0;
    arguments a = {0};
    pid_t pid = -1;
    int self = pidfd_of(getpid());
    if (self < 0 || lock_count > UNITS_MAX || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wire))
        goto out;
    g->wire = wire[0];
    keep[kept++] = self;
    keep[kept++] = wire[1];
    keep[kept++] = g->beat_fd;
    add_argument(&a, "foldline");
    add_argument(&a, "live");
    add_argument(&a, "--guardian");
    add_argument(&a, "%d", self);
    add_argument(&a, "%d", wire[1]);
    add_argument(&a, "%d", g->beat_fd);
    add_argument(&a, "%" PRId64, g->check_ns);
    for (size_t i = 0; i < lock_count; i++) {
        add_argument(&a, "%d:%s", lock[i].fd, lock[i].unit);
        if (!fl_mutated("lock-not-inherited"))
            keep[kept++] = lock[i].fd;
    }
    pid = a.failed ? -1 : fork();
    if (!pid)
        become(a.text, keep, kept);
out:;
    const int error = errno;
    for (size_t i = 0; i < a.count; i++)
        free(a.text[i]);
    if (self >= 0)
        close(self);
    if (wire[1] >= 0)
        close(wire[1]);
    if (pid < 0)
        return fl_error(d, FL_HARDWARE, "cannot start the guardian: %s", fl_reason(error));
    g->pid = pid;
    if (wait_ready(g->wire))
        return FL_OK;
    return fl_error(d, FL_HARDWARE, "the guardian does not get ready: nothing is set without it");
}

fl_status fl_guardian_start(fl_guardian *g, const fl_lock *lock, size_t lock_count, int64_t check_ns, fl_diag *d) {
    *g = (fl_guardian){.wire = -1, .beat_fd = -1, .check_ns = check_ns};
    if (!open_shared(g)) {
        fl_guardian_drop(g);
        return fl_error(d, FL_HARDWARE, "cannot start the guardian: no shared memory");
    }
    fl_guardian_beat(g, INT64_MAX);
    fl_status s = spawn(g, lock, lock_count, d);
    if (s)
        fl_guardian_drop(g);
    return s;
}

void fl_guardian_beat(fl_guardian *g, int64_t until_ns) {
    if (g->beat)
        atomic_store_explicit(&g->beat->until_ns, until_ns, memory_order_release);
}

bool fl_guardian_alive(fl_guardian *g) {
    if (g->pid && waitpid(g->pid, NULL, WNOHANG) != 0)
        g->pid = 0;
    return g->pid != 0;
}

void fl_guardian_drop(fl_guardian *g) {
    if (g->wire >= 0)
        close(g->wire);
    if (g->beat_fd >= 0)
        close(g->beat_fd);
    if (g->beat)
        munmap(g->beat, sizeof *g->beat);
    *g = (fl_guardian){.wire = -1, .beat_fd = -1};
}

void fl_guardian_dismiss(fl_guardian *g) {
    if (g->pid && send(g->wire, "d", 1, MSG_NOSIGNAL) == 1) {
        /* A second is plenty, and one that is stopped must not hold us up. */
        for (int i = 0; i < 1000 && fl_guardian_alive(g); i++)
            nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
    }
    fl_guardian_drop(g);
}

/* ---- the guardian's own side --------------------------------------------------------------------------------------
 */

typedef struct watch {
    int controller, wire;
    const struct fl_beat *beat;
    int64_t check_ns;
    fl_lock unit[UNITS_MAX];
    size_t unit_count;
    fl_gpus gpus;
} watch;

typedef enum verdict { DISMISSED, ENDED, MISSED } verdict;

/* What happened until `until_ns`: -1 = nothing. */
static int wait_until(watch *w, int64_t until_ns) {
    for (;;) {
        struct pollfd p[2] = {{.fd = w->controller, .events = POLLIN}, {.fd = w->wire, .events = POLLIN}};
        int64_t left = until_ns - now_ns();
        if (left < 0)
            left = 0;
        const struct timespec t = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
        int n = ppoll(p, 2, &t, NULL);
        char byte = 0;
        if (n > 0 && p[1].revents) {
            if (read(w->wire, &byte, 1) == 1 && byte == 'd')
                return DISMISSED;
            w->wire = -1; /* hung up: its end will tell; a negative descriptor is passed over */
        }
        if (n > 0 && p[0].revents)
            return ENDED;
        if (n == 0)
            return -1;
    }
}

/* Looks at the controller until there is something to do. Three looks in a row past its time are a miss; a look that
 * came late itself, because this process or the machine was held up, says nothing and starts the count anew. */
static verdict look_on(watch *w) {
    int missed = 0;
    for (;;) {
        int64_t until = atomic_load_explicit(&w->beat->until_ns, memory_order_acquire), now = now_ns();
        const int64_t far = now + 10 * w->check_ns; /* the time may be brought forward meanwhile */
        const int64_t wake = until > far ? far : until >= now ? until + 1 : now + w->check_ns;
        int what = wait_until(w, wake);
        if (what >= 0)
            return (verdict)what;
        bool overslept = now_ns() - wake > w->check_ns;
        until = atomic_load_explicit(&w->beat->until_ns, memory_order_acquire);
        missed = overslept && !fl_mutated("verdict-after-oversleep") ? 0 : until < now_ns() ? missed + 1 : 0;
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

/* One line for whoever wants to know later: nobody reads our standard error. */
static void log_verdict(const char *state, verdict v, const fl_diag *d) {
    char path[512];
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    FILE *f = fl_state_path(state, "guardian", ".log", path, sizeof path) ? fopen(path, "ae") : NULL;
    if (!f)
        return;
    fprintf(f, "%lld the controller %s; %s%s\n", (long long)t.tv_sec,
            v == MISSED ? "missed its time and was killed" : "ended", d->status ? "not restored: " : "restored",
            d->status ? d->message : "");
    fclose(f);
}

/* Whatever else this process was given, pipes of a pipeline for one: somebody may wait for their end. */
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
    char *list = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&list, &size);
    if (!f)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < w->unit_count; i++)
        if (strcmp(w->unit[i].unit, "cpu") != 0) {
            fprintf(f, "%s,", w->unit[i].unit);
            vendor = fl_vendor_of(w->unit[i].unit);
        }
    fclose(f);
    fl_diag missing; /* of one that is lost the restore tells; the others it shall not hold up */
    fl_status s = size ? fl_vendor_open(&w->gpus, vendor, list, &missing, d) : FL_OK;
    free(list);
    return s;
}

/* Again and again where it fails: a driver that is busy now may answer soon, and a GPU that is lost may come back,
 * which only a library that is opened anew sees. The record stays if it never does. */
static fl_status restore_all(watch *w, const char *state, fl_diag *d) {
    fl_status s = FL_OK;
    for (int attempt = 0; attempt < TRIES; attempt++) {
        *d = (fl_diag){0};
        if (attempt) {
            nanosleep(&(struct timespec){.tv_nsec = 250 * NS_PER_MS}, NULL);
            fl_gpus_close(&w->gpus);
        }
        s = w->gpus.self ? FL_OK : open_gpus(w, d);
        for (size_t i = 0; i < w->unit_count; i++) {
            if (fl_lock_superseded(state, &w->unit[i])) /* given back in order by a controller that had given us up */
                continue;
            fl_status one = fl_restore_unit(state, w->unit[i].unit, &w->gpus, NULL, s ? NULL : d);
            s = s ? s : one;
        }
        if (!s)
            break;
    }
    return s;
}

int fl_guardian_main(int argc, char **argv) {
    watch w = {0};
    int keep[UNITS_MAX + 4];
    size_t kept = 0;
    fl_diag d = {0};
    if (argc < 5 || argc - 4 > UNITS_MAX)
        return 2;
    w.controller = keep[kept++] = atoi(argv[0]);
    w.wire = keep[kept++] = atoi(argv[1]);
    const int shared = keep[kept++] = atoi(argv[2]);
    w.check_ns = strtoll(argv[3], NULL, 10);
    for (int i = 4; i < argc; i++) {
        char *colon = strchr(argv[i], ':');
        if (!colon)
            return 2;
        fl_lock *l = &w.unit[w.unit_count++];
        l->fd = keep[kept++] = atoi(argv[i]);
        snprintf(l->unit, sizeof l->unit, "%s", colon + 1);
    }
    close_others(keep, kept);
    for (size_t i = 0; i < kept; i++)
        fcntl(keep[i], F_SETFD, FD_CLOEXEC);
    void *at = mmap(NULL, sizeof *w.beat, PROT_READ, MAP_SHARED, shared, 0);
    w.beat = at == MAP_FAILED ? NULL : at;
    if (!w.beat)
        return 3;
    if (open_gpus(&w, &d)) { /* not ready, it learns at once; what it has set until now is ours all the same */
        close(w.wire);
        w.wire = -1;
    } else if (send(w.wire, "r", 1, MSG_NOSIGNAL) != 1) { /* it is gone, or has given us up: its end will tell */
        w.wire = -1;
    }
    verdict v = look_on(&w);
    fl_status s = FL_OK;
    if (v == MISSED)
        end_controller(&w);
    if (v != DISMISSED) {
        const char *state = fl_state_folder();
        s = restore_all(&w, state, &d);
        log_verdict(state, v, &d);
        for (size_t i = 0; !s && i < w.unit_count; i++)
            fl_lock_unlink(state, &w.unit[i]); /* all of them, then the end frees all at once */
    }
    fl_gpus_close(&w.gpus);
    return s ? 3 : 0;
}
