/* Which controls and signals this machine has, and the session that sets them. */
#include "harness/live/guard/inside.h"

#include "harness/live/guard/guard.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- controls and signals of this machine ---- */

/* Why nobody can set that control here, "" where somebody can. gpu -1 = the CPU. FL_HARDWARE where the GPU is gone. */
static fl_status fl_reach_control(const fl_gpus *g, const fl_cpu_host *cpu, int32_t gpu, int control, char *why,
                                  size_t size, fl_diag *d) {
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
    const uint64_t reads = fl_reads_of(p).gpu;
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
    const fl_reads all = fl_reads_of(p);
    const uint64_t gpu = all.gpu_needs, reads = all.gpu, host = all.host_needs & ~FL_HOST_KNOWS;
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

/* ---- the session ---- */

#define LOCK_WAIT_NS INT64_C(30000000000)

struct fl_session {
    fl_session_options o;
    const char *state;
    uint32_t gpus, units; /* units: the GPUs, and the CPU as the last */
    fl_lock *lock;        /* units */
    fl_record *record;    /* units */
    uint64_t *hindered;   /* units: controls that nobody can set here */
    bool *touched;        /* units: something may have been set */
    fl_guardian guardian;
    bool recorded;
    uint64_t replaced;
    int64_t allowed_ns; /* what the last beat left until the next */
};

static bool has_cpu(const fl_session *s) { return s->o.cpu && s->o.host_drives; }

static const char *unit(const fl_session *s, uint32_t i) {
    return i < s->gpus ? s->o.gpus->back->unit(s->o.gpus->self, i) : "cpu";
}

/* In the order of their names, so that two controllers cannot each hold what the other wants. */
static int by_unit(const void *a, const void *b) {
    return strcmp(((const fl_lock *)a)->unit, ((const fl_lock *)b)->unit);
}

static fl_status take_locks(fl_session *s, fl_diag *d) {
    for (uint32_t i = 0; i < s->units; i++) {
        s->lock[i].fd = s->lock[i].held = -1;
        snprintf(s->lock[i].unit, sizeof s->lock[i].unit, "%s", unit(s, i));
    }
    qsort(s->lock, s->units, sizeof *s->lock, by_unit);
    for (uint32_t i = 0; i < s->units; i++) {
        char name[FL_UNIT_MAX];
        memcpy(name, s->lock[i].unit, sizeof name);
        fl_status status = fl_lock_take(s->state, name, FL_LOCK_CONTROL, LOCK_WAIT_NS, &s->lock[i], d);
        if (status)
            return status;
    }
    return FL_OK;
}

static fl_status restore_stale(fl_session *s, fl_diag *d) {
    fl_status status = FL_OK;
    for (uint32_t i = 0; i < s->units && !fl_mutated("stale-record-ignored"); i++) { /* one holds up no other */
        fl_status one = fl_restore_unit(s->state, unit(s, i), s->o.gpus, NULL, status ? NULL : d);
        status = status ? status : one;
    }
    return status;
}

static fl_status start_guardian(fl_session *s, fl_diag *d) {
    return fl_guardian_start(&s->guardian, s->lock, s->units, s->o.check_ns, d);
}

static fl_status find_hindered(fl_session *s, uint32_t i, uint64_t drives, fl_diag *d) {
    char why[160];
    fl_status status = FL_OK;
    for (int id = 0; !status && id < 64; id++)
        if (drives >> id & 1) {
            status = fl_reach_control(s->o.gpus, s->o.cpu, i < s->gpus ? (int32_t)i : -1, id, why, sizeof why, d);
            s->hindered[i] |= *why ? FL_BIT(id) : 0;
        }
    return status;
}

static fl_status collect_priors(fl_session *s, fl_diag *d) {
    fl_status status = FL_OK;
    for (uint32_t i = 0; !status && i < s->units; i++) {
        const uint64_t drives = i < s->gpus ? s->o.gpu_drives : s->o.host_drives;
        status = find_hindered(s, i, drives, d);
        const uint64_t can = drives & ~s->hindered[i];
        if (!status)
            status = i < s->gpus ? s->o.gpus->back->prior(s->o.gpus->self, i, can, &s->record[i], d)
                                 : fl_cpu_host_prior(s->o.cpu, can, &s->record[i], d);
    }
    return status;
}

static fl_status write_records(fl_session *s, fl_diag *d) {
    fl_status status = FL_OK;
    s->recorded = true;
    for (uint32_t i = 0; !status && i < s->units; i++)
        status = fl_record_write(s->state, &s->record[i], d);
    return status ? status : fl_guardian_recorded(&s->guardian, d);
}

static fl_status take_over(fl_session *s, fl_diag *d) {
    fl_status status = take_locks(s, d);
    if (!status)
        status = restore_stale(s, d);
    const bool early = fl_mutated("record-before-guardian"), late = fl_mutated("record-after-set");
    if (!status && early && !(status = collect_priors(s, d)))
        status = write_records(s, d);
    if (!status)
        status = start_guardian(s, d);
    if (!status && !early)
        status = collect_priors(s, d);
    if (!status && !early && !late)
        status = write_records(s, d);
    return status;
}

fl_status fl_session_open(fl_session **out, const fl_session_options *o, fl_diag *d) {
    *out = NULL;
    fl_session *s = calloc(1, sizeof *s);
    if (!s)
        return fl_no_memory(d, "the session");
    s->o = *o;
    s->guardian = (fl_guardian){.wire = -1, .beat_fd = -1};
    s->gpus = o->gpus->back->count(o->gpus->self);
    s->units = s->gpus + has_cpu(s);
    s->lock = calloc(s->units + 1, sizeof *s->lock);
    s->record = calloc(s->units + 1, sizeof *s->record);
    s->hindered = calloc(s->units + 1, sizeof *s->hindered);
    s->touched = calloc(s->units + 1, sizeof *s->touched);
    for (uint32_t i = 0; s->lock && i < s->units; i++)
        s->lock[i].fd = s->lock[i].held = -1;
    /* A core of some GB would keep the guardian waiting for our end for seconds. */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    fl_status status = s->lock && s->record && s->hindered && s->touched ? fl_state_open(&s->state, d)
                                                                         : fl_no_memory(d, "the session");
    if (!status)
        status = take_over(s, d);
    if (status) {
        fl_session_close(s, NULL);
        return status;
    }
    *out = s;
    return FL_OK;
}

static fl_status keep_guarded(fl_session *s, fl_diag *d) {
    if (fl_guardian_alive(&s->guardian) && fl_guardian_answers(&s->guardian))
        return FL_OK;
    if (!fl_guardian_end(&s->guardian))
        return fl_error(d, FL_HARDWARE, "the guardian (process %d) neither looks nor ends: nothing is set without it",
                        (int)s->guardian.pid);
    fl_guardian_drop(&s->guardian);
    s->replaced++;
    fl_status status = start_guardian(s, d);
    if (!status && s->allowed_ns > 0) /* it knows of no time yet, and its start may have lasted beyond the last one */
        fl_guardian_beat(&s->guardian, fl_clock_ns() + s->allowed_ns);
    return status;
}

fl_status fl_session_beat(fl_session *s, int64_t until_ns, fl_diag *d) {
    s->allowed_ns = until_ns == INT64_MAX ? 0 : until_ns - fl_clock_ns();
    const uint64_t before = s->replaced;
    fl_status status = keep_guarded(s, d);
    if (!status && s->replaced == before) /* a new one was told already */
        fl_guardian_beat(&s->guardian, until_ns);
    return status;
}

uint64_t fl_session_replaced(const fl_session *s) { return s->replaced; }

static fl_status set_control(fl_session *s, int32_t gpu, int control, double value, fl_diag *d) {
    if (gpu >= 0)
        return s->o.gpus->back->set(s->o.gpus->self, (uint32_t)gpu, control, value, &s->record[gpu], d);
    return fl_cpu_host_set(s->o.cpu, control, value, &s->record[s->gpus], d);
}

/* Locked or not, the GPU runs at it. */
static bool only_clock(const fl_session *s, int32_t gpu, int control) {
    fl_gpu_facts f;
    if (gpu < 0 || s->o.gpus->back->facts(s->o.gpus->self, (uint32_t)gpu, &f, NULL))
        return false;
    return (control == FL_SET_SM_MHZ && f.sm.count == 1) || (control == FL_SET_MEM_MHZ && f.mem.count == 1);
}

fl_status fl_session_may(const fl_session *s, int32_t gpu, int control, double value, bool *made, fl_diag *d) {
    const uint32_t i = gpu >= 0 ? (uint32_t)gpu : s->gpus;
    char why[160];
    *made = i < s->units && !(s->hindered[i] >> control & 1); /* beyond the units: a CPU that is not to be had */
    if (*made || value == FL_DEFAULT || only_clock(s, gpu, control))
        return FL_OK;
    fl_status status = fl_reach_control(s->o.gpus, s->o.cpu, gpu, control, why, sizeof why, d);
    if (status)
        return status;
    const char *name = fl_rows_at(gpu < 0 ? FL_ROWS_HOST_CONTROL : FL_ROWS_GPU_CONTROL, (size_t)control)->name;
    return fl_error(d, FL_HARDWARE, "the policy sets %s to %g, which cannot be set here: %s", name, value,
                    *why ? why : "it could not when control began");
}

fl_status fl_session_set(fl_session *s, int32_t gpu, int control, double value, fl_diag *d) {
    const uint32_t i = gpu >= 0 ? (uint32_t)gpu : s->gpus;
    fl_status status = keep_guarded(s, d);
    if (status)
        return status;
    status = set_control(s, gpu, control, value, d);
    s->touched[i] = s->touched[i] || status != FL_IO;
    if (!status && fl_mutated("record-after-set"))
        status = write_records(s, d);
    return status;
}

/* A unit that nothing was set on has nothing to restore, and where sets are not permitted restoring would not be
 * either. */
static fl_status give_back_unit(fl_session *s, uint32_t i, fl_diag *d) {
    fl_status status = s->touched[i] ? fl_restore_record(&s->record[i], s->o.gpus, d) : FL_OK;
    return status ? status : fl_record_remove(s->state, unit(s, i), d);
}

/* True where nothing is left to be done. */
static bool give_back(fl_session *s, fl_status *first, fl_diag *d) {
    bool all = true;
    for (uint32_t i = 0; i < s->units; i++) {
        fl_status status = give_back_unit(s, i, *first ? NULL : d);
        *first = *first ? *first : status;
        all = all && !status;
    }
    return all;
}

fl_status fl_session_close(fl_session *s, fl_diag *d) {
    fl_status first = FL_OK;
    bool all = true;
    if (!s)
        return FL_OK;
    if (s->recorded)
        all = give_back(s, &first, d);
    if (all)
        fl_guardian_dismiss(&s->guardian);
    else
        fl_guardian_drop(&s->guardian);
    for (uint32_t i = 0; s->lock && all && i < s->units; i++)
        if (s->lock[i].held >= 0)
            fl_lock_unlink(s->state, &s->lock[i]);
    for (uint32_t i = 0; s->lock && i < s->units; i++)
        fl_lock_close(&s->lock[i]);
    for (uint32_t i = 0; s->record && i < s->units; i++)
        fl_record_free(&s->record[i]);
    free(s->lock);
    free(s->record);
    free(s->hindered);
    free(s->touched);
    free(s);
    return first;
}
