/* Sweep files, both ways, and the checks of each row. */
#include "traces/import/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORKLOAD, KERNEL, SM_MHZ, MEM_MHZ, POWER_CAP, TIME, POWER, ENERGY, REQUIRED };
enum { ENERGY_CV = REQUIRED, RATIO, RATIO_CV, TIME_SD, POWER_SD, ACTIVITY, UTIL = ACTIVITY + FL_COUNTERS };
enum { COLUMNS = UTIL + FL_UTILS };

static const char *const COLUMN[COLUMNS] = {[WORKLOAD] = "workload",
                                            [KERNEL] = "kernel",
                                            [SM_MHZ] = "sm_mhz",
                                            [MEM_MHZ] = "mem_mhz",
                                            [POWER_CAP] = "power_cap_w",
                                            [TIME] = "time_s",
                                            [POWER] = "power_w",
                                            [ENERGY] = "energy_j",
                                            [ENERGY_CV] = "energy_cv",
                                            [RATIO] = "ratio",
                                            [RATIO_CV] = "ratio_cv",
                                            [TIME_SD] = "time_sd_pct",
                                            [POWER_SD] = "power_sd_pct",
                                            [ACTIVITY + FL_COUNTER_DRAM] = "dram_active_pct",
                                            [ACTIVITY + FL_COUNTER_SM] = "sm_active_pct",
                                            [ACTIVITY + FL_COUNTER_OCCUPANCY] = "sm_occupancy_pct",
                                            [ACTIVITY + FL_COUNTER_FP32] = "fp32_pct",
                                            [ACTIVITY + FL_COUNTER_FP64] = "fp64_pct",
                                            [ACTIVITY + FL_COUNTER_FP16] = "fp16_pct",
                                            [ACTIVITY + FL_COUNTER_TENSOR] = "tensor_pct",
                                            [UTIL + FL_UTIL_GPU] = "util_gpu_pct",
                                            [UTIL + FL_UTIL_GPU_SD] = "util_gpu_sd",
                                            [UTIL + FL_UTIL_MEM] = "util_mem_pct",
                                            [UTIL + FL_UTIL_MEM_SD] = "util_mem_sd"};

struct fl_sweep_rows {
    fl_sweep s;
    size_t where[COLUMNS], width; /* SIZE_MAX: no such column */
    bool times;                   /* power and energy need not be known */
    bool activities, utils;       /* there is a column of activity, of utilisation */
    fl_intern names;
    fl_left_out left, *to;
};

static const char *text_of(const fl_sweep_rows *l, const fl_csv_row *row, size_t column) {
    return l->where[column] == SIZE_MAX ? "" : row->field[l->where[column]].text;
}

static bool not_known(const fl_sweep_rows *l, const fl_csv_row *row, size_t column) {
    return fl_no_value(text_of(l, row, column));
}

/* ---- values beyond those of any GPU ---- */

static const struct {
    double most;
    const char *what, *unit, *small[2]; /* units of a thousandth and of a millionth */
} LIMIT[REQUIRED] = {[SM_MHZ] = {FL_SM_MHZ_MOST, "GPU runs at", "MHz", {"kHz", "Hz"}},
                     [MEM_MHZ] = {FL_MEM_MHZ_MOST, "memory runs at", "MHz", {"kHz", "Hz"}},
                     [POWER_CAP] = {FL_WATTS_MOST, "node of GPUs draws", "W", {"mW", "uW"}},
                     [POWER] = {FL_WATTS_MOST, "node of GPUs draws", "W", {"mW", "uW"}},
                     [ENERGY] = {FL_WATTS_MOST, "node of GPUs draws", "J", {"mJ", "uJ"}}};

/* The value is that of `column`; the highest of an energy is that of the power over its time. */
static fl_status beyond(const fl_sweep_rows *l, const fl_csv_row *row, size_t column, double value, double most,
                        fl_diag *d) {
    double factor = 1;
    while (value / factor > most) /* the least power of a thousand that explains it */
        factor *= 1000;
    return FL_FIELD_WRONG(d, row, l->where[column],
                          "%s is %g, above what any %s (%g %s); as %s, a factor of %g, it would be %g: expected %s",
                          COLUMN[column], value, LIMIT[column].what, most, LIMIT[column].unit,
                          LIMIT[column].small[factor > 1000], factor, value / factor, LIMIT[column].unit);
}

