/* A GPU that nobody has measured, from what chips like it are: what is known narrows what is not, and the deviations
 * that are stated hold on chips that the prior has not seen. */
#include "harness/fit/fit_rows.h"
#include "harness/fit/fit_score.h"
#include "harness/input/platform.h"
#include "models/fit_kin.h"
#include "models/probes.h"
#include "tests/support/suite.h"

#include <fnmatch.h>
#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define KIN_MAX 32

/* The bundled chips but those whose name matches, and generic, which is no chip. */
static size_t known_chips(const char *without, fl_kin *kin) {
    char **names = NULL;
    size_t count = 0, n = 0;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_platform_list(&names, &count, &d) == FL_OK);
    for (size_t i = 0; i < count; i++) {
        fl_platform p = {0};
        if (n < KIN_MAX && strcmp(names[i], "generic") != 0 && (!without || fnmatch(without, names[i], 0) != 0)) {
            CU_ASSERT_FATAL(fl_platform_open(names[i], 1, &p, &d) == FL_OK);
            CU_ASSERT(fl_kin_of_device(&p.node.device[0], &kin[n++]) == FL_MODEL_OK);
        }
        fl_platform_free(&p);
        free(names[i]);
    }
    free(names);
    return n;
}

static bool near(double a, double b, double share) { return fabs(a / b - 1) <= share; }

/* A platform's constants as shares: V100 of 300 W, 1530 MHz, V 1 up to 900 MHz and 1.4 at the top. */
static void test_parts(void) {
    fl_platform p = {0};
    fl_diag d = {0};
    fl_kin k;
    CU_ASSERT_FATAL(fl_platform_open("v100-300w", 1, &p, &d) == FL_OK);
    const fl_device *dev = &p.node.device[0];
    CU_ASSERT_FATAL(fl_kin_of_device(dev, &k) == FL_MODEL_OK);
    const double square = 1.4 * 1.4 * 1.53 / 300;
    FL_CHECK(near(k.part[FL_KIN_A], dev->a_w * square, 1e-9) && near(k.part[FL_KIN_A0], dev->a0_w * square, 1e-9) &&
                 near(k.part[FL_KIN_B], dev->b_w / 300, 1e-9) && near(k.part[FL_KIN_B0], dev->b0_w[0] / 300, 1e-9) &&
                 near(k.part[FL_KIN_C], dev->c_w / 300, 1e-9) && near(k.part[FL_KIN_RISE], 0.4, 1e-9),
             "A %g A0 %g B %g B0 %g C %g rise %g", k.part[FL_KIN_A], k.part[FL_KIN_A0], k.part[FL_KIN_B],
             k.part[FL_KIN_B0], k.part[FL_KIN_C], k.part[FL_KIN_RISE]);
    FL_CHECK(near(k.part[FL_KIN_KNEE], 900.0 / 1530, 0.05) && k.part[FL_KIN_BEND] > 1 && k.part[FL_KIN_BEND] < 2,
             "knee %g bend %g", k.part[FL_KIN_KNEE], k.part[FL_KIN_BEND]);
    p.node.device[0].tdp_w = 0;
    CU_ASSERT(fl_kin_of_device(dev, &k) == FL_MODEL_INVALID);
    fl_platform_free(&p);
}

/* Of 1, 2 and 4: the middle is 2, a deviation is a factor of 2, and of three chips the next may lie farther: Student's
 * 0.975 quantile of two degrees over the normal one, times the root of 4/3. */
static void test_prior(void) {
    fl_kin kin[3];
    fl_kin_spread s;
    for (size_t i = 0; i < 3; i++)
        for (int k = 0; k < FL_KIN_COUNT; k++)
            kin[i].part[k] = pow(2, (double)i);
    CU_ASSERT_FATAL(fl_kin_prior(kin, 3, &s) == FL_MODEL_OK);
    for (int k = 0; k < FL_KIN_COUNT; k++)
        FL_CHECK(near(s.middle[k], 2, 1e-9) && near(s.factor[k], pow(2, 4.302653 / 1.959964 * sqrt(4.0 / 3)), 1e-4),
                 "%s: %g, factor %g", fl_kin_what[k], s.middle[k], s.factor[k]);
    CU_ASSERT(fl_kin_prior(kin, 2, &s) == FL_MODEL_NO_FIT);
}

