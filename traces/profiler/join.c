/* Kernels and telemetry of one run, put on one clock. */
#include "traces/profiler/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/profiler/profiler.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MHZ_MAX = UINT16_MAX, DEVICES_MAX = 1024 };

/* ---- devices ---- */

static bool one_device(const int32_t *first, size_t stride, size_t count, int32_t *device) {
    *device = -1;
    for (size_t i = 0; i < count; i++) {
        int32_t v = *(const int32_t *)(const void *)((const char *)first + i * stride);
        if (v < 0)
            continue;
        if (*device >= 0 && v != *device)
            return false;
        *device = v;
    }
    return *device >= 0;
}

fl_status fl_join_devices(fl_imported *run, fl_diag *d) {
    fl_telemetry *t = &run->telemetry;
    int32_t kernels, readings;
    if (!run->kernels.op_count ||
        !one_device(&run->kernels.ops[0].device, sizeof(fl_trace_op), run->kernels.op_count, &kernels) ||
        !one_device(t->device, sizeof *t->device, t->row_count, &readings) || kernels == readings)
        return FL_OK;
    for (size_t n = 0; n < t->row_count; n++)
        t->device[n] = t->device[n] == readings ? kernels : t->device[n];
    return fl_import_note(run, d, "device %d of the telemetry is taken for device %d of the kernels, each the only one",
                          readings, kernels);
}

/* ---- clocks ---- */

typedef struct clocks { /* readings of one signal of one device */
    int64_t *t_ns;
    double *sum; /* of the values before each, count + 1 */
    size_t count;
    int64_t reach_ns; /* how far a reading may be from a kernel */
} clocks;

