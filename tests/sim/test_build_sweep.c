/* Workloads from the rows of a sweep: which rows count, what is averaged, what the law adds. Every value is worked by
 * hand. The rows stand in memory of exactly their size, so that a sanitizer sees who reads beyond them. */
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/gpu/gpu.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/sim_fixture.h"

enum { NAME_A, NAME_K1, NAME_K2, NAME_B, NAME_NONE, NAMES };

typedef struct rig {
    fx_rig fx;
    fl_sweep s;
    fl_sweep_row *rows;
    fl_workload *w;
    fl_diag d;
} rig;

static const fl_sweep_replay once = {.repeat = 1, .seed = 1};

/* A row of a workload without kernels; the k1, k2 of others are set by hand. */
#define ROW(name, sm, mem, cap, time, watts)                                                                           \
    {                                                                                                                  \
        .workload = (name), .kernel = NAME_NONE, .sm_mhz = (sm), .mem_mhz = (mem), .power_cap_w = (cap),               \
        .time_s = (time), .power_w = NAN, .energy_j = (time) * (watts), .line = 7                                      \
    }
#define KERNEL(kind, sm, mem, time, watts)                                                                             \
    {                                                                                                                  \
        .workload = NAME_A, .kernel = (kind), .sm_mhz = (sm), .mem_mhz = (mem), .power_cap_w = NAN, .time_s = (time),  \
        .power_w = NAN, .energy_j = (time) * (watts), .line = 7                                                        \
    }
#define OPEN(r, ...)                                                                                                   \
    do {                                                                                                               \
        const fl_sweep_row open_rows_[] = {__VA_ARGS__};                                                               \
        open_rig(r, open_rows_, sizeof open_rows_ / sizeof *open_rows_);                                               \
    } while (0)

static void open_rig(rig *r, const fl_sweep_row *rows, size_t count) {
    static const char *const texts[NAMES] = {"a", "k1", "k2", "b", ""};
    *r = (rig){0};
    fx_open(&r->fx, 1);
    r->rows = fx_alloc(count, sizeof *rows);
    memcpy(r->rows, rows, count * sizeof *rows);
    for (size_t i = 0; i < count; i++)
        r->rows[i].line = 10 + (int64_t)i;
    r->s =
        (fl_sweep){.names = fx_alloc(NAMES, sizeof(char *)), .name_count = NAMES, .rows = r->rows, .row_count = count};
    for (size_t i = 0; i < NAMES; i++)
        r->s.names[i] = (char *)(uintptr_t)texts[i];
}

static void close_rig(rig *r) {
    fl_workload_free(r->w);
    fl_head_free(&r->s.head);
    free(r->s.names);
    free(r->rows);
    fx_close(&r->fx);
}

static fl_status build_as(rig *r, const fl_sweep_law *law, const fl_sweep_replay *replay) {
    fl_workload_free(r->w);
    r->w = NULL;
    return fl_build_sweep(&r->w, "s.csv", &r->s, NAME_A, law, replay, &r->fx.spec, &r->d);
}

static void replay_as(rig *r, const fl_sweep_law *law, const fl_sweep_replay *replay) {
    if (build_as(r, law, replay)) {
        printf("\n    %s\n", r->d.message);
        exit(1);
    }
}

static void build(rig *r, const fl_sweep_law *law) { replay_as(r, law, &once); }

/* Time relative to the reference, and power, of a class at an SM clock: NAN where it has no such row. */
static double at(const fl_curve *c, double mhz) {
    double y;
    return fl_curve_has(c, mhz) && fl_curve_at(c, mhz, 0, &y) == FL_MODEL_OK ? y : NAN;
}

static double power_at(const rig *r, uint32_t class_id, double mhz) {
    return at(r->w->class[class_id].measured.power_w, mhz);
}

static double time_at(const rig *r, uint32_t class_id, double mhz) {
    return at(r->w->class[class_id].measured.time_ratio, mhz);
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(b); }

