/* The policy instance: parameters, snapping, clamping, faults, rate limit, copies, rows and the identity of the
 * contract. */
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/instance/inside.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/reads.h"
#include "tests/support/suite.h"

#include <math.h>

/* A policy that does what the test says. */

typedef struct puppet_params {
    double gain;
    int64_t steps, flag, mode;
    fl_table clocks, model;
} puppet_params;

typedef struct puppet_state { /* of a size that is a multiple of nothing */
    uint32_t count;
    char rest[7];
} puppet_state;

typedef struct puppet_gpu {
    long double count; /* the greatest alignment that a member may ask for */
} puppet_gpu;

static struct {
    uint64_t gpu_set, host_set;
    double gpu[FL_GPU_CONTROL_COUNT], host[FL_HOST_CONTROL_COUNT];
    int64_t delay_ns;
    const char *refusal;
    puppet_params seen; /* the parameters of the last init or step */
    double model_cell;
    char model_key[16];
    bool clean; /* the command came cleared */
    bool lost;  /* the state of a GPU is not aligned, or not what the steps before made of it */
} hand;

/* Of the GPUs and of the node, in no order. */
enum { PROBE_UNUSED, PROBE_COUNT, PROBE_STEPS, PROBES };

static const fl_probe puppet_probes[PROBES] = {
    [PROBE_UNUSED] = {"unused", "", "never written", 1},
    [PROBE_COUNT] = {"count", "", "steps", 0},
    [PROBE_STEPS] = {"steps", "", "times the GPU's number", 1},
};
enum { COUNT_CELL = 2, STEPS_CELL, PROBE_CELLS = 5 }; /* two GPUs */

static const char *puppet_init(void *state, const void *params, const fl_facts *facts) {
    const puppet_state *s = state;
    hand.seen = *(const puppet_params *)params;
    return s->count || facts->gpu_count == 0 ? "not zeroed" : hand.refusal;
}

static void puppet_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                        fl_command *command) {
    puppet_state *s = state;
    (void)sample;
    hand.seen = *(const puppet_params *)params;
    if (hand.seen.model.row_count) {
        hand.model_cell = hand.seen.model.cell[hand.seen.model.row_count * hand.seen.model.column_count - 1];
        snprintf(hand.model_key, sizeof hand.model_key, "%s", hand.seen.model.key[hand.seen.model.row_count - 1]);
    }
    hand.clean = command->delay_ns == 0 && command->host.set == 0;
    puppet_gpu *gpu = fl_gpu_states(state, sizeof *s);
    hand.lost |= (uintptr_t)gpu % _Alignof(puppet_gpu) != 0;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        hand.clean = hand.clean && command->gpu[i].set == 0 && isnan(command->probe[PROBE_STEPS][i]);
        hand.lost |= gpu[i].count != s->count * (i + 1);
        gpu[i].count += i + 1;
        fl_show_gpu(command, i, PROBE_STEPS, (double)gpu[i].count);
    }
    s->count++;
    memset(s->rest, 0xff, sizeof s->rest);
    fl_show_node(command, PROBE_COUNT, s->count);
    command->delay_ns = hand.delay_ns;
    command->gpu[0].set = hand.gpu_set;
    memcpy(command->gpu[0].value, hand.gpu, sizeof hand.gpu);
    command->host.set = hand.host_set;
    memcpy(command->host.value, hand.host, sizeof hand.host);
}

static const fl_param puppet_rows[] = {
    FL_PARAM(puppet_params, gain, REAL(0, 1), "", "0.5", ""),
    FL_PARAM(puppet_params, steps, INT(-5, 1000), "", "3", ""),
    FL_PARAM(puppet_params, flag, BOOL, "", "off", ""),
    FL_PARAM(puppet_params, mode, CHOICE("slow|fast|faster"), "", "fast", ""),
    FL_PARAM(puppet_params, clocks, LIST(1, 5000), "MHz", "100/200.5", ""),
    FL_PARAM(puppet_params, model, TABLE("key:kernel|sm_mhz|mem_mhz"), "", "", ""),
};

static const fl_policy puppet = {FL_POLICY_ABI,
                                 .name = "puppet",
                                 .summary = "",
                                 .source = "",
                                 .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) |
                                               FL_BIT(FL_SET_POWER_LIMIT_W) | FL_BIT(FL_SET_RECORDS),
                                 .host_drives = FL_BIT(FL_SET_HOST_CPU_MHZ) | FL_BIT(FL_SET_HOST_CPU_BOOST),
                                 .param = puppet_rows,
                                 .param_count = sizeof puppet_rows / sizeof *puppet_rows,
                                 .probe = puppet_probes,
                                 .probe_count = PROBES,
                                 .param_size = sizeof(puppet_params),
                                 .state_size = sizeof(puppet_state),
                                 .gpu_size = sizeof(puppet_gpu),
                                 .init = puppet_init,
                                 .step = puppet_step};

static const int32_t sm[] = {300, 307, 315, 1000}, mem[] = {405, 810}, cpu[] = {1200, 2200};
static const fl_gpu_facts gpu_facts[2] = {
    {.sm = {sm, 4}, .mem = {mem, 2}, .power_min_w = 100, .power_max_w = 250},
    {.sm = {sm, 4}},
};
static const fl_facts facts = {.gpu_count = 2, .gpu = gpu_facts, .host = {.cpu = {cpu, 2}}};

static fl_gpu_sample gpu_samples[2];

static fl_status open_puppet(fl_instance **in, const fl_layer *layer, size_t layers, int64_t interval_ns, fl_diag *d) {
    fl_instance_options o = {
        .policy = &puppet, .facts = &facts, .layer = layer, .layer_count = layers, .min_set_interval_ns = interval_ns};
    memset(d, 0, sizeof *d);
    return fl_instance_open(in, &o, d);
}

