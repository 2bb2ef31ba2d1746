#include "harness/live/gpu_inside.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_nvml_failed(fl_nvml_host *h, const fl_nvml_gpu *g, const char *what, int code, fl_diag *d) {
    const bool refused =
        code == FL_NVML_NO_PERMISSION || code == FL_NVML_NOT_SUPPORTED || code == FL_NVML_FUNCTION_NOT_FOUND;
    return fl_fail(d, refused ? FL_IO : FL_HARDWARE, NULL, 0, 0, "GPU %u: %s: %s", g->index, what,
                   fl_nvml_reason(&h->nvml, code));
}

/* ---- ladders ------------------------------------------------------------------------------------------------------
 */

static int rising(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x > y ? 1 : x < y ? -1 : 0;
}

/* Clocks as the library lists them (in any order, doubled or not) as a ladder. */
static uint32_t ladder(unsigned *clocks, unsigned count, int32_t *into) {
    uint32_t n = 0;
    for (unsigned i = 0; i < count; i++)
        if (clocks[i] > 0 && clocks[i] < 100000)
            into[n++] = (int32_t)clocks[i];
    qsort(into, n, sizeof *into, rising);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!kept || into[kept - 1] != into[i])
            into[kept++] = into[i];
    return kept;
}

static int list_clocks(fl_nvml_host *h, fl_nvml_gpu *g, bool sm, unsigned mem_mhz, unsigned *count, unsigned *clocks) {
    return sm ? FL_NVML_CALL(h, sm_clocks, g->handle, mem_mhz, count, clocks)
              : FL_NVML_CALL(h, mem_clocks, g->handle, count, clocks);
}

/* The count is asked for first; a library that answers this with success has none. */
static fl_status read_ladder(fl_nvml_host *h, fl_nvml_gpu *g, bool sm, unsigned mem_mhz, int32_t **out,
                             uint32_t *out_count, fl_diag *d) {
    unsigned count = 0;
    *out_count = 0;
    int code = list_clocks(h, g, sm, mem_mhz, &count, NULL);
    if (code != FL_NVML_INSUFFICIENT_SIZE || !count || count > 100000)
        return FL_OK;
    unsigned *clocks = calloc(count, sizeof *clocks);
    int32_t *rungs = calloc(count, sizeof *rungs);
    if (clocks && rungs && !list_clocks(h, g, sm, mem_mhz, &count, clocks))
        *out_count = ladder(clocks, count, rungs);
    fl_status s = clocks && rungs ? FL_OK : fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the clocks");
    free(clocks);
    *out = rungs;
    return s;
}

static fl_status read_ladders(fl_nvml_host *h, fl_nvml_gpu *g, fl_diag *d) {
    fl_status s = read_ladder(h, g, false, 0, &g->mem, &g->mem_count, d);
    if (!s && g->mem_count)
        s = read_ladder(h, g, true, (unsigned)g->mem[g->mem_count - 1], &g->sm, &g->sm_count, d);
    return s;
}

static fl_status facts(void *self, uint32_t i, fl_gpu_facts *f, fl_diag *d) {
    fl_nvml_host *h = self;
    fl_nvml_gpu *g = &h->gpu[i];
    unsigned mhz = 0, low = 0, high = 0, standard = 0;
    (void)d;
    *f = (fl_gpu_facts){.name = g->name, .sm = {g->sm, g->sm_count}, .mem = {g->mem, g->mem_count}};
    f->default_sm_mhz = fl_ladder_max(f->sm);
    f->default_mem_mhz = fl_ladder_max(f->mem);
    if (!FL_NVML_CALL(h, max_clock, g->handle, FL_NVML_CLOCK_SM, &mhz) && mhz && mhz < f->default_sm_mhz)
        f->default_sm_mhz = mhz;
    if (!FL_NVML_CALL(h, max_clock, g->handle, FL_NVML_CLOCK_MEM, &mhz) && mhz && mhz < f->default_mem_mhz)
        f->default_mem_mhz = mhz;
    if (!FL_NVML_CALL(h, limit_range, g->handle, &low, &high)) {
        f->power_min_w = low * 1e-3;
        f->power_max_w = high * 1e-3;
    }
    if (!FL_NVML_CALL(h, limit_default, g->handle, &standard))
        f->tdp_w = f->power_default_w = standard * 1e-3;
    return FL_OK;
}

/* ---- a simulated session ------------------------------------------------------------------------------------------
 */

