#include "harness/live/guard/effect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* ---- sets -------------------------------------------------------------------------------------------------------- */

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

/* ---- looks ------------------------------------------------------------------------------------------------------- */

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
