/* Tables, the version, and begin and end of a command. */
#include "harness/base/cli/inside.h"

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* ---- tables on a terminal ---- */

/* Append the text to the cells, and own it. NULL says that memory ran out. */
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

enum { LAST_LEAST = 18, FIRST_LEAST = 20 }; /* columns that a folded column keeps */

/* Narrow the last column and then the first, so that the table fits the terminal. */
static void fold_columns(const fl_grid *g, int *width, FILE *out) {
    const size_t last = g->columns - 1;
    int over = 2 * (int)last - fl_terminal_width(out);
    for (size_t c = 0; c <= last; c++)
        over += width[c];
    if (over <= 0)
        return;
    const int narrow = width[last] < LAST_LEAST ? width[last] : LAST_LEAST;
    over -= width[last] - narrow;
    width[last] = narrow;
    if (over > 0)
        width[0] = width[0] - over > FIRST_LEAST ? width[0] - over : FIRST_LEAST;
}

/* Return the bytes of the text's first line: as many words as fit the width, or one word that is longer. */
static int line_length(const char *text, int width) {
    int fits = 0;
    for (int i = 0;; i++)
        if (!text[i] || text[i] == ' ') {
            if (fits && i > width)
                return fits;
            fits = i;
            if (!text[i])
                return fits;
        }
}

/* Print one line of a row, and move each cell's text on to what is left of it. Return true if a text is left. */
static bool print_line(const fl_grid *g, const char **rest, const int *width, size_t left, bool first, FILE *out) {
    bool more = false;
    int blanks = 0; /* not printed yet: no line but a row's first ends with blanks */
    for (size_t c = 0; c < g->columns; c++) {
        const bool last = c + 1 == g->columns, text = c < left || (last && (g->texts || !*g->cell[c]));
        const int length = line_length(rest[c], width[c]), fill = width[c] - length > 0 ? width[c] - length : 0;
        blanks += c ? 2 : 0;
        if (length || (first && !(last && text))) {
            fprintf(out, "%*s%.*s", blanks + (text ? 0 : fill), "", length, rest[c]);
            blanks = text && !last ? fill : 0;
        } else {
            blanks += width[c];
        }
        if (first && !last) {
            fprintf(out, "%*s", blanks, "");
            blanks = 0;
        }
        rest[c] += length;
        rest[c] += *rest[c] == ' ';
        more |= *rest[c] != 0;
    }
    fputc('\n', out);
    return more;
}

void fl_grid_print(fl_grid *g, size_t left, FILE *out) {
    const size_t rows = g->lost || !g->columns ? 0 : g->count / g->columns;
    int *width = calloc(g->columns + 1, sizeof *width);
    const char **rest = calloc(g->columns + 1, sizeof *rest);
    for (size_t i = 0; width && i < rows * g->columns; i++) {
        int *w = &width[i % g->columns];
        *w = (int)strlen(g->cell[i]) > *w ? (int)strlen(g->cell[i]) : *w;
    }
    if (width && g->folds && rows)
        fold_columns(g, width, out);
    for (size_t r = 0; width && rest && r < rows; r++) {
        for (size_t c = 0; c < g->columns; c++)
            rest[c] = g->cell[r * g->columns + c];
        for (bool first = true; print_line(g, rest, width, left, first, out);)
            first = false;
    }
    if (rows && width && rest)
        print_terms(g, out);
    free(width);
    free(rest);
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

/* ---- version ---- */

#if __has_include("harness/base/cli/commit.h") /* made by the build (commit.cmake) */
#include "harness/base/cli/commit.h"
#else
#define FL_COMMIT ""
#endif

void fl_version_print(FILE *out) {
    const char *commit = FL_COMMIT;
    fprintf(out, "foldline %s%s%s%s\n", FL_VERSION, *commit ? " (" : "", commit, *commit ? ")" : "");
    fprintf(out, "parts: %s; loaded where installed: NVML, CUPTI, Level Zero, ROCm SMI, gnuplot\n", FL_PARTS);
}

/* ---- begin and end of a command ---- */

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
