/* What a watched run shows beyond its scores. */
#include "harness/study/trial/inside.h"

#include "harness/base/work/work.h"
#include "harness/study/trial/trial.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/draws/draws.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void fl_watch_open(fl_watch *w, const fl_policy *policy, uint32_t gpu_count) {
    *w = (fl_watch){.policy = policy, .gpu_count = gpu_count};
    for (uint32_t i = 0; policy && i < policy->probe_count; i++)
        w->probe_count += policy->probe[i].per_gpu ? gpu_count : 1;
    w->probe = fl_must(malloc((w->probe_count + 1) * sizeof *w->probe));
    w->probe_bin = fl_must(calloc((w->probe_count + 1) * FL_WATCH_VALUES, sizeof *w->probe_bin));
    w->node_bin = fl_must(calloc(FL_WATCH_BINS, sizeof *w->node_bin));
    w->gpu_bin = fl_must(calloc(FL_WATCH_BINS, sizeof *w->gpu_bin));
    for (size_t i = 0; i < w->probe_count; i++)
        w->probe[i] = NAN;
}

/* A table of 32-bit or (wide) of 64-bit counts as the list of those above 0. */
static void list_bins(const void *table, bool wide, size_t size, fl_bins *met) {
    const uint32_t *narrow = table;
    const uint64_t *big = table;
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += (wide ? big[i] : narrow[i]) > 0;
    if (count)
        met->bin = fl_must(malloc(count * sizeof *met->bin));
    for (size_t i = 0; i < size; i++)
        if ((wide ? big[i] : narrow[i]) > 0)
            met->bin[met->count++] = (fl_bin){(uint32_t)i, wide ? big[i] : narrow[i]};
}

static void free_tables(fl_watch *w) {
    free(w->probe_bin);
    free(w->node_bin);
    free(w->gpu_bin);
    w->probe_bin = NULL;
    w->node_bin = w->gpu_bin = NULL;
}

void fl_watch_end(fl_watch *w) {
    if (!w->node_bin)
        return;
    list_bins(w->probe_bin, true, w->probe_count * FL_WATCH_VALUES, &w->probe_met);
    list_bins(w->node_bin, false, FL_WATCH_BINS, &w->node_met);
    list_bins(w->gpu_bin, false, FL_WATCH_BINS, &w->gpu_met);
    free_tables(w);
}

void fl_watch_free(fl_watch *w) {
    free_tables(w);
    free(w->probe);
    free(w->probe_met.bin);
    free(w->node_met.bin);
    free(w->gpu_met.bin);
    free(w->regret_mark);
    *w = (fl_watch){0};
}

fl_status fl_watch_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    fl_watch *w = user;
    (void)sample;
    (void)d;
    for (size_t i = 0; i < w->probe_count; i++) {
        const double x = decision->probe[i];
        if (isnan(x))
            continue;
        w->probe[i] = x;
        if (x >= 0 && x < FL_WATCH_VALUES && x == floor(x))
            w->probe_bin[i * FL_WATCH_VALUES + (size_t)x]++;
    }
    return FL_OK;
}

static void count(uint32_t *bin, fl_wide fj, int64_t ps) {
    const double watts = (double)fj / (double)ps * 1e-3;
    bin[watts < FL_WATCH_BINS - 1 ? (size_t)watts : FL_WATCH_BINS - 1]++;
}

fl_status fl_watch_truth(void *user, const fl_node *node, int64_t t_ps, fl_diag *d) {
    fl_watch *w = user;
    (void)d;
    fl_wide gpu_fj = 0;
    for (uint32_t i = 0; i < w->gpu_count; i++)
        gpu_fj += fl_node_gpu(node, i)->sums.energy_fj;
    const fl_wide node_fj = fl_node_energy_fj(node);
    if (t_ps > w->last_ps) {
        count(w->node_bin, node_fj - w->node_fj, t_ps - w->last_ps);
        count(w->gpu_bin, gpu_fj - w->gpu_fj, t_ps - w->last_ps);
        w->windows++;
    }
    w->last_ps = t_ps;
    w->node_fj = node_fj;
    w->gpu_fj = gpu_fj;
    return FL_OK;
}

