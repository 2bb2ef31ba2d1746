/* Decisions of a policy for servers, logged, written, read and replayed: the same decisions, and the same bytes again.
 */
#include "harness/log/replay.h"
#include "harness/log/server_head.h"
#include "harness/log/steplog.h"
#include "policies/registry.h"
#include "tests/support/server_feed.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

static const int32_t sm[] = {300, 500, 700, 900, 1100, 1300, 1500};
static const fl_gpu_facts gpus[] = {{.name = "one", .sm = {sm, 7}, .default_sm_mhz = 1500, .power_default_w = 300},
                                    {.name = "two", .sm = {sm, 6}, .default_sm_mhz = 1300, .power_default_w = 300},
                                    {.name = "three", .sm = {sm, 7}, .default_sm_mhz = 1500, .power_default_w = 300}};

static fl_facts facts;
static fl_feed_servers servers;

static fl_instance *open_policy(const fl_policy *p, const fl_facts *f) {
    const fl_instance_options o = {.policy = p, .facts = f};
    fl_instance *in = NULL;
    fl_diag d = {0};
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_OK, "%s: %s", p->name, d.message);
    return in;
}

static void play(const fl_policy *p, fl_steplog *log) {
    fl_server_feed feed = {.random = fl_random_seed(3, 0)};
    fl_random random = fl_random_seed(4, 0);
    fl_gpu_sample gpu[3] = {0};
    fl_sample sample = {.gpu_count = 3, .gpu = gpu};
    fl_instance *in = open_policy(p, &facts);
    const fl_decision *decision;
    fl_diag d = {0};
    for (int i = 0; in && i < 200; i++) {
        const int64_t before = sample.time_ns;
        sample.step = (uint64_t)i;
        for (int g = 0; g < 3; g++)
            for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++) {
                gpu[g].value[id] += floor(100 * fl_random_unit(&random));
                gpu[g].valid = gpu[g].fresh = p->gpu_needs; /* as hosts do: what it does not read is not shown */
            }
        fl_server_feed_next(&feed, 2, i < 150 ? 1 : 0.6, 1, before, &sample);
        for (int k = 0; k < 2; k++)
            feed.sample[k].valid &= p->server_needs | p->server_uses;
        CU_ASSERT_FATAL(fl_instance_step(in, &sample, &decision, &d) == FL_OK);
        FL_CHECK(fl_steplog_add(log, &sample, decision, &d) == FL_OK, "%s", d.message);
        sample.time_ns += decision->delay_ns;
    }
    fl_instance_close(in);
}

static void replay(const fl_policy *p, const char *path, fl_decisions *log) {
    fl_facts told = facts;
    fl_diag d = {0};
    fl_replay_result r;
    told.server = NULL;
    told.server_count = 0;
    FL_CHECK(fl_server_head_get(&log->head, path, &told, &d) == FL_OK && told.server_count == 2, "%s", d.message);
    fl_instance *in = open_policy(p, &told);
    FL_CHECK(in && fl_replay(log, path, in, &r, &d) == FL_OK && r.steps == 200 && r.differ == 0,
             "%s: %llu steps, %llu differ, first at step %llu; %s", p->name, (unsigned long long)r.steps,
             (unsigned long long)r.differ, (unsigned long long)r.step, d.message);
    fl_instance_close(in);
    fl_server_head_free(&told);
}

static void test_replay(void) {
    facts = (fl_facts){.seed = 5, .gpu_count = 3, .gpu = gpus, .host = {.name = "host"}};
    fl_feed_servers_open(&servers, &facts);
    for (size_t i = 0; i < fl_policies_count; i++) {
        const fl_policy *p = fl_policies[i];
        char first[512], again[512];
        fl_steplog log;
        fl_decisions read = {0};
        fl_diag d = {0};
        size_t a, b;
        if (!p->server_needs && !p->server_uses && strcmp(p->name, "polca") != 0)
            continue;
        CU_ASSERT_FATAL(fl_steplog_open(&log, p, 3, &d) == FL_OK);
        play(p, &log);
        FL_CHECK(fl_server_head_put(&facts, &log.log.head, &d) == FL_OK, "%s", d.message);
        snprintf(first, sizeof first, "%s", fl_temp_path("first.csv"));
        snprintf(again, sizeof again, "%s", fl_temp_path("again.csv"));
        FL_CHECK(fl_decisions_write(first, &log.log, &d) == FL_OK, "%s: %s", p->name, d.message);
        FL_CHECK(fl_decisions_read(first, &read, &d) == FL_OK, "%s: %s:%lld: %s", p->name, d.file, (long long)d.line,
                 d.message);
        FL_CHECK(read.servers.count == 2 && read.servers.batch_count == log.log.servers.batch_count,
                 "%s: %u servers, %zu steps", p->name, read.servers.count, read.servers.batch_count);
        replay(p, first, &read);
        FL_CHECK(fl_decisions_write(again, &read, &d) == FL_OK, "%s", d.message);
        char *was = fl_temp_slurp(first, &a), *is = fl_temp_slurp(again, &b);
        FL_CHECK(was && is && a == b && !memcmp(was, is, a), "%s: read and written, the file is another", p->name);
        free(was);
        free(is);
        fl_decisions_free(&read);
        fl_steplog_free(&log);
    }
    fl_temp_remove();
}

