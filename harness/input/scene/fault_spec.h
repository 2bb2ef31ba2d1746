/* Faults as they are asked for on the command line: TYPE, or TYPE:key=value,key=value.
 *
 *   drop:gpu=0,signal=power_w,from_s=1,for_s=2     the signal is missing
 *   freeze:gpu=all,signal=energy_j,from_s=1        it holds its value and is never fresh
 *   refuse:gpu=0,control=sm_mhz,until_s=5          sets of the control fail
 *   lost:gpu=1,from_s=3                            the GPU is gone, for good
 *   drop:gpu=host,signal=cpu_uops
 *   freeze:server=0,signal=waiting,from_s=5        a server of --serving tells nothing new
 *
 * gpu: an index, all or host. server: an index or all; it takes drop and freeze only. Both left out: all GPUs, or the
 * host or all servers where the signal or control is one of theirs; lost must say which GPU. signal, control: a name of
 * the contract or all (the default). from_s: 0 by default. for_s or until_s: for ever by default. Times are seconds of
 * the host's time. */
#pragma once

#include "harness/base/cli/args.h"
#include "sim/instance/fault.h"

#define FL_FAULT_SPEC_HELP                                                                                             \
    "drop, freeze, refuse or lost, then :gpu=,server=,signal=,control=,from_s=,for_s=,until_s= (may be repeated)"

/* FL_BAD_INPUT with the text, what is wrong and what was expected; an unknown name gets the nearest. Whether the node
 * has such a GPU is for fl_faults_open to say. */
fl_status fl_fault_spec_parse(const char *text, fl_fault *out, fl_diag *d);

/* All of them: *out has texts->count faults, for the caller to free(). NULL after a failure, or where there are none.
 */
fl_status fl_fault_specs_parse(const fl_texts *texts, fl_fault **out, fl_diag *d);
