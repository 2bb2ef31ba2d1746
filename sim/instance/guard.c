/* Checks of raw readings before a policy sees them: absurd, stale, wrapped. Also freshness by changed values. */
#include "policies/policy.h"
#include "sim/instance/inside.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- freshness ---- */

bool fl_seen_put(fl_seen *last, fl_gpu_sample *sample, int id, double value, int64_t t_ns, int64_t refresh_ns) {
    bool fresh = !last->known || last->value != value;
    if (!fresh && refresh_ns != FL_SEEN_MOVES)
        fresh = t_ns - last->fresh_ns >= refresh_ns;
    if (fresh)
        *last = (fl_seen){.value = value, .fresh_ns = t_ns, .known = true};
    sample->value[id] = value;
    sample->valid |= FL_BIT(id);
    sample->fresh |= fresh ? FL_BIT(id) : 0;
    return fresh;
}

/* ---- checks ---- */

typedef struct watch { /* one signal */
    double wrap;
    double raw;   /* counter: as it was last read */
    double carry; /* counter: shown = raw + carry */
    double shown;
    int64_t limit_ns, fresh_ns;
    double low, high; /* what it can be; high is finite */
    uint64_t absurd;  /* readings that were not */
} watch;

struct fl_guard {
    uint32_t gpu_count;
    uint64_t host_seen;
    uint64_t *gpu_seen; /* per GPU: signals read at least once */
    watch (*gpu)[FL_GPU_SIGNAL_COUNT];
    watch host[FL_HOST_SIGNAL_COUNT];
    uint32_t server_count;
    uint64_t *server_seen; /* per server, likewise */
    watch (*server)[FL_SERVER_SIGNAL_COUNT];
};

#define COUNTER_BIT_GPU(id, name, unit, kind, meaning) | (FL_##kind == FL_COUNTER ? FL_BIT(FL_GPU_##id) : 0)
#define COUNTER_BIT_HOST(id, name, unit, kind, meaning) | (FL_##kind == FL_COUNTER ? FL_BIT(FL_HOST_##id) : 0)
#define COUNTER_BIT_SERVER(id, name, unit, kind, meaning) | (FL_##kind == FL_COUNTER ? FL_BIT(FL_SERVER_##id) : 0)
static const uint64_t gpu_counters = 0 FL_GPU_SIGNALS(COUNTER_BIT_GPU);
static const uint64_t host_counters = 0 FL_HOST_SIGNALS(COUNTER_BIT_HOST);
static const uint64_t server_counters = 0 FL_SERVER_SIGNALS(COUNTER_BIT_SERVER);

/* Anything from 0 on; not infinite. */
static void unbound(watch *w, size_t count) {
    for (size_t i = 0; w && i < count; i++)
        w[i].high = DBL_MAX;
}

fl_status fl_guard_open(fl_guard **out, uint32_t gpu_count, fl_diag *d) {
    fl_guard *g = calloc(1, sizeof *g);
    if (g) {
        g->gpu_count = gpu_count;
        g->gpu = calloc((size_t)gpu_count + 1, sizeof *g->gpu);
        g->gpu_seen = calloc((size_t)gpu_count + 1, sizeof *g->gpu_seen);
    }
    if (!g || !g->gpu || !g->gpu_seen) {
        fl_guard_close(g);
        *out = NULL;
        return fl_no_memory(d, "the readings of the GPUs");
    }
    unbound(*g->gpu, (size_t)gpu_count * FL_GPU_SIGNAL_COUNT);
    unbound(g->host, FL_HOST_SIGNAL_COUNT);
    *out = g;
    return FL_OK;
}

fl_status fl_guard_servers(fl_guard *g, uint32_t count, fl_diag *d) {
    g->server = calloc((size_t)count + 1, sizeof *g->server);
    g->server_seen = calloc((size_t)count + 1, sizeof *g->server_seen);
    if (!g->server || !g->server_seen)
        return fl_no_memory(d, "the readings of the servers");
    unbound(*g->server, (size_t)count * FL_SERVER_SIGNAL_COUNT);
    g->server_count = count;
    return FL_OK;
}

void fl_guard_close(fl_guard *g) {
    if (!g)
        return;
    free(g->server);
    free(g->server_seen);
    free(g->gpu);
    free(g->gpu_seen);
    free(g);
}

static watch *gpu_watch(fl_guard *g, uint32_t gpu, int signal) {
    return gpu < g->gpu_count && signal >= 0 && signal < FL_GPU_SIGNAL_COUNT ? &g->gpu[gpu][signal] : NULL;
}

static watch *host_watch(fl_guard *g, int signal) {
    return signal >= 0 && signal < FL_HOST_SIGNAL_COUNT ? &g->host[signal] : NULL;
}

