#include "harness/live/guard/reach.h"

#include "sim/instance/instance.h"
#include "sim/node/readout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fl_status fl_reach_control(const fl_gpus *g, const fl_cpu_host *cpu, int32_t gpu, int control, char *why, size_t size,
                           fl_diag *d) {
    fl_record scratch = {0};
    fl_diag said = {0};
    *why = '\0';
    const char *hindrance = gpu < 0                     ? (cpu ? NULL : "no CPU is to be had")
                            : control == FL_SET_RECORDS ? NULL
                                                        : g->back->hindrance(g->self, (uint32_t)gpu, control);
    if (hindrance) {
        snprintf(why, size, "%s", hindrance);
        return FL_OK;
    }
    fl_status s = gpu < 0 ? fl_cpu_host_prior(cpu, FL_BIT(control), &scratch, &said)
                          : g->back->prior(g->self, (uint32_t)gpu, FL_BIT(control), &scratch, &said);
    fl_record_free(&scratch);
    if (s == FL_IO) {
        fl_diag_text(&said, why, size);
        return FL_OK;
    }
    if (s && d)
        *d = said;
    return s;
}

static void add_name(char *list, size_t size, const char *name, const char *why) {
    const size_t at = strlen(list);
    snprintf(list + at, size - at, "%s%s%s%s%s", at ? ", " : "", name, *why ? " (" : "", why, *why ? ")" : "");
}

static fl_status controls(const fl_policy *p, const fl_gpus *g, const fl_cpu_host *cpu, fl_reach *r, fl_diag *d) {
    char why[160] = "";
    fl_status s = FL_OK;
    for (int id = 0; !s && id < FL_GPU_CONTROL_COUNT; id++)
        for (uint32_t i = 0; !s && p->gpu_drives >> id & 1 && i < g->back->count(g->self); i++) {
            s = fl_reach_control(g, cpu, (int32_t)i, id, why, sizeof why, d);
            if (!s && *why) { /* one GPU is enough to tell it */
                add_name(r->controls, sizeof r->controls, fl_rows_at(FL_ROWS_GPU_CONTROL, (size_t)id)->name, why);
                break;
            }
        }
    for (int id = 0; !s && id < FL_HOST_CONTROL_COUNT; id++)
        if (p->host_drives >> id & 1) {
            s = fl_reach_control(g, cpu, -1, id, why, sizeof why, d);
            if (!s && *why)
                add_name(r->controls, sizeof r->controls, fl_rows_at(FL_ROWS_HOST_CONTROL, (size_t)id)->name, why);
        }
    return s;
}

typedef struct found {
    uint64_t every, any, host; /* valid on every GPU, on any GPU, of the host */
} found;

static fl_status read_all(const fl_policy *p, const fl_gpus *g, fl_cpu_host *cpu, int64_t t_ns, found *f, fl_diag *d) {
    fl_host_sample host = {0};
    fl_status s = FL_OK;
    const uint64_t reads = fl_policy_reads(p);
    f->every = reads;
    f->any = 0;
    for (uint32_t i = 0; !s && i < g->back->count(g->self); i++) {
        fl_gpu_sample sample = {0};
        s = g->back->read(g->self, i, reads, t_ns, &sample, d);
        f->every &= sample.valid;
        f->any |= sample.valid & reads;
    }
    if (!s && cpu)
        fl_cpu_host_read(cpu, &host);
    f->host = host.valid;
    return s;
}

static fl_status signals(const fl_policy *p, const fl_gpus *g, fl_cpu_host *cpu, uint64_t given, fl_reach *r,
                         fl_diag *d) {
    const uint64_t gpu = p->gpu_needs, reads = fl_policy_reads(p), host = p->host_needs & ~FL_BIT(FL_HOST_LOOP_NS);
    found f;
    if (!reads && !host)
        return FL_OK;
    fl_status s = read_all(p, g, cpu, 0, &f, d);
    if (!s && (((f.every | given) & gpu) != gpu || (f.host & host) != host)) {
        usleep(FL_READOUT_APART_NS / 1000);
        s = read_all(p, g, cpu, FL_READOUT_APART_NS, &f, d);
    }
    g->back->forget(g->self);
    if (s)
        return s;
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        if ((gpu & ~(f.every | given)) >> id & 1)
            add_name(r->signals, sizeof r->signals, fl_rows_at(FL_ROWS_GPU_SIGNAL, (size_t)id)->name, "");
    for (int id = 0; id < FL_HOST_SIGNAL_COUNT; id++)
        if ((host & ~f.host) >> id & 1)
            add_name(r->signals, sizeof r->signals, fl_rows_at(FL_ROWS_HOST_SIGNAL, (size_t)id)->name, "");
    r->blind = !((f.any | given) & reads) && !(f.host & host);
    return FL_OK;
}

fl_status fl_reach_of(const fl_policy *p, const fl_gpus *g, fl_cpu_host *cpu, uint64_t given, fl_reach *r, fl_diag *d) {
    *r = (fl_reach){0};
    fl_status s = controls(p, g, cpu, r, d);
    return s ? s : signals(p, g, cpu, given, r, d);
}
