/* Rows that lie about their clock: planted into sweeps made by the known law (always), and into copies of measured ones
 * (with FOLDLINE_DATA). Kinds and numbers were fixed before any result was seen; docs of models/unsound.h say what
 * cannot be found. */
#include "models/fit_chip.h"
#include "models/fit_chip_predict.h"
#include "models/unsound_find.h"
#include "policies/random.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"
#include "traces/tables.h"

#include <math.h>
#include <stdint.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define ROWS_MAX 6000
#define SEEDS 20
#define DEPTH 0.75 /* of its clock: where a throttled row ran */
#define WRONG 0.8  /* of what it says: where a wrong clock ran */
#define AWAY 1.15  /* another clock's row: at least so far off */
#define THROTTLED_ROWS 5
#define SWAPPED_ROWS 3
#define STUCK_LOADS 2
#define REPEAT_TIME 0.002 /* scatter of a planted row */
#define REPEAT_POWER 0.005
#define SHOWS 0.03 /* a row that is moved by less in time and power says nothing wrong */

typedef enum plant { NONE, THROTTLED, SWAPPED, STUCK, PLANTS } plant;

/* ---- sweeps by the known law ---- */

static double law_volt(double f) { return 1 + 0.35 * fmax(0, f - 900) / 600; }

/* Twelve clocks of `loads` workloads from core-bound to memory-bound. */
static size_t make_sweep(size_t loads, uint64_t stream, fl_chip_row *row) {
    fl_random random = fl_random_seed(20260, stream);
    size_t n = 0;
    for (uint32_t k = 0; k < loads; k++) {
        const double memory = (double)k / (double)loads, core = 1 - 0.6 * memory,
                     alpha = 0.4 + 0.6 * fl_random_unit(&random);
        for (int i = 0; i < 12; i++) {
            const double f = 600 + 900.0 * i / 11, v = law_volt(f);
            const double time = pow(pow(core * 1500 / f, 8) + pow(memory, 8), 0.125);
            const double power = 35 + 90 * alpha * v * v * f / 1000 + 40 * memory + 15 * v;
            row[n++] = (fl_chip_row){.workload = k,
                                     .sm_mhz = round(f),
                                     .mem_mhz = 877,
                                     .time_s = time * (1 + REPEAT_TIME * fl_random_normal(&random)),
                                     .power_w = power * (1 + REPEAT_POWER * fl_random_normal(&random))};
        }
    }
    return n;
}

/* ---- planting ---- */

static bool same_line(const fl_chip_row *a, const fl_chip_row *b) {
    return a->workload == b->workload && fabs(a->mem_mhz - b->mem_mhz) < 0.5;
}

/* Time and power of row i's workload at a clock: lines in the logarithms. False outside its clocks. */
static bool at_clock(const fl_chip_row *row, size_t n, size_t i, double mhz, double *time, double *power) {
    size_t a = i, b = i;
    while (a > 0 && same_line(&row[a - 1], &row[i]))
        a--;
    while (b + 1 < n && same_line(&row[b + 1], &row[i]))
        b++;
    if (a == b || mhz < row[a].sm_mhz || mhz > row[b].sm_mhz)
        return false;
    size_t k = a;
    while (k + 1 < b && row[k + 1].sm_mhz < mhz)
        k++;
    const double w = log(mhz / row[k].sm_mhz) / log(row[k + 1].sm_mhz / row[k].sm_mhz);
    *time = exp((1 - w) * log(row[k].time_s) + w * log(row[k + 1].time_s));
    *power = exp((1 - w) * log(row[k].power_w) + w * log(row[k + 1].power_w));
    return true;
}

static void put(fl_chip_row *row, double time, double power, fl_random *random) {
    row->time_s = time * (1 + REPEAT_TIME * fl_random_normal(random));
    row->power_w = power * (1 + REPEAT_POWER * fl_random_normal(random));
}

static size_t pick(fl_random *random, size_t n) { return (size_t)fl_random_below(random, n); }

