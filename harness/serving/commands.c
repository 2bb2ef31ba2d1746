/* `foldline synth requests`, and advice on servers. */
#include "harness/serving/inside.h"

#include "harness/advise/advise.h"
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "harness/serving/serving.h"
#include "harness/study/trial/trial.h"
#include "models/laws/device.h"
#include "sim/synth/synth.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- advice on servers ---- */

/* All servers that were asked for at the driver's default: what advice is set against. */
static const fl_serving_point *at_default(const fl_serving_oracle *o) {
    const fl_serving_point *p = NULL;
    for (size_t i = 0; i < o->count; i++)
        p = o->point[i].standard ? &o->point[i] : p;
    return p;
}

static bool stays(const fl_serving_point *p, const fl_serving_point *standard) {
    const double decode_mhz = p->at.decode_mhz > 0 ? p->at.decode_mhz : p->at.sm_mhz;
    return p->at.sm_mhz == standard->at.sm_mhz && p->at.mem_mhz == standard->at.mem_mhz &&
           decode_mhz == standard->at.sm_mhz;
}

/* Make the commands for servers at an SM clock. The memory clock is set only where another one is better. */
static fl_advise_commands commands_of(const fl_serving_oracle *o, const fl_serving_point *p, double sm_mhz) {
    const fl_device *dev = &o->scenes.item[0]->platform.node.device[0];
    return fl_advise_commands_of(dev->name, -1, (fl_setting_clocks){sm_mhz, p->at.mem_mhz, 0},
                                 p->at.mem_mhz != at_default(o)->at.mem_mhz);
}

static void print_point(const char *what, const fl_serving_point *p) {
    const fl_row_result *r = &p->row;
    if (isnan(r->tbt.p99_s)) /* no request has a second token */
        printf("  %-20s TTFT p99 %.3g s; late: %.2f %% of first tokens\n", what, r->ttft.p99_s, r->ttft_missed_pct);
    else
        printf("  %-20s TTFT p99 %.3g s, TBT p99 %.3g s; late: %.2f %% of first tokens, %.2f %% of later ones\n", what,
               r->ttft.p99_s, r->tbt.p99_s, r->ttft_missed_pct, r->tbt_missed_pct);
}

/* "1 server at 885 MHz". All pools run, whatever their clocks are. */
static void print_choice(const fl_serving_oracle *o, const fl_serving_point *p) {
    char clocks[64];
    if (o->scenes.item[0]->w->pools)
        printf("the pools");
    else
        printf("%u server%s", p->servers, p->servers == 1 ? "" : "s");
    printf(" at %s", fl_serving_oracle_clocks(o, p, clocks, sizeof clocks));
}

/* What the choice holds beyond the recorded requests. */
static void print_margin(const fl_serving_oracle *o, const fl_serving_margin *m) {
    const fl_serving_scene *serving = o->scenes.item[0]->serving;
    const bool few = serving->requests.count < FL_SERVING_REDRAWN_LEAST;
    const double error = serving->law.time_error;
    printf("  margin               ");
    if (m->draws)
        printf("the targets broke in %zu of %zu draws of %s", m->broken, m->draws, few ? "" : "other arrivals");
    else
        printf("none: the law's error is unknown");
    if (error >= 0)
        printf("%sthe law's error in time, %.2g %%", few ? "" : " and of ", 100 * error);
    else if (!few)
        printf("; the law's error is unknown and not among them");
    if (few)
        printf(", and the requests are too few to draw other arrivals, expected at least %d", FL_SERVING_REDRAWN_LEAST);
    putchar('\n');
}

/* Print the commands that set the point's clocks. Each pool has its own command. */
static void print_commands(const fl_serving_oracle *o, const fl_serving_point *p) {
    const fl_advise_commands c = commands_of(o, p, p->at.sm_mhz);
    if (*c.set && p->at.decode_mhz > 0)
        printf("  set for prefill      %s\n  set for decode       %s\n", c.set,
               commands_of(o, p, p->at.decode_mhz).set);
    else if (*c.set)
        printf("  set                  %s\n", c.set);
    if (*c.set)
        printf("  undo                 %s\n", c.undo);
    if (c.note)
        printf("  note                 %s\n", c.note);
}

static void print_recorded(const fl_serving_oracle *o, const fl_serving_margin *m) {
    if (o->best == m->recorded)
        return;
    printf("  without the margin   ");
    print_choice(o, &o->point[m->recorded]);
    puts(", for the recorded requests alone");
}

