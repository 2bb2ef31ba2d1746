#include "policies/tightrope_rate.h"

#include <math.h>

/* Relative variance of a unit: from 1e-7, which nobody needs to know better, by doubling to 13. */
static double spread_of(int i) { return ldexp(1e-7, i); }

void fl_tightrope_rate_stretch(fl_tightrope_rate *r) {
    r->edges = r->units = 0;
    r->last_s = r->last_variance_s = 0;
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

void fl_tightrope_rate_edge(fl_tightrope_rate *r, int64_t now_ns, double late_s, double units) {
    const double variance = late_s * late_s / 12; /* anywhere within it */
    if (++r->edges == 1)
        r->first_ns = now_ns - (int64_t)(late_s / 2 * 1e9);
    const double time_s = (double)(now_ns - r->first_ns) * 1e-9 - late_s / 2;
    if (r->edges > 1) {
        r->units += units;
        for (int i = 0; i < FL_TIGHTROPE_SPREADS; i++)
            if (r->edges == 2)
                begin(&r->filter[i], spread_of(i), time_s, r->last_variance_s, variance, units);
            else
                follow(&r->filter[i], spread_of(i), time_s / r->units, time_s, variance, units);
    }
    r->last_s = time_s;
    r->last_variance_s = variance;
}

void fl_tightrope_rate_keep(fl_tightrope_rate *r) {
    if (r->edges > 2) {
        r->kept_s += r->last_s;
        for (int i = 0; i < FL_TIGHTROPE_SPREADS; i++) {
            r->filter[i].weight += 1 / r->filter[i].vuu;
            r->filter[i].weighed += r->filter[i].unit_s / r->filter[i].vuu;
        }
    }
    fl_tightrope_rate_stretch(r);
}

static double likeliest(const fl_tightrope_rate *r, int *at) {
    *at = 0;
    for (int i = 1; i < FL_TIGHTROPE_SPREADS; i++)
        if (r->filter[i].likely > r->filter[*at].likely)
            *at = i;
    return r->filter[*at].likely;
}

static fl_tightrope_pace pace(int i, double unit_s, double variance) {
    return (fl_tightrope_pace){unit_s, sqrt(variance) / unit_s, spread_of(i) * unit_s};
}

fl_tightrope_pace fl_tightrope_rate_now(const fl_tightrope_rate *r) {
    int i;
    likeliest(r, &i);
    const fl_tightrope_filter *f = &r->filter[i];
    return r->edges > 2 && f->unit_s > 0 ? pace(i, f->unit_s, f->vuu) : (fl_tightrope_pace){0, 1, 0};
}

static fl_tightrope_pace reference(const fl_tightrope_rate *r, int i, int now) {
    const fl_tightrope_filter *f = &r->filter[i];
    const int with = now && r->edges > 2;
    const double weight = f->weight + (with ? 1 / f->vuu : 0), sum = f->weighed + (with ? f->unit_s / f->vuu : 0);
    return weight > 0 && sum > 0 ? pace(i, sum / weight, 1 / weight) : (fl_tightrope_pace){0, 1, 0};
}

fl_tightrope_pace fl_tightrope_rate_reference(const fl_tightrope_rate *r, int now) {
    int i;
    likeliest(r, &i);
    return reference(r, i, now);
}

/* Standard errors that are left for the pace where the spread is that unlikely itself: both together are as unlikely as
 * sigmas standard errors of one (twice the logarithm of a ratio of likelihoods is a sum of squares of standard errors:
 * Wilks, "The large-sample distribution of the likelihood ratio", 1938). */
static double left_sigmas(const fl_tightrope_rate *r, double sigmas, double best, int i) {
    return sqrt(fmax(0, sigmas * sigmas - 2 * (best - r->filter[i].likely)));
}

double fl_tightrope_rate_error(const fl_tightrope_rate *r, double sigmas, int now) {
    int at;
    const double best = likeliest(r, &at);
    double error = 0;
    for (int i = 0; i < FL_TIGHTROPE_SPREADS; i++)
        error = fmax(error, left_sigmas(r, sigmas, best, i) * reference(r, i, now).error);
    return error;
}

double fl_tightrope_rate_least(const fl_tightrope_rate *r, double sigmas, int now, double units, double sure_s) {
    int at;
    const double best = likeliest(r, &at);
    double least = INFINITY;
    for (int i = 0; i < FL_TIGHTROPE_SPREADS; i++) {
        const double k = left_sigmas(r, sigmas, best, i);
        const fl_tightrope_pace p = reference(r, i, now);
        const double work = units * p.unit_s, open = fmax(0, work - sure_s);
        if (k > 0)
            least = fmin(least, work - k * sqrt(open * open * p.error * p.error + open * p.spread));
    }
    return least;
}
