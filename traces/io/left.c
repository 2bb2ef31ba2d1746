/* Rows that a reader leaves out: those without a value, and those that contradict. */
#include "traces/io/io.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool fl_left_strict;

fl_left_out fl_left_begin(const fl_left_out *to) { return (fl_left_out){.strict = !to || fl_left_strict}; }

/* ---- counting ---- */

static void count(fl_left *l, int64_t line, int64_t column, const char *why) {
    if (l->count++)
        return;
    l->line = line;
    l->column = column;
    snprintf(l->why, sizeof l->why, "%.*s", (int)sizeof l->why - 1, why);
    fl_printable(l->why, strlen(l->why));
}

fl_status fl_left_empty(fl_left_out *l, const char *file, int64_t line, int64_t column, fl_diag *d, const char *format,
                        ...) {
    char why[sizeof l->empty.why];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(why, sizeof why, format, arguments) < 0)
        why[0] = '\0';
    va_end(arguments);
    if (l->strict)
        return fl_fail(d, FL_BAD_INPUT, file, line, column, "%s, expected a row with its values", why);
    count(&l->empty, line, column, why);
    return FL_OK;
}

fl_status fl_left_row(fl_left_out *l, fl_status status, fl_diag *d) {
    l->rows++;
    if (!status)
        return FL_OK;
    if (status != FL_BAD_INPUT || !l->own.of_values || l->strict) {
        if (d)
            *d = l->own;
        return status;
    }
    if (!l->wrong.count)
        l->first = l->own;
    count(&l->wrong, l->own.line, l->own.column, l->own.message);
    return FL_OK;
}

void fl_left_doubt(fl_left_out *l, int64_t line, const char *format, ...) {
    char why[sizeof l->doubted.why];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(why, sizeof why, format, arguments) < 0)
        why[0] = '\0';
    va_end(arguments);
    count(&l->doubted, line, 0, why);
}

void fl_left_earlier(fl_left_out *l, const char *value) {
    snprintf(l->earlier, sizeof l->earlier, "%s", value ? value : "");
    fl_printable(l->earlier, strlen(l->earlier));
}

fl_status fl_left_end(const fl_left_out *l, fl_left_out *to, const char *path, fl_diag *d) {
    const size_t share = (size_t)(FL_LEFT_SHARE * (double)l->rows), most = share > FL_LEFT_ROWS ? share : FL_LEFT_ROWS;
    if (to)
        *to = *l;
    if (l->wrong.count > most || (l->wrong.count && l->wrong.count + l->empty.count >= l->rows)) {
        const fl_diag *f = &l->first;
        if (l->wrong.count == 1)
            return fl_fail(d, FL_BAD_INPUT, f->file[0] ? f->file : path, f->line, f->column, "%s", f->message);
        return fl_fail(d, FL_BAD_INPUT, f->file[0] ? f->file : path, f->line, f->column,
                       "%s; %zu of %zu rows contradict, expected at most %zu", f->message, l->wrong.count, l->rows,
                       most < l->rows ? most : l->rows - 1);
    }
    if (l->rows && l->empty.count == l->rows)
        return fl_fail(d, FL_BAD_INPUT, path, l->empty.line, l->empty.column,
                       "no row has a value (%s), expected at least one", l->empty.why);
    return FL_OK;
}

bool fl_left_text(const fl_left_out *l, int number, char *text, size_t size) {
    static const char *const what[] = {"without a value: left out",
                                       "that contradict: left out", [FL_LEFT_DOUBT] = "in doubt"};
    const fl_left *of[] = {&l->empty, &l->wrong, &l->doubted};
    enum { KINDS = sizeof of / sizeof *of };
    if (number < 0 || number > KINDS)
        return false;
    if (number == KINDS) {
        snprintf(text, size, "%s%s", *l->earlier ? "when it was made, " : "", l->earlier);
        return true;
    }
    const fl_left *f = of[number];
    if (!f->count)
        text[0] = '\0';
    else if (f->line)
        snprintf(text, size, "%zu of %zu rows %s; the first is line %lld: %s", f->count, l->rows, what[number],
                 (long long)f->line, f->why);
    else
        snprintf(text, size, "%zu of %zu rows %s; the first: %s", f->count, l->rows, what[number], f->why);
    return true;
}

/* ---- order ---- */

/* The longest ascending subsequence, by patience: tail[n] is the row that ends one of n + 1 rows as early as possible.
 */
size_t fl_disorder(const int64_t *t_ns, size_t count, bool *out) {
    size_t *tail = malloc((count + 1) * sizeof *tail), *before = malloc((count + 1) * sizeof *before), length = 0;
    if (!tail || !before) {
        free(tail);
        free(before);
        return SIZE_MAX;
    }
    for (size_t i = 0; i < count; i++) {
        size_t low = 0, high = length;
        if (length && t_ns[tail[length - 1]] <= t_ns[i])
            low = length; /* as a rule */
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (t_ns[tail[middle]] <= t_ns[i])
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low ? tail[low - 1] : SIZE_MAX;
        tail[low] = i;
        length += low == length;
        out[i] = true;
    }
    for (size_t i = length ? tail[length - 1] : SIZE_MAX; i != SIZE_MAX; i = before[i])
        out[i] = false;
    free(tail);
    free(before);
    return count - length;
}

/* ---- cells ---- */

bool fl_no_value(const char *text) {
    static const char *const word[] = {"",        "n/a",  "na",   "n.a.", "n/w", "nan",     "-nan",          "+nan",
                                       "null",    "none", "-",    "--",   "?",   "unknown", "not supported", "auto",
                                       "default", "oom",  "crash"};
    static const char *const part[] = {"fail", "error", "err!", "invalid", "timeout", "timed out", "out of memory"};
    if (isdigit((unsigned char)text[0])) /* nearly always */
        return false;
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (!strcasecmp(text, word[i]))
            return true;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (strcasestr(text, part[i]))
            return true;
    return text[0] == '[' && text[strlen(text) - 1] == ']';
}
