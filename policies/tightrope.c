/* tightrope: spends a slowdown budget to the last tick and never more. Foldline's own policy.
 *
 * A ledger holds how long the work done so far would have taken at the top clock (W), and how long it took (tau). The
 * slack (1 + bound - margin) W - tau is never negative, at any instant, for nobody knows when the program ends. What
 * the ledger leaves is spent where it saves most: at the clock, or by turns at the two clocks, that the lower hull of
 * energy over slowdown names. tightrope_work.h tells the work, tightrope_curve.h the clock. */
#include "policies/policy.h"
#include "policies/tightrope_curve.h"
#include "policies/tightrope_lag.h"
#include "policies/tightrope_work.h"

#include <math.h>
#include <string.h>

typedef struct params {
    double bound, margin;
    double reference_s, reference_max_s, window_s, horizon_s;
    double sharpness, fixed_share, tolerance, roughness, smooth, reach;
    double poll_ms, coarse_ms, settle_ms, lag_ms;
    double sigmas, drift;
    int64_t look_every, signal, objective;
} params;

typedef struct wander { /* how windows differ from the mean of their clock: relative squares, number */
    double square, number;
} wander;

typedef struct gpu_state {
    int64_t started, clock, now_odd, references, decisions;
    int64_t readings;   /* fine ones so far */
    int64_t arrived_ns; /* when the clock asked for was there; < 0: not yet */
    int64_t power_ns;   /* power readings count from here on */
    int64_t until_ns;   /* the window lasts at least until then */
    double window_s, power_w;
    double lag_s; /* of the power sensor; NAN: not known yet */
    double slack_s, allowed, energy, slowdown;
    wander time_wander, power_wander;
    fl_tightrope_lag lag;
    fl_tightrope_work work;
    fl_tightrope_seen seen[FL_TIGHTROPE_CLOCKS];
} gpu_state;

enum { PROBE_CLOCK, PROBE_SLACK, PROBE_ALLOWED, PROBE_SLOWDOWN, PROBE_ERROR, PROBE_SIGNAL, PROBE_REFERENCES, PROBES };

static const fl_probe probe_rows[PROBES] = {
    [PROBE_CLOCK] = {"clock", "MHz", "chosen clock", 1},
    [PROBE_SLACK] = {"slack", "s", "time that the ledger leaves to spend", 1},
    [PROBE_ALLOWED] = {"allowed", "", "slowdown allowed from now on", 1},
    [PROBE_SLOWDOWN] = {"slowdown", "", "of the last window against the top clock", 1},
    [PROBE_ERROR] = {"error", "", "relative error of the reference", 1},
    [PROBE_SIGNAL] = {"signal", "",
                      "what tells the work: 1 records, 2 markers, 3 kernels, 4 bytes, 5 utilisation, 6 nothing", 1},
    [PROBE_REFERENCES] = {"references", "", "times that the reference was learned", 1},
};

#define POWER_S 0.08 /* of readings make a mean */
#define LAG_MAX_S 4  /* no sensor is waited for longer */

static gpu_state *gpus(void *state) { return fl_gpu_states(state, 0); }

static double deviation(const wander *w) { return w->number > 0 ? sqrt(w->square / w->number) : 0; }

static fl_tightrope_chip chip_of(const params *p, const gpu_state *g, const fl_gpu_facts *f) {
    const uint32_t count = f->sm.count < FL_TIGHTROPE_CLOCKS ? f->sm.count : FL_TIGHTROPE_CLOCKS;
    return (fl_tightrope_chip){.mhz = f->sm.mhz + f->sm.count - count,
                               .count = count,
                               .tolerance = p->tolerance,
                               .sharpness = p->sharpness,
                               .fixed_share = p->fixed_share,
                               .roughness = p->roughness,
                               .smooth = p->smooth,
                               .reach = p->reach,
                               .time_wander = deviation(&g->time_wander),
                               .power_wander = deviation(&g->power_wander)};
}

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    (void)state;
    if (p->margin >= p->bound)
        return "margin must be below the bound";
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (!facts->gpu[i].sm.count)
            return "needs the SM ladder of every GPU";
    return NULL;
}

static int64_t best_signal(const fl_gpu_sample *u) {
    if (fl_gpu_known(u, FL_GPU_ITERATIONS) && u->value[FL_GPU_ITERATIONS] > 0)
        return FL_TIGHTROPE_ITERATIONS;
    if (fl_gpu_known(u, FL_GPU_KERNELS))
        return FL_TIGHTROPE_KERNELS;
    if (fl_gpu_known(u, FL_GPU_DRAM_BYTES))
        return FL_TIGHTROPE_BYTES;
    if (fl_gpu_known(u, FL_GPU_UTIL_MEM_PCT))
        return FL_TIGHTROPE_UTIL;
    return FL_TIGHTROPE_NONE;
}

