/* The course of MF-GPOEO as released: its six steps and the monitoring, in the order of the note. A sentence in quotes
 * is the note's; README.md numbers what it leaves open. */
#include "tests/reference/program.h"

#include <math.h>

#define LOSS_BOUND 0.05 /* untightened */
#define FIRST_WINDOW_S 4
#define LONGEST_WINDOW_S 20
#define COVERAGE 0.75
#define COMPARABLE 0.5625
#define CHANGE 0.1

static double mean(const ref_data *w, int reading) { return ref_mean(w, reading); }

/* "A baseline window first resets clocks and power limit and waits 2 s." */
static ref_data *baseline_window(ref_program *p, double seconds) {
    ref_set(p, FL_SET_SM_MHZ, FL_DEFAULT);
    ref_set(p, FL_SET_MEM_MHZ, FL_DEFAULT);
    ref_reset_limit(p);
    ref_wait(p, 2);
    return ref_window(p, seconds, true);
}

static void compare(ref_program *p, const ref_data *w) {
    p->found = ref_compare(w, p->database);
    if (!p->found.streams)
        ref_reach(REF_INDEX_NONE);
    if (p->found.streams > 1)
        ref_reach(REF_INDEX_SEVERAL);
    if (p->found.without_gap)
        ref_reach(REF_INDEX_WITHOUT_GAP);
}

/* "Objective = (P_c/P_b)(1+loss)^k", k = 1: energy. */
static double objective(const ref_program *p, const ref_data *w) {
    return ref_ratio(mean(w, REF_POWER), mean(p->database, REF_POWER)) * (1 + p->found.loss);
}

/* "1. 30 passes of the idle gate, clocks untouched." */
static void start(ref_program *p) {
    p->where = "1 start";
    ref_reset_limit(p);
    for (int i = 0; i < 30; i++)
        ref_idle_gate(p, true);
}

/* ---- "2. Window length, untraced, default clocks" ---- */

/* "Else if r > 0.05 (mean U < 25) or 0.04 (>= 25), or |dU| > 2.4 (U < 50), 3 (< 60), 7 (>= 60)" */
static bool too_short(double r, double difference, double u) {
    const bool by_ratio = r > (u < 25 ? 0.05 : 0.04);
    if (!by_ratio && difference > (u < 50 ? 2.4 : u < 60 ? 3 : 7))
        ref_reach(REF_LENGTH_ADDED_DIFFERENCE);
    return by_ratio || difference > (u < 50 ? 2.4 : u < 60 ? 3 : 7);
}

/* "D += 4 (max 20), count = 0, merge 0.1 if r > 0.15 else 0.8; the next window has only the added length, merge 1, no
 * test." At 20 s it ends. */
static void lengthen(ref_program *p, ref_data *pool, const ref_data *w, double r) {
    const double before = p->window_s;
    ref_reach(r > 0.15 ? REF_LENGTH_ADDED_01 : REF_LENGTH_ADDED_08);
    ref_merge(pool, w, r > 0.15 ? 0.1 : 0.8, false);
    p->window_s = fmin(p->window_s + 4, LONGEST_WINDOW_S);
    if (p->window_s == LONGEST_WINDOW_S)
        return;
    ref_data *added = ref_window(p, p->window_s - before, false);
    ref_merge(pool, added, 1, false);
    ref_forget(p, added);
}

/* "D = 4; one window starts a mean; then full windows against it, r = |dU|/(U+U'): r > 0.18: count = 0, merge 0.01.
 * Else [too short]. Else count+1, merge 0.8. Ends at D = 20, at count 3 (D <= 10), at count 1 (D > 10)." */
