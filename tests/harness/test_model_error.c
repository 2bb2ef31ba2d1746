/* Models moved within their error: by how much rows move, that a run still closes its ledger, and the ranking. */
#include "harness/base/cli/cli.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/node/node.h"
#include "traces/io/io.h"
#include "tests/support/sim_fixture.h"
#include "tests/support/temp_file.h"

#include <math.h>

static void open_rig_of(fx_rig *rig, double core, double memory) {
    fx_open(rig, 1);
    const uint32_t id = fx_class(rig, core, memory, 0.1, 0.8, 0.4, 0.5), stream = fx_stream(rig, 0, 0);
    rig->w->class[id].load.ref_sm_mhz = 1500;
    for (int i = 0; i < 200; i++)
        fx_op(rig, stream, 1000, 50000, id);
    fx_finish(rig, 4);
}

static void open_rig(fx_rig *rig) { open_rig_of(rig, 1, 0.5); }

static void renew(fx_rig *rig, double time_pct, double power_pct, uint64_t seed) {
    fl_rates_free(rig->rates);
    FX_MUST(fl_rates_new(&rig->rates, rig->w, &rig->spec, d));
    fl_rates_err(rig->rates, &(fl_model_error){time_pct, power_pct, seed});
}

static void test_rows(void) {
    fx_rig rig;
    open_rig(&rig);
    enum { CLOCKS = 11, SEEDS = 3000 };
    fl_row plain[CLOCKS];
    fl_base base[CLOCKS];
    for (int i = 0; i < CLOCKS; i++) {
        plain[i] = fx_rates(&rig, 500 + 100 * i, 800)->row[0];
        base[i] = fx_rates(&rig, 500 + 100 * i, 800)->base;
    }
    double time = 0, power = 0, board = 0, same = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        renew(&rig, 4, 6, seed);
        for (int i = 0; i < CLOCKS; i++) {
            const fl_clock_rates *at = fx_rates(&rig, 500 + 100 * i, 800);
            time += fabs((double)at->row[0].mul / plain[i].mul - 1);
            power += fabs((double)at->row[0].dyn_mw / plain[i].dyn_mw - 1);
            board += fabs((double)at->base.total_mw / base[i].total_mw - 1);
            FL_CHECK(at->parts[0].sm_mw + at->parts[0].memory_mw + at->parts[0].unsplit_mw == at->row[0].dyn_mw &&
                         at->base.static_mw + at->base.memory_mw + at->base.tree_mw == at->base.total_mw,
                     "seed %llu: parts", (unsigned long long)seed);
        }
        same += fx_rates(&rig, 1500, 800)->row[0].mul != plain[CLOCKS - 1].mul;
    }
    const double n = SEEDS * CLOCKS;
    time *= 100 / n, power *= 100 / n, board *= 100 / n;
    FL_CHECK(same == 0, "the length at the reference moved");
    FL_CHECK(fabs(time / 4 - 1) < 0.06, "time moves by %.3g %%, asked 4", time);
    FL_CHECK(fabs(power / 6 - 1) < 0.06, "power moves by %.3g %%, asked 6", power);
    FL_CHECK(fabs(board / 6 - 1) < 0.05, "the board's power moves by %.3g %%, asked 6", board);
    renew(&rig, 0, 0, 3);
    for (int i = 0; i < CLOCKS; i++) {
        const fl_clock_rates *at = fx_rates(&rig, 500 + 100 * i, 800);
        FL_CHECK(!memcmp(&at->row[0], &plain[i], sizeof plain[i]) && at->base.total_mw == base[i].total_mw,
                 "no error moves the row at %d MHz", 500 + 100 * i);
    }
    fx_close(&rig);
}

static void test_ledger(void) { /* fl_run fails where the parts do not add up to the femtojoule */
    fx_rig rig;
    open_rig(&rig);
    double least = HUGE_VAL, most = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        const fl_run_options o = {.w = rig.w, .rates = rig.rates, .spec = &rig.spec, .facts = &rig.facts};
        fl_run_result r, again;
        renew(&rig, 5, 5, seed);
        fl_run_options run = o;
        run.rates = rig.rates;
        FX_MUST(fl_run(&run, &r, d));
        renew(&rig, 5, 5, seed);
        run.rates = rig.rates;
        FX_MUST(fl_run(&run, &again, d));
        FL_CHECK(r.energy_fj == again.energy_fj && r.makespan_ps == again.makespan_ps, "seed %llu: not the same twice",
                 (unsigned long long)seed);
        least = fmin(least, r.energy_j);
        most = fmax(most, r.energy_j);
        fl_run_result_free(&r);
        fl_run_result_free(&again);
    }
    FL_CHECK(most > 1.05 * least, "energies from %g to %g J", least, most);
    fx_close(&rig);
}

