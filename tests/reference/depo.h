/* The authors' DEPO a second time: what it tries and what it keeps, written from the rules of the released program and
 * without a look at policies/compared/depo.c. It asks for a window and waits for it, as their program does; a policy
 * cannot. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { RD_GEARS = 51, RD_TOP = RD_GEARS - 1, RD_UNKNOWN = -1, RD_TRIALS = 64 };

typedef struct rd_window {
    double seconds, joules, launches;
} rd_window;

/* One window of 4 s: at the default limit (gear RD_UNKNOWN) or at a gear. */
typedef rd_window rd_measure(void *world, int gear);

typedef struct rd_run {
    /* given */
    rd_measure *measure;
    void *world;
    double bound;   /* C */
    int power_of_s; /* 1 energy, 2 EDP, 3 ED2P */
    /* found */
    int tried[RD_TRIALS], trials, kept; /* kept: RD_UNKNOWN where RD_TRIALS did not suffice */
    /* inside */
    rd_window base, of[RD_GEARS];
    bool measured[RD_GEARS];
    int low, golden, high, last_good;
} rd_run;

static inline double rd_watts(int gear) { return 100 + 5.0 * gear; }

static inline double rd_slowdown(const rd_run *r, int gear) {
    if (gear == RD_TOP && !r->measured[gear])
        return 1;
    return (r->base.launches / r->base.seconds) / (r->of[gear].launches / r->of[gear].seconds);
}

static inline double rd_loss(const rd_run *r, int gear) { return rd_slowdown(r, gear) - 1; }

static inline double rd_objective(const rd_run *r, int gear) {
    if (gear == RD_TOP && !r->measured[gear])
        return 1;
    double f = (r->of[gear].joules / r->of[gear].seconds) / (r->base.joules / r->base.seconds);
    for (int i = 0; i < r->power_of_s; i++)
        f *= rd_slowdown(r, gear);
    return rd_loss(r, gear) > r->bound ? f + 1 : f;
}

/* Is the search over? Asked before each trial. */
static inline bool rd_over(rd_run *r) {
    if (rd_loss(r, r->high) >= r->bound) {
        r->kept = r->last_good;
        return true;
    }
    r->last_good = r->high;
    if (r->high - r->low > 5)
        return false;
    const int candidate[] = {r->low, r->golden, r->high};
    r->kept = RD_UNKNOWN;
    for (int i = 0; i < 3; i++) {
        const int c = candidate[i];
        if (c == RD_UNKNOWN || rd_loss(r, c) >= r->bound)
            continue;
        if (r->kept == RD_UNKNOWN || rd_objective(r, c) < rd_objective(r, r->kept))
            r->kept = c;
    }
    return true;
}

/* False where there is no trial any more. */
static inline bool rd_try(rd_run *r, int gear) {
    if (rd_over(r) || r->trials == RD_TRIALS)
        return false;
    r->tried[r->trials++] = gear;
    rd_window w = r->measure(r->world, gear);
    if (r->measured[gear]) {
        const rd_window old = r->of[gear];
        w.seconds = (0.3 * old.seconds + w.seconds) / 1.3;
        w.joules = (0.3 * old.joules + w.joules) / 1.3;
        w.launches = (double)(long long)((0.3 * old.launches + w.launches) / 1.3);
    }
    r->measured[gear] = true;
    r->of[gear] = w;
    return true;
}

static inline int rd_start(const rd_run *r) {
    const double watts = r->base.joules / r->base.seconds;
    int d = 0;
    for (int gear = 1; gear < RD_GEARS; gear++)
        if (fabs(rd_watts(gear) - watts) < fabs(rd_watts(d) - watts))
            d = gear;
    return (int)floor(50 - 51 * fmax(0.1, 0.85 * (51 - d) / 51));
}

static inline bool rd_bracket(rd_run *r) {
    static const double phi = 0.61803398874989485;
    for (;;) { /* up, until the bound holds */
        if (!rd_try(r, r->golden))
            return false;
        if (!(rd_loss(r, r->golden) > r->bound))
            break;
        r->golden = (int)floor(r->golden + phi * (r->high - r->golden));
    }
    for (;;) { /* down, until the bound breaks or it is worse */
        int x = (int)floor(r->golden - 0.15 * (r->high - r->golden));
        if (x > r->golden - 1)
            x = r->golden - 1;
        if (x < 0)
            x = 0; /* there is no gear below */
        if (!rd_try(r, x))
            return false;
        if (rd_loss(r, x) > r->bound || rd_objective(r, x) >= rd_objective(r, r->golden)) {
            r->low = x;
            return true;
        }
        r->high = r->golden;
        r->golden = x;
    }
}

static inline void rd_section(rd_run *r) {
    static const double phi = 0.61803398874989485;
    const bool near_the_top = r->golden >= (int)floor((r->low + r->high) / 2.0);
    int x = near_the_top ? (int)round(r->golden - (1 - phi) * (r->golden - r->low))
                         : (int)round(r->golden + (1 - phi) * (r->high - r->golden));
    while (rd_try(r, x)) {
        bool below; /* the next trial lies below the golden gear */
        if (x > r->golden) {
            below = rd_objective(r, r->golden) <= rd_objective(r, x);
            if (below) {
                r->high = x;
            } else {
                r->low = r->golden;
                r->golden = x;
            }
        } else {
            below = rd_objective(r, x) <= rd_objective(r, r->golden);
            if (below) {
                r->high = r->golden;
                r->golden = x;
            } else {
                r->low = x;
            }
        }
        x = below ? (int)round(r->low + phi * (r->golden - r->low))
                  : (int)round(r->golden + (1 - phi) * (r->high - r->golden));
    }
}

static inline void rd_search(rd_run *r) {
    r->trials = 0;
    r->kept = RD_UNKNOWN;
    r->base = (rd_window){0};
    for (int gear = 0; gear < RD_GEARS; gear++)
        r->measured[gear] = false;
    for (int i = 0; i < 4; i++) {
        const rd_window w = r->measure(r->world, RD_UNKNOWN);
        r->base.seconds += w.seconds;
        r->base.joules += w.joules;
        r->base.launches += w.launches;
    }
    r->low = RD_UNKNOWN;
    r->high = r->last_good = RD_TOP;
    r->golden = rd_start(r);
    if (rd_bracket(r))
        rd_section(r);
}
