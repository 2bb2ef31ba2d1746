/* Logs of runs: which program each is of, which are set aside, and clocks that wander or are not in the log. */
#include "harness/advise/advise.h"
#include "harness/base/cli/cli.h"
#include "harness/chip/chip.h"
#include "harness/input/scene/scene.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- names ---- */

static void test_names(void) {
    static const struct {
        const char *path, *workload;
        double low, high;
        bool folder;
        const char *program;
        double named;
    } table[] = {
        {"d/TRPCage@1050.csv", NULL, 1050, 1050, false, "TRPCage", 1050},
        {"d/job05.csv", NULL, 1410, 1410, false, "job05", NAN},
        {"d/job_05-1410MHz.csv", NULL, 1400, 1400, false, "job_05", 1410},
        {"d/job1200-990.csv", NULL, 990, 990, false, "job1200", NAN}, /* 1200 is no clock of this run */
        {"run1410.txt", NULL, 1410, 1410, false, "program", NAN},
        {"default.csv", NULL, 1500, 1515, false, "program", NAN},
        {"locked1500.csv", NULL, 1485, 1485, false, "program", NAN}, /* one step off */
        {"w.1200.telemetry.csv.gz", NULL, 1200, 1200, false, "w", NAN},
        {"x@1410.csv", "train", 1410, 1410, false, "train", 1410},
        {"a/job1/nvidia-smi.csv", NULL, 1410, 1410, true, "job1", NAN},
        {"a/1410MHz/bert.csv", NULL, 1410, 1410, true, "bert", NAN},
        {"a/job2/run3.csv", NULL, 1410, 1410, true, "job2/3", NAN},
        {"d/job_1410MHz_run1.csv", NULL, 1410, 1410, false, "job", 1410}, /* the run of a program, and no part of it */
        {"d/job2-run-12.csv", NULL, 1410, 1410, false, "job2", NAN},
        {"x@7.csv", NULL, 1410, 1410, false, "x", NAN}, /* no clock is so low */
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        const fl_log_run run = {.sm_low_mhz = table[i].low, .sm_high_mhz = table[i].high};
        fl_head head = {0};
        if (table[i].workload)
            fl_head_set(&head, "workload", table[i].workload);
        char *program = fl_log_program(table[i].path, &head, &run, table[i].folder);
        FL_CHECK(program && !strcmp(program, table[i].program), "%s: '%s', expected '%s'", table[i].path, program,
                 table[i].program);
        free(program);
        fl_head_free(&head);
    }
}

static void test_clocks(void) {
    static const struct {
        const char *text;
        size_t logs;
        fl_status status;
        double first, last;
    } table[] = {
        {NULL, 2, FL_OK, NAN, NAN},           {"1410", 3, FL_OK, 1410, 1410},   {"1050,1410", 2, FL_OK, 1050, 1410},
        {"1050,1410", 3, FL_BAD_INPUT, 0, 0}, {"1050,", 1, FL_BAD_INPUT, 0, 0}, {"1.4GHz", 1, FL_BAD_INPUT, 0, 0},
        {"1410000", 1, FL_BAD_INPUT, 0, 0},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        double mhz[3];
        fl_diag d = {0};
        FL_CHECK(fl_log_clocks(table[i].text, table[i].logs, mhz, &d) == table[i].status, "%s: %s",
                 table[i].text ? table[i].text : "none", d.message);
        const double last = mhz[table[i].logs - 1];
        FL_CHECK(table[i].status || (isnan(table[i].first) ? isnan(mhz[0]) : mhz[0] == table[i].first), "%zu", i);
        FL_CHECK(table[i].status || (isnan(table[i].last) ? isnan(last) : last == table[i].last), "%zu", i);
    }
}

/* ---- logs ---- */

typedef struct log_of {
    const char *name;
    double mhz, seconds, watts;
    int gpus;        /* 0 = one, without a column for it */
    double step_mhz; /* every third reading is lower by it */
    double later;    /* the second half of the run is at this clock; 0 = no */
    double cut_s;    /* the log ends so early in the run; 0 = no */
    bool clockless;
} log_of;

#define PLAIN(file, clock, length, power)                                                                              \
    { .name = file, .mhz = clock, .seconds = length, .watts = power }

