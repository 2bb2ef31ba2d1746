/* Requests that arrive as a Poisson process: the times between them are exponential. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills t_ns[0 .. count) with the first `count` arrivals after 0 at `per_s` requests per second. Same seed, same times.
 * False where they go beyond 26 days. */
bool fl_poisson(uint64_t seed, double per_s, int64_t *t_ns, size_t count);
