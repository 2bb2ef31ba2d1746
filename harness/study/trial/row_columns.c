#include "harness/study/trial/row_columns.h"

#include "harness/base/cli/grid.h"
#include "harness/base/json/json_out.h"
#include "traces/io/csv.h"
#include "traces/io/writing.h"

#include <math.h>
#include <string.h>

typedef enum fl_cell { TEXT, NAME, REAL, COUNT } fl_cell; /* NAME: a text elsewhere, or NULL */

typedef struct fl_column {
    const char *name;
    size_t offset;
    fl_cell cell;
} fl_column;

#define SCORE(field) #field, offsetof(fl_row_result, score.field)
#define ROW(field) #field, offsetof(fl_row_result, field)
#define TIMES(of, field) #of "_" #field, offsetof(fl_row_result, of.field)
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
    {ROW(offered_rps), REAL}, {ROW(saving_most_pct), REAL}};
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
    return !strcmp(name, "energy_per_token_j") || !strcmp(name, "preemptions");
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

static void put_range(char *text, size_t size, const char *name, double low, double high) {
    const size_t used = strlen(text);
    if (low < high)
        snprintf(text + used, size - used, "%s%s=%g..%g", used ? "," : "", name, low, high);
    else if (high > 0)
        snprintf(text + used, size - used, "%s%s=%g", used ? "," : "", name, high);
}

/* The clocks of a static choice over several workloads, from the lowest to the highest. */
static void clock_range(const fl_row_result *const *row, size_t count, fl_row_result *mean) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {0, 0};
    for (size_t i = 0; i < count; i++) {
        const double at[2] = {row[i]->clock_sm_mhz, row[i]->clock_mem_mhz};
        for (size_t k = 0; k < 2 && at[0] > 0; k++) {
            low[k] = fmin(low[k], at[k]);
            high[k] = fmax(high[k], at[k]);
        }
    }
    put_range(mean->clock, sizeof mean->clock, "sm_mhz", low[0], high[0]);
    put_range(mean->clock, sizeof mean->clock, "mem_mhz", low[1], high[1]);
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
        size_t known = 0;
        for (size_t i = 0; i < count; i++)
            known += isnan(room[i]) ? 0 : 1;
        mean->partial[k / 64] |= known && known < count ? UINT64_C(1) << k % 64 : 0;
    }
    mean->violated = 0;
    mean->objective_unit = row[0]->objective_unit;
    for (size_t i = 0; i < count; i++) {
        mean->violated += row[i]->violated;
        switches += row[i]->score.switches;
        mean->rows += row[i]->rows;
        mean->regret_static_rows += row[i]->regret_static_rows;
        mean->regret_clairvoyant_rows += row[i]->regret_clairvoyant_rows;
        mean->workloads += row[i]->seed == mean->seed;
    }
    mean->score.switches = (switches + count / 2) / count;
    clock_range(row, count, mean);
}
