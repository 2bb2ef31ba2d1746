#include "harness/fit/policy/state_runs.h"

#include "traces/io/columns.h"
#include "traces/io/csv.h"
#include "traces/io/writing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "foldline-state-runs"

enum {
    KERNEL,
    CPU_MHZ,
    SM_MHZ,
    TIME_S,
    ENERGY_J,
    FIRST_METRIC,
    REQUIRED = FIRST_METRIC + FL_METRICS,
    COLUMNS = FIRST_METRIC + FL_METRICS_ALL
};

#define METRICS "weighted_alu_busy", "global_mem_util", "clock_weighted_upc", "alu_busy", "gpu_clock_busy"

static const char *const COLUMN[COLUMNS] = {"kernel", "cpu_mhz", "sm_mhz", "time_s", "energy_j", METRICS};

const char *const fl_metric_names[FL_METRICS_ALL] = {METRICS};

void fl_state_runs_free(fl_state_runs *r) {
    for (size_t i = 0; i < r->count; i++)
        free(r->run[i].kernel);
    free(r->run);
    *r = (fl_state_runs){0};
}

fl_status fl_state_runs_add(fl_state_runs *r, const fl_state_run *run, fl_diag *d) {
    char *kernel = strdup(run->kernel);
    if (!kernel || fl_grow(&r->run, &r->room, r->count + 1, sizeof *r->run)) {
        free(kernel);
        return fl_no_memory(d, "the runs over states");
    }
    r->run[r->count] = *run;
    r->run[r->count++].kernel = kernel;
    return FL_OK;
}

typedef struct loader {
    fl_state_runs r;
    size_t where[COLUMNS], width;
} loader;

static bool known_pair(const fl_state_runs *r, const fl_state_run *run) {
    for (size_t i = 0; i < r->count; i++)
        if (r->run[i].cpu_mhz == run->cpu_mhz && r->run[i].sm_mhz == run->sm_mhz &&
            !strcmp(r->run[i].kernel, run->kernel))
            return true;
    return false;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, l->where, d);
    }
    char kernel[1024];
    fl_state_run run = {.kernel = kernel};
    double *const into[COLUMNS] = {[CPU_MHZ] = &run.cpu_mhz, [SM_MHZ] = &run.sm_mhz, [TIME_S] = &run.time_s};
    fl_status s = fl_columns_width(row, l->width, d);
    if (s)
        return s;
    snprintf(kernel, sizeof kernel, "%s", row->field[l->where[KERNEL]].text);
    for (int c = CPU_MHZ; !s && c <= TIME_S; c++)
        s = fl_field_real(row, l->where[c], COLUMN[c], 1e-9, 1e9, into[c], d);
    if (!s)
        s = fl_field_real_or_nan(row, l->where[ENERGY_J], COLUMN[ENERGY_J], 0, HUGE_VAL, &run.energy_j, d);
    for (int m = 0; !s && m < FL_METRICS_ALL; m++) {
        const size_t at = l->where[FIRST_METRIC + m];
        run.metric[m] = NAN;
        if (at != SIZE_MAX)
            s = fl_field_real_or_nan(row, at, COLUMN[FIRST_METRIC + m], 0, 1e6, &run.metric[m], d);
    }
    if (!s && known_pair(&l->r, &run))
        s = FL_FIELD_FAIL(d, row, l->where[KERNEL], "a second run of '%.200s' at CPU %g MHz and GPU %g MHz", kernel,
                          run.cpu_mhz, run.sm_mhz);
    return s ? s : fl_state_runs_add(&l->r, &run, d);
}

fl_status fl_state_runs_read(const char *path, fl_state_runs *r, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = FORMAT};
    fl_head head = {0};
    loader l = {0};
    fl_status s = fl_csv_read(path, &OPTIONS, &head, on_row, &l, d);
    fl_head_free(&head);
    if (!s && !l.r.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no runs, expected at least one row after the header");
    if (s)
        fl_state_runs_free(&l.r);
    *r = l.r;
    return s;
}

