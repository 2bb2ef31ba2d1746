/* The rows of a result: how they are filled, and the table of their columns. */
#include "harness/study/trial/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "sim/base/base.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "sim/serving/serving.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- objectives ---- */

const char *const fl_objective_title[] = {"energy", "EDP", "ED2P"};
const char *const fl_objective_unit[] = {"J", "J s", "J s^2"};

fl_status fl_objective_parse(const char *name, fl_objective *o, fl_diag *d) {
    size_t count = 0;
    for (; fl_objective_names[count]; count++)
        if (!strcmp(name, fl_objective_names[count])) {
            *o = (fl_objective)count;
            return FL_OK;
        }
    const char *near = fl_nearest(name, fl_objective_names, count);
    if (near)
        return fl_refuse(d, "unknown objective '%s', did you mean '%s'?", name, near);
    return fl_refuse(d, "unknown objective '%s', expected energy, edp or ed2p", name);
}

/* ---- filling a row ---- */

void fl_kept_free(fl_kept *k) {
    if (!k)
        return;
    fl_run_result_free(&k->run);
    fl_watch_free(&k->watch);
    free(k);
}

void fl_row_free(fl_row_result *row) {
    fl_kept_free(row->kept);
    row->kept = NULL;
}

void fl_kept_watch(fl_kept **kept, int64_t watch_ns, fl_run_options *run) {
    if (!watch_ns)
        return;
    *kept = fl_must(calloc(1, sizeof **kept));
    run->on_step = fl_watch_step;
    run->on_truth = fl_watch_truth;
    run->truth_ns = watch_ns;
    run->user = &(*kept)->watch;
    fl_watch_open(&(*kept)->watch, run->policy, run->spec->gpu_count);
}

void fl_kept_take(fl_kept *kept, fl_run_result *r) {
    kept->run = *r;
    free(r->mark_ps);
    fl_service_free(&r->service);
    fl_served_free(&r->served);
    kept->run.mark_ps = NULL;
    kept->run.service = (fl_service){0};
    kept->run.served = (fl_served_result){0};
    kept->run.mark_count = 0;
    fl_watch_end(&kept->watch);
}

void fl_row_fill_latency(fl_row_result *row, fl_times latency, double load) {
    const bool any = latency.count > 0;
    row->latency = any ? latency : fl_times_of(NULL, 0);
    row->offered_load = any ? load : (double)NAN;
    row->overloaded = any && fl_service_overloaded(latency.count, load);
    row->energy_per_request_j = any ? row->score.energy_j / (double)latency.count : (double)NAN;
}

void fl_row_fill_served(fl_row_result *row, const fl_run_result *run) {
    const fl_served_summary *s = &run->served.sum;
    const bool any = run->served.request_count > 0;
    const fl_times none = fl_times_of(NULL, 0);
    row->ttft = any ? s->ttft : none;
    row->tbt = any ? s->tbt : none;
    row->tpot = any ? s->tpot : none;
    row->ttft_missed_pct = any ? 100 * s->ttft_missed : (double)NAN;
    row->tbt_missed_pct = any ? 100 * s->tbt_missed : (double)NAN;
    row->offered_rps = any ? s->offered_per_s : (double)NAN;
    row->served_rps = any ? s->requests_per_s : (double)NAN;
    row->goodput_rps = any ? s->goodput : (double)NAN;
    row->energy_per_token_j = any ? s->j_per_token : (double)NAN;
    row->request_j = any ? s->energy.request_j : none;
    row->token_j = any ? s->energy.token_j : none;
    row->idle_pct = any ? 100 * s->idle_share : (double)NAN;
    row->preemptions = any ? (double)s->preemptions : (double)NAN;
    row->worst_minute_missed_pct = any ? 100 * s->worst_minute_missed : (double)NAN;
    row->worst_minute_ttft_s = any ? s->worst_minute_ttft_s : (double)NAN;
    row->worst_minute_at_s = any ? s->worst_minute_s : (double)NAN;
    if (!any)
        return;
    row->latency = s->e2e;
    row->overloaded = s->overloaded;
    row->energy_per_request_j = s->j_per_request;
}

