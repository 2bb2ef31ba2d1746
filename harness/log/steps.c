/* Collects the steps of a run as a decisions log. */
#include "harness/log/inside.h"

#include "harness/log/log.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fl_status add_names(char ***names, size_t *count, fl_row_set set, uint64_t mask, fl_diag *d) {
    size_t rows = fl_rows_count(set);
    char **more = realloc(*names, (*count + rows + 1) * sizeof **names);
    if (!more)
        return fl_no_memory(d, "the log");
    *names = more;
    for (size_t i = 0; i < rows; i++)
        if (mask >> i & 1) {
            char *name = NULL;
            if (asprintf(&name, "%s", fl_rows_at(set, i)->name) < 0)
                return fl_no_memory(d, "the log");
            more[(*count)++] = name;
        }
    return FL_OK;
}

static fl_status add_name(char ***names, size_t *count, const char *name, fl_diag *d) {
    char **more = realloc(*names, (*count + 1) * sizeof **names);
    if (!more)
        return fl_no_memory(d, "the log");
    *names = more;
    if (!(more[*count] = strdup(name)))
        return fl_no_memory(d, "the log");
    ++*count;
    return FL_OK;
}

fl_status fl_steplog_open(fl_steplog *l, const fl_policy *policy, uint32_t gpu_count, fl_diag *d) {
    *l = (fl_steplog){.policy = policy};
    l->log.gpu_count = gpu_count;
    l->log.has_kernels = fl_takes_kernels(policy);
    const fl_reads reads = fl_reads_of(policy);
    fl_status s = add_names(&l->log.signal, &l->log.signal_count, FL_ROWS_HOST_SIGNAL, reads.host_needs, d);
    if (!s)
        s = add_names(&l->log.signal, &l->log.signal_count, FL_ROWS_GPU_SIGNAL, reads.gpu, d);
    if (!s)
        s = add_names(&l->log.control, &l->log.control_count, FL_ROWS_GPU_CONTROL, policy->gpu_drives, d);
    if (!s)
        s = add_names(&l->log.control, &l->log.control_count, FL_ROWS_HOST_CONTROL, policy->host_drives, d);
    if (!s && policy->wakes)
        s = add_name(&l->log.signal, &l->log.signal_count, FL_LOGGED_WOKEN, d);
    if (!s && policy->wakes)
        s = add_name(&l->log.control, &l->log.control_count, FL_LOGGED_WAKE, d);
    if (s)
        fl_steplog_free(l);
    return s;
}

bool fl_takes_kernels(const fl_policy *policy) {
    return fl_reads_of(policy).records || policy->gpu_drives & FL_BIT(FL_SET_RECORDS);
}

/* A kernel's kind and record in the form of decisions files; the name is borrowed. */
static fl_logged_kind kind_of(const fl_kernel_kind *kind) {
    fl_logged_kind k = {.name = (char *)(uintptr_t)kind->name, .name_id = kind->name_id};
    memcpy(k.grid, kind->grid, sizeof k.grid);
    memcpy(k.block, kind->block, sizeof k.block);
    return k;
}

static fl_logged_kernel kernel_of(const fl_kernel_record *record) {
    return (fl_logged_kernel){.start_ns = record->start_ns,
                              .end_ns = record->end_ns < 0 ? -1 : record->end_ns,
                              .kind = record->kind,
                              .gpu = record->gpu,
                              .stream = record->stream};
}

static fl_logged_batch batch_of(const fl_batch_record *b) {
    return (fl_logged_batch){.start_ns = b->start_ns,
                             .end_ns = b->end_ns,
                             .server = b->server,
                             .prompt_tokens = b->prompt_tokens,
                             .prompts = b->prompts,
                             .decode_sequences = b->decode_sequences,
                             .kv_tokens = b->kv_tokens};
}

/* What a log says of the steps of engines that the policy missed, in the row of server 0. */
static uint64_t steps_lost(const fl_sample *sample) { return sample->batch ? sample->batch_lost : FL_STEPS_UNTOLD; }

fl_status fl_steplog_servers(fl_steplog *l, fl_diag *d) {
    fl_logged_servers *s = &l->log.servers;
    const uint64_t reads = fl_reads_of(l->policy).server;
    return s->signal ? FL_OK : add_names(&s->signal, &s->signal_count, FL_ROWS_SERVER_SIGNAL, reads, d);
}