static void print_text(const fl_serving_oracle *o, const fl_serving_margin *m, double risk) {
    const fl_serving_point *all = at_default(o);
    const char *name = o->scenes.item[0]->w->name;
    const bool pools = o->scenes.item[0]->w->pools;
    char clocks[512];
    fl_scene_assumed(&o->scenes, stdout);
    if (o->best == o->count) {
        printf("%s: no clock meets the targets", name);
        if (m->recorded < o->count)
            printf(" at a risk of %g %%", 100 * risk);
        if (!pools)
            printf(", with up to %u server%s", all->servers, all->servers == 1 ? "" : "s");
        putchar('\n');
        print_point("at the default", all);
    } else {
        const fl_serving_point *best = &o->point[o->best];
        const double saved = best->row.energy_saving_pct;
        char from[64];
        printf("%s: ", name);
        print_choice(o, best);
        printf(" instead of ");
        if (!pools)
            printf("%u at ", all->servers);
        puts(fl_serving_oracle_clocks(o, all, from, sizeof from));
        printf("  energy saved         %.1f %%", saved);
        if (isfinite(m->saving_range))
            printf(", between %.1f and %.1f", saved - m->saving_range, saved + m->saving_range);
        printf("; %.4g J per token instead of %.4g\n", best->row.energy_per_token_j, all->row.energy_per_token_j);
        print_margin(o, m);
        print_point("latencies", best);
        print_point("at the default", all);
        if (best->servers < all->servers)
            printf("  switch off           %u of %u servers; they count as drawing nothing\n",
                   all->servers - best->servers, all->servers);
        if (!stays(best, all))
            print_commands(o, best);
    }
    print_recorded(o, m);
    printf("rests on               %s\n", fl_serving_scene_clocks(o->scenes.item[0]->serving, clocks, sizeof clocks));
    printf(
        "                       platform %s: its law of power; foldline list platforms %s says what of it is assumed\n",
        o->scenes.item[0]->platform.node.name, o->scenes.item[0]->asked);
}

static cJSON *to_json(const fl_serving_oracle *o, const fl_serving_margin *m, const fl_serving_oracle_options *asked) {
    cJSON *root = fl_serving_oracle_json(o, asked);
    cJSON_DeleteItemFromObject(root, "points");
    if (o->best < o->count) {
        const fl_serving_point *best = &o->point[o->best];
        const fl_advise_commands c = commands_of(o, best, best->at.sm_mhz);
        fl_json_add_real(root, "saving_pct", best->row.energy_saving_pct);
        fl_json_add_real(root, "saving_low_pct", best->row.energy_saving_pct - m->saving_range);
        fl_json_add_real(root, "saving_high_pct", best->row.energy_saving_pct + m->saving_range);
        cJSON_AddNumberToObject(root, "draws", (double)m->draws);
        cJSON_AddNumberToObject(root, "draws_broken", (double)m->broken);
        const bool none = !*c.set || stays(best, at_default(o)); /* null: nothing is to be set, or nothing can */
        cJSON_AddItemToObject(root, "set", none ? cJSON_CreateNull() : cJSON_CreateString(c.set));
        if (best->at.decode_mhz > 0) /* "set" is for prefill then */
            cJSON_AddItemToObject(root, "set_decode",
                                  none ? cJSON_CreateNull()
                                       : cJSON_CreateString(commands_of(o, best, best->at.decode_mhz).set));
        cJSON_AddItemToObject(root, "undo", none ? cJSON_CreateNull() : cJSON_CreateString(c.undo));
        cJSON *row = cJSON_AddObjectToObject(root, "best");
        fl_row_json(row, &best->row);
    }
    cJSON *standard = cJSON_AddObjectToObject(root, "default");
    fl_row_json(standard, &at_default(o)->row);
    return root;
}

fl_status fl_advise_serving(const fl_serving_choice *c, fl_texts *files, const char *platform, double risk, bool json,
                            const char *out, fl_diag *d) {
    fl_scene_options scene = {.platform = platform, .serving = *c};
    fl_promises promises = {0};
    const fl_texts none = {0};
    fl_status s = fl_scene_sort(&scene, files, d);
    if (s)
        return s;
    if (files->count || scene.sweep || scene.programs || scene.pipeline)
        return fl_refuse(d, "another workload beside a server, expected a server and requests alone");
    if (!c->ttft && !c->tbt)
        return fl_refuse(d,
                         "no target, expected --ttft TIME, --tbt TIME or both: without one the slowest clock would do");
    if (risk < FL_SERVING_RISK_LEAST)
        return fl_refuse(d, "--risk %g, expected at least %g for a server", risk, FL_SERVING_RISK_LEAST);
    fl_serving_oracle r = {0};
    const fl_serving_oracle_options o = {.scene = &scene, .promises = &promises, .bound = INFINITY};
    s = fl_scene_check(&scene, &none, d);
    if (!s)
        s = fl_promises_targets(&scene.serving, &promises, d);
    if (!s) {
        fl_serving_margin m;
        s = fl_serving_oracle_run(&o, &r, d);
        if (!s)
            s = fl_serving_margin_choose(&o, risk, &r, &m, d);
        cJSON *rows = cJSON_CreateArray(), *result = s ? NULL : to_json(&r, &m, &o);
        cJSON_AddItemToArray(rows, result);
        if (!s && json)
            fl_json_print(result, stdout);
        else if (!s)
            print_text(&r, &m, risk);
        if (!s && out && !(s = fl_json_write_rows(out, rows, d)) && !json)
            printf("written: %s\n", out);
        cJSON_Delete(rows);
        fl_serving_oracle_free(&r);
    }
    return s;
}

