/* What a host sees that reads through a vendor's library: which signals, in which steps, when it takes them for
 * refreshed; and its first look, before a run begins. */
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "traces/io/io.h"
#include "tests/support/reads.h"
#include "tests/support/node_fixture.h"

/* ---- when a value is fresh ---- */

static void test_seen(void) {
    static const struct {
        const char *why;
        fl_seen last;
        double value;
        int64_t t_ns, refresh_ns;
        bool fresh;
    } rows[] = {{"the first", {0, 0, false}, 0, 5, 10, true},
                {"another value", {1, 0, true}, 2, 5, 10, true},
                {"the same, too early", {1, 3, true}, 1, 12, 10, false},
                {"the same, as long as it takes", {1, 3, true}, 1, 13, 10, true},
                {"the same, at once where none takes time", {1, 3, true}, 1, 3, 0, true},
                {"a counter that stands", {1, 3, true}, 1, INT64_MAX, FL_SEEN_MOVES, false},
                {"a counter that moved", {1, 3, true}, 2, 4, FL_SEEN_MOVES, true},
                {"a counter's first", {0, 0, false}, 0, 0, FL_SEEN_MOVES, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_seen last = rows[i].last;
        fl_gpu_sample s = {.valid = FL_BIT(FL_GPU_TEMP_C), .fresh = FL_BIT(FL_GPU_TEMP_C)};
        const bool fresh = fl_seen_put(&last, &s, FL_GPU_POWER_W, rows[i].value, rows[i].t_ns, rows[i].refresh_ns);
        const uint64_t other = FL_BIT(FL_GPU_TEMP_C), bit = FL_BIT(FL_GPU_POWER_W);
        FL_CHECK(fresh == rows[i].fresh && s.value[FL_GPU_POWER_W] == rows[i].value, "%s", rows[i].why);
        FL_CHECK(s.valid == (other | bit) && s.fresh == (fresh ? other | bit : other), "%s: bits", rows[i].why);
        FL_CHECK(last.fresh_ns == (fresh ? rows[i].t_ns : rows[i].last.fresh_ns) && last.value == rows[i].value &&
                     last.known,
                 "%s: remembered", rows[i].why);
    }
}

/* ---- what is shown ---- */

static const fl_readout rules = {"test",
                                 {[FL_GPU_POWER_W] = {"power", 10, 100},
                                  [FL_GPU_ENERGY_J] = {"energy", 1000, FL_SEEN_MOVES},
                                  [FL_GPU_ENERGY_NS] = {"energy", 1, FL_SEEN_MOVES},
                                  [FL_GPU_SM_ACTIVE_PCT] = {"profile", 1, 100},
                                  [FL_GPU_DRAM_ACTIVE_PCT] = {"profile", 1, 100},
                                  [FL_GPU_UTIL_GPU_PCT] = {"util", 1, 100}}};

enum {
    CALLS = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS) | FL_BIT(FL_GPU_UTIL_GPU_PCT)
};

