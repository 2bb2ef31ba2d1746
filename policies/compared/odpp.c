/* ODPP as its authors ran it beside MF-GPOEO, with the slips that their program has. It locks seven SM clocks one after
 * the other and records what NVML tells every 100 ms. The strongest frequency of that trace is the program's period.
 * Four of the clocks make straight lines of energy and time of a period over the clock; the other three retrain two
 * small networks that correct the lines. The clock of least E T^2 then holds, and the power is watched: where it moves,
 * all of it begins anew. Each GPU of a node by itself.
 *
 * The slips: the bound is compared with the absolute time of a period, in seconds, not with the time over that at the
 * top clock; where any clock passes, the lowest one is admitted too; and the networks are asked with the readings of
 * the last run, though they were trained with those of the top clock.
 *
 * The weights were never published. `foldline fit policy odpp` trains some, and they are a table parameter. Without
 * that table the lines alone predict. What the authors' text leaves open, and what is done here:
 * - the search begins start_s after the GPU is first busy (a "simple logic" skips the unstable start);
 * - the range of the watched power is that of the means of all windows since the choice, over their mean; the period in
 *   the length of these windows and in the pauses is that of the last run; the i of a pause counts the windows;
 * - a clock has its second to settle before the first window of the watch, too: a power that is read as a mean of the
 *   last second would else tell of the run before, differ from that of all later windows, and begin the search anew;
 * - where readings are missing for missing_s within the search, it ends, the default clock holds, and the search begins
 *   anew start_s after they are back; a chosen clock stays, and the window begins anew. */
#include "policies/compared/inside.h"

#include "policies/compared/compared.h"
#include "policies/policy.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define FL_ODPP_COLUMNS "energy|time"

#define FL_ODPP_EPOCHS 20 /* of retraining */

enum { WAIT, MEASURE, WATCH, PAUSE };
enum { PROBE_CLOCKS_MAX = 8, TRAIN_CLOCKS_MAX = 8, GEARS_MAX = 512, FIRST_PAUSE = 3, LONGEST_PAUSE = 32 };
static const double watch_more_s = 1.5;

typedef struct params {
    double con_perf, idle_w, phase, start_s, missing_s, step_mhz, period_ms;
    fl_table probe_mhz, train_mhz, weights;
} params;

typedef struct gpu_state {
    uint32_t state, at, runs, blind, checks; /* at: of the runs; checks: windows watched since the choice */
    int64_t busy_ns, begun_ns, known_ns;     /* first busy; start of this search; readings last known; -1: never */
    int64_t begin_ns, end_ns;                /* of the trace, the window or the pause */
    int64_t settled_ns;                      /* from then on readings are those of the clock set last */
    double limit_w, set_mhz, period_s, energy_j, time_s, optimised_s; /* predicted at the choice */
    double least_w, most_w, sum_w;                                    /* of the windows since the choice */
    fl_odpp_run run[PROBE_CLOCKS_MAX + TRAIN_CLOCKS_MAX];
    fl_readings trace;
    union { /* never both at once */
        fl_fft fft;
        struct {
            fl_mlp net;
            fl_mlp_adam adam;
            double predicted[FL_ODPP_QUANTITIES][GEARS_MAX];
        } model;
    } work;
} gpu_state;

static gpu_state *gpus(void *state) { return fl_gpu_states(state, 0); }

static int64_t ns_of(double seconds) { return (int64_t)(seconds * 1e9 + 0.5); }

static const char *init(void *state, const void *param_bytes, const fl_facts *facts) {
    const params *p = param_bytes;
    const uint32_t count = p->probe_mhz.row_count;
    if (count < 2 || count > PROBE_CLOCKS_MAX || p->train_mhz.row_count < 1 ||
        p->train_mhz.row_count > TRAIN_CLOCKS_MAX)
        return "probe_mhz takes 2 to 8 clocks, train_mhz 1 to 8";
    for (uint32_t i = 0; i + 1 < count; i++)
        if (!(p->probe_mhz.cell[i] < p->probe_mhz.cell[i + 1]))
            return "probe_mhz must rise";
    if ((p->probe_mhz.cell[count - 1] - p->probe_mhz.cell[0]) / p->step_mhz + 1 >= GEARS_MAX)
        return "step_mhz makes more than 511 clocks of probe_mhz";
    if (p->weights.row_count && p->weights.row_count != FL_MLP_SIZE)
        return "weights must hold the two networks of ODPP, one number of each in a row; foldline fit policy odpp "
               "makes them";
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        g->limit_w = fl_readings_limit_w(&facts->gpu[i]);
        g->busy_ns = g->known_ns = -1;
        g->set_mhz = FL_DEFAULT;
        g->period_s = g->energy_j = g->time_s = g->optimised_s = NAN;
    }
    return fl_need_ladders(facts);
}

