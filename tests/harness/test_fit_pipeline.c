/* The fit of a pipeline: a made-up chip whose laws are known, half of its plans learned, the others told; and files
 * that are wrong. */
#include "harness/plan/inside.h"
#include "harness/plan/plan.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/pipeline/pipeline.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"
#include "tests/support/sim_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAGES = 3, MICROBATCHES = 6, PLANS = 14 };
#define TOP 1400.0

static const fl_stage_power LAW = {.s = 0.25, .knee = 0.7, .rise = 1};

static double wall = 0.86, power_w = 240, most_w = 320; /* of the chip that is made up */

static double share_of(int rank, int backward) { return 0.65 + 0.05 * rank + 0.03 * backward; }
static double part_s(int rank, int backward, double mhz) {
    const fl_stage_time t = {.log_t0 = log((backward ? 0.1 : 0.04) * (1 + 0.1 * rank)),
                             .share = share_of(rank, backward),
                             .wall = backward ? wall : wall + 0.04};
    return fl_stage_law_at(&t, mhz / TOP);
}
static double part_w(int rank, double mhz) {
    return fmin((power_w + 5 * rank) * fl_stage_power_at(&LAW, mhz / TOP), most_w);
}

/* Time and energy of a plan, by the engine on the true rows: the clocks of the plan, one for each part of a rank. */
static double true_seconds(double mhz[STAGES][2]) {
    fl_pipeline p = {.schedule = FL_PIPELINE_1F1B,
                     .stages = STAGES,
                     .microbatches = MICROBATCHES,
                     .chunks = 1,
                     .data_parallel = 1,
                     .tensor_parallel = 1,
                     .ranks = STAGES,
                     .file = strdup("truth")};
    for (int r = 0; r < STAGES; r++)
        for (int k = 0; k < 2; k++)
            FX_MUST(fl_pipeline_add(&p,
                                    &(fl_pipeline_row){r, -1, k ? FL_PIPELINE_BACKWARD : FL_PIPELINE_FORWARD, 1000,
                                                       part_s(r, k, mhz[r][k]), 100, 0},
                                    d));
    const struct {
        fl_pipeline_what what;
        double s;
    } rest[] = {{FL_PIPELINE_ACT, 0.006}, {FL_PIPELINE_GRAD, 0.006}, {FL_PIPELINE_STEP, 0.03}};
    for (size_t k = 0; k < 3; k++)
        FX_MUST(fl_pipeline_add(&p, &(fl_pipeline_row){-1, -1, rest[k].what, NAN, rest[k].s, NAN, 0}, d));
    FX_MUST(fl_pipeline_add(&p, &(fl_pipeline_row){-1, -1, FL_PIPELINE_BLOCKED, NAN, NAN, 80, 0}, d));
    FX_MUST(fl_pipeline_finish(&p, d));
    fx_rig r;
    fx_open(&r, STAGES);
    fl_workload_free(r.w);
    fl_pipeline_order o;
    FX_MUST(fl_pipeline_schedule_make(&p, &o, d));
    FX_MUST(fl_build_pipeline(&r.w, "truth", &p, &o, &r.spec, 1, NULL, NULL, d));
    FX_MUST(fl_rates_new(&r.rates, r.w, &r.spec, d));
    fl_node *n = fx_node(&r, 0, false);
    fx_to_end(n);
    const double seconds = fl_seconds(fl_node_now(n));
    fl_node_close(n);
    fl_pipeline_order_free(&o);
    fl_pipeline_free(&p);
    fl_rates_free(r.rates);
    fl_workload_free(r.w);
    fl_node_spec_free(&r.spec);
    return seconds;
}

static FILE *begin(const char *base, const char *ending, const char *columns) {
    char path[600];
    snprintf(path, sizeof path, "%s.%s", base, ending);
    FILE *f = fopen(path, "w");
    if (!f)
        exit(1);
    fprintf(f, "%s\n", columns);
    return f;
}

/* Plan 0 at the top, then from slow to fast: the last stage, which is the longest, at a clock that rises from plan to
 * plan, the others somewhat lower at random. */