static const fl_decision *step_at(fl_instance *in, int64_t time_ns) {
    const fl_decision *decision = NULL;
    fl_sample s = {.time_ns = time_ns, .gpu_count = 2, .gpu = gpu_samples};
    fl_diag d;
    CU_ASSERT_FATAL(fl_instance_step(in, &s, &decision, &d) == FL_OK);
    return decision;
}

static void hand_rest(void) {
    memset(&hand, 0, sizeof hand);
    hand.delay_ns = 1000;
}

/* ---- parameters ---------------------------------------------------------------------------------------------------
 */

static void test_values(void) {
    static const struct {
        uint32_t row;
        const char *text, *expected; /* text form of the value, or of the message after "policy puppet: parameter " */
        bool good;
    } rows[] = {
        {0, NULL, "0.5", true},
        {0, "0", "0", true},
        {0, "1", "1", true},
        {0, "2.5e-1", "0.25", true},
        {0, "1.5", "'gain' (--set): 1.5 is out of range, expected 0 to 1", false},
        {0, "-0.001", "'gain' (--set): -0.001 is out of range, expected 0 to 1", false},
        {0, "0.5x", "'gain' (--set): '0.5x' is not a number", false},
        {0, " 0.5", "'gain' (--set): ' 0.5' is not a number", false},
        {0, "0,5", "'gain' (--set): '0,5' is not a number", false},
        {0, "", "'gain' (--set): '' is not a number", false},
        {0, "nan", "'gain' (--set): 'nan' is not a number", false},
        {0, "1e999", "'gain' (--set): '1e999' is too large", false},
        {1, NULL, "3", true},
        {1, "-5", "-5", true},
        {1, "1001", "'steps' (--set): 1001 is out of range, expected -5 to 1000", false},
        {1, "-6", "'steps' (--set): -6 is out of range, expected -5 to 1000", false},
        {1, "2.0", "'steps' (--set): '2.0' is not a whole number", false},
        {1, "99999999999999999999", "'steps' (--set): '99999999999999999999' is too large", false},
        {2, NULL, "0", true},
        {2, "on", "1", true},
        {2, "true", "1", true},
        {2, "1", "1", true},
        {2, "false", "0", true},
        {2, "yes", "'flag' (--set): 'yes' is not a switch, expected 0, 1, true, false, on or off", false},
        {3, NULL, "fast", true},
        {3, "slow", "slow", true},
        {3, "faster", "faster", true},
        {3, "fas", "'mode' (--set): 'fas' is not a choice, expected one of slow|fast|faster", false},
        {3, "slow|fast", "'mode' (--set): 'slow|fast' is not a choice, expected one of slow|fast|faster", false},
        {4, NULL, "100/200.5", true},
        {4, "855/1050/1245", "855/1050/1245", true},
        {4, "7", "7", true},
        {4, "", "", true},
        {4, "855//1245", "'clocks' (--set): '' is not a number", false},
        {4, "855/", "'clocks' (--set): '' is not a number", false},
        {4, "855/6000", "'clocks' (--set): 6000 is out of range, expected 1 to 5000", false},
        {5, NULL, "0x2 table", true},
        {5, "a.csv",
         "'model' (--set): 'a.csv' is a text, expected a table: the host must read the file and give its content",
         false},
    };
    hand_rest();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_setting setting = {.name = puppet_rows[rows[i].row].name, .text = rows[i].text};
        fl_layer layer = {"--set", &setting, rows[i].text != NULL};
        fl_instance *in;
        fl_diag d;
        char text[1024] = "";
        fl_status status = open_puppet(&in, &layer, 1, 0, &d);
        if (status == FL_OK)
            fl_instance_param_text(in, rows[i].row, text, sizeof text);
        else
            snprintf(text, sizeof text, "%s", d.message + strlen("policy puppet: parameter "));
        FL_CHECK(status == (rows[i].good ? FL_OK : FL_BAD_INPUT) && strcmp(text, rows[i].expected) == 0,
                 "%s=%s: '%s', expected '%s'", setting.name, setting.text, text, rows[i].expected);
        FL_CHECK((in == NULL) == (status != FL_OK), "an instance in spite of %s", text);
        fl_instance_close(in);
    }
}

