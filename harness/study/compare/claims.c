/* Prints published results: the claims of the system with their verdicts and the score, then all else. */
#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/study/compare/compare.h"
#include "harness/study/compare/inside.h"
#include "traces/io/io.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- verdicts ---- */

/* Verdicts on published results, and the score over those that are predictions. */

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

/* Signed distance from the published number or range; 0 inside it, NAN where there is none. */
static double published_difference(const published_line *l) { return distance(l, l->value); }

/* Return the distance from the published number in percent of it, or in points where the unit is a percentage; NAN
 * where there is none. */
static double published_error(const published_line *l) {
    const double off = fabs(published_difference(l)), end = l->value > l->high ? l->high : l->low;
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

/* Return true if the verdict differs from the recorded one. */
static bool published_differs(const published_line *l) { return fl_published_gated(l) && l->verdict != l->recorded; }

size_t fl_published_failed(const fl_published *p) {
    size_t failed = 0;
    for (size_t i = 0; i < p->count; i++)
        failed += published_differs(&p->line[i]);
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
        error[s.numbers] = published_error(l);
        if (!isnan(error[s.numbers]))
            s.numbers++;
    }
    gsl_sort(error, 1, s.numbers);
    s.median = s.numbers ? gsl_stats_quantile_from_sorted_data(error, 1, s.numbers, 0.5) : (double)NAN;
    s.p90 = s.numbers ? gsl_stats_quantile_from_sorted_data(error, 1, s.numbers, 0.9) : (double)NAN;
    free(error);
    return s;
}

/* ---- claims ---- */

enum { CELL = 200 }; /* bytes of a cell */

/* ---- cells ---- */

/* The conditions of a gate, with `draws` also on how many it holds; an empty text where the line has none. */
static char *gate_text(const published_line *l, bool draws, char text[CELL]) {
    const struct {
        const bound *b;
        const char *name, *unit;
    } side[] = {{&l->above, "above", ""},
                {&l->below, "below", ""},
                {&l->within, "within", ""},
                {&l->within_pct, "within", " %"}};
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < FL_COUNT(side); i++)
        if (side[i].b->given && used < CELL)
            used += (size_t)snprintf(text + used, CELL - used, "%s%s %.5g%s", used ? ", " : "", side[i].name,
                                     side[i].b->value, side[i].unit);
    if (l->errors.given && used < CELL)
        used += (size_t)snprintf(text + used, CELL - used, " by %g x %.2g", l->errors.value, l->error);
    if (used && used < CELL && draws && l->draws > 1)
        snprintf(text + used, CELL - used, " on %zu of %zu draws%s", l->draws_held, l->draws,
                 l->all_draws ? ", all asked for" : "");
    return text;
}

static char *verdict_text(const published_line *l, bool draws, char text[CELL]) {
    const char *kind = l->kind == CALIBRATED ? "calibrated" : l->kind == TAKEN ? "input" : "";
    char of[64] = "";
    if (draws && l->draws > 1)
        snprintf(of, sizeof of, " (%zu of %zu draws)", l->draws_held, l->draws);
    if (!fl_published_gated(l))
        snprintf(text, CELL, "%s", *kind ? kind : l->simulated.policy ? "-" : "not simulated");
    else if (published_differs(l))
        snprintf(text, CELL, "%s, BUT RECORDED: %s", fl_verdict_names[l->verdict], fl_verdict_names[l->recorded]);
    else
        snprintf(text, CELL, "%s%s%s%s", kind, *kind ? ": " : "", fl_verdict_names[l->verdict], of);
    return text;
}

static void add_number(fl_grid *g, double value) {
    if (isnan(value))
        fl_grid_add(g, "-");
    else
        fl_grid_add(g, "%.5g", value);
}

/* The paper's number or range; where it prints none and `gate`, what must hold instead. */
static void add_published(fl_grid *g, const published_line *l, bool gate) {
    char text[CELL];
    if (l->low < l->high)
        fl_grid_add(g, "%.5g..%.5g", l->low, l->high);
    else if (isnan(l->low) && gate)
        fl_grid_add(g, "%s", gate_text(l, false, text));
    else
        add_number(g, l->low);
}

