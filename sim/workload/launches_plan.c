/* Finds the islands that are one stream and the thread that launches into it, and packs their launches into 4 bytes
 * each. */
#include "sim/workload/launches_plan.h"

#include <stdlib.h>

#define LAG_MAX 4096u /* longer lags are rare, and would make the ring long */

/* An op that waits only for earlier ops of its own stream never waits. */
static bool waits_for_itself(const fl_stream *s, uint32_t stream) {
    for (uint64_t i = 0; s->wait_first && i < s->count; i++)
        for (uint32_t k = s->wait_first[i]; k < s->wait_first[i + 1]; k++)
            if (s->wait[k].stream != stream || s->wait[k].done > i)
                return false;
    return true;
}

/* Whether every item launches into this stream or waits for what has been launched there, and everything has been
 * launched at the end. */
static bool launches_all(const fl_workload *w, uint32_t stream, const fl_thread *t) {
    const uint64_t count = w->stream[stream].count;
    uint64_t launched = 0;
    for (size_t k = 0; k < t->count; k++) {
        const fl_item *item = &t->item[k];
        if (item->type == FL_ITEM_LAUNCH) {
            launched += UINT64_C(1) + item->parts;
            if (item->stream != stream || launched > count)
                return false;
            continue;
        }
        if (item->type != FL_ITEM_SYNC)
            return false;
        for (uint32_t j = item->wait_first; j < item->wait_first + item->wait_count; j++)
            if (t->wait[j].stream != stream || t->wait[j].done > launched)
                return false;
    }
    return launched == count;
}

/* The launch of op `op` by item k, which follows a launch or a synchronisation. */
static fl_status plan_launch(fl_launch_plan *p, const fl_thread *t, size_t k, uint64_t op, fl_diag *d) {
    const fl_item *item = &t->item[k], *sync = k && item[-1].type == FL_ITEM_SYNC ? &item[-1] : NULL;
    p->before[op] = FL_LAUNCH_OTHER;
    if (item->parts || item->load || k + 1 == t->count) /* the thread ends with its last item */
        return FL_OK;
    if (!sync) {
        if (item->host_ns < FL_LAUNCH_SYNC)
            p->before[op] = (uint32_t)item->host_ns;
        return FL_OK;
    }
    const int64_t after_ns = sync->after_ns + item->host_ns;
    const bool alone = k == 1 || sync[-1].type == FL_ITEM_LAUNCH;
    if (!alone || sync->wait_count != 1 || sync->host_ns > UINT32_MAX || after_ns > UINT32_MAX ||
        p->sync_count >= FL_LAUNCH_SYNC - 1)
        return FL_OK;
    const uint64_t done = t->wait[sync->wait_first].done;
    if (!done || op - done >= LAG_MAX)
        return FL_OK;
    if (fl_grow(&p->sync, &p->sync_room, p->sync_count + 1, sizeof *p->sync))
        return fl_no_memory(d, "the workload");
    p->sync[p->sync_count] =
        (fl_launch_sync){(uint32_t)sync->host_ns, (uint32_t)after_ns, (uint32_t)(op - done + 1), (uint32_t)(k - 1)};
    p->before[op] = FL_LAUNCH_SYNC | (uint32_t)p->sync_count++;
    return FL_OK;
}

fl_status fl_launches_plan(const fl_workload *w, fl_island *is, fl_diag *d) {
    if (is->gpu_count != 1 || is->stream_count != 1 || is->thread_count != 1 || w->request_count)
        return FL_OK;
    const fl_stream *s = &w->stream[is->stream[0]];
    const fl_thread *t = &w->thread[is->thread[0]];
    if (!s->count || t->server || !waits_for_itself(s, is->stream[0]) || !launches_all(w, is->stream[0], t))
        return FL_OK;
    fl_launch_plan *p = is->launches = calloc(1, sizeof *p);
    if (!p || !(p->before = malloc(s->count * sizeof *p->before)))
        return fl_no_memory(d, "the workload");
    uint64_t op = 0;
    for (size_t k = 0; k < t->count; k++) {
        const uint32_t parts = t->item[k].parts;
        if (t->item[k].type != FL_ITEM_LAUNCH)
            continue;
        fl_status status = plan_launch(p, t, k, op, d);
        if (status)
            return status;
        for (uint32_t i = 0; i < parts; i++)
            p->before[op + 1 + i] = FL_LAUNCH_OTHER;
        op += UINT64_C(1) + parts;
        p->reach = parts > p->reach ? parts : p->reach;
    }
    for (size_t i = 0; i < p->sync_count; i++)
        p->reach = p->sync[i].lag > p->reach ? p->sync[i].lag : p->reach;
    return FL_OK;
}
