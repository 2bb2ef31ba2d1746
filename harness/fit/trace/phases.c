/* Turns a telemetry log without kernels into a program made of phases. */
#include "harness/fit/trace/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UTIL, MEM, POWER, CLOCK, SIGNALS };
static const char *const names[SIGNALS] = {"util_gpu_pct", "util_mem_pct", "power_w", "sm_mhz"};
static const double step_of[SIGNALS] = {25, 15, 0.15,
                                        0.05}; /* a change of phase: points of utilisation, shares of the rest */
#define PHASE_MIN_S 2.0                        /* shorter stretches join their neighbour */

typedef struct phase {
    double seconds, mean[SIGNALS], weight[SIGNALS];
} phase;

typedef struct phases {
    phase *item;
    size_t count, room;
} phases;

static void add_reading(phase *p, const double *value, double seconds) {
    p->seconds += seconds;
    seconds = fmax(seconds, 1e-9); /* the first reading of a log covers no time, but it counts as a reading */
    for (int i = 0; i < SIGNALS; i++)
        if (!isnan(value[i])) {
            p->weight[i] += seconds;
            p->mean[i] += (value[i] - p->mean[i]) * seconds / p->weight[i];
        }
}

static bool differs(const phase *p, const double *value) {
    for (int i = 0; i < SIGNALS; i++) {
        const double by = i < POWER ? step_of[i] : step_of[i] * fabs(p->mean[i]);
        if (!isnan(value[i]) && p->weight[i] > 0 && fabs(value[i] - p->mean[i]) > by)
            return true;
    }
    return false;
}

static void merge(phase *into, const phase *from) {
    double value[SIGNALS];
    for (int i = 0; i < SIGNALS; i++)
        value[i] = from->weight[i] > 0 ? from->mean[i] : (double)NAN;
    add_reading(into, value, from->seconds);
}

/* A phase ends where two consecutive readings differ from it; a single one is noise. Pauses belong to no phase. */
static void cut(const fl_telemetry *t, const size_t *column, int32_t device, phases *out) {
    double longest_ns = INFINITY;
    fl_must_have(!fl_telemetry_longest(t, SIZE_MAX, device, &longest_ns, NULL));
    size_t before = SIZE_MAX, off = 0;
    for (size_t i = 0; i < t->row_count; i++) {
        double value[SIGNALS];
        if (t->device[i] != device)
            continue;
        for (int k = 0; k < SIGNALS; k++)
            value[k] = column[k] == SIZE_MAX ? (double)NAN : t->value[i * t->signal_count + column[k]];
        const double since_ns = before == SIZE_MAX ? 0 : (double)(t->t_ns[i] - t->t_ns[before]),
                     seconds = since_ns <= longest_ns ? since_ns * 1e-9 : 0;
        before = i;
        off = out->count && differs(&out->item[out->count - 1], value) ? off + 1 : 0;
        if (!out->count || off > 1) {
            fl_must_grow(&out->item, &out->room, out->count + 1, sizeof *out->item);
            out->item[out->count++] = (phase){0};
            off = 0;
        }
        add_reading(&out->item[out->count - 1], value, seconds);
    }
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        if (kept && (out->item[i].seconds < PHASE_MIN_S || out->item[kept - 1].seconds < PHASE_MIN_S))
            merge(&out->item[kept - 1], &out->item[i]);
        else
            out->item[kept++] = out->item[i];
    }
    out->count = kept;
}

/* The phase as kernels of 10 ms, busy for util_gpu of the time. The memory share follows from the memory utilisation,
 * and the rest counts as core; alpha follows from the power above the platform's base. */