static void test_layers(void) {
    fl_setting platform[] = {{"gain", "0.1", NULL}, {"steps", "1", NULL}, {"clocks", "10", NULL}},
               experiment[] = {{"steps", "2", NULL}, {"clocks", "20/30", NULL}},
               command[] = {{"clocks", "40/50/60", NULL}, {"clocks", "70", NULL}}, mistyped[] = {{"gian", "0.1", NULL}},
               strange[] = {{"qqqqqq", "0.1", NULL}};
    fl_layer layer[] = {{"platform", platform, 3}, {"experiment", experiment, 2}, {"--set", command, 2}};
    fl_instance *in;
    fl_diag d;
    char gain[32], steps[32], clocks[32], mode[32];
    hand_rest();
    CU_ASSERT_FATAL(open_puppet(&in, layer, 3, 0, &d) == FL_OK);
    fl_instance_param_text(in, 0, gain, sizeof gain);
    fl_instance_param_text(in, 1, steps, sizeof steps);
    fl_instance_param_text(in, 3, mode, sizeof mode);
    fl_instance_param_text(in, 4, clocks, sizeof clocks);
    FL_CHECK(!strcmp(gain, "0.1") && !strcmp(steps, "2") && !strcmp(clocks, "70") && !strcmp(mode, "fast"),
             "row, platform, experiment, command: %s %s %s %s", gain, steps, clocks, mode);
    FL_CHECK(hand.seen.gain == 0.1 && hand.seen.steps == 2 && hand.seen.mode == 1, "init saw other parameters");
    char little[3];
    fl_instance_param_text(in, 3, little, sizeof little);
    FL_CHECK(strcmp(little, "fa") == 0, "a short buffer holds '%s'", little);
    fl_instance_close(in);

    layer[2] = (fl_layer){"--set", mistyped, 1};
    FL_CHECK(open_puppet(&in, layer, 3, 0, &d) == FL_BAD_INPUT &&
                 !strcmp(d.message, "policy puppet: parameter 'gian' (--set): unknown, did you mean 'gain'?"),
             "mistyped: %s", d.message);
    layer[2] = (fl_layer){"experiment e.json", strange, 1};
    FL_CHECK(open_puppet(&in, layer, 3, 0, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "parameter 'qqqqqq' (experiment e.json): unknown, expected one of gain, steps, "),
             "unlike any: %s", d.message);
    hand.refusal = "not on a Sunday";
    FL_CHECK(open_puppet(&in, NULL, 0, 0, &d) == FL_BAD_INPUT && !strcmp(d.message, "policy puppet: not on a Sunday"),
             "init refused: %s", d.message);
}

static void test_tables(void) {
    static const double cells[] = {500, 405, 1000, 810}, odd[] = {500, NAN, 1000, 810}, large[] = {9000};
    static const char *const keys[] = {"axpy", "gemm"};
    static const struct {
        const char *name;
        fl_table table;
        const char *expected; /* part of the message, or NULL */
    } rows[] = {
        {"model", {cells, keys, 2, 2}, NULL},
        {"model", {cells, keys, 1, 2}, NULL},
        {"model", {cells, NULL, 0, 2}, NULL},
        {"model", {cells, NULL, 2, 2}, "no text key"},
        {"model", {cells, keys, 2, 1}, "1 columns of numbers, expected 2"},
        {"model", {odd, keys, 2, 2}, "row 1 of the table holds a number that is not finite"},
        {"clocks", {cells, NULL, 4, 1}, NULL},
        {"clocks", {cells, keys, 2, 1}, NULL},
        {"clocks", {cells, NULL, 2, 2}, "2 columns of numbers, expected 1"},
        {"clocks", {large, NULL, 1, 1}, "9000 is out of range, expected 1 to 5000"},
        {"gain", {cells, NULL, 1, 1}, "got a table, expected a single value"},
    };
    hand_rest();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_table table = rows[i].table;
        fl_setting setting = {.name = rows[i].name, .table = &table};
        fl_layer layer = {"experiment", &setting, 1};
        fl_instance *in, *copy;
        fl_diag d;
        fl_status status = open_puppet(&in, &layer, 1, 0, &d);
        if (rows[i].expected) {
            FL_CHECK(status == FL_BAD_INPUT && strstr(d.message, rows[i].expected), "row %zu: %s", i, d.message);
            continue;
        }
        FL_CHECK(status == FL_OK, "row %zu: %s", i, d.message);
        char text[64], want[64];
        bool list = strcmp(rows[i].name, "clocks") == 0;
        snprintf(want, sizeof want, list ? table.row_count == 4 ? "500/405/1000/810" : "500/405" : "%ux2 table",
                 table.row_count);
        FL_CHECK(strcmp(fl_instance_param_text(in, list ? 4 : 5, text, sizeof text), want) == 0, "row %zu: %s", i,
                 text);
        /* A copy has tables of its own: it outlives the first. */
        CU_ASSERT_FATAL(fl_instance_copy(&copy, in, &d) == FL_OK);
        fl_instance_close(in);
        step_at(copy, 0);
        if (!list && table.row_count == 2)
            FL_CHECK(hand.model_cell == 810 && strcmp(hand.model_key, "gemm") == 0, "the policy sees %g under '%s'",
                     hand.model_cell, hand.model_key);
        fl_instance_close(copy);
    }
    bool keyed;
    const char *names;
    FL_CHECK(fl_param_columns(&puppet_rows[5], &keyed, &names) == 2 && keyed && !strcmp(names, "kernel|sm_mhz|mem_mhz"),
             "columns '%s'", names);
    fl_param plain = {.type = FL_PARAM_TABLE, .choices = "a|b|c"};
    FL_CHECK(fl_param_columns(&plain, &keyed, NULL) == 3 && !keyed, "columns without a key");
}

/* Rows come from plug-ins too. */
static void test_bad_descriptor(void) {
    fl_param row = {.name = "x", .type = FL_PARAM_LIST, .offset = 8, .standard = "1"};
    fl_policy p = puppet;
    fl_instance *in;
    fl_diag d;
    p.param = &row;
    p.param_count = 1;
    p.param_size = 16;
    fl_instance_options o = {.policy = &p, .facts = &facts};
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, "lies outside"), "%s", d.message);
    row = (fl_param){.name = "x", .type = FL_PARAM_REAL, .standard = "2", .max = 1};
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, "(default): 2 is out of range"), "%s",
             d.message);
    p.step = NULL;
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, "no name, init or step"), "%s",
             d.message);
}

