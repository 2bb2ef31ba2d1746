/* Hybrid power capping (Tsuzuku and Endo, SMARTGREENS 2015): the seven methods of Table 4. The meter is the node's.
 *
 * Dynamic (3.1): one step of the ladder per control interval, down when power reaches or exceeds the cap, up when it is
 * well below. Static (3.2): clocks of GPU and CPU from the model, set once. Hybrid (3.3): begins at the model's clocks
 * and goes on dynamically, hybrid2 never above the clock that it began with. */
#include "policies/papers/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Columns of the table; quantities: static_w, comm_w, comm_s, and for either processor gpu. or cpu. with volt (one row
 * per clock), a_w, b_w, c_w, alpha, beta, and time_s (two rows: at the lowest and the highest clock). idle_s: both wait
 * (T_idle, part of T_all). The column mhz is 0 where a quantity belongs to no clock. comm_w, comm_s, idle_s and all of
 * the CPU's may be left out; foldline fit policy capping, whose applications never idle, writes no idle_s. */
#define POWERCAP_COLUMNS "key:quantity|mhz|value"

/* ---- the model ---- */

enum { MHZ, VALUE }; /* columns of numbers */

static int same(const char *a, const char *b) {
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static double cell(const fl_table *t, uint32_t row, int column) {
    return t->cell[row * t->column_count + (uint32_t)column];
}

/* The quantity that belongs to no clock; NAN where the table lacks it. */
static double scalar(const fl_table *t, const char *name) {
    for (uint32_t i = 0; i < t->row_count; i++)
        if (same(t->key[i], name))
            return cell(t, i, VALUE);
    return NAN;
}

static double or_zero(double x) { return x > 0 ? x : 0; }

typedef struct side_names {
    const char *volt, *a, *b, *c, *alpha, *beta, *time;
} side_names;

static const side_names gpu_names = {"gpu.volt",  "gpu.a_w",  "gpu.b_w",   "gpu.c_w",
                                     "gpu.alpha", "gpu.beta", "gpu.time_s"};
static const side_names cpu_names = {"cpu.volt",  "cpu.a_w",  "cpu.b_w",   "cpu.c_w",
                                     "cpu.alpha", "cpu.beta", "cpu.time_s"};

/* Lowest and highest clock at which the quantity stands, and its values there; false where there is none. */
static int ends(const fl_table *t, const char *name, double *low, double *low_value, double *high, double *high_value) {
    int any = 0;
    for (uint32_t i = 0; i < t->row_count; i++) {
        if (!same(t->key[i], name))
            continue;
        if (!any || cell(t, i, MHZ) < *low) {
            *low = cell(t, i, MHZ);
            *low_value = cell(t, i, VALUE);
        }
        if (!any || cell(t, i, MHZ) > *high) {
            *high = cell(t, i, MHZ);
            *high_value = cell(t, i, VALUE);
        }
        any = 1;
    }
    return any;
}

/* V between two clocks of the table on a line; beyond its ends what it is there. */
static double volt_at(const fl_table *t, const char *name, double mhz) {
    double below = 0, above = 0, v_below = 1, v_above = 1;
    int has_below = 0, has_above = 0;
    for (uint32_t i = 0; i < t->row_count; i++) {
        if (!same(t->key[i], name))
            continue;
        const double at = cell(t, i, MHZ);
        if (at <= mhz && (!has_below || at > below)) {
            below = at;
            v_below = cell(t, i, VALUE);
            has_below = 1;
        }
        if (at >= mhz && (!has_above || at < above)) {
            above = at;
            v_above = cell(t, i, VALUE);
            has_above = 1;
        }
    }
    if (!has_below)
        return v_above;
    if (!has_above || above == below)
        return v_below;
    return v_below + (v_above - v_below) * ((mhz - below) / (above - below));
}

static int read_side(powercap_side *s, const fl_table *t, const side_names *n) {
    double unused_low, unused_high;
    *s = (powercap_side){.a_w = scalar(t, n->a),
                         .b_w = scalar(t, n->b),
                         .c_w = scalar(t, n->c),
                         .alpha = scalar(t, n->alpha),
                         .beta = scalar(t, n->beta),
                         .volt = n->volt};
    for (uint32_t i = 0; i < t->row_count; i++)
        if (same(t->key[i], n->volt) && !(cell(t, i, VALUE) > 0 && cell(t, i, MHZ) > 0))
            return 0;
    return s->a_w >= 0 && s->b_w >= 0 && s->c_w >= 0 && s->alpha >= 0 && s->beta >= 0 &&
           ends(t, n->volt, &s->volt_low_mhz, &unused_low, &s->volt_high_mhz, &unused_high) &&
           ends(t, n->time, &s->low_mhz, &s->low_s, &s->high_mhz, &s->high_s) && s->low_mhz > 0 && s->low_s >= 0 &&
           s->high_s >= 0;
}

const char *powercap_model_read(powercap_model *m, const fl_table *table) {
    double unused[4];
    *m = (powercap_model){.table = table,
                          .static_w = scalar(table, "static_w"),
                          .comm_w = or_zero(scalar(table, "comm_w")),
                          .comm_s = or_zero(scalar(table, "comm_s")),
                          .idle_s = or_zero(scalar(table, "idle_s"))};
    if (!(m->static_w >= 0))
        return "the model has no static_w, expected one at or above 0";
    if (!read_side(&m->gpu, table, &gpu_names))
        return "the model of the GPU is not whole, expected gpu.volt, a_w, b_w, c_w, alpha, beta and time_s, none "
               "below 0";
    m->has_cpu = ends(table, cpu_names.volt, &unused[0], &unused[1], &unused[2], &unused[3]);
    if (m->has_cpu && !read_side(&m->cpu, table, &cpu_names))
        return "the model of the CPU is not whole, expected cpu.volt, a_w, b_w, c_w, alpha, beta and time_s, none "
               "below 0";
    return 0;
}

double powercap_power(const powercap_model *m, const powercap_side *s, double mhz) {
    const double v = volt_at(m->table, s->volt, mhz);
    return s->alpha * s->a_w * v * v * (mhz / 1000) + s->beta * s->b_w + s->c_w * v;
}

/* T(fmin) fmin/f may exceed T(fmax) at fmax itself, where the highest state is the one from which hardware boosts (a
 * CPU's 2201 MHz is 3 GHz): its clock says less than it does. T(fmax) may exceed T(fmin) at fmin itself, where the two
 * differ by no more than the measurement's noise. */
double powercap_time(const powercap_model *m, const powercap_side *s, double mhz) {
    if (!m->printed && (mhz == s->high_mhz || mhz == s->low_mhz))
        return mhz == s->high_mhz ? s->high_s : s->low_s;
    return fmax(s->low_s * s->low_mhz / mhz, s->high_s);
}

/* Eq. 1, and the largest power: parts of the run do not overlap (3.2.1). cpu_mhz 0: at the model's highest. */
static powercap_choice predict(const powercap_model *m, double gpu_mhz, double cpu_mhz) {
    const double cpu_at = cpu_mhz > 0 ? cpu_mhz : m->cpu.high_mhz;
    const double gpu_w = powercap_power(m, &m->gpu, gpu_mhz), gpu_s = powercap_time(m, &m->gpu, gpu_mhz);
    const double cpu_w = m->has_cpu ? powercap_power(m, &m->cpu, cpu_at) : 0;
    const double cpu_s = m->has_cpu ? powercap_time(m, &m->cpu, cpu_at) : 0;
    powercap_choice c = {.gpu_mhz = gpu_mhz, .cpu_mhz = cpu_mhz};
    c.time_s = gpu_s + cpu_s + m->comm_s + m->idle_s;
    c.energy_j = m->static_w * c.time_s + m->comm_w * m->comm_s + cpu_w * cpu_s + gpu_w * gpu_s;
    c.peak_w = m->static_w + (gpu_s > 0 ? gpu_w : 0);
    if (cpu_s > 0)
        c.peak_w = fmax(c.peak_w, m->static_w + cpu_w);
    if (m->comm_s > 0)
        c.peak_w = fmax(c.peak_w, m->static_w + m->comm_w);
    return c;
}

static int better(const powercap_choice *a, const powercap_choice *b, int objective) {
    const double first = objective == POWERCAP_TIME ? a->time_s - b->time_s : a->energy_j - b->energy_j;
    const double second = objective == POWERCAP_TIME ? a->energy_j - b->energy_j : a->time_s - b->time_s;
    if (a->fits != b->fits)
        return a->fits;
    if (!a->fits && a->peak_w != b->peak_w)
        return a->peak_w < b->peak_w;
    return first < 0 || (first == 0 && second < 0);
}

void powercap_choose(const powercap_model *m, fl_ladder gpu, fl_ladder cpu, double cap_w, int objective,
                     powercap_choice *out) {
    const uint32_t cpus = m->has_cpu && cpu.count ? cpu.count : 1;
    for (uint32_t g = 0; g < gpu.count; g++)
        for (uint32_t c = 0; c < cpus; c++) {
            powercap_choice at = predict(m, gpu.mhz[g], m->has_cpu && cpu.count ? cpu.mhz[c] : 0);
            at.fits = at.peak_w <= cap_w;
            if ((!g && !c) || better(&at, out, objective))
                *out = at;
        }
}

/* ---- the methods ---- */

typedef enum powercap_reading { READ_LAST, READ_MEAN, READ_PEAK } powercap_reading;

enum { ENDS_MEASURED, ENDS_PRINTED };

typedef struct powercap_params {
    double cap_w, margin_w, interval_s, monitor_ms;
    int64_t reading, objective, ends;
    fl_table model;
} powercap_params;

typedef enum powercap_start { START_LOWEST, START_HIGHEST, START_MODEL } powercap_start;

typedef struct powercap_method {
    powercap_start start;
    int dynamic; /* goes on by what the meter shows */
    int bounded; /* and never above the clock that it began with */
} powercap_method;

typedef struct powercap_state {
    uint64_t begun;
    int64_t control_ns; /* next decision */
    uint64_t seen;      /* fresh readings since the last decision */
    double last_w, sum_w, peak_w;
    uint64_t readings, above; /* over the whole run; above the cap */
    double total_w;
    uint64_t held;
    uint64_t chosen; /* the model gave the clocks below */
    double gpu_mhz, cpu_mhz, predicted_w, predicted_s, predicted_j;
} powercap_state;

typedef struct powercap_gpu {
    uint64_t at, ceiling; /* indices on its ladder */
} powercap_gpu;

/* `held` of a static method: the meter only keeps the accounts, no decision waits for it. */
#define PROBES(X)                                                                                                      \
    X("held", "",                                                                                                      \
      "1: the last decision had no reading of the node meter, and changed nothing; none where the meter "              \
      "decides nothing",                                                                                               \
      how->dynamic ? (double)s->held : (double)NAN)                                                                    \
    X("meter_w", "W", "the node meter's last reading", s->readings ? s->last_w : (double)NAN)                          \
    X("excess_pct", "%", "excess duration: share of the readings so far above the cap (4.2)",                          \
      s->readings ? 100 * (double)s->above / (double)s->readings : (double)NAN)                                        \
    X("mean_w", "W", "mean of the readings so far", s->readings ? s->total_w / (double)s->readings : (double)NAN)      \
    X("predicted_w", "W", "the model's node power at its clocks", s->chosen ? s->predicted_w : (double)NAN)            \
    X("predicted_s", "s", "the model's run time", s->chosen ? s->predicted_s : (double)NAN)                            \
    X("predicted_j", "J", "the model's node energy (Eq. 1)", s->chosen ? s->predicted_j : (double)NAN)                 \
    X("model_mhz", "MHz", "the GPU clock that the model gives", s->chosen ? s->gpu_mhz : (double)NAN)                  \
    X("model_cpu_mhz", "MHz", "the CPU clock that the model gives",                                                    \
      s->chosen && s->cpu_mhz > 0 ? s->cpu_mhz : (double)NAN)
static const fl_probe probe_rows[] = {PROBES(FL_PROBE_NODE_ROW)};

static const char *init(void *state, const void *params, const fl_facts *facts) {
    powercap_state *s = state;
    const powercap_params *p = params;
    powercap_model m;
    powercap_choice c = {0};
    const char *wrong = fl_need_ladders(facts);
    if (wrong)
        return wrong;
    if (!p->model.row_count || !facts->gpu_count)
        return NULL; /* without a model: the lowest clocks, which no cap forbids */
    wrong = powercap_model_read(&m, &p->model);
    if (wrong)
        return wrong;
    const fl_ladder sm = facts->gpu[0].sm, cpu = facts->host.cpu;
    m.printed = p->ends == ENDS_PRINTED;
    if (fl_ladder_min(sm) < m.gpu.volt_low_mhz || fl_ladder_max(sm) > m.gpu.volt_high_mhz)
        return "the model's gpu.volt does not reach over the SM ladder";
    if (m.has_cpu && cpu.count && (fl_ladder_min(cpu) < m.cpu.volt_low_mhz || fl_ladder_max(cpu) > m.cpu.volt_high_mhz))
        return "the model's cpu.volt does not reach over the CPU's states";
    powercap_choose(&m, sm, cpu, p->cap_w, (int)p->objective, &c);
    s->chosen = 1;
    s->gpu_mhz = c.gpu_mhz;
    s->cpu_mhz = c.cpu_mhz;
    s->predicted_w = c.peak_w;
    s->predicted_s = c.time_s;
    s->predicted_j = c.energy_j;
    return NULL;
}

static void begin(powercap_state *s, powercap_gpu *gpu, const powercap_method *how, const fl_facts *facts,
                  fl_command *command) {
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        const fl_ladder sm = facts->gpu[i].sm;
        const uint64_t top = sm.count - 1;
        if (how->start == START_MODEL)
            gpu[i].at = s->chosen ? fl_ladder_index_down(sm, s->gpu_mhz) : 0;
        else
            gpu[i].at = how->start == START_HIGHEST ? top : 0;
        gpu[i].ceiling = how->bounded ? gpu[i].at : top;
        fl_set_gpu(command, i, FL_SET_SM_MHZ, sm.mhz[gpu[i].at]);
    }
    if (how->start == START_MODEL && s->chosen && s->cpu_mhz > 0)
        fl_set_host(command, FL_SET_HOST_CPU_MHZ, s->cpu_mhz);
}

