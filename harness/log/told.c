/* Logs of probes and of sensors, and what a run served. */
#include "harness/log/log.h"

#include "harness/base/json/json.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/serving/serving.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- probes of a policy ---- */

void fl_probelog_open(fl_probelog *l, const fl_policy *policy, uint32_t gpu_count) {
    *l = (fl_probelog){.policy = policy, .gpu_count = gpu_count};
    for (uint32_t i = 0; i < policy->probe_count; i++)
        l->cells += policy->probe[i].per_gpu ? gpu_count : 1;
}

fl_status fl_probelog_add(fl_probelog *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    if (fl_grow(&l->t_ns, &l->room_t, l->step_count + 1, sizeof *l->t_ns) ||
        fl_grow(&l->value, &l->room_value, (l->step_count + 1) * l->cells + 1, sizeof *l->value))
        return fl_no_memory(d, "the probes");
    l->t_ns[l->step_count] = sample->time_ns;
    if (l->cells)
        memcpy(l->value + l->step_count * l->cells, decision->probe, l->cells * sizeof *l->value);
    l->step_count++;
    return FL_OK;
}

/* The row of the host (gpu = gpu_count) or of one GPU. */
static void put_row(const fl_probelog *l, size_t step, uint32_t gpu, FILE *f) {
    size_t at = step * l->cells;
    char text[FL_REAL_TEXT];
    if (gpu == l->gpu_count)
        fprintf(f, "%lld,host", (long long)l->t_ns[step]);
    else
        fprintf(f, "%lld,%u", (long long)l->t_ns[step], gpu);
    for (uint32_t i = 0; i < l->policy->probe_count; i++) {
        bool per_gpu = l->policy->probe[i].per_gpu;
        double value = per_gpu == (gpu < l->gpu_count) ? l->value[at + (per_gpu ? gpu : 0)] : NAN;
        fprintf(f, ",%s", isfinite(value) ? fl_real_text(value, text) : "");
        at += per_gpu ? l->gpu_count : 1;
    }
    fputc('\n', f);
}

fl_status fl_probelog_write(const fl_probelog *l, const char *path, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d ? d->status : FL_IO;
    FILE *f = fl_output_file(o);
    bool node = false;
    fputs("t_ns,device", f);
    for (uint32_t i = 0; i < l->policy->probe_count; i++) {
        fprintf(f, ",%s", l->policy->probe[i].name);
        node |= !l->policy->probe[i].per_gpu;
    }
    fputc('\n', f);
    for (size_t step = 0; step < l->step_count; step++) {
        if (node)
            put_row(l, step, l->gpu_count, f);
        for (uint32_t gpu = 0; gpu < l->gpu_count; gpu++)
            put_row(l, step, gpu, f);
    }
    return fl_output_commit(o, d);
}

void fl_probelog_free(fl_probelog *l) {
    free(l->t_ns);
    free(l->value);
    *l = (fl_probelog){0};
}

/* ---- sensors of the node ---- */

/* The signals that NVML always has: no profiling counters, because their collection would change the run. */
static const int column[] = {FL_GPU_POWER_W, FL_GPU_ENERGY_J, FL_GPU_UTIL_GPU_PCT, FL_GPU_UTIL_MEM_PCT,
                             FL_GPU_SM_MHZ,  FL_GPU_MEM_MHZ,  FL_GPU_TEMP_C,       FL_GPU_THROTTLE};
enum { COLUMNS = sizeof column / sizeof *column };

const uint64_t fl_sensorlog_needs = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_UTIL_GPU_PCT) |
                                    FL_BIT(FL_GPU_UTIL_MEM_PCT) | FL_BIT(FL_GPU_SM_MHZ) | FL_BIT(FL_GPU_MEM_MHZ) |
                                    FL_BIT(FL_GPU_TEMP_C) | FL_BIT(FL_GPU_THROTTLE);

fl_status fl_sensorlog_open(fl_sensorlog *l, fl_diag *d) {
    fl_telemetry *t = &l->t;
    t->signal = calloc(COLUMNS, sizeof *t->signal);
    for (; t->signal && t->signal_count < COLUMNS; t->signal_count++)
        if (!(t->signal[t->signal_count] =
                  strdup(fl_rows_at(FL_ROWS_GPU_SIGNAL, (size_t)column[t->signal_count])->name)))
            return fl_no_memory(d, "the log");
    return t->signal ? FL_OK : fl_no_memory(d, "the log");
}

