/* Which loop over eight ops this CPU has. */
#include "sim/advance/scan_inside.h"

fl_scan_ops *fl_scan_vector(void) {
#if FL_SCAN_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt"))
        return fl_scan_avx512;
    if (__builtin_cpu_supports("avx2"))
        return fl_scan_avx2;
#endif
    return NULL;
}
