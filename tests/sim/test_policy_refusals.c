/* What a policy refuses before it begins: each rule with the first value beyond it, and the last one within. The node:
 * two GPUs of 500 to 1500 MHz in steps of 100, memory 400 and 800 MHz, limits of 100 to 300 W; a CPU of 1000 and 2000
 * MHz. */
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

enum { GPUS = 65, SETTINGS = 3 };

static const int32_t sm[] = {500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400, 1500};
static const int32_t mem[] = {400, 800}, cpu[] = {1000, 2000};

typedef struct node {
    fl_gpu_facts gpu[GPUS];
    uint32_t on[2][2];
    fl_server_facts server[2];
    fl_facts facts;
} node;

static node make(void) {
    node n = {.facts = {.seed = 1, .gpu_count = 2, .host = {.name = "host", .cpu = {cpu, 2}}}};
    for (int i = 0; i < GPUS; i++)
        n.gpu[i] = (fl_gpu_facts){.name = "gpu",
                                  .sm = {sm, FL_COUNT(sm)},
                                  .mem = {mem, 2},
                                  .default_sm_mhz = 1500,
                                  .default_mem_mhz = 800,
                                  .power_min_w = 100,
                                  .power_max_w = 300,
                                  .power_default_w = 300,
                                  .tdp_w = 300};
    n.on[1][0] = 1;
    for (int i = 0; i < 2; i++)
        n.server[i] = (fl_server_facts){.gpu_count = 1,
                                        .max_seqs = 8,
                                        .token_budget = 512,
                                        .kv_tokens = 1000,
                                        .ttft_target_ns = 1000000000,
                                        .tbt_target_ns = 50000000,
                                        .target_share = 0.99};
    return n;
}

/* Points into itself, so it is the last thing before the call. */
static fl_status try(node *n, const char *policy, const char *const *set, const fl_table *table, fl_diag *d) {
    const fl_policy *p = NULL;
    fl_setting setting[SETTINGS];
    size_t count = 0;
    for (size_t i = 0; i < fl_policies_count; i++)
        p = strcmp(fl_policies[i]->name, policy) == 0 ? fl_policies[i] : p;
    CU_ASSERT_FATAL(p != NULL);
    for (; count < SETTINGS && set[2 * count]; count++)
        setting[count] =
            (fl_setting){.name = set[2 * count], .text = table ? NULL : set[2 * count + 1], .table = table};
    n->facts.gpu = n->gpu;
    n->facts.server = n->server;
    for (int i = 0; i < 2; i++)
        n->server[i].gpu = n->server[i].gpu_count ? n->on[i] : NULL;
    const fl_layer layer = {"test", setting, count};
    const fl_instance_options o = {.policy = p, .facts = &n->facts, .layer = &layer, .layer_count = 1};
    fl_instance *in = NULL;
    const fl_status s = fl_instance_open(&in, &o, d);
    if (!s)
        fl_instance_close(in);
    return s;
}

static void check_table(node *n, const char *policy, const char *const *set, const fl_table *table,
                        const char *refusal) {
    fl_diag d = {0};
    const fl_status s = try(n, policy, set, table, &d);
    if (refusal)
        FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, refusal), "%s %s=%s: %s", policy, set[0] ? set[0] : "",
                 set[0] ? set[1] : "", d.message);
    else
        FL_CHECK(s == FL_OK, "%s %s=%s: %s", policy, set[0] ? set[0] : "", set[0] ? set[1] : "", d.message);
}

static void check(node *n, const char *policy, const char *const *set, const char *refusal) {
    check_table(n, policy, set, NULL, refusal);
}

/* Clocks of the CPU and of the GPU for two kernels. */
static void test_tables(void) {
    static const struct {
        double cell[4];
        const char *refusal;
    } rows[] = {{{1000, 900, 2000, 500}, NULL},
                {{1000, 900, 2000, 0}, "clocks above 0"},
                {{0, 900, 2000, 500}, "clocks above 0"},
                {{1000, -1, 2000, 500}, "clocks above 0"},
                {{0.5, 0.5, 0.5, 0.5}, NULL}};
    static const char *const keys[] = {"a", "b"};
    static const char *const states[2 * SETTINGS] = {"states", ""};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        node n = make();
        const fl_table table = {.cell = rows[i].cell, .key = keys, .row_count = 2, .column_count = 2};
        check_table(&n, "ideal-static", states, &table, rows[i].refusal);
    }
}