static void window_length(ref_program *p) {
    p->where = "2 window length";
    p->window_s = FIRST_WINDOW_S;
    ref_data *pool = ref_window(p, p->window_s, false);
    for (int count = 0; p->window_s != LONGEST_WINDOW_S && count < (p->window_s <= 10 ? 3 : 1);) {
        ref_data *w = ref_window(p, p->window_s, false);
        const double u = mean(w, REF_UTIL), before = mean(pool, REF_UTIL);
        const double difference = fabs(u - before), r = ref_ratio(difference, u + before);
        if (r > 0.18) {
            ref_reach(REF_LENGTH_UNLIKE);
            count = 0;
            ref_merge(pool, w, 0.01, false);
        } else if (too_short(r, difference, (u + before) / 2)) {
            count = 0;
            lengthen(p, pool, w, r);
        } else {
            ref_reach(REF_LENGTH_ALIKE);
            count++;
            ref_merge(pool, w, 0.8, false);
        }
        ref_forget(p, w);
    }
    ref_reach(p->window_s == LONGEST_WINDOW_S ? REF_LENGTH_MOST : p->window_s <= 10 ? REF_LENGTH_3 : REF_LENGTH_1);
    ref_forget(p, pool);
}

/* ---- "3. ... the database" ---- */

/* "Violation: covered or matched < 0.75, |loss| > 0.04, |exe| > 0.08, |gap| > 0.25, |gap| > 0.05 with U > 70 and V >
 * 50, or r > 0.06." */
static bool violates(const ref_program *p, const ref_data *w) {
    const ref_index *x = &p->found;
    const double u = mean(w, REF_UTIL), v = mean(w, REF_MEM_UTIL), before = mean(p->database, REF_UTIL);
    return x->covered < COVERAGE || x->matched < COVERAGE || fabs(x->loss) > 0.04 || fabs(x->exe) > 0.08 ||
           fabs(x->gap) > 0.25 || (fabs(x->gap) > 0.05 && u > 70 && v > 50) ||
           ref_ratio(fabs(u - before), u + before) > 0.06;
}

/* "merge 0.9 if |exe|, |gap| < 0.02, 0.7 (< 0.08), 0.6 (< 0.12), else 0.4." */
static double violation_factor(const ref_index *x) {
    const double most = fmax(fabs(x->exe), fabs(x->gap));
    ref_reach(most < 0.02 ? REF_BASE_09 : most < 0.08 ? REF_BASE_07 : most < 0.12 ? REF_BASE_06 : REF_BASE_04);
    return most < 0.02 ? 0.9 : most < 0.08 ? 0.7 : most < 0.12 ? 0.6 : 0.4;
}

/* "Goes on while covered or matched < 0.75, |loss| > 0.04, |exe| > 0.08 or |gap| > 0.15." */
static bool goes_on(const ref_index *x) {
    return x->covered < COVERAGE || x->matched < COVERAGE || fabs(x->loss) > 0.04 || fabs(x->exe) > 0.08 ||
           fabs(x->gap) > 0.15;
}

/* One of the "1 to 5 more, each compared first": "It counts (from 1); at 3: D x2 (max 20), count 0; merge ... None:
 * 0.9." */
static void more_baseline(ref_program *p, int *violations) {
    ref_data *w = baseline_window(p, p->window_s);
    compare(p, w);
    double d = 0.9;
    if (violates(p, w)) {
        ref_reach(REF_BASE_VIOLATION);
        if (++*violations == 3) {
            ref_reach(REF_BASE_DOUBLED);
            p->window_s = fmin(2 * p->window_s, LONGEST_WINDOW_S);
            *violations = 0;
        }
        d = violation_factor(&p->found);
    } else {
        ref_reach(REF_BASE_NONE);
    }
    ref_merge(p->database, w, d, false);
    ref_forget(p, w);
}

/* "A traced baseline window of 4 s, thrown away, 2 s; one of D = the database, 2 s; then 1 to 5 more." */
static void build_database(ref_program *p) {
    p->where = "3 database, thrown away";
    ref_forget(p, baseline_window(p, FIRST_WINDOW_S));
    ref_wait(p, 2);
    p->where = "3 database";
    p->database = baseline_window(p, p->window_s);
    ref_wait(p, 2);
    double matched_before = 0;
    int violations = 0;
    p->where = "3 database, compared";
    for (int i = 1;; i++) {
        more_baseline(p, &violations);
        if (!goes_on(&p->found))
            return;
        if (i == 5) {
            ref_reach(REF_BASE_MOST);
            return;
        }
        ref_reach(REF_BASE_GOES_ON);
        if (p->found.matched - matched_before < 0.1) { /* "Pause 0.3 D where matched rose by < 0.1." */
            ref_reach(REF_BASE_PAUSE);
            ref_wait(p, 0.3 * p->window_s);
        }
        matched_before = p->found.matched;
    }
}

