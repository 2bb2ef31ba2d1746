/* Libraries and boards that do not do as they say: lists that grow, readings that cannot be, sets without effect or
 * rounded, others who set too. Each is seen, told once and counted, and ends nothing. */
#include "harness/live/guard/guard.h"
#include "harness/live/host/host.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/live_stub.h"

#include <math.h>

#define ARG(text) ((char *)(uintptr_t)(text))
#define SECOND INT64_C(1000000000)

static char lines[16][300];
static int line_count;

static int repeated; /* lines about what was told before */

static void keep_line(void *user, const char *line, bool again) {
    (void)user;
    repeated += again;
    if (again)
        return;
    if (line_count < 16)
        snprintf(lines[line_count], sizeof lines[0], "%.299s", line);
    line_count++;
}

static void fresh(unsigned gpus) {
    stub_reset(gpus);
    empty_folder(getenv("FOLDLINE_STATE"));
    rmdir(getenv("FOLDLINE_STATE"));
    line_count = repeated = 0;
}

static bool said(const char *name, const char *what) {
    size_t size;
    char *text = fl_temp_slurp(fl_temp_path(name), &size);
    const bool found = text && strstr(text, what) != NULL;
    if (!found)
        printf("\n    no '%s' in %s: %s", what, name, text ? text : "(none)");
    free(text);
    return found;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* However many calls find a list that has grown since the call before: it is there in the end, or there is none, and
 * nothing beyond the room for it is touched (the sanitizer sees). */
static void test_lists_that_grow(void) {
    static const struct {
        const char *variable, *library, *vendor;
        uint32_t rungs;
    } ROWS[] = {{"FOLDLINE_NVML", FL_STUB_NVML, "nvidia", 81},
                {"FOLDLINE_ZE", FL_STUB_ZE, "intel", 27},
                {"FOLDLINE_ZE", FL_STUB_ZE_OLD, "intel", 27}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        for (unsigned grows = 0; grows < 40; grows++)
            for (int boasts = 0; boasts < 2; boasts++) {
                fl_gpus g = {0};
                fl_diag d = {0};
                fl_gpu_facts f = {0};
                fl_record r = {0};
                fresh(1);
                setenv(ROWS[i].variable, ROWS[i].library, 1);
                stub->grows = grows;
                stub->boasts = boasts;
                fl_status s = fl_vendor_open(&g, ROWS[i].vendor, NULL, NULL, &d);
                if (!s)
                    s = g.back->facts(g.self, 0, &f, &d);
                FL_CHECK(!s && (f.sm.count == ROWS[i].rungs || (boasts && f.sm.count <= ROWS[i].rungs)),
                         "%s, %u calls, %d: %u clocks, %s", ROWS[i].library, grows, boasts, f.sm.count, d.message);
                if (!s)
                    s = g.back->prior(g.self, 0, FL_BIT(FL_SET_POWER_LIMIT_W), &r, &d);
                if (!s)
                    s = g.back->set(g.self, 0, FL_SET_POWER_LIMIT_W, 187, &r, &d);
                FL_CHECK(!s && stub->gpu[0].limit_mw == 187000, "%s: %s", ROWS[i].library, d.message);
                fl_record_free(&r);
                fl_gpus_close(&g);
            }
    setenv("FOLDLINE_NVML", FL_STUB_NVML, 1);
    unsetenv("FOLDLINE_ZE");
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* Half a step off is a rounded set; further off, one that was not made. What was there before comes back exactly. */
static void test_rounded_limits(void) {
    static const struct {
        unsigned step_mw;
        double watts;
        bool fine;
    } ROWS[] = {{0, 187.3, true}, {1000, 187.3, true}, {5000, 187.3, true}, {5000, 188, false}, {20000, 187.3, false}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_gpus g = {0};
        fl_diag d = {0};
        fl_record r = {0};
        fresh(1);
        stub->gpu[0].step_mw = ROWS[i].step_mw;
        CU_ASSERT(!fl_vendor_open(&g, "nvidia", NULL, NULL, &d));
        CU_ASSERT(!g.back->prior(g.self, 0, FL_BIT(FL_SET_POWER_LIMIT_W), &r, &d));
        const fl_status s = g.back->set(g.self, 0, FL_SET_POWER_LIMIT_W, ROWS[i].watts, &r, &d);
        FL_CHECK((s == FL_OK) == ROWS[i].fine, "row %zu: %s", i, d.message);
        stub->gpu[0].step_mw = 0;
        CU_ASSERT(!g.back->restore(g.self, 0, &r, &d) && stub->gpu[0].limit_mw == 250000);
        stub->gpu[0].step_mw = 251000 / 2; /* 125.5 and 251 W only: what was there cannot come back */
        CU_ASSERT(g.back->restore(g.self, 0, &r, &d) == FL_HARDWARE);
        CU_ASSERT(g.back->set(g.self, 0, FL_SET_POWER_LIMIT_W, FL_DEFAULT, &r, &d) == FL_HARDWARE);
        fl_record_free(&r);
        fl_gpus_close(&g);
    }
}

/* ---- effects, at times of our own -------------------------------------------------------------------------------- */

typedef struct scene {
    fl_gpus g;
    fl_effect *e;
    int64_t t_ns;
} scene;

static void open_scene(scene *s) {
    *s = (scene){0};
    fresh(2);
    CU_ASSERT(!fl_vendor_open(&s->g, "nvidia", NULL, NULL, NULL));
    CU_ASSERT(!fl_effect_open(&s->e, &s->g, keep_line, NULL, NULL));
}

static void close_scene(scene *s) {
    fl_effect_close(s->e);
    fl_gpus_close(&s->g);
}

/* GPU 1 has that clock, which these reasons hold down (-1: they cannot be read), for so many steps of 100 ms. */
static void pass(scene *s, double mhz, double throttle, double util, int steps) {
    for (int i = 0; i < steps; i++, s->t_ns += SECOND / 10) {
        fl_gpu_sample x = {.valid = fl_effect_needs(s->e, 1, s->t_ns)};
        x.value[FL_GPU_SM_MHZ] = mhz;
        x.value[FL_GPU_THROTTLE] = throttle;
        x.value[FL_GPU_UTIL_GPU_PCT] = util;
        if (throttle < 0)
            x.valid &= ~FL_BIT(FL_GPU_THROTTLE);
        fl_effect_look(s->e, 1, s->t_ns, &x);
    }
}

static void seen(const scene *s, const char *when, uint64_t without, uint64_t foreign, int told) {
    const fl_effect_counts c = fl_effect_count(s->e);
    FL_CHECK(c.without == without && c.foreign == foreign && line_count == told,
             "%s: %llu without effect, %llu foreign, %d lines", when, (unsigned long long)c.without,
             (unsigned long long)c.foreign, line_count);
}

static void test_locks(void) {
    scene s;
    open_scene(&s);
    pass(&s, 1410, 0, 90, 100);
    seen(&s, "nothing set", 0, 0, 0);
    CU_ASSERT(fl_effect_needs(s.e, 1, s.t_ns) == 0);
    fl_effect_made(s.e, 1, FL_SET_SM_MHZ, 810, s.t_ns);
    CU_ASSERT(fl_effect_needs(s.e, 1, s.t_ns) & FL_BIT(FL_GPU_SM_MHZ) && fl_effect_needs(s.e, 0, s.t_ns) == 0);
    pass(&s, 1410, 0, 90, 5); /* settles */
    pass(&s, 795, 0, 90, 100);
    seen(&s, "a step off", 0, 0, 0);
    pass(&s, 210, FL_THROTTLE_IDLE, 0, 100);
    pass(&s, 600, FL_THROTTLE_POWER, 100, 100);
    pass(&s, 600, -1, 100, 100);
    pass(&s, 600, 0, 0, 100);
    seen(&s, "below, and explained", 0, 0, 0);
    pass(&s, 1410, 0, 90, 15);
    seen(&s, "above, for a short time", 0, 0, 0);
    pass(&s, 810, 0, 90, 3);
    pass(&s, 1410, 0, 90, 15);
    seen(&s, "and again", 0, 0, 0);
    pass(&s, 1410, 0, 90, 60);
    seen(&s, "above, and it had shown", 0, 1, 1);
    CU_ASSERT(strstr(lines[0], "GPU 1: SM clock: 810 MHz was set, 1410 MHz") && strstr(lines[0], "somebody else"));
    pass(&s, 810, 0, 90, 10);
    pass(&s, 600, 0, 90, 60);
    seen(&s, "below without a reason: counted again, not told", 0, 2, 1);
    fl_effect_made(s.e, 1, FL_SET_SM_MHZ, 1005, s.t_ns);
    pass(&s, 1410, 8, 90, 60);
    seen(&s, "never showed", 1, 2, 2);
    CU_ASSERT(strstr(lines[1], "no effect") != NULL);
    for (int i = 0; i < 100; i++) { /* faster than a clock settles */
        fl_effect_made(s.e, 1, FL_SET_SM_MHZ, i % 2 ? 810 : 1200, s.t_ns);
        pass(&s, 1410, 0, 90, 2);
    }
    seen(&s, "not judged", 1, 2, 2);
    fl_effect_made(s.e, 1, FL_SET_SM_MHZ, FL_DEFAULT, s.t_ns);
    pass(&s, 1410, 0, 90, 100);
    seen(&s, "handed back", 1, 2, 2);
    close_scene(&s);
}

static void test_limits(void) {
    scene s;
    open_scene(&s);
    pass(&s, 0, 0, 0, 30);
    seen(&s, "nothing set", 0, 0, 0);
    stub->gpu[1].limit_mw = 187000; /* as the set of 187.3 W had left it */
    fl_effect_made(s.e, 1, FL_SET_POWER_LIMIT_W, 187.3, s.t_ns);
    pass(&s, 0, 0, 0, 30);
    seen(&s, "rounded", 0, 0, 1);
    CU_ASSERT(fl_effect_count(s.e).rounded == 1 && strstr(lines[0], "187.3 W was set, and the board has 187 W"));
    stub->gpu[1].limit_mw = 150000;
    pass(&s, 0, 0, 0, 30);
    seen(&s, "foreign", 0, 1, 2);
    CU_ASSERT(strstr(lines[1], "GPU 1: power limit: 150 W, and 187 W before") != NULL);
    stub->gpu[1].limit_mw = 160000;
    pass(&s, 0, 0, 0, 30);
    seen(&s, "and again", 0, 2, 2);
    CU_ASSERT(repeated == 1);
    stub->gpu[1].limit_mw = 170000;
    fl_effect_made(s.e, 1, FL_SET_POWER_LIMIT_W, 170, s.t_ns);
    stub->gpu[1].limit_code = 3;
    pass(&s, 0, 0, 0, 30);
    stub->gpu[1].limit_code = 0;
    pass(&s, 0, 0, 0, 30);
    seen(&s, "our own, and what cannot be read", 0, 2, 2);
    CU_ASSERT(stub->sets == 0); /* it only looks */
    close_scene(&s);
}

/* ---- the whole program ------------------------------------------------------------------------------------------- */

static int control(const char *policy, const char *set, const char *lasts) {
    return FOLDLINE(ARG("live"), ARG("--policy"), ARG(policy), ARG("--set"), ARG(set), ARG("--control"), ARG("--for"),
                    ARG(lasts));
}

/* The log has what the policy asked for in the step's rows, and behind them what the board made of it. It replays. */
static void test_log_of_a_rounded_limit(void) {
    char log[512], command[1200];
    fl_decisions r = {0};
    fl_diag d = {0};
    fresh(2);
    stub->gpu[1].step_mw = 1000;
    snprintf(log, sizeof log, "%s", fl_temp_path("log.csv"));
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--policy"), ARG("fixed"), ARG("--set"), ARG("power_limit_w=187.3"),
                       ARG("--control"), ARG("--for"), ARG("300ms"), ARG("-o"), log) == 0);
    CU_ASSERT(said("log.csv", ",187.3,,,\n"
                              "# GPU 1: power limit: 187.3 W was set, and the board has 187 W: it rounds\n"
                              "1,"));
    CU_ASSERT(!fl_decisions_read(log, &r, &d) && r.step_count > 1);
    fl_decisions_free(&r);
    snprintf(command, sizeof command, "'%s' verify '%s' > '%s'", FL_PROGRAM, log, fl_temp_path("replayed.txt"));
    CU_ASSERT(system(command) == 0);
}

static void test_program(void) {
    fresh(1);
    stub->gpu[0].deaf = stub->gpu[0].quiet = 1;
    FL_CHECK(control("fixed", "sm_mhz=810", "5s") == 0, "a set without effect ends nothing");
    CU_ASSERT(said("err.txt", "foldline live: GPU 0: SM clock: 810 MHz was set") &&
              said("out.txt", "1 clock locks had no visible effect"));
    fresh(1);
    stub->gpu[0].step_mw = 1000;
    FL_CHECK(control("fixed", "power_limit_w=187.3", "300ms") == 0, "nor does a rounded one");
    CU_ASSERT(said("err.txt", "it rounds") && said("out.txt", "1 power limits were rounded"));
    CU_ASSERT(stub->gpu[0].limit_mw == 250000);
    test_log_of_a_rounded_limit();
    fresh(1);
    pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"),
                                          ARG("--control"), ARG("--for"), ARG("120s"), NULL});
    UNTIL(stub->reads > 5);
    stub->gpu[0].limit_mw = 123000;
    const unsigned then = stub->reads;
    UNTIL(stub->reads > then + 20);
    kill(pid, SIGTERM);
    CU_ASSERT(exit_of(pid) == 0 && said("out.txt", "1 settings were changed by another program"));
    CU_ASSERT(stub->gpu[0].limit_mw == 123000); /* it is theirs */
}