static void test_names(void) {
    rig r;
    OPEN(&r, ROW(NAME_B, 500, NAN, NAN, 1, 100), ROW(NAME_A, 500, NAN, NAN, 1, 100), ROW(NAME_B, 600, NAN, NAN, 1, 100),
         ROW(NAME_K2, 500, NAN, NAN, 1, 100));
    uint32_t *names;
    size_t count;
    FX_MUST(fl_sweep_workloads(&r.s, &names, &count, d));
    FL_CHECK(count == 3 && names[0] == NAME_B && names[1] == NAME_A && names[2] == NAME_K2,
             "each once, as they appear");
    free(names);
    close_rig(&r);
}

/* The platform's default is 800 MHz. */
static void test_memory_clock(void) {
    static const struct {
        const char *why;
        double first, second, other; /* memory clocks of two rows of a, and of one of b; watts 100, 200, 300 */
        double preferred, watts, mem;
    } rows[] = {
        {"the default where measured", 400, 800, 400, 800, 200, 800},
        {"the default where measured first", 800, 400, 400, 800, 100, 800},
        {"the default although it is not the highest", 400, 800, 800, 400, 100, 400},
        {"another workload's default does not count", 400, 400, 800, 800, 150, 400},
        {"the highest where the default is missing", 400, 800, 800, 600, 200, 800},
        {"the highest, though it stands first", 800, 400, 400, 600, 100, 800},
        {"rows that name none count at any", NAN, 400, 800, 800, 150, 400},
        {"and so do they behind others", 800, NAN, 400, 600, 150, 800},
        {"none is named: the default's", NAN, NAN, 400, 800, 150, 800},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        OPEN(&r, ROW(NAME_A, 1000, rows[i].first, NAN, 1, 100), ROW(NAME_A, 1000, rows[i].second, NAN, 1, 200),
             ROW(NAME_B, 1000, rows[i].other, NAN, 1, 300));
        r.fx.spec.device->default_mem_mhz = rows[i].preferred;
        build(&r, NULL);
        FL_CHECK(near(power_at(&r, 0, 1000), rows[i].watts), "%s: %g W", rows[i].why, power_at(&r, 0, 1000));
        FL_CHECK(r.w->class[0].measured.mem_mhz == rows[i].mem && r.w->class[0].load.ref_mem_mhz == rows[i].mem,
                 "%s: at %g MHz", rows[i].why, r.w->class[0].measured.mem_mhz);
        const double a = rows[i].first, b = rows[i].second, other = a == rows[i].mem ? b : a;
        const fl_measured *next = r.w->class[0].measured.next;
        FL_CHECK(isnan(a) || isnan(b) || a == b ? !next : next && next->mem_mhz == other && !next->next,
                 "%s: the other memory clock, once", rows[i].why);
        close_rig(&r);
    }
}

static void test_cap(void) {
    static const struct {
        const char *why;
        double first, second, third; /* W; rows of 100, 200 and 300 W */
        double watts;
    } rows[] = {{"the highest", 150, 250, 200, 200},        {"the highest first", 250, 150, 200, 100},
                {"two of the highest", 250, 150, 250, 200}, {"no cap counts at any", NAN, 150, 250, 200},
                {"none has one", NAN, NAN, NAN, 200},       {"the highest before none", 250, NAN, 150, 150}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        OPEN(&r, ROW(NAME_A, 1000, NAN, rows[i].first, 1, 100), ROW(NAME_A, 1000, NAN, rows[i].second, 1, 200),
             ROW(NAME_A, 1000, NAN, rows[i].third, 1, 300), ROW(NAME_B, 1000, NAN, 900, 1, 999));
        build(&r, NULL);
        FL_CHECK(near(power_at(&r, 0, 1000), rows[i].watts), "%s: %g W", rows[i].why, power_at(&r, 0, 1000));
        close_rig(&r);
    }
}