/* Three fixed clocks on one workload: where nothing is unsure one is always first; where much is, each is now and then.
 */
static void test_ranking(void) {
    fx_rig rig;
    open_rig(&rig);
    fl_scene scene = {.source = (char *)(uintptr_t) "s", .w = rig.w, .rates = rig.rates, .facts = rig.facts};
    scene.platform.node = rig.spec;
    scene.platform.name = (char *)(uintptr_t) "p";
    fl_scene *item = &scene;
    fl_scenes scenes = {.item = &item, .count = 1};
    fl_spec spec[3] = {0};
    static const char *const text[] = {"fixed:sm_mhz=1000", "fixed:sm_mhz=900", "fixed:sm_mhz=600"};
    fl_diag d = {0};
    for (int i = 0; i < 3; i++)
        FL_CHECK(fl_spec_open(text[i], &spec[i], &d) == FL_OK, "%s", d.message);
    fl_comparison_options o = {
        .scenes = &scenes, .spec = spec, .spec_count = 3, .bound = INFINITY, .seed = 1, .seeds = 1, .threads = 2};
    fl_model_error_options e = {.draws = 200, .time_pct = 0, .power_pct = 0, .seed = 1};
    fl_ranking r[3], again[3];
    FL_CHECK(fl_model_error_run(&o, &e, r, &d) == FL_OK, "%s", d.message);
    FL_CHECK((r[0].first == 200) + (r[1].first == 200) + (r[2].first == 200) == 1, "first: %zu %zu %zu", r[0].first,
             r[1].first, r[2].first);
    FL_CHECK(r[0].saving_sd_pct < 1e-6 && r[0].held == 200, "deviation %g", r[0].saving_sd_pct);
    e.time_pct = e.power_pct = 25;
    FL_CHECK(fl_model_error_run(&o, &e, r, &d) == FL_OK, "%s", d.message);
    FL_CHECK(r[0].first + r[1].first + r[2].first == 200 && r[0].first > 0 && r[2].first > 0, "first: %zu %zu %zu",
             r[0].first, r[1].first, r[2].first);
    FL_CHECK(fabs(r[0].mean_rank + r[1].mean_rank + r[2].mean_rank - 6) < 1e-9, "ranks");
    o.threads = 1;
    FL_CHECK(fl_model_error_run(&o, &e, again, &d) == FL_OK && !memcmp(r, again, sizeof r), "depends on the threads");
    o.bound = 0.05; /* 600 MHz breaks it in every draw, and so is last */
    e.time_pct = 1;
    FL_CHECK(fl_model_error_run(&o, &e, r, &d) == FL_OK && r[2].held == 0 && r[2].first == 0 && r[0].held == 200,
             "held %zu, first %zu", r[2].held, r[2].first);
    e.time_pct = NAN;
    FL_CHECK(fl_model_error_run(&o, &e, r, &d) == FL_BAD_INPUT && strstr(d.message, "--time-error"), "%s", d.message);
    rig.w->model_time_mape_pct = 2;
    FL_CHECK(fl_model_error_run(&o, &e, r, &d) == FL_OK, "%s", d.message);
    for (int i = 0; i < 3; i++)
        fl_spec_free(&spec[i]);
    fx_close(&rig);
}

