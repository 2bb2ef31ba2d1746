/* The controller's side of the guardian: starts it, reports to it, replaces it. */
#include "harness/live/guard/guard.h"
#include "harness/live/guard/inside.h"
#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READY_MS = 20000, SILENT_CHECKS = 250, SILENT_MS = 1000, END_MS = 10000 };

static int pidfd_of(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

typedef struct arguments {
    char *text[UNITS_MAX + ARGUMENTS + 5];
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

/* Runs between fork and exec, so it makes system calls only. */
static void become(char *const *argv, const int *keep, size_t count) {
    const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ};
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

/* True once the guardian has said that it is ready, or has read the records; false where it ended or took too long. */
static bool wait_ready(int wire) {
    struct pollfd p = {.fd = wire, .events = POLLIN};
    char byte;
    const int64_t end = fl_guard_now_ns() + READY_MS * INT64_C(1000000);
    while (fl_guard_now_ns() < end) {
        int n = poll(&p, 1, 100);
        if (n > 0)
            return read(wire, &byte, 1) == 1;
        if (n < 0 && errno != EINTR)
            return false;
    }
    return false;
}

static fl_status spawn(fl_guardian *g, const fl_lock *lock, size_t lock_count, fl_diag *d) {
    int wire[2] = {-1, -1}, keep[KEPT_MAX];
    size_t kept = 0;
    arguments a = {0};
    pid_t pid = -1;
    int self = pidfd_of(getpid()), said = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (self < 0 || said < 0 || lock_count > UNITS_MAX || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wire))
        goto out;
    g->wire = wire[0];
    keep[kept++] = self;
    keep[kept++] = wire[1];
    keep[kept++] = g->beat_fd;
    keep[kept++] = said;
    add_argument(&a, "foldline");
    add_argument(&a, "live");
    add_argument(&a, "--guardian");
    add_argument(&a, "%d", self);
    add_argument(&a, "%d", wire[1]);
    add_argument(&a, "%d", g->beat_fd);
    add_argument(&a, "%d", said);
    add_argument(&a, "%" PRId64, g->check_ns);
    for (size_t i = 0; i < lock_count; i++) {
        add_argument(&a, "%d:%d:%s", lock[i].fd, lock[i].held, lock[i].unit);
        if (!fl_mutated("lock-not-inherited")) {
            keep[kept++] = lock[i].fd;
            keep[kept++] = lock[i].held;
        }
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
    if (said >= 0)
        close(said);
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
    *g = (fl_guardian){.wire = -1, .beat_fd = -1, .check_ns = check_ns, .asked_ns = fl_guard_now_ns()};
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

/* Only time in which this process itself was awake counts: after a freeze of the machine both processes are late. */
bool fl_guardian_answers(fl_guardian *g) {
    const int64_t looked = g->beat ? atomic_load_explicit(&g->beat->looked_ns, memory_order_acquire) : 0,
                  now = fl_guard_now_ns(), step = now - g->asked_ns, most = FAR_CHECKS * g->check_ns,
                  least = SILENT_MS * INT64_C(1000000), limit = SILENT_CHECKS * g->check_ns;
    g->silent_ns = looked == g->looked_ns ? g->silent_ns + (step < most ? step : most) : 0;
    g->looked_ns = looked;
    g->asked_ns = now;
    return g->silent_ns <= (limit > least ? limit : least) || fl_mutated("stopped-guardian-unnoticed");
}

static bool wait_end(fl_guardian *g, int ms) {
    for (int i = 0; i < ms && fl_guardian_alive(g); i++)
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
    return !fl_guardian_alive(g);
}

/* A guardian that has ended is replaced; its successor reads the records as it starts. */
fl_status fl_guardian_recorded(fl_guardian *g, fl_diag *d) {
    const bool read = g->pid && send(g->wire, "r", 1, MSG_NOSIGNAL) == 1 && wait_ready(g->wire);
    if (read || wait_end(g, 1000))
        return FL_OK;
    return fl_error(d, FL_HARDWARE, "the guardian does not read the records: nothing is set without it");
}

bool fl_guardian_end(fl_guardian *g) {
    if (fl_guardian_alive(g))
        kill(g->pid, SIGKILL); /* it is our child, and not yet waited for, so the number still means it */
    return wait_end(g, END_MS);
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
    /* A second is plenty. A stopped guardian would hold the locks for ever, and it has nothing left to do. */
    const bool told = g->pid && send(g->wire, "d", 1, MSG_NOSIGNAL) == 1;
    if (!(told && wait_end(g, 1000)) && !fl_mutated("stopped-guardian-kept"))
        fl_guardian_end(g);
    fl_guardian_drop(g);
}

/* ---- rights, and restore from records ---- */

/* What this user may set, and the restore of GPUs from their records. */

#define FL_VENDORS_MAX 3

/* ---- what this user may set ---- */

enum { CAP_SYS_ADMIN_BIT = 21 };

bool fl_privilege_capable(const char *status) {
    char line[256];
    uint64_t caps = 0;
    FILE *f = fopen(status, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "CapEff: %" SCNx64, &caps) == 1)
            break;
    if (f)
        fclose(f);
    return caps >> CAP_SYS_ADMIN_BIT & 1;
}

/* The initial namespace maps every id to itself: 0 0 4294967295. No other may. */
bool fl_privilege_maps_all(const char *uid_map) {
    uint64_t inside = 1, outside = 1, count = 0;
    FILE *f = fopen(uid_map, "re");
    if (!f)
        return true;
    const bool read = fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside, &count) == 3;
    fclose(f);
    return read && !inside && !outside && count == UINT32_MAX;
}

bool fl_privilege_initial(void) { return fl_privilege_maps_all("/proc/self/uid_map"); }

bool fl_privilege_admin(void) { return fl_privilege_capable("/proc/self/status") && fl_privilege_initial(); }

/* ---- restore ---- */

#define WAIT_NS INT64_C(30000000000)

static const char CPU[] = "cpu";

fl_status fl_restore_record(const fl_record *r, const fl_gpus *gpus, fl_diag *d) {
    if (!strcmp(r->unit, CPU))
        return fl_cpu_restore(r, d);
    const int i = gpus && gpus->back ? fl_gpus_find(gpus, r->unit) : -1;
    return i >= 0 ? gpus->back->restore(gpus->self, (uint32_t)i, r, d)
                  : fl_error(d, FL_HARDWARE, "%s: no such GPU now, or it does not answer", r->unit);
}

fl_status fl_restore_unit(const char *state, const char *unit, const fl_gpus *gpus, bool *restored, fl_diag *d) {
    fl_record r = {0};
    bool found = false;
    if (restored)
        *restored = false;
    fl_status s = fl_record_read(state, unit, &r, &found, d);
    if (s)
        return s;
    if (!found) /* one of an earlier boot is void */
        return fl_record_remove(state, unit, d);
    s = fl_restore_record(&r, gpus, d);
    fl_record_free(&r);
    if (!s)
        s = fl_record_remove(state, unit, d);
    if (!s && restored)
        *restored = true;
    return s;
}

static fl_status restore_one(const char *state, const char *unit, const fl_gpus *gpus, fl_restore_result *r,
                             fl_diag *d) {
    fl_lock lock;
    bool restored = false;
    fl_status s = fl_lock_take(state, unit, FL_LOCK_RESTORE, WAIT_NS, &lock, d);
    if (s)
        return s;
    s = fl_restore_unit(state, unit, gpus, &restored, d);
    r->restored += restored;
    if (!s)
        fl_lock_unlink(state, &lock);
    fl_lock_close(&lock);
    return s;
}

typedef struct opened { /* the vendors whose units have records, each opened when its first one comes */
    fl_gpus gpus[FL_VENDORS_MAX];
    bool failed[FL_VENDORS_MAX];
    fl_diag missing; /* the first GPU that does not answer; it does not hold up the others */
} opened;

/* NULL for the CPU; *s is why it cannot be opened, told once. */
static const fl_gpus *gpus_of(opened *o, const char *unit, fl_status *s, fl_diag *d) {
    size_t v = 0;
    if (!strcmp(unit, CPU))
        return NULL;
    while (v + 1 < fl_vendor_count() && strcmp(fl_vendor_name(v), fl_vendor_of(unit)) != 0)
        v++;
    if (!o->gpus[v].self && !o->failed[v]) {
        fl_diag missing;
        *s = fl_vendor_open(&o->gpus[v], fl_vendor_name(v), NULL, &missing, d);
        o->failed[v] = *s != FL_OK;
        if (!o->missing.status)
            o->missing = missing;
    }
    return &o->gpus[v];
}

fl_status fl_restore_all(fl_restore_result *r, fl_diag *d) {
    const char *state = fl_state_folder();
    char **unit = NULL;
    opened o = {0};
    fl_status first = fl_record_units(state, &unit, &r->records, d);
    r->restored = r->failed = 0;
    for (size_t i = 0; i < r->records; i++) {
        fl_status s = FL_OK;
        const fl_gpus *gpus = gpus_of(&o, unit[i], &s, first ? NULL : d);
        if (!gpus || gpus->self)
            s = restore_one(state, unit[i], gpus, r, first ? NULL : d);
        first = first ? first : s;
        r->failed += s || (gpus && !gpus->self);
    }
    if (first && o.missing.status && d) {
        const fl_diag told = *d;
        fl_fail(d, first, *told.file ? told.file : NULL, told.line, told.column, "%.500s; %.400s", told.message,
                o.missing.message);
    }
    for (size_t i = 0; i < FL_VENDORS_MAX; i++)
        fl_gpus_close(&o.gpus[i]);
    for (size_t i = 0; i < r->records; i++)
        free(unit[i]);
    free(unit);
    return first;
}
