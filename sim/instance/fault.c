/* Injected faults: signals that go missing or freeze, refused sets, lost GPUs. */
#include "sim/instance/instance.h"

#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { ROWS_MAX = 64 }; /* a signal of any table has its bit and its cell */

typedef struct frozen { /* what one source showed when one freeze began */
    bool taken;
    uint64_t valid;
    double value[ROWS_MAX];
} frozen;

struct fl_faults {
    const fl_fault *list;
    size_t count;
    uint32_t gpu_count, server_count;
    frozen *held; /* of the freezes in order: one for a source, gpu_count for every GPU, likewise for every server */
    uint64_t *hidden; /* per GPU, then the host, then per server: refreshes not told yet */
};

static bool of_server(int32_t gpu) { return gpu <= FL_FAULT_EVERY_SERVER; }

static size_t sources(const fl_fault *fault, uint32_t gpu_count, uint32_t server_count) {
    return fault->gpu == FL_FAULT_EVERY_GPU ? gpu_count : fault->gpu == FL_FAULT_EVERY_SERVER ? server_count : 1;
}

static int rows(const fl_fault *fault) {
    if (fault->type == FL_FAULT_REFUSE)
        return fault->gpu == FL_FAULT_HOST ? (int)FL_HOST_CONTROL_COUNT : (int)FL_GPU_CONTROL_COUNT;
    if (of_server(fault->gpu))
        return FL_SERVER_SIGNAL_COUNT;
    return fault->gpu == FL_FAULT_HOST ? (int)FL_HOST_SIGNAL_COUNT : (int)FL_GPU_SIGNAL_COUNT;
}

static fl_status check_server(const fl_fault *fault, size_t place, uint32_t server_count, fl_diag *d) {
    if (!server_count)
        return fl_refuse(d, "fault %zu: of a server, and the node has none", place);
    if (fault->gpu <= FL_FAULT_SERVER && (uint32_t)(FL_FAULT_SERVER - fault->gpu) >= server_count)
        return fl_refuse(d, "fault %zu: server %d, but the node has %u, counted from 0", place,
                         (int)(FL_FAULT_SERVER - fault->gpu), (unsigned)server_count);
    if (fault->type == FL_FAULT_REFUSE || fault->type == FL_FAULT_LOST)
        return fl_refuse(d, "fault %zu: of a server only signals fail, expected drop or freeze", place);
    return FL_OK;
}

static fl_status check(const fl_fault *fault, size_t place, uint32_t gpu_count, uint32_t server_count, fl_diag *d) {
    if ((unsigned)fault->type >= FL_FAULT_TYPE_COUNT)
        return fl_refuse(d, "fault %zu: type %d, expected 0 to %d", place, (int)fault->type,
                         (int)FL_FAULT_TYPE_COUNT - 1);
    const fl_status s = of_server(fault->gpu) ? check_server(fault, place, server_count, d) : FL_OK;
    if (s)
        return s;
    if (fault->gpu >= 0 && (uint32_t)fault->gpu >= gpu_count)
        return fl_refuse(d, "fault %zu: GPU %d, but the node has %u, counted from 0", place, (int)fault->gpu,
                         (unsigned)gpu_count);
    if (fault->from_ns < 0)
        return fl_refuse(d, "fault %zu: begins before time 0", place);
    if (fault->type == FL_FAULT_LOST)
        return fault->gpu == FL_FAULT_HOST ? fl_refuse(d, "fault %zu: the host is lost, expected a GPU", place) : FL_OK;
    if (fault->until_ns <= fault->from_ns)
        return fl_refuse(d, "fault %zu: ends no later than it begins", place);
    if (fault->row < FL_FAULT_EVERY_ROW || fault->row >= rows(fault))
        return fl_refuse(d, "fault %zu: row %d, expected -1 to %d", place, (int)fault->row, rows(fault) - 1);
    if (fault->type != FL_FAULT_REFUSE && fault->gpu == FL_FAULT_HOST && fault->row >= 0 &&
        FL_HOST_KNOWS >> fault->row & 1)
        return fl_refuse(d, "fault %zu: %s is what the host itself knows and cannot fail, expected a sensor", place,
                         fl_rows_at(FL_ROWS_HOST_SIGNAL, (size_t)fault->row)->name);
    return FL_OK;
}

fl_status fl_faults_open(fl_faults **out, const fl_fault *list, size_t count, uint32_t gpu_count, uint32_t server_count,
                         fl_diag *d) {
    *out = NULL;
    size_t held = 0;
    for (size_t i = 0; i < count; i++) {
        fl_status s = check(&list[i], i + 1, gpu_count, server_count, d);
        if (s)
            return s;
        held += list[i].type == FL_FAULT_FREEZE ? sources(&list[i], gpu_count, server_count) : 0;
    }
    fl_faults *f = calloc(1, sizeof *f);
    if (f) {
        *f = (fl_faults){.list = list, .count = count, .gpu_count = gpu_count, .server_count = server_count};
        f->held = calloc(held + 1, sizeof *f->held);
        f->hidden = calloc((size_t)gpu_count + 1 + server_count, sizeof *f->hidden);
    }
    if (!f || !f->held || !f->hidden) {
        fl_faults_close(f);
        return fl_no_memory(d, "faults");
    }
    *out = f;
    return FL_OK;
}