fl_status fl_sensorlog_add(fl_sensorlog *l, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d) {
    fl_telemetry *t = &l->t;
    const size_t rows = t->row_count + count;
    if (fl_grow(&t->t_ns, &l->room_t, rows, sizeof *t->t_ns) ||
        fl_grow(&t->device, &l->room_d, rows, sizeof *t->device) ||
        fl_grow(&t->value, &l->room_v, rows * COLUMNS, sizeof *t->value))
        return fl_no_memory(d, "the log");
    for (uint32_t i = 0; i < count; i++) {
        double *v = t->value + t->row_count * COLUMNS;
        for (size_t k = 0; k < COLUMNS; k++)
            v[k] = gpu[i].valid >> column[k] & 1 ? gpu[i].value[column[k]] : (double)NAN;
        t->t_ns[t->row_count] = t_ps / FL_PS_PER_NS;
        t->device[t->row_count++] = (int32_t)i;
    }
    return FL_OK;
}

fl_status fl_sensorlog_write(fl_sensorlog *l, const char *path, const char *workload, const char *platform,
                             int64_t makespan_ps, fl_diag *d) {
    char program[64];
    (void)snprintf(program, sizeof program, "0 to %lld ns", (long long)(makespan_ps / FL_PS_PER_NS));
    if (!fl_head_set(&l->t.head, "source", "foldline run: as the simulated sensors show it") ||
        !fl_head_set(&l->t.head, "workload", workload) || !fl_head_set(&l->t.head, "platform", platform) ||
        !fl_head_set(&l->t.head, "program", program))
        return fl_no_memory(d, "the log");
    return fl_telemetry_write(path, &l->t, d);
}

void fl_sensorlog_free(fl_sensorlog *l) {
    fl_telemetry_free(&l->t);
    *l = (fl_sensorlog){0};
}

/* ---- what a run served ---- */

static void print_times(const char *what, const fl_times *t, FILE *out) {
    fprintf(out, "%-11s %.4g s mean, %.4g s p50, %.4g s p90, %.4g s p95, %.4g s p99, %.4g s longest\n", what, t->mean_s,
            t->p50_s, t->p90_s, t->p95_s, t->p99_s, t->max_s);
}

static void print_latency(const char *what, const fl_times *t, FILE *out) {
    if (!t->count) {
        fprintf(out, "%-11s none: no request puts out a second token\n", what);
        return;
    }
    fprintf(out, "%-11s %.4g s p50, %.4g s p95, %.4g s p99, %.4g s mean, %.4g s longest\n", what, t->p50_s, t->p95_s,
            t->p99_s, t->mean_s, t->max_s);
}

static void print_energy(const char *what, const fl_times *j, FILE *out) {
    fprintf(out, "%-11s %.4g p50, %.4g p95, %.4g p99, %.4g mean", what, j->p50_s, j->p95_s, j->p99_s, j->mean_s);
}

static void print_energies(const fl_served_summary *s, FILE *out) {
    print_energy("J/request", &s->energy.request_j, out);
    fprintf(out, ", of steps alone; idle power is %.3g %% of the node's energy besides\n", 100 * s->idle_share);
    print_energy("J/token", &s->energy.token_j, out);
    fputc('\n', out);
    for (int i = 0; i < FL_SERVED_CLASSES; i++) {
        char what[32];
        if (!s->class[i].requests || s->class[i].requests == s->energy.requests)
            continue;
        snprintf(what, sizeof what, "  %s", fl_served_class_name[i]);
        print_energy(what, &s->class[i].request_j, out);
        fprintf(out, " J/request, %.4g J/token, %" PRIu64 " requests\n",
                s->class[i].request_j.mean_s * (double)s->class[i].requests / (double)s->class[i].output_tokens,
                s->class[i].requests);
    }
}

