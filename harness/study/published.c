#include "harness/study/published.h"
#include "harness/study/published_inside.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool same_variant(const fl_row_result *row, const char *variant) {
    return row->variant && variant ? !strcmp(row->variant, variant) : row->variant == variant;
}

static const fl_row_result *counterpart(const fl_comparison *c, const fl_row_result *row, const char *against) {
    const fl_row_result *any = NULL;
    for (size_t i = 0; i < c->mean_first; i++) {
        const fl_row_result *r = &c->row[i];
        const bool here = !r->platform || !row->platform || !strcmp(r->platform, row->platform);
        if (!here || strcmp(r->workload, row->workload) != 0 || !same_variant(r, row->variant) ||
            fnmatch(against, r->policy, 0))
            continue;
        if (r->seed == row->seed)
            return r;
        any = any ? any : r;
    }
    return any;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One number of many; savings and changes come as ratios and are turned here, so that a geometric mean is one. */
static double combine(const selection *s, double *v, size_t n) {
    double sum = 0, product = 0;
    size_t below = 0, above = 0;
    const bool late = s->over == GEOMEAN; /* the form is applied to the mean */
    for (size_t i = 0; i < n; i++) {
        if (!late && s->form == SAVING_PCT)
            v[i] = 100 * (1 - v[i]);
        else if (!late && s->form == CHANGE_PCT)
            v[i] = 100 * (v[i] - 1);
        sum += v[i];
        product += log(v[i]);
        below += v[i] < s->limit;
        above += v[i] > s->limit;
    }
    qsort(v, n, sizeof *v, by_value);
    switch (s->over) {
    case MEAN:
        return sum / (double)n;
    case GEOMEAN: {
        const double mean = exp(product / (double)n);
        return s->form == SAVING_PCT ? 100 * (1 - mean) : s->form == CHANGE_PCT ? 100 * (mean - 1) : mean;
    }
    case MEDIAN:
        return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    case MIN:
        return v[0];
    case MAX:
        return v[n - 1];
    case SUM:
        return sum;
    case COUNT_BELOW:
        return (double)below;
    case COUNT_ABOVE:
        return (double)above;
    }
    return NAN;
}

static fl_status one_value(const selection *s, const fl_comparison *c, const fl_row_result *row, double *value,
                           fl_diag *d) {
    double other;
    fl_status status = fl_row_value(row, s->column, value, d);
    if (status || !s->against)
        return status;
    const fl_row_result *against = counterpart(c, row, s->against);
    if (!against)
        return fl_json_fail(&s->at, d, "no row of %s under '%s' to hold it against", row->workload, s->against);
    status = fl_row_value(against, s->against_column, &other, d);
    if (s->form == DIFFERENCE || s->form == ABS_DIFFERENCE)
        *value -= other;
    else
        *value /= other;
    if (s->form == ABS_DIFFERENCE)
        *value = fabs(*value);
    return status;
}

fl_status fl_published_value(const selection *s, const fl_comparison *c, double *value, fl_diag *d) {
    double *v = malloc((c->mean_first + 1) * sizeof *v);
    size_t n = 0, rows = 0;
    fl_status status = v ? FL_OK : fl_no_memory(d, "the published results");
    for (size_t i = 0; !status && i < c->mean_first; i++) {
        const fl_row_result *r = &c->row[i];
        if (fnmatch(s->policy, r->policy, 0) || !same_variant(r, s->variant) ||
            !fl_workload_matches(r->workload, r->variant, s->workload))
            continue;
        rows++;
        status = one_value(s, c, r, &v[n], d);
        n += !status && !isnan(v[n]); /* cells that are n/a are left out, as in the means */
    }
    if (!status && !rows)
        status = fl_json_fail(&s->at, d, "no row of the comparison matches, expected at least one");
    if (!status)
        *value = n ? combine(s, v, n) : (double)NAN;
    free(v);
    return status;
}

static fl_status solve_bound(bound *b, const fl_comparison *c, fl_diag *d) {
    return b->given && b->selected ? fl_published_value(&b->what, c, &b->value, d) : FL_OK;
}

double fl_published_difference(const line *l) {
    if (l->value < l->low)
        return l->value - l->low;
    if (l->value > l->high)
        return l->value - l->high;
    return isnan(l->low) || isnan(l->value) ? (double)NAN : 0;
}

static bool holds(const line *l) { /* written so that n/a never holds */
    const double off = fabs(fl_published_difference(l));
    return (!l->above.given || l->value > l->above.value) && (!l->below.given || l->value < l->below.value) &&
           (!l->within.given || off <= l->within.value) &&
           (!l->within_pct.given ||
            off <= l->within_pct.value / 100 * fabs(off > 0 && l->value > l->high ? l->high : l->low));
}

fl_status fl_published_solve(fl_published *p, const fl_comparison *c, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < p->count; i++) {
        line *l = &p->line[i];
        if (l->simulated.policy)
            s = fl_published_value(&l->simulated, c, &l->value, d);
        if (!s && l->share_of.policy) {
            double whole = 0;
            s = fl_published_value(&l->share_of, c, &whole, d);
            l->value *= 100 / whole;
        }
        if (!s)
            s = solve_bound(&l->above, c, d);
        if (!s)
            s = solve_bound(&l->below, c, d);
        l->holds = holds(l);
    }
    return s;
}

bool fl_published_gated(const line *l) {
    return l->above.given || l->below.given || l->within.given || l->within_pct.given;
}

bool fl_published_as_stated(const line *l) { return l->holds == !l->fails; }

size_t fl_published_failed(const fl_published *p) {
    size_t failed = 0;
    for (size_t i = 0; i < p->count; i++)
        failed += fl_published_gated(&p->line[i]) && !fl_published_as_stated(&p->line[i]);
    return failed;
}
