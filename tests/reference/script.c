#include "tests/reference/script.h"

#include <math.h>
#include <string.h>

static double between(fl_random *r, double low, double high) { return low + (high - low) * fl_random_unit(r); }
static double log_between(fl_random *r, double low, double high) { return low * pow(high / low, fl_random_unit(r)); }
static bool chance(fl_random *r, double share) { return fl_random_unit(r) < share; }

void ref_script_open(ref_script *s, uint64_t seed, const fl_gpu_facts *gpu) {
    static const char *const names[] = {"a", "b", "c"};
    *s = (ref_script){.random = fl_random_seed(seed, 17), .gpu = gpu};
    fl_random *r = &s->random;
    const double mean_ns = log_between(r, 2e5, 3e7), gap_share = chance(r, 0.2) ? 0 : log_between(r, 0.02, 2);
    for (uint32_t i = 0; i < REF_SCRIPT_KINDS; i++) {
        const uint32_t name = (uint32_t)fl_random_below(r, 3);
        s->kind[i] = (fl_kernel_kind){.name = names[name], .name_id = name};
        for (int k = 0; k < 3; k++) {
            s->kind[i].grid[k] = 1 + (uint32_t)fl_random_below(r, k ? 4 : 600);
            s->kind[i].block[k] = 1 + (uint32_t)fl_random_below(r, k ? 3 : 300);
        }
        s->mean_ns[i] = mean_ns * log_between(r, 0.3, 3);
        s->gap_ns[i] = chance(r, 0.2) ? 0 : s->mean_ns[i] * gap_share;
    }
    s->streams = 1 + (uint32_t)fl_random_below(r, REF_SCRIPT_STREAMS);
    for (uint32_t i = 0; i < s->streams; i++)
        s->idle_share[i] = i && chance(r, 0.8) ? log_between(r, 1, 10) : 0;
    s->util_noise = chance(r, 0.5) ? 0 : log_between(r, 0.5, 20);
    s->gear_at_bound = between(r, -40, 119);
    s->memory_loss[0] = chance(r, 0.5) ? between(r, -0.01, 0.03) : between(r, 0, 0.07);
    s->memory_loss[1] = s->memory_loss[0] + (chance(r, 0.5) ? between(r, -0.01, 0.03) : between(r, 0, 0.2));
    s->noise = chance(r, 0.3) ? 0 : log_between(r, 1e-4, 0.1);
    s->gap_noise = chance(r, 0.5) ? 0 : log_between(r, 1e-3, 0.5);
    if (chance(r, 0.15)) {
        s->plateau = between(r, 0.046, 0.05);
        s->noise = chance(r, 0.3) ? 0 : log_between(r, 1e-5, 1e-3);
    }
    s->util = chance(r, 0.3) ? 100 : between(r, 5, 100);
    s->mem_util = chance(r, 0.3) ? 20 : between(r, 0, 70);
    s->power_w = between(r, 60, 350);
    s->limit_mhz = chance(r, 0.3) ? between(r, 900, 2055) : 2055;
    s->whole_numbers = chance(r, 0.5);
    s->droop_mhz = chance(r, 0.2) ? 15 : 0;
    s->late_ns = chance(r, 0.6) ? (int64_t)(1e9 * between(r, 55, 120)) : 0;
}

/* A stretch of seconds in which the application differs a little, now and then much. */
static void next_regime(ref_script *s) {
    fl_random *r = &s->random;
    const bool other = chance(r, 0.07);
    s->regime_ends_ns = s->time_ns + (int64_t)(1e9 * (other ? between(r, 3, 60) : between(r, 2, 12)));
    s->slower = exp(s->noise * fl_random_normal(r)) * (other ? between(r, 0.6, 1.5) : 1);
    s->gap_longer = exp(s->gap_noise * fl_random_normal(r));
    s->util_now = other ? between(r, 0, 100) : s->util + s->util_noise * fl_random_normal(r);
    s->mem_util_now = other ? between(r, 0, 100) : s->mem_util;
    s->power_now_w = s->power_w * (other ? between(r, 0.5, 1.3) : 1);
    s->limit_now_mhz = s->limit_mhz * (other ? between(r, 0.6, 1) : 1);
    const bool own = other && chance(r, 0.5); /* kinds that no other stretch has */
    const bool late = s->late_ns && s->time_ns > s->late_ns;
    for (uint32_t i = 0; i < s->streams; i++)
        s->first_kind[i] = own || (late && i && i == s->streams - 1) ? 12 + (uint32_t)fl_random_below(r, 6) : 0;
    s->kinds = 6;
    if (chance(r, 0.02)) {
        s->wait_steps = 1 + (uint32_t)fl_random_below(r, 120);
        s->busy_wait = chance(r, 0.5);
    }
}