static void write_log(const log_of *l) {
    FILE *f = fopen(fl_temp_path(l->name), "w");
    CU_ASSERT_FATAL(f != NULL);
    fprintf(f, "timestamp, %s%spower.draw [W], utilization.gpu [%%]\n", l->gpus ? "index, " : "",
            l->clockless ? "" : "clocks.current.sm [MHz], ");
    const double end_s = l->cut_s > 0 ? 2 + l->cut_s : 4 + l->seconds;
    for (int k = 0; k * 0.2 < end_s; k++)
        for (int g = 0; g < (l->gpus ? l->gpus : 1); g++) {
            const double t = k * 0.2;
            const bool busy = t >= 2 && t < 2 + l->seconds;
            double mhz = busy ? l->mhz - (k % 3 == 0 ? l->step_mhz : 0) : 210;
            mhz = busy && l->later > 0 && t > 2 + l->seconds / 2 ? l->later : mhz;
            const int ms = (int)lround(t * 1000);
            fprintf(f, "2026/03/01 10:%02d:%02d.%03d, ", ms / 60000, ms / 1000 % 60, ms % 1000);
            if (l->gpus)
                fprintf(f, "%d, ", g);
            if (!l->clockless)
                fprintf(f, "%g MHz, ", mhz);
            fprintf(f, "%.2f W, %d %%\n", busy ? l->watts * (1 + 0.1 * g) + k % 5 * 0.1 : 50, busy ? 95 + k % 4 : 0);
        }
    fclose(f);
}

static fl_status open_logs(const char *const *name, size_t count, const fl_advise_options *o, fl_advise_subjects *s,
                           fl_diag *d) {
    fl_texts files = {0};
    fl_diag none = {0};
    for (size_t i = 0; i < count; i++) {
        char *path = strdup(fl_temp_path(name[i]));
        CU_ASSERT_FATAL(path != NULL && fl_texts_add(&files, path, &none) == FL_OK);
    }
    const fl_status status = fl_advise_open(&files, o, s, d);
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)files.item[i]);
    fl_texts_free(&files);
    return status;
}

static const fl_advise_options plain = {.device = -1};

