/* The best number of servers and the best static clock. */
#include "harness/serving/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/scene.h"
#include "harness/serving/serving.h"
#include "harness/study/trial/trial.h"
#include "models/laws/device.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
    const fl_serving_oracle_options *o;
    fl_serving_oracle *out;
    fl_run_result *standard; /* by number of servers, from 1 */
} work;

static fl_scene *scene_of(const work *w, const fl_serving_point *p) { return w->out->scenes.item[p->servers - 1]; }

fl_status fl_serving_open(const fl_scene_options *asked, uint32_t servers, fl_scenes *scenes, fl_diag *d) {
    const fl_texts none = {0};
    fl_scene_options one = *asked;
    fl_scenes more = {0};
    one.serving.servers = asked->serving.pools ? 0 : servers;
    fl_status s = fl_scenes_open(&one, &none, &more, d);
    if (!s)
        s = fl_scenes_append(scenes, &more, d);
    fl_scenes_free(&more);
    return s;
}

static fl_status open_scenes(const fl_scene_options *asked, fl_scenes *scenes, fl_diag *d) {
    const int64_t most = asked->serving.servers ? asked->serving.servers : 1;
    fl_status s = FL_OK;
    for (int64_t n = 1; !s && n <= most; n++)
        s = fl_serving_open(asked, (uint32_t)n, scenes, d);
    return s;
}

static fl_serving_point default_of(const fl_scene *s, uint32_t servers) {
    const fl_device *dev = &s->platform.node.device[s->platform.node.gpu[0]];
    return (fl_serving_point){
        .servers = servers, .standard = true, .at = {.sm_mhz = dev->default_sm_mhz, .mem_mhz = dev->default_mem_mhz}};
}

/* Each number of servers at the default, then at every clock. */
static fl_status make_points(fl_serving_oracle *o, fl_diag *d) {
    size_t room = 0;
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < o->scenes.count; i++) {
        const fl_scene *scene = o->scenes.item[i];
        fl_choice *choice = NULL;
        size_t choices = 0;
        s = fl_oracle_choices(scene->w, &scene->platform.node, &choice, &choices, d);
        if (!s) {
            fl_must_grow(&o->point, &room, o->count + choices + 1, sizeof *o->point);
            o->point[o->count++] = default_of(scene, (uint32_t)i + 1);
        }
        for (size_t k = 0; !s && k < choices; k++)
            o->point[o->count++] = (fl_serving_point){.servers = (uint32_t)i + 1, .at = choice[k]};
        free(choice);
    }
    return s;
}

static fl_status run_standard(void *user, size_t i, fl_diag *d) {
    const work *w = user;
    fl_scene *s = w->out->scenes.item[i];
    const fl_run_options run = {.w = s->w, .rates = s->rates, .spec = &s->platform.node, .facts = &s->facts};
    return fl_run(&run, &w->standard[i], d);
}

static fl_status run_point(void *user, size_t i, fl_diag *d) {
    const work *w = user;
    fl_serving_point *p = &w->out->point[i];
    const fl_run_result *standard = &w->standard[p->servers - 1];
    const fl_promised_under under = {w->o->promises, w->o->bound,
                                     fl_promises_watched(w->o->promises) ? FL_POWER_WINDOW_NS : 0, w->o->objective};
    fl_static_point ignored;
    const fl_status s = fl_static_promised(scene_of(w, p), standard, &under, &p->at, &ignored, &p->row, d);
    p->row.policy = p->standard ? "baseline:default" : "baseline:static";
    return s;
}

static double value_of(const fl_serving_point *p, fl_objective objective) {
    return fl_objective_value(objective, p->row.score.energy_j, p->row.score.makespan_s);
}

static void choose(fl_serving_oracle *o, fl_objective objective) {
    o->best = o->count;
    for (size_t i = 0; i < o->scenes.count; i++)
        o->best_of[i] = o->count;
    for (size_t i = 0; i < o->count; i++) {
        const fl_serving_point *p = &o->point[i];
        if (p->standard || p->row.violated > 0)
            continue;
        size_t *of = &o->best_of[p->servers - 1];
        const double own = value_of(p, objective);
        o->held++;
        if (*of == o->count ||
            own <= value_of(&o->point[*of], objective)) /* of equals the higher clock, which comes later */
            *of = i;
    }
    for (size_t i = 0; i < o->scenes.count; i++)
        if (o->best_of[i] < o->count && (o->best == o->count || value_of(&o->point[o->best_of[i]], objective) <
                                                                    value_of(&o->point[o->best], objective)))
            o->best = o->best_of[i];
}

/* All savings are against as many servers as were asked for, at the driver's default. */
static void save_against_all(fl_serving_oracle *o) {
    double against_j = NAN;
    for (size_t i = 0; i < o->count; i++)
        if (o->point[i].standard)
            against_j = o->point[i].row.score.energy_j;
    for (size_t i = 0; i < o->count; i++)
        o->point[i].row.energy_saving_pct = 100 * (1 - o->point[i].row.score.energy_j / against_j);
}

fl_status fl_serving_oracle_run(const fl_serving_oracle_options *o, fl_serving_oracle *out, fl_diag *d) {
    work w = {.o = o, .out = out};
    *out = (fl_serving_oracle){0};
    fl_status s = open_scenes(o->scene, &out->scenes, d);
    if (!s)
        s = fl_promises_check(o->promises, &out->scenes, d);
    if (!s)
        s = make_points(out, d);
    w.standard = fl_must(calloc(out->scenes.count + 1, sizeof *w.standard));
    out->best_of = fl_must(calloc(out->scenes.count + 1, sizeof *out->best_of));
    if (!s)
        s = fl_pool_run(run_standard, &w, out->scenes.count, o->threads, "defaults", d);
    if (!s)
        s = fl_pool_run(run_point, &w, out->count, o->threads, "static clocks", d);
    if (!s) {
        choose(out, o->objective);
        save_against_all(out);
    }
    for (size_t i = 0; i < out->scenes.count; i++)
        fl_run_result_free(&w.standard[i]);
    free(w.standard);
    return s;
}

