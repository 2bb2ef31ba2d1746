/* Decisions of a policy for servers, logged, written, read and replayed: the same decisions, and the same bytes again.
 */
#include "harness/live/host/host.h"
#include "harness/log/inside.h"
#include "harness/log/log.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "policies/registry/registry.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/server_feed.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

static const int32_t sm[] = {300, 500, 700, 900, 1100, 1300, 1500};
static const fl_gpu_facts gpus[] = {{.name = "one", .sm = {sm, 7}, .default_sm_mhz = 1500, .power_default_w = 300},
                                    {.name = "two", .sm = {sm, 6}, .default_sm_mhz = 1300, .power_default_w = 300},
                                    {.name = "three", .sm = {sm, 7}, .default_sm_mhz = 1500, .power_default_w = 300}};

static fl_facts facts;
static fl_feed_servers servers;

/* Reads and asks for all that a log may hold, and decides by it: by whether anybody tells of an engine's steps, too. */
static const char *every_init(void *state, const void *params, const fl_facts *f) {
    (void)state, (void)params, (void)f;
    return NULL;
}

static void every_step(void *state, const void *params, const fl_facts *f, const fl_sample *s, fl_command *c) {
    double sum = s->woken + (s->batch ? 3 : 0) + (double)s->batch_count + (double)s->record_count;
    (void)state, (void)params;
    for (uint32_t i = 0; i < s->server_count; i++)
        sum += fl_server_known(&s->server[i], FL_SERVER_RUNNING) ? s->server[i].value[FL_SERVER_RUNNING] : 5;
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        sum += fl_gpu_known(&s->gpu[i], FL_GPU_ITERATIONS) ? s->gpu[i].value[FL_GPU_ITERATIONS] : 7;
        fl_set_gpu(c, i, FL_SET_SM_MHZ, f->gpu[i].sm.mhz[(uint64_t)sum % f->gpu[i].sm.count]);
    }
    c->wake = (uint64_t)sum % 2 ? FL_BIT(FL_WAKE_MARKER) : 0;
    c->delay_ns = 1000000 * (1 + (int64_t)sum % 9 + (int64_t)s->record_lost);
}

static const fl_signal_row every_signals[] = {FL_NEEDS(GPU_POWER_W), FL_USES(GPU_ITERATIONS), FL_USES(SERVER_RUNNING),
                                              FL_USES(ENGINE_STEPS)};

static const fl_policy every = {FL_POLICY_ABI,
                                .name = "every",
                                FL_SIGNAL_ROWS(every_signals),
                                .wakes = FL_BIT(FL_WAKE_MARKER),
                                .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_RECORDS),
                                .init = every_init,
                                .step = every_step};

static fl_instance *open_policy(const fl_policy *p, const fl_facts *f) {
    const fl_instance_options o = {.policy = p, .facts = f};
    fl_instance *in = NULL;
    fl_diag d = {0};
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_OK, "%s: %s", p->name, d.message);
    return in;
}

/* Kernel records of a step, for policies that take them: a kind more every tenth step, up to three. */
static void feed_kernels(const fl_policy *p, int step, fl_sample *to) {
    static const fl_kernel_kind kinds[3] = {
        {.name = "a", .grid = {1, 1, 1}, .block = {32, 1, 1}},
        {.name = "b,\"", .name_id = 1, .grid = {2, 1, 1}, .block = {32, 1, 1}},
        {.name = "c", .name_id = 2, .grid = {3, 1, 1}, .block = {32, 1, 1}},
    };
    static fl_kernel_record record[2];
    to->record = NULL;
    to->record_count = 0;
    if (!fl_takes_kernels(p))
        return;
    to->kind = kinds;
    to->kind_count = 1 + (uint32_t)(step / 10 > 2 ? 2 : step / 10);
    for (uint32_t i = 0; i < 2; i++)
        record[i] = (fl_kernel_record){.start_ns = to->time_ns + i,
                                       .end_ns = step % 7 ? to->time_ns + 5 + i : -1,
                                       .kind = i % to->kind_count,
                                       .stream = i,
                                       .gpu = i};
    to->record = record;
    to->record_count = (uint64_t)step % 3;
    to->record_lost = (uint64_t)step % 5;
}

