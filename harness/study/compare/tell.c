/* Prints a comparison: tables, bounds that were broken, servers. */
#include "harness/study/compare/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "policies/policy.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- bounds that were broken ---- */

typedef struct tally { /* of a policy, by bit */
    const fl_row_result *first;
    size_t runs, broken[FL_PROMISES_MAX + 1], unknown[FL_PROMISES_MAX + 1];
} tally;

static tally count(const fl_comparison *c, uint32_t mean, size_t bits) {
    tally t = {0};
    for (size_t i = 0; i < c->mean_first; i++) {
        if (c->mean[i] != mean)
            continue;
        t.first = t.first ? t.first : &c->row[i];
        t.runs++;
        for (size_t bit = 0; bit < bits; bit++) {
            t.broken[bit] += c->row[i].broken >> bit & 1;
            t.unknown[bit] += c->row[i].unknown >> bit & 1;
        }
    }
    return t;
}

static void print_policy(const tally *t, const fl_comparison_options *o, FILE *out) {
    const fl_row_result *row = t->first;
    char text[FL_PROMISE_TEXT];
    size_t told = 0;
    for (size_t bit = 0; bit <= o->promises->count; bit++) {
        const struct {
            size_t runs;
            const char *word;
        } what[] = {{t->broken[bit], "breaks"}, {t->unknown[bit], "has no value for"}};
        for (size_t k = 0; k < FL_COUNT(what); k++) {
            if (!what[k].runs)
                continue;
            if (!told++)
                fprintf(out, "  %s%s%s%s", row->policy, row->variant ? " [" : "", row->variant ? row->variant : "",
                        row->variant ? "]" : "");
            fprintf(out, "%s %s %s", told > 1 ? "," : "", what[k].word,
                    fl_promises_name(o->promises, o->bound, bit, text));
            if (t->runs > 1)
                fprintf(out, " in %zu of %zu runs", what[k].runs, t->runs);
        }
    }
    if (told)
        fputc('\n', out);
}

/* Scenes that have no baseline:static: no static clock is allowed there. *all: how many scenes there are; *first: the
 * first without one, NULL = none. */
/* A scene's rows begin with the default's; the static clock's stands right behind it. */
static size_t fl_scenes_without_static(const fl_comparison *c, size_t *all, const char **first) {
    size_t none = 0;
    *all = 0;
    *first = NULL;
    for (size_t i = 0; i < c->mean_first; i++) {
        if (strcmp(c->row[i].policy, "baseline:default") != 0)
            continue;
        ++*all;
        if (i + 1 < c->mean_first && !strcmp(c->row[i + 1].policy, "baseline:static"))
            continue;
        if (!none++)
            *first = c->row[i].workload;
    }
    return none;
}

static void print_none(const fl_comparison *c, FILE *out) {
    const char *first;
    size_t scenes;
    const size_t none = fl_scenes_without_static(c, &scenes, &first);
    if (none)
        fprintf(out, "no static clock holds all bounds on %zu of %zu: %s%s\n", none, scenes, first,
                none > 1 ? " and others" : "");
}

void fl_broken_print(const fl_comparison *c, const fl_comparison_options *o, FILE *out) {
    size_t violated = 0;
    if (!o->promises || !o->promises->count)
        return;
    for (size_t i = 0; i < c->mean_first; i++)
        violated += c->row[i].violated > 0;
    fprintf(out, violated ? "\nviolated:\n" : "\nevery run holds all bounds\n");
    for (uint32_t k = 0; c->mean && k < c->count - c->mean_first; k++) {
        const tally t = count(c, k, o->promises->count + 1);
        print_policy(&t, o, out);
    }
    if (o->oracles)
        print_none(c, out);
}

/* ---- the table of servers ---- */

typedef struct column {
    const char *head, *name;
    int digits;
    bool percent; /* with so many decimals, else significant digits */
} column;

static const column columns[] = {{"saving %", "energy_saving_pct", 2, true},
                                 {"vs static %", "saving_static_pct", 2, true},
                                 {"at most %", "saving_most_pct", 1, true},
                                 {"J/token", "energy_per_token_j", 4, false},
                                 {"J/request", "energy_per_request_j", 4, false},
                                 {"TTFT p50 s", "ttft_p50_s", 3, false},
                                 {"p99 s", "ttft_p99_s", 3, false},
                                 {"TBT p50 s", "tbt_p50_s", 3, false},
                                 {"p99 s", "tbt_p99_s", 3, false},
                                 {"end to end p99 s", "latency_p99_s", 3, false},
                                 {"TTFT missed %", "ttft_missed_pct", 2, true},
                                 {"TBT missed %", "tbt_missed_pct", 2, true},
                                 {"goodput/s", "goodput_rps", 3, false},
                                 {"preemptions", "preemptions", 4, false},
                                 {"worst minute %", "worst_minute_missed_pct", 1, true},
                                 {"sets", "sets", 4, false}};

/* True where the rows are of servers; scenes with and without servers do not mix (fl_scene_check). */
static bool fl_serving_table_is_for(const fl_comparison *c) {
    for (size_t i = 0; i < c->mean_first; i++)
        if (isfinite(c->row[i].energy_per_token_j))
            return true;
    return false;
}