/* ---- the table of a block ---- */

/* With activity records that take no time: a column of its own where a policy needs them. */
static bool any_spared(const fl_published *p) {
    bool any = false;
    for (size_t i = 0; i < p->count; i++)
        any |= !isnan(p->line[i].value_free);
    return any;
}

typedef bool line_choice(const published_line *l);
static bool is_claim(const published_line *l) { return l->block == CLAIM; }
static bool is_detail(const published_line *l) { return l->block == DETAIL; }
static bool is_given(const published_line *l) { return l->block == GIVEN; }
static bool is_any(const published_line *l) { return l != NULL; }
static bool is_surprise(const published_line *l) { return l->block != CLAIM && published_differs(l); }

/* all: what a gate asks for, the distance and the number with free records, too. Otherwise the table is as wide as the
 * terminal, and the unit stands behind the quantity. */
static void print_lines(const fl_published *p, const char *title, line_choice *chosen, bool all, FILE *out) {
    const bool spared = all && any_spared(p);
    char text[CELL];
    size_t lines = 0;
    fl_grid g = {.columns = spared ? 8 : all ? 7 : 4, .texts = true, .folds = !all};
    fl_grid_add(&g, "%s", title);
    if (all)
        fl_grid_add(&g, "unit");
    fl_grid_add(&g, "published\tours");
    if (spared)
        fl_grid_add(&g, "records free");
    if (all)
        fl_grid_add(&g, "difference\ttest");
    fl_grid_add(&g, "verdict");
    for (size_t i = 0; i < p->count; i++) {
        const published_line *l = &p->line[i];
        if (!chosen(l))
            continue;
        lines++;
        if (all)
            fl_grid_add(&g, "%s\t%s", l->quantity, l->unit);
        else
            fl_grid_add(&g, "%s%s%s", l->quantity, *l->unit ? ", " : "", l->unit);
        add_published(&g, l, !all);
        add_number(&g, l->value);
        if (spared)
            add_number(&g, l->value_free);
        if (all && isnan(published_difference(l)))
            fl_grid_add(&g, "-");
        else if (all)
            fl_grid_add(&g, "%+.3g", published_difference(l));
        if (all)
            fl_grid_add(&g, "%s", *gate_text(l, true, text) ? text : "-");
        fl_grid_add(&g, "%s", verdict_text(l, !all, text));
    }
    if (lines) {
        fl_grid_print(&g, all ? 2 : 1, out);
        fputc('\n', out);
    }
    fl_grid_free(&g);
}

/* ---- texts below the tables ---- */

typedef const char *text_of(const published_line *l); /* NULL or empty: none */
static const char *note_of(const published_line *l) { return l->note; }
static const char *because_of(const published_line *l) { return published_differs(l) ? NULL : l->because; }

