#include "harness/log/sensorlog.h"

#include "traces/files/tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The signals that NVML always has: no profiling counters, because their collection would change the run. */
static const int column[] = {FL_GPU_POWER_W, FL_GPU_ENERGY_J, FL_GPU_UTIL_GPU_PCT, FL_GPU_UTIL_MEM_PCT,
                             FL_GPU_SM_MHZ,  FL_GPU_MEM_MHZ,  FL_GPU_TEMP_C,       FL_GPU_THROTTLE};
enum { COLUMNS = sizeof column / sizeof *column };

const uint64_t fl_sensorlog_needs = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_UTIL_GPU_PCT) |
                                    FL_BIT(FL_GPU_UTIL_MEM_PCT) | FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_MEM_MHZ) |
                                    FL_BIT(FL_GPU_TEMP_C) | FL_BIT(FL_GPU_THROTTLE);

fl_status fl_sensorlog_open(fl_sensorlog *l, fl_diag *d) {
    fl_telemetry *t = &l->t;
    t->signal = calloc(COLUMNS, sizeof *t->signal);
    for (; t->signal && t->signal_count < COLUMNS; t->signal_count++)
        if (!(t->signal[t->signal_count] =
                  strdup(fl_rows_at(FL_ROWS_GPU_SIGNAL, (size_t)column[t->signal_count])->name)))
            return fl_no_memory(d, "the log");
    return t->signal ? FL_OK : fl_no_memory(d, "the log");
}

fl_status fl_sensorlog_add(fl_sensorlog *l, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d) {
    fl_telemetry *t = &l->t;
    const size_t rows = t->row_count + count;
    if (fl_grow(&t->t_ns, &l->room_t, rows, sizeof *t->t_ns) ||
        fl_grow(&t->device, &l->room_d, rows, sizeof *t->device) ||
        fl_grow(&t->value, &l->room_v, rows * COLUMNS, sizeof *t->value))
        return fl_no_memory(d, "the log");
    for (uint32_t i = 0; i < count; i++) {
        double *v = t->value + t->row_count * COLUMNS;
        for (size_t k = 0; k < COLUMNS; k++)
            v[k] = gpu[i].valid >> column[k] & 1 ? gpu[i].value[column[k]] : (double)NAN;
        t->t_ns[t->row_count] = t_ps / FL_PS_PER_NS;
        t->device[t->row_count++] = (int32_t)i;
    }
    return FL_OK;
}

fl_status fl_sensorlog_write(fl_sensorlog *l, const char *path, const char *workload, const char *platform,
                             int64_t makespan_ps, fl_diag *d) {
    char program[64];
    (void)snprintf(program, sizeof program, "0 to %lld ns", (long long)(makespan_ps / FL_PS_PER_NS));
    if (!fl_head_set(&l->t.head, "source", "foldline run: as the simulated sensors show it") ||
        !fl_head_set(&l->t.head, "workload", workload) || !fl_head_set(&l->t.head, "platform", platform) ||
        !fl_head_set(&l->t.head, "program", program))
        return fl_no_memory(d, "the log");
    return fl_telemetry_write(path, &l->t, d);
}

void fl_sensorlog_free(fl_sensorlog *l) {
    fl_telemetry_free(&l->t);
    *l = (fl_sensorlog){0};
}
