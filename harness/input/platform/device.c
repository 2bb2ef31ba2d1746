/* The part of a platform file that describes one GPU. */
#include "harness/input/platform/inside.h"

#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LADDER_MAX 4096 /* clocks */
#define MHZ_MAX FL_PLATFORM_MHZ_MAX
#define WATTS_MAX FL_PLATFORM_WATTS_MAX
#define MS_MAX 1e6
#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

fl_status fl_platform_reals(const fl_json *object, const fl_real_field *field, size_t count, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; i < count && !s; i++)
        if (!field[i].optional || fl_json_has(object, field[i].key))
            s = fl_json_get_real(object, field[i].key, field[i].min, field[i].max, field[i].value, d);
    return s;
}

fl_status fl_platform_times(const fl_json *object, const fl_ms_field *field, size_t count, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; i < count && !s; i++) {
        double ms = 0;
        s = fl_platform_reals(object, &(fl_real_field){field[i].key, 0, MS_MAX, &ms, field[i].optional}, 1, d);
        if (!s)
            *field[i].ns = llround(ms * 1e6);
    }
    return s;
}

fl_status fl_platform_count(const fl_json *object, const char *key, int64_t min, uint32_t *value, fl_diag *d) {
    int64_t v = 0;
    fl_status s = fl_json_get_int(object, key, min, 1 << 24, &v, d);
    if (!s)
        *value = (uint32_t)v;
    return s;
}

fl_status fl_platform_name(const fl_json *object, char *name, size_t size, fl_diag *d) {
    const char *text = NULL;
    fl_status s = fl_json_get_text(object, "name", &text, d);
    if (!s && strlen(text) >= size)
        s = fl_json_fail(object, d, "name of %zu characters, expected at most %zu", strlen(text), size - 1);
    if (!s)
        memcpy(name, text, strlen(text) + 1);
    return s;
}

fl_status fl_platform_part(const fl_json *object, const char *key, const char *const *known, size_t count,
                           fl_json *part, fl_diag *d) {
    *part = (fl_json){.node = NULL};
    if (!fl_json_has(object, key))
        return FL_OK;
    fl_status s = fl_json_get_object(object, key, part, d);
    return s ? s : fl_json_known(part, known, count, d);
}

fl_status fl_platform_refuse(const fl_json *object, const char *key, fl_diag *d, const char *format, ...) {
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    fl_json at;
    fl_status s = fl_json_get(object, key, &at, d);
    return s ? s : fl_json_fail(&at, d, "%s", reason);
}

static fl_status push_clock(const fl_json *at, int64_t mhz, int32_t *list, uint32_t *count, fl_diag *d) {
    if (*count > 0 && mhz <= list[*count - 1])
        return fl_json_fail(at, d, "%lld after %d, expected ascending clocks", (long long)mhz, list[*count - 1]);
    if (*count == LADDER_MAX)
        return fl_json_fail(at, d, "more than %d clocks", LADDER_MAX);
    list[(*count)++] = (int32_t)mhz;
    return FL_OK;
}

/* {"from": 135, "to": 1440, "steps": [7, 8]}: the steps in turn, over and over, and `to` must be met. */
static fl_status read_steps(const fl_json *at, int32_t *list, uint32_t *count, fl_diag *d) {
    static const char *const known[] = {"from", "to", "steps"};
    int64_t from = 0, to = 0;
    fl_json steps;
    fl_status s = fl_json_known(at, known, COUNT_OF(known), d);
    if (!s)
        s = fl_json_get_int(at, "from", 1, MHZ_MAX, &from, d);
    if (!s)
        s = fl_json_get_int(at, "to", from, MHZ_MAX, &to, d);
    if (!s)
        s = fl_json_get_array(at, "steps", &steps, d);
    if (!s && fl_json_count(&steps) == 0)
        s = fl_json_fail(&steps, d, "empty, expected steps in MHz");
    int64_t clock = from, step = 0;
    fl_json e = s ? (fl_json){.node = NULL} : fl_json_first(&steps);
    for (; !s && e.node; e = fl_json_next(&steps, &e)) /* also steps that the ladder does not reach */
        s = fl_json_int(&e, 1, MHZ_MAX, &step, d);
    if (!s)
        s = push_clock(at, from, list, count, d);
    e.node = NULL;
    while (!s && clock < to) {
        e = e.node && e.node->next ? fl_json_next(&steps, &e) : fl_json_first(&steps);
        s = fl_json_int(&e, 1, MHZ_MAX, &step, d);
        clock += step;
        if (!s && clock > to)
            s = fl_json_fail(at, d, "the steps pass %lld and %lld, expected them to meet %lld",
                             (long long)(clock - step), (long long)clock, (long long)to);
        if (!s)
            s = push_clock(at, clock, list, count, d);
    }
    return s;
}

