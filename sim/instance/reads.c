/* What a policy reads. Its rows name signals of GPU, host and server in one row of numbers; hosts work on a set of
 * each. */
#include "sim/instance/inside.h"
#include "sim/instance/instance.h"

#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>

enum { HOST = FL_GPU_SIGNAL_COUNT, SERVER = HOST + FL_HOST_SIGNAL_COUNT };

static bool of_gpu(uint32_t signal) { return signal < HOST; }
static bool of_host(uint32_t signal) { return signal >= HOST && signal < SERVER; }
static bool of_server(uint32_t signal) { return signal >= SERVER && signal < FL_SIGNAL_KERNEL_RECORDS; }

fl_reads fl_reads_of(const fl_policy *policy) {
    fl_reads r = {0};
    for (uint32_t i = 0; policy->signal && i < policy->signal_count; i++) {
        const fl_signal_row *row = &policy->signal[i];
        if (of_gpu(row->signal))
            *(row->how == FL_NEEDED ? &r.gpu_needs
              : row->how == FL_USED ? &r.gpu_uses
                                    : &r.gpu_instead) |= FL_BIT(row->signal);
        else if (of_host(row->signal))
            r.host_needs |= FL_BIT(row->signal - HOST);
        else if (of_server(row->signal))
            *(row->how == FL_NEEDED ? &r.server_needs : &r.server_uses) |= FL_BIT(row->signal - SERVER);
        r.records |= row->signal == FL_SIGNAL_KERNEL_RECORDS;
        r.steps |= row->signal == FL_SIGNAL_ENGINE_STEPS;
    }
    r.gpu = r.gpu_needs | r.gpu_uses;
    r.server = r.server_needs | r.server_uses;
    return r;
}

/* ---- rows from plug-ins are checked ---- */

static bool right(const fl_signal_row *row, const fl_reads *r) {
    const uint32_t s = row->signal;
    switch (row->how) {
    case FL_NEEDED:
        return s < FL_SIGNAL_ENGINE_STEPS;
    case FL_USED:
        return of_gpu(s) || of_server(s) || s == FL_SIGNAL_ENGINE_STEPS;
    case FL_INSTEAD_OF:
        return of_gpu(s) && of_gpu(row->instead_of) && r->gpu_needs >> row->instead_of & 1;
    default:
        return false;
    }
}

fl_status fl_reads_check(const fl_policy *policy, fl_diag *d) {
    if (policy->signal_count > FL_SIGNAL_ROWS_MAX || (policy->signal_count && !policy->signal))
        return fl_refuse(d, "policy %s: %u signal rows, expected a table of at most %d", policy->name,
                         policy->signal_count, FL_SIGNAL_ROWS_MAX);
    const fl_reads r = fl_reads_of(policy);
    for (uint32_t i = 0; i < policy->signal_count; i++)
        if (!right(&policy->signal[i], &r))
            return fl_refuse(d,
                             "policy %s: signal row %u is none of FL_NEEDS(GPU_, HOST_, SERVER_... or KERNEL_RECORDS), "
                             "FL_USES(GPU_, SERVER_... or ENGINE_STEPS), FL_INSTEAD(GPU_..., a GPU_... that a row "
                             "needs)",
                             policy->name, i + 1);
    return FL_OK;
}

/* ---- what stands in ---- */

/* True where the host lacks the signal and offers all that the policy reads instead of it. */
static bool replaced(const fl_policy *policy, uint32_t signal, uint64_t offers) {
    bool any = false;
    if (offers >> signal & 1)
        return false;
    for (uint32_t i = 0; i < policy->signal_count; i++) {
        const fl_signal_row *row = &policy->signal[i];
        if (row->how != FL_INSTEAD_OF || row->instead_of != signal)
            continue;
        if (!(offers >> row->signal & 1))
            return false;
        any = true;
    }
    return any;
}

fl_policy fl_policy_where(const fl_policy *policy, uint64_t offers, fl_signal_row *row) {
    fl_policy here = *policy;
    fl_diag d;
    if (fl_reads_check(policy, &d))
        return here; /* fl_instance_open refuses it */
    here.signal = row;
    here.signal_count = 0;
    for (uint32_t i = 0; i < policy->signal_count; i++) {
        fl_signal_row r = policy->signal[i];
        if (of_gpu(r.signal) && r.how == FL_USED && !(offers >> r.signal & 1))
            continue;
        if (of_gpu(r.signal) && r.how == FL_NEEDED && replaced(policy, r.signal, offers))
            continue;
        if (r.how == FL_INSTEAD_OF && replaced(policy, r.instead_of, offers))
            r = (fl_signal_row){.signal = r.signal, .how = FL_NEEDED};
        row[here.signal_count++] = r;
    }
    return here;
}
