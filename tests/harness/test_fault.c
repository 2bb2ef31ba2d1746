#include "harness/base/cli/cli.h"
#include "harness/input/scene/inside.h"
#include "harness/input/scene/scene.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)
#define EVER FL_FAULT_FOR_EVER

static const uint64_t gpu_all = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1, host_all = FL_BIT(FL_HOST_SIGNAL_COUNT) - 1;

/* A reading in which each signal tells its number and the step. */
static fl_gpu_sample gpu_reading(int step, uint64_t valid, uint64_t fresh) {
    fl_gpu_sample s = {.valid = valid, .fresh = fresh};
    for (int i = 0; i < FL_GPU_SIGNAL_COUNT; i++)
        s.value[i] = valid >> i & 1 ? 100 * i + step : 0;
    return s;
}

static fl_faults *opened(const fl_fault *list, size_t count, uint32_t gpus) {
    fl_faults *f = NULL;
    fl_diag d = {0};
    fl_status s = fl_faults_open(&f, list, count, gpus, 2, &d);
    FL_CHECK(s == FL_OK, "%s", d.message);
    CU_ASSERT_FATAL(s == FL_OK);
    return f;
}

static void test_none(void) {
    fl_gpu_sample g = gpu_reading(3, gpu_all, 5), was = g;
    fl_host_sample h = {.valid = host_all, .fresh = 1, .value = {7}};
    fl_faults_gpu(NULL, 0, 0, &g);
    fl_faults_host(NULL, 0, &h);
    FL_CHECK(memcmp(&g, &was, sizeof g) == 0 && h.valid == host_all && h.value[0] == 7, "NULL changed a reading");
    FL_CHECK(!fl_faults_refuses(NULL, 0, 0, 0) && fl_faults_lost_at(NULL, 0) == INT64_MAX, "NULL has faults");
    fl_faults_close(NULL);
    fl_faults *f = opened(NULL, 0, 2);
    fl_faults_gpu(f, 1, 0, &g);
    fl_faults_gpu(f, 9, 0, &g); /* a GPU that there is not */
    FL_CHECK(memcmp(&g, &was, sizeof g) == 0, "an empty list changed a reading");
    fl_faults_close(f);
}

/* What one fault does to two GPUs and the host at t = 0, 10, 20, 30, 40 ms: hex masks of the signals that are missing.
 */