static void set_sm(gpu_state *g, uint32_t gpu, fl_command *command, fl_ladder ladder, double mhz, int64_t now_ns) {
    if (mhz > 0)
        mhz = fl_ladder_nearest(ladder, mhz);
    if (mhz != g->set_mhz)
        fl_set_gpu(command, gpu, FL_SET_SM_MHZ, mhz);
    g->set_mhz = mhz;
    g->settled_ns = now_ns + ns_of(FL_ODPP_SETTLE_S);
}

/* ---- the model ----------------------------------------------------------------------------------------------------
 */

static double clock_at(const params *p, uint32_t i) {
    const uint32_t probes = p->probe_mhz.row_count;
    return i < probes ? p->probe_mhz.cell[i] : p->train_mhz.cell[i - probes];
}

/* The network for one quantity: its weights, retrained on the runs that the lines do not go through. */
static void retrain(const params *p, gpu_state *g, int quantity) {
    const uint32_t probes = p->probe_mhz.row_count, count = g->runs - probes;
    const fl_odpp_run *top = &g->run[probes - 1];
    double x[TRAIN_CLOCKS_MAX * FL_MLP_INPUTS], y[TRAIN_CLOCKS_MAX];
    for (uint32_t i = 0; i < FL_MLP_SIZE; i++)
        g->work.model.net.value[i] = p->weights.cell[i * FL_ODPP_QUANTITIES + (uint32_t)quantity];
    memset(&g->work.model.adam, 0, sizeof g->work.model.adam);
    for (uint32_t i = 0; i < count; i++) {
        const fl_odpp_run *run = &g->run[probes + i];
        const double line = fl_odpp_line(g->run, probes, quantity, run->mhz);
        fl_odpp_inputs(&x[i * FL_MLP_INPUTS], line, run->mhz, top->mhz, top);
        y[i] = fl_odpp_quantity(run, quantity);
    }
    for (uint32_t epoch = 0; epoch < FL_ODPP_EPOCHS; epoch++)
        fl_mlp_train(&g->work.model.net, &g->work.model.adam, x, y, count);
}

static void predict(const params *p, gpu_state *g, uint32_t gears, int quantity) {
    const uint32_t probes = p->probe_mhz.row_count;
    const double top = g->run[probes - 1].mhz;
    if (p->weights.row_count)
        retrain(p, g, quantity);
    for (uint32_t i = 0; i < gears; i++) {
        const double mhz = g->run[0].mhz + i * p->step_mhz, line = fl_odpp_line(g->run, probes, quantity, mhz);
        double x[FL_MLP_INPUTS];
        fl_odpp_inputs(x, line, mhz, top, &g->run[g->runs - 1]);
        g->work.model.predicted[quantity][i] = p->weights.row_count ? fl_mlp_predict(&g->work.model.net, x) : line;
    }
}

/* The gear of least E T^2 among those whose period is within the bound, in absolute seconds; the top where none is. */
static uint32_t choose(const params *p, const gpu_state *g, uint32_t gears) {
    const double *energy = g->work.model.predicted[FL_ODPP_ENERGY], *time = g->work.model.predicted[FL_ODPP_TIME];
    uint32_t best = gears - 1, passed = 0;
    for (uint32_t i = 0; i < gears; i++)
        passed += time[i] - 1 <= p->con_perf;
    for (uint32_t i = 0, found = 0; passed && i < gears; i++) {
        if (i > 0 && !(time[i] - 1 <= p->con_perf))
            continue;
        if (!found++ || energy[i] * time[i] * time[i] < energy[best] * time[best] * time[best])
            best = i;
    }
    return best;
}

/* ---- the course ---------------------------------------------------------------------------------------------------
 */

static void begin_run(const params *p, gpu_state *g, uint32_t gpu, fl_ladder ladder, int64_t now_ns,
                      fl_command *command) {
    set_sm(g, gpu, command, ladder, clock_at(p, g->at), now_ns);
    g->state = MEASURE;
    g->begin_ns = g->settled_ns;
    g->end_ns = g->begin_ns + ns_of(FL_ODPP_TRACE_S);
    g->trace.count = 0;
}

