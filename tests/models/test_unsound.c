/* Rows that lie about their clock: planted into sweeps made by the known law (always), and into copies of measured ones
 * (with FOLDLINE_DATA). What cannot be found models/unsound/unsound.h says. */
#include "tests/support/plants.h"
#include "models/unsound/unsound.h"

/* ---- counting ---- */

typedef struct tally {
    size_t planted[PLANTS], found[PLANTS], silent, falsely, clocks, clocks_found, clocks_named;
} tally;

static bool shows(const fl_chip_row *a, const fl_chip_row *b) {
    return fabs(log(a->time_s / b->time_s)) > SHOWS || fabs(log(a->power_w / b->power_w)) > SHOWS;
}

/* before: what is found in the sweep as it is; found again it is no false alarm of the planting. */
static void count_rows(const fl_chip_row *row, const fl_chip_row *bad, const plant *kind, size_t n,
                       const fl_unsound *before, const fl_unsound *u, tally *t) {
    for (size_t i = 0; i < n; i++) {
        const bool out = u->row[i].kind != FL_SOUND;
        if (kind[i] == NONE)
            t->falsely += out && before->row[i].kind == FL_SOUND ? 1 : 0;
        else if (!shows(&bad[i], &row[i]))
            t->silent++;
        else {
            t->planted[kind[i]]++;
            t->found[kind[i]] += out ? 1 : 0;
        }
    }
}

static void count_clock(double at, const fl_unsound *u, tally *t) {
    if (!(at > 0))
        return;
    t->clocks++;
    for (size_t i = 0; i < u->clocks; i++)
        if (fabs(u->clock[i].sm_mhz - at) < 0.5) {
            t->clocks_found++;
            t->clocks_named += fabs(u->clock[i].ran_mhz / at / WRONG - 1) < 0.03 ? 1 : 0;
        }
}

static tally plant_all(const fl_chip_row *row, size_t n, bool clocks) {
    static fl_chip_row bad[ROWS_MAX];
    static plant kind[ROWS_MAX];
    tally t = {0};
    fl_unsound before, u;
    CU_ASSERT_FATAL(fl_unsound_find(row, n, &before) == FL_MODEL_OK);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        plant_rows(row, n, seed, bad, kind);
        CU_ASSERT_FATAL(fl_unsound_find(bad, n, &u) == FL_MODEL_OK);
        count_rows(row, bad, kind, n, &before, &u, &t);
        fl_unsound_free(&u);
        if (!clocks)
            continue;
        const double at = plant_clock(row, n, seed, bad);
        CU_ASSERT_FATAL(fl_unsound_find(bad, n, &u) == FL_MODEL_OK);
        count_clock(at, &u, &t);
        fl_unsound_free(&u);
    }
    fl_unsound_free(&before);
    return t;
}

static double share(size_t a, size_t b) { return b ? 100 * (double)a / (double)b : (double)NAN; }

static void print_tally(const char *name, const tally *t) {
    size_t found = 0, planted = 0;
    for (int k = 1; k < PLANTS; k++) {
        found += t->found[k];
        planted += t->planted[k];
    }
    printf("\n    %-24s found: throttled %zu of %zu, swapped %zu of %zu, not reached %zu of %zu (%zu more say nothing "
           "wrong), clocks %zu of %zu, named within 3 %%: %zu; recall %.0f %%, precision %.0f %%",
           name, t->found[THROTTLED], t->planted[THROTTLED], t->found[SWAPPED], t->planted[SWAPPED], t->found[STUCK],
           t->planted[STUCK], t->silent, t->clocks_found, t->clocks, t->clocks_named, share(found, planted),
           share(found, found + t->falsely));
}

/* ---- tests ---- */

