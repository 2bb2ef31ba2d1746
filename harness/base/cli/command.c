/* Tables, the progress line, the version, and begin and end of a command. */
#include "harness/base/cli/inside.h"

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* ---- tables on a terminal ---- */

/* Takes the text, NULL where memory ran out. */
static void take_cell(fl_grid *g, char *text) {
    if (!text || fl_grow(&g->cell, &g->room, g->count + 1, sizeof *g->cell)) {
        free(text);
        g->lost = true;
        return;
    }
    g->cell[g->count++] = text;
}

void fl_grid_define(fl_grid *g, const char *term, const char *meaning) {
    char *text[] = {strdup(term), strdup(meaning)};
    if (!text[0] || !text[1] || fl_grow(&g->term, &g->term_room, g->terms + 2, sizeof *g->term)) {
        free(text[0]);
        free(text[1]);
        g->lost = true;
        return;
    }
    for (size_t i = 0; i < 2; i++)
        g->term[g->terms++] = text[i];
}

void fl_grid_column(fl_grid *g, const char *head, const char *format, ...) {
    char meaning[256];
    va_list args;
    va_start(args, format);
    vsnprintf(meaning, sizeof meaning, format, args);
    va_end(args);
    fl_grid_add(g, "%s", head);
    if (*head)
        fl_grid_define(g, head, meaning);
    g->columns++;
}

fl_grid fl_grid_headed(const char *const *head, size_t columns) {
    fl_grid g = {.columns = columns};
    for (size_t k = 0; k < columns; k++)
        fl_grid_add(&g, "%s", head[k]);
    return g;
}

enum { BETWEEN = '\x1f' }; /* ASCII's separator of units */

void fl_grid_add(fl_grid *g, const char *format, ...) {
    char *text = NULL, *parted = strdup(format);
    va_list args;
    for (char *at = parted; at && (at = strchr(at, '\t'));) /* a text in a cell, as a file's name, may hold a tab */
        *at = BETWEEN;
    va_start(args, format);
    if (!parted || vasprintf(&text, parted, args) < 0)
        text = NULL;
    va_end(args);
    char *rest = text;
    for (const char *at = parted; at && rest && (at = strchr(at, BETWEEN)); at++)
        take_cell(g, strdup(strsep(&rest, (const char[]){BETWEEN, 0})));
    take_cell(g, rest ? strdup(rest) : NULL);
    free(parted);
    free(text);
}

void fl_grid_number(fl_grid *g, double value, int digits, const char *mark) {
    if (!isfinite(value))
        fl_grid_add(g, "n/a");
    else if (digits < 0)
        fl_grid_add(g, "%.*g%s", -digits, value, mark);
    else
        fl_grid_add(g, "%.*f%s", digits, fabs(value) < 0.5 * pow(10, -digits) ? 0 : value, mark); /* no -0.00 */
}

static void print_terms(const fl_grid *g, FILE *out) {
    const fl_page page = {.out = out, .width = fl_terminal_width(out)};
    size_t longest = 0;
    for (size_t i = 0; i < g->terms; i += 2)
        longest = strlen(g->term[i]) > longest ? strlen(g->term[i]) : longest;
    if (g->terms)
        fputc('\n', out);
    for (size_t i = 0; i < g->terms; i += 2)
        fl_page_row(&page, (int)longest + 4, g->term[i], g->term[i + 1]);
}

void fl_grid_print(fl_grid *g, size_t left, FILE *out) {
    const size_t rows = g->lost || !g->columns ? 0 : g->count / g->columns;
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < g->columns; c++) {
            const char *cell = g->cell[r * g->columns + c];
            const bool last = c + 1 == g->columns, text = c < left || (last && !*g->cell[c]);
            int width = 0;
            for (size_t k = c; k < g->count; k += g->columns)
                width = (int)strlen(g->cell[k]) > width ? (int)strlen(g->cell[k]) : width;
            if (!last || !text || *cell)
                fprintf(out, "%s%*s", c ? "  " : "", !text ? width : last ? 0 : -width, cell);
        }
        fputc('\n', out);
    }
    if (rows)
        print_terms(g, out);
    fl_grid_free(g);
}

void fl_grid_free(fl_grid *g) {
    for (size_t i = 0; i < g->count; i++)
        free(g->cell[i]);
    for (size_t i = 0; i < g->terms; i++)
        free(g->term[i]);
    free(g->cell);
    free(g->term);
    *g = (fl_grid){0};
}

