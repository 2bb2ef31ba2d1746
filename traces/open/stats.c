/* A trace in numbers, for `foldline trace`. */
#include "traces/open/open.h"

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

enum { DEVICES_MAX = 1024 };

/* ---- names ---- */

static int by_total(const void *a, const void *b) {
    const fl_name_stats *x = a, *y = b;
    if (x->total_s > y->total_s || x->total_s < y->total_s)
        return x->total_s > y->total_s ? -1 : 1;
    return strcmp(x->name, y->name);
}

static fl_status make_names(fl_stats *s, const fl_kernel_trace *t, fl_diag *d) {
    s->name = calloc(t->name_count + 1, sizeof *s->name);
    bool *seen = calloc(t->kind_count + 1, sizeof *seen);
    if (!s->name || !seen) {
        free(seen);
        return fl_no_memory(d, NULL);
    }
    for (size_t i = 0; i < t->op_count; i++) {
        const fl_trace_op *op = &t->ops[i];
        if (op->type != FL_OP_KERNEL)
            continue;
        fl_name_stats *n = &s->name[t->kinds[op->kind].name];
        double length = (double)(op->end_ns - op->start_ns) * 1e-9;
        n->name = t->names[t->kinds[op->kind].name];
        n->min_s = !n->count || length < n->min_s ? length : n->min_s;
        n->max_s = length > n->max_s ? length : n->max_s;
        n->total_s += length;
        n->count++;
        n->kinds += !seen[op->kind];
        s->kinds += !seen[op->kind];
        seen[op->kind] = true;
    }
    free(seen);
    for (size_t i = 0; i < t->name_count; i++)
        if (s->name[i].count)
            s->name[s->name_count++] = s->name[i];
    qsort(s->name, s->name_count, sizeof *s->name, by_total);
    return FL_OK;
}

/* ---- lanes ---- */

typedef struct lane {
    int32_t device, process, stream;
} lane;

static bool same_lane(const void *owner, uint32_t index, const void *key) {
    return !memcmp((const lane *)owner + index, key, sizeof(lane));
}

static fl_device_stats *device_of(fl_stats *s, int32_t device) {
    for (size_t i = 0; i < s->device_count; i++)
        if (s->device[i].device == device)
            return &s->device[i];
    return NULL;
}

/* Streams per device; processes are counted by lanes of stream 0 of device 0, so to say. */
static fl_status count_lanes(fl_stats *s, const fl_kernel_trace *t, fl_diag *d) {
    fl_intern lanes = {0}, processes = {0};
    lane *lane_at = NULL, *process_at = NULL;
    size_t lane_room = 0, process_room = 0;
    fl_status status = FL_OK;
    for (size_t i = 0; i < t->op_count && !status; i++) {
        const fl_trace_op *op = &t->ops[i];
        if (op->type != FL_OP_KERNEL && op->type != FL_OP_COPY)
            continue;
        const lane key[2] = {{op->device, op->process, op->stream}, {0, op->process, 0}};
        fl_intern_slot *slot = fl_intern_find(&lanes, fl_hash(&key[0], sizeof *key), same_lane, lane_at, &key[0]);
        if (slot && slot->index == UINT32_MAX) {
            fl_device_stats *v = device_of(s, op->device);
            if (fl_grow(&lane_at, &lane_room, s->streams + 1, sizeof *lane_at))
                status = fl_no_memory(d, NULL);
            else {
                lane_at[s->streams] = key[0];
                slot->index = (uint32_t)s->streams++;
                if (v)
                    v->streams++;
            }
        }
        fl_intern_slot *own = fl_intern_find(&processes, fl_hash(&key[1], sizeof *key), same_lane, process_at, &key[1]);
        if (own && own->index == UINT32_MAX && !status) {
            if (fl_grow(&process_at, &process_room, s->processes + 1, sizeof *process_at))
                status = fl_no_memory(d, NULL);
            else {
                process_at[s->processes] = key[1];
                own->index = (uint32_t)s->processes++;
            }
        }
        if (!slot || !own)
            status = fl_no_memory(d, NULL);
    }
    fl_intern_free(&lanes);
    fl_intern_free(&processes);
    free(lane_at);
    free(process_at);
    return status;
}

/* ---- devices ---- */

