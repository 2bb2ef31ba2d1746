/* One clock for what was measured: worked by hand, out of every kind of file, and against rows that were left out. */
#include "harness/advise/advise.h"
#include "harness/advise/inside.h"
#include "harness/base/cli/cli.h"
#include "harness/input/scene/scene.h"
#include "models/chip/chip.h"
#include "policies/random.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 600, 800, 1000, 1200 MHz at one memory clock. */
enum { CLOCKS = 4 };
static fl_setting_clocks at[CLOCKS] = {{600, 877, 0}, {800, 877, 0}, {1000, 877, 0}, {1200, 877, 0}};
static const fl_setting_clocks ref = {1200, 877, 0};

static fl_advise_case case_of(fl_chip_guess *g) { return (fl_advise_case){NULL, {at, g, CLOCKS, true}}; }

static void test_by_hand(void) {
    /* Energies 65, 63, 78, 100; slowdowns 30, 5, 4 and 0 %. */
    fl_chip_guess g[CLOCKS] = {{1.3, 50, 2, 2}, {1.05, 60, 2, 1}, {1.04, 75, 0, 0}, {1, 100, 0, 0}};
    fl_advise_case c = case_of(g);
    fl_advice a;
    fl_diag d = {0};
    FL_CHECK(fl_advise(&c, 1, ref, 0.10, 0.05, &a, &d) == FL_OK, "%s", d.message);
    /* ln(1.10/1.05)/0.02 = 2.326 deviations: a chance of 1.0 % */
    FL_CHECK(a.at.sm_mhz == 800 && fabs(a.chance - 0.0100) < 2e-4, "%g MHz, chance %g", a.at.sm_mhz, a.chance);
    /* 37 % saved; two times hypot(2, 1) % of 63 J to either side */
    const double sd = 2 * hypot(0.02, 0.01);
    FL_CHECK(fabs(a.saving.value - 37) < 1e-9 && fabs(a.saving.low - 100 * (1 - 0.63 * exp(sd))) < 1e-9 &&
                 fabs(a.saving.high - 100 * (1 - 0.63 * exp(-sd))) < 1e-9,
             "%g, %g to %g", a.saving.value, a.saving.low, a.saving.high);
    FL_CHECK(fabs(a.slowdown.high - 100 * (1.05 * exp(0.04) - 1)) < 1e-9, "%g", a.slowdown.high);
    FL_CHECK(a.measure.sm_mhz == 800, "measure %g", a.measure.sm_mhz);
    /* The bound itself: half a chance at 800 MHz, so the measured clock is taken. */
    FL_CHECK(fl_advise(&c, 1, ref, 0.05, 0.05, &a, &d) == FL_OK && a.at.sm_mhz == 1000 && a.chance == 0 &&
                 fabs(a.saving.low - a.saving.high) < 1e-12,
             "%g MHz", a.at.sm_mhz);
    FL_CHECK(fl_advise(&c, 1, ref, 0.05, 0.51, &a, &d) == FL_OK && a.at.sm_mhz == 800, "%g MHz", a.at.sm_mhz);
    FL_CHECK(fl_advise(&c, 1, ref, 0.01, 0.05, &a, &d) == FL_OK && a.at.sm_mhz == 1200 && a.saving.value == 0,
             "as it is: %g MHz", a.at.sm_mhz);
    FL_CHECK(fl_advise(&c, 1, (fl_setting_clocks){1500, 877, 0}, 0.05, 0.05, &a, &d) == FL_BAD_INPUT,
             "an unknown reference");
}

/* Two ways of assuming: the clock holds the bound in both, and the interval spans both. */
static void test_cases(void) {
    fl_chip_guess compute[CLOCKS] = {{2, 50, 0, 0}, {1.5, 60, 0, 0}, {1.2, 75, 0, 0}, {1, 100, 0, 0}},
                  memory[CLOCKS] = {{1.01, 60, 0, 0}, {1.01, 65, 0, 0}, {1.01, 80, 0, 0}, {1, 100, 0, 0}};
    fl_advise_case c[2] = {case_of(compute), case_of(memory)};
    c[0].stated.fitted = c[1].stated.fitted = false;
    fl_advice a;
    fl_diag d = {0};
    FL_CHECK(fl_advise(c, 2, ref, 0.25, 0.05, &a, &d) == FL_OK && a.at.sm_mhz == 1000, "%g MHz", a.at.sm_mhz);
    FL_CHECK(fabs(a.saving.low - 10) < 1e-9 && fabs(a.saving.high - 19.2) < 1e-9 && fabs(a.saving.value - 14.6) < 1e-9,
             "%g, %g to %g", a.saving.value, a.saving.low, a.saving.high);
    FL_CHECK(fabs(a.slowdown.low - 1) < 1e-9 && fabs(a.slowdown.high - 20) < 1e-9, "%g to %g", a.slowdown.low,
             a.slowdown.high);
    FL_CHECK(isnan(a.chance) && !a.stated, "the chance is not known, yet %g", a.chance);
    FL_CHECK(a.measure.sm_mhz == 600, "where they differ most: %g", a.measure.sm_mhz);
    FL_CHECK(fl_advise(c, 2, ref, 0.10, 0.05, &a, &d) == FL_OK && a.at.sm_mhz == 1200, "%g MHz", a.at.sm_mhz);
}

