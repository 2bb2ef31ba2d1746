#include "harness/plan/executed_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t fl_executed_left_out(size_t iterations) { return iterations > 5 ? 2 : 1; }

fl_status fl_executed_real(const fl_json *array, const cJSON *node, double min, double max, double *value, fl_diag *d) {
    if (cJSON_IsNumber(node) && node->valuedouble >= min && node->valuedouble <= max) {
        *value = node->valuedouble;
        return FL_OK;
    }
    fl_json at = fl_json_first(array); /* only for its place */
    while (at.node && at.node != node)
        at = fl_json_next(array, &at);
    return fl_json_real(&at, min, max, value, d);
}

static void mean_of(const double *x, size_t count, double out[2]) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < count; i++)
        sum += x[i];
    out[0] = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        square += (x[i] - out[0]) * (x[i] - out[0]);
    out[1] = count > 1 ? sqrt(square / (double)(count - 1)) : 0;
}

static fl_status read_series(const fl_json *rank, const char *key, size_t iterations, double *value, fl_diag *d) {
    fl_json all;
    fl_status s = fl_json_get_array(rank, key, &all, d);
    if (!s && fl_json_count(&all) != iterations)
        s = fl_json_fail(&all, d, "%zu iterations, expected %zu", fl_json_count(&all), iterations);
    size_t n = 0;
    for (const cJSON *node = s ? NULL : all.node->child; !s && node; node = node->next, n++) {
        double v = 0;
        s = fl_executed_real(&all, node, 1e-6, 1e9, &v, d);
        if (n >= fl_executed_left_out(iterations))
            value[n - fl_executed_left_out(iterations)] = v;
    }
    return s;
}

fl_status fl_executed_add_runs(const fl_json *rank_at, int64_t plan, fl_executed *e, size_t iterations, fl_diag *d) {
    const size_t kept = iterations - fl_executed_left_out(iterations);
    double *value = calloc(4 * kept, sizeof *value), *longest = value + 2 * kept, *sum = value + 3 * kept, whole[2][2];
    const size_t first = e->run_count;
    fl_status s = value ? FL_OK : fl_no_memory(d, "the plans");
    for (uint32_t rank = 0; !s && rank < e->ranks; rank++) {
        s = read_series(&rank_at[rank], "iter_time", iterations, value, d);
        if (!s)
            s = read_series(&rank_at[rank], "iter_energy", iterations, value + kept, d);
        if (!s && fl_grow(&e->run, &e->run_room, e->run_count + 1, sizeof *e->run))
            s = fl_no_memory(d, "the plans");
        if (s)
            break;
        fl_executed_run *r = &e->run[e->run_count++];
        *r = (fl_executed_run){.plan = plan, .rank = rank, .iterations = kept};
        mean_of(value, kept, r->time_s);
        mean_of(value + kept, kept, r->energy_j);
        for (size_t i = 0; i < kept; i++) {
            longest[i] = fmax(longest[i], value[i]);
            sum[i] += value[kept + i];
        }
    }
    if (!s) {
        mean_of(longest, kept, whole[0]);
        mean_of(sum, kept, whole[1]);
    }
    for (size_t i = first; !s && i < e->run_count; i++) {
        memcpy(e->run[i].plan_s, whole[0], sizeof whole[0]);
        memcpy(e->run[i].plan_j, whole[1], sizeof whole[1]);
    }
    free(value);
    return s;
}