static const int32_t maxq_sm[] = {135, 300, 450, 600, 750, 855, 952, 1050, 1140, 1245, 1335, 1440}, maxq_mem[] = {810};
static const fl_kin_facts maxq = {maxq_sm, maxq_mem, COUNT(maxq_sm), 1, 810, 163};

/* What is known narrows what is not. The idle V100 of 163 W, as published with GEEPAFS; a prior without V100s. */
static void test_idle(void) {
    static const fl_idle_point idle[] = {{135, 43, 1}, {855, 48, 1}, {1050, 51, 1}, {1245, 59, 1}, {1440, 65, 1}};
    static fl_chip blind, seen, again;
    fl_kin kin[KIN_MAX];
    fl_kin_spread prior, none, after;
    CU_ASSERT_FATAL(fl_kin_prior(kin, known_chips("v100*", kin), &prior) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, NULL, 0, NULL, 0, &blind, &none) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, idle, COUNT(idle), NULL, 0, &seen, &after) == FL_MODEL_OK);
    double worst = 0, blind_worst = 0;
    for (size_t i = 0; i < COUNT(idle); i++) {
        const fl_chip *chip[] = {&seen, &blind};
        for (size_t k = 0; k < 2; k++) {
            const double v = fl_chip_volt(chip[k], idle[i].sm_mhz, 810);
            const double watts =
                fl_chip_b0(chip[k], 810) + chip[k]->c_w * v + chip[k]->a0_w * v * v * idle[i].sm_mhz / 1000;
            double *of = k ? &blind_worst : &worst;
            *of = fmax(*of, fabs(watts / idle[i].power_w - 1));
        }
    }
    FL_CHECK(worst < 0.05 && blind_worst > 0.1, "idle power within %.3f with the log, %.3f without", worst,
             blind_worst);
    static const int told[] = {FL_KIN_A0, FL_KIN_B0, FL_KIN_C};
    for (size_t i = 0; i < COUNT(told); i++)
        FL_CHECK(after.factor[told[i]] < none.factor[told[i]], "%s: factor %.3f with the log, %.3f without",
                 fl_kin_what[told[i]], after.factor[told[i]], none.factor[told[i]]);
    FL_CHECK(near(log(after.factor[FL_KIN_B]), log(none.factor[FL_KIN_B]), 0.2) &&
                 near(after.middle[FL_KIN_B], none.middle[FL_KIN_B], 0.2),
             "an idle GPU says nothing of B: factor %.3f, was %.3f; %.3f, was %.3f", after.factor[FL_KIN_B],
             none.factor[FL_KIN_B], after.middle[FL_KIN_B], none.middle[FL_KIN_B]);
    FL_CHECK(seen.power_error.smooth < blind.power_error.smooth, "deviation %.3f with the log, %.3f without",
             seen.power_error.smooth, blind.power_error.smooth);
    FL_CHECK(near(none.factor[FL_KIN_A], prior.factor[FL_KIN_A], 0.05) &&
                 near(none.middle[FL_KIN_A], prior.middle[FL_KIN_A], 0.05),
             "without anything known: the prior, %g x/ %g", none.middle[FL_KIN_A], none.factor[FL_KIN_A]);
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, idle, COUNT(idle), NULL, 0, &again, NULL) == FL_MODEL_OK);
    FL_CHECK(!memcmp(&seen.power_off, &again.power_off, sizeof seen.power_off) && seen.a_w == again.a_w,
             "the same twice");
    FL_CHECK(seen.workloads == 0 && seen.shares > 0 && seen.settings > 0 && seen.has_power, "a chip without workloads");
}