/* One kind per workload, at most one row in ten. kind: per row. */
static void plant_rows(const fl_chip_row *row, size_t n, uint64_t stream, fl_chip_row *bad, plant *kind) {
    static char used[ROWS_MAX];
    fl_random random = fl_random_seed(16, stream);
    size_t budget = n / 10;
    memcpy(bad, row, n * sizeof *row);
    memset(used, 0, sizeof used);
    memset(kind, 0, n * sizeof *kind);
    for (int want = 0; want < THROTTLED_ROWS + SWAPPED_ROWS; want++)
        for (int tries = 0; tries < 200; tries++) {
            const size_t i = pick(&random, n);
            const plant k = want < THROTTLED_ROWS ? THROTTLED : SWAPPED;
            double time = 0, power = 0;
            const double mhz = k == THROTTLED ? DEPTH * row[i].sm_mhz : row[pick(&random, n)].sm_mhz;
            if (used[row[i].workload] || !budget || fabs(log(mhz / row[i].sm_mhz)) < log(AWAY) ||
                !at_clock(row, n, i, mhz, &time, &power))
                continue;
            put(&bad[i], time, power, &random);
            kind[i] = k;
            used[row[i].workload] = 1;
            budget--;
            break;
        }
    for (int want = 0; want < STUCK_LOADS; want++)
        for (int tries = 0; tries < 200; tries++) {
            size_t top = pick(&random, n);
            if (used[row[top].workload] || budget < 2)
                continue;
            while (top + 1 < n && same_line(&row[top + 1], &row[top]))
                top++;
            if (top < 4 || !same_line(&row[top - 4], &row[top]))
                continue;
            for (size_t i = top - 1; i <= top; i++) {
                put(&bad[i], row[top - 2].time_s, row[top - 2].power_w, &random);
                kind[i] = STUCK;
            }
            used[row[top].workload] = 1;
            budget -= 2;
            break;
        }
}

/* All rows at one clock ran at WRONG times it. Which clock; 0 = the sweep has none for that. */
static double plant_clock(const fl_chip_row *row, size_t n, uint64_t stream, fl_chip_row *bad) {
    fl_random random = fl_random_seed(17, stream);
    double at = 0, time = 0, power = 0;
    for (int tries = 0; tries < 1000 && at <= 0; tries++) {
        const size_t i = pick(&random, n);
        at = at_clock(row, n, i, WRONG * row[i].sm_mhz, &time, &power) ? row[i].sm_mhz : 0;
    }
    memcpy(bad, row, n * sizeof *row);
    for (size_t i = 0; i < n; i++)
        if (fabs(row[i].sm_mhz - at) < 0.5 && at_clock(row, n, i, WRONG * at, &time, &power))
            put(&bad[i], time, power, &random);
    return at;
}

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

/* ---- measured sweeps ---- */

static int by_setting(const void *a, const void *b) {
    const fl_chip_row *x = a, *y = b;
    if (x->workload != y->workload)
        return x->workload < y->workload ? -1 : 1;
    if (x->mem_mhz < y->mem_mhz || x->mem_mhz > y->mem_mhz)
        return x->mem_mhz < y->mem_mhz ? -1 : 1;
    return (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz);
}

