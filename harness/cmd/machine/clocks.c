/* Gives each recorded kernel the clock that it had, from the readings of the same run. */
#include "harness/cmd/machine/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/profiler/profiler.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { CLOCK_STEP = 15, CLASSES_MOST = 60000, GPUS_MOST = 64 };

/* The column of the SM clock; signal_count: none. */
static size_t clock_column(const fl_telemetry *t) {
    size_t c = 0;
    while (c < t->signal_count && strcmp(t->signal[c], "sm_mhz") != 0)
        c++;
    return c;
}

/* A reading is as old as up to one refresh of the sensor (100 ms on an H200), which the changes tell: half of the
 * shortest time between two of them. The readings are moved back by it, and not before 0. */
static void date_clocks(fl_telemetry *t, size_t column) {
    double last[GPUS_MOST] = {0};
    int64_t changed[GPUS_MOST] = {0}, least = INT64_MAX;
    for (size_t i = 0; i < t->row_count; i++) {
        const int32_t g = t->device[i];
        const double mhz = t->value[i * t->signal_count + column];
        if (g < 0 || g >= GPUS_MOST || isnan(mhz) || mhz == last[g])
            continue;
        if (last[g] > 0 && changed[g] && t->t_ns[i] - changed[g] < least)
            least = t->t_ns[i] - changed[g];
        changed[g] = t->t_ns[i];
        last[g] = mhz;
    }
    for (size_t i = 0; least < INT64_MAX && i < t->row_count; i++)
        t->t_ns[i] = t->t_ns[i] > least / 2 ? t->t_ns[i] - least / 2 : 0;
}

/* Whether each GPU that ran a kernel has readings of its clock: else one would get another's. */
static bool clocks_known(const fl_kernel_trace *k, const fl_telemetry *t, size_t column) {
    bool known[GPUS_MOST] = {false};
    for (size_t i = 0; column < t->signal_count && i < t->row_count; i++)
        if (t->device[i] >= 0 && t->device[i] < GPUS_MOST && !isnan(t->value[i * t->signal_count + column]))
            known[t->device[i]] = true;
    for (size_t i = 0; i < k->op_count; i++)
        if (k->ops[i].device < 0 || k->ops[i].device >= GPUS_MOST || !known[k->ops[i].device])
            return false;
    return true;
}

/* Each kind at each clock is a class of its own in a replay: clocks are rounded to steps of most ladders, and where
 * there are too many classes all the same, the commonest clock stands for all. */
static void round_clocks(fl_kernel_trace *k) {
    bool seen[UINT16_MAX / CLOCK_STEP + 2] = {false};
    size_t clocks = 0;
    for (size_t i = 0; i < k->op_count; i++) {
        const unsigned step = (k->ops[i].sm_mhz + CLOCK_STEP / 2u) / CLOCK_STEP;
        k->ops[i].sm_mhz = (uint16_t)(step * CLOCK_STEP);
        clocks += !seen[step];
        seen[step] = true;
    }
    for (size_t i = 0; clocks * k->kind_count > CLASSES_MOST && i < k->op_count; i++)
        k->ops[i].sm_mhz = 0;
}

fl_status fl_record_clocks(fl_kernel_trace *k, fl_telemetry *t, void (*say)(void *user, const char *line), void *user,
                           fl_diag *d) {
    const size_t column = clock_column(t);
    if (!clocks_known(k, t, column))
        return FL_OK;
    date_clocks(t, column);
    fl_imported run = {.kernels = *k, .telemetry = *t};
    fl_status s = fl_join(&run, 0, d);
    for (size_t i = 0; !s && i < run.note_count; i++)
        say(user, run.note[i]);
    *k = run.kernels;
    *t = run.telemetry;
    run.kernels = (fl_kernel_trace){0};
    run.telemetry = (fl_telemetry){0};
    fl_imported_free(&run);
    round_clocks(k);
    return s;
}
