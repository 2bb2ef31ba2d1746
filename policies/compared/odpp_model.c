#include "policies/compared/odpp_model.h"

#include <math.h>

double fl_odpp_period_s(fl_fft *work, const fl_readings *r, double limit_w) {
    double x[FL_FFT_MAX], highest = 0;
    uint32_t best = 0;
    if (r->count < 2)
        return fl_readings_length_s(r);
    for (uint32_t i = 0; i < r->count; i++)
        x[i] = ((limit_w > 0 ? 100 * r->power_w[i] / limit_w : 0) + r->gpu_pct[i] + r->mem_pct[i]) / 3;
    fl_fft_magnitude(work, x, r->count, x);
    for (uint32_t k = 1; k + 1 <= r->count / 2; k++)
        if (x[k] > x[k - 1] && x[k] > x[k + 1] && x[k] > highest) {
            highest = x[k];
            best = k;
        }
    return fl_readings_length_s(r) / (best ? best : 1);
}

double fl_odpp_missing_s(double length_s, double period_s) {
    if (length_s >= FL_ODPP_PERIODS * period_s || length_s >= FL_ODPP_TRACE_MAX_S)
        return 0;
    return fmax(0.5 * period_s, FL_ODPP_PERIODS * period_s - length_s);
}

fl_odpp_run fl_odpp_measure(const fl_readings *r, double mhz, double period_s, double idle_w) {
    const fl_readings_mean m = fl_readings_last(r, period_s);
    return (fl_odpp_run){
        .mhz = mhz, .period_s = period_s, .power_w = m.power_w - idle_w, .gpu_pct = m.gpu_pct, .mem_pct = m.mem_pct};
}

double fl_odpp_quantity(const fl_odpp_run *run, int quantity) {
    return quantity == FL_ODPP_ENERGY ? run->power_w * run->period_s : run->period_s;
}

double fl_odpp_line(const fl_odpp_run *run, uint32_t count, int quantity, double mhz) {
    uint32_t i = 0;
    while (i + 2 < count && mhz > run[i + 1].mhz)
        i++;
    const double low = fl_odpp_quantity(&run[i], quantity);
    if (count < 2 || !(run[i + 1].mhz > run[i].mhz))
        return low;
    const double high = fl_odpp_quantity(&run[i + 1], quantity);
    return low + (high - low) * (mhz - run[i].mhz) / (run[i + 1].mhz - run[i].mhz);
}

void fl_odpp_inputs(double *x, double line, double mhz, double top_mhz, const fl_odpp_run *features) {
    x[0] = line;
    x[1] = mhz / top_mhz;
    x[2] = features->power_w;
    x[3] = features->gpu_pct;
    x[4] = features->mem_pct;
}
