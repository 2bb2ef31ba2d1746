/* slo-pid, each period worked by hand. The ladder is 500 to 1500 MHz by 100, a period 1 s, the TBT target 15 ms. A 95th
 * percentile of 12 ms is an error of -0.2, one of 18 ms of 0.2. */
#include "tests/support/serving_rig.h"

typedef struct period {
    double p95_ms, ttft_ms; /* 0: not known */
    double running;
    double stands, set; /* where the controller stands, and what is in force; 0: the default, or nothing */
} period;

static rig r;

static void run(const char *what, const fl_setting *setting, size_t settings, const period *row, size_t count) {
    rig_begin(&r, 2);
    rig_open(&r, "slo-pid", setting, settings);
    for (size_t i = 0; i < count; i++) {
        r.u.valid = 0;
        rig_know(&r, FL_SERVER_RUNNING, row[i].running);
        if (row[i].p95_ms > 0)
            rig_know(&r, FL_SERVER_TBT_P95_NS, row[i].p95_ms * 1e6);
        if (row[i].ttft_ms > 0)
            rig_know(&r, FL_SERVER_TTFT_P95_NS, row[i].ttft_ms * 1e6);
        rig_step(&r);
        const double in_force = r.mhz > 0 ? r.mhz : 0, stands = r.decision->probe[0];
        FL_CHECK(fabs(stands - row[i].stands) < 1e-6 && in_force == row[i].set,
                 "%s, period %zu: stands at %g, set %g; expected %g, %g", what, i, stands, in_force, row[i].stands,
                 row[i].set);
    }
    rig_close(&r);
}

static void test_by_hand(void) {
    /* 0.5 x -0.2 x 1500 = -150 a period. Then the error rises by 0.4: (0.1 x 0.4 + 0.5 x 0.2) x 1500 = 210. Then it
     * falls by 0.4, -210, which a late TTFT forbids and a good one allows. */
    static const fl_setting gains[] = {{"ki", "0.5", NULL}};
    static const period rows[] = {{12, 0, 8, 1500, 1500},   {12, 0, 8, 1350, 1400},  {12, 0, 8, 1200, 1200},
                                  {12, 0, 8, 1050, 1100},   {18, 0, 8, 1260, 1300},  {12, 1200, 8, 1260, 1300},
                                  {18, 900, 8, 1470, 1500}, {12, 900, 8, 1260, 1300}};
    run("PI", gains, FL_COUNT(gains), rows, FL_COUNT(rows));
    /* The derivative of 0.2: a rise of 0.4 after none gives 0.2 x 0.4 x 1500 = 120, and its end takes it back. */
    static const fl_setting only_d[] = {{"kp", "0", NULL}, {"ki", "0", NULL}, {"kd", "0.2", NULL}};
    static const period d_rows[] = {{18, 0, 8, 1500, 1500}, {12, 0, 8, 1380, 1400}, {12, 0, 8, 1500, 1500}};
    run("D", only_d, FL_COUNT(only_d), d_rows, FL_COUNT(d_rows));
}

/* At an end of the ladder nothing is summed: one good period after a hundred late ones lowers the clock. */
static void test_ends(void) {
    static const fl_setting gains[] = {{"kp", "0", NULL}, {"ki", "0.5", NULL}};
    period rows[101];
    for (int i = 0; i < 100; i++)
        rows[i] = (period){18, 0, 8, 1500, 1500};
    rows[100] = (period){12, 0, 8, 1350, 1400};
    run("top", gains, FL_COUNT(gains), rows, 101);
    static const fl_setting low[] = {{"kp", "0", NULL}, {"ki", "5", NULL}, {"lowest_mhz", "650", NULL}};
    static const period low_rows[] = {{12, 0, 8, 1500, 1500}, {12, 0, 8, 700, 700}, {18, 0, 8, 1500, 1500}};
    run("bottom", low, FL_COUNT(low), low_rows, FL_COUNT(low_rows));
}

/* With nothing served the clock stays. What is not known leaves it to the driver. */
static void test_unknown(void) {
    static const fl_setting gains[] = {{"ki", "0.5", NULL}};
    static const period rows[] = {{12, 0, 8, 1500, 1500}, {12, 0, 8, 1350, 1400}, {12, 0, 0, 1350, 1400},
                                  {0, 0, 0, 1350, 1400},  {0, 0, 8, 1350, 0},     {12, 0, 8, 1200, 1200}};
    run("unknown", gains, FL_COUNT(gains), rows, FL_COUNT(rows));
}

static void test_refusals(void) {
    fl_diag d = {0};
    rig_begin(&r, 2);
    r.server.tbt_target_ns = 0;
    FL_CHECK(rig_try(&r, "slo-pid", NULL, 0, &d) == FL_BAD_INPUT && strstr(d.message, "a TBT target"), "%s", d.message);
    rig_begin(&r, 2);
    r.facts.server_count = 0;
    FL_CHECK(rig_try(&r, "slo-pid", NULL, 0, &d) == FL_BAD_INPUT && strstr(d.message, "a server"), "%s", d.message);
}

FL_SUITE("slo_pid", {"by hand", test_by_hand}, {"ends of the ladder", test_ends},
         {"signals that are not known", test_unknown}, {"refusals", test_refusals})
