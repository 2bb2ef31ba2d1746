/* The slope of performance against clock (SweetSpot, Eq. 6), the choice of alpha, and foldline fit policy sweetspot,
 * which makes them of measured rows and of sweeps that it runs itself. */
#include "harness/base/cli/cli.h"
#include "harness/fit/policy/inside.h"
#include "harness/input/scene/scene.h"
#include "models/math/math.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>
#include <unistd.h>

enum { POINTS_MAX = 16 };

static bool near(double a, double b) { return fabs(a - b) < 1e-12 * fmax(1, fabs(b)); }

static void test_fill(void) {
    /* By hand: against 2000 MHz, 10 s, 100 W. */
    fl_slope_point p[] = {{.mhz = 500, .time_s = 25, .power_w = 40},
                          {.mhz = 1000, .time_s = 12.5, .power_w = 50},
                          {.mhz = 1800, .time_s = 8, .power_w = 80},
                          {.mhz = 2000, .time_s = 10, .power_w = 100}};
    static const double performance[] = {0.4, 0.8, 1.25, 1}, power[] = {0.4, 0.5, 0.8, 1},
                        slope[] = {0.4 / 0.25, 0.45 / 0.4, -0.25 / 0.1};
    CU_ASSERT_FATAL(fl_slope_fill(p, 4) == FL_MODEL_OK);
    for (size_t i = 0; i < 4; i++) {
        FL_CHECK(near(p[i].performance, performance[i]) && near(p[i].power, power[i]) &&
                     near(p[i].efficiency, performance[i] / power[i]),
                 "%g MHz: %g, %g, %g", p[i].mhz, p[i].performance, p[i].power, p[i].efficiency);
        FL_CHECK(i == 3 ? isnan(p[i].slope) : near(p[i].slope, slope[i]), "%g MHz: slope %g", p[i].mhz, p[i].slope);
    }
    /* The unit of time does not matter, and performance in proportion to the clock has a slope of 1 everywhere. */
    fl_slope_point line[POINTS_MAX];
    for (size_t i = 0; i < POINTS_MAX; i++)
        line[i] = (fl_slope_point){
            .mhz = 210 + 15 * (double)(i * i), .time_s = 1e6 / (210 + 15 * (double)(i * i)), .power_w = 3};
    CU_ASSERT_FATAL(fl_slope_fill(line, POINTS_MAX) == FL_MODEL_OK);
    for (size_t i = 0; i + 1 < POINTS_MAX; i++)
        FL_CHECK(fabs(line[i].slope - 1) < 1e-9, "%g MHz: slope %g of a line", line[i].mhz, line[i].slope);
}

