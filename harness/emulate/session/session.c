/* One session: opens everything and serves the requests of its clients. */
#include "harness/emulate/session/inside.h"

#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/emulate/session/session.h"
#include "harness/emulate/virtual/virtual.h"
#include "harness/live/guard/guard.h"
#include "traces/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Real time granted to processes that the command leaves behind, for example a guardian. */
#define GRACE_NS INT64_C(5000000000)
#define END_NS INT64_C(10000000000) /* from TERM to the end of a command that ignores it */

typedef struct fl_emulator {
    const fl_emulate_options *o;
    fl_outcome outcome;
    fl_boards boards;
    fl_peers peers;
    fl_conns conns;
    fl_sets sets;
    fl_token *token; /* NULL: wall time */
    fl_hold hold;
    fl_watch watch;
    char dir[64];
    fl_covers covers; /* empty: no part of a real driver is here, or none of it can be covered */
    int listener;
    int64_t started_ns; /* by the machine's clock */
    fl_emulated_command command;
    bool adopts; /* the session waits for processes that the command leaves behind */
    int command_fd;
    bool command_ended;
} fl_emulator;

static int64_t clock_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t time_now(const fl_emulator *e) {
    if (e->token)
        return fl_token_now(e->token);
    return (int64_t)((double)(clock_ns(CLOCK_MONOTONIC) - e->started_ns) * e->o->scale);
}

/* ---- clients ---- */

static void on_hung_up(void *user, const fl_conn *c) {
    fl_emulator *e = user;
    fl_sets_forget(&e->sets, c);
    if (e->token)
        fl_turns_hung_up(e->token, c);
}

/* A program that lost the library of virtual time (env -i, an LD_PRELOAD of its own) has the machine's time. */
static bool is_astray(const fl_emulator *e, pid_t pid) {
    return e->token && fl_turns_silent(e->token, pid) && !fl_hold_has(&e->hold, pid);
}

static void on_died(void *user, const fl_peer *p) {
    fl_emulator *e = user;
    if (is_astray(e, p->pid) && !p->doomed && !e->o->kill.watched && !e->o->kill.signal)
        fl_outcome_fail(&e->outcome,
                        "process %d (begun as %s) ended without the library of virtual time (LD_PRELOAD): its time was "
                        "not virtual",
                        (int)p->pid, fl_outcome_name(&e->outcome, p->pid));
    fl_conns_drop(&e->conns, p); /* the requests that it had queued are not read */
    fl_hold_died(&e->hold, p->pid);
    if (e->token)
        fl_turns_died(e->token, p->pid, p->parent);
}

static void on_kill(void *user, pid_t pid, int signal) {
    fl_emulator *e = user;
    kill(pid, signal);
    if (e->token)
        fl_turns_signalled(e->token, pid, signal);
}

/* ---- files ---- */

static void remove_state(const fl_emulator *e) {
    char path[sizeof e->dir + sizeof FL_EMULATE_STATE];
    snprintf(path, sizeof path, "%s/" FL_EMULATE_STATE, e->dir);
    DIR *folder = opendir(path);
    for (struct dirent *f; folder && (f = readdir(folder));)
        unlinkat(dirfd(folder), f->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

static void remove_files(void *user) {
    fl_emulator *e = user;
    char path[128];
    if (!e->dir[0]) /* no session was opened, so the folder does not exist */
        return;
    static const char *const file[] = {FL_EMULATE_SOCKET, FL_EMULATE_CLOCK, FL_EMULATE_CLIENT, FL_EMULATE_LIBRARY,
                                       "libnvidia-ml.so"};
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        snprintf(path, sizeof path, "%s/%s", e->dir, file[i]);
        unlink(path);
    }
    remove_state(e);
    fl_covers_close(&e->covers);
    rmdir(e->dir);
}

/* ---- requests ---- */

static bool hear_of(const fl_emulator *e, int fd, void *what) {
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};
    return !epoll_ctl(e->conns.events, EPOLL_CTL_ADD, fd, &ev);
}

/* From here on the kernel reports the calls of the program that this process becomes. */
static bool hold_calls(fl_emulator *e, pid_t pid, int fd) {
    const bool first = e->hold.events < 0;
    if (first && !fl_heir_open(&e->hold.heir, remove_files, e))
        return false;
    return fl_hold_listen(&e->hold, pid, fd) && (!first || hear_of(e, e->hold.events, &e->hold));
}

static void ask_hold(fl_emulator *e, fl_conn *c, const fl_ask *q) {
    const fl_answer a = {.result = e->token && c->peer && hold_calls(e, c->peer->pid, (int)q->a) ? 0 : -1};
    fl_conn_answer(&e->conns, c, time_now(e), q, &a);
}

