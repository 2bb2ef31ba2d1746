/* Runs of programs over pairs of GPU and CPU states, simulated or read. */
#include "harness/fit/policy/inside.h"

#include "harness/base/work/work.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- measured or simulated runs, and their files ---- */

#define FORMAT "foldline-state-runs"

enum {
    KERNEL,
    CPU_MHZ,
    SM_MHZ,
    TIME_S,
    ENERGY_J,
    FIRST_METRIC,
    REQUIRED = FIRST_METRIC + FL_METRICS,
    COLUMNS = FIRST_METRIC + FL_METRICS_ALL
};

#define METRICS "weighted_alu_busy", "global_mem_util", "clock_weighted_upc", "alu_busy", "gpu_clock_busy"

static const char *const COLUMN[COLUMNS] = {"kernel", "cpu_mhz", "sm_mhz", "time_s", "energy_j", METRICS};

const char *const fl_metric_names[FL_METRICS_ALL] = {METRICS};

void fl_state_runs_free(fl_state_runs *r) {
    for (size_t i = 0; i < r->count; i++)
        free(r->run[i].kernel);
    free(r->run);
    *r = (fl_state_runs){0};
}

/* Appends a copy of run, including its kernel's name. */
static void fl_state_runs_add(fl_state_runs *r, const fl_state_run *run) {
    fl_must_grow(&r->run, &r->room, r->count + 1, sizeof *r->run);
    r->run[r->count] = *run;
    r->run[r->count++].kernel = fl_must(strdup(run->kernel));
}

typedef struct loader {
    fl_state_runs r;
    size_t where[COLUMNS], width;
} loader;

static bool known_pair(const fl_state_runs *r, const fl_state_run *run) {
    for (size_t i = 0; i < r->count; i++)
        if (r->run[i].cpu_mhz == run->cpu_mhz && r->run[i].sm_mhz == run->sm_mhz &&
            !strcmp(r->run[i].kernel, run->kernel))
            return true;
    return false;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, l->where, d);
    }
    char kernel[1024];
    fl_state_run run = {.kernel = kernel};
    double *const into[COLUMNS] = {[CPU_MHZ] = &run.cpu_mhz, [SM_MHZ] = &run.sm_mhz, [TIME_S] = &run.time_s};
    fl_status s = fl_columns_width(row, l->width, d);
    if (s)
        return s;
    snprintf(kernel, sizeof kernel, "%s", row->field[l->where[KERNEL]].text);
    for (int c = CPU_MHZ; !s && c <= TIME_S; c++)
        s = fl_field_real(row, l->where[c], COLUMN[c], 1e-9, 1e9, into[c], d);
    if (!s)
        s = fl_field_real_or_nan(row, l->where[ENERGY_J], COLUMN[ENERGY_J], 0, HUGE_VAL, &run.energy_j, d);
    for (int m = 0; !s && m < FL_METRICS_ALL; m++) {
        const size_t at = l->where[FIRST_METRIC + m];
        run.metric[m] = NAN;
        if (at != SIZE_MAX)
            s = fl_field_real_or_nan(row, at, COLUMN[FIRST_METRIC + m], 0, 1e6, &run.metric[m], d);
    }
    if (!s && known_pair(&l->r, &run))
        s = FL_FIELD_FAIL(d, row, l->where[KERNEL], "a second run of '%.200s' at CPU %g MHz and GPU %g MHz", kernel,
                          run.cpu_mhz, run.sm_mhz);
    if (!s)
        fl_state_runs_add(&l->r, &run);
    return s;
}

fl_status fl_state_runs_read(const char *path, fl_state_runs *r, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = FORMAT};
    fl_head head = {0};
    loader l = {0};
    fl_status s = fl_csv_read(path, &OPTIONS, &head, on_row, &l, d);
    fl_head_free(&head);
    if (!s && !l.r.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no runs, expected at least one row after the header");
    if (s)
        fl_state_runs_free(&l.r);
    *r = l.r;
    return s;
}

