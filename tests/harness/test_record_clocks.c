/* The clocks that recorded kernels get, from readings that are made up. */
#include "harness/cmd/machine/inside.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"

#include <math.h>

#define MS INT64_C(1000000)

static void add_kernel(fl_kernel_trace *t, int64_t start, int64_t end, int device, const char *name) {
    const uint32_t one[3] = {1, 1, 1};
    const fl_trace_op op = {.start_ns = start,
                            .end_ns = end,
                            .launch_ns = INT64_MIN,
                            .bytes = -1,
                            .kind = fl_trace_add_kind(t, name, one, one),
                            .device = device,
                            .host_thread = -1};
    CU_ASSERT_FATAL(op.kind != UINT32_MAX && !fl_trace_add_op(t, &op));
}

/* Readings of one GPU each 20 ms for 2 s: 1,980 MHz in the first second, `then` in the second, seen `late` ms late; the
 * sensor refreshes each 100 ms, with a step of 15 MHz each time from 1 s on, so that its changes tell that. */
static void add_readings(fl_telemetry *t, int device, double then, int64_t late, int64_t steps) {
    static char name[] = "sm_mhz";
    static char *signal[] = {name};
    static double value[400];
    static int64_t t_ns[400];
    static int32_t gpu[400];
    t->signal = signal;
    t->signal_count = 1;
    t->value = value;
    t->t_ns = t_ns;
    t->device = gpu;
    for (int i = 0; i < 100; i++) {
        const int64_t at = 20 * MS * i, seen = at - late * MS, since = (seen - 1000 * MS) / (100 * MS);
        value[t->row_count] = seen < 1000 * MS ? 1980 : then + 15 * (double)(since % steps);
        t_ns[t->row_count] = at;
        gpu[t->row_count++] = device;
    }
}

static int said;
static void say(void *user, const char *line) {
    (void)user;
    said += strstr(line, "SM clock") != NULL;
}

static uint16_t clock_of(const fl_kernel_trace *t, size_t i) {
    const char *common = fl_head_get(&t->head, "sm_mhz");
    return t->ops[i].sm_mhz ? t->ops[i].sm_mhz : (uint16_t)(common ? atoi(common) : 0);
}

static void test_moving(void) {
    fl_kernel_trace k = {0};
    fl_telemetry t = {0};
    fl_diag d = {0};
    for (int i = 0; i < 200; i++)
        add_kernel(&k, i * 10 * MS, (i * 10 + 9) * MS, 0, "k");
    add_readings(&t, 0, 1500, 50, 2);
    said = 0;
    CU_ASSERT_FATAL(!fl_record_clocks(&k, &t, say, NULL, &d));
    CU_ASSERT(said == 1);
    int wrong = 0;
    for (size_t i = 0; i < k.op_count; i++) {
        const uint16_t mhz = clock_of(&k, i);
        wrong += i < 100 ? mhz != 1980 : mhz != 1500 && mhz != 1515;
    }
    /* Readings that are 50 ms late are moved back by half a refresh, which is 50 ms. */
    FL_CHECK(wrong <= 3, "%d kernels of 200 have a clock of the other half", wrong);
    fl_kernel_trace_free(&k);
    fl_head_free(&t.head);
}

static void test_steady(void) {
    fl_kernel_trace k = {0};
    fl_telemetry t = {0};
    fl_diag d = {0};
    add_kernel(&k, 100 * MS, 200 * MS, 0, "k");
    add_readings(&t, 0, 1500, 50, 2);
    t.row_count = 50; /* the first second */
    const int64_t before = t.t_ns[10];
    CU_ASSERT_FATAL(!fl_record_clocks(&k, &t, say, NULL, &d));
    FL_CHECK(clock_of(&k, 0) == 1980 && t.t_ns[10] == before, "%d MHz", clock_of(&k, 0));
    fl_kernel_trace_free(&k);
    fl_head_free(&t.head);
}

/* A GPU whose clock nobody read gets none of another's. */
static void test_unread(void) {
    fl_kernel_trace k = {0};
    fl_telemetry t = {0};
    fl_diag d = {0};
    add_kernel(&k, 0, MS, 0, "k");
    add_kernel(&k, 0, MS, 1, "k");
    add_readings(&t, 0, 1500, 0, 2);
    said = 0;
    CU_ASSERT_FATAL(!fl_record_clocks(&k, &t, say, NULL, &d));
    CU_ASSERT(!said && !clock_of(&k, 0) && !clock_of(&k, 1) && !fl_head_get(&k.head, "sm_mhz"));
    t.value[3] = (double)NAN; /* a gap is no lack */
    add_readings(&t, 1, 900, 0, 2);
    CU_ASSERT_FATAL(!fl_record_clocks(&k, &t, say, NULL, &d));
    CU_ASSERT(said == 1 && clock_of(&k, 0) == 1980 && clock_of(&k, 1) == 1980);
    fl_kernel_trace_free(&k);
    fl_head_free(&t.head);
}

/* 5,600 kinds at eleven clocks are too many classes: the commonest clock stands for all. */
static void test_too_many(void) {
    fl_kernel_trace k = {0};
    fl_telemetry t = {0};
    fl_diag d = {0};
    char name[16];
    for (int i = 0; i < 5600; i++) {
        snprintf(name, sizeof name, "k%d", i);
        add_kernel(&k, i * 350 * MS / 1000, (i * 350 + 300) * MS / 1000, 0, name);
    }
    add_readings(&t, 0, 1500, 0, 10);
    CU_ASSERT_FATAL(!fl_record_clocks(&k, &t, say, NULL, &d));
    size_t clocks = 0;
    for (size_t i = 0; i < k.op_count; i++)
        clocks += k.ops[i].sm_mhz != 0;
    FL_CHECK(!clocks && clock_of(&k, 0) == 1980, "%zu kernels have clocks of their own", clocks);
    fl_kernel_trace_free(&k);
    fl_head_free(&t.head);
}

FL_SUITE("record_clocks", {"a clock that moves", test_moving}, {"a steady clock", test_steady},
         {"a GPU without readings", test_unread}, {"too many kinds", test_too_many})
