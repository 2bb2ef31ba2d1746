/* Kernels and telemetry of one run: the offset between their clocks, the clocks that kernels ran at. */
#include "tests/support/import_fixture.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/profiler/profiler.h"

#include <stdint.h>

typedef struct made {
    fl_imported run;
    uint64_t state;
} made;

static double draw(made *m) { /* uniform, 0..1 */
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (double)(m->state >> 11) * 0x1p-53;
}

static void add_kernel(fl_kernel_trace *k, int32_t device, int64_t start, int64_t end) {
    const uint32_t one[3] = {1, 1, 1};
    fl_trace_op op = {
        .start_ns = start, .end_ns = end, .launch_ns = INT64_MIN, .bytes = -1, .device = device, .host_thread = -1};
    op.kind = fl_trace_add_kind(k, "f", one, one);
    CU_ASSERT_FATAL(op.kind != UINT32_MAX && fl_trace_add_op(k, &op) == FL_OK);
}

static void signals(fl_telemetry *t, const char *const *names, size_t count, size_t rows) {
    t->signal = calloc(count, sizeof *t->signal);
    t->t_ns = calloc(rows, sizeof *t->t_ns);
    t->device = calloc(rows, sizeof *t->device);
    t->value = calloc(rows * count, sizeof *t->value);
    CU_ASSERT_FATAL(t->signal && t->t_ns && t->device && t->value);
    for (; t->signal_count < count; t->signal_count++)
        t->signal[t->signal_count] = strdup(names[t->signal_count]);
}

/* Bursts of kernels of random lengths over `seconds`; power and utilisation read every interval, with noise, on a clock
 * that is `offset` ahead. */
static made make_run(double seconds, double interval, double offset, double noise, uint64_t seed) {
    static const char *const NAME[] = {"power_w", "util_gpu_pct", "sm_mhz", "mem_mhz"};
    made m = {.state = seed};
    fl_kernel_trace *k = &m.run.kernels;
    fl_telemetry *t = &m.run.telemetry;
    m.run.has_kernels = m.run.has_telemetry = true;
    double at = 1;
    while (at < seconds) {
        double burst = 0.2 + 2 * draw(&m), end = at + burst;
        for (double s = at; s < end; s += 0.01)
            add_kernel(k, 0, (int64_t)(s * 1e9), (int64_t)((s + 0.0095) * 1e9));
        at = end + 0.2 + 2 * draw(&m);
    }
    size_t rows = (size_t)((seconds + 4) / interval);
    signals(t, NAME, 4, rows);
    for (; t->row_count < rows; t->row_count++) {
        double now = -1 + (double)t->row_count * interval, busy = 0;
        for (size_t i = 0; i < k->op_count; i++) { /* the share of the interval before */
            double a = fmax((double)k->ops[i].start_ns * 1e-9, now - interval);
            double b = fmin((double)k->ops[i].end_ns * 1e-9, now);
            busy += b > a ? (b - a) / interval : 0;
        }
        t->t_ns[t->row_count] = (int64_t)((now + offset) * 1e9);
        double *v = t->value + t->row_count * 4;
        v[0] = 60 + 200 * busy + noise * (draw(&m) - 0.5);
        v[1] = floor(100 * busy);
        v[2] = busy > 0.5 ? 1410 : 210;
        v[3] = 1215;
    }
    return m;
}

static void test_found(void) {
    static const struct {
        double seconds, interval, offset, noise;
    } CASE[] = {{30, 0.1, 1689329426.905, 0}, {30, 0.1, 12.345, 40}, {60, 0.02, 3.2, 20}, {20, 0.5, 100, 0},
                {120, 1, 7.77, 10},           {30, 0.1, 3600.5, 5}};
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        made m = make_run(CASE[i].seconds, CASE[i].interval, CASE[i].offset, CASE[i].noise, 7 + i);
        fl_clock_offset f;
        fl_diag d = {0};
        fl_status s = fl_join_find(&m.run.kernels, &m.run.telemetry, &f, &d);
        double error = fabs((double)f.offset_ns * 1e-9 - CASE[i].offset);
        FL_CHECK(s == FL_OK && f.sure && error <= f.error_ns * 1e-9 && f.error_ns * 1e-9 <= 2 * CASE[i].interval &&
                     f.r > f.next_r,
                 "case %zu: off by %g s, said %g s, r %.3f, next %.3f with %s: %s", i, error, f.error_ns * 1e-9, f.r,
                 f.next_r, f.signal ? f.signal : "", d.message);
        fl_imported_free(&m.run);
    }
}

