/* The course of GPOEO; gpoeo.c says what that is.
 *
 * What the released rules leave open, and what is done here:
 * - the search begins start_s after the GPU is first busy;
 * - a trace whose period is not stable goes on until it is, or is 80 s long; a program without one at the clock of the
 *   counters is measured by its kernels, and so is one that has none at later clocks: as a period and a kernel do not
 *   compare, it is then measured at the default clocks once more, and the search begins anew;
 * - energy is the mean power of the trace times the period;
 * - counters of a program without a period, and windows of the watch, take window_s;
 * - of memory clocks that are predicted alike the highest is taken;
 * - each set of clocks has a second to settle, that of the choice before the watch, too;
 * - a new search begins with the default clocks, a new prediction with the counters;
 * - kernel records are on only for the counters, and until the choice where their rate stands for performance. A record
 *   that was lost makes the count of its window wrong: the window is repeated, and the third such in a row ends the
 *   search;
 * - readings that are missing for missing_s before the choice end it as well. The default holds then, and all begins
 *   anew start_s after the GPU is seen busy. */
#include "policies/gpoeo_course.h"

#include <math.h>

enum { WAIT, PERIOD, COUNTERS, DEFAULT, SEARCH, WATCH };
enum { COUNTER_GROUPS = 4, WIDE_BELOW_MHZ = 9251, BROKEN_MOST = 3 };
static const double window_periods = 1.1, settle_s = 1;

static int64_t ns_of(double seconds) { return (int64_t)(fmin(seconds, 1e8) * 1e9 + 0.5); }

static int32_t gear_of(fl_ladder l, double mhz) { /* the nearest, of two as near the lower */
    uint32_t best = 0;
    for (uint32_t i = 1; i < l.count; i++)
        if (fabs(l.mhz[i] - mhz) < fabs(l.mhz[best] - mhz))
            best = i;
    return (int32_t)best;
}

void fl_gpoeo_open(fl_gpoeo_gpu *g, const fl_gpu_facts *f) {
    g->limit_w = fl_readings_limit_w(f);
    g->busy_ns = g->known_ns = -1;
    g->set_sm = g->set_mem = FL_DEFAULT;
    g->recording = 1; /* as hosts begin */
    g->period_s = g->optimised_s = g->base_energy = g->base_time = NAN;
}

/* ---- traces and windows -------------------------------------------------------------------------------------------
 */

static void set_clocks(const fl_gpoeo_place *at, double sm_mhz, double mem_mhz) {
    fl_gpoeo_gpu *g = at->g;
    if (sm_mhz != g->set_sm)
        fl_set_gpu(at->command, at->gpu, FL_SET_SM_MHZ, sm_mhz);
    if (mem_mhz != g->set_mem && at->f->mem.count)
        fl_set_gpu(at->command, at->gpu, FL_SET_MEM_MHZ, mem_mhz);
    g->set_sm = sm_mhz;
    g->set_mem = mem_mhz;
    g->settled_ns = at->sample->time_ns + ns_of(settle_s);
}

static void begin_trace(const fl_gpoeo_place *at, double seconds) {
    const int64_t now_ns = at->sample->time_ns, settled_ns = at->g->settled_ns;
    fl_gpoeo_trace_begin(&at->g->trace, now_ns > settled_ns ? now_ns : settled_ns, ns_of(seconds));
    at->g->broken = 0;
}

static void set_gears(const fl_gpoeo_place *at, int32_t sm, int32_t mem) {
    const double mem_mhz = at->f->mem.count ? at->f->mem.mhz[mem] : FL_DEFAULT;
    set_clocks(at, at->f->sm.mhz[sm], mem_mhz);
    begin_trace(at, FL_GPOEO_TRACE_S);
}

/* Kernel records cost time: they are on for the counters, and where the rate of kernels stands for performance. */
static void set_records(const fl_gpoeo_place *at, uint32_t on) {
    if (on != at->g->recording)
        fl_set_gpu(at->command, at->gpu, FL_SET_RECORDS, on);
    at->g->recording = on;
}

static void begin_default(const fl_gpoeo_place *at) {
    at->g->state = DEFAULT;
    set_records(at, at->g->aperiodic);
    set_clocks(at, FL_DEFAULT, FL_DEFAULT);
    begin_trace(at, FL_GPOEO_TRACE_S);
}