static fl_status describe(const phase *p, const fl_device *dev, size_t index, fl_programs *programs, fl_kinds *kinds,
                          fl_diag *d) {
    char name[32];
    const double busy = fmin(1, fmax(0.001, p->mean[UTIL] / 100)), active = fmin(1, p->mean[MEM] / 100 / busy),
                 memory = p->weight[MEM] > 0 ? active : 0.5,
                 mhz = p->weight[CLOCK] > 0 ? p->mean[CLOCK] : dev->default_sm_mhz;
    fl_base base;
    double alpha = 1, sm_w, memory_w;
    if (p->weight[POWER] > 0 && fl_base_make(dev, mhz, dev->default_mem_mhz, &base) == FL_MODEL_OK &&
        fl_power_dynamic(dev, 1, memory, mhz, dev->default_mem_mhz, &sm_w, &memory_w) == FL_MODEL_OK && sm_w > 0)
        alpha = fmax(0, ((p->mean[POWER] - base.total_mw * 1e-3) / busy - memory_w) / sm_w);
    snprintf(name, sizeof name, "phase_%zu", index + 1);
    fl_kind_load load = {.name = fl_must(strdup(name)),
                         .tc = fmax(0.05, 1 - memory * memory),
                         .tm = fmax(0.05, memory),
                         .sharpness = dev->sharpness >= 1 ? dev->sharpness : INFINITY,
                         .alpha = alpha,
                         .beta = memory,
                         .sm_demand = 1,
                         .sm_mhz = mhz,
                         .phase = 1,
                         .fold_mhz = dev->bandwidth.fold_mhz > 0 ? INFINITY : 0,
                         .host_bound = NAN,
                         .host_alpha = NAN,
                         .host_upc = NAN,
                         .host_gb_s = NAN};
    fl_must_grow(&kinds->kind, &kinds->room, kinds->count + 1, sizeof load);
    kinds->kind[kinds->count++] = load;
    const fl_program_row row = {.program = fl_programs_name(programs, "log"),
                                .kernel = fl_programs_name(programs, name),
                                .part = (uint32_t)index + 1,
                                .count = 1,
                                .part_s = fmax(p->seconds, 1e-3),
                                .time_us = 10000,
                                .gap_us = 10000 * (1 / busy - 1),
                                .grid_x = 256,
                                .block_x = 256,
                                .cycles = 1};
    fl_must_have(row.program != UINT32_MAX && row.kernel != UINT32_MAX);
    return fl_programs_add(programs, &row, d);
}

static void print(const phases *all) {
    static const char *const head[] = {"phase", "s", "GPU %", "memory %", "W", "SM MHz"};
    fl_grid g = FL_GRID_HEADED(head);
    for (size_t i = 0; i < all->count; i++) {
        fl_grid_add(&g, "%zu\t%.2f", i + 1, all->item[i].seconds);
        for (int k = 0; k < SIGNALS; k++)
            if (all->item[i].weight[k] > 0)
                fl_grid_add(&g, "%.1f", all->item[i].mean[k]);
            else
                fl_grid_add(&g, "n/a");
    }
    fl_grid_print(&g, 1, stdout);
}

static void print_json(const phases *all, const char *out) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "file", out);
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < all->count; i++) {
        cJSON *row = fl_json_add_row(rows);
        cJSON_AddNumberToObject(row, "phase", (double)i + 1);
        fl_json_add_real(row, "time_s", all->item[i].seconds);
        for (int k = 0; k < SIGNALS; k++)
            fl_json_add_real(row, names[k], all->item[i].weight[k] > 0 ? all->item[i].mean[k] : (double)NAN);
    }
    fl_json_tell(root);
}

/* PHASES.programs.csv becomes PHASES.kinds.csv, and its name without folders. */
static char *kinds_path(const char *out, const char **name) {
    const char *dot = strstr(out, ".programs.csv");
    if (!dot)
        dot = out + strlen(out);
    char *path = fl_must_print("%.*s.kinds.csv", (int)(dot - out), out), *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    return path;
}

