#include "models/laws/cpu_row.h"

#include <math.h>
#include <stdbool.h>

#define PER_PS 1.048576 /* MHz to counts per ps in 2^-20: 1e6 / 1e12 x 2^20 */
#define MW_MAX 9.0e6    /* one thread: as one GPU in sim/gpu/rates.c */

uint32_t fl_cpu_state_count(const fl_cpu_spec *cpu) { return cpu->count + cpu->boost_count; }

static double mhz_of(const fl_cpu_spec *cpu, uint32_t state) {
    return state < cpu->count ? cpu->mhz[state] : cpu->boost_mhz[state - cpu->count];
}

static double volt_of(const fl_cpu_spec *cpu, uint32_t state) {
    return state < cpu->count ? cpu->volt[state] : cpu->boost_volt[state - cpu->count];
}

double fl_cpu_ref_mhz(const fl_cpu_spec *cpu) {
    return cpu->ref_mhz > 0 ? cpu->ref_mhz : cpu->count ? mhz_of(cpu, fl_cpu_state_count(cpu) - 1) : 0;
}

double fl_cpu_default_mhz(const fl_cpu_spec *cpu) {
    const bool highest = cpu->count && cpu->default_mhz >= cpu->mhz[cpu->count - 1];
    return highest ? mhz_of(cpu, fl_cpu_state_count(cpu) - 1) : cpu->default_mhz;
}

fl_host_load fl_cpu_default_load(const fl_cpu_spec *cpu) {
    return (fl_host_load){cpu->bound, cpu->alpha, cpu->upc, cpu->bytes_per_s};
}

static fl_model_status to_mw(double watts, int32_t *mw) {
    if (!(watts >= 0))
        return FL_MODEL_INVALID;
    if (watts * 1000 > MW_MAX)
        return FL_MODEL_OVERFLOW;
    *mw = (int32_t)lround(watts * 1000);
    return FL_MODEL_OK;
}

static fl_model_status to_rate(double per_ps, uint32_t *rate) {
    if (!(per_ps >= 0))
        return FL_MODEL_INVALID;
    if (per_ps > 1e9)
        return FL_MODEL_OVERFLOW;
    *rate = (uint32_t)lround(per_ps);
    return FL_MODEL_OK;
}

fl_model_status fl_cpu_state_make(const fl_cpu_spec *cpu, uint32_t state, fl_cpu_state *out) {
    const double f = mhz_of(cpu, state), v = volt_of(cpu, state);
    if (!(f > 0) || !(v > 0))
        return FL_MODEL_INVALID;
    *out = (fl_cpu_state){.mhz = (int32_t)f};
    fl_model_status s = to_mw(cpu->static_w * v, &out->static_mw);
    if (s == FL_MODEL_OK && !cpu->sleeps)
        s = to_mw(cpu->wait_alpha * cpu->core_w * v * v * f / 1000, &out->wait_mw);
    if (s == FL_MODEL_OK)
        s = to_rate(f * PER_PS, &out->cycles);
    if (s == FL_MODEL_OK && !cpu->sleeps)
        s = to_rate(cpu->wait_upc * f * PER_PS, &out->wait_uops);
    return s;
}

fl_model_status fl_cpu_row_make(const fl_cpu_spec *cpu, const fl_host_load *load, uint32_t state,
                                double bus_bytes_per_s, fl_cpu_row *row) {
    const double f = mhz_of(cpu, state), v = volt_of(cpu, state), ref = fl_cpu_ref_mhz(cpu);
    if (!(f > 0) || !(ref > 0) || !(load->bound >= 0) || !(load->bound <= 1))
        return FL_MODEL_INVALID;
    const double ratio = load->bound * ref / f + 1 - load->bound;
    const double mul = round(ratio * FL_MUL_ONE);
    if (!(mul >= 1) || mul > (double)UINT32_MAX)
        return FL_MODEL_OVERFLOW;
    *row = (fl_cpu_row){.mul = (uint32_t)mul};
    fl_model_status s = to_mw(load->alpha * cpu->core_w * v * v * f / 1000, &row->mw);
    if (s == FL_MODEL_OK) /* the same instructions and bytes, spread over the time they take here */
        s = to_rate(load->upc * ref / ratio * PER_PS, &row->uops);
    if (s == FL_MODEL_OK)
        s = to_rate(load->bytes_per_s / ratio * 1e-12 * 1048576, &row->bytes);
    if (s == FL_MODEL_OK && bus_bytes_per_s > 0)
        row->traffic = (uint32_t)lround(fmin(1, load->bytes_per_s / ratio / bus_bytes_per_s) * 65536);
    return s;
}