fl_status fl_state_runs_write(const char *path, const fl_state_runs *r, const char *source, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d ? d->status : FL_IO;
    FILE *f = fl_output_file(o);
    fl_head head = {0};
    fl_must_have(fl_head_set(&head, "source", source));
    const fl_status s = fl_put_head(f, path, FORMAT, &head, d);
    fl_head_free(&head);
    if (s) {
        fl_output_abort(o);
        return s;
    }
    for (int c = 0; c < COLUMNS; c++)
        fprintf(f, "%s%s", c ? "," : "", COLUMN[c]);
    fputc('\n', f);
    for (size_t i = 0; i < r->count; i++) {
        const fl_state_run *run = &r->run[i];
        const double value[] = {run->cpu_mhz,   run->sm_mhz,    run->time_s,    run->energy_j, run->metric[0],
                                run->metric[1], run->metric[2], run->metric[3], run->metric[4]};
        fl_csv_put(f, run->kernel);
        for (size_t c = 0; c < sizeof value / sizeof *value; c++) {
            fputc(',', f);
            fl_put_real(f, value[c]);
        }
        fputc('\n', f);
    }
    return fl_output_commit(o, d);
}

size_t *fl_state_runs_kernels(const fl_state_runs *r, size_t *count) {
    size_t *first = fl_must(malloc((r->count + 1) * sizeof *first));
    *count = 0;
    for (size_t i = 0; i < r->count; i++) {
        size_t k = 0;
        while (k < *count && strcmp(r->run[first[k]].kernel, r->run[i].kernel) != 0)
            k++;
        if (k == *count)
            first[(*count)++] = i;
    }
    return first;
}

static double ed2(const fl_state_run *run) { return run->energy_j * run->time_s * run->time_s; }

size_t fl_state_runs_best(const fl_state_runs *r, size_t first, double cpu_from) {
    size_t best = r->count;
    for (size_t i = first; i < r->count; i++) {
        const fl_state_run *run = &r->run[i];
        if (run->cpu_mhz < cpu_from || strcmp(run->kernel, r->run[first].kernel) != 0)
            continue;
        if (isnan(run->energy_j))
            return r->count;
        const fl_state_run *than = best < r->count ? &r->run[best] : NULL;
        const bool higher =
            than && (run->sm_mhz > than->sm_mhz || (run->sm_mhz == than->sm_mhz && run->cpu_mhz > than->cpu_mhz));
        if (!than || ed2(run) < ed2(than) || (ed2(run) == ed2(than) && higher))
            best = i;
    }
    return best;
}

fl_status fl_state_runs_write_best(const char *path, const fl_state_runs *r, double cpu_from, fl_diag *d) {
    size_t count, *first = fl_state_runs_kernels(r, &count);
    fl_status s = FL_OK;
    for (size_t k = 0; !s && k < count; k++)
        if (fl_state_runs_best(r, first[k], cpu_from) == r->count)
            s = fl_refuse(d, "no energy for '%s', expected it at every pair of states, some from %g MHz on",
                          r->run[first[k]].kernel, cpu_from);
    fl_output *o = s ? NULL : fl_output_open(path, d);
    if (!o) {
        free(first);
        return s ? s : d ? d->status : FL_IO;
    }
    FILE *f = fl_output_file(o);
    fputs("kernel,cpu_mhz,sm_mhz\n", f);
    for (size_t k = 0; k < count; k++) {
        const fl_state_run *run = &r->run[fl_state_runs_best(r, first[k], cpu_from)];
        fl_csv_put(f, run->kernel);
        fprintf(f, ",%g,%g\n", run->cpu_mhz, run->sm_mhz);
    }
    free(first);
    return fl_output_commit(o, d);
}

/* ---- one run at one pair of states ---- */

/* A policy sets the pair once and asks for DynaCo's counters. Its steps gather their values. */

