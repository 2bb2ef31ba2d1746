/* The clock, the signals that end a controller, and the locks of GPUs. */
#include "harness/live/guard/inside.h"

#include "harness/live/guard/guard.h"
#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* ---- the clock ---- */

enum { NS = 1000000000 };

int64_t fl_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t now(void *user) {
    (void)user;
    return fl_clock_ns();
}

/* At most a second at a time: a signal that came just before the sleep is then seen soon enough. */
static void sleep_until(void *user, int64_t t_ns) {
    (void)user;
    const int64_t latest = fl_clock_ns() + NS, until = t_ns < latest ? t_ns : latest;
    const struct timespec t = {.tv_sec = until / NS, .tv_nsec = until % NS};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

fl_clock fl_clock_system(void) { return (fl_clock){.now = now, .sleep_until = sleep_until}; }

/* ---- signals that end a controller ---- */

/* A signal handler can reach nothing else. */
static volatile sig_atomic_t asked;
static _Atomic int sent;

static const int STOP[] = {SIGTERM, SIGINT, SIGHUP};
enum { STOP_COUNT = sizeof STOP / sizeof *STOP };

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)context;
    asked = 1;
    if (info->si_code != SI_KERNEL)
        atomic_store(&sent, number);
}

static void on_child(int number) { (void)number; } /* only so that a sleep ends */

bool fl_stop_ignored(int number) {
    struct sigaction now;
    return !sigaction(number, NULL, &now) && now.sa_handler == SIG_IGN;
}

void fl_stop_listen(void) {
    struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}; /* without SA_RESTART: sleeps end */
    sigset_t ours; /* a parent may have left them blocked, and then nothing would end us but KILL */
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    for (size_t i = 0; i < STOP_COUNT; i++) {
        sigaddset(&ours, STOP[i]);
        if (!fl_stop_ignored(STOP[i]))
            sigaction(STOP[i], &a, NULL);
    }
    a.sa_handler = on_child;
    a.sa_flags = SA_NOCLDSTOP;
    sigaction(SIGCHLD, &a, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error of the write, and told */
    sigprocmask(SIG_UNBLOCK, &ours, NULL);
}

void fl_stop_forget(void) {
    for (size_t i = 0; i < STOP_COUNT; i++)
        if (!fl_stop_ignored(STOP[i]))
            signal(STOP[i], SIG_DFL);
}

bool fl_stop_asked(void) { return asked; }

int fl_stop_hand_on(void) { return atomic_exchange(&sent, 0); }

int fl_stop_thread(pthread_t *thread, void *(*work)(void *), void *user) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(thread, NULL, work, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* ---- locks ---- */

/* Start of a process in clock ticks since boot: with its number it names one process, whatever was reused; 0 = gone. */
static uint64_t started(pid_t pid) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    bool ok = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    char *at = ok ? strrchr(line, ')') : NULL; /* the name may hold anything */
    uint64_t ticks = 0;
    char state = 'X';
    if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
                      &state, &ticks) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : ticks;
}

/* Two lines of a fixed width: the controller (or "restore"), and the guardian. Behind them, in the run folder, the
 * state folder of the last controller. */
enum { LINE = 64, PLACE = 2 * LINE };
static const char STATE_ENDING[] = ".lock", RUN_ENDING[] = ".held";

static bool write_process(int fd, int line) {
    char text[LINE + 1];
    const int size = snprintf(text, sizeof text, "%d %" PRIu64, (int)getpid(), started(getpid()));
    memset(text + size, ' ', sizeof text - (size_t)size);
    text[LINE - 1] = '\n';
    return pwrite(fd, text, LINE, (off_t)line * LINE) == LINE;
}

/* The process of a line, alive; 0 where there is none. */
static pid_t written(int fd, int line) {
    char text[LINE + 1] = "";
    int pid = 0;
    uint64_t ticks = 0;
    if (pread(fd, text, LINE, (off_t)line * LINE) <= 0 || sscanf(text, "%d %" SCNu64, &pid, &ticks) != 2 || pid <= 0)
        return 0;
    return ticks && started(pid) == ticks ? pid : 0;
}

