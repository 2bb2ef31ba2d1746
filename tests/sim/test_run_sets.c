/* What a decision sets on a node, call by call: when each call ends, what a live host's library cannot set, what is
 * refused, and the records. Reading takes 3 us of a GPU, a set 5 us of a GPU and 11 us of the CPU, and a clock settles
 * 7 us after its call. */
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "tests/support/node_fixture.h"

#define US FX_US_PS

typedef struct rig {
    fx_rig fx;
    fl_node *n;
    fl_run_sets h;
    fl_faults *faults;
    fl_decided gpu[2][FL_GPU_CONTROL_COUNT];
    fl_decision dec;
} rig;

/* Two GPUs that work for 4 ms, with marks after 1, 2, 3 and 4 ms on the first. */
static void open_rig(rig *r, const fl_readout *reader, bool own, const fl_fault *fault) {
    *r = (rig){.dec = {.gpu_count = 2}};
    r->dec.gpu = (const fl_decided(*)[FL_GPU_CONTROL_COUNT])r->gpu;
    fx_open(&r->fx, 2);
    nx_wall(&r->fx, 900);
    nx_cpu(&r->fx);
    r->fx.spec.host.cpu.call_ns = 11000;
    r->fx.spec.host.hosts_per_gpu = own;
    r->fx.spec.device->actuator = (fl_actuator_spec){.call_ns = 5000, .settle_ns = 7000, .read_ns = 3000};
    const uint32_t c = fx_light(&r->fx), s[] = {fx_stream(&r->fx, 0, 0), fx_stream(&r->fx, 1, 0)};
    const uint32_t mark = fx_light(&r->fx);
    r->fx.w->class[mark].iteration = true;
    for (int i = 0; i < 4; i++) {
        fx_op(&r->fx, s[0], 0, 1000000, c);
        fx_op(&r->fx, s[0], 0, 0, mark);
        fx_op(&r->fx, s[1], 0, 1000000, c);
    }
    fx_finish(&r->fx, 1);
    r->n = fx_node(&r->fx, 0, false);
    if (fault)
        FX_MUST(fl_faults_open(&r->faults, fault, 1, 2, 0, d));
    FX_MUST(fl_run_sets_open(&r->h, r->n, &r->fx.spec, reader, r->faults, false, d));
}

static void close_rig(rig *r) {
    fl_run_sets_close(&r->h);
    fl_faults_close(r->faults);
    fl_node_close(r->n);
    fx_close(&r->fx);
}

static void want(fl_decided *set, int control, double value) {
    set[control] = (fl_decided){.set = true, .requested = value, .value = value};
}

/* The clock of a GPU changes at this instant, not before. */
static void changes_at(rig *r, uint32_t gpu, bool memory, int64_t t, double before, double after) {
    for (int k = 0; k < 2; k++) {
        fx_advance(r->n, k ? t : t - 1);
        const fl_gpu *g = fl_node_gpu(r->n, gpu);
        const double mhz = memory ? g->dev->mem_mhz[g->mem] : g->dev->sm_mhz[g->sm];
        FL_CHECK(mhz == (k ? after : before), "GPU %u, %s clock at %lld ps: %g MHz", gpu, memory ? "memory" : "SM",
                 (long long)(k ? t : t - 1), mhz);
    }
}