static void test_known_law(void) {
    static fl_chip_row row[ROWS_MAX];
    for (uint64_t stream = 0; stream < 3; stream++) {
        fl_unsound u;
        const size_t n = make_sweep(16, stream, row);
        CU_ASSERT_FATAL(fl_unsound_find(row, n, &u) == FL_MODEL_OK);
        FL_CHECK(u.rows == 0 && u.clocks == 0, "sweep %d: %zu rows, %zu clocks found in a clean one", (int)stream,
                 u.rows, u.clocks);
        fl_unsound_free(&u);
        const tally t = plant_all(row, n, true);
        print_tally("by the known law", &t);
        for (int k = 1; k < PLANTS; k++)
            FL_CHECK(t.found[k] == t.planted[k] && t.planted[k] > 0, "kind %d: %zu of %zu", k, t.found[k],
                     t.planted[k]);
        FL_CHECK(t.falsely == 0, "%zu good rows", t.falsely);
        FL_CHECK(t.clocks == SEEDS && t.clocks_found == SEEDS && t.clocks_named == SEEDS, "clocks: %zu, %zu, %zu",
                 t.clocks, t.clocks_found, t.clocks_named);
    }
}

/* What is found is said: which clock a row looks like, and why. */
static void test_told(void) {
    static fl_chip_row row[ROWS_MAX];
    const size_t n = make_sweep(8, 9, row);
    double time = 0, power = 0;
    fl_unsound u;
    CU_ASSERT_FATAL(at_clock(row, n, 6, 0.75 * row[6].sm_mhz, &time, &power));
    row[6].time_s = time;
    row[6].power_w = power;
    row[12 + 4].time_s *= 1.2; /* longer at the same power: no clock does that */
    row[24 + 11] = row[24 + 9];
    row[24 + 10] = row[24 + 9];
    row[24 + 10].sm_mhz = row[10].sm_mhz;
    row[24 + 11].sm_mhz = row[11].sm_mhz;
    const double swapped = row[36 + 8].sm_mhz, low = row[36 + 3].sm_mhz;
    row[36 + 3] = row[36 + 8];
    row[36 + 3].sm_mhz = low;
    CU_ASSERT_FATAL(fl_unsound_find(row, n, &u) == FL_MODEL_OK);
    FL_CHECK(u.row[6].kind == FL_UNSOUND_SLOWER && fabs(u.row[6].ran_mhz / row[6].sm_mhz - 0.75) < 0.03,
             "throttled: %s, %g MHz", fl_unsound_text(u.row[6].kind), u.row[6].ran_mhz);
    FL_CHECK(u.row[16].kind == FL_UNSOUND_LINE && fabs(u.row[16].time_pct - 20) < 3, "out of line: %s, %g %%",
             fl_unsound_text(u.row[16].kind), u.row[16].time_pct);
    for (size_t i = 34; i < 36; i++)
        FL_CHECK(u.row[i].kind == FL_UNSOUND_STUCK || u.row[i].kind == FL_UNSOUND_SLOWER, "not reached: %s",
                 fl_unsound_text(u.row[i].kind));
    FL_CHECK(u.row[39].kind == FL_UNSOUND_FASTER && fabs(u.row[39].ran_mhz / swapped - 1) < 0.03,
             "mislabelled: %s, %g MHz of %g", fl_unsound_text(u.row[39].kind), u.row[39].ran_mhz, swapped);
    FL_CHECK(u.rows == 5, "%zu rows", u.rows);
    fl_unsound_free(&u);
    FL_CHECK(fl_unsound_find(row, 4, &u) == FL_MODEL_OK && u.rows == 0, "four rows of a workload tell nothing");
    fl_unsound_free(&u);
    FL_CHECK(fl_unsound_find(row, 0, &u) == FL_MODEL_OK && u.rows == 0 && u.clocks == 0, "no rows");
    fl_unsound_free(&u);
}