/* At 1000 MHz three of 2, 4 and 6 s, of 100, 200 and 100 W: 4 s and 133.3 W. The reference is 1500 MHz with 2 s. */
static void test_repeats(void) {
    rig r;
    OPEN(&r, ROW(NAME_A, 1500, 800, NAN, 2, 150), ROW(NAME_A, 1000, 800, NAN, 2, 100),
         ROW(NAME_A, 500, 800, NAN, 8, 60), ROW(NAME_A, 1000, 800, NAN, 4, 200), ROW(NAME_A, 1000, 800, NAN, 6, 100));
    build(&r, NULL);
    const fl_class *c = &r.w->class[0];
    FL_CHECK(r.w->class_count == 1 && near(time_at(&r, 0, 1000), 2) && near(time_at(&r, 0, 500), 4), "%g, %g",
             time_at(&r, 0, 1000), time_at(&r, 0, 500));
    FL_CHECK(near(time_at(&r, 0, 1500), 1) && near(power_at(&r, 0, 1500), 150) && near(power_at(&r, 0, 500), 60),
             "the ends are what they were");
    FL_CHECK(near(power_at(&r, 0, 1000), 400.0 / 3), "%g W", power_at(&r, 0, 1000));
    FL_CHECK(c->load.ref_sm_mhz == 1500 && c->load.ref_mem_mhz == 800 && c->load.sm_demand == 1 && c->load.tc == 1 &&
                 c->load.tm == 0 && c->load.tl == 0,
             "nobody knows the terms: all is the core's");
    FL_CHECK(r.w->assumed && r.w->measured && !r.w->predicted, "and that is assumed");
    FL_CHECK(!strcmp(c->kind.name, "a") && c->kind.grid[0] == 1 && c->kind.grid[1] == 1 && c->kind.grid[2] == 1 &&
                 c->kind.block[0] == 1 && c->kind.block[1] == 1 && c->kind.block[2] == 1,
             "named %s", c->kind.name);
    FL_CHECK(r.w->sm_min_mhz == 500 && r.w->sm_max_mhz == 1500, "known between its ends");
    close_rig(&r);
}

/* What the ops of the stream are: how often the class changes, and the sum of work of each class. */
typedef struct passes {
    uint64_t turns, count[3];
    int64_t total[3];
} passes;

static passes passes_of(const rig *r) {
    passes p = {0};
    uint32_t before = FL_NONE;
    const fl_stream *s = &r->w->stream[0];
    for (uint64_t i = 0; i < s->count; i++) {
        int64_t gap, ns;
        uint32_t id;
        fl_workload_op(s, i, &gap, &ns, &id);
        p.turns += id != before;
        before = id;
        p.count[id]++;
        p.total[id] += ns;
    }
    return p;
}

/* k1 takes 1.00000000047 s at its highest clock, rounded 1,000,000,000 ns; k2 2.0000000006 s, rounded 2,000,000,001.
 * k3 was only measured at a memory clock that is not used. */
