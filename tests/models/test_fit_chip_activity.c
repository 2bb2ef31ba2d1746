/* What a workload's activities say of it, with numbers worked out by hand. The chip's reference is 1000 and 800 MHz. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static fl_chip chip;

static bool near(double a, double b) { return isnan(b) ? isnan(a) : fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

static void make_chip(uint32_t shares) {
    chip = (fl_chip){.sm_ref = 1000,
                     .mem_ref = 800,
                     .sm_min = 500,
                     .mem_min = 400,
                     .sharpness = 4,
                     .shares = shares,
                     .dram_width = INFINITY,
                     .unit_width = INFINITY};
    for (uint32_t k = 0; k < shares; k++)
        for (int kind = 0; kind < FL_CHIP_ACTIVITIES; kind++)
            chip.share[k].activity[kind] = NAN;
}

static void none(double activity[FL_CHIP_ACTIVITIES]) {
    for (int kind = 0; kind < FL_CHIP_ACTIVITIES; kind++)
        activity[kind] = NAN;
}

/* 2 s at the reference. At half of both clocks it takes 4 s: DRAM then works for as many cycles of half the length in
 * twice the time, so its share at the reference is the same, and so is a unit's. The SMs hold warps all along. */
static void test_fill(void) {
    double activity[4][FL_CHIP_ACTIVITIES];
    for (size_t i = 0; i < 4; i++)
        none(activity[i]);
    fl_chip_row row[] = {{0, 500, 400, 4, NAN, activity[0]}, {0, 1000, 400, 3, NAN, activity[1]},
                         {0, 500, 800, 3, NAN, activity[2]}, {0, 1000, 800, 2, NAN, NULL},
                         {1, 1000, 800, 2, NAN, NULL},       {1, 500, 800, 2, NAN, activity[3]}};
    const fl_chip_span span[] = {{0, 4}, {4, 2}};
    const double time_ref[] = {2, 2};
    activity[0][FL_CHIP_DRAM] = 0.4;   /* 0.4 */
    activity[1][FL_CHIP_DRAM] = 0.8;   /* 0.8 * 1.5 * 0.5 = 0.6 */
    activity[2][FL_CHIP_DRAM] = 0.1;   /* 0.1 * 1.5 * 1 = 0.15 */
    activity[0][FL_CHIP_SM] = 0.9;     /* 0.9, whatever the clocks */
    activity[1][FL_CHIP_SM] = 0.5;     /* 0.5: the mean of the two in the middle is 0.7 */
    activity[0][FL_CHIP_FP32] = 0.2;   /* 0.2 * 2 * 0.5 = 0.2 */
    activity[1][FL_CHIP_TENSOR] = 0.2; /* 0.2 * 1.5 * 1 = 0.3 */
    activity[2][FL_CHIP_OCCUPANCY] = 0.3;
    activity[3][FL_CHIP_FP64] = 0.6; /* 0.6 * 1 * 0.5 = 0.3 */
    make_chip(2);
    CU_ASSERT_FATAL(fl_chip_fill_activity(row, span, 2, time_ref, &chip) == FL_MODEL_OK);
    const double want[2][FL_CHIP_ACTIVITIES] = {{0.4, 0.7, 0.3, 0.2, NAN, NAN, 0.3},
                                                {NAN, NAN, NAN, NAN, 0.3, NAN, NAN}};
    for (uint32_t k = 0; k < 2; k++)
        for (int kind = 0; kind < FL_CHIP_ACTIVITIES; kind++)
            FL_CHECK(near(chip.share[k].activity[kind], want[k][kind]), "workload %u, activity %d: %g", k, kind,
                     chip.share[k].activity[kind]);
}

/* Of 161 workloads every second becomes a share. */
static void test_many(void) {
    static double activity[161][FL_CHIP_ACTIVITIES];
    fl_chip_row row[161];
    fl_chip_span span[161];
    double time_ref[161];
    for (uint32_t k = 0; k < 161; k++) {
        none(activity[k]);
        activity[k][FL_CHIP_SM] = k;
        row[k] = (fl_chip_row){k, 1000, 800, 1, NAN, activity[k]};
        span[k] = (fl_chip_span){k, 1};
        time_ref[k] = 1;
    }
    make_chip(81);
    CU_ASSERT_FATAL(fl_chip_fill_activity(row, span, 161, time_ref, &chip) == FL_MODEL_OK);
    for (uint32_t k = 0; k < 81; k++)
        FL_CHECK(near(chip.share[k].activity[FL_CHIP_SM], 2 * k), "share %u: %g", k,
                 chip.share[k].activity[FL_CHIP_SM]);
}