/* Behind the columns that name a row. */
static void fl_serving_table_heads(fl_grid *g) {
    fl_grid_add(g, "energy J");
    for (size_t k = 0; k < FL_COUNT(columns); k++)
        fl_grid_add(g, "%s", columns[k].head);
    fl_grid_add(g, "violated");
}

/* each: a row of one workload, else a mean. */
static void fl_serving_table_row(fl_grid *g, const fl_row_result *r, bool each) {
    fl_grid_add(g, "%.6g", r->score.energy_j);
    for (size_t k = 0; k < FL_COUNT(columns); k++) {
        const column *c = &columns[k];
        double value = NAN;
        fl_row_value(r, c->name, &value, NULL); /* there is such a column */
        if (!isfinite(value))
            fl_grid_add(g, "n/a");
        else if (c->percent)
            fl_grid_add(g, "%.*f%s", c->digits, value, fl_row_partial(r, c->name) ? "*" : "");
        else
            fl_grid_add(g, "%.*g%s", c->digits, value, fl_row_partial(r, c->name) ? "*" : "");
    }
    if (each)
        fl_grid_add(g, "%s", r->violated > 0 ? "yes" : "no");
    else
        fl_grid_add(g, "%.0f/%llu", r->violated, (unsigned long long)r->rows);
}

/* What the savings of the table are against. */
static void fl_serving_table_note(const fl_comparison *c, const fl_comparison_options *o, FILE *out) {
    size_t chosen = 0, all = 0;
    for (size_t i = 0; i < c->mean_first; i++) {
        chosen += !strcmp(c->row[i].policy, "baseline:static");
        all += !strcmp(c->row[i].policy, "baseline:default");
    }
    fputs("\nsaving % is against the driver's default clock, which is the top clock unless the platform says "
          "otherwise;\n",
          out);
    if (o->oracles)
        fputs("at most %: no clocks save more, whatever the latency: a lower bound on what these requests cost\n", out);
    if (!o->oracles)
        fputs("vs static % has no value, for no references were asked for\n", out);
    else if (o->promises && o->promises->count)
        fputs("vs static % is the saving against baseline:static, the best static clock of the same servers that holds "
              "the bounds above\n",
              out);
    else
        fputs(
            "vs static % is the saving against baseline:static, the best static clock of the same servers; no latency "
            "was bounded (--ttft, --tbt)\n",
            out);
    if (o->oracles && chosen < all)
        fprintf(out, "no static clock holds the bounds in %zu of %zu workloads\n", all - chosen, all);
}

/* ---- the table of policies ---- */

fl_status fl_comparison_write(const fl_comparison *c, const char *path, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d ? d->status : FL_IO;
    fl_row_head(fl_output_file(o));
    for (size_t i = 0; i < c->count; i++)
        fl_row_put(fl_output_file(o), &c->row[i]);
    return fl_output_commit(o, d);
}

/* partial: a mean over some of its rows, which a note below the table explains. */
static void add_percent(fl_grid *g, double value, int digits, bool partial) {
    if (isfinite(value))
        fl_grid_add(g, "%.*f%s", digits, value, partial ? "*" : "");
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
                "\n"
                "note: %zu of %zu rows are overloaded (offered_load of 1 or more): requests arrive faster than they "
                "are served, so\n"
                "latencies grow with the length of the run\n",
                over, all);
}

/* Workloads that have no best static clock: a row that is missing would go unseen. */
static void note_risk(const fl_comparison *c, const fl_comparison_options *o, FILE *out) {
    const char *first;
    size_t all;
    const size_t without = fl_scenes_without_static(c, &all, &first);
    if (o->oracles && o->risk > 0 && without && !(o->promises && o->promises->count)) /* else inside.h tells */
        fprintf(out,
                "\n"
                "note: no static clock keeps the chance of breaking the bound at %g %% or less in %zu of %zu "
                "workloads, so these have no baseline:static\n",
                100 * o->risk, without, all);
}

static bool is_baseline(const fl_row_result *r) { return !strncmp(r->policy, "baseline:", 9); }

/* An oracle, or a policy for some workloads only: its mean does not compare with the others'. Baselines have a row for
 * each workload and draw, policies one for each seed besides. */
static void note_partial(const fl_comparison *c, FILE *out) {
    uint64_t most[2] = {0, 0};
    size_t told = 0;
    for (size_t i = c->mean_first; i < c->count; i++) {
        uint64_t *of = &most[is_baseline(&c->row[i])];
        *of = c->row[i].rows > *of ? c->row[i].rows : *of;
    }
    for (size_t i = c->mean_first; i < c->count; i++) {
        const fl_row_result *r = &c->row[i];
        if (r->rows < most[is_baseline(r)])
            fprintf(out, "%s%s %llu of %llu",
                    told++ ? ", " : "\nnote: these means cover fewer rows than the others: ", r->policy,
                    (unsigned long long)r->rows, (unsigned long long)most[is_baseline(r)]);
    }
    if (told)
        fputc('\n', out);
}

