/* GPOEO: the search as a function of points, the features, and the whole course on a GPU whose readings come in waves.
 */
#include "policies/gpoeo_model.h"
#include "policies/gpoeo_period.h"
#include "policies/gpoeo_search.h"
#include "policies/random.h"
#include "tests/support/wave_node.h"

extern const fl_policy fl_policy_gpoeo;

/* ---- the search ---------------------------------------------------------------------------------------------------
 */

typedef struct valley { /* time over that at gear 119 and the top memory clock, and energy with its least at `bottom` */
    double sm_loss, mem_loss, bottom, mem_saving;
} valley;

static void measure(const valley *v, fl_gpoeo_point *p) {
    const double below = 119 - p->sm;
    p->time = 1 + v->sm_loss * below + v->mem_loss * (4 - p->mem);
    p->energy = (0.7 + 1e-4 * pow(p->sm - v->bottom, 2) - v->mem_saving * (4 - p->mem)) / (p->time * p->time);
}

/* The gears that are measured, "sm/mem", and what is kept. */
static void follow(fl_gpoeo_search s, const valley *v, char *text, size_t size) {
    size_t used = 0;
    for (;;) {
        const fl_gpoeo_next next = fl_gpoeo_search_next(&s);
        used += (size_t)snprintf(text + used, size - used, "%s%d/%d", next.done ? "= " : "", next.sm, next.mem);
        if (next.done || s.count == FL_GPOEO_POINTS)
            return;
        used += (size_t)snprintf(text + used, size - used, " ");
        s.point[s.count] = (fl_gpoeo_point){.sm = next.sm, .mem = next.mem};
        measure(v, &s.point[s.count++]);
    }
}