static void set_clock(gpu_state *g, const fl_tightrope_chip *chip, uint32_t i, int64_t clock, int64_t now,
                      fl_command *c) {
    const int changed = clock != g->clock;
    if (changed)
        fl_set_gpu(c, i, FL_SET_SM_MHZ, chip->mhz[clock]);
    if (changed && g->clock >= 0 && isnan(g->lag_s))
        fl_tightrope_lag_begin(&g->lag, g->power_w);
    g->clock = clock;
    if (changed)
        g->arrived_ns = -1, g->power_ns = INT64_MAX;
    fl_tightrope_window(&g->work, now, chip->mhz[clock], chip->mhz[chip->count - 1], changed);
}

/* A window must show the slowdown well through the noise of the units, and the power through the sensor's lag. */
static double window_length(const params *p, const gpu_state *g) {
    const fl_tightrope_work *w = &g->work;
    double s = fmax(p->window_s, w->spread / (0.0075 * 0.0075));
    if (w->signal == FL_TIGHTROPE_BYTES || w->signal == FL_TIGHTROPE_UTIL)
        s = fmax(s, 1);
    else
        s = fmax(fmax(s, 8 * w->unit_s), fmin(1, w->elapsed_s / 64)); /* long lines tell more, few changes cost less */
    return fmin(s, 20);
}

/* A look at the top clock makes the reference better. It pays where the error that is held back costs more, over as
 * long again as the program has run, than the look: what the look leaves of the slack is spent later. */
static int top_pays(const params *p, const gpu_state *g, const fl_tightrope_choice *choice) {
    const double error = p->sigmas * fl_tightrope_reference_error(&g->work);
    const double trade = choice->steepness * choice->energy; /* energy for a unit of slowdown */
    const double gain = trade * error * g->work.elapsed_s / (2 * fmax(g->work.rate_s, 1e-3));
    return gain > fmax(0.1 * (1 - choice->energy), 1 - choice->energy - trade * (p->bound - p->margin));
}

/* At a clock not tried before, long enough for the power too. */
static double first_length(const params *p, const gpu_state *g) {
    return fmax(g->window_s, p->settle_ms * 1e-3 + (isnan(g->lag_s) ? 0 : g->lag_s) + POWER_S);
}

static void decide(const params *p, gpu_state *g, const fl_tightrope_chip *chip, uint32_t i, int64_t now,
                   fl_command *c) {
    const double b = p->bound - p->margin;
    g->slack_s = (1 + b) * fl_tightrope_credit(&g->work) - g->work.elapsed_s;
    g->window_s = window_length(p, g);
    const double horizon = fmax(p->horizon_s, 2 * g->window_s);
    g->allowed = fmax(1, fmin(1 + 4 * b + 0.1, (1 + b) * (1 + g->slack_s / horizon)));
    const fl_tightrope_wish wish = {.allowed = g->allowed,
                                    .slack_s = g->slack_s,
                                    .bound = b,
                                    .window_s = g->window_s,
                                    .first_window_s = first_length(p, g),
                                    .elapsed_s = g->work.elapsed_s,
                                    .delay_power = (int32_t)p->objective,
                                    .look = p->look_every > 0 && ++g->decisions % p->look_every == 0,
                                    .now = (int32_t)g->clock};
    fl_tightrope_choice choice = fl_tightrope_choose(chip, g->seen, &wish);
    if (!choice.looked && g->work.signal != FL_TIGHTROPE_NONE && top_pays(p, g, &choice))
        choice.clock = chip->count - 1;
    g->energy = choice.energy;
    if (!(g->seen[choice.clock].weight_s > 0))
        g->window_s = first_length(p, g);
    set_clock(g, chip, i, choice.clock, now, c);
}

static void average(double *mean, double value, double weight, double more) {
    *mean = weight > 0 ? (*mean * weight + value * more) / (weight + more) : value;
}

/* The mean of n earlier windows differs from one more by (n + 1) / n of a window's variance. */
static void wanders(wander *w, double mean, double value, double windows) {
    const double off = value / mean - 1;
    w->square += off * off * windows / (windows + 1);
    w->number++;
}