/* Of the A100 the rows under its highest limit; the V100b's 405 MHz rows only where asked for. */
static size_t read_sweep(const char *name, bool all, fl_chip_row *row) {
    char path[1024];
    const char *folder = getenv("FOLDLINE_DATA");
    fl_sweep s = {0};
    fl_diag d = {0};
    size_t n = 0, loads = 0;
    static uint32_t load[ROWS_MAX];
    snprintf(path, sizeof path, "%s/sweeps/%s", folder ? folder : "", name);
    if (!folder || access(path, R_OK) != 0) {
        printf("\n    skipped: %s (set FOLDLINE_DATA)", name);
        return 0;
    }
    CU_ASSERT_FATAL(fl_sweep_read_times(path, &s, &d) == FL_OK);
    for (size_t i = 0; i < s.row_count && n < ROWS_MAX; i++) {
        const fl_sweep_row *r = &s.rows[i];
        const uint32_t key = r->workload * 1000 + r->kernel;
        size_t k = 0;
        if ((!isnan(r->power_cap_w) && r->power_cap_w < 300) || (!all && fabs(r->sm_mhz - 405) < 0.5))
            continue;
        while (k < loads && load[k] != key)
            k++;
        if (k == loads)
            load[loads++] = key;
        row[n++] = (fl_chip_row){.workload = (uint32_t)k,
                                 .sm_mhz = r->sm_mhz,
                                 .mem_mhz = isnan(r->mem_mhz) ? 1 : r->mem_mhz,
                                 .time_s = r->time_s,
                                 .power_w = r->power_w};
    }
    qsort(row, n, sizeof *row, by_setting);
    fl_sweep_free(&s);
    return n;
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

/* Mean errors, percent, of the odd workloads from their ends, by a device fitted to the even ones. row: what fit and
 * prediction see; truth: what is scored. */
static void errors_of(const fl_chip_row *row, size_t n, const fl_chip_row *truth, size_t truths, double *time,
                      double *power) {
    static fl_chip c;
    static fl_chip_row even[ROWS_MAX], known[ROWS_MAX], asked[ROWS_MAX];
    static fl_chip_guess guess[ROWS_MAX];
    size_t evens = 0;
    double count = 0;
    *time = *power = 0;
    for (size_t i = 0; i < n; i++)
        if (row[i].workload % 2 == 0)
            even[evens++] = row[i];
    CU_ASSERT_FATAL(fl_chip_fit(even, evens, FL_CHIP_FULL, &c) == FL_MODEL_OK);
    for (size_t i = 0, next = 0; i < n; i = next) {
        size_t a = 0, b = 0;
        for (next = i; next < n && same_line(&row[next], &row[i]);)
            next++;
        if (row[i].workload % 2 == 0 || next - i < 2)
            continue;
        known[a++] = row[i];
        known[a++] = row[next - 1];
        for (size_t k = 0; k < truths; k++)
            if (same_line(&truth[k], &row[i]) && truth[k].sm_mhz > row[i].sm_mhz &&
                truth[k].sm_mhz < row[next - 1].sm_mhz)
                asked[b++] = truth[k];
        CU_ASSERT_FATAL(fl_chip_predict(&c, known, a, asked, b, guess, NULL) == FL_MODEL_OK);
        for (size_t k = 0; k < b; k++) {
            *time += 100 * fabs(guess[k].time_s / asked[k].time_s - 1);
            *power += 100 * fabs(guess[k].power_w / asked[k].power_w - 1);
            count++;
        }
    }
    *time /= count;
    *power /= count;
}

static size_t keep_sound(const fl_chip_row *row, size_t n, fl_chip_row *kept) {
    fl_unsound u;
    size_t m = 0;
    CU_ASSERT_FATAL(fl_unsound_find(row, n, &u) == FL_MODEL_OK);
    for (size_t i = 0; i < n; i++)
        if (u.row[i].kind == FL_SOUND)
            kept[m++] = row[i];
    fl_unsound_free(&u);
    return m;
}

/* With rows planted, and left out as found, predictions stay within WITHIN of those from the clean sweep. */
#define WITHIN 1.2
static void hold_fit(const char *name, const char *fails, const fl_chip_row *row, size_t n) {
    static fl_chip_row bad[ROWS_MAX], kept[ROWS_MAX];
    static plant kind[ROWS_MAX];
    double clean[2], all[2] = {0}, left[2] = {0};
    const int seeds = 3;
    errors_of(kept, keep_sound(row, n, kept), row, n, &clean[0], &clean[1]);
    for (uint64_t seed = 1; seed <= (uint64_t)seeds; seed++) {
        double e[2];
        plant_rows(row, n, seed, bad, kind);
        errors_of(bad, n, row, n, &e[0], &e[1]);
        all[0] += e[0] / seeds;
        all[1] += e[1] / seeds;
        errors_of(kept, keep_sound(bad, n, kept), row, n, &e[0], &e[1]);
        left[0] += e[0] / seeds;
        left[1] += e[1] / seeds;
    }
    printf("\n    %-20s time %.2f %% clean, %.2f with the planted rows, %.2f without the found; power %.2f, %.2f, %.2f",
           name, clean[0], all[0], left[0], clean[1], all[1], left[1]);
    const bool holds = left[0] <= WITHIN * clean[0] && left[1] <= WITHIN * clean[1];
    if (!holds && fails)
        printf("\n    FAILED, as stated: %s", fails);
    FL_CHECK(holds == !fails, "%s: time %.2f of %.2f, power %.2f of %.2f%s", name, left[0], clean[0], left[1], clean[1],
             holds ? ": it holds after all" : "");
}

static void test_fit_holds(void) {
    static fl_chip_row row[ROWS_MAX];
    static const struct {
        const char *name, *fails;
    } sweeps[] = {
        {"v100-300w.csv", NULL},
        {"gtx1080ti.csv", "swapped and stuck rows of memory-bound kernels do not show among five clocks"},
        {"gtx-titan-x.csv", NULL},
        {"v100b-activity.csv", "five workloads fit, and rows that hide where the memory slows down are a fifth"}};
    hold_fit("by the known law", NULL, row, make_sweep(16, 0, row));
    for (size_t i = 0; i < COUNT(sweeps); i++) {
        const size_t n = read_sweep(sweeps[i].name, false, row);
        if (n)
            hold_fit(sweeps[i].name, sweeps[i].fails, row, n);
    }
}

FL_SUITE("unsound", {"known law", test_known_law}, {"told", test_told}, {"clock", test_clock},
         {"clean sweeps", test_clean}, {"planted", test_planted}, {"the fit holds", test_fit_holds})