static void ask_set(fl_emulator *e, fl_conn *c, const fl_ask *q) {
    if (!fl_sets_allowed(&e->sets, c, q))
        return;
    if (e->token)
        fl_turns_set(e->token, c, q);
    else
        fl_sets_delay(&e->sets, c, q);
}

static void serve(fl_emulator *e, fl_conn *c, const fl_ask *q) {
    fl_answer a;
    bool reading = false;
    if (q->op == FL_TIME_HOLD) {
        ask_hold(e, c, q);
        return;
    }
    if (q->op >= FL_TIME_HELLO) {
        if (e->token)
            fl_turns_ask(e->token, c, q);
        else
            fl_conn_drop(&e->conns, c);
        return;
    }
    if (c->peer && is_astray(e, c->peer->pid)) {
        fl_outcome_fail(
            &e->outcome,
            "process %d (begun as %s) asks the driver without the library of virtual time (LD_PRELOAD): its "
            "time is not virtual",
            (int)c->peer->pid, fl_outcome_name(&e->outcome, c->peer->pid));
        return;
    }
    fl_boards_go(&e->boards, time_now(e));
    fl_calls_look(&e->boards);
    if (q->op == FL_ASK_SET) {
        ask_set(e, c, q);
        return;
    }
    fl_calls_answer(&e->boards, &c->peer->inits, q, &a, &reading);
    if (a.result)
        a.size = 0;
    if (reading && e->token)
        fl_turns_read(e->token, q->gpu);
    fl_conn_answer(&e->conns, c, e->boards.now_ns, q, &a);
}

static void hear(fl_emulator *e, fl_conn *c) {
    fl_ask q;
    fl_peers_bury(&e->peers);
    if (c->gone)
        return;
    const ssize_t n = fl_conn_hear(c, &q);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    const int with = n >= 0 ? q.spare - 1 : -1;
    if (n == (ssize_t)sizeof q && q.image == FL_EMULATE_VERSION)
        serve(e, c, &q);
    else
        fl_conn_drop(&e->conns, c);
    if (with >= 0) /* a receiver that keeps it has made a copy */
        close(with);
}

/* ---- the session ---- */

static int wait_ms(const fl_emulator *e) {
    const int64_t next_ns = fl_sets_next_ns(&e->sets);
    if (e->token)
        return 50;
    const int most_ms = fl_boards_wake(&e->boards) ? 1 : 200; /* markers are passed while nobody asks */
    if (next_ns == INT64_MAX)
        return most_ms;
    const double ms = (double)(next_ns - time_now(e)) / e->o->scale * 1e-6;
    return ms <= 0 ? 0 : ms > most_ms ? most_ms : (int)ms; /* the last part of a millisecond is spent polling */
}

static bool anybody(const fl_emulator *e) {
    for (const fl_peer *p = e->peers.first; p; p = p->next)
        if (p->uses)
            return true;
    return e->token && fl_token_threads(e->token);
}

/* Handles the command's end and, for watched processes, the ends of those whose parents have ended. True while one of
 * them lives. */
static bool hear_of_ends(fl_emulator *e) {
    bool ended = false;
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(e->adopts ? -1 : e->command.pid, &status, WNOHANG)) > 0) {
        if (pid == e->command.pid) {
            e->outcome.r->command_status = status;
            ended = true;
        }
        if (!e->adopts)
            break;
    }
    if (ended) {
        e->command_ended = true;
        if (e->token)
            e->token->command_ended = true;
        epoll_ctl(e->conns.events, EPOLL_CTL_DEL, e->command_fd, NULL);
        fl_peers_bury(&e->peers);
    }
    return e->adopts && pid == 0;
}