static void test_bad_signals(void) {
    static const struct {
        fl_signal_row row[2];
        bool right;
    } tables[] = {
        {{FL_NEEDS(GPU_POWER_W), FL_INSTEAD(GPU_ENERGY_J, GPU_POWER_W)}, true},
        {{FL_NEEDS(GPU_POWER_W), FL_INSTEAD(GPU_ENERGY_J, GPU_SM_MHZ)}, false},
        {{FL_USES(GPU_POWER_W), FL_INSTEAD(GPU_ENERGY_J, GPU_POWER_W)}, false},
        {{FL_NEEDS(HOST_NODE_POWER_W), FL_INSTEAD(GPU_POWER_W, HOST_NODE_POWER_W)}, false},
        {{FL_NEEDS(GPU_POWER_W), FL_INSTEAD(HOST_NODE_POWER_W, GPU_POWER_W)}, false},
        {{FL_NEEDS(KERNEL_RECORDS), FL_USES(ENGINE_STEPS)}, true},
        {{FL_NEEDS(GPU_POWER_W), FL_USES(KERNEL_RECORDS)}, false},
        {{FL_NEEDS(GPU_POWER_W), FL_NEEDS(ENGINE_STEPS)}, false},
        {{FL_NEEDS(GPU_POWER_W), FL_USES(HOST_CPU_MHZ)}, false},
        {{FL_NEEDS(GPU_POWER_W), {.signal = FL_SIGNAL_COUNT}}, false},
        {{FL_NEEDS(GPU_POWER_W), {.signal = FL_SIGNAL_GPU_SM_MHZ, .how = 3}}, false},
    };
    fl_policy p = puppet;
    fl_instance_options o = {.policy = &p, .facts = &facts};
    fl_instance *in;
    fl_diag d = {0};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        p.signal = tables[i].row;
        p.signal_count = 2;
        const fl_status s = fl_instance_open(&in, &o, &d);
        FL_CHECK(s == (tables[i].right ? FL_OK : FL_BAD_INPUT), "table %zu: %s", i, d.message);
        FL_CHECK(!s || strstr(d.message, "policy puppet: signal row 2 is none of"), "table %zu: %s", i, d.message);
        fl_instance_close(s ? NULL : in);
    }
    p.signal_count = 100000;
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, "100000 signal rows, expected"), "%s",
             d.message);
    p.signal = NULL;
    p.signal_count = 1;
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, "1 signal rows, expected"), "%s",
             d.message);
}

/* ---- ladders (policies/policy.h) ---- */

static void test_ladders(void) {
    static const int32_t mhz[] = {100, 110, 130};
    static const struct {
        double mhz;
        uint32_t up, down, nearest;
        int has;
    } rows[] = {{99, 0, 0, 0, 0},  {100, 0, 0, 0, 1}, {104, 1, 0, 0, 0}, {105, 1, 0, 0, 0},
                {106, 1, 0, 1, 0}, {110, 1, 1, 1, 1}, {119, 2, 1, 1, 0}, {120, 2, 1, 1, 0},
                {121, 2, 1, 2, 0}, {130, 2, 2, 2, 1}, {131, 2, 2, 2, 0}, {NAN, 2, 0, 2, 0}};
    const fl_ladder l = {mhz, 3}, none = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double at = rows[i].mhz;
        FL_CHECK(fl_ladder_index_up(l, at) == rows[i].up && fl_ladder_index_down(l, at) == rows[i].down &&
                     fl_ladder_index_nearest(l, at) == rows[i].nearest && fl_ladder_has(l, at) == rows[i].has,
                 "%g MHz: %u, %u, %u, %d", at, fl_ladder_index_up(l, at), fl_ladder_index_down(l, at),
                 fl_ladder_index_nearest(l, at), fl_ladder_has(l, at));
        FL_CHECK(fl_ladder_up(l, at) == mhz[rows[i].up] && fl_ladder_down(l, at) == mhz[rows[i].down] &&
                     fl_ladder_nearest(l, at) == mhz[rows[i].nearest],
                 "%g MHz: the clocks at these indices", at);
        FL_CHECK(!fl_ladder_up(none, at) && !fl_ladder_down(none, at) && !fl_ladder_nearest(none, at) &&
                     !fl_ladder_has(none, at),
                 "no clocks");
    }
    CU_ASSERT(fl_ladder_at(l, -1) == 100 && fl_ladder_at(l, 1) == 110 && fl_ladder_at(l, 3) == 130);
    CU_ASSERT(fl_ladder_at(none, 0) == 0 && fl_ladder_share(l, 110.0 / 130) == 110 && fl_ladder_share(l, 0.9) == 130);
}

/* A policy that reads a server's signals where there is none hears which it asked for: the first of them. */
static void test_server_needs(void) {
    for (int id = 0; id < FL_SERVER_SIGNAL_COUNT; id++) {
        fl_policy p = puppet;
        rx_read(&p, (rx_set){.server = FL_BIT(id) | FL_BIT(FL_SERVER_SIGNAL_COUNT - 1)});
        fl_instance_options o = {.policy = &p, .facts = &facts};
        fl_instance *in;
        fl_diag d = {0};
        char expected[128];
        snprintf(expected, sizeof expected, "a server that batches requests (%s), and there is none here",
                 fl_rows_at(FL_ROWS_SERVER_SIGNAL, (size_t)id)->name);
        FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, expected), "signal %d: %s", id,
                 d.message);
    }
}

static struct {
    size_t size; /* of all states of GPUs */
    bool zeroed, standing;
} bytes;

/* Writes each byte that is its own. What stands in init is at step 0 and at time 0. */
static const char *bytes_init(void *state, const void *params, const fl_facts *its) {
    unsigned char *byte = state;
    (void)params;
    bytes.zeroed = byte != NULL;
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.zeroed = bytes.zeroed && byte[i] == 0;
        byte[i] = 0xff;
    }
    bytes.standing = fl_stepping_now.call == FL_CALL_INIT && fl_stepping_now.step == 0 &&
                     fl_stepping_now.time_ns == 0 && fl_stepping_now.seed == its->seed;
    return NULL;
}

