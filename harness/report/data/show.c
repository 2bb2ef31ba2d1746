/* Selects, sorts and prints any result as a table. */
#include "harness/report/data/data.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Selects the rows of a table, their order, and the columns. */

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
        fl_must_grow(&look->column, &room, look->columns + 1, sizeof *look->column);
        const fl_status s = find_column(t, name, &look->column[look->columns], d);
        if (s)
            return s;
        look->columns++;
        at += size;
        if (!*at)
            return FL_OK;
    }
}

/* Prints a table in the width of the terminal. */

enum { BETWEEN = 2, TEXT_MOST = 48 }; /* columns of the terminal: between two cells; of a long text */

typedef struct column {
    size_t index, width;
    bool alike, empty; /* in all rows */
} column;

typedef struct page {
    const fl_show_table *t;
    const fl_show_look *look;
    size_t rows, text_most;
    column *column; /* those that are printed */
    size_t columns;
    column *left_out;
    size_t left;
} page;

/* Bytes of the character at text; one for a byte that cannot be printed. */
static size_t bytes_of(const char *text) {
    const size_t n = fl_utf8(text, strnlen(text, 4));
    return n ? n : 1;
}

/* In characters. */
static size_t width_of(const char *text) {
    size_t n = 0;
    for (; *text; text += bytes_of(text))
        n++;
    return n;
}

static void put_most(const char *text, size_t most, FILE *out) {
    for (; *text && most; most--) {
        const size_t n = fl_utf8(text, strnlen(text, 4));
        fprintf(out, "%.*s", (int)(n ? n : 1), n ? text : "?");
        text += n ? n : 1;
    }
}

void fl_show_text(const char *text, FILE *out) { put_most(text, SIZE_MAX, out); }

/* Whole numbers print unchanged, and so do all numbers where every digit is requested. */
static const char *cell_text(const page *p, size_t row, size_t c, char buf[64]) {
    const char *text = p->t->cell[p->t->order[row] * p->t->columns + c];
    double v;
    if (!p->t->number[c] || p->look->digits >= 17 || !strpbrk(text, ".eE") || fl_real_parse(text, &v) != FL_NUMBER_OK)
        return text;
    snprintf(buf, 64, "%.*g", p->look->digits, v);
    return buf;
}

static column measure(const page *p, size_t index) {
    column c = {.index = index, .width = width_of(p->t->name[index]), .alike = true, .empty = true};
    char buf[64];
    for (size_t i = 0; i < p->rows; i++) {
        const char *raw = p->t->cell[p->t->order[i] * p->t->columns + index];
        const size_t width = width_of(cell_text(p, i, index, buf));
        c.width = width > c.width ? width : c.width;
        c.empty = c.empty && (!*raw || !strcmp(raw, "n/a"));
        c.alike = c.alike && !strcmp(raw, p->t->cell[p->t->order[0] * p->t->columns + index]);
    }
    if (!p->look->column && c.width > p->text_most)
        c.width = p->text_most;
    return c;
}

static size_t total(const column *c, size_t count) {
    size_t width = 0;
    for (size_t i = 0; i < count; i++)
        width += c[i].width + (i ? BETWEEN : 0);
    return width;
}

static void leave_out(page *p, size_t i) {
    p->left_out[p->left++] = p->column[i];
    memmove(p->column + i, p->column + i + 1, (--p->columns - i) * sizeof *p->column);
}

/* Return true if the column is among those that tell the rows of a result apart, beside its first two. */
static bool tells_rows(const page *p, const column *c) {
    return fl_is_among(p->t->name[c->index], "seed variant platform draw records");
}

/* Empty columns carry no information, and a column with one value everywhere takes one line. Where there is no room
 * these are dropped first, then the last ones, but those that tell the rows apart. The first column stays. */
static void fit(page *p) {
    const size_t width = (size_t)p->look->width;
    for (size_t i = p->columns; i-- > 1 && total(p->column, p->columns) > width;)
        if (p->column[i].empty)
            leave_out(p, i);
    for (size_t i = p->columns; i-- > 1 && total(p->column, p->columns) > width;)
        if (p->rows > 1 && p->column[i].alike)
            leave_out(p, i);
    for (int all = 0; all < 2; all++)
        for (size_t i = p->columns; i-- > 1 && total(p->column, p->columns) > width;)
            if (all || !tells_rows(p, &p->column[i]))
                leave_out(p, i);
}

