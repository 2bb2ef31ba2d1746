/* State of the stub library in a file that all its processes map ($FOLDLINE_STUB): what was set, by whom, what to do
 * wrong. Only atomics: a process may be killed anywhere. */
#ifndef FL_STUB_NVML_H
#define FL_STUB_NVML_H

#include <stdatomic.h>
#include <stdint.h>

enum { STUB_GPUS_MAX = 8, STUB_AUDIT_MAX = 8192, STUB_INITS_MAX = 64 };
enum { STUB_SM, STUB_MEM, STUB_LIMIT };

typedef struct stub_gpu {
    _Atomic unsigned sm_min, sm_max, mem_min, mem_max; /* locks; 0 = none */
    _Atomic unsigned limit_mw;
    _Atomic int code;          /* what every call on this GPU returns; 0 = works */
    _Atomic int set_code;      /* and what sets return */
    _Atomic int readback_code; /* what reading the limit returns once anything was set */
    _Atomic int frozen;        /* its energy counter stands still */
} stub_gpu;

typedef struct stub_set {
    _Atomic int pid, gpu, control;
    _Atomic unsigned value;
} stub_set;

typedef struct stub_state {
    unsigned gpus;
    _Atomic int init_code;
    _Atomic unsigned init_us;         /* starting the library takes so long */
    _Atomic unsigned set_us;          /* a set takes up to so long, drawn anew each time */
    _Atomic unsigned lost_after_sets; /* GPU 0 is lost after so many sets; 0 = never */
    _Atomic unsigned sets;
    _Atomic unsigned inits;
    _Atomic int init_pid[STUB_INITS_MAX]; /* who initialised the library, in order */
    stub_gpu gpu[STUB_GPUS_MAX];
    stub_set audit[STUB_AUDIT_MAX]; /* the first of them */
} stub_state;

#endif