/* A clock that is another one of the sweep is not relabelled; one that is none is. */
static void test_clock(void) {
    static fl_chip_row row[ROWS_MAX], bad[ROWS_MAX];
    const size_t n = make_sweep(16, 5, row);
    static const struct {
        size_t at;
        double ran;
        int clear;
    } cases[] = {{6, 0.72, 1}, {0, 0.55, 1}, {11, 0.9, 1}, {8, 0, 0}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        const size_t at = cases[c].at;
        const double mhz = cases[c].ran > 0 ? cases[c].ran * row[at].sm_mhz : row[at - 3].sm_mhz;
        fl_unsound u;
        memcpy(bad, row, n * sizeof *row);
        for (size_t i = at; i < n; i += 12) {
            const double f = mhz, memory = (double)row[i].workload / 16, v = law_volt(f);
            bad[i].time_s = pow(pow((1 - 0.6 * memory) * 1500 / f, 8) + pow(memory, 8), 0.125);
            bad[i].power_w = row[i].power_w * (35 + 50 * v * v * f / 1000) /
                             (35 + 50 * law_volt(row[i].sm_mhz) * law_volt(row[i].sm_mhz) * row[i].sm_mhz / 1000);
        }
        CU_ASSERT_FATAL(fl_unsound_find(bad, n, &u) == FL_MODEL_OK);
        FL_CHECK(u.clocks == 1 && fabs(u.clock[0].sm_mhz - row[at].sm_mhz) < 0.5 &&
                     fabs(u.clock[0].ran_mhz / mhz - 1) < 0.03 && u.clock[0].clear == cases[c].clear,
                 "%g MHz ran at %g: %zu clocks, %g at %g, clear %d", row[at].sm_mhz, mhz, u.clocks, u.clock[0].sm_mhz,
                 u.clock[0].ran_mhz, u.clock[0].clear);
        for (size_t i = at; i < n; i += 12)
            FL_CHECK(u.row[i].kind == FL_UNSOUND_CLOCK, "row %zu: %s", i, fl_unsound_text(u.row[i].kind));
        fl_unsound_free(&u);
    }
}

/* The two top clocks were asked for by all, and none got there: they hide each other. */
static void test_not_reached(void) {
    static fl_chip_row row[ROWS_MAX];
    const size_t n = make_sweep(16, 6, row);
    fl_unsound u;
    for (size_t i = 0; i < n; i++)
        if (i % 12 >= 10) {
            row[i].time_s = row[i - i % 12 + 9].time_s * (1 + 0.001 * sin((double)i));
            row[i].power_w = row[i - i % 12 + 9].power_w;
        }
    CU_ASSERT_FATAL(fl_unsound_find(row, n, &u) == FL_MODEL_OK);
    FL_CHECK(u.clocks == 2, "%zu clocks", u.clocks);
    for (size_t k = 0; k < u.clocks; k++)
        FL_CHECK(fabs(u.clock[k].sm_mhz - row[11 - k].sm_mhz) < 0.5 && !u.clock[k].clear, "%g MHz: clear %d",
                 u.clock[k].sm_mhz, u.clock[k].clear);
    for (size_t i = 0; i < n; i++)
        FL_CHECK((u.row[i].kind == FL_UNSOUND_CLOCK) == (i % 12 >= 10), "row %zu: %s", i,
                 fl_unsound_text(u.row[i].kind));
    fl_unsound_free(&u);
}

/* What is found in the sweeps as they are. Looked at one by one: the Titan X does not reach 1164 MHz (its core-bound
 * kernels gain 14 of the 38 MHz), quasirandomGenerator at 1900/4000 is slower and draws less than at the clocks about
 * it, the second V100's 405 MHz are 217. Its three rows at 600 MHz are good: the memory slows down between 705 and 600
 * MHz. Not found: the Titan's int_mad_16, which stands at 235 W from 1050 MHz up. */
