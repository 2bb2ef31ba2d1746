/* Numbers and lists that a program may ask of a board. */
#include "harness/emulate/driver/inside.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"
#include "sim/workload/workload.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The first branch with the fields of average and instant power, and of power limits. */
#define FL_DRIVER_POWER_FIELDS 535u

/* us since the epoch by the session's clock, at t_ns of the session. */
static inline uint64_t fl_boards_us(const fl_boards *all, int64_t t_ns) {
    return (uint64_t)((all->realtime_ns + t_ns) / 1000);
}

#define FL_COOL_C 40u /* constant temperature of a board whose heat is not simulated */
#define FL_MEMORY_USED (UINT64_C(1) << 30)

/* ---- numbers ---- */

static int32_t put(uint64_t *out, uint64_t value) {
    *out = value;
    return NVML_SUCCESS;
}

/* A signal in NVML's own units (sim/node/node.h); NVML_NOT_SUPPORTED where the board has no sensor for it, or it is
 * missing now. */
static int32_t fl_number_signal(fl_boards *all, uint32_t gpu, int id, uint64_t *out) {
    fl_gpu_sample s;
    fl_boards_sample(all, gpu, false, &s);
    if (!(s.valid & FL_BIT(id)))
        return NVML_NOT_SUPPORTED;
    *out = (uint64_t)llround(s.value[id] * fl_readout_nvml.rule[id].per_unit);
    return NVML_SUCCESS;
}

/* The energy counter, in mJ. It came with Volta. */
static int32_t energy(fl_boards *all, uint32_t gpu, uint64_t *out) {
    return fl_identity_family(all->o, gpu).architecture < NVML_ARCH_VOLTA
               ? NVML_NOT_SUPPORTED
               : fl_number_signal(all, gpu, FL_GPU_ENERGY_J, out);
}

static uint64_t reasons(double throttle) {
    const int bits = (int)throttle;
    return (bits & FL_THROTTLE_POWER ? NVML_REASON_POWER : 0) | (bits & FL_THROTTLE_THERMAL ? NVML_REASON_THERMAL : 0) |
           (bits & FL_THROTTLE_IDLE ? NVML_REASON_IDLE : 0);
}

static int32_t clock_of(fl_boards *all, uint32_t gpu, uint32_t type, uint64_t *out) {
    if (type > NVML_CLOCK_VIDEO)
        return NVML_INVALID_ARGUMENT;
    return fl_number_signal(all, gpu, type == NVML_CLOCK_MEM ? FL_GPU_MEM_MHZ : FL_GPU_SM_MHZ, out);
}

static int32_t threshold(const fl_device *dev, uint32_t which, uint64_t *out) {
    const double limit = dev->thermal.limit_c > 0 ? dev->thermal.limit_c : 88;
    const double c[] = {limit + 7, limit + 2, limit + 2, limit};
    if (which > 3)
        return which > 7 ? NVML_INVALID_ARGUMENT : NVML_NOT_SUPPORTED;
    return put(out, (uint64_t)c[which]);
}

static int32_t lock_of(const fl_emulated_board *b, uint32_t which, uint64_t *out) {
    const uint32_t v[] = {b->sm_min, b->sm_max, b->mem_min, b->mem_max};
    if (which > FL_LOCK_MEM_MAX)
        return NVML_INVALID_ARGUMENT;
    *out = v[which];
    return v[which | 1] ? NVML_SUCCESS : NVML_NOT_FOUND;
}

