/* The two sources of work that are streams (fl_source): one stream by itself, and any streams with their host threads.
 */
#include "sim/advance/inside.h"

#include "models/laws/laws.h"
#include "sim/advance/advance.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- one stream by itself ---- */

static int64_t scan(fl_gpu *g, fl_lane *l, int64_t target, uint32_t gap_mul) {
    const uint64_t from = l->next;
    const int64_t t = fl_scan_advance(g, l, target, gap_mul);
    if (l->next - from > FL_PREFIX_WORTH && fl_prefix_applies(g, l, gap_mul))
        fl_prefix_scanned(g, l->s, l->next - from);
    return t;
}

static fl_status lone_advance(fl_course *c, int64_t target, int64_t *reached, bool *done, fl_diag *d) {
    (void)d;
    *reached = scan(c->gpu[0], c->mine[0], target, c->host ? c->host[0].mul : FL_MUL_ONE);
    c->gpu[0]->taken[FL_PATH_PLAIN]++;
    *done = c->mine[0]->phase == FL_PHASE_DONE;
    return FL_OK;
}

static bool lone_foresee(fl_course *c, const fl_gpu *g, int64_t t, bool busy_only, fl_sums *sums) {
    return fl_prefix_foresee(g, c->mine[0], c->host ? c->host[0].mul : FL_MUL_ONE, t, busy_only, sums);
}

static bool lone_stuck(const fl_course *c, char *why, size_t size) {
    (void)size;
    why[0] = '\0';
    return c->gpu[0]->lost;
}

static void lone_rescale(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t) {
    (void)t;
    fl_scan_rescale(g, c->mine[0], before);
}

static void lone_lose(fl_course *c, fl_gpu *g) { (void)c, (void)g; }

static int64_t lone_predict_mw(const fl_course *c, const fl_gpu *g, uint32_t sm, const fl_clock_rates *rates) {
    (void)g, (void)sm;
    return c->mine[0]->phase == FL_PHASE_RUN ? rates->row[c->mine[0]->class_id].dyn_mw : -1;
}

static void lone_at_boundary(const fl_course *c, fl_gpu *g) {
    const fl_lane *l = c->mine[0];
    g->dyn_now_mw = l->phase == FL_PHASE_RUN && !g->lost ? g->rates->row[l->class_id].dyn_mw : 0;
}

const fl_source fl_source_lone = {.stands = true,
                                  .advance = lone_advance,
                                  .stuck = lone_stuck,
                                  .rescale = lone_rescale,
                                  .lose = lone_lose,
                                  .predict_mw = lone_predict_mw,
                                  .foresee = lone_foresee,
                                  .at_boundary = lone_at_boundary};

/* ---- streams and host threads ---- */

/* One stream and the thread that launches into it go as far as they get. */
static bool launches(const fl_course *c) {
    return c->ends_ps && !c->by_events && fl_path_may(c->gpu[0]->path, FL_PATH_LAUNCHES) && !c->gpu[0]->lost;
}

static fl_status streams_advance(fl_course *c, int64_t target, int64_t *reached, bool *done, fl_diag *d) {
    (void)d;
    const fl_path path = launches(c) ? FL_PATH_LAUNCHES : FL_PATH_EVENTS;
    *reached = path == FL_PATH_LAUNCHES ? fl_launches_advance(c, target) : fl_streams_advance(c, target);
    c->gpu[0]->taken[path]++;
    *done = c->done == c->is->stream_count + c->is->thread_count;
    return FL_OK;
}

static bool streams_stuck(const fl_course *c, char *why, size_t size) { return fl_streams_stuck(c, why, size) != NULL; }

static void streams_rescale(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t) {
    if (!g->lost)
        fl_streams_rescale(c, g, before, t);
}

static int64_t streams_predict_mw(const fl_course *c, const fl_gpu *g, uint32_t sm, const fl_clock_rates *rates) {
    (void)sm;
    int64_t mw = 0;
    bool any = false;
    for (uint32_t i = 0; i < c->is->stream_count; i++) {
        const fl_lane *l = c->mine[i];
        if ((l->phase != FL_PHASE_RUN && !l->spinning) || l->gpu != g)
            continue;
        const int64_t dyn = rates->row[l->class_id].dyn_mw;
        mw += l->spinning ? dyn : dyn * l->p.rate >> 16;
        any = true;
    }
    return any ? mw : -1;
}

const fl_source fl_source_streams = {.advance = streams_advance,
                                     .stuck = streams_stuck,
                                     .rescale = streams_rescale,
                                     .lose = fl_streams_lose,
                                     .predict_mw = streams_predict_mw};
