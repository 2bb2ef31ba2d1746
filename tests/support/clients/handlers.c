/* A program that prints from a signal's handler which blocks every signal, blocks them all, and takes SIGSYS for
 * itself. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void hear(int number) {
    printf("heard %d\n", number);
    fflush(stdout);
}

int main(void) {
    struct sigaction a = {.sa_handler = hear}, old;
    sigset_t all;
    char byte[9];
    sigfillset(&all);
    sigfillset(&a.sa_mask);
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGSYS, &a, &old);
    printf("before %d, then ours %d\n", old.sa_handler == SIG_DFL, signal(SIGSYS, SIG_DFL) == hear);
    fflush(stdout);
    sigaction(SIGSYS, &a, NULL);
    raise(SIGSYS);
    raise(SIGUSR1);
    sigprocmask(SIG_BLOCK, &all, NULL);
    sleep(1);
    FILE *f = fopen("/dev/zero", "re");
    printf("read %zu\n", f ? fread(byte, 1, sizeof byte, f) : 0);
    return 0;
}
