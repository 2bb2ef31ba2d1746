/* Kinds files, and kinds by name. */
#include "traces/files/inside.h"

#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading and writing ---- */

enum { NAME, TC, TM, TL, SHARPNESS, ALPHA, BETA, SM_DEMAND, SM_MHZ, MEM_MHZ, REQUIRED };
enum { PHASE = REQUIRED, HOST_BOUND, HOST_ALPHA, HOST_UPC, HOST_GB_S, FOLD_MHZ, FOLD_LOW, FOLD_HIGH, COLUMNS };

static const char *const COLUMN[COLUMNS] = {
    "name",    "tc",    "tm",         "tl",         "sharpness", "alpha",     "beta",     "sm_demand", "sm_mhz",
    "mem_mhz", "phase", "host_bound", "host_alpha", "host_upc",  "host_gb_s", "fold_mhz", "fold_low",  "fold_high"};

typedef struct loader {
    fl_kinds k;
    size_t where[COLUMNS], width;
    fl_intern known; /* names seen, to refuse a second row for one */
    char **names;
    size_t name_count, name_room;
} loader;

static fl_status read_number(const loader *l, const fl_csv_row *row, size_t column, double min, double max,
                             double *value, fl_diag *d) {
    return fl_field_real(row, l->where[column], COLUMN[column], min, max, value, d);
}

/* Sharpness is the p of a p-norm; "inf" stands for its limit, the larger of the two terms. */
static fl_status get_sharpness(const loader *l, const fl_csv_row *row, double *value, fl_diag *d) {
    if (strcmp(row->field[l->where[SHARPNESS]].text, "inf") != 0)
        return read_number(l, row, SHARPNESS, 1, HUGE_VAL, value, d);
    *value = INFINITY;
    return FL_OK;
}

static fl_status get_clock(const loader *l, const fl_csv_row *row, size_t column, double *mhz, fl_diag *d) {
    fl_status status = fl_field_real_or_nan(row, l->where[column], COLUMN[column], 0, HUGE_VAL, mhz, d);
    if (!status && isnan(*mhz))
        *mhz = 0;
    return status;
}

/* An optional column: NAN where the file lacks it or the field is empty. */
static fl_status get_optional(const loader *l, const fl_csv_row *row, size_t column, double max, double *value,
                              fl_diag *d) {
    *value = NAN;
    return l->where[column] == SIZE_MAX ? FL_OK
                                        : fl_field_real_or_nan(row, l->where[column], COLUMN[column], 0, max, value, d);
}

/* "none" in fold_mhz: the memory term does not depend on the SM clock, whatever the platform states. */
static fl_status get_fold(const loader *l, const fl_csv_row *row, fl_kind_load *k, fl_diag *d) {
    const size_t at = l->where[FOLD_MHZ];
    double slope;
    for (size_t c = FOLD_LOW; c <= FOLD_HIGH; c++)
        if (get_optional(l, row, c, HUGE_VAL, &slope, d))
            return FL_BAD_INPUT;
    if (at == SIZE_MAX || row->field[at].size == 0)
        return FL_OK;
    k->fold_mhz = INFINITY;
    if (strcmp(row->field[at].text, "none") == 0)
        return FL_OK;
    if (l->where[FOLD_LOW] == SIZE_MAX || l->where[FOLD_HIGH] == SIZE_MAX)
        return FL_FIELD_FAIL(d, row, at, "a fold_mhz without slopes, expected the columns fold_low and fold_high");
    fl_status status = read_number(l, row, FOLD_MHZ, 1, FL_SM_MHZ_MOST, &k->fold_mhz, d);
    if (!status)
        status = read_number(l, row, FOLD_LOW, 0, HUGE_VAL, &k->fold_low, d);
    if (!status)
        status = read_number(l, row, FOLD_HIGH, 0, HUGE_VAL, &k->fold_high, d);
    if (!status && k->fold_low < k->fold_high)
        status = FL_FIELD_FAIL(d, row, l->where[FOLD_HIGH], "fold_high %g above fold_low %g, expected at most that",
                               k->fold_high, k->fold_low);
    return status;
}

/* Phases of one kernel stand one after the other, and their shares make one. */
#define PHASE_SLACK 1e-6
static fl_status check_phases(const loader *l, const char *file, int64_t line, bool ends, fl_diag *d) {
    double sum = 0;
    const char *name = NULL;
    for (size_t i = l->k.count; i-- > 0 && l->k.kind[i].phase < 1 && (!name || !strcmp(name, l->k.kind[i].name));) {
        name = l->k.kind[i].name;
        sum += l->k.kind[i].phase;
    }
    if (name && (sum > 1 + PHASE_SLACK || (ends && sum < 1 - PHASE_SLACK)))
        return fl_fail(d, FL_BAD_INPUT, file, line, 0, "the shares of the phases of '%.200s' add up to %g, expected 1",
                       name, sum);
    return FL_OK;
}

