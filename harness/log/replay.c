/* Replays a decisions log and compares each decision. */
#include "harness/log/inside.h"

#include "harness/log/log.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fl_columns { /* columns of the log, matched with the tables; -1 = does not exist for this kind of row */
    int *gpu_signal, *host_signal, *gpu_control, *host_control;
    size_t woken, wake; /* see FL_LOGGED_WOKEN; SIZE_MAX: the log has none */
} fl_columns;

static fl_status match(const char *path, char *const *name, size_t count, fl_row_set gpu, fl_row_set host,
                       const char *own, int **as_gpu, int **as_host, size_t *as_own, fl_diag *d) {
    *as_own = SIZE_MAX;
    *as_gpu = malloc((count + 1) * sizeof **as_gpu);
    *as_host = malloc((count + 1) * sizeof **as_host);
    if (!*as_gpu || !*as_host)
        return fl_no_memory(d, "the replay");
    for (size_t i = 0; i < count; i++) {
        (*as_gpu)[i] = fl_rows_find(gpu, name[i]);
        (*as_host)[i] = fl_rows_find(host, name[i]);
        if (!strcmp(name[i], own))
            *as_own = i;
        else if ((*as_gpu)[i] < 0 && (*as_host)[i] < 0)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "column '%s' is no signal or control that a policy knows",
                           name[i]);
    }
    return FL_OK;
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

typedef struct in_force { /* the power limits of one GPU that the log and the policy set last; NAN: none */
    double recorded_w, decided_w;
    bool apart; /* they differ since the step before, beyond rounding */
} in_force;

static bool close_by(const in_force *l) { return fabs(l->recorded_w - l->decided_w) <= FL_REPLAY_ROUNDED_W; }

/* Follow the power limits of a GPU, and count a difference that rounding explains. */
static void follow(fl_replay_result *r, in_force *l, double recorded, double decided) {
    l->recorded_w = isnan(recorded) ? l->recorded_w : recorded;
    l->decided_w = isnan(decided) ? l->decided_w : decided;
    r->rounded += l->apart && close_by(l);
    const bool differs = !same(recorded, decided);
    r->rounded += differs && close_by(l);
    l->apart = differs && !close_by(l);
}

static void compare(fl_replay_result *r, const fl_decisions *log, const fl_columns *c, size_t step, size_t row,
                    const fl_decided *set, in_force *limit) {
    bool differs = false;
    const int *id = row ? c->gpu_control : c->host_control;
    for (size_t k = 0; k < log->control_count; k++) {
        if (id[k] < 0)
            continue;
        double recorded = log->set[(step * (log->gpu_count + 1) + row) * log->control_count + k];
        double decided = set[id[k]].set ? set[id[k]].value : NAN;
        if (row && id[k] == FL_SET_POWER_LIMIT_W)
            follow(r, &limit[row - 1], recorded, decided);
        if (same(recorded, decided))
            continue;
        if (!differs && !r->differ) {
            r->step = step;
            r->line = log->line[step];
            r->t_ns = log->t_ns[step];
            r->device = (int32_t)row - 1;
            snprintf(r->control, sizeof r->control, "%s", log->control[k]);
            r->recorded = recorded;
            r->decided = decided;
        }
        differs = true;
    }
    r->differ += differs;
}

static void fill(const fl_decisions *log, size_t step, size_t row, const int *id, uint64_t *valid, uint64_t *fresh,
                 double *value) {
    *valid = *fresh = 0;
    for (size_t k = 0; k < log->signal_count; k++) {
        size_t at = (step * (log->gpu_count + 1) + row) * log->signal_count + k;
        if (id[k] < 0 || isnan(log->value[at]))
            continue;
        value[id[k]] = log->value[at];
        *valid |= FL_BIT(id[k]);
        *fresh |= log->fresh[at] ? FL_BIT(id[k]) : 0;
    }
}

typedef struct shown { /* activity records in the form that a policy sees: all kinds, and room for the records of a step
                        */
    fl_kernel_kind *kind;
    fl_kernel_record *record;
} shown;

static size_t before(const size_t *until, size_t step) { return step ? until[step - 1] : 0; }