/* Telemetry that was on for a part of the run only, and with holes in it. */
static void test_part(void) {
    for (int holes = 0; holes < 2; holes++) {
        made m = make_run(60, 0.1, 500.25, 5, 21);
        fl_telemetry *t = &m.run.telemetry;
        size_t kept = 0;
        for (size_t n = 0; n < t->row_count; n++) {
            if (n < 150 || n >= 500 || (holes && n % 50 >= 35))
                continue;
            t->t_ns[kept] = t->t_ns[n];
            memmove(t->value + kept * 4, t->value + n * 4, 4 * sizeof *t->value);
            kept++;
        }
        t->row_count = kept;
        fl_clock_offset f;
        fl_diag d = {0};
        fl_status s = fl_join_find(&m.run.kernels, t, &f, &d);
        double error = fabs((double)f.offset_ns * 1e-9 - 500.25);
        FL_CHECK(s == FL_OK && f.sure && error < 0.06 && f.r > 0.99, "off by %g s, r %.4f, next %.3f: %s", error, f.r,
                 f.next_r, d.message);
        fl_imported_free(&m.run);
    }
}

/* Kernels without a pause look the same at many offsets; power that has nothing to do with them at none. */
static void test_not_sure(void) {
    made m = make_run(30, 0.1, 5, 0, 3);
    fl_telemetry *t = &m.run.telemetry;
    fl_clock_offset f;
    fl_diag d = {0};
    for (size_t n = 0; n < t->row_count; n++)
        for (size_t i = 0; i < 2; i++)
            t->value[n * 4 + i] = 50 + draw(&m);
    fl_status s = fl_join_find(&m.run.kernels, t, &f, &d);
    FL_CHECK(s == FL_BAD_INPUT || !f.sure, "noise: r %.3f, next %.3f", f.r, f.next_r);
    for (size_t n = 0; n < t->row_count; n++)
        for (size_t i = 0; i < 2; i++)
            t->value[n * 4 + i] = 50;
    s = fl_join_find(&m.run.kernels, t, &f, &d);
    FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, "do not vary"), "constant: %d %s", s, d.message);
    fl_imported_free(&m.run);
    /* A square wave that fills the telemetry: shifted by a period it fits as well. */
    made p = {.state = 1};
    static const char *const NAME[] = {"power_w"};
    signals(&p.run.telemetry, NAME, 1, 400);
    for (int i = 0; i < 10; i++)
        add_kernel(&p.run.kernels, 0, i * INT64_C(2000000000), i * INT64_C(2000000000) + 1000000000);
    t = &p.run.telemetry;
    for (; t->row_count < 400; t->row_count++) {
        t->t_ns[t->row_count] = (int64_t)t->row_count * 100000000;
        t->value[t->row_count] = (t->row_count + 19) % 20 < 10 ? 200 : 50;
    }
    s = fl_join_find(&p.run.kernels, t, &f, &d);
    FL_CHECK(s == FL_BAD_INPUT || !f.sure, "periodic: r %.3f, next %.3f", f.r, f.next_r);
    fl_imported_free(&p.run);
    /* A step at the very end is no run of half a minute, though the first second would fit it. */
    made end = {.state = 5};
    signals(&end.run.telemetry, NAME, 1, 300);
    for (int i = 0; i < 15; i++)
        add_kernel(&end.run.kernels, 0, i * INT64_C(2000000000), i * INT64_C(2000000000) + 1500000000);
    t = &end.run.telemetry;
    for (; t->row_count < 300; t->row_count++) {
        t->t_ns[t->row_count] = (int64_t)t->row_count * 100000000;
        t->value[t->row_count] = (t->row_count >= 290 ? 200 : 60) + draw(&end);
    }
    s = fl_join_find(&end.run.kernels, t, &f, &d);
    FL_CHECK(s == FL_BAD_INPUT || !f.sure, "a step at the end: r %.3f, next %.3f", f.r, f.next_r);
    fl_imported_free(&end.run);
    made none = make_run(5, 0.1, 0, 0, 9);
    free(none.run.telemetry.signal[0]);
    free(none.run.telemetry.signal[1]);
    none.run.telemetry.signal[0] = strdup("temp_c");
    none.run.telemetry.signal[1] = strdup("fan_pct");
    s = fl_join_find(&none.run.kernels, &none.run.telemetry, &f, &d);
    FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, "without readings"), "%s", d.message);
    fl_imported_free(&none.run);
}