/* ---- "4. Memory" ---- */

typedef struct trial {
    double loss, objective;
} trial;

/* "set, 3 s, one window; if loss < 0 one more: larger loss, second objective." */
static trial try_memory(ref_program *p, int gear) {
    ref_set_memory_gear(p, gear);
    ref_wait(p, 3);
    ref_data *w = ref_window(p, p->window_s, true);
    compare(p, w);
    trial t = {p->found.loss, objective(p, w)};
    ref_forget(p, w);
    if (t.loss < 0) {
        ref_reach(REF_MEM_SECOND);
        w = ref_window(p, p->window_s, true);
        compare(p, w);
        t = (trial){fmax(t.loss, p->found.loss), objective(p, w)};
        ref_forget(p, w);
    }
    return t;
}

/* "Memory, SM at gear ceil(0.95 N) = 118: none if V > 20. Try gear 2 (5001), then 1 (810). Rejected if loss > 5 %
 * (untightened) or, for 810, objective above 5001's: back to default / 5001. loss > 5 % ends it. Handed on: loss of the
 * last try, but of the one before (none: 5 %) if it broke 5 %." */
static void choose_memory(ref_program *p) {
    p->memory = p->memory_gears - 1;
    p->handed_on = LOSS_BOUND;
    if (mean(p->database, REF_MEM_UTIL) > 20) {
        ref_reach(REF_MEM_NONE);
        return;
    }
    p->where = "4 memory 5001";
    ref_set_sm_gear(p, (int)ceil(0.95 * p->gears));
    const trial first = try_memory(p, 2);
    if (first.loss > LOSS_BOUND) {
        ref_reach(REF_MEM_5001_REJECTED);
        ref_set(p, FL_SET_MEM_MHZ, FL_DEFAULT);
        return;
    }
    ref_reach(REF_MEM_5001_KEPT);
    p->memory = 2;
    p->handed_on = first.loss;
    p->where = "4 memory 810";
    const trial second = try_memory(p, 1);
    const bool too_slow = second.loss > LOSS_BOUND;
    if (!too_slow)
        p->handed_on = second.loss;
    if (too_slow || second.objective > first.objective) {
        ref_reach(too_slow ? REF_MEM_810_LOSS : REF_MEM_810_OBJECTIVE);
        ref_set_memory_gear(p, 2);
        return;
    }
    ref_reach(REF_MEM_810_KEPT);
    p->memory = 1;
}

static void set_chosen_memory(ref_program *p) {
    if (p->memory == p->memory_gears - 1)
        ref_set(p, FL_SET_MEM_MHZ, FL_DEFAULT);
    else
        ref_set_memory_gear(p, p->memory);
}

/* ---- "5. SM start" ---- */

static int nearest_gear(const ref_program *p, double mhz) {
    int nearest = 0;
    for (int i = 1; i < p->gears; i++)
        if (fabs(ref_sm_mhz(p, i) - mhz) < fabs(ref_sm_mhz(p, nearest) - mhz))
            nearest = i;
    return nearest;
}

/* "ceil(0.95 N); with memory gear <= M/2 and U < 95, q = handed on / 5 %: q < 0.6: round(0.65 N), q < 0.9: round(0.7
 * N), else round(0.9 N) (V = 20: 0.85, 0.8, 0.9). At most the gear nearest the database's mean SM clock." */
