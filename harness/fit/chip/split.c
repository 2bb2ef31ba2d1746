/* `foldline fit device --cross-validate`: the device from half of the workloads, scored on the other half. */
#include "harness/fit/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one split into halves ---- */

/* half[i]: whether the device is fitted to entity i. All halves are equally likely. */
static void fl_fit_draw_half(const fl_fit_rows *r, uint64_t seed, uint64_t split, bool *half) {
    fl_random random = fl_random_seed(seed, split);
    size_t left = (r->entities + 1) / 2;
    for (size_t i = 0; i < r->entities; i++) { /* each subset of that size is equally likely */
        half[i] = fl_random_unit(&random) * (double)(r->entities - i) < (double)left;
        left -= half[i] ? 1 : 0;
    }
}

/* Measures how good `fit device` and `fit workload` are. A device is fitted to a seeded half of the workloads; the
 * result is its errors on the other half, as the mean over several splits. */

enum { CLASSES = 4, PARTS = 8 };

typedef struct totals {
    double sum[CLASSES][PARTS], count[CLASSES];
} totals;

typedef struct asked { /* one question: the settings that a prediction may use */
    fl_fit_at at;
    totals sum, blind;              /* blind: the same without activities */
    fl_fit_decisions decided, rash; /* rash: the decisions without the risk */
    size_t predicted, active;       /* number of workloads, and of those placed by their activities */
} asked;

typedef struct splitter {
    const fl_fit_split_options *o;
    fl_fit_rows rows, device, beside, unlit; /* unlit: the rows without their activities */
    bool *half;                              /* per entity of rows: whether the device is fitted to it */
    asked *asked;
    size_t plain, splits; /* splits in which the device has the plain law, and all splits */
    double law_time[2], law_power[2];
    fl_fit_crest crest;
    fl_chip_law law;
    fl_chip chip;
} splitter;

static void decide(const fl_fit_split_options *o, const fl_chip *chip, const fl_fit_rows *r, const fl_fit_entity *e,
                   fl_fit_result_of *result, asked *t) {
    fl_fit_result_state(chip, e, result);
    const fl_fit_question rash = {o->question.bound, 1};
    fl_fit_choice c;
    if (fl_fit_decide(r, e, result->guess, &o->question, &c))
        fl_fit_decisions_add(&t->decided, &c);
    if (fl_fit_decide(r, e, result->guess, &rash, &c))
        fl_fit_decisions_add(&t->rash, &c);
}

/* The device of this split: from its own sweep, or from the half and the additional sweep. */
static fl_status fit_device(splitter *q, fl_diag *d) {
    const fl_fit_rows *r = &q->rows;
    fl_chip_row *row = fl_must(malloc((r->count + q->device.count + q->beside.count + 1) * sizeof *row));
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++)
        if (q->half[r->row[i].workload])
            row[n++] = r->row[i];
    const fl_fit_rows *const more[] = {&q->device, &q->beside};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < more[k]->count; i++) {
            row[n] = more[k]->row[i];
            row[n++].workload += (uint32_t)r->entities;
        }
    const fl_model_status f = fl_chip_fit(row, n, q->law, &q->chip);
    free(row);
    fl_must_have(f != FL_MODEL_NO_MEMORY);
    if (f != FL_MODEL_OK)
        return fl_refuse(d, "no device model fits: %s", fl_model_text(f));
    q->plain += q->chip.law == FL_CHIP_PLAIN;
    q->splits++;
    for (int i = 0; i < 2; i++) {
        q->law_time[i] += q->chip.time_law_pct[i];
        q->law_power[i] += q->chip.power_law_pct[i];
    }
    return FL_OK;
}

static void add_means(const fl_fit_score *all, totals *t) {
    static const int which[CLASSES] = {FL_FIT_INSIDE, FL_FIT_OUTSIDE, FL_FIT_BOTH, FL_FIT_CAPPED};
    for (int c = 0; c < CLASSES; c++) {
        const fl_fit_means m = fl_fit_score_means(all, which[c]);
        const double value[PARTS] = {m.time_mape,   m.time_p95,   m.power_mape,  m.power_p95,
                                     m.energy_mape, m.energy_p95, m.time_within, m.power_within};
        if (m.rows == 0)
            continue;
        for (int k = 0; k < PARTS; k++)
            t->sum[c][k] += value[k];
        t->count[c]++;
    }
}