/* Energy and time of a period, or of a kernel; 0: they are not known yet. */
static int end_trace(const fl_gpoeo_place *at, double *energy, double *time) {
    fl_gpoeo_gpu *g = at->g;
    if (g->aperiodic) {
        *time = fl_gpoeo_trace_kernel_s(&g->trace);
        if (isnan(*time)) { /* none ended: what else is to be compared? */
            begin_trace(at, FL_GPOEO_TRACE_S);
            return 0;
        }
    } else {
        fl_gpoeo_period p;
        if (!fl_gpoeo_trace_period(&g->trace, g->limit_w, at->p->spread, &p))
            return 0;
        if (!isnan(p.period_s))
            g->period_s = p.period_s;
        g->aperiodic = !p.stable;
        if (g->aperiodic && g->state != PERIOD) {
            begin_default(at);
            return 0;
        }
        *time = g->period_s;
    }
    *energy = fl_gpoeo_trace_power_w(&g->trace) * *time;
    return 1;
}

static void begin_counters(const fl_gpoeo_place *at) {
    fl_gpoeo_gpu *g = at->g;
    g->state = COUNTERS;
    g->counted = g->counters;
    set_records(at, 1);
    begin_trace(at, g->aperiodic ? at->p->window_s : window_periods * g->period_s);
}

static void begin_period(const fl_gpoeo_place *at) {
    const fl_ladder mem = at->f->mem;
    at->g->state = PERIOD;
    at->g->aperiodic = at->g->group = 0;
    at->g->counters = (fl_gpoeo_counters){0};
    at->g->begun_ns = at->sample->time_ns;
    set_records(at, 0);
    set_gears(at, gear_of(at->f->sm, FL_GPOEO_CLOCK_MHZ), gear_of(mem, FL_GPOEO_COUNTERS_MEM_MHZ));
}

static void begin_watch(const fl_gpoeo_place *at) {
    at->g->state = WATCH;
    begin_trace(at, at->g->aperiodic ? at->p->window_s : fmax(at->p->window_s, window_periods * at->g->period_s));
}

/* ---- the course ---------------------------------------------------------------------------------------------------
 */

/* The gears where the search begins. The released program asks the lowest band's model for the memory clock, too. */
static void propose(const fl_gpoeo_place *at) {
    const fl_ladder sm = at->f->sm, mem = at->f->mem;
    const fl_gpoeo_params *p = at->p;
    fl_gpoeo_search *s = &at->g->search;
    *s = (fl_gpoeo_search){.low = 0,
                           .high = gear_of(sm, p->top_mhz),
                           .mem_count = (int32_t)(mem.count ? mem.count : 1),
                           .bound = p->con_perf,
                           .sm = gear_of(sm, p->start_mhz),
                           .mem = mem.count ? gear_of(mem, at->f->default_mem_mhz) : 0};
    while ((uint32_t)s->wide_below < mem.count && mem.mhz[s->wide_below] < WIDE_BELOW_MHZ)
        s->wide_below++;
    s->sm = s->sm > s->high ? s->high : s->sm;
    if (!p->trees.row_count)
        return;
    s->sm = fl_gpoeo_predict(&p->trees, &at->g->counters, sm, gear_of(sm, p->lowest_mhz), s->high, FL_GPOEO_OWN_BAND,
                             p->con_perf);
    if (mem.count)
        s->mem = fl_gpoeo_predict(&p->trees, &at->g->counters, mem, 0, (int32_t)mem.count - 1, 0, p->con_perf);
}

static void search_on(const fl_gpoeo_place *at) {
    fl_gpoeo_gpu *g = at->g;
    const fl_gpoeo_next next = fl_gpoeo_search_next(&g->search);
    set_gears(at, next.sm, next.mem);
    g->search.point[g->search.count % FL_GPOEO_POINTS] = (fl_gpoeo_point){.sm = next.sm, .mem = next.mem};
    g->state = SEARCH;
    if (!next.done)
        return;
    g->optimised_s = (double)(at->sample->time_ns - g->begun_ns) * 1e-9;
    g->checks = 0;
    set_records(at, 0);
    begin_watch(at);
}

static void end_counters(const fl_gpoeo_place *at) {
    fl_gpoeo_gpu *g = at->g;
    g->counters.counted_s += (double)(at->sample->time_ns - g->trace.begin_ns) * 1e-9;
    if (++g->group < COUNTER_GROUPS) {
        begin_counters(at);
        return;
    }
    begin_default(at);
}

