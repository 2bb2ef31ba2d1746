/* The worked example of sim/README.md: its tables are read from the page, and every number in them is what the engine
 * gives, by either way of advancing. */
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/instance/instance.h"
#include "sim/node/inside.h"
#include "sim/node/node.h"
#include "traces/io/io.h"
#include "tests/support/sim_fixture.h"

#define HEADING "\n## A worked example\n"
#define STEP_NS 6000000

typedef struct fl_reader { /* of one run */
    char *section;         /* of the page */
    bool streams_only;
    size_t rows; /* that begin with a number, seen so far */
} fl_reader;

/* The section from its heading to the next; its end becomes the end of the text. */
static char *read_section(void) {
    FILE *f = fopen(FL_ROOT "/sim/README.md", "r");
    char *text = fx_alloc(1 << 17, 1);
    const size_t size = f ? fread(text, 1, (1 << 17) - 1, f) : 0;
    if (f)
        fclose(f);
    char *section = size ? strstr(text, HEADING) : NULL;
    if (!section) {
        printf("\n    sim/README.md: no section '%.*s'\n", (int)sizeof HEADING - 3, HEADING + 1);
        exit(1);
    }
    memmove(text, section, strlen(section) + 1);
    char *next = strstr(text + sizeof HEADING, "\n## ");
    if (next)
        next[1] = '\0';
    return text;
}

static void must_say(const fl_reader *r, const char *text) {
    FL_CHECK(strstr(r->section, text) != NULL, "way %d: the page lacks, but the engine gives: %s", r->streams_only,
             text + (*text == '\n'));
}

/* What is left after a change of length, as the page works it out: the dividend is rounded by half the old length, and
 * the result stands in the first table, behind the new length. */
static void check_rescales(const char *section) {
    size_t count = 0;
    long long left, after, half, before;
    for (const char *p = strstr(section, "`("); p; p = strstr(p + 1, "`(")) {
        if (sscanf(p, "`(%lld * %lld + %lld) / %lld`", &left, &after, &half, &before) != 4)
            continue;
        char cells[64];
        count++;
        snprintf(cells, sizeof cells, " | %lld | %lld | ", after, (long long)(((fl_wide)left * after + half) / before));
        FL_CHECK(half == before / 2 && strstr(section, cells), "(%lld * %lld + %lld) / %lld gives%s", left, after, half,
                 before, cells);
    }
    FL_CHECK(count == 2, "%zu rescalings on the page", count);
}

/* ---- the course ---- */

static fl_status see_truth(void *user, const fl_node *n, int64_t t_ps, fl_diag *d) {
    static const int64_t rows_ms[] = {0, 10, 15, 20, 21, 30};
    fl_reader *r = user;
    const fl_gpu *g = fl_node_gpu(n, 0);
    const fl_lane *l = &n->lane[0];
    const int64_t left = r->streams_only ? l->p.left_ps - fl_work_done(&l->p, t_ps) : l->p.left_ps;
    (void)d;
    for (size_t i = 0; i < sizeof rows_ms / sizeof *rows_ms; i++) {
        char row[256];
        if (t_ps != rows_ms[i] * FX_MS_PS)
            continue;
        snprintf(row, sizeof row, "\n| %lld | %d | %d | %d | %u | %lld | %lld | %lld | ", (long long)rows_ms[i],
                 g->dev->sm_mhz[g->lock_sm], g->dev->sm_mhz[g->wall_sm], g->dev->sm_mhz[g->sm], g->rates->row[0].mul,
                 (long long)l->length_ps, (long long)left, (long long)fl_gpu_power_mw(g));
        must_say(r, row);
        r->rows++;
    }
    return FL_OK;
}

/* ---- what the policy sees ---- */

/* At 12 ms a lock at 1200 MHz, at 18 ms one at 700 MHz. */
static void step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample, fl_command *command) {
    (void)state, (void)params, (void)facts;
    command->delay_ns = STEP_NS;
    if (sample->time_ns == 2 * STEP_NS)
        fl_set_gpu(command, 0, FL_SET_SM_MHZ, 1200);
    if (sample->time_ns == 3 * STEP_NS)
        fl_set_gpu(command, 0, FL_SET_SM_MHZ, 700);
}

static fl_status see_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    fl_reader *r = user;
    const fl_gpu_sample *g = &sample->gpu[0];
    char power[32] = "unknown", set[32] = "nothing", row[256];
    (void)d;
    if (g->valid & FL_BIT(FL_GPU_POWER_W))
        snprintf(power, sizeof power, "%g", g->value[FL_GPU_POWER_W]);
    if (decision->gpu[0][FL_SET_SM_MHZ].set)
        snprintf(set, sizeof set, "%g MHz", decision->gpu[0][FL_SET_SM_MHZ].value);
    snprintf(row, sizeof row, "\n| %lld | %s | %g | %s | %.0f | %s |\n", (long long)sample->time_ns / 1000000, power,
             g->value[FL_GPU_SM_MHZ], (int)g->value[FL_GPU_THROTTLE] & FL_THROTTLE_POWER ? "power" : "none",
             g->value[FL_GPU_POWER_VIOLATION_NS], set);
    must_say(r, row);
    r->rows++;
    return FL_OK;
}

