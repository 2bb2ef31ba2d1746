/* The instructions of a pipeline over time, rank by rank. */
#include "harness/report/pictures.h"

#include "traces/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK, WHAT, CHUNK, MICROBATCH, START, END, MHZ, POWER, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"rank",    "what",  "chunk",  "microbatch",
                                            "start_s", "end_s", "sm_mhz", "power_w"};

typedef struct stretch { /* one row: a rank's power over a time */
    double start_s, end_s, power_w;
} stretch;

typedef struct copying {
    fl_picture *p;
    size_t rows, where[COLUMNS];
    stretch *item;
    size_t count, room;
    double ranks, end_s, mhz0, mhz1;
} copying;

static fl_status copy_row(void *user, const fl_csv_row *row, fl_diag *d) {
    copying *c = user;
    double v[COLUMNS] = {0};
    fl_status s = c->rows ? FL_OK : fl_columns_find(row, COLUMN, COLUMNS, COLUMNS, c->where, d);
    static const int NUMBER[] = {RANK, START, END, MHZ, POWER};
    for (size_t k = 0; !s && c->rows && k < sizeof NUMBER / sizeof *NUMBER; k++)
        s = row->count < COLUMNS
                ? fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "%zu fields, expected %d", row->count, COLUMNS)
                : fl_field_real(row, c->where[NUMBER[k]], COLUMN[NUMBER[k]], 0, 1e9, &v[NUMBER[k]], d);
    if (s)
        return s;
    for (size_t i = 0; i < row->count; i++) {
        if (i)
            fputc(',', c->p->table);
        fl_picture_field(c->p, row->field[i].text);
    }
    fputc('\n', c->p->table);
    if (!c->rows++)
        return FL_OK;
    if (fl_grow(&c->item, &c->room, c->count + 1, sizeof *c->item))
        return fl_no_memory(d, "the picture");
    c->item[c->count++] = (stretch){v[START], v[END], v[POWER]};
    const char *what = row->field[c->where[WHAT]].text;
    c->ranks = fmax(c->ranks, v[RANK] + 1);
    c->end_s = fmax(c->end_s, v[END]);
    if (!strcmp(what, "forward") || !strcmp(what, "backward")) {
        c->mhz0 = fmin(c->mhz0, v[MHZ]);
        c->mhz1 = fmax(c->mhz1, v[MHZ]);
    }
    return FL_OK;
}

/* What all ranks draw together, as means over equal bins: further rows of the table, in its order of columns. */
static fl_status put_power(copying *c, fl_diag *d) {
    enum { BINS = 400 };
    double *joules = calloc(BINS, sizeof *joules), width = c->end_s / BINS;
    if (!joules)
        return fl_no_memory(d, "the picture");
    for (size_t i = 0; width > 0 && i < c->count; i++) {
        const stretch *s = &c->item[i];
        for (size_t k = (size_t)(s->start_s / width); k < BINS && (double)k * width < s->end_s; k++) {
            const double from = fmax(s->start_s, (double)k * width), to = fmin(s->end_s, (double)(k + 1) * width);
            joules[k] += s->power_w * fmax(0, to - from);
        }
    }
    for (size_t k = 0; width > 0 && k < BINS; k++)
        for (size_t i = 0; i < COLUMNS; i++) {
            if (i)
                fputc(',', c->p->table);
            if (i == c->where[WHAT])
                fputs("power", c->p->table);
            else if (i == c->where[START] || i == c->where[END])
                fprintf(c->p->table, "%.9g", (double)(k + (i == c->where[END])) * width);
            else if (i == c->where[POWER])
                fprintf(c->p->table, "%.6g", joules[k] / width);
            else
                fputs("0", c->p->table);
            if (i + 1 == COLUMNS)
                fputc('\n', c->p->table);
        }
    free(joules);
    return FL_OK;
}

fl_status fl_picture_gantt(fl_picture *p, const char *input, size_t *drawn, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    copying c = {.p = p, .mhz0 = HUGE_VAL};
    const char *slash = strrchr(input, '/');
    fl_status s = fl_csv_read(input, &OPTIONS, NULL, copy_row, &c, d);
    *drawn = c.rows ? c.rows - 1 : 0;
    if (!s && *drawn)
        s = put_power(&c, d);
    free(c.item);
    if (s || !*drawn)
        return s;
    if (!isfinite(c.mhz0))
        c.mhz0 = c.mhz1 = 0;
    fl_picture_plot(p, 76, 96, 220 + 30 * fmin(c.ranks, 24));
    fl_picture_title(p, "Instructions over time", slash ? slash + 1 : input);
    fl_picture_range(p, 0, c.end_s, 0, 1);
    fl_picture_number(p, "ranks", c.ranks);
    fl_picture_number(p, "mhz0", c.mhz1 > c.mhz0 ? c.mhz0 : c.mhz0 - 1);
    fl_picture_number(p, "mhz1", c.mhz1 > c.mhz0 ? c.mhz1 : c.mhz0 + 1);
    return FL_OK;
}