/* A run that failed left 0. */
static fl_status read_number(const fl_sweep_rows *l, const fl_csv_row *row, size_t column, double *value, fl_diag *d) {
    *value = NAN;
    if (not_known(l, row, column))
        return FL_OK;
    const fl_status status = fl_field_real(row, l->where[column], COLUMN[column], 0, HUGE_VAL, value, d);
    if (!status && LIMIT[column].most > 0 && column != ENERGY && *value > LIMIT[column].most)
        return beyond(l, row, column, *value, LIMIT[column].most, d);
    *value = *value > 0 ? *value : (double)NAN;
    return status;
}

static fl_status get_spread(const fl_sweep_rows *l, const fl_csv_row *row, size_t column, double *value, fl_diag *d) {
    *value = NAN;
    return not_known(l, row, column) ? FL_OK
                                     : fl_field_real(row, l->where[column], COLUMN[column], 0, HUGE_VAL, value, d);
}

/* Append one row of `count` columns in percent from column `first` on to values. */
static fl_status add_percents(const fl_sweep_rows *l, const fl_csv_row *row, size_t first, size_t count,
                              double **values, size_t *room, fl_diag *d) {
    const size_t at = l->s.row_count * count;
    if (fl_grow(values, room, at + count, sizeof **values))
        return fl_no_memory(d, row->file);
    fl_status status = FL_OK;
    for (size_t i = 0; i < count && !status; i++) {
        double *value = &(*values)[at + i];
        *value = NAN;
        if (!not_known(l, row, first + i))
            status = fl_field_real(row, l->where[first + i], COLUMN[first + i], 0, 100, value, d);
    }
    return status;
}

static fl_status get_name(fl_sweep_rows *l, const fl_csv_row *row, size_t column, uint32_t *index, fl_diag *d) {
    const fl_field *f = l->where[column] == SIZE_MAX ? NULL : &row->field[l->where[column]];
    *index =
        fl_intern_text(&l->names, &l->s.names, &l->s.name_count, &l->s.name_room, f ? f->text : "", f ? f->size : 0);
    return *index == UINT32_MAX ? fl_no_memory(d, row->file) : FL_OK;
}

/* Energy and power may be of different spans or sensors, but not by a factor of ten: that is a unit that is not what
 * the column says. */
static fl_status check_units(fl_sweep_rows *l, const fl_csv_row *row, const fl_sweep_row *r, fl_diag *d) {
    static const struct {
        double factor;
        const char *likely;
    } unit[] = {{1e-6, "MJ instead of J"},
                {1 / 3.6e6, "kWh instead of J"},
                {1 / 3.6e3, "Wh instead of J"},
                {1e-3, "kJ instead of J, or mW or ms instead of W or s"},
                {1e3, "mJ, mW or ms instead of J, W, s"},
                {1e6, "uJ instead of J"}};
    const double factor = r->energy_j / r->power_w / r->time_s;
    const char *likely = "another unit, or energy and power of different runs";
    if (factor >= 0.1 && factor <= 10) {
        if (fl_accounts_differ(r->energy_j, r->power_w * r->time_s))
            fl_left_doubt(&l->left, row->line, "energy_j is %.4g times power_w x time_s; energy_j is taken", factor);
        return FL_OK;
    }
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
        if (fabs(factor / unit[i].factor - 1) < 0.2)
            likely = unit[i].likely;
    return FL_FIELD_WRONG(d, row, l->where[ENERGY], "energy_j is %.4g times power_w x time_s, expected about 1 (%s?)",
                          factor, likely);
}

/* Power, energy and time belong together: of the first two one may be missing. */
static fl_status complete_power(fl_sweep_rows *l, const fl_csv_row *row, fl_sweep_row *r, fl_diag *d) {
    const bool derived = isnan(r->power_w) && !isnan(r->energy_j);
    if (isnan(r->power_w))
        r->power_w = r->energy_j / r->time_s;
    if (isnan(r->energy_j))
        r->energy_j = r->power_w * r->time_s;
    if (isnan(r->power_w))
        return FL_OK;
    if (!isnormal(r->power_w) || !isnormal(r->energy_j))
        return FL_FIELD_WRONG(d, row, l->where[TIME], "power, time and energy are too far apart to hold");
    if (derived && r->power_w > FL_WATTS_MOST)
        return beyond(l, row, ENERGY, r->energy_j, FL_WATTS_MOST * r->time_s, d);
    return l->where[ENERGY] == SIZE_MAX ? FL_OK : check_units(l, row, r, d);
}