fl_status fl_platform_ladder(const fl_json *object, const char *key, int32_t **mhz, uint32_t *count, fl_diag *d) {
    fl_json at;
    fl_status s = fl_json_get(object, key, &at, d);
    if (s)
        return s;
    int32_t *list = calloc(LADDER_MAX, sizeof *list);
    if (!list)
        return fl_no_memory(d, at.file);
    *count = 0;
    if (cJSON_IsObject(at.node)) {
        s = read_steps(&at, list, count, d);
    } else if (cJSON_IsArray(at.node) && at.node->child) {
        for (fl_json e = fl_json_first(&at); !s && e.node; e = fl_json_next(&at, &e)) {
            int64_t clock = 0;
            s = fl_json_int(&e, 1, MHZ_MAX, &clock, d);
            if (!s)
                s = push_clock(&e, clock, list, count, d);
        }
    } else {
        s = fl_json_fail(&at, d, "expected a list of clocks in MHz, or an object with from, to and steps");
    }
    int32_t *used = realloc(list, (*count + 1) * sizeof *list); /* there is a platform for each scene */
    *mhz = used ? used : list;                                  /* owned by the device even after a failure */
    return s;
}

static fl_status read_clocks(const fl_json *gpu, const char *ladder, const char *key, int32_t **mhz, uint32_t *count,
                             double *value, fl_diag *d) {
    char text[FL_OFF_LADDER_TEXT];
    fl_status s = fl_platform_ladder(gpu, ladder, mhz, count, d);
    if (!s)
        s = fl_json_get_real(gpu, key, 0, MHZ_MAX, value, d);
    if (!s && fl_ladder_index(*mhz, *count, *value) < 0)
        s = fl_platform_refuse(gpu, key, d, "%s", fl_off_ladder(*value, "the ladder", *mhz, *count, text));
    return s;
}

fl_status fl_platform_pair(const fl_json *at, double *mhz, double *volts, fl_diag *d) {
    if (!cJSON_IsArray(at->node) || fl_json_count(at) != 2)
        return fl_json_fail(at, d, "expected a pair [MHz, voltage]");
    const fl_json x = fl_json_first(at), y = fl_json_next(at, &x);
    fl_status s = fl_json_real(&x, 0, MHZ_MAX, mhz, d);
    return s ? s : fl_json_real(&y, 1e-3, 1e3, volts, d);
}

static fl_status read_voltage(const fl_json *power, fl_device *dev, fl_diag *d) {
    fl_json list;
    double x[64], y[64];
    size_t count = 0;
    fl_status s = fl_json_get_array(power, "voltage", &list, d);
    if (!s && (fl_json_count(&list) == 0 || fl_json_count(&list) > COUNT_OF(x)))
        s = fl_json_fail(&list, d, "%zu pairs, expected 1..%zu", fl_json_count(&list), COUNT_OF(x));
    if (s)
        return s;
    for (fl_json e = fl_json_first(&list); e.node; e = fl_json_next(&list, &e), count++) {
        s = fl_platform_pair(&e, &x[count], &y[count], d);
        if (!s && count > 0 && !(x[count] > x[count - 1]))
            s = fl_json_fail(&e, d, "clock %g after %g, expected ascending clocks", x[count], x[count - 1]);
        if (!s && count > 0 && y[count] < y[count - 1])
            s = fl_json_fail(&e, d, "voltage %g after %g, expected one that never falls", y[count], y[count - 1]);
        if (s)
            return s;
    }
    if (x[0] > dev->sm_mhz[0] || x[count - 1] < dev->sm_mhz[dev->sm_count - 1])
        return fl_json_fail(&list, d, "covers %g..%g MHz, expected the whole SM ladder %d..%d", x[0], x[count - 1],
                            dev->sm_mhz[0], dev->sm_mhz[dev->sm_count - 1]);
    const fl_model_status m = fl_curve_new(&dev->voltage, x, y, count);
    if (m == FL_MODEL_NO_MEMORY)
        return fl_no_memory(d, list.file);
    return m == FL_MODEL_OK ? FL_OK : fl_json_fail(&list, d, "%s", fl_model_text(m));
}