/* Both GPUs are read, 6 us. Then call after call: 11, 16, 21 us for the clocks; the switch of records takes none. */
static void test_clocks(void) {
    rig r;
    open_rig(&r, NULL, false, NULL);
    want(r.gpu[0], FL_SET_SM_MHZ, 700);
    want(r.gpu[0], FL_SET_MEM_MHZ, 400);
    want(r.gpu[1], FL_SET_SM_MHZ, 1200);
    want(r.gpu[1], FL_SET_RECORDS, 1);
    FL_CHECK(r.h.records[0].at_ps == FL_TIME_NEVER && r.h.records[1].at_ps == FL_TIME_NEVER, "no switch is due");
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, false, 0) == 21 * US && fl_run_sets_cost(&r.h) == 21 * US,
             "the last call has ended: %lld ps", (long long)fl_run_sets_cost(&r.h));
    FL_CHECK(r.h.records[0].at_ps == FL_TIME_NEVER && r.h.records[1].at_ps == 21 * US && r.h.records[1].to &&
                 !r.h.records[1].on && r.h.recording == 0,
             "records are left to the caller");
    FL_CHECK(r.h.refused == 0 && r.h.ignored == 0, "all is carried out");
    changes_at(&r, 0, false, 18 * US, 1000, 700);
    changes_at(&r, 0, true, 23 * US, 800, 400);
    changes_at(&r, 1, false, 28 * US, 1000, 1200);
    const fl_gpu *g = fl_node_gpu(r.n, 1);
    FL_CHECK(g->dev->mem_mhz[g->mem] == 800, "what nobody sets stays");
    FL_CHECK(fl_run_carry_out(&r.h, &(fl_decision){.gpu_count = 2, .gpu = r.dec.gpu}, false, 100 * US) == 121 * US &&
                 fl_run_sets_cost(&r.h) == 42 * US,
             "from its own instant on; the costs add up");
    close_rig(&r);
}

/* Where a live host's library has no range, there is no call, and no time. */
static void test_library(void) {
    static const struct {
        const char *why;
        bool library;
        uint32_t mems;
        double least_w, most_w;
        int64_t end_us; /* with 3 us of reading each */
        uint64_t ignored;
    } rows[] = {
        {"all of it", false, 2, 10, 1000, 6 + 5 + 5 + 33, 0},
        {"a node sets what a library would not", false, 1, 10, 10, 6 + 5 + 5 + 33, 0},
        {"a library knows no CPU", true, 2, 10, 1000, 6 + 5 + 5, 3},
        {"one memory clock", true, 1, 10, 1000, 6 + 5, 3},
        {"no range of limits", true, 2, 10, 10, 6 + 5, 3},
        {"the least range", true, 2, 10, 11, 6 + 5 + 5, 3},
        {"neither", true, 1, 0, 0, 6, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        open_rig(&r, rows[i].library ? &fl_readout_nvml : NULL, false, NULL);
        want(r.gpu[0], FL_SET_MEM_MHZ, 800);
        want(r.gpu[1], FL_SET_POWER_LIMIT_W, 200);
        want(r.dec.host, FL_SET_HOST_CPU_MHZ, 1000);
        want(r.dec.host, FL_SET_HOST_CPU_BOOST, 0);
        want(r.dec.host, FL_SET_HOST_CPU_POWER_LIMIT_W, 90);
        r.fx.spec.device->mem_count = rows[i].mems;
        r.fx.spec.device->power_min_w = rows[i].least_w;
        r.fx.spec.device->power_max_w = rows[i].most_w;
        const int64_t end = fl_run_carry_out(&r.h, &r.dec, false, 0);
        r.fx.spec.device->mem_count = 2;
        FL_CHECK(end == rows[i].end_us * US, "%s: %lld ps", rows[i].why, (long long)end);
        FL_CHECK(r.h.ignored == rows[i].ignored && r.h.refused == 0, "%s: %llu ignored", rows[i].why,
                 (unsigned long long)r.h.ignored);
        close_rig(&r);
    }
}

/* A board without a limit shows none, though its wall looks. */
static void test_no_limit(void) {
    static const double LIMITS[] = {0, 0.001, 300};
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
        fx_rig fx;
        fx_open(&fx, 1);
        nx_wall(&fx, LIMITS[i]);
        fx_op(&fx, fx_stream(&fx, 0, 0), 0, 1000000, fx_light(&fx));
        fx_finish(&fx, 1);
        fl_node *n = fx_node(&fx, 0, false);
        const double shown = fl_node_limit_w(n, 0);
        FL_CHECK(LIMITS[i] > 0 ? shown == LIMITS[i] : isnan(shown), "%g W: %g W shown", LIMITS[i], shown);
        fl_node_close(n);
        fx_close(&fx);
    }
}

