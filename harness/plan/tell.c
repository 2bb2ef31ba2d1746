/* Prints what `foldline plan` and `foldline fit pipeline` found. */
#include "harness/plan/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/study/trial/trial.h"
#include "sim/oracle/oracle.h"
#include "sim/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The frontier's energy at the times of the measured plans. */
typedef struct fl_planned_against {
    size_t plans, below;        /* compared; and those at whose time the frontier takes no more energy */
    size_t faster;              /* faster than the whole frontier, so not compared */
    double mean_pct, worst_pct; /* frontier above the measured plan: negative where it takes less; NAN */
} fl_planned_against;

/* The frontier's energy at the times of measured plans. */

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

/* Frontier and measured plans as predicted, by the judge where there is one; without `warm_up`. */
static fl_planned_against fl_planned_as_predicted(const fl_planned *r) { return against(r, false); }
/* The frontier as predicted, against what was measured. */
static fl_planned_against fl_planned_as_measured(const fl_planned *r) { return against(r, true); }

/* ---- the rows of a plan ---- */

static double gap_pct(const fl_planned_row *row) { return 100 * (row->energy_j / row->bound_j - 1); }

static double slowdown_pct(const fl_planned *r, const fl_planned_row *row) {
    return 100 * (row->time_s / r->row[r->standard].time_s - 1);
}

static double saving_pct(const fl_planned *r, const fl_planned_row *row) {
    return 100 * (1 - row->energy_j / r->row[r->standard].energy_j);
}

/* ---- text ---- */

static void add_row(fl_grid *g, const fl_planned *r, const fl_planned_row *row, bool measured, bool wide) {
    static const char *const what[] = {"plan", "static", "a clock per rank", "default", "measured"};
    if (row->number < 0)
        fl_grid_add(g, "%s", what[row->kind]);
    else
        fl_grid_add(g, "%s %lld%s", what[row->kind], (long long)row->number,
                    row->kind == FL_PLANNED_STATIC ? " MHz" : "");
    fl_grid_number(g, row->energy_j, 1, "");
    fl_grid_number(g, saving_pct(r, row), 2, "");
    fl_grid_number(g, row->time_s, 4, "");
    fl_grid_number(g, slowdown_pct(r, row), 2, "");
    if (wide) {
        fl_grid_number(g, row->bound_j, 1, "");
        fl_grid_number(g, gap_pct(row), 2, "");
    }
    if (judged(r)) {
        fl_grid_number(g, row->judge_j, 1, "");
        fl_grid_number(g, row->judge_s, 4, "");
    }
    if (measured) {
        fl_grid_number(g, row->measured_j, 1, "");
        fl_grid_number(g, row->measured_s, 4, "");
    }
}

static void add_heads(fl_grid *g, const fl_planned *r, bool measured, bool wide) {
    fl_grid_column(g, "clocks", "a plan by its number; or one clock, one per rank, the default");
    fl_grid_column(g, "energy J", "energy of an iteration [energy_j]");
    fl_grid_column(g, "saved %", "energy saved against the default [saving_pct]");
    fl_grid_column(g, "time s", "time of an iteration [time_s]");
    fl_grid_column(g, "slowdown %", "time above the default [slowdown_pct]");
    if (wide) {
        fl_grid_column(g, "bound J", "no plan of this time takes less energy [bound_j]");
        fl_grid_column(g, "gap %", "energy above that bound [gap_pct]");
    }
    if (judged(r)) {
        fl_grid_column(g, "judge J", "energy by the pipeline of --judge [judge_energy_j]");
        fl_grid_column(g, "judge s", "time by it [judge_time_s]");
    }
    if (measured) {
        fl_grid_column(g, "measured J", "energy where the plan was executed [measured_energy_j]");
        fl_grid_column(g, "measured s", "time there [measured_time_s]");
    }
}

static void print_against(const char *what, const fl_planned_against *a) {
    printf("%s: at or below %zu of %zu measured plans at equal time", what, a->below, a->plans);
    if (a->plans)
        printf(", %+.2f %% in the mean, %+.2f %% at worst", a->mean_pct, a->worst_pct);
    if (a->faster)
        printf("; %zu %s faster than the frontier", a->faster, a->faster == 1 ? "is" : "are");
    putchar('\n');
}

static void print_best(const fl_planned *r, fl_objective objective) {
    const fl_planned_row *row = &r->row[r->chosen];
    const double least = fl_plan_product_bound(&r->pl, objective == FL_MIN_EDP ? 1 : 2),
                 value = fl_objective_value(objective, row->energy_j, row->time_s);
    printf("least %s: plan %lld, %.6g %s; no plan has less than %.6g, gap %.2f %%\n", fl_objective_title[objective],
           (long long)row->number, value, fl_objective_unit[objective], least, 100 * (value / least - 1));
}

