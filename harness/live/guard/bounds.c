#include "harness/live/guard/bounds.h"

#include <stdio.h>
#include <string.h>

#define NAME_AND_UNIT(id, name, unit, kind, meaning) {#name, unit},
static const struct { const char *name, *unit; } ROWS[] = {FL_GPU_SIGNALS(NAME_AND_UNIT)};

/* Of the units that are none of a counter's. Times the widest that the GPU's facts have, where they have it. */
static const struct {
    const char *unit;
    double low, high, times;
} UNITS[] = {{"%", 0, 101, 0}, /* some divide two counters: a little over 100 can be */
             {"C", 0, 150, 0},
             {"W", 0, 1e5, 10},  /* x the highest power limit */
             {"MHz", 1, 1e5, 2}, /* x the top of the ladder; an engine that stands has no clock */
             {"bits", 0, FL_THROTTLE_POWER + FL_THROTTLE_THERMAL + FL_THROTTLE_IDLE + FL_THROTTLE_OTHER, 0}};

static double widest(int signal, const fl_gpu_facts *f) {
    switch (signal) {
    case FL_GPU_SM_MHZ:
        return fl_ladder_max(f->sm);
    case FL_GPU_MEM_MHZ:
        return fl_ladder_max(f->mem);
    default:
        return f->power_max_w;
    }
}

void fl_bounds_set(fl_guard *guard, uint32_t gpu, const fl_gpu_facts *facts) {
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        for (size_t u = 0; u < sizeof UNITS / sizeof *UNITS; u++)
            if (!strcmp(ROWS[id].unit, UNITS[u].unit)) {
                const double most = UNITS[u].times * widest(id, facts);
                fl_guard_gpu_bounds(guard, gpu, id, UNITS[u].low, most > 0 ? most : UNITS[u].high);
            }
}

uint64_t fl_bounds_tell(const fl_guard *guard, uint32_t gpus, char *text, size_t size) {
    uint64_t all = 0;
    size_t at = 0;
    *text = '\0';
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++) {
        uint64_t count = 0;
        for (uint32_t i = 0; i < gpus; i++)
            count += fl_guard_gpu_absurd(guard, i, id);
        if (count && at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%s %llu", all ? ", " : "", ROWS[id].name,
                                   (unsigned long long)count);
        all += count;
    }
    return all;
}
