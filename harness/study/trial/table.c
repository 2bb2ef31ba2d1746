/* The table of rows on a terminal: which columns it has, what each means, and their cells. */
#include "harness/study/trial/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/study/trial/trial.h"
#include "sim/oracle/oracle.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Which tables have a column without --wide: those of programs, of requests to a program, of servers. */
enum {
    RUNS = 1,
    REQUESTS = 2,
    SERVERS = 4,
    ALL = RUNS | REQUESTS | SERVERS,
    SHARE = 8,      /* the cell is in percent */
    OBJECTIVE = 16, /* only where this is what is minimised */
    TARGETS = 32    /* only where a power target is given */
};

#define SPREAD_LEAST 1e-9 /* of the energy: what is less is rounding, as all seeds give the same */

typedef struct shown {
    const char *name, *head, *means; /* name: of the CSV; @ in the others is the title of the objective */
    const char *mean;                /* over several workloads; NULL: the same */
    int digits;                      /* decimals; below 0: significant digits */
    int when;
} shown;

/* clang-format off */
static const shown columns[] = {
    {"energy_j", "energy J", "energy of the GPUs", "mean energy of the GPUs", -6, RUNS | REQUESTS},
    {"energy_per_token_j", "J/token", "energy of an output token", NULL, -4, SERVERS},
    {"energy_saving_pct", "saved %", "energy saved against the driver's default", "mean of the savings, not that of the energies", 2, ALL},
    {"objective_saving_pct", "@ saved %", "@ saved against the driver's default", "mean of the @ savings", 2, ALL | OBJECTIVE},
    {"makespan_s", "time s", "time until the work is done", "mean time until the work is done", -5, RUNS},
    {"slowdown", "slowdown %", "time above the driver's default", "mean of the slowdowns, not that of the times", 2, RUNS | SHARE},
    {"latency_mean_s", "latency s", "from a request's arrival to its end", NULL, -4, REQUESTS},
    {"latency_p99_s", "p99 s", "99 % of the latencies are at most this", NULL, -4, REQUESTS},
    {"ttft_p99_s", "TTFT p99 s", "99 % of times to first token are at most this", NULL, -3, SERVERS},
    {"tbt_p99_s", "TBT p99 s", "99 % of times between tokens are at most this", NULL, -3, SERVERS},
    {"target_error_w", "off target W", "mean distance of the GPUs' power from the target, from 5 s on", NULL, 2, TARGETS},
    {"target_above_pct", "above target %", "share of the time above the target, from 5 s on", NULL, 1, TARGETS},
    {"work_lost_pct", "work lost %", "work that the default does in the same time and this does not", NULL, 2, TARGETS},
    {"violated", "bound", "whether all bounds hold, or in how many runs they do", NULL, 0, ALL},
    {"regret_static_pct", "above static %", "@ above the best static clock, %", "mean @ above the best static clock, %", 2, 0},
    {"regret_clairvoyant_pct", "above best %", "@ above the best schedule known, %", "mean @ above the best schedule known, %", 2, 0},
    {"saving_most_pct", "at most %", "no clocks save more, at any latency", NULL, 1, 0},
    {"worst_window_slowdown", "worst part %", "slowdown of the slowest part of the work (--windows)", NULL, 2, SHARE},
    {"edp", "EDP J s", "energy times time", NULL, -6, OBJECTIVE},
    {"ed2p", "ED2P J s^2", "energy times the square of time", NULL, -6, OBJECTIVE},
    {"switches", "switches", "changes of a clock", NULL, -6, 0},
    {"sets", "sets", "settings that the policy made", NULL, -6, 0},
    {"bound_break_chance", "break %", "chance that the real GPU breaks the bound", NULL, 1, SHARE},
    {"expected_regret", "expected regret %", "energy above the best choice to expect on the real GPU", NULL, 2, SHARE},
    {"reward_regret", "Eq. 3 regret", "cumulative regret, Eq. 3 of EnergyUCB", NULL, 0, 0},
    {"latency_p95_s", "p95 s", "95 % of the latencies are at most this", NULL, -4, 0},
    {"ttft_p50_s", "TTFT p50 s", "median of the times to first token", NULL, -3, 0},
    {"tbt_p50_s", "TBT p50 s", "median of the times between tokens", NULL, -3, 0},
    {"ttft_missed_pct", "TTFT missed %", "first tokens that came after the target", NULL, 2, 0},
    {"tbt_missed_pct", "TBT missed %", "other tokens that came after the target", NULL, 2, 0},
    {"worst_minute_missed_pct", "worst minute %", "late tokens in the worst minute", NULL, 1, 0},
    {"goodput_rps", "goodput/s", "requests per second that met the targets", NULL, -3, 0},
    {"energy_per_request_j", "J/request", "energy of a request", NULL, -4, 0},
    {"energy_per_request_p50_j", "J/request p50", "half of the requests drew at most this in steps", NULL, -4, 0},
    {"energy_per_request_p95_j", "J/request p95", "95 % of the requests drew at most this in steps", NULL, -4, 0},
    {"energy_per_request_p99_j", "J/request p99", "99 % of the requests drew at most this in steps", NULL, -4, 0},
    {"energy_per_token_p99_j", "J/token p99", "the same of a request's energy over its output tokens", NULL, -4, 0},
    {"idle_pct", "idle %", "share of the node's energy that no step drew", NULL, 1, 0},
    {"preemptions", "preemptions", "times that a request lost its KV blocks", NULL, -4, 0}};