static void run_session(fl_emulator *e) {
    int64_t ended_ns = 0, told_ns = 0;
    while (!e->outcome.status) {
        struct epoll_event ev[32];
        const int n = epoll_wait(e->conns.events, ev, 32, wait_ms(e)), signal = fl_stop_hand_on();
        if (signal && !e->command_ended)
            kill(e->command.pid, signal);
        if (signal == SIGTERM && !told_ns)
            told_ns = clock_ns(CLOCK_MONOTONIC);
        if (told_ns && !e->command_ended && clock_ns(CLOCK_MONOTONIC) - told_ns > END_NS)
            fl_outcome_fail(&e->outcome, "%s does not end on TERM", e->o->command[0]);
        fl_peers_bury(&e->peers);
        fl_sets_end(&e->sets, &e->peers, time_now(e));
        for (int i = 0; i < n && !e->outcome.status; i++) {
            if (ev[i].data.ptr == &e->listener)
                fl_conns_accept(&e->conns, &e->peers, e->listener);
            else if (ev[i].data.ptr == &e->peers)
                fl_peers_bury(&e->peers);
            else if (ev[i].data.ptr == &e->hold)
                fl_hold_hear(&e->hold);
            else if (ev[i].data.ptr != &e->command_fd)
                hear(e, ev[i].data.ptr);
        }
        if (e->token)
            fl_hold_go(&e->hold);
        else if (fl_boards_wake(&e->boards))
            fl_boards_go(&e->boards, time_now(e));
        fl_conns_free_gone(&e->conns);
        if (!n && e->token)
            fl_watch_look(&e->watch);
        const bool before = e->command_ended, others = (!before || e->adopts) && hear_of_ends(e);
        if (!before && e->command_ended)
            ended_ns = clock_ns(CLOCK_MONOTONIC);
        if (e->command_ended && ((!anybody(e) && !others) || clock_ns(CLOCK_MONOTONIC) - ended_ns > GRACE_NS))
            break;
        if (e->token && e->token->over)
            break;
    }
    fl_boards_go(&e->boards, time_now(e));
}

static fl_status open_session(fl_emulator *e, fl_diag *d) {
    snprintf(e->dir, sizeof e->dir, "/tmp/foldline-XXXXXX");
    if (!mkdtemp(e->dir))
        return fl_error(d, FL_IO, "cannot make a folder for the session: %s", fl_reason(errno));
    char link[sizeof e->dir + sizeof FL_EMULATE_CLIENT], client[PATH_MAX];
    snprintf(link, sizeof link, "%s/" FL_EMULATE_CLIENT, e->dir);
    if (!realpath(e->o->client_dir, client) || symlink(client, link))
        return fl_error(d, FL_IO, "%s: %s", link, fl_reason(errno));
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s/" FL_EMULATE_SOCKET, e->dir);
    e->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    e->conns.events = epoll_create1(EPOLL_CLOEXEC);
    e->peers.deaths = epoll_create1(EPOLL_CLOEXEC);
    if (e->listener < 0 || e->conns.events < 0 || e->peers.deaths < 0 ||
        bind(e->listener, (const struct sockaddr *)&at, sizeof at) || listen(e->listener, 1024) ||
        !hear_of(e, e->listener, &e->listener) || !hear_of(e, e->peers.deaths, &e->peers))
        return fl_error(d, FL_IO, "%s: %s", at.sun_path, fl_reason(errno));
    return FL_OK;
}

/* If the user requests a driver version, its library lies in the session's folder. */
static fl_status make_library(const fl_emulator *e, fl_diag *d) {
    char from[4200], to[128], plain[128];
    if (!e->o->driver.given)
        return FL_OK;
    snprintf(from, sizeof from, "%s/" FL_EMULATE_LIBRARY, e->o->client_dir);
    snprintf(to, sizeof to, "%s/" FL_EMULATE_LIBRARY, e->dir);
    snprintf(plain, sizeof plain, "%s/libnvidia-ml.so", e->dir);
    const fl_status s = fl_driver_library(&e->o->driver, from, to, d);
    if (!s && symlink(FL_EMULATE_LIBRARY, plain))
        return fl_error(d, FL_IO, "%s: %s", plain, fl_reason(errno));
    return s;
}

/* Covers the parts of a real driver on this machine, or reports before anything starts that it cannot. */
static fl_status confine(fl_emulator *e, fl_diag *d) {
    char why[256], text[512];
    if (e->o->confine == FL_CONFINE_OFF)
        return FL_OK;
    const fl_status s = fl_covers_open(&e->covers, e->dir, e->o->client_dir, d);
    if (s || !e->covers.count || fl_confine_try(&e->covers, why, sizeof why))
        return s;
    snprintf(text, sizeof text,
             "%s: programs that leave the session's environment (env -i, setuid and static programs) find the real "
             "driver of this machine, for example %.100s",
             why, e->covers.path[0]);
    if (e->o->confine == FL_CONFINE_NEED)
        return fl_error(d, FL_HARDWARE, "%s", text);
    if (e->o->note)
        e->o->note(text);
    fl_covers_close(&e->covers);
    return FL_OK;
}