/* A server of a language model. Its energy is what its steps drew; the rest is drawn whether it serves or not. */
static void print_batched(const fl_served_result *r, FILE *out) {
    const fl_served_summary *s = &r->sum;
    fprintf(out,
            "requests    %zu, %" PRIu64 " prompt tokens (%" PRIu64 " from the prefix cache), %" PRIu64
            " tokens put out\n",
            r->request_count, s->prompt_tokens, s->cached_tokens, s->output_tokens);
    fprintf(out, "steps       %" PRIu64 ", %.4g tokens each, %" PRIu64 " preemptions\n", s->steps,
            s->steps ? (double)s->computed_tokens / (double)s->steps : 0, s->preemptions);
    fprintf(out, "rate        %.4g requests/s, %.4g tokens/s", s->requests_per_s, s->tokens_per_s);
    if (s->targets)
        fprintf(out, "; %.4g requests/s met both targets (goodput)", s->goodput);
    fputc('\n', out);
    if (s->moved)
        fprintf(out,
                "moved       %" PRIu64
                " times from a prefill to a decode server; TTFT is counted on the prefill side; the "
                "first TBT, on the decode side, holds the wait for room and the transfer\n",
                s->moved);
    print_latency("TTFT", &s->ttft, out);
    print_latency("TBT", &s->tbt, out);
    print_latency("TPOT", &s->tpot, out);
    print_latency("end to end", &s->e2e, out);
    if (s->targets)
        fprintf(out, "missed      %.3g %% of first tokens, %.3g %% of later ones: the targets were %s\n",
                100 * s->ttft_missed, 100 * s->tbt_missed, s->met ? "met" : "not met");
    else
        fputs("missed      nothing, as no latency was asked for (--ttft, --tbt)\n", out);
    fprintf(out, "worst       minute from %.4g s on: ", s->worst_minute_s);
    if (s->targets)
        fprintf(out, "%.3g %% of its requests missed a target, ", 100 * s->worst_minute_missed);
    fprintf(out, "mean TTFT %.4g s\n", s->worst_minute_ttft_s);
    fprintf(out,
            "energy each %.4g J per token put out, %.4g J per request; GPUs drew %.6g J in steps, all else of the node "
            "is %.6g J\n",
            s->j_per_token, s->j_per_request, fl_joules(s->serving_fj), fl_joules(s->idle_fj));
    print_energies(s, out);
}

void fl_served_print(const fl_run_result *r, FILE *out) {
    const fl_service *s = &r->service;
    if (r->served.request_count)
        print_batched(&r->served, out);
    if (s->request_count) {
        fprintf(out, "requests    %zu, %.5g J each, %zu waiting or in service at most", s->request_count,
                r->energy_j / (double)s->request_count, s->backlog_max);
        if (isfinite(s->load))
            fprintf(out, ", offered load %.3g", s->load);
        fputc('\n', out);
        print_times("latency", &s->latency, out);
    }
    if (s->iteration_count) {
        fprintf(out, "iterations  %zu between markers\n", s->iteration_count);
        print_times("each", &s->iteration_time, out);
    }
    if (s->barrier_count) {
        fputs("barriers   ", out);
        for (uint32_t i = 0; i < s->barrier_count && i < 16; i++)
            fprintf(out, " GPU %u: %.4g s", i, fl_seconds(s->barrier_ps[i]));
        fprintf(out, "%s waiting for another\n", s->barrier_count > 16 ? " ..." : "");
    }
}

void fl_served_note(const fl_run_result *r, FILE *out) {
    const fl_served_summary *served = &r->served.sum;
    if (served->overloaded)
        fprintf(out,
                "note: overloaded: requests arrive faster than they are served; the last quarter of them waited %.3g s "
                "each, the second quarter %.3g s, so latencies grow with the length of the run\n",
                served->wait_last_s, served->wait_second_s);
    const fl_service *s = &r->service;
    if (fl_service_overloaded(s->request_count, s->load))
        fprintf(out,
                "note: overloaded: requests arrive faster than they are served (offered load %.3g), so latencies "
                "grow with the length of the run\n",
                s->load);
}

static void add_times(cJSON *into, const fl_times *t) {
    fl_json_add_real(into, "mean_s", t->mean_s);
    fl_json_add_real(into, "p50_s", t->p50_s);
    fl_json_add_real(into, "p90_s", t->p90_s);
    fl_json_add_real(into, "p95_s", t->p95_s);
    fl_json_add_real(into, "p99_s", t->p99_s);
    fl_json_add_real(into, "max_s", t->max_s);
}

