/* A fitted chip as JSON, under "calibration" of a platform file. */
#include "harness/chip/chip.h"

#include "harness/base/json/json.h"
#include "models/chip/chip.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))
#define BIG 1e9
#define VERSION 1
#define SHARE 6 /* numbers of a share */

/* The scalars; the same rows write and read them. */
typedef struct field {
    const char *key;
    double *value;
    double min, max;
} field;

#define FIELDS(c)                                                                                                      \
    {"sm_ref_mhz", &(c)->sm_ref, 1, 1e5}, {"mem_ref_mhz", &(c)->mem_ref, 1, 1e5},                                      \
        {"sm_min_mhz", &(c)->sm_min, 1, 1e5}, {"mem_min_mhz", &(c)->mem_min, 1, 1e5},                                  \
        {"sharpness", &(c)->sharpness, 1, 1e3}, {"link_mhz", &(c)->link_mhz, 0, 1e5},                                  \
        {"link_slope", &(c)->link_slope, 0, 20}, {"link_sharpness", &(c)->link_sharp, 0, 1e3},                         \
        {"a_w", &(c)->a_w, 0, BIG}, {"a0_w", &(c)->a0_w, 0, BIG}, {"b_w", &(c)->b_w, 0, BIG},                          \
        {"c_w", &(c)->c_w, 0, BIG}, {"stall", &(c)->stall, 0, 1}, {                                                    \
        "stall_memory", &(c)->stall_memory, 0, 1                                                                       \
    }

static void add_list(cJSON *to, const char *key, const double *x, uint32_t n) {
    cJSON *list = cJSON_AddArrayToObject(to, key);
    for (uint32_t i = 0; list && i < n; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(x[i]));
}

static const char *const growth_key[FL_CHIP_PLACES] = {"inside", "outside", "alone", "other_memory"};
static const char *const wide_key[FL_CHIP_PLACES] = {"wide_inside", "wide_outside", "wide_alone", "wide_other_memory"};

static void add_error(cJSON *to, const char *key, const fl_chip_error *e) {
    cJSON *at = cJSON_AddObjectToObject(to, key);
    fl_json_add_real(at, "scatter", e->scatter);
    fl_json_add_real(at, "smooth", e->smooth);
    fl_json_add_real(at, "length_sm", e->length_sm);
    fl_json_add_real(at, "length_mem", e->length_mem);
    for (int p = 0; p < FL_CHIP_PLACES; p++) {
        fl_json_add_real(at, growth_key[p], e->growth[p]);
        fl_json_add_real(at, wide_key[p], e->wide[p]);
    }
}

/* One list per workload, one number per setting; null = not measured. */
static void add_offs(cJSON *to, const char *key, const double off[][FL_CHIP_SETTINGS], uint32_t shares,
                     uint32_t settings) {
    cJSON *list = cJSON_AddArrayToObject(to, key);
    for (uint32_t i = 0; list && i < shares; i++) {
        cJSON *row = cJSON_CreateArray();
        for (uint32_t k = 0; row && k < settings; k++)
            cJSON_AddItemToArray(row, isnan(off[i][k]) ? cJSON_CreateNull()
                                                       : cJSON_CreateNumber(round(off[i][k] * 1e6) / 1e6));
        cJSON_AddItemToArray(list, row);
    }
}

/* The law, and the reason for its choice. */
static void add_law(cJSON *to, const fl_chip *c) {
    cJSON *at = cJSON_AddObjectToObject(to, "law");
    cJSON_AddStringToObject(at, "taken", c->law == FL_CHIP_PLAIN ? "plain" : "full");
    fl_json_add_real(at, "full_time_pct", c->time_law_pct[FL_CHIP_FULL]);
    fl_json_add_real(at, "plain_time_pct", c->time_law_pct[FL_CHIP_PLAIN]);
    fl_json_add_real(at, "full_power_pct", c->power_law_pct[FL_CHIP_FULL]);
    fl_json_add_real(at, "plain_power_pct", c->power_law_pct[FL_CHIP_PLAIN]);
}

