/* What `nvidia-smi -q -x` prints of a machine's boards. */
#pragma once

#include "traces/io/diag.h"

/* X(MEMBER, PLACES): texts of a GPU, by the place of their element below <gpu>; "|" between places of several versions
 * of the tool. */
#define FL_SMI_TEXTS(X)                                                                                                \
    X(name, "product_name")                                                                                            \
    X(uuid, "uuid")                                                                                                    \
    X(serial, "serial")                                                                                                \
    X(vbios, "vbios_version")                                                                                          \
    X(bus_id, "pci/pci_bus_id")                                                                                        \
    X(device_id, "pci/pci_device_id")                                                                                  \
    X(subsystem_id, "pci/pci_sub_system_id")

/* X(MEMBER, UNIT, PLACES): numbers; NAN where the tool has none ("N/A"). */
#define FL_SMI_NUMBERS(X)                                                                                              \
    X(memory_mib, "MiB", "fb_memory_usage/total")                                                                      \
    X(limit_min_w, "W", "gpu_power_readings/min_power_limit|power_readings/min_power_limit")                           \
    X(limit_max_w, "W", "gpu_power_readings/max_power_limit|power_readings/max_power_limit")                           \
    X(limit_default_w, "W", "gpu_power_readings/default_power_limit|power_readings/default_power_limit")               \
    X(sm_max_mhz, "MHz", "max_clocks/sm_clock")                                                                        \
    X(mem_max_mhz, "MHz", "max_clocks/mem_clock")                                                                      \
    X(sm_default_mhz, "MHz", "default_applications_clocks/graphics_clock")

#define FL_SMI_TEXT_SIZE 64

typedef struct fl_smi_gpu {
#define FL_SMI_TEXT_MEMBER(member, places) char member[FL_SMI_TEXT_SIZE]; /* empty = not known */
#define FL_SMI_NUMBER_MEMBER(member, unit, places) double member;
    FL_SMI_TEXTS(FL_SMI_TEXT_MEMBER)
    FL_SMI_NUMBERS(FL_SMI_NUMBER_MEMBER)
    int32_t *sm_mhz, *mem_mhz; /* supported clocks, ascending, of the highest memory clock; count 0 = none given */
    size_t sm_count, mem_count;
} fl_smi_gpu;

typedef struct fl_smi {
    char driver[FL_SMI_TEXT_SIZE];
    fl_smi_gpu *gpu; /* count: at least one, all of one product */
    size_t count;
} fl_smi;

/* FL_BAD_INPUT with line and column where the file is not well-formed, not of that tool, without a GPU, or has a value
 * that is none. Free with fl_smi_free, also after a failure. */
fl_status fl_smi_read(const char *path, fl_smi *smi, fl_diag *d);
void fl_smi_free(fl_smi *smi);

/* Does the name end in .xml? */
bool fl_is_smi(const char *path);
