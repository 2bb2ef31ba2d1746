/* The files of executed plans, as traces/pipeline/runs.h reads them. */
#include "harness/plan/executed.h"

#include "traces/io/writing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void put_runs(const fl_executed *e, FILE *out) {
    fputs("plan,rank,iter_time_s,iter_time_sd_s,iter_energy_j,iter_energy_sd_j,iterations,plan_time_s,plan_time_sd_s,"
          "plan_energy_j,plan_energy_sd_j\n",
          out);
    for (size_t i = 0; i < e->run_count; i++) {
        const fl_executed_run *r = &e->run[i];
        fprintf(out, "%lld,%u,%.9g,%.7g,%.9g,%.7g,%zu,%.9g,%.7g,%.9g,%.7g\n", (long long)r->plan, r->rank, r->time_s[0],
                r->time_s[1], r->energy_j[0], r->energy_j[1], r->iterations, r->plan_s[0], r->plan_s[1], r->plan_j[0],
                r->plan_j[1]);
    }
}

static void put_parts(const fl_executed *e, FILE *out) {
    fputs("plan,rank,kind,sm_mhz,count,switched,time_mean_s,time_sd_s\n", out);
    for (size_t i = 0; i < e->part_count; i++) {
        const fl_executed_part *p = &e->part[i];
        fprintf(out, "%lld,%u,%s,%d,%zu,%zu,%.7g,%.7g\n", (long long)p->plan, p->rank, fl_pipeline_what_name[p->what],
                p->mhz, p->count, p->switched, p->mean_s, p->samples > 1 ? sqrt(p->square / (p->samples - 1)) : 0);
    }
}

static fl_status write_one(const char *base, const char *ending, const fl_executed *e, fl_diag *d) {
    char *path = NULL;
    if (asprintf(&path, "%s.%s", base, ending) < 0)
        return fl_no_memory(d, base);
    fl_status s = FL_OK;
    if (*ending == 'p') {
        s = fl_plans_write(path, &e->plans, d);
    } else {
        fl_output *o = fl_output_open(path, d);
        if (o)
            (*ending == 'm' ? put_runs : put_parts)(e, fl_output_file(o));
        s = o ? fl_output_commit(o, d) : d->status;
    }
    free(path);
    return s;
}

fl_status fl_executed_write(const char *base, const fl_executed *e, fl_diag *d) {
    fl_status s = write_one(base, "plans.csv", e, d);
    if (!s)
        s = write_one(base, "measured.csv", e, d);
    return s ? s : write_one(base, "instructions.csv", e, d);
}
