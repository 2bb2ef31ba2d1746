#include "policies/mfgpaper_frame.h"
#include "policies/mfgpaper_trial.h"

#include <math.h>

#define VECTOR_S 5  /* an execution vector: five readings (Alg. 6), here of a second each (assumed) */
#define GAP_MAX_S 1 /* a longer gap is idleness: not measured (Sec. IV-A; assumed) */
#define SKIP_S 1    /* from the first kernel to the first baseline: the unstable start (assumed) */
#define MISSING_S 1 /* time without any signal after which a trial ends at the default (assumed) */

static int64_t first_window_ns(const fl_mfp_params *p) { return fl_mfp_ns(fmin(p->window_s, p->window_max_s)); }

void fl_mfp_open(fl_mfp_gpu *g, const fl_mfp_params *p) {
    g->first_ns = g->seen_ns = -1;
    g->window_ns = first_window_ns(p);
    g->set_sm = g->set_mem = g->next_mem = FL_MFP_DEFAULT;
    g->chosen = g->fallback = (fl_mfp_point){.sm = FL_MFP_DEFAULT, .mem = FL_MFP_DEFAULT, .objective = NAN};
    g->achieved_mhz = g->bound = g->index = g->loss = g->error = g->matched = g->coverage = g->objective =
        g->base_objective = g->distance = g->optimised_s = NAN;
    g->recording = 1;
}

void fl_mfp_record(fl_mfp_gpu *g, const fl_gpu_facts *facts, const fl_kernel_kind *kind,
                   const fl_kernel_record *record) {
    g->busy = 1;
    if (g->state == FL_MFP_WAIT || g->state == FL_MFP_STABLE)
        return;
    const fl_mfp_scope scope = {.begin_ns = g->begin_ns,
                                .gap_max_ns = fl_mfp_ns(GAP_MAX_S),
                                .cores = (double)facts->sm_count * facts->cores_per_sm};
    fl_mfp_add(&g->data, &scope, kind, record);
}

/* Algorithm 2, one round; returns to the state `after`. */
static void update_baseline(const fl_mfp_frame *f, int32_t after) {
    f->g->after = after;
    fl_mfp_measure(f, FL_MFP_BASELINE, FL_MFP_DEFAULT, FL_MFP_DEFAULT);
}

/* ---- stages -------------------------------------------------------------------------------------------------------
 */

static void start_search(fl_mfp_gpu *g) {
    g->pid = (fl_mfp_pid){.count = 0};
    g->trace.count = g->tried_count = 0;
    g->adjustments = g->ending = 0;
}

/* From Algorithm 2 on, with an empty database (Sec. III-B): that of the work before is outdated. */
static void restart(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    start_search(g);
    fl_mfp_forget(&g->data);
    g->window_ns = first_window_ns(f->p);
    g->unlike = 0;
    g->start_ns = f->now_ns;
    g->next_mem = FL_MFP_DEFAULT;
    g->chosen = g->fallback = (fl_mfp_point){.sm = FL_MFP_DEFAULT, .mem = FL_MFP_DEFAULT, .objective = NAN};
    update_baseline(f, FL_MFP_WAIT);
}

/* After a measurement that could not be compared. */
static void renew_baseline(const fl_mfp_frame *f, int32_t after, int verdict) {
    if (verdict == FL_MFP_UNLIKE) /* the database is of other work */
        fl_mfp_forget(&f->g->data);
    update_baseline(f, after);
}

/* For looking at the index: no optimisation, one window after the other at given clocks. */
static void hold_fixed(const fl_mfp_frame *f) {
    const double mem = f->p->hold_mem_mhz;
    fl_mfp_measure(f, FL_MFP_FIXED, fl_mfp_ladder_index(f->facts->sm, f->p->hold_sm_mhz),
                   mem > 0 ? fl_mfp_ladder_index(f->facts->mem, mem) : FL_MFP_DEFAULT);
}

static void end_fixed(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    const int verdict = fl_mfp_evaluate(f, g->set_sm, g->set_mem);
    if (verdict == FL_MFP_COMPARED) {
        g->fixed_sum += g->index;
        g->index = g->fixed_sum / (double)++g->fixed_count;
        hold_fixed(f);
    } else {
        renew_baseline(f, FL_MFP_FIXED, verdict);
    }
}

