/* The instructions of a pipeline over time, rank by rank; of two plans above each other, on one axis of time. */
#include "harness/report/picture/pictures.h"

#include "traces/io/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK, WHAT, CHUNK, MICROBATCH, START, END, MHZ, POWER, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"rank",    "what",  "chunk",  "microbatch",
                                            "start_s", "end_s", "sm_mhz", "power_w"};

/* Lengths in pixels: of a rank, of all ranks at most, of a plan's name above its chart, between two charts, of the
 * chart of power, and of a line of text. */
enum { RANK_PX = 30, CHART_PX = 720, NAME_PX = 24, GAP_PX = 14, POWER_PX = 130, LINE_PX = 15 };
enum { BINS = 200 }; /* of power */

typedef struct stretch { /* one row: a rank's power over a time */
    double start_s, end_s, power_w;
} stretch;

typedef struct copying {
    fl_picture *p;
    size_t plan, rows, where[COLUMNS];
    stretch *item;
    size_t count, room;
    double ranks, end_s, mhz0, mhz1; /* of all plans */
} copying;

static fl_status copy_row(void *user, const fl_csv_row *row, fl_diag *d) {
    copying *c = user;
    double v[COLUMNS] = {0};
    static const int NUMBER[] = {RANK, START, END, MHZ, POWER};
    if (!c->rows++)
        return fl_columns_find(row, COLUMN, COLUMNS, COLUMNS, c->where, d);
    if (row->count < COLUMNS)
        return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "%zu fields, expected %d", row->count, COLUMNS);
    fl_status s = FL_OK;
    for (size_t k = 0; !s && k < sizeof NUMBER / sizeof *NUMBER; k++)
        s = fl_field_real(row, c->where[NUMBER[k]], COLUMN[NUMBER[k]], 0, 1e9, &v[NUMBER[k]], d);
    if (s)
        return s;
    const char *what = row->field[c->where[WHAT]].text;
    fprintf(c->p->table, "%zu,", c->plan);
    fl_picture_field(c->p, what);
    fprintf(c->p->table, ",%g,%.9g,%.9g,%g,%g\n", v[RANK], v[START], v[END], v[MHZ], v[POWER]);
    if (fl_grow(&c->item, &c->room, c->count + 1, sizeof *c->item))
        return fl_no_memory(d, "the picture");
    c->item[c->count++] = (stretch){v[START], v[END], v[POWER]};
    c->ranks = fmax(c->ranks, v[RANK] + 1);
    c->end_s = fmax(c->end_s, v[END]);
    if (!strcmp(what, "forward") || !strcmp(what, "backward")) {
        c->mhz0 = fmin(c->mhz0, v[MHZ]);
        c->mhz1 = fmax(c->mhz1, v[MHZ]);
    }
    return FL_OK;
}

/* What all ranks of a plan draw together, as means over equal bins. */
static fl_status put_power(copying *c, fl_diag *d) {
    double *joules = calloc(BINS, sizeof *joules), end_s = 0;
    if (!joules)
        return fl_no_memory(d, "the picture");
    for (size_t i = 0; i < c->count; i++)
        end_s = fmax(end_s, c->item[i].end_s);
    const double width = end_s / BINS;
    for (size_t i = 0; width > 0 && i < c->count; i++) {
        const stretch *s = &c->item[i];
        for (size_t k = (size_t)(s->start_s / width); k < BINS && (double)k * width < s->end_s; k++) {
            const double from = fmax(s->start_s, (double)k * width), to = fmin(s->end_s, (double)(k + 1) * width);
            joules[k] += s->power_w * fmax(0, to - from);
        }
    }
    for (size_t k = 0; width > 0 && k < BINS; k++)
        fprintf(c->p->table, "%zu,power,0,%.9g,%.9g,0,%.6g\n", c->plan, (double)k * width, (double)(k + 1) * width,
                joules[k] / width);
    free(joules);
    return FL_OK;
}

/* Each plan's chart below its name, and the power of all of them below. */
static void lay_out(copying *c, const char *const *input, size_t plans) {
    fl_picture *p = c->p;
    const double chart = fmin(RANK_PX * c->ranks, CHART_PX), name = plans > 1 ? NAME_PX : 0;
    fl_picture_plot(p, 76, 96, (double)plans * (name + chart + GAP_PX) + POWER_PX);
    char about[512];
    snprintf(
        about, sizeof about,
        "%.200s%sTall bars: backward, lower ones: forward, in the colour of their clock; grey: transfers and loads; "
        "sand: waiting",
        plans > 1 ? "" : basename(input[0]), plans > 1 ? "" : ". ");
    fl_picture_title(p, "Instructions over time", about);
    fl_picture_range(p, 0, c->end_s, 0, 1);
    fprintf(p->facts, "plans=%zu\narray chart_top[%zu]\narray chart_name[%zu]\n", plans, plans, plans);
    for (size_t i = 0; i < plans; i++) {
        char variable[40], text[256];
        snprintf(variable, sizeof variable, "chart_top[%zu]", i + 1);
        fl_picture_number(p, variable, p->top + name + (double)i * (name + chart + GAP_PX));
        snprintf(variable, sizeof variable, "chart_name[%zu]", i + 1);
        fl_picture_text(p, variable, fl_text_fit(plans > 1 ? basename(input[i]) : "", p->right - p->left, text));
    }
    fl_picture_number(p, "chart_height", chart);
    fl_picture_number(p, "power_top", p->bottom - POWER_PX);
    fl_picture_number(p, "ranks", c->ranks);
    fl_picture_number(p, "rank_step", ceil(LINE_PX * c->ranks / chart)); /* labels of many ranks keep apart */
    if (!isfinite(c->mhz0))
        c->mhz0 = c->mhz1 = 0;
    fl_picture_number(p, "mhz0", c->mhz1 > c->mhz0 ? c->mhz0 : c->mhz0 - 1);
    fl_picture_number(p, "mhz1", c->mhz1 > c->mhz0 ? c->mhz1 : c->mhz0 + 1);
}

fl_status fl_picture_gantt(fl_picture *p, const char *const *input, size_t plans, size_t *drawn, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    copying c = {.p = p, .mhz0 = HUGE_VAL};
    fl_status s = FL_OK;
    *drawn = 0;
    fputs("plan,what,rank,start_s,end_s,sm_mhz,power_w\n", p->table);
    for (size_t i = 0; !s && i < plans; i++) {
        c.plan = i + 1;
        c.rows = c.count = 0;
        s = fl_csv_read(input[i], &OPTIONS, NULL, copy_row, &c, d);
        if (!s && c.rows < 2) {
            *drawn = 0; /* nothing of this plan */
            s = fl_fail(d, FL_BAD_INPUT, input[i], 0, 0,
                        "no row below the head, expected the file of run --instructions");
        }
        if (!s)
            s = put_power(&c, d);
        *drawn += c.count;
    }
    free(c.item);
    if (!s && *drawn)
        lay_out(&c, input, plans);
    return s;
}