static void test_kernels(void) {
    rig r;
    OPEN(&r, KERNEL(NAME_K1, 600, 800, 3, 70), KERNEL(NAME_K2, 500, 800, 4, 80), KERNEL(NAME_NONE, 900, 400, 4, 80),
         KERNEL(NAME_K1, 1500, 800, 1.00000000047, 100), KERNEL(NAME_K2, 1400, 800, 2.0000000006, 90),
         ROW(NAME_B, 700, 800, NAN, 1, 100));
    const fl_sweep_replay twice = {.repeat = 2, .seed = 1};
    replay_as(&r, NULL, &twice);
    const passes p = passes_of(&r);
    FL_CHECK(r.w->class_count == 2 && !strcmp(r.w->class[0].kind.name, "k1") && !strcmp(r.w->class[1].kind.name, "k2"),
             "each kernel once, as they appear");
    FL_CHECK(p.turns == 4 && p.count[0] == 200 && p.count[1] == 400, "one after the other, twice: %llu turns",
             (unsigned long long)p.turns);
    FL_CHECK(p.total[0] == 2000000000 && p.total[1] == 4000000002, "%lld and %lld ns", (long long)p.total[0],
             (long long)p.total[1]);
    FL_CHECK(r.w->sm_min_mhz == 600 && r.w->sm_max_mhz == 1400, "known where all kernels are");
    FL_CHECK(!strcmp(r.w->name, "a") && isnan(r.w->model_time_mape_pct) && isnan(r.w->model_power_mape_pct),
             "nobody stated an error");

    const fl_sweep_replay marked = {.repeat = 1, .seed = 1, .iteration_ns = 500000000};
    replay_as(&r, NULL, &marked);
    const passes m = passes_of(&r);
    FL_CHECK(r.w->class_count == 3 && r.w->class[2].iteration && m.count[2] == 6, "iterations of 0.5 s: %llu markers",
             (unsigned long long)m.count[2]);
    r.s.row_count = 1;
    r.rows[0].workload = NAME_B;
    FL_CHECK(build_as(&r, NULL, &marked) == FL_BAD_INPUT && strstr(r.d.message, "no kernel"),
             "no kernel, no marker: %s", r.d.message);
    close_rig(&r);
}

/* The law knows 600 to 1200 MHz. At its reference of 1000 and 400 MHz it has 3 parts of the core, 2 of the memory and 1
 * of neither. Of the rows at 1200 and 800 MHz that is 3 * 1000/1200 = 2.5, and 2 * 400/800 = 1. */
static void test_law(void) {
    rig r;
    OPEN(&r, ROW(NAME_A, 500, 800, NAN, 6, 60), ROW(NAME_A, 1200, 800, NAN, 3, 90), ROW(NAME_A, 1500, 800, NAN, 2, 120),
         ROW(NAME_B, 1200, 400, NAN, 3, 50), ROW(NAME_A, 1200, NAN, NAN, 3, 90), ROW(NAME_A, 1200, 400, NAN, 6, 70),
         ROW(NAME_A, 500, 400, NAN, 9, 40));
    fl_load *loads = fx_alloc(NAMES, sizeof *loads);
    loads[NAME_NONE] = (fl_load){.tc = 3, .tm = 2, .tl = 1, .ref_sm_mhz = 1000, .ref_mem_mhz = 400};
    fl_sweep_law law = {
        .predicted = true, .sm_min_mhz = 600, .sm_max_mhz = 1200, .time_pct = 3, .power_pct = 4, .load = loads};
    build(&r, &law);
    const fl_load *l = &r.w->class[0].load;
    FL_CHECK(near(l->tc, 2.5) && near(l->tm, 1) && l->tl == 1 && !r.w->assumed, "%g %g %g", l->tc, l->tm, l->tl);
    FL_CHECK(l->ref_sm_mhz == 1200 && near(time_at(&r, 0, 500), 2) && near(time_at(&r, 0, 1500), 2.0 / 3),
             "relative to the highest clock that the law knows: %g MHz", l->ref_sm_mhz);
    FL_CHECK(r.w->predicted && !r.w->measured && r.w->sm_min_mhz == 600 && r.w->sm_max_mhz == 1200, "the law's range");
    FL_CHECK(r.w->model_time_mape_pct == 3 && r.w->model_power_mape_pct == 4, "the law's errors");
    const fl_measured *next = r.w->class[0].measured.next;
    FL_CHECK(next && next->mem_mhz == 400 && !next->next, "the other memory clock, once");
    if (next)
        FL_CHECK(near(at(next->time_ratio, 500), 3) && near(at(next->time_ratio, 1200), 1.5) &&
                     near(at(next->power_w, 500), 40),
                 "relative to the same reference, with the row that names no memory clock: %g",
                 at(next->time_ratio, 1200));
    law.sm_max_mhz = 100; /* below all rows: the lowest */
    build(&r, &law);
    FL_CHECK(r.w->class[0].load.ref_sm_mhz == 500, "%g MHz", r.w->class[0].load.ref_sm_mhz);
    law.sm_max_mhz = 1200;
    law.predicted = false;
    build(&r, &law);
    FL_CHECK(r.w->class[0].load.ref_sm_mhz == 1500 && near(r.w->class[0].load.tc, 2) && !r.w->class[0].measured.next,
             "measured rows hold everywhere");
    FL_CHECK(r.w->sm_min_mhz == 500 && r.w->sm_max_mhz == 1500 && isnan(r.w->model_time_mape_pct) && r.w->measured,
             "and a law that is not used has no error");
    loads[NAME_NONE] = (fl_load){0};
    build(&r, &law);
    FL_CHECK(r.w->assumed && r.w->class[0].load.tc == 1, "a law without terms: all is the core's");
    loads[NAME_NONE] = (fl_load){.tl = 1, .ref_sm_mhz = 1000, .ref_mem_mhz = 400};
    build(&r, &law);
    FL_CHECK(!r.w->assumed && r.w->class[0].load.tl == 1, "one term is enough");
    free(loads);
    close_rig(&r);
}