/* All ones from every sensor: nothing of it comes to the policy, all of it is counted by name. */
static void test_absurd_readings(void) {
    fl_gpus g = {0};
    fl_live_result r;
    fresh(1);
    CU_ASSERT(!fl_vendor_open(&g, "nvidia", NULL, NULL, NULL));
    for (int absurd = 0; absurd < 3; absurd++) {
        stub->gpu[0].absurd = absurd;
        const fl_live_options o = {.mode = FL_LIVE_OBSERVE,
                                   .gpus = &g,
                                   .gpu_needs = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1,
                                   .period_ns = 1000000,
                                   .for_ns = 20000000,
                                   .clock = fl_clock_system()};
        CU_ASSERT(!fl_live(&o, &r, NULL) && r.steps > 0);
        FL_CHECK((r.absurd == 0) == !absurd, "%llu: %s", (unsigned long long)r.absurd, r.absurd_names);
    }
    static const char *const NAMES[] = {"power_w", "util_gpu_pct", "util_mem_pct", "sm_mhz", "temp_c"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        FL_CHECK(strstr(r.absurd_names, NAMES[i]) != NULL, "%s is not in: %s", NAMES[i], r.absurd_names);
    FL_CHECK(r.absurd == 5 * r.steps, "%llu in %llu steps: %s", (unsigned long long)r.absurd,
             (unsigned long long)r.steps, r.absurd_names);
    fl_gpus_close(&g);
    stub->gpu[0].absurd = 1;
    CU_ASSERT(FOLDLINE(ARG("live"), ARG("--observe"), ARG("--for"), ARG("300ms")) == 0 &&
              said("out.txt", "impossible readings were left out: "));
}

static const fl_case CASES[] = {{"lists that grow", test_lists_that_grow},
                                {"rounded limits", test_rounded_limits},
                                {"locks", test_locks},
                                {"limits", test_limits},
                                {"the whole program", test_program},
                                {"absurd readings", test_absurd_readings}};

static void open_stub(void) { stub_open(1); }

FL_SUITE_OF("live_effect", CASES, .program = foldline_main, .open = open_stub, .close = stub_close)
