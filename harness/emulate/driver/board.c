/* The node of a session, and the state that a driver keeps of each GPU; sets act on both. */
#include "harness/emulate/driver/inside.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

fl_status fl_boards_open(fl_boards *all, fl_diag *d) {
    const fl_scene *scene = all->o->scene;
    const uint32_t n = scene->platform.node.gpu_count;
    all->spec = &scene->platform.node;
    all->gpu_count = n;
    all->random = fl_random_seed(scene->facts.seed, UINT64_C(0x656d756c));
    int64_t *lost_ns = calloc(n, sizeof *lost_ns);
    all->board = calloc(n, sizeof *all->board);
    if (!lost_ns || !all->board) {
        free(lost_ns);
        return fl_no_memory(d, "the boards");
    }
    fl_status s =
        all->o->fault_count ? fl_faults_open(&all->faults, all->o->fault, all->o->fault_count, n, 0, d) : FL_OK;
    for (uint32_t i = 0; !s && i < n; i++) {
        lost_ns[i] = fl_faults_lost_at(all->faults, i);
        const double w = fl_boards_device(all, i)->power_default_w;
        all->board[i].limit_mw = (uint32_t)lround(w * 1000);
    }
    const fl_node_options node = {.w = scene->w,
                                  .rates = scene->rates,
                                  .spec = all->spec,
                                  .seed = scene->facts.seed,
                                  .gpu_needs = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1,
                                  .lost_at_ns = lost_ns};
    if (!s)
        s = fl_node_open(&all->node, &node, d);
    if (!s)
        s = fl_node_advance(all->node, 0, d);
    free(lost_ns);
    return s;
}

void fl_boards_close(fl_boards *all) {
    fl_node_close(all->node);
    fl_faults_close(all->faults);
    fl_events_free(&all->events);
    free(all->board);
}

static void advance(fl_boards *all, int64_t now_ns) {
    if (all->halted || all->outcome->status || fl_node_done(all->node) ||
        now_ns * FL_PS_PER_NS <= fl_node_now(all->node))
        return;
    const fl_status s = fl_node_advance(all->node, now_ns * FL_PS_PER_NS, all->outcome->d);
    if (!s && all->rings)
        fl_rings_push(all->rings, all->outcome->d);
    if (s == FL_HARDWARE) /* its work can never end; calls for the lost GPU report the loss */
        all->halted = true;
    else
        all->outcome->status = s;
}

void fl_boards_go(fl_boards *all, int64_t now_ns) {
    all->now_ns = now_ns > all->now_ns ? now_ns : all->now_ns;
    advance(all, all->now_ns);
}

bool fl_boards_wake(const fl_boards *all) { return all->rings && fl_rings_wake(all->rings); }

int64_t fl_boards_marker(fl_boards *all, int64_t until_ns) {
    if (!fl_boards_wake(all) || until_ns <= all->now_ns)
        return until_ns;
    const int64_t before = fl_node_now(all->node);
    fl_node_stop_at_markers(all->node, true);
    advance(all, until_ns);
    const int64_t now = fl_node_now(all->node), at_ns = (now + FL_PS_PER_NS - 1) / FL_PS_PER_NS;
    const bool passed = now > before && fl_node_woken(all->node);
    fl_node_stop_at_markers(all->node, false);
    return passed && at_ns < until_ns ? at_ns : until_ns;
}

/* After the end of the work the boards have no context. */
static void idle_sample(const fl_boards *all, const fl_gpu *g, fl_gpu_sample *out) {
    const double s = (double)(all->now_ns * FL_PS_PER_NS - fl_node_now(all->node)) * 1e-12;
    const double w = (double)g->closed_mw * 1e-3;
    if (s <= 0)
        return;
    out->value[FL_GPU_POWER_W] = out->value[FL_GPU_POWER_INSTANT_W] = w;
    out->value[FL_GPU_ENERGY_J] += w * s;
    out->value[FL_GPU_ENERGY_NS] = (double)all->now_ns;
    for (int i = FL_GPU_UTIL_GPU_PCT; i <= FL_GPU_UTIL_MEM_PCT; i++)
        out->value[i] = 0;
    for (int i = FL_GPU_SM_ACTIVE_PCT; i <= FL_GPU_GPU_CLOCK_BUSY_PCT; i++)
        if (i != FL_GPU_DRAM_BYTES)
            out->value[i] = 0;
}

