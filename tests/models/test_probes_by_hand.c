/* What a set of settings tells, put together from its definition: each workload in turn as the calibration keeps it,
 * predicted by a chip without it. Small chips, of which every set can be tried. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "tests/support/made_up_chip.h"
#include "tests/support/suite.h"

enum { SETTINGS = 5 };

static fl_chip chip;

static bool near(double a, double b) { return isnan(b) ? isnan(a) : fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

/* 500, 900 and 1300 MHz at the top memory clock, the two ends at the other one. */
static void make_chip(uint32_t shares, int has_power) {
    chip = made_up_chip();
    chip.has_power = has_power;
    chip.workloads = chip.shares = shares;
    chip.settings = SETTINGS;
    memcpy(chip.setting_sm, (const double[SETTINGS]){500, 1300, 500, 900, 1300}, SETTINGS * sizeof(double));
    memcpy(chip.setting_mem, (const double[SETTINGS]){400, 400, 800, 800, 800}, SETTINGS * sizeof(double));
    fl_chip_assume_growth(&chip);
    for (uint32_t k = 0; k < shares; k++) {
        const double x = (double)k / (shares - 1);
        chip.share[k] = (fl_chip_share){.memory = 0.1 + 0.8 * x,
                                        .rest = 0.2 * fabs(sin(3 * k)),
                                        .memory_sd = 0.05,
                                        .rest_sd = 0.04,
                                        .alpha = 0.9 - 0.5 * x,
                                        .beta = 0.2 + 0.5 * x};
        for (uint32_t i = 0; i < SETTINGS; i++) {
            chip.time_off[k][i] = (k + i) % 4 ? 0.02 * sin(k + 2 * i) : (double)NAN;
            chip.power_off[k][i] = (k + i) % 3 ? 0.03 * cos(2 * k + i) : (double)NAN;
        }
    }
    chip.power_off[1][2] = 0.7; /* law over measured is 0.5 at least */
}

/* A workload as the calibration keeps it: the law, and how far it was off at its settings. */
static fl_chip_row recalled(uint32_t k, double sm_mhz, double mem_mhz, int setting) {
    const fl_chip_share *s = &chip.share[k];
    const fl_chip_load load = {(1 - s->rest) * (1 - s->memory), (1 - s->rest) * s->memory, s->rest, s->alpha, s->beta};
    const double off = setting < 0 ? (double)NAN : chip.time_off[k][setting],
                 power_off = setting < 0 ? (double)NAN : chip.power_off[k][setting],
                 time = fl_chip_time(&chip, &load, sm_mhz, mem_mhz) * (isnan(off) ? 1 : exp(off));
    double watts = NAN;
    if (chip.has_power)
        watts = fl_chip_power(&chip, &load, sm_mhz, mem_mhz, time) / (isnan(power_off) ? 1 : 1 - fmin(0.5, power_off));
    return (fl_chip_row){0, sm_mhz, mem_mhz, time, watts, NULL};
}

static fl_probes expected(const fl_probes *set, uint32_t stride) {
    static fl_chip rest;
    fl_probes p = *set;
    double time = 0, power = 0, energy = 0, count = 0;
    p.tested = 0;
    for (uint32_t k = 0; k < chip.shares; k += stride) {
        fl_chip_row known[8], asked[SETTINGS];
        fl_chip_guess guess[SETTINGS];
        size_t a = 0, b = 0;
        bool member[SETTINGS] = {false};
        for (size_t i = 0; i < set->count; i++) {
            int setting = -1;
            for (int s = 0; s < SETTINGS; s++)
                if (set->at[i].sm_mhz == chip.setting_sm[s] && set->at[i].mem_mhz == chip.setting_mem[s])
                    member[setting = s] = true;
            known[a++] = recalled(k, set->at[i].sm_mhz, set->at[i].mem_mhz, setting);
        }
        for (int s = 0; s < SETTINGS; s++)
            if (!member[s])
                asked[b++] = recalled(k, chip.setting_sm[s], chip.setting_mem[s], s);
        fl_chip_leave_out(&chip, k, &rest);
        CU_ASSERT_FATAL(fl_chip_predict(&rest, known, a, asked, b, guess, NULL) == FL_MODEL_OK);
        for (size_t i = 0; i < b; i++) {
            const double t = guess[i].time_s / asked[i].time_s, w = guess[i].power_w / asked[i].power_w;
            time += fabs(t - 1);
            power += fabs(w - 1);
            energy += fabs(t * w - 1);
            count++;
        }
        p.tested++;
    }
    p.time_pct = 100 * time / count;
    p.power_pct = 100 * power / count;
    p.energy_pct = 100 * energy / count;
    return p;
}