typedef struct pair_params {
    double cpu_mhz, sm_mhz;
    int64_t boost;
} pair_params;

static const char *pair_init(void *state, const void *params, const fl_facts *facts) {
    (void)state;
    (void)params;
    (void)facts;
    return NULL;
}

static void pair_step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample,
                      fl_command *command) {
    const pair_params *p = params;
    (void)state;
    (void)facts;
    command->delay_ns = 10000000;
    if (sample->step)
        return;
    fl_set_gpu(command, 0, FL_SET_SM_MHZ, p->sm_mhz);
    fl_set_host(command, FL_SET_HOST_CPU_MHZ, p->cpu_mhz);
    fl_set_host(command, FL_SET_HOST_CPU_BOOST, (double)p->boost);
}

static const fl_param pair_rows[] = {
    FL_PARAM(pair_params, cpu_mhz, REAL(0, 1e6), "MHz", "0", "CPU clock"),
    FL_PARAM(pair_params, sm_mhz, REAL(0, 1e6), "MHz", "0", "SM clock"),
    FL_PARAM(pair_params, boost, BOOL, "", "0", "whether the CPU may boost"),
};

static const fl_signal_row pair_signals[] = {
    FL_NEEDS(GPU_ALU_BUSY_PCT), FL_NEEDS(GPU_GPU_CLOCK_BUSY_PCT), FL_NEEDS(GPU_DRAM_BYTES),
    FL_NEEDS(HOST_CPU_UOPS),    FL_NEEDS(HOST_CPU_CYCLES),        FL_NEEDS(HOST_CPU_MEM_BYTES),
};

static const fl_policy pair_policy = {FL_POLICY_ABI,
                                      .name = "pair",
                                      .summary = "one pair of states",
                                      .source = "DynaCo (SC '13), section 4.1",
                                      FL_SIGNAL_ROWS(pair_signals),
                                      .gpu_drives = FL_BIT(FL_SET_SM_MHZ),
                                      .host_drives = FL_BIT(FL_SET_HOST_CPU_MHZ) | FL_BIT(FL_SET_HOST_CPU_BOOST),
                                      .param = pair_rows,
                                      .param_count = FL_COUNT(pair_rows),
                                      .param_size = sizeof(pair_params),
                                      .init = pair_init,
                                      .step = pair_step};

typedef struct reading { /* counters, and the time of their reading */
    double uops, cycles, bytes;
    int64_t at_ns;
} reading;

typedef struct gatherer {
    double alu, busy; /* sums of percent, over `count` steps */
    uint64_t count;
    reading first, last;
    bool any;
} gatherer;

static fl_status gather(void *user, const fl_sample *s, const fl_decision *decision, fl_diag *d) {
    gatherer *g = user;
    const fl_gpu_sample *gpu = &s->gpu[0];
    (void)decision;
    (void)d;
    if (!fl_gpu_fresh(gpu, FL_GPU_DRAM_BYTES) || !fl_host_known(&s->host, FL_HOST_CPU_CYCLES))
        return FL_OK;
    const reading now = {.uops = s->host.value[FL_HOST_CPU_UOPS],
                         .cycles = s->host.value[FL_HOST_CPU_CYCLES],
                         .bytes = s->host.value[FL_HOST_CPU_MEM_BYTES] + gpu->value[FL_GPU_DRAM_BYTES],
                         .at_ns = s->time_ns};
    if (g->any) { /* the first interval may include time at other states */
        g->alu += gpu->value[FL_GPU_ALU_BUSY_PCT];
        g->busy += gpu->value[FL_GPU_GPU_CLOCK_BUSY_PCT];
        g->count++;
    } else {
        g->first = now;
    }
    g->any = true;
    g->last = now;
    return FL_OK;
}

/* ---- all runs ---- */

typedef struct stage { /* one kernel */
    const char *kernel;
    fl_workload *w;
    fl_rates *rates;
} stage;

