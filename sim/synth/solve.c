/* The shares of an application's kernels, solved for the best static clocks that Table V publishes. */
#include "sim/synth/inside.h"

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "policies/random.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_APP_STREAMS_MAX 3

#define BOUND 0.05   /* the paper's limit on the slowdown */
#define TRIES 400    /* of the seeded search */
#define CLEAR 0.003  /* share by which the best memory clock should beat the others: dispersion must not turn it */
#define MARGIN_W 5.0 /* below the board's limit, so that its wall stays asleep */
#define HOT_W 350.0  /* where an application that is to hit the wall would stand at its throttled clock */

typedef struct trial {    /* what a search draws */
    double balance;       /* memory term over core term of compute kernels */
    double memory;        /* memory term of memory kernels, of their time */
    double memory_share;  /* of the kernel time */
    double latency_share; /* of the kernel time */
} trial;

typedef struct range {
    double low, high;
} range;

/* What can be best at a memory clock. Tried in this order by the ratio of the clocks: what waits for memory a fifth of
 * its time pays for a clock 1.03 times lower; what hardly touches it does not notice one 12 times lower. */
static const struct {
    double mem_mhz;
    range balance, memory, memory_share;
} open_[] = {{810, {0.02, 0.085}, {0.015, 0.08}, {0.02, 0.15}},
             {5001, {0.06, 0.65}, {0.05, 0.4}, {0.02, 0.15}},
             {9251, {0.2, 1.0}, {0.2, 0.9}, {0.02, 0.12}},
             {9501, {0.5, 1.05}, {0.8, 0.97}, {0.15, 0.55}}};

static double at(fl_random *r, range x) { return fl_app_log_between(r, x.low, x.high); }

static trial draw(const fl_app *a, fl_random *r) {
    size_t i = sizeof open_ / sizeof *open_ - 1;
    while (i && open_[i].mem_mhz > a->target.mem_mhz)
        i--;
    trial t = {at(r, open_[i].balance), at(r, open_[i].memory), at(r, open_[i].memory_share),
               fl_app_between(r, 0.04, 0.2)};
    if (a->streams > 1) /* side by side they must not fill the bandwidth */
        t.memory = fmin(t.memory, 0.8 / a->streams);
    return t;
}

/* ---- from a trial to terms and shares ---- */

static void set_shares(fl_app *a, const trial *t) {
    double weight[FL_APP_PARTS_MAX][FL_APP_STREAMS_MAX][FL_ROLES] = {0};
    for (uint32_t i = 0; i < a->row_count; i++)
        weight[a->row[i].part][a->row[i].stream][a->kind[a->row[i].kind].role] += a->row[i].weight;
    for (uint32_t i = 0; i < a->row_count; i++) {
        fl_app_row *row = &a->row[i];
        const fl_app_part *part = &a->part[row->part];
        const double *sum = weight[row->part][row->stream];
        double role[FL_ROLES], all = 0;
        role[FL_ROLE_MEMORY] = fmin(0.7, t->memory_share * part->role[FL_ROLE_MEMORY]);
        role[FL_ROLE_LATENCY] = fmin(0.25, t->latency_share * part->role[FL_ROLE_LATENCY]);
        role[FL_ROLE_COMPUTE] = 1 - role[FL_ROLE_MEMORY] - role[FL_ROLE_LATENCY];
        for (size_t k = 0; k < FL_ROLES; k++)
            all += sum[k] > 0 ? role[k] : 0; /* a part may lack a role */
        const fl_app_role own = a->kind[row->kind].role;
        row->share = role[own] * row->weight / (sum[own] * all);
    }
}

static void set_terms(fl_app *a, const fl_device *dev, const trial *t, double core) {
    for (uint32_t i = 0; i < a->kind_count; i++) {
        fl_app_kind *k = &a->kind[i];
        const double own = fmin(0.98, core * k->sense);
        switch (k->role) {
        case FL_ROLE_COMPUTE:
            k->tc = own;
            k->tm = fmin(0.98, own * t->balance * k->balance);
            break;
        case FL_ROLE_MEMORY:
            k->tm = fmin(0.98, t->memory * k->balance);
            k->tc = 0.5 * own;
            break;
        default:
            k->tc = 0.05 * own;
            k->tm = 0.1 * fmin(t->memory, own * t->balance);
            break;
        }
        k->tc = fl_app_round(k->tc);
        k->tm = fl_app_round(k->tm);
        k->tl = fl_app_round(fmax(0, 1 - fl_time_norm(k->tc, k->tm, dev->sharpness)));
        k->beta = fl_app_round(fmin(1, k->tm / fl_time_at(k->tc, k->tm, k->tl, dev->sharpness, 1, 1)));
    }
}

/* ---- the law over an application ---- */

/* Share of the application's time at the default clocks, per stream. */
static double row_time(const fl_app *a, const fl_app_row *row) {
    double all = 0;
    for (uint32_t i = 0; i < a->part_count; i++)
        all += a->part[i].part_s;
    const fl_app_part *part = &a->part[row->part];
    return part->part_s / all * (1 - part->gap_share) * row->share / a->streams;
}

