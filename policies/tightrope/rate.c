/* tightrope: how fast a counter runs and how much its units differ. */
#include "policies/tightrope/inside.h"

#include <math.h>
#include <stdint.h>

/* ---- the filters of a line ----
 * Line 0 has every end, the last one every block. Relative variance of a unit: from 1e-7, which nobody needs to know
 * better, by doubling to 13. The others have fewer spreads, by four, each with eight cycles: none, and standard
 * deviations from 0.0055 of the time between ends by doubling to 0.35 (a sawtooth as long as that time has 0.29). */
enum { SPREADS = 28, CYCLES = 8, BLOCKS = FL_TIGHTROPE_LINES - 1 };

static int is_timed(int line) { return line > 0 && line < BLOCKS; }
static int filters(int line) { return is_timed(line) ? FL_TIGHTROPE_FILTERS : SPREADS; }
static double every_s(int line) { return is_timed(line) ? ldexp(0.004, 2 * line) : 0; }
static double spread_of(int line, int i) { return is_timed(line) ? ldexp(1e-7, 2 * (i / CYCLES)) : ldexp(1e-7, i); }

static double cycle_of(int line, int i) {
    const double deviation = is_timed(line) && i % CYCLES ? ldexp(0.0055, i % CYCLES - 1) * every_s(line) : 0;
    return deviation * deviation;
}

/* The second end of a stretch is the first that tells a duration. */
static void begin(fl_tightrope_filter *f, double spread, double time_s, double before, double after, double units) {
    f->time_s = time_s;
    f->unit_s = time_s / units;
    f->vtt = after;
    f->vtu = after / units;
    f->vuu = (before + after) / (units * units) + spread * f->unit_s * f->unit_s / units;
}

/* unit_s: mean duration over the stretch, for the scale of the spread. */
static void follow(fl_tightrope_filter *f, double spread, double unit_s, double time_s, double variance, double units) {
    const double vtu = f->vtu + units * f->vuu,
                 vtt = f->vtt + units * (f->vtu + vtu) + spread * unit_s * unit_s * units;
    const double off = time_s - (f->time_s + units * f->unit_s), all = vtt + variance;
    f->likely -= 0.5 * (log(all) + off * off / all);
    f->time_s = time_s - off * variance / all;
    f->unit_s += off * vtu / all;
    f->vtt = vtt * variance / all;
    f->vtu = vtu * variance / all;
    f->vuu -= vtu * vtu / all;
}

/* ---- the length of a cycle, in units ---- */

/* Variance of the time of so many units, for each second of it. */
static double unevenness(const fl_tightrope_rate *r, uint32_t units) {
    const uint32_t n = r->ends - units;
    double sum = 0, square = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double d = (double)r->end_s[i + units] - r->end_s[i];
        sum += d, square += d * d;
    }
    return sum > 0 ? fmax(0, square - sum * sum / n) / sum : INFINITY;
}

/* A block is found where three of it were seen, and a tenth as uneven as units are. */
static void find_block(fl_tightrope_rate *r) {
    uint32_t best = 1;
    double least = unevenness(r, 1) / 10;
    for (uint32_t units = 2; units <= r->ends / 3; units++) {
        const double u = unevenness(r, units);
        /* Late readings alone make a multiple of a cycle look better by that factor. */
        if (u < (best == 1 ? least : units % best ? least / 2 : least / 8))
            least = u, best = units;
    }
    if (best > 1 || r->ends == FL_TIGHTROPE_ENDS_KEPT)
        r->ends = 0;
    if (best < 2 || fmod(best, r->block) == 0)
        return;
    r->block = best;
    r->line[BLOCKS] = (fl_tightrope_line){0};
}

/* Ends of single units are kept until there are 64 or 256; a gap in them begins anew. */
static void keep_end(fl_tightrope_rate *r, double units) {
    const int counted = units <= 4 && units == floor(units); /* bytes are none */
    if (!counted)
        r->ends = 0;
    for (double k = counted ? units : 1; k >= 1 && r->ends < FL_TIGHTROPE_ENDS_KEPT; k--) {
        const double before = r->ends ? (double)r->end_s[r->ends - 1] : r->last_s;
        r->end_s[r->ends++] = (float)(before + (r->last_s - before) / k);
    }
    if (r->ends == FL_TIGHTROPE_ENDS_KEPT || (r->ends == FL_TIGHTROPE_ENDS_KEPT / 4 && !(r->block > 0)))
        find_block(r);
}