cJSON *fl_chip_to_json(const fl_chip *chip, bool mem_known) {
    fl_chip c = *chip;
    const field fields[] = {FIELDS(&c)};
    cJSON *o = cJSON_CreateObject();
    if (!o)
        return NULL;
    cJSON_AddNumberToObject(o, "version", VERSION);
    cJSON_AddNumberToObject(o, "workloads", c.workloads);
    cJSON_AddNumberToObject(o, "rows", (double)c.rows);
    cJSON_AddBoolToObject(o, "mem_known", mem_known);
    cJSON_AddBoolToObject(o, "has_power", c.has_power);
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        cJSON_AddNumberToObject(o, fields[i].key, *fields[i].value);
    add_list(o, "knot_mhz", c.knot_mhz, c.knots);
    add_list(o, "volt", c.volt, c.knots);
    add_list(o, "mem_mhz", c.mem_mhz, c.mems);
    add_list(o, "b0_w", c.b0_w, c.mems);
    add_list(o, "volt_floor", c.volt_floor, c.mems);
    add_list(o, "load_mean", c.load_mean, 2);
    add_list(o, "load_covariance", c.load_cov, 3);
    add_error(o, "time_error", &c.time_error);
    add_error(o, "power_error", &c.power_error);
    if (c.crest > 0) {
        cJSON *crest = cJSON_AddObjectToObject(o, "crest");
        cJSON_AddNumberToObject(crest, "share", c.crest);
        cJSON_AddNumberToObject(crest, "sd", c.crest_sd);
    }
    cJSON *shares = cJSON_AddArrayToObject(o, "shares");
    for (uint32_t i = 0; shares && i < c.shares; i++) {
        const double x[SHARE] = {c.share[i].memory,  c.share[i].rest,  c.share[i].memory_sd,
                                 c.share[i].rest_sd, c.share[i].alpha, c.share[i].beta};
        cJSON_AddItemToArray(shares, cJSON_CreateDoubleArray(x, SHARE));
    }
    add_list(o, "setting_sm_mhz", c.setting_sm, c.settings);
    add_list(o, "setting_mem_mhz", c.setting_mem, c.settings);
    add_offs(o, "time_off", chip->time_off, c.shares, c.settings);
    add_offs(o, "power_off", chip->power_off, c.shares, c.settings);
    add_law(o, chip);
    return o;
}

static fl_status get_list(const fl_json *at, const char *key, size_t least, size_t room, double min, double max,
                          bool ascending, double *x, uint32_t *count, fl_diag *d) {
    fl_json list;
    fl_status s = fl_json_get_array(at, key, &list, d);
    if (!s && (fl_json_count(&list) < least || fl_json_count(&list) > room))
        s = fl_json_fail(&list, d, "%zu values, expected %zu to %zu", fl_json_count(&list), least, room);
    *count = 0;
    if (s)
        return s;
    for (fl_json e = fl_json_first(&list); !s && e.node; e = fl_json_next(&list, &e)) {
        s = fl_json_real(&e, min, max, &x[*count], d);
        if (!s && ascending && *count > 0 && !(x[*count] > x[*count - 1]))
            s = fl_json_fail(&e, d, "%g after %g, expected ascending clocks", x[*count], x[*count - 1]);
        ++*count;
    }
    return s;
}