/* The unchanged constants of a platform. Sweeps without memory clocks run at its own. */
static fl_status take_spec(splitter *q, fl_diag *d) {
    fl_platform p = {0};
    fl_status s = fl_platform_open(q->o->spec, 1, &p, d);
    if (!s) {
        const fl_model_status f = fl_chip_of_device(&p.node.device[0], &q->chip);
        if (f != FL_MODEL_OK)
            s = fl_fail(d, FL_BAD_INPUT, q->o->spec, 0, 0, "no device model fits this sweep: %s", fl_model_text(f));
    }
    for (size_t i = 0; !s && i < q->rows.count && !q->rows.mem_known; i++)
        q->rows.row[i].mem_mhz = q->unlit.row[i].mem_mhz = q->chip.mem_ref;
    fl_platform_free(&p);
    return s;
}

/* One workload of a question. */
static fl_status ask_one(splitter *q, const fl_fit_rows *r, size_t i, const fl_fit_at *at, asked *t, fl_fit_score *all,
                         fl_diag *d) {
    const bool blind = r != &q->rows;
    fl_fit_result_of result = {0};
    fl_fit_capped_result capped = {0};
    fl_status s = fl_fit_capped_run(&q->chip, r, i, at, &q->crest, true, all, &capped, d);
    fl_fit_capped_free(&capped);
    if (!s)
        s = fl_fit_entity_run(&q->chip, r, &r->entity[i], at, true, &result, d);
    if (!s)
        fl_fit_score_add(all, &result.score);
    t->predicted += blind ? 0 : 1;
    t->active += result.active ? 1 : 0;
    if (!s && !blind && q->o->decide)
        decide(q->o, &q->chip, r, &r->entity[i], &result, t);
    fl_fit_result_free(&result);
    return s;
}

/* One question to this split's device. r: the rows, or the rows without activities. */
static fl_status ask(splitter *q, const fl_fit_rows *r, asked *t, fl_diag *d) {
    const bool blind = r != &q->rows;
    fl_fit_score all = {0};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < r->entities; i++)
        if (!q->half[i] && r->entity[i].count)
            s = ask_one(q, r, i, &t->at, t, &all, d);
    if (!s)
        add_means(&all, blind ? &t->blind : &t->sum);
    fl_fit_score_free(&all);
    return s;
}

static fl_status one_split(splitter *q, fl_diag *d) {
    fl_status s = q->o->spec ? take_spec(q, d) : fit_device(q, d);
    for (size_t k = 0; !s && k < q->o->ats.count; k++) {
        const size_t before = q->asked[k].active;
        s = ask(q, &q->rows, &q->asked[k], d);
        if (!s && q->asked[k].active > before)
            s = ask(q, &q->unlit, &q->asked[k], d);
    }
    return s;
}

static const char *const class_name[CLASSES] = {"interpolated", "extrapolated", "all", "capped"};
static const char *const part_name[PARTS] = {"time_mape_pct",       "time_p95_pct",        "power_mape_pct",
                                             "power_p95_pct",       "energy_mape_pct",     "energy_p95_pct",
                                             "time_within_2sd_pct", "power_within_2sd_pct"};

/* The cost of caution, in points of energy: the difference of the regrets with and without the risk. */
static double caution_cost(const asked *t) {
    return t->decided.count > 0 ? 100 * (t->decided.regret / t->decided.count - t->rash.regret / t->rash.count)
                                : (double)NAN;
}

static void print_totals(const totals *t) {
    static const char *const head[] = {
        "rows", "time %", "p95", "power %", "p95", "energy %", "p95", "time within 2 sd %", "power within 2 sd %"};
    fl_grid g = FL_GRID_HEADED(head);
    for (int c = 0; c < CLASSES; c++) {
        if (!(t->count[c] > 0))
            continue;
        fl_grid_add(&g, "%s", class_name[c]);
        for (int k = 0; k < PARTS; k++)
            fl_grid_add(&g, "%.2f", t->sum[c][k] / t->count[c]);
    }
    fl_grid_print(&g, 1, stdout);
}