bool fl_lock_is(int fd) {
    char text[LINE + 1] = "";
    struct stat f;
    int pid;
    if (fl_mutated("descriptor-unchecked") || fl_mutated("lock-not-inherited"))
        return true;
    return !fstat(fd, &f) && S_ISREG(f.st_mode) && !flock(fd, LOCK_EX | LOCK_NB) && pread(fd, text, LINE, 0) == LINE &&
           sscanf(text, "%d %*u", &pid) == 1 && pid > 0;
}

void fl_lock_guard(const fl_lock *lock) {
    write_process(lock->fd, 1);
    write_process(lock->held, 1);
}

#define HOLDER_NS INT64_C(1000000000)

/* A guardian that somebody stopped can restore nothing, and holds the lock for ever. To continue one that is not
 * stopped changes nothing. */
static void wake_guardian(int fd) {
    const pid_t guardian = written(fd, 1);
    if (guardian && !fl_mutated("stopped-guardian-left"))
        kill(guardian, SIGCONT);
}

static fl_status wait_for(int fd, const char *unit, int64_t wait_ns, fl_diag *d) {
    const int64_t start = fl_clock_ns(), end = start + wait_ns;
    int64_t free_ns = start; /* when no controller was seen last */
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fl_error(d, FL_IO, "cannot lock %s: %s", unit, fl_reason(errno));
        const pid_t holder = written(fd, 0);
        if (!holder) {
            free_ns = fl_clock_ns();
            wake_guardian(fd);
        }
        if (fl_clock_ns() - free_ns > HOLDER_NS)
            return fl_error(d, FL_HARDWARE, "%s is controlled by process %d: stop that first", unit, (int)holder);
        if (fl_clock_ns() > end)
            return fl_error(d, FL_HARDWARE, "%s: the restore that holds it (process %d) does not end", unit,
                            (int)written(fd, 1));
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return FL_OK;
}

/* Whoever held it before may have removed the file: what we locked then is not what the next one opens. */
static bool other_file(int fd, const char *folder, const char *unit, const char *ending, bool missing) {
    char path[512];
    struct stat ours, there;
    if (!fl_state_path(folder, unit, ending, path, sizeof path) || fstat(fd, &ours))
        return missing;
    if (lstat(path, &there))
        return missing;
    return ours.st_ino != there.st_ino || ours.st_dev != there.st_dev;
}

bool fl_lock_superseded(const char *state, const fl_lock *lock) {
    return other_file(lock->fd, state, lock->unit, STATE_ENDING, false) ||
           other_file(lock->held, fl_run_folder(), lock->unit, RUN_ENDING, false);
}

/* Of a lock that is ours and that its last controller did not take away: where its records are. "" = nowhere. */
static void read_place(int fd, char place[PATH_MAX]) {
    const ssize_t size = pread(fd, place, PATH_MAX - 1, PLACE);
    place[size > 0 ? size : 0] = '\0';
}

static bool write_place(int fd, const char *place) {
    const size_t size = strlen(place);
    return pwrite(fd, place, size, PLACE) == (ssize_t)size;
}

/* A controller that was killed together with its guardian may have left its record in another state folder than ours:
 * what we would read as prior values is what it had set. */
static fl_status check_left(const char *unit, const char *left, const char *place, fl_diag *d) {
    fl_record r = {0};
    bool found = false;
    if (!*left || !strcmp(left, place) || fl_mutated("left-record-ignored"))
        return FL_OK;
    const fl_status s = fl_record_read(left, unit, &r, &found, NULL);
    fl_record_free(&r);
    if (!found && s != FL_BAD_INPUT)
        return FL_OK;
    return fl_error(d, FL_HARDWARE,
                    "%s: a controller with the state folder %.300s left it without restoring: run "
                    "FOLDLINE_STATE=%.300s foldline restore first",
                    unit, left, left);
}