/* A state of any size: all of it is there and zeroed, and there is an address where it has none. */
static void test_state_sizes(void) {
    for (size_t size = 0; size <= 2 * FL_STATE_ALIGNMENT + 1; size++) {
        fl_policy p = puppet;
        const fl_facts one = {.seed = 9, .gpu_count = 1, .gpu = gpu_facts, .host = {.cpu = {cpu, 2}}};
        fl_instance_options o = {.policy = &p, .facts = &one};
        fl_instance *in;
        fl_diag d = {0};
        p.init = bytes_init;
        p.state_size = 0;
        p.gpu_size = bytes.size = size;
        FL_CHECK(fl_instance_open(&in, &o, &d) == FL_OK && bytes.zeroed && bytes.standing,
                 "%zu bytes: zeroed %d, standing in init %d, %s", size, bytes.zeroed, bytes.standing, d.message);
        fl_instance_close(in);
    }
}

/* A state that no memory holds is refused, also where the size of that of two GPUs together would wrap around to
 * little. */
static void test_huge_states(void) {
    static const struct {
        size_t state, gpu;
    } rows[] = {{SIZE_MAX, 0},     {SIZE_MAX / 2 + 1, 0}, {SIZE_MAX / 4, 0},       {0, SIZE_MAX / 2 + 1},
                {0, SIZE_MAX / 4}, {8, SIZE_MAX / 2 + 5}, {SIZE_MAX - 7, SIZE_MAX}};
    const fl_gpu_facts gpus[2] = {gpu_facts[0], gpu_facts[0]};
    const fl_facts two = {.seed = 9, .gpu_count = 2, .gpu = gpus, .host = {.cpu = {cpu, 2}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_policy p = puppet;
        p.state_size = rows[i].state;
        p.gpu_size = rows[i].gpu;
        const fl_instance_options o = {.policy = &p, .facts = &two};
        fl_instance *in = NULL;
        fl_diag d = {0};
        const fl_status s = fl_instance_open(&in, &o, &d);
        FL_CHECK(s == FL_NO_MEMORY, "row %zu: %d, %s", i, s, d.message);
        if (!s)
            fl_instance_close(in);
    }
}

/* ---- what a request becomes ---------------------------------------------------------------------------------------
 */

enum { AS_IT_IS, SNAPPED, CLAMPED, FAULT };

static void test_requests(void) {
    static const struct {
        int control;
        double asked, value;
        int verdict;
    } rows[] = {
        {FL_SET_SM_MHZ, 307, 307, AS_IT_IS},
        {FL_SET_SM_MHZ, 303, 300, SNAPPED},
        {FL_SET_SM_MHZ, 303.5, 300, SNAPPED},
        {FL_SET_SM_MHZ, 303.6, 307, SNAPPED},
        {FL_SET_SM_MHZ, 311, 307, SNAPPED},
        {FL_SET_SM_MHZ, 1, 300, SNAPPED},
        {FL_SET_SM_MHZ, 5000, 1000, SNAPPED},
        {FL_SET_SM_MHZ, FL_DEFAULT, FL_DEFAULT, AS_IT_IS},
        {FL_SET_SM_MHZ, 0, 0, FAULT},
        {FL_SET_SM_MHZ, -2, 0, FAULT},
        {FL_SET_SM_MHZ, NAN, 0, FAULT},
        {FL_SET_SM_MHZ, INFINITY, 0, FAULT},
        {FL_SET_MEM_MHZ, 700, 810, SNAPPED},
        {FL_SET_MEM_MHZ, 607.5, 405, SNAPPED},
        {FL_SET_POWER_LIMIT_W, 150.5, 150.5, AS_IT_IS},
        {FL_SET_POWER_LIMIT_W, 50, 100, CLAMPED},
        {FL_SET_POWER_LIMIT_W, 300, 250, CLAMPED},
        {FL_SET_POWER_LIMIT_W, 0, 0, FAULT},
        {FL_SET_RECORDS, 0, 0, AS_IT_IS},
        {FL_SET_RECORDS, 1, 1, AS_IT_IS},
        {FL_SET_RECORDS, 2, 0, FAULT},
        {FL_SET_RECORDS, NAN, 0, FAULT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_instance *in;
        fl_diag d;
        hand_rest();
        hand.gpu_set = FL_BIT(rows[i].control);
        hand.gpu[rows[i].control] = rows[i].asked;
        CU_ASSERT_FATAL(open_puppet(&in, NULL, 0, 0, &d) == FL_OK);
        const fl_decision *decision = step_at(in, 0);
        const fl_decided *got = &decision->gpu[0][rows[i].control];
        fl_instance_counts c = fl_instance_counts_of(in);
        bool fault = rows[i].verdict == FAULT;
        FL_CHECK(got->set == !fault && (fault || (got->value == rows[i].value && got->requested == rows[i].asked)),
                 "control %d: %g becomes %g", rows[i].control, rows[i].asked, got->value);
        FL_CHECK(c.steps == 1 && c.sets == !fault && c.faults == fault && c.snapped == (rows[i].verdict == SNAPPED) &&
                     c.clamped == (rows[i].verdict == CLAMPED) && c.held_back == 0,
                 "control %d: %g counts %llu sets, %llu faults, %llu snapped, %llu clamped", rows[i].control,
                 rows[i].asked, (unsigned long long)c.sets, (unsigned long long)c.faults, (unsigned long long)c.snapped,
                 (unsigned long long)c.clamped);
        for (int k = 0; k < FL_GPU_CONTROL_COUNT; k++)
            FL_CHECK(!decision->gpu[1][k].set && (k == rows[i].control || !decision->gpu[0][k].set),
                     "control %d set as well", k);
        fl_instance_close(in);
    }
}

/* The host's limit of power is brought into its range, however little is asked for, as long as it is something. */
static void test_host_limits(void) {
    static const struct {
        double asked, value;
        int verdict;
    } rows[] = {{50, 50, AS_IT_IS}, {8, 8, AS_IT_IS},     {7.9, 8, CLAMPED},   {1, 8, CLAMPED},
                {0.5, 8, CLAMPED},  {90, 90, AS_IT_IS},   {90.5, 90, CLAMPED}, {0, 0, FAULT},
                {-2, 0, FAULT},     {INFINITY, 0, FAULT}, {NAN, 0, FAULT},     {FL_DEFAULT, FL_DEFAULT, AS_IT_IS}};
    fl_facts limited = facts;
    limited.host.power_min_w = 8, limited.host.power_max_w = 90;
    fl_policy p = puppet;
    p.host_drives |= FL_BIT(FL_SET_HOST_CPU_POWER_LIMIT_W);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_instance *in;
        fl_diag d = {0};
        const fl_instance_options o = {.policy = &p, .facts = &limited};
        hand_rest();
        hand.host_set = FL_BIT(FL_SET_HOST_CPU_POWER_LIMIT_W);
        hand.host[FL_SET_HOST_CPU_POWER_LIMIT_W] = rows[i].asked;
        CU_ASSERT_FATAL(fl_instance_open(&in, &o, &d) == FL_OK);
        const fl_decided got = step_at(in, 0)->host[FL_SET_HOST_CPU_POWER_LIMIT_W];
        const fl_instance_counts c = fl_instance_counts_of(in);
        const bool fault = rows[i].verdict == FAULT;
        FL_CHECK(got.set == !fault && (fault || got.value == rows[i].value), "%g W becomes %g", rows[i].asked,
                 got.value);
        FL_CHECK(c.faults == fault && c.clamped == (rows[i].verdict == CLAMPED), "%g W: %d faults, %d clamped",
                 rows[i].asked, (int)c.faults, (int)c.clamped);
        fl_instance_close(in);
    }
}

/* A ladder or limit that is not known changes nothing. */
static void test_unknown_ranges(void) {
    static const fl_gpu_facts plain[2] = {{.power_min_w = 100}, {.power_max_w = 250}};
    static const fl_facts unknown = {.gpu_count = 2, .gpu = plain};
    fl_instance_options o = {.policy = &puppet, .facts = &unknown};
    fl_instance *in;
    fl_diag d;
    hand_rest();
    hand.gpu_set = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_POWER_LIMIT_W);
    hand.gpu[FL_SET_SM_MHZ] = 1234.5;
    hand.gpu[FL_SET_POWER_LIMIT_W] = 9000;
    CU_ASSERT_FATAL(fl_instance_open(&in, &o, &d) == FL_OK);
    const fl_decision *decision = step_at(in, 0);
    FL_CHECK(decision->gpu[0][FL_SET_SM_MHZ].value == 1234.5 && decision->gpu[0][FL_SET_POWER_LIMIT_W].value == 9000,
             "%g MHz, %g W", decision->gpu[0][FL_SET_SM_MHZ].value, decision->gpu[0][FL_SET_POWER_LIMIT_W].value);
    FL_CHECK(fl_instance_counts_of(in).snapped == 0 && fl_instance_counts_of(in).clamped == 0, "counted as changed");
    fl_instance_close(in);
}

