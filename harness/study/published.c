#include "harness/study/published.h"
#include "harness/study/published_inside.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static bool same_variant(const fl_row_result *row, const char *variant) { return same_text(row->variant, variant); }

/* Rows of policies under a pattern. spared: the twins, for which kernel records take no time, in the place of the rows
 * that they stand beside. */
static bool of_policy(const fl_row_result *r, const char *pattern, bool spared) {
    return (spared ? r->twin_of || !r->records : !r->twin_of) &&
           !fnmatch(pattern, r->twin_of ? r->twin_of : r->policy, 0);
}

/* What the policies of one entry of an experiment differ in: "margin_w=4" of "hybrid1:margin_w=4". */
static bool same_parameters(const fl_row_result *a, const fl_row_result *b) {
    return same_text(strchr(a->policy, ':'), strchr(b->policy, ':'));
}

/* Of the rows under that policy the first that shares the seed and the parameters; the seed counts for more. */
static const fl_row_result *counterpart(const fl_comparison *c, const fl_row_result *row, const char *against,
                                        bool spared) {
    const fl_row_result *best = NULL;
    int most = -1;
    for (size_t i = 0; i < c->mean_first; i++) {
        const fl_row_result *r = &c->row[i];
        const bool here = !r->platform || !row->platform || !strcmp(r->platform, row->platform);
        if (!here || !same_text(r->draw, row->draw) || strcmp(r->workload, row->workload) != 0 ||
            !same_variant(r, row->variant) || !of_policy(r, against, spared))
            continue;
        const int same = 2 * (r->seed == row->seed) + same_parameters(r, row);
        best = same > most ? r : best;
        most = same > most ? same : most;
    }
    return best;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the mean of n numbers; NAN of one. */
static double standard_error(const double *v, size_t n, double mean) {
    double square = 0;
    for (size_t i = 0; i < n; i++)
        square += (v[i] - mean) * (v[i] - mean);
    return n > 1 ? sqrt(square / (double)(n - 1) / (double)n) : (double)NAN;
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
    case ERROR:
        return standard_error(v, n, sum / (double)n);
    case COUNT_BELOW:
        return (double)below;
    case COUNT_ABOVE:
        return (double)above;
    }
    return NAN;
}

/* NAN where a twin is asked for that does not stand; *twins grows by one where the counterpart is one. */
static fl_status one_value(const selection *s, const fl_comparison *c, const fl_row_result *row, bool spared,
                           size_t *twins, double *value, fl_diag *d) {
    double other;
    fl_status status = fl_row_value(row, s->column, value, d);
    if (status || !s->against)
        return status;
    const fl_row_result *against = counterpart(c, row, s->against, spared);
    if (!against && spared) { /* nothing was compared with free records */
        *value = NAN;
        return FL_OK;
    }
    if (!against)
        return fl_json_fail(&s->at, d, "no row of %s under '%s' to hold it against", row->workload, s->against);
    *twins += against->twin_of != NULL;
    status = fl_row_value(against, s->against_column, &other, d);
    if (s->form == DIFFERENCE || s->form == ABS_DIFFERENCE)
        *value -= other;
    else
        *value /= other;
    if (s->form == ABS_DIFFERENCE)
        *value = fabs(*value);
    return status;
}

/* Of one draw of the applications, NULL where they are not drawn. spared: NAN where none of the rows is a twin. */
static fl_status evaluate_draw(const selection *s, const fl_comparison *c, const char *draw, bool spared, double *value,
                               fl_diag *d) {
    double *v = malloc((c->mean_first + 1) * sizeof *v);
    size_t n = 0, rows = 0, twins = 0;
    fl_status status = v ? FL_OK : fl_no_memory(d, "the published results");
    for (size_t i = 0; !status && i < c->mean_first; i++) {
        const fl_row_result *r = &c->row[i];
        if (!same_text(r->draw, draw) || !of_policy(r, s->policy, spared) || !same_variant(r, s->variant) ||
            !fl_workload_matches(r->workload, r->variant, s->workload))
            continue;
        rows++;
        twins += r->twin_of != NULL;
        status = one_value(s, c, r, spared, &twins, &v[n], d);
        n += !status && !isnan(v[n]); /* cells that are n/a are left out, as in the means */
    }
    if (!status && !rows && !spared)
        status = fl_json_fail(&s->at, d, "no row of the comparison matches, expected at least one");
    if (!status)
        *value = n && (twins || !spared) ? combine(s, v, n) : (double)NAN;
    free(v);
    return status;
}