/* From here on it is ours that counts. */
static fl_status take_place(const char *state, const char *unit, int held, fl_diag *d) {
    char left[PATH_MAX], place[PATH_MAX];
    if (!realpath(state, place))
        return fl_error(d, FL_IO, "cannot look for the folder %s: %s", state, fl_reason(errno));
    read_place(held, left);
    fl_status s = check_left(unit, left, place, d);
    if (!s && (ftruncate(held, PLACE) || !write_place(held, place)))
        s = fl_error(d, FL_IO, "cannot write the lock of %s: %s", unit, fl_reason(errno));
    return s;
}

/* One file of a lock, locked and with its holder in it. */
static fl_status take_file(const char *folder, const char *unit, const char *ending, fl_lock_use use, int64_t wait_ns,
                           int *out, fl_diag *d) {
    int fd = -1;
    fl_status s;
    do {
        if (fd >= 0)
            close(fd);
        s = fl_state_file(folder, unit, ending, O_RDWR | O_CREAT, &fd, d);
        if (s || fd < 0)
            return s ? s : fl_error(d, FL_IO, "the folder %s is missing", folder);
        s = wait_for(fd, unit, wait_ns, d);
    } while (!s && other_file(fd, folder, unit, ending, true));
    char left[PATH_MAX] = "";
    if (!s)
        read_place(fd, left);
    const bool ok = s || (!ftruncate(fd, 0) && write_place(fd, left) &&
                          (use == FL_LOCK_CONTROL ? write_process(fd, 0) : pwrite(fd, "restore\n", 8, 0) == 8));
    if (!ok)
        s = fl_error(d, FL_IO, "cannot write the lock %s%s in %s: %s", unit, ending, folder, fl_reason(errno));
    if (s)
        close(fd);
    else
        *out = fd;
    return s;
}

fl_status fl_lock_take(const char *state, const char *unit, fl_lock_use use, int64_t wait_ns, fl_lock *lock,
                       fl_diag *d) {
    const char *run = fl_run_folder();
    *lock = (fl_lock){.fd = -1, .held = -1};
    snprintf(lock->unit, sizeof lock->unit, "%s", unit);
    if (fl_mutated("run-lock-left-out")) /* the state folder's once more, which is ours already */
        run = state;
    fl_status s = fl_folder_make(run, d);
    if (!s)
        s = take_file(run, unit, RUN_ENDING, use, wait_ns, &lock->held, d);
    if (!s && use == FL_LOCK_CONTROL)
        s = take_place(state, unit, lock->held, d);
    if (!s)
        s = take_file(state, unit, STATE_ENDING, use, wait_ns, &lock->fd, d);
    if (s)
        fl_lock_close(lock);
    return s;
}

/* While it is locked, and never a successor's. Where a record stays, so does what says where it is. */
void fl_lock_unlink(const char *state, const fl_lock *lock) {
    char path[512];
    if (fl_lock_superseded(state, lock) ||
        (fl_state_path(state, lock->unit, ".record", path, sizeof path) && !access(path, F_OK)))
        return;
    fl_state_remove(state, lock->unit, STATE_ENDING, NULL);
    fl_state_remove(fl_run_folder(), lock->unit, RUN_ENDING, NULL);
}

void fl_lock_close(fl_lock *lock) {
    if (lock->fd >= 0)
        close(lock->fd);
    if (lock->held >= 0)
        close(lock->held);
    lock->fd = lock->held = -1;
}

static pid_t holder_in(const char *folder, const char *unit, const char *ending) {
    int fd;
    const pid_t holder = fl_state_file(folder, unit, ending, O_RDONLY, &fd, NULL) || fd < 0 ? 0 : written(fd, 0);
    if (fd >= 0)
        close(fd);
    return holder;
}

pid_t fl_lock_holder(const char *state, const char *unit) {
    const pid_t holder = holder_in(fl_run_folder(), unit, RUN_ENDING);
    return holder ? holder : holder_in(state, unit, STATE_ENDING);
}