static fl_status get_name(loader *l, const fl_csv_row *row, fl_diag *d) {
    const fl_field *f = &row->field[l->where[NAME]];
    if (f->size == 0)
        return FL_FIELD_FAIL(d, row, l->where[NAME], "name is empty, expected a kernel name or *");
    size_t known = l->name_count;
    uint32_t index = fl_intern_text(&l->known, &l->names, &l->name_count, &l->name_room, f->text, f->size);
    if (index == UINT32_MAX)
        return fl_no_memory(d, row->file);
    const fl_kind_load *last = l->k.count ? &l->k.kind[l->k.count - 1] : NULL;
    if (index < known && last && last->phase < 1 && strcmp(last->name, f->text) == 0)
        return FL_OK; /* its next phase */
    if (index < known)
        return FL_FIELD_FAIL(d, row, l->where[NAME], "a second row for '%.200s', expected one for each name", f->text);
    return FL_OK;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, l->where, d);
    }
    fl_kind_load k = {0};
    fl_status status = fl_columns_width(row, l->width, d);
    if (!status)
        status = get_name(l, row, d);
    if (!status && l->k.count && strcmp(l->k.kind[l->k.count - 1].name, row->field[l->where[NAME]].text) != 0)
        status = check_phases(l, row->file, row->line, true, d);
    if (!status)
        status = read_number(l, row, TC, 0, HUGE_VAL, &k.tc, d);
    if (!status)
        status = read_number(l, row, TM, 0, HUGE_VAL, &k.tm, d);
    if (!status)
        status = read_number(l, row, TL, 0, HUGE_VAL, &k.tl, d);
    if (!status && k.tc + k.tm + k.tl <= 0)
        status =
            FL_FIELD_FAIL(d, row, l->where[TC], "tc, tm and tl are all zero, expected a share of the time somewhere");
    if (!status)
        status = get_sharpness(l, row, &k.sharpness, d);
    if (!status)
        status = read_number(l, row, ALPHA, 0, HUGE_VAL, &k.alpha, d);
    if (!status)
        status = read_number(l, row, BETA, 0, HUGE_VAL, &k.beta, d);
    if (!status)
        status = fl_field_real_or_nan(row, l->where[SM_DEMAND], COLUMN[SM_DEMAND], 0, 1, &k.sm_demand, d);
    if (!status)
        status = get_clock(l, row, SM_MHZ, &k.sm_mhz, d);
    if (!status)
        status = get_clock(l, row, MEM_MHZ, &k.mem_mhz, d);
    if (!status)
        status = get_optional(l, row, PHASE, 1, &k.phase, d);
    if (isnan(k.phase))
        k.phase = 1;
    if (!status && k.phase <= 0)
        status = FL_FIELD_FAIL(d, row, l->where[PHASE], "phase 0, expected a share of the kernel's time");
    if (!status && k.phase >= 1 && l->k.count &&
        strcmp(l->k.kind[l->k.count - 1].name, row->field[l->where[NAME]].text) == 0)
        status = FL_FIELD_FAIL(d, row, l->where[NAME],
                               "a row of the whole kernel behind one of its phases, expected a phase below 1");
    if (!status)
        status = get_optional(l, row, HOST_BOUND, 1, &k.host_bound, d);
    if (!status)
        status = get_optional(l, row, HOST_ALPHA, HUGE_VAL, &k.host_alpha, d);
    if (!status)
        status = get_optional(l, row, HOST_UPC, 64, &k.host_upc, d);
    if (!status)
        status = get_optional(l, row, HOST_GB_S, HUGE_VAL, &k.host_gb_s, d);
    if (!status)
        status = get_fold(l, row, &k, d);
    if (status)
        return status;
    k.name = strdup(row->field[l->where[NAME]].text);
    if (!k.name || fl_grow(&l->k.kind, &l->k.room, l->k.count + 1, sizeof k)) {
        free(k.name);
        return fl_no_memory(d, row->file);
    }
    l->k.kind[l->k.count++] = k;
    return check_phases(l, row->file, row->line, false, d);
}

fl_status fl_kinds_read(const char *path, fl_kinds *k, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-kinds"};
    loader l = {0};
    fl_status status = fl_csv_read(path, &OPTIONS, &l.k.head, on_row, &l, d);
    if (!status && l.k.count == 0)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no kinds, expected at least one row after the header");
    if (!status)
        status = check_phases(&l, path, 0, true, d);
    fl_intern_free(&l.known);
    for (size_t i = 0; i < l.name_count; i++)
        free(l.names[i]);
    free(l.names);
    if (status)
        fl_kinds_free(&l.k);
    *k = l.k;
    return status;
}

