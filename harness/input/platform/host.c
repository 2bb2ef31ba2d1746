/* The host of a platform file: its CPU, what it shares with an APU's GPU, its meters. */
#include "harness/input/platform/inside.h"

#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "models/laws/device.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WATTS_MAX FL_PLATFORM_WATTS_MAX
#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

/* [[MHz, V], ...], ascending, all clocks above `above`. Volts are kept relative to `unit`, or to the first of them
 * where that is 0. */
static fl_status read_states(const fl_json *cpu, const char *key, double above, double unit, int32_t **mhz,
                             double **volt, uint32_t *count, fl_diag *d) {
    fl_json list;
    fl_status s = fl_json_get_array(cpu, key, &list, d);
    const size_t n = !s ? fl_json_count(&list) : 0;
    if (!s && (n == 0 || n > 64))
        s = fl_json_fail(&list, d, "%zu states, expected 1..64", n);
    if (s)
        return s;
    *mhz = calloc(n, sizeof **mhz);
    *volt = calloc(n, sizeof **volt);
    if (!*mhz || !*volt)
        return fl_no_memory(d, list.file);
    double clock = above, v_before = 0;
    for (fl_json e = fl_json_first(&list); e.node; e = fl_json_next(&list, &e)) {
        double f = 0, v = 0;
        s = fl_platform_pair(&e, &f, &v, d);
        if (!s && !(f > clock))
            s = fl_json_fail(&e, d, "clock %g after %g, expected ascending clocks", f, clock);
        if (!s && f != (double)(int32_t)f)
            s = fl_json_fail(&e, d, "clock %g, expected whole MHz", f);
        if (!s && v < v_before)
            s = fl_json_fail(&e, d, "voltage %g after %g, expected one that never falls", v, v_before);
        if (s)
            return s;
        if (!(unit > 0))
            unit = v;
        (*mhz)[*count] = (int32_t)f;
        (*volt)[(*count)++] = v / unit;
        clock = f;
        v_before = v;
    }
    return FL_OK;
}

/* The voltage of the lowest state, as the file gives it. */
static double lowest_volt(const fl_json *cpu) {
    fl_json list, first;
    fl_diag ignored = {0};
    double mhz = 0, volt = 0;
    if (fl_json_get_array(cpu, "states", &list, &ignored) || !(first = fl_json_first(&list)).node ||
        fl_platform_pair(&first, &mhz, &volt, &ignored))
        return 0;
    return volt;
}

static fl_status read_wait(const fl_json *cpu, int *sleeps, fl_diag *d) {
    const char *text = NULL;
    if (!fl_json_has(cpu, "wait"))
        return FL_OK;
    fl_status s = fl_json_get_text(cpu, "wait", &text, d);
    if (!s && strcmp(text, "spin") != 0 && strcmp(text, "sleep") != 0)
        s = fl_platform_refuse(cpu, "wait", d, "'%s', expected spin or sleep", text);
    *sleeps = !s && strcmp(text, "sleep") == 0;
    return s;
}

static fl_status read_cpu(const fl_json *host, fl_cpu_spec *c, fl_diag *d) {
    static const char *const known[] = {"states", "boost",   "default_mhz", "ref_mhz",   "static_w",  "core_w",
                                        "bound",  "alpha",   "wait_alpha",  "upc",       "wait_upc",  "gb_s",
                                        "wait",   "call_ms", "settle_ms",   "period_ms", "filter_ms", "limits"};
    fl_json at;
    double gb_s = 0;
    char text[FL_OFF_LADDER_TEXT];
    fl_status s = fl_platform_part(host, "cpu", known, COUNT_OF(known), &at, d);
    if (s || !at.node)
        return s;
    s = read_states(&at, "states", 0, 0, &c->mhz, &c->volt, &c->count, d);
    if (!s && fl_json_has(&at, "boost"))
        s = read_states(&at, "boost", c->mhz[c->count - 1], lowest_volt(&at), &c->boost_mhz, &c->boost_volt,
                        &c->boost_count, d);
    const fl_real_field field[] = {{"default_mhz", 1, FL_PLATFORM_MHZ_MAX, &c->default_mhz, false},
                                   {"ref_mhz", 1, FL_PLATFORM_MHZ_MAX, &c->ref_mhz, true},
                                   {"static_w", 0, WATTS_MAX, &c->static_w, false},
                                   {"core_w", 0, WATTS_MAX, &c->core_w, false},
                                   {"bound", 0, 1, &c->bound, false},
                                   {"alpha", 0, 10, &c->alpha, false},
                                   {"wait_alpha", 0, 10, &c->wait_alpha, false},
                                   {"upc", 0, 64, &c->upc, false},
                                   {"wait_upc", 0, 64, &c->wait_upc, false},
                                   {"gb_s", 0, 1e6, &gb_s, true}};
    if (!s)
        s = fl_platform_reals(&at, field, COUNT_OF(field), d);
    c->bytes_per_s = gb_s * 1e9;
    if (!s && fl_ladder_index(c->mhz, c->count, c->default_mhz) < 0)
        s = fl_platform_refuse(&at, "default_mhz", d, "%s",
                               fl_off_ladder(c->default_mhz, "the ladder of states", c->mhz, c->count, text));
    const fl_ms_field time[] = {{"call_ms", &c->call_ns, true},
                                {"settle_ms", &c->settle_ns, true},
                                {"period_ms", &c->period_ns, true},
                                {"filter_ms", &c->filter_ns, true}};
    if (!s)
        s = fl_platform_times(&at, time, COUNT_OF(time), d);
    if (!s)
        s = read_wait(&at, &c->sleeps, d);
    if (!s)
        s = fl_platform_limits(&at, &c->power_min_w, &c->power_max_w, &c->power_default_w, d);
    if (!s && c->power_default_w > 0 && c->period_ns <= 0)
        s = fl_platform_refuse(&at, "limits", d, "limits without a controller, expected period_ms > 0");
    return s;
}

