/* Evaluates published results and their gates. */
#include "harness/study/compare/inside.h"

#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <fnmatch.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static bool same_variant(const fl_row_result *row, const char *variant) { return same_text(row->variant, variant); }

/* Rows of policies under a pattern. spared: the twins, for which activity records take no time, in the place of the
 * rows that they stand beside. */
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

/* Savings and changes come as ratios. */
static double turned(const selection *s, double ratio) {
    return s->form == SAVING_PCT ? 100 * (1 - ratio) : s->form == CHANGE_PCT ? 100 * (ratio - 1) : ratio;
}

/* Of the mean of n numbers; NAN of one. */
static double standard_error(const double *v, size_t n, double mean) {
    double square = 0;
    for (size_t i = 0; i < n; i++)
        square += (v[i] - mean) * (v[i] - mean);
    return n > 1 ? sqrt(square / (double)(n - 1) / (double)n) : (double)NAN;
}

/* One number of many. Ratios are turned here, so that a geometric mean is one of them; a 1 or 0 is none. */
static double combine(const selection *s, double *v, size_t n) {
    double sum = 0, product = 0;
    size_t below = 0, above = 0;
    const bool late = s->over == GEOMEAN; /* the form is applied to the mean */
    for (size_t i = 0; i < n; i++) {
        if (!late && !s->rivals.node)
            v[i] = turned(s, v[i]);
        sum += v[i];
        product += log(v[i]);
        below += v[i] < s->limit;
        above += v[i] > s->limit;
    }
    gsl_sort(v, 1, n);
    switch (s->over) {
    case MEAN:
        return sum / (double)n;
    case GEOMEAN:
        return turned(s, exp(product / (double)n));
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
    case DEVIATION:
        return standard_error(v, n, sum / (double)n) * sqrt((double)n);
    case COUNT_BELOW:
        return (double)below;
    case COUNT_ABOVE:
        return (double)above;
    }
    return NAN;
}

/* NAN where a twin is asked for that does not stand; *twins grows by one where the counterpart is one. */
static fl_status own_value(const selection *s, const fl_comparison *c, const fl_row_result *row, bool spared,
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

static fl_status meets(const condition *where, const fl_row_result *row, bool *met, fl_diag *d) {
    double value = 0;
    const fl_status status = where->column ? fl_row_value(row, where->column, &value, d) : FL_OK;
    *met = !where->column || (value > where->above && value < where->below);
    return status;
}

/* The row's own value; against rivals 1 or 0. A rival without a number is none. */
static fl_status one_value(const selection *s, const fl_comparison *c, const fl_row_result *row, bool spared,
                           size_t *twins, double *value, fl_diag *d) {
    fl_status status = own_value(s, c, row, spared, twins, value, d);
    if (status || !s->rivals.node || isnan(*value))
        return status;
    bool best = true;
    for (fl_json at = fl_json_first(&s->rivals); !status && at.node; at = fl_json_next(&s->rivals, &at)) {
        const fl_row_result *rival = counterpart(c, row, cJSON_GetStringValue(at.node), spared);
        double other = NAN;
        bool met = false;
        if (!rival)
            return fl_json_fail(&at, d, "no row of %s under it to hold another against", row->workload);
        *twins += rival->twin_of != NULL;
        if (!(status = meets(&s->where, rival, &met, d)) && met)
            status = own_value(s, c, rival, spared, twins, &other, d);
        best &= !(s->most ? turned(s, other) > turned(s, *value) : turned(s, other) < turned(s, *value));
    }
    *value = best;
    return status;
}

/* Of one draw of the applications, NULL where they are not drawn. spared: NAN where none of the rows is a twin. */
static fl_status evaluate_draw(const selection *s, const fl_comparison *c, const char *draw, bool spared, double *value,
                               fl_diag *d) {
    double *v = fl_must(malloc((c->mean_first + 1) * sizeof *v));
    size_t n = 0, rows = 0, twins = 0;
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < c->mean_first; i++) {
        const fl_row_result *r = &c->row[i];
        if (!same_text(r->draw, draw) || !of_policy(r, s->policy, spared) || !same_variant(r, s->variant) ||
            !fl_workload_matches(r->workload, r->variant, s->workload))
            continue;
        bool met = false;
        rows++;
        twins += r->twin_of != NULL;
        if ((status = meets(&s->where, r, &met, d)) || !met)
            continue;
        status = one_value(s, c, r, spared, &twins, &v[n], d);
        n += !status && !isnan(v[n]); /* cells that are n/a are left out, as in the means */
    }
    const bool counted = n || (s->where.column && s->over >= SUM); /* of none: 0 */
    if (!status && !rows && !spared)
        status = fl_json_fail(&s->at, d, "no row of the comparison matches, expected at least one");
    if (!status)
        *value = counted && (twins || !spared) ? combine(s, v, n) : (double)NAN;
    free(v);
    return status;
}