static int by_time(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static fl_status clocks_make(clocks *c, const fl_telemetry *t, size_t signal, int32_t device, fl_diag *d) {
    *c = (clocks){.t_ns = malloc((t->row_count + 1) * sizeof *c->t_ns),
                  .sum = malloc((t->row_count + 1) * sizeof *c->sum)};
    int64_t *gap = malloc((t->row_count + 1) * sizeof *gap);
    if (!c->t_ns || !c->sum || !gap) {
        free(gap);
        return fl_no_memory(d, NULL);
    }
    c->sum[0] = 0;
    for (size_t n = 0; n < t->row_count; n++) {
        double v = t->value[n * t->signal_count + signal];
        if (t->device[n] != device || !(v >= 1 && v <= MHZ_MAX))
            continue;
        c->t_ns[c->count] = t->t_ns[n];
        gap[c->count] = c->count ? t->t_ns[n] - c->t_ns[c->count - 1] : INT64_MAX;
        c->sum[c->count + 1] = c->sum[c->count] + v;
        c->count++;
    }
    qsort(gap, c->count, sizeof *gap, by_time);
    c->reach_ns =
        c->count > 1 ? 2 * (gap[c->count / 2] < INT64_MAX / 4 ? gap[c->count / 2] : gap[0]) : INT64_C(1000000000);
    free(gap);
    return FL_OK;
}

static void clocks_free(clocks *c) {
    free(c->t_ns);
    free(c->sum);
}

/* First reading at or after t. */
static size_t at_or_after(const clocks *c, int64_t t) {
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->t_ns[middle] < t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* 0 = no reading near enough. */
static uint16_t clock_of(const clocks *c, const fl_trace_op *op) {
    size_t first = at_or_after(c, op->start_ns), last = at_or_after(c, op->end_ns);
    if (last > first)
        return (uint16_t)lround((c->sum[last] - c->sum[first]) / (double)(last - first));
    int64_t middle = op->start_ns + (op->end_ns - op->start_ns) / 2, near = INT64_MAX;
    uint16_t mhz = 0;
    for (size_t i = first ? first - 1 : 0; i <= first && i < c->count; i++) {
        int64_t away = llabs(c->t_ns[i] - middle);
        if (away >= near || away > c->reach_ns)
            continue;
        near = away;
        mhz = (uint16_t)lround(c->sum[i + 1] - c->sum[i]);
    }
    return mhz;
}

static size_t signal_of(const fl_telemetry *t, const char *name) {
    for (size_t i = 0; i < t->signal_count; i++)
        if (strcmp(t->signal[i], name) == 0)
            return i;
    return SIZE_MAX;
}

/* What most of the kernels' time was spent at. */
static int64_t commonest(const double *time) {
    int64_t best = 0;
    for (int64_t mhz = 1; mhz <= MHZ_MAX; mhz++)
        best = time[mhz] > (best ? time[best] : 0) ? mhz : best;
    return best;
}

static fl_status set_head(fl_head *head, const char *key, int64_t value, fl_diag *d) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return fl_head_set(head, key, text) ? FL_OK : fl_no_memory(d, NULL);
}

/* Fills mhz[op] (0 = not known, and for all that is no kernel) and the time spent at each clock. */
static fl_status read_clocks(const fl_imported *run, const char *name, uint16_t *mhz, double *time, fl_diag *d) {
    const fl_kernel_trace *k = &run->kernels;
    const size_t signal = signal_of(&run->telemetry, name);
    int32_t device[DEVICES_MAX];
    size_t devices = signal == SIZE_MAX ? 0 : fl_activity_devices(k, device, DEVICES_MAX);
    fl_status status = FL_OK;
    memset(mhz, 0, k->op_count * sizeof *mhz);
    for (size_t v = 0; v < devices && !status; v++) {
        clocks c;
        status = clocks_make(&c, &run->telemetry, signal, device[v], d);
        for (size_t i = 0; !status && i < k->op_count; i++) {
            const fl_trace_op *op = &k->ops[i];
            if (op->device != device[v] || op->type != FL_OP_KERNEL)
                continue;
            mhz[i] = clock_of(&c, op);
            time[mhz[i]] += (double)(op->end_ns - op->start_ns) + 1;
        }
        clocks_free(&c);
    }
    time[0] = 0;
    return status;
}

static fl_status give_clocks(fl_imported *run, fl_diag *d) {
    fl_kernel_trace *k = &run->kernels;
    uint16_t *mhz = malloc((k->op_count + 1) * sizeof *mhz);
    double *time = calloc(MHZ_MAX + 1, sizeof *time);
    size_t kernels = 0, known = 0;
    uint16_t low = MHZ_MAX, high = 0;
    fl_status status = mhz && time ? read_clocks(run, "sm_mhz", mhz, time, d) : fl_no_memory(d, NULL);
    for (size_t i = 0; !status && i < k->op_count; i++) {
        kernels += k->ops[i].type == FL_OP_KERNEL;
        known += mhz[i] > 0;
        low = mhz[i] && mhz[i] < low ? mhz[i] : low;
        high = mhz[i] > high ? mhz[i] : high;
    }
    if (!status && known) {
        int64_t common = commonest(time);
        for (size_t i = 0; i < k->op_count; i++)
            if (!k->ops[i].sm_mhz && low < high)
                k->ops[i].sm_mhz = mhz[i];
        if (!fl_head_get(&k->head, "sm_mhz"))
            status = set_head(&k->head, "sm_mhz", common, d);
        if (!status)
            status = fl_import_note(run, d, "%zu of %zu kernels have an SM clock from the telemetry, %u to %u MHz%s",
                                    known, kernels, (unsigned)low, (unsigned)high,
                                    known < kernels ? "; the others have the commonest" : "");
    } else if (!status) {
        status = fl_import_note(run, d, "the telemetry has no SM clock near the kernels: none is given to them");
    }
    if (!status) {
        memset(time, 0, (MHZ_MAX + 1) * sizeof *time);
        status = read_clocks(run, "mem_mhz", mhz, time, d);
        int64_t common = commonest(time);
        if (!status && common && !fl_head_get(&k->head, "mem_mhz"))
            status = set_head(&k->head, "mem_mhz", common, d);
    }
    free(mhz);
    free(time);
    return status;
}

/* ---- the whole ---- */

static fl_status shift_clock(fl_imported *run, int64_t offset_ns, fl_diag *d) {
    fl_telemetry *t = &run->telemetry;
    fl_kernel_trace *k = &run->kernels;
    int64_t first = INT64_MAX, add = 0, last = 0;
    for (size_t n = 0; n < t->row_count; n++) {
        int64_t moved;
        if (__builtin_sub_overflow(t->t_ns[n], offset_ns, &moved))
            return fl_refuse(d, "the offset of %lld ns is too large", (long long)offset_ns);
        first = moved < first ? moved : first;
    }
    add = first < 0 ? -first : 0;
    for (size_t i = 0; i < k->op_count; i++)
        last = k->ops[i].end_ns > last ? k->ops[i].end_ns : last;
    if (first == INT64_MIN || last > INT64_MAX - add)
        return fl_refuse(d, "the offset of %lld ns is too large", (long long)offset_ns);
    for (size_t n = 0; n < t->row_count; n++)
        t->t_ns[n] += add - offset_ns;
    for (size_t i = 0; add && i < k->op_count; i++) {
        k->ops[i].start_ns += add;
        k->ops[i].end_ns += add;
        k->ops[i].launch_ns += k->ops[i].launch_ns == INT64_MIN ? 0 : add;
    }
    return add ? fl_import_note(
                     run, d, "the telemetry begins %.9g s before time 0 of the kernels: all times are that much later",
                     (double)add * 1e-9)
               : FL_OK;
}

fl_status fl_join(fl_imported *run, int64_t offset_ns, fl_diag *d) {
    fl_status status = shift_clock(run, offset_ns, d);
    const char *device = fl_head_get(&run->telemetry.head, "device");
    if (!status && device && !fl_head_get(&run->kernels.head, "device") &&
        !fl_head_set(&run->kernels.head, "device", device))
        status = fl_no_memory(d, NULL);
    if (!status)
        status = set_head(&run->telemetry.head, "clock_offset_ns", offset_ns, d);
    if (!status)
        status = set_head(&run->kernels.head, "clock_offset_ns", offset_ns, d);
    return status ? status : give_clocks(run, d);
}
