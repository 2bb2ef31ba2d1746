/* Closing a workload: which GPUs meet, where windows of work end, and what a builder in error left behind. */
#include "sim/workload/inside.h"

#include "models/laws/laws.h"
#include "sim/base/base.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Finds the islands that are one stream and the thread that launches into it, and packs their launches into 4 bytes
 * each. */

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

/* Gives the island its plan. The plan stays NULL where the island is not one stream with one thread that launches all
 * of it in order, where something in it could wait for ever, and where requests arrive. The island owns the plan, also
 * after an error. */
static fl_status fl_launches_plan(const fl_workload *w, fl_island *is, fl_diag *d) {
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

/* ---- closing ---- */

/* ---- islands: a union of GPUs that meet ---- */

static uint32_t root(uint32_t *parent, uint32_t i) {
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b) {
    a = root(parent, a), b = root(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

static void join_waits(const fl_workload *w, uint32_t *parent, uint32_t gpu, const fl_wait *wait, size_t count) {
    for (size_t i = 0; i < count; i++)
        join(parent, gpu, w->stream[wait[i].stream].gpu);
}

static uint32_t thread_gpu(const fl_workload *w, const fl_thread *t) {
    for (size_t i = 0; i < t->count; i++)
        if (t->item[i].type == FL_ITEM_LAUNCH)
            return w->stream[t->item[i].stream].gpu;
    return t->wait_count ? w->stream[t->wait[0].stream].gpu : 0;
}

static fl_status make_islands(fl_workload *w, fl_diag *d) {
    uint32_t n = w->gpu_count, *parent = malloc((n + 1) * sizeof *parent),
             *island_of = malloc((n + 1) * sizeof *island_of);
    fl_status status = FL_OK;
    if (!parent || !island_of) {
        status = fl_no_memory(d, "the workload");
        goto out;
    }
    for (uint32_t i = 0; i < n; i++)
        parent[i] = i;
    for (uint32_t i = 0; i < w->stream_count; i++)
        join_waits(w, parent, w->stream[i].gpu, w->stream[i].wait, w->stream[i].wait_count);
    for (uint32_t i = 0; i < w->thread_count; i++) {
        const fl_thread *t = &w->thread[i];
        uint32_t gpu = thread_gpu(w, t);
        for (size_t k = 0; k < t->count; k++)
            if (t->item[k].type == FL_ITEM_LAUNCH)
                join(parent, gpu, w->stream[t->item[k].stream].gpu);
        join_waits(w, parent, gpu, t->wait, t->wait_count);
    }
    for (uint32_t i = 0; i < n; i++)
        island_of[i] = root(parent, i) == i ? w->island_count++ : island_of[root(parent, i)];
    w->island = calloc(w->island_count, sizeof *w->island);
    if (!w->island) {
        w->island_count = 0;
        status = fl_no_memory(d, "the workload");
        goto out;
    }
    for (uint32_t k = 0; k < w->island_count; k++) {
        fl_island *is = &w->island[k];
        is->gpu = malloc((n + 1) * sizeof *is->gpu);
        is->stream = malloc((w->stream_count + 1) * sizeof *is->stream);
        is->thread = malloc((w->thread_count + 1) * sizeof *is->thread);
        if (!is->gpu || !is->stream || !is->thread) {
            status = fl_no_memory(d, "the workload");
            goto out;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        w->island[island_of[i]].gpu[w->island[island_of[i]].gpu_count++] = i;
    for (uint32_t i = 0; i < w->stream_count; i++) {
        fl_island *is = &w->island[island_of[w->stream[i].gpu]];
        is->stream[is->stream_count++] = i;
    }
    for (uint32_t i = 0; i < w->thread_count; i++) {
        fl_island *is = &w->island[island_of[thread_gpu(w, &w->thread[i])]];
        is->thread[is->thread_count++] = i;
    }
    bool iterations = false; /* the scan counts no markers */
    for (uint32_t i = 0; i < w->class_count; i++)
        iterations |= w->class[i].iteration;
    for (uint32_t k = 0; k < w->island_count; k++) {
        fl_island *is = &w->island[k];
        is->lone = is->gpu_count == 1 && is->stream_count == 1 && is->thread_count == 0 && !w->host_load_count &&
                   !w->stream[is->stream[0]].wait_first && !w->stream[is->stream[0]].launched && !iterations;
        if ((status = fl_launches_plan(w, is, d)))
            break;
    }
out:
    free(parent);
    free(island_of);
    return status;
}

/* The time at which k of so many windows have passed, rounded up to whole ns. */
static int64_t window_end(const fl_stream *s, uint32_t k, uint32_t windows) {
    return (int64_t)(((fl_wide)s->span_ns * k + windows - 1) / windows);
}

/* Windows of work, not of time: op counts at which each k/windows of the stream's reference time has passed. */
static fl_status make_marks(fl_stream *s, uint32_t windows, fl_diag *d) {
    free(s->mark);
    s->mark = NULL;
    s->mark_count = 0;
    if (!windows || !s->count)
        return FL_OK;
    s->mark = malloc(windows * sizeof *s->mark);
    if (!s->mark)
        return fl_no_memory(d, "the workload");
    int64_t passed = 0, end = window_end(s, 1, windows);
    for (uint64_t i = 0; i < s->count && s->mark_count < windows; i++) {
        int64_t gap, work;
        uint32_t class_id;
        fl_workload_op(s, i, &gap, &work, &class_id);
        passed += gap + work;
        if (passed < end && i + 1 < s->count)
            continue;
        s->mark[s->mark_count++] = i + 1;
        while (s->mark_count < windows && passed >= (end = window_end(s, s->mark_count + 1, windows)))
            windows--; /* one op spans several windows: fewer of them */
    }
    s->mark[s->mark_count - 1] = s->count;
    return FL_OK;
}

/* What a builder in error could make the engine run off with. */
static bool waits_exist(const fl_workload *w, const fl_wait *wait, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (wait[i].stream >= w->stream_count || wait[i].done > w->stream[wait[i].stream].count)
            return false;
    return true;
}

static bool item_exists(const fl_workload *w, const fl_item *item) {
    switch (item->type) {
    case FL_ITEM_LAUNCH:
        return item->stream < w->stream_count;
    case FL_ITEM_ARRIVE:
    case FL_ITEM_DONE:
        return item->request < w->request_count;
    default:
        return true;
    }
}

static bool is_sound(const fl_workload *w) {
    bool sound = true;
    for (uint32_t i = 0; i < w->stream_count; i++)
        sound &= waits_exist(w, w->stream[i].wait, w->stream[i].wait_count);
    for (uint32_t i = 0; i < w->thread_count; i++) {
        const fl_thread *t = &w->thread[i];
        sound &= waits_exist(w, t->wait, t->wait_count);
        for (size_t k = 0; k < t->count; k++)
            sound &= t->item[k].host_ns >= 0 && t->item[k].after_ns >= 0 && item_exists(w, &t->item[k]);
    }
    return sound && w->launch_queue > 0;
}

static void note_others(fl_workload *w) {
    bool any = false;
    for (uint32_t i = 0; i < w->class_count; i++)
        any |= w->class[i].copy || w->class[i].iteration || w->class[i].part;
    for (uint32_t i = 0; any && i < w->stream_count; i++) {
        fl_stream *s = &w->stream[i];
        s->iterations = 0;
        for (uint64_t k = 0; k < s->count; k++) {
            int64_t gap, work;
            uint32_t id;
            fl_workload_op(s, k, &gap, &work, &id);
            s->other |= w->class[id].copy || w->class[id].iteration || w->class[id].part;
            s->iterations += w->class[id].iteration;
        }
    }
}

static void note_barriers(fl_workload *w) {
    for (uint32_t i = 0; i < w->stream_count; i++)
        for (size_t k = 0; k < w->stream[i].wait_count; k++)
            w->barriers |= w->stream[w->stream[i].wait[k].stream].gpu != w->stream[i].gpu;
}

/* The host time before a launch is of the kind that the launched op says. */
static fl_status find_item_loads(fl_workload *w, fl_diag *d) {
    if (!w->host_load_count || !w->thread_count)
        return FL_OK;
    uint64_t *launched = calloc(w->stream_count, sizeof *launched);
    if (!launched)
        return fl_no_memory(d, "the workload");
    for (uint32_t i = 0; i < w->thread_count; i++)
        for (size_t k = 0; k < w->thread[i].count; k++) {
            fl_item *item = &w->thread[i].item[k];
            if (item->type != FL_ITEM_LAUNCH || launched[item->stream] >= w->stream[item->stream].count)
                continue;
            const fl_stream *s = &w->stream[item->stream];
            int64_t gap, work;
            uint32_t id;
            fl_workload_op(s, launched[item->stream], &gap, &work, &id);
            launched[item->stream] += UINT64_C(1) + item->parts;
            item->load = w->class[id].host;
        }
    free(launched);
    return FL_OK;
}

fl_status fl_workload_finish(fl_workload *w, uint32_t windows, fl_diag *d) {
    if (!w->op_count)
        return fl_refuse(d, "%s: no kernel in it, expected at least one", w->name);
    if (!is_sound(w))
        return fl_refuse(d, "%s: a wait or launch for an op that does not exist, or a negative host time", w->name);
    for (uint32_t i = 0; i < w->stream_count; i++) {
        uint32_t beside = 0;
        for (uint32_t k = 0; k < w->stream_count; k++)
            beside += w->stream[k].gpu == w->stream[i].gpu;
        if (beside > FL_SHARES_MAX)
            return fl_refuse(d, "%s: %u streams on GPU %u, expected at most %d", w->name, beside, w->stream[i].gpu,
                             FL_SHARES_MAX);
    }
    for (uint32_t i = 0; i < w->class_count; i++)
        if (w->class[i].load.measured)
            w->class[i].load.measured = &w->class[i].measured;
    note_others(w);
    note_barriers(w);
    if (w->serving) /* it has no ops; its island is made (serving.c) */
        return FL_OK;
    fl_workload_free_islands(w);
    fl_status status = find_item_loads(w, d);
    if (!status)
        status = make_islands(w, d);
    for (uint32_t i = 0; !status && i < w->stream_count; i++)
        status = make_marks(&w->stream[i], windows, d);
    return status;
}

fl_status fl_workload_mark_ops(fl_workload *w, fl_diag *d) {
    for (uint32_t i = 0; i < w->stream_count; i++) {
        fl_stream *s = &w->stream[i];
        if (s->count > UINT32_MAX)
            return fl_refuse(d, "%s: more ops than can be marked", w->name);
        uint64_t *mark = malloc((s->count + 1) * sizeof *mark);
        if (!mark)
            return fl_no_memory(d, "the workload");
        for (uint64_t k = 0; k < s->count; k++)
            mark[k] = k + 1;
        free(s->mark);
        s->mark = mark;
        s->mark_count = (uint32_t)s->count;
    }
    return FL_OK;
}
