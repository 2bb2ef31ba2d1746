/* MF-GPOEO as released, the course over a GPU made by hand: what is set and traced when, from the first gate to
 * monitoring and a change of phase. Times are counted from the rules; every set is in the texts. */
#include "tests/support/mfgpoeo_node.h"

#include <stdarg.h>

static const mx_kernel loop[] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}};
static const mx_kernel other[] = {{10, 0, 900, 50}, {11, 0, 400, 20}, {12, 0, 1500, 100}};

static void use(mx_node *n, const mx_kernel *kernels, uint32_t count) {
    n->gpu[0].kernel = kernels;
    n->gpu[0].kernel_count = count;
}

static mx_node *open_loop(const char *const *settings, double sm_share, double mem_share) {
    mx_node *n = mx_open(&fl_policy_mfgpoeo, 1, settings);
    use(n, loop, 4);
    n->gpu[0].sm_share = sm_share;
    n->gpu[0].mem_share = mem_share;
    return n;
}

/* ---- a course as text ---- */

typedef struct course {
    char text[4096];
    size_t used;
} course;

static void add(course *c, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int wrote = vsnprintf(c->text + c->used, sizeof c->text - c->used, format, list);
    va_end(list);
    c->used += wrote > 0 ? (size_t)wrote : 0;
    if (c->used >= sizeof c->text)
        c->used = sizeof c->text - 1;
}

/* Every step that sets something: its time, then sm and mem with their MHz (* the default), lim a reset of the power
 * limit, + and - the records. */
static void step(mx_node *n, course *c) {
    mx_step(n);
    static const char *const name[FL_GPU_CONTROL_COUNT] = {[FL_SET_SM_MHZ] = "sm", [FL_SET_MEM_MHZ] = "mem"};
    bool sets = false;
    for (int k = 0; k < FL_GPU_CONTROL_COUNT; k++) {
        const fl_decided *d = &n->decision->gpu[0][k];
        if (!d->set)
            continue;
        if (!sets)
            add(c, "%.1f", mx_now_s(n));
        sets = true;
        if (k == FL_SET_RECORDS)
            add(c, " %s", d->value > 0 ? "+" : "-");
        else if (k == FL_SET_POWER_LIMIT_W)
            add(c, d->value == FL_DEFAULT ? " lim" : " lim%g", d->value);
        else if (d->value == FL_DEFAULT)
            add(c, " %s*", name[k]);
        else
            add(c, " %s%g", name[k], d->value);
    }
    if (sets)
        add(c, "; ");
}

static void until(mx_node *n, course *c, double seconds) {
    while (mx_now_s(n) < seconds)
        step(n, c);
}

typedef struct change { /* of what runs, from the step after that time on */
    double at_s;
    const mx_kernel *kernel; /* NULL: as before */
    uint32_t count;          /* 0: idle */
    double util_gpu;         /* 0: as before */
    double stretch;          /* of kernel times; 0: as before */
} change;
#define END                                                                                                            \
    { .at_s = 0 }

typedef struct course_row {
    const char *name;
    double sm_share, mem_share, util_gpu, util_mem;
    const change *change; /* NULL: none */
    double until_s;
    const char *text;
    const char *const *settings;
    double reach_mhz; /* 0: 2055 */
} course_row;

static mx_node *run_course(const course_row *r, course *c) {
    mx_node *n = open_loop(r->settings, r->sm_share, r->mem_share);
    c->used = 0;
    c->text[0] = 0;
    n->gpu[0].util_gpu = r->util_gpu;
    n->gpu[0].util_mem = r->util_mem;
    n->gpu[0].reach_mhz = r->reach_mhz > 0 ? r->reach_mhz : 2055;
    for (const change *k = r->change; k && k->at_s > 0; k++) {
        until(n, c, k->at_s - 0.05);
        if (k->kernel)
            use(n, k->kernel, k->count);
        if (k->util_gpu > 0)
            n->gpu[0].util_gpu = k->util_gpu;
        if (k->stretch > 0)
            n->gpu[0].stretch = k->stretch;
    }
    until(n, c, r->until_s);
    FL_CHECK(fl_instance_counts_of(n->in).faults == 0 && fl_instance_counts_of(n->in).snapped == 0, "%s: faults",
             r->name);
    return n;
}

static void check_courses(const course_row *row, size_t rows) {
    for (size_t i = 0; i < rows; i++) {
        course c;
        mx_close(run_course(&row[i], &c));
        FL_CHECK(strcmp(c.text, row[i].text) == 0, "%s:\n      %s\n      expected\n      %s", row[i].name, c.text,
                 row[i].text);
    }
}
#define CHECK_COURSES(rows) check_courses(rows, sizeof(rows) / sizeof *(rows))