/* A list with one value per memory clock, or one number for all. */
static fl_status read_b0(const fl_json *power, fl_device *dev, fl_diag *d) {
    fl_json at;
    fl_status s = fl_json_get(power, "b0_w", &at, d);
    if (s)
        return s;
    dev->b0_w = calloc(dev->mem_count, sizeof *dev->b0_w);
    if (!dev->b0_w)
        return fl_no_memory(d, at.file);
    const bool list = cJSON_IsArray(at.node);
    if (list && fl_json_count(&at) != dev->mem_count)
        return fl_json_fail(&at, d, "%zu values, expected one for each of %u memory clocks", fl_json_count(&at),
                            dev->mem_count);
    fl_json e = list ? fl_json_first(&at) : at;
    for (uint32_t i = 0; !s && i < dev->mem_count; i++) {
        s = fl_json_real(&e, 0, WATTS_MAX, &dev->b0_w[i], d);
        if (list)
            e = fl_json_next(&at, &e);
    }
    return s;
}

static fl_status read_power(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    static const char *const known[] = {"a_w", "a0_w",         "b_w",           "b0_w",
                                        "c_w", "no_context_w", "gate_after_ms", "voltage"};
    fl_json power;
    fl_status s = fl_json_get_object(gpu, "power", &power, d);
    if (!s)
        s = fl_json_known(&power, known, COUNT_OF(known), d);
    const fl_real_field field[] = {{"a_w", 0, WATTS_MAX, &dev->a_w, false},
                                   {"a0_w", 0, WATTS_MAX, &dev->a0_w, false},
                                   {"b_w", 0, WATTS_MAX, &dev->b_w, false},
                                   {"c_w", 0, WATTS_MAX, &dev->c_w, false},
                                   {"no_context_w", 0, WATTS_MAX, &dev->no_context_w, false}};
    if (!s)
        s = fl_platform_reals(&power, field, COUNT_OF(field), d);
    const fl_ms_field gate = {"gate_after_ms", &dev->gate_ns, true};
    if (!s)
        s = fl_platform_times(&power, &gate, 1, d);
    if (!s)
        s = read_b0(&power, dev, d);
    return s ? s : read_voltage(&power, dev, d);
}

fl_status fl_platform_limits(const fl_json *object, double *min_w, double *max_w, double *default_w, fl_diag *d) {
    static const char *const known[] = {"min_w", "max_w", "default_w"};
    fl_json limits;
    fl_status s = fl_platform_part(object, "limits", known, COUNT_OF(known), &limits, d);
    if (s || !limits.node)
        return s;
    s = fl_json_get_real(&limits, "min_w", 0, WATTS_MAX, min_w, d);
    if (!s)
        s = fl_json_get_real(&limits, "max_w", *min_w, WATTS_MAX, max_w, d);
    return s ? s : fl_json_get_real(&limits, "default_w", *min_w, *max_w, default_w, d);
}