void fl_boards_sample(fl_boards *all, uint32_t gpu, bool remember, fl_gpu_sample *out) {
    fl_node_read(all->node, gpu, remember, out);
    if (fl_node_done(all->node))
        idle_sample(all, fl_node_gpu(all->node, gpu), out);
    fl_faults_gpu(all->faults, gpu, all->now_ns, out);
}

int64_t fl_boards_set_ns(fl_boards *all, const fl_ask *q) {
    const double *ms = all->o->set_ms;
    const fl_actuator_spec *a = &fl_boards_device(all, q->gpu)->actuator;
    if (q->a == FL_SETS_RECORDS)
        return 0;
    if (ms[0] >= 0)
        return llround((ms[0] + (ms[1] - ms[0]) * fl_random_unit(&all->random)) * 1e6);
    return q->a == FL_SETS_LIMIT && a->limit_call_ns > 0 ? a->limit_call_ns : a->call_ns;
}

void fl_boards_begin_limit(fl_boards *all, const fl_ask *q, int64_t end_ns) {
    if (!fl_faults_refuses(all->faults, (int32_t)q->gpu, FL_SET_POWER_LIMIT_W, end_ns))
        (void)fl_node_set_limit(all->node, q->gpu, end_ns * FL_PS_PER_NS, q->b * 1e-3);
}

int64_t fl_boards_refreshed(const fl_boards *all, uint32_t gpu, fl_sensor_id id) {
    const fl_sensor_spec *s = &fl_boards_device(all, gpu)->sensor[id];
    if (s->period_ns <= 0)
        return all->now_ns;
    const int64_t since = all->now_ns - s->phase_ns - s->delay_ns;
    return since < 0 ? 0 : s->phase_ns + since / s->period_ns * s->period_ns;
}

int64_t fl_boards_memory_mw(fl_boards *all, uint32_t gpu) {
    const fl_gpu *g = fl_node_gpu(all->node, gpu);
    fl_emulated_board *b = &all->board[gpu];
    const int64_t seen_ns = fl_boards_refreshed(all, gpu, FL_SENSOR_POWER), now_ns = g->now_ps / FL_PS_PER_NS;
    fl_ledger ledger = {0};
    fl_diag d = {0};
    if (!g->open)
        return -1;
    if (b->memory_at_ns && (b->memory_seen_ns == seen_ns || now_ns <= b->memory_at_ns))
        return b->memory_mw;
    const bool split = !fl_ledger_add_gpu(&ledger, g, &d) && !ledger.part_fj[FL_PART_UNSPLIT];
    const double fj = (double)ledger.part_fj[FL_PART_MEMORY];
    if (now_ns <= 0)
        return g->rates->base.memory_mw;
    b->memory_mw = split ? llround((fj - b->memory_fj) / ((double)(now_ns - b->memory_at_ns) * FL_PS_PER_NS)) : -1;
    b->memory_fj = fj;
    b->memory_at_ns = now_ns;
    b->memory_seen_ns = seen_ns;
    return b->memory_mw;
}

/* The clock of the ladder nearest to the requested one; a tie goes down. */
static double nearest(const int32_t *mhz, uint32_t count, double want) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (fabs(mhz[i] - want) < fabs(mhz[best] - want))
            best = i;
    return mhz[best];
}

/* Within a locked range the driver sets its default clock. */
static double aim(uint32_t min, uint32_t max, double standard) {
    if (!max)
        return standard;
    return standard > max ? max : standard < min ? min : standard;
}