static fl_status open_shown(const fl_decisions *log, shown *k, fl_diag *d) {
    size_t most = 0;
    for (size_t i = 0; log->has_kernels && i < log->step_count; i++) {
        const size_t n = log->kernels_until[i] - before(log->kernels_until, i);
        most = n > most ? n : most;
    }
    k->kind = calloc(log->kind_count + 1, sizeof *k->kind);
    k->record = calloc(most + 1, sizeof *k->record);
    if (!k->kind || !k->record)
        return fl_no_memory(d, "the replay");
    for (size_t i = 0; i < log->kind_count; i++) {
        const fl_logged_kind *from = &log->kind[i];
        k->kind[i] = (fl_kernel_kind){.name = from->name, .name_id = from->name_id};
        memcpy(k->kind[i].grid, from->grid, sizeof from->grid);
        memcpy(k->kind[i].block, from->block, sizeof from->block);
    }
    return FL_OK;
}

static fl_status show_kernels(const fl_decisions *log, const char *path, size_t step, const shown *k, fl_sample *sample,
                              fl_diag *d) {
    const size_t first = before(log->kernels_until, step), count = log->kernels_until[step] - first;
    for (size_t i = 0; i < count; i++) {
        const fl_logged_kernel *from = &log->kernel[first + i];
        if (from->gpu >= log->gpu_count)
            return fl_fail(d, FL_BAD_INPUT, path, log->line[step], 0, "a kernel of GPU %u, but there are %u",
                           (unsigned)from->gpu, (unsigned)log->gpu_count);
        k->record[i] = (fl_kernel_record){.start_ns = from->start_ns,
                                          .end_ns = from->end_ns,
                                          .kind = from->kind,
                                          .stream = from->stream,
                                          .gpu = from->gpu};
    }
    sample->record = count ? k->record : NULL;
    sample->record_count = count;
    sample->record_lost = log->lost[step];
    sample->kind = k->kind;
    sample->kind_count = (uint32_t)log->kinds_until[step];
    return FL_OK;
}

/* The values in the host's row that concern the whole step. */
static const double *host_set(const fl_decisions *log, size_t step, size_t column) {
    return &log->set[step * (log->gpu_count + 1) * log->control_count + column];
}

static uint32_t woken_of(const fl_decisions *log, const fl_columns *c, size_t step) {
    if (c->woken == SIZE_MAX)
        return 0;
    const double v = log->value[step * (log->gpu_count + 1) * log->signal_count + c->woken];
    return v >= 0 && v < FL_BIT(FL_WAKE_COUNT) ? (uint32_t)v : 0;
}

static void differ_in(fl_replay_result *r, const fl_decisions *log, size_t step, const char *what, double recorded,
                      double decided) {
    if (!r->differ) {
        *r = (fl_replay_result){
            .decisions = r->decisions, .step = step, .line = log->line[step], .t_ns = log->t_ns[step], .device = -1};
        snprintf(r->control, sizeof r->control, "%s", what);
        r->recorded = recorded;
        r->decided = decided;
    }
    r->differ++;
}

typedef struct served { /* servers as a policy sees them: signals by column, and room for the records of a step */
    int *signal;
    fl_server_sample *sample;
    fl_batch_record *batch;
} served;

static fl_status open_served(const fl_decisions *log, const char *path, served *v, fl_diag *d) {
    const fl_logged_servers *s = &log->servers;
    size_t most = 0;
    for (size_t i = 0; i < s->steps; i++)
        most = s->batches_until[i] - before(s->batches_until, i) > most
                   ? s->batches_until[i] - before(s->batches_until, i)
                   : most;
    v->signal = calloc(s->signal_count + 1, sizeof *v->signal);
    v->sample = calloc(s->count + 1U, sizeof *v->sample);
    v->batch = calloc(most + 1, sizeof *v->batch);
    if (!v->signal || !v->sample || !v->batch)
        return fl_no_memory(d, "the replay");
    for (size_t i = 0; i < s->signal_count; i++)
        if ((v->signal[i] = fl_rows_find(FL_ROWS_SERVER_SIGNAL, s->signal[i])) < 0)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "column '%s' is no signal of a server", s->signal[i]);
    return FL_OK;
}