/* Of a library, a limit is a whole number of its steps; the board's own stays what it is. */
static void test_limits(void) {
    static const struct {
        double per_watt; /* steps of the library; 0: no library */
        double asked_w, limit_w;
    } rows[] = {{0, 154.4, 154.4},    {1000, 150.0004, 150}, {1000, 150.0006, 150.001}, {0.1, 154.4, 150},
                {0, FL_DEFAULT, 900}, {0.1, 155.1, 160},     {0.1, FL_DEFAULT, 900}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fl_readout library = {.rule = {[FL_GPU_POWER_W] = {"power", rows[i].per_watt, 0}}};
        rig r;
        open_rig(&r, rows[i].per_watt > 0 ? &library : NULL, false, NULL);
        want(r.gpu[0], FL_SET_POWER_LIMIT_W, rows[i].asked_w);
        CU_ASSERT(fl_run_carry_out(&r.h, &r.dec, false, 0) == 11 * US);
        fx_advance(r.n, 18 * US - 1);
        FL_CHECK(fl_node_limit_w(r.n, 0) == 900, "row %zu: too early", i);
        fx_advance(r.n, 18 * US);
        FL_CHECK(fabs(fl_node_limit_w(r.n, 0) - rows[i].limit_w) < 1e-9 && fl_node_limit_w(r.n, 1) == 900,
                 "row %zu: %.6f W", i, fl_node_limit_w(r.n, 0));
        close_rig(&r);
    }
}

/* A board that nothing can hold to a limit, and a CPU that is not modelled: the sets are told as ignored. */
static void test_ignored(void) {
    rig r = {.dec = {.gpu_count = 1}};
    fx_open(&r.fx, 1);
    fx_op(&r.fx, fx_stream(&r.fx, 0, 0), 0, 1000000, fx_light(&r.fx));
    fx_finish(&r.fx, 1);
    r.n = fx_node(&r.fx, 0, false);
    FX_MUST(fl_run_sets_open(&r.h, r.n, &r.fx.spec, NULL, NULL, false, d));
    want(r.gpu[0], FL_SET_POWER_LIMIT_W, 100);
    want(r.dec.host, FL_SET_HOST_CPU_MHZ, 1000);
    r.dec.gpu = (const fl_decided(*)[FL_GPU_CONTROL_COUNT])r.gpu;
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, false, 0) == 0 && r.h.ignored == 2, "%llu ignored",
             (unsigned long long)r.h.ignored);
    close_rig(&r);
}

/* Each control of the host is a call of 11 us, one after the other, and says nothing of the others. */
static void test_host(void) {
    rig r;
    open_rig(&r, NULL, false, NULL);
    want(r.dec.host, FL_SET_HOST_CPU_MHZ, 1000);
    want(r.dec.host, FL_SET_HOST_CPU_BOOST, 0);
    want(r.dec.host, FL_SET_HOST_CPU_POWER_LIMIT_W, 90);
    CU_ASSERT(fl_run_carry_out(&r.h, &r.dec, false, 2 * US) == 41 * US && fl_run_sets_cost(&r.h) == 39 * US);
    const fl_cpu *c = fl_node_cpu(r.n);
    CU_ASSERT_FATAL(c && c->pending == 3);
    FL_CHECK(c->queue[0].at_ps == 19 * US && c->queue[0].state == 0 && c->queue[0].boost == -1 && !c->queue[0].limit,
             "the clock");
    FL_CHECK(c->queue[1].at_ps == 30 * US && c->queue[1].state == -1 && c->queue[1].boost == 0 && !c->queue[1].limit,
             "the boost");
    FL_CHECK(c->queue[2].at_ps == 41 * US && c->queue[2].state == -1 && c->queue[2].boost == -1 && c->queue[2].limit &&
                 c->queue[2].limit_w == 90,
             "the limit");
    close_rig(&r);
}

/* A refused call keeps its caller as long as one that is heard. The fault begins at 11 us: a call that ends there is
 * refused, one that ends before is not. */
