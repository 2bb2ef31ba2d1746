/* `foldline run --nodes`: many nodes under one budget, which is dealt out once, before they run. */
#include "harness/cmd/study/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/study/compare/compare.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MAX = 20000000, DEAL_ROUNDS = 2 }; /* a slowdown is no line over the limit, so it is asked twice */

typedef struct course { /* energy of a node's GPUs at the points of a regular grid, in J */
    double *joules;
    size_t points, room;
} course;

typedef struct member { /* one node */
    fl_scenes scenes;
    double least_w, most_w; /* limits of its boards together */
    double need_w;          /* mean power at the boards' own limits */
    double share_w;
    double weight; /* of a cut, by sensitivity: W for the same slowdown */
    fl_run_result standard, result;
    course course;
} member;

typedef struct work {
    const fl_nodes_how *how;
    const fl_spec *spec;
    const char **name; /* workloads, or traces, among which nodes are dealt out */
    size_t names;
    member *node;
    int64_t every_ps;
} work;

static fl_scene *scene_of(const member *m) { return m->scenes.item[0]; }

/* ---- one node ---- */

/* The workload of node i: a draw that depends on the seed and i alone. */
static size_t drawn(uint64_t seed, size_t i, size_t count) {
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + i;
    return (size_t)(fl_random_mix(&x) % count);
}

static fl_status open_node(void *user, size_t i, fl_diag *d) {
    const work *w = user;
    member *m = &w->node[i];
    fl_scene_options o = *w->how->scene;
    fl_texts traces = {0};
    const uint64_t seed = (uint64_t)(o.seed ? o.seed : FL_SEED_STANDARD);
    const char *chosen[] = {w->name[drawn(seed, i, w->names)]};
    const fl_texts one = {.item = chosen, .count = 1};
    if (w->how->traces->count)
        traces = one;
    else if (o.sweep || o.programs)
        o.only = one;
    o.seed = (int64_t)(seed + i);
    o.node.units = o.seed;
    fl_status s = fl_scenes_open(&o, &traces, &m->scenes, d);
    if (s)
        return s;
    const fl_node_spec *node = &scene_of(m)->platform.node;
    for (uint32_t g = 0; g < node->gpu_count; g++) {
        const fl_device *dev = &node->device[node->gpu[g]];
        if (dev->wall.period_ns <= 0 || !(dev->power_max_w > 0))
            return fl_refuse(d, "a budget of nodes: %s has no power limit that could hold a share", dev->name);
        m->least_w += dev->power_min_w;
        m->most_w += dev->power_default_w;
    }
    return FL_OK;
}

static fl_status note(void *user, const fl_node *node, int64_t t_ps, fl_diag *d) {
    course *c = user;
    fl_wide fj = 0;
    (void)t_ps;
    if (c->points == POINTS_MAX)
        return fl_refuse(d, "the nodes run too long for points so close, expected a greater --every-ms");
    for (uint32_t g = 0; g < fl_node_gpu_count(node); g++)
        fj += fl_node_gpu(node, g)->sums.energy_fj;
    fl_must_grow(&c->joules, &c->room, c->points + 1, sizeof *c->joules);
    c->joules[c->points++] = fl_joules(fj);
    return FL_OK;
}

/* Put limits of `watts` together on the boards, in equal parts. What a policy knows of its machine has them as the
 * default. */
static fl_status limit(member *m, double watts, fl_diag *d) {
    fl_scene *s = scene_of(m);
    fl_node_spec *node = &s->platform.node;
    const uint64_t seed = s->facts.seed;
    for (uint32_t g = 0; g < node->gpu_count; g++) {
        fl_device *dev = &node->device[node->gpu[g]];
        dev->power_default_w = fmax(dev->power_min_w, fmin(dev->power_max_w, watts / node->gpu_count));
    }
    fl_facts_free(&s->facts);
    return fl_facts_make(node, seed, &s->facts, d);
}

/* The boards at their own limits, or at those that stand in the scene now; nothing is set. */
static fl_status run_plain(const member *m, fl_run_result *r, fl_diag *d) {
    const fl_scene *s = scene_of(m);
    const fl_run_options run = {.w = s->w, .rates = s->rates, .spec = &s->platform.node, .facts = &s->facts};
    return fl_run(&run, r, d);
}

static fl_status run_standard(void *user, size_t i, fl_diag *d) {
    member *m = &((const work *)user)->node[i];
    const fl_status s = run_plain(m, &m->standard, d);
    m->need_w = s ? 0 : m->standard.gpu_energy_j / m->standard.makespan_s;
    return s;
}