fl_status fl_platform_sensor(const fl_json *sensors, const char *name, bool counts, fl_sensor_spec *spec,
                             double *mem_noise_pct, fl_diag *d) {
    const char *const known[] = {"refresh_ms", "phase_ms", "window_ms", "lag_ms",
                                 "delay_ms",   "quantum",  "noise",     counts ? "wrap" : "mem_noise_pct"};
    fl_json at;
    double *last = counts ? &spec->wrap : mem_noise_pct;
    fl_status s = fl_json_get_object(sensors, name, &at, d);
    if (!s)
        s = fl_json_known(&at, known, COUNT_OF(known) - (last == NULL), d);
    const fl_ms_field time[] = {{"refresh_ms", &spec->period_ns, false},
                                {"phase_ms", &spec->phase_ns, true},
                                {"window_ms", &spec->window_ns, true},
                                {"lag_ms", &spec->lag_ns, true},
                                {"delay_ms", &spec->delay_ns, true}};
    if (!s)
        s = fl_platform_times(&at, time, COUNT_OF(time), d);
    const fl_real_field field[] = {{"quantum", 0, 1e9, &spec->quantum, true},
                                   {"noise", 0, 1e9, &spec->noise, true},
                                   {counts ? "wrap" : "mem_noise_pct", 0, counts ? 1e15 : 100, last, true}};
    if (!s)
        s = fl_platform_reals(&at, field, COUNT_OF(field) - (last == NULL), d);
    if (!s && spec->period_ns == 0 && (spec->window_ns > 0 || spec->lag_ns > 0))
        s = fl_json_fail(&at, d, "a window or lag without a refresh, expected refresh_ms > 0");
    spec->present = 1;
    return s;
}

const char *const fl_platform_sensor_name[FL_SENSOR_COUNT] = {[FL_SENSOR_POWER] = "power",
                                                              [FL_SENSOR_POWER_INSTANT] = "power_instant",
                                                              [FL_SENSOR_ENERGY] = "energy",
                                                              [FL_SENSOR_UTILISATION] = "utilisation",
                                                              [FL_SENSOR_PROFILE] = "profile",
                                                              [FL_SENSOR_CLOCK] = "clock",
                                                              [FL_SENSOR_TEMPERATURE] = "temperature"};

static fl_status read_sensors(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    static const bool counts[FL_SENSOR_COUNT] = {
        [FL_SENSOR_ENERGY] = true, [FL_SENSOR_PROFILE] = true, [FL_SENSOR_CLOCK] = true};
    fl_json sensors;
    fl_status s = fl_json_get_object(gpu, "sensors", &sensors, d);
    if (!s)
        s = fl_json_known(&sensors, fl_platform_sensor_name, FL_SENSOR_COUNT, d);
    for (size_t i = 0; !s && i < FL_SENSOR_COUNT; i++)
        if (fl_json_has(&sensors, fl_platform_sensor_name[i]))
            s = fl_platform_sensor(&sensors, fl_platform_sensor_name[i], counts[i], &dev->sensor[i],
                                   i == FL_SENSOR_UTILISATION ? &dev->util_mem_noise_pct : NULL, d);
    return s;
}

static fl_status read_actuator(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    static const char *const known[] = {"call_ms", "settle_ms", "read_ms", "limit_call_ms", "limit_force_ms"};
    fl_actuator_spec *spec = &dev->actuator;
    fl_json at;
    fl_status s = fl_json_get_object(gpu, "actuator", &at, d);
    if (!s)
        s = fl_json_known(&at, known, COUNT_OF(known), d);
    const fl_ms_field time[] = {{"call_ms", &spec->call_ns, false},
                                {"settle_ms", &spec->settle_ns, false},
                                {"read_ms", &spec->read_ns, false},
                                {"limit_call_ms", &spec->limit_call_ns, true},
                                {"limit_force_ms", &spec->limit_force_ns, true}};
    s = s ? s : fl_platform_times(&at, time, COUNT_OF(time), d);
    if (!s && spec->limit_force_ns > spec->limit_call_ns)
        s = fl_platform_refuse(&at, "limit_force_ms", d, "%g, expected at most limit_call_ms %g",
                               (double)spec->limit_force_ns * 1e-6, (double)spec->limit_call_ns * 1e-6);
    return s;
}

