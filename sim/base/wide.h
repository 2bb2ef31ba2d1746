/* 128-bit integers for sums that outgrow 64 bits: femtojoules (ps x mW) over hours. */
#pragma once

#include <stdint.h>

__extension__ typedef __int128 fl_wide;
__extension__ typedef unsigned __int128 fl_uwide;

#define FL_PS_PER_NS INT64_C(1000)
#define FL_PS_PER_S INT64_C(1000000000000)
#define FL_TIME_NEVER INT64_MAX
/* Longest stretch between two boundaries: the femtojoules of a lone stream fit 64 bits up to 9 kW (see rates.c). */
#define FL_BOUNDARY_MAX_PS FL_PS_PER_S
#define FL_TIME_END (INT64_MAX / 4) /* 26 days: longer runs are refused */

/* A wide integer as a double, rounded as C does; without a call of the compiler's library where 64 bits hold it. */
static inline double fl_real(fl_wide x) { return x == (int64_t)x ? (double)(int64_t)x : (double)x; }

static inline double fl_joules(fl_wide femtojoules) { return fl_real(femtojoules) * 1e-15; }
static inline double fl_seconds(int64_t ps) { return (double)ps * 1e-12; }
