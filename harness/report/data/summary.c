/* Statistics of each policy in a scope, and the effect of a parameter. */
#include "harness/report/data/inside.h"

#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the effect of a parameter ---- */

static int by_line(const void *a, const void *b) {
    const fl_study_point *p = a, *q = b;
    return p->line != q->line ? (p->line > q->line) - (p->line < q->line) : (p->x > q->x) - (p->x < q->x);
}

/* The label's other settings, as text. Returns false if the named one is missing or not a number. */
static bool split(const char *label, const char *name, double *x, char *rest, size_t size) {
    char key[64], value[64];
    bool found = false;
    size_t used = 0;
    rest[0] = 0;
    for (size_t i = 0; fl_label_setting(label, i, key, value); i++) {
        if (!strcmp(key, name))
            found = fl_real_parse(value, x) == FL_NUMBER_OK;
        else if (used < size)
            used += (size_t)snprintf(rest + used, size - used, "%s%s=%s", used ? ", " : "", key, value);
    }
    return found;
}

static void collect(const fl_summary *s, fl_study *t) {
    t->point = fl_must(calloc(s->count + 1, sizeof *t->point));
    for (size_t i = 0; i < s->count; i++) {
        char family[128], rest[512];
        double x;
        const char *label = fl_summary_name(s, i);
        if (isnan(s->item[i].merit.mean) || strcmp(fl_label_family(label, family), t->family) != 0 ||
            !split(label, t->name, &x, rest, sizeof rest))
            continue;
        t->point[t->count++] = (fl_study_point){.x = x, .line = fl_names_index(&t->rest, rest), .item = i};
    }
    qsort(t->point, t->count, sizeof *t->point, by_line);
}

static bool worth_it(const fl_study *t) { /* some line has two different values */
    for (size_t i = 1; i < t->count; i++)
        if (t->point[i].line == t->point[i - 1].line && t->point[i].x != t->point[i - 1].x)
            return true;
    return false;
}

void fl_studies(const fl_summary *s, void (*each)(void *user, const fl_study *t), void *user) {
    fl_names done = {0};
    for (size_t i = 0; i < s->count; i++) {
        char family[128], name[64], value[64], key[256];
        const char *label = fl_summary_name(s, i);
        fl_label_family(label, family);
        for (size_t k = 0; fl_label_setting(label, k, name, value); k++) {
            const size_t before = done.count;
            snprintf(key, sizeof key, "%s:%s", family, name);
            if (fl_names_index(&done, key) < before)
                continue;
            fl_study t = {.family = family};
            snprintf(t.name, sizeof t.name, "%s", name);
            collect(s, &t);
            if (worth_it(&t))
                each(user, &t);
            fl_names_free(&t.rest);
            free(t.point);
        }
    }
    fl_names_free(&done);
}

/* ---- statistics of policies ---- */

static void add_column(fl_summary *s, fl_means *m, int column) {
    const fl_scope *sc = s->scope;
    const size_t each = sc->workloads * sc->seeds;
    double *panel = fl_scope_panel(sc, (fl_report_column)column);
    for (size_t p = 0; p < s->count; p++) {
        const double *row = panel + p * each;
        fl_must_have(!fl_means_add(m, row, sc->workloads, sc->seeds, &s->item[p].value[column], NULL));
        if (column != FL_REPORT_VIOLATED)
            continue;
        s->item[p].violations = s->item[p].value[column].runs ? 0 : (double)NAN;
        for (size_t i = 0; i < each; i++)
            s->item[p].violations += isnan(row[i]) ? 0 : row[i];
    }
    free(panel);
}

static void means(fl_summary *s) {
    const fl_scope *sc = s->scope;
    fl_means m = {.b = s->bootstrap};
    for (int column = 0; column < FL_REPORT_COLUMNS; column++)
        add_column(s, &m, column);
    for (size_t p = 0; p < s->count; p++)
        fl_must_have(!fl_means_add(&m, s->merit + p * sc->workloads * sc->seeds, sc->workloads, sc->seeds,
                                   &s->item[p].merit, NULL));
    fl_must_have(!fl_means_draw(&m, NULL));
    fl_means_free(&m);
    for (size_t p = s->count; p-- > 0;)
        if (!strcmp(fl_summary_name(s, p), "baseline:default"))
            s->most = s->item[p].value[FL_REPORT_ENERGY_J].runs;
}

/* A policy that breaks a bound comes after all that hold them. */
static int by_merit(const void *a, const void *b, void *user) {
    const fl_summary *s = user;
    const size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const double x = s->item[i].merit.mean, y = s->item[k].merit.mean;
    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    const bool over = s->item[i].violations > 0, over2 = s->item[k].violations > 0;
    if (over != over2)
        return over - over2;
    return x != y ? (x < y) - (x > y) : (i > k) - (i < k);
}

