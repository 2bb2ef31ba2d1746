/* Measured and published behaviour of nodes under a power wall, against the platforms as they are bundled. The measured
 * part needs a folder of recordings: FOLDLINE_DATA. */
#include "harness/base/cli/cli.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"

#include <math.h>
#include <unistd.h>

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        fl_diag diag_ = {0}, *d = &diag_;                                                                              \
        if ((call) != FL_OK) {                                                                                         \
            printf("\n    %s: %s\n", #call, d->message);                                                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void play(const fl_scene *scene, const char *policy, fl_run_result *out) {
    fl_spec spec;
    MUST(fl_spec_open(policy, &spec, d));
    fl_layer layer[2] = {fl_platform_layer(&scene->platform, spec.policy->name), spec.layer};
    fl_run_options o = {.w = scene->w,
                        .rates = scene->rates,
                        .spec = &scene->platform.node,
                        .facts = &scene->facts,
                        .policy = spec.policy,
                        .layer = layer,
                        .layer_count = 2};
    MUST(fl_run(&o, out, d));
    fl_spec_free(&spec);
}

/* ---- locks x power limits of an A100 ---- */

typedef struct cell {
    double time_s, power_w;
} cell;

static cell wall_cell(const fl_scene *scene, double lock, double limit) {
    char policy[96];
    fl_run_result r;
    snprintf(policy, sizeof policy, "fixed:sm_mhz=%g,power_limit_w=%g", lock, limit);
    play(scene, policy, &r);
    const cell c = {r.makespan_s, r.mean_power_w};
    fl_run_result_free(&r);
    return c;
}

static const fl_sweep_row *row_at(const fl_sweep *s, uint32_t workload, double lock, double limit) {
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i].workload == workload && s->rows[i].sm_mhz == lock && s->rows[i].power_cap_w == limit)
            return &s->rows[i];
    return NULL;
}

static void test_measured_wall(void) {
    char path[512];
    const char *data = getenv("FOLDLINE_DATA");
    snprintf(path, sizeof path, "%s/sweeps/a100-pcie-lock-x-cap.csv", data ? data : "");
    if (!data || access(path, R_OK) != 0) {
        printf("skipped: no sweeps/a100-pcie-lock-x-cap.csv (set FOLDLINE_DATA) ");
        return;
    }
    fl_sweep sweep = {0};
    MUST(fl_sweep_read(path, &sweep, NULL, d));
    fl_scenes real, ideal;
    const fl_texts none = {0};
    fl_scene_options o = {.platform = "a100-pcie", .sweep = path, .model = "fitted"};
    MUST(fl_scenes_open(&o, &none, &real, d));
    o.node.wall = "ideal";
    MUST(fl_scenes_open(&o, &none, &ideal, d));
    double time_error = 0, energy_error = 0;
    size_t cells = 0;
    printf("\n    workload     lock limit   measured s  W      wall s  W      ideal wall s  W");
    for (size_t i = 0; i < real.count; i++) {
        uint32_t name = 0;
        while (strcmp(sweep.names[name], real.item[i]->w->name) != 0)
            name++;
        cell low = {0}, high = {0};
        for (size_t k = 0; k < sweep.row_count; k++) {
            const fl_sweep_row *row = &sweep.rows[k], *free_row = row_at(&sweep, name, row->sm_mhz, 300);
            if (row->workload != name || !free_row || free_row->power_w <= row->power_cap_w)
                continue; /* the limit does not bind */
            const cell is = wall_cell(real.item[i], row->sm_mhz, row->power_cap_w);
            const cell best = wall_cell(ideal.item[i], row->sm_mhz, row->power_cap_w);
            printf("\n    %-12s %4.0f %5.0f   %8.3f %6.1f   %8.3f %6.1f   %8.3f %6.1f", sweep.names[name], row->sm_mhz,
                   row->power_cap_w, row->time_s, row->power_w, is.time_s, is.power_w, best.time_s, best.power_w);
            time_error += fabs(is.time_s / row->time_s - 1);
            energy_error += fabs(is.time_s * is.power_w / (row->time_s * row->power_w) - 1);
            cells++;
            /* a run begins without the limit, for 40 ms */
            FL_CHECK(is.power_w < row->power_cap_w * 1.004, "%s at %g MHz: %g W of %g", sweep.names[name], row->sm_mhz,
                     is.power_w, row->power_cap_w);
            if (row->power_cap_w == 150 && row->sm_mhz == 1110)
                low = is;
            if (row->power_cap_w == 150 && row->sm_mhz == 1410)
                high = is;
        }
        /* Measured: 1.4 and 1.5 % longer at the higher lock. The simulated clock settles alike below both. */
        FL_CHECK(fabs(high.time_s / low.time_s - 1) < 0.005, "%s at 150 W: %g s locked at 1110 MHz, %g s at 1410",
                 sweep.names[name], low.time_s, high.time_s);
        printf("\n    %s at 150 W from 1110 to 1410 MHz: time %+.2f %%, power %.2f %% below the limit",
               sweep.names[name], 100 * (high.time_s / low.time_s - 1), 100 * (1 - high.power_w / 150));
    }
    time_error *= 100 / (double)cells;
    energy_error *= 100 / (double)cells;
    printf("\n    mean error over %zu cells: %.2f %% in time, %.2f %% in energy  ", cells, time_error, energy_error);
    /* The goals of capped cells. With a law in the place of what was measured and predicted without a limit it was 0.69
     * and 0.85 %: babelstream's times under a limit, slower than all of these, lay nearer to it. */
    FL_CHECK(cells > 0 && time_error < 1.2 && energy_error < 1.5, "mean errors %.2f %% and %.2f %%", time_error,
             energy_error);
    fl_scenes_free(&real);
    fl_scenes_free(&ideal);
    fl_sweep_free(&sweep);
}

