/* What a host sees of a GPU that it reads through a vendor's library, of what the GPU's sensors show: which signals
 * there is a call for, in which steps it counts, and when a value is taken for refreshed. One table for each library:
 * its back end (harness/live/vendor), the emulator of it and a simulated host (fl_run) all go by it, so that they
 * cannot differ. */
#pragma once

#include "sim/instance/seen.h"

typedef struct fl_readout_rule { /* of one signal */
    const char *call;            /* the library's; NULL = it has none */
    double per_unit;             /* what it counts in: so many to the contract's unit */
    int64_t refresh_ns;          /* as fl_seen_put */
} fl_readout_rule;

typedef struct fl_readout {
    const char *name;
    fl_readout_rule rule[FL_GPU_SIGNAL_COUNT];
} fl_readout;

/* NVML. The number of kernels comes from kernel records. */
extern const fl_readout fl_readout_nvml;

/* A live host that misses a signal at its first look takes a second one so much later (harness/live/guard/reach.h). */
#define FL_READOUT_APART_NS INT64_C(120000000)

/* FL_BIT(FL_GPU_...) of the signals that there is a call for. */
uint64_t fl_readout_offers(const fl_readout *r);

/* The policy as a host runs it that can read `offers` at most: where it lacks one of gpu_needs and the policy has
 * stand-ins, these are read instead of those that are not to be had. What it only uses is read where it is offered. */
fl_policy fl_policy_where(const fl_policy *p, uint64_t offers);

/* FL_BIT(FL_GPU_...) of the signals that a host measures for it, where they are to be had. */
static inline uint64_t fl_policy_reads(const fl_policy *p) { return p->gpu_needs | p->gpu_uses; }

/* True where something counts kernels all along, whether kernel records are on or not. Of a policy that needs the count
 * the own program has a counter: the one of DEPO's authors counts launches, in the program that it drives, and takes no
 * record of them. A host that reads as a live one of `reader` is taken to have the collector (--rings). Else the count
 * is that of the records, and known while they are on. */
static inline bool fl_policy_counts(const fl_policy *p, const fl_readout *reader) {
    return reader != NULL || (p->gpu_needs & FL_BIT(FL_GPU_KERNELS)) != 0;
}

typedef struct fl_readout_view { /* of one GPU; zeroed before the first reading */
    fl_seen last[FL_GPU_SIGNAL_COUNT];
} fl_readout_view;

/* What of `raw` such a host sees at t_ns, of the signals among `needs`. */
void fl_readout_show(const fl_readout *r, fl_readout_view *view, uint64_t needs, int64_t t_ns, const fl_gpu_sample *raw,
                     fl_gpu_sample *out);

/* A number of the contract's unit as the library has it: whole steps. */
double fl_readout_whole(const fl_readout *r, int id, double value);
