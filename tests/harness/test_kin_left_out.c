/* A GPU without measurements: whether the deviations that are stated hold on chips that the prior has not seen. */
#include "harness/base/cli/cli.h"
#include "harness/chip/chip.h"
#include "harness/fit/chip/inside.h"
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "traces/io/io.h"
#include "tests/support/known_chips.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

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
        fl_fit_score_add(&all, &one.score);
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
        const double top = sm[facts.sm_count - 1];
        double near = sm[0]; /* to 70 % of it */
        for (uint32_t k = 0; k < facts.sm_count; k++)
            near = fabs(sm[k] - 0.7 * top) < fabs(near - 0.7 * top) ? sm[k] : near;
        const fl_fit_at at[] = {{.kind = FL_FIT_LIST, .sm = {top}, .sms = 1},
                                {.kind = FL_FIT_LIST, .sm = {near, top}, .sms = 2},
                                {.kind = FL_FIT_ENDS}};
        static const char *const what[] = {"the top", "70 % and the top", "ends"};
        for (size_t k = 0; k < COUNT(at); k++)
            predict(&chip, &rows, &at[k], what[k], within);
        lines += COUNT(at);
        fl_fit_rows_free(&rows);
    }
    FL_CHECK(within[0] >= WITHIN * lines && within[1] >= WITHIN * lines,
             "within 2 sd: times %.1f, powers %.1f %% in the mean of %g lines", within[0] / lines, within[1] / lines,
             lines);
}

FL_SUITE("kin_left_out", {"left out", test_left_out})