static void monitor(const fl_mfp_frame *f, int32_t sm, int32_t mem) {
    fl_mfp_gpu *g = f->g;
    fl_mfp_set_up(f, sm, mem, 0);
    g->has_vector = 0;
    if (isnan(g->optimised_s))
        g->optimised_s = (double)(f->now_ns - g->first_ns) * 1e-9;
    fl_mfp_begin_window(f, FL_MFP_STABLE, fl_mfp_ns(VECTOR_S));
}

/* A measurement could not be compared: a new baseline, then back to the state `after`; where that has helped too
 * seldom, the default clocks. */
static void compare_again(const fl_mfp_frame *f, int32_t after, int verdict) {
    fl_mfp_gpu *g = f->g;
    if (!g->unpowered && ++g->unlike >= f->p->give_up)
        monitor(f, FL_MFP_DEFAULT, FL_MFP_DEFAULT);
    else
        renew_baseline(f, after, verdict);
}

/* The next memory clock to try, else the SM clocks under the one chosen. */
static void go_on(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    if (g->next_mem != FL_MFP_DEFAULT) {
        fl_mfp_measure(f, FL_MFP_MEMORY, FL_MFP_DEFAULT, g->next_mem);
        return;
    }
    if (f->facts->sm.count < 2) {
        monitor(f, FL_MFP_DEFAULT, g->chosen.mem);
        return;
    }
    g->gear = fl_mfp_start_gear(f->p, f->facts, g->achieved_mhz, g->chosen.mem != FL_MFP_DEFAULT,
                                g->chosen.loss / g->base_bound);
    fl_mfp_measure(f, FL_MFP_SEARCH, g->gear, g->chosen.mem);
}

/* The SM clocks under the default memory clock, after a lower one (no step of Algorithm 7). */
static void search_default(const fl_mfp_frame *f) {
    f->g->chosen = (fl_mfp_point){.sm = FL_MFP_DEFAULT, .mem = FL_MFP_DEFAULT, .objective = f->g->base_objective};
    start_search(f->g);
    go_on(f);
}

static void end_baseline(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    const double power_w = fl_mfp_meter_mean(&g->meter, FL_MFP_POWER);
    g->unpowered = !(power_w > 0);
    if (!g->data.kernels || g->unpowered) { /* nothing ran, or nothing can be said of it: once more */
        update_baseline(f, g->after);
        return;
    }
    g->baselines++;
    g->coverage = fl_mfp_coverage(&g->data);
    fl_mfp_mark_varying(&g->data, &f->p->filter, 1, 1);
    fl_mfp_take_index(f);
    fl_mfp_update(&g->data, &f->p->filter);
    const int64_t longest = fl_mfp_ns(f->p->window_max_s);
    /* The same clocks, the same times; written so that an index that is not known (the first window) repeats. */
    const int differs = fabs(g->loss) > f->p->th_self || g->error > f->p->th_self;
    const int repeats = !differs || g->window_ns >= longest;
    if (g->coverage < f->p->th_cover || !repeats) {
        g->window_ns = 2 * g->window_ns < longest ? 2 * g->window_ns : longest;
        update_baseline(f, g->after);
        return;
    }
    g->since_baseline = 0;
    g->bound = g->base_bound = fl_mfp_bound(f->p, (double)g->data.kernels / ((double)g->window_ns * 1e-9));
    g->base_objective = fl_mfp_objective(f->p->objective, power_w, 1);
    if (g->chosen.mem == FL_MFP_DEFAULT)
        g->chosen.objective = g->base_objective;
    if (f->p->hold_sm_mhz > 0) {
        hold_fixed(f);
        return;
    }
    if (g->after == FL_MFP_SEARCH) {
        fl_mfp_measure(f, FL_MFP_SEARCH, g->gear, g->chosen.mem);
        return;
    }
    if (g->after == FL_MFP_WAIT) { /* the first of this optimisation */
        g->achieved_mhz = fl_mfp_meter_mean(&g->meter, FL_MFP_SM);
        if (fl_mfp_meter_mean(&g->meter, FL_MFP_UTIL_MEM) <= f->p->mem_util_pct)
            g->next_mem = fl_mfp_next_memory(f->p, f->facts, FL_MFP_DEFAULT);
    }
    go_on(f);
}

