/* One rule for all that model a sweep: what a fit says of every clock of a ladder, and what it leaves out. */
#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/chip/chip.h"
#include "harness/input/scene/scene.h"
#include "models/chip/chip.h"
#include "sim/node/node.h"
#include "sim/oracle/oracle.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <cjson/cJSON.h>
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n"
/* generic: 300 to 1500 MHz by 100, memory at 500 and 1000 MHz */
#define LINE(w, sm, mem, time, power) w ",," #sm "," #mem ",," #time "," #power ",\n"
#define SWEEP                                                                                                          \
    HEADER LINE("a", 600, 1000, 2.4, 80) LINE("a", 900, 1000, 1.7, 100) LINE("a", 1200, 1000, 1.35, 140)               \
        LINE("b", 600, 1000, 1.2, 90) LINE("b", 900, 1000, 1.1, 110) LINE("b", 1200, 1000, 1.05, 150)

static fl_status open_scene(const char *text, const char *platform, const char *only, fl_scenes *s, fl_diag *d) {
    const fl_texts none = {0};
    fl_scene_options o = {.platform = platform, .sweep = fl_temp_text("s.csv", text), .model = "fitted"};
    if (only)
        fl_texts_add(&o.only, only, d);
    const fl_status status = fl_scenes_open(&o, &none, s, d);
    fl_texts_free(&o.only);
    return status;
}

/* Runs the scene at a clock. */
static fl_run_result at(const fl_scene *c, double sm_mhz) {
    fl_diag d = {0};
    fl_run_options o = {
        .w = c->w, .rates = c->rates, .spec = &c->platform.node, .facts = &c->facts, .first_sm_mhz = sm_mhz};
    fl_run_result r = {0};
    FL_CHECK(fl_run(&o, &r, &d) == FL_OK, "%s", d.message);
    return r;
}

/* What was measured stays; between, the time falls with the clock and is stated with a deviation; beyond, it may be run
 * but nobody chooses it, and a note says so. */
static void test_ladder(void) {
    fl_scenes s = {0};
    fl_diag d = {0};
    FL_CHECK(open_scene(SWEEP, "generic", NULL, &s, &d) == FL_OK, "%s", d.message);
    CU_ASSERT_FATAL(s.count == 2);
    const fl_scene *a = s.item[0];
    static const double mhz[] = {600, 700, 900, 1100, 1200}, time[] = {2.4, 0, 1.7, 0, 1.35},
                        power[] = {80, 0, 100, 0, 140};
    double before = INFINITY;
    for (size_t i = 0; i < sizeof mhz / sizeof *mhz; i++) {
        fl_run_result r = at(a, mhz[i]);
        fl_chip_guess g = {0};
        FL_CHECK(fl_stated_at(&a->stated, (fl_setting_clocks){mhz[i], 1000, 0}, &g), "%g MHz is not stated", mhz[i]);
        /* What was measured is as sure as measurements repeat; between, the law's deviation counts. */
        FL_CHECK(g.time_sd_pct > 0 && (time[i] > 0) == (fabs(g.time_sd_pct - 100 * FL_ROW_NOISE_TIME) < 1e-9) &&
                     g.basis == FL_CHIP_OWN_LAWS,
                 "%g MHz: +- %g %%", mhz[i], g.time_sd_pct);
        if (time[i] > 0)
            FL_CHECK(fabs(r.makespan_s / time[i] - 1) < 1e-4 && fabs(r.mean_power_w / power[i] - 1) < 1e-4,
                     "%g MHz: %g s, %g W", mhz[i], r.makespan_s, r.mean_power_w);
        FL_CHECK(r.makespan_s < before, "%g MHz: %g s", mhz[i], r.makespan_s);
        before = r.makespan_s;
        fl_run_result_free(&r);
    }
    fl_run_result beyond = at(a, 300);
    FL_CHECK(beyond.makespan_s > 2.4, "300 MHz: %g s", beyond.makespan_s);
    fl_run_result_free(&beyond);
    fl_choice *choice = NULL;
    size_t count = 0;
    FL_CHECK(fl_oracle_choices(a->w, &a->platform.node, &choice, &count, &d) == FL_OK && count == 7 &&
                 choice[0].sm_mhz == 600 && choice[count - 1].sm_mhz == 1200,
             "%zu choices", count);
    free(choice);
    FL_CHECK(a->note_count == 1 && strstr(a->note[0], "6 of 13 clocks") && strstr(a->note[0], "600 to 1200 MHz") &&
                 strstr(a->note[0], "driver's default"),
             "%s", a->note_count ? a->note[0] : "no note");
    CU_ASSERT(a->w->model_time_mape_pct > 0 && a->w->model_power_mape_pct > 0);
    fl_scenes_free(&s);
    /* The chip is fitted over the whole sweep, whichever workload is asked for. */
    fl_scenes one = {0};
    FL_CHECK(open_scene(SWEEP, "generic", NULL, &s, &d) == FL_OK &&
                 open_scene(SWEEP, "generic", "b", &one, &d) == FL_OK,
             "%s", d.message);
    fl_chip_guess x = {0}, y = {0};
    if (s.count == 2 && one.count == 1)
        FL_CHECK(fl_stated_at(&s.item[1]->stated, (fl_setting_clocks){700, 1000, 0}, &x) &&
                     fl_stated_at(&one.item[0]->stated, (fl_setting_clocks){700, 1000, 0}, &y) &&
                     memcmp(&x, &y, sizeof x) == 0,
                 "%.17g and %.17g s", x.time_s, y.time_s);
    fl_scenes_free(&s);
    fl_scenes_free(&one);
}