void fl_serving_oracle_free(fl_serving_oracle *o) {
    for (size_t i = 0; i < o->count; i++)
        fl_row_free(&o->point[i].row);
    free(o->point);
    free(o->best_of);
    fl_scenes_free(&o->scenes);
    *o = (fl_serving_oracle){0};
}

/* ---- what it prints ---- */

char *fl_serving_oracle_clocks(const fl_serving_oracle *o, const fl_serving_point *p, char *buf, size_t size) {
    const fl_node_spec *node = &o->scenes.item[p->servers - 1]->platform.node;
    fl_clocks_text(&node->device[node->gpu[0]], p->at.sm_mhz, p->at.mem_mhz, buf, size);
    const size_t used = strlen(buf);
    if (p->at.decode_mhz > 0 && used < size)
        snprintf(buf + used, size - used, " for prefill, %g MHz for decode", p->at.decode_mhz);
    return buf;
}

static bool is_shown(const fl_serving_oracle *o, size_t i) {
    return o->point[i].standard || o->best_of[o->point[i].servers - 1] == i;
}

void fl_serving_oracle_print(const fl_serving_oracle *o, const fl_serving_oracle_options *asked, bool wide, FILE *out) {
    char clock[64];
    size_t told = 0, shown = 0, over = 0;
    fl_grid g = {0};
    fl_row_table t = {.row = &o->point[0].row,
                      .count = 1, /* all have the same columns */
                      .objective = asked->objective,
                      .wide = wide,
                      .bounded = isfinite(asked->bound) || asked->promises->count};
    fl_grid_column(&g, "servers", "number of servers that run");
    fl_grid_column(&g, "clock", "the default, or the best static clock for them");
    fl_row_table_heads(&t, &g);
    for (size_t i = 0; i < o->count; i++) {
        const fl_serving_point *p = &o->point[i];
        if (!is_shown(o, i))
            continue;
        shown++;
        over += p->row.overloaded;
        fl_grid_add(&g, "%u\t%s", p->servers,
                    p->standard ? "default" : fl_serving_oracle_clocks(o, p, clock, sizeof clock));
        fl_row_table_cells(&t, &g, &p->row);
    }
    fl_row_table_marks(&t, &g);
    const bool pools = o->scenes.item[0]->w->pools;
    fl_scene_assumed(&o->scenes, out);
    fprintf(out, "%s: the default and the best %s", o->scenes.item[0]->w->name,
            pools ? "pair of static clocks for the pools" : "static clock of each number of servers");
    fl_promises_put(asked->promises, asked->bound, asked->objective, out);
    fprintf(out, "\nsavings are against %zu server%s at the default%s\n\n", o->scenes.count,
            o->scenes.count == 1 ? "" : "s", pools ? "; here that is all pools together" : "");
    fl_grid_print(&g, 2, out);
    for (size_t i = 0; i < o->count; i++)
        if (is_shown(o, i) && o->point[i].row.violated > 0)
            fprintf(out, "%s  %u at the default: breaks %s\n", told++ ? "" : "\nviolated:\n", o->point[i].servers,
                    o->point[i].row.breaks);
    fl_row_put_overload(over, shown, out);
    if (o->best == o->count)
        fprintf(out, "\nno static clock holds all bounds, with up to %zu server%s\n\n", o->scenes.count,
                o->scenes.count == 1 ? "" : "s");
    else
        fprintf(out, "\nbest: %u server%s at %s (%zu of %zu choices hold the bounds)\n\n", o->point[o->best].servers,
                o->point[o->best].servers == 1 ? "" : "s",
                fl_serving_oracle_clocks(o, &o->point[o->best], clock, sizeof clock), o->held,
                o->count - o->scenes.count);
}

cJSON *fl_serving_oracle_json(const fl_serving_oracle *o, const fl_serving_oracle_options *asked) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "objective", fl_objective_names[asked->objective]);
    cJSON_AddItemToObject(root, "bounds", fl_promises_json(asked->promises));
    if (o->best < o->count) {
        cJSON_AddNumberToObject(root, "best_servers", o->point[o->best].servers);
        fl_json_add_real(root, "best_sm_mhz", o->point[o->best].at.sm_mhz);
        fl_json_add_real(root, "best_mem_mhz", o->point[o->best].at.mem_mhz);
        if (o->point[o->best].at.decode_mhz > 0)
            fl_json_add_real(root, "best_decode_sm_mhz", o->point[o->best].at.decode_mhz);
    } else {
        cJSON_AddNullToObject(root, "best_servers");
    }
    cJSON *points = cJSON_AddArrayToObject(root, "points");
    for (size_t i = 0; i < o->count; i++) {
        cJSON *at = fl_json_add_row(points);
        cJSON_AddNumberToObject(at, "servers", o->point[i].servers);
        cJSON_AddBoolToObject(at, "default", o->point[i].standard);
        fl_json_add_real(at, "sm_mhz", o->point[i].at.sm_mhz);
        fl_json_add_real(at, "mem_mhz", o->point[i].at.mem_mhz);
        if (o->point[i].at.decode_mhz > 0)
            fl_json_add_real(at, "decode_sm_mhz", o->point[i].at.decode_mhz);
        fl_row_json(at, &o->point[i].row);
    }
    return root;
}