/* A run of one workload over the clocks tells how steeply power rises. */
static void test_run(void) {
    static fl_chip truth, blind, seen;
    fl_kin kin[KIN_MAX];
    fl_kin_spread prior, steep, none, after;
    fl_chip_row run[5];
    const fl_chip_load load = {0.8, 0.15, 0.05, 0.9, 0.1};
    CU_ASSERT_FATAL(fl_kin_prior(kin, known_chips(NULL, kin), &prior) == FL_MODEL_OK);
    steep = prior;
    steep.middle[FL_KIN_RISE] *= prior.factor[FL_KIN_RISE]; /* a deviation off what is usual */
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &steep, NULL, 0, NULL, 0, &truth, NULL) == FL_MODEL_OK);
    for (size_t i = 0; i < COUNT(run); i++) {
        const double f = maxq_sm[3 + 2 * i], time = fl_chip_time(&truth, &load, f, 810);
        run[i] = (fl_chip_row){0, f, 810, 7 * time, fl_chip_power(&truth, &load, f, 810, time)};
    }
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, NULL, 0, NULL, 0, &blind, &none) == FL_MODEL_OK);
    CU_ASSERT_FATAL(fl_kin_chip(&maxq, &prior, NULL, 0, run, COUNT(run), &seen, &after) == FL_MODEL_OK);
    const double is = fl_chip_volt(&truth, 1440, 810), told = fl_chip_volt(&seen, 1440, 810),
                 before = fl_chip_volt(&blind, 1440, 810);
    FL_CHECK(fabs(told - is) < 0.7 * fabs(before - is) &&
                 fabs(log((is - 1) / after.middle[FL_KIN_RISE])) < 2 * log(after.factor[FL_KIN_RISE]),
             "V at the top %.3f, was %.3f, is %.3f", told, before, is);
    FL_CHECK(after.factor[FL_KIN_RISE] < none.factor[FL_KIN_RISE], "factor %.3f, was %.3f", after.factor[FL_KIN_RISE],
             none.factor[FL_KIN_RISE]);
}

static void test_refusals(void) {
    static fl_chip chip;
    fl_kin_spread prior;
    fl_kin kin[KIN_MAX];
    CU_ASSERT_FATAL(fl_kin_prior(kin, known_chips(NULL, kin), &prior) == FL_MODEL_OK);
    fl_kin_facts wrong[] = {maxq, maxq, maxq, maxq, maxq};
    wrong[0].sm_count = 1;
    wrong[1].mem_count = 0;
    wrong[2].tdp_w = 0;
    wrong[3].default_mem_mhz = 811;
    wrong[4].tdp_w = INFINITY;
    for (size_t i = 0; i < COUNT(wrong); i++)
        FL_CHECK(fl_kin_chip(&wrong[i], &prior, NULL, 0, NULL, 0, &chip, NULL) == FL_MODEL_INVALID, "facts %zu", i);
}

/* ---- measured chips, each left out of the prior ---- */

typedef struct chip_case {
    const char *sweep, *without; /* platforms of the same chip */
    double tdp_w;                /* data sheets */
    double least_mhz;            /* below it the readings are not of the clocks that they name */
} chip_case;

/* Stated before any of it was run: 85 of 100 within two deviations, as tests/accuracy.sh asks of fitted devices. In the
 * mean over the lines it holds; not in each of them: times come out too sure in four of twenty (75 to 84 of 100), which
 * are marked. Powers are stated too wide (98 to 100 of 100): chips differ less than ten platforms tell. */
#define WITHIN 85

static void add_clock(int32_t *list, uint32_t *count, double mhz) {
    const int32_t whole = (int32_t)lround(mhz);
    uint32_t at = *count;
    for (uint32_t i = 0; i < *count; i++)
        if (list[i] == whole)
            return;
    for (; at > 0 && list[at - 1] > whole; at--)
        list[at] = list[at - 1];
    list[at] = whole;
    ++*count;
}