/* ---- `foldline synth requests` ---- */

static const fl_command_help help = {
    "synth requests", "-o REQUESTS.csv [options]",
    "Draws requests to a server of language models: when they arrive, and their lengths in tokens; the same for the "
    "same seed.",
    "Times between arrivals are gamma distributed around 1 / rate; --cv 1 is a Poisson process, more are bursts. With "
    "--daily the rate follows a day: rate x (1 - daily x cos(2 pi t / day)), least at the beginning, most after half a "
    "day. Lengths are lognormal; the standard medians are those of the conversation trace of Patel et al., "
    "\"Splitwise\", ISCA 2024, the rest is assumed."};

static fl_status write_requests(const char *path, const fl_synth_requests_options *o, fl_diag *d) {
    fl_requests r;
    char source[400];
    fl_status s = fl_synth_requests(o, &r, d);
    (void)snprintf(source, sizeof source,
                   "foldline synth requests, seed %" PRIu64
                   ", rate %g/s, cv %g, daily %g of %g s, prompts median %g sigma "
                   "%g, outputs median %g sigma %g, shared %" PRIu32,
                   o->seed, o->rate, o->cv, o->daily, o->day_s, o->prompt_median, o->prompt_sigma, o->output_median,
                   o->output_sigma, o->shared);
    if (!s)
        fl_must_have(fl_head_set(&r.head, "source", source));
    if (!s)
        s = fl_requests_write(path, &r, d);
    if (!s)
        printf("written: %s (%zu requests over %.1f s)\n", path, r.count, (double)r.row[r.count - 1].t_ns * 1e-9);
    fl_requests_free(&r);
    return s;
}

int fl_cmd_synth_requests(int argc, char **argv) {
    fl_synth_requests_options o = fl_synth_requests_standard;
    int64_t seed = (int64_t)o.seed, most = 0, prompt_most = o.prompt_most, output_most = o.output_most, shared = 0;
    const char *output = NULL;
    double seconds = -1;
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &output, 0, 0, "the requests to write", FL_FOR_OUTPUT | FL_MOST_USED},
        {"seed", "N", FL_OPTION_INT, &seed, 0, 9e15, "seed (1)", FL_MOST_USED},
        {"rate", "X", FL_OPTION_REAL, &o.rate, 1e-6, 1e6, "requests per second, on average (1)", FL_MOST_USED},
        {"seconds", "X", FL_OPTION_REAL, &seconds, 0.001, 2246400,
         "until then (600; without end where --requests is given)", FL_MOST_USED},
        {"requests", "N", FL_OPTION_INT, &most, 1, FL_REQUESTS_MOST, "at most so many"},
        {"cv", "X", FL_OPTION_REAL, &o.cv, 0, 100, "standard deviation over mean of the times between arrivals (1)"},
        {"daily", "X", FL_OPTION_REAL, &o.daily, 0, 1, "how much the rate follows the time of day (0)"},
        {"day", "S", FL_OPTION_REAL, &o.day_s, 1, 2246400, "length of a day (86400)"},
        {"prompt-tokens", "X", FL_OPTION_REAL, &o.prompt_median, 1, FL_REQUEST_TOKENS_MOST,
         "median of the prompts (1020)", FL_MOST_USED},
        {"prompt-sigma", "X", FL_OPTION_REAL, &o.prompt_sigma, 0, 10, "standard deviation of their logarithm (1)"},
        {"prompt-most", "N", FL_OPTION_INT, &prompt_most, 1, FL_REQUEST_TOKENS_MOST, "no prompt is longer (8192)"},
        {"output-tokens", "X", FL_OPTION_REAL, &o.output_median, 1, FL_REQUEST_TOKENS_MOST,
         "median of the outputs (129)"},
        {"output-sigma", "X", FL_OPTION_REAL, &o.output_sigma, 0, 10, "standard deviation of their logarithm (1)"},
        {"output-most", "N", FL_OPTION_INT, &output_most, 1, FL_REQUEST_TOKENS_MOST, "no output is longer (2048)"},
        {"shared", "N", FL_OPTION_INT, &shared, 0, FL_REQUEST_TOKENS_MOST,
         "tokens with which every prompt begins, such as a system prompt (0)"},
    };
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    o.seed = (uint64_t)seed;
    o.most = (uint64_t)most;
    o.seconds = seconds > 0 ? seconds : most ? 0 : o.seconds;
    o.prompt_most = (uint32_t)prompt_most;
    o.output_most = (uint32_t)output_most;
    o.shared = (uint32_t)shared;
    fl_diag d = {0};
    const fl_status s = !output || rest.count ? fl_refuse(&d, "expected options and -o REQUESTS.csv only")
                                              : write_requests(output, &o, &d);
    return fl_command_close("synth requests", s, &d, option, sizeof option / sizeof *option, &rest);
}