/* Memory clocks that were measured are all there to be set; one that was not is not. */
static void test_memories(void) {
    static const char *const text =
        HEADER LINE("a", 600, 500, 3.0, 70) LINE("a", 900, 500, 2.6, 85) LINE("a", 1200, 500, 2.5, 110)
            LINE("a", 600, 1000, 2.4, 80) LINE("a", 900, 1000, 1.7, 100) LINE("a", 1200, 1000, 1.35, 140);
    fl_scenes s = {0};
    fl_diag d = {0};
    fl_choice *choice = NULL;
    size_t count = 0, low = 0;
    FL_CHECK(open_scene(text, "generic", NULL, &s, &d) == FL_OK, "%s", d.message);
    if (s.count)
        FL_CHECK(fl_oracle_choices(s.item[0]->w, &s.item[0]->platform.node, &choice, &count, &d) == FL_OK, "%s",
                 d.message);
    for (size_t i = 0; i < count; i++) {
        fl_static_point p;
        low += choice[i].mem_mhz == 500;
        FL_CHECK(fl_static_run(s.item[0]->w, s.item[0]->rates, &s.item[0]->platform.node, &s.item[0]->facts, &choice[i],
                               &p, &d) == FL_OK,
                 "%s", d.message);
        if (choice[i].mem_mhz == 500 && choice[i].sm_mhz == 900)
            FL_CHECK(llabs(p.makespan_ps - 2600000000000) < 1000000000, "%lld ps", (long long)p.makespan_ps);
    }
    FL_CHECK(count == 14 && low == 7, "%zu choices, %zu at 500 MHz", count, low);
    free(choice);
    fl_scenes_free(&s);
    FL_CHECK(open_scene(SWEEP, "generic", NULL, &s, &d) == FL_OK && s.item[0]->platform.node.device[0].mem_count == 1,
             "%s", d.message);
    fl_scenes_free(&s);
    FL_CHECK(open_scene(HEADER LINE("a", 600, 810, 3, 70) LINE("a", 900, 810, 2, 90), "generic", NULL, &s, &d) ==
                     FL_BAD_INPUT &&
                 strstr(d.message, "810"),
             "%s", d.message);
}