/* Thirty gates of 0.4 s; four windows of 4 s after a gate each; a window thrown away, the database's, and one that
 * agrees with it, each after a reset, 2 s and a gate, and with 2 s between. */
#define LIMIT "0.0 lim -; "
#define BASE LIMIT "29.6 lim; 32.0 +; 36.0 -; 38.0 lim; 40.4 +; 44.4 -; 46.4 lim; 48.8 +; "

/* ---- courses 4 and 5 ---- */

static void test_memory(void) {
    static const char *const no_memory[] = {"memory", "0", NULL};
    static const change at_last[] = {{.at_s = 53, .stretch = 0.96}, {.at_s = 60.3, .stretch = 1.1}, END};
    static const course_row row[] = {
        {"a lower clock that loses at last", 0, 0, 90, 19, at_last, 66,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 -; 60.6 +; 64.6 mem* -; 66.0 +; ", NULL, 0},
        {"memory in use", 0.5, 0, 90, 20.5, NULL, 54, BASE "52.8 sm1980 -; ", NULL, 0},
        {"memory idle", 0.5, 0, 90, 19, NULL, 69,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 mem810 -; 63.6 +; 67.6 sm1425 -; 69.0 +; ", NULL, 0},
        {"nearly in use", 0.5, 0, 90, 20, NULL, 69,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 mem810 -; 63.6 +; 67.6 sm1785 -; 69.0 +; ", NULL, 0},
        {"a lower clock costs too much", 0.5, 0.04, 90, 19, NULL, 63,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 mem* -; 61.6 +; ", NULL, 0},
        {"the second costs too much: the loss before", 0.5, 0.01, 90, 19, NULL, 69,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 mem810 -; 63.6 +; 67.6 sm1425 mem5001 -; 69.0 +; ", NULL, 0},
        {"costs seven tenths of the bound", 0.5, 0.0018, 90, 19, NULL, 69,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 mem810 -; 63.6 +; 67.6 sm1515 -; 69.0 +; ", NULL, 0},
        {"costs nearly the bound", 0.5, 0.0028, 90, 19, NULL, 69,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 mem810 -; 63.6 +; 67.6 sm1890 -; 69.0 +; ", NULL, 0},
        {"costs nothing: one window", 0, 0, 90, 19, NULL, 69,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 mem810 -; 63.6 +; 67.6 sm1425 -; 69.0 +; ", NULL, 0},
        {"a lower clock that gains: a second window", 0, -0.001, 90, 19, NULL, 78,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 -; 60.6 +; 64.6 mem810 -; 68.0 +; 72.0 -; 72.4 +; 76.4 sm1425 -; "
              "77.8 +; ",
         NULL, 0},
        {"a GPU in full use", 0.5, 0, 95, 19, NULL, 69,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 mem810 -; 63.6 +; 67.6 -; 69.0 +; ", NULL, 0},
        {"without memory clocks", 0.5, 0, 90, 10, NULL, 54, BASE "52.8 sm1890 -; ", no_memory, 0},
        {"a board that does not reach its clock", 0.5, 0, 90, 30, NULL, 54, BASE "52.8 sm1710 -; ", NULL, 1712},
    };
    CHECK_COURSES(row);
}

/* ---- the gate ---- */

static void test_idle(void) {
    static const change
        start[] = {{.at_s = 0.1, .kernel = loop, .count = 0}, {.at_s = 5, .kernel = loop, .count = 4}, END},
        later[] = {{.at_s = 31, .kernel = loop, .count = 0}, {.at_s = 40, .kernel = loop, .count = 4}, END},
        loaded[] = {{.at_s = 53, .kernel = loop, .count = 0}, {.at_s = 60, .kernel = loop, .count = 4}, END};
    static const course_row row[] = {
        {"at the start: no limit", 0.5, 0, 90, 30, start, 37, LIMIT "35.9 lim; ", NULL, 0},
        {"before a baseline window", 0.5, 0, 90, 30, later, 47,
         LIMIT "29.6 lim; 33.0 sm210; 40.7 sm*; 41.7 +; 45.7 -; ", NULL, 0},
        {"before a trial", 0.5, 0, 90, 30, loaded, 65, BASE "52.8 sm1980 -; 55.2 sm210; 60.7 sm1980; 61.7 +; ", NULL,
         0},
    };
    CHECK_COURSES(row);
}

/* ---- courses 2 and 3 ---- */

static void test_lengths(void) {
    static const change once[] = {{.at_s = 16.5, .util_gpu = 80}, END}, much[] = {{.at_s = 16.5, .util_gpu = 60}, END},
                        always[] = {{.at_s = 16.5, .util_gpu = 60}, {.at_s = 21, .util_gpu = 90},
                                    {.at_s = 25.4, .util_gpu = 70}, {.at_s = 29.8, .util_gpu = 90},
                                    {.at_s = 38.2, .util_gpu = 70}, {.at_s = 50, .util_gpu = 90},
                                    {.at_s = 66, .util_gpu = 70},   END};
    static const course_row row[] = {
        {"one step", 0.5, 0, 90, 30, once, 53, LIMIT "50.4 lim; 52.8 +; ", NULL, 0},
        {"another load: the mean anew", 0.5, 0, 90, 30, much, 37, LIMIT "34.0 lim; 36.4 +; ", NULL, 0},
        {"at most 20 s", 0.5, 0, 90, 30, always, 130,
         LIMIT "88.4 lim; 90.8 +; 94.8 -; 96.8 lim; 99.2 +; 119.2 -; 121.2 lim; 123.6 +; ", NULL, 0},
    };
    CHECK_COURSES(row);
}

static const mx_kernel mixed[] = {
    {0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}, {41, 0, 7400, 30}};
/* After `mixed`: as much of it is known, 0.107 more, 0.095 more. */
static const mx_kernel
    as_much[] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}, {42, 0, 7400, 30}},
    more[] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}, {42, 0, 4709, 30}},
    little_more[] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}, {42, 0, 4945, 30}};
static const mx_kernel slow[] = {{20, 0, 6000000, 50}};
static const mx_kernel a[] = {{30, 0, 900, 50}}, b[] = {{31, 0, 900, 50}}, d[] = {{32, 0, 900, 50}},
                       e[] = {{33, 0, 900, 50}}, f[] = {{34, 0, 900, 50}};

static void test_database(void) {
    static const change longer[] = {{.at_s = 25, .kernel = slow, .count = 1},
                                    {.at_s = 44, .kernel = loop, .count = 4},
                                    END},
                        once[] = {{.at_s = 46, .kernel = other, .count = 3}, END},
                        twice[] = {{.at_s = 46, .kernel = a, .count = 1}, {.at_s = 53, .kernel = b, .count = 1}, END},
                        always[] = {{.at_s = 46, .kernel = a, .count = 1}, {.at_s = 53, .kernel = b, .count = 1},
                                    {.at_s = 61, .kernel = d, .count = 1}, {.at_s = 69, .kernel = e, .count = 1},
                                    {.at_s = 82, .kernel = f, .count = 1}, END};
    static const change
        grows[] = {{.at_s = 46, .kernel = mixed, .count = 5}, END},
        stands[] = {{.at_s = 46, .kernel = mixed, .count = 5}, {.at_s = 54, .kernel = as_much, .count = 5}, END},
        rises[] = {{.at_s = 46, .kernel = mixed, .count = 5}, {.at_s = 54, .kernel = more, .count = 5}, END},
        creeps[] = {{.at_s = 46, .kernel = mixed, .count = 5}, {.at_s = 54, .kernel = little_more, .count = 5}, END};
    static const course_row row[] = {
        {"a third known: no pause", 0.5, 0, 90, 30, grows, 61, BASE "52.8 lim -; 55.2 +; 59.2 sm1980 -; 60.6 +; ", NULL,
         0},
        {"then no more of another: a pause", 0.5, 0, 90, 30, stands, 64,
         BASE "52.8 lim -; 55.2 +; 59.2 -; 60.4 lim; 62.8 +; ", NULL, 0},
        {"0.107 more: no pause", 0.5, 0, 90, 30, rises, 64, BASE "52.8 lim -; 55.2 +; 59.2 lim -; 61.6 +; ", NULL, 0},
        {"0.095 more: a pause", 0.5, 0, 90, 30, creeps, 64, BASE "52.8 lim -; 55.2 +; 59.2 -; 60.4 lim; 62.8 +; ", NULL,
         0},
        {"a window without a kernel", 0.5, 0, 90, 30, longer, 62,
         LIMIT "29.6 lim; 32.0 +; 36.0 -; 36.4 +; 40.4 -; 40.8 +; 44.8 -; 46.8 lim; 49.2 +; 53.2 -; 55.2 lim; 57.6 +; "
               "61.6 sm1980 -; ",
         NULL, 0},
        {"other kernels: a pause", 0.5, 0, 90, 30, once, 61, BASE "52.8 -; 54.0 lim; 56.4 +; 60.4 sm1980 -; ", NULL, 0},
        {"twice", 0.5, 0, 90, 30, twice, 69, BASE "52.8 -; 54.0 lim; 56.4 +; 60.4 -; 61.6 lim; 64.0 +; 68.0 sm1980 -; ",
         NULL, 0},
        {"always: a longer window at the third, five in all", 0.5, 0, 90, 30, always, 95,
         BASE "52.8 -; 54.0 lim; 56.4 +; 60.4 -; 61.6 lim; 64.0 +; 68.0 -; 70.4 lim; 72.8 +; 80.8 -; 83.2 lim; 85.6 +; "
              "93.6 sm1980 -; 95.0 +; ",
         NULL, 0},
    };
    CHECK_COURSES(row);
}

/* ---- course 6 ---- */

static const mx_kernel
    third[] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}, {40, 0, 1900, 30}},
    half[] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}, {40, 0, 3700, 30}},
    stream[] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}, {40, 3, 500, 30}},
    varied[] = {{0, 0, 900, 50}, {0, 0, 990, 20}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {2, 0, 1500, 30}},
    tenth[] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}, {40, 3, 440, 30}},
    streams[] = {{0, 0, 900, 50}, {1, 0, 400, 20}, {2, 0, 1500, 100}, {0, 0, 900, 30}, {40, 3, 380, 30}};

