/* What --map says: a text, or a JSON file. */
#pragma once

#include "traces/import/sweep_map.h"

/* spec: "sm_mhz=coreF,time_s=time/1000" (traces/import/sweep_map.h), or the name of a file that ends in .json and holds the
 * same as an object: {"sm_mhz": "coreF", "time_s": "time/1000", "mem_mhz": 877}. *m is left empty on failure; the
 * caller frees it. */
fl_status fl_sweep_map_open(const char *spec, fl_sweep_map *m, fl_diag *d);