/* A measured table is not extrapolated: a memory clock takes part if every kernel has it over all SM clocks. */
static void test_covered(void) {
    rig r;
    OPEN(&r, KERNEL(NAME_K1, 600, 800, 3, 70), KERNEL(NAME_K1, 1500, 800, 1, 100), KERNEL(NAME_K2, 500, 800, 4, 80),
         KERNEL(NAME_K2, 1400, 800, 2, 90), KERNEL(NAME_K1, 600, 400, 6, 40), KERNEL(NAME_K1, 1400, 400, 3, 60),
         KERNEL(NAME_K2, 600, 400, 8, 50), KERNEL(NAME_K2, 1400, 400, 4, 55));
    build(&r, NULL);
    for (size_t i = 0; i < 2; i++) {
        const fl_measured *next = r.w->class[i].measured.next;
        FL_CHECK(next && next->mem_mhz == 400 && near(at(next->time_ratio, 1400), i ? 2 : 3),
                 "kernel %zu at 400 MHz, relative to its reference at 800", i);
    }
    FL_CHECK(r.w->sm_min_mhz == 600 && r.w->sm_max_mhz == 1400, "the SM clocks are those of 800 MHz");
    r.rows[7].sm_mhz = 1300;
    build(&r, NULL);
    FL_CHECK(!r.w->class[0].measured.next && !r.w->class[1].measured.next, "k2 is not known at 1400 and 400 MHz");
    r.rows[7].workload = r.rows[6].workload = NAME_B;
    build(&r, NULL);
    FL_CHECK(!r.w->class[0].measured.next, "k2 is not known at 400 MHz");
    close_rig(&r);
}

/* k2 was predicted at two memory clocks, k1 at one. */
static void test_memories(void) {
    rig r;
    OPEN(&r, KERNEL(NAME_K1, 1000, 800, 1, 100), KERNEL(NAME_K2, 1000, 400, 2, 50), KERNEL(NAME_K2, 1000, 800, 1, 90));
    const fl_sweep_law law = {.predicted = true, .sm_max_mhz = 1500, .time_pct = NAN, .power_pct = NAN};
    build(&r, &law);
    FL_CHECK(!r.w->class[0].measured.next, "k1 is not known at 400 MHz");
    const fl_measured *next = r.w->class[1].measured.next;
    FL_CHECK(next && next->mem_mhz == 400 && near(at(next->time_ratio, 1000), 2), "k2 is");
    close_rig(&r);
}