void fl_row_take_served(fl_row_result *row, const fl_row_result *from) {
    row->ttft = from->ttft;
    row->tbt = from->tbt;
    row->tpot = from->tpot;
    row->latency = from->latency;
    row->overloaded = from->overloaded;
    row->ttft_missed_pct = from->ttft_missed_pct;
    row->tbt_missed_pct = from->tbt_missed_pct;
    row->offered_rps = from->offered_rps;
    row->served_rps = from->served_rps;
    row->goodput_rps = from->goodput_rps;
    row->energy_per_token_j = from->energy_per_token_j;
    row->energy_per_request_j = from->energy_per_request_j;
    row->request_j = from->request_j;
    row->token_j = from->token_j;
    row->idle_pct = from->idle_pct;
    row->preemptions = from->preemptions;
    row->worst_minute_missed_pct = from->worst_minute_missed_pct;
    row->worst_minute_ttft_s = from->worst_minute_ttft_s;
    row->worst_minute_at_s = from->worst_minute_at_s;
}

void fl_row_fill(fl_row_result *row, const fl_scene *s, const fl_run_result *run, const char *policy,
                 double standard_j) {
    row->workload = s->w->name;
    row->policy = policy;
    row->variant = s->variant;
    row->platform = s->platform.name;
    row->draw = s->applications;
    row->energy_saving_pct = 100 * (1 - row->score.energy_j / standard_j);
    row->node_energy_j = run->node_energy_j;
    row->policy_cost_s = fl_seconds(run->policy_cost_ps);
    row->oracle_j = row->oracle_bound_j = row->oracle_gap_pct = NAN;
    row->reward_regret = row->bound_break_chance = row->expected_regret = NAN;
    row->violated = row->score.violated;
    fl_row_fill_latency(row, run->service.latency, run->service.load);
    fl_row_fill_served(row, run);
    row->saving_static_pct = row->saving_most_pct = NAN;
    row->target_error_w = row->target_above_pct = row->work_lost_pct = NAN;
    row->sets = (double)run->counts.sets;
}

void fl_row_put_overload(size_t over, size_t all, FILE *out) {
    if (over)
        fprintf(
            out,
            "\nnote: %zu of %zu rows are overloaded: requests arrive faster than they are served, so latencies grow "
            "with the\nlength of the run\n",
            over, all);
}

void fl_row_fill_target(fl_row_result *row, const fl_scene *s, const fl_run_result *run) {
    if (!fl_scene_target(s))
        return;
    row->target_error_w = run->target_error_w;
    row->target_above_pct = run->target_above_pct;
    row->work_lost_pct = 100 * (1 - 1 / (1 + row->score.slowdown));
}

void fl_row_finish(fl_row_result *row, fl_objective objective, double standard) {
    const double own = fl_objective_value(objective, row->score.energy_j, row->score.makespan_s);
    row->objective_unit = fl_objective_unit[objective];
    row->objective_saving_pct = 100 * (1 - own / standard);
    row->rows = 1;
    fl_row_count_regrets(row);
}

void fl_row_count_regrets(fl_row_result *row) {
    row->regret_static_rows = isfinite(row->score.regret_static_pct);
    row->regret_clairvoyant_rows = isfinite(row->score.regret_clairvoyant_pct);
}

static void put_range(char *text, size_t size, const char *name, double low, double high) {
    const size_t used = strlen(text);
    if (low < high)
        snprintf(text + used, size - used, "%s%s=%g..%g", used ? "," : "", name, low, high);
    else if (high > 0)
        snprintf(text + used, size - used, "%s%s=%g", used ? "," : "", name, high);
}

static const char *const clock_names[] = {"sm_mhz", "mem_mhz", "decode_sm_mhz"};

void fl_row_clock(fl_row_result *row, double sm_mhz, double mem_mhz, double decode_mhz) {
    const double at[] = {row->clock_sm_mhz = sm_mhz, row->clock_mem_mhz = mem_mhz, row->clock_decode_mhz = decode_mhz};
    *row->clock = '\0';
    for (size_t k = 0; k < 3; k++)
        put_range(row->clock, sizeof row->clock, clock_names[k], at[k], at[k]);
}