static fl_status choose(fl_summary *s, const char *reference, fl_diag *d) {
    s->reference = SIZE_MAX;
    for (size_t i = 0; i < s->count; i++)
        s->order[i] = i;
    qsort_r(s->order, s->count, sizeof *s->order, by_merit, s);
    for (size_t i = 0; i < s->count; i++)
        if (reference && !strcmp(fl_summary_name(s, i), reference))
            s->reference = i;
    if (reference && s->reference == SIZE_MAX)
        return fl_refuse(d, "no policy '%s' in the result, expected one of its policies", reference);
    for (int violating = 0; violating < 2; violating++)
        for (size_t k = 0; k < s->count && s->reference == SIZE_MAX; k++) {
            const fl_policy_summary *p = &s->item[s->order[k]];
            if (!p->baseline && !isnan(p->merit.mean) && (violating || !(p->violations > 0)))
                s->reference = s->order[k];
        }
    return FL_OK;
}

static void pairs(fl_summary *s) {
    const fl_scope *sc = s->scope;
    const size_t each = sc->workloads * sc->seeds;
    if (s->reference >= s->count)
        return;
    double *slow = fl_scope_panel(sc, FL_REPORT_SLOWDOWN);
    for (size_t i = 0; i < s->count * each; i++)
        slow[i] *= 100;
    s->paired = s->count > 1;
    fl_means m = {.b = s->bootstrap};
    for (size_t p = 0; p < s->count; p++) {
        /* a tie is a difference that no figure of the page would show: a hundredth of a percent point */
        fl_must_have(!fl_means_add_paired(&m, s->merit + p * each, s->merit + s->reference * each, sc->workloads,
                                          sc->seeds, 0.01, &s->item[p].merit_pair, NULL));
        fl_must_have(!fl_means_add_paired(&m, slow + p * each, slow + s->reference * each, sc->workloads, sc->seeds,
                                          0.01, &s->item[p].slowdown_pair, NULL));
    }
    fl_must_have(!fl_means_draw(&m, NULL));
    fl_means_free(&m);
    free(slow);
}

/* A run that breaks a bound ranks behind those that hold it: it counts as if it lost more than any can, in points. */
#define BEHIND 1e6

static void put_behind(double *merit, const double *violated, size_t each) {
    for (size_t i = 0; i < each; i++)
        merit[i] -= violated[i] > 0 ? BEHIND : 0;
}

static void ranks(fl_summary *s) {
    const size_t each = s->scope->workloads * s->scope->seeds;
    double *violated = fl_scope_panel(s->scope, FL_REPORT_VIOLATED);
    double *value = fl_must(malloc((s->count * each + 1) * sizeof *value));
    fl_rank_result *rank = fl_must(calloc(s->count + 1, sizeof *rank));
    size_t n = 0;
    for (size_t p = 0; p < s->count; p++) {
        s->item[p].rank = (fl_rank_result){.rank = {NAN, NAN, NAN, 0, 0}};
        if (s->item[p].baseline)
            continue;
        memcpy(value + n * each, s->merit + p * each, each * sizeof *value);
        put_behind(value + n++ * each, violated + p * each, each);
    }
    if (n > 1)
        fl_must_have(!fl_bootstrap_ranks(value, n, s->scope->workloads, s->scope->seeds, &s->bootstrap, rank, NULL));
    for (size_t p = 0, k = 0; n > 1 && p < s->count; p++)
        if (!s->item[p].baseline)
            s->item[p].rank = rank[k++];
    s->ranked = n > 1 && rank[0].rank.workloads;
    free(violated);
    free(value);
    free(rank);
}

fl_status fl_summary_make(const fl_scope *sc, const fl_bootstrap *b, const char *reference, fl_summary *out,
                          fl_diag *d) {
    *out = (fl_summary){.scope = sc, .bootstrap = *b, .count = sc->policy_count};
    if (!b->draws) /* for a grid: seconds, not minutes */
        out->bootstrap.draws = sc->policy_count > FL_GRID_POLICIES ? FL_DRAWS_GRID : FL_DRAWS_STANDARD;
    out->item = fl_must(calloc(out->count + 1, sizeof *out->item));
    out->order = fl_must(calloc(out->count + 1, sizeof *out->order));
    out->merit = fl_scope_merit(sc);
    for (size_t p = 0; p < out->count; p++) {
        out->item[p].policy = sc->policy[p];
        out->item[p].baseline = fl_report_is_baseline(fl_summary_name(out, p));
    }
    means(out);
    const fl_status s = choose(out, reference, d);
    if (s) {
        fl_summary_free(out);
        return s;
    }
    pairs(out);
    ranks(out);
    return FL_OK;
}

void fl_summary_free(fl_summary *s) {
    free(s->item);
    free(s->order);
    free(s->merit);
    *s = (fl_summary){0};
}
