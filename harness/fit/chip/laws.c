/* Which law of time suits a workload: max-scaling, or a fold line of bandwidth. */
#include "harness/fit/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "models/chip/chip.h"
#include "models/fit/fit.h"
#include "models/math/math.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLOCKS_LEAST = 4 }; /* each is left out once, and a fold line needs three */

typedef struct laws { /* of one workload, at one memory clock */
    size_t clocks;
    double scaling_pct, fold_pct; /* mean errors on clocks left out in turn */
    fl_fold_line fold;
} laws;

static int ascending(const void *a, const void *b) {
    const fl_kernel_point *x = a, *y = b;
    return (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz);
}

/* The mean time at each SM clock, at the entity's highest memory clock. Returns how many clocks there are. */
static size_t points_of(const fl_fit_rows *r, const fl_fit_entity *e, fl_kernel_point *point) {
    double memory = 0;
    size_t n = 0, used = 0;
    for (size_t i = 0; i < e->count; i++)
        memory = isnan(r->row[e->first + i].time_s) ? memory : fmax(memory, r->row[e->first + i].mem_mhz);
    for (size_t i = 0; i < e->count; i++) {
        const fl_chip_row *row = &r->row[e->first + i];
        if (row->time_s > 0 && row->sm_mhz > 0 && row->mem_mhz >= memory)
            point[n++] = (fl_kernel_point){row->sm_mhz, row->time_s, 1};
    }
    qsort(point, n, sizeof *point, ascending);
    for (size_t i = 0; i < n; i++)
        if (used && point[i].sm_mhz <= point[used - 1].sm_mhz) {
            fl_kernel_point *p = &point[used - 1];
            p->time += (point[i].time - p->time) / ++p->weight;
        } else {
            point[used++] = point[i];
        }
    return used;
}

static bool laws_of(const fl_fit_rows *r, size_t entity, double sharpness, laws *out) {
    fl_kernel_point *point = fl_must(malloc((r->entity[entity].count + 1) * sizeof *point));
    fl_kernel_fit scaling;
    fl_fold_line_fit fold;
    out->clocks = r->latent ? 0 : points_of(r, &r->entity[entity], point);
    const bool known = out->clocks >= CLOCKS_LEAST &&
                       fl_fit_kernel(point, out->clocks, sharpness, &scaling) == FL_MODEL_OK &&
                       fl_fit_fold_line(point, out->clocks, &fold) == FL_MODEL_OK;
    free(point);
    if (!known)
        return false;
    out->scaling_pct = scaling.unseen_pct;
    out->fold_pct = fold.unseen_pct;
    out->fold = fold.line;
    return true;
}

/* Errors that print alike decide nothing: a workload that no clock changes suits both laws. */
static const char *better(const laws *law) {
    if (fabs(law->fold_pct - law->scaling_pct) < 0.005)
        return "either";
    return law->fold_pct < law->scaling_pct ? "fold line" : "max-scaling";
}

void fl_fit_laws_print(const fl_fit_rows *r, double sharpness) {
    static const char *const head[] = {"workload",   "clocks",   "max-scaling %", "fold line %",
                                       "better law", "fold_mhz", "fold_low",      "fold_high"};
    fl_grid g = FL_GRID_HEADED(head);
    char name[128];
    size_t known = 0;
    for (size_t i = 0; i < r->entities; i++) {
        laws law;
        if (!laws_of(r, i, sharpness, &law))
            continue;
        known++;
        fl_grid_add(&g, "%s\t%zu\t%.2f\t%.2f\t%s\t%.0f\t%.3f\t%.3f",
                    fl_fit_entity_name(&r->entity[i], name, sizeof name), law.clocks, law.scaling_pct, law.fold_pct,
                    better(&law), law.fold.fold_mhz, law.fold.low, law.fold.high);
    }
    if (known) {
        printf("\nlaws of time from all clocks at the highest memory clock; errors in percent on clocks left out in "
               "turn\n\n");
        fl_grid_print(&g, 1, stdout);
        printf("\nfold_mhz, fold_low, fold_high: columns of a kinds file, for a kernel with tc 0, tm 1, tl 0\n");
    } else {
        fl_grid_free(&g);
    }
}

void fl_fit_laws_json(const fl_fit_rows *r, size_t entity, double sharpness, cJSON *to) {
    laws law;
    if (!laws_of(r, entity, sharpness, &law))
        return;
    cJSON *w = cJSON_AddObjectToObject(to, "laws");
    cJSON_AddNumberToObject(w, "clocks", (double)law.clocks);
    cJSON_AddNumberToObject(w, "max_scaling_error_pct", law.scaling_pct);
    cJSON_AddNumberToObject(w, "fold_line_error_pct", law.fold_pct);
    cJSON_AddNumberToObject(w, "fold_mhz", law.fold.fold_mhz);
    cJSON_AddNumberToObject(w, "fold_low", law.fold.low);
    cJSON_AddNumberToObject(w, "fold_high", law.fold.high);
}
