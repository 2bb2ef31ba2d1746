/* Sets the power limits of a recording at its instants, for tests/limits.sh. FOLDLINE_LIMITS names a file of lines
 * "seconds watts". */
#include "policies/policy.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct params {
    double lock_mhz;
} params;
typedef struct node_state {
    uint64_t at;
    int64_t began_ns;
} node_state;
typedef struct gpu_state {
    uint64_t unused;
} gpu_state;

enum { ROWS = 65536 };
static double row_s[ROWS], row_w[ROWS];
static size_t row_count;

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    (void)param_bytes;
    (void)facts;
    node_state *n = state;
    const char *path = getenv("FOLDLINE_LIMITS");
    FILE *f = path ? fopen(path, "r") : NULL;
    if (!f)
        return "FOLDLINE_LIMITS names no file";
    row_count = 0;
    while (row_count < ROWS && fscanf(f, "%lf %lf", &row_s[row_count], &row_w[row_count]) == 2)
        row_count++;
    fclose(f);
    n->began_ns = -1;
    return row_count ? NULL : "no line in FOLDLINE_LIMITS";
}

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *s, fl_command *c) {
    const params *p = param_bytes;
    node_state *n = state;
    (void)facts;
    if (n->began_ns < 0) {
        n->began_ns = s->time_ns;
        if (p->lock_mhz > 0)
            fl_set_gpu(c, 0, FL_SET_SM_MHZ, p->lock_mhz);
    }
    const double t = (double)(s->time_ns - n->began_ns) * 1e-9;
    if (n->at < row_count && row_s[n->at] <= t + 1e-9) {
        while (n->at + 1 < row_count && row_s[n->at + 1] <= t)
            n->at++;
        fl_set_gpu(c, 0, FL_SET_POWER_LIMIT_W, row_w[n->at++]);
    }
    c->delay_ns = n->at < row_count ? (int64_t)(fmax(row_s[n->at] - t, 0.001) * 1e9) + 1 : 1000000000;
}

static const fl_param param_rows[] = {
    FL_PARAM(params, lock_mhz, REAL(0, 1e5), "MHz", "0", "0: no lock"),
};

FL_POLICY(limits) = {FL_POLICY_ABI,
                     .name = "limits",
                     .summary = "power limits of a recording",
                     .source = "tests/limits.sh",
                     .gpu_drives = FL_BIT(FL_SET_POWER_LIMIT_W) | FL_BIT(FL_SET_SM_MHZ),
                     .param = param_rows,
                     .param_count = FL_COUNT(param_rows),
                     .param_size = sizeof(params),
                     .state_size = sizeof(node_state),
                     .gpu_size = sizeof(gpu_state),
                     .init = init,
                     .step = step};