static size_t columns_of(const fl_kinds *k) {
    size_t columns = REQUIRED;
    for (size_t i = 0; i < k->count; i++) {
        const fl_kind_load *l = &k->kind[i];
        if (l->fold_mhz > 0)
            return COLUMNS;
        if (l->phase < 1 || !isnan(l->host_bound) || !isnan(l->host_alpha) || !isnan(l->host_upc) ||
            !isnan(l->host_gb_s))
            columns = FOLD_MHZ;
    }
    return columns;
}

static void put_row(FILE *file, const fl_kind_load *load, size_t columns) {
    const bool folds = load->fold_mhz > 0 && !isinf(load->fold_mhz);
    const double value[] = {load->tc,
                            load->tm,
                            load->tl,
                            load->sharpness,
                            load->alpha,
                            load->beta,
                            load->sm_demand,
                            load->sm_mhz,
                            load->mem_mhz,
                            load->phase,
                            load->host_bound,
                            load->host_alpha,
                            load->host_upc,
                            load->host_gb_s,
                            folds ? load->fold_mhz : (double)NAN,
                            folds ? load->fold_low : (double)NAN,
                            folds ? load->fold_high : (double)NAN};
    fl_csv_put(file, load->name);
    for (size_t c = TC; c < columns; c++) {
        fputc(',', file);
        if (c == FOLD_MHZ && isinf(load->fold_mhz))
            fputs("none", file);
        else if (c > PHASE ? !isnan(value[c - TC]) : value[c - TC] > 0 || c < SM_MHZ) /* clocks: 0 is empty */
            fl_put_real(file, value[c - TC]);
    }
    fputc('\n', file);
}

fl_status fl_kinds_write(const char *path, const fl_kinds *k, fl_diag *d) {
    fl_output *o;
    fl_status status = fl_output_begin(path, "foldline-kinds", &k->head, &o, d);
    if (status)
        return status;
    FILE *file = fl_output_file(o);
    const size_t columns = columns_of(k);
    for (size_t i = 0; i < columns; i++)
        fprintf(file, "%s%s", i ? "," : "", COLUMN[i]);
    fputc('\n', file);
    for (size_t i = 0; i < k->count; i++)
        put_row(file, &k->kind[i], columns);
    return fl_output_commit(o, d);
}

const fl_kind_load *fl_kinds_find(const fl_kinds *k, const char *name) {
    const fl_kind_load *any = NULL;
    for (size_t i = 0; i < k->count; i++) {
        if (strcmp(k->kind[i].name, name) == 0)
            return &k->kind[i];
        if (strcmp(k->kind[i].name, "*") == 0)
            any = &k->kind[i];
    }
    return any;
}

size_t fl_kinds_phases(const fl_kinds *k, const fl_kind_load *first) {
    size_t n = 1;
    while (first->phase < 1 && first + n < k->kind + k->count && strcmp(first[n].name, first->name) == 0)
        n++;
    return n;
}

/* ---- an index by name ---- */

static int by_name(const void *a, const void *b, void *user) {
    const fl_kinds *k = user;
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    const int order = strcmp(k->kind[x].name, k->kind[y].name);
    return order ? order : (x > y) - (x < y);
}

fl_kinds_index fl_kinds_index_make(const fl_kinds *k) {
    fl_kinds_index x = {.kinds = k, .order = k && k->count ? malloc(k->count * sizeof *x.order) : NULL};
    for (size_t i = 0; x.order && i < k->count; i++)
        x.order[i] = i;
    for (size_t i = 0; x.order && i < k->count; i++)
        x.any = strcmp(k->kind[i].name, "*") == 0 ? &k->kind[i] : x.any;
    if (x.order)
        qsort_r(x.order, k->count, sizeof *x.order, by_name, (void *)(uintptr_t)k);
    return x;
}

void fl_kinds_index_free(fl_kinds_index *x) {
    free(x->order);
    x->order = NULL;
}

const fl_kind_load *fl_kinds_index_find(const fl_kinds_index *x, const char *name) {
    const fl_kinds *k = x->kinds;
    if (!x->order)
        return k ? fl_kinds_find(k, name) : NULL;
    size_t low = 0, high = k->count; /* the first row that does not come before the name */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(k->kind[x->order[middle]].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < k->count && !strcmp(k->kind[x->order[low]].name, name))
        return &k->kind[x->order[low]];
    return x->any;
}
