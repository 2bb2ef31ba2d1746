/* The frontier's energy at the times of measured plans. */
#include "harness/plan/rows.h"

#include <math.h>

static bool judged(const fl_planned *r) { return !isnan(r->row[r->standard].judge_s); }

static double time_of(const fl_planned *r, const fl_planned_row *row) { return judged(r) ? row->judge_s : row->time_s; }

static double energy_of(const fl_planned *r, const fl_planned_row *row) {
    return judged(r) ? row->judge_j : row->energy_j;
}

/* Between the two points of the frontier around that time, in a line; what the slowest takes beyond it; NAN before the
 * fastest. A judge may see two points in another order, so that all pairs of neighbours are looked at. */
static double frontier_at(const fl_planned *r, double time_s) {
    double least = NAN;
    const fl_planned_row *last = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const fl_planned_row *row = &r->row[i];
        if (row->kind != FL_PLANNED_PLAN)
            continue;
        if (time_of(r, row) <= time_s)
            least = fmin(least, energy_of(r, row));
        if (last && time_of(r, last) <= time_s && time_of(r, row) > time_s) {
            const double share = (time_s - time_of(r, last)) / (time_of(r, row) - time_of(r, last));
            least = fmin(least, energy_of(r, last) + share * (energy_of(r, row) - energy_of(r, last)));
        }
        last = row;
    }
    return least;
}

static fl_planned_against against(const fl_planned *r, bool measured) {
    fl_planned_against a = {.worst_pct = NAN};
    double sum = 0;
    for (size_t i = 0; i < r->count; i++) {
        const fl_planned_row *row = &r->row[i];
        if (row->kind != FL_PLANNED_MEASURED || row->warm_up)
            continue;
        const double there = frontier_at(r, measured ? row->measured_s : time_of(r, row)),
                     pct = 100 * (there / (measured ? row->measured_j : energy_of(r, row)) - 1);
        if (isnan(there)) {
            a.faster++;
            continue;
        }
        a.plans++;
        a.below += pct <= 0;
        sum += pct;
        a.worst_pct = fmax(a.worst_pct, pct);
    }
    a.mean_pct = a.plans ? sum / (double)a.plans : (double)NAN;
    return a;
}

fl_planned_against fl_planned_as_predicted(const fl_planned *r) { return against(r, false); }
fl_planned_against fl_planned_as_measured(const fl_planned *r) { return against(r, true); }
