/* Planned clocks of a pipeline: energy over the time of an iteration, with the bound, one clock for all, a clock for
 * each rank, the driver's default, and plans that were executed. */
#include "harness/report/picture/lines.h"
#include "harness/report/picture/pictures.h"
#include "traces/io/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KIND, TIME, ENERGY, BOUND, JUDGE_TIME, JUDGE_ENERGY, MEASURED_TIME, MEASURED_ENERGY, COLUMNS };
static const char *const column[COLUMNS] = {"kind",         "time_s",         "energy_j",        "bound_j",
                                            "judge_time_s", "judge_energy_j", "measured_time_s", "measured_energy_j"};

typedef struct row {
    char kind[16];
    double value[COLUMNS]; /* without KIND; NAN: n/a */
} row;

typedef struct table {
    size_t at[COLUMNS];
    bool headed;
    row *item;
    size_t count, room;
} table;

static fl_status read_head(table *t, const fl_csv_row *r, fl_diag *d) {
    for (size_t k = 0; k < COLUMNS; k++) {
        t->at[k] = fl_report_find(r, column[k]);
        if (t->at[k] == SIZE_MAX)
            return fl_fail(d, FL_BAD_INPUT, r->file, r->line, 1,
                           "no column '%s', expected the file of foldline plan --csv", column[k]);
    }
    t->headed = true;
    return FL_OK;
}

static fl_status on_row(void *user, const fl_csv_row *r, fl_diag *d) {
    table *t = user;
    if (!t->headed)
        return read_head(t, r, d);
    if (fl_grow(&t->item, &t->room, t->count + 1, sizeof *t->item))
        return fl_no_memory(d, "the picture");
    row *at = &t->item[t->count++];
    *at = (row){0};
    for (size_t k = 0; k < COLUMNS; k++) {
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

/* What is drawn of a row, in the script's words. */
typedef struct series {
    const char *what, *kind, *name;
    int x, y, point, colour;
} series;

static const series all[] = {
    {"bound", "plan", "no plan has less", TIME, BOUND, 7, 0},
    {"static", "static", "one clock for all", TIME, ENERGY, 1, 2},
    {"rank", "rank", "a clock for each rank", TIME, ENERGY, 9, 5},
    {"default", "default", "the driver's default", TIME, ENERGY, 3, 7},
    {"plan", "plan", "planned", TIME, ENERGY, 7, 1},
    {"judged", "plan", "planned, as another fit predicts", JUDGE_TIME, JUDGE_ENERGY, 6, 6},
    {"measured", "measured", "executed plans, measured", MEASURED_TIME, MEASURED_ENERGY, 5, 3},
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
            fl_picture_field(p, tip);
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
    const char *slash = strrchr(input, '/');
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
        fl_picture_title(p, "Clocks for a pipeline: energy at each iteration time", slash ? slash + 1 : input);
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
