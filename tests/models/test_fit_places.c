/* Where a setting lies among the known ones, what an error in time makes of power, and that a chip judges itself by
 * workloads that it was not fitted to. */
#include "models/chip/chip.h"
#include "models/chip/inside.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "tests/support/suite.h"

#include <math.h>

enum { WORKLOADS = 6, CLOCKS = 8, ROWS = WORKLOADS * CLOCKS };
static const uint64_t seed = 20;

static fl_chip_row at(double sm_mhz, double mem_mhz) { return (fl_chip_row){0, sm_mhz, mem_mhz, 1, NAN}; }

static void test_places(void) {
    const fl_chip_row corner[] = {at(600, 800), at(1100, 800), at(600, 3500), at(1100, 3500)};
    const fl_chip_row crossed[] = {at(1000, 800), at(700, 3500)};
    const struct {
        const fl_chip_row *known;
        size_t count;
        fl_chip_row asked;
        fl_chip_place place;
    } want[] = {
        {corner, 4, at(800, 2000), FL_CHIP_INSIDE},        {corner, 4, at(800, 800), FL_CHIP_INSIDE},
        {corner, 4, at(1200, 800), FL_CHIP_OUTSIDE},       {corner, 4, at(800, 4000), FL_CHIP_OTHER_MEMORY},
        {corner, 2, at(800, 800), FL_CHIP_INSIDE},         {corner, 2, at(800, 3500), FL_CHIP_OTHER_MEMORY},
        {crossed, 2, at(800, 800), FL_CHIP_OUTSIDE},       {crossed, 2, at(900, 3500), FL_CHIP_OUTSIDE},
        {crossed, 2, at(900, 4000), FL_CHIP_OTHER_MEMORY}, {crossed, 1, at(1000, 800), FL_CHIP_ALONE},
        {crossed, 1, at(1000, 3500), FL_CHIP_ALONE},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        fl_chip_place place = FL_CHIP_PLACES;
        (void)fl_chip_distance(want[i].known, want[i].count, &want[i].asked, &place);
        FL_CHECK(place == want[i].place, "case %zu: place %d, not %d", i, (int)place, (int)want[i].place);
    }
}

/* Half of the dynamic power follows the work done per cycle. */
static void make(fl_chip_row *row, fl_chip_span *span) {
    fl_random random = fl_random_seed(seed, 1);
    for (uint32_t k = 0; k < WORKLOADS; k++) {
        const double memory = (double)k / (WORKLOADS - 1), alpha = 0.3 + 0.7 * fl_random_unit(&random);
        span[k] = (fl_chip_span){(size_t)k * CLOCKS, CLOCKS};
        for (size_t i = 0; i < CLOCKS; i++) {
            const double f = 700 + 100 * (double)i, v = f < 1000 ? 1 : 1 + 0.3 * (f - 1000) / 400;
            const double t = pow(pow((1 - memory) * 1400 / f, 5) + pow(memory, 5), 0.2) + 0.02;
            const double busy = 0.5 + 0.5 * 1400 / f / t;
            row[k * CLOCKS + i] = (fl_chip_row){k, f, 900, t * (1 + 0.003 * fl_random_normal(&random)),
                                                (40 + 20 * v + 80 * alpha * v * v * f / 1000 * busy + 50 * memory / t) *
                                                    (1 + 0.003 * fl_random_normal(&random))};
        }
    }
}