/* An end at time_s from the stretch's first; units ended since the end before, taken or not. */
static void take(fl_tightrope_line *l, int line, double block, double end_s, double variance, double units) {
    l->open_units += units;
    if (!(l->edges > 0))
        l->first_s = end_s, l->open_units = 0;
    const double time_s = end_s - l->first_s;
    if (l->edges > 0 && (time_s - l->last_s < every_s(line) || (block > 0 && fmod(l->open_units, block) > 0.5)))
        return;
    l->edges++;
    l->units += l->open_units;
    for (int i = 0; i < filters(line) && l->edges > 1; i++) {
        const double cycle = cycle_of(line, i);
        if (l->edges == 2)
            begin(&l->filter[i], spread_of(line, i), time_s, l->last_variance_s + cycle, variance + cycle,
                  l->open_units);
        else
            follow(&l->filter[i], spread_of(line, i), time_s / l->units, time_s, variance + cycle, l->open_units);
    }
    l->samples += l->edges > 2;
    l->open_units = 0;
    l->last_s = time_s;
    l->last_variance_s = variance;
}

void fl_tightrope_rate_stretch(fl_tightrope_rate *r) {
    r->edges = r->last_s = 0;
    r->ends = 0;
    for (int i = 0; i < FL_TIGHTROPE_LINES; i++) {
        fl_tightrope_line *l = &r->line[i];
        l->edges = l->units = l->open_units = l->first_s = l->last_s = l->last_variance_s = 0;
    }
}

void fl_tightrope_rate_edge(fl_tightrope_rate *r, int64_t now_ns, double late_s, double units) {
    const double variance = late_s * late_s / 12; /* anywhere within it */
    if (++r->edges == 1)
        r->first_ns = now_ns - (int64_t)(late_s / 2 * 1e9);
    r->last_s = (double)(now_ns - r->first_ns) * 1e-9 - late_s / 2;
    keep_end(r, units);
    for (int i = 0; i < FL_TIGHTROPE_LINES; i++)
        if (i != BLOCKS || r->block > 0)
            take(&r->line[i], i, i == BLOCKS ? r->block : 0, r->last_s, variance, units);
}

void fl_tightrope_rate_keep(fl_tightrope_rate *r) {
    if (r->edges > 2)
        r->kept_s += r->last_s;
    for (int k = 0; k < FL_TIGHTROPE_LINES; k++) {
        fl_tightrope_line *l = &r->line[k];
        for (int i = 0; i < filters(k) && l->edges > 2; i++) {
            l->filter[i].weight += 1 / l->filter[i].vuu;
            l->filter[i].weighed += l->filter[i].unit_s / l->filter[i].vuu;
            l->filter[i].weight_square += 1 / (l->filter[i].vuu * l->filter[i].vuu);
            l->filter[i].square += l->filter[i].unit_s * l->filter[i].unit_s / l->filter[i].vuu;
        }
        l->kept += l->edges > 2;
    }
    fl_tightrope_rate_stretch(r);
}

/* ---- results ---- */

static double likeliest(const fl_tightrope_rate *r, int line, int *at) {
    const fl_tightrope_filter *f = r->line[line].filter;
    *at = 0;
    for (int i = 1; i < filters(line); i++)
        if (f[i].likely > f[*at].likely)
            *at = i;
    return f[*at].likely;
}

static fl_tightrope_pace pace(const fl_tightrope_rate *r, int line, int i, double unit_s, double variance) {
    return (fl_tightrope_pace){unit_s,
                               sqrt(variance) / unit_s,
                               spread_of(line, i) * unit_s,
                               cycle_of(line, i),
                               every_s(line),
                               line == BLOCKS ? r->block * unit_s : 0,
                               0};
}

double fl_tightrope_by_chance(double count) {
    const double part = 2 / (9 * (count - 1));
    return pow(1 - part + 2 * sqrt(part), 3);
}

/* Stretches of the reference whose paces differ by more than their errors: units are worth something else in other
 * parts of the program (DerSimonian and Laird, "Meta-analysis in clinical trials", 1986). */
static double wander(const fl_tightrope_rate *r, int line, const fl_tightrope_filter *f) {
    const double count = r->line[line].kept, mean = f->weight > 0 ? f->weighed / f->weight : 0;
    const double differ = f->square - f->weighed * mean, free = f->weight - f->weight_square / f->weight;
    if (count < 3 || !(mean > 0) || !(free > 0) || differ <= fl_tightrope_by_chance(count) * (count - 1))
        return 0;
    return sqrt((differ - (count - 1)) / free) / mean;
}

static fl_tightrope_pace reference(const fl_tightrope_rate *r, int line, int i, int now) {
    const fl_tightrope_filter *f = &r->line[line].filter[i];
    const int with = now && r->line[line].edges > 2;
    const double weight = f->weight + (with ? 1 / f->vuu : 0), sum = f->weighed + (with ? f->unit_s / f->vuu : 0);
    if (!(weight > 0) || !(sum > 0))
        return (fl_tightrope_pace){.error = 1};
    fl_tightrope_pace p = pace(r, line, i, sum / weight, 1 / weight);
    p.wander = wander(r, line, f);
    return p;
}

