#include "harness/study/comparison.h"

#include "harness/base/grid.h"
#include "harness/study/broken_out.h"
#include "traces/writing.h"

#include <math.h>
#include <string.h>

fl_status fl_comparison_write(const fl_comparison *c, const char *path, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d ? d->status : FL_IO;
    fl_row_head(fl_output_file(o));
    for (size_t i = 0; i < c->count; i++)
        fl_row_put(fl_output_file(o), &c->row[i]);
    return fl_output_commit(o, d);
}

static void add_percent(fl_grid *g, double value, int digits) {
    if (isfinite(value))
        fl_grid_add(g, "%.*f", digits, value);
    else
        fl_grid_add(g, "n/a");
}

static void add_number(fl_grid *g, double value) {
    if (isfinite(value))
        fl_grid_add(g, "%.4g", value);
    else
        fl_grid_add(g, "n/a");
}

static bool any_requests(const fl_comparison *c) {
    for (size_t i = 0; i < c->mean_first; i++)
        if (isfinite(c->row[i].latency.mean_s))
            return true;
    return false;
}

static bool any_stated(const fl_comparison *c) {
    for (size_t i = 0; i < c->mean_first; i++)
        if (isfinite(c->row[i].bound_break_chance))
            return true;
    return false;
}

static bool several_platforms(const fl_comparison *c) {
    for (size_t i = 1; i < c->mean_first; i++)
        if (c->row[i].platform && c->row[0].platform && strcmp(c->row[i].platform, c->row[0].platform) != 0)
            return true;
    return false;
}

static void note_overload(const fl_comparison *c, FILE *out) {
    size_t over = 0, all = 0;
    for (size_t i = 0; i < c->mean_first; i++) {
        all += isfinite(c->row[i].latency.mean_s);
        over += c->row[i].overloaded;
    }
    if (over)
        fprintf(out,
                "\nnote: %zu of %zu rows are overloaded (offered_load of 1 or more): requests arrive faster than "
                "they are served,\nlatencies grow through the run and tell its length\n",
                over, all);
}

/* An oracle, or a policy for some workloads only: its mean does not compare with the others'. */
static void note_partial(const fl_comparison *c, FILE *out) {
    size_t most = 0, told = 0;
    for (size_t i = c->mean_first; i < c->count; i++)
        most = c->row[i].workloads > most ? c->row[i].workloads : most;
    for (size_t i = c->mean_first; i < c->count; i++)
        if (c->row[i].workloads < most)
            fprintf(out, "%s%s %zu",
                    told++ ? ", " : "\nnote: means over fewer workloads than the others: ", c->row[i].policy,
                    c->row[i].workloads);
    if (told)
        fprintf(out, " (of %zu)\n", most);
}

void fl_comparison_print(const fl_comparison *c, const fl_comparison_options *o, bool each, FILE *out) {
    static const char *const head[] = {"policy",         "energy J",    "saving %",         "time s",   "slowdown %",
                                       "worst window %", "vs static %", "vs clairvoyant %", "violated", "switches"};
    static const char *const sure[] = {"breaks the bound %", "regret expected %"};
    static const char *const served[] = {"latency s", "p95 s", "p99 s", "J/request"};
    const bool requests = any_requests(c), stated = any_stated(c);
    const bool platforms = each && several_platforms(c);
    fl_grid g = {.columns = sizeof head / sizeof *head + each + platforms + (stated ? 2 : 0) + (requests ? 4 : 0)};
    size_t first = each ? 0 : c->mean_first, last = each ? c->mean_first : c->count;
    if (platforms)
        fl_grid_add(&g, "platform");
    if (each)
        fl_grid_add(&g, "workload");
    for (size_t k = 0; k < sizeof head / sizeof *head; k++)
        fl_grid_add(&g, "%s", head[k]);
    for (size_t k = 0; stated && k < 2; k++)
        fl_grid_add(&g, "%s", sure[k]);
    for (size_t k = 0; requests && k < 4; k++)
        fl_grid_add(&g, "%s", served[k]);
    for (size_t i = first; i < last; i++) {
        const fl_row_result *r = &c->row[i];
        if (platforms)
            fl_grid_add(&g, "%s", r->platform);
        if (each)
            fl_grid_add(&g, "%s", r->workload);
        fl_grid_add(&g, "%s", r->policy);
        fl_grid_add(&g, "%.6g", r->score.energy_j);
        add_percent(&g, r->energy_saving_pct, 2);
        fl_grid_add(&g, "%.5g", r->score.makespan_s);
        add_percent(&g, 100 * r->score.slowdown, 2);
        add_percent(&g, 100 * r->score.worst_window_slowdown, 2);
        add_percent(&g, r->score.regret_static_pct, 2);
        add_percent(&g, r->score.regret_clairvoyant_pct, 2);
        if (each)
            fl_grid_add(&g, "%s", r->violated > 0 ? "yes" : "no");
        else
            fl_grid_add(&g, "%.0f", r->violated);
        fl_grid_add(&g, "%llu", (unsigned long long)r->score.switches);
        if (stated) {
            add_percent(&g, 100 * r->bound_break_chance, 1);
            add_percent(&g, 100 * r->expected_regret, 2);
        }
        if (!requests)
            continue;
        add_number(&g, r->latency.mean_s);
        add_number(&g, r->latency.p95_s);
        add_number(&g, r->latency.p99_s);
        add_number(&g, r->energy_per_request_j);
    }
    const size_t draws = (size_t)o->draws;
    size_t plain = 0; /* a mean is over the workloads of one variant */
    for (size_t i = 0; i < o->scenes->count; i++)
        plain += !o->scenes->item[i]->variant;
    const size_t workloads = (each ? o->scenes->count : plain) / draws;
    fprintf(out, "%s %zu workload%s", each ? "each of" : "mean over", workloads, workloads == 1 ? "" : "s");
    if (o->seeds * draws > 1)
        fprintf(out, " and %zu seeds", o->seeds * draws);
    if (isfinite(o->bound))
        fprintf(out, ", bound on the slowdown %g %%", 100 * o->bound);
    fl_promises_put(o->promises, out);
    fprintf(out, ", objective %s\n\n", fl_objective_names[o->objective]);
    fl_grid_print(&g, 1u + each + platforms, out);
    fl_broken_print(c, o, out);
    if (!each)
        note_partial(c, out);
    if (requests)
        note_overload(c, out);
}