static fl_status read_wall(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    static const char *const known[] = {"period_ms", "filter_ms", "exponent",  "aim",
                                        "rise_ms",   "rise_mhz",  "recover_ms"};
    fl_wall_spec *w = &dev->wall;
    fl_json at;
    fl_status s = fl_platform_part(gpu, "wall", known, COUNT_OF(known), &at, d);
    if (s || !at.node)
        return s;
    const fl_ms_field time[] = {{"period_ms", &w->period_ns, false},
                                {"filter_ms", &w->filter_ns, false},
                                {"rise_ms", &w->rise_ns, false},
                                {"recover_ms", &w->recover_ns, false}};
    /* An exponent or a rise of 0 would hold a clock up, or down, for good. */
    const fl_real_field field[] = {{"exponent", 1e-3, 10, &w->exponent, false},
                                   {"aim", 1e-3, 1, &w->aim, false},
                                   {"rise_mhz", 1, 1e5, &w->rise_mhz, false}};
    s = fl_platform_times(&at, time, COUNT_OF(time), d);
    if (!s)
        s = fl_platform_reals(&at, field, COUNT_OF(field), d);
    if (!s && dev->power_default_w <= 0)
        s = fl_json_fail(&at, d, "a wall without limits, expected limits with default_w > 0");
    return s;
}

static fl_status read_thermal(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    static const char *const known[] = {"period_ms",    "ambient_c",  "c_per_w", "tau_s",
                                        "leak_w_per_c", "leak_ref_c", "limit_c", "release_c"};
    fl_thermal_spec *t = &dev->thermal;
    fl_json at;
    fl_status s = fl_platform_part(gpu, "thermal", known, COUNT_OF(known), &at, d);
    if (s || !at.node)
        return s;
    const fl_ms_field time = {"period_ms", &t->period_ns, false};
    const fl_real_field field[] = {
        {"ambient_c", -50, 150, &t->ambient_c, false},   {"c_per_w", 0, 1e3, &t->c_per_w, false},
        {"tau_s", 1e-3, 1e6, &t->tau_s, false},          {"leak_w_per_c", 0, WATTS_MAX, &t->leak_w_per_c, false},
        {"leak_ref_c", -50, 200, &t->leak_ref_c, false}, {"limit_c", 0, 200, &t->limit_c, false},
        {"release_c", 0, 200, &t->release_c, false}};
    s = fl_platform_times(&at, &time, 1, d);
    if (!s)
        s = fl_platform_reals(&at, field, COUNT_OF(field), d);
    if (!s && t->leak_ref_c < t->ambient_c)
        s = fl_platform_refuse(&at, "leak_ref_c", d, "%g, expected at least ambient_c %g", t->leak_ref_c, t->ambient_c);
    if (!s && t->limit_c <= t->ambient_c)
        s = fl_platform_refuse(&at, "limit_c", d, "%g, expected more than ambient_c %g", t->limit_c, t->ambient_c);
    if (!s && t->release_c >= t->limit_c)
        s = fl_platform_refuse(&at, "release_c", d, "%g, expected less than limit_c %g", t->release_c, t->limit_c);
    return s;
}

static fl_status read_variation(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    static const char *const known[] = {"voltage_sigma", "leakage_sigma"};
    const fl_real_field field[] = {{"voltage_sigma", 0, 0.2, &dev->v_sigma, false},
                                   {"leakage_sigma", 0, 1, &dev->leak_sigma, false}};
    fl_json at;
    fl_status s = fl_platform_part(gpu, "variation", known, COUNT_OF(known), &at, d);
    return !s && at.node ? fl_platform_reals(&at, field, COUNT_OF(field), d) : s;
}

static fl_status read_records(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    static const char *const known[] = {"slowdown_pct", "kernel_us"};
    double pct = 0, us = 0;
    const fl_real_field field[] = {{known[0], 0, 1000, &pct, true}, {known[1], 0, 1000, &us, true}};
    fl_json at;
    fl_status s = fl_platform_part(gpu, "records", known, COUNT_OF(known), &at, d);
    if (!s && at.node)
        s = fl_platform_reals(&at, field, COUNT_OF(field), d);
    dev->records_known = at.node != NULL;
    dev->records_slowdown = pct / 100;
    dev->records_kernel_s = us * 1e-6;
    return s;
}