static fl_status read_bus(const fl_json *host, fl_host_spec *spec, fl_diag *d) {
    static const char *const known[] = {"min", "max", "period_ms"};
    fl_json at;
    fl_status s = fl_platform_part(host, "bus", known, COUNT_OF(known), &at, d);
    if (!s && spec->apu && !at.node)
        return fl_json_fail(host, d, "an APU without a bus, expected {\"min\", \"max\", \"period_ms\"}");
    if (s || !at.node)
        return s;
    if (!spec->apu)
        return fl_json_fail(&at, d, "a bus that CPU and GPU share, expected it on an APU only");
    const fl_ms_field time = {"period_ms", &spec->bus_period_ns, false};
    s = fl_json_get_real(&at, "min", 0.01, 1, &spec->bus_min, d);
    if (!s)
        s = fl_json_get_real(&at, "max", spec->bus_min, 1, &spec->bus_max, d);
    return s ? s : fl_platform_times(&at, &time, 1, d);
}

const char *const fl_platform_host_sensor_name[FL_HOST_SENSOR_COUNT] = {[FL_HOST_SENSOR_CPU] = "cpu",
                                                                        [FL_HOST_SENSOR_CPU_ENERGY] = "cpu_energy",
                                                                        [FL_HOST_SENSOR_NODE_POWER] = "node_power",
                                                                        [FL_HOST_SENSOR_NODE_ENERGY] = "node_energy"};

static fl_status read_host_sensors(const fl_json *host, fl_host_spec *spec, fl_diag *d) {
    const char *const *name = fl_platform_host_sensor_name;
    fl_json sensors;
    fl_status s = fl_platform_part(host, "sensors", name, FL_HOST_SENSOR_COUNT, &sensors, d);
    for (size_t i = 0; !s && sensors.node && i < FL_HOST_SENSOR_COUNT; i++)
        if (fl_json_has(&sensors, name[i]))
            s = fl_platform_sensor(&sensors, name[i], i != FL_HOST_SENSOR_NODE_POWER, &spec->sensor[i], NULL, d);
    return s;
}

fl_status fl_platform_host(const fl_json *host, fl_host_spec *spec, fl_diag *d) {
    static const char *const known[] = {"name", "static_w", "comm_w", "cpu",          "peak_gb_s",    "cores",
                                        "apu",  "budget_w", "bus",    "gpu_budget_w", "launch_queue", "sensors"};
    double peak_gb_s = 0;
    bool apu = false;
    fl_status s = fl_json_object(host, d);
    if (!s)
        s = fl_json_known(host, known, COUNT_OF(known), d);
    if (!s)
        s = fl_platform_name(host, spec->name, sizeof spec->name, d);
    const fl_real_field field[] = {{"static_w", 0, WATTS_MAX, &spec->static_w, true},
                                   {"comm_w", 0, WATTS_MAX, &spec->comm_w, true},
                                   {"budget_w", 0, WATTS_MAX, &spec->budget_w, true},
                                   {"gpu_budget_w", 0, WATTS_MAX, &spec->gpu_budget_w, true},
                                   {"peak_gb_s", 0, 1e6, &peak_gb_s, true}};
    if (!s)
        s = fl_platform_reals(host, field, COUNT_OF(field), d);
    spec->peak_bytes_per_s = peak_gb_s * 1e9;
    if (!s && fl_json_has(host, "apu"))
        s = fl_json_get_bool(host, "apu", &apu, d);
    spec->apu = apu;
    if (!s)
        s = read_cpu(host, &spec->cpu, d);
    if (!s && !apu && spec->budget_w > 0)
        s = fl_platform_refuse(host, "budget_w", d, "a budget that CPU and GPU share, expected it on an APU only");
    if (!s && apu && (!spec->cpu.count || !(peak_gb_s > 0)))
        s = fl_json_fail(host, d, "an APU, expected a cpu and peak_gb_s > 0");
    if (!s)
        s = read_bus(host, spec, d);
    if (!s)
        s = read_host_sensors(host, spec, d);
    if (!s)
        s = fl_platform_count(host, "cores", 1, &spec->cores, d);
    return s ? s : fl_platform_count(host, "launch_queue", 1, &spec->launch_queue, d);
}