static fl_status read_node(void *self, fl_gpu_sample *sample, fl_host_sample *node, fl_diag *d) {
    fl_nvml_host *h = self;
    int code = h->read_node(h->node, h->all, node);
    for (uint32_t i = 0; i < h->count; i++)
        sample[i] = h->node[h->gpu[i].index];
    return fl_nvml_gone(code) ? fl_nvml_failed(h, &h->gpu[0], "reading", code, d) : FL_OK;
}

static fl_status set_host(void *self, int control, double value, fl_diag *d) {
    fl_nvml_host *h = self;
    int code = h->set_host(control, value);
    if (code && code != FL_NVML_NOT_SUPPORTED) /* a node without that control: as under foldline run */
        return fl_fail(d, FL_HARDWARE, NULL, 0, 0, "setting the CPU: %s", fl_nvml_reason(&h->nvml, code));
    return FL_OK;
}

static bool simulated(void *self) { return ((fl_nvml_host *)self)->read_node != NULL; }

/* ---- opening, closing ---------------------------------------------------------------------------------------------
 */

static uint32_t count(void *self) { return ((fl_nvml_host *)self)->count; }
static const char *unit(void *self, uint32_t i) { return ((fl_nvml_host *)self)->gpu[i].unit; }

static void close_host(void *self) {
    fl_nvml_host *h = self;
    for (uint32_t i = 0; i < h->count; i++) {
        for (int k = 0; k < 2; k++)
            if (h->gpu[i].gpm[k])
                FL_NVML_CALL(h, gpm_free, h->gpu[i].gpm[k]);
        free(h->gpu[i].sm);
        free(h->gpu[i].mem);
    }
    fl_nvml_close(&h->nvml);
    free(h->gpu);
    free(h->node);
    free(h);
}

static const fl_backend BACKEND = {.name = "nvml",
                                   .close = close_host,
                                   .count = count,
                                   .unit = unit,
                                   .facts = facts,
                                   .read = fl_nvml_read,
                                   .prior = fl_nvml_prior,
                                   .set = fl_nvml_set,
                                   .restore = fl_nvml_restore,
                                   .read_node = read_node,
                                   .set_host = set_host,
                                   .simulated = simulated};

static bool all_listed(const char *list) { return !list || !*list || !strcmp(list, "all"); }

static bool is_name(const char *at, size_t size, unsigned index, const char *uuid) {
    char number[16];
    snprintf(number, sizeof number, "%u", index);
    return (strlen(number) == size && !strncmp(at, number, size)) || (strlen(uuid) == size && !strncmp(at, uuid, size));
}

static bool listed(const char *list, unsigned index, const char *uuid) {
    if (all_listed(list))
        return true;
    for (const char *at = list; *at;) {
        size_t size = strcspn(at, ",");
        if (size && is_name(at, size, index, uuid))
            return true;
        at += size + (at[size] == ',');
    }
    return false;
}

static fl_status add_gpu(fl_nvml_host *h, unsigned index, const char *list, fl_diag *d) {
    fl_nvml_gpu *g = &h->gpu[h->count];
    *g = (fl_nvml_gpu){.index = index};
    int code = h->nvml.by_index(index, &g->handle);
    if (!code)
        code = h->nvml.uuid(g->handle, g->unit, sizeof g->unit);
    if (code)
        return fl_nvml_failed(h, g, "looking for it", code, d);
    if (!listed(list, index, g->unit))
        return FL_OK;
    if (FL_NVML_CALL(h, name, g->handle, g->name, sizeof g->name))
        snprintf(g->name, sizeof g->name, "GPU %u", index);
    h->count++;
    return read_ladders(h, g, d);
}

/* The first name of the list that is no GPU's. One that does not answer tells its number only: where there is one, a
 * UUID may be its. */
static void check_names(const fl_nvml_host *h, const char *list, unsigned all, const fl_diag *silent,
                        fl_diag *missing) {
    for (const char *at = all_listed(list) ? "" : list; *at && !missing->status;) {
        const size_t size = strcspn(at, ",");
        bool found = !size;
        for (uint32_t i = 0; i < h->count && !found; i++)
            found = is_name(at, size, h->gpu[i].index, h->gpu[i].unit);
        if (!found)
            fl_fail(missing, silent->status ? silent->status : FL_BAD_INPUT, NULL, 0, 0,
                    "--gpus: '%.*s' is none of the %u GPUs, expected indices or UUIDs%s%s", (int)size, at, all,
                    silent->status ? "; " : "", silent->message);
        at += size + (at[size] == ',');
    }
}