static fl_status get_error(const fl_json *at, const char *key, fl_chip_error *e, fl_diag *d) {
    fl_json o;
    fl_status s = fl_json_get_object(at, key, &o, d);
    if (!s)
        s = fl_json_get_real(&o, "scatter", 1e-9, 10, &e->scatter, d);
    if (!s)
        s = fl_json_get_real(&o, "smooth", 0, 10, &e->smooth, d);
    if (!s)
        s = fl_json_get_real(&o, "length_sm", 1e-3, 100, &e->length_sm, d);
    if (!s)
        s = fl_json_get_real(&o, "length_mem", 1e-3, 100, &e->length_mem, d);
    static const double growth[FL_CHIP_PLACES] = {
        0.03, 0.1}; /* assumed where a file gives none; all other places as outside */
    for (int p = 0; !s && p < FL_CHIP_PLACES; p++) {
        e->growth[p] = p <= FL_CHIP_OUTSIDE ? growth[p] : e->growth[FL_CHIP_OUTSIDE];
        e->wide[p] = p <= FL_CHIP_OUTSIDE ? 1 : e->wide[FL_CHIP_OUTSIDE];
        if (fl_json_has(&o, growth_key[p]))
            s = fl_json_get_real(&o, growth_key[p], 0, BIG, &e->growth[p], d);
        if (!s && fl_json_has(&o, wide_key[p]))
            s = fl_json_get_real(&o, wide_key[p], 1e-3, BIG, &e->wide[p], d);
    }
    return s;
}

static fl_status same_count(const fl_json *at, const char *key, uint32_t a, uint32_t b, fl_diag *d) {
    fl_json list;
    if (a == b)
        return FL_OK;
    fl_status s = fl_json_get_array(at, key, &list, d);
    return s ? s : fl_json_fail(&list, d, "%u values, expected %u, one for each clock", b, a);
}

static fl_status get_shares(const fl_json *at, fl_chip *c, fl_diag *d) {
    fl_json list;
    fl_status s = fl_json_get_array(at, "shares", &list, d);
    if (!s && fl_json_count(&list) > FL_CHIP_SHARES)
        s = fl_json_fail(&list, d, "%zu workloads, expected at most %d", fl_json_count(&list), FL_CHIP_SHARES);
    if (s)
        return s;
    for (fl_json e = fl_json_first(&list); !s && e.node; e = fl_json_next(&list, &e)) {
        fl_chip_share *share = &c->share[c->shares++];
        double *const value[SHARE] = {&share->memory,  &share->rest,  &share->memory_sd,
                                      &share->rest_sd, &share->alpha, &share->beta};
        size_t k = 0;
        if (!cJSON_IsArray(e.node) || fl_json_count(&e) != SHARE)
            return fl_json_fail(&e, d, "expected memory, rest, their standard deviations, alpha and beta");
        for (fl_json x = fl_json_first(&e); !s && x.node; x = fl_json_next(&e, &x), k++)
            s = fl_json_real(&x, 0, k < 4 ? 1 : BIG, value[k], d);
    }
    return s;
}

/* One list per share, one number per setting; null is NAN. */
static fl_status get_offs(const fl_json *at, const char *key, const fl_chip *c, double off[][FL_CHIP_SETTINGS],
                          fl_diag *d) {
    fl_json list = {0};
    fl_status s = fl_json_get_array(at, key, &list, d);
    if (!s && fl_json_count(&list) != c->shares)
        return fl_json_fail(&list, d, "%zu lists, expected one for each of %u shares", fl_json_count(&list), c->shares);
    for (fl_json e = fl_json_first(&list); !s && e.node; e = fl_json_next(&list, &e)) {
        double *to = *off++;
        if (!cJSON_IsArray(e.node) || fl_json_count(&e) != c->settings)
            return fl_json_fail(&e, d, "expected one number or null for each of %u settings", c->settings);
        for (fl_json x = fl_json_first(&e); !s && x.node; x = fl_json_next(&e, &x), to++) {
            *to = NAN;
            if (!cJSON_IsNull(x.node))
                s = fl_json_real(&x, -10, 10, to, d);
        }
    }
    return s;
}

/* Optional: mean power over a power limit that binds. */
static fl_status get_crest(const fl_json *at, fl_chip *c, fl_diag *d) {
    fl_json crest;
    if (!fl_json_has(at, "crest"))
        return FL_OK;
    fl_status s = fl_json_get_object(at, "crest", &crest, d);
    if (!s)
        s = fl_json_get_real(&crest, "share", 0.1, 1, &c->crest, d);
    return s ? s : fl_json_get_real(&crest, "sd", 0, 1, &c->crest_sd, d);
}