/* k1 takes 3 s and k2 1 s at 1000 MHz. k1's readings are those of two rows, one of which has no deviation. */
static void test_readings(void) {
    rig r;
    OPEN(&r, KERNEL(NAME_K1, 1000, 800, 3, 70), KERNEL(NAME_K1, 1000, 800, 3, 70), KERNEL(NAME_K1, 500, 800, 6, 70),
         KERNEL(NAME_K2, 500, 800, 1, 80), KERNEL(NAME_K2, 1000, 800, 1, 80));
    build(&r, NULL);
    FL_CHECK(!r.w->readings, "no columns");
    const double none = NAN;
    double util[][FL_UTILS] = {
        {80, none, 50, 2}, {90, none, 50, none}, {95, none, none, none}, {none, none, none, 4}, {none, none, none, 6}};
    r.s.util = util[0];
    build(&r, NULL);
    const fl_load *k1 = &r.w->class[0].load, *k2 = &r.w->class[1].load;
    FL_CHECK(r.w->readings && near(fl_reading_at(k1, FL_READING_GPU, 1000, 800), 85) &&
                 near(fl_reading_at(k1, FL_READING_GPU, 750, 800), 90) &&
                 near(fl_reading_at(k1, FL_READING_GPU, 100, 800), 95),
             "mean of repeated rows, between the clocks, and below the lowest");
    FL_CHECK(near(fl_reading_at(k1, FL_READING_MEM, 500, 800), 50) &&
                 near(fl_reading_at(k1, FL_READING_MEM_SD, 500, 800), 2),
             "a clock without a reading has the nearest one's");
    FL_CHECK(isnan(fl_reading_at(k1, FL_READING_GPU_SD, 1000, 800)) &&
                 isnan(fl_reading_at(k2, FL_READING_GPU, 1000, 800)) &&
                 isnan(fl_reading_at(k1, FL_READING_GPU, 1000, 400)),
             "not measured");
    fl_row row = {0};
    FL_CHECK(fl_row_make(r.fx.spec.device, k1, 750, 800, &row, NULL) == FL_MODEL_OK && row.sms == 29491 &&
                 row.memory == 16384,
             "shares of 90 and 50 %%: %u and %u", row.sms, row.memory);
    FL_CHECK(fl_row_make(r.fx.spec.device, k2, 1000, 800, &row, NULL) == FL_MODEL_OK && row.sms == 32768,
             "a kernel without readings is there all the time");
    /* (3 x 2^2 + 1 x 4^2) / 4 at 500 MHz, (3 x 2^2 + 1 x 6^2) / 4 at 1000 */
    const double want[] = {sqrt(7), sqrt(12)};
    fl_rates *rates;
    FX_MUST(fl_rates_new(&rates, r.w, &r.fx.spec, d));
    for (int i = 0; i < 2; i++) {
        const fl_clock_rates *c = NULL;
        const int sm = fl_ladder_index(r.fx.spec.device->sm_mhz, r.fx.spec.device->sm_count, i ? 1000 : 500);
        FX_MUST(fl_rates_at(rates, 0, (uint32_t)sm, 1, &c, d));
        FL_CHECK(near(c->mem_sd, want[i]) && isnan(c->gpu_sd), "kernels by their time: %g", c->mem_sd);
    }
    fl_rates_free(rates);
    r.s.util = NULL;
    close_rig(&r);
}