static fl_status make_gaps(fl_device_stats *v, const fl_kernel_trace *t, fl_diag *d) {
    static const double UP_TO[FL_STATS_GAPS] = {1e-5, 1e-4, 1e-3, 1e-2, INFINITY};
    fl_activity kernels = {0}, copies = {0};
    fl_status status = fl_activity_make(&kernels, t, v->device, FL_OP_KERNEL);
    if (!status)
        status = fl_activity_make(&copies, t, v->device, FL_OP_COPY);
    if (!status) {
        v->busy_s = (double)kernels.busy_ns * 1e-9;
        v->copy_s = (double)copies.busy_ns * 1e-9;
        for (size_t i = 1; i < kernels.count; i++) {
            double gap = (double)(kernels.start_ns[i] - kernels.end_ns[i - 1]) * 1e-9;
            size_t c = 0;
            while (gap >= UP_TO[c])
                c++;
            v->gaps++;
            v->gap_s += gap;
            v->gap_count[c]++;
            v->gap_class_s[c] += gap;
            v->longest_gap_s = gap > v->longest_gap_s ? gap : v->longest_gap_s;
        }
    }
    fl_activity_free(&kernels);
    fl_activity_free(&copies);
    return !status ? FL_OK : fl_no_memory(d, NULL);
}

static fl_status make_telemetry(fl_device_stats *v, const fl_telemetry *t, int64_t from, int64_t to, fl_diag *d) {
    const fl_held_over line = {from, to, true}, steps = {from, to, false};
    fl_held power = {0}, energy = {0}, clock = {0}, util = {0};
    double *time = malloc((t->row_count + 1) * sizeof *time), *room = malloc((t->row_count + 1) * sizeof *room);
    fl_status s = time && room ? FL_OK : fl_no_memory(d, NULL);
    for (size_t n = 0; !s && n < t->row_count; n++)
        if (t->device[n] == v->device)
            time[v->readings++] = (double)t->t_ns[n] * 1e-9;
    const double longest = s ? 0 : FL_PAUSE_SPACINGS * fl_usual_spacing(time, v->readings, room);
    v->interval_s = v->readings > 1 && !s ? room[(v->readings - 1) / 2] : (double)NAN;
    v->covered_s = 0;
    for (size_t i = 1; i < v->readings; i++)
        v->covered_s += time[i] - time[i - 1] <= longest ? time[i] - time[i - 1] : 0;
    free(time);
    free(room);
    if (!s)
        s = fl_telemetry_held(t, "power_w", v->device, &line, &power, d);
    if (!s && isnan(power.mean))
        s = fl_telemetry_held(t, "power_instant_w", v->device, &line, &power, d);
    if (!s)
        s = fl_telemetry_held(t, "energy_j", v->device, &line, &energy, d);
    if (!s)
        s = fl_telemetry_held(t, "sm_mhz", v->device, &steps, &clock, d);
    if (!s)
        s = fl_telemetry_held(t, "util_gpu_pct", v->device, &steps, &util, d);
    v->power_w = power.mean;
    v->counted = energy.count > 1 && energy.gained > 0 && !energy.falls;
    v->energy_j = v->counted ? energy.gained : power.integral;
    v->sm_mhz = clock.mean;
    v->sm_mhz_min = clock.min;
    v->sm_mhz_max = clock.max;
    v->util_pct = util.mean;
    return s;
}

static fl_status list_devices(fl_stats *s, const fl_imported *run, fl_diag *d) {
    int32_t device[DEVICES_MAX];
    size_t count = fl_activity_devices(&run->kernels, device, DEVICES_MAX);
    for (size_t n = 0; n < run->telemetry.row_count && count < DEVICES_MAX; n++) {
        size_t k = 0;
        while (k < count && device[k] != run->telemetry.device[n])
            k++;
        if (k == count && run->telemetry.device[n] >= 0)
            device[count++] = run->telemetry.device[n];
    }
    s->device = calloc(count + 1, sizeof *s->device);
    if (!s->device)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < count; i++)
        s->device[s->device_count++] = (fl_device_stats){.device = device[i],
                                                         .power_w = NAN,
                                                         .energy_j = NAN,
                                                         .sm_mhz = NAN,
                                                         .sm_mhz_min = NAN,
                                                         .sm_mhz_max = NAN,
                                                         .util_pct = NAN,
                                                         .interval_s = NAN};
    return FL_OK;
}

