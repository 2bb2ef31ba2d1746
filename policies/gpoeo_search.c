#include "policies/gpoeo_search.h"

#include <math.h>

enum { RADIUS = 12, WIDE_RADIUS = 18, NARROW = 7, TRIES = 6, TERMS = 4 };
static const double golden = 0.61803398874989485, only_down = 0.8, only_up = 1.2, beyond = 1e12;

double fl_gpoeo_cost(double energy, double time, double bound) {
    return time - 1 <= bound ? energy * time * time : beyond * time;
}

/* ---- points ---- */

static const fl_gpoeo_point *look(const fl_gpoeo_search *s, int32_t sm, int32_t mem) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->point[i].sm == sm && s->point[i].mem == mem)
            return &s->point[i];
    return NULL;
}

static double cost_of(const fl_gpoeo_search *s, const fl_gpoeo_point *p) {
    return fl_gpoeo_cost(p->energy, p->time, s->bound);
}

static fl_gpoeo_next ask(int32_t sm, int32_t mem) { return (fl_gpoeo_next){.sm = sm, .mem = mem}; }

/* ---- memory: the predicted one, one up, one down; too slow: two up ---- */

static int memory_of(const fl_gpoeo_search *s, int32_t *mem, fl_gpoeo_next *next) {
    const fl_gpoeo_point *p = look(s, s->sm, s->mem);
    *next = ask(s->sm, s->mem);
    if (!p)
        return 0;
    double least = cost_of(s, p);
    *mem = s->mem;
    const int32_t other = p->time - 1 > s->bound ? s->mem + 2 : s->mem - 1, tried[] = {s->mem + 1, other};
    for (int i = 0; i < 2; i++) {
        if (tried[i] < 0 || tried[i] >= s->mem_count)
            continue;
        p = look(s, s->sm, tried[i]);
        *next = ask(s->sm, tried[i]);
        if (!p)
            return 0;
        if (cost_of(s, p) < least) {
            least = cost_of(s, p);
            *mem = tried[i];
        }
    }
    return 1;
}

/* ---- SM ---- */

/* Goes outwards from the start until worse: *best moves along, *end is the gear behind it, or the limit. */
static int outwards(const fl_gpoeo_search *s, int32_t mem, int32_t radius, int32_t *best, int32_t *end,
                    fl_gpoeo_next *next) {
    for (;;) {
        const int32_t gear = *best + radius < s->low ? s->low : *best + radius > s->high ? s->high : *best + radius;
        *end = gear;
        if (gear == *best)
            return 1;
        const fl_gpoeo_point *p = look(s, gear, mem);
        *next = ask(gear, mem);
        if (!p)
            return 0;
        if (!(cost_of(s, p) < cost_of(s, look(s, *best, mem))))
            return 1;
        *best = gear;
    }
}

/* Golden section of [low, high], until it is narrow or TRIES gears were measured within it; `best` was before. */
static int section(const fl_gpoeo_search *s, int32_t mem, int32_t low, int32_t high, int32_t best,
                   fl_gpoeo_next *next) {
    uint32_t tries = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const fl_gpoeo_point *p = &s->point[i];
        tries += p->mem == mem && p->sm > low && p->sm < high && p->sm != best;
    }
    while (high - low >= NARROW) {
        const int32_t inner[] = {(int32_t)rint(high - golden * (high - low)),
                                 (int32_t)rint(low + golden * (high - low))};
        const fl_gpoeo_point *p[2];
        for (int i = 0; i < 2; i++) {
            p[i] = look(s, inner[i], mem);
            *next = ask(inner[i], mem);
            if (!p[i])
                return tries >= TRIES;
        }
        if (cost_of(s, p[0]) < cost_of(s, p[1]))
            high = inner[1];
        else
            low = inner[0];
    }
    return 1;
}

/* ---- the fits ---- */