static void print_question(const splitter *q, const char *at, const asked *t) {
    const fl_fit_split_options *o = q->o;
    print_totals(&t->sum);
    if (o->spec)
        printf("\nfitted at %s, device as platform %s has it\n", at, o->spec);
    else if (o->device.count)
        printf("\nfitted at %s, device from another sweep\n", at);
    else
        printf("\nfitted at %s, mean of %lld splits, seed %lld\n", at, (long long)o->splits, (long long)o->seed);
    if (t->active) {
        printf("%zu of %zu workloads are placed by their activities; errors without the activities:\n", t->active,
               t->predicted);
        print_totals(&t->blind);
    }
    if (!o->decide)
        return;
    fl_fit_decisions_print(&t->decided, &o->question);
    if (o->question.risk < 1 && t->rash.count > 0)
        printf("without --risk: %.1f %% of the choices break the bound, energy %+.2f %%; so caution costs %.2f "
               "points of energy\n",
               100 * t->rash.broken / t->rash.count, 100 * t->rash.regret / t->rash.count, caution_cost(t));
}

static void print_text(const splitter *q, const fl_fit_scatter *scatter) {
    const double n = (double)q->splits;
    for (size_t k = 0; k < q->o->ats.count; k++)
        print_question(q, q->o->ats.item[k], &q->asked[k]);
    fl_fit_rows_notes(&q->rows);
    fl_fit_sound_notes(&q->rows);
    printf("scatter of the data about smooth curves: time %.2f, power %.2f, energy %.2f %% (%zu rows)\n", scatter->time,
           scatter->power, scatter->energy, scatter->rows);
    if (q->law != FL_CHIP_BEST || !q->splits)
        return;
    printf("law: plain in %zu of %zu splits", q->plain, q->splits);
    if (!isnan(q->law_time[0]))
        printf("; errors on workloads left out, full and plain: time %.2f and %.2f, power %.2f and %.2f %%",
               q->law_time[0] / n, q->law_time[1] / n, q->law_power[0] / n, q->law_power[1] / n);
    putchar('\n');
}

static void totals_json(const totals *t, cJSON *to) {
    for (int c = 0; c < CLASSES; c++) {
        cJSON *at = cJSON_AddObjectToObject(to, class_name[c]);
        for (int k = 0; k < PARTS; k++)
            fl_json_add_real(at, part_name[k], t->count[c] > 0 ? t->sum[c][k] / t->count[c] : (double)NAN);
    }
}

static void question_json(const splitter *q, const char *at, const asked *t, cJSON *to) {
    cJSON_AddStringToObject(to, "at", at);
    totals_json(&t->sum, to);
    cJSON_AddNumberToObject(to, "workloads_predicted", (double)t->predicted);
    cJSON_AddNumberToObject(to, "workloads_placed_by_activity", (double)t->active);
    if (t->active)
        totals_json(&t->blind, cJSON_AddObjectToObject(to, "without_activity"));
    if (q->o->decide) {
        cJSON *decisions = cJSON_AddObjectToObject(to, "decisions");
        fl_fit_decisions_json(&t->decided, &q->o->question, decisions);
        fl_json_add_real(decisions, "caution_costs_pct", caution_cost(t));
    }
}

static void print_json(const splitter *q, const fl_fit_scatter *scatter) {
    const double n = (double)q->splits;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "splits", (double)q->o->splits);
    cJSON_AddItemToObject(root, "unsound", fl_fit_sound_json(&q->rows));
    cJSON *at = cJSON_AddObjectToObject(root, "scatter");
    fl_json_add_real(at, "time_scatter_pct", scatter->time);
    fl_json_add_real(at, "power_scatter_pct", scatter->power);
    fl_json_add_real(at, "energy_scatter_pct", scatter->energy);
    at = cJSON_AddObjectToObject(root, "law");
    cJSON_AddNumberToObject(at, "splits_plain", (double)q->plain);
    fl_json_add_real(at, "full_time_pct", q->law_time[0] / n);
    fl_json_add_real(at, "plain_time_pct", q->law_time[1] / n);
    fl_json_add_real(at, "full_power_pct", q->law_power[0] / n);
    fl_json_add_real(at, "plain_power_pct", q->law_power[1] / n);
    if (q->o->ats.count == 1)
        question_json(q, q->o->ats.item[0], &q->asked[0], root);
    cJSON *list = q->o->ats.count > 1 ? cJSON_AddArrayToObject(root, "questions") : NULL;
    for (size_t k = 0; list && k < q->o->ats.count; k++) {
        cJSON *one = fl_json_add_row(list);
        question_json(q, q->o->ats.item[k], &q->asked[k], one);
    }
    fl_json_tell(root);
}