static double score(const fl_probes *p) {
    return isnan(p->power_pct) ? p->time_pct : (p->time_pct + p->power_pct + p->energy_pct) / 3;
}

static fl_probes set_of(uint32_t members) {
    fl_probes p = {.count = 0};
    for (uint32_t i = 0; i < SETTINGS; i++)
        if (members >> i & 1)
            p.at[p.count++] = (fl_chip_row){
                .sm_mhz = chip.setting_sm[i], .mem_mhz = chip.setting_mem[i], .time_s = NAN, .power_w = NAN};
    return p;
}

static void check(const char *what, fl_probes set, uint32_t stride) {
    const fl_probes want = expected(&set, stride);
    CU_ASSERT_FATAL(fl_probes_expect(&chip, &set) == FL_MODEL_OK);
    FL_CHECK(near(set.time_pct, want.time_pct) && near(set.power_pct, want.power_pct) &&
                 near(set.energy_pct, want.energy_pct) && set.tested == want.tested && set.count == want.count,
             "%s: %g %g %g of %zu, expected %g %g %g of %zu", what, set.time_pct, set.power_pct, set.energy_pct,
             set.tested, want.time_pct, want.power_pct, want.energy_pct, want.tested);
}

static void test_expect(void) {
    make_chip(5, 1);
    for (uint32_t members = 1; members < 1u << SETTINGS; members += 9)
        if (members != (1u << SETTINGS) - 1)
            check("a set", set_of(members), 1);
    fl_probes beyond = set_of(1u << 4); /* one more, at a clock that the calibration does not have */
    beyond.at[1] = beyond.at[0];
    beyond.at[0].sm_mhz = 1000;
    beyond.count = 2;
    check("a clock of its own", beyond, 1);
    make_chip(5, 0);
    check("without power", set_of(9), 1);
    make_chip(12, 1);
    check("12 workloads are all tried", set_of(20), 1);
    make_chip(13, 1);
    check("of 13 every second is", set_of(20), 2);
}

