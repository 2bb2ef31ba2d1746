/* A program that is linked statically, for virtual time: threads, a condition, a child, a pipe, an hour of sleep. With
 * an argument: a call that cannot be virtual. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static int rounds;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)(t.tv_sec - 1000) + (double)t.tv_nsec * 1e-9;
}

static void *worker(void *of) {
    const int number = *(int *)of;
    for (int i = 0; i < 5; i++) {
        usleep(100000 * (unsigned)number);
        pthread_mutex_lock(&lock);
        rounds++;
        printf("worker %d at %.3f\n", number, now());
        pthread_cond_signal(&news);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t id[3];
    int number[3] = {1, 2, 3}, wire[2], status = 0;
    struct timespec limit;
    struct timeval day;
    if (argc > 1 && !strcmp(argv[1], "alarm"))
        alarm(1);
    else if (argc > 1 && !strcmp(argv[1], "forever"))
        for (;;)
            usleep(1000);
    else if (argc > 1)
        (void)timerfd_create(CLOCK_MONOTONIC, 0);
    for (int i = 0; i < 3; i++)
        pthread_create(&id[i], NULL, worker, &number[i]);
    pthread_mutex_lock(&lock);
    while (rounds < 15)
        pthread_cond_wait(&news, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 3; i++)
        pthread_join(id[i], NULL);
    pthread_mutex_lock(&lock);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 5;
    const int late = pthread_cond_timedwait(&news, &lock, &limit) == ETIMEDOUT;
    pthread_mutex_unlock(&lock);
    printf("late %d at %.3f\n", late, now());
    if (pipe(wire))
        return 1;
    fflush(stdout);
    if (!fork()) {
        sleep(2);
        _exit(write(wire[1], "x", 1) == 1 ? 7 : 1);
    }
    struct pollfd p = {.fd = wire[0], .events = POLLIN};
    const int first = poll(&p, 1, 1000), second = poll(&p, 1, 5000);
    wait(&status);
    printf("polls %d %d, child %d at %.3f\n", first, second, WEXITSTATUS(status), now());
    for (int i = 0; i < 3600; i++)
        sleep(1);
    gettimeofday(&day, NULL);
    printf("end at %.3f, %ld\n", now(), (long)day.tv_sec);
    return 0;
}