/* Standard errors that are left for the pace where the spread is that unlikely itself: both together are as unlikely as
 * sigmas standard errors of one (twice the logarithm of a ratio of likelihoods is a sum of squares of standard errors:
 * Wilks, "The large-sample distribution of the likelihood ratio", 1938). */
static double left_sigmas(const fl_tightrope_rate *r, double sigmas, double best, int line, int i) {
    return sqrt(fmax(0, sigmas * sigmas - 2 * (best - r->line[line].filter[i].likely)));
}

/* The error of the best of several lines passes its limit where one line does. So each line has its part of the
 * chances, nine tenths of them the first, which is best where units are alike: the tail of the normal law falls by as
 * much as exp(-z^2 / 2) does (Bonferroni). */
static double of_lines(double sigmas, int line) {
    return sigmas > 0 ? sqrt(sigmas * sigmas + 2 * log(line ? 10 * (FL_TIGHTROPE_LINES - 1) : 10.0 / 9)) : 0;
}

static double line_error(const fl_tightrope_rate *r, double sigmas, int line, int now) {
    int at;
    const double best = likeliest(r, line, &at);
    double error = 0;
    for (int i = 0; i < filters(line); i++) {
        const double left = left_sigmas(r, sigmas, best, line, i);
        error = fmax(error, left > 0 ? left * reference(r, line, i, now).error : 0);
    }
    return error;
}

#define SAMPLES 12 /* of a line: with fewer it contradicts none */

/* The least spread that a line leaves possible; 0: any. */
static double least_spread(const fl_tightrope_rate *r, double sigmas, int line) {
    int at;
    if (r->line[line].samples < SAMPLES)
        return 0;
    const double best = likeliest(r, line, &at);
    for (int i = 0; i < filters(line); i++)
        if (left_sigmas(r, sigmas, best, line, i) > 0)
            return spread_of(line, i);
    return 0;
}

/* A line of longer times leaves only spreads possible that make the reference worse than this line's likeliest filter
 * has it: units come in bursts, and what adds up over them is more than this line can see. Within a cycle, though, all
 * seems to add up. */
static int contradicted(const fl_tightrope_rate *r, double sigmas, int line, int now) {
    int at;
    likeliest(r, line, &at);
    const fl_tightrope_pace p = reference(r, line, at, now);
    const double seconds = fmax(1e-3, r->kept_s + (now ? r->last_s : 0)), wide = 4 * p.error * p.error * seconds;
    for (int k = line == BLOCKS ? 1 : line + 1; k < BLOCKS; k++)
        if (every_s(k) >= r->block * p.unit_s && least_spread(r, sigmas, k) * p.unit_s > wide)
            return 1;
    return 0;
}

/* The line that leaves the least error. */
static int best_line(const fl_tightrope_rate *r, double sigmas, int now, double *error) {
    int best = 0;
    *error = INFINITY;
    for (int k = 0; k < FL_TIGHTROPE_LINES; k++) {
        const double e = contradicted(r, sigmas, k, now) ? INFINITY : line_error(r, of_lines(sigmas, k), k, now);
        if (e < *error)
            *error = e, best = k;
    }
    return best;
}

fl_tightrope_pace fl_tightrope_rate_now(const fl_tightrope_rate *r) {
    fl_tightrope_pace best = {.error = 1};
    for (int k = 0; k < FL_TIGHTROPE_LINES; k++) {
        int i;
        likeliest(r, k, &i);
        const fl_tightrope_filter *f = &r->line[k].filter[i];
        const fl_tightrope_pace p = pace(r, k, i, f->unit_s, f->vuu);
        if (r->line[k].edges > 2 && f->unit_s > 0 && p.error < best.error)
            best = p;
    }
    return best;
}

fl_tightrope_pace fl_tightrope_rate_reference(const fl_tightrope_rate *r, int now) {
    int i;
    double error;
    const int line = best_line(r, 3, now, &error);
    likeliest(r, line, &i);
    return reference(r, line, i, now);
}

double fl_tightrope_rate_error(const fl_tightrope_rate *r, double sigmas, int now) {
    double error;
    best_line(r, sigmas, now, &error);
    return error;
}

double fl_tightrope_rate_least(const fl_tightrope_rate *r, double sigmas, int now, double units, double sure_s) {
    int at;
    double error, least = INFINITY;
    const int line = best_line(r, sigmas, now, &error);
    const double best = likeliest(r, line, &at);
    for (int i = 0; i < filters(line); i++) {
        const double k = left_sigmas(r, of_lines(sigmas, line), best, line, i);
        const fl_tightrope_pace p = reference(r, line, i, now);
        const double work = units * p.unit_s, open = fmax(0, work - sure_s);
        if (k > 0)
            least = fmin(least, work - k * sqrt(open * open * p.error * p.error + open * p.spread + 2 * p.cycle) -
                                    FL_TIGHTROPE_WANDERS * open * p.wander);
    }
    return least;
}
