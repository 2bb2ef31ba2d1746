/* What a decision sets on a simulated node, call by call, as a live host would. */
#pragma once

#include "sim/instance/fault.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "sim/node/readout.h"

typedef struct fl_run_switch { /* of the kernel records of one GPU */
    bool on;
    bool to;       /* what they become */
    int64_t at_ps; /* when the calls of that step have ended; FL_TIME_NEVER: no switch is due */
} fl_run_switch;

typedef struct fl_run_own { /* the host of one GPU, where each has its own */
    int64_t free_ps;        /* when its calls have ended */
    int64_t cost_ps;        /* how long they took, so far */
    uint64_t looked;        /* markers that it has come for */
} fl_run_own;

typedef struct fl_run_sets {
    fl_node *node;
    const fl_node_spec *spec;
    const fl_readout *reader; /* sets as a live host of that library does; NULL: whatever the node has */
    fl_faults *faults;        /* may be NULL */
    bool records_free;        /* kernel records take no time */
    fl_run_switch *records;   /* by GPU */
    fl_run_own *own;          /* by GPU; NULL where one host has them all */
    int64_t cost_ps;          /* of one host: how long its calls took, so far */
    uint32_t recording;       /* GPUs whose records are on */
    uint64_t refused;         /* sets, by a fault */
    uint64_t ignored;         /* sets of what the node does not have */
} fl_run_sets;

fl_status fl_run_sets_open(fl_run_sets *h, fl_node *node, const fl_node_spec *spec, const fl_readout *reader,
                           fl_faults *faults, bool records_free, fl_diag *d);
void fl_run_sets_close(fl_run_sets *h);

/* Carries a decision out from t on, one call after the other; returns when the last call ends. A switch of records is
 * left to the caller, at its at_ps. Where each GPU has its own host they work side by side. Then `woken` (the step came
 * before its time, at a marker) leaves out the hosts that passed no marker and have nothing to set. */
int64_t fl_run_carry_out(fl_run_sets *h, const fl_decision *dec, bool woken, int64_t t);
/* How long all calls so far took, ps: of the one host, or of the busiest. */
int64_t fl_run_sets_cost(const fl_run_sets *h);
/* Kernel records of a GPU, on or off from now on. */
void fl_run_record(fl_run_sets *h, uint32_t gpu, bool on);