/* ---- eight programs under the wall of a laptop (SweetSpot, 5.2) ---- */

static void test_contention(void) {
    fl_experiment e;
    fl_scene_options o = {0};
    fl_texts traces = {0};
    const char *objective = NULL;
    int64_t seeds = 0;
    fl_scenes scenes;
    size_t variants;
    MUST(fl_experiment_open(FL_ROOT "/harness/experiments/contention.json", &e, d));
    MUST(fl_experiment_apply(&e, &o, &traces, &objective, &seeds, d));
    MUST(fl_experiment_scenes(&e, &o, &traces, &scenes, &variants, d));
    FL_CHECK(variants == 3 && scenes.count == 4, "%zu scenes", scenes.count);
    for (size_t i = 0; i < scenes.count; i++) {
        fl_run_result most, capped;
        play(scenes.item[i], "maxfreq", &most);
        play(scenes.item[i], "sweetspot", &capped);
        const double energy = 100 * (capped.energy_j / most.energy_j - 1),
                     time = 100 * (capped.makespan_s / most.makespan_s - 1);
        double held = 0, all = 0;
        for (size_t k = 0; k < most.residence_count; k++) {
            const uint32_t mhz = most.residence[k].sm_mhz;
            all += (double)most.residence[k].ps;
            held += mhz >= 1450 && mhz < 2050 ? (double)most.residence[k].ps : 0; /* as printed: 1.5 to 2.0 GHz */
        }
        const char *variant = strchr(scenes.item[i]->w->name, '[');
        printf("\n    %-18s MaxFreq %5.1f kJ %6.1f s (%2.0f %% of it at 1.5..2.0 GHz), SweetSpot %+5.1f %% energy "
               "%+5.1f %% time",
               variant ? variant : "", most.energy_j * 1e-3, most.makespan_s, 100 * held / all, energy, time);
        FL_CHECK(most.process_count == 8, "%zu processes", most.process_count);
        if (i == 0) {
            FL_CHECK(held / all > 0.4, "MaxFreq is held at 1.5 to 2.0 GHz for %.0f %% of the time", 100 * held / all);
            FL_CHECK(energy < -10 && energy > -20 && fabs(time) < 3, "SweetSpot: energy %+.1f %%, time %+.1f %%",
                     energy, time);
        }
        if (variant && strstr(variant, "no wall"))
            FL_CHECK(held == 0, "no wall, nothing held");
        fl_run_result_free(&most);
        fl_run_result_free(&capped);
    }
    printf("\n    published          MaxFreq 170.9 kJ 2404.3 s, SweetSpot -15.1 %% energy  -1.4 %% time  ");
    fl_scenes_free(&scenes);
    fl_texts_free(&traces);
    fl_texts_free(&o.only);
    fl_experiment_free(&e);
}

FL_SUITE("published", {"A100: locks x power limits", test_measured_wall},
         {"eight programs on a laptop", test_contention})