static void end_watch(const fl_gpoeo_place *at) {
    fl_gpoeo_gpu *g = at->g;
    const double w = fl_gpoeo_trace_power_w(&g->trace);
    g->least_w = g->checks ? fmin(g->least_w, w) : w;
    g->most_w = g->checks ? fmax(g->most_w, w) : w;
    g->sum_w = g->checks ? g->sum_w + w : w;
    g->checks++;
    const double range = (g->most_w - g->least_w) * g->checks;
    if (range > at->p->phase_model * g->sum_w) {
        begin_period(at);
    } else if (range > at->p->phase * g->sum_w) {
        g->begun_ns = at->sample->time_ns;
        begin_default(at);
    } else {
        begin_watch(at);
    }
}

/* The search ends before its choice. */
static void give_up(const fl_gpoeo_place *at) {
    set_records(at, 0);
    set_clocks(at, FL_DEFAULT, FL_DEFAULT);
    at->g->state = WAIT;
    at->g->busy_ns = -1;
}

static void repeat_window(const fl_gpoeo_place *at) {
    fl_gpoeo_gpu *g = at->g;
    if (g->state == COUNTERS) /* what the broken window added is taken back */
        g->counters = g->counted;
    if (g->breaks >= BROKEN_MOST)
        give_up(at);
    else if (g->state == COUNTERS)
        begin_counters(at);
    else
        begin_trace(at, FL_GPOEO_TRACE_S);
}

static void end_state(const fl_gpoeo_place *at) {
    fl_gpoeo_gpu *g = at->g;
    double energy, time;
    g->breaks = g->broken ? g->breaks + 1 : 0;
    if (g->broken) {
        repeat_window(at);
    } else if (g->state == COUNTERS) {
        end_counters(at);
    } else if (g->state == WATCH) {
        end_watch(at);
    } else if (!end_trace(at, &energy, &time)) {
        return;
    } else if (g->state == PERIOD) {
        begin_counters(at);
    } else if (g->state == DEFAULT) {
        g->base_energy = energy;
        g->base_time = time;
        propose(at);
        search_on(at);
    } else {
        fl_gpoeo_point *p = &g->search.point[g->search.count++];
        p->energy = energy / g->base_energy;
        p->time = time / g->base_time;
        search_on(at);
    }
}

/* Readings are missing: windows begin anew; before the choice the default clocks come back. */
static void wait_blind(const fl_gpoeo_place *at) {
    fl_gpoeo_gpu *g = at->g;
    if (g->state == WATCH)
        begin_watch(at);
    else if (g->state != WAIT && at->sample->time_ns - g->known_ns >= ns_of(at->p->missing_s))
        give_up(at);
}

/* Records tell of kernels while readings are missing, too. */
static void count_records(const fl_gpoeo_place *at) {
    fl_gpoeo_gpu *g = at->g;
    fl_gpoeo_trace_count(&g->trace, at->sample, at->gpu);
    if (g->state == WAIT || at->sample->time_ns <= g->trace.begin_ns)
        return;
    g->broken |= g->recording && at->sample->record_lost;
    if (g->state == COUNTERS)
        fl_gpoeo_take(&g->counters, at->sample, at->gpu);
}

void fl_gpoeo_step(const fl_gpoeo_place *at) {
    fl_gpoeo_gpu *g = at->g;
    const int64_t now_ns = at->sample->time_ns;
    if (g->state == WAIT)
        set_records(at, 0);
    count_records(at);
    g->blind = !fl_readings_known(at->s);
    if (g->blind) {
        wait_blind(at);
        return;
    }
    g->known_ns = now_ns;
    if (g->state == WAIT) {
        if (g->busy_ns < 0 && at->s->value[FL_GPU_UTIL_GPU_PCT] > 0)
            g->busy_ns = now_ns;
        if (g->busy_ns >= 0 && now_ns - g->busy_ns >= ns_of(at->p->start_s))
            begin_period(at);
        return;
    }
    if (now_ns < g->trace.begin_ns)
        return;
    fl_gpoeo_trace_read(&g->trace, at->s, now_ns);
    if (now_ns >= g->trace.end_ns && g->trace.readings.count > 1)
        end_state(at);
}