static void test_show(void) {
    fl_readout_view view = {0};
    fl_gpu_sample raw = {.valid = UINT64_MAX & ~FL_BIT(FL_GPU_UTIL_GPU_PCT)}, out;
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        raw.value[id] = 7.26;
    raw.value[FL_GPU_ENERGY_J] = 3.00049;
    raw.value[FL_GPU_KERNELS] = 12;
    const uint64_t all = UINT64_MAX, seen = (CALLS & ~FL_BIT(FL_GPU_UTIL_GPU_PCT)) | FL_BIT(FL_GPU_KERNELS);
    fl_readout_show(&rules, &view, all, 1000, &raw, &out);
    FL_CHECK(out.valid == seen && out.fresh == seen, "what has a call and was there, no windows: %llx",
             (unsigned long long)out.valid);
    FL_CHECK(out.value[FL_GPU_POWER_W] == 7.3 && out.value[FL_GPU_ENERGY_J] == 3, "in whole steps: %g W, %g J",
             out.value[FL_GPU_POWER_W], out.value[FL_GPU_ENERGY_J]);
    FL_CHECK(out.value[FL_GPU_ENERGY_NS] == 1000 && out.value[FL_GPU_KERNELS] == 12 &&
                 out.value[FL_GPU_SM_ACTIVE_PCT] == 0,
             "the energy's time is when it was seen to move");
    fl_readout_show(&rules, &view, all, 1050, &raw, &out);
    FL_CHECK(out.valid == seen && out.fresh == FL_BIT(FL_GPU_KERNELS), "nothing moved: %llx",
             (unsigned long long)out.fresh);
    FL_CHECK(out.value[FL_GPU_ENERGY_NS] == 1000, "nor did the energy");
    raw.value[FL_GPU_ENERGY_J] = 3.00051;
    fl_readout_show(&rules, &view, all, 1060, &raw, &raw); /* in place */
    FL_CHECK(raw.value[FL_GPU_ENERGY_J] == 3.001 && raw.value[FL_GPU_ENERGY_NS] == 1060 &&
                 raw.fresh == (FL_BIT(FL_GPU_KERNELS) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS)),
             "it moved by one step");
    raw = (fl_gpu_sample){.valid = FL_BIT(FL_GPU_POWER_W)};
    fl_readout_show(&rules, &view, FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_KERNELS), 2000, &raw, &out);
    FL_CHECK(out.valid == FL_BIT(FL_GPU_POWER_W) && out.fresh == out.valid, "what is not there is not shown");
    raw.valid = UINT64_MAX;
    fl_readout_show(&rules, &view, FL_BIT(FL_GPU_ENERGY_J), 3000, &raw, &out);
    FL_CHECK(out.valid == FL_BIT(FL_GPU_ENERGY_J) && out.fresh == out.valid, "nor what nobody needs");
    CU_ASSERT(fl_readout_offers(&rules) == (CALLS | FL_BIT(FL_GPU_SM_ACTIVE_PCT) | FL_BIT(FL_GPU_DRAM_ACTIVE_PCT)));
    CU_ASSERT(fl_readout_whole(&rules, FL_GPU_POWER_W, 0.25) == 0.3 &&
              fl_readout_whole(&rules, FL_GPU_POWER_W, 9) == 9);
}

static void test_where(void) {
    enum { A = 1, B = 2, C = 4, D = 8 };
    static const struct {
        const char *why;
        uint64_t needs, uses, instead, offers, want, want_uses;
    } rows[] = {/* what stands in stands in for B */
                {"all is there", A | B, C, D, A | B | C | D, A | B, C},
                {"what is used is used where it is offered", A, C | D, 0, A | D, A, D},
                {"for A nothing stands in", A | B, 0, D, D, A | D, 0},
                {"a stand-in", A | B, 0, D, A | D, A | D, 0},
                {"no stand-in", A | B, 0, 0, A, A | B, 0},
                {"a stand-in that is not offered", A | B, C, D, A, A | B, 0},
                {"one of two stand-ins", A | B, 0, C | D, A | C, A | B, 0},
                {"both of two", A | B, 0, C | D, A | C | D, A | C | D, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_policy p = {.name = "p"};
        fl_signal_row row[FL_SIGNAL_ROWS_MAX];
        rx_read(&p,
                (rx_set){.gpu = rows[i].needs, .gpu_uses = rows[i].uses, .stand_ins = rows[i].instead, .instead = B});
        const fl_policy where = fl_policy_where(&p, rows[i].offers, row);
        const fl_reads here = fl_reads_of(&where);
        FL_CHECK(here.gpu_needs == rows[i].want && here.gpu_uses == rows[i].want_uses, "%s: %llx and %llx", rows[i].why,
                 (unsigned long long)here.gpu_needs, (unsigned long long)here.gpu_uses);
    }
}

/* ---- the first look of a run ---- */

static const char *init(void *state, const void *params, const fl_facts *facts) {
    (void)state, (void)params, (void)facts;
    return NULL;
}

static void step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample, fl_command *c) {
    (void)state, (void)params, (void)facts, (void)sample;
    c->delay_ns = 5000000;
}

#define POLICY                                                                                                         \
    FL_POLICY_ABI, .name = "reader", .summary = "", .source = "", .gpu_drives = FL_BIT(FL_SET_SM_MHZ), .init = init,   \
                   .step = step

static const fl_signal_row needed_rows[] = {FL_NEEDS(GPU_ENERGY_J), FL_NEEDS(GPU_KERNELS), FL_NEEDS(KERNEL_RECORDS)};
static const fl_signal_row used_rows[] = {FL_USES(GPU_ENERGY_J)};
static const fl_policy reads = {POLICY, FL_SIGNAL_ROWS(needed_rows)};
static const fl_policy reads_nothing = {POLICY};
static const fl_policy uses = {POLICY, FL_SIGNAL_ROWS(used_rows)};

typedef struct looks {
    int64_t time_ns[2];
    double energy_j[2], kernels[2];
    size_t records[2];
    int64_t first_start_ns; /* of a record */
} looks;

