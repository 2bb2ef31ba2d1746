#include "tests/bench/result.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"

#include <cjson/cJSON.h>

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

static const char *const measure_names[] = {"ratio", "rate", "time", "memory"};

bool fl_bench_less_is_better(const fl_bench_row *row) {
    return row->measure == FL_BENCH_TIME || row->measure == FL_BENCH_MEMORY;
}

fl_bench_figure *fl_bench_figures(const fl_bench *b, size_t *count) {
    size_t rows = 0;
    while (*fl_bench_rows[rows].key)
        rows++;
    fl_bench_figure *f = calloc(rows + 1, sizeof *f);
    *count = 0;
    for (size_t i = 0; f && i < rows; i++) {
        const fl_bench_row *row = &fl_bench_rows[i];
        const fl_bench_result *r = &b->result[i];
        if (!r->count)
            continue;
        fl_bench_figure *at = &f[(*count)++];
        gsl_sort(r->value, 1, r->count);
        *at = (fl_bench_figure){.row = row,
                                .value = gsl_stats_median_from_sorted_data(r->value, 1, r->count),
                                .step_ns = r->step_ns,
                                .per_second = r->per_second,
                                .brief = r->brief};
        at->noise = r->count > 1 ? (r->value[r->count - 1] - r->value[0]) / 2 / fabs(at->value) : NAN;
        at->of_goal = fl_bench_less_is_better(row) ? row->goal / at->value : at->value / row->goal;
        at->relative = row->measure == FL_BENCH_RATE   ? r->value[r->count - 1] / b->bare
                       : row->measure == FL_BENCH_TIME ? r->value[0] * b->bare
                                                       : at->value;
    }
    return f;
}

static void number(fl_grid *g, double value) {
    const double size = fabs(value);
    fl_grid_add(g, size >= 100 ? "%.0f" : size >= 10 ? "%.1f" : size >= 1 ? "%.2f" : "%.3f", value);
}

void fl_bench_print(const fl_bench_figure *f, size_t count, FILE *out) {
    static const char *const head[] = {"row",  "what",    "value",       "unit",   "noise",
                                       "goal", "of goal", "M kernels/s", "ns/step"};
    fl_grid g = {.columns = sizeof head / sizeof *head};
    for (size_t i = 0; i < g.columns; i++)
        fl_grid_add(&g, "%s", head[i]);
    for (size_t i = 0; i < count; i++) {
        fl_grid_add(&g, "%s\t%s", f[i].row->key, f[i].row->what);
        number(&g, f[i].value);
        fl_grid_add(&g, "%s", f[i].row->unit);
        if (isnan(f[i].noise))
            fl_grid_add(&g, "one round");
        else
            fl_grid_add(&g, "%.0f %%", 100 * f[i].noise);
        if (isnan(f[i].row->goal))
            fl_grid_add(&g, "-");
        else
            fl_grid_add(&g, "%g", f[i].row->goal);
        if (isnan(f[i].of_goal))
            fl_grid_add(&g, "-");
        else if (f[i].of_goal >= 1)
            fl_grid_add(&g, "met");
        else
            fl_grid_add(&g, "%.2f", f[i].of_goal);
        if (f[i].per_second > 0)
            number(&g, f[i].per_second / 1e6);
        else
            fl_grid_add(&g, "-");
        if (f[i].step_ns > 0)
            number(&g, f[i].step_ns);
        else
            fl_grid_add(&g, "-");
    }
    fl_grid_print(&g, 2, out);
}

cJSON *fl_bench_json(const fl_bench_figure *f, size_t count) {
    cJSON *all = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++) {
        cJSON *o = fl_json_add_row(all);
        cJSON_AddStringToObject(o, "key", f[i].row->key);
        cJSON_AddStringToObject(o, "what", f[i].row->what);
        cJSON_AddStringToObject(o, "unit", f[i].row->unit);
        cJSON_AddStringToObject(o, "measure", measure_names[f[i].row->measure]);
        fl_json_add_real(o, "value", f[i].value);
        fl_json_add_real(o, "noise", f[i].noise);
        fl_json_add_real(o, "relative", f[i].relative);
        fl_json_add_real(o, "goal", f[i].row->goal);
        fl_json_add_real(o, "of_goal", f[i].of_goal);
        fl_json_add_real(o, "step_ns", f[i].step_ns > 0 ? f[i].step_ns : NAN);
        fl_json_add_real(o, "kernels_per_s", f[i].per_second > 0 ? f[i].per_second : NAN);
    }
    return all;
}
