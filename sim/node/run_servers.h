/* What the policy of a run sees of the servers: their signals, and records of their engines' steps. */
#pragma once

#include "sim/node/node.h"

typedef struct fl_run_servers {
    fl_server_sample *sample; /* count */
    uint32_t count;           /* 0: the workload serves nothing, or nobody looks */
    bool batches;             /* the policy reads records of steps */
    fl_batch_record *batch;
    size_t batch_room;
} fl_run_servers;

/* policy may be NULL. FL_BAD_INPUT where it needs signals of servers and the workload has none. */
fl_status fl_run_servers_open(fl_run_servers *r, const fl_workload *w, const fl_policy *policy, fl_diag *d);
void fl_run_servers_close(fl_run_servers *r);

/* Into *sample, valid until the next call. Records are told on the host's time, whose 0 is at began_ps; none of steps
 * that began before it. */
fl_status fl_run_servers_read(fl_run_servers *r, fl_node *n, int64_t began_ps, fl_sample *sample, fl_diag *d);