static void test_power_follows_time(void) {
    static fl_chip_row row[ROWS];
    static fl_chip_span span[WORKLOADS];
    static fl_chip chip;
    fl_chip_guess guess, sure;
    fl_chip_load load;
    double slope = 0;
    make(row, span);
    FL_CHECK(fl_chip_fit_laws(row, span, WORKLOADS, FL_CHIP_FULL, &chip) == FL_MODEL_OK, "fit");
    for (int p = 0; p < FL_CHIP_PLACES; p++)
        chip.time_error.wide[p] = chip.power_error.wide[p] = 1;
    const fl_chip_row *known = &row[2 * CLOCKS + CLOCKS - 1], *asked = known - 5;
    chip.time_error.growth[FL_CHIP_ALONE] = 0.2;
    FL_CHECK(fl_chip_predict_slopes(&chip, known, 1, asked, 1, &guess, &load, &slope) == FL_MODEL_OK, "predict");
    const double f = asked->sm_mhz, m = asked->mem_mhz, t = guess.time_s;
    const double law =
        (log(fl_chip_power(&chip, &load, f, m, t * 1.001)) - log(fl_chip_power(&chip, &load, f, m, t))) / log(1.001);
    FL_CHECK(slope < -0.1 && fabs(slope / law - 1) < 0.1, "slope %g, by the law %g", slope, law);
    chip.time_error.growth[FL_CHIP_ALONE] = 0;
    FL_CHECK(fl_chip_predict(&chip, known, 1, asked, 1, &sure, NULL) == FL_MODEL_OK, "predict");
    const double more = guess.time_sd_pct * guess.time_sd_pct - sure.time_sd_pct * sure.time_sd_pct;
    const double power = guess.power_sd_pct * guess.power_sd_pct - sure.power_sd_pct * sure.power_sd_pct;
    FL_CHECK(more > 1 && fabs(power / (slope * slope * more) - 1) < 1e-6,
             "variance of time grows by %g, of power by %g, slope %g", more, power, slope);
}

static void test_folds(void) {
    static fl_chip_row row[ROWS];
    static fl_chip_span span[WORKLOADS];
    static fl_chip chip, other;
    fl_chip_folds folds;
    size_t left[FL_CHIP_FOLDS] = {0};
    make(row, span);
    FL_CHECK(fl_chip_folds_make(WORKLOADS, &folds) == FL_MODEL_OK && folds.chip[0], "room");
    FL_CHECK(fl_chip_folds_fit(row, span, FL_CHIP_PLAIN, &folds) == FL_MODEL_OK && folds.fitted[FL_CHIP_PLAIN] &&
                 !folds.fitted[FL_CHIP_FULL],
             "folds");
    for (size_t k = 0; k < WORKLOADS; k++) {
        left[fl_chip_fold_of(&folds, k)]++;
        CU_ASSERT(fl_chip_fold_tests(&folds, k));
    }
    for (size_t i = 0; i < FL_CHIP_FOLDS; i++)
        FL_CHECK(folds.chip[FL_CHIP_PLAIN][i].workloads == WORKLOADS - left[i] && left[i] > 0, "fold %zu: %u and %zu",
                 i, folds.chip[FL_CHIP_PLAIN][i].workloads, left[i]);
    FL_CHECK(fl_chip_fit_laws(row, span, WORKLOADS, FL_CHIP_PLAIN, &chip) == FL_MODEL_OK, "fit");
    other = chip;
    FL_CHECK(fl_chip_cross(row, span, WORKLOADS, &folds, &chip) == FL_MODEL_OK, "cross");
    for (size_t i = 0; i < FL_CHIP_FOLDS; i++) /* chips that do badly where they were not fitted make it less sure */
        folds.chip[FL_CHIP_PLAIN][i].sharpness = 1.2;
    FL_CHECK(fl_chip_cross(row, span, WORKLOADS, &folds, &other) == FL_MODEL_OK, "cross");
    const fl_chip_error *good = &chip.time_error, *bad = &other.time_error;
    FL_CHECK(bad->growth[FL_CHIP_INSIDE] * bad->own[FL_CHIP_INSIDE] >
                 1.5 * good->growth[FL_CHIP_INSIDE] * good->own[FL_CHIP_INSIDE],
             "growth %g and %g, own %g and %g", good->growth[FL_CHIP_INSIDE], bad->growth[FL_CHIP_INSIDE],
             good->own[FL_CHIP_INSIDE], bad->own[FL_CHIP_INSIDE]);
    fl_chip_folds_free(&folds);
    FL_CHECK(fl_chip_folds_make(FL_CHIP_FOLDS - 1, &folds) == FL_MODEL_OK && !folds.chip[0], "too few to leave out");
    fl_chip_folds_free(&folds);
}

FL_SUITE("fit_places", {"places", test_places}, {"power follows time", test_power_follows_time}, {"folds", test_folds})