static void put_clocks(fl_boards *all, uint32_t gpu, bool sm, bool mem) {
    const fl_device *dev = fl_boards_device(all, gpu);
    const fl_emulated_board *b = &all->board[gpu];
    double sm_mhz = NAN, mem_mhz = NAN;
    if (sm) {
        const double standard = b->target_sm ? b->target_sm : dev->default_sm_mhz;
        sm_mhz = b->sm_max || b->target_sm ? nearest(dev->sm_mhz, dev->sm_count, aim(b->sm_min, b->sm_max, standard))
                                           : FL_DEFAULT;
    }
    if (mem) {
        const double standard = b->target_mem ? b->target_mem : dev->default_mem_mhz;
        mem_mhz = b->mem_max || b->target_mem
                      ? nearest(dev->mem_mhz, dev->mem_count, aim(b->mem_min, b->mem_max, standard))
                      : FL_DEFAULT;
    }
    fl_node_set(all->node, gpu, all->now_ns * FL_PS_PER_NS, sm_mhz, mem_mhz);
}

static bool symbolic(uint32_t mhz) { return mhz >= NVML_CLOCK_LIMIT_SYMBOLIC; }

static int32_t check_range(const fl_ask *q) {
    if (symbolic(q->b) != symbolic(q->c) || (symbolic(q->b) && q->b != q->c))
        return NVML_INVALID_ARGUMENT;
    return q->b > q->c || !q->c ? NVML_INVALID_ARGUMENT : NVML_SUCCESS;
}

int32_t fl_boards_check(const fl_boards *all, const fl_ask *q) {
    const fl_device *dev = fl_boards_device(all, q->gpu);
    const bool locks = fl_identity_family(all->o, q->gpu).architecture >= NVML_ARCH_VOLTA;
    switch ((fl_ask_set)q->a) {
    case FL_SETS_SM:
    case FL_SETS_MEM:
        return locks ? check_range(q) : NVML_NOT_SUPPORTED;
    case FL_SETS_TARGET:
        return fl_ladder_index(dev->mem_mhz, dev->mem_count, q->b) < 0 ||
                       fl_ladder_index(dev->sm_mhz, dev->sm_count, q->c) < 0
                   ? NVML_INVALID_ARGUMENT
                   : NVML_SUCCESS;
    case FL_SETS_LIMIT:
        if (!(dev->power_max_w > 0))
            return NVML_NOT_SUPPORTED;
        return q->b < lround(dev->power_min_w * 1000) || q->b > lround(dev->power_max_w * 1000) ? NVML_INVALID_ARGUMENT
                                                                                                : NVML_SUCCESS;
    case FL_SETS_RESTRICTION:
        return q->b > 1 ? NVML_INVALID_ARGUMENT : NVML_SUCCESS;
    case FL_SETS_SM_DEFAULT:
    case FL_SETS_MEM_DEFAULT:
        return locks ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
    case FL_SETS_TARGET_DEFAULT:
    case FL_SETS_PERSISTENCE:
    case FL_SETS_RECORDS:
        return NVML_SUCCESS;
    }
    return NVML_INVALID_ARGUMENT;
}

static int control_of(const fl_ask *q) {
    switch ((fl_ask_set)q->a) {
    case FL_SETS_SM:
    case FL_SETS_SM_DEFAULT:
    case FL_SETS_TARGET:
    case FL_SETS_TARGET_DEFAULT:
        return FL_SET_SM_MHZ;
    case FL_SETS_MEM:
    case FL_SETS_MEM_DEFAULT:
        return FL_SET_MEM_MHZ;
    case FL_SETS_LIMIT:
        return FL_SET_POWER_LIMIT_W;
    case FL_SETS_RECORDS:
        return FL_SET_RECORDS;
    case FL_SETS_PERSISTENCE:
    case FL_SETS_RESTRICTION:
        break;
    }
    return FL_FAULT_EVERY_ROW;
}

