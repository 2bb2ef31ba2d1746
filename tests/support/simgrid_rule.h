/* The rule by which both sides of tests/simgrid.sh choose a clock: a draw from seed and step, and nothing else, so that
 * Foldline and SimGrid change the same clocks at the same instants. */
#ifndef TESTS_SUPPORT_SIMGRID_RULE_H
#define TESTS_SUPPORT_SIMGRID_RULE_H

#include <stdint.h>

/* One of the clocks from `lowest` to `count` - 1, by a step of splitmix64. */
static inline uint32_t fl_rule_clock(uint64_t seed, uint64_t step, uint32_t lowest, uint32_t count) {
    uint64_t x = seed + step * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return lowest + (uint32_t)(((x ^ (x >> 31)) >> 32) * (count - lowest) >> 32);
}

#endif
