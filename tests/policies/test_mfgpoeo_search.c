/* MF-GPOEO as released, the controller's table of gains and the stop rule, by hand. */
#include "policies/mfgpoeo/inside.h"
#include "tests/support/suite.h"

#include <math.h>

static const fl_mfg_gains standard = {.kp = 2.8, .ki = 0.002, .kd = 0.9}, only_kp = {.kp = 2.8};

/* ---- the controller ---- */

/* Calls so far: `calls`, the last with that loss and gain at gear[0], before it gear[1]. */
typedef struct gain_row {
    const char *rule;
    double bound, loss, before_loss, below_mhz;
    int32_t gear, before[2];
    uint32_t calls, compounded;
    double before_gain, gain;
} gain_row;

static const gain_row gains[] = {
    {"first call", 0.049, 0.001, 0, 0, 100, {0, 0}, 0, 0, 0, 0.7 * 2.8},
    {"compound: clock not reached", 0.049, 0.009, 0.009, 0.6, 110, {110, 0}, 1, 0, 2, 1.5 * 2.8},
    {"reached: by the slope", 0.049, 0.009, 0.0095, 0.5, 100, {110, 0}, 1, 0, 2, 1.5 * 2.8},
    {"too steep", 0.049, 0.0097, 0.0001, 0.5, 102, {110, 0}, 1, 0, 2, 2.8 * 0.75},
    {"steep by less than 3 C over the ladder", 0.049, 0.0096, 0.0001, 0.5, 101, {110, 0}, 1, 0, 2, 1.5 * 2.8},
    {"just within that", 0.049, 0.00962, 0.0001, 0.5, 102, {110, 0}, 1, 0, 2, 1.5 * 2.8},
    {"just beyond it", 0.049, 0.009667, 0.0001, 0.5, 102, {110, 0}, 1, 0, 2, 0.75 * 2.8},
    {"one gear up is flat", 0.049, 0.009, 0.009, 0.5, 111, {110, 0}, 1, 0, 2, 1.5 * 2.8},
    {"the same gear is not, at a loss that rises", 0.049, 0.0097, 0.009, 0.5, 110, {110, 0}, 1, 0, 2, 0.75 * 2.8},
    {"a loss of 0.2 C", 0.06, 0.2 * 0.06, 0.009, 0.6, 100, {110, 0}, 1, 0, 2, 2.8},
    {"a loss of 0.2 C before", 0.06, 0.009, 0.2 * 0.06, 0.6, 100, {110, 0}, 1, 0, 2, 2.8},
    {"the same gear is not flat", 0.049, 0.009, 0.009, 0.5, 110, {110, 0}, 1, 0, 2, 2.8},
    {"loss not below 0.2 C", 0.049, 0.00981, 0.009, 0.6, 100, {110, 0}, 1, 0, 2, 2.8 * 0.75},
    {"nor the loss before", 0.049, 0.009, 0.00981, 0.6, 100, {110, 0}, 1, 0, 2, 2.8},
    {"clock not known", 0.049, 0.009, 0.009, NAN, 110, {110, 0}, 1, 0, 2, 2.8},
    {"compound again: the gain before", 0.049, 0.009, 0.009, 0.6, 100, {110, 0}, 2, 1, 4.2, 6.3},
    {"whatever its band", 0.049, 0.009, 0.009, 0.6, 100, {110, 0}, 2, 1, 2.1, 3.15},
    {"at most 8", 0.049, 0.009, 0.009, 0.6, 100, {110, 0}, 3, 1, 6.3, 8},
    {"three falling gears", 0.049, 0.02, 0.02, 0, 90, {100, 110}, 2, 0, 2, 1.75 * 2.8},
    {"again", 0.049, 0.02, 0.02, 0, 90, {100, 110}, 3, 1, 3, 1.75 * 3},
    {"again, at most 8", 0.049, 0.02, 0.02, 0, 90, {100, 110}, 3, 1, 5, 8},
    {"not three yet", 0.049, 0.02, 0.02, 0, 90, {100, 110}, 1, 0, 2, 0.75 * 2.8},
    {"not falling", 0.049, 0.02, 0.02, 0, 90, {90, 110}, 2, 0, 2, 0.75 * 2.8},
    {"nor before", 0.049, 0.02, 0.02, 0, 90, {100, 100}, 2, 0, 2, 0.75 * 2.8},
    {"falling, but loss not below half of C", 0.049, 0.0246, 0.02, 0, 90, {100, 110}, 2, 0, 2, 0.75 * 2.8},
    {"falling, a loss of half of C", 0.0625, 0.03125, 0.02, 0, 90, {100, 110}, 2, 0, 2, 0.75 * 2.8},
    {"within 4 points", 0.049, 0.0091, 0.02, 0, 90, {80, 0}, 1, 0, 2, 0.75 * 2.8},
    {"not within 4 points", 0.049, 0.0089, 0.02, 0, 90, {80, 0}, 1, 0, 2, 2.8},
    {"loss of less than -2 C", 0.03, -0.0601, 0.02, 0, 90, {80, 0}, 1, 0, 2, 2.2 * 2.8},
    {"-2 C", 0.03, -0.06, 0.02, 0, 90, {80, 0}, 1, 0, 2, 2.8},
    {"never where C is above 3.3 %", 0.0334, -0.067, 0.02, 0, 90, {80, 0}, 1, 0, 2, 2.8},
    {"loss of less than -3 C", 0.049, -0.148, 0.02, 0, 90, {80, 0}, 1, 0, 2, 2.5 * 2.8},
    {"-3 C", 0.0625, -0.1875, 0.02, 0, 90, {80, 0}, 1, 0, 2, 2.8},
    {"40 points off", 0.049, -0.352, 0.02, 0, 90, {80, 0}, 1, 0, 2, 2.8},
    {"over by less than 0.3 points", 0.049, 0.0519, 0.02, 0, 90, {80, 0}, 1, 0, 2, 4 * 2.8},
    {"by nothing", 0.049, 0.049, 0.02, 0, 90, {80, 0}, 1, 0, 2, 4 * 2.8},
    {"by less than 0.6", 0.049, 0.0549, 0.02, 0, 90, {80, 0}, 1, 0, 2, 2.5 * 2.8},
    {"by 0.3", 0.049, 0.0521, 0.02, 0, 90, {80, 0}, 1, 0, 2, 2.5 * 2.8},
    {"by less than 2.5", 0.049, 0.0739, 0.02, 0, 90, {80, 0}, 1, 0, 2, 1.75 * 2.8},
    {"by 0.6", 0.049, 0.0551, 0.02, 0, 90, {80, 0}, 1, 0, 2, 1.75 * 2.8},
    {"by more", 0.049, 0.0741, 0.02, 0, 90, {80, 0}, 1, 0, 2, 2.8},
};