/* The span of everything that counts for a device: its kernels and copies, or else its readings. */
static bool span_of(const fl_imported *run, int32_t device, int64_t *from, int64_t *to) {
    *from = INT64_MAX;
    *to = INT64_MIN;
    for (size_t i = 0; i < run->kernels.op_count; i++) {
        const fl_trace_op *op = &run->kernels.ops[i];
        if (op->device != device || (op->type != FL_OP_KERNEL && op->type != FL_OP_COPY))
            continue;
        *from = op->start_ns < *from ? op->start_ns : *from;
        *to = op->end_ns > *to ? op->end_ns : *to;
    }
    for (size_t n = 0; *from > *to && !run->kernels.op_count && n < run->telemetry.row_count; n++)
        *from = run->telemetry.device[n] == device && run->telemetry.t_ns[n] < *from ? run->telemetry.t_ns[n] : *from;
    for (size_t n = 0; !run->kernels.op_count && n < run->telemetry.row_count; n++)
        *to = run->telemetry.device[n] == device && run->telemetry.t_ns[n] > *to ? run->telemetry.t_ns[n] : *to;
    return *from <= *to;
}

static void count_ops(fl_stats *s, const fl_kernel_trace *t) {
    for (size_t i = 0; i < t->op_count; i++) {
        const fl_trace_op *op = &t->ops[i];
        fl_device_stats *v = device_of(s, op->device);
        s->kernels += op->type == FL_OP_KERNEL;
        s->copies += op->type == FL_OP_COPY;
        s->syncs += op->type == FL_OP_SYNC;
        s->iterations += op->type == FL_OP_ITERATION;
        s->has_clocks |= op->sm_mhz > 0;
        if (!v)
            continue;
        v->kernels += op->type == FL_OP_KERNEL;
        v->copies += op->type == FL_OP_COPY;
        if (op->type == FL_OP_KERNEL)
            v->kernel_s += (double)(op->end_ns - op->start_ns) * 1e-9;
    }
    s->has_launches = t->has_launches;
    s->has_clocks |= fl_head_get(&t->head, "sm_mhz") != NULL;
}

fl_status fl_stats_make(fl_stats *s, const fl_imported *run, fl_diag *d) {
    int64_t first = INT64_MAX, last = INT64_MIN;
    memset(s, 0, sizeof *s);
    fl_status status = list_devices(s, run, d);
    if (!status)
        status = make_names(s, &run->kernels, d);
    if (!status) {
        s->names = s->name_count;
        count_ops(s, &run->kernels);
        status = count_lanes(s, &run->kernels, d);
    }
    for (size_t i = 0; i < s->device_count && !status; i++) {
        fl_device_stats *v = &s->device[i];
        int64_t from, to;
        if (!span_of(run, v->device, &from, &to))
            continue;
        first = from < first ? from : first;
        last = to > last ? to : last;
        v->span_s = (double)(to - from) * 1e-9;
        if (run->has_kernels)
            status = make_gaps(v, &run->kernels, d);
        if (!status && run->has_telemetry)
            status = make_telemetry(v, &run->telemetry, from, to, d);
    }
    for (size_t n = 0; n < run->telemetry.row_count && !s->device_count; n++) { /* of the host only */
        first = run->telemetry.t_ns[n] < first ? run->telemetry.t_ns[n] : first;
        last = run->telemetry.t_ns[n] > last ? run->telemetry.t_ns[n] : last;
    }
    s->duration_s = first <= last ? (double)(last - first) * 1e-9 : 0;
    s->first_s = first <= last ? (double)first * 1e-9 : 0;
    if (status)
        fl_stats_free(s);
    return status;
}

void fl_stats_free(fl_stats *s) {
    free(s->device);
    free(s->name);
    memset(s, 0, sizeof *s);
}

/* ---- series ---- */

enum { SERIES_DEVICES_MAX = 1024, SIGNALS = 3 };

static const char *const SIGNAL[SIGNALS] = {"power_w", "sm_mhz", "util_gpu_pct"};

static void widen(const fl_imported *run, int64_t *from, int64_t *to) {
    *from = INT64_MAX;
    *to = INT64_MIN;
    for (size_t i = 0; i < run->kernels.op_count; i++) {
        const fl_trace_op *op = &run->kernels.ops[i];
        *from = op->start_ns < *from ? op->start_ns : *from;
        *to = op->end_ns > *to ? op->end_ns : *to;
    }
    for (size_t n = 0; !run->kernels.op_count && n < run->telemetry.row_count; n++) {
        *from = run->telemetry.t_ns[n] < *from ? run->telemetry.t_ns[n] : *from;
        *to = run->telemetry.t_ns[n] > *to ? run->telemetry.t_ns[n] : *to;
    }
}