static void show_servers(const fl_decisions *log, size_t step, const served *v, fl_sample *sample) {
    const fl_logged_servers *s = &log->servers;
    if (!s->signal)
        return;
    for (uint32_t k = 0; k < s->count; k++) {
        const size_t at = (step * s->count + k) * s->signal_count;
        fl_server_sample *u = &v->sample[k];
        u->valid = u->fresh = 0;
        for (size_t c = 0; c < s->signal_count; c++) {
            if (isnan(s->value[at + c]))
                continue;
            u->value[v->signal[c]] = s->value[at + c];
            u->valid |= FL_BIT(v->signal[c]);
            u->fresh |= s->fresh[at + c] ? FL_BIT(v->signal[c]) : 0;
        }
    }
    const size_t first = before(s->batches_until, step), count = s->batches_until[step] - first;
    for (size_t i = 0; i < count; i++) {
        const fl_logged_batch *b = &s->batch[first + i];
        v->batch[i] = (fl_batch_record){.start_ns = b->start_ns,
                                        .end_ns = b->end_ns,
                                        .server = b->server,
                                        .prompt_tokens = b->prompt_tokens,
                                        .prompts = b->prompts,
                                        .decode_sequences = b->decode_sequences,
                                        .kv_tokens = b->kv_tokens};
    }
    sample->server = v->sample;
    sample->server_count = s->count;
    const uint64_t lost = s->count ? s->lost[step * s->count] : FL_STEPS_UNTOLD;
    const bool told = count || lost != FL_STEPS_UNTOLD;
    sample->batch = told ? v->batch : NULL;
    sample->batch_count = count;
    sample->batch_lost = lost == FL_STEPS_UNTOLD ? 0 : lost;
}

fl_status fl_replay(const fl_decisions *log, const char *path, fl_instance *in, fl_replay_result *r, fl_diag *d) {
    *r = (fl_replay_result){.device = -1};
    fl_columns c = {0};
    fl_gpu_sample *gpu = calloc(log->gpu_count + 1, sizeof *gpu);
    in_force *limit = calloc(log->gpu_count + 1, sizeof *limit);
    shown kernels = {0};
    served servers = {0};
    bool host_controls = false;
    fl_status s = gpu && limit ? FL_OK : fl_no_memory(d, "the replay");
    for (uint32_t g = 0; !s && g < log->gpu_count; g++)
        limit[g].recorded_w = limit[g].decided_w = NAN;
    if (!s)
        s = match(path, log->signal, log->signal_count, FL_ROWS_GPU_SIGNAL, FL_ROWS_HOST_SIGNAL, FL_LOGGED_WOKEN,
                  &c.gpu_signal, &c.host_signal, &c.woken, d);
    if (!s)
        s = match(path, log->control, log->control_count, FL_ROWS_GPU_CONTROL, FL_ROWS_HOST_CONTROL, FL_LOGGED_WAKE,
                  &c.gpu_control, &c.host_control, &c.wake, d);
    if (!s)
        s = open_shown(log, &kernels, d);
    if (!s)
        s = open_served(log, path, &servers, d);
    for (size_t k = 0; !s && k < log->control_count; k++)
        host_controls |= c.host_control[k] >= 0;
    for (size_t i = 0; !s && i < log->step_count; i++) {
        fl_sample sample = {.time_ns = log->t_ns[i], .step = i, .gpu_count = log->gpu_count, .gpu = gpu};
        sample.woken = woken_of(log, &c, i);
        fill(log, i, 0, c.host_signal, &sample.host.valid, &sample.host.fresh, sample.host.value);
        for (uint32_t g = 0; g < log->gpu_count; g++)
            fill(log, i, g + 1, c.gpu_signal, &gpu[g].valid, &gpu[g].fresh, gpu[g].value);
        const fl_decision *dec;
        if (log->has_kernels && (s = show_kernels(log, path, i, &kernels, &sample, d)))
            break;
        show_servers(log, i, &servers, &sample);
        if ((s = fl_instance_step(in, &sample, &dec, d)))
            break;
        for (uint32_t g = 0; g < log->gpu_count; g++)
            compare(r, log, &c, i, g + 1, dec->gpu[g], limit);
        if (host_controls)
            compare(r, log, &c, i, 0, dec->host, limit);
        if (log->delay_ns[i] >= 0 && log->delay_ns[i] != dec->delay_ns)
            differ_in(r, log, i, "delay_ns", (double)log->delay_ns[i], (double)dec->delay_ns);
        const double wake = c.wake < SIZE_MAX ? *host_set(log, i, c.wake) : (double)dec->wake;
        if (!same(wake, (double)dec->wake))
            differ_in(r, log, i, FL_LOGGED_WAKE, wake, (double)dec->wake);
        r->decisions += log->gpu_count + host_controls;
        r->steps = i + 1;
    }
    free(kernels.kind);
    free(kernels.record);
    free(servers.signal);
    free(servers.sample);
    free(servers.batch);
    free(gpu);
    free(limit);
    free(c.gpu_signal);
    free(c.host_signal);
    free(c.gpu_control);
    free(c.host_control);
    return s;
}
