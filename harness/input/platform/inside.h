/* What the files of harness/input/platform share. Other modules include the public header alone. */
#pragma once

#include "harness/base/json/json.h"
#include "models/laws/device.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills a zeroed struct. On failure it may be half filled; fl_node_spec_free of the node that holds it frees it. */
fl_status fl_platform_device(const fl_json *gpu, fl_device *dev, fl_diag *d);

/* Find the name: itself, else the only one that differs from it in case, blanks, hyphens or underscores alone. NULL:
 * none, or several. */
const char *fl_bundled_find(const char *name, char *const *names, size_t count);

typedef struct fl_real_field { /* a number in the unit of its key */
    const char *key;
    double min, max;
    double *value;
    bool optional; /* a missing key keeps 0 */
} fl_real_field;

typedef struct fl_ms_field { /* a time, in the file in ms */
    const char *key;
    int64_t *ns;
    bool optional; /* keeps 0 where missing */
} fl_ms_field;

fl_status fl_platform_reals(const fl_json *object, const fl_real_field *field, size_t count, fl_diag *d);
fl_status fl_platform_times(const fl_json *object, const fl_ms_field *field, size_t count, fl_diag *d);
fl_status fl_platform_count(const fl_json *object, const char *key, int64_t min, uint32_t *value, fl_diag *d);

/* Get an object that may be missing (part->node is then NULL). Refuse keys that are not among `known`. */
fl_status fl_platform_part(const fl_json *object, const char *key, const char *const *known, size_t count,
                           fl_json *part, fl_diag *d);

/* One pair [MHz, V]. */
fl_status fl_platform_pair(const fl_json *at, double *mhz, double *volts, fl_diag *d);
/* Power limits: min_w <= default_w <= max_w. Leaves 0 where the object lacks "limits". */
fl_status fl_platform_limits(const fl_json *object, double *min_w, double *max_w, double *default_w, fl_diag *d);
/* Read one sensor of an object of sensors. counts: the sensor has counters, which may wrap. mem_noise_pct: receives the
 * noise of memory utilisation, only for the utilisation sensor; NULL for all others. */
fl_status fl_platform_sensor(const fl_json *sensors, const char *name, bool counts, fl_sensor_spec *spec,
                             double *mem_noise_pct, fl_diag *d);

/* Fills a zeroed struct. On failure it may be half filled; fl_node_spec_free of the node that holds it frees it. An
 * APU's bus share goes to its GPU's dram_share in fl_platform_open, which knows both. */
fl_status fl_platform_host(const fl_json *host, fl_host_spec *spec, fl_diag *d);
