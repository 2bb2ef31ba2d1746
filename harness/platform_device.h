/* The parts of a platform file that describe hardware: one kind of GPU, and the host. */
#ifndef FL_PLATFORM_DEVICE_H
#define FL_PLATFORM_DEVICE_H

#include "harness/json.h"
#include "models/device.h"

/* Fill a zeroed struct. On failure it may be half filled; fl_node_spec_free of the node that holds it frees it. */
fl_status fl_platform_device(const fl_json *gpu, fl_device *dev, fl_diag *d);
fl_status fl_platform_host(const fl_json *host, fl_host_spec *spec, fl_diag *d);

/* ---- what both are read with ---- */
#define FL_PLATFORM_MHZ_MAX 100000
#define FL_PLATFORM_WATTS_MAX 1e6

typedef struct fl_real_field { /* a number that stands for itself */
    const char *key;
    double min, max;
    double *value;
    bool optional; /* keeps 0 where missing */
} fl_real_field;

fl_status fl_platform_reals(const fl_json *object, const fl_real_field *field, size_t count, fl_diag *d);
fl_status fl_platform_ms(const fl_json *object, const char *key, bool optional, int64_t *ns, fl_diag *d);
fl_status fl_platform_count(const fl_json *object, const char *key, int64_t min, uint32_t *value, fl_diag *d);
fl_status fl_platform_name(const fl_json *object, char *name, size_t size, fl_diag *d);
/* One pair [MHz, V]. */
fl_status fl_platform_pair(const fl_json *at, double *mhz, double *volts, fl_diag *d);
/* Power limits: min_w <= default_w <= max_w. Leaves 0 where the object lacks "limits". */
fl_status fl_platform_limits(const fl_json *object, double *min_w, double *max_w, double *default_w, fl_diag *d);
/* One sensor of an object of sensors. mem_noise_pct: of the utilisation sensor, else NULL. */
fl_status fl_platform_sensor(const fl_json *sensors, const char *name, fl_sensor_spec *spec, double *mem_noise_pct,
                             fl_diag *d);

#endif