static void start_gear(ref_program *p) {
    const double n = p->gears, q = p->handed_on / LOSS_BOUND;
    const bool v20 = mean(p->database, REF_MEM_UTIL) >= 20;
    if (!(p->memory <= p->memory_gears / 2 && mean(p->database, REF_UTIL) < 95)) {
        ref_reach(REF_START_95);
        p->gear = (int)ceil(0.95 * n);
    } else if (q < 0.6) {
        ref_reach(v20 ? REF_START_V20 : REF_START_65);
        p->gear = (int)round((v20 ? 0.85 : 0.65) * n);
    } else if (q < 0.9) {
        ref_reach(v20 ? REF_START_V20 : REF_START_70);
        p->gear = (int)round((v20 ? 0.8 : 0.7) * n);
    } else {
        ref_reach(v20 ? REF_START_V20 : REF_START_90);
        p->gear = (int)round(0.9 * n);
    }
    const double reached = mean(p->database, REF_SM_CLOCK);
    const int most = reached > 0 ? nearest_gear(p, reached) : p->gear;
    if (p->gear > most) {
        ref_reach(REF_START_CAPPED);
        p->gear = most;
    }
}

/* ---- "6. Loop" ---- */

/* "(a) Refresh if n != 0 (n adjustments) and n mod R = 0 (R = 2, after the first refresh 5), or covered or matched <
 * 0.75, or unmatched streams > 0.1, or after a phase change" */
static bool wants_refresh(const ref_program *p, bool measured) {
    const ref_index *x = &p->found;
    if (p->changed)
        ref_reach(REF_REFRESH_CHANGE);
    else if (p->calls != 0 && p->calls % p->refresh_each == 0)
        ref_reach(p->refresh_each == 2 ? REF_REFRESH_2 : REF_REFRESH_5);
    else if (measured && (x->covered < COVERAGE || x->matched < COVERAGE))
        ref_reach(REF_REFRESH_COVER);
    else if (measured && x->unmatched_streams > 0.1)
        ref_reach(REF_REFRESH_STREAMS);
    else
        return false;
    return true;
}

/* "one baseline window, its loss e: |e| < 0.02: merge 0.8 absolute; < 0.05: 0.4, < 0.08: 0.3, else 0.2, relative;
 * memory clock back." */
static void refresh(ref_program *p) {
    p->where = "6a refresh";
    ref_data *w = baseline_window(p, p->window_s);
    compare(p, w);
    const double e = fabs(p->found.loss);
    ref_reach(e < 0.02 ? REF_REFRESH_08 : e < 0.05 ? REF_REFRESH_04 : e < 0.08 ? REF_REFRESH_03 : REF_REFRESH_02);
    ref_merge(p->database, w, e < 0.02 ? 0.8 : e < 0.05 ? 0.4 : e < 0.08 ? 0.3 : 0.2, e >= 0.02);
    ref_forget(p, w);
    set_chosen_memory(p);
    p->refresh_each = 5;
    p->changed = false;
}

/* "C = 5 % less 0.1 points below 2000 kernels/s in the database, else less 0.3." */
static void tighten_bound(ref_program *p) {
    const bool few = ref_ratio(p->database->kernels, p->database->duration_ns / 1e9) < 2000;
    ref_reach(few ? REF_BOUND_01 : REF_BOUND_03);
    p->bound = LOSS_BOUND - (few ? 0.001 : 0.003);
}

/* "(d) matched >= 0.5625: controller, n+1; else nothing, so (a)." Whether it was called. */
static bool adjust(ref_program *p, const ref_data *w) {
    if (p->found.matched < COMPARABLE) {
        ref_reach(REF_LOOP_UNMATCHED);
        return false;
    }
    if (p->calls == 0)
        tighten_bound(p);
    const double loss = p->found.loss, f = objective(p, w);
    const int gear = p->gear;
    p->gear = ref_controller(p, loss, mean(w, REF_SM_CLOCK));
    if (p->kept_count == 6) {
        for (int i = 0; i < 5; i++)
            p->kept[i] = p->kept[i + 1];
        p->kept_count = 5;
    }
    p->kept[p->kept_count++] = (ref_measured){(loss - p->bound) / p->bound, f, gear, p->gear};
    return true;
}

