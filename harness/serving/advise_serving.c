#include "harness/serving/advise_serving.h"

#include "harness/advise/set.h"
#include "harness/base/json/json_out.h"
#include "harness/serving/oracle.h"
#include "harness/study/trial/serving_promise.h"

#include <math.h>

/* All servers that were asked for at the driver's default: what advice is set against. */
static const fl_serving_point *at_default(const fl_serving_oracle *o) {
    const fl_serving_point *p = NULL;
    for (size_t i = 0; i < o->count; i++)
        p = o->point[i].standard ? &o->point[i] : p;
    return p;
}

static double percent_below(double of, double than) { return 100 * (1 - of / than); }

static bool stays(const fl_serving_point *p, const fl_serving_point *standard) {
    return p->at.sm_mhz == standard->at.sm_mhz && p->at.mem_mhz == standard->at.mem_mhz;
}

/* The memory clock is set only where another one is better. */
static fl_advise_commands commands_of(const fl_serving_oracle *o, const fl_serving_point *p) {
    const fl_device *dev = &o->scenes.item[0]->platform.node.device[0];
    return fl_advise_commands_of(dev->name, -1, (fl_setting_clocks){p->at.sm_mhz, p->at.mem_mhz, 0},
                                 p->at.mem_mhz != at_default(o)->at.mem_mhz);
}

static void print_point(const char *what, const fl_serving_point *p) {
    printf("  %-20s TTFT p99 %.3g s, TBT p99 %.3g s; late: %.2f %% of first tokens, %.2f %% of later ones\n", what,
           p->row.ttft.p99_s, p->row.tbt.p99_s, p->row.ttft_missed_pct, p->row.tbt_missed_pct);
}

static void print_text(const fl_serving_oracle *o) {
    const fl_serving_point *all = at_default(o);
    const char *name = o->scenes.item[0]->w->name;
    char clocks[512];
    if (o->best == o->count) {
        printf("%s: no clock meets the targets, with up to %u server%s\n", name, all->servers,
               all->servers == 1 ? "" : "s");
        print_point("at the default", all);
    } else {
        const fl_serving_point *best = &o->point[o->best];
        const fl_advise_commands c = commands_of(o, best);
        const bool stay = stays(best, all);
        char from[64], to[64];
        printf("%s: %u server%s at %s instead of %u at %s\n", name, best->servers, best->servers == 1 ? "" : "s",
               fl_serving_oracle_clocks(o, best, to, sizeof to), all->servers,
               fl_serving_oracle_clocks(o, all, from, sizeof from));
        printf("  energy saved         %.1f %%; %.4g J per token instead of %.4g\n",
               percent_below(best->row.score.energy_j, all->row.score.energy_j), best->row.energy_per_token_j,
               all->row.energy_per_token_j);
        print_point("latencies", best);
        print_point("at the default", all);
        if (best->servers < all->servers)
            printf("  switch off           %u of %u servers; they count as drawing nothing\n",
                   all->servers - best->servers, all->servers);
        if (!stay && *c.set)
            printf("  set                  %s\n  undo                 %s\n", c.set, c.undo);
        if (!stay && c.note)
            printf("  note                 %s\n", c.note);
    }
    printf("rests on               %s\n", fl_serving_scene_clocks(o->scenes.item[0]->serving, clocks, sizeof clocks));
    printf("                       platform %s: its law of power; foldline platforms %s says what of it is assumed\n",
           o->scenes.item[0]->platform.node.name, o->scenes.item[0]->asked);
}

static void print_json(const fl_serving_oracle *o, const fl_serving_oracle_options *asked) {
    cJSON *root = fl_serving_oracle_json(o, asked);
    cJSON_DeleteItemFromObject(root, "points");
    if (o->best < o->count) {
        const fl_serving_point *best = &o->point[o->best];
        const fl_advise_commands c = commands_of(o, best);
        fl_json_add_real(root, "saving_pct",
                         percent_below(best->row.score.energy_j, at_default(o)->row.score.energy_j));
        const bool none = !*c.set || stays(best, at_default(o)); /* null: nothing is to be set, or nothing can */
        cJSON_AddItemToObject(root, "set", none ? cJSON_CreateNull() : cJSON_CreateString(c.set));
        cJSON_AddItemToObject(root, "undo", none ? cJSON_CreateNull() : cJSON_CreateString(c.undo));
        cJSON *row = cJSON_AddObjectToObject(root, "best");
        fl_row_json(row, &best->row);
    }
    cJSON *standard = cJSON_AddObjectToObject(root, "default");
    fl_row_json(standard, &at_default(o)->row);
    fl_json_tell(root);
}

fl_status fl_advise_serving(const fl_serving_choice *c, const fl_texts *files, const char *platform, bool json,
                            fl_diag *d) {
    fl_scene_options scene = {.platform = platform, .serving = *c};
    fl_promises promises = {0};
    const fl_texts none = {0};
    if (!c->server)
        return fl_refuse(d, "requests, targets or servers without --serving, expected a server's file");
    if (files->count > 1 || (files->count && c->requests))
        return fl_refuse(d, "several request traces, expected one, as FILE or as --requests");
    if (!c->requests)
        scene.serving.requests = files->count ? files->item[0] : NULL;
    if (!c->ttft && !c->tbt)
        return fl_refuse(d,
                         "no target, expected --ttft TIME, --tbt TIME or both: without one the slowest clock would do");
    fl_serving_oracle r = {0};
    const fl_serving_oracle_options o = {.scene = &scene, .promises = &promises, .bound = INFINITY};
    fl_status s = fl_scene_check(&scene, &none, d);
    if (!s)
        s = fl_promises_targets(&scene.serving, &promises, d);
    if (!s) {
        s = fl_serving_oracle_run(&o, &r, d);
        if (!s && json)
            print_json(&r, &o);
        else if (!s)
            print_text(&r);
        fl_serving_oracle_free(&r);
    }
    return s;
}
