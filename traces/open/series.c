#include "traces/open/stats.h"

#include "traces/files/activity.h"
#include "traces/io/csv.h"
#include "traces/io/writing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 1024, SIGNALS = 3 };

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

/* Means of the readings in each bin; one without any holds that before, up to the last reading. */
static void bin_signal(const fl_telemetry *t, const char *name, int32_t device, int64_t from, double width, size_t bins,
                       double *mean, size_t *count) {
    size_t last = 0;
    memset(count, 0, bins * sizeof *count);
    for (size_t b = 0; b < bins; b++)
        mean[b] = NAN;
    for (size_t i = 0; i < t->signal_count; i++)
        for (size_t n = 0; !strcmp(t->signal[i], name) && n < t->row_count; n++) {
            double v = t->value[n * t->signal_count + i], at = ((double)t->t_ns[n] - (double)from) / width;
            if (t->device[n] != device || isnan(v) || !(at >= 0 && at < (double)bins))
                continue;
            size_t b = (size_t)at;
            count[b]++;
            mean[b] = count[b] == 1 ? v : mean[b] + (v - mean[b]) / (double)count[b];
            last = b > last ? b : last;
        }
    for (size_t b = 1; b < last; b++)
        mean[b] = isnan(mean[b]) ? mean[b - 1] : mean[b];
}

static fl_status put_device(FILE *file, const fl_imported *run, int32_t device, int64_t from, double width, size_t bins,
                            double *mean, size_t *count, fl_diag *d) {
    fl_activity kernels = {0}, copies = {0};
    fl_status status = fl_activity_make(&kernels, &run->kernels, device, FL_OP_KERNEL);
    if (!status)
        status = fl_activity_make(&copies, &run->kernels, device, FL_OP_COPY);
    for (size_t i = 0; i < SIGNALS; i++)
        bin_signal(&run->telemetry, SIGNAL[i], device, from, width, bins, mean + i * bins, count);
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

fl_status fl_stats_write_series(const char *path, const fl_imported *run, size_t bins, fl_diag *d) {
    int64_t from, to;
    fl_stats s;
    fl_status status = fl_stats_make(&s, run, d);
    if (status)
        return status;
    widen(run, &from, &to);
    double width = from < to && bins ? ((double)to - (double)from) / (double)bins : 1;
    double *mean = malloc((bins + 1) * SIGNALS * sizeof *mean);
    size_t *count = malloc((bins + 1) * sizeof *count);
    fl_output *o = mean && count ? fl_output_open(path, d) : NULL;
    if (!mean || !count)
        status = fl_no_memory(d, NULL);
    else if (!o)
        status = d ? d->status : FL_IO;
    if (o) {
        fputs("t_s,device,busy_pct,copy_pct,power_w,sm_mhz,util_gpu_pct\n", fl_output_file(o));
        for (size_t i = 0; i < s.device_count && !status; i++)
            status = put_device(fl_output_file(o), run, s.device[i].device, from, width, bins, mean, count, d);
        if (!status)
            status = fl_output_commit(o, d);
        else
            fl_output_abort(o);
    }
    free(mean);
    free(count);
    fl_stats_free(&s);
    return status;
}