/* A refresh of the meter counts once. */
static void watch(powercap_state *s, const powercap_params *p, const fl_host_sample *host) {
    const double w = host->value[FL_HOST_NODE_POWER_W];
    if (!(host->valid & host->fresh & FL_BIT(FL_HOST_NODE_POWER_W)) || !(w >= 0) || !isfinite(w))
        return;
    s->last_w = w;
    s->sum_w += w;
    s->peak_w = s->seen && s->peak_w > w ? s->peak_w : w;
    s->seen++;
    s->readings++;
    s->above += w > p->cap_w;
    s->total_w += w;
}

/* One step, all GPUs together: the meter does not tell them apart. */
static void control(powercap_state *s, powercap_gpu *gpu, const powercap_params *p, const fl_facts *facts,
                    fl_command *command) {
    s->held = !s->seen;
    if (!s->seen)
        return; /* what was set last holds */
    const double w = p->reading == READ_LAST   ? s->last_w
                     : p->reading == READ_MEAN ? s->sum_w / (double)s->seen
                                               : s->peak_w;
    s->seen = 0;
    s->sum_w = 0;
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        const uint64_t before = gpu[i].at;
        if (w >= p->cap_w)
            gpu[i].at -= gpu[i].at > 0;
        else if (w < p->cap_w - p->margin_w)
            gpu[i].at += gpu[i].at < gpu[i].ceiling;
        if (gpu[i].at != before)
            fl_set_gpu(command, i, FL_SET_SM_MHZ, facts->gpu[i].sm.mhz[gpu[i].at]);
    }
}

