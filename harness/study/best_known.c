#include "harness/study/best_known.h"

#include <math.h>
#include <string.h>

/* Less than this share below the reference is the rounding of picoseconds, of which no note is made. */
#define TELLING 1e-6

static void note(fl_row_result *row, double share) {
    const size_t used = strlen(row->note);
    snprintf(row->note + used, sizeof row->note - used, "%sbest known, %.3g %% below the clairvoyant schedule",
             used ? "; " : "", 100 * share);
}

void fl_best_known(fl_row_result *row, size_t count, fl_objective objective) {
    double least = 0;
    size_t best = count;
    for (size_t i = 0; i < count; i++)
        if (row[i].score.regret_clairvoyant_j < least) {
            least = row[i].score.regret_clairvoyant_j;
            best = i;
        }
    if (best == count)
        return;
    const double value = fl_objective_value(objective, row[best].score.energy_j, row[best].score.makespan_s);
    for (size_t i = 0; i < count; i++) {
        fl_score *s = &row[i].score;
        s->regret_clairvoyant_j -= least; /* NAN stays */
        s->regret_clairvoyant_pct = value > 0 ? 100 * s->regret_clairvoyant_j / value : (double)NAN;
    }
    const double share = -least / (value - least);
    if (share > TELLING)
        note(&row[best], share);
}

void fl_best_known_print(const fl_row_result *row, size_t count, FILE *out) {
    double widest = -1;
    for (size_t i = 0; i < count; i++)
        if (row[i].oracle_gap_pct > widest)
            widest = row[i].oracle_gap_pct;
    if (widest >= 0)
        fprintf(out, "clairvoyant: no schedule is better by more than %.2g %% (certified)\n", widest);
    for (size_t i = 0; i < count; i++)
        if (strstr(row[i].note, "best known"))
            fprintf(out, "note: %s, %s: %s\n", row[i].workload, row[i].policy, row[i].note);
}