static void test_parameters(void) {
    static const struct {
        const char *policy, *set[2 * SETTINGS], *refusal;
    } rows[] = {
        {"energyucb", {"arms_mhz", "500/700"}, NULL},
        {"energyucb", {"arms_mhz", "700/700"}, "must be ascending"},
        {"energyucb", {"arms_mhz", "700/500"}, "must be ascending"},
        {"fixed", {NULL}, "nothing to set"},
        {"fixed", {"cpu_boost", "0"}, NULL},
        {"fixed", {"sm_mhz", "500"}, NULL},
        {"fixed", {"sm_mhz", "550"}, "SM ladder"},
        {"fixed", {"mem_mhz", "400"}, NULL},
        {"fixed", {"mem_mhz", "500"}, "mem_mhz: 500 MHz is not on the memory ladder"},
        {"fixed", {"cpu_mhz", "1000"}, NULL},
        {"fixed", {"cpu_mhz", "1500"}, "the CPU's ladder; the next ones are 1000 and 2000"},
        {"fixed", {"power_limit_w", "100"}, NULL},
        {"fixed", {"power_limit_w", "99.5"}, "power_limit_w is not"},
        {"fixed", {"power_limit_w", "300"}, NULL},
        {"fixed", {"power_limit_w", "300.5"}, "power_limit_w is not"},
        {"fixed", {"power_limits_w", "200/300"}, NULL},
        {"fixed", {"power_limits_w", "200/301"}, "power_limit_w is not"},
        {"fixed", {"power_limits_w", "99/200"}, "power_limit_w is not"},
        {"fixed", {"power_limits_w", "200"}, "one limit for each GPU"},
        {"fixed", {"power_limits_w", "200/200/200"}, "one limit for each GPU"},
        {"fixed", {"power_limits_w", "200/200", "power_limit_w", "200"}, "expected one of them"},
        {"fixed", {"sm_mhz", "0"}, "above 0"},
        {"fixed", {"mem_mhz", "0"}, "above 0"},
        {"fixed", {"power_limit_w", "0"}, "above 0"},
        {"efficientfix", {"efficient_mhz", "900"}, NULL},
        {"efficientfix", {"efficient_mhz", "950"}, "the next ones are 900 and 1000"},
        {"assure", {"probe_mhz", "500/900/1500"}, NULL},
        {"assure", {"probe_mhz", "500/950/1500"}, "950 MHz is not on the SM ladder"},
        {"assure", {"probe_mhz", "900/900/1500"}, "must be ascending"},
        {"assure", {"probe_mhz", "900"}, "2 to 32 clocks"},
        {"assure", {"probe_mhz", "900/1000"}, NULL},
        {"mf-gpoeo", {"hold_sm_mhz", "900"}, NULL},
        {"mf-gpoeo", {"hold_sm_mhz", "950"}, "hold_sm_mhz: 950 MHz is not on"},
        {"mf-gpoeo", {"hold_mem_mhz", "400"}, NULL},
        {"mf-gpoeo", {"hold_mem_mhz", "500"}, "hold_mem_mhz: 500 MHz is not on"},
        {"multilevelth", {"medium_pct", "50", "high_pct", "50"}, NULL},
        {"multilevelth", {"medium_pct", "51", "high_pct", "50"}, "must not exceed high_pct"},
        {"polca", {"first", "0.5", "second", "0.6"}, NULL},
        {"polca", {"first", "0.6", "second", "0.6"}, "first must be below"},
        {"polca", {"low", "1"}, NULL},
        {"polca", {"low", "2"}, "numbers of servers"},
        {"polca", {"low", "0.5"}, "numbers of servers"},
        {"odpp", {"probe_mhz", "500/1000"}, NULL},
        {"odpp", {"probe_mhz", "500"}, "2 to 8 clocks"},
        {"odpp", {"probe_mhz", "1/2/3/4/5/6/7/8/9"}, "2 to 8 clocks"},
        {"odpp", {"probe_mhz", "1000/1000"}, "must rise"},
        {"odpp", {"train_mhz", "1/2/3/4/5/6/7/8/9"}, "2 to 8 clocks"},
        {"odpp", {"probe_mhz", "1/511", "step_mhz", "1"}, NULL},
        {"odpp", {"probe_mhz", "1/512", "step_mhz", "1"}, "more than 511 clocks"},
        {"depo", {"step_w", "1"}, NULL},
        {"depo", {"step_w", "0.5"}, NULL},
        {"depo", {"step_w", "0.39"}, "more than 512 gears"},
        {"skeleton", {"low_pct", "50", "high_pct", "50"}, NULL},
        {"skeleton", {"low_pct", "51", "high_pct", "50"}, "must not exceed high_pct"},
    };
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        node n = make();
        check(&n, rows[i].policy, rows[i].set, rows[i].refusal);
    }
}

static const char *const nothing[2 * SETTINGS] = {NULL};

/* What is to hold on every GPU must be a clock of every one; a memory clock to be tried, of one of them. GPU 1 has 800
 * and 1000 MHz alone, and 800 MHz of the memory. */