/* Names as NVML and platforms have them. */
static void test_boards(void) {
    static const struct {
        const char *device, *set, *undo;
        bool note;
    } table[] = {
        {"A100-SXM4-80GB", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", false},
        {"Tesla V100-SXM2-32GB", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", false},
        {"NVIDIA TITAN V", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", false},
        {"NVIDIA TITAN RTX", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", false},
        {"GeForce GTX 1660 Ti", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", false},
        {"GeForce RTX 4070 Laptop", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", false},
        {"Quadro GV100", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", false},
        {"NVIDIA RTX A5000", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", false},
        {"NVIDIA L40S", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", false},
        {"Generic", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", false},
        {"Tesla K20Xm", "nvidia-smi -ac 2600,900", "nvidia-smi -rac", false},
        {"Tesla M60", "nvidia-smi -ac 2600,900", "nvidia-smi -rac", false},
        {"Tesla P100-PCIE-16GB", "nvidia-smi -ac 2600,900", "nvidia-smi -rac", false},
        {"Quadro GP100", "nvidia-smi -ac 2600,900", "nvidia-smi -rac", false},
        {"Quadro P6000", "nvidia-smi -ac 2600,900", "nvidia-smi -rac", false},
        {"GeForce GTX TITAN X", "nvidia-smi -ac 2600,900", "nvidia-smi -rac", false},
        {"NVIDIA TITAN Xp", "nvidia-smi -ac 2600,900", "nvidia-smi -rac", false},
        {"GeForce GTX 1080 Ti", "", "", true},
        {"NVIDIA GeForce GTX 980", "", "", true},
        {"GTX1080Ti", "", "", true},
        {"GeForce 940M", "", "", true},
        {"", "nvidia-smi -lgc 900,900", "nvidia-smi -rgc", true},
        {"AMD Instinct MI250X", "rocm-smi --setperfdeterminism 900", "rocm-smi --resetperfdeterminism", false},
    };
    const fl_setting_clocks clocks = {900, 2600, 0};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const fl_advise_commands c = fl_advise_commands_of(table[i].device, -1, clocks, false);
        FL_CHECK(!strcmp(c.set, table[i].set) && !strcmp(c.undo, table[i].undo), "%s: '%s', '%s'", table[i].device,
                 c.set, c.undo);
        FL_CHECK((c.note != NULL) == table[i].note, "%s: %s", table[i].device, c.note ? c.note : "no note");
    }
    const fl_advise_commands both = fl_advise_commands_of("A100", -1, clocks, true);
    FL_CHECK(!strcmp(both.set, "nvidia-smi -lgc 900,900 && nvidia-smi -lmc 2600,2600") &&
                 !strcmp(both.undo, "nvidia-smi -rgc && nvidia-smi -rmc"),
             "'%s', '%s'", both.set, both.undo);
    /* of several GPUs, one */
    const fl_advise_commands one = fl_advise_commands_of("A100", 3, clocks, true);
    FL_CHECK(!strcmp(one.set, "nvidia-smi -i 3 -lgc 900,900 && nvidia-smi -i 3 -lmc 2600,2600") &&
                 !strcmp(one.undo, "nvidia-smi -i 3 -rgc && nvidia-smi -i 3 -rmc"),
             "'%s', '%s'", one.set, one.undo);
    const fl_advise_commands amd = fl_advise_commands_of("AMD Instinct MI250X", 2, clocks, false);
    static const struct {
        const char *device, *set;
        int64_t gpu;
        bool note;
    } intel[] = {
        {"6 x Intel Max 1550",
         "for d in 0 1 2 3 4 5; do for t in 0 1; do xpu-smi config -d $d -t $t --frequencyrange 900,900; done; done",
         -1, false},
        {"6 x Intel Max 1550",
         "for d in 3; do for t in 0 1; do xpu-smi config -d $d -t $t --frequencyrange 900,900; done; done", 3, false},
        {"Intel Data Center GPU Flex 170",
         "for d in 0; do for t in 0; do xpu-smi config -d $d -t $t --frequencyrange 900,900; done; done", -1, true},
    };
    for (size_t i = 0; i < sizeof intel / sizeof *intel; i++) {
        const fl_advise_commands c = fl_advise_commands_of(intel[i].device, intel[i].gpu, clocks, false);
        FL_CHECK(!strcmp(c.set, intel[i].set) && !c.note == !intel[i].note, "%s: '%s'", intel[i].device, c.set);
    }
    FL_CHECK(!strcmp(amd.set, "rocm-smi -d 2 --setperfdeterminism 900"), "'%s'", amd.set);
    static const struct {
        const char *device, *set, *undo;
        int64_t gpu;
        double own_w;
    } limit[] = {
        {"A100", "nvidia-smi -lgc 900,900 && nvidia-smi -pl 200", "nvidia-smi -rgc && nvidia-smi -pl 300", -1, 300},
        {"A100", "nvidia-smi -i 3 -lgc 900,900 && nvidia-smi -i 3 -pl 200",
         "nvidia-smi -i 3 -rgc && nvidia-smi -i 3 -pl DEFAULT", 3, INFINITY},
        {"AMD Instinct MI250X", "rocm-smi --setperfdeterminism 900 && rocm-smi --setpoweroverdrive 200",
         "rocm-smi --resetperfdeterminism && rocm-smi --resetpoweroverdrive", -1, 300},
        {"GeForce GTX 1080 Ti", "", "", -1, 300},
    };
    for (size_t i = 0; i < sizeof limit / sizeof *limit; i++) {
        fl_advise_commands c = fl_advise_commands_of(limit[i].device, limit[i].gpu, clocks, false);
        fl_advise_add_limit(&c, limit[i].device, limit[i].gpu, 200, limit[i].own_w);
        FL_CHECK(!strcmp(c.set, limit[i].set) && !strcmp(c.undo, limit[i].undo), "'%s', '%s'", c.set, c.undo);
    }
}

static void test_models(void) {
    static const struct {
        const char *a, *b;
        bool other;
    } table[] = {
        {"NVIDIA GeForce RTX 5090", "A100-SXM4-80GB", true},
        {"NVIDIA H100 80GB HBM3", "A100-SXM4-80GB", true},
        {"NVIDIA GeForce GTX 1080", "GeForce RTX 4070 Laptop", true},
        {"NVIDIA A10", "A100-SXM4-80GB", true},
        {"NVIDIA A100-PG509-200", "A100-SXM4-80GB", false},
        {"NVIDIA A100 80GB PCIe", "A100-SXM4-80GB", false},
        {"NVIDIA H100 80GB HBM3", "H100-SXM5-80GB", false},
        {"GTX1080Ti", "NVIDIA GeForce GTX 1080 Ti", false},
        {"Tesla V100-SXM2-32GB", "V100", false},
        {"NVIDIA GeForce RTX 5090", "Generic", false},
        {"", "A100-SXM4-80GB", false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        FL_CHECK(fl_advise_other_model(table[i].a, table[i].b) == table[i].other &&
                     fl_advise_other_model(table[i].b, table[i].a) == table[i].other,
                 "%s and %s", table[i].a, table[i].b);
}

/* ---- rows left out ---- */

/* Fixed before any result was seen: the sweeps of one power limit, three draws each, half of the rows of each workload
 * left out but never its top, a bound of 10 %, a risk of 5 %, intervals of two deviations, 90 % of the truths in them.
 */
enum { DRAWS = 3 };
#define BOUND 0.10
#define RISK 0.05
#define COVERED 0.90

typedef struct tally {
    size_t choices, left_out, covered, broken;
} tally;

static bool is_top(const fl_sweep *s, size_t i) {
    for (size_t k = 0; k < s->row_count; k++) {
        const fl_sweep_row *a = &s->rows[i], *b = &s->rows[k];
        if (a->workload == b->workload && a->kernel == b->kernel &&
            (b->mem_mhz > a->mem_mhz || (!(b->mem_mhz < a->mem_mhz) && b->sm_mhz > a->sm_mhz)))
            return false;
    }
    return true;
}

/* The workload's kernels at a setting, added up; false where a row is missing. *left: one of them was left out. */
static bool truth_at(const fl_sweep *s, const bool *kept, uint32_t workload, fl_setting_clocks c, double *time_s,
                     double *energy_j, bool *left) {
    *time_s = *energy_j = 0;
    *left = false;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload != workload || fabs(r->sm_mhz - c.sm_mhz) > 0.5 || fabs(r->mem_mhz - c.mem_mhz) > 0.5)
            continue;
        *time_s += r->time_s;
        *energy_j += r->time_s * r->power_w;
        *left |= !kept[i];
    }
    return *time_s > 0;
}

static void score(const fl_sweep *s, const bool *kept, const fl_advise_subject *of, tally *t) {
    fl_advice a;
    fl_diag d = {0};
    uint32_t name = 0;
    double time, energy, top_time, top_energy;
    bool left, top_left;
    while (strcmp(s->names[name], of->name) != 0)
        name++;
    FL_CHECK(fl_advise(of->of, of->cases, of->ref, BOUND, RISK, &a, &d) == FL_OK, "%s", d.message);
    if (!truth_at(s, kept, name, a.at, &time, &energy, &left) ||
        !truth_at(s, kept, name, of->ref, &top_time, &top_energy, &top_left))
        return;
    const double saving = 100 * (1 - energy / top_energy);
    t->choices++;
    t->broken += time > (1 + BOUND) * top_time;
    t->left_out += left;
    t->covered += left && saving >= a.saving.low && saving <= a.saving.high;
}

static void draw(const char *path, uint64_t seed, tally *t) {
    fl_sweep s = {0}, part = {0};
    fl_diag d = {0};
    fl_advise_subjects subjects = {0};
    FL_CHECK(fl_sweep_read(path, &s, NULL, &d) == FL_OK, "%s", d.message);
    bool *kept = calloc(s.row_count + 1, sizeof *kept);
    fl_sweep_row *rows = calloc(s.row_count + 1, sizeof *rows);
    if (!kept || !rows)
        exit(1);
    part = (fl_sweep){.names = s.names, .name_count = s.name_count, .rows = rows};
    fl_random random = fl_random_seed(seed, 17);
    for (size_t i = 0; i < s.row_count; i++)
        if ((kept[i] = fl_random_unit(&random) < 0.5 || is_top(&s, i)))
            rows[part.row_count++] = s.rows[i];
    const char *file = fl_temp_path("part.csv");
    const char *const list[] = {file};
    const fl_texts files = {.item = (const char **)(uintptr_t)list, .count = 1};
    const fl_advise_options o = {.device = -1};
    FL_CHECK(fl_sweep_write(file, &part, &d) == FL_OK && fl_advise_open(&files, &o, &subjects, &d) == FL_OK, "%s",
             d.message);
    for (size_t i = 0; i < subjects.count; i++)
        score(&s, kept, &subjects.item[i], t);
    fl_advise_close(&subjects);
    free(kept);
    free(rows);
    fl_sweep_free(&s);
}

static void test_left_out(void) {
    static const char *const sweep[] = {"v100-300w", "gtx1080ti", "gtx-titan-x"};
    const char *data = getenv("FOLDLINE_DATA");
    tally all = {0};
    if (!data) {
        printf("skipped: no measured sweeps (set FOLDLINE_DATA) ");
        return;
    }
    for (size_t i = 0; i < sizeof sweep / sizeof *sweep; i++) {
        char path[1024];
        tally t = {0};
        snprintf(path, sizeof path, "%s/sweeps/%s.csv", data, sweep[i]);
        if (access(path, R_OK) != 0) {
            printf("skipped: no %s ", path);
            continue;
        }
        for (uint64_t k = 1; k <= DRAWS; k++)
            draw(path, k, &t);
        printf("\n    %-12s %3zu choices, %3zu at rows left out: the interval covers the truth of %5.1f %%; the real "
               "bound "
               "broke at %zu",
               sweep[i], t.choices, t.left_out, 100.0 * (double)t.covered / (double)t.left_out, t.broken);
        all.choices += t.choices;
        all.left_out += t.left_out;
        all.covered += t.covered;
        all.broken += t.broken;
    }
    printf("\n    all          %3zu choices, %3zu at rows left out: %5.1f %%; broke at %zu  ", all.choices,
           all.left_out, 100.0 * (double)all.covered / (double)all.left_out, all.broken);
    FL_CHECK((double)all.broken <= RISK * (double)all.choices, "the bound broke at %zu of %zu", all.broken,
             all.choices);
    FL_CHECK(all.left_out && (double)all.covered >= COVERED * (double)all.left_out, "%zu of %zu", all.covered,
             all.left_out);
}

FL_SUITE("advise", {"by hand", test_by_hand}, {"cases", test_cases}, {"boards", test_boards}, {"models", test_models},
         {"rows left out", test_left_out})
