/* A stand-in for AMD's ROCm SMI library: levels, sets of allowed clocks, a range of the SM clock where the state says
 * so, power caps. State is shared by all processes (stub_nvml.h): SM range in MHz, cap in mW, mask 0 = all. With
 * STUB_NEW as ROCm 6: the other layout of clocks, rsmi_dev_power_get. */
#include "tests/support/stub_common.h"

#include "harness/live/vendor/rsmi/inside.h"

enum { SM_CLOCKS = 3, MEM_CLOCKS = 4 };
static const uint64_t SM_HZ[SM_CLOCKS] = {500000000, 800000000, 1700000000},
                      MEM_HZ[MEM_CLOCKS] = {400000000, 700000000, 1200000000, 1600000000};

static fl_rsmi_code usable(uint32_t i, stub_gpu **g) {
    if (!mapped)
        return FL_RSMI_INIT;
    if (i >= mapped->gpus)
        return FL_RSMI_INVALID;
    *g = &mapped->gpu[i];
    return (fl_rsmi_code)(*g)->code;
}

static fl_rsmi_code settable(uint32_t i, stub_gpu **g, int control, unsigned value) {
    fl_rsmi_code code = usable(i, g);
    if (!code)
        code = (fl_rsmi_code)(*g)->set_code;
    if (!code)
        audit(i, control, value, FL_RSMI_FILE);
    return code;
}

API fl_rsmi_code rsmi_init(uint64_t flags);
API fl_rsmi_code rsmi_init(uint64_t flags) {
    if (flags)
        return FL_RSMI_INVALID;
    printf("a library that talks\n");
    fprintf(stderr, "a library that talks\n");
    return open_state() ? (fl_rsmi_code)mapped->init_code : FL_RSMI_INIT;
}
API fl_rsmi_code rsmi_shut_down(void);
API fl_rsmi_code rsmi_shut_down(void) { return FL_RSMI_OK; }
API fl_rsmi_code rsmi_num_monitor_devices(uint32_t *count);
API fl_rsmi_code rsmi_num_monitor_devices(uint32_t *count) {
    *count = mapped->gpus;
    return FL_RSMI_OK;
}
API fl_rsmi_code rsmi_version_str_get(int component, char *text, uint32_t size);
API fl_rsmi_code rsmi_version_str_get(int component, char *text, uint32_t size) {
    snprintf(text, size, "stub 5.2");
    return component ? FL_RSMI_INVALID : FL_RSMI_OK;
}
API fl_rsmi_code rsmi_dev_name_get(uint32_t i, char *text, size_t size);
API fl_rsmi_code rsmi_dev_name_get(uint32_t i, char *text, size_t size) {
    stub_gpu *g;
    snprintf(text, size, "Stub Instinct");
    return usable(i, &g);
}
API fl_rsmi_code rsmi_dev_unique_id_get(uint32_t i, uint64_t *id);
API fl_rsmi_code rsmi_dev_unique_id_get(uint32_t i, uint64_t *id) {
    *id = UINT64_C(0xabc000) + i;
    return FL_RSMI_OK;
}

/* ---- reading ---- */

static unsigned mhz_of(const stub_gpu *g) {
    if (mapped->ranged)
        return g->sm_max ? g->sm_max : 1700;
    unsigned best = 0;
    for (unsigned i = 0; i < SM_CLOCKS; i++)
        best = !g->sm_mask || g->sm_mask >> i & 1 ? i : best;
    return (unsigned)(SM_HZ[best] / 1000000);
}

