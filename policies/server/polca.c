/* POLCA: lets more servers share a power budget than their peaks allow, and lowers clocks when they reach it.
 *
 * From the public text: two thresholds on the power of the row. Above the first, servers of low priority get a lower
 * clock; above the second they get a still lower one, and if that is not enough those of high priority are lowered too.
 * A clock is given back once the power is below the threshold by a margin, so that it does not swing.
 *
 * Assumed, as it could not be checked against the text: the thresholds (80 % and 89 % of the budget), the margin (5 %),
 * the clocks as shares of the top clock (0.90 and 0.79 for low, 0.93 for high priority: 1275, 1110 and 1305 of 1410
 * MHz) and the time between readings (2 s). The row is this node. The published brake beyond the budget is the board's
 * own power limit here. Which servers are of low priority is a parameter; on a node without servers each GPU counts as
 * one. */
#include "policies/server/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef struct params {
    fl_table low;
    double budget_w, first, second, margin, low_first, low_second, high_second, interval_ms, patience_ms;
} params;

enum { FREE, LOW_FIRST, LOW_SECOND, ALL, LEVELS };

typedef struct node_state {
    double budget_w; /* NAN: not known */
    int64_t seen_ns; /* when the power was known last */
    int64_t level;
    uint32_t held; /* 1: power or budget is not known for too long, so the default clock holds */
} node_state;

enum { PROBE_POWER, PROBE_LEVEL, PROBE_HELD, PROBES };

static const fl_probe probe_rows[PROBES] = {
    [PROBE_POWER] = {"power", "W", "of all GPUs", 0},
    [PROBE_LEVEL] = {"level", "", "0 free, 1 low priority lowered, 2 lowered more, 3 high priority too", 0},
    [PROBE_HELD] = {"held", "", "1: power or budget is not known, so the default clock holds", 0},
};

static uint32_t members(const fl_facts *facts) { return facts->server_count ? facts->server_count : facts->gpu_count; }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    node_state *n = state;
    const params *p = param_bytes;
    const char *why = facts->server_count ? fl_drive_check(facts) : NULL;
    if (why)
        return why;
    if (!(p->first < p->second))
        return "first must be below second";
    if (p->low_second > p->low_first)
        return "low_second must not exceed low_first";
    for (uint32_t i = 0; i < p->low.row_count; i++)
        if (!(p->low.cell[i] < members(facts)) || p->low.cell[i] != floor(p->low.cell[i]))
            return "low must hold numbers of servers (of GPUs, where there is none)";
    why = fl_need_ladders(facts);
    n->budget_w = p->budget_w;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        const fl_gpu_facts *g = &facts->gpu[i];
        if (p->budget_w > 0)
            continue;
        const double most = g->power_default_w > 0 ? g->power_default_w : g->tdp_w;
        n->budget_w += most > 0 ? most : (double)NAN;
    }
    return why;
}

static int is_low(const params *p, uint32_t member) {
    for (uint32_t i = 0; i < p->low.row_count; i++)
        if (p->low.cell[i] == member)
            return 1;
    return 0;
}

/* Share of the top clock that a member may have; 0: the default. */
static double share_of(const params *p, uint32_t member, int64_t level) {
    if (is_low(p, member))
        return level == FREE ? 0 : level == LOW_FIRST ? p->low_first : p->low_second;
    return level == ALL ? p->high_second : 0;
}

/* One step up or down a reading: what one lowering does is seen before the next. */
static int64_t next_level(const params *p, int64_t level, double share) {
    const double enter[LEVELS] = {0, p->first, p->second, p->second};
    if (level < ALL && share > enter[level + 1])
        return level + 1;
    if (level > FREE && share < enter[level] - p->margin)
        return level - 1;
    return level;
}

static void set_member(const fl_facts *facts, uint32_t member, double share, fl_command *c) {
    if (facts->server_count) {
        const fl_ladder ladder = facts->gpu[facts->server[member].gpu[0]].sm;
        fl_drive_clock(facts, member, share > 0 ? fl_ladder_down(ladder, share * fl_ladder_max(ladder)) : 0, c);
        return;
    }
    const fl_ladder ladder = facts->gpu[member].sm;
    fl_set_gpu(c, member, FL_SET_SM_MHZ,
               share > 0 ? fl_ladder_down(ladder, share * fl_ladder_max(ladder)) : FL_DEFAULT);
}

static void to_level(node_state *n, const params *p, const fl_facts *facts, int64_t level, fl_command *c) {
    for (uint32_t i = 0; i < members(facts); i++)
        if (share_of(p, i, level) != share_of(p, i, n->level))
            set_member(facts, i, share_of(p, i, level), c);
    n->level = level;
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    node_state *n = state;
    const params *p = param_bytes;
    double power_w = 0;
    for (uint32_t i = 0; i < sample->gpu_count; i++)
        power_w += fl_gpu_known(&sample->gpu[i], FL_GPU_POWER_W) ? sample->gpu[i].value[FL_GPU_POWER_W] : (double)NAN;
    if (isfinite(power_w) && isfinite(n->budget_w)) {
        n->seen_ns = sample->time_ns;
        n->held = 0;
        to_level(n, p, facts, next_level(p, n->level, power_w / n->budget_w), c);
    } else if ((double)(sample->time_ns - n->seen_ns) > p->patience_ms * 1e6) {
        n->held = 1;
        to_level(n, p, facts, FREE, c);
    }
    fl_show_node(c, PROBE_POWER, power_w);
    fl_show_node(c, PROBE_LEVEL, (double)n->level);
    fl_show_node(c, PROBE_HELD, n->held);
    c->delay_ns = (int64_t)(p->interval_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(params, low, LIST(0, 65535), "", "", "servers of low priority, by number (GPUs where there is no server)"),
    FL_PARAM(
        params, budget_w, REAL(0, 1e9), "W", "0",
        "power of all GPUs together; 0: the sum of their power limits (where one is not known, the default holds)"),
    FL_PARAM(params, first, REAL(0, 10), "", "0.8", "threshold 1, share of the budget (unverified)"),
    FL_PARAM(params, second, REAL(0, 10), "", "0.89", "threshold 2, share of the budget (unverified)"),
    FL_PARAM(params, margin, REAL(0, 1), "", "0.05",
             "share of the budget below a threshold at which clocks are given back (unverified)"),
    FL_PARAM(params, low_first, REAL(0.01, 1), "", "0.904", "clock of low priority above threshold 1 (unverified)"),
    FL_PARAM(params, low_second, REAL(0.01, 1), "", "0.787", "clock of low priority above threshold 2 (unverified)"),
    FL_PARAM(params, high_second, REAL(0.01, 1), "", "0.926", "clock of high priority above threshold 2 (unverified)"),
    FL_PARAM(params, interval_ms, REAL(1, 3600000), "ms", "2000", "time between readings (unverified)"),
    FL_PARAM(params, patience_ms, REAL(1, 3600000), "ms", "10000",
             "longest time without a reading, then the default clock holds (assumed)"),
};

static const fl_signal_row signal_rows[] = {
    FL_NEEDS(GPU_POWER_W),
};

FL_POLICY(polca) = {FL_POLICY_ABI,
                    .name = "polca",
                    .summary = "slows servers at two thresholds of node power: first those of low priority, then all",
                    .source = "POLCA, dual threshold capping",
                    .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                    .state_size = sizeof(node_state),
                    FL_POLICY_PARTS(params)};