/* ---- the columns of a result ---- */

typedef enum fl_column_cell { TEXT, NAME, REAL, COUNT } fl_column_cell; /* NAME: a text elsewhere, or NULL */

typedef struct fl_column {
    const char *name;
    size_t offset;
    fl_column_cell cell;
} fl_column;

#define SCORE(field) #field, offsetof(fl_row_result, score.field)
#define ROW(field) #field, offsetof(fl_row_result, field)
#define TIMES(of, field) #of "_" #field, offsetof(fl_row_result, of.field)
#define JOULES(of, q) "energy_per_" #of "_" #q "_j", offsetof(fl_row_result, of##_j.q##_s)
#define LATENCY(field) "latency_" #field, offsetof(fl_row_result, latency.field)

/* clang-format off */
static const fl_column columns[] = {
    {SCORE(energy_j), REAL}, {SCORE(makespan_s), REAL}, {SCORE(mean_power_w), REAL}, {SCORE(slowdown), REAL},
    {SCORE(worst_window_slowdown), REAL}, {SCORE(regret_static_j), REAL}, {SCORE(regret_static_pct), REAL},
    {SCORE(regret_clairvoyant_pct), REAL}, {SCORE(regret_at_own_slowdown_j), REAL}, {ROW(violated), REAL},
    {SCORE(switches), COUNT}, {ROW(seed), COUNT}, {ROW(energy_saving_pct), REAL}, {SCORE(peak_power_w), REAL},
    {ROW(node_energy_j), REAL}, {SCORE(edp), REAL}, {SCORE(ed2p), REAL}, {ROW(oracle_j), REAL},
    {ROW(oracle_bound_j), REAL}, {ROW(oracle_gap_pct), REAL}, {ROW(policy_cost_s), REAL}, {ROW(reward_regret), REAL},
    {ROW(platform), NAME}, {ROW(variant), NAME}, {ROW(note), TEXT}, {LATENCY(mean_s), REAL}, {LATENCY(p50_s), REAL},
    {LATENCY(p90_s), REAL}, {LATENCY(p95_s), REAL}, {LATENCY(p99_s), REAL}, {LATENCY(max_s), REAL},
    {ROW(energy_per_request_j), REAL}, {ROW(offered_load), REAL}, {ROW(records), NAME}, {ROW(draw), NAME},
    {ROW(bound_break_chance), REAL}, {ROW(expected_regret), REAL}, {ROW(objective_unit), NAME},
    {ROW(objective_saving_pct), REAL}, {ROW(oracle_objective), REAL}, {ROW(oracle_objective_bound), REAL},
    {ROW(breaks), TEXT}, {ROW(clock), TEXT}, {ROW(rows), COUNT}, {ROW(regret_static_rows), COUNT}, {ROW(regret_clairvoyant_rows), COUNT},
    {TIMES(ttft, p50_s), REAL}, {TIMES(ttft, p95_s), REAL}, {TIMES(ttft, p99_s), REAL}, {TIMES(tbt, p50_s), REAL},
    {TIMES(tbt, p95_s), REAL}, {TIMES(tbt, p99_s), REAL}, {TIMES(tpot, p50_s), REAL}, {TIMES(tpot, p95_s), REAL},
    {TIMES(tpot, p99_s), REAL}, {ROW(ttft_missed_pct), REAL}, {ROW(tbt_missed_pct), REAL}, {ROW(served_rps), REAL}, {ROW(goodput_rps), REAL},
    {ROW(energy_per_token_j), REAL}, {ROW(preemptions), REAL}, {ROW(worst_minute_missed_pct), REAL},
    {ROW(worst_minute_ttft_s), REAL}, {ROW(worst_minute_at_s), REAL}, {ROW(saving_static_pct), REAL}, {ROW(sets), REAL},
    {ROW(offered_rps), REAL}, {ROW(saving_most_pct), REAL}, {ROW(target_error_w), REAL}, {ROW(target_above_pct), REAL},
    {ROW(work_lost_pct), REAL}, {JOULES(request, p50), REAL}, {JOULES(request, p95), REAL}, {JOULES(request, p99), REAL},
    {JOULES(token, p50), REAL}, {JOULES(token, p95), REAL}, {JOULES(token, p99), REAL}, {ROW(idle_pct), REAL}};
