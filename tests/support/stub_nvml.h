/* State of a stub library (NVML, Level Zero or ROCm SMI) in a file that all its processes map ($FOLDLINE_STUB): what
 * was set, by whom, what to do wrong. Only atomics: a process may be killed anywhere. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum { STUB_GPUS_MAX = 8, STUB_AUDIT_MAX = 8192, STUB_INITS_MAX = 64 };
enum { STUB_SM, STUB_MEM, STUB_LIMIT, STUB_LEVEL };
enum { STUB_FIELD_POWER_VIOLATION = 1, STUB_FIELD_THERMAL_VIOLATION = 2, STUB_FIELD_POWER_INSTANT = 4 };

typedef struct stub_gpu {
    _Atomic unsigned sm_min, sm_max, mem_min, mem_max; /* locks; 0 = none */
    _Atomic unsigned limit_mw;
    _Atomic int code;                   /* what every call on this GPU returns; 0 = works */
    _Atomic int set_code;               /* and what sets return */
    _Atomic int readback_code;          /* what reading the limit returns once anything was set */
    _Atomic int limit_code;             /* what reading it always returns */
    _Atomic int gpm;                    /* profiling is supported */
    _Atomic int gpm_code;               /* and what taking a sample returns */
    _Atomic int frozen;                 /* its energy counter stands still */
    _Atomic unsigned long long counter; /* > 0: what its energy counter shows */
    _Atomic int deaf;                   /* sets of clocks succeed, and the clock is its own */
    _Atomic int quiet;                  /* nothing holds the clock down */
    _Atomic unsigned step_mw;           /* limits are rounded down to it; 0 = they are not */
    _Atomic int absurd;                 /* sensors answer with all ones; 2: clocks with zero */
    _Atomic int fields;                 /* NVML: STUB_FIELD_... that it has; the others are not supported */
    _Atomic int violations; /* NVML: the call of its own for violation times works; the new library has none */
    /* Level Zero's second tile; ROCm SMI's level and sets of allowed clocks; whether a limit is enabled. */
    _Atomic unsigned sm2_min, sm2_max, level, sm_mask, mem_mask, limit_on;
    /* Fixed counters for tests of units, in the units of the library; used where `fixed` is set. */
    _Atomic int fixed;
    _Atomic unsigned long long energy, energy_at, active, active_at, power;
} stub_gpu;

typedef struct stub_set {
    _Atomic int pid, gpu, control;
    _Atomic unsigned value;
} stub_set;

typedef struct stub_state {
    unsigned gpus;
    _Atomic int init_code;
    _Atomic unsigned init_us;         /* starting the library takes so long */
    _Atomic unsigned grows;           /* so many more calls for a list find one entry more than the call before, */
    _Atomic unsigned grown;           /* and this many came so far */
    _Atomic int boasts;               /* lists say that they gave more than there was room for */
    _Atomic int ranged;               /* ROCm SMI: the SM clock is held by a range */
    _Atomic unsigned set_us;          /* a set takes up to so long, drawn anew each time */
    _Atomic unsigned lost_after_sets; /* GPU 0 is lost after so many sets; 0 = never */
    _Atomic unsigned sets, reads;     /* reads: of a utilisation or an energy counter */
    _Atomic unsigned energy_reads;
    _Atomic unsigned inits;
    _Atomic int init_pid[STUB_INITS_MAX]; /* who initialised the library, in order */
    stub_gpu gpu[STUB_GPUS_MAX];
    stub_set audit[STUB_AUDIT_MAX]; /* the first of them */
} stub_state;