static void add_energy(cJSON *into, const fl_served_energy *e) {
    cJSON_AddNumberToObject(into, "requests", (double)e->requests);
    cJSON_AddNumberToObject(into, "output_tokens", (double)e->output_tokens);
    const fl_times *of[] = {&e->request_j, &e->token_j};
    static const char *const name[] = {"request", "token"};
    for (int i = 0; i < 2; i++) {
        cJSON *o = cJSON_AddObjectToObject(into, name[i]);
        fl_json_add_real(o, "mean_j", of[i]->mean_s);
        fl_json_add_real(o, "p50_j", of[i]->p50_s);
        fl_json_add_real(o, "p95_j", of[i]->p95_s);
        fl_json_add_real(o, "p99_j", of[i]->p99_s);
    }
}

static void add_batched(cJSON *o, const fl_served_result *r) {
    const fl_served_summary *s = &r->sum;
    cJSON_AddNumberToObject(o, "requests", (double)r->request_count);
    cJSON_AddNumberToObject(o, "prompt_tokens", (double)s->prompt_tokens);
    cJSON_AddNumberToObject(o, "cached_tokens", (double)s->cached_tokens);
    cJSON_AddNumberToObject(o, "output_tokens", (double)s->output_tokens);
    cJSON_AddNumberToObject(o, "computed_tokens", (double)s->computed_tokens);
    cJSON_AddNumberToObject(o, "steps", (double)s->steps);
    cJSON_AddNumberToObject(o, "preemptions", (double)s->preemptions);
    cJSON_AddNumberToObject(o, "moved", (double)s->moved);
    if (s->moved)
        cJSON_AddStringToObject(o, "counted",
                                "ttft on the prefill side, the first tbt with wait and transfer on the decode "
                                "side");
    fl_json_add_real(o, "requests_per_s", s->requests_per_s);
    fl_json_add_real(o, "tokens_per_s", s->tokens_per_s);
    fl_json_add_real(o, "goodput_rps", s->goodput);
    cJSON_AddBoolToObject(o, "overloaded", s->overloaded);
    add_times(cJSON_AddObjectToObject(o, "ttft"), &s->ttft);
    add_times(cJSON_AddObjectToObject(o, "tbt"), &s->tbt);
    add_times(cJSON_AddObjectToObject(o, "tpot"), &s->tpot);
    add_times(cJSON_AddObjectToObject(o, "end_to_end"), &s->e2e);
    fl_json_add_real(o, "ttft_missed_pct", 100 * s->ttft_missed);
    fl_json_add_real(o, "tbt_missed_pct", 100 * s->tbt_missed);
    if (s->targets)
        cJSON_AddBoolToObject(o, "targets_met", s->met);
    else
        cJSON_AddNullToObject(o, "targets_met");
    fl_json_add_real(o, "worst_minute_at_s", s->worst_minute_s);
    fl_json_add_real(o, "worst_minute_missed_pct", 100 * s->worst_minute_missed);
    fl_json_add_real(o, "worst_minute_ttft_s", s->worst_minute_ttft_s);
    fl_json_add_real(o, "energy_per_token_j", s->j_per_token);
    fl_json_add_real(o, "energy_per_request_j", s->j_per_request);
    fl_json_add_real(o, "serving_j", fl_joules(s->serving_fj));
    fl_json_add_real(o, "idle_j", fl_joules(s->idle_fj));
    fl_json_add_real(o, "idle_pct", 100 * s->idle_share);
    add_energy(cJSON_AddObjectToObject(o, "energy_each"), &s->energy);
    cJSON *classes = cJSON_AddObjectToObject(o, "energy_by_length");
    for (int i = 0; i < FL_SERVED_CLASSES; i++)
        if (s->class[i].requests)
            add_energy(cJSON_AddObjectToObject(classes, fl_served_class_name[i]), &s->class[i]);
}

void fl_served_json(cJSON *into, const fl_run_result *r) {
    const fl_service *s = &r->service;
    if (r->served.request_count)
        add_batched(cJSON_AddObjectToObject(into, "served"), &r->served);
    if (s->request_count) {
        cJSON *o = cJSON_AddObjectToObject(into, "requests");
        cJSON_AddNumberToObject(o, "count", (double)s->request_count);
        fl_json_add_real(o, "energy_per_request_j", r->energy_j / (double)s->request_count);
        fl_json_add_real(o, "offered_load", s->load);
        cJSON_AddBoolToObject(o, "overloaded", fl_service_overloaded(s->request_count, s->load));
        cJSON_AddNumberToObject(o, "backlog_max", (double)s->backlog_max);
        add_times(cJSON_AddObjectToObject(o, "latency"), &s->latency);
    }
    if (s->iteration_count) {
        cJSON *o = cJSON_AddObjectToObject(into, "iterations");
        cJSON_AddNumberToObject(o, "count", (double)s->iteration_count);
        add_times(o, &s->iteration_time);
    }
    cJSON *waits = s->barrier_count ? cJSON_AddArrayToObject(into, "barrier_wait_s") : NULL;
    for (uint32_t i = 0; i < s->barrier_count; i++)
        cJSON_AddItemToArray(waits, cJSON_CreateNumber(fl_seconds(s->barrier_ps[i])));
}