double fl_gpoeo_fitted(const double *x, const double *y, uint32_t count, double at) {
    double a[TERMS][TERMS + 1] = {{0}}, low = x[0], high = x[0], value = 0;
    const uint32_t terms = count < TERMS ? count : TERMS;
    for (uint32_t i = 0; i < count; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    const double middle = (low + high) / 2, half = high > low ? (high - low) / 2 : 1;
    for (uint32_t i = 0; i < count; i++) { /* normal equations, over [-1, 1] */
        const double z = (x[i] - middle) / half;
        for (uint32_t r = 0; r < terms; r++) {
            for (uint32_t c = 0; c < terms; c++)
                a[r][c] += pow(z, r + c);
            a[r][terms] += y[i] * pow(z, r);
        }
    }
    for (uint32_t k = 0; k < terms; k++) { /* Gauss and Jordan, the largest pivot first */
        uint32_t pivot = k;
        for (uint32_t r = k + 1; r < terms; r++)
            pivot = fabs(a[r][k]) > fabs(a[pivot][k]) ? r : pivot;
        for (uint32_t c = 0; c <= terms; c++) {
            const double kept = a[k][c];
            a[k][c] = a[pivot][c];
            a[pivot][c] = kept;
        }
        for (uint32_t r = 0; r < terms; r++) {
            const double factor = r == k || a[k][k] == 0 ? 0 : a[r][k] / a[k][k];
            for (uint32_t c = k; c <= terms && factor != 0; c++)
                a[r][c] -= factor * a[k][c];
        }
    }
    const double z = (at - middle) / half;
    for (uint32_t k = 0; k < terms; k++)
        value += a[k][k] == 0 ? 0 : a[k][terms] / a[k][k] * pow(z, k);
    return value;
}

static int32_t best_fitted(const fl_gpoeo_search *s, int32_t mem) {
    double gear[FL_GPOEO_POINTS], energy[FL_GPOEO_POINTS], time[FL_GPOEO_POINTS], least = INFINITY;
    uint32_t count = 0;
    int32_t low = INT32_MAX, high = INT32_MIN, best = s->sm;
    for (uint32_t i = 0; i < s->count; i++) {
        const fl_gpoeo_point *p = &s->point[i];
        if (p->mem != mem)
            continue;
        gear[count] = p->sm;
        energy[count] = p->energy;
        time[count++] = p->time;
        low = p->sm < low ? p->sm : low;
        high = p->sm > high ? p->sm : high;
        if (cost_of(s, p) < least) {
            least = cost_of(s, p);
            best = p->sm;
        }
    }
    least = INFINITY;
    for (int32_t g = low; g <= high; g++) {
        const double t = fl_gpoeo_fitted(gear, time, count, g), e = fl_gpoeo_fitted(gear, energy, count, g),
                     cost = fl_gpoeo_cost(e, t, s->bound);
        if (t - 1 <= s->bound && cost < least) {
            least = cost;
            best = g;
        }
    }
    return best;
}

fl_gpoeo_next fl_gpoeo_search_next(const fl_gpoeo_search *s) {
    fl_gpoeo_next next = {.done = 1, .sm = s->sm, .mem = s->mem};
    int32_t mem = s->mem, best = s->sm, low = s->sm, high = s->sm;
    if (s->count == FL_GPOEO_POINTS) /* more than the search ever takes */
        return (fl_gpoeo_next){.done = 1, .sm = best_fitted(s, s->mem), .mem = s->mem};
    if (!memory_of(s, &mem, &next))
        return next;
    const double loss = look(s, s->sm, mem)->time - 1;
    const int32_t radius = mem < s->wide_below ? WIDE_RADIUS : RADIUS;
    if (!(loss > only_up * s->bound) && !outwards(s, mem, -radius, &best, &low, &next))
        return next;
    if (best < s->sm) /* it went down: what is above the best is known */
        high = best + radius < s->sm ? best + radius : s->sm;
    else if (!(loss < only_down * s->bound)) {
        if (!outwards(s, mem, radius, &best, &high, &next))
            return next;
        if (best > s->sm)
            low = best - radius > s->sm ? best - radius : s->sm;
    }
    if (!section(s, mem, low, high, best, &next))
        return next;
    return (fl_gpoeo_next){.done = 1, .sm = best_fitted(s, mem), .mem = mem};
}
