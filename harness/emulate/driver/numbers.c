#include "harness/emulate/driver/numbers.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/driver/identity.h"
#include "sim/node/readout.h"

#include <math.h>
#include <string.h>

typedef struct fl_family { /* facts of a chip that a program may query and that the models do not use */
    const char *word;
    uint32_t architecture, capability;
} fl_family;

static const fl_family families[] = {
    {"H100", 9, 9 << 16},       {"H200", 9, 9 << 16}, {"A100", 7, 8 << 16},    {"RTX 30", 7, 8 << 16 | 6},
    {"RTX 40", 8, 8 << 16 | 9}, {"V100", 5, 7 << 16}, {"K20", 2, 3 << 16 | 5}, {"TITAN X", 3, 5 << 16 | 2},
};

static int32_t put(uint64_t *out, uint64_t value) {
    *out = value;
    return NVML_SUCCESS;
}

static const fl_family *family_of(const fl_device *dev) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcasestr(dev->name, families[i].word))
            return &families[i];
    return NULL;
}

uint32_t fl_number_architecture(const fl_device *dev) {
    const fl_family *f = family_of(dev);
    return f ? f->architecture : UINT32_MAX;
}

int32_t fl_number_signal(fl_boards *all, uint32_t gpu, int id, uint64_t *out) {
    fl_gpu_sample s;
    fl_boards_sample(all, gpu, false, &s);
    if (!(s.valid & FL_BIT(id)))
        return NVML_NOT_SUPPORTED;
    *out = (uint64_t)llround(s.value[id] * fl_readout_nvml.rule[id].per_unit);
    return NVML_SUCCESS;
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

static int32_t lock_of(const fl_board *b, uint32_t which, uint64_t *out) {
    const uint32_t v[] = {b->sm_min, b->sm_max, b->mem_min, b->mem_max};
    if (which > FL_LOCK_MEM_MAX)
        return NVML_INVALID_ARGUMENT;
    *out = v[which];
    return v[which | 1] ? NVML_SUCCESS : NVML_NOT_FOUND;
}

int32_t fl_number_limit(double watts, uint64_t *out) {
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
        return fl_number_signal(all, q->gpu, FL_GPU_ENERGY_J, out);
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
static int32_t chip_number(const fl_device *dev, const fl_ask *q, uint64_t *out) {
    const fl_family *f = family_of(dev);
    switch ((fl_ask_number)q->a) {
    case FL_NUMBER_ARCHITECTURE:
        return put(out, fl_number_architecture(dev));
    case FL_NUMBER_CAPABILITY:
        return put(out, f ? f->capability : 8 << 16);
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
    const fl_board *b = &all->board[q->gpu];
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
        return chip_number(dev, q, out);
    }
}

bool fl_number_is_reading(const fl_ask *q) {
    const uint64_t readings = FL_BIT(FL_NUMBER_UTIL) | FL_BIT(FL_NUMBER_CLOCK) | FL_BIT(FL_NUMBER_POWER) |
                              FL_BIT(FL_NUMBER_ENERGY) | FL_BIT(FL_NUMBER_TEMPERATURE) | FL_BIT(FL_NUMBER_REASONS) |
                              FL_BIT(FL_NUMBER_VIOLATION);
    return q->a <= FL_NUMBER_CORES && readings >> q->a & 1;
}
