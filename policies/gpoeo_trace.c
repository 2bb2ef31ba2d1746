#include "policies/gpoeo_trace.h"

#include <math.h>

void fl_gpoeo_trace_begin(fl_gpoeo_trace *t, int64_t begin_ns, int64_t length_ns) {
    t->begin_ns = begin_ns;
    t->end_ns = begin_ns + length_ns;
    t->readings.count = 0;
}

void fl_gpoeo_trace_count(fl_gpoeo_trace *t, const fl_sample *sample, uint32_t gpu) {
    for (uint64_t i = 0; sample->record && i < sample->record_count; i++)
        t->kernels += sample->record[i].gpu == gpu && sample->record[i].end_ns >= 0 ? 1 : 0;
}

void fl_gpoeo_trace_read(fl_gpoeo_trace *t, const fl_gpu_sample *s, int64_t now_ns) {
    if (!t->readings.count) {
        t->from_kernels = t->kernels;
        t->from_ns = now_ns;
    }
    fl_readings_add(&t->readings, s, now_ns);
    t->last_ns = now_ns;
}

double fl_gpoeo_trace_power_w(const fl_gpoeo_trace *t) { return fl_readings_last(&t->readings, 1e9).power_w; }

double fl_gpoeo_trace_kernel_s(const fl_gpoeo_trace *t) {
    const double seconds = (double)(t->last_ns - t->from_ns) * 1e-9, kernels = t->kernels - t->from_kernels;
    return kernels > 0 && seconds > 0 ? seconds / kernels : (double)NAN;
}

int fl_gpoeo_trace_period(fl_gpoeo_trace *t, double limit_w, double spread, fl_gpoeo_period *p) {
    *p = fl_gpoeo_find(&t->work, &t->readings, limit_w, spread);
    const double missing = fl_gpoeo_missing_s(fl_readings_length_s(&t->readings), *p);
    if (!(missing > 0) || t->readings.count == FL_FFT_MAX)
        return 1;
    t->end_ns += (int64_t)(missing * 1e9 + 0.5);
    return 0;
}
