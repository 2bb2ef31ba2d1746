#include "harness/emulate/driver/lists.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/driver/numbers.h"

/* Boards since Hopper report the memory's power separately. */
static int32_t memory_power(fl_boards *all, uint32_t gpu, uint64_t *out) {
    const uint32_t architecture = fl_number_architecture(fl_boards_device(all, gpu));
    const int64_t mw = architecture >= 9 && architecture != UINT32_MAX ? fl_boards_memory_mw(all, gpu) : -1;
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
        f.nvmlReturn = fl_number_signal(all, q->gpu, FL_GPU_ENERGY_J, &v);
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