fl_status fl_chip_from_json(const fl_json *at, fl_chip *chip, bool *mem_known, fl_diag *d) {
    fl_chip c = {0};
    field fields[] = {FIELDS(&c)};
    int64_t version = 0, workloads = 0, rows = 0;
    bool power = false;
    uint32_t n = 0;
    fl_status s = fl_json_object(at, d);
    if (!s)
        s = fl_json_get_int(at, "version", VERSION, VERSION, &version, d);
    if (!s)
        s = fl_json_get_int(at, "workloads", 0, 1 << 30, &workloads, d);
    if (!s)
        s = fl_json_get_int(at, "rows", 0, 1 << 30, &rows, d);
    if (!s)
        s = fl_json_get_bool(at, "mem_known", mem_known, d);
    if (!s)
        s = fl_json_get_bool(at, "has_power", &power, d);
    for (size_t i = 0; !s && i < COUNT_OF(fields); i++)
        s = fl_json_get_real(at, fields[i].key, fields[i].min, fields[i].max, fields[i].value, d);
    const size_t least = power ? 1 : 0;
    if (!s)
        s = get_list(at, "knot_mhz", least, FL_CHIP_KNOTS, 1, 1e5, true, c.knot_mhz, &c.knots, d);
    if (!s)
        s = get_list(at, "volt", least, FL_CHIP_KNOTS, 1e-3, 1e3, false, c.volt, &n, d);
    if (!s)
        s = same_count(at, "volt", c.knots, n, d);
    if (!s)
        s = get_list(at, "mem_mhz", least, FL_CHIP_MEMS, 1, 1e5, true, c.mem_mhz, &c.mems, d);
    if (!s)
        s = get_list(at, "b0_w", least, FL_CHIP_MEMS, 0, BIG, false, c.b0_w, &n, d);
    if (!s)
        s = same_count(at, "b0_w", c.mems, n, d);
    if (!s)
        s = get_list(at, "volt_floor", least, FL_CHIP_MEMS, 0, 1e3, false, c.volt_floor, &n, d);
    if (!s)
        s = same_count(at, "volt_floor", c.mems, n, d);
    if (!s)
        s = get_list(at, "load_mean", 2, 2, -BIG, BIG, false, c.load_mean, &n, d);
    if (!s)
        s = get_list(at, "load_covariance", 3, 3, -BIG, BIG, false, c.load_cov, &n, d);
    if (!s)
        s = get_error(at, "time_error", &c.time_error, d);
    if (!s && power)
        s = get_error(at, "power_error", &c.power_error, d);
    if (!s)
        s = get_crest(at, &c, d);
    if (!s)
        s = get_shares(at, &c, d);
    if (!s)
        s = get_list(at, "setting_sm_mhz", 0, FL_CHIP_SETTINGS, 1, 1e5, false, c.setting_sm, &c.settings, d);
    if (!s)
        s = get_list(at, "setting_mem_mhz", 0, FL_CHIP_SETTINGS, 1, 1e5, false, c.setting_mem, &n, d);
    if (!s)
        s = same_count(at, "setting_mem_mhz", c.settings, n, d);
    if (!s)
        s = get_offs(at, "time_off", &c, c.time_off, d);
    if (!s)
        s = get_offs(at, "power_off", &c, c.power_off, d);
    if (!s && power && !(c.load_cov[0] * c.load_cov[2] > c.load_cov[1] * c.load_cov[1] && c.load_cov[0] > 0))
        s = fl_json_fail(at, d, "load_covariance is no covariance, expected one that is positive definite");
    if (s)
        return s;
    c.has_power = power;
    c.workloads = (uint32_t)workloads;
    c.rows = (size_t)rows;
    *chip = c;
    return FL_OK;
}