static fl_status read_all(splitter *q, fl_diag *d) {
    const fl_fit_split_options *o = q->o;
    const fl_texts none = {0};
    fl_status s = fl_fit_crest_parse(o->crest, &q->crest, d);
    for (size_t i = 0; !s && i < o->ats.count; i++)
        s = fl_fit_at_parse(o->ats.item[i], &q->asked[i].at, d);
    if (!s)
        s = fl_fit_rows_sound(&o->sweeps, &none, &q->rows, d);
    if (!s && o->device.count)
        s = fl_fit_rows_sound(&o->device, &none, &q->device, d);
    if (!s && o->beside.count)
        s = fl_fit_rows_sound(&o->beside, &none, &q->beside, d);
    if (!s && (q->device.latent || q->beside.latent || q->rows.latent))
        s = fl_fail(d, FL_BAD_INPUT,
                    (q->device.latent   ? &o->device
                     : q->beside.latent ? &o->beside
                                        : &o->sweeps)
                        ->item[0],
                    0, 0,
                    "power limits but no SM clocks: no device is needed to predict such rows, expected fit workload");
    if (!s && q->rows.entities < 2 && !o->device.count && !o->spec)
        s = fl_fail(d, FL_BAD_INPUT, o->sweeps.item[0], 0, 0, "one workload, expected two or more to split");
    if (s)
        return s;
    q->half = fl_must(calloc(q->rows.entities + 1, sizeof *q->half));
    q->unlit = q->rows; /* borrows everything except the rows themselves */
    q->unlit.row = fl_must(malloc((q->rows.count + 1) * sizeof *q->unlit.row));
    memcpy(q->unlit.row, q->rows.row, q->rows.count * sizeof *q->unlit.row);
    for (size_t i = 0; i < q->rows.count; i++)
        q->unlit.row[i].activity = NULL;
    return FL_OK;
}

static fl_status run_all(fl_fit_split_options *o, fl_chip_law law, fl_diag *d) {
    splitter *q = fl_must(calloc(1, sizeof *q));
    q->asked = fl_must(calloc(o->ats.count + 1, sizeof *q->asked));
    q->o = o;
    q->law = law;
    if (o->device.count || o->spec)
        o->splits = 1;
    fl_status s = read_all(q, d);
    for (int64_t i = 0; !s && i < o->splits; i++) {
        if (!o->device.count && !o->spec)
            fl_fit_draw_half(&q->rows, (uint64_t)o->seed, (uint64_t)i, q->half);
        s = one_split(q, d);
    }
    const fl_fit_scatter scatter = s ? (fl_fit_scatter){0} : fl_fit_scatter_of(&q->rows);
    if (!s && o->json)
        print_json(q, &scatter);
    else if (!s)
        print_text(q, &scatter);
    free(q->unlit.row);
    free(q->half);
    free(q->asked);
    fl_fit_rows_free(&q->rows);
    fl_fit_rows_free(&q->device);
    fl_fit_rows_free(&q->beside);
    free(q);
    return s;
}

fl_status fl_fit_split(fl_fit_split_options *o, fl_diag *d) {
    const fl_chip_law law = *o->law == 'b' ? FL_CHIP_BEST : *o->law == 'f' ? FL_CHIP_FULL : FL_CHIP_PLAIN;
    fl_status s = o->sweeps.count ? FL_OK : fl_refuse(d, "no sweep, expected SWEEP ...");
    if (!s && o->spec && (o->device.count || o->beside.count))
        s = fl_refuse(d, "--spec %s beside a sweep of the device, expected one of them", o->spec);
    if (!s && !o->ats.count)
        s = fl_texts_add(&o->ats, "ends", d);
    return s ? s : run_all(o, law, d);
}