static fl_mfg_pid pid_of(const gain_row *r) {
    return (fl_mfg_pid){.err = r->bound - r->before_loss,
                        .loss = r->before_loss,
                        .gain = r->before_gain,
                        .gear = {r->before[0], r->before[1]},
                        .calls = r->calls,
                        .compounded = r->compounded};
}

static void test_gains(void) {
    for (size_t i = 0; i < sizeof gains / sizeof *gains; i++) {
        fl_mfg_pid s = pid_of(&gains[i]);
        const fl_mfg_measured m = {gains[i].loss, gains[i].bound, gains[i].below_mhz, gains[i].gear, 124};
        fl_mfg_pid_next(&s, &only_kp, &m);
        FL_CHECK(fabs(s.gain - gains[i].gain) < 1e-12, "%s: gain %g, expected %g", gains[i].rule, s.gain,
                 gains[i].gain);
    }
}

/* What the gain makes of the gear, with a bound of 4.9 %. `before`: loss of the call before, at gear 100. */
static void test_next(void) {
    static const struct {
        const char *rule;
        fl_mfg_gains k;
        uint32_t calls;
        double loss, before;
        int32_t gear, next;
    } row[] = {
        {"gear times 1 - delta", {2.8, 0, 0}, 0, 0.001, 0, 118, 107}, /* 1.96 x 0.048 */
        {"over the bound", {2.8, 0, 0}, 0, 0.149, 0, 60, 72},         /* 1.96 x 0.1 */
        {"one gear down at least", {2.8, 0, 0}, 0, 0.0481, 0, 30, 29},
        {"one gear up at least", {2.8, 0, 0}, 0, 0.0491, 0, 30, 31},
        {"none on the bound", {2.8, 0, 0}, 0, 0.049, 0, 30, 30},
        {"within 1 % of it: stays", {2.8, 0, 0}, 1, 0.0486, 0.06, 123, 123},
        {"but not in the first call", {2.8, 0, 0}, 0, 0.0486, 0, 30, 29},
        {"not at 1 %", {2.8, 0, 0}, 1, 0.0485, 0.06, 30, 29},
        {"at most the top", {2.8, 0, 0}, 0, 0.3, 0, 118, 123},
        {"at the top", {2.8, 0, 0}, 0, 0.05, 0, 123, 123},
        {"at least the bottom", {100, 0, 0}, 0, 0, 0, 30, 0},
        {"no integral in the first call", {0, 10, 0}, 0, 0.029, 0, 100, 99},
        {"integral: 0.02 + 0.01", {0, 10, 0}, 1, 0.029, 0.039, 100, 70},
        {"none after a change of sign", {0, 10, 0}, 1, 0.029, 0.059, 100, 99},
        {"on the bound the sum stays: 0.02 + 0", {0, 10, 0}, 1, 0.049, 0.029, 100, 80},
        {"derivative damps a falling loss within", {2.8, 0, 0.9}, 1, 0.02, 0.08, 100, 99}, /* .0609 - .054 */
        {"and a rising one beyond", {2.8, 0, 0.9}, 1, 0.079, 0.04, 100, 105},              /* -.084 + .0351 */
        {"not a rising one within", {2.8, 0, 0.9}, 1, 0.04, 0.01, 100, 98},                /* .0189 */
        {"nor a small one", {2.8, 0, 0.9}, 1, 0.02, 0.0444, 100, 94},                      /* .0609; 0.498 C */
        {"above half of C", {2.8, 0, 0.9}, 1, 0.02, 0.0446, 100, 96},                      /* .0609 - .0221 */
        {"not in the first call", {2.8, 0, 0.9}, 0, -0.03, 0, 100, 85},                    /* 1.96 x .079 */
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_mfg_pid s = {.err = 0.049 - row[i].before,
                        .integral = 0.049 - row[i].before,
                        .loss = row[i].before,
                        .gain = 2,
                        .gear = {80, 0},
                        .calls = row[i].calls};
        if (!row[i].calls)
            s = (fl_mfg_pid){.calls = 0};
        const fl_mfg_measured m = {row[i].loss, 0.049, 0, row[i].gear, 124};
        const int32_t next = fl_mfg_pid_next(&s, &row[i].k, &m);
        FL_CHECK(next == row[i].next, "%s: gear %d, expected %d", row[i].rule, next, row[i].next);
    }
}