void fl_plan_tell_text(const fl_planned *r, const fl_plan_ask *ask, bool wide) {
    const bool measured = ask->frontier && ask->measured;
    fl_grid g = {0};
    add_heads(&g, r, measured, wide);
    if (ask->frontier)
        for (size_t i = 0; i < r->count; i++)
            add_row(&g, r, &r->row[i], measured, wide);
    static const fl_planned_kind few[] = {FL_PLANNED_STATIC, FL_PLANNED_RANK};
    if (!ask->frontier)
        add_row(&g, r, &r->row[r->standard], false, wide);
    for (size_t k = 0; k < 2 && !ask->frontier; k++) {
        const size_t best = fl_planned_best(r, few[k], ask->objective);
        if (best < r->count)
            add_row(&g, r, &r->row[best], false, wide);
    }
    if (!ask->frontier)
        add_row(&g, r, &r->row[r->chosen], false, wide);
    fl_grid_print(&g, 1, stdout);
    printf("\n%u ranks, %zu forwards and backwards; all at their fastest take %.4f s\n", r->g.p->ranks, r->g.part_count,
           r->pl.fastest_s);
    if (ask->objective != FL_MIN_ENERGY)
        print_best(r, ask->objective);
    if (ask->measured) {
        const fl_planned_against predicted = fl_planned_as_predicted(r), was = fl_planned_as_measured(r);
        print_against(judged(r) ? "as the judge predicts both" : "as predicted, both", &predicted);
        print_against(judged(r) ? "as the judge predicts, against what was measured"
                                : "as predicted, against what was measured",
                      &was);
    }
}

/* ---- JSON ---- */

static void add_against(cJSON *root, const char *name, const fl_planned_against *a) {
    cJSON *o = cJSON_AddObjectToObject(root, name);
    fl_json_add_real(o, "plans", (double)a->plans);
    fl_json_add_real(o, "at_or_below", (double)a->below);
    fl_json_add_real(o, "faster", (double)a->faster);
    fl_json_add_real(o, "mean_pct", a->mean_pct);
    fl_json_add_real(o, "worst_pct", a->worst_pct);
}

void fl_plan_tell_json(const fl_planned *r, const fl_plan_ask *ask) {
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < r->count; i++) {
        const fl_planned_row *row = &r->row[i];
        cJSON *o = fl_json_add_row(rows);
        cJSON_AddStringToObject(o, "kind", fl_planned_kind_name[row->kind]);
        fl_json_add_real(o, "plan", row->number < 0 ? (double)NAN : (double)row->number);
        fl_json_add_real(o, "time_s", row->time_s);
        fl_json_add_real(o, "energy_j", row->energy_j);
        fl_json_add_real(o, "bound_j", row->bound_j);
        fl_json_add_real(o, "gap_pct", gap_pct(row));
        fl_json_add_real(o, "judge_time_s", row->judge_s);
        fl_json_add_real(o, "judge_energy_j", row->judge_j);
        fl_json_add_real(o, "measured_time_s", row->measured_s);
        fl_json_add_real(o, "measured_energy_j", row->measured_j);
    }
    fl_json_add_real(root, "chosen", (double)r->chosen);
    fl_json_add_real(root, "default", (double)r->standard);
    fl_json_add_real(root, "fastest_s", r->pl.fastest_s);
    fl_json_add_real(root, "parts", (double)r->g.part_count);
    fl_json_add_real(root, "prices", (double)r->pl.line_count);
    if (ask->measured) {
        const fl_planned_against predicted = fl_planned_as_predicted(r), was = fl_planned_as_measured(r);
        add_against(root, "as_predicted", &predicted);
        add_against(root, "as_measured", &was);
    }
    fl_json_tell(root);
}

/* ---- CSV ---- */

void fl_plan_tell_csv(const fl_planned *r, FILE *out) {
    fputs("kind,plan,time_s,energy_j,bound_j,gap_pct,slowdown_pct,saving_pct,judge_time_s,judge_energy_j,"
          "measured_time_s,measured_energy_j\n",
          out);
    for (size_t i = 0; i < r->count; i++) {
        const fl_planned_row *row = &r->row[i];
        const double value[] = {row->number < 0 ? (double)NAN : (double)row->number,
                                row->time_s,
                                row->energy_j,
                                row->bound_j,
                                gap_pct(row),
                                slowdown_pct(r, row),
                                saving_pct(r, row),
                                row->judge_s,
                                row->judge_j,
                                row->measured_s,
                                row->measured_j};
        fputs(fl_planned_kind_name[row->kind], out);
        for (size_t k = 0; k < sizeof value / sizeof *value; k++) {
            char text[32];
            fprintf(out, ",%s", fl_cell_text(value[k], text));
        }
        fputc('\n', out);
    }
}