/* Draw by draw, and one number of these. each: p->draw_count, or NULL. */
static fl_status evaluate(const fl_published *p, const selection *s, const fl_comparison *c, bool spared, double *value,
                          double *each, fl_diag *d) {
    const selection all = {.over = s->over_draws};
    double *v = malloc((p->draw_count + 1) * sizeof *v);
    size_t n = 0;
    fl_status status = v ? FL_OK : fl_no_memory(d, "the published results");
    for (size_t i = 0; !status && i < p->draw_count; i++) {
        status = evaluate_draw(s, c, p->draw[i], spared, &v[n], d);
        if (!status && each)
            each[i] = v[n];
        n += !status && !isnan(v[n]);
    }
    if (!status)
        *value = n ? combine(&all, v, n) : (double)NAN;
    free(v);
    return status;
}

fl_status fl_published_value(const selection *s, const fl_comparison *c, double *value, fl_diag *d) {
    return evaluate_draw(s, c, NULL, false, value, d);
}

static fl_status solve_bound(const fl_published *p, bound *b, const fl_comparison *c, fl_diag *d) {
    return b->given && b->selected ? evaluate(p, &b->what, c, false, &b->value, NULL, d) : FL_OK;
}

double fl_published_difference(const line *l) {
    if (l->value < l->low)
        return l->value - l->low;
    if (l->value > l->high)
        return l->value - l->high;
    return isnan(l->low) || isnan(l->value) ? (double)NAN : 0;
}

static bool holds(const line *l) { /* written so that n/a never holds */
    const double spare = l->errors.given ? l->errors.value * l->error : 0;
    const double off = fabs(fl_published_difference(l)) + spare;
    return (!l->above.given || l->value - spare > l->above.value) &&
           (!l->below.given || l->value + spare < l->below.value) &&
           (!l->within.given || off <= l->within.value) &&
           (!l->within_pct.given ||
            off <= l->within_pct.value / 100 * fabs(l->value > l->high ? l->high : l->low));
}

/* In the order of the rows; a single one, NULL, where applications are not drawn. */
static fl_status find_draws(fl_published *p, const fl_comparison *c, fl_diag *d) {
    size_t room = 0;
    for (size_t i = 0; i < c->mean_first; i++) {
        size_t k = 0;
        while (k < p->draw_count && !same_text(p->draw[k], c->row[i].draw))
            k++;
        if (k < p->draw_count)
            continue;
        if (fl_grow(&p->draw, &room, p->draw_count + 1, sizeof *p->draw))
            return fl_no_memory(d, "the published results");
        p->draw[p->draw_count++] = c->row[i].draw;
    }
    return FL_OK;
}

fl_status fl_published_solve(fl_published *p, const fl_comparison *c, fl_diag *d) {
    fl_status s = find_draws(p, c, d);
    for (size_t i = 0; !s && i < p->count; i++) {
        line *l = &p->line[i];
        if (l->simulated.policy)
            s = (l->draw_value = calloc(p->draw_count + 1, sizeof *l->draw_value))
                    ? evaluate(p, &l->simulated, c, false, &l->value, l->draw_value, d)
                    : fl_no_memory(d, "the published results");
        if (!s && l->simulated.policy)
            s = evaluate(p, &l->simulated, c, true, &l->value_free, NULL, d);
        if (!s && l->errors.given) {
            selection error = l->simulated;
            error.over = ERROR;
            s = evaluate(p, &error, c, false, &l->error, NULL, d);
        }
        if (!s && l->share_of.policy) {
            double whole = 0;
            s = evaluate(p, &l->share_of, c, false, &whole, NULL, d);
            l->value *= 100 / whole;
            l->value_free = NAN;
        }
        if (!s)
            s = solve_bound(p, &l->above, c, d);
        if (!s)
            s = solve_bound(p, &l->below, c, d);
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