static void test_unlike_gpus(void) {
    static const int32_t few_sm[] = {800, 1000}, one_mem[] = {800};
    static const struct {
        const char *policy, *set[2 * SETTINGS], *refusal;
    } rows[] = {
        {"mf-gpoeo", {"hold_sm_mhz", "800"}, NULL},
        {"mf-gpoeo", {"hold_sm_mhz", "900"}, "the next ones are 800 and 1000"},
        {"mf-gpoeo", {"hold_mem_mhz", "800"}, NULL},
        {"mf-gpoeo", {"hold_mem_mhz", "400"}, "; the lowest is 800"},
        {"fixed", {"sm_mhz", "1000"}, NULL},
        {"fixed", {"sm_mhz", "900"}, "the SM ladder of GPU "},
        {"fixed", {"mem_mhz", "800"}, NULL},
        {"fixed", {"mem_mhz", "400"}, "the memory ladder of GPU "},
    };
    for (size_t i = 0; i < FL_COUNT(rows); i++)
        for (int other = 0; other < 2; other++) {
            node n = make();
            n.gpu[other].sm = (fl_ladder){few_sm, 2};
            n.gpu[other].mem = (fl_ladder){one_mem, 1};
            n.gpu[other].default_sm_mhz = 1000;
            check(&n, rows[i].policy, rows[i].set, rows[i].refusal);
        }
}

/* A board that does not tell which limits it takes is asked nothing before it is set; the other one still is. */
static void test_unknown_limits(void) {
    static const struct {
        const char *set[2 * SETTINGS];
        bool known[2];
        const char *refusal;
    } rows[] = {
        {{"power_limit_w", "50"}, {false, false}, NULL},
        {{"power_limit_w", "50"}, {false, true}, "power_limit_w is not"},
        {{"power_limit_w", "50"}, {true, false}, "power_limit_w is not"},
        {{"power_limit_w", "200"}, {true, false}, NULL},
        {{"power_limits_w", "50/200"}, {false, true}, NULL},
        {{"power_limits_w", "200/500"}, {true, false}, NULL},
        {{"power_limits_w", "200/500"}, {false, true}, "power_limit_w is not"},
    };
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        node n = make();
        for (int g = 0; g < 2; g++)
            if (!rows[i].known[g])
                n.gpu[g].power_min_w = n.gpu[g].power_max_w = 0;
        check(&n, "fixed", rows[i].set, rows[i].refusal);
    }
}

/* A GPU without a ladder, the first or another. */
static void test_ladders(void) {
    static const char *const policies[] = {"maxfreq",  "efficientfix", "utilizscale", "multilevelth",
                                           "assure",   "sweetspot",    "odpp",        "polca",
                                           "skeleton", "tightrope",    "bapm"};
    for (size_t i = 0; i < FL_COUNT(policies); i++)
        for (int gpu = -1; gpu < 2; gpu++) {
            node n = make();
            if (gpu >= 0)
                n.gpu[gpu].sm.count = 0;
            check(&n, policies[i], nothing, gpu >= 0 ? "ladder" : NULL);
        }
    node n = make();
    n.facts.gpu_count = 64;
    check(&n, "tightrope", nothing, NULL);
    n.facts.gpu_count = 65;
    check(&n, "tightrope", nothing, "64 GPUs");
    n = make();
    n.gpu[0].sm.count = 0;
    check(&n, "energyucb", nothing, "needs an SM ladder");
}

static void test_servers(void) {
    static const char *const policies[] = {"agft", "throttllem", "ecofreq"};
    for (size_t i = 0; i < FL_COUNT(policies); i++) {
        node n = make();
        check(&n, policies[i], nothing, "a server that batches requests");
        n.facts.server_count = 2;
        check(&n, policies[i], nothing, NULL);
        n.server[1].gpu_count = 0;
        check(&n, policies[i], nothing, "which GPUs");
        n.server[1].gpu_count = 1;
        n.on[1][0] = 0;
        check(&n, policies[i], nothing, "share no GPU");
        n.on[1][0] = 1;
        n.gpu[1].sm.count = 0;
        check(&n, policies[i], nothing, "SM ladder of every GPU of a server");
        n.gpu[1].sm.count = FL_COUNT(sm);
        n.server[0].gpu_count = 2;
        n.on[0][1] = 1;
        check(&n, policies[i], nothing, "share no GPU");
    }
    static const char *const rising[] = {"clocks_mhz", "500/700", NULL},
                             *const same[] = {"clocks_mhz", "700/700", NULL},
                             *const falling[] = {"clocks_mhz", "700/500", NULL};
    node n = make();
    n.facts.server_count = 1;
    check(&n, "agft", rising, NULL);
    check(&n, "agft", same, "must be ascending");
    check(&n, "agft", falling, "must be ascending");
    n.server[0].gpu_count = 0;
    check(&n, "polca", nothing, "which GPUs");
}

FL_SUITE("policy_refusals", {"parameters", test_parameters}, {"unlike GPUs", test_unlike_gpus},
         {"limits that are not known", test_unknown_limits}, {"tables", test_tables}, {"ladders", test_ladders},
         {"servers", test_servers})
