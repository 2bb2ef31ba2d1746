/* Max-min fair sharing of one resource: everybody gets its demand where all fit; else the capacity is filled evenly and
 * nobody gets more than its demand. Integers in 1/65536, independent of the order of the demands. */
#ifndef FL_SHARES_H
#define FL_SHARES_H

#include <stddef.h>
#include <stdint.h>

#define FL_SHARE_ONE 65536u
#define FL_SHARES_MAX 256 /* kernels at once on one GPU */

/* Fills grant[i] <= demand[i], sum(grant) <= capacity (up to the rounding down of each). Equal demands get equal
 * grants. */
void fl_shares_fill(const uint32_t *demand, uint32_t *grant, size_t count, uint32_t capacity);

/* Rates of kernels that share a GPU, in 1/65536 of the speed each has alone, 1..65536: the SMs are filled first, then
 * the bandwidth with the demand that the SM shares leave; a kernel runs at the smaller of its two ratios. sms, memory:
 * demands when alone in 1/65536; a demand of 0 is never a bound. capacity: of the bandwidth, FL_SHARE_ONE = all;
 * interference: see below, 0 = none. */
void fl_shares_rates(const uint32_t *sms, const uint32_t *memory, uint32_t *rate, size_t count, uint32_t capacity,
                     uint32_t interference);

/* Interference: kernels that with the SMs they have ask for D > 1 times the bandwidth get 1 / (1 + gamma (D - 1)) of
 * it, since row conflicts and lost cache lines grow with how many more requests there are than can be served. A faster
 * core clock raises D, so that beyond saturation it costs. asked: D; all in 1/65536. */
uint32_t fl_shares_capacity(uint64_t asked, uint32_t capacity, uint32_t gamma);

#endif