static void write_cell(const char *base) {
    FILE *plans = begin(base, "plans.csv", "plan,rank,instruction,first_microbatch,count,sm_mhz");
    FILE *measured = begin(base, "measured.csv", "plan,rank,iter_time_s,iter_energy_j,plan_time_s,plan_energy_j");
    FILE *parts = begin(base, "instructions.csv", "plan,rank,kind,sm_mhz,count,time_mean_s,time_sd_s");
    fl_random g = fl_random_seed(5, 1);
    for (int plan = 0; plan < PLANS; plan++) {
        double mhz[STAGES][2], joules[STAGES], all = 0;
        for (int r = 0; r < STAGES; r++)
            for (int k = 0; k < 2; k++) {
                const int step = 50 * plan / 2 / 15 - (r < STAGES - 1 ? (int)fl_random_below(&g, 6) : 0);
                mhz[r][k] = plan ? 1010 + 15 * (step > 0 ? step : 0) : TOP;
            }
        const double seconds = true_seconds(mhz);
        for (int r = 0; r < STAGES; r++) {
            double busy = 0;
            joules[r] = 0;
            for (int k = 0; k < 2; k++) {
                const char *name = k ? "backward" : "forward";
                const double s = part_s(r, k, mhz[r][k]);
                busy += MICROBATCHES * s;
                joules[r] += MICROBATCHES * s * part_w(r, mhz[r][k]);
                fprintf(plans, "%d,%d,%s,0,%d,%.17g\n", plan, r, name, MICROBATCHES, mhz[r][k]);
                fprintf(parts, "%d,%d,%s,%.17g,%d,%.17g,0\n", plan, r, name, mhz[r][k], MICROBATCHES, s);
            }
            joules[r] += 80 * (seconds - busy);
            all += joules[r];
        }
        for (int r = 0; r < STAGES; r++)
            fprintf(measured, "%d,%d,%.17g,%.17g,%.17g,%.17g\n", plan, r, seconds, joules[r], seconds, all);
    }
    if (fclose(plans) || fclose(measured) || fclose(parts))
        exit(1);
}

static const char *const ENDINGS[] = {"plans.csv", "measured.csv", "instructions.csv", "caps.csv"};

static void remove_cell(const char *base) {
    for (size_t k = 0; k < 4; k++) {
        char path[600];
        snprintf(path, sizeof path, "%s.%s", base, ENDINGS[k]);
        unlink(path);
    }
}

static void make_base(char *base) {
    const int fd = mkstemp(base);
    if (fd < 0 || close(fd))
        exit(1);
}

/* The chip that is made up: its files, what was read of them, and a fit with nothing learned yet. */
typedef struct cell {
    char base[32];
    fl_pipeline_runs r;
    fl_pipeline_fit f;
} cell;

static void open_cell(cell *c) {
    strcpy(c->base, "/tmp/foldline-cell-XXXXXX");
    make_base(c->base);
    write_cell(c->base);
    FX_MUST(fl_pipeline_runs_read(c->base, &c->r, d));
    FX_MUST(fl_pipeline_fit_open(&c->f, &c->r, STAGES, 1, NULL, 300, d));
}

static void close_cell(cell *c) {
    fl_pipeline_fit_close(&c->f);
    fl_pipeline_runs_free(&c->r);
    remove_cell(c->base);
    unlink(c->base);
}