/* A core-bound and a memory-bound workload, policies that are each for some: only what all have run ranks them. */
static void test_limited(void) {
    static const char *const text[] = {"fixed:sm_mhz=1000", "fixed:sm_mhz=900", "fixed:sm_mhz=1300",
                                       "fixed:sm_mhz=500"},
                             *only[] = {NULL, "a*", NULL, "nonexist*"};
    fx_rig rig[2];
    fl_scene scene[2];
    fl_scene *item[2] = {&scene[0], &scene[1]};
    char *name[2] = {(char *)(uintptr_t) "a", (char *)(uintptr_t) "b"}, *kept[2];
    for (int i = 0; i < 2; i++) {
        open_rig_of(&rig[i], i ? 0.4 : 1, i ? 1 : 0.5);
        kept[i] = rig[i].w->name;
        rig[i].w->name = name[i];
        scene[i] =
            (fl_scene){.source = (char *)(uintptr_t) "s", .w = rig[i].w, .rates = rig[i].rates, .facts = rig[i].facts};
        scene[i].platform.node = rig[i].spec;
        scene[i].platform.name = (char *)(uintptr_t) "p";
    }
    fl_scenes scenes = {.item = item, .count = 2}, one = {.item = item, .count = 1};
    fl_spec spec[4] = {0};
    fl_diag d = {0};
    for (int i = 0; i < 4; i++) {
        FL_CHECK(fl_spec_open(text[i], &spec[i], &d) == FL_OK, "%s", d.message);
        if (only[i])
            FL_CHECK(fl_texts_add(&spec[i].only, only[i], &d) == FL_OK, "%s", d.message);
    }
    fl_comparison_options o = {
        .scenes = &scenes, .spec = spec, .spec_count = 4, .bound = INFINITY, .seed = 1, .seeds = 1, .threads = 2};
    const fl_model_error_options e = {.draws = 20, .time_pct = 1, .power_pct = 1, .seed = 1};
    fl_ranking r[4], alone[4];
    FL_CHECK(fl_model_error_run(&o, &e, r, &d) == FL_OK, "%s", d.message);
    FL_CHECK(r[3].first == 0 && r[3].held == 0 && r[3].workloads == 0 && isnan(r[3].mean_rank) &&
                 isnan(r[3].saving_pct),
             "a policy for no workload: first in %zu, holds in %zu", r[3].first, r[3].held);
    FL_CHECK(r[0].first + r[1].first + r[2].first == 20 &&
                 fabs(r[0].mean_rank + r[1].mean_rank + r[2].mean_rank - 6) < 1e-9,
             "first: %zu %zu %zu", r[0].first, r[1].first, r[2].first);
    FL_CHECK(r[0].workloads == 1 && r[1].workloads == 1 && r[2].workloads == 1, "ranked on %zu", r[0].workloads);
    o.scenes = &one;
    FL_CHECK(fl_model_error_run(&o, &e, alone, &d) == FL_OK, "%s", d.message);
    for (int i = 0; i < 3; i++)
        FL_CHECK(alone[i].saving_pct == r[i].saving_pct, "%s: %g %% saved, on the workload in common %g %%", text[i],
                 r[i].saving_pct, alone[i].saving_pct);
    o.scenes = &scenes;
    FL_CHECK(fl_texts_add(&spec[0].only, "b", &d) == FL_OK, "%s", d.message);
    FL_CHECK(fl_model_error_run(&o, &e, r, &d) == FL_BAD_INPUT && strstr(d.message, "in common"), "%s", d.message);
    for (int i = 0; i < 4; i++)
        fl_spec_free(&spec[i]);
    for (int i = 0; i < 2; i++) {
        rig[i].w->name = kept[i];
        fx_close(&rig[i]);
    }
}

/* On a ladder of one memory clock there is no way from the reference: the length at the reference clocks stays. */
static void test_one_memory_clock(void) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
        fx_rig rig;
        fx_open(&rig, 1);
        fl_device *dev = rig.spec.device;
        dev->mem_mhz[0] = dev->mem_mhz[1];
        dev->b0_w[0] = dev->b0_w[1];
        dev->mem_count = 1;
        const uint32_t id = fx_class(&rig, 1, 0.5, 0.1, 0.8, 0.4, 0.5);
        fx_op(&rig, fx_stream(&rig, 0, 0), 0, 50000, id);
        fx_finish(&rig, 1);
        const uint32_t plain = fx_rates(&rig, 1000, 800)->row[0].mul, slower = fx_rates(&rig, 600, 800)->row[0].mul;
        renew(&rig, 4, 0, seed);
        FL_CHECK(fx_rates(&rig, 1000, 800)->row[0].mul == plain && fx_rates(&rig, 600, 800)->row[0].mul != slower,
                 "seed %llu: the only memory clock moves the length", (unsigned long long)seed);
        fx_close(&rig);
    }
}

FL_SUITE("model_error", {"rows", test_rows}, {"one memory clock", test_one_memory_clock}, {"ledger", test_ledger},
         {"ranking", test_ranking}, {"limited policies", test_limited})