fl_status fl_served_write_requests(const char *path, const fl_service *s, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    FILE *f = fl_output_file(o);
    fputs("request,arrival_ns,start_ns,end_ns,latency_ns\n", f);
    for (size_t i = 0; i < s->request_count; i++) {
        const fl_request *r = &s->request[i];
        fprintf(f, "%zu,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", i, r->arrival_ps / FL_PS_PER_NS,
                r->start_ps / FL_PS_PER_NS, r->done_ps / FL_PS_PER_NS, (r->done_ps - r->arrival_ps) / FL_PS_PER_NS);
    }
    return fl_output_commit(o, d);
}

fl_status fl_served_write_batched(const char *path, const fl_served_result *r, const fl_requests *requests,
                                  fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    FILE *f = fl_output_file(o);
    fputs("request,server,arrival_ns,taken_ns,first_token_ns,done_ns,prompt_tokens,output_tokens,ttft_ns,tpot_ns,"
          "tbt_max_ns,e2e_ns,ttft_missed,tbt_missed,preemptions,prefill_j,decode_j,"
          "length_class,energy_j,energy_per_token_j,prefill_server,moved_ns\n",
          f);
    for (size_t i = 0; i < r->request_count; i++) {
        const fl_served *x = &r->request[i];
        const fl_request_row *asked = &requests->row[i];
        fprintf(f,
                "%zu,%" PRIu32 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu32 ",%" PRIu32 ",%" PRId64 ",",
                i, x->server, x->arrival_ps / FL_PS_PER_NS, x->taken_ps / FL_PS_PER_NS, x->first_ps / FL_PS_PER_NS,
                x->done_ps / FL_PS_PER_NS, asked->prompt_tokens, asked->output_tokens,
                (x->first_ps - x->arrival_ps) / FL_PS_PER_NS);
        if (asked->output_tokens > 1)
            fprintf(f, "%" PRId64, (x->done_ps - x->first_ps) / (asked->output_tokens - 1) / FL_PS_PER_NS);
        fprintf(f, ",%" PRId64 ",%" PRId64 ",%d,%" PRIu32 ",%" PRIu32 ",%.9g,%.9g,%s,%.9g,%.9g,",
                x->worst_tbt_ps / FL_PS_PER_NS, (x->done_ps - x->arrival_ps) / FL_PS_PER_NS, x->ttft_missed,
                x->tbt_missed, x->preemptions, fl_joules(x->prefill_fj), fl_joules(x->decode_fj),
                fl_served_class_name[fl_served_class_of(asked->prompt_tokens, asked->output_tokens)],
                fl_joules(x->prefill_fj + x->decode_fj),
                fl_joules(x->prefill_fj + x->decode_fj) / asked->output_tokens);
        if (x->moved_ps < FL_TIME_NEVER)
            fprintf(f, "%" PRIu32 ",%" PRId64, x->prefilled_by, x->moved_ps / FL_PS_PER_NS);
        else
            fputc(',', f);
        fputc('\n', f);
    }
    return fl_output_commit(o, d);
}

fl_status fl_served_write_iterations(const char *path, const fl_service *s, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    FILE *f = fl_output_file(o);
    fputs("gpu,process,stream,iteration,start_ns,end_ns,time_ns\n", f);
    for (size_t i = 0, n = 0; i < s->iteration_count; i++) {
        const fl_iteration *x = &s->iteration[i];
        n = i && x->gpu == x[-1].gpu && x->process == x[-1].process && x->stream == x[-1].stream ? n + 1 : 0;
        fprintf(f, "%u,%d,%d,%zu,%" PRId64 ",%" PRId64 ",%" PRId64 "\n", x->gpu, x->process, x->stream, n,
                x->start_ps / FL_PS_PER_NS, x->end_ps / FL_PS_PER_NS, (x->end_ps - x->start_ps) / FL_PS_PER_NS);
    }
    return fl_output_commit(o, d);
}
