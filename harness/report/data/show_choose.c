/* Selects the rows of a table, their order, and the columns. */
#include "harness/report/data/show.h"

#include "traces/io/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static fl_status find_column(const fl_show_table *t, const char *name, size_t *column, fl_diag *d) {
    for (*column = 0; *column < t->columns; ++*column)
        if (!strcmp(t->name[*column], name))
            return FL_OK;
    return fl_fail_unknown(d, t->path, "column", name, (const char *const *)t->name, t->columns);
}

/* NAN: the cell is empty or not a number. */
static double number_of(const char *text) {
    double v;
    return fl_real_parse(text, &v) == FL_NUMBER_OK ? v : NAN;
}

/* ---- rows ---- */

enum { LESS, LESS_EQUAL, MORE, MORE_EQUAL, EQUAL, NOT_EQUAL, OPERATORS };
static const char *const operator[OPERATORS] = {
    [LESS] = "<", [LESS_EQUAL] = "<=", [MORE] = ">", [MORE_EQUAL] = ">=", [EQUAL] = "=", [NOT_EQUAL] = "!="};

static bool holds(int op, const char *cell, const char *text, double x) {
    const double v = number_of(cell);
    const bool alike = isnan(v) || isnan(x) ? !strcmp(cell, text) : v == x;
    switch (op) {
    case LESS:
        return v < x;
    case LESS_EQUAL:
        return v <= x;
    case MORE:
        return v > x;
    case MORE_EQUAL:
        return v >= x;
    case EQUAL:
        return alike;
    default:
        return !alike;
    }
}

fl_status fl_show_where(fl_show_table *t, const char *condition, fl_diag *d) {
    const size_t size = strcspn(condition, "<>=!");
    char name[256];
    int op = -1;
    for (int i = 0; i < OPERATORS; i++) { /* the longest operator that matches */
        const size_t n = strlen(operator[i]);
        if (!strncmp(condition + size, operator[i], n) && (op < 0 || n > strlen(operator[op])))
            op = i;
    }
    if (op < 0 || !size || size >= sizeof name)
        return fl_refuse(d, "--where '%s', expected COLUMN and one of < <= > >= = != and a value", condition);
    const char *text = condition + size + strlen(operator[op]);
    text += text[0] == '=' && op == EQUAL; /* accepts ==, as programmers write it */
    snprintf(name, sizeof name, "%.*s", (int)size, condition);
    for (size_t n = size; n && name[n - 1] == ' '; n--)
        name[n - 1] = 0;
    text += strspn(text, " ");
    const double x = number_of(text);
    size_t column, left = 0;
    fl_status s = find_column(t, name, &column, d);
    if (s)
        return s;
    if (op < EQUAL && isnan(x))
        return fl_refuse(d, "--where '%s': '%s' is no number, expected one behind %s", condition, text, operator[op]);
    for (size_t i = 0; i < t->shown; i++)
        if (holds(op, t->cell[t->order[i] * t->columns + column], text, x))
            t->order[left++] = t->order[i];
    t->shown = left;
    return FL_OK;
}

typedef struct sorter {
    const fl_show_table *t;
    size_t column;
    int sign;
} sorter;

static int compare(const void *a, const void *b, void *user) {
    const sorter *by = user;
    const size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const char *x = by->t->cell[i * by->t->columns + by->column], *y = by->t->cell[k * by->t->columns + by->column];
    const double v = number_of(x), w = number_of(y);
    const bool by_number = by->t->number[by->column], no_x = by_number ? isnan(v) : !*x,
               no_y = by_number ? isnan(w) : !*y;
    int c = no_x != no_y ? no_x - no_y : 0;
    if (!c && !no_x)
        c = by->sign * (by_number ? (v > w) - (v < w) : strcmp(x, y));
    return c ? c : (i > k) - (i < k);
}

fl_status fl_show_sort(fl_show_table *t, const char *column, fl_diag *d) {
    sorter by = {.t = t, .sign = column[0] == '-' ? -1 : 1};
    const fl_status s = find_column(t, column + (by.sign < 0), &by.column, d);
    if (!s)
        qsort_r(t->order, t->shown, sizeof *t->order, compare, &by);
    return s;
}

/* ---- columns ---- */

fl_status fl_show_columns(const fl_show_table *t, const char *names, fl_show_look *look, fl_diag *d) {
    size_t room = 0;
    for (const char *at = names;; at++) {
        char name[256];
        const size_t size = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)size, at);
        if (fl_grow(&look->column, &room, look->columns + 1, sizeof *look->column))
            return fl_no_memory(d, "the columns");
        const fl_status s = find_column(t, name, &look->column[look->columns], d);
        if (s)
            return s;
        look->columns++;
        at += size;
        if (!*at)
            return FL_OK;
    }
}
