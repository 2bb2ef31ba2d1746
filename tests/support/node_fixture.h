/* The test device of sim_fixture.h with everything that a node can have: power limit, heat, host CPU, meters. Round
 * numbers again:
 *   power limit: looks every 10 ms, filter 5 ms, clock x (limit/P)^0.4; up each 50 ms by 150 MHz at most;
 *   heat: every 100 ms, ambient 20 C, 0.2 C/W, tau 1 s, 0.1 W per degree above 40 C;
 *   CPU: 1000, 2000 MHz at 1 V (relative), boost 3000 MHz at 2 V; 10 W V static, 5 W V^2 f (GHz) per computing thread,
 * half of it while waiting; host time is CPU-bound by half and was recorded at 2000 MHz; 1 uop per cycle, 0.25 waiting.
 */
#pragma once

#include "tests/support/sim_fixture.h"

static inline void nx_wall(fx_rig *r, double limit_w) {
    for (uint32_t i = 0; i < r->spec.device_count; i++) {
        fl_device *dev = &r->spec.device[i];
        dev->power_min_w = 10;
        dev->power_max_w = 1000;
        dev->power_default_w = limit_w;
        dev->wall = (fl_wall_spec){.period_ns = 10000000,
                                   .filter_ns = 5000000,
                                   .exponent = 0.4,
                                   .aim = 1,
                                   .rise_ns = 50000000,
                                   .rise_mhz = 150,
                                   .recover_ns = 30000000};
    }
}

/* Another law by the seed: with and without a filter, a grid and a recovery. */
static inline void nx_wall_vary(fx_rig *r, uint64_t seed) {
    for (uint32_t i = 0; i < r->spec.device_count; i++) {
        fl_wall_spec *w = &r->spec.device[i].wall;
        w->filter_ns = (int64_t)(seed % 3) * 4000000;
        w->exponent = 0.2 + 0.3 * (double)(seed % 4);
        w->aim = 1 - 0.02 * (double)(seed % 5);
        w->rise_ns = (int64_t)(seed % 7) * 11000000;
        w->recover_ns = (int64_t)(seed % 2) * 25000000;
    }
}

static inline void nx_heat(fx_rig *r, double limit_c) {
    for (uint32_t i = 0; i < r->spec.device_count; i++)
        r->spec.device[i].thermal = (fl_thermal_spec){.period_ns = 100000000,
                                                      .ambient_c = 20,
                                                      .c_per_w = 0.2,
                                                      .tau_s = 1,
                                                      .leak_w_per_c = 0.1,
                                                      .leak_ref_c = 40,
                                                      .limit_c = limit_c,
                                                      .release_c = limit_c - 5};
}

static inline void nx_cpu(fx_rig *r) {
    fl_cpu_spec *c = &r->spec.host.cpu;
    *c = (fl_cpu_spec){.count = 2,
                       .boost_count = 1,
                       .default_mhz = 2000,
                       .ref_mhz = 2000,
                       .static_w = 10,
                       .core_w = 5,
                       .bound = 0.5,
                       .alpha = 1,
                       .wait_alpha = 0.5,
                       .upc = 1,
                       .wait_upc = 0.25,
                       .bytes_per_s = 1e9,
                       .period_ns = 10000000,
                       .filter_ns = 20000000};
    c->mhz = fx_alloc(2, sizeof *c->mhz);
    c->volt = fx_alloc(2, sizeof *c->volt);
    c->boost_mhz = fx_alloc(1, sizeof *c->boost_mhz);
    c->boost_volt = fx_alloc(1, sizeof *c->boost_volt);
    c->mhz[0] = 1000, c->mhz[1] = 2000, c->boost_mhz[0] = 3000;
    c->volt[0] = c->volt[1] = 1, c->boost_volt[0] = 2;
    r->spec.host.cores = 4;
    r->spec.host.static_w = 50;
    r->spec.host.comm_w = 7;
    r->facts.host.cpu = (fl_ladder){c->mhz, 2};
    r->facts.host.boost = (fl_ladder){c->boost_mhz, 1};
}

static inline void nx_apu(fx_rig *r) {
    r->spec.host.apu = 1;
    r->spec.host.peak_bytes_per_s = 1e11;
    r->spec.host.budget_w = 150;
    r->spec.host.bus_min = 0.7;
    r->spec.host.bus_max = 0.8;
    r->spec.host.bus_period_ns = 3000000;
}

static inline void nx_host_sensors(fx_rig *r) {
    for (int i = 0; i < FL_HOST_SENSOR_COUNT; i++)
        r->spec.host.sensor[i] = (fl_sensor_spec){.period_ns = 7000000, .window_ns = 5000000, .present = 1};
    for (int i = 0; i < FL_SENSOR_COUNT; i++)
        r->spec.device[0].sensor[i] = (fl_sensor_spec){.period_ns = 11000000, .window_ns = 11000000, .present = 1};
}

#define NX_HOST_ALL ((FL_BIT(FL_HOST_SIGNAL_COUNT) - 1) & ~FL_HOST_KNOWS)