static void test_refused(void) {
    static const struct {
        fl_slope_point p[2];
        size_t count;
        const char *what;
    } rows[] = {
        {{{0}}, 0, "no points"},
        {{{.mhz = 500, .time_s = 1, .power_w = 1}, {.mhz = 500, .time_s = 1, .power_w = 1}}, 2, "a clock twice"},
        {{{.mhz = 600, .time_s = 1, .power_w = 1}, {.mhz = 500, .time_s = 1, .power_w = 1}}, 2, "descending clocks"},
        {{{.mhz = 500, .time_s = 0, .power_w = 1}}, 1, "no time"},
        {{{.mhz = 500, .time_s = 1, .power_w = -1}}, 1, "a negative power"},
        {{{.mhz = 500, .time_s = 1, .power_w = (double)NAN}}, 1, "a power that is not known"},
        {{{.mhz = 500, .time_s = (double)INFINITY, .power_w = 1}}, 1, "an endless time"},
        {{{.mhz = -500, .time_s = 1, .power_w = 1}}, 1, "a negative clock"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_slope_point p[2];
        memcpy(p, rows[i].p, sizeof p);
        FL_CHECK(fl_slope_fill(p, rows[i].count) == FL_MODEL_INVALID, "%s is taken", rows[i].what);
    }
    fl_slope_point one = {.mhz = 500, .time_s = 1, .power_w = 1};
    fl_sweet_spot spot;
    CU_ASSERT(fl_slope_fill(&one, 1) == FL_MODEL_OK);
    CU_ASSERT(fl_slope_choose(&one, 0, 0.05, 0.3, &spot) == FL_MODEL_INVALID);
    CU_ASSERT(fl_slope_choose(&one, 1, -0.1, 0.3, &spot) == FL_MODEL_INVALID);
    CU_ASSERT(fl_slope_choose(&one, 1, 1.1, 0.3, &spot) == FL_MODEL_INVALID);
    CU_ASSERT(fl_slope_choose(&one, 1, 0.05, (double)NAN, &spot) == FL_MODEL_INVALID);
    FL_CHECK(fl_slope_choose(&one, 1, 0.05, 0.3, &spot) == FL_MODEL_OK && !spot.found && spot.alpha == 1,
             "a ladder of one clock: alpha %g", spot.alpha);
}

static void test_choose(void) {
    /* Performances at 1000, 1250, 1500, 1750, 2000 MHz: a step of the clock is an eighth of the top. */
    static const struct {
        double performance[5], delta, epsilon;
        bool found;
        double alpha;
        const char *what;
    } rows[] = {
        {{0.5, 0.625, 0.75, 0.875, 1}, 0.05, 0.3, false, 1, "bound by compute: no clock qualifies"},
        {{0.5, 0.625, 0.75, 0.875, 1}, 0.5, 1.001, true, 0.5, "unless all of it may go"},
        {{1, 1, 1, 1, 1}, 0.05, 0.3, true, 0.5, "bound by memory: the lowest clock"},
        {{0.7, 0.9, 0.96, 0.99, 1}, 0.05, 0.3, true, 0.75, "a knee"},
        {{0.7, 0.9, 0.96, 0.99, 1}, 0.05, 0.2, true, 0.875, "a stricter slope: the next clock, at 0.08"},
        {{0.7, 0.9, 0.96, 0.99, 1}, 0.03, 0.3, true, 0.875, "a stricter performance"},
        {{0.7, 0.9, 0.96, 0.99, 1}, 0, 0.3, false, 1, "nothing may be lost"},
        {{0.9, 0.91, 0.92, 0.94, 1}, 0.05, 0.3, false, 1, "flat but too slow, then too steep"},
        {{0.7, 0.94, 0.94, 0.98, 1}, 0.05, 0.3, true, 0.875, "flat where it is still too slow does not count"},
        {{0.8, 0.97, 1.06, 1.04, 1}, 0.05, 0.3, true, 0.75, "the top clock is held back by a wall"},
        {{0.6, 0.8, 0.95, 0.98, 1}, 0.05, 0.24, true, 0.75, "both limits met exactly"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_slope_point p[5];
        fl_sweet_spot spot;
        for (size_t k = 0; k < 5; k++)
            p[k] = (fl_slope_point){.mhz = 1000 + 250 * (double)k, .time_s = 1 / rows[i].performance[k], .power_w = 50};
        CU_ASSERT_FATAL(fl_slope_fill(p, 5) == FL_MODEL_OK);
        const double ulp = 1e-12; /* the exact limits of the last row pass through quotients */
        CU_ASSERT_FATAL(fl_slope_choose(p, 5, rows[i].delta + ulp, rows[i].epsilon + ulp, &spot) == FL_MODEL_OK);
        FL_CHECK(spot.found == rows[i].found && spot.alpha == rows[i].alpha && p[spot.index].mhz == 2000 * spot.alpha,
                 "%s: alpha %g, expected %g", rows[i].what, spot.alpha, rows[i].alpha);
    }
}

static void test_median(void) {
    double odd[] = {0.9, 0.5, 0.7}, even[] = {1, 0.4, 0.8, 0.6}, one[] = {0.3};
    CU_ASSERT(fl_slope_median(odd, 3) == 0.7);
    CU_ASSERT(near(fl_slope_median(even, 4), 0.7));
    CU_ASSERT(fl_slope_median(one, 1) == 0.3);
    CU_ASSERT(isnan(fl_slope_median(one, 0)));
}

/* ---- sweeps -------------------------------------------------------------------------------------------------------
 */

static const fl_slope_point *at_clock(const fl_spot *s, double mhz) {
    for (size_t i = 0; i < s->count; i++)
        if (s->point[i].mhz == mhz)
            return &s->point[i];
    return NULL;
}

static void test_measured(void) {
    static const char text[] = "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n"
                               "one,,1000,800,,4,50,\n"
                               "one,,500,800,,8,30,\n"    /* repeated: */
                               "one,,500,800,,6,50,\n"    /* 7 s, 270 J */
                               "one,,500,400,,70,10,\n"   /* another memory clock */
                               "one,,1000,800,90,5,40,\n" /* a limit below none */
                               "two,a,500,,150,2,100,\n"
                               "two,a,750,,150,1,100,\n"
                               "two,b,500,,150,3,60,\n"
                               "two,b,500,,100,9,50,\n"
                               "two,b,750,,150,2,80,\n"
                               "two,a,900,,150,1,1,\n"; /* b was not measured there */
    char path[512];
    fl_diag d = {0};
    fl_spots all = {0};
    snprintf(path, sizeof path, "%s", fl_temp_text("sweep.csv", text));
    const fl_status s = fl_spots_measured(path, &(fl_texts){0}, 0, &all, &d);
    FL_CHECK(s == FL_OK && all.count == 2, "%s", d.message);
    if (s == FL_OK && all.count == 2) {
        const fl_slope_point *p;
        FL_CHECK(strcmp(all.item[0].name, "one") == 0 && all.item[0].count == 2, "%zu clocks", all.item[0].count);
        FL_CHECK((p = at_clock(&all.item[0], 500)) && near(p->time_s, 7) && near(p->power_w, 270.0 / 7), "repeated");
        FL_CHECK((p = at_clock(&all.item[0], 1000)) && near(p->time_s, 4) && near(p->power_w, 50), "no limit");
        FL_CHECK(all.item[1].count == 2, "%zu clocks", all.item[1].count);
        FL_CHECK((p = at_clock(&all.item[1], 500)) && near(p->time_s, 5) && near(p->power_w, 76), "two kernels");
        FL_CHECK((p = at_clock(&all.item[1], 750)) && near(p->time_s, 3) && near(p->power_w, 260.0 / 3), "at 750");
    }
    fl_spots_free(&all);

    const char *names[] = {"two", "thre"};
    fl_texts only = {names, 1, 2};
    CU_ASSERT(fl_spots_measured(path, &only, 0, &all, &d) == FL_OK && all.count == 1 &&
              strcmp(all.item[0].name, "two") == 0);
    fl_spots_free(&all);
    only.count = 2;
    CU_ASSERT(fl_spots_measured(path, &only, 0, &all, &d) == FL_BAD_INPUT && strstr(d.message, "no workload 'thre'"));
    fl_spots_free(&all);
    only = (fl_texts){names, 0, 0};
    CU_ASSERT(fl_spots_measured(path, &only, 400, &all, &d) == FL_OK && all.count == 2 && all.item[0].count == 1 &&
              all.item[0].point[0].time_s == 70);
    fl_spots_free(&all);
    CU_ASSERT(fl_spots_measured(path, &only, 123, &all, &d) == FL_BAD_INPUT);
    fl_spots_free(&all);
    fl_temp_remove();
}

static void test_simulated(void) {
    fl_scene_options o = {.platform = "rtx4070-laptop",
                          .programs = FL_ROOT "/traces/samples/sweetspot8.programs.csv",
                          .seconds = 5,
                          .node.wall = "off"};
    fl_scenes scenes;
    fl_spots all = {0}, again = {0};
    fl_diag d = {0};
    fl_status s = fl_scenes_open(&o, &(fl_texts){0}, &scenes, &d);
    if (!s)
        s = fl_spots_simulated(&scenes, 0, 1, &all, &d);
    if (!s)
        s = fl_spots_simulated(&scenes, 0, 4, &again, &d);
    FL_CHECK(s == FL_OK && all.count == 8 && again.count == 8, "%s", d.message);
    if (s)
        exit(1);
    double alpha[8], memory = NAN, compute = NAN;
    for (size_t i = 0; i < 8; i++) {
        fl_spot *w = &all.item[i];
        FL_CHECK(w->count == 152, "%s: %zu clocks", w->name, w->count);
        FL_CHECK(again.item[i].count == w->count &&
                     memcmp(again.item[i].point, w->point, w->count * sizeof *w->point) == 0,
                 "%s: the number of threads shows", w->name);
        CU_ASSERT_FATAL(fl_slope_fill(w->point, w->count) == FL_MODEL_OK);
        CU_ASSERT_FATAL(fl_slope_choose(w->point, w->count, 0.05, 0.3, &w->choice) == FL_MODEL_OK);
        for (size_t k = 0; k + 1 < w->count; k++) /* without a wall a higher clock never costs time */
            FL_CHECK(w->point[k].slope >= -1e-9 && w->point[k].power_w < w->point[k + 1].power_w, "%s: %g at %g MHz",
                     w->name, w->point[k].slope, w->point[k].mhz);
        alpha[i] = w->choice.alpha;
        memory = strcmp(w->name, "bandwidthTest") == 0 ? w->choice.alpha : memory;
        compute = strcmp(w->name, "cudaTensorCoreGemm") == 0 ? w->choice.alpha : compute;
    }
    FL_CHECK(memory < 0.8 && compute == 1, "alpha %g of a copy, %g of a matrix product", memory, compute);
    size_t published = 0; /* SweetSpot, 3.4: most of the eight lie at 0.7 to 0.8 */
    for (size_t i = 0; i < 8; i++)
        published += alpha[i] > 0.695 && alpha[i] < 0.805;
    FL_CHECK(published >= 5, "%zu of eight sweet spots at 0.7 to 0.8", published);
    printf(" median alpha without a wall %.3f ", fl_slope_median(alpha, 8));
    fl_spots_free(&all);
    fl_spots_free(&again);
    fl_scenes_free(&scenes);
}

/* Measured: memory-bound work has a sweet spot well below work that is bound by compute. */
static void test_recorded(void) {
    char path[512];
    const char *data = getenv("FOLDLINE_DATA");
    snprintf(path, sizeof path, "%s/sweeps/a100-pcie-lock-x-cap.csv", data ? data : "");
    if (!data || access(path, R_OK) != 0) {
        printf("skipped: no sweeps/a100-pcie-lock-x-cap.csv (set FOLDLINE_DATA) ");
        return;
    }
    fl_spots all = {0};
    fl_diag d = {0};
    const fl_status s = fl_spots_measured(path, &(fl_texts){0}, 0, &all, &d);
    FL_CHECK(s == FL_OK && all.count > 0, "%s", d.message);
    for (size_t i = 0; i < all.count; i++) {
        fl_spot *w = &all.item[i];
        CU_ASSERT_FATAL(fl_slope_fill(w->point, w->count) == FL_MODEL_OK);
        CU_ASSERT_FATAL(fl_slope_choose(w->point, w->count, 0.05, 0.3, &w->choice) == FL_MODEL_OK);
        printf("\n    %-12s alpha %.3f%s", w->name, w->choice.alpha, w->choice.found ? "" : ": no clock qualifies");
        if (strcmp(w->name, "babelstream") == 0)
            FL_CHECK(w->choice.found && w->choice.alpha < 0.8, "a stream of memory: alpha %g", w->choice.alpha);
        if (strcmp(w->name, "pi-solver") == 0)
            FL_CHECK(!w->choice.found && w->choice.alpha == 1, "bound by compute: alpha %g", w->choice.alpha);
    }
    printf("  ");
    fl_spots_free(&all);
}

/* The program itself. */
static int ask(const char *options, char *out, size_t size) {
    char line[1024];
    snprintf(line, sizeof line, "%s fit policy sweetspot %s 2>&1", FL_PROGRAM, options);
    FILE *f = popen(line, "r");
    const size_t got = f ? fread(out, 1, size - 1, f) : 0;
    out[got] = 0;
    const int status = f ? pclose(f) : -1;
    return status < 0 ? -1 : status >> 8;
}

static void test_program(void) {
    static const char text[] = "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\n"
                               "flat,,1000,,,10.2,50,\nflat,,1500,,,10,70,\nflat,,2000,,,10,100,\n"
                               "steep,,1000,,,20,50,\nsteep,,1500,,,13.4,70,\nsteep,,2000,,,10,100,\n";
    char path[512], csv[512], options[1200], out[8192];
    snprintf(path, sizeof path, "%s", fl_temp_text("sweep.csv", text));
    snprintf(csv, sizeof csv, "%s", fl_temp_path("out.csv"));
    snprintf(options, sizeof options, "%s -o %s --each", path, csv);
    FL_CHECK(ask(options, out, sizeof out) == 0 && strstr(out, "median of alpha over 2 workloads: 0.750") &&
                 strstr(out, "none qualifies") && strstr(out, "for 1 of 2 workloads no clock qualifies"),
             "%s", out);
    size_t size = 0;
    char *table = fl_temp_slurp(csv, &size);
    FL_CHECK(table && strstr(table, "\nflat,1000,10.2,50,") && strstr(table, ",1,1\nflat,1500,10,70,1,0.7,") &&
                 strstr(table, "\nsteep,2000,10,100,1,1,1,n/a,1,0\n"),
             "%s", table ? table : "no file");
    free(table);
    snprintf(options, sizeof options, "%s --workload flat --json --delta 0.01", path);
    FL_CHECK(ask(options, out, sizeof out) == 0 && strstr(out, "\"alpha_median\":\t0.75"), "%s", out);
    snprintf(options, sizeof options, "%s --step 600", path); /* of three clocks two remain: 2000 and 1000 */
    FL_CHECK(ask(options, out, sizeof out) == 0 && strstr(out, "flat           2     2000        1000  0.500"), "%s",
             out);
    FL_CHECK(ask("", out, sizeof out) == 2 && strstr(out, "expected --platform"), "%s", out);
    FL_CHECK(ask("/nonexistent", out, sizeof out) == 2, "%s", out);
    snprintf(options, sizeof options, "%s --delta 2", path);
    FL_CHECK(ask(options, out, sizeof out) == 2, "%s", out);
    /* A slowdown of a hundred is the file's fault, not the system's. */
    snprintf(path, sizeof path, "%s",
             fl_temp_text("slow.csv", "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,"
                                      "energy_j\nc,,600,,,15,85,\nc,,900,,,11.5,115,\n"
                                      "c,,1200,,,1055,1,\nc,,1500,,,9.4,215,\n"));
    snprintf(options, sizeof options, "%s --platform generic --json", path);
    FL_CHECK(ask(options, out, sizeof out) == 2 && strstr(out, "too large for the simulator's integers"), "%s", out);
    fl_temp_remove();
}

FL_SUITE("slope", {"Eq. 6", test_fill}, {"refused", test_refused}, {"choice", test_choose}, {"median", test_median},
         {"measured rows", test_measured}, {"simulated", test_simulated}, {"program", test_program},
         {"recorded", test_recorded})