/* clang-format on */
_Static_assert(FL_COUNT(columns) <= 64, "fl_row_table.shown has a bit for each");

static double value_of(const fl_row_result *r, const shown *c) {
    double value = NAN;
    fl_row_value(r, c->name, &value, NULL); /* there is such a column */
    return c->when & SHARE ? 100 * value : value;
}

static bool is(const shown *c, const char *name) { return !strcmp(c->name, name); }

static bool any(const fl_row_table *t, const shown *c) {
    for (size_t i = 0; i < t->count; i++)
        if (isfinite(value_of(&t->row[i], c)))
            return true;
    return false;
}

static bool shows(const fl_row_table *t, const shown *c, int kind) {
    if (is(c, "violated"))
        return t->bounded;
    if (c->when & OBJECTIVE && (t->objective == FL_MIN_ENERGY || (is(c, "edp") && t->objective != FL_MIN_EDP) ||
                                (is(c, "ed2p") && t->objective != FL_MIN_ED2P)))
        return false;
    return c->when & kind || (c->when & TARGETS && any(t, c)) || (t->wide && any(t, c));
}

/* The text with the title of the objective for its @, if it has one. */
static const char *fill(const char *text, const char *title, char *buf, size_t size) {
    const size_t before = strcspn(text, "@");
    snprintf(buf, size, "%.*s%s%s", (int)before, text, text[before] ? title : "", text + before + !!text[before]);
    return buf;
}

void fl_row_table_heads(fl_row_table *t, fl_grid *g) {
    static const shown served = {.name = "energy_per_token_j"}, asked = {.name = "latency_mean_s"};
    const char *title = fl_objective_title[t->objective];
    const int kind = any(t, &served) ? SERVERS : any(t, &asked) ? REQUESTS : RUNS;
    char head[64], means[128];
    t->shown = 0;
    for (size_t k = 0; k < FL_COUNT(columns); k++) {
        const shown *c = &columns[k];
        if (!shows(t, c, kind))
            continue;
        t->shown |= UINT64_C(1) << k;
        fl_grid_column(g, fill(c->head, title, head, sizeof head), "%s [%s]",
                       fill(t->several && c->mean ? c->mean : c->means, title, means, sizeof means), c->name);
    }
}

void fl_row_table_cells(fl_row_table *t, fl_grid *g, const fl_row_result *r) {
    char mark[32];
    for (size_t k = 0; k < FL_COUNT(columns); k++) {
        const shown *c = &columns[k];
        if (!(t->shown >> k & 1))
            continue;
        if (is(c, "violated")) {
            if (r->rows > 1)
                fl_grid_add(g, "%.0f of %llu", (double)r->rows - r->violated, (unsigned long long)r->rows);
            else
                fl_grid_add(g, "%s", !r->rows ? "n/a" : r->violated > 0 ? "broken" : "held");
            continue;
        }
        const bool partial = fl_row_partial(r, c->name);
        snprintf(mark, sizeof mark, "%s", partial ? "*" : "");
        if (is(c, "energy_j") && t->one && r->energy_half_j > SPREAD_LEAST * value_of(r, c))
            snprintf(mark, sizeof mark, " +-%.3g", r->energy_half_j);
        fl_grid_number(g, value_of(r, c), c->digits, mark);
        t->partial |= partial;
        t->none |= !strncmp(c->name, "regret_", 7) && r->violated > 0;
        t->half |= *mark == ' ';
    }
}

void fl_row_table_marks(const fl_row_table *t, fl_grid *g) {
    if (t->none)
        fl_grid_define(g, "n/a", "a run that breaks a bound is not compared with those that hold it");
    if (t->partial)
        fl_grid_define(g, "*", "mean of the rows that have a value");
    if (t->half)
        fl_grid_define(g, "+-", "half of the 95 % interval over the seeds");
}
