/* Planned clocks of a pipeline: energy over the time of an iteration, with the bound, one clock for all, a clock for
 * each rank, the driver's default, and plans that were executed. */
#include "harness/report/picture/inside.h"

#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The instructions of a pipeline over time, rank by rank; of two plans above each other, on one axis of time. */

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
    fl_picture_field(c->p->table, what);
    fprintf(c->p->table, ",%g,%.9g,%.9g,%g,%g\n", v[RANK], v[START], v[END], v[MHZ], v[POWER]);
    fl_must_grow(&c->item, &c->room, c->count + 1, sizeof *c->item);
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
static void put_power(copying *c) {
    double *joules = fl_must(calloc(BINS, sizeof *joules)), end_s = 0;
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
}

/* Each plan's chart below its name, and the power of all of them below. */
static void lay_out(copying *c, const char *const *input, size_t plans) {
    fl_picture *p = c->p;
    const double chart = fmin(RANK_PX * c->ranks, CHART_PX), name = plans > 1 ? NAME_PX : 0;
    fl_picture_plot(p, 76, 96, (double)plans * (name + chart + GAP_PX) + POWER_PX);
    char about[512], whole[256];
    snprintf(
        about, sizeof about,
        "%.200s%sTall bars: backward, lower ones: forward, in the colour of their clock; grey: transfers and loads; "
        "sand: waiting",
        plans > 1 ? "" : fl_lead_short(input[0], whole), plans > 1 ? "" : ". ");
    fl_picture_title(p, "Instructions over time", about);
    fl_picture_range(p, 0, c->end_s, 0, 1);
    fprintf(p->facts, "plans=%zu\narray chart_top[%zu]\narray chart_name[%zu]\n", plans, plans, plans);
    for (size_t i = 0; i < plans; i++) {
        char variable[40], text[256];
        snprintf(variable, sizeof variable, "chart_top[%zu]", i + 1);
        fl_picture_number(p, variable, p->top + name + (double)i * (name + chart + GAP_PX));
        snprintf(variable, sizeof variable, "chart_name[%zu]", i + 1);
        fl_picture_text(p, variable,
                        fl_text_fit(plans > 1 ? fl_lead_short(input[i], whole) : "", p->right - p->left, text));
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
            put_power(&c);
        *drawn += c.count;
    }
    free(c.item);
    if (!s && *drawn)
        lay_out(&c, input, plans);
    return s;
}

/* ---- the picture of a frontier ---- */

enum { KIND, TIME, ENERGY, BOUND, JUDGE_TIME, JUDGE_ENERGY, MEASURED_TIME, MEASURED_ENERGY, FRONTIER_COLUMNS };
static const char *const column[FRONTIER_COLUMNS] = {
    "kind", "time_s", "energy_j", "bound_j", "judge_time_s", "judge_energy_j", "measured_time_s", "measured_energy_j"};

typedef struct row {
    char kind[16];
    double value[FRONTIER_COLUMNS]; /* without KIND; NAN: n/a */
} row;

typedef struct table {
    size_t at[FRONTIER_COLUMNS];
    bool headed;
    row *item;
    size_t count, room;
} table;

static fl_status read_head(table *t, const fl_csv_row *r, fl_diag *d) {
    for (size_t k = 0; k < FRONTIER_COLUMNS; k++) {
        t->at[k] = fl_report_find(r, column[k]);
        if (t->at[k] == SIZE_MAX)
            return fl_fail(d, FL_BAD_INPUT, r->file, r->line, 1,
                           "no column '%s', expected the file of foldline plan --rows", column[k]);
    }
    t->headed = true;
    return FL_OK;
}

static fl_status on_row(void *user, const fl_csv_row *r, fl_diag *d) {
    table *t = user;
    if (!t->headed)
        return read_head(t, r, d);
    fl_must_grow(&t->item, &t->room, t->count + 1, sizeof *t->item);
    row *at = &t->item[t->count++];
    *at = (row){0};
    for (size_t k = 0; k < FRONTIER_COLUMNS; k++) {
        if (t->at[k] >= r->count)
            return fl_fail(d, FL_BAD_INPUT, r->file, r->line, 1, "%zu fields, expected those of the first line",
                           r->count);
        const fl_field *f = &r->field[t->at[k]];
        at->value[k] = NAN;
        if (k == KIND)
            snprintf(at->kind, sizeof at->kind, "%s", f->text);
        else if (strcmp(f->text, "n/a") && fl_real_parse(f->text, &at->value[k]) != FL_NUMBER_OK)
            return fl_fail(d, FL_BAD_INPUT, r->file, r->line, f->column, "%s is '%s', expected a number or n/a",
                           column[k], f->text);
    }
    return FL_OK;
}

