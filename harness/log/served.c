#include "harness/log/served.h"

#include "harness/base/json_out.h"
#include "traces/csv.h"

#include <inttypes.h>
#include <math.h>

static void print_times(const char *what, const fl_times *t, FILE *out) {
    fprintf(out, "%-11s %.4g s mean, %.4g s p50, %.4g s p90, %.4g s p95, %.4g s p99, %.4g s longest\n", what, t->mean_s,
            t->p50_s, t->p90_s, t->p95_s, t->p99_s, t->max_s);
}

void fl_served_print(const fl_run_result *r, FILE *out) {
    const fl_service *s = &r->service;
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
    const fl_service *s = &r->service;
    if (fl_service_overloaded(s->request_count, s->load))
        fprintf(out,
                "note: overloaded: requests arrive faster than they are served (offered load %.3g); latencies grow "
                "through the run and tell its length\n",
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

void fl_served_json(cJSON *into, const fl_run_result *r) {
    const fl_service *s = &r->service;
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
