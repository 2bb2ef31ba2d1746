/* How long many kernels of one kind take together: what oracles ask for at every clock. */
#ifndef FL_ORACLE_LENGTHS_H
#define FL_ORACLE_LENGTHS_H

#include <stddef.h>
#include <stdint.h>

/* The sum of fl_length_ps over `count` kernels, in ps. At most 2^16 of them: each takes less than 2^48 ps. By the
 * vector form where the processor has it. */
uint64_t fl_lengths_ps(const uint32_t *work_ns, size_t count, uint32_t mul);
/* What it means. */
uint64_t fl_lengths_plain(const uint32_t *work_ns, size_t count, uint32_t mul);

#endif
