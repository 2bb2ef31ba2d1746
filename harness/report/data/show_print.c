/* Prints a table in the width of the terminal. */
#include "harness/report/data/show.h"

#include "traces/io/numbers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* Empty columns carry no information, and a column with one value everywhere takes one line. Where there is no room
 * these are dropped first, then the last ones. The first column stays. */
static void fit(page *p) {
    const size_t width = (size_t)p->look->width;
    for (size_t i = p->columns; i-- > 1 && total(p->column, p->columns) > width;)
        if (p->column[i].empty)
            leave_out(p, i);
    for (size_t i = p->columns; i-- > 1 && total(p->column, p->columns) > width;)
        if (p->rows > 1 && p->column[i].alike)
            leave_out(p, i);
    while (p->columns > 1 && total(p->column, p->columns) > width)
        leave_out(p, p->columns - 1);
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

fl_status fl_show_print(const fl_show_table *t, const fl_show_look *look, FILE *out, fl_diag *d) {
    page p = {.t = t,
              .look = look,
              .rows = look->rows && look->rows < t->shown ? look->rows : t->shown,
              .text_most = look->width / 2 < TEXT_MOST ? (size_t)look->width / 2 : TEXT_MOST,
              .columns = look->column ? look->columns : t->columns};
    p.column = calloc(p.columns + 1, sizeof *p.column);
    p.left_out = calloc(p.columns + 1, sizeof *p.left_out);
    const bool made = p.column && p.left_out;
    for (size_t k = 0; made && k < p.columns; k++)
        p.column[k] = measure(&p, look->column ? look->column[k] : k);
    if (made && !look->column)
        fit(&p);
    if (made) {
        put_table(&p, out);
        put_notes(&p, out);
    }
    free(p.column);
    free(p.left_out);
    return made ? FL_OK : fl_no_memory(d, t->path);
}