/* ---- the energy ---- */

static void check_part(const fl_reader *r, const fl_run_result *out, const char *name, fl_wide sum,
                       const int64_t *mw /* by clock visited */) {
    char row[256];
    int at = snprintf(row, sizeof row, "\n| %s |", name);
    for (size_t k = 0; k < out->residence_count; k++)
        at += snprintf(row + at, sizeof row - (size_t)at, " %lld |", (long long)(out->residence[k].ps * mw[k]));
    snprintf(row + at, sizeof row - (size_t)at, " %lld |\n", (long long)sum);
    must_say(r, row);
}

static void check_energy(const fl_reader *r, const fx_rig *rig, const fl_run_result *out) {
    int64_t part[4][3] = {{0}}, all[3] = {0};
    FL_CHECK(out->residence_count == 3, "%zu clocks visited", out->residence_count);
    for (size_t k = 0; k < 3 && k < out->residence_count; k++) {
        const fl_clock_rates *at = fx_rates(rig, out->residence[k].sm_mhz, 800);
        part[0][k] = at->base.static_mw;
        part[1][k] = at->base.memory_mw + at->parts[0].memory_mw;
        part[2][k] = at->base.tree_mw;
        part[3][k] = at->parts[0].sm_mw;
        all[k] = part[0][k] + part[1][k] + part[2][k] + part[3][k];
    }
    static const fl_part id[4] = {FL_PART_STATIC, FL_PART_MEMORY, FL_PART_CLOCK_TREE, FL_PART_SM};
    for (int i = 0; i < 4; i++)
        check_part(r, out, fl_part_names[id[i]], out->ledger.part_fj[id[i]], part[i]);
    check_part(r, out, "all", out->energy_fj, all);
}

/* ---- the node ---- */

/* The power limit of the page: a look each 10 ms at the mean power since the last, clock x limit/P, up at each look. */
static void open_rig(fx_rig *r) {
    fx_open(r, 1);
    fl_device *dev = r->spec.device;
    dev->power_default_w = 130;
    dev->wall = (fl_wall_spec){.period_ns = 10000000, .exponent = 1, .aim = 1, .rise_mhz = 1000};
    dev->actuator = (fl_actuator_spec){.call_ns = 1000000, .settle_ns = 2000000};
    dev->sensor[FL_SENSOR_POWER] =
        (fl_sensor_spec){.period_ns = 5000000, .window_ns = 5000000, .delay_ns = 1000000, .present = 1};
    dev->sensor[FL_SENSOR_CLOCK] = (fl_sensor_spec){.present = 1};
    fx_op(r, fx_stream(r, 0, 0), 0, 30000000, fx_class(r, 1, 0, 0, 1, 0, 1));
    fx_finish(r, 1);
}

static void test_page(void) {
    char *section = read_section();
    size_t rows = 0;
    for (const char *p = strchr(section, '\n'); p; p = strchr(p + 1, '\n'))
        rows += p[1] == '|' && p[2] == ' ' && p[3] >= '0' && p[3] <= '9';
    check_rescales(section);
    fx_rig rig;
    open_rig(&rig);
    for (int only = 0; only < 2; only++) {
        fl_reader r = {.section = section, .streams_only = only};
        fl_policy policy = fx_policy(FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_THROTTLE) |
                                     FL_BIT(FL_GPU_POWER_VIOLATION_NS));
        policy.step = step;
        fl_run_options o = {.w = rig.w,
                            .rates = rig.rates,
                            .spec = &rig.spec,
                            .facts = &rig.facts,
                            .policy = &policy,
                            .path = only ? FL_PATH_EVENTS : FL_PATH_AUTO,
                            .on_step = see_step,
                            .on_truth = see_truth,
                            .truth_ns = 1000000,
                            .user = &r};
        fl_run_result out;
        FX_MUST(fl_run(&o, &out, d));
        check_energy(&r, &rig, &out);
        char end[64];
        snprintf(end, sizeof end, "ends at %lld ps", (long long)out.makespan_ps);
        must_say(&r, end);
        snprintf(end, sizeof end, "held the clock down, for %lld ps", (long long)out.wall_held_ps);
        must_say(&r, end);
        FL_CHECK(r.rows == rows, "way %d: %zu rows of the page, %zu of the run", only, rows, r.rows);
        fl_run_result_free(&out);
    }
    fx_close(&rig);
    free(section);
}

FL_SUITE("worked_example", {"page", test_page})