static void test_host_and_faults(void) {
    fl_instance *in;
    fl_diag d;
    hand_rest();
    hand.host_set = FL_BIT(FL_SET_HOST_CPU_MHZ) | FL_BIT(FL_SET_HOST_CPU_BOOST);
    hand.host[FL_SET_HOST_CPU_MHZ] = 1800;
    CU_ASSERT_FATAL(open_puppet(&in, NULL, 0, 0, &d) == FL_OK);
    const fl_decision *decision = step_at(in, 0);
    FL_CHECK(decision->host[FL_SET_HOST_CPU_MHZ].value == 2200 && decision->host[FL_SET_HOST_CPU_BOOST].set &&
                 decision->host[FL_SET_HOST_CPU_BOOST].value == 0 && decision->delay_ns == 1000,
             "host: %g MHz, boost %g", decision->host[FL_SET_HOST_CPU_MHZ].value,
             decision->host[FL_SET_HOST_CPU_BOOST].value);
    FL_CHECK(hand.clean, "the command was not cleared, or a probe was not NaN");
    FL_CHECK(fl_instance_probe_count(in) == PROBE_CELLS && isnan(decision->probe[0]) && isnan(decision->probe[1]) &&
                 decision->probe[COUNT_CELL] == 1 && decision->probe[STEPS_CELL] == 1 &&
                 decision->probe[STEPS_CELL + 1] == 2,
             "%zu probes: %g, %g, %g", fl_instance_probe_count(in), decision->probe[COUNT_CELL],
             decision->probe[STEPS_CELL], decision->probe[STEPS_CELL + 1]);
    FL_CHECK(decision->gpu_count == 2 && fl_instance_policy(in) == &puppet, "who it is");

    /* A control that the descriptor does not drive, and bits of none at all. */
    hand.host_set = FL_BIT(FL_SET_HOST_CPU_POWER_LIMIT_W);
    hand.host[FL_SET_HOST_CPU_POWER_LIMIT_W] = 100;
    hand.gpu_set = FL_BIT(FL_GPU_CONTROL_COUNT) | FL_BIT(40);
    hand.delay_ns = 0;
    decision = step_at(in, 1);
    FL_CHECK(!decision->host[FL_SET_HOST_CPU_POWER_LIMIT_W].set, "a control was set that the policy does not drive");
    FL_CHECK(decision->delay_ns == 1000, "delay %lld, expected the last", (long long)decision->delay_ns);
    FL_CHECK(hand.clean, "the command was not cleared");
    FL_CHECK(fl_instance_counts_of(in).faults == 4, "%llu faults, expected 4",
             (unsigned long long)fl_instance_counts_of(in).faults);
    fl_instance_close(in);

    CU_ASSERT_FATAL(open_puppet(&in, NULL, 0, 0, &d) == FL_OK);
    hand.delay_ns = -5;
    FL_CHECK(step_at(in, 0)->delay_ns == 200000000, "the delay before any is not 200 ms");
    fl_sample three = {.gpu_count = 3};
    FL_CHECK(fl_instance_step(in, &three, &decision, &d) == FL_BAD_INPUT && !decision &&
                 strstr(d.message, "a sample of 3 GPUs, expected 2"),
             "%s", d.message);
    fl_instance_close(in);
}