/* The chosen set is the best of the few that there are. */
static void test_best(void) {
    for (int power = 0; power < 2; power++) {
        make_chip(4, power);
        chip.settings = 4; /* four sets of one: all are judged */
        fl_probes best = {0}, chosen, next, now;
        double least = INFINITY;
        size_t added = 9;
        for (uint32_t i = 0; i < 4; i++) {
            fl_probes p = set_of(1u << i);
            CU_ASSERT_FATAL(fl_probes_expect(&chip, &p) == FL_MODEL_OK);
            if (score(&p) < least) {
                least = score(&p);
                best = p;
            }
        }
        CU_ASSERT_FATAL(fl_probes_choose(&chip, 1, &chosen) == FL_MODEL_OK);
        FL_CHECK(chosen.count == 1 && score(&chosen) == least && chosen.at[0].sm_mhz == best.at[0].sm_mhz &&
                     chosen.at[0].mem_mhz == best.at[0].mem_mhz,
                 "%g, the best has %g", score(&chosen), least);
        chip.settings = SETTINGS; /* one is known: four may follow */
        const fl_probes known = set_of(1u << 4);
        least = INFINITY;
        for (uint32_t i = 0; i < 4; i++) {
            fl_probes p = set_of(1u << 4 | 1u << i);
            CU_ASSERT_FATAL(fl_probes_expect(&chip, &p) == FL_MODEL_OK);
            if (score(&p) < least) {
                least = score(&p);
                best = p;
            }
        }
        CU_ASSERT_FATAL(fl_probes_next(&chip, known.at, 1, &now, &next, &added) == FL_MODEL_OK);
        FL_CHECK(next.count == 2 && score(&next) == least && added < 2 && next.at[0].sm_mhz == best.at[0].sm_mhz &&
                     next.at[0].mem_mhz == best.at[0].mem_mhz && next.at[1].sm_mhz == 1300 && next.at[1].mem_mhz == 800,
                 "%g, the best has %g", score(&next), least);
        FL_CHECK(added == 0, "the known one stands last, the new one is %zu", added);
        for (size_t count = 2; power && count <= 2; count++) {
            fl_probes usual;
            CU_ASSERT_FATAL(fl_probes_choose(&chip, count, &chosen) == FL_MODEL_OK);
            const fl_model_status s = fl_probes_usual(&chip, count, &usual);
            CU_ASSERT_FATAL(s != FL_MODEL_OK || fl_probes_expect(&chip, &usual) == FL_MODEL_OK);
            FL_CHECK(chosen.count == count && (s != FL_MODEL_OK || score(&chosen) <= score(&usual)), "%zu: %g", count,
                     score(&chosen));
            for (size_t i = 1; i < count; i++)
                FL_CHECK(chosen.at[i].mem_mhz > chosen.at[i - 1].mem_mhz ||
                             (chosen.at[i].mem_mhz == chosen.at[i - 1].mem_mhz &&
                              chosen.at[i].sm_mhz > chosen.at[i - 1].sm_mhz),
                         "%zu: each once, by memory clock, then SM clock", count);
        }
    }
}

/* Evenly over the n clocks at the top memory clock, ends included: i (n - 1) / (count - 1), rounded. */
static void test_usual(void) {
    static const struct {
        uint32_t clocks;
        size_t count;
        double want[4]; /* index of the clock */
    } rows[] = {{9, 1, {8}},          {9, 2, {0, 8}},       {9, 3, {0, 4, 8}},   {8, 3, {0, 4, 7}},
                {9, 4, {0, 3, 5, 8}}, {8, 4, {0, 2, 5, 7}}, {5, 4, {0, 1, 3, 4}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_probes p;
        make_chip(5, 1);
        chip.mem_min = chip.mem_ref;
        chip.settings = rows[i].clocks;
        for (uint32_t k = 0; k < rows[i].clocks; k++) {
            chip.setting_sm[k] = 100 * k;
            chip.setting_mem[k] = 800;
        }
        CU_ASSERT_FATAL(fl_probes_usual(&chip, rows[i].count, &p) == FL_MODEL_OK && p.count == rows[i].count);
        for (size_t k = 0; k < p.count; k++)
            FL_CHECK(p.at[k].sm_mhz == 100 * rows[i].want[k] && p.at[k].mem_mhz == 800, "row %zu: %g MHz", i,
                     p.at[k].sm_mhz);
    }
    make_chip(5, 1);
    fl_probes p;
    FL_CHECK(fl_probes_usual(&chip, 4, &p) == FL_MODEL_OK && p.at[0].mem_mhz == 400 && p.at[1].sm_mhz == 1300 &&
                 p.at[2].sm_mhz == 500 && p.at[3].mem_mhz == 800,
             "four: the corners");
    chip.settings = 4;
    FL_CHECK(fl_probes_usual(&chip, 4, &p) == FL_MODEL_NO_FIT, "nothing is left to predict");
    FL_CHECK(fl_probes_usual(&chip, 3, &p) == FL_MODEL_NO_FIT, "two clocks are not three");
}

FL_SUITE("probes_by_hand", {"errors of a set", test_expect}, {"the best", test_best}, {"the usual", test_usual})
