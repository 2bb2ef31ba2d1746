#include "harness/live/vendor/rsmi/rsmi.h"
#include "harness/live/vendor/rsmi/inside.h"

#define POWER_REFRESH_NS INT64_C(1000000)  /* refresh of the firmware's own average (assumed) */
#define BUSY_REFRESH_NS INT64_C(100000000) /* refresh of its activity monitor (assumed) */

typedef struct reading {
    fl_rsmi_host *h;
    fl_rsmi_gpu *g;
    uint64_t needs;
    int64_t t_ns;
    fl_gpu_sample *out;
    uint32_t asked, answered;
    fl_rsmi_code last; /* the last failure */
} reading;

static bool wants(const reading *r, int id) { return r->needs >> id & 1; }

static bool fine(reading *r, fl_rsmi_code code) {
    r->asked++;
    r->answered += code == FL_RSMI_OK;
    r->last = code ? code : r->last;
    return code == FL_RSMI_OK;
}

static void put_signal(reading *r, int id, double value, int64_t refresh_ns) {
    fl_seen_put(&r->g->last[id], r->out, id, value, r->t_ns, refresh_ns);
}

static void read_power(reading *r) {
    const fl_rsmi *lib = &r->h->rsmi;
    fl_rsmi_gpu *g = r->g;
    uint64_t uw = 0, count = 0, ns = 0;
    float uj_each = 0;
    int type = 0;
    if (wants(r, FL_GPU_POWER_W) && ((lib->power && fine(r, lib->power(g->index, &uw, &type))) ||
                                     fine(r, FL_RSMI_CALL(lib, power_average, g->index, 0, &uw))))
        put_signal(r, FL_GPU_POWER_W, (double)uw / 1e6, POWER_REFRESH_NS);
    if (!(wants(r, FL_GPU_ENERGY_J) || wants(r, FL_GPU_ENERGY_NS)) ||
        !fine(r, FL_RSMI_CALL(lib, energy, g->index, &count, &uj_each, &ns)))
        return;
    if (!g->energy_known) {
        g->energy_known = true;
        g->energy_ns = ns;
        g->energy_origin_ns = r->t_ns;
    }
    put_signal(r, FL_GPU_ENERGY_J, (double)count * (double)uj_each / 1e6, FL_SEEN_MOVES);
    put_signal(r, FL_GPU_ENERGY_NS, (double)(g->energy_origin_ns + (int64_t)(ns - g->energy_ns)), FL_SEEN_MOVES);
}

static void read_clock(reading *r, int clock, int id) {
    fl_rsmi_clocks c = {0};
    uint32_t count, current;
    const uint64_t *hz;
    if (wants(r, id) && fine(r, FL_RSMI_CALL(&r->h->rsmi, clocks, r->g->index, clock, &c)) &&
        fl_rsmi_clocks_of(&c, &count, &current, &hz) && current < count)
        put_signal(r, id, fl_rsmi_mhz(hz[current]), 0);
}

static void read_state(reading *r) {
    const fl_rsmi *lib = &r->h->rsmi;
    uint32_t percent = 0;
    int64_t millidegrees = 0;
    if (wants(r, FL_GPU_UTIL_GPU_PCT) && fine(r, FL_RSMI_CALL(lib, busy, r->g->index, &percent)))
        put_signal(r, FL_GPU_UTIL_GPU_PCT, percent, BUSY_REFRESH_NS);
    if (wants(r, FL_GPU_UTIL_MEM_PCT) && fine(r, FL_RSMI_CALL(lib, mem_busy, r->g->index, &percent)))
        put_signal(r, FL_GPU_UTIL_MEM_PCT, percent, BUSY_REFRESH_NS);
    if (wants(r, FL_GPU_TEMP_C) && /* boards for servers have no edge sensor */
        (fine(r, FL_RSMI_CALL(lib, heat, r->g->index, FL_RSMI_HEAT_EDGE, FL_RSMI_HEAT_NOW, &millidegrees)) ||
         fine(r, FL_RSMI_CALL(lib, heat, r->g->index, FL_RSMI_HEAT_JUNCTION, FL_RSMI_HEAT_NOW, &millidegrees))))
        put_signal(r, FL_GPU_TEMP_C, (double)millidegrees / 1e3, 0);
}

/* The library has no code for a lost GPU: all of its files are gone or unreadable. */
fl_status fl_rsmi_read(void *self, uint32_t i, uint64_t needs, int64_t t_ns, fl_gpu_sample *sample, fl_diag *d) {
    fl_rsmi_host *h = self;
    reading r = {.h = h, .g = &h->gpu[i], .needs = needs & FL_RSMI_READS, .t_ns = t_ns, .out = sample};
    *sample = (fl_gpu_sample){0};
    read_power(&r);
    read_state(&r);
    read_clock(&r, FL_RSMI_CLOCK_SM, FL_GPU_SM_MHZ);
    read_clock(&r, FL_RSMI_CLOCK_MEM, FL_GPU_MEM_MHZ);
    sample->valid &= r.needs;
    sample->fresh &= r.needs;
    if (r.asked && !r.answered && (r.g->answered || r.last == FL_RSMI_INIT))
        return fl_error(d, FL_HARDWARE, "GPU %u: GPU is lost: nothing can be read any more: %s", r.g->index,
                        fl_rsmi_reason(r.last));
    r.g->answered = r.g->answered || r.answered;
    return FL_OK;
}