static void run(const powercap_method *how, void *state, const void *params, const fl_facts *facts,
                const fl_sample *sample, fl_command *command) {
    powercap_state *s = state;
    powercap_gpu *gpu = fl_gpu_states(state, sizeof *s);
    const powercap_params *p = params;
    const int64_t monitor_ns = (int64_t)(p->monitor_ms * 1e6 + 0.5);
    const int64_t interval_ns = how->dynamic ? (int64_t)(p->interval_s * 1e9 + 0.5) : 0;
    const int64_t now = sample->time_ns;
    watch(s, p, &sample->host);
    if (!s->begun) {
        s->begun = 1;
        begin(s, gpu, how, facts, command);
        s->control_ns = now + interval_ns;
    } else if (how->dynamic && now >= s->control_ns) {
        control(s, gpu, p, facts, command);
        s->control_ns = now + interval_ns;
    }
    command->delay_ns = monitor_ns;
    if (how->dynamic && s->control_ns - now < monitor_ns)
        command->delay_ns = s->control_ns - now;
    fl_show_all(command, 0, 0, (double[]){PROBES(FL_PROBE_VALUE)}, FL_COUNT(probe_rows));
}

#define COMMON_ROWS                                                                                                    \
    FL_PARAM(powercap_params, cap_w, REAL(1, 1e6), "W", "280",                                                         \
             "power constraint of the node; the paper's are 260 to 300 (Fig. 3)"),                                     \
        FL_PARAM(powercap_params, monitor_ms, REAL(0.001, 3.6e6), "ms", "15",                                          \
                 "between readings of the node meter (4.1)")
