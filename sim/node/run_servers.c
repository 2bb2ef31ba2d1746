#include "sim/node/run_servers.h"

#include "sim/serving/serving.h"

#include <stdlib.h>

fl_status fl_run_servers_open(fl_run_servers *r, const fl_workload *w, const fl_policy *policy, fl_diag *d) {
    *r = (fl_run_servers){0};
    if (policy && policy->server_needs && !w->serving)
        return fl_refuse(d, "%s: %s reads signals of servers, and there are none", w->name, policy->name);
    if (!policy || !w->serving)
        return FL_OK;
    r->sample = calloc(w->serving->server_count, sizeof *r->sample);
    if (!r->sample)
        return fl_no_memory(d, "the run");
    r->count = w->serving->server_count;
    r->batches = policy->uses_batches;
    return FL_OK;
}

void fl_run_servers_close(fl_run_servers *r) {
    free(r->sample);
    free(r->batch);
    *r = (fl_run_servers){0};
}

static fl_status take_batches(fl_run_servers *r, fl_node *n, int64_t began_ns, fl_sample *sample, fl_diag *d) {
    const fl_batch_record *batch;
    size_t count, kept = 0;
    fl_node_take_batches(n, &batch, &count);
    if (fl_grow(&r->batch, &r->batch_room, count + 1, sizeof *r->batch))
        return fl_no_memory(d, "the run");
    for (size_t i = 0; i < count; i++) {
        r->batch[kept] = batch[i];
        r->batch[kept].start_ns -= began_ns;
        r->batch[kept].end_ns -= began_ns;
        kept += r->batch[kept].start_ns >= 0;
    }
    sample->batch = r->batch;
    sample->batch_count = kept;
    return FL_OK;
}

fl_status fl_run_servers_read(fl_run_servers *r, fl_node *n, int64_t began_ps, fl_sample *sample, fl_diag *d) {
    if (!r->count)
        return FL_OK;
    sample->server = r->sample;
    sample->server_count = r->count;
    for (uint32_t i = 0; i < r->count; i++)
        fl_node_read_server(n, i, true, &r->sample[i]);
    return r->batches ? take_batches(r, n, began_ps / FL_PS_PER_NS, sample, d) : FL_OK;
}