static void learn(gpu_state *g, const fl_tightrope_seen_window *m, double limit_s) {
    fl_tightrope_seen *s = &g->seen[g->clock];
    const double weight = fmin(s->weight_s, limit_s);
    if (isnan(m->slowdown) || (isnan(m->power_w) && !(s->weight_s > 0)))
        return;
    if (s->windows > 0 && !g->work.at_top)
        wanders(&g->time_wander, s->slowdown, m->slowdown, s->windows);
    if (s->windows > 0 && !isnan(m->power_w))
        wanders(&g->power_wander, s->power_w, m->power_w, s->windows);
    s->windows++;
    average(&s->slowdown, fmax(1, m->slowdown), weight, m->length_s);
    s->noise = hypot(s->noise * weight, m->noise * m->length_s) / (weight + m->length_s);
    if (!isnan(m->power_w)) {
        average(&s->power_w, m->power_w, weight, m->length_s);
        s->power_noise = hypot(s->power_noise * weight, m->power_noise * m->length_s) / (weight + m->length_s);
    }
    s->weight_s = weight + m->length_s;
}

static void to_reference(gpu_state *g, const fl_tightrope_chip *chip, uint32_t i, int64_t now, fl_command *c) {
    memset(g->seen, 0, sizeof g->seen);
    g->references++;
    g->now_odd = 0;
    set_clock(g, chip, i, chip->count - 1, now, c);
}

static int changed_phase(const params *p, const gpu_state *g, const fl_tightrope_seen_window *m) {
    const fl_tightrope_seen *s = &g->seen[g->clock];
    if (g->work.signal == FL_TIGHTROPE_RECORDS)
        return 0;
    if (m->doubtful)
        return 1;
    if (!(s->weight_s > 0))
        return 0;
    return (!isnan(m->slowdown) && fabs(m->slowdown / s->slowdown - 1) > fmax(p->drift, 4 * m->noise)) ||
           (!isnan(m->power_w) &&
            fabs(m->power_w / s->power_w - 1) > fmax(1.5 * p->drift, 5 * m->power_noise + 4 * m->noise));
}

static void end_window(const params *p, gpu_state *g, const fl_tightrope_chip *chip, uint32_t i, int64_t now,
                       fl_command *c) {
    fl_tightrope_seen_window m = fl_tightrope_close(&g->work, now);
    const int top = g->clock == (int64_t)chip->count - 1;
    if (g->work.signal == FL_TIGHTROPE_NONE)
        m.slowdown = (double)chip->mhz[chip->count - 1] / chip->mhz[g->clock];
    if (top)
        m.slowdown = 1;
    g->slowdown = m.slowdown;
    g->power_w = isnan(m.power_w) ? g->power_w : m.power_w;
    g->lag.count = 0;
    if (changed_phase(p, g, &m)) {
        if (++g->now_odd >= 2) {
            fl_tightrope_new_phase(&g->work);
            to_reference(g, chip, i, now, c);
            return;
        }
    } else {
        g->now_odd = 0;
        learn(g, &m, 30);
    }
    decide(p, g, chip, i, now, c);
}

/* Between half of a time and one and a half, by the golden ratio: even readings of even units would see each of them
 * late by the same time, or by a time that drifts unseen. */
static int64_t uneven(gpu_state *g, int64_t mean) {
    const double turn = (double)g->readings++ * 0.6180339887498949;
    return (int64_t)((double)mean * (0.5 + turn - floor(turn)));
}

/* Finely while a counter's line is drawn, coarsely else. */
static int64_t reading_ns(const params *p, gpu_state *g, int64_t now, double end_s) {
    const double left = end_s - (double)(now - g->work.window_ns) * 1e-9;
    const double zone = fmax(0.1, 2.5 * g->work.unit_s), settled = (double)(now - g->work.settled_ns) * 1e-9;
    const int64_t fine = (int64_t)(p->poll_ms * 1e6), coarse = (int64_t)(p->coarse_ms * 1e6);
    if (g->work.signal != FL_TIGHTROPE_RECORDS && g->work.signal != FL_TIGHTROPE_NONE &&
        (g->work.at_top || settled < zone || left <= zone || g->work.signal >= FL_TIGHTROPE_BYTES))
        return uneven(g, g->work.at_top ? fine / 4 : fine); /* every credit stands on the little time at the top */
    const double wait =
        (g->work.signal <= FL_TIGHTROPE_RECORDS || g->work.signal == FL_TIGHTROPE_NONE ? left : left - zone) * 1e9;
    return wait > (double)coarse ? coarse : wait > (double)fine ? (int64_t)wait : fine;
}