typedef struct profile {
    const fl_profile_options *o;
    fl_programs programs;
    fl_kinds kinds;
    fl_platform platform;
    fl_facts facts;
    stage *stage;
    size_t stages, cpus, sms;
    fl_state_run *run; /* stages x cpus x sms */
} profile;

/* From high to low; the first is boost where the platform has a boost state. */
static double cpu_mhz(const profile *p, size_t i) {
    const fl_cpu_spec *c = &p->platform.node.host.cpu;
    const size_t from_bottom = p->cpus - 1 - i;
    return from_bottom < c->count ? c->mhz[from_bottom] : c->boost_mhz[c->boost_count - 1];
}

static fl_status run_pair(void *user, size_t index, fl_diag *d) {
    profile *p = user;
    const stage *st = &p->stage[index / (p->cpus * p->sms)];
    const fl_device *dev = &p->platform.node.device[p->platform.node.gpu[0]];
    const fl_cpu_spec *c = &p->platform.node.host.cpu;
    const size_t at = index % (p->cpus * p->sms);
    fl_state_run *run = &p->run[index];
    *run = (fl_state_run){.kernel = (char *)(uintptr_t)st->kernel,
                          .cpu_mhz = cpu_mhz(p, at / p->sms),
                          .sm_mhz = dev->sm_mhz[p->sms - 1 - at % p->sms]};
    const double top = c->mhz[c->count - 1];
    char cpu[32], sm[32];
    snprintf(cpu, sizeof cpu, "%g", fmin(run->cpu_mhz, top));
    snprintf(sm, sizeof sm, "%g", run->sm_mhz);
    const fl_setting setting[] = {{.name = "cpu_mhz", .text = cpu},
                                  {.name = "sm_mhz", .text = sm},
                                  {.name = "boost", .text = run->cpu_mhz > top ? "1" : "0"}};
    const fl_layer layer = {.origin = "profile", .setting = setting, .count = 3};
    gatherer g = {0};
    fl_run_result r;
    const fl_run_options o = {.w = st->w,
                              .rates = st->rates,
                              .spec = &p->platform.node,
                              .facts = &p->facts,
                              .policy = &pair_policy,
                              .layer = &layer,
                              .layer_count = 1,
                              .on_step = gather,
                              .user = &g};
    const fl_status s = fl_run(&o, &r, d);
    if (s)
        return s;
    const double seconds = (double)(g.last.at_ns - g.first.at_ns) * 1e-9, cycles = g.last.cycles - g.first.cycles;
    const double peak = p->facts.host.apu ? p->facts.host.peak_bytes_per_s : p->facts.gpu[0].peak_bytes_per_s;
    run->time_s = r.makespan_s;
    run->energy_j = r.node_energy_j;
    run->metric[FL_METRIC_ALU] = seconds > 0 ? g.busy > 0 ? 100 * g.alu / g.busy : 0 : (double)NAN;
    run->metric[FL_METRIC_MEMORY] =
        seconds > 0 && peak > 0 ? 100 * (g.last.bytes - g.first.bytes) / seconds / peak : (double)NAN;
    run->metric[FL_METRIC_ALU_BUSY] = g.count ? g.alu / (double)g.count : (double)NAN;
    run->metric[FL_METRIC_CLOCK_BUSY] = g.count ? g.busy / (double)g.count : (double)NAN;
    run->metric[FL_METRIC_UPC] = cycles > 0 ? (g.last.uops - g.first.uops) / cycles : (double)NAN;
    fl_run_result_free(&r);
    return FL_OK;
}

