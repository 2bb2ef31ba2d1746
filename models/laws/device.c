/* Laws of one device: CPU, power, sensors, kernel time. */
#include "models/laws/laws.h"

#include "models/laws/device.h"
#include "models/math/math.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- the host CPU ---- */

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

/* ---- power ---- */

static fl_model_status power_to_mw(double watts, int32_t *mw) {
    if (isnan(watts) || watts < 0)
        return FL_MODEL_INVALID;
    if (watts * 1000 > FL_POWER_MAX_MW)
        return FL_MODEL_OVERFLOW;
    *mw = (int32_t)lround(watts * 1000);
    return FL_MODEL_OK;
}

static fl_model_status voltage_at(const fl_device *dev, double sm_mhz, double *volts) {
    if (!dev->voltage || !(sm_mhz > 0))
        return FL_MODEL_INVALID;
    fl_model_status s = fl_curve_at(dev->voltage, sm_mhz, 0, volts);
    *volts *= 1 + dev->v_excess;
    return s == FL_MODEL_OK && !(*volts > 0) ? FL_MODEL_INVALID : s;
}

/* B0 is given per memory clock, and is linear between two of them. */
static fl_model_status idle_memory_at(const fl_device *dev, double mem_mhz, double *watts) {
    if (dev->mem_count == 0 || !dev->b0_w || !(mem_mhz > 0))
        return FL_MODEL_INVALID;
    for (uint32_t i = 0; i < dev->mem_count; i++) {
        const double here = dev->mem_mhz[i];
        if (mem_mhz > here)
            continue;
        if (mem_mhz < here && i == 0)
            return FL_MODEL_RANGE;
        *watts = dev->b0_w[i];
        if (mem_mhz < here) {
            const double below = dev->mem_mhz[i - 1];
            *watts = dev->b0_w[i - 1] + (dev->b0_w[i] - dev->b0_w[i - 1]) * ((mem_mhz - below) / (here - below));
        }
        return FL_MODEL_OK;
    }
    return FL_MODEL_RANGE;
}

fl_model_status fl_power_dynamic(const fl_device *dev, double alpha, double beta, double sm_mhz, double mem_mhz,
                                 double *sm_w, double *memory_w) {
    double v = 0;
    if (!(alpha >= 0) || !(beta >= 0) || !(mem_mhz > 0) || !(dev->default_mem_mhz > 0))
        return FL_MODEL_INVALID;
    fl_model_status s = voltage_at(dev, sm_mhz, &v);
    if (s != FL_MODEL_OK)
        return s;
    *sm_w = alpha * dev->a_w * v * v * (sm_mhz / 1000);
    *memory_w = beta * dev->b_w * (mem_mhz / dev->default_mem_mhz);
    return FL_MODEL_OK;
}

fl_model_status fl_base_make(const fl_device *dev, double sm_mhz, double mem_mhz, fl_base *base) {
    double v = 0, idle_memory = 0;
    fl_base b = {0};
    fl_model_status s = voltage_at(dev, sm_mhz, &v);
    if (s == FL_MODEL_OK)
        s = idle_memory_at(dev, mem_mhz, &idle_memory);
    if (s == FL_MODEL_OK)
        s = power_to_mw(dev->c_w * v, &b.static_mw);
    if (s == FL_MODEL_OK)
        s = power_to_mw(idle_memory, &b.memory_mw);
    if (s == FL_MODEL_OK)
        s = power_to_mw(dev->a0_w * v * v * (sm_mhz / 1000), &b.tree_mw);
    if (s != FL_MODEL_OK)
        return s;
    const int64_t total = (int64_t)b.static_mw + b.memory_mw + b.tree_mw;
    if ((double)total > FL_POWER_MAX_MW)
        return FL_MODEL_OVERFLOW;
    b.total_mw = (int32_t)total;
    *base = b;
    return FL_MODEL_OK;
}

/* ---- sensors ---- */

double fl_sensor_quantise(double value, double quantum) {
    if (!(quantum > 0) || !isfinite(value))
        return value;
    const double steps = value / quantum, whole = floor(steps);
    return (steps - whole < 0.5 ? whole : whole + 1) * quantum;
}

double fl_sensor_lag(double shown, double input, int64_t dt_ns, int64_t lag_ns) {
    if (lag_ns <= 0)
        return input;
    /* expm1 keeps its precision where a refresh is much shorter than the lag. */
    return shown - (input - shown) * expm1(-(double)dt_ns / (double)lag_ns);
}

double fl_sensor_wrap(double value, double wrap) { return wrap > 0 ? fmod(value, wrap) : value; }

/* ---- kernel time ---- */

double fl_time_norm(double core, double memory, double p) {
    const double large = fmax(core, memory), small = fmin(core, memory);
    if (!(small > 0))
        return large;
    /* Scaled by the larger term, so that neither power can overflow and a vanishing term leaves the other unchanged.
     * With p = INFINITY the root is 1, and the result is the maximum. */
    return large * pow(1 + pow(small / large, p), 1 / p);
}

double fl_time_at(double tc, double tm, double tl, double p, double f_ratio, double m_ratio) {
    return fl_time_norm(tc * f_ratio, tm * m_ratio, p) + tl;
}

static double share(double part, double whole) { return whole > 0 ? fmin(1, part / whole) : 0; }

double fl_memory_active(double tc, double tm, double tl, double p, double f_ratio, double m_ratio) {
    return share(tm * m_ratio, fl_time_at(tc, tm, tl, p, f_ratio, m_ratio));
}

double fl_core_active(double tc, double tm, double tl, double p, double f_ratio, double m_ratio) {
    return share(tc * f_ratio, fl_time_at(tc, tm, tl, p, f_ratio, m_ratio));
}

bool fl_fold_line_sound(const fl_fold_line *b, double lowest_mhz) {
    return b->fold_mhz == 0 || (b->fold_mhz > 0 && isfinite(b->fold_mhz + b->low) && b->low >= b->high &&
                                b->high >= 0 && lowest_mhz > 0 && fl_fold_line_at(b, lowest_mhz) > 0);
}

double fl_fold_line_at(const fl_fold_line *b, double sm_mhz) {
    if (!(b->fold_mhz > 0))
        return 1;
    return 1 + (sm_mhz < b->fold_mhz ? b->low : b->high) * (sm_mhz / b->fold_mhz - 1);
}

/* ---- ladders and nodes ---- */

void fl_node_spec_free(fl_node_spec *n) {
    for (uint32_t i = 0; i < n->device_count; i++) {
        fl_device *d = &n->device[i];
        free(d->sm_mhz);
        free(d->mem_mhz);
        free(d->b0_w);
        fl_curve_free(d->voltage);
    }
    free(n->device);
    free(n->gpu);
    free(n->host.cpu.mhz);
    free(n->host.cpu.volt);
    free(n->host.cpu.boost_mhz);
    free(n->host.cpu.boost_volt);
    memset(n, 0, sizeof *n);
}

int fl_ladder_index(const int32_t *mhz, uint32_t count, double value) {
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (mhz[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && mhz[low] <= value ? (int)low : -1;
}

uint32_t fl_gpu_interference(const fl_device *dev) {
    return dev->interference > 0 ? (uint32_t)(dev->interference * 65536 + 0.5) : 0;
}