fl_status fl_state_runs_write(const char *path, const fl_state_runs *r, const char *source, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d ? d->status : FL_IO;
    FILE *f = fl_output_file(o);
    fl_head head = {0};
    fl_status s = fl_head_set(&head, "source", source) ? fl_put_head(f, path, FORMAT, &head, d) : fl_no_memory(d, NULL);
    fl_head_free(&head);
    if (s) {
        fl_output_abort(o);
        return s;
    }
    for (int c = 0; c < COLUMNS; c++)
        fprintf(f, "%s%s", c ? "," : "", COLUMN[c]);
    fputc('\n', f);
    for (size_t i = 0; i < r->count; i++) {
        const fl_state_run *run = &r->run[i];
        const double value[] = {run->cpu_mhz,   run->sm_mhz,    run->time_s,    run->energy_j, run->metric[0],
                                run->metric[1], run->metric[2], run->metric[3], run->metric[4]};
        fl_csv_put(f, run->kernel);
        for (size_t c = 0; c < sizeof value / sizeof *value; c++) {
            fputc(',', f);
            fl_put_real(f, value[c]);
        }
        fputc('\n', f);
    }
    return fl_output_commit(o, d);
}

fl_status fl_state_runs_kernels(const fl_state_runs *r, size_t **first, size_t *count, fl_diag *d) {
    *count = 0;
    *first = malloc((r->count + 1) * sizeof **first);
    if (!*first)
        return fl_no_memory(d, "the runs over states");
    for (size_t i = 0; i < r->count; i++) {
        size_t k = 0;
        while (k < *count && strcmp(r->run[(*first)[k]].kernel, r->run[i].kernel) != 0)
            k++;
        if (k == *count)
            (*first)[(*count)++] = i;
    }
    return FL_OK;
}

static double ed2(const fl_state_run *run) { return run->energy_j * run->time_s * run->time_s; }

size_t fl_state_runs_best(const fl_state_runs *r, size_t first, double cpu_from) {
    size_t best = r->count;
    for (size_t i = first; i < r->count; i++) {
        const fl_state_run *run = &r->run[i];
        if (run->cpu_mhz < cpu_from || strcmp(run->kernel, r->run[first].kernel) != 0)
            continue;
        if (isnan(run->energy_j))
            return r->count;
        const fl_state_run *than = best < r->count ? &r->run[best] : NULL;
        const bool higher =
            than && (run->sm_mhz > than->sm_mhz || (run->sm_mhz == than->sm_mhz && run->cpu_mhz > than->cpu_mhz));
        if (!than || ed2(run) < ed2(than) || (ed2(run) == ed2(than) && higher))
            best = i;
    }
    return best;
}

fl_status fl_state_runs_write_best(const char *path, const fl_state_runs *r, double cpu_from, fl_diag *d) {
    size_t *first, count;
    fl_status s = fl_state_runs_kernels(r, &first, &count, d);
    for (size_t k = 0; !s && k < count; k++)
        if (fl_state_runs_best(r, first[k], cpu_from) == r->count)
            s = fl_refuse(d, "no energy for '%s', expected it at every pair of states, some from %g MHz on",
                          r->run[first[k]].kernel, cpu_from);
    fl_output *o = s ? NULL : fl_output_open(path, d);
    if (!o) {
        free(first);
        return s ? s : d ? d->status : FL_IO;
    }
    FILE *f = fl_output_file(o);
    fputs("kernel,cpu_mhz,sm_mhz\n", f);
    for (size_t k = 0; k < count; k++) {
        const fl_state_run *run = &r->run[fl_state_runs_best(r, first[k], cpu_from)];
        fl_csv_put(f, run->kernel);
        fprintf(f, ",%g,%g\n", run->cpu_mhz, run->sm_mhz);
    }
    free(first);
    return fl_output_commit(o, d);
}