#ifdef STUB_NEW
API fl_rsmi_code rsmi_dev_power_get(uint32_t i, uint64_t *uw, int *type);
API fl_rsmi_code rsmi_dev_power_get(uint32_t i, uint64_t *uw, int *type) {
    stub_gpu *g;
    fl_rsmi_code code = usable(i, &g);
    *type = 1;
    if (!code)
        *uw = g->fixed ? g->power : 60000000 + mhz_of(g) * 100000u + now_ns() / 1000000u % 997u;
    return code;
}
#else
API fl_rsmi_code rsmi_dev_power_ave_get(uint32_t i, uint32_t sensor, uint64_t *uw);
API fl_rsmi_code rsmi_dev_power_ave_get(uint32_t i, uint32_t sensor, uint64_t *uw) {
    stub_gpu *g;
    fl_rsmi_code code = usable(i, &g);
    if (!code)
        *uw = g->fixed ? g->power : 60000000 + mhz_of(g) * 100000u + now_ns() / 1000000u % 997u;
    return sensor ? FL_RSMI_INVALID : code;
}
#endif
API fl_rsmi_code rsmi_dev_energy_count_get(uint32_t i, uint64_t *count, float *each, uint64_t *ns);
API fl_rsmi_code rsmi_dev_energy_count_get(uint32_t i, uint64_t *count, float *each, uint64_t *ns) {
    stub_gpu *g;
    fl_rsmi_code code = usable(i, &g);
    if (code)
        return code;
    *each = 15.25F; /* uJ, exact as a float */
    mapped->reads++;
    *ns = g->fixed ? g->energy_at : now_ns();
    *count = g->fixed ? g->energy : g->frozen ? 4242 : now_ns() / 100000u;
    return code;
}
API fl_rsmi_code rsmi_dev_busy_percent_get(uint32_t i, uint32_t *percent);
API fl_rsmi_code rsmi_dev_busy_percent_get(uint32_t i, uint32_t *percent) {
    stub_gpu *g;
    const unsigned phase = (unsigned)(now_ns() / 50000000u % 8u);
    *percent = phase < 6 ? 80 + phase : 5;
    return usable(i, &g);
}
API fl_rsmi_code rsmi_dev_memory_busy_percent_get(uint32_t i, uint32_t *percent);
API fl_rsmi_code rsmi_dev_memory_busy_percent_get(uint32_t i, uint32_t *percent) {
    stub_gpu *g;
    *percent = 33;
    return usable(i, &g);
}
/* No edge sensor, as on boards for servers. */
API fl_rsmi_code rsmi_dev_temp_metric_get(uint32_t i, uint32_t sensor, int metric, int64_t *millidegrees);
API fl_rsmi_code rsmi_dev_temp_metric_get(uint32_t i, uint32_t sensor, int metric, int64_t *millidegrees) {
    stub_gpu *g;
    fl_rsmi_code code = usable(i, &g);
    *millidegrees = 51500;
    return code ? code : sensor == FL_RSMI_HEAT_JUNCTION && !metric ? FL_RSMI_OK : FL_RSMI_NOT_SUPPORTED;
}
API fl_rsmi_code rsmi_dev_gpu_clk_freq_get(uint32_t i, int clock, void *out);
API fl_rsmi_code rsmi_dev_gpu_clk_freq_get(uint32_t i, int clock, void *out) {
#ifdef STUB_NEW
    fl_rsmi_clocks_6 c = {.deep_sleep = clock == FL_RSMI_CLOCK_SM};
#else
    fl_rsmi_clocks_5 c = {0};
#endif
    stub_gpu *g;
    fl_rsmi_code code = usable(i, &g);
    const bool sm = clock == FL_RSMI_CLOCK_SM;
    if (code || (!sm && clock != FL_RSMI_CLOCK_MEM))
        return code ? code : FL_RSMI_NOT_SUPPORTED;
    const unsigned mask = sm ? g->sm_mask : g->mem_mask;
    c.count = sm ? SM_CLOCKS : MEM_CLOCKS;
    for (unsigned k = 0; k < c.count; k++) {
        c.hz[k] = sm ? SM_HZ[k] : MEM_HZ[k];
        c.current = !mask || mask >> k & 1 ? k : c.current;
    }
    memcpy(out, &c, sizeof c);
    return FL_RSMI_OK;
}

/* ---- setting ---- */