/* The generic platform with a calibration of SWEEP. */
static void calibrate(const char *path) {
    cJSON *tree = NULL;
    fl_sweep_chip c;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_sweep_chip_open(&c, fl_temp_text("k.csv", SWEEP), NULL, &d) == FL_OK &&
                    fl_chip_fit(c.rows.row, c.rows.count, FL_CHIP_BEST, c.chip) == FL_MODEL_OK &&
                    fl_json_read(FL_ROOT "/models/platforms/generic.json", &tree, &d) == FL_OK);
    cJSON_AddItemToObject(tree, "calibration", fl_chip_to_json(c.chip, true));
    cJSON_AddStringToObject(cJSON_GetObjectItem(tree, "notes"), "calibration", "fitted");
    CU_ASSERT_FATAL(fl_json_write(path, tree, &d) == FL_OK);
    cJSON_Delete(tree);
    fl_sweep_chip_free(&c);
}

/* Repeats scatter by less than a tenth; what scatters more is something else. */
static void test_twice(void) {
    fl_scenes s = {0};
    fl_diag d = {0};
    FL_CHECK(open_scene(SWEEP LINE("a", 600, 1000, 2.5, 80), "generic", NULL, &s, &d) == FL_OK, "%s", d.message);
    fl_chip_guess g = {0};
    FL_CHECK(s.count && fl_stated_at(&s.item[0]->stated, (fl_setting_clocks){600, 1000, 0}, &g) &&
                 fabs(g.time_s - 2.45) < 1e-9,
             "%g s", g.time_s);
    fl_scenes_free(&s);
    FL_CHECK(open_scene(SWEEP LINE("a", 600, 1000, 2.7, 80), "generic", NULL, &s, &d) == FL_BAD_INPUT && d.line == 8,
             "%s", d.message);
}

/* Where no chip can be fitted a platform's calibration does; rows outside it teach nothing. */
static void test_calibrated(void) {
    static const char one[] = HEADER LINE("c", 900, 1000, 1.5, 105);
    static const char both[] = HEADER LINE("c", 900, 1000, 1.5, 105) LINE("c", 300, 1000, 30, 20);
    static const char outside[] = HEADER LINE("c", 300, 1000, 30, 20);
    char path[512];
    fl_scenes s = {0}, t = {0};
    fl_diag d = {0};
    FL_CHECK(open_scene(one, "generic", NULL, &s, &d) == FL_BAD_INPUT && strstr(d.message, "second clock"), "%s",
             d.message);
    snprintf(path, sizeof path, "%s", fl_temp_path("dev.json"));
    calibrate(path);
    fl_chip_guess x = {0}, y = {0};
    FL_CHECK(open_scene(one, path, NULL, &s, &d) == FL_OK &&
                 fl_stated_at(&s.item[0]->stated, (fl_setting_clocks){1200, 1000, 0}, &x) && x.time_sd_pct > 0 &&
                 x.time_s < 1.5,
             "%s %g s +- %g %%", d.message, x.time_s, x.time_sd_pct);
    FL_CHECK(open_scene(both, path, NULL, &t, &d) == FL_OK &&
                 fl_stated_at(&t.item[0]->stated, (fl_setting_clocks){1200, 1000, 0}, &y) &&
                 memcmp(&x, &y, sizeof x) == 0 && t.item[0]->note_count && strstr(t.item[0]->note[0], "1 rows outside"),
             "%s %.17g and %.17g s", d.message, x.time_s, y.time_s);
    fl_scenes_free(&s);
    fl_scenes_free(&t);
    FL_CHECK(open_scene(outside, path, NULL, &s, &d) == FL_BAD_INPUT && strstr(d.message, "none of its settings"), "%s",
             d.message);
}