/* Of a 1410 MHz run of 20 s. Whether the other log is used, and why not. */
static void test_set_aside(void) {
    static const struct {
        const char *what;
        log_of other;
        const char *why; /* NULL: it is used */
    } table[] = {
        {"a whole run", PLAIN("p@1005.csv", 1005, 24, 180), NULL},
        {"hardly faster", PLAIN("p@1005.csv", 1005, 19.8, 180), NULL},
        {"as slow as the clock", PLAIN("p@1005.csv", 1005, 28, 150), NULL},
        {"a lower clock that is faster", PLAIN("p@1005.csv", 1005, 18, 180), "a lower clock is not faster"},
        {"slower than the clock", PLAIN("p@1005.csv", 1005, 31, 180), "by more than the ratio of the clocks"},
        {"cut", {"p@1005.csv", 1005, 28, 180, .cut_s = 24}, "ends under load, while p@1410.csv ends idle"},
        {"wanders", {"p@1005.csv", 1005, 24, 180, .step_mhz = 15}, NULL},
        {"set anew",
         {"p@1005.csv", 1005, 24, 180, .later = 705},
         "the SM clock changed during the run, from 705 to 1005"},
        {"set a little lower", {"p@1005.csv", 1005, 24, 180, .later = 930}, "from 930 to 1005"},
        {"its clock by its name", {"p@1005.csv", 1005, 24, 180, .clockless = true}, NULL},
        {"no clock", {"p-low.csv", 1005, 24, 180, .clockless = true}, "no sm_mhz"},
        {"two runs at one clock", PLAIN("p@1410b.csv", 1410, 24, 250), "runs at one clock do not differ so much"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        const log_of top = PLAIN("p@1410.csv", 1410, 20, 250);
        const char *const names[] = {top.name, table[i].other.name};
        fl_advise_options o = plain;
        fl_advise_subjects s = {0};
        fl_advice a;
        fl_diag d = {0};
        o.workload = "p";
        write_log(&top);
        write_log(&table[i].other);
        const fl_status status = open_logs(names, 2, &o, &s, &d);
        if (table[i].why) {
            FL_CHECK(status == FL_BAD_INPUT && strstr(d.message, table[i].why), "%s: %d, %s", table[i].what, status,
                     d.message);
            continue;
        }
        FL_CHECK(status == FL_OK && s.count == 1 && !s.aside_count, "%s: %s", table[i].what, d.message);
        if (s.count != 1)
            continue;
        const fl_setting_clocks low = s.item[0].of[0].stated.at[0]; /* measured; those above are predicted */
        FL_CHECK(fl_advise_at(s.item[0].of, 1, s.item[0].ref, low, 0.5, &a, &d) == FL_OK &&
                     fabs(a.at.sm_mhz - 1005) <= 6 &&
                     fabs(a.slowdown.value - 100 * (table[i].other.seconds / 20 - 1)) < 2.1,
                 "%s: %g MHz, %g %% slower", table[i].what, a.at.sm_mhz, a.slowdown.value);
        /* of a clock that moved, the highest is set */
        FL_CHECK(
            s.item[0].locks == (table[i].other.step_mhz > 0) &&
                (!s.item[0].locks || (s.item[0].lock[0].set_mhz == 1005 && s.item[0].lock[0].ran_mhz == a.at.sm_mhz)),
            "%s: %zu locks", table[i].what, s.item[0].locks);
        fl_advise_close(&s);
    }
}

/* A third log decides which of two is wrong. */
static void test_third(void) {
    static const log_of log[] = {PLAIN("q@1410.csv", 1410, 20, 250), PLAIN("q@1200.csv", 1200, 21, 210),
                                 PLAIN("q@1005.csv", 1005, 15, 180)};
    static const log_of top[] = {PLAIN("q@1410.csv", 1410, 33, 250), PLAIN("q@1200.csv", 1200, 21, 210),
                                 PLAIN("q@1005.csv", 1005, 23, 180)};
    static const char *const names[] = {"q@1410.csv", "q@1200.csv", "q@1005.csv"};
    const struct {
        const log_of *log;
        const char *aside;
    } table[] = {{log, "q@1005.csv"}, {top, "q@1410.csv"}};
    for (size_t k = 0; k < COUNT(table); k++) {
        fl_advise_subjects s = {0};
        fl_diag d = {0};
        for (size_t i = 0; i < 3; i++)
            write_log(&table[k].log[i]);
        FL_CHECK(open_logs(names, 3, &plain, &s, &d) == FL_OK && s.count == 1, "%s", d.message);
        FL_CHECK(s.aside_count == 1 && !strncmp(s.aside[0], table[k].aside, strlen(table[k].aside)),
                 "%zu set aside: %s", s.aside_count, s.aside_count ? s.aside[0] : "");
        fl_advise_close(&s);
    }
}

/* Each program rests on its own logs; one clock gives no answer; GPUs of a log are apart. */
static void test_programs(void) {
    static const log_of log[] = {PLAIN("a@1410.csv", 1410, 20, 250),      PLAIN("a@1005.csv", 1005, 24, 180),
                                 PLAIN("b@1410.csv", 1410, 30, 200),      {"b@1005.csv", 1005, 31, 150, .step_mhz = 15},
                                 PLAIN("c@1005.csv", 1005, 10, 100),      {"d@1410.csv", 1410, 20, 250, .gpus = 2},
                                 {"d@1005.csv", 1005, 25, 170, .gpus = 2}};
    static const struct {
        const char *name, *file;
        size_t files, cases;
        int64_t gpu;
        double slowdown;
    } want[] = {{"a", "a@1005.csv", 2, 1, -1, 20},
                {"b", "b@1005.csv", 2, 1, -1, 3.33},
                {"c", "c@1005.csv", 1, 0, -1, NAN},
                {"d GPU 0", "d@1005.csv", 2, 1, 0, 25},
                {"d GPU 1", "d@1005.csv", 2, 1, 1, 25}};
    const char *names[COUNT(log)];
    mkdir(fl_temp_path("jobs"), 0777);
    for (size_t i = 0; i < COUNT(log); i++) {
        char path[64];
        log_of in_folder = log[i];
        snprintf(path, sizeof path, "jobs/%s", log[i].name);
        in_folder.name = path;
        names[i] = log[i].name;
        write_log(&log[i]);
        write_log(&in_folder);
    }
    static const char *const folder[] = {"jobs"};
    for (size_t way = 0; way < 2; way++) {
        fl_advise_subjects s = {0};
        fl_diag d = {0};
        FL_CHECK((way ? open_logs(folder, 1, &plain, &s, &d) : open_logs(names, COUNT(log), &plain, &s, &d)) == FL_OK &&
                     s.count == COUNT(want),
                 "%zu subjects, %s", s.count, d.message);
        for (size_t i = 0; i < s.count && i < COUNT(want); i++) {
            const fl_advise_subject *of = &s.item[i];
            fl_advice a = {.slowdown.value = NAN};
            FL_CHECK(!strcmp(of->name, want[i].name) && of->files == want[i].files && of->cases == want[i].cases &&
                         of->gpu == want[i].gpu && !of->cases == (of->why != NULL),
                     "%s: %zu files, %zu cases, GPU %d", of->name, of->files, of->cases, (int)of->gpu);
            bool own = false;
            for (size_t k = 0; k < of->files; k++)
                own |= strstr(of->file[k], want[i].file) != NULL;
            FL_CHECK(own, "%s does not rest on %s", of->name, want[i].file);
            if (of->cases)
                FL_CHECK(fl_advise(of->of, of->cases, of->ref, 0.5, 0.05, &a, &d) == FL_OK &&
                             fabs(a.slowdown.value - want[i].slowdown) < 1.5,
                         "%s: %g", of->name, a.slowdown.value);
            else
                FL_CHECK(of->next.sm_mhz == 1410, "%s: measure %g MHz", of->name, of->next.sm_mhz);
        }
        fl_advise_close(&s);
    }
    fl_advise_options device = plain;
    fl_advise_subjects s = {0};
    fl_diag d = {0};
    device.device = 1;
    FL_CHECK(open_logs(names + 5, 2, &device, &s, &d) == FL_OK && s.count == 1 && !strcmp(s.item[0].name, "d"), "%s",
             d.message);
    fl_advise_close(&s);
}

/* Forty programs at one clock: no number, with or without a platform. A majority that ends idle tells cut logs. */
static void test_one_clock(void) {
    enum { PROGRAMS = 6 };
    char name[PROGRAMS][16];
    const char *names[PROGRAMS];
    for (size_t i = 0; i < PROGRAMS; i++) {
        snprintf(name[i], sizeof name[i], "job%02zu.csv", i);
        names[i] = name[i];
        const log_of l = {name[i], 1410, 20 + (double)i, 150 + 20 * (double)i, .cut_s = i == 4 ? 9 : 0};
        write_log(&l);
    }
    for (size_t way = 0; way < 2; way++) {
        fl_advise_options o = plain;
        fl_advise_subjects s = {0};
        fl_diag d = {0};
        o.platform = way ? "a100" : NULL;
        FL_CHECK(open_logs(names, PROGRAMS, &o, &s, &d) == FL_OK && s.count == PROGRAMS && s.aside_count == 1, "%s",
                 d.message);
        for (size_t i = 0; i < s.count; i++)
            FL_CHECK(!s.item[i].cases && fabs(s.item[i].next.sm_mhz - (i == 4 ? 1410 : 990)) < 16, "%s: %zu, %g",
                     s.item[i].name, s.item[i].cases, s.item[i].next.sm_mhz);
        fl_advise_close(&s);
    }
}

static fl_advise_subject *two_settings(fl_advise_subject *of, fl_setting_clocks *at, fl_chip_guess *g, size_t count) {
    *of = (fl_advise_subject){.cases = 1, .ref = at[count - 1]};
    of->of[0] = (fl_advise_case){NULL, {at, g, count, true}};
    return of;
}

/* One setting for all, by hand: the sum of energies decides, and each bound holds. */
static void test_common(void) {
    fl_setting_clocks at[] = {{600, 877, 0}, {900, 877, 0}, {1200, 877, 0}};
    /* energies 80, 84, 100 J and 24, 26, 40 J; at 600 MHz the second one is 20 % slower */
    fl_chip_guess one[] = {{1.00, 80, 0, 0}, {1.00, 84, 0, 0}, {1, 100, 0, 0}},
                  two[] = {{1.20, 20, 0, 0}, {1.04, 25, 0, 0}, {1, 40, 0, 0}};
    fl_advise_subject item[3] = {0};
    two_settings(&item[0], at, one, 3);
    two_settings(&item[1], at, two, 3); /* the third has no answer */
    const fl_advise_subjects s = {.item = item, .count = 3};
    fl_setting_clocks c = {0};
    fl_advice a;
    double saving = 0;
    fl_diag d = {0};
    FL_CHECK(fl_advise_common(&s, 0.3, 0.05, &c, &saving, &d) == FL_OK && c.sm_mhz == 600 &&
                 fabs(saving - 100 * (1 - 104 / 140.0)) < 1e-9,
             "%g MHz, %g %%", c.sm_mhz, saving);
    FL_CHECK(fl_advise_common(&s, 0.05, 0.05, &c, &saving, &d) == FL_OK && c.sm_mhz == 900 &&
                 fabs(saving - 100 * (1 - 110 / 140.0)) < 1e-9,
             "%g MHz, %g %%", c.sm_mhz, saving);
    FL_CHECK(fl_advise_at(item[1].of, 1, item[1].ref, c, 0.05, &a, &d) == FL_OK && fabs(a.slowdown.value - 4) < 1e-9 &&
                 fabs(a.saving.value - 35) < 1e-9,
             "%g %%, %g %%", a.slowdown.value, a.saving.value);
    at[2].sm_mhz = 1230; /* what no two programs share */
    fl_setting_clocks other[] = {{1215, 877, 0}, {1245, 877, 0}};
    fl_chip_guess g[] = {{1, 50, 0, 0}, {1, 60, 0, 0}};
    two_settings(&item[1], other, g, 2);
    fl_setting_clocks low[] = {{300, 877, 0}, {450, 877, 0}};
    two_settings(&item[0], low, g, 2);
    FL_CHECK(fl_advise_common(&s, 0.3, 0.05, &c, &saving, &d) == FL_BAD_INPUT && strstr(d.message, "--common"), "%s",
             d.message);
}

FL_SUITE("advise_runs", {"names", test_names}, {"stated clocks", test_clocks}, {"set aside", test_set_aside},
         {"a third log", test_third}, {"programs", test_programs}, {"one clock", test_one_clock},
         {"common", test_common})
