/* Starts the command of a session, and ends the processes that it leaves behind. */
#include "harness/emulate/session/inside.h"

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/live/guard/guard.h"
#include "traces/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- processes that a command leaves behind ---- */

/* The number of children to which this signal can be sent; 0 only checks. */
static int send_to_children(int signal) {
    int pid, count = 0;
    FILE *f = fopen("/proc/thread-self/children", "re");
    while (f && fscanf(f, "%d", &pid) == 1)
        count += !kill(pid, signal);
    if (f)
        fclose(f);
    return count;
}

bool fl_orphans_adopt(void) { return !send_to_children(0) && !prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

/* The children of a process become ours only after its end, so the search repeats after each end. */
void fl_orphans_end(void) {
    while (send_to_children(SIGKILL))
        if (waitpid(-1, NULL, 0) < 0 && errno != EINTR)
            break;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

/* ---- starting the command ---- */

const char *fl_command_unfit(const char *path) {
    switch (fl_image_of(path)) {
    case FL_IMAGE_GO:
        return "is a Go program, which asks the kernel for time by itself";
    case FL_IMAGE_STATIC:
        return "is linked statically";
    case FL_IMAGE_NARROW:
        return "is not a 64-bit program";
    case FL_IMAGE_HOOKED:
        break;
    }
    return NULL;
}

/* The file that execvp would run. */
static bool is_program(const char *path) {
    struct stat st;
    return !access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode);
}

static bool find_program(const char *name, char *path, size_t size) {
    const char *at = getenv("PATH");
    if (strchr(name, '/') || !at)
        return snprintf(path, size, "%s", name) < (int)size && is_program(path);
    while (*at) {
        const size_t n = strcspn(at, ":");
        if (n && snprintf(path, size, "%.*s/%s", (int)n, at, name) < (int)size && is_program(path))
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

static bool prepend(const char *name, const char *value, char separator) {
    const char *old = getenv(name);
    char *text = NULL;
    const bool more = old && *old;
    bool ok = asprintf(&text, "%s%.1s%s", value, more ? &separator : "", more ? old : "") >= 0;
    ok = ok && !setenv(name, text, 1);
    if (ok)
        free(text);
    return ok;
}

static long long now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool set_environment(const fl_emulate_options *o, const char *session) {
    /* The dynamic linker ends a name in LD_PRELOAD at a space or colon, which the libraries' own folder may have. */
    char dir[128], text[4200];
    snprintf(dir, sizeof dir, "%s/" FL_EMULATE_CLIENT, session);
    const char *library = o->driver.given ? session : dir;
    bool ok = !setenv(FL_EMULATE_VARIABLE, session, 1);
    /* A controller of simulated GPUs must leave nothing among this machine's records. */
    snprintf(text, sizeof text, "%s/" FL_EMULATE_STATE, session);
    ok &= !setenv("FOLDLINE_STATE", text, 0);
    ok &= !setenv("FOLDLINE_RUN", text, 1); /* Nor among its locks; other sessions have GPUs of the same names. */
    snprintf(text, sizeof text, "%s/" FL_EMULATE_LIBRARY, library);
    ok &= !setenv("FOLDLINE_EMULATE_LIBRARY", text, 1);
    ok &= prepend("LD_LIBRARY_PATH", library, ':');
    snprintf(text, sizeof text, "%s/libfoldline-audit.so", dir);
    ok &= prepend("LD_AUDIT", text, ':');
    if (o->time != FL_TIME_VIRTUAL && o->scale == 1)
        return ok;
    if (o->time != FL_TIME_VIRTUAL) {
        snprintf(text, sizeof text, "%.17g %lld %lld", o->scale, now_ns(CLOCK_REALTIME), now_ns(CLOCK_MONOTONIC));
        ok &= !setenv(FL_EMULATE_SCALE, text, 1);
    }
    snprintf(text, sizeof text, "%s/libfoldline-%s.so", dir, o->time == FL_TIME_VIRTUAL ? "time" : "scale");
    /* A program built with the address sanitizer refuses to run behind another library unless this option allows it. */
    return ok && prepend("LD_PRELOAD", text, ':') && prepend("ASAN_OPTIONS", "verify_asan_link_order=0", ':');
}

/* For a program without our hooks the server must get the calls from the kernel. This tells the server the
 * descriptor, or the error. */
static void hold_calls(int wire) {
    int fd = fl_filter_install();
    if (fd < 0)
        fd = -errno;
    if (send(wire, &fd, sizeof fd, MSG_NOSIGNAL) != sizeof fd || fd < 0)
        _exit(3);
}

static _Noreturn void become(const fl_emulate_options *o, const char *session, const fl_covers *covers,
                             const char *path, bool held, const int wire[2]) {
    const int ours[] = {SIGINT, SIGTERM, SIGHUP,
                        SIGCHLD}; /* the command ignores the signals that we were started to ignore */
    sigset_t none;
    char go, why[256];
    if (covers->count && !fl_confine_enter(covers, why, sizeof why)) {
        fprintf(stderr, "foldline emulate: %s\n", why);
        _exit(3);
    }
    sigemptyset(&none);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!fl_stop_ignored(ours[i]))
            signal(ours[i], SIG_DFL);
    signal(SIGQUIT, SIG_DFL); /* ignored by fl_emulate */
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    const int nowhere = o->mute ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    if (nowhere >= 0 && (dup2(nowhere, 1) < 0 || dup2(nowhere, 2) < 0))
        _exit(3);
    if (o->kill.watched && !o->mute) /* standard output belongs to the table */
        (void)dup2(2, 1);
    if (o->kill.signal) /* an intentional crash leaves no core file */
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    close(wire[1]);
    if (read(wire[0], &go, 1) == 1 && set_environment(o, session)) {
        if (held)
            hold_calls(wire[0]);
        execvp(path, o->command);
    }
    const int error = errno;
    fprintf(stderr, "foldline emulate: cannot start %s: %s\n", o->command[0], fl_reason(error));
    _exit(error == ENOMEM ? 3 : 127); /* 3: a system error, as for every command; 127: no such program, as in a shell */
}

fl_status fl_command_start(fl_emulated_command *c, const fl_emulate_options *o, const char *session,
                           const fl_covers *covers, fl_diag *d) {
    char *path = c->path;
    int wire[2];
    const char *name = o->command[0];
    if (!find_program(name, path, sizeof c->path))
        return fl_refuse(
            d, strchr(name, '/') && !access(name, F_OK) ? "'%s' is not an executable file" : "'%s': no such program",
            name);
    const fl_image_kind kind = o->time == FL_TIME_VIRTUAL ? fl_image_of(path) : FL_IMAGE_HOOKED;
    if (kind == FL_IMAGE_NARROW)
        return fl_error(d, FL_HARDWARE, "%s %s: its time cannot be virtual", name, fl_command_unfit(path));
    c->held = kind != FL_IMAGE_HOOKED;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, wire))
        return fl_error(d, FL_IO, "socketpair: %s", fl_reason(errno));
    c->pid = fork();
    if (!c->pid)
        become(o, session, covers, path, c->held, wire);
    close(wire[0]);
    c->wire = wire[1];
    if (c->pid > 0)
        return FL_OK;
    close(c->wire);
    return fl_error(d, FL_IO, "fork: %s", fl_reason(errno));
}

fl_status fl_command_go(const fl_emulated_command *c, const fl_emulate_options *o, int *calls, fl_diag *d) {
    bool sent = send(c->wire, "", 1, MSG_NOSIGNAL) == 1;
    *calls = -1;
    if (sent && c->held)
        sent = recv(c->wire, calls, sizeof *calls, 0) == sizeof *calls;
    close(c->wire);
    if (sent && c->held && *calls < 0)
        return fl_error(d, FL_HARDWARE,
                        "%s %s, and the kernel does not hold its system calls (seccomp, Linux 5.19 and later): %s: its "
                        "time cannot be virtual",
                        o->command[0], fl_command_unfit(c->path), fl_reason(-*calls));
    return sent ? FL_OK : fl_error(d, FL_IO, "cannot start %s", o->command[0]);
}
