/* Predictions of a workload, and their errors. */
#include "harness/fit/chip/inside.h"

#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "traces/io/io.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { KINDS = 5 };

static void add_error(fl_fit_errors *e, const double value[KINDS]) {
    double **const list[KINDS] = {&e->time, &e->power, &e->energy, &e->time_sds, &e->power_sds};
    if (e->count == e->room) {
        const size_t room = e->room ? 2 * e->room : 32;
        for (size_t i = 0; i < KINDS; i++)
            *list[i] = fl_must(realloc(*list[i], room * sizeof **list[i]));
        e->room = room;
    }
    for (size_t i = 0; i < KINDS; i++)
        (*list[i])[e->count] = value[i];
    e->count++;
}

static void free_errors(fl_fit_errors *e) {
    free(e->time);
    free(e->power);
    free(e->energy);
    free(e->time_sds);
    free(e->power_sds);
    *e = (fl_fit_errors){0};
}

void fl_fit_score_free(fl_fit_score *s) {
    free_errors(&s->inside);
    free_errors(&s->outside);
    free_errors(&s->capped);
    s->fitted = 0;
}

void fl_fit_result_free(fl_fit_result_of *r) {
    fl_fit_score_free(&r->score);
    free(r->guess);
    *r = (fl_fit_result_of){0};
}

void fl_fit_score_add(fl_fit_score *to, const fl_fit_score *from) {
    fl_fit_errors *const list[] = {&to->inside, &to->outside, &to->capped};
    for (int k = 0; k < 3; k++) {
        const fl_fit_errors *f = k == 0 ? &from->inside : k == 1 ? &from->outside : &from->capped;
        for (size_t i = 0; i < f->count; i++)
            add_error(list[k], (double[KINDS]){f->time[i], f->power[i], f->energy[i], f->time_sds[i], f->power_sds[i]});
    }
    to->fitted += from->fitted;
}

static double off_pct(double is, double measured) { return 100 * fabs(is / measured - 1); }

void fl_fit_score_add_row(fl_fit_errors *to, const fl_chip_guess *g, double time_s, double power_w) {
    const double time = off_pct(g->time_s, time_s), power = off_pct(g->power_w, power_w);
    add_error(to, (double[KINDS]){time, power, off_pct(g->time_s * g->power_w, time_s * power_w), time / g->time_sd_pct,
                                  power / g->power_sd_pct});
}

fl_status fl_fit_entity_run(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_entity *e, const fl_fit_at *at,
                            bool extrapolate, fl_fit_result_of *out, fl_diag *d) {
    static const fl_chip_guess refused = {NAN, NAN, NAN, NAN, FL_CHIP_STATED, 0};
    fl_fit_result_of o = {.guess = fl_must(calloc(e->count + 1, sizeof *o.guess))};
    fl_chip_row *known = fl_must(calloc(2 * e->count + 1, sizeof *known)), *asked = known + e->count;
    fl_chip_guess *guess = fl_must(calloc(e->count + 1, sizeof *guess));
    size_t n = 0, m = 0;
    double sm_low = INFINITY, sm_high = 0, mem_low = INFINITY, mem_high = 0;
    char name[256];
    for (size_t i = e->first; i < e->first + e->count; i++) {
        const fl_chip_row *row = &r->row[i];
        if (!fl_fit_at_has(at, r, e, row)) {
            asked[m++] = *row;
        } else if (fl_fit_is_beyond(chip, row) && !extrapolate) {
            o.untaught++;
        } else {
            known[n++] = *row;
            sm_low = fmin(sm_low, row->sm_mhz);
            sm_high = fmax(sm_high, row->sm_mhz);
            mem_low = fmin(mem_low, row->mem_mhz);
            mem_high = fmax(mem_high, row->mem_mhz);
        }
    }
    fl_status s = FL_OK;
    if (n) {
        const fl_model_status f = fl_chip_predict(chip, known, n, asked, m, guess, &o.load);
        fl_must_have(f != FL_MODEL_NO_MEMORY);
        if (f != FL_MODEL_OK)
            s = fl_refuse(d, "%s: %s", fl_fit_entity_name(e, name, sizeof name), fl_model_text(f));
    } else if (!o.untaught) {
        s = fl_refuse(
            d, "%s: none of its settings is among those to fit%s", fl_fit_entity_name(e, name, sizeof name),
            r->unsounds ? " (rows that did not run at the clock they name were left out; fit device lists them)" : "");
    }
    o.score.fitted = n;
    for (size_t i = 0, j = 0; n && !s && i < e->count; i++) {
        const fl_chip_row *row = &r->row[e->first + i];
        const bool has = fl_fit_at_has(at, r, e, row), beyond = fl_fit_is_beyond(chip, row);
        const fl_chip_guess g =
            has ? (fl_chip_guess){row->time_s, row->power_w, NAN, NAN, FL_CHIP_STATED, 0} : guess[j++];
        o.beyond += beyond && !has;
        o.guess[i] = beyond && !extrapolate ? refused : g;
        if (has || (beyond && !extrapolate))
            continue;
        if (isnan(g.time_s)) { /* laws of its own know nothing at this memory clock */
            o.beyond++;
            continue;
        }
        if (isnan(row->time_s)) { /* not measured, so there is nothing to score */
            o.asked++;
            continue;
        }
        const bool inside =
            row->sm_mhz >= sm_low && row->sm_mhz <= sm_high && row->mem_mhz >= mem_low && row->mem_mhz <= mem_high;
        fl_fit_score_add_row(inside ? &o.score.inside : &o.score.outside, &g, row->time_s, row->power_w);
    }
    free(known);
    free(guess);
    if (s || !n) {
        const size_t untaught = s ? 0 : o.untaught;
        fl_fit_result_free(&o);
        o.untaught = untaught;
    }
    *out = o;
    return s;
}

