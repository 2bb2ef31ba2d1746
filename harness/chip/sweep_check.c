/* Checks on a whole sweep: units, times that no clock explains, settings measured twice. */
#include "harness/chip/chip.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a sweep that contradict each other. A file may have a million rows, so they are sorted, not compared each
 * with each. */

#define TWICE 1.1

static int by_number(double a, double b) { /* unknown ones first */
    if (isnan(a) || isnan(b))
        return isnan(b) - isnan(a);
    return (a > b) - (a < b);
}

/* The same workload, kernel, memory clock and limit: 0. */
static int by_setting(const fl_sweep_row *a, const fl_sweep_row *b) {
    int order = (a->workload > b->workload) - (a->workload < b->workload);
    order = order ? order : (a->kernel > b->kernel) - (a->kernel < b->kernel);
    order = order ? order : by_number(a->mem_mhz, b->mem_mhz);
    return order ? order : by_number(a->power_cap_w, b->power_cap_w);
}

static int by_clock(const void *x, const void *y) {
    const fl_sweep_row *a = *(const fl_sweep_row *const *)x, *b = *(const fl_sweep_row *const *)y;
    int order = by_setting(a, b);
    order = order ? order : by_number(a->sm_mhz, b->sm_mhz);
    return order ? order : (a > b) - (a < b); /* rows of one clock in the order of the file */
}

/* Rows of one workload, or of all (NULL), so sorted. */
static fl_status sorted(const fl_sweep *s, const uint32_t *workload, const fl_sweep_row ***out, size_t *count,
                        fl_diag *d) {
    *count = 0;
    *out = malloc((s->row_count + 1) * sizeof **out);
    if (!*out)
        return fl_no_memory(d, "the sweep");
    for (size_t i = 0; i < s->row_count; i++)
        if (!workload || s->rows[i].workload == *workload)
            (*out)[(*count)++] = &s->rows[i];
    qsort(*out, *count, sizeof **out, by_clock);
    return FL_OK;
}

fl_status fl_sweep_odd(const fl_sweep *s, uint32_t workload, const fl_sweep_row **low, const fl_sweep_row **high,
                       fl_diag *d) {
    const fl_sweep_row **row, *quickest = NULL, *next = NULL; /* below this clock; with those at this clock */
    size_t count;
    double worst = FL_SWEEP_FASTER;
    *low = *high = NULL;
    fl_status status = sorted(s, &workload, &row, &count, d);
    for (size_t i = 0; !status && i < count; i++) {
        if (!i || by_setting(row[i - 1], row[i]))
            quickest = next = NULL;
        else if (by_number(row[i - 1]->sm_mhz, row[i]->sm_mhz))
            quickest = next;
        if (quickest && quickest->time_s < worst * row[i]->time_s) {
            worst = quickest->time_s / row[i]->time_s;
            *low = quickest;
            *high = row[i];
        }
        if (!isnan(row[i]->sm_mhz) && (!next || row[i]->time_s < next->time_s))
            next = row[i];
    }
    free(row);
    return status;
}

/* In 483 groups of rows of public sweeps, whose clocks differ by more, the lowest clock drew at most 0.956 of what the
 * highest drew. */
#define CLOCKS_APART 1.3
#define DRAWS_ALIKE 0.98
#define TIMES_ALIKE 1.1 /* repeated runs scatter less */

fl_status fl_sweep_unmoved(const fl_sweep *s, uint32_t workload, const fl_sweep_row **low, const fl_sweep_row **high,
                           fl_diag *d) {
    const fl_sweep_row **row;
    size_t count, first = 0;
    *low = *high = NULL;
    fl_status status = sorted(s, &workload, &row, &count, d);
    for (size_t i = 0; !status && i < count && !*low; i++) {
        first = i && by_setting(row[i - 1], row[i]) ? i : first;
        const bool last = i + 1 == count || by_setting(row[i], row[i + 1]);
        if (last && row[i]->sm_mhz >= CLOCKS_APART * row[first]->sm_mhz &&
            row[first]->time_s <= TIMES_ALIKE * row[i]->time_s &&
            row[first]->energy_j / row[first]->time_s >= DRAWS_ALIKE * row[i]->energy_j / row[i]->time_s) {
            *low = row[first];
            *high = row[i];
        }
    }
    free(row);
    return status;
}

fl_status fl_sweep_check_twice(const char *path, const fl_sweep *s, fl_diag *d) {
    const fl_sweep_row **row, *least = NULL, *most = NULL, *first = NULL, *other = NULL;
    size_t count;
    fl_status status = sorted(s, NULL, &row, &count, d);
    for (size_t i = 0; !status && i < count; i++) {
        if (!i || by_setting(row[i - 1], row[i]) || by_number(row[i - 1]->sm_mhz, row[i]->sm_mhz)) {
            least = most = row[i];
            continue;
        }
        const fl_sweep_row *far = row[i]->time_s > TWICE * least->time_s  ? least
                                  : most->time_s > TWICE * row[i]->time_s ? most
                                                                          : NULL;
        if (far && (!first || row[i] < first)) {
            first = row[i];
            other = far;
        }
        least = row[i]->time_s < least->time_s ? row[i] : least;
        most = row[i]->time_s > most->time_s ? row[i] : most;
    }
    free(row);
    if (!first)
        return status;
    return fl_fail(d, FL_BAD_INPUT, path, first->line, 1,
                   "%s at %g MHz took %g s, and %g s in line %lld: expected one workload, or two names",
                   s->names[first->workload], first->sm_mhz, first->time_s, other->time_s, (long long)other->line);
}