/* ---- rate limit ---------------------------------------------------------------------------------------------------
 */

static void test_rate_limit(void) {
    static const struct {
        int64_t time_ns;
        double asked; /* 0 = nothing */
        double made;  /* 0 = nothing */
        uint64_t held_back;
    } rows[] = {
        {1000, 307, 307, 0}, {1050, 315, 0, 1},   {1080, 0, 0, 1},   {1100, 0, 315, 1}, /* made as soon as it may */
        {1110, 300, 0, 2},   {1120, 307, 0, 3},   {1250, 0, 307, 3},                    /* the later one */
        {1340, 315, 0, 4},   {1350, 300, 300, 4},                                       /* replaced as it falls due */
        {1400, 315, 0, 5},   {1410, NAN, 0, 5},   {1450, 0, 315, 5},                    /* a fault replaces nothing */
        {2000, 0, 0, 5},
    };
    fl_instance *in;
    fl_diag d;
    hand_rest();
    CU_ASSERT_FATAL(open_puppet(&in, NULL, 0, 100, &d) == FL_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hand.gpu_set = rows[i].asked != 0 ? FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) : 0;
        hand.gpu[FL_SET_SM_MHZ] = rows[i].asked;
        hand.gpu_set &= i == 1 ? ~UINT64_C(0) : ~FL_BIT(FL_SET_MEM_MHZ); /* memory once: it has a limit of its own */
        hand.gpu[FL_SET_MEM_MHZ] = 810;
        const fl_decision *decision = step_at(in, rows[i].time_ns);
        const fl_decided *got = &decision->gpu[0][FL_SET_SM_MHZ];
        FL_CHECK((got->set ? got->value : 0) == rows[i].made, "at %lld: %g made, expected %g",
                 (long long)rows[i].time_ns, got->set ? got->value : 0, rows[i].made);
        FL_CHECK(decision->gpu[0][FL_SET_MEM_MHZ].set == (i == 1), "memory clock at %lld", (long long)rows[i].time_ns);
        FL_CHECK(fl_instance_counts_of(in).held_back == rows[i].held_back, "at %lld: %llu held back, expected %llu",
                 (long long)rows[i].time_ns, (unsigned long long)fl_instance_counts_of(in).held_back,
                 (unsigned long long)rows[i].held_back);
        if (rows[i].time_ns == 1120) { /* what is held back is part of the state that a copy has */
            fl_instance *copy;
            CU_ASSERT_FATAL(fl_instance_copy(&copy, in, &d) == FL_OK);
            hand.gpu_set = 0;
            decision = step_at(copy, 1250);
            FL_CHECK(decision->gpu[0][FL_SET_SM_MHZ].value == 307 && decision->probe[COUNT_CELL] == 7,
                     "the copy: %g MHz, step %g", decision->gpu[0][FL_SET_SM_MHZ].value, decision->probe[COUNT_CELL]);
            fl_instance_close(copy);
        }
    }
    FL_CHECK(!hand.lost, "the state of a GPU");
    FL_CHECK(fl_instance_counts_of(in).sets == 6, "%llu sets, expected 6",
             (unsigned long long)fl_instance_counts_of(in).sets);
    fl_instance_close(in);
    fl_instance_close(NULL);
}

/* ---- rows and identity --------------------------------------------------------------------------------------------
 */

static void test_rows(void) {
    FL_CHECK(fl_rows_count(FL_ROWS_GPU_SIGNAL) == FL_GPU_SIGNAL_COUNT && fl_rows_count(FL_ROWS_HOST_SIGNAL) == 10 &&
                 fl_rows_count(FL_ROWS_GPU_CONTROL) == 4 && fl_rows_count(FL_ROWS_HOST_CONTROL) == 3,
             "counts of rows");
    FL_CHECK(fl_rows_find(FL_ROWS_GPU_SIGNAL, "util_mem_pct") == FL_GPU_UTIL_MEM_PCT &&
                 fl_rows_find(FL_ROWS_HOST_SIGNAL, "loop_ns") == FL_HOST_LOOP_NS &&
                 fl_rows_find(FL_ROWS_GPU_CONTROL, "power_limit_w") == FL_SET_POWER_LIMIT_W &&
                 fl_rows_find(FL_ROWS_HOST_CONTROL, "cpu_boost") == FL_SET_HOST_CPU_BOOST,
             "a row was not found");
    FL_CHECK(fl_rows_find(FL_ROWS_GPU_CONTROL, "util_mem_pct") == -1 && fl_rows_find(FL_ROWS_GPU_SIGNAL, "") == -1,
             "a row was found that is none");
    const fl_row_info *row = fl_rows_at(FL_ROWS_GPU_SIGNAL, FL_GPU_ENERGY_J);
    FL_CHECK(!strcmp(row->name, "energy_j") && !strcmp(row->unit, "J") && row->kind == FL_COUNTER && row->meaning[0],
             "row %s %s", row->name, row->unit);
    FL_CHECK(fl_rows_at(FL_ROWS_GPU_SIGNAL, FL_GPU_UTIL_GPU_PCT)->kind == FL_MEAN, "kind of a mean");
}