static void test_drop(void) {
    const uint64_t power = FL_BIT(FL_GPU_POWER_W), uops = FL_BIT(FL_HOST_CPU_UOPS),
                   sensors = host_all & ~FL_HOST_KNOWS;
    const struct {
        fl_fault fault;
        uint64_t missing[3]; /* GPU 0, GPU 1, host */
        unsigned steps;      /* bit k: at step k */
    } rows[] = {
        {{FL_FAULT_DROP, 0, FL_GPU_POWER_W, 10 * MS, 30 * MS}, {power, 0, 0}, 0x06},
        {{FL_FAULT_DROP, 1, FL_GPU_POWER_W, 10 * MS + 1, 30 * MS + 1}, {0, power, 0}, 0x0c},
        {{FL_FAULT_DROP, FL_FAULT_EVERY_GPU, FL_GPU_POWER_W, 0, EVER}, {power, power, 0}, 0x1f},
        {{FL_FAULT_DROP, 1, FL_FAULT_EVERY_ROW, 20 * MS, EVER}, {0, gpu_all, 0}, 0x1c},
        {{FL_FAULT_DROP, FL_FAULT_HOST, FL_HOST_CPU_UOPS, 0, 10 * MS}, {0, 0, uops}, 0x01},
        {{FL_FAULT_DROP, FL_FAULT_HOST, FL_FAULT_EVERY_ROW, 0, EVER}, {0, 0, sensors}, 0x1f},
        {{FL_FAULT_REFUSE, FL_FAULT_EVERY_GPU, FL_FAULT_EVERY_ROW, 0, EVER}, {0, 0, 0}, 0x1f},
        {{FL_FAULT_LOST, 0, 0, 30 * MS, 0}, {gpu_all, 0, 0}, 0x18},
        {{FL_FAULT_LOST, FL_FAULT_EVERY_GPU, 77, 40 * MS, 0}, {gpu_all, gpu_all, 0}, 0x10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_faults *f = opened(&rows[i].fault, 1, 2);
        for (int k = 0; k < 5; k++) {
            const bool on = rows[i].steps >> k & 1;
            for (uint32_t gpu = 0; gpu < 2; gpu++) {
                fl_gpu_sample s = gpu_reading(k, gpu_all, gpu_all);
                fl_faults_gpu(f, gpu, k * 10 * MS, &s);
                const uint64_t left = gpu_all & ~(on ? rows[i].missing[gpu] : 0);
                fl_gpu_sample expected = gpu_reading(k, left, left);
                FL_CHECK(memcmp(&s, &expected, sizeof s) == 0, "row %zu, step %d, GPU %u: valid %llx", i, k, gpu,
                         (unsigned long long)s.valid);
            }
            fl_host_sample h = {.valid = host_all, .fresh = host_all};
            fl_faults_host(f, k * 10 * MS, &h);
            const uint64_t left = host_all & ~(on ? rows[i].missing[2] : 0);
            FL_CHECK(h.valid == left && h.fresh == left, "row %zu, step %d, host: valid %llx", i, k,
                     (unsigned long long)h.valid);
        }
        fl_faults_close(f);
    }
}

/* A freeze by reading: steps at 0, 10, ... ms, value = step. -1: unknown. */
static void test_freeze(void) {
    enum { STEPS = 7, E = FL_GPU_ENERGY_J };
    static const struct {
        const char *name;
        fl_fault fault[2];
        size_t count;
        unsigned unknown; /* bit k: the sensor gave nothing at step k */
        unsigned fresh;   /* bit k: the sensor refreshed at step k */
        double shown[STEPS];
        unsigned fresh_out;
    } rows[] = {
        {"at a reading", {{FL_FAULT_FREEZE, 0, E, 20 * MS, 50 * MS}}, 1, 0, 0x7f, {0, 1, 2, 2, 2, 5, 6}, 0x63},
        {"between readings", {{FL_FAULT_FREEZE, 0, E, 25 * MS, 50 * MS}}, 1, 0, 0x7f, {0, 1, 2, 2, 2, 5, 6}, 0x67},
        {"from the start", {{FL_FAULT_FREEZE, 0, E, 0, 30 * MS}}, 1, 0, 0x7f, {0, 0, 0, 3, 4, 5, 6}, 0x78},
        {"for ever", {{FL_FAULT_FREEZE, 0, E, 40 * MS, EVER}}, 1, 0, 0x7f, {0, 1, 2, 3, 4, 4, 4}, 0x0f},
        {"over before the next reading",
         {{FL_FAULT_FREEZE, 0, E, 21 * MS, 29 * MS}},
         1,
         0,
         0x7f,
         {0, 1, 2, 3, 4, 5, 6},
         0x7f},
        {"unknown stays unknown",
         {{FL_FAULT_FREEZE, 0, E, 20 * MS, 50 * MS}},
         1,
         0x04,
         0x7b,
         {0, 1, -1, -1, -1, 5, 6},
         0x63},
        {"known stays known", {{FL_FAULT_FREEZE, 0, E, 20 * MS, 50 * MS}}, 1, 0x08, 0x77, {0, 1, 2, 2, 2, 5, 6}, 0x63},
        {"a refresh that it hid is told after it",
         {{FL_FAULT_FREEZE, 0, E, 20 * MS, 50 * MS}},
         1,
         0,
         0x09,
         {0, 1, 2, 2, 2, 5, 6},
         0x21},
        {"no refresh hidden, none told",
         {{FL_FAULT_FREEZE, 0, E, 20 * MS, 50 * MS}},
         1,
         0,
         0x01,
         {0, 1, 2, 2, 2, 5, 6},
         0x01},
        {"missing hides and tells likewise",
         {{FL_FAULT_DROP, 0, E, 20 * MS, 40 * MS}},
         1,
         0,
         0x08,
         {0, 1, -1, -1, 4, 5, 6},
         0x10},
        {"missing wins",
         {{FL_FAULT_DROP, 0, E, 30 * MS, 40 * MS}, {FL_FAULT_FREEZE, 0, E, 20 * MS, 50 * MS}},
         2,
         0,
         0x7f,
         {0, 1, 2, -1, 2, 5, 6},
         0x63},
        {"a second freeze sees the first",
         {{FL_FAULT_FREEZE, 0, E, 10 * MS, 40 * MS}, {FL_FAULT_FREEZE, 0, E, 30 * MS, 60 * MS}},
         2,
         0,
         0x7f,
         {0, 1, 1, 1, 1, 1, 6},
         0x41},
        {"every GPU, every signal",
         {{FL_FAULT_FREEZE, FL_FAULT_EVERY_GPU, FL_FAULT_EVERY_ROW, 20 * MS, 50 * MS}},
         1,
         0,
         0x7f,
         {0, 1, 2, 2, 2, 5, 6},
         0x63},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_faults *f = opened(rows[i].fault, rows[i].count, 2);
        for (int k = 0; k < STEPS; k++) {
            const bool known = !(rows[i].unknown >> k & 1), fresh = rows[i].fresh >> k & 1;
            fl_gpu_sample s = gpu_reading(k, known ? FL_BIT(E) : 0, fresh ? FL_BIT(E) : 0), other = s;
            other.value[E] += 0.5; /* GPU 1 freezes on its own values, if at all */
            fl_faults_gpu(f, 0, k * 10 * MS, &s);
            fl_faults_gpu(f, 1, k * 10 * MS, &other);
            const double expected = rows[i].shown[k];
            FL_CHECK(fl_gpu_known(&s, E) == (expected >= 0), "%s, step %d: valid %llx", rows[i].name, k,
                     (unsigned long long)s.valid);
            FL_CHECK(expected < 0 || s.value[E] == 100 * E + expected, "%s, step %d: %g", rows[i].name, k, s.value[E]);
            FL_CHECK((s.fresh != 0) == (rows[i].fresh_out >> k & 1), "%s, step %d: fresh %llx", rows[i].name, k,
                     (unsigned long long)s.fresh);
            const double own = rows[i].fault[0].gpu == FL_FAULT_EVERY_GPU ? expected : k;
            FL_CHECK(!known || other.value[E] == 100 * E + own + 0.5, "%s, step %d: GPU 1 shows %g", rows[i].name, k,
                     other.value[E]);
        }
        fl_faults_close(f);
    }
}

/* Nobody read before it began: the first reading is all that is known of what it showed then. */
static void test_freeze_unseen(void) {
    const fl_fault fault = {FL_FAULT_FREEZE, 0, FL_GPU_ENERGY_J, 5 * MS, EVER};
    fl_faults *f = opened(&fault, 1, 1);
    for (int k = 1; k < 4; k++) {
        fl_gpu_sample s = gpu_reading(k, gpu_all, gpu_all);
        fl_faults_gpu(f, 0, k * 10 * MS, &s);
        FL_CHECK(fl_gpu_known(&s, FL_GPU_ENERGY_J) && s.value[FL_GPU_ENERGY_J] == 100 * FL_GPU_ENERGY_J + 1,
                 "step %d: %g J", k, s.value[FL_GPU_ENERGY_J]);
    }
    fl_faults_close(f);
}

static void test_freeze_host(void) {
    const fl_fault list[] = {{FL_FAULT_FREEZE, FL_FAULT_EVERY_GPU, FL_FAULT_EVERY_ROW, 0, EVER},
                             {FL_FAULT_FREEZE, FL_FAULT_HOST, FL_FAULT_EVERY_ROW, 10 * MS, EVER}};
    fl_faults *f = opened(list, 2, 3);
    for (int k = 0; k < 4; k++) {
        fl_host_sample h = {.valid = host_all, .fresh = host_all};
        for (uint32_t gpu = 0; gpu < 3; gpu++) { /* three frozen GPUs come before the host in the list */
            fl_gpu_sample s = gpu_reading(k + 10 * (int)gpu, gpu_all, gpu_all);
            fl_faults_gpu(f, gpu, k * 10 * MS, &s);
            FL_CHECK(s.value[FL_GPU_ENERGY_NS] == 100 * FL_GPU_ENERGY_NS + 10 * gpu && !s.fresh,
                     "step %d: GPU %u shows %g", k, gpu, s.value[FL_GPU_ENERGY_NS]);
        }
        for (int i = 0; i < FL_HOST_SIGNAL_COUNT; i++)
            h.value[i] = k;
        fl_faults_host(f, k * 10 * MS, &h);
        FL_CHECK(h.value[FL_HOST_NODE_POWER_W] == (k < 1 ? k : 1), "step %d: %g W", k, h.value[FL_HOST_NODE_POWER_W]);
        FL_CHECK(h.value[FL_HOST_LOOP_NS] == k && h.fresh == (k < 1 ? host_all : FL_HOST_KNOWS),
                 "step %d: the host's own stopwatch froze", k);
    }
    fl_faults_close(f);
}

static void test_refuse(void) {
    static const fl_fault list[] = {
        {FL_FAULT_REFUSE, 0, FL_SET_SM_MHZ, 10, 20},
        {FL_FAULT_REFUSE, FL_FAULT_EVERY_GPU, FL_SET_MEM_MHZ, 30, EVER},
        {FL_FAULT_REFUSE, FL_FAULT_HOST, FL_FAULT_EVERY_ROW, 40, 50},
        {FL_FAULT_LOST, 1, 0, 100, 0},
        {FL_FAULT_LOST, FL_FAULT_EVERY_GPU, 0, 200, 0},
        {FL_FAULT_DROP, FL_FAULT_EVERY_GPU, FL_FAULT_EVERY_ROW, 0, EVER},
    };
    static const struct {
        int32_t gpu;
        int control;
        int64_t t;
        bool refused;
    } rows[] = {
        {0, FL_SET_SM_MHZ, 9, false},
        {0, FL_SET_SM_MHZ, 10, true},
        {0, FL_SET_SM_MHZ, 19, true},
        {0, FL_SET_SM_MHZ, 20, false},
        {1, FL_SET_SM_MHZ, 15, false},
        {0, FL_SET_POWER_LIMIT_W, 15, false},
        {0, FL_SET_MEM_MHZ, 29, false},
        {1, FL_SET_MEM_MHZ, 30, true},
        {FL_FAULT_HOST, FL_SET_HOST_CPU_BOOST, 35, false}, /* the same number as the memory clock's */
        {FL_FAULT_HOST, FL_SET_HOST_CPU_BOOST, 40, true},
        {FL_FAULT_HOST, FL_SET_HOST_CPU_MHZ, 49, true},
        {FL_FAULT_HOST, FL_SET_HOST_CPU_MHZ, 50, false},
        {0, FL_SET_RECORDS, 45, false},
        {1, FL_SET_RECORDS, 99, false},
        {1, FL_SET_RECORDS, 100, true},
        {0, FL_SET_RECORDS, 100, false},
        {0, FL_SET_RECORDS, 200, true},
        {FL_FAULT_HOST, FL_SET_HOST_CPU_MHZ, 300, false},
    };
    fl_faults *f = opened(list, sizeof list / sizeof *list, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(fl_faults_refuses(f, rows[i].gpu, rows[i].control, rows[i].t) == rows[i].refused, "row %zu", i);
    FL_CHECK(fl_faults_lost_at(f, 0) == 200 && fl_faults_lost_at(f, 1) == 100, "lost at %lld, %lld",
             (long long)fl_faults_lost_at(f, 0), (long long)fl_faults_lost_at(f, 1));
    fl_faults_close(f);
    f = opened(list, 3, 2);
    FL_CHECK(fl_faults_lost_at(f, 1) == INT64_MAX, "lost without a fault");
    fl_faults_close(f);
}

static void test_refused_lists(void) {
    static const struct {
        fl_fault fault;
        const char *says;
    } rows[] = {
        {{(fl_fault_type)9, 0, 0, 0, 1}, "type 9, expected 0 to 3"},
        {{FL_FAULT_TYPE_COUNT, 0, 0, 0, 1}, "type 4"},
        {{FL_FAULT_DROP, 2, 0, 0, 1}, "GPU 2, but the node has 2"},
        {{FL_FAULT_DROP, FL_FAULT_EVERY_SERVER, 0, 0, 1}, "of a server, and the node has none"},
        {{FL_FAULT_FREEZE, FL_FAULT_SERVER - 7, 0, 0, 1}, "of a server, and the node has none"},
        {{FL_FAULT_DROP, 0, FL_GPU_SIGNAL_COUNT, 0, 1}, "row 21, expected -1 to 20"},
        {{FL_FAULT_FREEZE, FL_FAULT_HOST, FL_HOST_SIGNAL_COUNT, 0, 1}, "row 10"},
        {{FL_FAULT_REFUSE, 0, FL_GPU_CONTROL_COUNT, 0, 1}, "row 4"},
        {{FL_FAULT_REFUSE, FL_FAULT_HOST, FL_HOST_CONTROL_COUNT, 0, 1}, "row 3"},
        {{FL_FAULT_DROP, 0, -2, 0, 1}, "row -2"},
        {{FL_FAULT_DROP, 0, 0, -1, 1}, "before time 0"},
        {{FL_FAULT_DROP, 0, 0, 5, 5}, "no later"},
        {{FL_FAULT_LOST, FL_FAULT_HOST, 0, 0, 0}, "the host is lost"},
        {{FL_FAULT_DROP, FL_FAULT_HOST, FL_HOST_LOOP_NS, 0, 1}, "itself knows"},
        {{FL_FAULT_FREEZE, FL_FAULT_HOST, FL_HOST_TARGET_W, 0, 1}, "target_w is what"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fl_fault list[] = {{FL_FAULT_DROP, 0, 0, 0, 1}, rows[i].fault};
        fl_diag d = {0};
        fl_faults *f = (fl_faults *)(void *)&d; /* what was there is no list of faults */
        fl_status s = fl_faults_open(&f, list, 2, 2, 0, &d);
        FL_CHECK(s == FL_BAD_INPUT && !f && strstr(d.message, rows[i].says) && strstr(d.message, "fault 2:"),
                 "row %zu: %d '%s'", i, s, d.message);
        fl_faults_close(f);
    }
}

/* What servers tell fails server by server, and nothing of the GPUs or the host with it. */
static void test_servers(void) {
    const fl_fault list[] = {{FL_FAULT_DROP, FL_FAULT_SERVER - 1, FL_SERVER_WAITING, 10, 20},
                             {FL_FAULT_FREEZE, FL_FAULT_EVERY_SERVER, FL_SERVER_RUNNING, 30, 40},
                             {FL_FAULT_FREEZE, FL_FAULT_EVERY_GPU, FL_FAULT_EVERY_ROW, 30, 40}};
    const uint64_t both = FL_BIT(FL_SERVER_WAITING) | FL_BIT(FL_SERVER_RUNNING);
    fl_faults *f = opened(list, 3, 2);
    for (int t = 0; t < 60; t += 5)
        for (int i = 0; i < 2; i++) {
            const bool dropped = i == 1 && t >= 10 && t < 20, frozen = t >= 30 && t < 40;
            fl_server_sample s = {.valid = both, .fresh = both};
            s.value[FL_SERVER_WAITING] = 100 * i + t;
            s.value[FL_SERVER_RUNNING] = 1000 + 100 * i + t;
            fl_faults_server(f, (uint32_t)i, t, &s);
            FL_CHECK(fl_server_known(&s, FL_SERVER_WAITING) == !dropped, "server %d at %d: waiting", i, t);
            FL_CHECK(s.value[FL_SERVER_RUNNING] == 1000 + 100 * i + (frozen ? 30 : t), "server %d at %d: %g run", i, t,
                     s.value[FL_SERVER_RUNNING]);
            FL_CHECK(!fl_server_fresh(&s, FL_SERVER_RUNNING) == frozen, "server %d at %d: fresh", i, t);
            fl_gpu_sample g = gpu_reading(t, gpu_all, gpu_all);
            fl_faults_gpu(f, (uint32_t)i, t, &g);
            FL_CHECK(g.value[1] == 100 + (frozen ? 30 : t), "GPU %d at %d: %g", i, t, g.value[1]);
        }
    FL_CHECK(!fl_faults_refuses(f, 0, FL_SET_SM_MHZ, 30) && fl_faults_lost_at(f, 0) == INT64_MAX, "a GPU fails too");
    fl_faults_close(f);
    static const struct {
        fl_fault fault;
        const char *says;
    } rows[] = {{{FL_FAULT_DROP, FL_FAULT_SERVER - 2, 0, 0, 1}, "server 2, but the node has 2"},
                {{FL_FAULT_DROP, FL_FAULT_SERVER, FL_SERVER_SIGNAL_COUNT, 0, 1}, "row 24, expected -1 to 23"},
                {{FL_FAULT_DROP, INT32_MIN, 0, 0, 1}, "server 2147483644, but the node has 2"},
                {{FL_FAULT_REFUSE, FL_FAULT_SERVER, 0, 0, 1}, "only signals fail"},
                {{FL_FAULT_LOST, FL_FAULT_EVERY_SERVER, 0, 0, 1}, "only signals fail"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_diag d = {0};
        FL_CHECK(fl_faults_open(&f, &rows[i].fault, 1, 2, 2, &d) == FL_BAD_INPUT && strstr(d.message, rows[i].says),
                 "row %zu: '%s'", i, d.message);
    }
}

/* ---- on the command line ------------------------------------------------------------------------------------------
 */

static void test_spec(void) {
    enum { ALL = FL_FAULT_EVERY_GPU, HOST = FL_FAULT_HOST, ANY = FL_FAULT_EVERY_ROW };
    static const struct {
        const char *text;
        fl_fault fault;
    } rows[] = {
        {"drop", {FL_FAULT_DROP, ALL, ANY, 0, EVER}},
        {"drop:gpu=0,signal=power_w,from_s=1,for_s=2", {FL_FAULT_DROP, 0, FL_GPU_POWER_W, 1 * S, 3 * S}},
        {"drop:until_s=2.5,from_s=0.1,signal=power_w,gpu=0", {FL_FAULT_DROP, 0, FL_GPU_POWER_W, 100 * MS, 2500 * MS}},
        {"freeze:gpu=all,signal=energy_j,from_s=1", {FL_FAULT_FREEZE, ALL, FL_GPU_ENERGY_J, 1 * S, EVER}},
        {"freeze:gpu=12", {FL_FAULT_FREEZE, 12, ANY, 0, EVER}},
        {"refuse:gpu=0,control=sm_mhz,from_s=0", {FL_FAULT_REFUSE, 0, FL_SET_SM_MHZ, 0, EVER}},
        {"refuse:control=records", {FL_FAULT_REFUSE, ALL, FL_SET_RECORDS, 0, EVER}},
        {"refuse:control=all", {FL_FAULT_REFUSE, ALL, ANY, 0, EVER}},
        {"refuse:gpu=host,control=cpu_boost", {FL_FAULT_REFUSE, HOST, FL_SET_HOST_CPU_BOOST, 0, EVER}},
        {"refuse:control=cpu_mhz", {FL_FAULT_REFUSE, HOST, FL_SET_HOST_CPU_MHZ, 0, EVER}},
        {"lost:gpu=1,from_s=3", {FL_FAULT_LOST, 1, ANY, 3 * S, EVER}},
        {"lost:gpu=all", {FL_FAULT_LOST, ALL, ANY, 0, EVER}},
        {"drop:gpu=host,signal=cpu_uops", {FL_FAULT_DROP, HOST, FL_HOST_CPU_UOPS, 0, EVER}},
        {"drop:signal=cpu_uops", {FL_FAULT_DROP, HOST, FL_HOST_CPU_UOPS, 0, EVER}},
        {"drop:gpu=host,signal=all", {FL_FAULT_DROP, HOST, ANY, 0, EVER}},
        {"drop:signal=waiting", {FL_FAULT_DROP, FL_FAULT_EVERY_SERVER, FL_SERVER_WAITING, 0, EVER}},
        {"freeze:server=all", {FL_FAULT_FREEZE, FL_FAULT_EVERY_SERVER, ANY, 0, EVER}},
        {"freeze:server=3,signal=running,from_s=1",
         {FL_FAULT_FREEZE, FL_FAULT_SERVER - 3, FL_SERVER_RUNNING, 1 * S, EVER}},
        {"drop:gpu=0,for_s=1e-9", {FL_FAULT_DROP, 0, ANY, 0, 1}},
        {"drop:gpu=0,from_s=0.00013", {FL_FAULT_DROP, 0, ANY, 130000, EVER}}, /* 129999.99... as a product */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_fault f = {0};
        fl_diag d = {0};
        const fl_fault *e = &rows[i].fault;
        fl_status s = fl_fault_spec_parse(rows[i].text, &f, &d);
        FL_CHECK(s == FL_OK && f.type == e->type && f.gpu == e->gpu && f.row == e->row && f.from_ns == e->from_ns &&
                     f.until_ns == e->until_ns,
                 "'%s': %d %d %d %lld %lld, %s", rows[i].text, (int)f.type, (int)f.gpu, (int)f.row,
                 (long long)f.from_ns, (long long)f.until_ns, d.message);
    }
}

static void test_spec_refusals(void) {
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "no '', expected drop, freeze, refuse or lost"},
        {"drpo:gpu=0", "no 'drpo', did you mean 'drop'?"},
        {"explode", "no 'explode', expected drop, freeze"},
        {"gpu=0", "no 'gpu=0', expected drop"},
        {"drop:", "'', expected key=value"},
        {"drop:gpu=0,", "'', expected key=value"},
        {"drop:gpu=0,,from_s=1", "'', expected key=value"},
        {"drop:host", "'host', expected key=value"},
        {"drop:=3", "'=3', expected key=value"},
        {"drop:singal=power_w", "no 'singal', did you mean 'signal'?"},
        {"drop:colour=red", "drop takes no 'colour', expected gpu or server, signal, from_s, for_s or until_s"},
        {"drop:control=sm_mhz", "drop takes no 'control', expected gpu or server, signal"},
        {"refuse:signal=sm_mhz", "refuse takes no 'signal', expected gpu, control"},
        {"refuse:singal=sm_mhz", "refuse takes no 'singal', expected gpu, control"},
        {"lost:gpu=0,for_s=3", "lost takes no 'for_s', expected gpu or from_s"},
        {"lost:gpu=0,signal=power_w", "lost takes no 'signal'"},
        {"lost:from_s=3", "does not say which GPU is lost"},
        {"lost:gpu=host", "gpu 'host', expected an index from 0 or all"},
        {"drop:gpu=0,gpu=1", "'gpu' is given twice"},
        {"drop:gpu=-1", "gpu '-1', expected an index from 0, all or host"},
        {"drop:gpu=", "gpu '', expected an index"},
        {"drop:gpu=1.5", "gpu '1.5'"},
        {"drop:gpu=2147483648", "gpu '2147483648'"},
        {"drop:gpu=99999999999999999999", "gpu '99999999999999999999'"},
        {"drop:gpu=every", "gpu 'every'"},
        {"drop:signal=powr_w", "no signal 'powr_w', did you mean 'power_w'?"},
        {"drop:signal=cpu_uop", "no signal 'cpu_uop', did you mean 'cpu_uops'?"},
        {"drop:gpu=host,signal=cpu_energyj", "no signal 'cpu_energyj', did you mean 'cpu_energy_j'?"},
        {"drop:signal=", "no signal '', expected"},
        {"drop:signal=qqqqqqqq", "no signal 'qqqqqqqq', expected one of the contract or all"},
        {"refuse:control=sm_mzh", "no control 'sm_mzh', did you mean 'sm_mhz'?"},
        {"drop:gpu=0,signal=cpu_uops", "cpu_uops is a signal of the host, expected gpu=host"},
        {"drop:signal=cpu_uops,gpu=all", "cpu_uops is a signal of the host, expected gpu=host"},
        {"drop:gpu=host,signal=power_w", "power_w is a signal of a GPU, expected gpu=an index or all"},
        {"refuse:gpu=host,control=sm_mhz", "sm_mhz is a control of a GPU"},
        {"drop:signal=loop_ns", "itself knows"},
        {"freeze:signal=target_w", "target_w is what"},
        {"drop:server=-1", "server '-1', expected an index from 0 or all"},
        {"drop:server=host", "server 'host', expected an index from 0 or all"},
        {"drop:server=0,gpu=0", "gpu and server, expected one of them"},
        {"drop:server=0,signal=power_w", "power_w is no signal of a server, expected gpu= in place of server="},
        {"drop:gpu=0,signal=waiting", "waiting is a signal of a server, expected server= in place of gpu="},
        {"drop:server=0,signal=wating", "no signal 'wating', did you mean 'waiting'?"},
        {"drop:signal=kv_usd_pct", "no signal 'kv_usd_pct', did you mean 'kv_used_pct'?"},
        {"lost:server=0", "lost takes no 'server', expected gpu or from_s"},
        {"refuse:server=0", "refuse takes no 'server', expected gpu, control"},
        {"drop:from_s=soon", "from_s 'soon', expected seconds from 0 to 1e+09"},
        {"drop:from_s=", "from_s ''"},
        {"drop:from_s=1s", "from_s '1s'"},
        {"drop:from_s=nan", "from_s 'nan'"},
        {"drop:from_s=-1", "from_s '-1'"},
        {"drop:from_s=1e10", "from_s '1e10'"},
        {"drop:until_s=inf", "until_s 'inf'"},
        {"drop:for_s=1e999", "for_s '1e999'"},
        {"drop:for_s=0", "expected for_s > 0"},
        {"drop:for_s=1e-10", "expected for_s > 0"},
        {"drop:from_s=2,until_s=2", "expected until_s > from_s"},
        {"drop:for_s=1,until_s=2", "for_s and until_s, expected one of them"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_fault f;
        fl_diag d = {0};
        fl_status s = fl_fault_spec_parse(rows[i].text, &f, &d);
        FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, rows[i].says) && strstr(d.message, rows[i].text),
                 "'%s': %d '%s'", rows[i].text, s, d.message);
    }
}

static void test_spec_list(void) {
    const char *good[] = {"drop:gpu=0", "lost:gpu=1,from_s=2"}, *bad[] = {"drop:gpu=0", "nothing"};
    fl_fault *list = NULL;
    fl_diag d = {0};
    FL_CHECK(fl_fault_specs_parse(&(fl_texts){good, 2, 2}, &list, &d) == FL_OK && list, "%s", d.message);
    FL_CHECK(list && list[0].type == FL_FAULT_DROP && list[1].type == FL_FAULT_LOST && list[1].from_ns == 2 * S,
             "list");
    free(list);
    FL_CHECK(fl_fault_specs_parse(&(fl_texts){bad, 2, 2}, &list, &d) == FL_BAD_INPUT && !list, "a bad list was taken");
    FL_CHECK(fl_fault_specs_parse(&(fl_texts){0}, &list, &d) == FL_OK && !list, "an empty list");
}

FL_SUITE("fault", {"none", test_none}, {"drop", test_drop}, {"freeze", test_freeze},
         {"freeze unseen", test_freeze_unseen}, {"freeze host", test_freeze_host}, {"refuse", test_refuse},
         {"refused lists", test_refused_lists}, {"servers", test_servers}, {"spec", test_spec},
         {"spec refusals", test_spec_refusals}, {"spec list", test_spec_list})