/* ---- what is wrong with a file ---- */

#define HEAD "# foldline-decisions 1\n# gpus: 1\n"
#define NAMES                                                                                                          \
    "step,t_ns,device,fresh,delay_ns,server,batches_lost,server_fresh,waiting,batch_start_ns,batch_end_ns,"            \
    "batch_prompt_tokens,batch_prompts,batch_sequences,batch_kv_tokens\n"
#define HOST "0,0,host,,5,,,,,,,,,,\n"
#define SERVER "0,0,server,,,0,,*,3,,,,,,\n"
#define GPU "0,0,0,,,,,,,,,,,,\n"

static void test_refusals(void) {
    static const struct {
        const char *text, *expected; /* NULL: taken */
    } cases[] = {
        {HEAD NAMES HOST SERVER GPU, NULL},
        {HEAD NAMES HOST SERVER "0,0,batch,,,0,,,,1,2,3,4,5,6\n" GPU, NULL},
        {HEAD NAMES HOST "0,0,server,,,1,,*,3,,,,,,\n" GPU, "server is 1, expected 0"},
        {HEAD NAMES HOST "0,0,server,,,0,,x,3,,,,,,\n" GPU, "server_fresh names 'x'"},
        {HEAD NAMES HOST "0,0,server,,,0,,waiting,,,,,,,\n" GPU, "server_fresh names 'waiting'"},
        {HEAD NAMES HOST "0,0,server,,7,0,,*,3,,,,,,\n" GPU, "expected nothing here"},
        {HEAD NAMES HOST "0,0,server,,,0,,*,3,1,,,,,\n" GPU, "expected nothing here"},
        {HEAD NAMES HOST "0,1,server,,,0,,*,3,,,,,,\n" GPU, "are not those of the host's row"},
        {HEAD NAMES HOST "0,0,batch,,,0,,,,1,2,3,4,5,6\n" GPU, "server 0 has no row"},
        {HEAD NAMES HOST SERVER "0,0,batch,,,0,,,,1,2,-3,4,5,6\n" GPU, "batch_prompt_tokens"},
        {HEAD NAMES HOST SERVER GPU "1,1,host,,5,,,,,,,,,,\n1,1,0,,,,,,,,,,,,\n", "0 rows of servers, expected 1"},
        {HEAD NAMES "0,0,host,,5,2,,,,,,,,,\n", "expected nothing here"},
        {HEAD "step,t_ns,device,fresh,delay_ns,server,waiting\n", "columns of servers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fl_decisions r;
        fl_diag d = {0};
        const char *path = fl_temp_write("in.csv", cases[i].text, strlen(cases[i].text));
        const fl_status s = fl_decisions_read(path, &r, &d);
        FL_CHECK(cases[i].expected ? s == FL_BAD_INPUT && strstr(d.message, cases[i].expected) : s == FL_OK,
                 "case %zu: %s, expected %s", i, s ? d.message : "taken",
                 cases[i].expected ? cases[i].expected : "taken");
        if (!s)
            fl_decisions_free(&r);
    }
    fl_temp_remove();
}

static void test_heads(void) {
    static const struct {
        const char *servers, *gpus, *limits, *targets;
        bool ok;
    } cases[] = {{"1", "0/2", "64/2048/1000", "1000/2000/0.99", true},
                 {"0", "0", "1/1/1", "1/1/1", false},
                 {"5000", "0", "1/1/1", "1/1/1", false},
                 {"1", "3", "1/1/1", "1/1/1", false},
                 {"1", "0/1/2/0", "1/1/1", "1/1/1", false},
                 {"1", "x", "1/1/1", "1/1/1", false},
                 {"1", "0", "1/1", "1/1/1", false},
                 {"1", "0", "1.5/1/1", "1/1/1", false},
                 {"1", "0", "1/1/1", "1/1/2", false},
                 {"1", "0", "-1/1/1", "1/1/1", false},
                 {"1", "0", "1/1/1/", "1/1/1", false},
                 {"2", "0", "1/1/1", "1/1/1", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fl_head h = {0};
        fl_diag d = {0};
        fl_facts f = {.gpu_count = 3};
        fl_head_set(&h, "servers", cases[i].servers);
        fl_head_set(&h, "server0.gpus", cases[i].gpus);
        fl_head_set(&h, "server0.limits", cases[i].limits);
        fl_head_set(&h, "server0.targets", cases[i].targets);
        const fl_status s = fl_server_head_get(&h, "log.csv", &f, &d);
        FL_CHECK((s == FL_OK) == cases[i].ok && (s == FL_OK || strstr(d.message, "head: server")), "case %zu: %s", i,
                 s ? d.message : "taken");
        FL_CHECK(s || (f.server_count == 1 && f.server->gpu_count == 2 && f.server->gpu[1] == 2 &&
                       f.server->tbt_target_ns == 2000),
                 "case %zu: another server", i);
        fl_server_head_free(&f);
        fl_head_free(&h);
    }
}

FL_SUITE("served_log", {"replay", test_replay}, {"refusals", test_refusals}, {"heads", test_heads})