static fl_status add_gpus(fl_nvml_host *h, unsigned all, const char *list, fl_diag *missing, fl_diag *d) {
    fl_diag silent = {0};
    for (unsigned i = 0; i < all; i++) {
        fl_diag one = {0};
        if (!add_gpu(h, i, list, &one))
            continue;
        if (one.status == FL_NO_MEMORY) {
            *d = one;
            return one.status;
        }
        if (!missing->status && listed(list, i, ""))
            *missing = one;
        if (!silent.status)
            silent = one;
    }
    check_names(h, list, all, &silent, missing);
    return FL_OK;
}

fl_status fl_gpu_host_open_working(fl_gpus *out, const char *list, fl_diag *missing, fl_diag *d) {
    fl_diag own = {0};
    unsigned all = 0;
    d = d ? d : &own;
    *missing = (fl_diag){0};
    *out = (fl_gpus){0};
    fl_nvml_host *h = calloc(1, sizeof *h);
    if (!h)
        return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the GPUs");
    fl_status s = fl_nvml_open(&h->nvml, d);
    if (s) {
        free(h);
        return s;
    }
    int code = h->nvml.count(&all);
    if (code || !all || all > 1024)
        s = fl_fail(d, FL_HARDWARE, NULL, 0, 0, "no GPU: %s", code ? fl_nvml_reason(&h->nvml, code) : "none is listed");
    else if (!(h->gpu = calloc(all, sizeof *h->gpu)))
        s = fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the GPUs");
    if (!s)
        s = add_gpus(h, all, list, missing, d);
    if (!s && !h->count) {
        if (!missing->status)
            fl_fail(missing, FL_BAD_INPUT, NULL, 0, 0, "--gpus %s names no GPU, expected indices or UUIDs", list);
        *d = *missing;
        s = d->status;
    }
    void *symbol[3] = {dlsym(h->nvml.library, "foldlineReadNode"), dlsym(h->nvml.library, "foldlineSetHost"),
                       dlsym(h->nvml.library, "foldlineSetRecords")};
    h->all = all;
    if (!s && !(h->node = calloc(all, sizeof *h->node)))
        s = fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the GPUs");
    if (symbol[0] && symbol[1] && symbol[2]) {
        memcpy(&h->read_node, &symbol[0], sizeof symbol[0]);
        memcpy(&h->set_host, &symbol[1], sizeof symbol[1]);
        memcpy(&h->set_records, &symbol[2], sizeof symbol[2]);
    }
    if (s) {
        close_host(h);
        return s;
    }
    *out = (fl_gpus){.back = &BACKEND, .self = h};
    return FL_OK;
}

fl_status fl_gpu_host_open(fl_gpus *g, const char *list, fl_diag *d) {
    fl_diag missing;
    fl_status s = fl_gpu_host_open_working(g, list, &missing, d);
    if (!s && missing.status) {
        fl_gpus_close(g);
        s = missing.status;
        if (d)
            *d = missing;
    }
    return s;
}

uint32_t fl_gpu_host_index(const fl_gpus *g, uint32_t i) { return ((const fl_nvml_host *)g->self)->gpu[i].index; }

int fl_gpu_host_position(void *gpus, const char *name, size_t size) {
    const fl_gpus *g = gpus;
    const fl_nvml_host *h = g->self;
    for (uint32_t i = 0; i < h->count; i++)
        if (is_name(name, size, h->gpu[i].index, "") || (size > 4 && !strncmp(h->gpu[i].unit, name, size)))
            return (int)i;
    return -1;
}

const fl_nvml *fl_gpu_host_library(const fl_gpus *g) { return &((const fl_nvml_host *)g->self)->nvml; }
fl_nvml_device fl_gpu_host_device(const fl_gpus *g, uint32_t i) {
    return ((const fl_nvml_host *)g->self)->gpu[i].handle;
}

void fl_gpus_close(fl_gpus *g) {
    if (g->self)
        g->back->close(g->self);
    *g = (fl_gpus){0};
}

int fl_gpus_find(const fl_gpus *g, const char *name) {
    for (uint32_t i = 0; i < g->back->count(g->self); i++)
        if (!strcmp(g->back->unit(g->self, i), name))
            return (int)i;
    return -1;
}