static void put(const char *text, size_t width, bool right, bool last, FILE *out) {
    const size_t n = width_of(text);
    if (n > width) { /* truncated, with a visible mark */
        put_most(text, width - 1, out);
        fputs("\xe2\x80\xa6", out);
        return;
    }
    const int space = (int)(width - n);
    fprintf(out, "%*s", right ? space : 0, "");
    fl_show_text(text, out);
    fprintf(out, "%*s", right || last ? 0 : space, "");
}

enum { EMPTY, ALIKE, WIDE }; /* the reason for leaving a column out */

static int why(const page *p, const column *c) { return c->empty ? EMPTY : c->alike && p->rows > 1 ? ALIKE : WIDE; }

/* "COLUMN, COLUMN" in lines of the width; columns with one value show it. */
static size_t put_left_out(const page *p, int reason, const char *lead, FILE *out) {
    size_t at = 0, told = 0;
    for (size_t i = 0; i < p->t->columns; i++) /* in the file's order */
        for (size_t k = 0; k < p->left; k++) {
            const column *c = &p->left_out[k];
            char buf[64], text[256];
            if (c->index != i || why(p, c) != reason)
                continue;
            snprintf(text, sizeof text, "%s%s%s", p->t->name[i], reason == ALIKE ? " " : "",
                     reason == ALIKE ? cell_text(p, 0, i, buf) : "");
            const size_t n = width_of(text);
            if (!told++) {
                fputs(lead, out);
                at = strlen(lead);
            } else if (at + n + 3 > (size_t)p->look->width) {
                fputs(",\n  ", out);
                at = 2;
            } else {
                fputs(", ", out);
                at += 2;
            }
            fl_show_text(text, out);
            at += n;
        }
    if (told)
        fputc('\n', out);
    return told;
}

static void put_notes(const page *p, FILE *out) {
    const fl_show_table *t = p->t;
    put_left_out(p, ALIKE, "alike in all rows: ", out);
    put_left_out(p, EMPTY, "empty: ", out);
    if (put_left_out(p, WIDE, "left out, for they do not fit: ", out))
        fputs("(--columns NAME,NAME chooses)\n", out);
    if (p->rows < t->shown)
        fprintf(out, "%zu of %zu rows (--rows 0 for all)\n", p->rows, t->shown);
    else if (t->shown < t->rows)
        fprintf(out, "%zu of %zu rows hold\n", t->shown, t->rows);
}

static void put_table(const page *p, FILE *out) {
    char buf[64];
    for (size_t k = 0; k < p->columns; k++) {
        const column *c = &p->column[k];
        fprintf(out, "%*s", k ? BETWEEN : 0, "");
        put(p->t->name[c->index], c->width, p->t->number[c->index], k + 1 == p->columns, out);
    }
    fputc('\n', out);
    for (size_t i = 0; i < p->rows; i++) {
        for (size_t k = 0; k < p->columns; k++) {
            const column *c = &p->column[k];
            fprintf(out, "%*s", k ? BETWEEN : 0, "");
            put(cell_text(p, i, c->index, buf), c->width, p->t->number[c->index], k + 1 == p->columns, out);
        }
        fputc('\n', out);
    }
}

void fl_show_print(const fl_show_table *t, const fl_show_look *look, FILE *out) {
    page p = {.t = t,
              .look = look,
              .rows = look->rows && look->rows < t->shown ? look->rows : t->shown,
              .text_most = look->width / 2 < TEXT_MOST ? (size_t)look->width / 2 : TEXT_MOST,
              .columns = look->column ? look->columns : t->columns};
    p.column = fl_must(calloc(p.columns + 1, sizeof *p.column));
    p.left_out = fl_must(calloc(p.columns + 1, sizeof *p.left_out));
    for (size_t k = 0; k < p.columns; k++)
        p.column[k] = measure(&p, look->column ? look->column[k] : k);
    if (!look->column)
        fit(&p);
    put_table(&p, out);
    put_notes(&p, out);
    free(p.column);
    free(p.left_out);
}
