/* Max-min fair sharing of one resource. Where all demands fit, each is met. Otherwise the capacity is divided evenly,
 * and no one gets more than its demand. Integers in 1/65536; the result does not depend on the order of the demands. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FL_SHARE_ONE 65536u
#define FL_SHARES_MAX 256 /* kernels at once on one GPU */

/* Fills grant[i] <= demand[i], sum(grant) <= capacity (up to the rounding down of each). Equal demands get equal
 * grants. */
void fl_shares_fill(const uint32_t *demand, uint32_t *grant, size_t count, uint32_t capacity);

/* Rates of kernels that share a GPU, in 1/65536 of the speed that each has alone, 1..65536. The function divides the
 * SMs first, then the bandwidth by the demand that the SM shares leave. A kernel runs at the smaller of its two ratios.
 * sms, memory: demands when alone in 1/65536; a demand of 0 never limits. capacity: of the bandwidth, FL_SHARE_ONE =
 * all. interference: see below, 0 = none. */
void fl_shares_rates(const uint32_t *sms, const uint32_t *memory, uint32_t *rate, size_t count, uint32_t capacity,
                     uint32_t interference);

/* Interference: kernels that, with the SMs they have, ask for D > 1 times the bandwidth get 1 / (1 + gamma (D - 1)) of
 * it, because row conflicts and lost cache lines grow with the excess of requests. A faster core clock raises D, so
 * beyond saturation a faster clock costs bandwidth. asked is D; all values are in 1/65536. */
uint32_t fl_shares_capacity(uint64_t asked, uint32_t capacity, uint32_t gamma);
