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

/* Count the scenes that have no baseline:static, because no static clock is allowed there. *all: number of scenes;
 * *first: the first without one, NULL: none. A scene's rows begin with the default's, and the static clock's follows.
 */
static size_t scenes_without_static(const fl_comparison *c, size_t *all, const char **first) {
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
    const size_t none = scenes_without_static(c, &scenes, &first);
    if (none)
        fprintf(out, "no static clock holds all bounds on %zu of %zu: %s%s\n", none, scenes, first,
                none > 1 ? " and others" : "");
}

static void print_broken(const fl_comparison *c, const fl_comparison_options *o, FILE *out) {
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

/* ---- the table ---- */

fl_status fl_comparison_write(const fl_comparison *c, const char *path, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d ? d->status : FL_IO;
    fl_row_head(fl_output_file(o));
    for (size_t i = 0; i < c->count; i++)
        fl_row_put(fl_output_file(o), &c->row[i]);
    return fl_output_commit(o, d);
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
    fl_row_put_overload(over, all, out);
}

/* Workloads that have no best static clock: a row that is missing would go unseen. */
static void note_risk(const fl_comparison *c, const fl_comparison_options *o, FILE *out) {
    const char *first;
    size_t all;
    const size_t without = scenes_without_static(c, &all, &first);
    if (o->oracles && o->risk > 0 && without && !(o->promises && o->promises->count)) /* else print_none tells */
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

/* "baseline:static 1300 MHz", with the memory clock "1300/5001 MHz", of pools "1300 MHz, decode 900 MHz" */
static void add_policy(fl_grid *g, const fl_row_result *r) {
    static const char sm[] = "sm_mhz=", mem[] = ",mem_mhz=", decode[] = ",decode_sm_mhz=";
    const char *third = strstr(r->clock, decode), *second = strstr(r->clock, mem);
    const char *end = third ? third : r->clock + strlen(r->clock);
    const size_t first = (size_t)((second ? second : end) - r->clock);
    if (first < sizeof sm)
        fl_grid_add(g, "%s", r->policy);
    else
        fl_grid_add(g, "%s %.*s%s%.*s MHz%s%s%s", r->policy, (int)(first - strlen(sm)), r->clock + strlen(sm),
                    second ? "/" : "", second ? (int)(end - second) - (int)strlen(mem) : 0,
                    second ? second + strlen(mem) : "", third ? ", decode " : "", third ? third + strlen(decode) : "",
                    third ? " MHz" : "");
}

static void print_title(const fl_comparison *c, const fl_comparison_options *o, size_t workloads, size_t seeds,
                        bool each, FILE *out) {
    if (workloads == 1 && !each)
        fprintf(out, "%s", c->row[0].workload);
    else
        fprintf(out, "%s %zu workload%s", each ? "each of" : "mean over", workloads, workloads == 1 ? "" : "s");
    if (seeds > 1)
        fprintf(out, "%s %zu seeds", workloads == 1 || each ? ", mean over" : " and", seeds);
    fl_promises_put(o->promises, o->bound, o->objective, out);
    fputs("\n\n", out);
}

void fl_comparison_print(const fl_comparison *c, const fl_comparison_options *o, bool each, bool wide, FILE *out) {
    const size_t draws = o->draws > 1 ? (size_t)o->draws : 1;
    size_t plain = 0; /* a mean is over the workloads of one variant */
    for (size_t i = 0; i < o->scenes->count; i++)
        plain += !o->scenes->item[i]->variant;
    const size_t workloads = (each ? o->scenes->count : plain) / draws;
    const bool platforms = each && several_platforms(c);
    fl_comparison apart = {0};
    if (each)
        fl_comparison_apart(c, &apart);
    const fl_comparison *shown = each ? &apart : c;
    fl_row_table t = {.row = shown->row + shown->mean_first,
                      .count = shown->count - shown->mean_first,
                      .objective = o->objective,
                      .wide = wide,
                      .bounded = isfinite(o->bound) || (o->promises && o->promises->count),
                      .several = draws > 1 || (!each && workloads > 1),
                      .one = each || workloads == 1};
    fl_grid g = {0};
    if (platforms)
        fl_grid_column(&g, "platform", "the node");
    if (each)
        fl_grid_column(&g, "workload", "what ran [workload]");
    fl_grid_column(&g, "policy", "policies, and the baselines that they are compared with [policy]");
    fl_row_table_heads(&t, &g);
    for (size_t i = 0; i < t.count; i++) {
        if (platforms)
            fl_grid_add(&g, "%s", t.row[i].platform);
        if (each)
            fl_grid_add(&g, "%s", t.row[i].workload);
        add_policy(&g, &t.row[i]);
        fl_row_table_cells(&t, &g, &t.row[i]);
    }
    fl_row_table_marks(&t, &g);
    fl_scene_assumed(o->scenes, out);
    print_title(c, o, workloads, o->seeds * draws, each, out);
    fl_grid_print(&g, 1u + each + platforms, out);
    print_broken(c, o, out);
    if (o->oracles && !t.bounded && isfinite(t.row[0].energy_per_token_j))
        fputs("\nnote: no latency is bounded (--ttft, --tbt), so baseline:static saves most at any latency\n", out);
    note_risk(c, o, out);
    if (!each)
        note_partial(c, out);
    note_overload(c, out);
    fl_comparison_free(&apart);
}