static fl_status add_servers(fl_steplog *l, const fl_sample *sample, fl_diag *d) {
    fl_logged_servers *s = &l->log.servers;
    double value[FL_SERVER_SIGNAL_COUNT];
    bool fresh[FL_SERVER_SIGNAL_COUNT];
    if (!sample->server_count && !s->signal)
        return FL_OK;
    fl_status status = fl_steplog_servers(l, d);
    for (uint32_t k = 0; !status && k < sample->server_count; k++) {
        const fl_server_sample *u = &sample->server[k];
        for (size_t c = 0; c < s->signal_count; c++) {
            const int id = fl_rows_find(FL_ROWS_SERVER_SIGNAL, s->signal[c]);
            value[c] = fl_server_known(u, id) ? u->value[id] : (double)NAN;
            fresh[c] = fl_server_fresh(u, id);
        }
        status = fl_servers_add(s, &l->servers_room, value, fresh, k ? FL_STEPS_UNTOLD : steps_lost(sample));
    }
    for (uint64_t i = 0; !status && sample->batch && i < sample->batch_count; i++) {
        const fl_logged_batch batch = batch_of(&sample->batch[i]);
        status = fl_servers_add_batch(s, &l->servers_room, &batch);
    }
    if (!status)
        status = fl_servers_end_step(s, &l->servers_room);
    return status ? fl_no_memory(d, "the log") : FL_OK;
}

static fl_status add_kernels(fl_steplog *l, const fl_sample *sample) {
    fl_decisions *g = &l->log;
    const size_t step = g->step_count;
    fl_status s = fl_decisions_add_step(g, &l->room, step, sample->record_lost);
    while (!s && g->kind_count < sample->kind_count) {
        const fl_logged_kind kind = kind_of(&sample->kind[g->kind_count]);
        s = fl_decisions_add_kind(g, &l->room, step, &kind);
    }
    for (uint64_t i = 0; !s && sample->record && i < sample->record_count; i++) {
        const fl_logged_kernel kernel = kernel_of(&sample->record[i]);
        s = fl_decisions_add_kernel(g, &l->room, step, &kernel);
    }
    return s;
}

fl_status fl_steplog_add(fl_steplog *l, const fl_sample *sample, const fl_decision *dec, fl_diag *d) {
    fl_decisions *g = &l->log;
    size_t rows = g->gpu_count + 1, step = g->step_count;
    if (fl_decisions_grow(g, &l->room, step + 1, g->gpu_count) || (g->has_kernels && add_kernels(l, sample)))
        return fl_no_memory(d, "the log");
    if (add_servers(l, sample, d))
        return FL_NO_MEMORY;
    g->t_ns[step] = sample->time_ns;
    g->delay_ns[step] = dec->delay_ns;
    g->line[step] = 0;
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < g->signal_count; c++) {
            int id = fl_rows_find(r ? FL_ROWS_GPU_SIGNAL : FL_ROWS_HOST_SIGNAL, g->signal[c]);
            uint64_t valid = r ? sample->gpu[r - 1].valid : sample->host.valid,
                     fresh = r ? sample->gpu[r - 1].fresh : sample->host.fresh;
            const double *value = r ? sample->gpu[r - 1].value : sample->host.value;
            size_t at = (step * rows + r) * g->signal_count + c;
            bool known = id >= 0 && valid >> id & 1;
            g->value[at] = known ? value[id] : NAN;
            g->fresh[at] = known && fresh >> id & 1;
            if (!r && !strcmp(g->signal[c], FL_LOGGED_WOKEN))
                g->value[at] = sample->woken;
        }
        for (size_t c = 0; c < g->control_count; c++) {
            int id = fl_rows_find(r ? FL_ROWS_GPU_CONTROL : FL_ROWS_HOST_CONTROL, g->control[c]);
            const fl_decided *set = r ? dec->gpu[r - 1] : dec->host;
            double *value = &g->set[(step * rows + r) * g->control_count + c];
            *value = id >= 0 && set[id].set ? set[id].value : NAN;
            if (!r && !strcmp(g->control[c], FL_LOGGED_WAKE))
                *value = (double)dec->wake;
        }
    }
    g->step_count++;
    return FL_OK;
}

void fl_steplog_forget(fl_steplog *l) {
    l->log.step_count = l->log.kernel_count = 0;
    l->log.servers.rows = l->log.servers.steps = l->log.servers.batch_count = 0;
}

void fl_steplog_free(fl_steplog *l) {
    fl_decisions_free(&l->log);
    *l = (fl_steplog){0};
}
