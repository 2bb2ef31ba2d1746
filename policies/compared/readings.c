#include "policies/compared/readings.h"

#include <math.h>

int fl_readings_known(const fl_gpu_sample *s) {
    return (s->valid & FL_READINGS_NEEDS) == FL_READINGS_NEEDS && isfinite(s->value[FL_GPU_POWER_W]) &&
           isfinite(s->value[FL_GPU_UTIL_GPU_PCT]) && isfinite(s->value[FL_GPU_UTIL_MEM_PCT]);
}

void fl_readings_add(fl_readings *r, const fl_gpu_sample *s, int64_t now_ns) {
    if (r->count == FL_FFT_MAX || !fl_readings_known(s))
        return;
    if (r->count == 0)
        r->first_ns = now_ns;
    r->last_ns = now_ns;
    r->power_w[r->count] = (float)s->value[FL_GPU_POWER_W];
    r->gpu_pct[r->count] = (float)s->value[FL_GPU_UTIL_GPU_PCT];
    r->mem_pct[r->count++] = (float)s->value[FL_GPU_UTIL_MEM_PCT];
}

/* Seconds between samples, on average; 0 for fewer than two. */
static double spacing_s(const fl_readings *r) {
    return r->count > 1 ? (double)(r->last_ns - r->first_ns) * 1e-9 / (r->count - 1) : 0;
}

double fl_readings_length_s(const fl_readings *r) { return r->count * spacing_s(r); }

fl_readings_mean fl_readings_last(const fl_readings *r, double seconds) {
    const double spacing = spacing_s(r), wanted = spacing > 0 ? rint(seconds / spacing) : 1;
    const uint32_t count = (uint32_t)fmin(r->count, fmax(1, wanted));
    fl_readings_mean m = {0, 0, 0};
    for (uint32_t i = r->count - count; i < r->count; i++) {
        m.power_w += (double)r->power_w[i] / count;
        m.gpu_pct += (double)r->gpu_pct[i] / count;
        m.mem_pct += (double)r->mem_pct[i] / count;
    }
    return m;
}

double fl_readings_limit_w(const fl_gpu_facts *f) {
    return f->power_default_w > 0 ? f->power_default_w : f->power_max_w > 0 ? f->power_max_w : f->tdp_w;
}
