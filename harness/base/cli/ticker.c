/* The progress line on a terminal, and lines in a log. */
#include "harness/base/cli/inside.h"

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { STDOUT_ROOM = 1 << 20, WIDTH = 80, LINE = 256, EVERY_S = 10 /* in a log */ };

volatile sig_atomic_t fl_ticker_shown;
static char *volatile last_words; /* what an interrupted command says */

static struct {
    const char *command;
    fl_stage whole;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool running, stop, terminal;
    double from, part_from; /* monotonic time in s: start of the command, and of the piece that is shown */
    double quiet;           /* nothing is shown before this time */
    uint64_t begun;
} shown = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* "40 s", "3 min", "2.5 h" */
static const char *duration(double s, char *buf, size_t size) {
    if (s < 120)
        snprintf(buf, size, "%.0f s", s);
    else if (s < 7200)
        snprintf(buf, size, "%.0f min", s / 60);
    else
        snprintf(buf, size, "%.1f h", s / 3600);
    return buf;
}

/* Writes the line. False: there is nothing to say yet. */
static bool progress(char line[LINE]) {
    char past[32], left[32];
    const double t = now();
    fl_stage_state at = fl_stage_look();
    if (at.begun != shown.begun) {
        shown.begun = at.begun;
        shown.part_from = t;
    }
    if (t - shown.from < 1 || t < shown.quiet || !at.what)
        return false;
    at.done = at.done < at.size ? at.done : at.size;
    const bool own = !strcmp(at.what, shown.command);
    int size = snprintf(line, LINE, "foldline %s%s%s: ", shown.command, own ? "" : ", ", own ? "" : at.what);
    if (at.size)
        size += snprintf(line + size, LINE - (size_t)size, "%.0f %%, ", 100 * (double)at.done / (double)at.size);
    size += snprintf(line + size, LINE - (size_t)size, "%s", duration(t - shown.from, past, sizeof past));
    if (at.done)
        snprintf(line + size, LINE - (size_t)size, ", about %s left",
                 duration((t - shown.part_from) / (double)at.done * (double)(at.size - at.done), left, sizeof left));
    return true;
}

/* Limits the line to the width of the terminal: a longer one would wrap and could not be removed. */
static void show(void) {
    char line[LINE];
    struct winsize w;
    if (!progress(line))
        return;
    if (!shown.terminal) {
        fprintf(stderr, "%s\n", line);
        shown.quiet += EVERY_S;
        return;
    }
    const int width = !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col > 1 ? w.ws_col : WIDTH;
    fl_ticker_shown = 1;
    fprintf(stderr, "\r%.*s\033[K", width - 1, line);
}

static void *run(void *ignored) {
    (void)ignored;
    pthread_mutex_lock(&shown.lock);
    while (!shown.stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&shown.wake, &shown.lock, &until) && !shown.stop)
            show();
    }
    pthread_mutex_unlock(&shown.lock);
    return NULL;
}

/* The caller holds the lock. */
static void take_away(void) {
    if (fl_ticker_shown)
        fputs(FL_TICKER_AWAY, stderr);
    fl_ticker_shown = 0;
}

/* An interrupted program leaves no line behind, and the signal still ends it: SA_RESETHAND restores the default. */
static void on_end(int number) {
    if (fl_ticker_shown) {
        const ssize_t ignored = write(STDERR_FILENO, FL_TICKER_AWAY, sizeof FL_TICKER_AWAY - 1);
        (void)ignored;
    }
    if (last_words) {
        const ssize_t ignored = write(STDERR_FILENO, last_words, strlen(last_words));
        (void)ignored;
    }
    raise(number);
}

/* Listens only where the signal would end the program; a command with its own handler installs that later, in place of
 * this. */
static void listen_for_end(void) {
    static const int END[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now, a = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof END / sizeof *END; i++)
        if (!sigaction(END[i], NULL, &now) && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
            sigaction(END[i], &a, NULL);
}

void fl_ticker_start(const char *command) {
    static char room[STDOUT_ROOM];
    pthread_condattr_t attributes;
    shown.terminal = isatty(STDERR_FILENO);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&shown.wake, &attributes);
    pthread_condattr_destroy(&attributes);
    fl_stage_watch();
    listen_for_end();
    shown.command = command;
    shown.whole = fl_stage_begin(command, 0);
    shown.from = shown.part_from = now();
    shown.quiet = shown.terminal ? 0 : shown.from + EVERY_S;
    if (isatty(STDOUT_FILENO))
        setvbuf(stdout, room, _IOFBF, sizeof room);
    shown.running = !pthread_create(&shown.thread, NULL, run, NULL);
}

void fl_ticker_stop(void) {
    if (!shown.running)
        return;
    pthread_mutex_lock(&shown.lock);
    shown.stop = true;
    take_away();
    pthread_cond_signal(&shown.wake);
    pthread_mutex_unlock(&shown.lock);
    pthread_join(shown.thread, NULL);
    shown.running = false;
    fl_stage_end(shown.whole);
}

void fl_ticker_last_words(char *text) {
    char *before = last_words;
    last_words = text;
    free(before);
}

void fl_ticker_clear(void) {
    if (!shown.running || !shown.terminal)
        return;
    pthread_mutex_lock(&shown.lock);
    take_away();
    shown.quiet = now() + 0.5; /* time to write a line before the next one shows */
    pthread_mutex_unlock(&shown.lock);
}