/* clang-format on */
enum { COLUMNS = sizeof columns / sizeof *columns };
_Static_assert(COLUMNS <= 128, "fl_row_result.partial has a bit for each");

static bool is_partial(const fl_row_result *mean, size_t column) {
    return mean->partial[column / 64] >> column % 64 & 1;
}

bool fl_row_any_partial(const fl_row_result *mean) { return (mean->partial[0] | mean->partial[1]) != 0; }

bool fl_row_is_served(const char *name) {
    static const char *const begins[] = {"ttft_",   "tbt_",     "tpot_",        "offered_rps",
                                         "served_", "goodput_", "worst_minute_"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(name, begins[i], strlen(begins[i])))
            return true;
    return !strncmp(name, "energy_per_token_", 17) || !strncmp(name, "energy_per_request_p", 20) ||
           !strcmp(name, "idle_pct") || !strcmp(name, "preemptions");
}

bool fl_row_partial(const fl_row_result *mean, const char *name) {
    for (size_t k = 0; k < COLUMNS; k++)
        if (!strcmp(name, columns[k].name))
            return is_partial(mean, k);
    return false;
}

static bool is_text(const fl_column *c) { return c->cell == TEXT || c->cell == NAME; }

bool fl_row_is_column(const char *name) {
    bool is = !strcmp(name, "slowdown_pct") || !strcmp(name, "energy_kj");
    for (size_t k = 0; !is && k < COLUMNS; k++)
        is = !is_text(&columns[k]) && !strcmp(name, columns[k].name);
    return is;
}

fl_status fl_row_value(const fl_row_result *row, const char *name, double *value, fl_diag *d) {
    static const fl_kept nothing = {
        .run = {.last_sm_mhz = NAN, .last_mem_mhz = NAN, .last_cpu_mhz = NAN, .hottest_c = NAN}};
    if (!strcmp(name, "slowdown_pct")) {
        *value = 100 * row->score.slowdown;
        return FL_OK;
    }
    if (!strcmp(name, "energy_kj")) {
        *value = row->score.energy_j * 1e-3;
        return FL_OK;
    }
    for (size_t k = 0; k < COLUMNS; k++) {
        const char *at = (const char *)row + columns[k].offset;
        uint64_t count;
        if (strcmp(name, columns[k].name) != 0)
            continue;
        if (is_text(&columns[k]))
            return fl_refuse(d, "column '%s' holds text, expected a column of numbers", name);
        if (columns[k].cell == REAL)
            memcpy(value, at, sizeof *value);
        else
            memcpy(&count, at, sizeof count), *value = (double)count;
        return FL_OK;
    }
    const fl_kept *kept = row->kept ? row->kept : &nothing;
    fl_status s = fl_measure(&kept->run, row->kept ? &kept->watch : NULL, name, value, d);
    const char *names[COLUMNS + 2] = {"slowdown_pct", "energy_kj"};
    for (size_t k = 0; k < COLUMNS; k++)
        names[k + 2] = columns[k].name;
    const char *near = s ? fl_nearest(name, names, sizeof names / sizeof *names) : NULL;
    return near ? fl_refuse(d, "no column '%s', did you mean '%s'?", name, near) : s;
}

void fl_row_head(FILE *f) {
    fputs("workload,policy", f);
    for (size_t k = 0; k < COLUMNS; k++)
        fprintf(f, ",%s", columns[k].name);
    fputc('\n', f);
}