static void end_memory(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    const int verdict = fl_mfp_evaluate(f, FL_MFP_DEFAULT, g->next_mem);
    if (verdict != FL_MFP_COMPARED) {
        compare_again(f, FL_MFP_MEMORY, verdict);
        return;
    }
    g->unlike = 0;
    if (fl_mfp_goes_on(f))
        return;
    g->since_baseline++;
    /* Is it worth its loss, or would a lower SM clock make more of it? */
    const double saved = (g->chosen.objective - g->objective) / g->chosen.objective;
    if (g->loss <= g->bound && saved > 0 && saved >= f->p->mem_worth * (g->loss - g->chosen.loss)) {
        g->chosen =
            (fl_mfp_point){.sm = FL_MFP_DEFAULT, .mem = g->next_mem, .loss = g->loss, .objective = g->objective};
        g->next_mem = fl_mfp_next_memory(f->p, f->facts, g->next_mem);
    } else {
        g->next_mem = FL_MFP_DEFAULT;
    }
    go_on(f);
}

static uint32_t times_tried(const fl_mfp_gpu *g, int32_t gear) {
    uint32_t times = 0;
    for (uint32_t i = 0; i < g->tried_count; i++)
        times += g->tried[i].gear == gear;
    return times;
}

/* The gears from the default clock on are the default by another name. */
static int is_lower(const fl_mfp_frame *f, int32_t gear) {
    const double standard = f->facts->default_sm_mhz;
    return f->facts->sm.mhz[gear] < (standard > 0 ? standard : fl_ladder_max(f->facts->sm));
}

/* Stable, or long enough in search of it: then the best gear seen within the bound, the default where none is better.
 * A loss that was measured once may only have seemed to be the best of several, so it is measured again. */
static int ends(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    const fl_mfp_params *p = f->p;
    const int32_t stable =
        fl_mfp_stable_gear(&g->trace, (uint32_t)p->stable_last, p->th_ctrl, (int32_t)p->stable_gears);
    const int late = f->now_ns - g->start_ns >= fl_mfp_ns(p->forced_early_s);
    g->ending |= stable >= 0 || g->adjustments >= p->forced_after || (late && g->adjustments >= p->forced_early);
    if (!g->ending)
        return 0;
    fl_mfp_tried best;
    fl_mfp_point keep = g->chosen;
    if (fl_mfp_best_tried(g->tried, g->tried_count, p->sigma, p->monotone != 0, &best) &&
        best.objective < keep.objective && is_lower(f, best.gear))
        keep = (fl_mfp_point){.sm = best.gear, .mem = keep.mem, .loss = best.loss, .objective = best.objective};
    if (keep.sm != FL_MFP_DEFAULT && times_tried(g, keep.sm) < p->confirm && g->tried_count < FL_MFP_TRIED_MAX) {
        g->gear = keep.sm;
        return 0;
    }
    if (p->stable_at == FL_MFP_AT_MEAN && stable >= 0 && keep.sm != FL_MFP_DEFAULT &&
        stable - keep.sm <= p->stable_gears && keep.sm - stable <= p->stable_gears)
        keep.sm = stable;
    if (p->search_again && keep.sm == FL_MFP_DEFAULT && keep.mem != FL_MFP_DEFAULT &&
        g->fallback.sm == FL_MFP_DEFAULT &&
        g->fallback.mem == FL_MFP_DEFAULT) { /* that memory clock has used up the bound: once more without it */
        g->fallback = keep;
        search_default(f);
        return 1;
    }
    if (g->fallback.objective < keep.objective)
        keep = g->fallback;
    monitor(f, keep.sm, keep.mem);
    return 1;
}