/* Until the stop rule knows a stable gear, which it returns. */
static int loop(ref_program *p) {
    bool measured = false;
    p->calls = 0;
    p->error_sum = p->last_error = p->last_loss = p->last_gain = 0;
    p->compounded = false;
    for (;;) {
        if (wants_refresh(p, measured))
            refresh(p);
        p->where = "6b SM gear";
        ref_set_sm_gear(p, p->gear);
        ref_wait(p, 1);
        p->where = "6c window"; /* "(c) Window D clamp(1+loss', 1, 1.05)." */
        const double longer = fmin(fmax(1 + p->last_loss, 1), 1.05);
        if (longer > 1)
            ref_reach(REF_LOOP_LONGER);
        ref_data *w = ref_window(p, p->window_s * longer, true);
        compare(p, w);
        measured = true;
        const bool adjusted = adjust(p, w);
        ref_forget(p, w);
        if (adjusted && p->calls >= 3) { /* "(e) From n = 3 the stop rule." */
            const int stable = ref_stop_rule(p);
            if (stable >= 0)
                return stable;
        }
    }
}

/* ---- "Monitoring" ---- */

/* "dist = sum(|a-b|/s) / sum((a+b)/s), s = 350 W, 2055, 9501 MHz, 100, 100." */
static double distance(const ref_program *p, const ref_data *a, const ref_data *b) {
    const double s[REF_READINGS] = {[REF_POWER] = p->gpu->power_default_w,
                                    [REF_SM_CLOCK] = ref_sm_mhz(p, p->gears - 1),
                                    [REF_MEM_CLOCK] = p->gpu->mem.mhz[p->memory_gears - 1],
                                    [REF_UTIL] = 100,
                                    [REF_MEM_UTIL] = 100};
    double differences = 0, sums = 0;
    for (int i = 0; i < REF_READINGS; i++) {
        differences += fabs(mean(a, i) - mean(b, i)) / s[i];
        sums += (mean(a, i) + mean(b, i)) / s[i];
    }
    return ref_ratio(differences, sums);
}

static ref_data *reference_of(ref_program *p) {
    ref_data *reference = ref_window(p, p->window_s, false);
    for (int i = 1; i < 3; i++) {
        ref_data *w = ref_window(p, p->window_s, false);
        ref_merge(reference, w, 1, false);
        ref_forget(p, w);
    }
    return reference;
}

/* "Stable gear, 2 s; reference = mean of 3 untraced windows of D; then windows of D: dist > 0.1 in 3 of the last 5:
 * change. Pause none for 4 windows and after a bad one, then D, 2D .. 8D." Returns at a change. */
static void monitor(ref_program *p) {
    p->where = "monitoring, reference";
    ref_set_sm_gear(p, p->gear);
    ref_wait(p, 2);
    ref_data *reference = reference_of(p);
    bool bad[5] = {false};
    double pause = 1;
    p->where = "monitoring";
    for (int i = 0;; i++) {
        ref_data *w = ref_window(p, p->window_s, false);
        bad[i % 5] = distance(p, w, reference) > CHANGE;
        ref_forget(p, w);
        ref_reach(bad[i % 5] ? REF_MONITOR_BAD : REF_MONITOR_GOOD);
        if (bad[0] + bad[1] + bad[2] + bad[3] + bad[4] == 3) {
            ref_forget(p, reference);
            ref_reach(REF_MONITOR_CHANGE);
            return;
        }
        if (bad[i % 5])
            pause = 1;
        if (i < 4 || bad[i % 5])
            continue;
        ref_reach(REF_MONITOR_PAUSE);
        ref_wait(p, pause * p->window_s);
        pause = fmin(2 * pause, 8);
    }
}

void ref_course(ref_program *p) {
    start(p);
    window_length(p);
    build_database(p);
    choose_memory(p);
    start_gear(p);
    p->refresh_each = 2;
    for (;;) {
        p->gear = loop(p);
        monitor(p);
        p->changed = true; /* "one refresh (merged, nothing forgotten), chosen memory clock, stable gear, n = 0" */
        p->traced_ns = 0;
    }
}
