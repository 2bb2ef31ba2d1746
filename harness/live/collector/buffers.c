#include "harness/live/collector/buffers.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { KEPT = 64 };

static _Alignas(8) uint8_t kept[KEPT][FL_BUFFER_BYTES];
static _Atomic uint64_t taken; /* one bit per buffer */

uint8_t *fl_buffer_take(void) {
    uint64_t now = atomic_load_explicit(&taken, memory_order_relaxed);
    while (~now) {
        const int first = __builtin_ctzll(~now);
        if (atomic_compare_exchange_weak_explicit(&taken, &now, now | UINT64_C(1) << first, memory_order_acquire,
                                                  memory_order_relaxed))
            return kept[first];
    }
    return aligned_alloc(8, FL_BUFFER_BYTES);
}

void fl_buffer_give(uint8_t *buffer) {
    const uintptr_t at = (uintptr_t)buffer - (uintptr_t)kept;
    if ((uintptr_t)buffer >= (uintptr_t)kept && at < sizeof kept)
        atomic_fetch_and_explicit(&taken, ~(UINT64_C(1) << at / FL_BUFFER_BYTES), memory_order_release);
    else
        free(buffer);
}