static void play(const fl_policy *p, fl_steplog *log, fl_live_log *live) {
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
        sample.woken = p->wakes && i % 3 == 1 ? FL_BIT(FL_WAKE_MARKER) : 0;
        for (int g = 0; g < 3; g++)
            for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++) {
                gpu[g].value[id] += floor(100 * fl_random_unit(&random));
                gpu[g].valid = gpu[g].fresh = fl_reads_of(p).gpu; /* as hosts do: what it does not read is not shown */
            }
        fl_server_feed_next(&feed, 2, i < 150 ? 1 : 0.6, 1, before, &sample);
        if (!sample.batch && i >= 100) /* told, but none ended; before that nobody tells */
            sample.batch = feed.batch;
        feed_kernels(p, i, &sample);
        for (int k = 0; k < 2; k++)
            feed.sample[k].valid &= fl_reads_of(p).server;
        CU_ASSERT_FATAL(fl_instance_step(in, &sample, &decision, &d) == FL_OK);
        FL_CHECK(fl_steplog_add(log, &sample, decision, &d) == FL_OK, "%s", d.message);
        FL_CHECK(live && fl_live_log_add(live, &sample, decision, &d) == FL_OK, "%s", d.message);
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

static void same_bytes(const fl_policy *p, const char *one, const char *other, const char *what) {
    size_t a = 0, b = 0;
    char *was = fl_temp_slurp(one, &a), *is = fl_temp_slurp(other, &b);
    FL_CHECK(was && is && a == b && !memcmp(was, is, a), "%s: %s", p->name, what);
    free(was);
    free(is);
}

/* Every policy that looks at servers, and one that reads, uses and asks for all that a log may hold at once: its log
 * replays, and is the same in memory, in a file, and as a live host writes it step by step. */
static void test_replay(void) {
    facts = (fl_facts){.seed = 5, .gpu_count = 3, .gpu = gpus, .host = {.name = "host"}};
    fl_feed_servers_open(&servers, &facts);
    for (size_t i = 0; i <= fl_policies_count; i++) {
        const fl_policy *p = i < fl_policies_count ? fl_policies[i] : &every;
        char first[512], again[512], live[512];
        fl_steplog log;
        fl_decisions read = {0};
        fl_diag d = {0};
        if (!fl_reads_of(p).server && strcmp(p->name, "polca") != 0)
            continue;
        CU_ASSERT_FATAL(fl_steplog_open(&log, p, 3, &d) == FL_OK);
        FL_CHECK(fl_server_head_put(&facts, &log.log.head, &d) == FL_OK, "%s", d.message);
        snprintf(live, sizeof live, "%s", fl_temp_path("live.csv"));
        fl_live_log *written = NULL;
        FL_CHECK(fl_live_log_open(&written, live, &log.log.head, p, &d) == FL_OK, "%s", d.message);
        play(p, &log, written);
        FL_CHECK(fl_live_log_close(written, &d) == FL_OK, "%s", d.message);
        snprintf(first, sizeof first, "%s", fl_temp_path("first.csv"));
        snprintf(again, sizeof again, "%s", fl_temp_path("again.csv"));
        FL_CHECK(fl_decisions_write(first, &log.log, &d) == FL_OK, "%s: %s", p->name, d.message);
        FL_CHECK(fl_decisions_read(first, &read, &d) == FL_OK, "%s: %s:%lld: %s", p->name, d.file, (long long)d.line,
                 d.message);
        FL_CHECK(read.servers.count == 2 && read.servers.batch_count == log.log.servers.batch_count,
                 "%s: %u servers, %zu steps", p->name, read.servers.count, read.servers.batch_count);
        replay(p, first, &read);
        FL_CHECK(fl_decisions_write(again, &read, &d) == FL_OK, "%s", d.message);
        same_bytes(p, first, again, "read and written, the file is another");
        fl_decisions_free(&read);
        FL_CHECK(fl_decisions_read(live, &read, &d) == FL_OK, "%s: %s:%lld: %s", p->name, d.file, (long long)d.line,
                 d.message);
        FL_CHECK(fl_decisions_write(again, &read, &d) == FL_OK, "%s", d.message);
        same_bytes(p, first, again, "the log of a live host says something else");
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