fl_status fl_sweep_check_kernels(const char *path, const fl_sweep *s, fl_diag *d) {
    bool *whole = calloc(s->name_count + 1, sizeof *whole);
    const fl_sweep_row *part = NULL;
    if (!whole)
        return fl_no_memory(d, path);
    for (size_t i = 0; i < s->row_count; i++)
        whole[s->rows[i].workload] |= !*s->names[s->rows[i].kernel];
    for (size_t i = 0; !part && i < s->row_count; i++)
        if (whole[s->rows[i].workload] && *s->names[s->rows[i].kernel])
            part = &s->rows[i];
    free(whole);
    return part ? fl_fail(d, FL_BAD_INPUT, path, part->line, 1,
                          "%s has rows of its kernel %s and rows without a kernel, which are of the whole program: "
                          "expected only one of both",
                          s->names[part->workload], s->names[part->kernel])
                : FL_OK;
}

/* ---- units of a whole file; the reader checks each row ---- */

#define CLOCK_LEAST 30  /* MHz, of a file's highest: GPUs idle at 135 and more; in GHz the fastest have 3.5 */
#define OVER_LIMIT 1.25 /* a board's mean power over its limit: no controller is that far off */
#define WATTS_LEAST 1   /* W, of a file's highest: the smallest boards draw some; in kW eight boards have 9.6 */

typedef struct cell { /* the place of a value */
    const char *name;
    int64_t line, column; /* column 0: the value has no column, or its cell is empty */
    size_t index;
    bool headed;
} cell;

static fl_status find_column(void *user, const fl_csv_row *row, fl_diag *d) {
    cell *c = user;
    (void)d;
    for (size_t i = 0; !c->headed && i < row->count; i++)
        if (!strcmp(row->field[i].text, c->name))
            c->index = i;
    c->headed = true;
    if (row->line == c->line && c->index < row->count && row->field[c->index].size)
        c->column = row->field[c->index].column;
    return FL_OK;
}

static int64_t column_of(const char *path, int64_t line, const char *name) {
    static const fl_csv_options options = {.trim = true, .format = "foldline-sweep", .head_optional = true};
    cell at = {.name = name, .line = line, .index = SIZE_MAX};
    fl_head head = {0};
    fl_diag ignored = {0};
    (void)fl_csv_read(path, &options, &head, find_column, &at, &ignored);
    fl_head_free(&head);
    return at.column;
}

/* The row with the highest value, and whether even that is below the value of any GPU. *at NULL: no row has a value. */
static bool is_low(const fl_sweep *s, size_t offset, double least, const fl_sweep_row **at, double *highest) {
    *at = NULL;
    for (size_t i = 0; i < s->row_count; i++) {
        double x;
        memcpy(&x, (const char *)&s->rows[i] + offset, sizeof x);
        if (!isnan(x) && (!*at || x > *highest)) {
            *at = &s->rows[i];
            *highest = x;
        }
    }
    return *at && *highest > 0 && *highest < least;
}

/* Checks for a unit that is too large. A single row may have a low number, but not all rows. */
static fl_status check_low(const char *path, const fl_sweep *s, fl_diag *d) {
    static const struct {
        const char *name;
        size_t offset;
        double least;
        const char *what, *large, *unit;
    } value[] = {{"sm_mhz", offsetof(fl_sweep_row, sm_mhz), CLOCK_LEAST, "GPU runs at", "GHz", "MHz"},
                 {"mem_mhz", offsetof(fl_sweep_row, mem_mhz), CLOCK_LEAST, "memory runs at", "GHz", "MHz"},
                 {"power_cap_w", offsetof(fl_sweep_row, power_cap_w), WATTS_LEAST, "GPU draws", "kW", "W"},
                 {"power_w", offsetof(fl_sweep_row, power_w), WATTS_LEAST, "GPU draws", "kW", "W"}};
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        const fl_sweep_row *r;
        double x = 0;
        if (!is_low(s, value[i].offset, value[i].least, &r, &x))
            continue;
        int64_t column = column_of(path, r->line, value[i].name);
        const bool energy = !column && i == 3; /* the power follows from energy and time */
        if (energy)
            column = column_of(path, r->line, "energy_j");
        return fl_fail(d, FL_BAD_INPUT, path, r->line, column,
                       "%s is %g at most, below what any %s (%g %s); as %s, a factor of 1000, it would be %g: "
                       "expected %s",
                       value[i].name, x, value[i].what, value[i].least, value[i].unit, value[i].large, 1000 * x,
                       energy ? "energy_j in J" : value[i].unit);
    }
    return FL_OK;
}

/* Limits as shares of the board's own: the highest is 100 or 1, and boards draw more than their limit. A small board
 * with a limit of 100 W draws less. */
static fl_status check_shares(const char *path, const fl_sweep *s, fl_diag *d) {
    const fl_sweep_row *above = NULL;
    double highest = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        highest = fmax(highest, isnan(r->power_cap_w) ? 0 : r->power_cap_w);
        above = !above && r->power_w > OVER_LIMIT * r->power_cap_w ? r : above;
    }
    if (!above || (fabs(highest - 100) > 1e-9 && fabs(highest - 1) > 1e-9))
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, path, above->line, column_of(path, above->line, "power_cap_w"),
                   "power_cap_w is %g, but the board drew %g W; the highest limit of the file is %g, as of shares: "
                   "expected W",
                   above->power_cap_w, above->power_w, highest);
}

fl_status fl_sweep_check_units(const char *path, const fl_sweep *s, fl_diag *d) {
    const fl_status status = check_shares(path, s, d);
    return status ? status : check_low(path, s, d);
}
