/* How long many kernels of one kind take together: what oracles ask for at every clock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The sum of fl_length_ps over `count` kernels of less than 2^32 ns, in ps. low: the lowest 16 bits of each kernel's
 * work; work_ns: the work of all together. At most 2^16 kernels, each of less than 2^48 ps. Uses the vector form where
 * the processor has it. */
uint64_t fl_lengths_ps(const uint16_t *low, size_t count, uint64_t work_ns, uint32_t mul);
/* The plain form, which defines the result. */
uint64_t fl_lengths_plain(const uint16_t *low, size_t count, uint64_t work_ns, uint32_t mul);