/* ---- values by their name ---- */

typedef enum which { SM, MEM, CPU } which;

static size_t residences(const fl_run_result *r, which of) { return of == CPU ? r->cpu_count : r->residence_count; }

static double clock_of(const fl_run_result *r, which of, size_t i, int64_t *ps) {
    if (of == CPU) {
        *ps = r->cpu[i].ps;
        return r->cpu[i].mhz;
    }
    *ps = r->residence[i].ps;
    return of == SM ? r->residence[i].sm_mhz : r->residence[i].mem_mhz;
}

static double clock_mean(const fl_run_result *r, which of) {
    double sum = 0, time = 0;
    for (size_t i = 0; i < residences(r, of); i++) {
        int64_t ps;
        const double mhz = clock_of(r, of, i, &ps);
        sum += mhz * (double)ps;
        time += (double)ps;
    }
    return sum > 0 ? sum / time : (double)NAN; /* 0 MHz is no clock: a distribution replay has none of the memory's */
}

static double clock_share_pct(const fl_run_result *r, which of, double from, double to) {
    double inside = 0, time = 0;
    for (size_t i = 0; i < residences(r, of); i++) {
        int64_t ps;
        const double mhz = clock_of(r, of, i, &ps);
        inside += mhz >= from && mhz <= to ? (double)ps : 0;
        time += (double)ps;
    }
    return time > 0 ? 100 * inside / time : (double)NAN;
}

static double over_pct(const fl_bins *power, uint32_t windows, double watts) {
    uint64_t over = 0;
    for (size_t i = 0; i < power->count; i++)
        over += power->bin[i].at >= watts ? power->bin[i].count : 0;
    return windows ? 100.0 * (double)over / windows : (double)NAN;
}

/* Where the first `size` letters of name are a probe's; SIZE_MAX: nowhere. */
static size_t probe_at(const fl_watch *w, const char *name, size_t size) {
    size_t at = 0;
    for (uint32_t i = 0; w && w->policy && i < w->policy->probe_count; i++) {
        if (!strncmp(w->policy->probe[i].name, name, size) && !w->policy->probe[i].name[size])
            return at;
        at += w->policy->probe[i].per_gpu ? w->gpu_count : 1;
    }
    return SIZE_MAX;
}

static double probe(const fl_watch *w, const char *name) {
    const size_t at = probe_at(w, name, strlen(name));
    return at == SIZE_MAX ? (double)NAN : w->probe[at];
}

static double steps_at(const fl_watch *w, const char *name, size_t size, double from, double to) {
    const size_t at = probe_at(w, name, size);
    uint64_t steps = 0;
    for (size_t i = 0; at != SIZE_MAX && i < w->probe_met.count; i++) {
        const fl_bin *met = &w->probe_met.bin[i];
        const double value = met->at % FL_WATCH_VALUES;
        steps += met->at / FL_WATCH_VALUES == at && value >= from && value <= to ? met->count : 0;
    }
    return at == SIZE_MAX ? (double)NAN : (double)steps;
}

static double regret_after(const fl_watch *w, double steps) {
    const size_t mark = steps >= FL_DRAWS_MARK ? (size_t)(steps / FL_DRAWS_MARK) - 1 : SIZE_MAX;
    return w && mark < w->regret_count ? w->regret_mark[mark] : (double)NAN;
}

/* "A" or "A-B" after the @. */
static bool range(const char *text, double *from, double *to) {
    char *end;
    *from = *to = strtod(text, &end);
    if (end != text && *end == '-') {
        text = end + 1;
        *to = strtod(text, &end);
    }
    return end != text && !*end && isfinite(*from) && isfinite(*to);
}

