/* The part of a platform file that describes the host: its CPU, what it shares with an APU's GPU, its meters. */
#pragma once

#include "harness/base/json/json.h"
#include "models/laws/device.h"

/* Names of the host's sensors in a platform file, in the order of fl_host_sensor_id. */
extern const char *const fl_platform_host_sensor_name[FL_HOST_SENSOR_COUNT];

/* Fills a zeroed struct. On failure it may be half filled; fl_node_spec_free of the node that holds it frees it. An
 * APU's bus share goes to its GPU's dram_share in fl_platform_open, which knows both. */
fl_status fl_platform_host(const fl_json *host, fl_host_spec *spec, fl_diag *d);