static void test_known_chip(void) {
    cell c;
    open_cell(&c);
    FL_CHECK(c.r.plan_count == PLANS && c.r.ranks == STAGES && c.r.microbatches == MICROBATCHES && c.r.top_mhz == TOP,
             "%zu plans", c.r.plan_count);
    FL_CHECK(fl_pipeline_warm_up(&c.r), "plan 0 is at the top");
    static const struct {
        fl_pipeline_learn how;
        size_t learned, left_out;
        double time, energy; /* percent at most: the laws are right, what is expected of any chip is not */
    } rows[] = {{FL_LEARN_HALF, 7, 7, 0.1, 0.1},
                {FL_LEARN_SLOW, 6, 7, 0.5, 1},
                {FL_LEARN_THREE, 3, 11, 0.3, 0.5},
                {FL_LEARN_FIRST, 1, 13, 10, 10}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_pipeline_score s;
        bool learn[PLANS];
        fl_pipeline_learn_choose(&c.r, rows[i].how, learn);
        FX_MUST(fl_pipeline_fit_learn(&c.f, learn, &fl_pipeline_any_chip, d));
        FX_MUST(fl_pipeline_score_make(&c.f, learn, 0, &s, d));
        const char *name = fl_pipeline_learn_name[rows[i].how];
        FL_CHECK(s.learned == rows[i].learned && s.left_out == rows[i].left_out, "%s: %zu learned, %zu left out", name,
                 s.learned, s.left_out);
        FL_CHECK(s.time.worst < rows[i].time, "%s: time %.3f %%, expected at most %g", name, s.time.worst,
                 rows[i].time);
        FL_CHECK(s.energy.worst < rows[i].energy, "%s: energy %.3f %%, expected at most %g", name, s.energy.worst,
                 rows[i].energy);
        FL_CHECK(isnan(s.cap_time.mean) && !s.limited, "no runs under limits");
        if (rows[i].how == FL_LEARN_HALF)
            FL_CHECK(fabs(c.f.blocked_w - 80) < 8, "%.1f W while blocked, expected 80 within a tenth", c.f.blocked_w);
        fl_pipeline_score_free(&s);
    }
    close_cell(&c);
}

/* What others on the chip show is expected of the next; nobody is surer than the least. */
static void test_beliefs(void) {
    cell c;
    open_cell(&c);
    bool learn[PLANS];
    fl_pipeline_learn_choose(&c.r, FL_LEARN_ALL, learn);
    FX_MUST(fl_pipeline_fit_learn(&c.f, learn, &fl_pipeline_any_chip, d));
    const fl_pipeline_fit *two[] = {&c.f, &c.f};
    fl_pipeline_beliefs b;
    fl_pipeline_fit_believe(two, 2, &b);
    const fl_belief *any = &fl_pipeline_any_chip.blocked;
    FL_CHECK(fabs(b.blocked.mean * 900 - 2 * c.f.blocked_w - 300 * any->mean) < 1e-9, "any chip is a third one: %g",
             b.blocked.mean);
    FL_CHECK(b.blocked.sd >= 0.015 && b.blocked.sd < any->sd, "%g", b.blocked.sd);
    FL_CHECK(fabs(b.drawn - (2 * 320.0 / 300 + fl_pipeline_any_chip.drawn) / 3) < 0.01, "%g drawn", b.drawn);
    FL_CHECK(fabs(b.share[0].mean - 0.7) < 0.03, "%g", b.share[0].mean);
    fl_pipeline_fit_believe(NULL, 0, &b);
    FL_CHECK(!memcmp(&b, &fl_pipeline_any_chip, sizeof b), "of nobody: what is expected of any chip");
    close_cell(&c);
}

/* The largest difference between rows of the fit to learn[] and of the mean of twins, as a share. */
static double twins_apart(fl_pipeline_fit *f, const bool *learn, uint32_t twins) {
    const double mhz[] = {1010, 1100, TOP};
    fl_pipeline own, mean;
    FX_MUST(fl_pipeline_fit_learn(f, learn, &fl_pipeline_any_chip, d));
    FX_MUST(fl_pipeline_fit_rows(f, mhz, 3, &own, d));
    FX_MUST(fl_pipeline_fit_twins(f, learn, &fl_pipeline_any_chip, twins, &mean, mhz, 3, d));
    double apart = own.row_count == mean.row_count ? 0 : INFINITY;
    for (size_t i = 0; i < own.row_count && isfinite(apart); i++)
        if (own.row[i].power_w > 0 && own.row[i].time_s > 0)
            apart = fmax(apart, fmax(fabs(mean.row[i].time_s / own.row[i].time_s - 1),
                                     fabs(mean.row[i].power_w / own.row[i].power_w - 1)));
    fl_pipeline_free(&own);
    fl_pipeline_free(&mean);
    return apart;
}