#define DYNAMIC_ROWS                                                                                                   \
    FL_PARAM(powercap_params, interval_s, REAL(0.001, 1e6), "s", "5",                                                  \
             "control interval, one ladder step each (3.1, 4.1)"),                                                     \
        FL_PARAM(powercap_params, margin_w, REAL(0, 1e6), "W", "5",                                                    \
                 "\"much lower than the limit\" (3.1) is below cap_w by more than this; unpublished, calibrated on "   \
                 "Fig. 6 (harness/experiments/power-capping.json)"),                                                   \
        FL_PARAM(powercap_params, reading, CHOICE("last|mean|peak"), "", "last",                                       \
                 "of the readings since the last decision; unpublished, assumed: the last")
#define MODEL_ROWS                                                                                                     \
    FL_PARAM(powercap_params, model, TABLE(POWERCAP_COLUMNS), "", "",                                                  \
             "A, B, C, V(f), alpha, beta, T (Eq. 1 to 3) of the machine and the application, by foldline fit "         \
             "policy capping; without: the lowest clock"),                                                             \
        FL_PARAM(powercap_params, objective, CHOICE("energy|time"), "", "energy",                                      \
                 "what is least among the clocks under the cap (3.2: energy); the other breaks ties"),                 \
        FL_PARAM(powercap_params, ends, CHOICE("measured|printed"), "", "measured",                                    \
                 "run time at the two measured clocks: as measured, or by Eq. 3 as printed, which does not know that " \
                 "a CPU boosts from its highest state")