static fl_status note(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    (void)decision, (void)d;
    looks *l = user;
    if (sample->step > 1)
        return FL_OK;
    l->time_ns[sample->step] = sample->time_ns;
    l->energy_j[sample->step] = sample->gpu[0].value[FL_GPU_ENERGY_J];
    l->kernels[sample->step] = sample->gpu[0].value[FL_GPU_KERNELS];
    l->records[sample->step] = sample->record_count;
    if (sample->record_count && l->first_start_ns < 0)
        l->first_start_ns = sample->record[0].start_ns;
    return FL_OK;
}

/* Kernels of 1 ms without gaps. At 1000 MHz: 20 + 10 + 10 W, and 100 W of the kernels: 140 W. A read takes 2 ms. */
static looks look(const fl_policy *p, const fl_readout *reader, uint32_t gpus, const fl_fault *fault) {
    fx_rig r;
    fx_open(&r, gpus);
    r.spec.device->actuator.read_ns = 2000000;
    r.spec.device->sensor[FL_SENSOR_ENERGY] = (fl_sensor_spec){.present = 1, .period_ns = 1000000};
    const uint32_t id = fx_light(&r), s = fx_stream(&r, 0, 0);
    for (int i = 0; i < 400; i++)
        fx_op(&r, s, 0, 1000000, id);
    fx_finish(&r, 0);
    looks l = {.first_start_ns = -1};
    const fl_run_options o = {.w = r.w,
                              .rates = r.rates,
                              .spec = &r.spec,
                              .facts = &r.facts,
                              .policy = p,
                              .reader = reader,
                              .fault = fault,
                              .fault_count = fault != NULL,
                              .on_step = note,
                              .user = &l,
                              .records_free = true};
    fl_run_result result = {0};
    FX_MUST(fl_run(&o, &result, d));
    fl_run_result_free(&result);
    fx_close(&r);
    return l;
}

static void test_first_look(void) {
    static const fl_readout energy = {"test", {[FL_GPU_ENERGY_J] = {"energy", 1e9, FL_SEEN_MOVES}}};
    const fl_fault late = {.type = FL_FAULT_DROP, .gpu = 0, .row = FL_GPU_ENERGY_J, .from_ns = 0, .until_ns = 1000000};
    const struct {
        const char *why;
        const fl_policy *p;
        const fl_readout *reader;
        uint32_t gpus;
        const fl_fault *fault;
        double began_s; /* of the run's time */
    } rows[] = {{"the simulator's own host does not look", &reads, NULL, 1, NULL, 0},
                {"one look at one GPU", &reads, &energy, 1, NULL, 0.002},
                {"one look at two", &reads, &energy, 2, NULL, 0.004},
                {"a look for what is only used", &uses, &energy, 1, NULL, 0.002},
                {"a second look, 120 ms later, where something is missing", &reads, &energy, 1, &late, 0.124}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const looks l = look(rows[i].p, rows[i].reader, rows[i].gpus, rows[i].fault);
        FL_CHECK(l.time_ns[0] == 0, "%s: time begins after it", rows[i].why);
        const double second_s = rows[i].began_s + 1e-9 * (double)l.time_ns[1];
        FL_CHECK(rows[i].fault || fabs(l.energy_j[0] - 140 * rows[i].began_s) < 1e-3, "%s: %g J", rows[i].why,
                 l.energy_j[0]);
        FL_CHECK(fabs(l.energy_j[1] - 140 * second_s) < 1e-3, "%s: %g J", rows[i].why, l.energy_j[1]);
        if (rows[i].p != &reads)
            continue;
        FL_CHECK(l.kernels[0] == 0 && l.kernels[1] >= 5 && l.kernels[1] <= 7, "%s: %g kernels", rows[i].why,
                 l.kernels[1]);
    }
    const looks l = look(&reads_nothing, &energy, 1, NULL);
    FL_CHECK(l.time_ns[0] == 0 && l.time_ns[1] > 0, "who reads nothing does not look");
    const looks k = look(&reads, &energy, 1, NULL);
    FL_CHECK(!k.records[0] && k.records[1] >= 4 && k.first_start_ns >= 0 && k.first_start_ns < 1000000,
             "records count from the beginning: %zu, first at %lld ns", k.records[1], (long long)k.first_start_ns);
}

FL_SUITE("readout", {"seen", test_seen}, {"show", test_show}, {"where", test_where}, {"first look", test_first_look})