/* Draw by draw, and one number of these. each: p->draw_count, or NULL. */
static fl_status evaluate(const fl_published *p, const selection *s, const fl_comparison *c, bool spared, double *value,
                          double *each, fl_diag *d) {
    const selection all = {.over = s->over_draws};
    double *v = fl_must(malloc((p->draw_count + 1) * sizeof *v));
    size_t n = 0;
    fl_status status = FL_OK;
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

/* By draw too. *each is the caller's to free. */
static fl_status evaluate_each(const fl_published *p, const selection *s, const fl_comparison *c, double *value,
                               double **each, fl_diag *d) {
    *each = fl_must(calloc(p->draw_count + 1, sizeof **each));
    return evaluate(p, s, c, false, value, *each, d);
}

static fl_status solve_bound(const fl_published *p, bound *b, const fl_comparison *c, fl_diag *d) {
    return b->given && b->selected ? evaluate_each(p, &b->what, c, &b->value, &b->draw_value, d) : FL_OK;
}

/* In the order of the rows; a single one, NULL, where applications are not drawn. */
static void find_draws(fl_published *p, const fl_comparison *c) {
    size_t room = 0;
    for (size_t i = 0; i < c->mean_first; i++) {
        size_t k = 0;
        while (k < p->draw_count && !same_text(p->draw[k], c->row[i].draw))
            k++;
        if (k < p->draw_count)
            continue;
        fl_must_grow(&p->draw, &room, p->draw_count + 1, sizeof *p->draw);
        p->draw[p->draw_count++] = c->row[i].draw;
    }
}

/* l->value and those of the draws become shares of what share_of selects. */
static fl_status take_share(const fl_published *p, published_line *l, const fl_comparison *c, fl_diag *d) {
    double whole = 0, *each = NULL;
    const fl_status s = evaluate_each(p, &l->share_of, c, &whole, &each, d);
    l->value *= 100 / whole;
    l->value_free = NAN;
    for (size_t i = 0; !s && i < p->draw_count; i++)
        l->draw_value[i] *= 100 / each[i];
    free(each);
    return s;
}

/* The standard error or the standard deviation of the line's rows. */
static fl_status solve_spread(const fl_published *p, const published_line *l, enum published_over over,
                              const fl_comparison *c, double *value, fl_diag *d) {
    selection spread = l->simulated;
    spread.over = over;
    return evaluate(p, &spread, c, false, value, NULL, d);
}

/* Judge the line by its own values and those of "holds_at". */
static fl_status judge(const fl_published *p, published_line *l, const fl_comparison *c, fl_diag *d) {
    double **instead = fl_must(calloc(l->instead_count + 1, sizeof *instead)), ignored;
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < l->instead_count; i++)
        s = evaluate_each(p, &l->instead[i], c, &ignored, &instead[i], d);
    if (!s)
        fl_published_judge(p, l, instead);
    for (size_t i = 0; i < l->instead_count; i++)
        free(instead[i]);
    free(instead);
    return s;
}

fl_status fl_published_solve(fl_published *p, const fl_comparison *c, fl_diag *d) {
    fl_status s = FL_OK;
    find_draws(p, c);
    for (size_t i = 0; !s && i < p->count; i++) {
        published_line *l = &p->line[i];
        if (!l->simulated.policy)
            continue;
        s = evaluate_each(p, &l->simulated, c, &l->value, &l->draw_value, d);
        if (!s)
            s = evaluate(p, &l->simulated, c, true, &l->value_free, NULL, d);
        if (!s && (l->errors.given || l->repetitions.given))
            s = solve_spread(p, l, ERROR, c, &l->error, d);
        if (!s && l->repetitions.given)
            s = solve_spread(p, l, DEVIATION, c, &l->deviation, d);
        if (!s && l->share_of.policy)
            s = take_share(p, l, c, d);
        if (!s)
            s = solve_bound(p, &l->above, c, d);
        if (!s)
            s = solve_bound(p, &l->below, c, d);
        if (!s)
            s = judge(p, l, c, d);
    }
    return s;
}