static void test_clocks(void) {
    static const char *const NAME[] = {"sm_mhz", "mem_mhz"};
    made m = {.state = 1};
    fl_imported *run = &m.run;
    fl_telemetry *t = &run->telemetry;
    run->has_kernels = run->has_telemetry = true;
    signals(t, NAME, 2, 5);
    static const double MHZ[] = {1000, 1200, 1400, 1400, NAN};
    for (; t->row_count < 5; t->row_count++) { /* at 100, 200 ... 500 s of its own clock */
        t->t_ns[t->row_count] = (int64_t)(t->row_count + 1) * INT64_C(100000000000);
        t->value[t->row_count * 2] = MHZ[t->row_count];
        t->value[t->row_count * 2 + 1] = 877;
    }
    const int64_t S = 1000000000;
    fl_kernel_trace *k = &run->kernels;
    add_kernel(k, 0, 50 * S, 160 * S);    /* holds the readings at 50 and 150 of the kernels' clock: 1000 and 1200 */
    add_kernel(k, 0, 161 * S, 170 * S);   /* the nearest is that at 150 */
    add_kernel(k, 0, 245 * S, 260 * S);   /* 1400 */
    add_kernel(k, 0, 2000 * S, 2001 * S); /* too far from any */
    fl_diag d = {0};
    FL_CHECK(fl_join(run, 50 * S, &d) == FL_OK, "%s", d.message);
    FL_CHECK(k->ops[0].sm_mhz == 1100 && k->ops[1].sm_mhz == 1200 && k->ops[2].sm_mhz == 1400 && k->ops[3].sm_mhz == 0,
             "%d %d %d %d", k->ops[0].sm_mhz, k->ops[1].sm_mhz, k->ops[2].sm_mhz, k->ops[3].sm_mhz);
    FL_CHECK(t->t_ns[0] == 50 * S && k->ops[0].start_ns == 50 * S, "the telemetry is on the kernels' clock");
    FL_CHECK(!strcmp(fl_head_get(&k->head, "sm_mhz"), "1100") && !strcmp(fl_head_get(&k->head, "mem_mhz"), "877") &&
                 !strcmp(fl_head_get(&k->head, "clock_offset_ns"), "50000000000") &&
                 !strcmp(fl_head_get(&t->head, "clock_offset_ns"), "50000000000"),
             "heads");
    FL_CHECK(fl_noted(run, "3 of 4 kernels have an SM clock from the telemetry, 1100 to 1400 MHz"), "note");
    fl_round_trip(run);
    fl_imported_free(run);
}