static void test_loop(void) {
    static const char *const long_window[] = {"window_s", "9", NULL}, *const longer_window[] = {"window_s", "12", NULL};
    static const char *const exact[] = {"th_exe", "0.001", NULL};
    static const change faster[] = {{.at_s = 53, .stretch = 0.9}, END},
                        steep[] = {{.at_s = 53, .stretch = 0.98}, {.at_s = 58.5, .stretch = 1.005}, END},
                        uneven[] = {{.at_s = 53, .kernel = varied, .count = 5}, END},
                        new_tenth[] = {{.at_s = 53, .kernel = tenth, .count = 5}, END};
    static const change unknown[] = {{.at_s = 53, .kernel = other, .count = 3}, END},
                        new_third[] = {{.at_s = 53, .kernel = third, .count = 5}, END},
                        new_half[] = {{.at_s = 53, .kernel = half, .count = 5}, END},
                        new_stream[] = {{.at_s = 53, .kernel = stream, .count = 5}, END},
                        small_stream[] = {{.at_s = 53, .kernel = streams, .count = 5}, END};
    static const course_row row[] = {
        {"bound by the SM clock", 1, 0, 90, 30, NULL, 100,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1935 -; 59.6 +; 63.8 sm* lim -; 66.2 +; 70.2 sm2025 -; 71.6 +; 75.8 "
              "sm1965 -; 77.2 +; 81.3 -; ",
         NULL, 0},
        {"half", 0.5, 0, 90, 30, NULL, 100,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1875 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1860 -; 71.5 +; 75.7 "
              "sm1875 -; 77.1 +; 81.3 -; ",
         NULL, 0},
        {"flat: a refresh after two, none after four", 0.02, 0, 90, 30, NULL, 100,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1815 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1500 -; 71.5 +; 75.6 "
              "sm1155 -; 77.0 +; 81.1 sm900 -; 82.5 +; 86.6 -; ",
         NULL, 0},
        {"with a memory clock", 0.02, 0, 90, 19, NULL, 110,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 mem810 -; 63.6 +; 67.6 sm1425 -; 69.0 +; 73.0 sm1335 -; 74.4 +; "
              "78.5 sm* mem* lim -; 80.9 +; 84.9 sm1245 mem810 -; 86.3 +; 90.4 sm1065 -; 91.8 +; 95.9 sm1050 -; ",
         NULL, 0},
        {"other kernels: not counted, a refresh", 0.5, 0, 90, 30, unknown, 85,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm* lim -; 60.6 +; 64.6 sm1980 -; 66.0 +; 70.0 sm1875 -; 71.4 +; 75.5 "
              "sm1860 -; 76.9 +; 81.1 sm1875 -; 82.5 +; ",
         NULL, 0},
        {"two thirds known: counted, a refresh", 0.5, 0, 90, 30, new_third, 78,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm* lim -; 60.6 +; 64.6 sm1875 -; 66.0 +; 70.1 sm1860 -; 71.5 +; 75.7 "
              "sm1890 -; 77.1 +; ",
         NULL, 0},
        {"half known: not counted, a refresh", 0.5, 0, 90, 30, new_half, 78,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm* lim -; 60.6 +; 64.6 sm1980 -; 66.0 +; 70.0 sm1875 -; 71.4 +; 75.5 "
              "sm1860 -; 76.9 +; ",
         NULL, 0},
        {"an eighth in an unknown stream: a refresh", 0.5, 0, 90, 30, new_stream, 78,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm* lim -; 60.6 +; 64.6 sm2055 -; 66.0 +; 70.2 sm2040 -; 71.6 +; 75.7 "
              "sm1950 -; 77.1 +; ",
         NULL, 0},
        {"two thirds within the radius, all known: counted, a refresh", 0.5, 0, 90, 30, uneven, 78,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm* lim -; 60.6 +; 64.6 sm1860 -; 66.0 +; 70.1 sm* lim -; 72.5 +; 76.5 "
              "sm1875 -; 77.9 +; ",
         exact, 0},
        {"0.106 in an unknown stream: a refresh", 0.5, 0, 90, 30, new_tenth, 78,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm* lim -; 60.6 +; 64.6 sm2055 -; 66.0 +; 70.2 sm2040 -; 71.6 +; 75.7 "
              "sm1935 -; 77.1 +; ",
         NULL, 0},
        {"a steep step, a clock that is reached: not flat", 0.02, 0, 90, 30, steep, 72,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1740 -; 59.6 +; 63.6 sm* lim -; 66.0 +; 70.0 sm1560 -; 71.4 +; ", NULL, 0},
        {"less than a tenth: none", 0.5, 0, 90, 30, small_stream, 78,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm2055 -; 59.6 +; 63.8 sm* lim -; 66.2 +; 70.2 sm2055 -; 71.6 +; 75.8 -; ",
         NULL, 0},
        {"a loss below 0: no shorter window", 0.5, 0, 90, 30, faster, 66,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1530 -; 59.6 +; 63.6 sm* lim -; 66.0 +; ", NULL, 0},
        {"75 s of traced windows", 0.02, 0, 90, 30, NULL, 200,
         LIMIT
         "36.8 lim; 39.2 +; 51.2 -; 53.2 lim; 55.6 +; 67.6 -; 69.6 lim; 72.0 +; 84.0 sm1980 -; 85.4 +; 97.4 sm1815 -; "
         "98.8 +; 110.9 sm* lim -; 113.3 +; 125.3 sm1500 -; 126.7 +; 138.8 sm1155 -; 140.2 +; 152.3 -; ",
         longer_window, 0},
        {"less", 0.02, 0, 90, 30, NULL, 200,
         LIMIT "49.6 lim; 52.0 +; 61.0 -; 63.0 lim; 65.4 +; 74.4 -; 76.4 lim; 78.8 +; 87.8 sm1980 -; 89.2 +; 98.2 "
               "sm1815 -; 99.6 +; 108.7 sm* lim -; 111.1 +; 120.1 sm1500 -; 121.5 +; 130.6 sm1155 -; 132.0 +; 141.1 "
               "sm900 -; 142.5 +; 151.7 -; ",
         long_window, 0},
    };
    CHECK_COURSES(row);
}

/* ---- monitoring ---- */

static void test_change(void) {
    static const char *const six[] = {"window_s", "6", NULL};
    static const change longer[] = {{.at_s = 112, .util_gpu = 10}, {.at_s = 128, .stretch = 1.04}, END};
    static const change third_differs[] = {{.at_s = 92.4, .util_gpu = 10}, {.at_s = 96.5, .util_gpu = 90}, END},
                        creeps[] = {{.at_s = 97, .util_gpu = 50}, {.at_s = 101, .util_gpu = 10}, END},
                        odd[] = {{.at_s = 112, .util_gpu = 10},
                                 {.at_s = 134, .stretch = 0.97884},
                                 {.at_s = 139.5, .stretch = 0.97716},
                                 {.at_s = 145, .stretch = 0.97917},
                                 END},
                        noisy[] = {{.at_s = 155, .util_gpu = 10},      {.at_s = 193, .stretch = 0.974},
                                   {.at_s = 200, .stretch = 1.0065},   {.at_s = 208, .stretch = 0.9446},
                                   {.at_s = 215.5, .stretch = 0.9362}, END},
                        with_memory[] = {{.at_s = 112, .util_gpu = 10}, END};
    static const change again[] = {{.at_s = 112, .util_gpu = 10}, {.at_s = 190, .util_gpu = 90}, END};
    static const change soon[] = {{.at_s = 112, .util_gpu = 10}, END}, later[] = {{.at_s = 127, .util_gpu = 10}, END},
                        late[] = {{.at_s = 160, .util_gpu = 10}, END},
                        shortly[] = {{.at_s = 127, .util_gpu = 10}, {.at_s = 144, .util_gpu = 90}, END};
    static const course_row row[] = {
        {"merged with what stands", 0.5, 0, 90, 30, longer, 146,
         BASE
         "52.8 sm1980 -; 54.2 +; 58.2 sm1875 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1860 -; 71.5 +; 75.7 sm1875 -; "
         "77.1 +; 81.3 -; 127.3 sm* lim; 129.7 +; 133.7 sm1875 -; 135.1 +; 139.1 sm1905 -; 140.5 +; 144.7 -; ",
         NULL, 0},
        {"a reference of three windows", 0.5, 0, 90, 30, third_differs, 130,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1875 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1860 -; 71.5 +; 75.7 "
              "sm1875 -; 77.1 +; 81.3 -; ",
         NULL, 0},
        {"a load that creeps", 0.5, 0, 90, 30, creeps, 125,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1875 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1860 -; 71.5 +; 75.7 "
              "sm1875 -; 77.1 +; 81.3 -; 114.1 sm* lim; 116.5 +; 120.5 sm1875 -; 121.9 +; ",
         NULL, 0},
        {"entries of before stand in", 0.5, 0, 90, 30, odd, 160,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1875 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1860 -; 71.5 +; 75.7 "
              "sm1875 -; 77.1 +; 81.3 -; 127.3 sm* lim; 129.7 +; 133.7 sm1875 -; 135.1 +; 139.1 sm1800 -; 140.5 +; "
              "144.6 sm1785 -; 146.0 +; 150.2 sm1830 -; ",
         NULL, 0},
        {"traced time anew", 0.5, 0, 90, 30, noisy, 260,
         LIMIT "37.6 lim; 40.0 +; 46.0 -; 48.0 lim; 50.4 +; 56.4 -; 58.4 lim; 60.8 +; 66.8 sm1980 -; 68.2 +; 74.2 "
               "sm1875 -; 75.6 +; 81.8 sm* lim -; 84.2 +; 90.2 sm1860 -; 91.6 +; 97.9 sm1875 -; 99.3 +; 105.6 -; 184.0 "
               "sm* lim; 186.4 +; 192.4 sm1875 -; 193.8 +; 199.8 sm1785 -; 201.2 +; 207.4 sm1830 -; 208.8 +; 215.1 "
               "sm1725 -; 216.5 +; 222.6 sm1650 -; 224.0 +; 230.2 -; ",
         six, 0},
        {"with a lower memory clock", 0.5, 0, 90, 19, with_memory, 150,
         BASE "52.8 sm1980 mem5001 -; 56.2 +; 60.2 mem810 -; 63.6 +; 67.6 sm1425 -; 69.0 +; 73.0 sm1815 -; 74.4 +; "
              "78.6 sm* mem* lim -; 81.0 +; 85.0 sm1920 mem810 -; 86.4 +; 90.6 -; 123.4 sm* mem* lim; 125.8 +; 129.8 "
              "sm1920 mem810 -; 131.2 +; 135.2 sm1875 -; 136.6 +; 140.8 sm1860 -; 142.2 +; 146.4 sm1875 -; ",
         NULL, 0},
        {"soon", 0.5, 0, 90, 30, soon, 170,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1875 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1860 -; 71.5 +; 75.7 "
              "sm1875 -; 77.1 +; 81.3 -; 127.3 sm* lim; 129.7 +; 133.7 sm1875 -; 135.1 +; 139.1 sm1860 -; 140.5 +; "
              "144.7 sm1875 -; 146.1 +; 150.3 -; ",
         NULL, 0},
        {"and again, by a new reference", 0.5, 0, 90, 30, again, 225,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1875 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1860 -; 71.5 +; 75.7 "
              "sm1875 -; 77.1 +; 81.3 -; 127.3 sm* lim; 129.7 +; 133.7 sm1875 -; 135.1 +; 139.1 sm1860 -; 140.5 +; "
              "144.7 sm1875 -; 146.1 +; 150.3 -; 204.7 sm* lim; 207.1 +; 211.1 sm1875 -; 212.5 +; 216.5 sm1860 -; "
              "217.9 +; 222.1 sm1875 -; 223.5 +; ",
         NULL, 0},
        {"after pauses of one and two windows", 0.5, 0, 90, 30, later, 158,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1875 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1860 -; 71.5 +; 75.7 "
              "sm1875 -; 77.1 +; 81.3 -; 148.1 sm* lim; 150.5 +; 154.5 sm1875 -; 155.9 +; ",
         NULL, 0},
        {"after pauses of four and eight", 0.5, 0, 90, 30, late, 210,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1875 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1860 -; 71.5 +; 75.7 "
              "sm1875 -; 77.1 +; 81.3 -; 204.9 sm* lim; 207.3 +; ",
         NULL, 0},
        {"two bad windows", 0.5, 0, 90, 30, shortly, 200,
         BASE "52.8 sm1980 -; 54.2 +; 58.2 sm1875 -; 59.6 +; 63.7 sm* lim -; 66.1 +; 70.1 sm1860 -; 71.5 +; 75.7 "
              "sm1875 -; 77.1 +; 81.3 -; ",
         NULL, 0},
    };
    CHECK_COURSES(row);
}

/* ---- what holds at any time ---- */

/* Traced from the first baseline window on, at 29.6 s; stable at 81.3 s, as in the loop's "half". */
static void test_told(void) {
    static const struct {
        const char *probe;
        double value;
    } row[] = {{"optimisation_s", 51.7}, {"stable_s", 81.3}, {"baselines", 3}, {"refreshes", 1},
               {"window_s", 4},          {"adjustments", 4}, {"over", 0},      {"phase_changes", 0}};
    mx_node *n = open_loop(NULL, 0.5, 0);
    mx_until(n, 90);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        FL_CHECK(fabs(mx_probe(n, 0, row[i].probe) - row[i].value) < 0.06, "%s: %g, expected %g", row[i].probe,
                 mx_probe(n, 0, row[i].probe), row[i].value);
    mx_until(n, 112);
    n->gpu[0].util_gpu = 10;
    mx_until(n, 130);
    FL_CHECK(mx_probe(n, 0, "phase_changes") == 1, "%g changes of phase", mx_probe(n, 0, "phase_changes"));
    mx_close(n);
}

/* The bound is tightened by the rate of kernels in the database: a little over 2,000 a second, and a little under. */
static void test_bound(void) {
    static const mx_kernel many[] = {{0, 0, 450, 30}}, fewer[] = {{0, 0, 475, 30}};
    for (int i = 0; i < 2; i++) {
        mx_node *n = open_loop(NULL, 0.5, 0);
        use(n, i ? many : fewer, 1);
        mx_until(n, 58.1);
        FL_CHECK(isnan(mx_probe(n, 0, "bound_pct")), "a bound before the first call");
        mx_until(n, 60);
        FL_CHECK(fabs(mx_probe(n, 0, "bound_pct") - (i ? 4.7 : 4.9)) < 1e-9, "bound %g", mx_probe(n, 0, "bound_pct"));
        mx_close(n);
    }
}

/* Grids are rounded to rounds of 128 cores an SM, of 10,240 in all where SMs are not known: 15 and 40 blocks of 256 are
 * one kind. */
static void test_cores(void) {
    static const mx_kernel before[] = {{0, 0, 900, 50}}, after[] = {{1, 0, 900, 50}};
    for (int i = 0; i < 2; i++) {
        mx_node *n = open_loop(NULL, 0.5, 0);
        n->gpu_facts[0].sm_count = i ? 80 : 0;
        n->kind[0] = (fl_kernel_kind){.name = "k", .name_id = 1, .grid = {40, 1, 1}, .block = {256, 1, 1}};
        n->kind[1] = (fl_kernel_kind){.name = "k", .name_id = 1, .grid = {15, 1, 1}, .block = {256, 1, 1}};
        use(n, before, 1);
        mx_until(n, 53);
        use(n, after, 1);
        mx_until(n, 60);
        FL_CHECK(mx_probe(n, 0, "adjustments") == 1 && mx_probe(n, 0, "covered") == 1, "covered %g",
                 mx_probe(n, 0, "covered"));
        mx_close(n);
    }
}

/* Where utilisation is not known for 10 s, a trial ends at the default clocks and all begins anew; a gear that was
 * found is held. */
static void test_lost(void) {
    mx_node *n = open_loop(NULL, 0.5, 0);
    course c = {.used = 0};
    until(n, &c, 55);
    n->gpu[0].lost = true;
    until(n, &c, 64.9);
    FL_CHECK(n->gpu[0].sm == 1875, "%g MHz before 10 s", n->gpu[0].sm);
    until(n, &c, 66);
    FL_CHECK(n->gpu[0].sm == FL_DEFAULT && n->gpu[0].records == 0, "%g MHz after 10 s", n->gpu[0].sm);
    n->gpu[0].lost = false;
    c.used = 0;
    until(n, &c, 101);
    FL_CHECK(strcmp(c.text, "95.7 lim; 98.1 +; ") == 0, "%s", c.text);
    until(n, &c, 150);
    FL_CHECK(mx_probe(n, 0, "state") == 11 && n->gpu[0].sm == 1875, "state %g", mx_probe(n, 0, "state"));
    n->gpu[0].lost = true;
    until(n, &c, 200);
    FL_CHECK(n->gpu[0].sm == 1875 && n->gpu[0].records == 0, "%g MHz is not held", n->gpu[0].sm);
    mx_close(n);
}

/* Each GPU has its own course, and its own kernels. */
static void test_gpus_apart(void) {
    mx_node *n = mx_open(&fl_policy_mfgpoeo, 2, NULL);
    for (int i = 0; i < 2; i++) {
        n->gpu[i].kernel = i ? other : loop;
        n->gpu[i].kernel_count = i ? 3 : 4;
        n->gpu[i].sm_share = i ? 0.02 : 0.5;
    }
    mx_until(n, 110);
    FL_CHECK(n->gpu[0].sm == 1875 && n->gpu[1].sm == 900, "%g and %g MHz", n->gpu[0].sm, n->gpu[1].sm);
    mx_close(n);
}

static void test_held(void) {
    static const char *const held[] = {"hold_sm_mhz", "1500", "hold_mem_mhz", "5001", NULL};
    mx_node *n = open_loop(held, 0.5, 0.01);
    mx_until(n, 80);
    FL_CHECK(mx_probe(n, 0, "state") == 13 && n->gpu[0].sm == 1500 && n->gpu[0].mem == 5001, "%g, %g MHz", n->gpu[0].sm,
             n->gpu[0].mem);
    const double slow_down = mx_slowdown(&n->gpu[0]), expected = 100 * ((3700 * slow_down + 200) / 3900 - 1);
    FL_CHECK(fabs(mx_probe(n, 0, "loss_pct") - expected) < 0.1, "loss %g %%, expected %g %%",
             mx_probe(n, 0, "loss_pct"), expected);
    n->gpu[0].stretch = 1.1;
    mx_until(n, 95);
    const double mean = mx_probe(n, 0, "loss_pct");
    FL_CHECK(mean > expected + 1 && mean < expected + 9, "the mean of all: %g %%, first %g %%", mean, expected);
    mx_close(n);
}

/* Clocks that no ladder has are refused: they would quietly be others. So is a window below 0.25 s. */
static void test_refused(void) {
    static const char *const row[][2] = {{"hold_sm_mhz", "1510"},
                                         {"hold_mem_mhz", "5000"},
                                         {"window_s", "0.24"},
                                         {"window_max_s", "0.24"},
                                         {"hold_sm_mhz", "1500"}};
    mx_node *n = open_loop(NULL, 0.5, 0);
    for (size_t i = 0; i < 5; i++) {
        const fl_setting setting = {.name = row[i][0], .text = row[i][1]};
        const fl_layer layer = {.origin = "test", .setting = &setting, .count = 1};
        const fl_instance_options o = {
            .policy = &fl_policy_mfgpoeo, .facts = &n->facts, .layer = &layer, .layer_count = 1};
        fl_diag diag = {0};
        fl_instance *in = NULL;
        const fl_status status = fl_instance_open(&in, &o, &diag);
        FL_CHECK(i == 4 ? status == FL_OK : status != FL_OK && strstr(diag.message, row[i][0]), "%s=%s: %s", row[i][0],
                 row[i][1], diag.message);
        if (status == FL_OK)
            fl_instance_close(in);
    }
    mx_close(n);
}

FL_SUITE("mfgpoeo", {"memory clocks and start", test_memory}, {"an idle GPU", test_idle},
         {"window length", test_lengths}, {"database", test_database}, {"loop", test_loop},
         {"change of phase", test_change}, {"what probes tell", test_told}, {"bound", test_bound},
         {"core count", test_cores}, {"a GPU lost", test_lost}, {"each GPU by itself", test_gpus_apart},
         {"held clocks", test_held}, {"refused", test_refused})
