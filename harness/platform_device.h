/* The parts of a platform file that describe hardware: one kind of GPU, and the host. */
#ifndef FL_PLATFORM_DEVICE_H
#define FL_PLATFORM_DEVICE_H

#include "harness/json.h"
#include "models/device.h"

/* Fill a zeroed struct. On failure it may be half filled; fl_node_spec_free of the node that holds it frees it. */
fl_status fl_platform_device(const fl_json *gpu, fl_device *dev, fl_diag *d);
fl_status fl_platform_host(const fl_json *host, fl_host_spec *spec, fl_diag *d);

#endif
