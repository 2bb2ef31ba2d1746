/* What one run at one clock tells: its busy part, the powers at other clocks, and, on a measured sweep, whether the
 * intervals that advice states from it hold. */
#include "harness/advise/advise.h"
#include "harness/base/cli/cli.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define CLOCKS 8

static fl_chip chip;
static fl_platform platform;

static void open_chip(void) {
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_platform_open("v100-300w", 1, &platform, &d) == FL_OK);
    CU_ASSERT_FATAL(fl_chip_of_device(&platform.node.device[0], &chip) == FL_MODEL_OK);
}

static double idle_at(double sm_mhz) {
    return fl_chip_power(&chip, &(fl_chip_load){.tc = 1}, sm_mhz, chip.mem_ref, chip.sm_ref / sm_mhz);
}

static fl_log_run a_run(double sm_mhz, double mem_mhz, double time_s, double power_w, double busy) {
    return (fl_log_run){.sm_mhz = sm_mhz,
                        .mem_mhz = mem_mhz,
                        .sm_low_mhz = sm_mhz,
                        .sm_high_mhz = sm_mhz,
                        .time_s = time_s,
                        .power_w = power_w,
                        .steady = true,
                        .busy = busy,
                        .limit_w = NAN};
}

/* A run that is busy for three quarters: the rest idles, by the law. */
static void test_busy(void) {
    open_chip();
    const double idle = idle_at(1005);
    const fl_log_run run = a_run(1005, NAN, 8, 0.75 * 200 + 0.25 * idle, 0.75);
    fl_one_probe p = fl_one_probe_make(&chip, &run);
    CU_ASSERT(p.tells);
    CU_ASSERT_DOUBLE_EQUAL(p.busy.power_w, 200, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(p.busy.time_s, 6, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(p.idle_s, 2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(p.busy.mem_mhz, chip.mem_ref, 1e-12);
    /* 6 s at 200 W become 9 s at 100 W: with the idle time 11 s, its energy beside it; both deviations shrink */
    const fl_chip_row at = {.sm_mhz = 607, .mem_mhz = chip.mem_ref};
    fl_chip_guess g = {9, 100, 2, 4};
    const double all = 900 + 2 * idle_at(607);
    fl_one_probe_add_idle(&chip, &p, &at, &g, 1);
    CU_ASSERT_DOUBLE_EQUAL(g.time_s, 11, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(g.power_w, all / 11, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(g.time_sd_pct, 2 * 9.0 / 11, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(g.power_sd_pct, 4 * 900 / all, 1e-9);
    fl_platform_free(&platform);
}

static void test_says_nothing(void) {
    open_chip();
    const double idle = idle_at(1005);
    static fl_chip dumb;
    const struct {
        const char *what;
        fl_log_run run;
        bool tells;
    } table[] = {
        {"utilisation is not known", a_run(1005, NAN, 8, 200, NAN), true},
        {"half of the time", a_run(1005, NAN, 8, 200, 0.5), true},
        {"less than half", a_run(1005, NAN, 8, 200, 0.49), false},
        {"little above an idle GPU", a_run(1005, NAN, 8, 0.81 * idle, 1), true},
        {"below an idle GPU", a_run(1005, NAN, 8, 0.79 * idle, 1), false},
        {"its busy part is", a_run(1005, NAN, 8, 0.89 * idle, 0.5), false},
        {"above the ladder", a_run(2000, NAN, 8, 200, 1), false},
        {"a memory clock that the chip does not know apart", a_run(1005, 3000, 8, 200, 1), true},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const fl_one_probe p = fl_one_probe_make(&chip, &table[i].run);
        FL_CHECK(p.tells == table[i].tells, "%s: %d, idle %g W", table[i].what, p.tells, idle);
        FL_CHECK(p.tells || (p.idle_s == 0 && p.busy.power_w == table[i].run.power_w), "%s: it was changed",
                 table[i].what);
    }
    dumb = chip;
    dumb.has_power = 0;
    CU_ASSERT_FALSE(fl_one_probe_make(&dumb, &table[0].run).tells);
    fl_platform_free(&platform);
}

/* Workloads by the law itself, known at 1005 MHz alone: powers come out within two deviations at all clocks, ratios to
 * the top likewise, and what draws more at 1005 MHz gains more by a lower clock. */
static void test_powers(void) {
    static const double clock[CLOCKS] = {607, 757, 885, 1005, 1147, 1290, 1402, 1530};
    static const double alpha[] = {0.1, 0.5, 0.9};
    double saving[3], doubt[2];
    open_chip();
    for (size_t k = 0; k < 3; k++) {
        const fl_chip_load load = {0.4, 0.4, 0.2, alpha[k], 0.4};
        fl_chip_row at[CLOCKS];
        fl_chip_guess guess[CLOCKS];
        double watts[CLOCKS];
        fl_diag d = {0};
        for (size_t i = 0; i < CLOCKS; i++) {
            at[i] = (fl_chip_row){.sm_mhz = clock[i], .mem_mhz = chip.mem_ref};
            guess[i] = (fl_chip_guess){fl_chip_time(&chip, &load, clock[i], chip.mem_ref), NAN, 0, 0};
            watts[i] = fl_chip_power(&chip, &load, clock[i], chip.mem_ref, guess[i].time_s);
        }
        const fl_log_run run = a_run(1005, NAN, 1, watts[3], NAN);
        const fl_one_probe p = fl_one_probe_make(&chip, &run);
        FL_CHECK(fl_one_probe_powers(&chip, &p, &at[CLOCKS - 1], at, guess, CLOCKS, &d) == FL_OK, "%s", d.message);
        for (size_t i = 0; i < CLOCKS; i++) {
            const double off = log(guess[i].power_w / guess[CLOCKS - 1].power_w) - log(watts[i] / watts[CLOCKS - 1]);
            FL_CHECK(fabs(off) <= 0.02 * guess[i].power_sd_pct + 1e-9, "alpha %g, %g MHz: off by %g, sd %g %%",
                     alpha[k], clock[i], off, guess[i].power_sd_pct);
            FL_CHECK((guess[i].power_sd_pct > 0) == (i + 1 < CLOCKS), "%g MHz: sd %g", clock[i], guess[i].power_sd_pct);
        }
        FL_CHECK(fabs(guess[3].power_w / watts[3] - 1) < 0.01, "what was measured: %g, %g", guess[3].power_w, watts[3]);
        saving[k] = 1 - guess[2].power_w / guess[CLOCKS - 1].power_w;
        for (size_t far = 0; far < 2; far++) { /* the nearer the run is to what is asked, the surer */
            const size_t ran = far ? 0 : CLOCKS - 1;
            const fl_log_run one = a_run(clock[ran], NAN, 1, watts[ran], NAN);
            const fl_one_probe q = fl_one_probe_make(&chip, &one);
            FL_CHECK(fl_one_probe_powers(&chip, &q, &at[CLOCKS - 1], at, guess, CLOCKS, &d) == FL_OK, "%s", d.message);
            doubt[far] = guess[CLOCKS - 2].power_sd_pct;
        }
        FL_CHECK(doubt[0] > 0 && doubt[0] < doubt[1], "%g and %g %%", doubt[0], doubt[1]);
    }
    FL_CHECK(saving[0] < saving[1] && saving[1] < saving[2], "%g %g %g", saving[0], saving[1], saving[2]);
    fl_platform_free(&platform);
}

/* ---- a measured V100, of which each workload has one run, on another V100's constants ---- */

#define BOUND 0.05
#define COVERED 0.9

typedef struct tally {
    size_t choices, covered, broken;
} tally;

/* Time and energy between the measured clocks, by lines. */
static bool truth_at(const fl_sweep *s, uint32_t name, double mhz, double *time_s, double *energy_j) {
    const fl_sweep_row *below = NULL, *above = NULL;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload == name && r->sm_mhz <= mhz && (!below || r->sm_mhz > below->sm_mhz))
            below = r;
        if (r->workload == name && r->sm_mhz >= mhz && (!above || r->sm_mhz < above->sm_mhz))
            above = r;
    }
    if (!below || !above)
        return false;
    const double span = above->sm_mhz - below->sm_mhz, x = span > 0 ? (mhz - below->sm_mhz) / span : 0;
    *time_s = below->time_s + x * (above->time_s - below->time_s);
    *energy_j = below->energy_j + x * (above->energy_j - below->energy_j);
    return true;
}

static void ask(const fl_sweep *s, double mhz, const char *on, tally *t) {
    fl_sweep part = {.names = s->names, .name_count = s->name_count, .rows = calloc(s->row_count, sizeof *part.rows)};
    fl_advise_subjects subjects = {0};
    const char *file = fl_temp_path("one.csv");
    const fl_texts files = {.item = &file, .count = 1};
    const fl_advise_options o = {.platform = on, .device = -1};
    fl_diag d = {0};
    for (size_t i = 0; part.rows && i < s->row_count; i++)
        if (fabs(s->rows[i].sm_mhz - mhz) < 0.5)
            part.rows[part.row_count++] = s->rows[i];
    CU_ASSERT_FATAL(fl_sweep_write(file, &part, &d) == FL_OK);
    FL_CHECK(fl_advise_open(&files, &o, &subjects, &d) == FL_OK, "%s", d.message);
    for (size_t i = 0; i < subjects.count; i++) {
        const fl_advise_subject *of = &subjects.item[i];
        fl_advice a;
        uint32_t name = 0;
        double time, energy, top_time, top_energy;
        while (strcmp(s->names[name], of->name) != 0)
            name++;
        FL_CHECK(fl_advise(of->of, of->cases, of->ref, BOUND, 0.05, &a, &d) == FL_OK, "%s", d.message);
        CU_ASSERT(of->cases == 3 && isnan(a.chance) && a.stated);
        if (!truth_at(s, name, a.at.sm_mhz, &time, &energy) ||
            !truth_at(s, name, of->ref.sm_mhz, &top_time, &top_energy))
            continue;
        const double saving = 100 * (1 - energy / top_energy);
        t->choices++;
        t->broken += time > (1 + BOUND) * top_time;
        t->covered += saving >= a.saving.low && saving <= a.saving.high;
    }
    fl_advise_close(&subjects);
    free(part.rows);
}

static void test_measured(void) {
    const char *data = getenv("FOLDLINE_DATA");
    char path[1024];
    fl_sweep s = {0};
    fl_diag d = {0};
    snprintf(path, sizeof path, "%s/sweeps/v100-300w.csv", data ? data : "");
    if (!data || access(path, R_OK) != 0) {
        printf("skipped: no measured sweep (set FOLDLINE_DATA) ");
        return;
    }
    CU_ASSERT_FATAL(fl_sweep_read(path, &s, NULL, &d) == FL_OK);
    static const double clock[] = {1402, 1012};
    tally t = {0};
    for (size_t i = 0; i < 2; i++)
        ask(&s, clock[i], "v100-163w", &t);
    printf("\n    %zu choices: the interval covers the truth of %.1f %%; the real bound broke at %zu  ", t.choices,
           100.0 * (double)t.covered / (double)t.choices, t.broken);
    FL_CHECK(t.choices > 0 && (double)t.covered >= COVERED * (double)t.choices, "%zu of %zu", t.covered, t.choices);
    FL_CHECK((double)t.broken <= 0.05 * (double)t.choices, "%zu of %zu", t.broken, t.choices);
    fl_sweep_free(&s);
}

FL_SUITE("one_probe", {"the busy part", test_busy}, {"what says nothing", test_says_nothing}, {"powers", test_powers},
         {"measured", test_measured})