/* The last end of a process of that number; processes of several GPUs may share one. */
static double process_end_s(const fl_run_result *r, double process) {
    double end_s = NAN;
    for (size_t i = 0; i < r->process_count; i++)
        if (r->process[i].process == process)
            end_s = fmax(end_s, (double)r->process[i].end_ps * 1e-12);
    return end_s;
}

typedef enum at { SM_SHARE, MEM_SHARE, CPU_SHARE, OVER_NODE, OVER_GPU, PROCESS, REGRET, AT_COUNT } at;
static const char *const at_name[AT_COUNT] = {"sm_share@", "mem_share@", "cpu_share@",    "over_node@",
                                              "over_gpu@", "process_s@", "reward_regret@"};

static double value_at(const fl_run_result *run, const fl_watch *w, at what, double from, double to) {
    switch (what) {
    case SM_SHARE:
        return clock_share_pct(run, SM, from, to);
    case MEM_SHARE:
        return clock_share_pct(run, MEM, from, to);
    case CPU_SHARE:
        return clock_share_pct(run, CPU, from, to);
    case OVER_NODE:
        return w ? over_pct(&w->node_met, w->windows, from) : (double)NAN;
    case OVER_GPU:
        return w ? over_pct(&w->gpu_met, w->windows, from) : (double)NAN;
    case PROCESS:
        return process_end_s(run, from);
    default:
        return regret_after(w, from);
    }
}

fl_status fl_measure(const fl_run_result *run, const fl_watch *watch, const char *name, double *value, fl_diag *d) {
    const struct {
        const char *name;
        double value;
    } plain[] = {
        {"sm_mhz_mean", clock_mean(run, SM)},
        {"mem_mhz_mean", clock_mean(run, MEM)},
        {"cpu_mhz_mean", clock_mean(run, CPU)},
        {"sm_mhz_last", run->last_sm_mhz},
        {"mem_mhz_last", run->last_mem_mhz},
        {"cpu_mhz_last", run->last_cpu_mhz},
        {"cpu_energy_j", run->cpu_count ? run->cpu_energy_j : (double)NAN},
        {"cpu_gpu_energy_j", run->cpu_count ? run->cpu_energy_j + run->gpu_energy_j : (double)NAN},
        {"hottest_c", run->hottest_c},
        {"node_power_w", run->makespan_s > 0 ? run->node_energy_j / run->makespan_s : (double)NAN},
    };
    enum { PLAIN = sizeof plain / sizeof *plain };
    const char *names[PLAIN + AT_COUNT + 2], *sign = strchr(name, '@');
    size_t n = 0;
    double from, to;
    for (size_t i = 0; i < PLAIN; i++) {
        names[n++] = plain[i].name;
        *value = plain[i].value;
        if (!strcmp(name, plain[i].name))
            return FL_OK;
    }
    for (int i = 0; i < AT_COUNT; i++) {
        const size_t size = strlen(at_name[i]);
        names[n++] = at_name[i];
        if (sign && size == (size_t)(sign + 1 - name) && !strncmp(name, at_name[i], size) &&
            range(sign + 1, &from, &to)) {
            *value = value_at(run, watch, (at)i, from, to);
            return FL_OK;
        }
    }
    names[n++] = "probe:";
    if (!strncmp(name, "probe:", 6)) {
        *value = probe(watch, name + 6);
        return FL_OK;
    }
    names[n++] = "steps:";
    if (!strncmp(name, "steps:", 6) && sign && range(sign + 1, &from, &to)) {
        *value = steps_at(watch, name + 6, (size_t)(sign - name) - 6, from, to);
        return FL_OK;
    }
    const char *near = fl_nearest(name, names, n);
    return near ? fl_refuse(d, "no column '%s', did you mean '%s'?", name, near)
                : fl_refuse(d, "no column '%s', expected one of the results or sm_share@MHZ and so on", name);
}