int32_t fl_boards_set(fl_boards *all, const fl_ask *q) {
    fl_emulated_board *b = &all->board[q->gpu];
    const int control = control_of(q);
    if (control >= 0 && fl_faults_refuses(all->faults, (int32_t)q->gpu, control, all->now_ns))
        return NVML_UNKNOWN;
    const uint32_t min = symbolic(q->b) ? 0 : q->b, max = symbolic(q->c) ? 0 : q->c;
    switch ((fl_ask_set)q->a) {
    case FL_SETS_SM:
        b->sm_min = min, b->sm_max = max;
        break;
    case FL_SETS_SM_DEFAULT:
        b->sm_min = b->sm_max = 0;
        break;
    case FL_SETS_MEM:
        b->mem_min = min, b->mem_max = max;
        break;
    case FL_SETS_MEM_DEFAULT:
        b->mem_min = b->mem_max = 0;
        break;
    case FL_SETS_TARGET:
        b->target_mem = q->b, b->target_sm = q->c;
        break;
    case FL_SETS_TARGET_DEFAULT:
        b->target_mem = b->target_sm = 0;
        break;
    case FL_SETS_LIMIT:
        b->limit_mw = q->b; /* its force has begun by fl_boards_begin_limit */
        return NVML_SUCCESS;
    case FL_SETS_PERSISTENCE:
        b->persistence = q->b != 0;
        return NVML_SUCCESS;
    case FL_SETS_RESTRICTION:
        b->restricted[q->b] = q->c != 0;
        return NVML_SUCCESS;
    case FL_SETS_RECORDS:
        fl_node_records_slow(all->node, q->gpu, q->b != 0); /* the rings record throughout, as a collector does */
        return NVML_SUCCESS;
    }
    const bool target = q->a == FL_SETS_TARGET || q->a == FL_SETS_TARGET_DEFAULT;
    put_clocks(all, q->gpu, control == FL_SET_SM_MHZ, target || control == FL_SET_MEM_MHZ);
    return NVML_SUCCESS;
}

void fl_boards_report(const fl_boards *all) {
    fl_emulate_result *r = all->outcome->r;
    fl_wide gpus_fj = 0;
    r->time_ns = all->now_ns;
    r->done = fl_node_done(all->node);
    r->gpu = calloc(all->gpu_count, sizeof *r->gpu);
    r->gpu_count = r->gpu ? all->gpu_count : 0;
    const int64_t after = r->done ? all->now_ns * FL_PS_PER_NS - fl_node_now(all->node) : 0;
    for (uint32_t i = 0; i < r->gpu_count; i++) {
        const fl_gpu *g = fl_node_gpu(all->node, i);
        const fl_emulated_board *b = &all->board[i];
        gpus_fj += g->sums.energy_fj;
        r->kernels += g->sums.kernels;
        r->after_j += after > 0 ? (double)after * 1e-15 * (double)g->closed_mw : 0;
        r->gpu[i] = (fl_emulated_state){.sm_min = b->sm_min,
                                        .sm_max = b->sm_max,
                                        .mem_min = b->mem_min,
                                        .mem_max = b->mem_max,
                                        .target_sm = b->target_sm,
                                        .target_mem = b->target_mem,
                                        .limit_mw = b->limit_mw,
                                        .default_limit_mw = (uint32_t)lround(g->dev->power_default_w * 1000),
                                        .energy_j = fl_joules(g->sums.energy_fj)};
    }
    const fl_wide node_fj = fl_node_energy_fj(all->node);
    r->energy_j = fl_joules(all->spec->host.apu ? node_fj : gpus_fj);
    r->node_energy_j = fl_joules(node_fj);
    r->makespan_s = fl_seconds(fl_node_now(all->node));
    r->switches = fl_node_switches(all->node);
}