/* A lock held all through: one head entry says it. Telemetry that began first pushes both clocks. */
static void test_one_clock(void) {
    static const char *const NAME[] = {"sm_mhz"};
    made m = {.state = 1};
    fl_imported *run = &m.run;
    run->has_kernels = run->has_telemetry = true;
    signals(&run->telemetry, NAME, 1, 10);
    for (; run->telemetry.row_count < 10; run->telemetry.row_count++) {
        run->telemetry.t_ns[run->telemetry.row_count] = (int64_t)run->telemetry.row_count * 100;
        run->telemetry.value[run->telemetry.row_count] = 1410;
    }
    add_kernel(&run->kernels, 0, 0, 150);
    add_kernel(&run->kernels, 0, 200, 250);
    fl_diag d = {0};
    FL_CHECK(fl_join(run, 300, &d) == FL_OK, "%s", d.message);
    FL_CHECK(run->telemetry.t_ns[0] == 0 && run->kernels.ops[0].start_ns == 300 && run->kernels.ops[1].end_ns == 550 &&
                 run->kernels.ops[0].launch_ns == INT64_MIN && fl_noted(run, "that much later"),
             "both are later");
    FL_CHECK(!strcmp(fl_head_get(&run->kernels.head, "sm_mhz"), "1410") && run->kernels.ops[0].sm_mhz == 0, "clock");
    FL_CHECK(fl_join(run, INT64_MIN, &d) == FL_BAD_INPUT && strstr(d.message, "too large"), "%s", d.message);
    fl_imported_free(run);
}

static void test_devices(void) {
    static const char *const NAME[] = {"sm_mhz"};
    for (int two = 0; two < 2; two++) {
        made m = {.state = 1};
        fl_diag d = {0};
        signals(&m.run.telemetry, NAME, 1, 3);
        m.run.telemetry.row_count = 3;
        m.run.telemetry.device[0] = -1;
        m.run.telemetry.device[1] = 3;
        m.run.telemetry.device[2] = two ? 4 : 3;
        add_kernel(&m.run.kernels, 0, 0, 1);
        FL_CHECK(fl_join_devices(&m.run, &d) == FL_OK && m.run.telemetry.device[1] == (two ? 3 : 0) &&
                     m.run.telemetry.device[0] == -1 && fl_noted(&m.run, "device 3 of the telemetry") == !two,
                 "%s", two ? "two devices" : "one device");
        fl_imported_free(&m.run);
    }
}

static void test_append(void) {
    made a = {.state = 1}, b = {.state = 1};
    fl_diag d = {0};
    a.run.has_kernels = b.run.has_kernels = true;
    add_kernel(&a.run.kernels, 0, 1000, 2000);
    add_kernel(&a.run.kernels, 0, 9000, 9100);
    add_kernel(&b.run.kernels, 0, 3000, 4000);
    add_kernel(&b.run.kernels, 1, 100, 200);
    FL_CHECK(fl_join_append(&a.run, &b.run, &d) == FL_OK, "%s", d.message);
    const fl_kernel_trace *k = &a.run.kernels;
    FL_CHECK(k->op_count == 4 && k->ops[0].start_ns == 100 && k->ops[3].start_ns == 9000 && k->kind_count == 1 &&
                 fl_noted(&a.run, "order of time"),
             "appended");
    fl_round_trip(&a.run);
    fl_imported_free(&a.run);
    fl_imported_free(&b.run);
}