static watch *server_watch(fl_guard *g, uint32_t server, int signal) {
    const bool known = server < g->server_count && signal >= 0 && signal < FL_SERVER_SIGNAL_COUNT;
    return known ? &g->server[server][signal] : NULL;
}

static void set_wrap(watch *w, double wrap) {
    if (w)
        w->wrap = wrap > 0 && isfinite(wrap) ? wrap : 0;
}

static void set_limit(watch *w, int64_t limit_ns) {
    if (w)
        w->limit_ns = limit_ns > 0 ? limit_ns : 0;
}

void fl_guard_gpu_wrap(fl_guard *g, uint32_t gpu, int signal, double wrap) {
    set_wrap(gpu_watch(g, gpu, signal), wrap);
}
void fl_guard_host_wrap(fl_guard *g, int signal, double wrap) { set_wrap(host_watch(g, signal), wrap); }
void fl_guard_gpu_bounds(fl_guard *g, uint32_t gpu, int signal, double low, double high) {
    watch *w = gpu_watch(g, gpu, signal);
    if (!w)
        return;
    w->low = low > 0 ? low : 0;
    w->high = high > 0 && isfinite(high) ? high : DBL_MAX;
}
uint64_t fl_guard_gpu_absurd(const fl_guard *g, uint32_t gpu, int signal) {
    const bool known = gpu < g->gpu_count && signal >= 0 && signal < FL_GPU_SIGNAL_COUNT;
    return known ? g->gpu[gpu][signal].absurd : 0;
}
void fl_guard_gpu_stale(fl_guard *g, uint32_t gpu, int signal, int64_t limit_ns) {
    set_limit(gpu_watch(g, gpu, signal), limit_ns);
}
void fl_guard_host_stale(fl_guard *g, int signal, int64_t limit_ns) { set_limit(host_watch(g, signal), limit_ns); }
void fl_guard_server_stale(fl_guard *g, uint32_t server, int signal, int64_t limit_ns) {
    set_limit(server_watch(g, server, signal), limit_ns);
}

/* Takes a counter's raw value; false where it was reset. */
static bool count(watch *w, double raw, bool first) {
    bool reset = false;
    if (first) {
        w->shown = raw;
    } else if (raw < w->raw) {
        reset = !(w->raw < w->wrap && raw + (w->wrap - w->raw) <= w->wrap / 2);
        w->carry = reset ? w->shown - raw : w->carry + w->wrap;
    }
    w->raw = raw;
    if (raw + w->carry > w->shown) /* after a reset the sum may round below */
        w->shown = raw + w->carry;
    return !reset;
}

static void look(watch *watches, uint64_t rows, uint64_t counters, uint64_t *seen, int64_t t_ns, uint64_t *valid,
                 uint64_t *fresh, double *value) {
    const uint64_t news = *fresh | ~*seen; /* what is read for the first time is fresh */
    uint64_t absurd = 0, bad = 0;
    for (uint64_t left = *valid & rows; left; left &= left - 1) {
        const int i = __builtin_ctzll(left);
        const uint64_t bit = left & -left;
        watch *w = &watches[i];
        if (!(value[i] >= w->low && value[i] <= w->high)) {
            absurd |= bit;
            w->absurd++;
            continue;
        }
        if (news & bit)
            w->fresh_ns = t_ns;
        else if (w->limit_ns && t_ns - w->fresh_ns > w->limit_ns)
            bad |= bit;
        if (counters & bit) {
            bad |= count(w, value[i], !(*seen & bit)) ? 0 : bit;
            value[i] = w->shown;
        }
    }
    *seen |= *valid & rows & ~absurd;
    *valid &= ~(absurd | bad);
    *fresh &= *valid;
}

void fl_guard_gpu(fl_guard *g, uint32_t gpu, int64_t t_ns, fl_gpu_sample *s) {
    if (gpu < g->gpu_count)
        look(g->gpu[gpu], FL_BIT(FL_GPU_SIGNAL_COUNT) - 1, gpu_counters, &g->gpu_seen[gpu], t_ns, &s->valid, &s->fresh,
             s->value);
}

void fl_guard_host(fl_guard *g, int64_t t_ns, fl_host_sample *s) {
    look(g->host, FL_BIT(FL_HOST_SIGNAL_COUNT) - 1, host_counters, &g->host_seen, t_ns, &s->valid, &s->fresh, s->value);
}

void fl_guard_server(fl_guard *g, uint32_t server, int64_t t_ns, fl_server_sample *s) {
    if (server < g->server_count)
        look(g->server[server], FL_BIT(FL_SERVER_SIGNAL_COUNT) - 1, server_counters, &g->server_seen[server], t_ns,
             &s->valid, &s->fresh, s->value);
}

/* ---- what a policy reads ---- */

/* What a policy reads. Its rows name signals of GPU, host and server in one row of numbers; hosts work on a set of
 * each. */

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