static fl_status write_files(fl_programs *p, fl_kinds *k, const fl_device *dev, const char *source, const char *out,
                             bool json, fl_diag *d) {
    const char *name;
    if (fl_is_standard(out))
        return fl_refuse(d, "-o '-' holds one file, but the kinds of the phases need another, expected a file name");
    char *path = kinds_path(out, &name), mhz[32], mem[32];
    snprintf(mhz, sizeof mhz, "%g", k->kind[0].sm_mhz);
    snprintf(mem, sizeof mem, "%g", dev->default_mem_mhz);
    static const char assumed[] = "a log tells lengths, clock, utilisation and power; how phases depend on the clocks "
                                  "is assumed from memory utilisation";
    fl_must_have(fl_head_set(&p->head, "source", source) && fl_head_set(&p->head, "assumed", assumed) &&
                 fl_head_set(&p->head, "sm_mhz", mhz) && fl_head_set(&p->head, "mem_mhz", mem) &&
                 fl_head_set(&p->head, "kinds", name) && fl_head_set(&k->head, "source", source) &&
                 fl_head_set(&k->head, "assumed", assumed));
    fl_status s = fl_kinds_write(path, k, d);
    if (!s)
        s = fl_programs_write(out, p, d);
    if (!s)
        fprintf(json ? stderr : stdout,
                "note: how a phase depends on the clocks is an assumption based on its memory utilisation\n"
                "written: %s and %s\n",
                out, path);
    free(path);
    return s;
}

typedef struct gpus { /* the GPUs of a log */
    int32_t lowest, highest;
    bool has; /* whether the requested one is among them */
} gpus;

static gpus find_gpus(const fl_telemetry *t, int32_t wanted) {
    gpus g = {.lowest = INT32_MAX, .highest = -1};
    for (size_t i = 0; i < t->row_count; i++) {
        const int32_t device = t->device[i];
        if (device < 0)
            continue;
        g.lowest = device < g.lowest ? device : g.lowest;
        g.highest = device > g.highest ? device : g.highest;
        g.has |= device == wanted;
    }
    return g;
}

fl_status fl_fit_phases(const fl_telemetry *t, int32_t device, const fl_device *dev, const char *source,
                        const char *out, bool json, fl_diag *d) {
    size_t column[SIGNALS];
    phases all = {0};
    fl_programs programs = {0};
    fl_kinds kinds = {0};
    for (int k = 0; k < SIGNALS; k++) {
        column[k] = SIZE_MAX;
        for (size_t i = 0; i < t->signal_count; i++)
            if (!strcmp(t->signal[i], names[k]))
                column[k] = i;
    }
    if (column[UTIL] == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, source, 0, 0, "no GPU utilisation in the log, expected util_gpu_pct");
    const gpus g = find_gpus(t, device);
    if (g.highest < 0)
        return fl_fail(d, FL_BAD_INPUT, source, 0, 0, "no readings of a GPU, expected some to find phases in");
    if (device >= 0 && !g.has)
        return fl_fail(d, FL_BAD_INPUT, source, 0, 0, "no GPU %d in the log, expected one from %d to %d", device,
                       g.lowest, g.highest);
    const bool others = g.highest > g.lowest;
    device = device < 0 ? g.lowest : device;
    fl_status s = FL_OK;
    double busy = 0;
    cut(t, column, device, &all);
    for (size_t i = 0; i < all.count; i++)
        busy += all.item[i].mean[UTIL] * all.item[i].seconds;
    if (!(busy > 0))
        s = fl_fail(d, FL_BAD_INPUT, source, 0, 0, "GPU %d did nothing in the log, expected some utilisation", device);
    for (size_t i = 0; !s && i < all.count; i++)
        s = describe(&all.item[i], dev, i, &programs, &kinds, d);
    if (!s)
        s = write_files(&programs, &kinds, dev, source, out, json, d);
    if (!s && others)
        fprintf(json ? stderr : stdout,
                "note: the log has GPUs %d to %d: these are the phases of GPU %d only; --device chooses another\n",
                g.lowest, g.highest, device);
    if (!s && json)
        print_json(&all, out);
    else if (!s)
        print(&all);
    free(all.item);
    fl_programs_free(&programs);
    fl_kinds_free(&kinds);
    return s;
}