typedef struct law { /* an application's time in parts that need no second look */
    double weight[FL_APP_KINDS_MAX], gap;
} law;

static law law_of(const fl_app *a, const fl_device *dev) {
    law l = {.gap = 1};
    for (uint32_t i = 0; i < a->row_count; i++) {
        const fl_app_kind *k = &a->kind[a->row[i].kind];
        const double w = row_time(a, &a->row[i]);
        l.gap -= w;
        l.weight[a->row[i].kind] += w / fl_time_at(k->tc, k->tm, k->tl, dev->sharpness, 1, 1);
    }
    return l;
}

static double time_of(const fl_app *a, const fl_device *dev, const law *l, double sm_mhz, double mem_mhz) {
    double sum = l->gap;
    for (uint32_t i = 0; i < a->kind_count; i++) {
        const fl_app_kind *k = &a->kind[i];
        sum += l->weight[i] * fl_time_at(k->tc, k->tm, k->tl, dev->sharpness, dev->default_sm_mhz / sm_mhz,
                                         dev->default_mem_mhz / mem_mhz);
    }
    return sum;
}

/* The core share at which the bound is met half a gear below the target: so it holds at the target and not below. */
static void solve_core(fl_app *a, const fl_device *dev, const trial *t, double base_mhz) {
    double low = 0.001, high = 1.3;
    const double edge = FL_APP_GEAR_MHZ(a->target.gear) - 7.5;
    for (int i = 0; i < 30; i++) {
        const double core = (low + high) / 2;
        set_terms(a, dev, t, core);
        const law l = law_of(a, dev);
        const double slowdown =
            time_of(a, dev, &l, edge, a->target.mem_mhz) / time_of(a, dev, &l, base_mhz, dev->default_mem_mhz);
        *(slowdown < 1 + BOUND ? &low : &high) = core;
    }
    set_terms(a, dev, t, low);
}

/* Sum of time x beta and of time x activity over the kernels at given clocks, relative to the whole time. */
static void loads(const fl_app *a, const fl_device *dev, const law *l, double sm_mhz, double mem_mhz, double *activity,
                  double *beta) {
    const double whole = time_of(a, dev, l, sm_mhz, mem_mhz);
    *activity = *beta = 0;
    for (uint32_t i = 0; i < a->kind_count; i++) {
        const fl_app_kind *k = &a->kind[i];
        const double t = l->weight[i] * fl_time_at(k->tc, k->tm, k->tl, dev->sharpness, dev->default_sm_mhz / sm_mhz,
                                                   dev->default_mem_mhz / mem_mhz);
        *activity += t / whole * k->activity;
        *beta += t / whole * k->beta;
    }
}

/* Activities such that the mean power at the target's SM clock is the published cap, but no kernel reaches the limit of
 * the board at the default clocks (several streams: all of them together). */
static fl_model_status solve_power(fl_app *a, const fl_device *dev, double base_mhz) {
    const law l = law_of(a, dev);
    const double clock = a->hot ? base_mhz : FL_APP_GEAR_MHZ(a->target.gear);
    double activity, beta, core_w, memory_w, top_core_w, top_memory_w;
    fl_base base, top;
    loads(a, dev, &l, clock, dev->default_mem_mhz, &activity, &beta);
    fl_model_status s = fl_base_make(dev, clock, dev->default_mem_mhz, &base);
    if (!s)
        s = fl_base_make(dev, dev->default_sm_mhz, dev->default_mem_mhz, &top);
    if (!s)
        s = fl_power_dynamic(dev, 1, 1, clock, dev->default_mem_mhz, &core_w, &memory_w);
    if (!s)
        s = fl_power_dynamic(dev, 1, 1, dev->default_sm_mhz, dev->default_mem_mhz, &top_core_w, &top_memory_w);
    if (s)
        return s;
    double busy = 1 - l.gap / time_of(a, dev, &l, clock, dev->default_mem_mhz);
    /* The wall acts on the power of a busy board, the cap was published for the mean. */
    const double want = a->hot ? HOT_W : a->target.cap_w, part = a->hot ? 1 / busy : 1;
    const double scale =
        fmax(0.05, (want - base.total_mw / 1000.0 - part * beta * memory_w) / (part * activity * core_w));
    for (uint32_t i = 0; i < a->kind_count; i++) {
        fl_app_kind *k = &a->kind[i];
        const double room = (dev->power_default_w - MARGIN_W - top.total_mw / 1000.0) / a->streams;
        const double most = (room - k->beta * top_memory_w / a->streams) / top_core_w;
        double alpha = scale * k->activity / a->streams;
        if (!a->hot)
            alpha = fmin(alpha, most);
        k->alpha = fl_app_round(fmax(0.02, alpha));
        k->beta = fl_app_round(k->beta / a->streams);
    }
    return FL_MODEL_OK;
}