API fl_rsmi_code rsmi_dev_perf_level_get(uint32_t i, int *level);
API fl_rsmi_code rsmi_dev_perf_level_get(uint32_t i, int *level) {
    stub_gpu *g;
    fl_rsmi_code code = usable(i, &g);
    if (!code)
        *level = (int)g->level;
    return code;
}
API fl_rsmi_code rsmi_dev_perf_level_set(uint32_t i, int level);
API fl_rsmi_code rsmi_dev_perf_level_set(uint32_t i, int level) {
    stub_gpu *g;
    fl_rsmi_code code = settable(i, &g, STUB_LEVEL, (unsigned)level);
    if (code)
        return code;
    if (level == FL_RSMI_LEVEL_AUTO)
        g->sm_mask = g->mem_mask = 0;
    set_value(&g->level, (unsigned)level);
    return code;
}
API fl_rsmi_code rsmi_dev_gpu_clk_freq_set(uint32_t i, int clock, uint64_t mask);
API fl_rsmi_code rsmi_dev_gpu_clk_freq_set(uint32_t i, int clock, uint64_t mask) {
    stub_gpu *g;
    const bool sm = clock == FL_RSMI_CLOCK_SM;
    const unsigned all = sm ? (1u << SM_CLOCKS) - 1 : (1u << MEM_CLOCKS) - 1;
    fl_rsmi_code code = settable(i, &g, sm ? STUB_SM : STUB_MEM, (unsigned)mask);
    if (code || !(mask & all))
        return code ? code : FL_RSMI_INVALID;
    g->level = FL_RSMI_LEVEL_MANUAL;
    take_time();
    *(sm ? &g->sm_mask : &g->mem_mask) = (mask & all) == all ? 0 : (unsigned)(mask & all);
    return FL_RSMI_OK;
}
API fl_rsmi_code rsmi_dev_od_volt_info_get(uint32_t i, fl_rsmi_overdrive *o);
API fl_rsmi_code rsmi_dev_od_volt_info_get(uint32_t i, fl_rsmi_overdrive *o) {
    stub_gpu *g;
    fl_rsmi_code code = usable(i, &g);
    if (code || !mapped->ranged)
        return code ? code : FL_RSMI_NOT_SUPPORTED;
    o->sm = (fl_rsmi_range){(g->sm_min ? g->sm_min : 500) * UINT64_C(1000000),
                            (g->sm_max ? g->sm_max : 1700) * UINT64_C(1000000)};
    o->sm_limits = (fl_rsmi_range){500000000, 1700000000};
    return code;
}
API fl_rsmi_code rsmi_dev_clk_range_set(uint32_t i, uint64_t low, uint64_t high, int clock);
API fl_rsmi_code rsmi_dev_clk_range_set(uint32_t i, uint64_t low, uint64_t high, int clock) {
    stub_gpu *g;
    if (clock != FL_RSMI_CLOCK_SM || low > high || low < 500 || high > 1700)
        return FL_RSMI_INVALID;
    fl_rsmi_code code = settable(i, &g, STUB_SM, (unsigned)high);
    if (code)
        return code;
    g->level = FL_RSMI_LEVEL_MANUAL;
    const bool whole = low == 500 && high == 1700;
    set_ends(&g->sm_min, &g->sm_max, whole ? 0 : (unsigned)low, whole ? 0 : (unsigned)high);
    return code;
}
API fl_rsmi_code rsmi_dev_power_cap_get(uint32_t i, uint32_t sensor, uint64_t *uw);
API fl_rsmi_code rsmi_dev_power_cap_get(uint32_t i, uint32_t sensor, uint64_t *uw) {
    stub_gpu *g;
    fl_rsmi_code code = usable(i, &g);
    if (!code)
        *uw = g->limit_mw * UINT64_C(1000);
    return sensor ? FL_RSMI_INVALID : code;
}
API fl_rsmi_code rsmi_dev_power_cap_default_get(uint32_t i, uint64_t *uw);
API fl_rsmi_code rsmi_dev_power_cap_default_get(uint32_t i, uint64_t *uw) {
    stub_gpu *g;
    *uw = 250000000;
    return usable(i, &g);
}
API fl_rsmi_code rsmi_dev_power_cap_range_get(uint32_t i, uint32_t sensor, uint64_t *max, uint64_t *min);
API fl_rsmi_code rsmi_dev_power_cap_range_get(uint32_t i, uint32_t sensor, uint64_t *max, uint64_t *min) {
    stub_gpu *g;
    *max = 300000000;
    *min = 100000000;
    return sensor ? FL_RSMI_INVALID : usable(i, &g);
}
API fl_rsmi_code rsmi_dev_power_cap_set(uint32_t i, uint32_t sensor, uint64_t uw);
API fl_rsmi_code rsmi_dev_power_cap_set(uint32_t i, uint32_t sensor, uint64_t uw) {
    stub_gpu *g;
    if (sensor || uw < 100000000 || uw > 300000000)
        return FL_RSMI_INVALID;
    fl_rsmi_code code = settable(i, &g, STUB_LIMIT, (unsigned)(uw / 1000));
    if (!code)
        set_value(&g->limit_mw, (unsigned)(uw / 1000));
    return code;
}