static const fl_signal_row signal_rows[] = {FL_NEEDS(HOST_NODE_POWER_W)};
static const fl_param hybrid_rows[] = {COMMON_ROWS, DYNAMIC_ROWS, MODEL_ROWS};

#define POWERCAP(ident, name_, summary_, source_, rows_, drives_host_, start_, dynamic_, bounded_)                     \
    static void step_##ident(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,          \
                             fl_command *command) {                                                                    \
        static const powercap_method how = {start_, dynamic_, bounded_};                                               \
        run(&how, state, params, facts, sample, command);                                                              \
    }                                                                                                                  \
    FL_POLICY(ident) = {FL_POLICY_ABI,                                                                                 \
                        .name = name_,                                                                                 \
                        .summary = summary_,                                                                           \
                        .source = "power-capping (Tsuzuku and Endo, SMARTGREENS 2015), " source_,                      \
                        FL_SIGNAL_ROWS(signal_rows),                                                                   \
                        .gpu_drives = FL_BIT(FL_SET_SM_MHZ),                                                           \
                        .host_drives = drives_host_,                                                                   \
                        FL_PARAM_ROWS(rows_, powercap_params),                                                         \
                        FL_PROBE_ROWS(probe_rows),                                                                     \
                        .state_size = sizeof(powercap_state),                                                          \
                        .gpu_size = sizeof(powercap_gpu),                                                              \
                        .init = init,                                                                                  \
                        .step = step_##ident}

#define SETS_CPU FL_BIT(FL_SET_HOST_CPU_MHZ)

POWERCAP(cap_hybrid2, "cap-hybrid2", "caps node power: as cap-hybrid1, but never above the model's clocks",
         "hybrid2 of 3.3, Eq. 1 to 3, Table 4", hybrid_rows, SETS_CPU, START_MODEL, 1, 1);

#ifndef POLICY_PLUGIN /* a plug-in holds one policy */
static const fl_param fixed_rows[] = {COMMON_ROWS};
static const fl_param dynamic_rows[] = {COMMON_ROWS, DYNAMIC_ROWS};
static const fl_param static_rows[] = {COMMON_ROWS, MODEL_ROWS};

POWERCAP(cap_hybrid1, "cap-hybrid1", "caps node power: starts at the model's clocks, steps once per interval",
         "hybrid1 of 3.3, Eq. 1 to 3, Table 4", hybrid_rows, SETS_CPU, START_MODEL, 1, 0);
POWERCAP(cap_static, "cap-static", "caps node power: sets the model's clocks of GPU and CPU once",
         "static of 3.2, Eq. 1 to 3, Table 4", static_rows, SETS_CPU, START_MODEL, 0, 0);
POWERCAP(cap_dynamic_min, "cap-dynamic-min", "caps node power: starts at the lowest clock, steps once per interval",
         "dynamic min of 3.1, Table 4", dynamic_rows, 0, START_LOWEST, 1, 0);
POWERCAP(cap_dynamic_max, "cap-dynamic-max", "caps node power: starts at the highest clock, steps once per interval",
         "dynamic max of 3.1, Table 4", dynamic_rows, 0, START_HIGHEST, 1, 0);
POWERCAP(cap_static_max, "cap-static-max", "sets the highest clock, no cap", "static max of Table 4", fixed_rows, 0,
         START_HIGHEST, 0, 0);
POWERCAP(cap_static_min, "cap-static-min", "sets the lowest clock, no cap", "static min of Table 4", fixed_rows, 0,
         START_LOWEST, 0, 0);

#endif