/* How much power costs the same slowdown: W less over the time that it costs. A node that loses nothing gives first. */
static fl_status try_cut(void *user, size_t i, fl_diag *d) {
    member *m = &((const work *)user)->node[i];
    fl_run_result r = {0};
    fl_status s = limit(m, m->share_w, d);
    if (!s)
        s = run_plain(m, &r, d);
    if (!s) {
        const double less = m->need_w - r.gpu_energy_j / r.makespan_s,
                     slower = r.makespan_s / m->standard.makespan_s - 1;
        m->weight = fmax(less, 1e-3) / fmax(slower, 1e-4);
    }
    fl_run_result_free(&r);
    return s;
}

static bool follows(const work *w) { return (fl_reads_of(w->spec->policy).host_needs & FL_BIT(FL_HOST_TARGET_W)) != 0; }

static fl_status run_node(void *user, size_t i, fl_diag *d) {
    const work *w = user;
    member *m = &w->node[i];
    const fl_scene *scene = scene_of(m);
    int64_t from = 0;
    const fl_target target = {.t_ns = &from, .watts = &m->share_w, .count = 1};
    fl_status s = limit(m, follows(w) ? m->most_w : m->share_w, d);
    fl_laid laid;
    if (s || (s = fl_plan_lay(w->spec, scene, &laid, d)))
        return s;
    const fl_layer layer[] = {fl_platform_layer(&scene->platform, w->spec->policy->name), w->spec->layer, laid.layer};
    const fl_run_options run = {.w = scene->w,
                                .rates = scene->rates,
                                .spec = &scene->platform.node,
                                .facts = &scene->facts,
                                .policy = w->spec->policy,
                                .label = w->spec->label,
                                .target = follows(w) ? &target : NULL,
                                .layer = layer,
                                .layer_count = FL_COUNT(layer),
                                .on_truth = note,
                                .truth_ns = w->every_ps / FL_PS_PER_NS,
                                .user = &m->course};
    s = fl_run(&run, &m->result, d);
    fl_laid_free(&laid);
    return s;
}

/* ---- dealing ---- */

/* Shares in proportion to `part`, none below the least of its node, and together the budget. */
static void deal_parts(member *node, size_t count, double budget_w, double (*part)(const member *)) {
    bool more = true;
    for (size_t i = 0; i < count; i++)
        node[i].share_w = 0; /* not at its least */
    while (more) {
        double left = budget_w, parts = 0;
        for (size_t i = 0; i < count; i++) {
            left -= node[i].share_w;
            parts += node[i].share_w > 0 ? 0 : part(&node[i]);
        }
        more = false;
        for (size_t i = 0; i < count; i++)
            if (!(node[i].share_w > 0) && left / parts * part(&node[i]) < node[i].least_w) {
                node[i].share_w = node[i].least_w;
                more = true;
            }
        for (size_t i = 0; !more && i < count; i++)
            if (!(node[i].share_w > 0))
                node[i].share_w = left / parts * part(&node[i]);
    }
}

static double one(const member *m) {
    (void)m;
    return 1;
}

static double need(const member *m) { return m->need_w; }

/* Cut what is needed until it fits, each node by its weight and none below its least. */
static void deal_cuts(member *node, size_t count, double budget_w) {
    double cut = -budget_w;
    bool more = true;
    for (size_t i = 0; i < count; i++) {
        node[i].share_w = fmax(node[i].need_w, node[i].least_w);
        cut += node[i].share_w;
    }
    while (more && cut > 1e-6) {
        double weights = 0, done = 0;
        more = false;
        for (size_t i = 0; i < count; i++)
            weights += node[i].share_w > node[i].least_w ? node[i].weight : 0;
        for (size_t i = 0; weights > 0 && i < count; i++) {
            const double own = fmin(cut / weights * node[i].weight, node[i].share_w - node[i].least_w);
            node[i].share_w -= fmax(own, 0);
            done += fmax(own, 0);
        }
        cut -= done;
        more = done > 0;
    }
}

static fl_status deal(work *w, fl_diag *d) {
    const fl_nodes_how *how = w->how;
    const size_t n = (size_t)how->nodes;
    double least = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        least += w->node[i].least_w;
        all += w->node[i].need_w;
    }
    if (how->budget_w < least)
        return fl_refuse(
            d, "a budget of %g W: the power limits of %zu nodes go down to %g W together, expected at least that",
            how->budget_w, n, least);
    deal_parts(w->node, n, how->budget_w, !strcmp(how->deal, "equal") ? one : need);
    fl_status s = FL_OK;
    const int rounds = !strcmp(how->deal, "sensitivity") && all > how->budget_w ? DEAL_ROUNDS : 0;
    for (int round = 0; !s && round < rounds; round++)
        if (!(s = fl_pool_run(try_cut, w, n, how->threads, "nodes", d)))
            deal_cuts(w->node, n, how->budget_w);
    return s;
}