/* What is drawn of a row, in the script's words. Marks of predictions are hollow or crosses; filled ones were measured.
 */
typedef struct series {
    const char *what, *kind, *name;
    int x, y, point, colour;
} series;

static const series all[] = {
    {"bound", "plan", "predicted: no plan has less", TIME, BOUND, 6, 0},
    {"static", "static", "predicted: one clock for all", TIME, ENERGY, 1, 2},
    {"rank", "rank", "predicted: a clock for each rank", TIME, ENERGY, 8, 5},
    {"default", "default", "predicted: the driver's default", TIME, ENERGY, 3, 4},
    {"plan", "plan", "predicted: planned", TIME, ENERGY, 6, 1},
    {"judged", "plan", "predicted by another fit: planned", JUDGE_TIME, JUDGE_ENERGY, 12, 6},
    {"measured", "measured", "measured: executed plans", MEASURED_TIME, MEASURED_ENERGY, 5, 7},
};
enum { SERIES = sizeof all / sizeof *all };

static bool has(const table *t, const series *s) {
    for (size_t i = 0; i < t->count; i++)
        if (!strcmp(t->item[i].kind, s->kind) && !isnan(t->item[i].value[s->x]) && !isnan(t->item[i].value[s->y]))
            return true;
    return false;
}

/* The frame holds all but static clocks and clocks by rank, which may be far away: these are drawn where they fall. */
static void find_range(const table *t, double range[4]) {
    double x0 = HUGE_VAL, x1 = -HUGE_VAL, y0 = HUGE_VAL, y1 = -HUGE_VAL;
    for (size_t k = 0; k < SERIES; k++)
        for (size_t i = 0; i < t->count; i++)
            if (!strcmp(t->item[i].kind, all[k].kind) && strcmp(all[k].what, "static") && strcmp(all[k].what, "rank")) {
                fl_hold(&x0, &x1, t->item[i].value[all[k].x]);
                fl_hold(&y0, &y1, t->item[i].value[all[k].y]);
            }
    fl_loosen(&x0, &x1);
    fl_loosen(&y0, &y1);
    memcpy(range, (double[4]){x0, x1, y0, y1}, 4 * sizeof *range);
}

static void put_table(fl_picture *p, const table *t, const double range[4]) {
    fputs("what,x,y,point,colour,text\n", p->table);
    for (size_t k = 0; k < SERIES; k++) {
        for (size_t i = 0; i < t->count; i++) {
            const double x = t->item[i].value[all[k].x], y = t->item[i].value[all[k].y];
            if (strcmp(t->item[i].kind, all[k].kind) ||
                !(x >= range[0] && x <= range[1] && y >= range[2] && y <= range[3]))
                continue;
            fprintf(p->table, "%s,%.17g,%.17g,%d,%d,", all[k].what, x, y, all[k].point, all[k].colour);
            char tip[96];
            snprintf(tip, sizeof tip, "%s: %.5g s, %.6g J", all[k].name, x, y);
            fl_picture_field(p->table, tip);
            fputc('\n', p->table);
        }
        fputc('\n', p->table); /* lifts the pen */
    }
}

fl_status fl_picture_frontier(fl_picture *p, const char *input, size_t *drawn, fl_diag *d) {
    const fl_csv_options options = {.trim = true};
    table t = {0};
    double range[4], longest = 0;
    size_t entries = 0;
    char name[256], about[320];
    fl_status s = fl_csv_read(input, &options, NULL, on_row, &t, d);
    *drawn = 0;
    for (size_t k = 0; !s && k < SERIES; k++)
        if (has(&t, &all[k])) {
            longest = fmax(longest, fl_text_width(all[k].name));
            entries++;
        }
    if (!s && entries) {
        find_range(&t, range);
        fl_picture_plot(p, fl_picture_ticks(p, range[2], range[3]), 24, 420);
        fl_lead_short(input, name);
        if (fl_name_ends(name, ".frontier"))
            name[strlen(name) - strlen(".frontier")] = '\0';
        snprintf(about, sizeof about, "%s; filled: measured, hollow or cross: predicted", name);
        fl_picture_title(p, "Clocks for a pipeline: energy at each iteration time", about);
        fl_picture_legend(p, entries, longest);
        for (size_t k = 0; k < SERIES; k++)
            if (has(&t, &all[k]))
                fl_picture_entry(p, all[k].name, (fl_look){all[k].colour, 0, 0}, all[k].point);
        fl_picture_range(p, range[0], range[1], range[2], range[3]);
        put_table(p, &t, range);
        *drawn = t.count;
    }
    free(t.item);
    return s;
}