/* A limit in mW; NVML_NOT_SUPPORTED where the chip has none. */
static int32_t fl_number_limit(double watts, uint64_t *out) {
    *out = (uint64_t)llround(watts * 1000);
    return watts > 0 ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

static bool is_memory(uint32_t clock) { return clock == NVML_CLOCK_MEM; }

static uint64_t default_clock(const fl_device *dev, uint32_t clock) {
    return (uint64_t)(is_memory(clock) ? dev->default_mem_mhz : dev->default_sm_mhz);
}

uint32_t fl_number_pstate(const fl_gpu *g) { return g->open ? 0 : 8; }

static int32_t temperature(fl_boards *all, uint32_t gpu, uint64_t *out) {
    if (!isnan(fl_node_gpu(all->node, gpu)->temp_c))
        return fl_number_signal(all, gpu, FL_GPU_TEMP_C, out);
    return put(out, FL_COOL_C);
}

/* Numbers from sensors. */
static int32_t read_sensor(fl_boards *all, const fl_ask *q, uint64_t *out) {
    uint64_t memory = 0;
    int32_t r;
    switch ((fl_ask_number)q->a) {
    case FL_NUMBER_UTIL:
        r = fl_number_signal(all, q->gpu, FL_GPU_UTIL_GPU_PCT, out);
        if (!r)
            r = fl_number_signal(all, q->gpu, FL_GPU_UTIL_MEM_PCT, &memory);
        *out = *out << 32 | memory;
        return r;
    case FL_NUMBER_CLOCK:
        return clock_of(all, q->gpu, q->b, out);
    case FL_NUMBER_POWER:
        return fl_number_signal(all, q->gpu, FL_GPU_POWER_W, out);
    case FL_NUMBER_ENERGY:
        return energy(all, q->gpu, out);
    case FL_NUMBER_TEMPERATURE:
        return q->b ? NVML_INVALID_ARGUMENT : temperature(all, q->gpu, out);
    case FL_NUMBER_REASONS:
        r = fl_number_signal(all, q->gpu, FL_GPU_THROTTLE, out);
        *out = reasons((double)*out);
        return r;
    default: /* FL_NUMBER_VIOLATION */
        if (q->b > 1)
            return NVML_NOT_SUPPORTED;
        return fl_number_signal(all, q->gpu, q->b ? FL_GPU_THERMAL_VIOLATION_NS : FL_GPU_POWER_VIOLATION_NS, out);
    }
}

/* Constants of the chip. */
static int32_t chip_number(const fl_boards *all, const fl_device *dev, const fl_ask *q, uint64_t *out) {
    const fl_family f = fl_identity_family(all->o, q->gpu);
    switch ((fl_ask_number)q->a) {
    case FL_NUMBER_ARCHITECTURE:
        return put(out, f.architecture);
    case FL_NUMBER_CAPABILITY:
        return put(out, (uint64_t)f.major << 16 | f.minor);
    case FL_NUMBER_CORES:
        return put(out, (uint64_t)dev->sms * dev->cores_per_sm);
    case FL_NUMBER_DEFAULT_CLOCK:
        return put(out, default_clock(dev, q->b));
    case FL_NUMBER_MAX_CLOCK:
        *out = (uint64_t)(is_memory(q->b) ? dev->mem_mhz[dev->mem_count - 1] : dev->sm_mhz[dev->sm_count - 1]);
        return q->b > NVML_CLOCK_VIDEO ? NVML_INVALID_ARGUMENT : NVML_SUCCESS;
    case FL_NUMBER_THRESHOLD:
        return threshold(dev, q->b, out);
    case FL_NUMBER_REASONS_KNOWN:
        return put(out, NVML_REASON_IDLE | NVML_REASON_POWER | NVML_REASON_THERMAL);
    case FL_NUMBER_LIMIT_MIN:
        return fl_number_limit(dev->power_min_w, out);
    case FL_NUMBER_LIMIT_MAX:
        return fl_number_limit(dev->power_max_w, out);
    case FL_NUMBER_LIMIT_DEFAULT:
        return fl_number_limit(dev->power_default_w, out);
    default:
        return NVML_INVALID_ARGUMENT;
    }
}

int32_t fl_number_of(fl_boards *all, const fl_ask *q, uint64_t *out) {
    const fl_device *dev = fl_boards_device(all, q->gpu);
    const fl_emulated_board *b = &all->board[q->gpu];
    const fl_gpu *g = fl_node_gpu(all->node, q->gpu);
    if (fl_number_is_reading(q))
        return read_sensor(all, q, out);
    switch ((fl_ask_number)q->a) {
    case FL_NUMBER_INDEX:
        return put(out, q->gpu);
    case FL_NUMBER_PERSISTENCE:
        return put(out, b->persistence);
    case FL_NUMBER_TARGET_CLOCK:
        *out = is_memory(q->b) ? b->target_mem : b->target_sm;
        return put(out, *out ? *out : default_clock(dev, q->b));
    case FL_NUMBER_PSTATE:
        return put(out, fl_number_pstate(g));
    case FL_NUMBER_TIME:
        return put(out, q->b ? (uint64_t)(all->now_ns / 1000) : fl_boards_us(all, all->now_ns));
    case FL_NUMBER_MEMORY_TOTAL:
        return put(out, fl_identity_memory(all->o, q->gpu));
    case FL_NUMBER_MEMORY_USED:
        return put(out, g->open ? FL_MEMORY_USED : 0);
    case FL_NUMBER_LIMIT:
        return fl_number_limit(b->limit_mw * 1e-3, out);
    case FL_NUMBER_RESTRICTION:
        *out = q->b < 2 && b->restricted[q->b];
        return q->b < 2 ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
    case FL_NUMBER_CONSTANT:
        return put(out, q->b);
    case FL_NUMBER_LOCK:
        return lock_of(b, q->b, out);
    default:
        return chip_number(all, dev, q, out);
    }
}

bool fl_number_is_reading(const fl_ask *q) {
    const uint64_t readings = FL_BIT(FL_NUMBER_UTIL) | FL_BIT(FL_NUMBER_CLOCK) | FL_BIT(FL_NUMBER_POWER) |
                              FL_BIT(FL_NUMBER_ENERGY) | FL_BIT(FL_NUMBER_TEMPERATURE) | FL_BIT(FL_NUMBER_REASONS) |
                              FL_BIT(FL_NUMBER_VIOLATION);
    return q->a <= FL_NUMBER_CORES && readings >> q->a & 1;
}

/* ---- lists ---- */

/* Boards since Hopper report the memory's power separately. */
static int32_t memory_power(fl_boards *all, uint32_t gpu, uint64_t *out) {
    const bool separate = fl_identity_family(all->o, gpu).architecture >= NVML_ARCH_HOPPER;
    const int64_t mw = separate ? fl_boards_memory_mw(all, gpu) : -1;
    *out = mw < 0 ? 0 : (uint64_t)mw;
    return mw < 0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

void fl_list_field(fl_boards *all, const fl_ask *q, fl_answer *out) {
    const fl_device *dev = fl_boards_device(all, q->gpu);
    nvmlFieldValue_t f = {.fieldId = q->a, .scopeId = q->b, .valueType = NVML_VALUE_UINT};
    fl_sensor_id sensor = FL_SENSOR_CLOCK;
    uint64_t v = 0;
    switch (q->a) {
    case NVML_FIELD_POWER_AVERAGE:
        sensor = FL_SENSOR_POWER;
        f.nvmlReturn = fl_number_signal(all, q->gpu, FL_GPU_POWER_W, &v);
        break;
    case NVML_FIELD_POWER_INSTANT:
        sensor = FL_SENSOR_POWER_INSTANT;
        f.nvmlReturn = fl_number_signal(all, q->gpu, FL_GPU_POWER_INSTANT_W, &v);
        break;
    case NVML_FIELD_TOTAL_ENERGY:
        sensor = FL_SENSOR_ENERGY;
        f.valueType = NVML_VALUE_ULL;
        f.nvmlReturn = energy(all, q->gpu, &v);
        break;
    case NVML_FIELD_VIOLATION_POWER:
    case NVML_FIELD_VIOLATION_THERMAL:
        f.valueType = NVML_VALUE_ULL;
        f.nvmlReturn = fl_number_signal(
            all, q->gpu, q->a == NVML_FIELD_VIOLATION_POWER ? FL_GPU_POWER_VIOLATION_NS : FL_GPU_THERMAL_VIOLATION_NS,
            &v);
        break;
    case NVML_FIELD_LIMIT_MIN:
        f.nvmlReturn = fl_number_limit(dev->power_min_w, &v);
        break;
    case NVML_FIELD_LIMIT_MAX:
        f.nvmlReturn = fl_number_limit(dev->power_max_w, &v);
        break;
    case NVML_FIELD_LIMIT_DEFAULT:
        f.nvmlReturn = fl_number_limit(dev->power_default_w, &v);
        break;
    case NVML_FIELD_LIMIT_CURRENT:
    case NVML_FIELD_LIMIT_REQUESTED:
        f.nvmlReturn = fl_number_limit(all->board[q->gpu].limit_mw * 1e-3, &v);
        break;
    default:
        f.nvmlReturn = NVML_NOT_SUPPORTED;
    }
    if (all->o->driver.branch < FL_DRIVER_POWER_FIELDS && q->a >= NVML_FIELD_POWER_AVERAGE &&
        q->a <= NVML_FIELD_LIMIT_REQUESTED)
        f.nvmlReturn = NVML_NOT_SUPPORTED;
    if (q->b == NVML_SCOPE_MEMORY && (q->a == NVML_FIELD_POWER_AVERAGE || q->a == NVML_FIELD_POWER_INSTANT))
        f.nvmlReturn = f.nvmlReturn ? f.nvmlReturn : memory_power(all, q->gpu, &v);
    else if (q->b)
        f.nvmlReturn = NVML_NOT_SUPPORTED; /* the scope of a module */
    f.timestamp = (long long)fl_boards_us(all, fl_boards_refreshed(all, q->gpu, sensor));
    if (f.nvmlReturn)
        v = 0;
    if (f.valueType == NVML_VALUE_ULL)
        f.value.wide = v;
    else
        f.value.number = (unsigned int)v;
    fl_list_put(out, &f, sizeof f);
}

int32_t fl_list_samples(fl_boards *all, const fl_ask *q, fl_answer *out) {
    int id;
    fl_sensor_id sensor = FL_SENSOR_UTILISATION;
    switch (q->a) {
    case NVML_SAMPLE_POWER:
        id = FL_GPU_POWER_W, sensor = FL_SENSOR_POWER;
        break;
    case NVML_SAMPLE_GPU:
        id = FL_GPU_UTIL_GPU_PCT;
        break;
    case NVML_SAMPLE_MEMORY:
        id = FL_GPU_UTIL_MEM_PCT;
        break;
    case NVML_SAMPLE_SM_CLOCK:
        id = FL_GPU_SM_MHZ, sensor = FL_SENSOR_CLOCK;
        break;
    case NVML_SAMPLE_MEM_CLOCK:
        id = FL_GPU_MEM_MHZ, sensor = FL_SENSOR_CLOCK;
        break;
    default:
        return NVML_NOT_SUPPORTED;
    }
    uint64_t v;
    const int32_t r = fl_number_signal(all, q->gpu, id, &v);
    const nvmlSample_t s = {fl_boards_us(all, fl_boards_refreshed(all, q->gpu, sensor)), {.number = (unsigned int)v}};
    if (!r && s.timeStamp > q->wide) /* only the newest, since the boards keep no history */
        fl_list_put(out, &s, sizeof s);
    return r;
}

void fl_list_clocks(const fl_device *dev, const fl_ask *q, fl_answer *out) {
    const int32_t *mhz = q->a ? dev->sm_mhz : dev->mem_mhz;
    const uint32_t n = q->a ? dev->sm_count : dev->mem_count;
    if (q->a && fl_ladder_index(dev->mem_mhz, dev->mem_count, q->a) < 0) {
        out->result = NVML_NOT_FOUND;
        return;
    }
    for (uint32_t i = 0; i < n && out->size + 4 <= FL_ANSWER_BYTES; i++, out->size += 4) /* the highest first */
        memcpy(out->bytes + out->size, &mhz[n - 1 - i], 4);
}

/* The processes of the workload that have a stream on this GPU, while its context is open. */
void fl_list_processes(const fl_boards *all, const fl_ask *q, fl_answer *out) {
    const fl_workload *w = all->o->scene->w;
    if (!fl_node_gpu(all->node, q->gpu)->open)
        return;
    for (uint32_t i = 0; i < w->stream_count; i++) {
        const fl_ask_process p = {.pid = FL_WORKLOAD_PID + (uint32_t)w->stream[i].process, .bytes = FL_MEMORY_USED};
        bool known = w->stream[i].gpu != q->gpu || out->size + sizeof p > FL_ANSWER_BYTES;
        for (uint32_t at = 0; !known && at < out->size; at += sizeof p)
            known = !memcmp(out->bytes + at, &p.pid, sizeof p.pid);
        if (known)
            continue;
        memcpy(out->bytes + out->size, &p, sizeof p);
        out->size += (uint32_t)sizeof p;
    }
}

int32_t fl_list_shares(fl_boards *all, const fl_ask *q, fl_answer *out) {
    fl_answer list = {0};
    uint64_t gpu = 0, memory = 0;
    fl_list_processes(all, q, &list);
    int32_t r = fl_number_signal(all, q->gpu, FL_GPU_UTIL_GPU_PCT, &gpu);
    if (!r)
        r = fl_number_signal(all, q->gpu, FL_GPU_UTIL_MEM_PCT, &memory);
    const uint64_t at = fl_boards_us(all, fl_boards_refreshed(all, q->gpu, FL_SENSOR_UTILISATION));
    for (uint32_t i = 0; !r && at > q->wide && i < list.size; i += sizeof(fl_ask_process)) {
        fl_ask_process p;
        memcpy(&p, list.bytes + i, sizeof p);
        const nvmlProcessUtilizationSample_t s = {
            .pid = p.pid, .timeStamp = at, .smUtil = (unsigned int)gpu, .memUtil = (unsigned int)memory};
        memcpy(out->bytes + out->size, &s, sizeof s);
        out->size += (uint32_t)sizeof s;
    }
    return r;
}

void fl_list_profile(const fl_boards *all, const fl_ask *q, fl_answer *out) {
    const fl_sums *s = &fl_node_gpu(all->node, q->gpu)->sums;
    const double one = 1.0 / FL_ROW_ONE;
    const fl_ask_profile p = {.time_ps = (double)all->now_ns * 1e3,
                              .busy = (double)s->busy_ps,
                              .sm = (double)s->sms * one,
                              .memory = (double)s->memory * one,
                              .alu = (double)s->alu * one};
    fl_list_put(out, &p, sizeof p);
}
