/* The part of a platform file that describes one kind of GPU, and what it and the host's part are read with. */
#pragma once

#include "harness/base/json/json.h"
#include "models/laws/device.h"

/* Names of a GPU's sensors in a platform file, in the order of fl_sensor_id. */
extern const char *const fl_platform_sensor_name[FL_SENSOR_COUNT];

/* Fills a zeroed struct. On failure it may be half filled; fl_node_spec_free of the node that holds it frees it. */
fl_status fl_platform_device(const fl_json *gpu, fl_device *dev, fl_diag *d);

/* The ladder `key`: a list of clocks, or an object with from, to and steps. *mhz is the caller's to free, even after a
 * failure. */
fl_status fl_platform_ladder(const fl_json *object, const char *key, int32_t **mhz, uint32_t *count, fl_diag *d);

/* ---- what both are read with ---- */
#define FL_PLATFORM_MHZ_MAX 100000
#define FL_PLATFORM_WATTS_MAX 1e6

typedef struct fl_real_field { /* a number that stands for itself */
    const char *key;
    double min, max;
    double *value;
    bool optional; /* keeps 0 where missing */
} fl_real_field;

typedef struct fl_ms_field { /* a time, in the file in ms */
    const char *key;
    int64_t *ns;
    bool optional; /* keeps 0 where missing */
} fl_ms_field;

fl_status fl_platform_reals(const fl_json *object, const fl_real_field *field, size_t count, fl_diag *d);
fl_status fl_platform_times(const fl_json *object, const fl_ms_field *field, size_t count, fl_diag *d);
fl_status fl_platform_count(const fl_json *object, const char *key, int64_t min, uint32_t *value, fl_diag *d);
fl_status fl_platform_name(const fl_json *object, char *name, size_t size, fl_diag *d);
/* An object that may be missing (part->node is NULL then) and has no keys but the known. */
fl_status fl_platform_part(const fl_json *object, const char *key, const char *const *known, size_t count,
                           fl_json *part, fl_diag *d);
/* The reason as fl_json_fail gives it, about the member `key` of the object. */
fl_status fl_platform_refuse(const fl_json *object, const char *key, fl_diag *d, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* One pair [MHz, V]. */
fl_status fl_platform_pair(const fl_json *at, double *mhz, double *volts, fl_diag *d);
/* Power limits: min_w <= default_w <= max_w. Leaves 0 where the object lacks "limits". */
fl_status fl_platform_limits(const fl_json *object, double *min_w, double *max_w, double *default_w, fl_diag *d);
/* One sensor of an object of sensors. counts: it has counters, which may wrap. mem_noise_pct: of the utilisation
 * sensor, which has none; else NULL. */
fl_status fl_platform_sensor(const fl_json *sensors, const char *name, bool counts, fl_sensor_spec *spec,
                             double *mem_noise_pct, fl_diag *d);