/* A program of one kernel: the rows that the kernel has in its first program, as one part. */
static fl_status single(const fl_programs *all, uint32_t kernel, double seconds, fl_programs *one, fl_diag *d) {
    const uint32_t name = fl_programs_name(one, all->names[kernel]);
    fl_status s = FL_OK;
    fl_must_have(name != UINT32_MAX);
    static const char *const keys[] = {"sm_mhz", "mem_mhz", "cpu_mhz"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = fl_head_get(&all->head, keys[i]);
        if (value)
            fl_must_have(fl_head_set(&one->head, keys[i], value));
    }
    size_t first = 0;
    while (all->rows[first].kernel != kernel)
        first++;
    for (size_t i = first; !s && i < all->row_count; i++) {
        fl_program_row row = all->rows[i];
        if (row.kernel != kernel || row.program != all->rows[first].program)
            continue;
        row.program = row.kernel = name;
        row.part = row.cycles = 1;
        row.part_s = seconds;
        s = fl_programs_add(one, &row, d);
    }
    return s;
}

static fl_status open_stage(profile *p, uint32_t kernel, stage *st, fl_diag *d) {
    fl_programs one = {0};
    fl_kernel_trace t = {0};
    st->kernel = p->programs.names[kernel];
    const fl_build_options build = {.kinds = p->kinds.count ? &p->kinds : NULL};
    fl_status s = single(&p->programs, kernel, p->o->seconds, &one, d);
    if (!s)
        s = fl_synth_program(&one, 0, p->o->seed, 0, &t, d);
    if (!s)
        s = fl_build_trace(&st->w, st->kernel, &t, &p->platform.node, &build, d);
    if (!s)
        s = fl_rates_new(&st->rates, st->w, &p->platform.node, d);
    fl_kernel_trace_free(&t);
    fl_programs_free(&one);
    return s;
}

static fl_status open_all(profile *p, fl_diag *d) {
    fl_status s = fl_programs_read(p->o->programs, &p->programs, d);
    const char *name = s ? NULL : fl_head_get(&p->programs.head, "kinds");
    if (name) {
        char *path = fl_must(fl_path_named(p->o->programs, name));
        s = fl_kinds_read(path, &p->kinds, d);
        free(path);
    }
    if (!s)
        s = fl_platform_open(p->o->platform, 0, &p->platform, d);
    if (!s)
        s = fl_node_choose(&p->platform.node, &p->o->node, d);
    if (!s && !p->platform.node.host.cpu.count)
        s = fl_refuse(d, "platform %s has no host CPU states, expected some", p->o->platform);
    if (!s)
        s = fl_facts_make(&p->platform.node, p->o->seed, &p->facts, d);
    if (s)
        return s;
    const fl_cpu_spec *c = &p->platform.node.host.cpu;
    p->cpus = c->count + (c->boost_count > 0);
    p->sms = p->platform.node.device[p->platform.node.gpu[0]].sm_count;
    p->stage = fl_must(calloc(p->programs.name_count + 1, sizeof *p->stage));
    for (size_t i = 0; !s && i < p->programs.row_count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= p->programs.rows[k].kernel == p->programs.rows[i].kernel;
        if (!seen)
            s = open_stage(p, p->programs.rows[i].kernel, &p->stage[p->stages++], d);
    }
    p->run = fl_must(calloc(p->stages * p->cpus * p->sms + 1, sizeof *p->run));
    return s;
}

fl_status fl_profile_states(const fl_profile_options *o, fl_state_runs *r, fl_diag *d) {
    profile p = {.o = o};
    *r = (fl_state_runs){0};
    fl_status s = open_all(&p, d);
    if (!s)
        s = fl_pool_run(run_pair, &p, p.stages * p.cpus * p.sms, o->threads, "runs over states", d);
    for (size_t i = 0; !s && i < p.stages * p.cpus * p.sms; i++)
        fl_state_runs_add(r, &p.run[i]);
    if (s)
        fl_state_runs_free(r);
    for (size_t i = 0; i < p.stages; i++) {
        fl_rates_free(p.stage[i].rates);
        fl_workload_free(p.stage[i].w);
    }
    free(p.stage);
    free(p.run);
    fl_facts_free(&p.facts);
    fl_platform_free(&p.platform);
    fl_kinds_free(&p.kinds);
    fl_programs_free(&p.programs);
    return s;
}
