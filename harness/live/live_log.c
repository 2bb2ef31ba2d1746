#include "harness/live/live_log.h"

#include "harness/log/facts_head.h"
#include "harness/log/policy_head.h"
#include "harness/log/steplog.h"
#include "traces/writing.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fl_live_log {
    FILE *file;
    char *path;
    const fl_policy *policy;
    bool kernels;
    uint32_t kinds; /* written */
};

/* ---- head -------------------------------------------------------------------------------------------------------- */

fl_status fl_live_log_head(fl_head *h, const fl_policy *policy, const fl_facts *facts, const fl_layer *layer,
                           size_t layer_count, const char *platform, const char *mode, fl_diag *d) {
    const bool ok = (!platform || fl_head_set(h, "platform", platform)) && fl_head_set(h, "source", mode);
    fl_status s = ok ? fl_policy_head_put(h, policy, facts, layer, layer_count, d) : fl_no_memory(d, "the log");
    return s || platform ? s : fl_facts_to_head(facts, h, d);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void put_names(FILE *f, const char *before, fl_row_set set, uint64_t mask) {
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (mask >> i & 1)
            fprintf(f, ",%s%s", before, fl_rows_at(set, i)->name);
}

static void put_values(FILE *f, fl_row_set set, uint64_t mask, uint64_t valid, const double *value) {
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (mask >> i & 1) {
            fputc(',', f);
            if (value && valid >> i & 1)
                fl_put_real(f, value[i]);
        }
}

static const char *put_fresh(FILE *f, const char *joint, fl_row_set set, uint64_t fresh) {
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (fresh >> i & 1) {
            fprintf(f, "%s%s", joint, fl_rows_at(set, i)->name);
            joint = "+";
        }
    return joint;
}

static void put_sets(FILE *f, fl_row_set set, uint64_t mask, const fl_decided *decided) {
    for (size_t i = 0; i < fl_rows_count(set); i++)
        if (mask >> i & 1) {
            fputc(',', f);
            if (decided && decided[i].set && decided[i].value == FL_DEFAULT)
                fputs("default", f);
            else if (decided && decided[i].set)
                fl_put_real(f, decided[i].value);
        }
}

static void put_row(const fl_live_log *l, const fl_sample *s, const fl_decision *dec, uint32_t row) {
    const fl_policy *p = l->policy;
    const fl_gpu_sample *g = row ? &s->gpu[row - 1] : NULL;
    FILE *f = l->file;
    fl_put_int(f, (int64_t)s->step);
    fputc(',', f);
    fl_put_int(f, s->time_ns);
    fputc(',', f);
    fl_put_device(f, (int32_t)row - 1);
    put_values(f, FL_ROWS_HOST_SIGNAL, p->host_needs, s->host.valid, row ? NULL : s->host.value);
    put_values(f, FL_ROWS_GPU_SIGNAL, p->gpu_needs, g ? g->valid : 0, g ? g->value : NULL);
    fputc(',', f);
    if (g)
        put_fresh(f, "", FL_ROWS_GPU_SIGNAL, g->fresh & g->valid & p->gpu_needs);
    else
        put_fresh(f, "", FL_ROWS_HOST_SIGNAL, s->host.fresh & s->host.valid & p->host_needs);
    put_sets(f, FL_ROWS_GPU_CONTROL, p->gpu_drives, row ? dec->gpu[row - 1] : NULL);
    put_sets(f, FL_ROWS_HOST_CONTROL, p->host_drives, row ? NULL : dec->host);
    fputc(',', f);
    if (!row)
        fl_put_int(f, dec->delay_ns);
    if (l->kernels)
        fl_put_kernel_cells(f, row ? 0 : s->record_lost);
    fputc('\n', f);
}

static void put_kernels(fl_live_log *l, const fl_sample *s) {
    const fl_policy *p = l->policy;
    const size_t columns = (size_t)__builtin_popcountll(p->host_needs) + (size_t)__builtin_popcountll(p->gpu_needs) +
                           (size_t)__builtin_popcountll(p->gpu_drives) + (size_t)__builtin_popcountll(p->host_drives);
    const fl_step_place at = {(size_t)s->step, columns + 2, s->time_ns};
    for (; l->kinds < s->kind_count; l->kinds++) {
        const fl_logged_kind kind = fl_logged_kind_of(&s->kind[l->kinds]);
        fl_put_kind_row(l->file, &at, l->kinds, &kind);
    }
    for (uint64_t i = 0; s->record && i < s->record_count; i++) {
        const fl_logged_kernel kernel = fl_logged_kernel_of(&s->record[i]);
        fl_put_kernel_row(l->file, &at, &kernel);
    }
}

fl_status fl_live_log_add(fl_live_log *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    for (uint32_t row = 0; row <= sample->gpu_count; row++) {
        put_row(l, sample, decision, row);
        if (!row && l->kernels)
            put_kernels(l, sample);
    }
    if (fflush(l->file))
        return fl_fail(d, FL_IO, l->path, 0, 0, "cannot write: %s", fl_reason(errno));
    return FL_OK;
}

fl_status fl_live_log_open(fl_live_log **out, const char *path, const fl_head *head, const fl_policy *policy,
                           fl_diag *d) {
    *out = NULL;
    fl_live_log *l = calloc(1, sizeof *l);
    fl_status s = l && (l->path = strdup(path)) ? FL_OK : fl_no_memory(d, "the log");
    if (s)
        goto out;
    l->policy = policy;
    l->kernels = fl_takes_kernels(policy);
    if (!(l->file = fopen(path, "we"))) {
        s = fl_fail(d, FL_IO, path, 0, 0, "cannot write: %s", fl_reason(errno));
        goto out;
    }
    if ((s = fl_put_head(l->file, path, "foldline-decisions", head, d)))
        goto out;
    fputs("step,t_ns,device", l->file);
    put_names(l->file, "", FL_ROWS_HOST_SIGNAL, policy->host_needs);
    put_names(l->file, "", FL_ROWS_GPU_SIGNAL, policy->gpu_needs);
    fputs(",fresh", l->file);
    put_names(l->file, "set_", FL_ROWS_GPU_CONTROL, policy->gpu_drives);
    put_names(l->file, "set_", FL_ROWS_HOST_CONTROL, policy->host_drives);
    fputs(",delay_ns", l->file);
    if (l->kernels)
        fl_put_kernel_names(l->file);
    fputc('\n', l->file);
    *out = l;
    return FL_OK;
out:
    fl_live_log_close(l, NULL);
    return s;
}

fl_status fl_live_log_close(fl_live_log *l, fl_diag *d) {
    fl_status s = FL_OK;
    if (!l)
        return FL_OK;
    if (l->file && fclose(l->file))
        s = fl_fail(d, FL_IO, l->path, 0, 0, "cannot write: %s", fl_reason(errno));
    free(l->path);
    free(l);
    return s;
}