char *fl_cell_text(double value, char *buf) {
    if (!isfinite(value))
        return strcpy(buf, "n/a");
    return fl_real_text(value, buf);
}

/* ---- the progress line ---- */

enum { STDOUT_ROOM = 1 << 20, WIDTH = 80 };

volatile sig_atomic_t fl_ticker_shown;

static struct {
    const char *command;
    fl_stage whole;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool running, stop;
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

/* Limits the line to the width of the terminal: a longer one would wrap and could not be removed. */
static void show(void) {
    char line[256], past[32], left[32];
    struct winsize w;
    const double t = now();
    fl_stage_state at = fl_stage_look();
    if (at.begun != shown.begun) {
        shown.begun = at.begun;
        shown.part_from = t;
    }
    if (t - shown.from < 1 || t < shown.quiet || !at.what)
        return;
    at.done = at.done < at.size ? at.done : at.size;
    const bool own = !strcmp(at.what, shown.command);
    int size = snprintf(line, sizeof line, "foldline %s%s%s: ", shown.command, own ? "" : ", ", own ? "" : at.what);
    if (at.size)
        size += snprintf(line + size, sizeof line - (size_t)size, "%.0f %%, ", 100 * (double)at.done / (double)at.size);
    size += snprintf(line + size, sizeof line - (size_t)size, "%s", duration(t - shown.from, past, sizeof past));
    if (at.done)
        snprintf(line + size, sizeof line - (size_t)size, ", about %s left",
                 duration((t - shown.part_from) / (double)at.done * (double)(at.size - at.done), left, sizeof left));
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
        pthread_cond_timedwait(&shown.wake, &shown.lock, &until);
        if (!shown.stop)
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
    if (!isatty(STDERR_FILENO))
        return;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&shown.wake, &attributes);
    pthread_condattr_destroy(&attributes);
    fl_stage_watch();
    listen_for_end();
    shown.command = command;
    shown.whole = fl_stage_begin(command, 0);
    shown.from = shown.part_from = now();
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

void fl_ticker_clear(void) {
    if (!shown.running)
        return;
    pthread_mutex_lock(&shown.lock);
    take_away();
    shown.quiet = now() + 0.5; /* time to write a line before the next one shows */
    pthread_mutex_unlock(&shown.lock);
}

/* ---- version ---- */

#if __has_include("harness/base/cli/commit.h") /* made by the build (commit.cmake) */
#include "harness/base/cli/commit.h"
#else
#define FL_COMMIT ""
#endif

void fl_version_print(FILE *out) {
    const char *commit = FL_COMMIT;
    fprintf(out, "foldline %s%s%s%s\n", FL_VERSION, *commit ? " (" : "", commit, *commit ? ")" : "");
}

/* ---- begin and end of a command ---- */

const char *fl_command_name;
const fl_command_reader *fl_command_read_by;

int fl_command_fail(const char *command, const fl_diag *d) {
    char text[2048];
    fl_ticker_stop();
    fl_terminal_say(stderr, "%s%s: %s", command ? fl_args_prefix : "foldline", command ? command : "",
                    fl_diag_text(d, text, sizeof text));
    return d->status == FL_BAD_INPUT ? FL_EXIT_USAGE : FL_EXIT_SYSTEM;
}

void fl_command_end(const fl_option *option, size_t count, fl_texts *rest) {
    fl_texts_free(rest);
    for (size_t i = 0; i < count; i++)
        if (option[i].type == FL_OPTION_LIST)
            fl_texts_free(option[i].into);
}

int fl_command_close(const char *command, fl_status s, const fl_diag *d, const fl_option *option, size_t count,
                     fl_texts *rest) {
    const int status = s ? fl_command_fail(command, d) : FL_EXIT_OK;
    fl_command_end(option, count, rest);
    return status;
}

bool fl_command_begin(int argc, char **argv, const fl_command_help *help, const fl_option *option, size_t count,
                      fl_texts *rest, int *status) {
    fl_diag d = {0};
    fl_help_wanted wanted;
    fl_command_name = help->name;
    const fl_status s = fl_args_parse(argc, argv, option, count, rest, &wanted, &d);
    if (!s && !wanted)
        return true;
    *status = wanted ? FL_EXIT_OK : fl_command_fail(help->name, &d);
    if (wanted && fl_command_read_by)
        fl_command_read_by->take(fl_command_read_by->to, help, option, count);
    else if (wanted)
        fl_args_help(stdout, help, option, count, wanted == FL_HELP_ALL);
    fl_command_end(option, count, rest);
    return false;
}