/* An activity tells something where the chip has a width for it. How many warps an SM holds never does. */
static void test_uses(void) {
    static const struct {
        double dram_width, unit_width;
        int kind;
        int used;
    } rows[] = {{0.1, INFINITY, FL_CHIP_DRAM, 1},   {INFINITY, 0.1, FL_CHIP_DRAM, 0},
                {INFINITY, 0.1, FL_CHIP_SM, 1},     {0.1, INFINITY, FL_CHIP_SM, 0},
                {0.1, 0.1, FL_CHIP_OCCUPANCY, 0},   {INFINITY, 0.1, FL_CHIP_FP32, 1},
                {INFINITY, 0.1, FL_CHIP_TENSOR, 1}, {INFINITY, INFINITY, FL_CHIP_SM, 0},
                {0.1, INFINITY, FL_CHIP_FP64, 0},   {0.1, 0.1, -1, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        double activity[FL_CHIP_ACTIVITIES];
        none(activity);
        if (rows[i].kind >= 0)
            activity[rows[i].kind] = 0.5;
        const fl_chip_row row[] = {{0, 1000, 800, 1, NAN, NULL}, {0, 500, 800, 1, NAN, activity}};
        make_chip(1);
        chip.dram_width = rows[i].dram_width;
        chip.unit_width = rows[i].unit_width;
        FL_CHECK(fl_chip_uses_activity(&chip, row, 2) == rows[i].used, "row %zu", i);
        FL_CHECK(!fl_chip_uses_activity(&chip, row, 1), "row %zu: without its activities", i);
        double weight[] = {7}, dram[] = {9};
        FL_CHECK(fl_chip_weigh_activity(&chip, row, 2, weight, dram) == rows[i].used &&
                     (weight[0] == 7) == !rows[i].used && (dram[0] == 9) == !rows[i].used,
                 "row %zu: weight %g, dram %g", i, weight[0], dram[0]);
    }
}

/* Share 0 takes its time whatever the clocks, so that at half of them its DRAM and units are busy for twice the share
 * of it. Share 1 takes twice the time at half the SM clock, so that its units are as busy as before. */
static void test_weigh(void) {
    double slow[FL_CHIP_ACTIVITIES], fast[FL_CHIP_ACTIVITIES], silent[FL_CHIP_ACTIVITIES];
    none(slow);
    none(fast);
    none(silent);
    silent[FL_CHIP_OCCUPANCY] = 1;
    slow[FL_CHIP_DRAM] = slow[FL_CHIP_FP32] = 0.99;
    fast[FL_CHIP_DRAM] = 0.5;
    fast[FL_CHIP_SM] = 0.6;
    fast[FL_CHIP_FP32] = 0.4;
    /* Of those that tell something, the highest product of clocks does: 500 x 800. */
    const fl_chip_row row[] = {
        {0, 900, 400, 1, NAN, slow}, {0, 500, 800, 1, NAN, fast}, {0, 1000, 800, 1, NAN, silent}};
    make_chip(2);
    chip.dram_width = 0.2;
    chip.unit_width = 0.1;
    chip.share[0].rest = 1;
    chip.share[0].activity[FL_CHIP_DRAM] = 0.4;  /* at 800 MHz 0.4: off by 0.1, half a width */
    chip.share[0].activity[FL_CHIP_SM] = 0.5;    /* off by 0.1, one width */
    chip.share[0].activity[FL_CHIP_FP32] = 0.15; /* at 500 MHz 0.3: one width */
    chip.share[1].activity[FL_CHIP_DRAM] = 0.8;  /* in twice the time 0.4 */
    chip.share[1].activity[FL_CHIP_FP32] = 0.4;  /* in twice the time at half the clock 0.4: just so */
    const double one = 0.02 + 0.98 * exp(-0.5), half = 0.02 + 0.98 * exp(-0.125);
    double weight[] = {2, 3}, dram[] = {9, 9};
    CU_ASSERT_FATAL(fl_chip_weigh_activity(&chip, row, 3, weight, dram) == 1);
    FL_CHECK(near(weight[0], 2 * (0.15 + one * one)) && near(weight[1], 3 * (0.15 + 1)), "weights %.9g %.9g", weight[0],
             weight[1]);
    FL_CHECK(near(dram[0], -0.1) && near(dram[1], -0.1), "DRAM %g %g", dram[0], dram[1]);
    chip.share[1].activity[FL_CHIP_DRAM] = NAN; /* not known: it says nothing against */
    weight[0] = weight[1] = 1;
    CU_ASSERT_FATAL(fl_chip_weigh_activity(&chip, row, 3, weight, dram) == 1);
    FL_CHECK(near(weight[0], 0.15 + half * one * one) && near(weight[1], 0.15 + 1) && dram[1] == 0,
             "weights %.9g %.9g, DRAM %g", weight[0], weight[1], dram[1]);
    chip.dram_width = INFINITY; /* DRAM does not count, but its difference is told */
    CU_ASSERT_FATAL(fl_chip_weigh_activity(&chip, row, 3, weight, dram) == 1);
    FL_CHECK(near(weight[0], (0.15 + half * one * one) * (0.15 + one * one)) && near(dram[0], -0.1), "weight %.9g",
             weight[0]);
    chip.dram_width = 0.2; /* a memory clock of 400 MHz: the same bytes take twice as long */
    chip.unit_width = INFINITY;
    const fl_chip_row low = {0, 1000, 400, 1, NAN, slow};
    weight[0] = 1;
    CU_ASSERT_FATAL(fl_chip_weigh_activity(&chip, &low, 1, weight, dram) == 1);
    FL_CHECK(near(dram[0], 0.8 - 0.99), "DRAM %g", dram[0]);
}

/* ---- how wide: the widths that predict the chip's own workloads best ---- */

enum { CLOCKS = 5, MOST = 12 };

/* Workloads of two kinds that differ in nothing but what they wait for: at the top clocks time and power are the same,
 * and only DRAM tells them apart. */
static void check_widths(const char *what, uint32_t workloads, uint32_t with, bool tells, bool dram, bool units) {
    static fl_chip_row row[MOST * CLOCKS];
    static double activity[MOST][FL_CHIP_ACTIVITIES];
    fl_chip_span span[MOST];
    make_chip(workloads);
    chip.time_error = (fl_chip_error){.scatter = 0.005, .smooth = 0.005, .length_sm = 0.2, .length_mem = 0.4};
    fl_chip_assume_growth(&chip);
    chip.workloads = workloads;
    for (uint32_t k = 0; k < workloads; k++) {
        const bool memory = k % 2;
        fl_chip_share *s = &chip.share[k];
        s->memory = memory ? 0.9 - 0.005 * k : 0.1 + 0.005 * k;
        s->rest = 0.05;
        s->memory_sd = s->rest_sd = 0.02;
        const fl_chip_load load = fl_chip_load_of(s);
        none(activity[k]);
        if (k < with) {
            s->activity[FL_CHIP_DRAM] = (tells ? memory : k / 2 % 2) ? 0.8 - 0.025 * k : 0.1 + 0.025 * k;
            activity[k][FL_CHIP_DRAM] = s->activity[FL_CHIP_DRAM];
        }
        span[k] = (fl_chip_span){(size_t)k * CLOCKS, CLOCKS};
        for (size_t i = 0; i < CLOCKS; i++) {
            const double f = 500 + 125 * (double)i;
            row[k * CLOCKS + i] =
                (fl_chip_row){k, f, 800, fl_chip_time(&chip, &load, f, 800), NAN, k < with ? activity[k] : NULL};
        }
    }
    CU_ASSERT_FATAL(fl_chip_fit_activity(row, span, workloads, &chip) == FL_MODEL_OK);
    FL_CHECK(isfinite(chip.dram_width) == dram && isfinite(chip.unit_width) == units, "%s: widths %g and %g", what,
             chip.dram_width, chip.unit_width);
}

static void test_widths(void) {
    check_widths("DRAM tells", 8, 8, true, true, false);
    check_widths("six are enough", 8, 6, true, true, false);
    check_widths("five are too few", 8, 5, true, false, false);
    check_widths("DRAM tells nothing", 8, 8, false, false, false);
}

FL_SUITE("fit_chip_activity", {"at the reference", test_fill}, {"many workloads", test_many},
         {"what counts", test_uses}, {"likeness", test_weigh}, {"widths", test_widths})
