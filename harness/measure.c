#include "harness/measure.h"

#include "harness/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_watch_open(fl_watch *w, const fl_policy *policy, uint32_t gpu_count, fl_diag *d) {
    *w = (fl_watch){.policy = policy, .gpu_count = gpu_count};
    for (uint32_t i = 0; policy && i < policy->probe_count; i++)
        w->probe_count += policy->probe[i].per_gpu ? gpu_count : 1;
    w->probe = malloc((w->probe_count + 1) * sizeof *w->probe);
    w->node_bin = calloc(FL_WATCH_BINS, sizeof *w->node_bin);
    w->gpu_bin = calloc(FL_WATCH_BINS, sizeof *w->gpu_bin);
    for (size_t i = 0; w->probe && i < w->probe_count; i++)
        w->probe[i] = NAN;
    if (w->probe && w->node_bin && w->gpu_bin)
        return FL_OK;
    fl_watch_free(w);
    return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory to watch the run");
}

void fl_watch_free(fl_watch *w) {
    free(w->probe);
    free(w->node_bin);
    free(w->gpu_bin);
    *w = (fl_watch){0};
}

fl_status fl_watch_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    fl_watch *w = user;
    (void)sample;
    (void)d;
    for (size_t i = 0; i < w->probe_count; i++)
        if (!isnan(decision->probe[i]))
            w->probe[i] = decision->probe[i];
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

/* ---- names ---- */

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
    return time > 0 ? sum / time : (double)NAN;
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

static double over_pct(const uint32_t *bin, uint32_t windows, double watts) {
    uint32_t over = 0;
    for (size_t i = 0; i < FL_WATCH_BINS; i++)
        over += (double)i >= watts ? bin[i] : 0;
    return windows ? 100.0 * over / windows : (double)NAN;
}

static double probe(const fl_watch *w, const char *name) {
    size_t at = 0;
    for (uint32_t i = 0; w && w->policy && i < w->policy->probe_count; i++) {
        if (!strcmp(w->policy->probe[i].name, name))
            return w->probe[at];
        at += w->policy->probe[i].per_gpu ? w->gpu_count : 1;
    }
    return NAN;
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

fl_status fl_measure(const fl_run_result *run, const fl_watch *watch, const char *name, double *value, fl_diag *d) {
    static const char *const names[] = {"sm_mhz_mean",  "mem_mhz_mean", "cpu_mhz_mean", "sm_mhz_last", "mem_mhz_last",
                                        "cpu_mhz_last", "cpu_energy_j", "node_power_w", "sm_share@",   "mem_share@",
                                        "cpu_share@",   "over_node@",   "over_gpu@",    "probe:"};
    const double plain[] = {clock_mean(run, SM),
                            clock_mean(run, MEM),
                            clock_mean(run, CPU),
                            run->last_sm_mhz,
                            run->last_mem_mhz,
                            run->last_cpu_mhz,
                            run->cpu_count ? run->cpu_energy_j : (double)NAN,
                            run->makespan_s > 0 ? run->node_energy_j / run->makespan_s : (double)NAN};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(name, names[i])) {
            *value = plain[i];
            return FL_OK;
        }
    if (!strncmp(name, "probe:", 6)) {
        *value = probe(watch, name + 6);
        return FL_OK;
    }
    const char *at = strchr(name, '@');
    double from, to;
    if (at && range(at + 1, &from, &to)) {
        const size_t size = (size_t)(at + 1 - name);
        for (size_t i = 8; i < 13; i++) {
            if (strlen(names[i]) != size || strncmp(name, names[i], size))
                continue;
            if (i < 11)
                *value = clock_share_pct(run, (which)(i - 8), from, to);
            else
                *value =
                    watch ? over_pct(i == 11 ? watch->node_bin : watch->gpu_bin, watch->windows, from) : (double)NAN;
            return FL_OK;
        }
    }
    const char *near = fl_nearest(name, names, sizeof names / sizeof *names);
    return near ? fl_fail(d, FL_BAD_INPUT, NULL, 0, 0, "no column '%s', did you mean '%s'?", name, near)
                : fl_fail(d, FL_BAD_INPUT, NULL, 0, 0,
                          "no column '%s', expected one of the results or sm_share@MHZ and so on", name);
}