static void test_search(void) {
    static const fl_gpoeo_search from = {
        .low = 16, .high = 119, .mem_count = 5, .wide_below = 3, .sm = 100, .mem = 4, .bound = 0.045};
    static const struct {
        const char *name;
        int32_t sm, mem;
        valley v;
        const char *expected;
    } row[] = {
        {"both ways: 12 down is worse, 12 up is worse",
         100,
         4,
         {0.00211, 0.1, 100, 0},
         "100/4 100/3 88/4 112/4 97/4 103/4 106/4 = 100/4"},
        {"down, and on until worse", 100, 4, {0, 0.1, 70, 0}, "100/4 100/3 88/4 76/4 64/4 73/4 79/4 70/4 67/4 = 70/4"},
        {"too fast: only down, though up is better",
         100,
         4,
         {0.0001, 0.1, 119, 0},
         "100/4 100/3 88/4 93/4 95/4 96/4 97/4 = 100/4"},
        {"the best fitted gear was not measured",
         100,
         4,
         {0, 0.1, 71.6, 0},
         "100/4 100/3 88/4 76/4 64/4 73/4 79/4 70/4 = 72/4"},
        {"too slow: only up", 80, 4, {0.0015, 0.1, 60, 0}, "80/4 92/4 104/4 89/4 95/4 86/4 = 89/4"},
        {"the lowest gear ends it", 30, 4, {0, 0.1, 0, 0}, "30/4 30/3 18/4 16/4 21/4 23/4 19/4 20/4 = 16/4"},
        {"memory: one down is better",
         100,
         4,
         {0.0021, 0.001, 100, 0.05},
         "100/4 100/3 88/3 112/3 97/3 103/3 106/3 = 100/3"},
        {"memory: too slow, two up",
         100,
         2,
         {0.0001, 0.03, 100, 0.05},
         "100/2 100/3 100/4 88/3 93/3 95/3 96/3 97/3 = 100/3"},
        {"memory: the lowest has none below, and the radius is wide",
         100,
         0,
         {0.0019, 0.0001, 100, 0.05},
         "100/0 100/1 82/0 118/0 96/0 104/0 110/0 101/0 105/0 99/0 = 100/0"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[1024];
        fl_gpoeo_search s = from;
        s.sm = row[i].sm;
        s.mem = row[i].mem;
        follow(s, &row[i].v, text, sizeof text);
        FL_CHECK(strcmp(text, row[i].expected) == 0, "%s:\n      %s\n      expected\n      %s", row[i].name, text,
                 row[i].expected);
    }
}

static void test_cost(void) {
    FL_CHECK(fl_gpoeo_cost(0.8, 1.02, 0.045) == 0.8 * 1.02 * 1.02, "within the bound");
    FL_CHECK(fl_gpoeo_cost(0.1, 1.0451, 0.045) > fl_gpoeo_cost(5, 1.0449, 0.045) &&
                 fl_gpoeo_cost(0.1, 1.2, 0.045) > fl_gpoeo_cost(0.9, 1.1, 0.045),
             "beyond it, the slower the worse");
}

static void test_fits(void) {
    static const double x[] = {40, 52, 64, 70, 83, 95, 110};
    double y[7];
    for (int degree = 0; degree <= 3; degree++) {
        for (int i = 0; i < 7; i++)
            y[i] = 2 + (degree > 0 ? 0.3 * x[i] : 0) - (degree > 1 ? 0.01 * x[i] * x[i] : 0) +
                   (degree > 2 ? 1e-4 * pow(x[i], 3) : 0);
        const double at = 77, expected = 2 + (degree > 0 ? 0.3 * at : 0) - (degree > 1 ? 0.01 * at * at : 0) +
                                         (degree > 2 ? 1e-4 * pow(at, 3) : 0);
        for (uint32_t count = (uint32_t)degree + 1; count <= 7; count++) {
            const double got = fl_gpoeo_fitted(x, y, count, at);
            FL_CHECK(fabs(got - expected) < 1e-8, "degree %d, %u points: %g, expected %g", degree, count, got,
                     expected);
        }
    }
    /* more points than terms: least squares, here of a symmetric kink by its line of symmetry */
    static const double z[] = {-3, -2, -1, 0, 1, 2, 3}, kink[] = {3, 2, 1, 0, 1, 2, 3};
    FL_CHECK(fabs(fl_gpoeo_fitted(z, kink, 7, 0) - 4.0 / 7) < 1e-12, "least squares: %.12g",
             fl_gpoeo_fitted(z, kink, 7, 0));
}

/* ---- features -----------------------------------------------------------------------------------------------------
 */

static void test_names(void) {
    static const struct {
        const char *name;
        fl_gpoeo_pipe pipe;
    } row[] = {{"ampere_sgemm_128x64", FL_GPOEO_TENSOR_PIPE},
               {"cutlass_80_DGEMM_tn", FL_GPOEO_FP64_PIPE},
               {"fmha_attention_v2", FL_GPOEO_TENSOR_PIPE},
               {"implicit_convolve", FL_GPOEO_TENSOR_PIPE},
               {"wmma_kernel", FL_GPOEO_TENSOR_PIPE},
               {"axpy<double>", FL_GPOEO_FP64_PIPE},
               {"reduce_f64", FL_GPOEO_FP64_PIPE},
               {"copy_1", FL_GPOEO_OTHER_PIPE},
               {"", FL_GPOEO_OTHER_PIPE}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        FL_CHECK(fl_gpoeo_pipe_of(row[i].name) == row[i].pipe, "%s: %d", row[i].name, fl_gpoeo_pipe_of(row[i].name));
    FL_CHECK(fl_gpoeo_band(1019) == 0 && fl_gpoeo_band(1020) == 1 && fl_gpoeo_band(1424) == 1 &&
                 fl_gpoeo_band(1425) == 2,
             "bands");
}

/* Records of this GPU alone, of known kinds, with an end: all of them, and beside that the two pipes that names tell.
 */
static void test_take(void) {
    static const fl_kernel_kind kind[] = {{.name = "copy"}, {.name = "sgemm"}, {.name = "dgemm"}};
    static const struct {
        fl_kernel_record r;
        double busy_s, tensor_s, fp64_s;
    } row[] = {{{.kind = 0, .start_ns = 1000, .end_ns = 3000}, 2e-6, 0, 0},
               {{.kind = 1, .start_ns = 1000, .end_ns = 3000}, 2e-6, 2e-6, 0},
               {{.kind = 2, .start_ns = 1000, .end_ns = 3000}, 2e-6, 0, 2e-6},
               {{.kind = 3, .start_ns = 1000, .end_ns = 3000}, 0, 0, 0},
               {{.kind = 1, .start_ns = 1000, .end_ns = 3000, .gpu = 1}, 0, 0, 0},
               {{.kind = 1, .start_ns = 3000, .end_ns = 1000}, 0, 0, 0},
               {{.kind = 1, .start_ns = -5000, .end_ns = -1000}, 0, 0, 0},
               {{.kind = 1, .start_ns = -2000, .end_ns = 0}, 2e-6, 2e-6, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const fl_sample sample = {.record = &row[i].r, .record_count = 1, .kind = kind, .kind_count = 3};
        fl_gpoeo_counters c = {.counted_s = 1};
        fl_gpoeo_take(&c, &sample, 0);
        fl_gpoeo_take(&c, &sample, 0);
        FL_CHECK(fabs(c.busy_s - 2 * row[i].busy_s) < 1e-15 && fabs(c.tensor_s - 2 * row[i].tensor_s) < 1e-15 &&
                     fabs(c.fp64_s - 2 * row[i].fp64_s) < 1e-15,
                 "row %zu: %g s, %g s, %g s", i, c.busy_s, c.tensor_s, c.fp64_s);
    }
}

/* ---- the course ---------------------------------------------------------------------------------------------------
 */

static wave_node *open_gpoeo(double period_s, double sm_share, double mem_share, const fl_table *trees) {
    const fl_setting setting = {.name = "trees", .table = trees};
    wave_node *n = wave_open(&fl_policy_gpoeo, 1, &setting, trees ? 1 : 0);
    n->gpu[0].period_s = period_s;
    n->gpu[0].sm_share = sm_share;
    n->gpu[0].mem_share = mem_share;
    n->gpu[0].kernel_s = 0.01;
    return n;
}

static void test_course(void) {
    /* counters: four windows of 1.1 periods of 2.1 s, in steps of 0.1 s */
    static const struct {
        double at_s;
        int state;
        double sm, mem, records;
    } row[] = {
        {15.9, 0, FL_DEFAULT, FL_DEFAULT, 0},
        {16, 1, 1800, 9251, 0},
        {41.9, 1, 1800, 9251, 0},
        {42.1, 2, 1800, 9251, 1},
        {51, 2, 1800, 9251, 1},
        {52, 3, FL_DEFAULT, FL_DEFAULT, 0},
        {76, 3, FL_DEFAULT, FL_DEFAULT, 0},
        {79, 4, 1800, 9501, 0},
    };
    wave_node *n = open_gpoeo(2, 0.3, 0.3, NULL);
    n->gpu[0].records = 1; /* as a host has them that was asked for records */
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        wave_until(n, row[i].at_s);
        const wave_gpu *g = &n->gpu[0];
        FL_CHECK(wave_probe(n, 0, "state") == row[i].state && g->sm == row[i].sm && g->mem == row[i].mem &&
                     g->records == row[i].records,
                 "at %g s: state %g, %g/%g MHz, records %g", row[i].at_s, wave_probe(n, 0, "state"), g->sm, g->mem,
                 g->records);
    }
    FL_CHECK(wave_probe(n, 0, "aperiodic") == 0 && fabs(wave_probe(n, 0, "period_s") - 2) < 0.1 &&
                 fabs(wave_probe(n, 0, "tensor_pct") - 75) < 1,
             "aperiodic %g, period %g s, tensor %g %%", wave_probe(n, 0, "aperiodic"), wave_probe(n, 0, "period_s"),
             wave_probe(n, 0, "tensor_pct"));
    wave_close(n);
}

/* It ends near the least E T^2 within the bound, as the waves have it. */
static void test_whole(void) {
    static const struct {
        double sm_share, mem_share, kernel_s;
        int aperiodic;
    } row[] = {{0.5, 0.5, 0.01, 0}, {0.2, 0.5, 0.01, 0}, {0.3, 0.5, 0.01, 1}, {0.8, 0.1, 0.01, 1}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        wave_node *n = open_gpoeo(row[k].aperiodic ? 1e9 : 2, row[k].sm_share, row[k].mem_share, NULL);
        double best = 0, least = INFINITY;
        for (int gear = 16; gear <= 119; gear++) {
            const double f = 210 + 15 * gear, t = 1 + row[k].sm_share * (2055 / f - 1),
                         cost = (60 + 240 * pow(f / 2055, 3) * (row[k].aperiodic ? 1 : 0.7)) * t * t * t;
            if (t <= 1.045 && cost < least) {
                least = cost;
                best = f;
            }
        }
        FL_CHECK(wave_wait(n, "state", 5, 1500), "row %zu: no choice", k);
        FL_CHECK(n->gpu[0].records == 0, "row %zu: records stay on, which only cost now", k);
        FL_CHECK(wave_probe(n, 0, "aperiodic") == row[k].aperiodic && fabs(n->gpu[0].sm - best) <= 60 &&
                     wave_slowdown(&n->gpu[0]) < 1.07 && wave_probe(n, 0, "optimisation_s") < 700 &&
                     fl_instance_counts_of(n->in).faults == 0 && fl_instance_counts_of(n->in).clamped == 0,
                 "row %zu: %g/%g MHz after %g s, expected %g; aperiodic %g", k, n->gpu[0].sm, n->gpu[0].mem,
                 wave_probe(n, 0, "optimisation_s"), best, wave_probe(n, 0, "aperiodic"));
        wave_close(n);
    }
}

/* Trees of one tree each: below `split` of one feature one value, else another. */
static double cell[FL_GPOEO_MODELS * FL_TREE_NODES * 2];

static void put_model(uint32_t model, int feature, double split, double low, double high) {
    double *tree = &cell[model * FL_TREE_NODES * 2];
    for (int i = 0; i < FL_TREE_NODES; i++) {
        tree[2 * i] = i < FL_TREE_SPLITS ? feature : -1;
        tree[2 * i + 1] = i < FL_TREE_SPLITS ? split : i < FL_TREE_SPLITS + 4 ? low : high;
    }
}

static void put_models(void) { /* nothing saves anything */
    for (uint32_t m = 0; m < FL_GPOEO_MODELS; m++)
        put_model(m, 0, 0, 0, 0);
}

static const fl_table trees = {.cell = cell, .row_count = FL_GPOEO_MODELS * FL_TREE_NODES, .column_count = 2};

static void first_clocks(double *sm, double *mem) {
    wave_node *n = open_gpoeo(2, 0.3, 0.3, &trees);
    FL_CHECK(wave_wait(n, "state", 4, 200), "no search");
    *sm = n->gpu[0].sm;
    *mem = n->gpu[0].mem;
    wave_close(n);
}

static void test_models(void) {
    double sm, mem;
    put_models();
    first_clocks(&sm, &mem);
    FL_CHECK(sm == 1995 && mem == 9501, "all alike: %g/%g MHz", sm, mem);
    put_model(2 * 1 + FL_GPOEO_ENERGY, FL_GPOEO_CLOCK, 0.7, -0.2, 0); /* 1260 MHz in the middle band */
    first_clocks(&sm, &mem);
    FL_CHECK(sm == 1245 && mem == 9501, "the middle band saves: %g/%g MHz", sm, mem);
    put_model(2 * 1 + FL_GPOEO_TIME, FL_GPOEO_CLOCK, 0.7, 0.1, 0);
    first_clocks(&sm, &mem);
    FL_CHECK(sm == 1995, "beyond the bound: %g MHz", sm);
    put_model(2 * 1 + FL_GPOEO_TIME, FL_GPOEO_CLOCK, 0.7, 0.04, 0);
    put_model(2 * 2 + FL_GPOEO_ENERGY, FL_GPOEO_CLOCK, 0.9, -0.15, 0); /* T^2 costs more than the middle band saves */
    first_clocks(&sm, &mem);
    FL_CHECK(sm == 1605, "E T^2: %g MHz", sm);
    /* the lowest band's model, asked for memory clocks over 1800 MHz: 5001 MHz is 2.78 */
    put_model(FL_GPOEO_TIME, FL_GPOEO_CLOCK, 1, 0.5, 0);
    put_model(FL_GPOEO_ENERGY, FL_GPOEO_CLOCK, 3, -0.3, 0);
    first_clocks(&sm, &mem);
    FL_CHECK(sm == 1605 && mem == 5001, "memory by the lowest band: %g/%g MHz", sm, mem);
    put_models(); /* clocks are predicted from 450 MHz on */
    put_model(FL_GPOEO_ENERGY, FL_GPOEO_CLOCK, 440 / 1800.0, -0.5, 0);
    first_clocks(&sm, &mem);
    FL_CHECK(sm == 1995, "435 MHz is predicted: %g MHz", sm);
    put_model(FL_GPOEO_ENERGY, FL_GPOEO_CLOCK, 455 / 1800.0, -0.5, 0);
    first_clocks(&sm, &mem);
    FL_CHECK(sm == 450, "450 MHz is not predicted: %g MHz", sm);
    put_models(); /* the counters that there are: the waves have 75 % tensor kernels, half the time busy */
    put_model(2 * 2 + FL_GPOEO_ENERGY, FL_GPOEO_TENSOR, 0.74, 0, -0.1);
    put_model(2 * 1 + FL_GPOEO_ENERGY, FL_GPOEO_TENSOR, 0.76, 0, -0.2);
    first_clocks(&sm, &mem);
    FL_CHECK(sm == 1995, "tensor share above 0.74, below 0.76: %g MHz", sm);
    put_model(2 * 1 + FL_GPOEO_ENERGY, FL_GPOEO_BUSY, 0.52, -0.2, 0);
    first_clocks(&sm, &mem);
    FL_CHECK(sm == 1410, "busy below 0.52: %g MHz", sm);
    put_model(2 * 0 + FL_GPOEO_ENERGY, FL_GPOEO_BUSY, 0.48, 0, -0.3);
    put_model(2 * 0 + FL_GPOEO_TIME, FL_GPOEO_FP64, 0.01, 0, 0.5);
    first_clocks(&sm, &mem);
    FL_CHECK(sm == 1005, "busy above 0.48, no FP64: %g MHz", sm);
}

/* Seven windows of 10 s, after a second to settle; the last at another power. Its range over the mean is above or below
 * 0.18 and 0.5. */
static void test_watch(void) {
    static const struct {
        const char *name;
        double factor;
        int aperiodic, state;
    } row[] = {{"a small change", 0.83, 1, 5},
               {"a change", 0.815, 1, 3},
               {"a larger change", 0.54, 1, 3},
               {"another program", 0.525, 1, 1},
               {"a change of a program with a period", 0.7, 0, 3}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        wave_node *n = open_gpoeo(row[i].aperiodic ? 1e9 : 2, 0.5, 0.5, NULL);
        FL_CHECK(wave_wait(n, "state", 5, 1500), "no choice");
        wave_until(n, wave_now_s(n) + 61);
        FL_CHECK(wave_probe(n, 0, "state") == 5, "%s: steady, and a new search", row[i].name);
        n->gpu[0].idle_w *= row[i].factor;
        n->gpu[0].dynamic_w *= row[i].factor;
        const double until = wave_now_s(n) + 10.5;
        while (wave_now_s(n) < until && wave_probe(n, 0, "state") == 5)
            wave_step(n);
        const double state = wave_probe(n, 0, "state");
        FL_CHECK(state == row[i].state && n->gpu[0].records == (row[i].aperiodic && state == 3),
                 "%s: state %g, records %g", row[i].name, state, n->gpu[0].records);
        wave_close(n);
    }
}

/* What is read in the first second after the choice may be of the clocks before. */
static void test_settled(void) {
    for (int gap = 0; gap < 2; gap++) {
        wave_node *n = open_gpoeo(2, 0.5, 0.5, NULL);
        FL_CHECK(wave_wait(n, "state", 5, 1500), "no choice");
        const double idle_w = n->gpu[0].idle_w;
        n->gpu[0].lost = gap;
        wave_until(n, wave_now_s(n) + 0.2);
        n->gpu[0].lost = false;
        n->gpu[0].idle_w *= 10;
        wave_until(n, wave_now_s(n) + 0.7);
        n->gpu[0].idle_w = idle_w;
        const double until = wave_now_s(n) + 60;
        while (wave_now_s(n) < until && wave_probe(n, 0, "state") == 5)
            wave_step(n);
        FL_CHECK(wave_probe(n, 0, "state") == 5, "gap %d: state %g at %g s", gap, wave_probe(n, 0, "state"),
                 wave_now_s(n));
        wave_close(n);
    }
}

/* The models are asked from 450 MHz on; the search goes where less is used. */
static void test_lowest(void) {
    put_models();
    put_model(FL_GPOEO_ENERGY, FL_GPOEO_CLOCK, 455 / 1800.0, -0.5, 0);
    wave_node *n = open_gpoeo(2, 0, 0, &trees);
    n->gpu[0].dynamic_w = 5000;
    FL_CHECK(wave_wait(n, "state", 5, 1500) && n->gpu[0].sm == 210, "%g MHz", n->gpu[0].sm);
    wave_close(n);
}

/* Where the period is lost behind the counters: at the default clocks, and in the search. */
static void test_no_longer_periodic(void) {
    static const struct {
        const char *name;
        int state, noise;
    } row[] = {{"a level at the default clocks", 3, 0},
               {"a level in the search", 4, 0},
               {"no stable period at the default clocks", 3, 1},
               {"no stable period in the search", 4, 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        wave_node *n = open_gpoeo(2, 0.5, 0.5, NULL);
        FL_CHECK(wave_wait(n, "state", row[i].state, 200), "%s: state %g", row[i].name, wave_probe(n, 0, "state"));
        FL_CHECK(n->gpu[0].records == 0 && wave_probe(n, 0, "aperiodic") == 0, "%s: records %g", row[i].name,
                 n->gpu[0].records);
        const double from = wave_now_s(n);
        fl_random draw = fl_random_seed(5, i);
        while (wave_probe(n, 0, "aperiodic") == 0 && wave_now_s(n) < from + 100) {
            n->gpu[0].period_s = row[i].noise ? 0.1 / fl_random_unit(&draw) : 1e9;
            wave_step(n);
        }
        FL_CHECK(wave_probe(n, 0, "aperiodic") == 1 && wave_probe(n, 0, "state") == 3 && n->gpu[0].records == 1 &&
                     n->gpu[0].sm == FL_DEFAULT && n->gpu[0].mem == FL_DEFAULT,
                 "%s: aperiodic %g, state %g, records %g at %g MHz", row[i].name, wave_probe(n, 0, "aperiodic"),
                 wave_probe(n, 0, "state"), n->gpu[0].records, n->gpu[0].sm);
        n->gpu[0].period_s = 1e9;
        FL_CHECK(wave_wait(n, "state", 5, 700) && wave_slowdown(&n->gpu[0]) < 1.07, "%s: slower by %g", row[i].name,
                 wave_slowdown(&n->gpu[0]));
        wave_close(n);
    }
}

/* ---- records that are lost ----------------------------------------------------------------------------------------
 */

/* A search by the rate of kernels, with the records of some seconds lost at some instants: what is chosen, and when. */
static void search_with_drops(const double *at_s, size_t count, double *sm, double *end_s) {
    wave_node *n = open_gpoeo(1e9, 0.5, 0.5, NULL);
    for (size_t i = 0; i < count; i++) {
        wave_until(n, at_s[i]);
        n->drops = true;
        wave_until(n, at_s[i] + 5);
        n->drops = false;
    }
    FL_CHECK(wave_wait(n, "state", 5, 1500), "no choice");
    *sm = n->gpu[0].sm;
    *end_s = wave_now_s(n);
    wave_close(n);
}

/* 16 s, 1 + 25 s of period, 40 s of counters; then traces of 1 + 25 s each, or 25 s where one is repeated. */
static void test_lost_records(void) {
    static const double once[] = {90}, base_twice[] = {90, 115}, apart[] = {115, 166, 217};
    double sm, end_s, expected_mhz, expected_s;
    search_with_drops(NULL, 0, &expected_mhz, &expected_s);
    search_with_drops(once, 1, &sm, &end_s);
    FL_CHECK(sm == expected_mhz && fabs(end_s - expected_s - 25) < 0.2, "once: %g MHz after %g s, expected %g, %g", sm,
             end_s, expected_mhz, expected_s + 25);
    search_with_drops(base_twice, 2, &sm, &end_s);
    FL_CHECK(sm == expected_mhz && fabs(end_s - expected_s - 50) < 0.2, "twice: %g MHz after %g s, expected %g, %g", sm,
             end_s, expected_mhz, expected_s + 50);
    search_with_drops(apart, 3, &sm, &end_s); /* not in a row: a whole trace lies between */
    FL_CHECK(sm == expected_mhz && fabs(end_s - expected_s - 75) < 0.3, "apart: %g MHz after %g s, expected %g, %g", sm,
             end_s, expected_mhz, expected_s + 75);
    wave_node *n = open_gpoeo(1e9, 0.5, 0.5, NULL); /* for ever: the default, and a new search later */
    FL_CHECK(wave_wait(n, "state", 4, 150) && n->gpu[0].sm == 1800, "no search: %g MHz", n->gpu[0].sm);
    n->drops = true;
    wave_until(n, wave_now_s(n) + 75.5);
    FL_CHECK(wave_probe(n, 0, "state") == 4 && n->gpu[0].sm == 1800, "two traces: state %g", wave_probe(n, 0, "state"));
    FL_CHECK(wave_wait(n, "state", 0, 1) && n->gpu[0].sm == FL_DEFAULT && n->gpu[0].mem == FL_DEFAULT &&
                 n->gpu[0].records == 0,
             "three: state %g, %g MHz, records %g", wave_probe(n, 0, "state"), n->gpu[0].sm, n->gpu[0].records);
    const double gone_s = wave_now_s(n);
    n->drops = false;
    FL_CHECK(wave_wait(n, "state", 1, 30) && fabs(wave_now_s(n) - gone_s - 16) < 0.2, "anew at %g s", wave_now_s(n));
    wave_close(n);
}

/* Where no records are asked for, none that is lost matters: those of another GPU of the node, say. */
static void test_lost_elsewhere(void) {
    double end_s[2];
    for (int i = 0; i < 2; i++) {
        wave_node *n = open_gpoeo(2, 0.5, 0.5, NULL);
        FL_CHECK(wave_wait(n, "state", 3, 100), "no base");
        n->drops = i;
        FL_CHECK(wave_wait(n, "state", 5, 1500), "no choice");
        end_s[i] = wave_now_s(n);
        wave_close(n);
    }
    FL_CHECK(end_s[0] == end_s[1], "chosen at %g s, expected %g", end_s[1], end_s[0]);
}

/* Of the counters: half the time busy. Their windows begin at 42 s, 2.3 s each. */
static void test_counters(void) {
    static const struct {
        const char *name;
        double from_s, to_s;
        int drops, lost;
        double later_s;
    } row[] = {{"as it is", 0, 0, 0, 0, 0},
               {"a window with lost records is read again", 44.5, 45.6, 1, 0, 2.3},
               {"records count while readings are missing", 42.3, 43.2, 0, 1, 0}};
    double expected_s = 0;
    put_models();
    put_model(2 * 0 + FL_GPOEO_ENERGY, FL_GPOEO_BUSY, 0.485, -0.2, 0);
    put_model(2 * 1 + FL_GPOEO_ENERGY, FL_GPOEO_BUSY, 0.515, 0, -0.2);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        wave_node *n = open_gpoeo(2, 0.3, 0.3, &trees);
        wave_until(n, row[i].from_s);
        n->drops = row[i].drops;
        n->gpu[0].lost = row[i].lost;
        wave_until(n, row[i].to_s);
        n->drops = n->gpu[0].lost = false;
        FL_CHECK(wave_wait(n, "state", 3, 100), "no base");
        if (i == 0)
            expected_s = wave_now_s(n);
        FL_CHECK(fabs(wave_now_s(n) - expected_s - row[i].later_s) < 0.15, "%s: after %g s", row[i].name,
                 wave_now_s(n));
        FL_CHECK(wave_wait(n, "state", 4, 100) && n->gpu[0].sm == 1995, "%s: %g MHz", row[i].name, n->gpu[0].sm);
        wave_close(n);
    }
}

/* Memory below 9251 MHz is kept where it costs nothing; the way outwards then goes in steps of 18 gears. */
static void test_wide(void) {
    put_models();
    put_model(2 * 2 + FL_GPOEO_ENERGY, FL_GPOEO_CLOCK, 0.9, -0.15, 0);
    put_model(FL_GPOEO_TIME, FL_GPOEO_CLOCK, 1, 0.5, 0);
    put_model(FL_GPOEO_ENERGY, FL_GPOEO_CLOCK, 3, -0.3, 0);
    wave_node *n = open_gpoeo(2, 0, 0, &trees);
    FL_CHECK(wave_wait(n, "points", 3, 300) && n->gpu[0].sm == 1605 - 18 * 15 && n->gpu[0].mem == 5001, "%g/%g MHz",
             n->gpu[0].sm, n->gpu[0].mem);
    wave_close(n);
}

/* Which of the two thresholds: by themselves. */
static void test_thresholds(void) {
    static const struct {
        const char *name, *value;
        int state;
    } row[] = {{"phase", "0.5", 5}, {"phase_model", "0.2", 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const fl_setting setting = {.name = row[i].name, .text = row[i].value};
        wave_node *n = wave_open(&fl_policy_gpoeo, 1, &setting, 1);
        n->gpu[0].period_s = 2;
        n->gpu[0].kernel_s = 0.01;
        FL_CHECK(wave_wait(n, "state", 5, 1500), "no choice");
        wave_until(n, wave_now_s(n) + 41);
        n->gpu[0].idle_w *= 0.7;
        n->gpu[0].dynamic_w *= 0.7;
        for (double until = wave_now_s(n) + 25; wave_now_s(n) < until && wave_probe(n, 0, "state") == 5;)
            wave_step(n);
        FL_CHECK(wave_probe(n, 0, "state") == row[i].state, "%s: state %g", row[i].name, wave_probe(n, 0, "state"));
        wave_close(n);
    }
}

static void test_lost(void) {
    static const double when[] = {30, 44, 60, 90};
    for (size_t i = 0; i < sizeof when / sizeof *when; i++) {
        wave_node *n = open_gpoeo(2, 0.5, 0.5, NULL);
        wave_until(n, when[i]);
        const double sm = n->gpu[0].sm;
        n->gpu[0].lost = true;
        wave_until(n, when[i] + 0.8);
        FL_CHECK(n->gpu[0].sm == sm && wave_probe(n, 0, "held") == 1, "lost at %g s: %g MHz", when[i], n->gpu[0].sm);
        wave_until(n, when[i] + 2);
        FL_CHECK(n->gpu[0].sm == FL_DEFAULT && n->gpu[0].mem == FL_DEFAULT && n->gpu[0].records == 0 &&
                     wave_probe(n, 0, "state") == 0,
                 "lost at %g s: %g MHz, records %g", when[i], n->gpu[0].sm, n->gpu[0].records);
        n->gpu[0].lost = false;
        FL_CHECK(wave_wait(n, "state", 5, 1500), "lost at %g s: no choice later", when[i]);
        const double chosen = n->gpu[0].sm;
        n->gpu[0].lost = true;
        wave_until(n, wave_now_s(n) + 30);
        FL_CHECK(n->gpu[0].sm == chosen, "what was chosen goes");
        wave_close(n);
    }
}

static void test_idle(void) {
    wave_node *n = open_gpoeo(2, 0, 0, NULL);
    n->gpu[0].idle = true;
    wave_until(n, 60);
    FL_CHECK(n->gpu[0].sm == FL_DEFAULT && wave_probe(n, 0, "state") == 0, "a search on an idle GPU");
    n->gpu[0].idle = false;
    FL_CHECK(wave_wait(n, "state", 1, 20) && fabs(wave_now_s(n) - 76) < 0.25, "starts at %g s", wave_now_s(n));
    wave_close(n);
}

static void test_refusals(void) {
    static const double short_cell[2] = {0, 0};
    static const fl_table short_table = {.cell = short_cell, .row_count = 1, .column_count = 2};
    static const struct {
        fl_setting setting;
        const char *expected;
    } row[] = {{{"trees", NULL, &short_table}, "foldline fit gpoeo makes them"},
               {{"lowest_mhz", "2000", NULL}, "must not exceed top_mhz"}};
    static const int32_t sm[] = {450, 900};
    static const fl_gpu_facts gpu = {.name = "gpu", .sm = {sm, 2}};
    const fl_facts facts = {.gpu_count = 1, .gpu = &gpu};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const fl_layer layer = {"test", &row[i].setting, 1};
        const fl_instance_options o = {.policy = &fl_policy_gpoeo, .facts = &facts, .layer = &layer, .layer_count = 1};
        fl_instance *in;
        fl_diag d = {0};
        FL_CHECK(fl_instance_open(&in, &o, &d) == FL_BAD_INPUT && strstr(d.message, row[i].expected), "%s: %s",
                 row[i].setting.name, d.message);
    }
}

FL_SUITE("gpoeo", {"search", test_search}, {"cost", test_cost}, {"fits", test_fits}, {"names of kernels", test_names},
         {"records", test_take}, {"course", test_course}, {"the whole", test_whole}, {"models", test_models},
         {"a wide radius", test_wide}, {"watch", test_watch}, {"settled", test_settled},
         {"below the prediction", test_lowest}, {"no longer periodic", test_no_longer_periodic},
         {"lost records", test_lost_records}, {"records lost elsewhere", test_lost_elsewhere},
         {"counters", test_counters}, {"thresholds", test_thresholds}, {"a GPU lost", test_lost},
         {"an idle GPU", test_idle}, {"refusals", test_refusals})