/* A word in place of the clock, or of the limit where that is the setting: the driver's default. */
static bool names_setting(const char *text) {
    static const char *const empty[] = {"", "nan", "n/a", "[n/a]"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        if (!strcasecmp(text, empty[i]))
            return false;
    double number;
    return fl_no_value(text) || (fl_real_parse(text, &number) == FL_NUMBER_OK && number == 0);
}

/* Leaves out a row that is no measured setting: *gone. */
static fl_status leave(fl_sweep_rows *l, const fl_csv_row *row, const fl_sweep_row *r, bool *gone, fl_diag *d) {
    const size_t setting = l->where[SM_MHZ] == SIZE_MAX ? POWER_CAP : SM_MHZ,
                 power = l->where[POWER] == SIZE_MAX ? ENERGY : POWER;
    const bool limited = setting == SM_MHZ && !isnan(r->power_cap_w), failed = isnan(r->time_s),
               dark = isnan(r->power_w) && isnan(r->energy_j) && !l->times;
    *gone = true;
    if (names_setting(text_of(l, row, setting)) && !limited)
        return fl_left_empty(&l->left, row->file, row->line, row->field[l->where[setting]].column, d,
                             "%s is %.40s: no setting that could be made", COLUMN[setting], text_of(l, row, setting));
    if (failed)
        return fl_left_empty(&l->left, row->file, row->line, row->field[l->where[TIME]].column, d,
                             "time_s is %.40s, as of a run that failed",
                             *text_of(l, row, TIME) ? text_of(l, row, TIME) : "empty");
    if (dark)
        return fl_left_empty(&l->left, row->file, row->line, row->field[l->where[power]].column, d,
                             "neither power_w nor energy_j has a value above 0, as of a run that failed");
    *gone = false;
    return FL_OK;
}

static fl_status find_columns(fl_sweep_rows *l, const fl_csv_row *row, fl_diag *d) {
    fl_status status = fl_header_commas(row, d);
    if (!status)
        status = fl_columns_find(row, COLUMN, COLUMNS, 0, l->where, d);
    const size_t needed[] = {WORKLOAD, l->where[POWER_CAP] == SIZE_MAX ? SM_MHZ : POWER_CAP, TIME};
    const size_t count = sizeof needed / sizeof *needed;
    for (size_t i = 0; i < count && !status; i++)
        if (l->where[needed[i]] == SIZE_MAX)
            return FL_FIELD_FAIL(d, row, row->count - 1, "column '%s' is missing", COLUMN[needed[i]]);
    if (!status && !l->times && l->where[POWER] == SIZE_MAX && l->where[ENERGY] == SIZE_MAX)
        return FL_FIELD_FAIL(d, row, row->count - 1, "columns 'power_w' and 'energy_j' are missing, expected one");
    for (size_t i = ACTIVITY; i < COLUMNS; i++)
        *(i < UTIL ? &l->activities : &l->utils) |= l->where[i] != SIZE_MAX;
    return status;
}

fl_sweep_rows *fl_sweep_rows_open(bool times, fl_left_out *left, fl_diag *d) {
    fl_sweep_rows *l = calloc(1, sizeof *l);
    if (l) {
        l->times = times;
        l->left = fl_left_begin(left);
        l->to = left;
    } else {
        fl_no_memory(d, NULL);
    }
    return l;
}

static fl_status take_row(fl_sweep_rows *l, const fl_csv_row *row, fl_diag *d) {
    fl_sweep_row r = {.line = row->line};
    double *const value[] = {&r.sm_mhz, &r.mem_mhz, &r.power_cap_w, &r.time_s, &r.power_w, &r.energy_j};
    bool gone = false;
    fl_status status = fl_columns_width(row, l->width, d);
    if (!status && row->field[l->where[WORKLOAD]].size == 0)
        return FL_FIELD_FAIL(d, row, l->where[WORKLOAD], "workload is empty, expected a name");
    for (size_t c = SM_MHZ; c < REQUIRED && !status; c++)
        status = read_number(l, row, c, value[c - SM_MHZ], d);
    if (!status)
        status = leave(l, row, &r, &gone, d);
    if (status || gone)
        return status;
    double *const spread[] = {&r.energy_cv, &r.ratio, &r.ratio_cv, &r.time_sd_pct, &r.power_sd_pct};
    for (size_t c = ENERGY_CV; c < ACTIVITY && !status; c++)
        status = get_spread(l, row, c, spread[c - ENERGY_CV], d);
    if (!status)
        status = complete_power(l, row, &r, d);
    if (!status && l->activities)
        status = add_percents(l, row, ACTIVITY, FL_COUNTERS, &l->s.activity, &l->s.activity_room, d);
    if (!status && l->utils)
        status = add_percents(l, row, UTIL, FL_UTILS, &l->s.util, &l->s.util_room, d);
    if (!status) /* last, so that every name has a row */
        status = get_name(l, row, WORKLOAD, &r.workload, d);
    if (!status)
        status = get_name(l, row, KERNEL, &r.kernel, d);
    if (!status && fl_grow(&l->s.rows, &l->s.row_room, l->s.row_count + 1, sizeof r))
        status = fl_no_memory(d, row->file);
    if (!status)
        l->s.rows[l->s.row_count++] = r;
    return status;
}

fl_status fl_sweep_rows_take(fl_sweep_rows *l, const fl_csv_row *row, fl_diag *d) {
    if (l->width)
        return fl_left_row(&l->left, take_row(l, row, &l->left.own), d);
    l->width = row->count;
    return find_columns(l, row, d);
}

fl_status fl_sweep_rows_close(fl_sweep_rows *l, const char *path, fl_status status, fl_sweep *s, fl_diag *d) {
    fl_left_earlier(&l->left, fl_head_get(&s->head, FL_LEFT_KEY));
    if (!status)
        status = fl_left_end(&l->left, l->to, path, d);
    if (!status && l->s.row_count == 0)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no settings, expected at least one row after the header");
    fl_intern_free(&l->names);
    l->s.head = s->head;
    *s = l->s;
    if (status)
        fl_sweep_free(s);
    free(l);
    return status;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) { return fl_sweep_rows_take(user, row, d); }

static fl_status read_any(const char *path, bool times, fl_sweep *s, fl_left_out *left, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-sweep", .head_optional = true};
    *s = (fl_sweep){0};
    fl_sweep_rows *l = fl_sweep_rows_open(times, left, d);
    if (!l)
        return FL_NO_MEMORY;
    return fl_sweep_rows_close(l, path, fl_csv_read(path, &OPTIONS, &s->head, on_row, l, d), s, d);
}

fl_status fl_sweep_read(const char *path, fl_sweep *s, fl_left_out *left, fl_diag *d) {
    return read_any(path, false, s, left, d);
}

fl_status fl_sweep_read_times(const char *path, fl_sweep *s, fl_left_out *left, fl_diag *d) {
    return read_any(path, true, s, left, d);
}

fl_status fl_sweep_write(const char *path, const fl_sweep *s, fl_diag *d) {
    fl_output *o;
    fl_status status = fl_output_begin(path, "foldline-sweep", &s->head, &o, d);
    if (status)
        return status;
    FILE *file = fl_output_file(o);
    bool spread = false, stated = false;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        spread |= !isnan(r->energy_cv) || !isnan(r->ratio) || !isnan(r->ratio_cv);
        stated |= r->time_sd_pct > 0 || r->power_sd_pct > 0;
    }
    const bool written[] = {spread, spread, spread, stated, stated};
    for (size_t i = 0; i < COLUMNS; i++)
        if (i < REQUIRED || (i < ACTIVITY ? written[i - REQUIRED] : (i < UTIL ? s->activity : s->util) != NULL))
            fprintf(file, "%s%s", i ? "," : "", COLUMN[i]);
    fputc('\n', file);
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        const double value[] = {r->sm_mhz,    r->mem_mhz, r->power_cap_w, r->time_s,      r->power_w,     r->energy_j,
                                r->energy_cv, r->ratio,   r->ratio_cv,    r->time_sd_pct, r->power_sd_pct};
        fl_csv_put(file, s->names[r->workload]);
        fputc(',', file);
        fl_csv_put(file, s->names[r->kernel]);
        for (size_t c = SM_MHZ; c < ACTIVITY; c++) {
            if (c >= REQUIRED && !written[c - REQUIRED])
                continue;
            fputc(',', file);
            fl_put_real(file, value[c - SM_MHZ]);
        }
        for (size_t c = 0; s->activity && c < FL_COUNTERS; c++) {
            fputc(',', file);
            fl_put_real(file, s->activity[i * FL_COUNTERS + c]);
        }
        for (size_t c = 0; s->util && c < FL_UTILS; c++) {
            fputc(',', file);
            fl_put_real(file, s->util[i * FL_UTILS + c]);
        }
        fputc('\n', file);
    }
    return fl_output_commit(o, d);
}