/* ---- the sum ---- */

typedef struct sum { /* while all nodes run */
    double *watts;   /* points: means between two points of the grid */
    size_t points;
    double mean_w, peak_w, ramp_w_per_s, over_pct;
} sum;

static void add_up(const work *w, sum *t) {
    const size_t n = (size_t)w->how->nodes;
    const double dt = fl_seconds(w->every_ps);
    t->points = SIZE_MAX;
    for (size_t i = 0; i < n;
         i++) { /* the first point is time 0; the last may be the end of the work, before its time */
        const size_t whole = (size_t)(w->node[i].result.makespan_ps / w->every_ps);
        t->points = whole < t->points ? whole : t->points;
    }
    t->watts = fl_must(calloc(t->points + 1, sizeof *t->watts));
    size_t over = 0;
    for (size_t k = 0; k < t->points; k++) {
        for (size_t i = 0; i < n; i++)
            t->watts[k] += (w->node[i].course.joules[k + 1] - w->node[i].course.joules[k]) / dt;
        t->mean_w += t->watts[k];
        t->peak_w = fmax(t->peak_w, t->watts[k]);
        over += t->watts[k] > w->how->budget_w;
        if (k && fabs(t->watts[k] - t->watts[k - 1]) / dt > fabs(t->ramp_w_per_s))
            t->ramp_w_per_s = (t->watts[k] - t->watts[k - 1]) / dt;
    }
    t->mean_w /= (double)t->points;
    t->over_pct = 100 * (double)over / (double)t->points;
}

static fl_status write_sum(const work *w, const sum *t, const char *path, fl_diag *d) {
    fl_output *o = path ? fl_output_open(path, d) : NULL;
    if (!o)
        return path ? d->status : FL_OK;
    FILE *f = fl_output_file(o);
    fputs("t_ns,power_w,budget_w\n", f);
    for (size_t k = 0; k < t->points; k++)
        fprintf(f, "%lld,%.9g,%.9g\n", (long long)((int64_t)(k + 1) * w->every_ps / FL_PS_PER_NS), t->watts[k],
                w->how->budget_w);
    return fl_output_commit(o, d);
}

/* ---- what is printed ---- */

static double slowdown(const member *m) { return m->result.makespan_s / m->standard.makespan_s - 1; }

static cJSON *to_json(const work *w, const sum *t) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "policy", w->spec->label);
    fl_json_add_real(root, "budget_w", w->how->budget_w);
    cJSON_AddStringToObject(root, "deal", w->how->deal);
    cJSON_AddBoolToObject(root, "coupled_over_time", false);
    fl_json_add_real(root, "window_s", fl_seconds(w->every_ps));
    fl_json_add_real(root, "lasts_s", (double)t->points * fl_seconds(w->every_ps));
    fl_json_add_real(root, "mean_power_w", t->mean_w);
    fl_json_add_real(root, "peak_power_w", t->peak_w);
    fl_json_add_real(root, "steepest_ramp_w_per_s", t->ramp_w_per_s);
    fl_json_add_real(root, "over_budget_pct", t->over_pct);
    cJSON *list = cJSON_AddArrayToObject(root, "nodes");
    for (int64_t i = 0; i < w->how->nodes; i++) {
        const member *m = &w->node[i];
        cJSON *o = fl_json_add_row(list);
        cJSON_AddStringToObject(o, "workload", scene_of(m)->w->name);
        cJSON_AddNumberToObject(o, "seed", (double)scene_of(m)->facts.seed);
        fl_json_add_real(o, "need_w", m->need_w);
        fl_json_add_real(o, "share_w", m->share_w);
        fl_json_add_real(o, "mean_power_w", m->result.gpu_energy_j / m->result.makespan_s);
        fl_json_add_real(o, "energy_j", m->result.gpu_energy_j);
        fl_json_add_real(o, "makespan_s", m->result.makespan_s);
        fl_json_add_real(o, "slowdown", slowdown(m));
    }
    cJSON_AddItemToObject(root, "provenance",
                          fl_provenance(&w->node[0].scenes, w->spec, 1, scene_of(&w->node[0])->facts.seed));
    return root;
}