static void put_text(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put_text(FILE *out, const char *format, ...) {
    const fl_page page = {.out = out, .width = fl_terminal_width(out)};
    va_list args;
    char *text = NULL;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (text)
        fl_page_fill(&page, 0, 2, text);
    free(text);
}

/* Print a text that stands at several lines once, at the first. */
static void print_texts(const fl_published *p, line_choice *chosen, text_of *text, FILE *out) {
    bool any = false;
    for (size_t i = 0; i < p->count; i++) {
        const published_line *l = &p->line[i];
        const char *own = chosen(l) ? text(l) : NULL;
        size_t before = 0, after = 0;
        for (size_t k = 0; k < p->count && own && *own; k++) {
            const char *other = k != i && chosen(&p->line[k]) ? text(&p->line[k]) : NULL;
            const bool same = other && !strcmp(other, own);
            before += same && k < i;
            after += same && k > i;
        }
        if (!own || !*own || before)
            continue;
        char more[32] = "";
        if (after)
            snprintf(more, sizeof more, ", and %zu more", after);
        put_text(out, "%s: %s%s: %s", text == note_of ? "note" : fl_verdict_names[l->recorded], l->quantity, more, own);
        any = true;
    }
    if (any)
        fputc('\n', out);
}

static bool same_column(const published_line *a, const published_line *b) {
    return a->by_draw && b->by_draw && !strcmp(a->by_draw, b->by_draw);
}

static bool same_rows(const published_line *a, const published_line *b) {
    return a->by_draw && b->by_draw && !strcmp(a->simulated.policy, b->simulated.policy);
}

/* The first line with the same column or rows in the table of draws. */
static bool is_first(const fl_published *p, size_t i, bool (*same)(const published_line *, const published_line *)) {
    for (size_t k = 0; k < i; k++)
        if (same(&p->line[k], &p->line[i]))
            return false;
    return p->line[i].by_draw && p->line[i].simulated.policy;
}

/* A row for each policy and draw, a column for each "by_draw" of the lines. */
static void print_draws(const fl_published *p, FILE *out) {
    fl_grid g = {.columns = 2};
    for (size_t i = 0; i < p->count; i++)
        g.columns += is_first(p, i, same_column);
    if (g.columns == 2 || !p->draw_count || !p->draw[0])
        return;
    fl_grid_add(&g, "policy\tdraw");
    for (size_t i = 0; i < p->count; i++)
        if (is_first(p, i, same_column))
            fl_grid_add(&g, "%s", p->line[i].by_draw);
    for (size_t i = 0; i < p->count; i++)
        for (size_t n = 0; n < p->draw_count && is_first(p, i, same_rows); n++) {
            fl_grid_add(&g, "%s\t%s", p->line[i].simulated.policy, p->draw[n]);
            for (size_t k = 0; k < p->count; k++) {
                size_t at = 0;
                if (!is_first(p, k, same_column))
                    continue;
                while (at < p->count &&
                       !(same_rows(&p->line[at], &p->line[i]) && same_column(&p->line[at], &p->line[k])))
                    at++;
                add_number(&g, at < p->count ? p->line[at].draw_value[n] : (double)NAN);
            }
        }
    fl_grid_print(&g, 2, out);
    fputc('\n', out);
}

/* ---- the score ---- */

static void print_score(const fl_published *p, FILE *out) {
    const published_score s = fl_published_score(p);
    if (!s.predictions)
        return;
    fl_text memory;
    FILE *f = fl_must(fl_text_open(&memory));
    fprintf(f, "score: %zu prediction%s:", s.predictions, s.predictions == 1 ? "" : "s");
    for (size_t i = 0, any = 0; i < PUBLISHED_VERDICTS; i++)
        if (s.verdict[i])
            fprintf(f, "%s %s %zu", any++ ? "," : "", fl_verdict_names[i], s.verdict[i]);
    if (s.untested)
        fprintf(f, "%s without a test %zu", s.untested < s.predictions ? "," : "", s.untested);
    char *text = fl_must(fl_text_close(&memory, NULL));
    put_text(out, "%s", text);
    free(text);
    if (s.numbers)
        put_text(out,
                 "error of %zu published number%s: median %.3g, 90th percentile %.3g (in percent; in points where the "
                 "number is a percentage)",
                 s.numbers, s.numbers == 1 ? "" : "s", s.median, s.p90);
    if (s.calibrated)
        put_text(out, "calibrated: %lld number%s; published lines in view of that, which are no predictions: %zu",
                 (long long)s.calibrated, s.calibrated == 1 ? "" : "s", s.in_view);
    else
        put_text(out, "calibrated: no number");
}

bool fl_published_claims(const fl_published *p) {
    bool any = false;
    for (size_t i = 0; i < p->count; i++)
        any |= is_claim(&p->line[i]);
    return any;
}

void fl_published_print(const fl_published *p, bool all, FILE *out) {
    const bool claims = fl_published_claims(p);
    if (p->about && claims) {
        put_text(out, "%s", p->about);
        fputc('\n', out);
    }
    print_lines(p, "claims of the system", is_claim, all, out);
    print_texts(p, is_claim, because_of, out);
    if (!all && claims)
        print_lines(p, "other lines, not as recorded", is_surprise, false, out);
    if (claims)
        print_score(p, out);
    if (claims && !all) {
        put_text(out, "--all adds rivals and details, inputs, what was calibrated and what is assumed");
        return;
    }
    if (claims)
        fputc('\n', out);
    print_lines(p, claims ? "rivals and details" : "quantity", is_detail, true, out);
    print_texts(p, is_detail, because_of, out);
    print_lines(p, "inputs, and what nobody can reproduce", is_given, true, out);
    print_draws(p, out);
    print_texts(p, is_any, note_of, out);
    for (size_t i = 0; i < p->calibrated_count; i++) {
        const published_calibrated *c = &p->calibrated[i];
        put_text(out, "calibrated: %s, to %s; before: %s", c->what, c->to, c->before);
    }
    for (fl_json at = p->assumed.node ? fl_json_first(&p->assumed) : (fl_json){0}; at.node;
         at = fl_json_next(&p->assumed, &at))
        if (cJSON_GetStringValue(at.node))
            put_text(out, "assumed: %s", cJSON_GetStringValue(at.node));
    if (!claims)
        print_score(p, out);
}

/* ---- as JSON ---- */

cJSON *fl_published_json(const fl_published *p) {
    cJSON *all = cJSON_CreateArray();
    for (size_t i = 0; i < p->count; i++) {
        const published_line *l = &p->line[i];
        char text[CELL];
        cJSON *o = fl_json_add_row(all);
        cJSON_AddStringToObject(o, "quantity", l->quantity);
        cJSON_AddStringToObject(o, "unit", l->unit);
        cJSON_AddStringToObject(o, "block", fl_block_names[l->block]);
        cJSON_AddStringToObject(o, "kind", fl_kind_names[l->kind]);
        fl_json_add_real(o, "published_low", l->low);
        fl_json_add_real(o, "published_high", l->high);
        fl_json_add_real(o, "simulated", l->value);
        if (!isnan(l->value_free))
            fl_json_add_real(o, "simulated_records_free", l->value_free);
        if (l->errors.given || l->repetitions.given)
            fl_json_add_real(o, "standard_error", l->error);
        fl_json_add_real(o, "difference", published_difference(l));
        cJSON *draws = l->draw_value && p->draw[0] ? cJSON_AddObjectToObject(o, "by_draw") : NULL;
        for (size_t n = 0; draws && n < p->draw_count; n++)
            fl_json_add_real(draws, p->draw[n], l->draw_value[n]);
        if (!fl_published_gated(l))
            continue;
        cJSON_AddStringToObject(o, "gate", gate_text(l, true, text));
        cJSON_AddBoolToObject(o, "holds", l->holds);
        if (l->draws > 1)
            cJSON_AddNumberToObject(o, "draws_held", (double)l->draws_held);
        cJSON_AddStringToObject(o, "verdict", fl_verdict_names[l->verdict]);
        cJSON_AddStringToObject(o, "recorded", fl_verdict_names[l->recorded]);
        if (l->because)
            cJSON_AddStringToObject(o, "because", l->because);
    }
    return all;
}

cJSON *fl_published_score_json(const fl_published *p) {
    const published_score s = fl_published_score(p);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "predictions", (double)s.predictions);
    for (size_t i = 0; i < PUBLISHED_VERDICTS; i++)
        cJSON_AddNumberToObject(o, fl_verdict_names[i], (double)s.verdict[i]);
    cJSON_AddNumberToObject(o, "without a test", (double)s.untested);
    cJSON_AddNumberToObject(o, "published_numbers", (double)s.numbers);
    fl_json_add_real(o, "error_median", s.median);
    fl_json_add_real(o, "error_p90", s.p90);
    cJSON_AddNumberToObject(o, "calibrated", (double)s.calibrated);
    cJSON_AddNumberToObject(o, "in_view", (double)s.in_view);
    return o;
}
