#include "harness/study/trial/best_known.h"

#include <math.h>
#include <string.h>

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