static void test_clean(void) {
    static const struct {
        const char *name;
        size_t rows, clocks;
        double asked, ran;
    } sweeps[] = {{"v100-300w.csv", 0, 0, 0, 0},
                  {"gtx1080ti.csv", 1, 0, 0, 0},
                  {"gtx-titan-x.csv", 0, 1, 1164, 1136},
                  {"gtx-titan-x-micro.csv", 0, 1, 1164, 1140},
                  {"a100-pcie-lock-x-cap.csv", 0, 0, 0, 0},
                  {"v100b-activity.csv", 0, 1, 405, 217},
                  {"v100b-activity-micro.csv", 3, 1, 405, 217}};
    static fl_chip_row row[ROWS_MAX];
    for (size_t i = 0; i < COUNT(sweeps); i++) {
        fl_unsound u;
        const size_t n = read_sweep(sweeps[i].name, true, row);
        if (n == 0)
            continue;
        CU_ASSERT_FATAL(fl_unsound_find(row, n, &u) == FL_MODEL_OK);
        printf("\n    %-24s %zu rows: %zu found, %zu clocks", sweeps[i].name, n, u.rows, u.clocks);
        FL_CHECK(u.rows == sweeps[i].rows && u.clocks == sweeps[i].clocks, "%s: %zu rows, %zu clocks", sweeps[i].name,
                 u.rows, u.clocks);
        if (u.clocks && sweeps[i].clocks)
            FL_CHECK(fabs(u.clock[0].sm_mhz - sweeps[i].asked) < 0.5 &&
                         fabs(u.clock[0].ran_mhz / sweeps[i].ran - 1) < 0.02,
                     "%s: %g MHz ran at %g", sweeps[i].name, u.clock[0].sm_mhz, u.clock[0].ran_mhz);
        fl_unsound_free(&u);
    }
}

/* least, precise: percent of the planted that are found, and of the found that were planted. All was the goal; where it
 * is missed the number is what came out, and may not fall. The second V100's memory slows down below 705 MHz, which
 * hides rows there; a GTX 1080 Ti's five clocks within 25 % tell little, and its memory-bound rows nothing; power
 * hardly rises over the Titan's two top steps. The A100 has two workloads: none can tell a clock. */
static void test_planted(void) {
    static const struct {
        const char *name;
        double least, precise, clocks;
    } sweeps[] = {{"v100-300w.csv", 94, 97, 75},
                  {"gtx1080ti.csv", 65, 86, 100},
                  {"gtx-titan-x.csv", 90, 99, 100},
                  {"gtx-titan-x-micro.csv", 89, 98, 100},
                  {"a100-pcie-lock-x-cap.csv", 100, 100, 0},
                  {"v100b-activity.csv", 71, 88, 100},
                  {"v100b-activity-micro.csv", 80, 80, 100}};
    static fl_chip_row row[ROWS_MAX];
    for (size_t i = 0; i < COUNT(sweeps); i++) {
        const size_t n = read_sweep(sweeps[i].name, false, row);
        if (n == 0)
            continue;
        const tally t = plant_all(row, n, true);
        size_t found = 0, planted = 0;
        for (int k = 1; k < PLANTS; k++) {
            found += t.found[k];
            planted += t.planted[k];
        }
        print_tally(sweeps[i].name, &t);
        FL_CHECK(share(found, planted) >= sweeps[i].least, "%s: %.1f %% found", sweeps[i].name, share(found, planted));
        FL_CHECK(share(found, found + t.falsely) >= sweeps[i].precise, "%s: %.1f %% of the found were planted",
                 sweeps[i].name, share(found, found + t.falsely));
        FL_CHECK(!(share(t.clocks_found, t.clocks) < sweeps[i].clocks), "%s: %.1f %% of the clocks", sweeps[i].name,
                 share(t.clocks_found, t.clocks));
    }
}

FL_SUITE("unsound", {"known law", test_known_law}, {"told", test_told}, {"clock", test_clock},
         {"not reached", test_not_reached}, {"clean sweeps", test_clean}, {"planted", test_planted})