static void test_identity(void) {
    static char rows[16384];
    char text[512];
    fl_abi abi = puppet.abi;
    FL_CHECK(fl_abi_difference(&abi, text, sizeof text) == NULL, "our own: %s", text);

    static const struct {
        const char *from, *to, *expected;
    } edits[] = {
        {"gpu signal power_w W GAUGE", "gpu signal power_w mW GAUGE",
         "built for 'abi 4', this program has 'abi 4'; first row that differs: 'gpu signal power_w mW GAUGE' there, "
         "'gpu signal power_w W GAUGE' here"},
        {"gpu signal power_w W GAUGE", "gpu signal power_w V GAUGE", /* as long */
         "first row that differs: 'gpu signal power_w V GAUGE' there, 'gpu signal power_w W GAUGE' here"},
        {"gpu signal power_w W GAUGE", "gpu signal power_w W GAUG", /* ours goes on */
         "first row that differs: 'gpu signal power_w W GAUG' there, 'gpu signal power_w W GAUGE' here"},
        {"abi 4", "abi 1",
         "built for 'abi 1', this program has 'abi 4'; first row that differs: 'abi 1' there, 'abi 4' here"},
        {"host signal cpu_mhz MHz GAUGE\n", "",
         "first row that differs: 'host signal cpu_util_pct % MEAN' there, 'host signal cpu_mhz MHz GAUGE' here"},
        {"energy_j J COUNTER", "energy_j J GAUGE", "'gpu signal energy_j J GAUGE' there"},
        {"struct fl_policy\n", "", "'end' there, 'struct fl_policy' here"},
        {"struct fl_policy\n", "struct fl_policy\nstruct more\n", "'struct more' there, 'end' here"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        const char *at = strstr(puppet.abi.rows, edits[i].from);
        CU_ASSERT_FATAL(at != NULL);
        snprintf(rows, sizeof rows, "%.*s%s%s", (int)(at - puppet.abi.rows), puppet.abi.rows, edits[i].to,
                 at + strlen(edits[i].from));
        abi.rows = rows;
        FL_CHECK(fl_abi_difference(&abi, text, sizeof text) && strstr(text, edits[i].expected), "edit %zu: %s", i,
                 text);
    }
    /* Of a long row the first 120 characters tell enough. */
    for (int length = 119; length <= 122; length++) {
        char expected[160], name[160];
        memset(name, 'x', sizeof name);
        snprintf(rows, sizeof rows, "abi 4\n%.*s\n", length, name);
        snprintf(expected, sizeof expected, "differs: '%.*s' there", length < 120 ? length : 120, name);
        abi.rows = rows;
        FL_CHECK(fl_abi_difference(&abi, text, sizeof text) && strstr(text, expected), "%d: %s", length, text);
    }
    abi.rows = NULL;
    FL_CHECK(fl_abi_difference(&abi, text, sizeof text) && strstr(text, "'end' there"), "no rows: %s", text);

    abi = puppet.abi;
    abi.struct_size[0] += 8;
    FL_CHECK(fl_abi_difference(&abi, text, sizeof text) && strstr(text, "struct fl_gpu_sample has "), "size: %s", text);
    abi = puppet.abi;
    abi.struct_size[FL_ABI_STRUCT_COUNT - 1]--;
    FL_CHECK(fl_abi_difference(&abi, text, sizeof text) && strstr(text, "struct fl_policy has "), "size: %s", text);
    abi = puppet.abi;
    abi.struct_count++;
    char expected[64];
    snprintf(expected, sizeof expected, "struct count %d there, %d here", FL_ABI_STRUCT_COUNT + 1, FL_ABI_STRUCT_COUNT);
    FL_CHECK(fl_abi_difference(&abi, text, sizeof text) && strstr(text, expected), "count: %s", text);
    abi = (fl_abi){.magic = 0x1234, .rows = (const char *)(uintptr_t)8}; /* rows must not be looked at */
    FL_CHECK(fl_abi_difference(&abi, text, sizeof text) && strstr(text, "0x0000000000001234"), "magic: %s", text);

    fl_policy other = puppet;
    other.abi.struct_size[4] = 1;
    fl_instance_options o = {.policy = &other, .facts = &facts};
    fl_instance *in;
    fl_diag d;
    FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, "another contract") &&
                 strstr(d.message, "fl_kernel_record"),
             "%s", d.message);
}

FL_SUITE("instance", {"values", test_values}, {"layers", test_layers}, {"tables", test_tables},
         {"bad descriptor", test_bad_descriptor}, {"bad signal rows", test_bad_signals}, {"ladders", test_ladders},
         {"signals of a server", test_server_needs}, {"sizes of states", test_state_sizes},
         {"huge states", test_huge_states}, {"requests", test_requests}, {"unknown ranges", test_unknown_ranges},
         {"limits of the host", test_host_limits}, {"host and faults", test_host_and_faults},
         {"rate limit", test_rate_limit}, {"rows", test_rows}, {"identity of the contract", test_identity})
