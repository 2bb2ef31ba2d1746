/* Verdicts on published results, and the score over those that are predictions. */
#include "harness/study/compare/inside.h"

#include "harness/base/work/work.h"
#include "harness/study/compare/compare.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *const fl_block_names[3] = {"detail", "claim", "input"};
const char *const fl_kind_names[3] = {"predicted", "calibrated", "input"};
const char *const fl_verdict_names[PUBLISHED_VERDICTS] = {"reproduced", "within the sampling error",
                                                          "depends on an unpublished input",
                                                          "contradicts another number", "not reproduced"};

/* ---- distances ---- */

static double distance(const published_line *l, double value) {
    if (value < l->low)
        return value - l->low;
    if (value > l->high)
        return value - l->high;
    return isnan(l->low) || isnan(value) ? (double)NAN : 0;
}

double fl_published_difference(const published_line *l) { return distance(l, l->value); }

double fl_published_error(const published_line *l) {
    const double off = fabs(fl_published_difference(l)), end = l->value > l->high ? l->high : l->low;
    if (*l->unit == '%' || !strncmp(l->unit, "points", 6) || !(off > 0))
        return off;
    return end != 0 ? 100 * off / fabs(end) : (double)NAN;
}

/* ---- gates ---- */

bool fl_published_gated(const published_line *l) {
    return l->above.given || l->below.given || l->within.given || l->within_pct.given;
}

static double of_draw(const bound *b, size_t draw) { return b->selected ? b->draw_value[draw] : b->value; }

/* spare: the bounds are narrower by this much. Every condition is written so that n/a never holds. */
static bool holds(const published_line *l, double value, size_t draw, double spare) {
    const double off = fabs(distance(l, value)) + spare;
    return (!l->above.given || value - spare > of_draw(&l->above, draw)) &&
           (!l->below.given || value + spare < of_draw(&l->below, draw)) &&
           (!l->within.given || off <= l->within.value) &&
           (!l->within_pct.given || off <= l->within_pct.value / 100 * fabs(value > l->high ? l->high : l->low));
}

/* On how many draws the gate holds. */
static size_t held(const fl_published *p, const published_line *l, const double *value, double spare) {
    size_t held = 0;
    for (size_t i = 0; i < p->draw_count; i++)
        held += holds(l, value[i], i, spare);
    return held;
}

static bool enough(const published_line *l, size_t held) {
    return l->all_draws ? l->draws && held == l->draws : 2 * held > l->draws;
}

/* ---- verdicts ---- */

/* The 95 % interval of the difference between a mean of so many repetitions and the mean of all rows. */
static double sampling_error(const published_line *l) {
    return 1.959964 * hypot(l->deviation / sqrt(l->repetitions.value), l->error);
}

/* Where the gate fails and nothing measured says why, the recorded verdict may name one of two causes. */
static published_verdict verdict(const fl_published *p, const published_line *l, double *const *instead) {
    const double spare = l->errors.given ? l->errors.value * l->error : 0;
    bool elsewhere = l->instead_count > 0;
    if (l->holds)
        return REPRODUCED;
    if (l->repetitions.given && enough(l, held(p, l, l->draw_value, -sampling_error(l))))
        return SAMPLING_ERROR;
    for (size_t i = 0; i < l->instead_count; i++)
        elsewhere &= enough(l, held(p, l, instead[i], spare));
    if (elsewhere)
        return UNPUBLISHED_INPUT;
    return l->recorded == CONTRADICTS ? CONTRADICTS : NOT_REPRODUCED;
}

void fl_published_judge(const fl_published *p, published_line *l, double *const *instead) {
    l->draws = p->draw_count;
    l->draws_held = held(p, l, l->draw_value, l->errors.given ? l->errors.value * l->error : 0);
    l->holds = enough(l, l->draws_held);
    l->verdict = verdict(p, l, instead);
}

bool fl_published_differs(const published_line *l) { return fl_published_gated(l) && l->verdict != l->recorded; }

size_t fl_published_failed(const fl_published *p) {
    size_t failed = 0;
    for (size_t i = 0; i < p->count; i++)
        failed += fl_published_differs(&p->line[i]);
    return failed;
}

/* ---- the score ---- */

published_score fl_published_score(const fl_published *p) {
    published_score s = {0};
    double *error = fl_must(calloc(p->count + 1, sizeof *error));
    for (size_t i = 0; i < p->calibrated_count; i++)
        s.calibrated += p->calibrated[i].count;
    for (size_t i = 0; i < p->count; i++) {
        const published_line *l = &p->line[i];
        const bool gated = fl_published_gated(l), judged = l->simulated.policy && (gated || !isnan(l->low));
        s.in_view += l->kind == CALIBRATED;
        if (!judged || l->kind != PREDICTED || l->block == GIVEN)
            continue;
        s.predictions++;
        if (gated)
            s.verdict[l->verdict]++;
        else
            s.untested++;
        error[s.numbers] = fl_published_error(l);
        if (!isnan(error[s.numbers]))
            s.numbers++;
    }
    gsl_sort(error, 1, s.numbers);
    s.median = s.numbers ? gsl_stats_quantile_from_sorted_data(error, 1, s.numbers, 0.5) : (double)NAN;
    s.p90 = s.numbers ? gsl_stats_quantile_from_sorted_data(error, 1, s.numbers, 0.9) : (double)NAN;
    free(error);
    return s;
}