static double loss_of(const ref_script *s, double sm_mhz, double mem_mhz) {
    const double top = s->gpu->sm.mhz[s->gpu->sm.count - 1], default_mhz = s->limit_mhz < top ? s->limit_mhz : top;
    const double mhz = sm_mhz == FL_DEFAULT || sm_mhz > default_mhz ? default_mhz : sm_mhz;
    const double bound_mhz = fmin(s->gpu->sm.mhz[0] + 15 * s->gear_at_bound, default_mhz - 30);
    const double line = 0.05 * (default_mhz - mhz) / (default_mhz - bound_mhz);
    const double sm = s->plateau > 0 && mhz < default_mhz ? s->plateau : line;
    const double memory = mem_mhz == s->gpu->mem.mhz[2]   ? s->memory_loss[0]
                          : mem_mhz == s->gpu->mem.mhz[1] ? s->memory_loss[1]
                                                          : 0;
    return sm + memory;
}

/* Kernel after kernel on each stream, until the step ends; in the order of their ends, as a host delivers them. */
static void run_kernels(ref_script *s, double longer) {
    fl_random *r = &s->random;
    for (uint32_t stream = 0; stream < s->streams; stream++) {
        while (s->record_count < REF_SCRIPT_RECORDS / REF_SCRIPT_STREAMS * (stream + 1)) {
            const uint32_t kind = s->first_kind[stream] + (uint32_t)fl_random_below(r, s->kinds);
            const int64_t start = s->stream_at_ns[stream] +
                                  (int64_t)(s->gap_ns[kind] * s->gap_longer + s->mean_ns[kind] * s->idle_share[stream]);
            const int64_t end = start + (int64_t)(s->mean_ns[kind] * longer);
            if (end > s->time_ns) {
                if (s->time_ns - s->stream_at_ns[stream] > INT64_C(200000000)) /* after a wait */
                    s->stream_at_ns[stream] = s->time_ns;
                break;
            }
            s->record[s->record_count++] =
                (fl_kernel_record){.start_ns = start, .end_ns = end, .kind = kind, .stream = 3 + stream};
            s->stream_at_ns[stream] = end;
        }
    }
    for (size_t i = 1; i < s->record_count; i++)
        for (size_t k = i; k > 0 && s->record[k].end_ns < s->record[k - 1].end_ns; k--) {
            const fl_kernel_record later = s->record[k - 1];
            s->record[k - 1] = s->record[k];
            s->record[k] = later;
        }
}

static void show(ref_script *s, int signal, double value) {
    s->sample.valid |= FL_BIT(signal);
    s->sample.fresh |= FL_BIT(signal);
    s->sample.value[signal] = value;
}

static double percent(ref_script *s, double mean) {
    const double x = s->whole_numbers ? mean : mean + fl_random_normal(&s->random);
    return fmin(fmax(round(x), 0), 100);
}

void ref_script_advance(ref_script *s, int64_t time_ns, double sm_mhz, double mem_mhz) {
    fl_random *r = &s->random;
    s->time_ns = time_ns;
    s->record_count = 0;
    memset(&s->sample, 0, sizeof s->sample);
    if (time_ns >= s->regime_ends_ns)
        next_regime(s);
    const bool idle = s->wait_steps > 0;
    if (idle)
        s->wait_steps--;
    else
        run_kernels(s, s->slower * (1 + loss_of(s, sm_mhz, mem_mhz)));
    const double top = s->gpu->sm.mhz[s->gpu->sm.count - 1];
    const double mhz = fmin(sm_mhz == FL_DEFAULT ? top : sm_mhz, s->limit_now_mhz) - s->droop_mhz;
    const double mem = mem_mhz == FL_DEFAULT ? s->gpu->default_mem_mhz : mem_mhz;
    if (chance(r, 0.005))
        return; /* nothing is known in this step */
    show(s, FL_GPU_UTIL_GPU_PCT, idle && !s->busy_wait ? 0 : percent(s, s->util_now));
    show(s, FL_GPU_SM_MHZ, floor(mhz / 15) * 15);
    show(s, FL_GPU_MEM_MHZ, mem);
    if (chance(r, 0.002))
        return;
    show(s, FL_GPU_UTIL_MEM_PCT, idle ? 0 : percent(s, s->mem_util_now));
    show(s, FL_GPU_POWER_W, s->power_now_w * (0.4 + 0.6 * mhz / top) + between(r, 0, 5));
}
