#include "models/laws/shares.h"

/* The water level of max-min fairness: each kernel gets min(demand, level). Starting from an even split, each pass
 * gives what the satisfied kernels leave to the others. The level only rises, and it stops when no further demand is
 * met. Only sums and counts enter, so the order of the demands cannot matter. Usually two or three passes, with as many
 * divisions, suffice. */
static uint32_t fill_level(const uint32_t *demand, size_t count, uint32_t capacity) {
    uint32_t level = capacity / (uint32_t)count, met = 0;
    for (;;) {
        uint32_t met_sum = 0, met_count = 0;
        for (size_t i = 0; i < count; i++) {
            const uint32_t is_met = demand[i] <= level;
            met_count += is_met;
            met_sum += demand[i] & (0u - is_met);
        }
        if (met_count == met || met_count == count)
            return level;
        met = met_count;
        level = (capacity - met_sum) / ((uint32_t)count - met_count);
    }
}

static uint64_t sum_of(const uint32_t *v, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += v[i];
    return sum;
}

/* min(65536, floor(65536 part / whole)), 65536 for whole = 0; part, whole <= 65536. Doubles make it exact: the quotient
 * is at most 2^32 and, where it is not a whole number, at least 2^-16 from the next one. No branch depends on the
 * demands: the set of satisfied kernels changes from event to event, and mispredictions would cost more than the
 * divisions. */
static uint32_t ratio_of(uint32_t part, uint32_t whole) {
    const int64_t ratio = (int64_t)((double)part * FL_SHARE_ONE / ((double)whole + (whole == 0)));
    return ratio < FL_SHARE_ONE ? (uint32_t)ratio : FL_SHARE_ONE;
}

void fl_shares_fill(const uint32_t *demand, uint32_t *grant, size_t count, uint32_t capacity) {
    const uint32_t level = sum_of(demand, count) <= capacity ? UINT32_MAX : fill_level(demand, count, capacity);
    for (size_t i = 0; i < count; i++)
        grant[i] = demand[i] < level ? demand[i] : level;
}

uint32_t fl_shares_capacity(uint64_t asked, uint32_t capacity, uint32_t gamma) {
    if (!gamma || asked <= FL_SHARE_ONE)
        return capacity;
    const uint64_t loss = (uint64_t)gamma * (asked - FL_SHARE_ONE) >> 16; /* asked < 2^25, gamma < 2^32 */
    return (uint32_t)(((uint64_t)capacity << 16) / (FL_SHARE_ONE + loss));
}

/* Cuts rates to the bandwidth that is left: a kernel slowed by its SM share also asks for less bandwidth. */
static void cut_to_bandwidth(const uint32_t *memory, uint32_t *rate, size_t count, uint32_t capacity,
                             uint32_t interference) {
    uint32_t left[FL_SHARES_MAX];
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        left[i] = (uint32_t)(((uint64_t)memory[i] * rate[i] + FL_SHARE_ONE / 2) >> 16);
        sum += left[i];
    }
    if (sum <= capacity)
        return; /* the SM shares already limit it */
    capacity = fl_shares_capacity(sum, capacity, interference);
    const uint32_t level = fill_level(left, count, capacity);
    for (size_t i = 0; i < count; i++) {
        /* left > level, even after rounding, means that this ratio is below the one that the SMs allow. */
        const uint32_t cut = ratio_of(level, memory[i]);
        const uint32_t less = cut < rate[i] ? cut : rate[i];
        rate[i] = left[i] <= level ? rate[i] : less + (less == 0);
    }
}

void fl_shares_rates(const uint32_t *sms, const uint32_t *memory, uint32_t *rate, size_t count, uint32_t capacity,
                     uint32_t interference) {
    const uint32_t level = sum_of(sms, count) <= FL_SHARE_ONE ? UINT32_MAX : fill_level(sms, count, FL_SHARE_ONE);
    for (size_t i = 0; i < count; i++)
        rate[i] = sms[i] <= level ? FL_SHARE_ONE : ratio_of(level, sms[i]);
    if (sum_of(memory, count) > capacity)
        cut_to_bandwidth(memory, rate, count, capacity, interference);
}
