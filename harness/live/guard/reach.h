/* What of a policy is to be had on this machine: which of the controls that it drives can be set at all, and which of
 * the signals that it needs can be read; what it only uses may be missing. A policy may name more of both than it will
 * ever use: what is missing is told before the start, and refused only where it is set, or where no signal is left to
 * decide on. */
#pragma once

#include "harness/live/guard/cpu_host.h"
#include "harness/live/vendor/backend.h"

/* Why nobody can set that control here, "" where somebody can. gpu -1 = the CPU. FL_HARDWARE where the GPU is gone. */
fl_status fl_reach_control(const fl_gpus *g, const fl_cpu_host *cpu, int32_t gpu, int control, char *why, size_t size,
                           fl_diag *d);

typedef struct fl_reach {
    char controls[512]; /* "cpu_boost (no file for it)", joined by commas; "" = all that it drives can be set */
    char signals[512];  /* "compute_ns, copy_ns"; "" = all that it needs can be read, on every GPU */
    bool blind;         /* it reads signals and not one of them can be read */
} fl_reach;

/* Reads twice, 120 ms apart where once is not enough: differences of counters and profiling values need two. cpu: NULL
 * where there is none to be had. given: signals that the programs' collectors give. */
fl_status fl_reach_of(const fl_policy *p, const fl_gpus *g, fl_cpu_host *cpu, uint64_t given, fl_reach *r, fl_diag *d);