/* A number >= 1, or "max" for the pure maximum of the two terms. */
static fl_status read_sharpness(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    fl_json at;
    fl_status s = fl_json_get(gpu, "sharpness", &at, d);
    if (!s && cJSON_IsString(at.node) && strcmp(at.node->valuestring, "max") == 0) {
        dev->sharpness = (double)INFINITY;
        return FL_OK;
    }
    if (!s && !cJSON_IsNumber(at.node))
        return fl_json_fail(&at, d, "expected a number >= 1, or \"max\"");
    return s ? s : fl_json_real(&at, 1, (double)INFINITY, &dev->sharpness, d);
}

/* The law of fl_fold_line; a GPU without the key has a bandwidth that does not depend on the SM clock. */
static fl_status read_bandwidth(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    static const char *const known[] = {"fold_mhz", "low", "high"};
    fl_fold_line *b = &dev->bandwidth;
    const fl_real_field field[] = {
        {"fold_mhz", 1, 1e5, &b->fold_mhz, false}, {"low", 0, 100, &b->low, false}, {"high", 0, 100, &b->high, false}};
    fl_json at;
    fl_status s = fl_platform_part(gpu, "bandwidth", known, COUNT_OF(known), &at, d);
    if (!s && at.node)
        s = fl_platform_reals(&at, field, COUNT_OF(field), d);
    if (!s && !fl_fold_line_sound(b, dev->sm_mhz[0]))
        s = fl_json_fail(&at, d, "expected low >= high >= 0, and bandwidth above 0 at %d MHz", dev->sm_mhz[0]);
    return s;
}

static fl_status read_limits(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    return fl_platform_limits(gpu, &dev->power_min_w, &dev->power_max_w, &dev->power_default_w, d);
}

fl_status fl_platform_device(const fl_json *gpu, fl_device *dev, fl_diag *d) {
    static const char *const known[] = {
        "name",         "count",     "sm_mhz",  "mem_mhz",      "default_sm_mhz", "default_mem_mhz", "sms",
        "cores_per_sm", "peak_gb_s", "tdp_w",   "power",        "sharpness",      "limits",          "sensors",
        "actuator",     "wall",      "thermal", "interference", "variation",      "records",         "bandwidth"};
    double peak_gb_s = 0;
    fl_status s = fl_json_object(gpu, d);
    if (!s)
        s = fl_json_known(gpu, known, COUNT_OF(known), d);
    if (!s)
        s = fl_platform_name(gpu, dev->name, sizeof dev->name, d);
    if (!s)
        s = read_clocks(gpu, "sm_mhz", "default_sm_mhz", &dev->sm_mhz, &dev->sm_count, &dev->default_sm_mhz, d);
    if (!s)
        s = read_clocks(gpu, "mem_mhz", "default_mem_mhz", &dev->mem_mhz, &dev->mem_count, &dev->default_mem_mhz, d);
    if (!s)
        s = fl_platform_count(gpu, "sms", 1, &dev->sms, d);
    if (!s)
        s = fl_platform_count(gpu, "cores_per_sm", 1, &dev->cores_per_sm, d);
    const fl_real_field field[] = {{"peak_gb_s", 0, 1e6, &peak_gb_s, false},
                                   {"tdp_w", 0, WATTS_MAX, &dev->tdp_w, false},
                                   {"interference", 0, 100, &dev->interference, true}};
    if (!s)
        s = fl_platform_reals(gpu, field, COUNT_OF(field), d);
    dev->peak_bytes_per_s = peak_gb_s * 1e9;
    static fl_status (*const part[])(const fl_json *, fl_device *, fl_diag *) = {
        read_sharpness, read_bandwidth, read_power,     read_limits,   read_sensors,
        read_wall,      read_thermal,   read_variation, read_actuator, read_records};
    for (size_t i = 0; !s && i < COUNT_OF(part); i++)
        s = part[i](gpu, dev, d);
    return s;
}