void fl_row_put(FILE *f, const fl_row_result *row) {
    fl_csv_put(f, row->workload);
    fputc(',', f);
    fl_csv_put(f, row->policy);
    for (size_t k = 0; k < COLUMNS; k++) {
        const char *at = (const char *)row + columns[k].offset, *name;
        char text[32];
        double real;
        uint64_t count;
        fputc(',', f);
        switch (columns[k].cell) {
        case REAL:
            memcpy(&real, at, sizeof real), fputs(fl_cell_text(real, text), f);
            break;
        case COUNT:
            memcpy(&count, at, sizeof count), fprintf(f, "%llu", (unsigned long long)count);
            break;
        case TEXT:
            fl_csv_put(f, at);
            break;
        case NAME:
            memcpy(&name, at, sizeof name), fl_csv_put(f, name ? name : "");
            break;
        }
    }
    fputc('\n', f);
}

void fl_row_json(cJSON *into, const fl_row_result *row) {
    cJSON_AddStringToObject(into, "workload", row->workload);
    cJSON_AddStringToObject(into, "policy", row->policy);
    for (size_t k = 0; k < COLUMNS; k++) {
        const char *at = (const char *)row + columns[k].offset, *name;
        double real;
        uint64_t count;
        switch (columns[k].cell) {
        case REAL:
            memcpy(&real, at, sizeof real), fl_json_add_real(into, columns[k].name, real);
            break;
        case COUNT:
            memcpy(&count, at, sizeof count), cJSON_AddNumberToObject(into, columns[k].name, (double)count);
            break;
        case TEXT:
            cJSON_AddStringToObject(into, columns[k].name, at);
            break;
        case NAME:
            memcpy(&name, at, sizeof name), cJSON_AddStringToObject(into, columns[k].name, name ? name : "");
            break;
        }
    }
    cJSON *partial = row->workloads ? cJSON_AddArrayToObject(into, "partial") : NULL;
    for (size_t k = 0; partial && k < COLUMNS; k++)
        if (is_partial(row, k))
            cJSON_AddItemToArray(partial, cJSON_CreateString(columns[k].name));
}

/* The clocks of a static choice over several workloads, from the lowest to the highest. */
static void clock_range(const fl_row_result *const *row, size_t count, fl_row_result *mean) {
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {0};
    for (size_t i = 0; i < count; i++) {
        const double at[3] = {row[i]->clock_sm_mhz, row[i]->clock_mem_mhz, row[i]->clock_decode_mhz};
        for (size_t k = 0; k < 3 && at[0] > 0; k++) {
            low[k] = fmin(low[k], at[k]);
            high[k] = fmax(high[k], at[k]);
        }
    }
    for (size_t k = 0; k < 3; k++)
        put_range(mean->clock, sizeof mean->clock, clock_names[k], low[k], high[k]);
}

void fl_row_mean(const fl_row_result *const *row, size_t count, double *room, fl_row_result *mean) {
    double half;
    uint64_t switches = 0;
    for (size_t k = 0; k < COLUMNS; k++) {
        if (columns[k].cell != REAL)
            continue;
        for (size_t i = 0; i < count; i++)
            memcpy(&room[i], (const char *)row[i] + columns[k].offset, sizeof *room);
        fl_mean_interval(room, count, (double *)(void *)((char *)mean + columns[k].offset), &half);
        if (columns[k].offset == offsetof(fl_row_result, score.energy_j))
            mean->energy_half_j = isfinite(half) ? half : 0;
        size_t known = 0;
        for (size_t i = 0; i < count; i++)
            known += isnan(room[i]) ? 0 : 1;
        mean->partial[k / 64] |= known && known < count ? UINT64_C(1) << k % 64 : 0;
    }
    mean->violated = 0;
    mean->objective_unit = count ? row[0]->objective_unit : NULL;
    for (size_t i = 0; i < count; i++) {
        mean->violated += row[i]->violated;
        switches += row[i]->score.switches;
        mean->rows += row[i]->rows;
        mean->regret_static_rows += row[i]->regret_static_rows;
        mean->regret_clairvoyant_rows += row[i]->regret_clairvoyant_rows;
        mean->workloads += row[i]->seed == mean->seed;
    }
    mean->score.switches = count ? (switches + count / 2) / count : 0;
    clock_range(row, count, mean);
}