void fl_faults_close(fl_faults *f) {
    if (!f)
        return;
    free(f->held);
    free(f->hidden);
    free(f);
}

static bool hits(const fl_fault *fault, int32_t gpu) {
    return fault->gpu == gpu || (fault->gpu == FL_FAULT_EVERY_GPU && gpu >= 0) ||
           (fault->gpu == FL_FAULT_EVERY_SERVER && gpu <= FL_FAULT_SERVER);
}

static bool acts(const fl_fault *fault, int64_t t_ns) {
    return t_ns >= fault->from_ns && (t_ns < fault->until_ns || fault->type == FL_FAULT_LOST);
}

typedef struct reading { /* of a GPU, the host or a server */
    int32_t gpu;
    uint64_t touchable; /* bits of its table, without the host's own stopwatch */
    uint64_t *valid, *fresh;
    double *value;
} reading;

static uint64_t touches(const fl_fault *fault, const reading *r) {
    return r->touchable &
           (fault->type == FL_FAULT_LOST || fault->row == FL_FAULT_EVERY_ROW ? ~UINT64_C(0) : FL_BIT(fault->row));
}

/* Returns the signals that are frozen at t_ns, having put their old values in place. */
static uint64_t freeze(const fl_fault *fault, frozen *h, int64_t t_ns, const reading *r) {
    const uint64_t touched = touches(fault, r);
    if (t_ns <= fault->from_ns || !h->taken) {
        h->taken = true;
        h->valid = *r->valid & touched;
        for (uint64_t left = h->valid; left; left &= left - 1)
            h->value[__builtin_ctzll(left)] = r->value[__builtin_ctzll(left)];
    }
    if (!acts(fault, t_ns))
        return 0;
    *r->valid = (*r->valid & ~touched) | h->valid;
    for (uint64_t left = h->valid; left; left &= left - 1)
        r->value[__builtin_ctzll(left)] = h->value[__builtin_ctzll(left)];
    return touched;
}

static void inject(fl_faults *f, int64_t t_ns, const reading *r) {
    const uint32_t server = (uint32_t)(FL_FAULT_SERVER - r->gpu), among = of_server(r->gpu) ? server : (uint32_t)r->gpu;
    uint64_t *hidden = &f->hidden[of_server(r->gpu)         ? f->gpu_count + 1 + server
                                  : r->gpu == FL_FAULT_HOST ? f->gpu_count
                                                            : (uint32_t)r->gpu];
    *hidden |= *r->fresh & *r->valid;
    uint64_t still = 0, missing = 0;
    frozen *h = f->held;
    for (size_t i = 0; i < f->count; i++) {
        const fl_fault *fault = &f->list[i];
        if (fault->type == FL_FAULT_FREEZE) {
            if (hits(fault, r->gpu))
                still |= freeze(fault, h + (fault->gpu == r->gpu ? 0 : among), t_ns, r);
            h += sources(fault, f->gpu_count, f->server_count);
        } else if (fault->type != FL_FAULT_REFUSE && hits(fault, r->gpu) && acts(fault, t_ns)) {
            missing |= touches(fault, r);
        }
    }
    for (uint64_t left = missing; left; left &= left - 1)
        r->value[__builtin_ctzll(left)] = 0; /* as sensors leave what they do not know */
    *r->valid &= ~missing;
    *r->fresh = *hidden & *r->valid & ~still;
    *hidden &= ~*r->fresh;
}

void fl_faults_gpu(fl_faults *f, uint32_t gpu, int64_t t_ns, fl_gpu_sample *s) {
    if (f && gpu < f->gpu_count)
        inject(f, t_ns, &(reading){(int32_t)gpu, FL_BIT(FL_GPU_SIGNAL_COUNT) - 1, &s->valid, &s->fresh, s->value});
}

void fl_faults_host(fl_faults *f, int64_t t_ns, fl_host_sample *s) {
    if (f)
        inject(f, t_ns,
               &(reading){FL_FAULT_HOST, (FL_BIT(FL_HOST_SIGNAL_COUNT) - 1) & ~FL_HOST_KNOWS, &s->valid, &s->fresh,
                          s->value});
}

void fl_faults_server(fl_faults *f, uint32_t server, int64_t t_ns, fl_server_sample *s) {
    if (f && server < f->server_count)
        inject(f, t_ns,
               &(reading){FL_FAULT_SERVER - (int32_t)server, FL_BIT(FL_SERVER_SIGNAL_COUNT) - 1, &s->valid, &s->fresh,
                          s->value});
}

bool fl_faults_refuses(const fl_faults *f, int32_t gpu, int control, int64_t t_ns) {
    for (size_t i = 0; f && i < f->count; i++) {
        const fl_fault *fault = &f->list[i];
        if (!hits(fault, gpu) || !acts(fault, t_ns))
            continue;
        if (fault->type == FL_FAULT_LOST)
            return true;
        if (fault->type == FL_FAULT_REFUSE && (fault->row == FL_FAULT_EVERY_ROW || fault->row == control))
            return true;
    }
    return false;
}

int64_t fl_faults_lost_at(const fl_faults *f, uint32_t gpu) {
    int64_t at = INT64_MAX;
    for (size_t i = 0; f && i < f->count; i++)
        if (f->list[i].type == FL_FAULT_LOST && hits(&f->list[i], (int32_t)gpu) && f->list[i].from_ns < at)
            at = f->list[i].from_ns;
    return at;
}