static void begin_window(gpu_state *g, int64_t now_ns) {
    g->state = WATCH;
    g->begin_ns = now_ns > g->settled_ns ? now_ns : g->settled_ns;
    g->end_ns = g->begin_ns + ns_of(fmin(g->period_s + watch_more_s, 1e6));
    g->trace.count = 0;
}

static void begin_search(const params *p, gpu_state *g, uint32_t gpu, fl_ladder ladder, int64_t now_ns,
                         fl_command *command) {
    g->at = g->runs = 0;
    g->begun_ns = now_ns;
    begin_run(p, g, gpu, ladder, now_ns, command);
}

static void end_search(const params *p, gpu_state *g, uint32_t gpu, fl_ladder ladder, int64_t now_ns,
                       fl_command *command) {
    const double low = g->run[0].mhz, high = g->run[p->probe_mhz.row_count - 1].mhz;
    const uint32_t gears = (uint32_t)floor((high - low) / p->step_mhz + 1e-9) + 1;
    for (int quantity = 0; quantity < FL_ODPP_QUANTITIES; quantity++)
        predict(p, g, gears, quantity);
    const uint32_t gear = choose(p, g, gears);
    g->energy_j = g->work.model.predicted[FL_ODPP_ENERGY][gear];
    g->time_s = g->work.model.predicted[FL_ODPP_TIME][gear];
    g->optimised_s = (double)(now_ns - g->begun_ns) * 1e-9;
    set_sm(g, gpu, command, ladder, low + gear * p->step_mhz, now_ns);
    g->checks = 0;
    begin_window(g, now_ns);
}

static void end_trace(const params *p, gpu_state *g, uint32_t gpu, fl_ladder ladder, int64_t now_ns,
                      fl_command *command) {
    const double period = fl_odpp_period_s(&g->work.fft, &g->trace, g->limit_w);
    const double missing = fl_odpp_missing_s(fl_readings_length_s(&g->trace), period);
    g->period_s = period;
    if (missing > 0 && g->trace.count < FL_FFT_MAX) {
        g->end_ns += ns_of(missing);
        return;
    }
    g->run[g->runs++] = fl_odpp_measure(&g->trace, clock_at(p, g->at), period, p->idle_w);
    if (++g->at < p->probe_mhz.row_count + p->train_mhz.row_count)
        begin_run(p, g, gpu, ladder, now_ns, command);
    else
        end_search(p, g, gpu, ladder, now_ns, command);
}

static void end_window(const params *p, gpu_state *g, uint32_t gpu, fl_ladder ladder, int64_t now_ns,
                       fl_command *command) {
    const double w = fl_readings_last(&g->trace, INFINITY).power_w;
    g->least_w = g->checks ? fmin(g->least_w, w) : w;
    g->most_w = g->checks ? fmax(g->most_w, w) : w;
    g->sum_w = g->checks ? g->sum_w + w : w;
    g->checks++;
    if (g->most_w - g->least_w > p->phase * g->sum_w / g->checks) {
        begin_search(p, g, gpu, ladder, now_ns, command);
        return;
    }
    begin_window(g, now_ns);
    if (g->checks < FIRST_PAUSE)
        return;
    g->state = PAUSE;
    g->end_ns = now_ns + ns_of(fmin(fmin(ldexp(1, (int)fmin(g->checks, 30) - 1), LONGEST_PAUSE) * g->period_s, 1e6));
}

/* Readings are missing. */
static void wait_blind(const params *p, gpu_state *g, uint32_t gpu, fl_ladder ladder, int64_t now_ns,
                       fl_command *command) {
    if (g->state == WATCH)
        begin_window(g, now_ns);
    if (g->state != MEASURE || now_ns - g->known_ns < ns_of(p->missing_s))
        return;
    set_sm(g, gpu, command, ladder, FL_DEFAULT, now_ns);
    g->state = WAIT;
    g->busy_ns = -1;
}

static void step_gpu(const params *p, gpu_state *g, uint32_t gpu, fl_ladder ladder, const fl_gpu_sample *s,
                     int64_t now_ns, fl_command *command) {
    g->blind = !fl_readings_known(s);
    if (g->blind) {
        wait_blind(p, g, gpu, ladder, now_ns, command);
        return;
    }
    g->known_ns = now_ns;
    if (g->state == WAIT) {
        if (g->busy_ns < 0 && s->value[FL_GPU_UTIL_GPU_PCT] > 0)
            g->busy_ns = now_ns;
        if (g->busy_ns >= 0 && now_ns - g->busy_ns >= ns_of(p->start_s))
            begin_search(p, g, gpu, ladder, now_ns, command);
    } else if (g->state == PAUSE) {
        if (now_ns >= g->end_ns)
            begin_window(g, now_ns);
    } else if (now_ns >= g->begin_ns) {
        fl_readings_add(&g->trace, s, now_ns);
        if (now_ns >= g->end_ns && g->trace.count > 1) {
            if (g->state == MEASURE)
                end_trace(p, g, gpu, ladder, now_ns, command);
            else
                end_window(p, g, gpu, ladder, now_ns, command);
        }
    }
}