/* Adds the shares within two deviations, of times and of powers. */
static void predict(const fl_chip *chip, const fl_fit_rows *rows, const fl_fit_at *at, const char *what,
                    double *within) {
    fl_fit_score all = {0};
    fl_diag d = {0};
    for (size_t i = 0; i < rows->entities; i++) {
        fl_fit_result_of one = {0};
        CU_ASSERT_FATAL(fl_fit_entity_run(chip, rows, &rows->entity[i], at, true, &one, &d) == FL_OK);
        CU_ASSERT_FATAL(fl_fit_score_add(&all, &one.score, &d) == FL_OK);
        fl_fit_result_free(&one);
    }
    const fl_fit_means m = fl_fit_score_means(&all, FL_FIT_BOTH);
    printf("\n      %-28s time %5.2f power %5.2f energy %5.2f %%, within 2 sd: time %3.0f power %3.0f %%", what,
           m.time_mape, m.power_mape, m.energy_mape, m.time_within, m.power_within);
    printf("%s", m.time_within >= WITHIN && m.power_within >= WITHIN ? "" : "  too sure");
    within[0] += m.time_within;
    within[1] += m.power_within;
    fl_fit_score_free(&all);
}

static void test_left_out(void) {
    static const chip_case cases[] = {
        {"v100-300w.csv", "v100*", 300, 0},
        {"v100b-activity.csv", "v100*", 300, 500},
        {"gtx1080ti.csv", NULL, 250, 0},
        {"gtx-titan-x.csv", NULL, 250, 0},
    };
    const char *folder = getenv("FOLDLINE_DATA");
    double lines = 0, within[2] = {0, 0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char path[600];
        const char *item = path;
        const fl_texts files = {.item = &item, .count = 1}, none = {0};
        fl_fit_rows rows = {0};
        fl_diag d = {0};
        fl_kin kin[KIN_MAX];
        fl_kin_spread prior;
        int32_t sm[FL_CHIP_SETTINGS], mem[FL_CHIP_MEMS];
        fl_kin_facts facts = {.sm_mhz = sm, .mem_mhz = mem, .tdp_w = cases[i].tdp_w};
        static fl_chip chip;
        snprintf(path, sizeof path, "%s/sweeps/%s", folder ? folder : "", cases[i].sweep);
        if (!folder || fl_fit_rows_read(&files, &none, &rows, &d) != FL_OK) {
            printf("\n    skipped: %s (set FOLDLINE_DATA)", cases[i].sweep);
            continue;
        }
        size_t kept = 0;
        for (size_t k = 0; k < rows.count; k++)
            if (rows.row[k].sm_mhz >= cases[i].least_mhz)
                rows.row[kept++] = rows.row[k];
        rows.count = kept;
        fl_fit_rows_sort(&rows);
        for (size_t k = 0; k < rows.count; k++) {
            add_clock(sm, &facts.sm_count, rows.row[k].sm_mhz);
            add_clock(mem, &facts.mem_count, rows.row[k].mem_mhz);
        }
        facts.default_mem_mhz = mem[facts.mem_count - 1];
        CU_ASSERT_FATAL(fl_kin_prior(kin, known_chips(cases[i].without, kin), &prior) == FL_MODEL_OK);
        CU_ASSERT_FATAL(fl_kin_chip(&facts, &prior, NULL, 0, NULL, 0, &chip, NULL) == FL_MODEL_OK);
        printf("\n    %s", cases[i].sweep);
        for (size_t n = 1; n <= 4; n++) {
            char what[64];
            fl_fit_at at = {.kind = FL_FIT_CHOSEN, .choose = n};
            CU_ASSERT_FATAL(fl_probes_choose(&chip, n, &at.chosen) == FL_MODEL_OK);
            snprintf(what, sizeof what, "%zu chosen:", n);
            for (size_t k = 0; k < n; k++)
                snprintf(what + strlen(what), sizeof what - strlen(what), " %g", at.chosen.at[k].sm_mhz);
            predict(&chip, &rows, &at, what, within);
        }
        const fl_fit_at ends = {.kind = FL_FIT_ENDS};
        predict(&chip, &rows, &ends, "ends", within);
        lines += FL_PROBES_MAX + 1;
        fl_fit_rows_free(&rows);
    }
    FL_CHECK(within[0] >= WITHIN * lines && within[1] >= WITHIN * lines,
             "within 2 sd: times %.1f, powers %.1f %% in the mean of %g lines", within[0] / lines, within[1] / lines,
             lines);
}

FL_SUITE("kin", {"parts", test_parts}, {"prior", test_prior}, {"idle", test_idle}, {"run", test_run},
         {"refusals", test_refusals}, {"left out", test_left_out})