/* Nothing of a window counts before the clock that was asked for is there, for as long as one may wait for it. */
static void arrive(const params *p, gpu_state *g, const fl_tightrope_chip *chip, const fl_gpu_sample *u, int64_t now) {
    fl_tightrope_work *w = &g->work;
    if (g->arrived_ns >= 0)
        return;
    w->settled_ns = now + (int64_t)(p->settle_ms * 1e6);
    if (fl_gpu_known(u, FL_GPU_SM_MHZ) && fabs(u->value[FL_GPU_SM_MHZ] - chip->mhz[g->clock]) > 1 &&
        now - w->window_ns < 1500000000)
        return;
    g->arrived_ns = now;
    g->power_ns = w->settled_ns + (int64_t)((isnan(g->lag_s) ? 0 : g->lag_s) * 1e9);
}

/* Until the sensor's lag is known, what it shows at the start and after the first change of the clock tells it. */
static void watch_lag(gpu_state *g, const fl_gpu_sample *u, int64_t now) {
    if (!isnan(g->lag_s) || g->arrived_ns < 0 || !fl_gpu_fresh(u, FL_GPU_POWER_W))
        return;
    fl_tightrope_lag_add(&g->lag, (double)(now - g->arrived_ns) * 1e-9, u->value[FL_GPU_POWER_W]);
    g->lag_s = fl_tightrope_lag_seconds(&g->lag);
    if (isnan(g->lag_s))
        return;
    g->power_ns = now; /* it has come to rest */
    fl_tightrope_forget_power(&g->work);
    g->until_ns = now + (int64_t)(POWER_S * 1e9);
}

static int waits_for_lag(const gpu_state *g, double length_s) {
    return isnan(g->lag_s) && length_s < LAG_MAX_S && g->lag.count > 0 && !fl_tightrope_lag_still(&g->lag);
}

static void start(const params *p, gpu_state *g, const fl_tightrope_chip *chip, const fl_gpu_sample *u, uint32_t i,
                  int64_t now, fl_command *c) {
    const int64_t signal = p->signal == FL_TIGHTROPE_AUTO ? FL_TIGHTROPE_RECORDS : p->signal;
    g->started = 1;
    g->clock = -1;
    g->window_s = p->reference_s;
    if (signal == FL_TIGHTROPE_RECORDS)
        fl_set_gpu(c, i, FL_SET_RECORDS, 1);
    fl_tightrope_work_begin(&g->work, signal, now, p->tolerance, p->sigmas);
    to_reference(g, chip, i, now, c);
    g->lag_s = p->lag_ms > 0 ? p->lag_ms * 1e-3 : NAN;
    fl_tightrope_lag_begin(&g->lag, fl_gpu_known(u, FL_GPU_POWER_W) ? u->value[FL_GPU_POWER_W] : 0);
}

static int no_records(const fl_tightrope_work *w) {
    return w->signal == FL_TIGHTROPE_RECORDS && !(w->rate_s + w->known_s + w->unknown_s > 0);
}

static void other_signal(const params *p, gpu_state *g, const fl_tightrope_chip *chip, const fl_gpu_sample *u,
                         uint32_t i, int64_t now, fl_command *c) {
    fl_tightrope_work *w = &g->work;
    fl_set_gpu(c, i, FL_SET_RECORDS, 0);
    fl_tightrope_work_begin(w, best_signal(u), w->begin_ns, p->tolerance, p->sigmas);
    w->last_ns = now;
    fl_tightrope_window(w, w->begin_ns, chip->mhz[g->clock], chip->mhz[chip->count - 1], 0);
}

static void show(const gpu_state *g, const fl_tightrope_chip *chip, uint32_t i, fl_command *c) {
    fl_show_gpu(c, i, PROBE_CLOCK, chip->mhz[g->clock]);
    fl_show_gpu(c, i, PROBE_SLACK, g->slack_s);
    fl_show_gpu(c, i, PROBE_ALLOWED, g->allowed);
    fl_show_gpu(c, i, PROBE_SLOWDOWN, g->slowdown);
    fl_show_gpu(c, i, PROBE_ERROR, fl_tightrope_reference_error(&g->work));
    fl_show_gpu(c, i, PROBE_SIGNAL, (double)g->work.signal);
    fl_show_gpu(c, i, PROBE_REFERENCES, (double)g->references);
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    const params *p = param_bytes;
    const int64_t now = sample->time_ns;
    c->delay_ns = (int64_t)(p->coarse_ms * 1e6);
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        fl_tightrope_work *w = &g->work;
        const fl_tightrope_chip chip = chip_of(p, g, &facts->gpu[i]);
        const fl_gpu_sample *u = &sample->gpu[i];
        if (!g->started)
            start(p, g, &chip, u, i, now, c);
        arrive(p, g, &chip, u, now);
        watch_lag(g, u, now);
        fl_tightrope_read(w, sample, i, g->power_ns);
        const double length = (double)(now - w->window_ns) * 1e-9;
        const double late = fmax(0, (double)(w->settled_ns - w->window_ns) * 1e-9 - p->settle_ms * 1e-3);
        const int learning = w->at_top && !(g->seen[g->clock].weight_s > 0);
        const double end = (learning ? p->reference_s : g->window_s) + late;
        if (learning && p->signal == FL_TIGHTROPE_AUTO && no_records(w) && length > p->reference_s)
            other_signal(p, g, &chip, u, i, now, c);
        else if (length >= end && now >= g->until_ns && !waits_for_lag(g, length) &&
                 (!learning || fl_tightrope_enough(w, p->bound / 4) || length > p->reference_max_s))
            end_window(p, g, &chip, i, now, c);
        const int64_t next = reading_ns(p, g, now, end);
        c->delay_ns = next < c->delay_ns ? next : c->delay_ns;
        show(g, &chip, i, c);
    }
}

