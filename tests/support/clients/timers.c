/* Timers of every kind, as a program uses them: prints what came and when, in tenths of a second since its start. On
 * the machine, in wall time and in virtual time the lines are the same. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t started_ms;
static volatile sig_atomic_t alarms, told, thread_calls, thread_value;
static volatile int missed;
static volatile int64_t heard_ms; /* by the clock as the handler itself sees it */
static timer_t queued;

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void show(const char *what, long value) {
    printf("%s %ld at %lld\n", what, value, (long long)((now_ms() - started_ms + 50) / 100));
    fflush(stdout);
}

static void start(void) { started_ms = now_ms(); }
static struct timespec tenths(int n) { return (struct timespec){n / 10, n % 10 * 100000000L}; }
static struct itimerspec every(int first, int interval) {
    return (struct itimerspec){.it_value = tenths(first), .it_interval = tenths(interval)};
}
static void wait_for(int n) {
    struct timespec t = tenths(n);
    while (nanosleep(&t, &t) && errno == EINTR) {
    }
}

static void on_alarm(int number) {
    (void)number;
    alarms++;
    heard_ms = now_ms();
}
static void on_value(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    told = info->si_value.sival_int + 1000 * (info->si_code == SI_TIMER);
    missed = timer_getoverrun(queued);
}
static void on_thread(union sigval value) {
    thread_calls++;
    thread_value = value.sival_int;
}

static void listen_to(int number, void (*f)(int)) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = f;
    sigaction(number, &a, NULL);
}

static void test_alarm(void) {
    listen_to(SIGALRM, on_alarm);
    start();
    alarm(1);
    pause();
    show("alarm", alarms);
    show("handler's clock", (long)((heard_ms - started_ms + 50) / 100));
    struct itimerval v = {{0, 200000}, {0, 400000}}, left;
    setitimer(ITIMER_REAL, &v, NULL);
    for (int i = 0; i < 3; i++)
        pause();
    getitimer(ITIMER_REAL, &left);
    show("interval", alarms + (left.it_interval.tv_usec == 200000 ? 100 : 0));
    alarm(7);
    wait_for(10);
    show("left of alarm", (long)alarm(0));
    struct timespec s = tenths(30);
    alarm(1);
    const int r = nanosleep(&s, &s);
    show("sleep cut short", r ? (long)((s.tv_sec * 1000 + s.tv_nsec / 1000000 + 50) / 100) : -1);
}

static void test_timers(void) {
    struct sigaction a;
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 42};
    struct itimerspec v = every(4, 0), left;
    sigset_t set, before;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = on_value;
    a.sa_flags = SA_SIGINFO;
    sigaction(SIGRTMIN, &a, NULL);
    start();
    timer_create(CLOCK_MONOTONIC, &e, &queued);
    timer_settime(queued, 0, &v, NULL);
    wait_for(1);
    timer_gettime(queued, &left);
    show("left of timer", (left.it_value.tv_nsec / 1000000 + 50) / 100);
    pause();
    show("timer told", told);
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, &before);
    v = every(2, 2);
    timer_settime(queued, 0, &v, NULL);
    wait_for(9);
    sigprocmask(SIG_SETMASK, &before, NULL);
    show("missed", missed);
    v = every(0, 0);
    timer_settime(queued, 0, &v, NULL);
    clock_gettime(CLOCK_MONOTONIC, &v.it_value);
    v.it_value.tv_sec += 1;
    told = 0;
    timer_settime(queued, TIMER_ABSTIME, &v, NULL);
    pause();
    show("absolute", told);
    show("deleted", timer_delete(queued) + 10 * timer_delete(queued));
    e = (struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_thread, .sigev_value.sival_int = 7};
    timer_create(CLOCK_REALTIME, &e, &queued);
    v = every(3, 3);
    timer_settime(queued, 0, &v, NULL);
    wait_for(10);
    show("calls in threads", thread_calls * 10 + thread_value);
    timer_delete(queued);
    wait_for(5);
    show("and none later", thread_calls);
    e = (struct sigevent){.sigev_notify = SIGEV_NONE};
    timer_create(CLOCK_MONOTONIC, &e, &queued);
    v = every(5, 0);
    timer_settime(queued, 0, &v, NULL);
    wait_for(6);
    timer_gettime(queued, &left);
    show("told nobody", left.it_value.tv_nsec);
}

static void test_descriptor(void) {
    struct itimerspec v = every(2, 2), left;
    uint64_t n = 0;
    start();
    const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    timerfd_settime(fd, 0, &v, NULL);
    if (read(fd, &n, sizeof n) == sizeof n)
        show("descriptor", (long)n);
    wait_for(7);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    show("ready", poll(&p, 1, 0));
    if (read(fd, &n, sizeof n) == sizeof n)
        show("times", (long)n);
    timerfd_gettime(fd, &left);
    show("interval", left.it_interval.tv_nsec / 100000000);
    if (!fork()) { /* a copy is the same timer */
        v = every(5, 0);
        timerfd_settime(fd, 0, &v, NULL);
        _exit(0);
    }
    wait(NULL);
    show("poll", poll(&p, 1, 3000));
    clock_gettime(CLOCK_MONOTONIC, &v.it_value);
    v.it_value.tv_sec += 1;
    v.it_interval = tenths(0);
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, NULL);
    show("set anew", poll(&p, 1, 0));
    show("absolute", poll(&p, 1, 3000));
    close(fd);
    for (int i = 0; i < 300; i++) { /* closed ones do not add up */
        const int one = timerfd_create(CLOCK_MONOTONIC, 0);
        v = every(1, 1);
        if (one < 0 || timerfd_settime(one, 0, &v, NULL) || close(one))
            show("no descriptor", i);
    }
    show("a file", timerfd_settime(0, 0, &v, NULL) + (errno == EINVAL ? 10 : 20));
}

static void test_signals(void) {
    sigset_t set;
    struct timespec t = tenths(10);
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    start();
    sigprocmask(SIG_BLOCK, &set, NULL);
    show("nothing came", sigtimedwait(&set, &info, &t));
    alarm(1);
    t = tenths(30);
    show("it came", sigtimedwait(&set, &info, &t) == SIGALRM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    if (!fork()) /* a child has no alarm of its parent's */
        _exit((int)alarm(0));
    int status;
    wait(&status);
    show("child's alarm", WEXITSTATUS(status));
    const pid_t child = fork();
    if (!child) { /* over an exec it stays */
        alarm(2);
        execlp("sleep", "sleep", "5", (char *)NULL);
    }
    waitpid(child, &status, 0);
    show("ended by", WTERMSIG(status));
}

int main(void) {
    test_alarm();
    test_timers();
    test_descriptor();
    test_signals();
    return 0;
}
