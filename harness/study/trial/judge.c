/* Regret against the best known schedule, risk of a fitted model, static clocks under bounds. */
#include "harness/study/trial/inside.h"

#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "models/laws/device.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- regret against the best known schedule ---- */

/* Less than this share below the reference is the rounding of picoseconds, of which no note is made. */
#define TELLING 1e-6

static void note(fl_row_result *row, double share) {
    const size_t used = strlen(row->note);
    snprintf(row->note + used, sizeof row->note - used, "%sbest known, %.3g %% below the clairvoyant schedule",
             used ? "; " : "", 100 * share);
}

static double value(const fl_row_result *row, fl_objective objective) {
    return fl_objective_value(objective, row->score.energy_j, row->score.makespan_s);
}

void fl_best_known(fl_row_result *row, size_t count, fl_objective objective) {
    size_t best = count, clairvoyant = count;
    for (size_t i = 0; i < count; i++) {
        const double regret = row[i].score.regret_clairvoyant_j;
        if (!strcmp(row[i].policy, "baseline:clairvoyant"))
            clairvoyant = i;
        if (!isnan(regret) && (best == count || regret < row[best].score.regret_clairvoyant_j))
            best = i;
    }
    if (best == count)
        return;
    const double least = fmin(row[best].score.regret_clairvoyant_j, 0), reference = value(&row[best], objective);
    for (size_t i = 0; least < 0 && i < count; i++) {
        fl_score *s = &row[i].score;
        s->regret_clairvoyant_j -= least; /* NAN stays */
        s->regret_clairvoyant_pct = reference > 0 ? 100 * s->regret_clairvoyant_j / reference : (double)NAN;
    }
    const double found = clairvoyant < count ? value(&row[clairvoyant], objective) : reference - least;
    if (1 - reference / found > TELLING)
        note(&row[best], 1 - reference / found);
}

void fl_best_known_alone(fl_row_result *row, fl_objective objective) {
    fl_score *s = &row->score;
    const double regret = s->regret_clairvoyant_j, own = value(row, objective), share = regret / (regret - own);
    const size_t used = strlen(row->note);
    if (!(regret < 0))
        return;
    s->regret_clairvoyant_j = s->regret_clairvoyant_pct = 0;
    if (!(share > TELLING))
        return;
    s->regret_clairvoyant_j = s->regret_clairvoyant_pct = NAN;
    fl_row_count_regrets(row);
    snprintf(row->note + used, sizeof row->note - used, "%s%.3g %% below what the regrets of this file are against",
             used ? "; " : "", 100 * share);
}

void fl_best_known_print(const fl_row_result *row, size_t count, FILE *out) {
    double widest = -1;
    for (size_t i = 0; i < count; i++)
        if (row[i].oracle_gap_pct > widest)
            widest = row[i].oracle_gap_pct;
    if (widest >= 0)
        fprintf(out, "clairvoyant: certified; at the same clocks no schedule is better by more than %.2g %%\n", widest);
    for (size_t i = 0; i < count; i++)
        if (strstr(row[i].note, "best known"))
            fprintf(out, "note: %s, %s: %s\n", row[i].workload, row[i].policy, row[i].note);
}

/* ---- the risk of a fitted model ---- */

fl_status fl_risk_check(const fl_scenes *scenes, double bound, double risk, fl_diag *d) {
    if (!(risk > 0))
        return FL_OK;
    if (isinf(bound))
        return fl_refuse(d, "--risk is the chance to break --bound, expected --bound as well");
    for (size_t i = 0; i < scenes->count; i++)
        if (!scenes->item[i]->stated.count)
            return fl_fail(
                d, FL_BAD_INPUT, scenes->item[i]->source, 0, 0,
                "%s: --risk needs the error of the model, which is unknown, expected --model fitted, or a sweep that "
                "foldline fit workload predicted",
                scenes->item[i]->w->name);
    return FL_OK;
}

static fl_setting_clocks default_of(const fl_scene *s) {
    const fl_device *dev = &s->platform.node.device[s->platform.node.gpu[0]];
    return (fl_setting_clocks){dev->default_sm_mhz, dev->default_mem_mhz, 0};
}

static double chance_at(const fl_scene *s, const fl_choice *at, double bound) {
    return fl_stated_chance(&s->stated, (fl_setting_clocks){at->sm_mhz, at->mem_mhz, 0}, default_of(s), bound);
}

size_t fl_risk_keep(const fl_scene *s, double bound, double risk, fl_static_point *point, size_t count) {
    size_t kept = 0;
    if (!(risk > 0))
        return count;
    for (size_t i = 0; i < count; i++)
        if (chance_at(s, &point[i].at, bound) <= risk)
            point[kept++] = point[i];
    return kept;
}

fl_risk fl_risk_at(const fl_scene *s, const fl_choice *at, double bound, fl_objective objective) {
    const double delay = objective == FL_MIN_ENERGY ? 1 : objective == FL_MIN_EDP ? 2 : 3;
    return (fl_risk){
        chance_at(s, at, bound),
        fl_stated_regret(&s->stated, (fl_setting_clocks){at->sm_mhz, at->mem_mhz, 0}, default_of(s), bound, delay)};
}

/* ---- static clocks under bounds ---- */

fl_status fl_static_promised(fl_scene *s, const fl_run_result *standard, const fl_promised_under *under,
                             const fl_choice *at, fl_static_point *point, fl_row_result *row, fl_diag *d) {
    const fl_reference ref = {.w = s->w, .standard = standard, .bound = under->bound};
    fl_run_options run = {.w = s->w, .rates = s->rates, .spec = &s->platform.node, .facts = &s->facts};
    fl_run_result r;
    *row = (fl_row_result){.seed = s->facts.seed};
    fl_kept_watch(&row->kept, under->watch_ns, &run);
    fl_status status = fl_static_result(&run, at, &r, d);
    if (status)
        return status;
    *point = fl_static_point_of(&r, at);
    status = fl_score_run(&r, &ref, &row->score, d);
    fl_row_fill(row, s, &r, "baseline:static", standard->energy_j);
    fl_row_finish(row, under->objective,
                  fl_objective_value(under->objective, standard->energy_j, standard->makespan_s));
    if (row->kept)
        fl_kept_take(row->kept, &r);
    else
        fl_run_result_free(&r);
    fl_promises_judge(under->promises, under->bound, row);
    return status;
}

size_t fl_static_keep(const fl_row_result *row, fl_static_point *point, size_t count) {
    size_t kept = 0;
    for (size_t k = 0; k < count; k++)
        if (!(row[k].broken >> 1) && !row[k].unknown)
            point[kept++] = point[k];
    return kept;
}