static const fl_param param_rows[] = {
    FL_PARAM(params, bound, REAL(0.001, 1), "", "0.05", "slowdown allowed over the whole run"),
    FL_PARAM(params, margin, REAL(0, 0.5), "", "0.0005", "of the bound, kept back beside the reference's error"),
    FL_PARAM(params, objective, CHOICE("energy|edp|ed2p"), "", "energy", "what to save"),
    FL_PARAM(params, signal, CHOICE("auto|records|iterations|kernels|bytes|util|none"), "", "auto",
             "what tells how much work is done"),
    FL_PARAM(params, reference_s, REAL(0.01, 100), "s", "0.15", "least time at the top clock to learn the reference"),
    FL_PARAM(params, reference_max_s, REAL(0.01, 1000), "s", "5", "longest time to learn it"),
    FL_PARAM(params, window_s, REAL(0.01, 100), "s", "0.15", "least time at a clock"),
    FL_PARAM(params, horizon_s, REAL(0.1, 1000), "s", "5", "time over which slack is spent"),
    FL_PARAM(params, sharpness, REAL(1, 20), "", "4", "p of the time law, below the clocks tried"),
    FL_PARAM(params, fixed_share, REAL(0, 1), "", "0.4", "of power at the top clock that does not follow V^2 f"),
    FL_PARAM(params, tolerance, REAL(0, 1), "", "0.03", "by how much a slowdown may pass top / f"),
    FL_PARAM(params, roughness, REAL(0, 1), "", "0.025", "how far time and power stray from their laws"),
    FL_PARAM(params, smooth, REAL(0.01, 10), "", "0.2", "over what distance in log clock they stray alike"),
    FL_PARAM(params, reach, REAL(0.01, 2), "", "0.15", "furthest step below the lowest clock tried"),
    FL_PARAM(params, poll_ms, REAL(0.1, 1000), "ms", "2", "time between readings where a counter's line is drawn"),
    FL_PARAM(params, coarse_ms, REAL(0.1, 1000), "ms", "20", "time between readings elsewhere"),
    FL_PARAM(params, settle_ms, REAL(0, 1000), "ms", "30",
             "after the achieved clock has arrived, readings do not count"),
    FL_PARAM(params, lag_ms, REAL(0, 10000), "ms", "0", "age of a power reading; 0: learned at the start"),
    FL_PARAM(params, sigmas, REAL(0, 10), "", "4.5", "of the reference's error held back"),
    FL_PARAM(params, drift, REAL(0.005, 1), "", "0.04", "change of rate at one clock that means another phase"),
    FL_PARAM(params, look_every, INT(0, 1000), "", "3", "decisions between looks at clocks not tried; 0: never"),
};

FL_POLICY(tightrope) = {FL_POLICY_ABI,
                        .name = "tightrope",
                        .summary = "spends a slowdown budget exactly, by a ledger of the work done",
                        .source = "Foldline",
                        .gpu_needs = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) |
                                     FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_KERNELS) | FL_BIT(FL_GPU_ITERATIONS) |
                                     FL_BIT(FL_GPU_DRAM_BYTES) | FL_BIT(FL_GPU_UTIL_MEM_PCT),
                        .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_RECORDS),
                        .param = param_rows,
                        .param_count = FL_COUNT(param_rows),
                        .probe = probe_rows,
                        .probe_count = PROBES,
                        .param_size = sizeof(params),
                        .gpu_size = sizeof(gpu_state),
                        .init = init,
                        .step = step};