/* Means of the readings in each bin; one without any holds that before, up to the last reading, but not in a pause. */
static fl_status bin_signal(const fl_telemetry *t, const char *name, int32_t device, int64_t from, double width,
                            size_t bins, double *mean, size_t *count, fl_diag *d) {
    const size_t signal = fl_telemetry_signal(t, name);
    double longest = 0;
    size_t last = 0, filled = 0;
    memset(count, 0, bins * sizeof *count);
    for (size_t b = 0; b < bins; b++)
        mean[b] = NAN;
    if (signal == SIZE_MAX)
        return FL_OK;
    const fl_status s = fl_telemetry_longest(t, signal, device, &longest, d);
    for (size_t n = 0; !s && n < t->row_count; n++) {
        double v = t->value[n * t->signal_count + signal], at = ((double)t->t_ns[n] - (double)from) / width;
        if (t->device[n] != device || isnan(v) || !(at >= 0 && at < (double)bins))
            continue;
        size_t b = (size_t)at;
        count[b]++;
        mean[b] = count[b] == 1 ? v : mean[b] + (v - mean[b]) / (double)count[b];
        last = b > last ? b : last;
    }
    for (size_t b = 1; b <= last; b++) { /* up to the next bin with a reading, if that is near enough */
        filled = count[b - 1] ? b - 1 : filled;
        if (!count[b] || !count[filled] || (double)(b - filled) * width > longest)
            continue;
        for (size_t k = filled + 1; k < b; k++)
            mean[k] = mean[filled];
    }
    return s;
}

static fl_status put_device(FILE *file, const fl_imported *run, int32_t device, int64_t from, double width, size_t bins,
                            double *mean, size_t *count, fl_diag *d) {
    fl_activity kernels = {0}, copies = {0};
    fl_status status = fl_activity_make(&kernels, &run->kernels, device, FL_OP_KERNEL);
    if (!status)
        status = fl_activity_make(&copies, &run->kernels, device, FL_OP_COPY);
    for (size_t i = 0; i < SIGNALS && !status; i++)
        status = bin_signal(&run->telemetry, SIGNAL[i], device, from, width, bins, mean + i * bins, count, d);
    for (size_t b = 0; b < bins && !status; b++) {
        double low = (double)from + (double)b * width, high = low + width;
        fl_put_real(file, (low + width / 2 - (double)from) / 1e9);
        fprintf(file, ",%d", device);
        const fl_activity *of[2] = {&kernels, &copies};
        for (int k = 0; k < 2; k++) {
            fputc(',', file);
            if (run->kernels.op_count)
                fl_put_real(file, 100 * (fl_activity_until(of[k], high) - fl_activity_until(of[k], low)) / width);
        }
        for (size_t i = 0; i < SIGNALS; i++) {
            fputc(',', file);
            fl_put_real(file, mean[i * bins + b]);
        }
        fputc('\n', file);
    }
    fl_activity_free(&kernels);
    fl_activity_free(&copies);
    return !status ? FL_OK : fl_no_memory(d, NULL);
}

fl_status fl_stats_put_series(FILE *out, const fl_imported *run, size_t bins, fl_diag *d) {
    int64_t from, to;
    fl_stats s;
    fl_status status = fl_stats_make(&s, run, d);
    if (status)
        return status;
    widen(run, &from, &to);
    double width = from < to && bins ? ((double)to - (double)from) / (double)bins : 1;
    double *mean = malloc((bins + 1) * SIGNALS * sizeof *mean);
    size_t *count = malloc((bins + 1) * sizeof *count);
    if (!mean || !count)
        status = fl_no_memory(d, NULL);
    else
        fputs("t_s,device,busy_pct,copy_pct,power_w,sm_mhz,util_gpu_pct\n", out);
    for (size_t i = 0; i < s.device_count && !status; i++)
        status = put_device(out, run, s.device[i].device, from, width, bins, mean, count, d);
    free(mean);
    free(count);
    fl_stats_free(&s);
    return status;
}