/* Halves of one plan are that plan; halves of many differ from all, but not by much. */
static void test_twins(void) {
    cell c;
    open_cell(&c);
    bool learn[PLANS];
    fl_pipeline_learn_choose(&c.r, FL_LEARN_FIRST, learn);
    const double same = twins_apart(&c.f, learn, 3);
    FL_CHECK(same < 1e-12, "of one plan: %g", same);
    fl_pipeline_learn_choose(&c.r, FL_LEARN_ALL, learn);
    const double one = twins_apart(&c.f, learn, 1), many = twins_apart(&c.f, learn, 16);
    FL_CHECK(one > 1e-6 && one < 0.1 && many > 1e-6 && many < 0.1, "one half: %g, mean of 16: %g", one, many);
    close_cell(&c);
}

/* One plan at the top clock: the watts tell where the limit begins to hold a rank, and whether it does. */
static void test_wall_by_watts(void) {
    static const struct {
        const char *what;
        double wall, power_w, most_w, time, energy; /* percent at most */
    } rows[] = {
        {"held early", 0.79, 262, 297, 2, 8}, {"held late", 0.94, 225, 345, 2, 6}, {"free", 2, 150, 320, 5, 10}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wall = rows[i].wall;
        power_w = rows[i].power_w;
        most_w = rows[i].most_w;
        cell c;
        fl_pipeline_score s;
        bool learn[PLANS], none[PLANS] = {false};
        open_cell(&c);
        fl_pipeline_learn_choose(&c.r, FL_LEARN_FIRST, learn);
        FX_MUST(fl_pipeline_fit_learn(&c.f, learn, &fl_pipeline_any_chip, d));
        const fl_pipeline_beliefs *any = &fl_pipeline_any_chip;
        const double drawn = part_w(1, TOP) / 300,
                     expected = drawn < 0.95 ? 1.1 : any->wall[1].mean * drawn / any->drawn;
        const fl_belief told = fl_pf_wall(&c.f, 1, 1, learn, any), untold = fl_pf_wall(&c.f, 1, 1, none, any);
        FL_CHECK(fabs(told.mean - expected) < 0.01, "%s: wall %g, expected %g", rows[i].what, told.mean, expected);
        FL_CHECK(untold.mean == any->wall[1].mean, "%s: not learned from: %g", rows[i].what, untold.mean);
        FX_MUST(fl_pipeline_score_make(&c.f, learn, 0, &s, d));
        FL_CHECK(s.time.mean < rows[i].time && s.energy.mean < rows[i].energy, "%s: time %.3f, energy %.3f %%",
                 rows[i].what, s.time.mean, s.energy.mean);
        fl_pipeline_score_free(&s);
        close_cell(&c);
    }
}