static void to_text(const work *w, const sum *t) {
    const int64_t n = w->how->nodes;
    double low = INFINITY, high = 0, spent = 0, standard = 0, mean = 0;
    int64_t worst = 0;
    for (int64_t i = 0; i < n; i++) {
        const member *m = &w->node[i];
        low = fmin(low, m->share_w);
        high = fmax(high, m->share_w);
        spent += m->result.gpu_energy_j;
        standard += m->standard.gpu_energy_j;
        mean += slowdown(m) / (double)n;
        worst = slowdown(m) > slowdown(&w->node[worst]) ? i : worst;
    }
    printf("%lld nodes under %s, a budget of %g W dealt out %s\n\n", (long long)n, w->spec->label, w->how->budget_w,
           !strcmp(w->how->deal, "equal")  ? "equally"
           : !strcmp(w->how->deal, "need") ? "by need"
                                           : "by sensitivity to a limit");
    printf("shares      %.5g to %.5g W a node, as %s\n", low, high,
           follows(w) ? "its target" : "the power limits of its boards");
    printf("power       mean %.6g W, peak %.6g W, steepest ramp %+.5g W/s, above the budget for %.2f %% of the time\n",
           t->mean_w, t->peak_w, t->ramp_w_per_s, t->over_pct);
    printf("            means of %g s over the %g s in which all nodes run\n", fl_seconds(w->every_ps),
           (double)t->points * fl_seconds(w->every_ps));
    printf("energy      %.6g J, %.2f %% less than at the boards' own limits\n", spent, 100 * (1 - spent / standard));
    printf("slowdown    mean %.2f %%, worst %.2f %% (node %lld, %s)\n\n", 100 * mean, 100 * slowdown(&w->node[worst]),
           (long long)worst, scene_of(&w->node[worst])->w->name);
    if (scene_of(&w->node[0])->w->measured || scene_of(&w->node[0])->w->predicted)
        puts("note: the powers of a sweep are those of its board; boards differ where kernels run by laws (traces, "
             "programs)");
    puts("note: the nodes do not affect each other: each keeps its share to the end, and what one leaves nobody gets");
}

/* ---- all ---- */

/* The names among which nodes are dealt out: traces, or the workloads of the sweep or programs. */
static fl_status name_all(work *w, fl_scenes *all, const char ***made, fl_diag *d) {
    const fl_nodes_how *how = w->how;
    if (how->scene->serving.server || how->scene->pipeline)
        return fl_refuse(d, "--nodes needs programs that run side by side, expected traces, programs or a sweep");
    fl_status s = fl_scenes_open(how->scene, how->traces, all, d);
    if (s)
        return s;
    *made = fl_must(calloc(all->count, sizeof **made));
    for (size_t i = 0; i < all->count; i++)
        (*made)[i] = how->traces->count ? how->traces->item[i] : all->item[i]->w->name;
    w->name = *made;
    w->names = all->count;
    return FL_OK;
}

fl_status fl_run_nodes(const fl_nodes_how *how, const fl_spec *spec, const fl_option *option, size_t count,
                       fl_diag *d) {
    const size_t n = (size_t)how->nodes;
    work w = {.how = how, .spec = spec, .every_ps = (int64_t)(how->every_ms * 1e9 + 0.5)};
    fl_scenes all = {0};
    sum t = {0};
    const char **names = NULL;
    w.node = fl_must(calloc(n, sizeof *w.node));
    fl_status s = name_all(&w, &all, &names, d);
    if (!s)
        s = fl_scenes_spare(&all, spec, 1, option, count, d);
    if (!s)
        s = fl_pool_run(open_node, &w, n, how->threads, "nodes", d);
    if (!s)
        s = fl_pool_run(run_standard, &w, n, how->threads, "nodes", d);
    if (!s)
        s = deal(&w, d);
    if (!s)
        s = fl_pool_run(run_node, &w, n, how->threads, "nodes", d);
    if (!s)
        add_up(&w, &t);
    if (!s && !t.points)
        s = fl_refuse(d, "a node ends before %g s, the first point of time, expected a smaller --every-ms",
                      fl_seconds(w.every_ps));
    if (!s) {
        fl_scene_warnings(&all);
        cJSON *root = to_json(&w, &t);
        if (how->json)
            fl_json_print(root, stdout);
        else
            to_text(&w, &t);
        s = how->out ? fl_json_write(how->out, root, d) : FL_OK;
        cJSON_Delete(root);
    }
    if (!s)
        s = write_sum(&w, &t, how->timeline, d);
    for (size_t i = 0; i < n; i++) {
        fl_run_result_free(&w.node[i].standard);
        fl_run_result_free(&w.node[i].result);
        fl_scenes_free(&w.node[i].scenes);
        free(w.node[i].course.joules);
    }
    free(w.node);
    free(t.watts);
    free(names);
    fl_scenes_free(&all);
    return s;
}