/* What one call leaves for the next: sums, gears; after a change of sign the sum begins anew. */
static void test_memory(void) {
    fl_mfg_pid s = {.calls = 0};
    fl_mfg_measured m = {0.029, 0.049, 0, 100, 124};
    fl_mfg_pid_next(&s, &standard, &m);
    m.gear = 95;
    m.loss = 0.039;
    fl_mfg_pid_next(&s, &standard, &m);
    FL_CHECK(fabs(s.integral - 0.03) < 1e-12 && s.gear[0] == 95 && s.gear[1] == 100 && s.calls == 2, "integral %g",
             s.integral);
    m.loss = 0.059;
    fl_mfg_pid_next(&s, &standard, &m);
    FL_CHECK(fabs(s.integral + 0.01) < 1e-12 && s.loss == 0.059, "integral %g after a change of sign", s.integral);
}

/* ---- the stop rule ---- */

typedef struct stop_row {
    const char *rule;
    uint32_t n, count;
    fl_mfg_tried tried[7]; /* rho, objective, gear, next; the latest last */
    int late, low_memory;
    int32_t gear;
} stop_row;

static const stop_row stops[] = {
    {"not before three", 2, 2, {{-0.1, 0.8, 100, 100}, {-0.1, 0.8, 100, 100}}, 0, 0, -1},
    /* the best at once: five, four when late, next = m, within three gears and below the bound */
    {"five",
     5,
     5,
     {{-0.9, 0.9, 118, 80}, {0.9, 0.7, 60, 118}, {-0.9, 0.8, 110, 80}, {0.9, 0.6, 50, 118}, {-0.9, 0.9, 117, 90}},
     0,
     0,
     117},
    {"four", 4, 4, {{-0.9, 0.9, 118, 80}, {0.9, 0.7, 60, 118}, {-0.9, 0.8, 118, 80}, {-0.8, 0.9, 117, 95}}, 0, 0, -1},
    {"four when late",
     4,
     4,
     {{-0.9, 0.9, 118, 80}, {0.9, 0.7, 60, 118}, {-0.9, 0.8, 118, 80}, {-0.8, 0.9, 117, 95}},
     1,
     0,
     118},
    {"three when late", 3, 3, {{-0.9, 0.9, 118, 80}, {0.9, 0.7, 60, 118}, {-0.9, 0.8, 118, 95}}, 1, 0, -1},
    {"next = m", 3, 3, {{-0.9, 0.9, 118, 105}, {0.9, 0.7, 60, 118}, {0.4, 0.9, 123, 123}}, 0, 0, 118},
    {"three gears, below the bound",
     3,
     3,
     {{-0.9, 0.9, 118, 105}, {-0.5, 0.7, 100, 99}, {-0.3, 0.6, 98, 95}},
     0,
     0,
     98},
    {"or up", 3, 3, {{-0.9, 0.9, 118, 105}, {0.9, 0.7, 90, 99}, {-0.3, 0.6, 98, 101}}, 0, 0, 98},
    {"four gears", 3, 3, {{-0.9, 0.9, 118, 105}, {-0.5, 0.7, 100, 99}, {-0.3, 0.6, 98, 94}}, 0, 0, -1},
    {"four gears up", 3, 3, {{-0.9, 0.9, 118, 105}, {-0.5, 0.7, 80, 99}, {-0.3, 0.6, 98, 102}}, 0, 0, -1},
    {"three gears, over it", 3, 3, {{-0.9, 0.9, 118, 105}, {-0.5, 0.7, 80, 99}, {0.3, 0.6, 98, 101}}, 0, 0, -1},
    /* the best: from the latest back */
    {"a lower objective of a higher gear",
     5,
     5,
     {{-0.9, 0.5, 118, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.8, 0.6, 100, 80}},
     0,
     0,
     118},
    {"of the same gear",
     5,
     5,
     {{-0.95, 0.5, 100, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.8, 0.6, 100, 80}},
     0,
     0,
     100},
    {"of a lower gear with more loss",
     5,
     5,
     {{-0.7, 0.5, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.8, 0.6, 100, 80}},
     0,
     0,
     90},
    {"of the same gear: then that one is to be beaten",
     5,
     5,
     {{-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.55, 118, 80}, {-0.95, 0.5, 100, 80}, {-0.8, 0.6, 100, 80}},
     0,
     0,
     100},
    {"a loss on the bound does not break it",
     5,
     5,
     {{0, 0.5, 118, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.8, 0.6, 100, 80}},
     0,
     0,
     118},
    {"not of a lower gear with less",
     5,
     5,
     {{-0.9, 0.5, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.8, 0.6, 100, 80}},
     0,
     0,
     100},
    {"one more for breaking the bound",
     5,
     5,
     {{0.1, 0.5, 118, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.9, 0.9, 90, 80}, {-0.8, 0.6, 100, 80}},
     0,
     0,
     100},
    {"all broke it: the highest",
     5,
     5,
     {{0.1, 0.9, 118, 80}, {0.2, 0.9, 90, 80}, {0.2, 0.9, 90, 80}, {0.2, 0.9, 90, 80}, {0.3, 0.6, 100, 120}},
     0,
     0,
     118},
    {"of five, not six",
     6,
     6,
     {{0.1, 0.9, 120, 80},
      {0.1, 0.9, 110, 80},
      {0.2, 0.9, 90, 80},
      {0.2, 0.9, 90, 80},
      {0.2, 0.9, 90, 80},
      {0.3, 0.6, 100, 119}},
     0,
     0,
     110},
    {"the best too is of five",
     6,
     6,
     {{-0.1, 0.1, 120, 80},
      {-0.1, 0.9, 110, 80},
      {-0.2, 0.9, 90, 80},
      {-0.2, 0.9, 90, 80},
      {-0.2, 0.9, 90, 80},
      {-0.3, 0.6, 100, 119}},
     0,
     0,
     100},
    {"with fewer than five the next one too",
     4,
     4,
     {{0.1, 0.9, 110, 80}, {0.2, 0.9, 90, 80}, {0.2, 0.9, 90, 80}, {0.3, 0.6, 100, 120}},
     1,
     0,
     120},
    {"six are kept",
     3,
     7,
     {{-0.1, 0.1, 90, 80},
      {-0.1, 0.9, 95, 80},
      {-0.1, 0.9, 80, 80},
      {-0.1, 0.9, 80, 80},
      {-0.1, 0.9, 80, 80},
      {-0.1, 0.9, 80, 80},
      {-0.1, 0.8, 95, 95}},
     0,
     0,
     95},
    /* far down, and nothing lost */
    {"three proposals below 0.6 N", 3, 3, {{-0.9, 0.9, 118, 74}, {-0.9, 0.8, 74, 60}, {-0.9, 0.7, 60, 51}}, 0, 0, 62},
    {"one is not below", 3, 3, {{-0.9, 0.9, 118, 75}, {-0.9, 0.8, 74, 60}, {-0.9, 0.7, 60, 51}}, 0, 0, -1},
    {"the latest is not below", 3, 3, {{-0.9, 0.9, 118, 74}, {-0.9, 0.8, 74, 60}, {-0.9, 0.7, 60, 75}}, 0, 0, -1},
    {"the latest on the bound", 3, 3, {{-0.9, 0.9, 118, 74}, {-0.9, 0.8, 74, 60}, {0, 0.7, 60, 51}}, 0, 0, -1},
    {"one over the bound", 3, 3, {{0.1, 0.9, 118, 74}, {-0.9, 0.8, 74, 60}, {-0.9, 0.7, 60, 51}}, 0, 0, -1},
    /* the mean of those that agree */
    {"three of 0.20 on average",
     3,
     3,
     {{-0.199, 0.9, 100, 90}, {-0.199, 0.8, 104, 90}, {-0.199, 0.7, 108, 100}},
     0,
     0,
     104},
    {"more", 3, 3, {{-0.2, 0.9, 100, 90}, {-0.2, 0.8, 104, 90}, {-0.21, 0.7, 108, 100}}, 0, 0, -1},
    {"nine gears apart", 3, 3, {{-0.199, 0.9, 99, 90}, {-0.199, 0.8, 104, 90}, {-0.199, 0.7, 108, 100}}, 0, 0, -1},
    {"on average over the bound", 3, 3, {{0.2, 0.9, 100, 90}, {0.2, 0.8, 104, 90}, {-0.1, 0.7, 108, 100}}, 0, 0, -1},
    {"the latest by more than 5 %",
     3,
     3,
     {{-0.1, 0.9, 100, 90}, {-0.1, 0.8, 104, 90}, {0.051, 0.7, 108, 115}},
     0,
     0,
     -1},
    {"the latest by 5 %: a quarter of the weight",
     3,
     3,
     {{-0.2, 0.9, 100, 90}, {-0.2, 0.8, 100, 90}, {0.05, 0.7, 108, 115}},
     0,
     0,
     102},
    {"weights of 1 / sqrt |rho|",
     3,
     3,
     {{-0.01, 0.9, 100, 90}, {-0.04, 0.8, 108, 90}, {-0.04, 0.7, 108, 100}},
     0,
     0,
     104},
    {"a loss on the bound", 3, 3, {{-0.1, 0.9, 100, 90}, {-0.1, 0.8, 100, 90}, {0, 0.7, 108, 120}}, 0, 0, 108},
    {"four: two of 0.20",
     4,
     4,
     {{-0.9, 0.9, 60, 90}, {-0.9, 0.9, 60, 90}, {-0.2, 0.8, 104, 90}, {-0.2, 0.7, 108, 100}},
     0,
     0,
     106},
    {"four: more",
     4,
     4,
     {{-0.9, 0.9, 60, 90}, {-0.9, 0.9, 60, 90}, {-0.2, 0.8, 104, 90}, {-0.22, 0.7, 108, 100}},
     0,
     0,
     -1},
    {"next below 0.73 N: two of 0.40",
     3,
     3,
     {{-0.9, 0.9, 118, 95}, {-0.4, 0.8, 95, 98}, {-0.4, 0.7, 98, 90}},
     0,
     0,
     97},
    {"next not below 0.73 N", 3, 3, {{-0.9, 0.9, 118, 95}, {-0.4, 0.8, 95, 98}, {-0.4, 0.7, 98, 91}}, 0, 0, -1},
    {"more than 0.40", 3, 3, {{-0.9, 0.9, 118, 95}, {-0.4, 0.8, 95, 98}, {-0.41, 0.7, 98, 90}}, 0, 0, -1},
    {"next below 0.5 N: two of 0.55",
     3,
     3,
     {{-0.9, 0.9, 118, 95}, {-0.55, 0.8, 70, 80}, {-0.55, 0.7, 72, 61}},
     0,
     0,
     71},
    {"next not below 0.5 N", 3, 3, {{-0.9, 0.9, 118, 95}, {-0.55, 0.8, 70, 80}, {-0.55, 0.7, 72, 62}}, 0, 0, -1},
    {"low memory clock: two of 0.55",
     3,
     3,
     {{-0.9, 0.9, 118, 95}, {-0.55, 0.8, 95, 98}, {-0.55, 0.7, 98, 110}},
     0,
     1,
     97},
    {"low memory clock: more", 3, 3, {{-0.9, 0.9, 118, 95}, {-0.55, 0.8, 95, 98}, {-0.56, 0.7, 98, 110}}, 0, 1, -1},
    /* of one more than are needed, the odd one is left out */
    {"the middle one", 3, 3, {{-0.1, 0.9, 100, 95}, {-0.9, 0.8, 60, 98}, {-0.1, 0.7, 100, 110}}, 0, 1, 100},
    {"the latest", 3, 3, {{-0.1, 0.9, 100, 95}, {-0.1, 0.8, 100, 98}, {-0.5, 0.7, 94, 110}}, 0, 1, 100},
    {"the latest, though it counts as such",
     3,
     3,
     {{-0.1, 0.9, 100, 95}, {-0.1, 0.8, 100, 98}, {0.06, 0.7, 90, 110}},
     0,
     1,
     -1},
    {"one whose removal leaves the mean over the bound stays",
     3,
     3,
     {{0.2, 0.9, 94, 95}, {-0.4, 0.8, 100, 98}, {0.04, 0.7, 98, 110}},
     0,
     1,
     99},
    {"all over: the oldest goes", 3, 3, {{0.01, 0.9, 60, 95}, {0.04, 0.8, 98, 98}, {0.04, 0.7, 98, 110}}, 0, 1, -1},
    {"of two as good the older one",
     3,
     3,
     {{-0.1, 0.9, 104, 95}, {-0.1, 0.8, 100, 98}, {-0.1, 0.7, 98, 110}},
     0,
     1,
     99},
};

static void test_stops(void) {
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        const stop_row *r = &stops[i];
        const fl_mfg_search s = {.adjustments = r->n, .gears = 124, .late = r->late, .low_memory = r->low_memory};
        fl_mfg_tries t = {.count = 0};
        for (uint32_t k = 0; k < r->count; k++)
            fl_mfg_try(&t, r->tried[k]);
        const int32_t gear = fl_mfg_stop(&t, &s);
        FL_CHECK(gear == r->gear, "%s: %d, expected %d", r->rule, gear, r->gear);
    }
}

FL_SUITE("mfgpoeo_search", {"gains", test_gains}, {"next gear", test_next}, {"what a call leaves", test_memory},
         {"stop rule", test_stops})