/* Files of several ranks: whose GPU is device 0 of each? */
static void test_ranks(void) {
    static const struct {
        const char *gpu[2]; /* of device 0, in the heads; NULL: not said */
        int32_t device[2];  /* of the first and the second kernel; -1: refused */
        bool overlap;
        int32_t thread; /* of the second kernel; both were launched by thread 5 */
        const char *note;
    } CASE[] = {
        {{"rank 0", "rank 1"}, {0, 1}, true, 0, "device 0 of rank 1 is another GPU than that of rank 0: numbered 1"},
        {{"rank 1", "rank 0"}, {0, 1}, true, 0, "numbered 1"},
        {{"rank 0", "rank 6"}, {0, 6}, true, 0, "numbered 6"},
        {{"rank 2", "rank 2"}, {0, 0}, false, 5, NULL},
        {{"GPU-a", "GPU-b"}, {0, 1}, true, 0, "numbered 1"},
        {{NULL, NULL}, {0, 0}, false, 5, "several files have a device 0, and no rank or UUID: taken as one GPU"},
        {{NULL, "rank 1"}, {0, 0}, false, 5, "taken as one GPU"},
        {{NULL, NULL}, {-1, -1}, true, 0, NULL},
        {{"rank 0", NULL}, {-1, -1}, true, 0, NULL},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_imported in[2] = {{0}, {0}};
        fl_diag d = {0};
        for (int k = 0; k < 2; k++) {
            const int64_t start = k && !CASE[i].overlap ? 5000 : 1000 + 10 * k;
            fl_kernel_trace *t = &in[k].kernels;
            const uint32_t kind = fl_trace_add_kind(t, "f", (uint32_t[3]){1, 1, 1}, (uint32_t[3]){1, 1, 1});
            const fl_trace_op op = {.start_ns = start,
                                    .end_ns = start + 100,
                                    .launch_ns = start - 100,
                                    .bytes = -1,
                                    .kind = kind,
                                    .stream = 7,
                                    .host_thread = 5};
            FL_CHECK(!fl_trace_add_op(t, &op) && (!CASE[i].gpu[k] || fl_head_set(&t->head, "gpu.0", CASE[i].gpu[k])),
                     "memory");
            in[k].has_kernels = true;
        }
        const fl_status s = fl_join_append(&in[0], &in[1], &d);
        FL_CHECK((s == FL_OK) == (CASE[i].device[0] >= 0), "case %zu: %s", i, d.message);
        const fl_kernel_trace *t = &in[0].kernels;
        if (!s)
            FL_CHECK(
                t->op_count == 2 && t->ops[0].device == CASE[i].device[0] && t->ops[1].device == CASE[i].device[1] &&
                    t->ops[0].host_thread == 5 && t->ops[1].host_thread == CASE[i].thread && t->ops[1].stream == 7,
                "case %zu: devices %d and %d, thread %d", i, t->ops[0].device, t->ops[1].device, t->ops[1].host_thread);
        FL_CHECK(s || !CASE[i].note || fl_noted(&in[0], CASE[i].note), "case %zu: not '%s'", i, CASE[i].note);
        char key[16];
        snprintf(key, sizeof key, "gpu.%d", CASE[i].device[1]);
        const char *gpu = s || !CASE[i].gpu[0] ? NULL : fl_head_get(&t->head, key);
        FL_CHECK(s || !CASE[i].gpu[0] || (gpu && !strcmp(gpu, CASE[i].gpu[1])), "case %zu: %s in the head", i, key);
        fl_imported_free(&in[0]);
        fl_imported_free(&in[1]);
    }
    /* The rank is in the file, or else in its name. */
    static const struct {
        const char *name, *json, *gpu;
    } FILE_[] = {
        {"rank3.json", "", "rank 3"},
        {"a_RANK-12.json", "", "rank 12"},
        {"rank3.json", "\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":5,\"pg\":[{\"rank\":9}]},", "rank 5"},
        {"ranked.json", "", NULL},
        {"x.json", "", NULL}};
    for (size_t i = 0; i < sizeof FILE_ / sizeof *FILE_; i++) {
        char json[512];
        snprintf(json, sizeof json,
                 "{%s\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"f\",\"ts\":1,\"dur\":1,\"pid\":0,"
                 "\"tid\":7}]}",
                 FILE_[i].json);
        fl_imported in;
        fl_diag d = {0};
        FL_CHECK(!fl_trace_open(fl_temp_text(FILE_[i].name, json), NULL, NULL, &in, &d), "%s", d.message);
        const char *gpu = fl_head_get(&in.kernels.head, "gpu.0");
        FL_CHECK(FILE_[i].gpu ? gpu && !strcmp(gpu, FILE_[i].gpu) : !gpu, "%s: %s", FILE_[i].name, gpu ? gpu : "none");
        fl_imported_free(&in);
    }
}

FL_SUITE("join", {"found", test_found}, {"part", test_part}, {"not sure", test_not_sure}, {"clocks", test_clocks},
         {"one clock", test_one_clock}, {"devices", test_devices}, {"append", test_append}, {"ranks", test_ranks})