static void test_refused(void) {
    static const struct {
        const char *why;
        fl_fault fault;
        uint64_t refused;
        double sm_mhz, mem_mhz, limit_w;
        uint32_t cpu;
        bool records;
    } rows[] = {
        {"the SM clock", {FL_FAULT_REFUSE, 0, FL_SET_SM_MHZ, 11000, FL_FAULT_FOR_EVER}, 1, 1000, 400, 100, 1, true},
        {"too late for it", {FL_FAULT_REFUSE, 0, FL_SET_SM_MHZ, 11001, FL_FAULT_FOR_EVER}, 0, 700, 400, 100, 1, true},
        {"the memory clock", {FL_FAULT_REFUSE, 0, FL_SET_MEM_MHZ, 16000, 16001}, 1, 700, 800, 100, 1, true},
        {"over before it", {FL_FAULT_REFUSE, 0, FL_SET_MEM_MHZ, 0, 16000}, 0, 700, 400, 100, 1, true},
        {"the limit", {FL_FAULT_REFUSE, 0, FL_SET_POWER_LIMIT_W, 21000, 21001}, 1, 700, 400, 900, 1, true},
        {"the records", {FL_FAULT_REFUSE, 0, FL_SET_RECORDS, 21000, 21001}, 1, 700, 400, 100, 1, false},
        {"the CPU", {FL_FAULT_REFUSE, FL_FAULT_HOST, FL_SET_HOST_CPU_MHZ, 32000, 32001}, 1, 700, 400, 100, 0, true},
        {"not yet the CPU", {FL_FAULT_REFUSE, FL_FAULT_HOST, FL_SET_HOST_CPU_MHZ, 0, 32000}, 0, 700, 400, 100, 1, true},
        {"another GPU", {FL_FAULT_REFUSE, 1, FL_FAULT_EVERY_ROW, 0, FL_FAULT_FOR_EVER}, 0, 700, 400, 100, 1, true},
        {"all of the GPU", {FL_FAULT_REFUSE, 0, FL_FAULT_EVERY_ROW, 0, FL_FAULT_FOR_EVER}, 4, 1000, 800, 900, 1, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        open_rig(&r, NULL, false, &rows[i].fault);
        want(r.gpu[0], FL_SET_SM_MHZ, 700);
        want(r.gpu[0], FL_SET_MEM_MHZ, 400);
        want(r.gpu[0], FL_SET_POWER_LIMIT_W, 100);
        want(r.gpu[0], FL_SET_RECORDS, 1);
        want(r.dec.host, FL_SET_HOST_CPU_MHZ, 1000);
        const int64_t end = fl_run_carry_out(&r.h, &r.dec, false, 0);
        FL_CHECK(end == 32 * US && r.h.refused == rows[i].refused && r.h.ignored == 0, "%s: %lld ps, %llu refused",
                 rows[i].why, (long long)end, (unsigned long long)r.h.refused);
        FL_CHECK((r.h.records[0].at_ps == 21 * US) == rows[i].records && r.h.records[1].at_ps == FL_TIME_NEVER,
                 "%s: records at %lld", rows[i].why, (long long)r.h.records[0].at_ps);
        FL_CHECK(fl_node_cpu(r.n)->pending == rows[i].cpu, "%s: the CPU", rows[i].why);
        fx_advance(r.n, 100 * US);
        const fl_gpu *g = fl_node_gpu(r.n, 0);
        FL_CHECK(g->dev->sm_mhz[g->sm] == rows[i].sm_mhz && g->dev->mem_mhz[g->mem] == rows[i].mem_mhz &&
                     fl_node_limit_w(r.n, 0) == rows[i].limit_w,
                 "%s: %d, %d MHz, %g W", rows[i].why, g->dev->sm_mhz[g->sm], g->dev->mem_mhz[g->mem],
                 fl_node_limit_w(r.n, 0));
        close_rig(&r);
    }
}

/* Each GPU has a host of its own: they work side by side, and each goes on where its calls before have ended. */
static void test_own_hosts(void) {
    rig r;
    open_rig(&r, NULL, true, NULL);
    want(r.gpu[0], FL_SET_SM_MHZ, 700);
    want(r.gpu[1], FL_SET_SM_MHZ, 700);
    want(r.gpu[1], FL_SET_MEM_MHZ, 400);
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, false, 0) == 13 * US, "the slower of both: 3 + 5 + 5 us");
    FL_CHECK(r.h.own[0].free_ps == 8 * US && r.h.own[0].cost_ps == 8 * US && r.h.own[1].free_ps == 13 * US &&
                 fl_run_sets_cost(&r.h) == 13 * US,
             "the busiest counts");
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, false, 9 * US) == 26 * US && r.h.own[0].free_ps == 17 * US &&
                 r.h.own[0].cost_ps == 16 * US && r.h.own[1].cost_ps == 26 * US && fl_run_sets_cost(&r.h) == 26 * US,
             "the one is free again at 9 us, the other at 13");
    memset(r.gpu, 0, sizeof r.gpu);
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, true, 50 * US) == 50 * US && r.h.own[0].free_ps == 17 * US &&
                 r.h.own[1].free_ps == 26 * US,
             "before its time: no marker, nothing to set, nobody looks");
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, false, 50 * US) == 53 * US && r.h.own[0].cost_ps == 19 * US &&
                 r.h.own[1].cost_ps == 29 * US,
             "in time, both look");
    fx_advance(r.n, 2 * FX_MS_PS); /* at 700 MHz: one mark */
    const int64_t now = 2 * FX_MS_PS;
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, true, now) == now + 3 * US && r.h.own[0].looked == 1 &&
                 r.h.own[0].free_ps == now + 3 * US && r.h.own[1].free_ps == 53 * US && r.h.own[1].looked == 0,
             "who passed a marker looks: %llu", (unsigned long long)r.h.own[0].looked);
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, true, now + 9 * US) == now + 9 * US && r.h.own[0].free_ps == now + 3 * US,
             "once for each");
    want(r.gpu[1], FL_SET_RECORDS, 0);
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, true, now + 9 * US) == now + 12 * US &&
                 r.h.own[1].free_ps == now + 12 * US && r.h.records[1].at_ps == now + 12 * US && !r.h.records[1].to,
             "and who has something to set, be it the last of the controls");
    memset(r.gpu, 0, sizeof r.gpu);
    want(r.gpu[0], FL_SET_SM_MHZ, 900);
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, true, now + 20 * US) == now + 28 * US &&
                 r.h.own[0].free_ps == now + 28 * US && r.h.own[1].free_ps == now + 12 * US,
             "or the first");
    FL_CHECK(r.h.own[0].cost_ps == 30 * US && r.h.own[1].cost_ps == 32 * US && fl_run_sets_cost(&r.h) == 32 * US,
             "the second is the busiest");
    FL_CHECK(fl_run_carry_out(&r.h, &r.dec, true, now + 40 * US) == now + 48 * US && fl_run_sets_cost(&r.h) == 38 * US,
             "now the first is");
    close_rig(&r);
}