void fl_comparison_note_marks(const fl_comparison *c, FILE *out) {
    bool marked = false;
    for (size_t i = c->mean_first; i < c->count; i++)
        marked |= fl_row_any_partial(&c->row[i]);
    if (marked)
        fputs("\n* a mean over some of the rows, the others being n/a: a row above the bound has no regret. Energy and "
              "time are\n  means over all rows; --json and --csv say how many have a regret (regret_static_rows, "
              "regret_clairvoyant_rows)\n",
              out);
}

typedef struct table {
    fl_grid g;
    fl_objective objective;
    bool each, requests, stated, platforms;
    bool served; /* by servers of a language model, which have columns of their own */
} table;

static void add_heads(fl_grid *g, const table *t) {
    const char *title = fl_objective_title[t->objective];
    const bool other = t->objective != FL_MIN_ENERGY; /* what is minimised has columns of its own, in its unit */
    const char *of = other ? title : "", *space = other ? " " : "";
    if (t->platforms)
        fl_grid_add(g, "platform");
    if (t->each)
        fl_grid_add(g, "workload");
    fl_grid_add(g, "policy");
    if (t->served) {
        fl_serving_table_heads(g);
        return;
    }
    fl_grid_add(g, "energy J\tsaving %%");
    if (other) {
        fl_grid_add(g, "%s %s\t%s saving %%", title, fl_objective_unit[t->objective], title);
    }
    fl_grid_add(g, "time s\tslowdown %%\tworst window %%\t%s%svs static %%\t%s%svs clairvoyant %%\tviolated\tswitches",
                of, space, of, space);
    if (t->stated) {
        fl_grid_add(g, "breaks the bound %%\tregret expected %%");
    }
    static const char *const served[] = {"latency s", "p95 s", "p99 s", "J/request"};
    for (size_t k = 0; t->requests && k < sizeof served / sizeof *served; k++)
        fl_grid_add(g, "%s", served[k]);
}

static void add_row(fl_grid *g, const table *t, const fl_row_result *r) {
    if (t->platforms)
        fl_grid_add(g, "%s", r->platform);
    if (t->each)
        fl_grid_add(g, "%s", r->workload);
    fl_grid_add(g, "%s%s%s", r->policy, *r->clock ? " " : "", r->clock);
    if (t->served) {
        fl_serving_table_row(g, r, t->each);
        return;
    }
    fl_grid_add(g, "%.6g", r->score.energy_j);
    add_percent(g, r->energy_saving_pct, 2, false);
    if (t->objective != FL_MIN_ENERGY) {
        fl_grid_add(g, "%.6g", t->objective == FL_MIN_EDP ? r->score.edp : r->score.ed2p);
        add_percent(g, r->objective_saving_pct, 2, false);
    }
    fl_grid_add(g, "%.5g", r->score.makespan_s);
    add_percent(g, 100 * r->score.slowdown, 2, false);
    add_percent(g, 100 * r->score.worst_window_slowdown, 2, fl_row_partial(r, "worst_window_slowdown"));
    add_percent(g, r->score.regret_static_pct, 2, fl_row_partial(r, "regret_static_pct"));
    add_percent(g, r->score.regret_clairvoyant_pct, 2, fl_row_partial(r, "regret_clairvoyant_pct"));
    if (t->each)
        fl_grid_add(g, "%s", r->violated > 0 ? "yes" : "no");
    else
        fl_grid_add(g, "%.0f/%llu", r->violated, (unsigned long long)r->rows);
    fl_grid_add(g, "%llu", (unsigned long long)r->score.switches);
    if (t->stated) {
        add_percent(g, 100 * r->bound_break_chance, 1, fl_row_partial(r, "bound_break_chance"));
        add_percent(g, 100 * r->expected_regret, 2, fl_row_partial(r, "expected_regret"));
    }
    if (!t->requests)
        return;
    add_number(g, r->latency.mean_s);
    add_number(g, r->latency.p95_s);
    add_number(g, r->latency.p99_s);
    add_number(g, r->energy_per_request_j);
}

void fl_comparison_print(const fl_comparison *c, const fl_comparison_options *o, bool each, FILE *out) {
    table t = {.g = {.columns = 1},
               .objective = o->objective,
               .each = each,
               .requests = any_requests(c),
               .stated = any_stated(c),
               .served = fl_serving_table_is_for(c),
               .platforms = each && several_platforms(c)};
    add_heads(&t.g, &t);
    t.g.columns = t.g.columns ? t.g.count : 0; /* 0: a cell is missing, and so the table */
    for (size_t i = each ? 0 : c->mean_first; i < (each ? c->mean_first : c->count); i++)
        add_row(&t.g, &t, &c->row[i]);
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
    fl_grid_print(&t.g, 1u + each + t.platforms, out);
    if (t.served)
        fl_serving_table_note(c, o, out);
    fl_broken_print(c, o, out);
    note_risk(c, o, out);
    if (!each) {
        fl_comparison_note_marks(c, out);
        note_partial(c, out);
    }
    if (t.requests && !t.served)
        note_overload(c, out);
}
