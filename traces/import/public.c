/* Tables of measured settings that are public, each known by its header and read by a map (sweep_map.h). Their units
 * are their owners'; what a table does not say is a note. */
#include "traces/import/import.h"

#include "traces/import/foreign.h"
#include "traces/import/sweep_map.h"

#include <stdio.h>
#include <string.h>

enum { NEEDED_MAX = 8 };

typedef struct table {
    const char *needed[NEEDED_MAX]; /* columns that its header has */
    const char *map;
    const char *note; /* NULL: nothing to say */
} table;

/* GPU-DVFS-Job-Schedule: real applications on a GTX 1080 Ti and an RTX 2070 Super. */
static const table dvfs = {
    {"appName", "coreF", "memF", "argNo", "kernel", "time/ms", "power/W"},
    "workload=appName+argNo,kernel=kernel,sm_mhz=coreF,mem_mhz=memF,time_s=time/ms/1000,power_w=power/W",
    NULL};

/* NV-DVFS-Benchmark: profiles with DCGM's activities, which run from 0 to 1. */
static const table profile = {
    {"benchmark", "argNo", "kernel", "core_frequency", "memory_frequency", "time", "average_power", "DRAMA"},
    "workload=benchmark+argNo,kernel=kernel,sm_mhz=core_frequency,mem_mhz=memory_frequency,time_s=time/1000,"
    "power_w=average_power,dram_active_pct=DRAMA*100,sm_active_pct=SMACT*100,sm_occupancy_pct=SMOCC*100,"
    "fp32_pct=FP32A*100,fp64_pct=FP64A*100,fp16_pct=FP16A*100,tensor_pct=TENSO*100",
    "the table does not say the unit of 'time': taken as ms (--map says another)"};

/* Zeus, summary_power_*.csv: one row per training job and power limit. */
static const table zeus = {
    {"dataset", "network", "batch_size", "optimizer", "power_limit", "time_per_epoch", "average_power"},
    "workload=dataset+network+batch_size+optimizer,power_cap_w=power_limit,time_s=time_per_epoch,power_w=average_power",
    "no clocks: each row is one epoch of training under a power limit"};

static bool has_header(const table *t, const fl_cells *line) {
    for (size_t i = 0; i < NEEDED_MAX && t->needed[i]; i++)
        if (!fl_cells_have(line, t->needed[i]))
            return false;
    return true;
}

static fl_status read_table(const table *t, const char *path, fl_imported *out, fl_diag *d) {
    fl_sweep_map map;
    fl_status s = fl_sweep_map_parse(t->map, &map, d);
    if (!s)
        s = fl_sweep_read_mapped(path, &map, &out->sweep, d);
    out->has_sweep = !s;
    if (!s && t->note)
        s = fl_import_note(out, d, "%s", t->note);
    if (!s)
        s = fl_import_note(out, d, "columns are taken as %s", t->map);
    fl_sweep_map_free(&map);
    return s;
}

/* A reader of a table: its header must be the first line. */
#define TABLE_READER(ident, name, what)                                                                                \
    static bool ident##_header(const fl_cells *line) { return has_header(&ident, line); }                              \
    static bool ident##_detect(const char *path, const char *head, size_t size) {                                      \
        (void)path;                                                                                                    \
        return fl_header_find(head, size, ident##_header) == 0;                                                        \
    }                                                                                                                  \
    static fl_status ident##_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {        \
        (void)o;                                                                                                       \
        return read_table(&ident, path, out, d);                                                                       \
    }                                                                                                                  \
    const fl_reader fl_reader_##ident = {name, what, ident##_detect, ident##_read}

TABLE_READER(dvfs, "gpu-dvfs", "table of GPU-DVFS-Job-Schedule (coreF, memF, time/ms, power/W)");
TABLE_READER(profile, "nv-dvfs", "table of NV-DVFS-Benchmark (core_frequency, time, average_power, DCGM's activities)");
TABLE_READER(zeus, "zeus", "table of Zeus (power_limit, time_per_epoch, average_power)");
