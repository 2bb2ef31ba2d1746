#include "harness/live/guard/stop.h"

#include <signal.h>
#include <stdatomic.h>

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