/* Energy relative to one second at the default clocks; streams draw side by side. */
static fl_model_status energy_of(const fl_app *a, const fl_device *dev, const law *l, double sm_mhz, double mem_mhz,
                                 double *energy) {
    double core_w, memory_w;
    fl_base base;
    fl_model_status s = fl_base_make(dev, sm_mhz, mem_mhz, &base);
    if (!s)
        s = fl_power_dynamic(dev, 1, 1, sm_mhz, mem_mhz, &core_w, &memory_w);
    if (s)
        return s;
    *energy = base.total_mw / 1000.0 * time_of(a, dev, l, sm_mhz, mem_mhz);
    for (uint32_t i = 0; i < a->kind_count; i++) {
        const fl_app_kind *k = &a->kind[i];
        const double t = l->weight[i] * fl_time_at(k->tc, k->tm, k->tl, dev->sharpness, dev->default_sm_mhz / sm_mhz,
                                                   dev->default_mem_mhz / mem_mhz);
        *energy += a->streams * t * (k->alpha * core_w + k->beta * memory_w);
    }
    return FL_MODEL_OK;
}

/* Loss at 5001 MHz: none, or more than any gear could make up for (text to Fig. 4). Where the best memory clock is
 * published, it says which of the two. */
#define SMALL_LOSS 0.01
#define LARGE_LOSS 0.12
#define MIDDLE_MHZ 5001.0

static double loss_miss(const fl_app *a, const fl_device *dev, const law *l) {
    const double loss = time_of(a, dev, l, dev->default_sm_mhz, MIDDLE_MHZ) - 1;
    return a->target.mem_mhz > MIDDLE_MHZ ? fmax(0, LARGE_LOSS - loss) : fmax(0, loss - SMALL_LOSS);
}

/* 9251 and 9501 MHz count as one: on kernels measured on such a board they differ by 1 %. */
static bool is_other_memory(double a, double b) { return fabs(a - b) > 250.5; }

/* How far the best static clocks lie from the target: gears, 100 for another memory clock, up to 20 where that wins by
 * a hair, a gear for each percent by which the loss at 5001 MHz is missed, and what the published loss at a low memory
 * clock is missed by. *score has the least so far, and what cannot be less is not looked at to the end. */
static fl_model_status miss(const fl_app *a, const fl_device *dev, double base_mhz, double *score) {
    const law l = law_of(a, dev);
    const double off = 100 * loss_miss(a, dev, &l);
    if (off >= *score) { /* no better, whatever the clocks are */
        *score = off;
        return FL_MODEL_OK;
    }
    const double limit = (1 + BOUND) * time_of(a, dev, &l, base_mhz, dev->default_mem_mhz);
    double least = DBL_MAX, next = DBL_MAX, sm = 0, mem = 0;
    for (uint32_t m = 0; m < dev->mem_count; m++) {
        double here = DBL_MAX;
        for (uint32_t f = dev->sm_count; f-- > 0;) {
            double energy;
            if (time_of(a, dev, &l, dev->sm_mhz[f], dev->mem_mhz[m]) > limit)
                break; /* slower still below */
            const fl_model_status s = energy_of(a, dev, &l, dev->sm_mhz[f], dev->mem_mhz[m], &energy);
            if (s)
                return s;
            here = fmin(here, energy);
            if (energy < least) {
                next = is_other_memory(mem, dev->mem_mhz[m]) ? least : next;
                least = energy;
                sm = dev->sm_mhz[f];
                mem = dev->mem_mhz[m];
            }
        }
        if (is_other_memory(mem, dev->mem_mhz[m]))
            next = fmin(next, here);
    }
    *score = fabs(sm - FL_APP_GEAR_MHZ(a->target.gear)) / 15 + (is_other_memory(mem, a->target.mem_mhz) ? 100 : 0) +
             20 * fmax(0, 1 - (next / least - 1) / CLEAR);
    *score += off;
    if (a->target.loss > 0) {
        const double loss = time_of(a, dev, &l, dev->default_sm_mhz, a->target.loss_mhz) - 1;
        *score += 2 * fmin(10, fabs(log((loss + 0.01) / (a->target.loss + 0.01))));
    }
    return FL_MODEL_OK;
}

static fl_model_status apply(fl_app *a, const fl_device *dev, const trial *t, double base_mhz) {
    set_shares(a, t);
    solve_core(a, dev, t, base_mhz);
    return solve_power(a, dev, base_mhz);
}

fl_model_status fl_app_solve(fl_app *a, const fl_device *dev, fl_random *r) {
    const double base_mhz =
        a->hot ? dev->default_sm_mhz - 15.0 * (4 + (double)fl_random_below(r, 5)) : dev->default_sm_mhz;
    trial best = {0};
    double least = DBL_MAX;
    for (int i = 0; i < TRIES && least > 0.25; i++) {
        const trial t = draw(a, r);
        double score = least;
        fl_model_status s = apply(a, dev, &t, base_mhz);
        if (!s)
            s = miss(a, dev, base_mhz, &score);
        if (s)
            return s;
        if (score < least) {
            least = score;
            best = t;
        }
    }
    return apply(a, dev, &best, base_mhz);
}