/* Deviations of a sweep that somebody predicted are read, written and used. */
static void test_columns(void) {
    static const char text[] = "workload,sm_mhz,mem_mhz,time_s,power_w,time_sd_pct,power_sd_pct\na,600,1000,2.4,80,1.5,"
                               "2.5\na,1200,1000,1.35,140,,\n";
    const fl_texts none = {0};
    fl_sweep s = {0}, again = {0};
    fl_scenes scenes = {0};
    fl_diag d = {0};
    FL_CHECK(fl_sweep_read(fl_temp_text("p.csv", text), &s, NULL, &d) == FL_OK && s.rows[0].time_sd_pct == 1.5 &&
                 s.rows[0].power_sd_pct == 2.5 && isnan(s.rows[1].time_sd_pct),
             "%s", d.message);
    FL_CHECK(fl_sweep_write(fl_temp_path("q.csv"), &s, &d) == FL_OK &&
                 fl_sweep_read(fl_temp_path("q.csv"), &again, NULL, &d) == FL_OK && again.rows[0].time_sd_pct == 1.5 &&
                 isnan(again.rows[1].power_sd_pct),
             "%s", d.message);
    fl_sweep_free(&s);
    fl_sweep_free(&again);
    const fl_scene_options o = {.platform = "generic", .sweep = fl_temp_path("p.csv")};
    fl_chip_guess g = {0};
    FL_CHECK(fl_scenes_open(&o, &none, &scenes, &d) == FL_OK &&
                 fl_stated_at(&scenes.item[0]->stated, (fl_setting_clocks){600, 1000, 0}, &g) && g.time_sd_pct == 1.5,
             "%s %g", d.message, g.time_sd_pct);
    fl_scenes_free(&scenes);
    FL_CHECK(fl_sweep_read(fl_temp_text("n.csv", "workload,sm_mhz,time_s,power_w,time_sd_pct\na,600,2,80,-1\n"), &s,
                           NULL, &d) == FL_BAD_INPUT &&
                 d.line == 2,
             "%s", d.message);
}

/* A caller without a count of rows left out gets a refusal, with line and column, of a value beyond any GPU. */
static void test_units(void) {
    fl_sweep s = {0};
    fl_sweep_chip c = {0};
    fl_diag d = {0};
    const char *file = fl_temp_text("k.csv", "workload,sm_mhz,time_s,power_w\na,600,2,80\na,1200000,1,150\n");
    FL_CHECK(fl_sweep_read(file, &s, NULL, &d) == FL_BAD_INPUT && d.line == 3 && d.column == 3 &&
                 strstr(d.message, "as kHz, a factor of 1000, it would be 1200"),
             "%lld:%lld: %s", (long long)d.line, (long long)d.column, d.message);
    fl_fit_rows rows = {0};
    const char *of[] = {
        fl_temp_text("k.csv", "workload,sm_mhz,time_s,power_w\na,600,2,80\na,1200000,1,150\na,900,1,90\n")};
    const fl_texts files = {.item = of, .count = 1};
    FL_CHECK(fl_fit_rows_read(&files, &(fl_texts){0}, &rows, &d) == FL_OK && rows.count == 2 && rows.lefts == 1 &&
                 strstr(rows.left[0], "k.csv: 1 of 3 rows that contradict"),
             "%s", d.message);
    fl_fit_rows_free(&rows);
    of[0] = fl_temp_text("ghz.csv", "workload,sm_mhz,time_s,power_w\na,0.6,2,80\na,1.2,1,150\n");
    FL_CHECK(fl_sweep_chip_open(&c, of[0], NULL, &d) == FL_BAD_INPUT && d.line == 3 && d.column == 3 &&
                 strstr(d.message, "as GHz, a factor of 1000, it would be 1200"),
             "%lld:%lld: %s", (long long)d.line, (long long)d.column, d.message);
}

FL_SUITE("sweep_chip", {"units", test_units}, {"ladder", test_ladder}, {"memories", test_memories},
         {"calibrated", test_calibrated}, {"twice", test_twice}, {"columns", test_columns})