#define PROBES(X)                                                                                                      \
    X("state", "", "0 waits for a busy GPU, 1 measures, 2 watches, 3 pauses", g->state)                                \
    X("set_mhz", "MHz", "SM clock that holds; -1 the default", g->set_mhz)                                             \
    X("runs", "", "clocks measured in this search", g->runs)                                                           \
    X("period_s", "s", "period that was found last", g->period_s)                                                      \
    X("energy_j", "J", "energy of a period above the idle power, as predicted for the choice", g->energy_j)            \
    X("time_s", "s", "time of a period, as predicted for the choice", g->time_s)                                       \
    X("checks", "", "windows watched since the choice", g->checks)                                                     \
    X("optimisation_s", "s", "from the first clock set to the choice", g->optimised_s)                                 \
    X("held", "", "1: decided without readings", g->blind)
static const fl_probe probe_rows[] = {PROBES(FL_PROBE_ROW)};

static void step(void *state, const void *param_bytes, const fl_facts *facts, const fl_sample *sample,
                 fl_command *command) {
    const params *p = param_bytes;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        gpu_state *g = &gpus(state)[i];
        step_gpu(p, g, i, facts->gpu[i].sm, &sample->gpu[i], sample->time_ns, command);
        fl_show_all(command, i, 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
    }
    command->delay_ns = (int64_t)(p->period_ms * 1e6 + 0.5);
}

static const fl_param param_rows[] = {
    FL_PARAM(params, weights, TABLE(FL_ODPP_COLUMNS), "", "",
             "the two networks, by foldline fit policy odpp; harness/experiments/odpp.weights.csv are some for an RTX "
             "3080 Ti. Without: straight lines alone predict (the authors' weights were never published)"),
    FL_PARAM(params, con_perf, REAL(0, 10), "", "0.045",
             "the bound: a period of this clock less 1 s, in seconds (the released program takes absolute time for "
             "relative)"),
    FL_PARAM(
        params, idle_w, REAL(0, 1e5), "W", "30",
        "idle power, which belongs to no work: taken off that of a run (the authors: 30, 1.65 for an RTX 2080 Ti)"),
    FL_PARAM(params, probe_mhz, LIST(1, 1e5), "MHz", "450/945/1425/1920",
             "clocks that the straight lines go through; the ladder's nearest is set"),
    FL_PARAM(params, train_mhz, LIST(1, 1e5), "MHz", "690/1185/1680", "clocks that the networks are retrained on"),
    FL_PARAM(params, step_mhz, REAL(0.001, 1e5), "MHz", "15", "one gear of the predicted clocks"),
    FL_PARAM(params, phase, REAL(0, 100), "", "0.15", "range of the watched power over its mean that starts all anew"),
    FL_PARAM(params, start_s, REAL(0, 1e6), "s", "16",
             "from the first busy sample to the first clock: the unstable start (assumed, as the authors' DEPO)"),
    FL_PARAM(params, missing_s, REAL(0, 1e6), "s", "1",
             "time without readings after which a search ends and the default clock holds (assumed)"),
    FL_PARAM(params, period_ms, REAL(10, 1e5), "ms", "100", "time from one sample to the next"),
};

/* FL_READINGS_NEEDS. */
static const fl_signal_row signal_rows[] = {
    FL_NEEDS(GPU_POWER_W),
    FL_NEEDS(GPU_UTIL_GPU_PCT),
    FL_NEEDS(GPU_UTIL_MEM_PCT),
};

FL_POLICY(odpp) = {FL_POLICY_ABI,
                   .name = "odpp",
                   .summary = "predicts energy E and time T by seven probed SM clocks, sets the clock of least E T^2",
                   .source = "ODPP (CCGrid 2020) as run beside MF-GPOEO (IEEE TSUSC 2024, Sec. V-C, Table V)",
                   .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                   .gpu_size = sizeof(gpu_state),
                   FL_POLICY_PARTS(params)};