/* Records on and off: how many GPUs have them on, whatever was before. */
static void test_records(void) {
    static const struct {
        uint32_t gpu, recording;
        bool on;
    } steps[] = {{0, 0, false}, {0, 1, true},  {0, 1, true},  {1, 2, true},
                 {0, 1, false}, {0, 1, false}, {1, 0, false}, {1, 1, true}};
    for (int costs = 0; costs < 2; costs++) {
        rig r;
        open_rig(&r, NULL, false, NULL);
        r.h.records_free = !costs;
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            fl_run_record(&r.h, steps[i].gpu, steps[i].on);
            const fl_gpu *g = fl_node_gpu(r.n, steps[i].gpu);
            FL_CHECK(r.h.recording == steps[i].recording && r.h.records[steps[i].gpu].on == steps[i].on &&
                         g->records.on == steps[i].on && g->records.slow == (costs && steps[i].on),
                     "step %zu: %u record", i, r.h.recording);
        }
        close_rig(&r);
    }
}

FL_SUITE("run_sets", {"clocks", test_clocks}, {"a library", test_library}, {"limits", test_limits},
         {"no limit", test_no_limit}, {"ignored", test_ignored}, {"the host", test_host}, {"refused", test_refused},
         {"own hosts", test_own_hosts}, {"records", test_records})