static void test_bad_files(void) {
    static const struct {
        const char *what, *plans, *measured, *parts, *caps, *error;
    } rows[] = {
        {"whole", "0,0,forward,0,2,1000\n0,0,backward,0,2,1000\n", "0,0,1,100,1,100\n", "0,0,forward,1000,2,0.1,0\n",
         NULL, NULL},
        {"a microbatch without a clock", "0,0,forward,0,2,1000\n0,0,backward,0,1,1000\n", "", "", NULL,
         "plan 0 asks no clock for the backward of microbatch 1 of rank 0, expected one clock for each of 2"},
        {"one with two clocks, and another with none",
         "0,0,forward,0,2,1000\n0,0,forward,0,1,900\n0,0,forward,3,1,900\n0,0,backward,0,4,1000\n", "", "", NULL,
         "plan 0 asks twice for the forward of microbatch 0 of rank 0"},
        {"a hole", "0,0,forward,0,1,1000\n0,0,forward,2,2,900\n0,0,backward,0,4,1000\n", "", "", NULL,
         "plan 0 asks no clock for the forward of microbatch 1 of rank 0"},
        {"one too many", "0,0,forward,1,1,1000\n0,0,forward,0,2,900\n0,0,backward,0,2,1000\n", "", "", NULL,
         "plan 0 asks twice for the forward of microbatch 1 of rank 0"},
        {"runs in any order", "0,0,backward,1,1,1000\n0,0,forward,0,2,900\n0,0,backward,0,1,1000\n",
         "0,0,1,100,1,100\n", "0,0,forward,1000,2,0.1,0\n", NULL, NULL},
        {"half a megahertz", "0,0,forward,0,2,1000.5\n0,0,backward,0,2,1000\n", "", "", NULL,
         "sm_mhz is '1000.5', expected whole MHz"},
        {"no plans", "", "", "", NULL, "no plans, expected at least one"},
        {"a rank without a plan", "0,1,forward,0,2,1000\n0,1,backward,0,2,1000\n", "", "", NULL,
         "2 rows for 1 plans and 2 ranks"},
        {"numbers that fall", "1,0,forward,0,2,1000\n0,0,backward,0,2,1000\n", "", "", NULL,
         "plan 0 comes after 1, expected ascending numbers"},
        {"another instruction", "0,0,load,0,2,1000\n", "", "", NULL, "instruction is 'load'"},
        {"not measured", "0,0,forward,0,2,1000\n0,0,backward,0,2,1000\n", NULL, "", NULL, "was not measured on rank 0"},
        {"measured twice", "0,0,forward,0,2,1000\n0,0,backward,0,2,1000\n", "0,0,1,100,1,100\n0,0,2,100,1,100\n", "",
         NULL, "a second row of plan 0 and rank 0"},
        {"measured and not asked for", "0,0,forward,0,2,1000\n0,0,backward,0,2,1000\n", "7,0,1,100,1,100\n", "", NULL,
         "plan 7 is not among those that ask for clocks"},
        {"another kind", "0,0,forward,0,2,1000\n0,0,backward,0,2,1000\n", "0,0,1,100,1,100\n",
         "0,0,step,1000,2,0.1,0\n", NULL, "kind is 'step'"},
        {"a rank without a limit",
         "0,0,forward,0,2,1000\n0,0,backward,0,2,1000\n0,1,forward,0,2,1000\n0,1,backward,0,2,1000\n",
         "0,0,1,100,1,200\n0,1,1,100,1,200\n", "0,0,forward,1000,2,0.1,0\n", "all,1,0,250,1,100\n",
         "all plan 1 has no row of rank 1"},
        {"a rank with two limits", "0,0,forward,0,2,1000\n0,0,backward,0,2,1000\n", "0,0,1,100,1,100\n",
         "0,0,forward,1000,2,0.1,0\n", "all,1,0,250,1,100\nall,1,0,200,1,100\n",
         "a second row of all plan 1 and rank 0"},
    };
    char base[] = "/tmp/foldline-cell-XXXXXX";
    make_base(base);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *f = begin(base, "plans.csv", "plan,rank,instruction,first_microbatch,count,sm_mhz");
        fputs(rows[i].plans, f);
        fclose(f);
        f = begin(base, "measured.csv", "plan,rank,iter_time_s,iter_energy_j,plan_time_s,plan_energy_j");
        fputs(rows[i].measured ? rows[i].measured : "", f);
        fclose(f);
        f = begin(base, "instructions.csv", "plan,rank,kind,sm_mhz,count,time_mean_s,time_sd_s");
        fputs(rows[i].parts, f);
        fclose(f);
        if (rows[i].caps) {
            f = begin(base, "caps.csv", "family,plan,rank,power_limit_w,plan_time_s,plan_energy_j");
            fputs(rows[i].caps, f);
            fclose(f);
        }
        fl_pipeline_runs r;
        fl_diag d = {0};
        const fl_status s = fl_pipeline_runs_read(base, &r, &d);
        FL_CHECK(s == (rows[i].error ? FL_BAD_INPUT : FL_OK), "%s: status %d, %s", rows[i].what, s, d.message);
        FL_CHECK(!rows[i].error || strstr(d.message, rows[i].error), "%s: '%s', expected '%s'", rows[i].what, d.message,
                 rows[i].error);
        FL_CHECK(!s || (!r.plan && !r.asked && !r.plan_count), "%s: left zeroed", rows[i].what);
        fl_pipeline_runs_free(&r);
        remove_cell(base);
    }
    unlink(base);
}

FL_SUITE("fit_pipeline", {"a chip whose laws are known", test_known_chip}, {"what others lead to expect", test_beliefs},
         {"a wall told by watts", test_wall_by_watts}, {"mean of twins", test_twins}, {"bad files", test_bad_files})
