#include "harness/live/vendor/nvml/inside.h"

#include <stdlib.h>

/* A list can grow between the call that counts it and the call that fetches it. The code therefore reserves spare room,
 * believes nothing beyond that room, and fetches a few more times where the room was too small. */
enum { LIST_MAX = 100000, SPARE = 16, TRIES = 8 };

static int list_clocks(fl_nvml_host *h, fl_nvml_gpu *g, bool sm, unsigned mem_mhz, unsigned *count, unsigned *clocks) {
    return sm ? FL_NVML_CALL(h, sm_clocks, g->handle, mem_mhz, count, clocks)
              : FL_NVML_CALL(h, mem_clocks, g->handle, count, clocks);
}

/* Stores *count clocks in *clocks, which the caller frees; none where the library lists none. A library that answers
 * the counting call with success has none. */
static fl_status fetch(fl_nvml_host *h, fl_nvml_gpu *g, bool sm, unsigned mem_mhz, unsigned **clocks, unsigned *count,
                       fl_diag *d) {
    unsigned there = 0;
    int code = list_clocks(h, g, sm, mem_mhz, &there, NULL);
    *count = 0;
    for (int i = 0; i < TRIES && code == FL_NVML_INSUFFICIENT_SIZE && there && there <= LIST_MAX; i++) {
        const unsigned room = there + SPARE;
        unsigned *more = realloc(*clocks, room * sizeof **clocks);
        if (!more)
            return fl_no_memory(d, "the clocks");
        *clocks = more;
        there = room;
        code = list_clocks(h, g, sm, mem_mhz, &there, more);
        if (!code)
            *count = there < room ? there : room;
    }
    return FL_OK;
}

static fl_status read_ladder(fl_nvml_host *h, fl_nvml_gpu *g, bool sm, unsigned mem_mhz, int32_t **out,
                             uint32_t *out_count, fl_diag *d) {
    unsigned *clocks = NULL, count = 0;
    uint32_t n = 0;
    *out_count = 0;
    fl_status s = fetch(h, g, sm, mem_mhz, &clocks, &count, d);
    if (!s && count && !(*out = calloc(count, sizeof **out)))
        s = fl_no_memory(d, "the clocks");
    for (unsigned i = 0; !s && i < count; i++)
        if (clocks[i] > 0 && clocks[i] < 100000)
            (*out)[n++] = (int32_t)clocks[i];
    if (!s)
        *out_count = fl_gpus_ladder(*out, n);
    free(clocks);
    return s;
}

fl_status fl_nvml_ladders(fl_nvml_host *h, fl_nvml_gpu *g, fl_diag *d) {
    fl_status s = read_ladder(h, g, false, 0, &g->mem, &g->mem_count, d);
    if (!s && g->mem_count)
        s = read_ladder(h, g, true, (unsigned)g->mem[g->mem_count - 1], &g->sm, &g->sm_count, d);
    return s;
}
