/* Impossible readings, the table of vendors, and whether sets take effect. */
#include "harness/live/guard/inside.h"

#include "harness/live/guard/guard.h"
#include "harness/live/vendor/nvml/nvml.h"
#include "harness/live/vendor/rsmi/rsmi.h"
#include "harness/live/vendor/vendor.h"
#include "harness/live/vendor/ze/ze.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- readings that cannot be ---- */

#define NAME_AND_UNIT(id, name, unit, kind, meaning) {#name, unit},
static const struct { const char *name, *unit; } ROWS[] = {FL_GPU_SIGNALS(NAME_AND_UNIT)};

/* Bounds by unit, except for counters: a factor on the widest value of the GPU's facts, if they have one. */
static const struct {
    const char *unit;
    double low, high, times;
} UNITS[] = {{"%", 0, 101, 0}, /* some divide two counters: a little over 100 can be */
             {"C", 0, 150, 0},
             {"W", 0, 1e5, 10},  /* x the highest power limit */
             {"MHz", 1, 1e5, 2}, /* x the top of the ladder; an engine that stands has no clock */
             {"bits", 0, FL_THROTTLE_POWER + FL_THROTTLE_THERMAL + FL_THROTTLE_IDLE + FL_THROTTLE_OTHER, 0}};

static double widest(int signal, const fl_gpu_facts *f) {
    switch (signal) {
    case FL_GPU_SM_MHZ:
        return fl_ladder_max(f->sm);
    case FL_GPU_MEM_MHZ:
        return fl_ladder_max(f->mem);
    default:
        return f->power_max_w;
    }
}

void fl_bounds_set(fl_guard *guard, uint32_t gpu, const fl_gpu_facts *facts) {
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        for (size_t u = 0; u < sizeof UNITS / sizeof *UNITS; u++)
            if (!strcmp(ROWS[id].unit, UNITS[u].unit)) {
                const double most = UNITS[u].times * widest(id, facts);
                fl_guard_gpu_bounds(guard, gpu, id, UNITS[u].low, most > 0 ? most : UNITS[u].high);
            }
}

uint64_t fl_bounds_tell(const fl_guard *guard, uint32_t gpus, char *text, size_t size) {
    uint64_t all = 0;
    size_t at = 0;
    *text = '\0';
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++) {
        uint64_t count = 0;
        for (uint32_t i = 0; i < gpus; i++)
            count += fl_guard_gpu_absurd(guard, i, id);
        if (count && at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%s %llu", all ? ", " : "", ROWS[id].name,
                                   (unsigned long long)count);
        all += count;
    }
    return all;
}

/* ---- the table of vendors ---- */