static void close_session(fl_emulator *e) {
    if (e->outcome.status &&
        e->command.pid > 0) /* a command that cannot be emulated is ended, with everything that it started */
        for (const fl_peer *p = e->peers.first; p; p = p->next)
            fl_peer_kill(&e->peers, p->pid);
    fl_hold_end(&e->hold);
    if (e->command.pid > 0 && !e->command_ended) {
        kill(e->command.pid, SIGKILL);
        waitpid(e->command.pid, &e->outcome.r->command_status, 0);
    }
    fl_conns_drop(&e->conns, NULL);
    fl_conns_free_gone(&e->conns);
    while (e->peers.first)
        fl_peer_bury(&e->peers, e->peers.first);
    const int fd[] = {e->listener, e->conns.events, e->peers.deaths, e->command_fd};
    for (size_t i = 0; i < sizeof fd / sizeof *fd; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    remove_files(e);
}

/* Starts the command and serves it to its end. */
static fl_status serve_command(fl_emulator *e, fl_diag *d) {
    fl_status s = fl_command_start(&e->command, e->o, e->dir, &e->covers, d);
    if (s)
        return s;
    if (e->token)
        fl_turns_command(e->token, e->command.pid);
    int calls;
    if ((s = fl_command_go(&e->command, e->o, &calls, d)))
        return s;
    if (calls >= 0 && !hold_calls(e, e->command.pid, calls))
        return fl_error(d, FL_IO, "cannot hear of the system calls of %s: %s", e->o->command[0], fl_reason(errno));
    e->started_ns = clock_ns(CLOCK_MONOTONIC);
    if (!e->token)
        e->boards.realtime_ns = clock_ns(CLOCK_REALTIME);
    if (e->boards.rings)
        fl_rings_start(e->boards.rings, e->token ? FL_VIRTUAL_MONOTONIC_NS : e->started_ns);
    e->command_fd = (int)syscall(SYS_pidfd_open, e->command.pid, 0);
    hear_of(e, e->command_fd, &e->command_fd);
    run_session(e);
    return e->outcome.status;
}

fl_status fl_emulate(const fl_emulate_options *o, fl_emulate_result *r, fl_diag *d) {
    *r = (fl_emulate_result){.hash = UINT64_C(0xcbf29ce484222325)};
    fl_emulator e = {
        .o = o, .outcome = {.r = r, .d = d, .kill = o->kill, .on_kill = on_kill}, .listener = -1, .command_fd = -1};
    fl_token token = {.sets = &e.sets, .peers = &e.peers, .outcome = &e.outcome};
    e.boards =
        (fl_boards){.o = o,
                    .outcome = &e.outcome,
                    .realtime_ns = o->time == FL_TIME_VIRTUAL ? FL_VIRTUAL_REALTIME_NS : clock_ns(CLOCK_REALTIME)};
    e.peers = (fl_peers){.outcome = &e.outcome, .deaths = -1, .died = on_died, .user = &e};
    e.conns = (fl_conns){.outcome = &e.outcome, .events = -1, .hung_up = on_hung_up, .user = &e};
    e.sets = (fl_sets){.boards = &e.boards, .conns = &e.conns};
    e.watch.token = e.hold.token = &token;
    e.hold.events = -1;
    e.outcome.user = &e;
    e.adopts = o->kill.watched && fl_orphans_adopt();
    fl_status s = fl_boards_open(&e.boards, d);
    if (!s && o->rings)
        s = fl_rings_open(&e.boards.rings, o->rings, o->scene->w, e.boards.node, e.boards.gpu_count, o, d);
    if (!s)
        s = open_session(&e, d);
    if (!s)
        s = make_library(&e, d);
    const int heard[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE};
    enum { HEARD = sizeof heard / sizeof *heard };
    struct sigaction old[HEARD];
    for (size_t i = 0; i < HEARD; i++)
        sigaction(heard[i], NULL, &old[i]);
    fl_stop_listen(); /* the command gets the signals too, and its end ends the session */
    signal(SIGQUIT, SIG_IGN);
    if (!s)
        s = confine(&e, d);
    if (!s && o->time == FL_TIME_VIRTUAL && !(s = fl_token_open(&token, e.dir, d)))
        e.token = &token;
    if (!s)
        s = serve_command(&e, d);
    e.outcome.status = s;
    if (e.boards.node)
        fl_boards_report(&e.boards);
    close_session(&e);
    fl_hold_close(&e.hold);
    if (e.token)
        fl_token_close(e.token);
    fl_rings_close(e.boards.rings);
    fl_boards_close(&e.boards);
    for (size_t i = 0; i < HEARD; i++)
        sigaction(heard[i], &old[i], NULL);
    if (e.adopts)
        fl_orphans_end();
    if (s)
        fl_emulate_result_free(r);
    return s;
}