static void end_search(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    const int verdict = fl_mfp_evaluate(f, g->gear, g->chosen.mem);
    if (verdict != FL_MFP_COMPARED) {
        g->trace.count = 0;
        compare_again(f, FL_MFP_SEARCH, verdict);
        return;
    }
    g->unlike = 0;
    if (fl_mfp_goes_on(f))
        return;
    g->adjustments++;
    g->since_baseline++;
    if (g->tried_count < FL_MFP_TRIED_MAX)
        g->tried[g->tried_count++] =
            (fl_mfp_tried){.gear = g->gear,
                           .loss = g->loss,
                           .bound = g->base_bound,
                           .objective = g->objective,
                           .base_error = g->base_error,
                           .error = sqrt(fmax(g->error * g->error - g->base_error * g->base_error, 0))};
    const int32_t measured = g->gear, top = (int32_t)f->facts->sm.count - 1;
    g->gear = fl_mfp_pid_next(&f->p->pid, &g->pid, g->bound, g->loss, g->objective, measured, top);
    fl_mfp_trace_add(&g->trace, (uint32_t)f->p->stable_last, f->p->trace_gear == FL_MFP_TRACE_NEXT ? g->gear : measured,
                     (g->loss - g->bound) / g->base_bound);
    if (ends(f))
        return;
    if (g->since_baseline >= f->p->refresh_every)
        update_baseline(f, FL_MFP_SEARCH);
    else
        fl_mfp_measure(f, FL_MFP_SEARCH, g->gear, g->chosen.mem);
}

static void end_vector(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    double vector[FL_MFP_FEATURES];
    for (int i = 0; i < FL_MFP_FEATURES; i++)
        vector[i] = fl_mfp_meter_mean(&g->meter, i);
    if (g->has_vector) {
        g->distance = fl_mfp_distance(g->vector, vector);
        if (g->distance > f->p->th_ev) {
            g->changes++;
            restart(f);
            return;
        }
    }
    for (int i = 0; i < FL_MFP_FEATURES; i++)
        g->vector[i] = vector[i];
    g->has_vector = 1;
    g->begin_ns = f->now_ns;
    g->end_ns = f->now_ns + fl_mfp_ns(VECTOR_S);
    g->meter = (fl_mfp_meter){.counting = 0};
}

/* ---- one step -----------------------------------------------------------------------------------------------------
 */

static void wait_for_kernels(const fl_mfp_frame *f) {
    fl_mfp_gpu *g = f->g;
    if (g->first_ns < 0 && g->busy)
        g->first_ns = f->now_ns;
    if (g->first_ns >= 0 && f->now_ns - g->first_ns >= fl_mfp_ns(SKIP_S))
        restart(f);
}

static int is_idle(const fl_mfp_gpu *g, const fl_gpu_sample *s) {
    return g->state != FL_MFP_STABLE && !g->busy && fl_gpu_known(s, FL_GPU_UTIL_GPU_PCT) &&
           s->value[FL_GPU_UTIL_GPU_PCT] <= 0;
}

void fl_mfp_step(fl_mfp_gpu *g, const fl_mfp_params *p, const fl_gpu_facts *facts, const fl_gpu_sample *sample,
                 int64_t time_ns, uint32_t gpu, fl_command *command) {
    const fl_mfp_frame f = {g, p, facts, time_ns, gpu, command};
    const int64_t passed = time_ns - g->last_ns;
    g->blind = !sample->valid;
    if (!g->blind)
        g->seen_ns = time_ns;
    if (g->state == FL_MFP_WAIT) {
        wait_for_kernels(&f);
    } else if (g->blind || is_idle(g, sample)) { /* the measurement pauses */
        g->end_ns += passed;
        fl_mfp_meter_pause(&g->meter);
        const int tries = g->state == FL_MFP_MEMORY || g->state == FL_MFP_SEARCH;
        if (g->blind && tries && time_ns - g->seen_ns >= fl_mfp_ns(MISSING_S))
            restart(&f); /* nobody watches what is being tried: back to the default */
    } else if (time_ns >= g->begin_ns) {
        fl_mfp_meter_add(&g->meter, sample, time_ns);
        if (time_ns >= g->end_ns || fl_mfp_is_hopeless(&f)) {
            static void (*const end[])(const fl_mfp_frame *) = {[FL_MFP_BASELINE] = end_baseline,
                                                                [FL_MFP_MEMORY] = end_memory,
                                                                [FL_MFP_SEARCH] = end_search,
                                                                [FL_MFP_STABLE] = end_vector,
                                                                [FL_MFP_FIXED] = end_fixed};
            end[g->state](&f);
        }
    }
    g->busy = 0;
    g->last_ns = time_ns;
}
