/* Programs whose time cannot be virtual: unfit raw | rawclock | itimer | timer | deadlock. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long raw(long number, long a, long b) {
    long r;
#if defined(__x86_64__)
    register long c __asm__("rdx") = 0;
    __asm__ volatile("syscall" : "=a"(r) : "a"(number), "D"(a), "S"(b), "r"(c) : "rcx", "r11", "memory");
#else
    (void)number, (void)a, (void)b;
    r = -1;
#endif
    return r;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const struct timespec s = {5, 0};
    struct timespec t = {0, 0};
    timer_t timer;
    if (!strcmp(what, "raw"))
        raw(SYS_nanosleep, (long)&s, 0);
    else if (!strcmp(what, "rawclock"))
        raw(SYS_clock_gettime, CLOCK_REALTIME, (long)&t);
    else if (!strcmp(what, "itimer"))
        setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = 1}}, NULL);
    else if (!strcmp(what, "timer"))
        timer_create(CLOCK_PROCESS_CPUTIME_ID, NULL, &timer);
    else if (!strcmp(what, "deadlock")) {
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&m);
        pthread_mutex_lock(&m);
    } else
        return 2;
    printf("went through: %lld\n", (long long)t.tv_sec);
    return 0;
}