static void test_errors_stated(void) {
    static const struct {
        const char *time, *power; /* of the head */
        double law_time, law_power, want_time, want_power;
    } rows[] = {{NULL, NULL, NAN, NAN, NAN, NAN}, {"3", "4", NAN, NAN, 3, 4},     {"3", "12", 4, 5, 5, 13},
                {NULL, NULL, 4, 5, 4, 5},         {"3", NULL, 4, 5, 5, 5},        {NULL, "12", 4, 5, 4, 13},
                {"0", "0", NAN, NAN, 0, 0},       {"2.5", NULL, NAN, 1, 2.5, NAN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        OPEN(&r, ROW(NAME_A, 1000, NAN, NAN, 1, 100));
        if (rows[i].time)
            CU_ASSERT(fl_head_set(&r.s.head, "model_time_mape_pct", rows[i].time));
        if (rows[i].power)
            CU_ASSERT(fl_head_set(&r.s.head, "model_power_mape_pct", rows[i].power));
        const fl_sweep_law law = {
            .predicted = true, .sm_max_mhz = 1500, .time_pct = rows[i].law_time, .power_pct = rows[i].law_power};
        build(&r, &law);
        const double time = r.w->model_time_mape_pct, power = r.w->model_power_mape_pct;
        FL_CHECK(near(time, rows[i].want_time) || time == rows[i].want_time ||
                     (isnan(time) && isnan(rows[i].want_time)),
                 "row %zu: %g %%", i, time);
        FL_CHECK(near(power, rows[i].want_power) || power == rows[i].want_power ||
                     (isnan(power) && isnan(rows[i].want_power)),
                 "row %zu: %g %%", i, power);
        close_rig(&r);
    }
}

static void refused(rig *r, const char *text, int64_t line) {
    FL_CHECK(build_as(r, NULL, &once) == FL_BAD_INPUT && strstr(r->d.message, text) && r->d.line == line &&
                 r->d.column == 0 && !strcmp(r->d.file, "s.csv") && !r->w,
             "line %lld: %s", (long long)r->d.line, r->d.message);
}

static void test_refused(void) {
    static const char *const bad[] = {"x", "", "3x", "-1", "inf", "nan"};
    for (size_t i = 0; i < 2 * sizeof bad / sizeof *bad; i++) {
        rig r;
        OPEN(&r, ROW(NAME_A, 1000, NAN, NAN, 1, 100));
        CU_ASSERT(fl_head_set(&r.s.head, i % 2 ? "model_time_mape_pct" : "model_power_mape_pct", bad[i / 2]));
        refused(&r, "expected an error in percent", 0);
        close_rig(&r);
    }
    rig r;
    OPEN(&r, ROW(NAME_B, 1000, NAN, NAN, 1, 100), ROW(NAME_A, 1000, NAN, NAN, 1, 100),
         ROW(NAME_A, NAN, NAN, NAN, 1, 100));
    refused(&r, "no sm_mhz", 12);
    r.rows[2].sm_mhz = 1100;
    r.rows[2].time_s = 2305844;
    refused(&r, "at most 26 days", 12);
    r.rows[2].time_s = NAN;
    refused(&r, "at most 26 days", 12);
    r.rows[2].time_s = 1;
    r.rows[0].mem_mhz = 600; /* of another workload */
    build(&r, NULL);
    r.rows[2].mem_mhz = 600;
    refused(&r, "memory clock of a: 600 MHz is not on the memory ladder", 12);
    close_rig(&r);
}

/* 4,096 settings are the most; a repeated one counts. */
static void test_most(void) {
    enum { MOST = 4096 };
    fl_sweep_row *rows = fx_alloc(MOST + 1, sizeof *rows);
    for (int i = 0; i <= MOST; i++)
        rows[i] = (fl_sweep_row)ROW(NAME_A, 500 + i / 8.0, NAN, NAN, 1, 100);
    rig r;
    open_rig(&r, rows, MOST + 1);
    refused(&r, "more than 4096 settings", 10 + MOST);
    r.s.row_count = MOST;
    build(&r, NULL);
    FL_CHECK(near(power_at(&r, 0, 500 + (MOST - 1) / 8.0), 100), "the last is there");
    close_rig(&r);
    free(rows);
}

FL_SUITE("build_sweep", {"workloads", test_names}, {"memory clock", test_memory_clock}, {"power cap", test_cap},
         {"repeats", test_repeats}, {"kernels", test_kernels}, {"law", test_law}, {"memory clocks", test_memories},
         {"covered", test_covered}, {"readings", test_readings}, {"stated errors", test_errors_stated},
         {"refused", test_refused}, {"most", test_most})