typedef struct vendor {
    const char *name;
    const char *prefix; /* prefix of its units; the first row is for all units without a prefix */
    fl_status (*open)(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
    const fl_readout *reader;
    uint64_t reads; /* the signals of a vendor without a reader */
} vendor;

static const vendor VENDORS[] = {
    {"nvidia", "", fl_nvml_host_open, &fl_readout_nvml, 0},
    {"intel", FL_ZE_PREFIX, fl_ze_host_open, NULL, FL_ZE_READS},
    {"amd", FL_RSMI_PREFIX, fl_rsmi_host_open, NULL, FL_RSMI_READS},
};
enum { COUNT = sizeof VENDORS / sizeof *VENDORS };

size_t fl_vendor_count(void) { return COUNT; }
const char *fl_vendor_name(size_t i) { return VENDORS[i].name; }

static const vendor *named(const char *name) {
    size_t i = 0;
    while (name && i < COUNT && strcmp(VENDORS[i].name, name) != 0)
        i++;
    return name && i < COUNT ? &VENDORS[i] : NULL;
}

uint64_t fl_vendor_reads(const char *name) {
    const vendor *v = named(name);
    return !v ? 0 : v->reader ? fl_readout_offers(v->reader) : v->reads;
}

const char *fl_vendor_of(const char *unit) {
    for (size_t i = COUNT; i-- > 1;)
        if (!strncmp(unit, VENDORS[i].prefix, strlen(VENDORS[i].prefix)))
            return VENDORS[i].name;
    return VENDORS[0].name;
}

/* Every GPU must answer; the caller has to leave out one that does not. */
static fl_status refuse_missing(fl_gpus *g, const fl_diag *silent, fl_diag *d) {
    fl_gpus_close(g);
    if (silent->status == FL_BAD_INPUT) {
        if (d)
            *d = *silent;
        return FL_BAD_INPUT;
    }
    return fl_error(d, silent->status, "%s (--gpus LIST with the others leaves it out)", silent->message);
}

static fl_status open_vendor(const vendor *v, fl_gpus *g, const char *list, fl_diag *missing, bool *any, fl_diag *d) {
    fl_diag silent = {0};
    fl_status s = v->open(g, list, &silent, d);
    *any = !s || silent.status; /* the vendor has a GPU here, whether or not it answers */
    if (missing)
        *missing = silent;
    return s || missing || !silent.status ? s : refuse_missing(g, &silent, d);
}

static fl_status open_named(fl_gpus *g, const char *name, const char *list, fl_diag *missing, fl_diag *d) {
    const char *known[COUNT + 1] = {[COUNT] = "auto"};
    bool any;
    for (size_t i = 0; i < COUNT; i++) {
        if (!strcmp(VENDORS[i].name, name))
            return open_vendor(&VENDORS[i], g, list, missing, &any, d);
        known[i] = VENDORS[i].name;
    }
    const char *near = fl_nearest(name, known, COUNT + 1);
    return fl_refuse(d, "unknown vendor '%.40s', %s%s%s", name,
                     near ? "did you mean '" : "expected nvidia, intel, amd or auto", near ? near : "",
                     near ? "'?" : "");
}

/* A list that begins with a unit, not an index, reveals the vendor. */
static const char *of_list(const char *list) {
    const bool unit = list && *list && strcmp(list, "all") != 0 && (*list < '0' || *list > '9');
    return unit ? fl_vendor_of(list) : NULL;
}

fl_status fl_vendor_open(fl_gpus *g, const char *name, const char *list, fl_diag *missing, fl_diag *d) {
    if (missing)
        *missing = (fl_diag){0};
    char said[sizeof d->message] = "";
    const bool any = !name || !strcmp(name, "auto");
    if (!any || of_list(list))
        return open_named(g, any ? of_list(list) : name, list, missing, d);
    for (size_t i = 0; i < COUNT; i++) {
        fl_diag why = {0};
        bool here;
        fl_status s = open_vendor(&VENDORS[i], g, list, missing, &here, &why);
        if (s != FL_HARDWARE || here) {
            if (s && d)
                *d = why;
            return s;
        }
        const size_t at = strlen(said);
        snprintf(said + at, sizeof said - at, "%s%.300s", i ? "; " : "", why.message);
    }
    return fl_error(d, FL_HARDWARE, "%s", said);
}

/* ---- whether sets take effect ---- */

#define LOOK_NS INT64_C(200000000)   /* between two looks: each costs some calls of the library */
#define SETTLE_NS INT64_C(500000000) /* a clock follows its lock within that (assumed; some tens of ms are usual) */
#define STAYS_NS INT64_C(2000000000) /* so long, and seen so often, speaks against it */
enum { SEEN = 5 };
#define LIMIT_NS INT64_C(1000000000) /* between two readings of the power limit */
#define SAME_W 0.0015                /* the library's unit is a mW */

enum { WITHOUT, FOREIGN, ROUNDED, KINDS };

typedef struct lock { /* of one clock */
    bool held, shown, against, counted;
    double mhz, near_mhz; /* and what is as good as it */
    int64_t since_ns, against_ns;
    int seen;
} lock;

typedef struct effect_gpu {
    lock lock[2];   /* SM, memory */
    double limit_w; /* as it was last seen; NAN = it cannot be read */
    int64_t look_ns, limit_ns;
    bool told[FL_GPU_CONTROL_COUNT][KINDS];
} effect_gpu;

struct fl_effect {
    const fl_gpus *gpus;
    effect_gpu *gpu;
    fl_effect_counts counts;
    fl_effect_tell *tell;
    void *user;
};

static const char *const NAMES[] = {"SM clock", "memory clock", "power limit", "records"};

fl_status fl_effect_open(fl_effect **out, const fl_gpus *gpus, fl_effect_tell *tell, void *user, fl_diag *d) {
    const uint32_t count = gpus->back->count(gpus->self);
    fl_effect *e = *out = calloc(1, sizeof *e);
    if (e)
        *e = (fl_effect){.gpus = gpus, .gpu = calloc((size_t)count + 1, sizeof *e->gpu), .tell = tell, .user = user};
    if (!e || !e->gpu) {
        fl_effect_close(e);
        *out = NULL;
        return fl_no_memory(d, "the GPUs");
    }
    for (uint32_t i = 0; i < count; i++)
        e->gpu[i].limit_w = gpus->back->limit_w(gpus->self, i);
    return FL_OK;
}

void fl_effect_close(fl_effect *e) {
    if (e)
        free(e->gpu);
    free(e);
}

fl_effect_counts fl_effect_count(const fl_effect *e) { return e ? e->counts : (fl_effect_counts){0}; }

static void notice(fl_effect *e, uint32_t gpu, int control, int kind, const char *text) {
    char line[256];
    bool *told = &e->gpu[gpu].told[control][kind];
    *(kind == WITHOUT ? &e->counts.without : kind == FOREIGN ? &e->counts.foreign : &e->counts.rounded) += 1;
    if (e->tell) {
        snprintf(line, sizeof line, "GPU %u: %s: %s", e->gpus->back->index(e->gpus->self, gpu), NAMES[control], text);
        e->tell(e->user, line, *told);
    }
    *told = true;
}

/* ---- sets ---- */

/* As good as a rung: what lies nearer to it than to the rungs beside, and what a board may be off. */
static double near_of(fl_ladder l, double mhz) {
    double widest = 15;
    for (uint32_t i = 1; i < l.count; i++)
        if (l.mhz[i - 1] <= mhz && l.mhz[i] >= mhz)
            widest = fmax(widest, l.mhz[i] - l.mhz[i - 1]);
    return 1.5 * widest;
}

static void lock_made(fl_effect *e, uint32_t gpu, int control, double mhz, int64_t t_ns) {
    lock *l = &e->gpu[gpu].lock[control == FL_SET_MEM_MHZ];
    fl_gpu_facts f;
    if (mhz == FL_DEFAULT || e->gpus->back->facts(e->gpus->self, gpu, &f, NULL)) {
        *l = (lock){0};
        return;
    }
    const bool same = l->held && l->mhz == mhz;
    l->held = true;
    l->mhz = mhz;
    l->near_mhz = near_of(control == FL_SET_MEM_MHZ ? f.mem : f.sm, mhz);
    l->since_ns = same ? l->since_ns : t_ns;
    l->shown = l->shown && same;
    l->counted = l->counted && same;
}

static void limit_made(fl_effect *e, uint32_t gpu, double watts) {
    char text[128];
    effect_gpu *g = &e->gpu[gpu];
    g->limit_w = e->gpus->back->limit_w(e->gpus->self, gpu);
    if (watts == FL_DEFAULT || isnan(g->limit_w) || fabs(g->limit_w - watts) < SAME_W)
        return;
    snprintf(text, sizeof text, "%.10g W was set, and the board has %.10g W: it rounds", watts, g->limit_w);
    notice(e, gpu, FL_SET_POWER_LIMIT_W, ROUNDED, text);
}

void fl_effect_made(fl_effect *e, uint32_t gpu, int control, double value, int64_t t_ns) {
    if (!e)
        return;
    if (control == FL_SET_SM_MHZ || control == FL_SET_MEM_MHZ)
        lock_made(e, gpu, control, value, t_ns);
    else if (control == FL_SET_POWER_LIMIT_W)
        limit_made(e, gpu, value);
}

/* ---- looks ---- */

uint64_t fl_effect_needs(const fl_effect *e, uint32_t gpu, int64_t t_ns) {
    const effect_gpu *g = e ? &e->gpu[gpu] : NULL;
    if (!g || t_ns < g->look_ns || !(g->lock[0].held || g->lock[1].held))
        return 0;
    return FL_BIT(FL_GPU_THROTTLE) | FL_BIT(FL_GPU_UTIL_GPU_PCT) | (g->lock[0].held ? FL_BIT(FL_GPU_SM_MHZ) : 0) |
           (g->lock[1].held ? FL_BIT(FL_GPU_MEM_MHZ) : 0);
}

/* Does that clock speak against the lock? */
static bool contradicts(const lock *l, double mhz, const fl_gpu_sample *s) {
    if (mhz > l->mhz)
        return true;
    const bool idle = fl_gpu_known(s, FL_GPU_UTIL_GPU_PCT) && s->value[FL_GPU_UTIL_GPU_PCT] < 1;
    return fl_gpu_known(s, FL_GPU_THROTTLE) && !(s->value[FL_GPU_THROTTLE] > 0) && !idle;
}

static void look_at_lock(fl_effect *e, uint32_t gpu, int control, int signal, int64_t t_ns, const fl_gpu_sample *s) {
    lock *l = &e->gpu[gpu].lock[control == FL_SET_MEM_MHZ];
    char text[128];
    if (!l->held || t_ns - l->since_ns < SETTLE_NS || !fl_gpu_known(s, signal))
        return;
    const double mhz = s->value[signal];
    if (fabs(mhz - l->mhz) <= l->near_mhz) {
        l->shown = true;
        l->against = l->counted = false;
    }
    if (fabs(mhz - l->mhz) <= l->near_mhz || !contradicts(l, mhz, s))
        return;
    if (!l->against) {
        l->against = true;
        l->against_ns = t_ns;
        l->seen = 0;
    }
    if (++l->seen < SEEN || t_ns - l->against_ns < STAYS_NS || l->counted)
        return;
    l->counted = true;
    snprintf(text, sizeof text, "%g MHz was set, %g MHz is what it has, and nothing explains it%s", l->mhz, mhz,
             l->shown ? ": somebody else has set it" : ": the set has no effect");
    notice(e, gpu, control, l->shown ? FOREIGN : WITHOUT, text);
}

static void look_at_limit(fl_effect *e, uint32_t gpu, int64_t t_ns) {
    effect_gpu *g = &e->gpu[gpu];
    char text[128];
    if (isnan(g->limit_w) || t_ns < g->limit_ns)
        return;
    g->limit_ns = t_ns + LIMIT_NS;
    const double now = e->gpus->back->limit_w(e->gpus->self, gpu);
    if (isnan(now) || fabs(now - g->limit_w) < SAME_W)
        return;
    snprintf(text, sizeof text, "%.10g W, and %.10g W before: somebody else has set it", now, g->limit_w);
    notice(e, gpu, FL_SET_POWER_LIMIT_W, FOREIGN, text);
    g->limit_w = now;
}

void fl_effect_look(fl_effect *e, uint32_t gpu, int64_t t_ns, const fl_gpu_sample *sample) {
    if (!e)
        return;
    look_at_limit(e, gpu, t_ns);
    if (t_ns < e->gpu[gpu].look_ns)
        return;
    e->gpu[gpu].look_ns = t_ns + LOOK_NS;
    look_at_lock(e, gpu, FL_SET_SM_MHZ, FL_GPU_SM_MHZ, t_ns, sample);
    look_at_lock(e, gpu, FL_SET_MEM_MHZ, FL_GPU_MEM_MHZ, t_ns, sample);
}