static void summarise(const double *a, size_t na, const double *b, size_t nb, double *room, double *mean, double *p95) {
    size_t n = 0;
    for (size_t i = 0; i < na + nb; i++) {
        const double x = i < na ? a[i] : b[i - na];
        if (!isnan(x))
            room[n++] = x;
    }
    *mean = *p95 = NAN;
    if (n == 0)
        return;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += room[i];
    *mean = sum / (double)n;
    gsl_sort(room, 1, n);
    const double at = 0.95 * (double)(n - 1);
    const size_t low = (size_t)at;
    *p95 = room[low] + (low + 1 < n ? (at - (double)low) * (room[low + 1] - room[low]) : 0);
}

/* Share of x that is at most 2, in percent; NaN counts as unknown. */
static double within(const double *a, size_t na, const double *b, size_t nb) {
    double in = 0, n = 0;
    for (size_t i = 0; i < na + nb; i++) {
        const double x = i < na ? a[i] : b[i - na];
        in += x <= 2 ? 1 : 0;
        n += isnan(x) ? 0 : 1;
    }
    return n > 0 ? 100 * in / n : (double)NAN;
}

fl_fit_means fl_fit_score_means(const fl_fit_score *s, int which) {
    const fl_fit_errors *a = which & FL_FIT_CAPPED ? &s->capped : &s->inside, *b = &s->outside;
    const size_t na = which & (FL_FIT_INSIDE | FL_FIT_CAPPED) ? a->count : 0,
                 nb = which & FL_FIT_OUTSIDE ? b->count : 0;
    fl_fit_means m = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, na + nb};
    double *room = fl_must(malloc((na + nb + 1) * sizeof *room));
    summarise(a->time, na, b->time, nb, room, &m.time_mape, &m.time_p95);
    summarise(a->power, na, b->power, nb, room, &m.power_mape, &m.power_p95);
    summarise(a->energy, na, b->energy, nb, room, &m.energy_mape, &m.energy_p95);
    m.time_within = within(a->time_sds, na, b->time_sds, nb);
    m.power_within = within(a->power_sds, na, b->power_sds, nb);
    free(room);
    return m;
}

void fl_fit_means_json(const fl_fit_means *m, cJSON *to) {
    fl_json_add_real(to, "time_mape_pct", m->time_mape);
    fl_json_add_real(to, "time_p95_pct", m->time_p95);
    fl_json_add_real(to, "power_mape_pct", m->power_mape);
    fl_json_add_real(to, "power_p95_pct", m->power_p95);
    fl_json_add_real(to, "energy_mape_pct", m->energy_mape);
    fl_json_add_real(to, "energy_p95_pct", m->energy_p95);
    fl_json_add_real(to, "time_within_2sd_pct", m->time_within);
    fl_json_add_real(to, "power_within_2sd_pct", m->power_within);
    cJSON_AddNumberToObject(to, "rows_predicted", (double)m->rows);
}
