/* The loop of a live host: read, decide, set, sleep. */
#include "harness/live/guard/guard.h"
#include "harness/live/host/host.h"
#include "harness/live/host/inside.h"
#include "harness/live/records/records.h"
#include "harness/live/server/server.h"
#include "harness/live/vendor/vendor.h"
#include "harness/log/log.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- the power target ---- */

/* The power target of a live host: a file that another program may replace at any time. */

static bool same(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Read the file a first time. FL_BAD_INPUT: it cannot be read or is wrong. path is borrowed; NULL: there is no target.
 */
static fl_status live_target_open(fl_live_target *t, const char *path, fl_diag *d) {
    *t = (fl_live_target){.path = path};
    if (!path)
        return FL_OK;
    if (stat(path, &t->seen))
        t->seen = (struct stat){0};
    return fl_target_read(path, &t->rows, d);
}

static void remark(fl_effect_tell *tell, void *user, const char *path, const char *what) {
    char line[512];
    snprintf(line, sizeof line, "target %s: %s", path, what);
    if (tell)
        tell(user, line, false);
}

static void read_again(fl_live_target *t, fl_effect_tell *tell, void *user) {
    fl_target rows = {0};
    fl_diag d = {0};
    char text[400];
    if (fl_target_read(t->path, &rows, &d)) {
        snprintf(text, sizeof text, "%.300s; the rows before it hold", d.message);
        remark(tell, user, t->path, text);
        return;
    }
    fl_target_free(&t->rows);
    t->rows = rows;
}

/* Read the file again if it was replaced or changed, and show the target at t_ns. While the file is gone, the target is
 * unknown; while its new contents are wrong, the old rows hold. tell, which may be NULL, learns of both. */
static void live_target_show(fl_live_target *t, int64_t t_ns, fl_effect_tell *tell, void *user, fl_host_sample *host) {
    struct stat now;
    if (!t->path)
        return;
    const bool gone = stat(t->path, &now) != 0;
    if (gone && !t->gone)
        remark(tell, user, t->path, "is gone; the target is unknown until it is back");
    t->gone = gone;
    if (!gone && !same(&now, &t->seen)) {
        t->seen = now;
        read_again(t, tell, user);
    }
    const double watts = gone ? (double)NAN : fl_target_at(&t->rows, t_ns);
    if (isnan(watts))
        return;
    host->value[FL_HOST_TARGET_W] = watts;
    host->valid |= FL_BIT(FL_HOST_TARGET_W);
    host->fresh |= FL_BIT(FL_HOST_TARGET_W);
}

static void live_target_close(fl_live_target *t) { fl_target_free(&t->rows); }

/* ---- the loop ---- */

#define STALE_NS INT64_C(1000000000) /* a signal that did not refresh for that long is unknown */
#define LAST_GRACE_NS INT64_C(30000000000)
#define SPARE_NS INT64_C(8000000000) /* longer than any signal is left out (harness/live/vendor/nvml/pace.c) */
#define WATCHES 16                   /* readings of an energy counter within the time after which it counts as frozen */

typedef struct watched { /* of one GPU: does its energy counter move? */
    double joules;
    int64_t moved_ns, asked_ns;
    bool known, asked;
} watched;

typedef struct live {
    const fl_live_options *o;
    fl_live_result *r;
    fl_instance *instance;
    fl_guard *guard;
    fl_session *session;
    fl_effect *effect; /* NULL: nothing is set */
    fl_gpu_sample *gpu;
    fl_server_sample server;
    watched *watched;
    fl_record_switch records;
    fl_live_target target;
    uint32_t gpus;
    fl_reads reads;                 /* of the policy; nothing in observe */
    uint64_t gpu_needs, host_needs; /* what is read */
    int64_t origin_ns, loop_ns;
    bool woken; /* the step that comes is before its delay is over: a marker was passed */
} live;

static int64_t now(const live *l) { return l->o->clock.now(l->o->clock.user); }

/* ---- reading ---- */

/* On an H200 the energy counter takes 2 to 6 ms of processor time to read, power, utilisation and clocks 1 to 20 us
 * each (tests/hardware). So a policy that does not need it has it read only as often as a frozen one must be found out.
 */
static uint64_t watch_needs(live *l, uint32_t i, int64_t t_ns) {
    watched *w = &l->watched[i];
    if (!l->o->frozen_ns || (w->asked && t_ns - w->asked_ns < l->o->frozen_ns / WATCHES))
        return 0;
    w->asked = true;
    w->asked_ns = t_ns;
    return FL_BIT(FL_GPU_ENERGY_J);
}

/* A counter that the policy does without may be shown as of seconds before: only where a frozen one is given longer. */
static void spare_uses(const live *l) {
    const fl_gpus *g = l->o->gpus;
    const bool soon = l->o->frozen_ns && l->o->frozen_ns < SPARE_NS;
    if (g->back->spare)
        g->back->spare(g->self, soon ? 0 : l->reads.gpu_uses & ~l->reads.gpu_needs);
}

static fl_status still_moving(live *l, uint32_t i, int64_t t_ns, const fl_gpu_sample *s, fl_diag *d) {
    watched *w = &l->watched[i];
    if (!fl_gpu_known(s, FL_GPU_ENERGY_J) || !l->o->frozen_ns)
        return FL_OK;
    const double joules = s->value[FL_GPU_ENERGY_J];
    if (!w->known || w->joules != joules) {
        w->joules = joules;
        w->moved_ns = t_ns;
        w->known = true;
    }
    if (t_ns - w->moved_ns < l->o->frozen_ns)
        return FL_OK;
    return fl_error(d, FL_HARDWARE, "GPU %u: its energy counter has stood still for %.3g s: sensor frozen", i,
                    (double)(t_ns - w->moved_ns) * 1e-9);
}

/* Signals that the policy does not need are neither shown to it nor written to the log. */
static void keep_needed(uint64_t needs, uint64_t *valid, uint64_t *fresh) {
    *valid &= needs;
    *fresh &= *valid;
}

static void put_count(fl_gpu_sample *s, int id, uint64_t count) {
    s->value[id] = (double)count;
    s->valid |= FL_BIT(id);
    s->fresh |= FL_BIT(id);
}

/* No vendor's library counts kernels or markers, the programs' rings do. */
static void count_of_rings(const live *l, uint32_t i, fl_gpu_sample *s) {
    uint64_t count;
    if (l->o->kernels && fl_kernels_finished(l->o->kernels, i, &count))
        put_count(s, FL_GPU_KERNELS, count);
    if (l->o->kernels && fl_kernels_iterated(l->o->kernels, i, &count))
        put_count(s, FL_GPU_ITERATIONS, count);
}

static fl_status read_signals(live *l, fl_sample *sample, fl_diag *d) {
    const fl_gpus *g = l->o->gpus;
    const int64_t t = sample->time_ns;
    fl_status s = FL_OK;
    for (uint32_t i = 0; !s && i < l->gpus; i++)
        s = g->back->read(g->self, i, l->gpu_needs | watch_needs(l, i, t) | fl_effect_needs(l->effect, i, t), t,
                          &l->gpu[i], d);
    if (!s && l->o->kernels) /* after the readings: of a simulated session they are what brings it to this instant */
        s = fl_kernels_take(l->o->kernels, l->origin_ns, sample, d);
    for (uint32_t i = 0; !s && i < l->gpus; i++) {
        count_of_rings(l, i, &l->gpu[i]);
        s = still_moving(l, i, t, &l->gpu[i], d);
        fl_guard_gpu(l->guard, i, t, &l->gpu[i]);
        fl_effect_look(l->effect, i, t, &l->gpu[i]);
        keep_needed(l->gpu_needs, &l->gpu[i].valid, &l->gpu[i].fresh);
    }
    if (l->o->cpu)
        fl_cpu_host_read(l->o->cpu, &sample->host);
    keep_needed(l->host_needs & ~FL_HOST_KNOWS, &sample->host.valid, &sample->host.fresh);
    fl_guard_host(l->guard, t, &sample->host);
    if (l->o->server) {
        fl_server_host_read(l->o->server, l->reads.server, t, &l->server, l->o->tell, l->o->user);
        sample->server = &l->server;
        sample->server_count = 1;
    }
    if (l->host_needs & FL_BIT(FL_HOST_TARGET_W))
        live_target_show(&l->target, t, l->o->tell, l->o->user, &sample->host);
    if (l->r->steps && l->host_needs & FL_BIT(FL_HOST_LOOP_NS)) {
        sample->host.valid |= FL_BIT(FL_HOST_LOOP_NS);
        sample->host.fresh |= FL_BIT(FL_HOST_LOOP_NS);
        sample->host.value[FL_HOST_LOOP_NS] = (double)l->loop_ns;
    }
    return s;
}

/* ---- setting ---- */

static fl_status carry_one(live *l, int32_t gpu, int id, const fl_decided *x, bool only_ask, fl_diag *d) {
    bool made = false;
    fl_status s = x->set ? fl_session_may(l->session, gpu, id, x->value, &made, d) : FL_OK;
    if (s || !x->set || only_ask)
        return s;
    if (made) {
        s = fl_session_set(l->session, gpu, id, x->value, d);
        l->r->sets += !s;
    }
    if (!s && gpu >= 0 && id == FL_SET_RECORDS)
        fl_record_switch_set(&l->records, (uint32_t)gpu, x->value > 0, now(l) - l->origin_ns);
    if (!s && made && gpu >= 0)
        fl_effect_made(l->effect, (uint32_t)gpu, id, x->value, now(l) - l->origin_ns);
    return s;
}

/* Nothing is set where one of the sets cannot be made. */
static fl_status carry_out(live *l, const fl_decision *decision, fl_diag *d) {
    fl_status s = FL_OK;
    for (int round = 0; !s && round < 2; round++) {
        for (uint32_t i = 0; !s && i < l->gpus; i++)
            for (int id = 0; !s && id < FL_GPU_CONTROL_COUNT; id++)
                s = carry_one(l, (int32_t)i, id, &decision->gpu[i][id], !round, d);
        for (int id = 0; !s && id < FL_HOST_CONTROL_COUNT; id++)
            s = carry_one(l, -1, id, &decision->host[id], !round, d);
    }
    return s;
}

/* ---- the loop ---- */

static bool stopped(const live *l) { return l->o->stop && l->o->stop(l->o->user); }

static bool over(const live *l, int64_t t) { return l->o->for_ns && t - l->origin_ns >= l->o->for_ns; }

static fl_status promise(live *l, int64_t until_ns, fl_diag *d) {
    const int64_t grace = l->o->grace_ns;
    return l->session ? fl_session_beat(l->session, until_ns > INT64_MAX - grace ? INT64_MAX : until_ns + grace, d)
                      : FL_OK;
}

static fl_status make_step(live *l, int64_t started, int64_t *delay, bool *wake, fl_diag *d) {
    fl_sample sample = {.time_ns = started - l->origin_ns, .step = l->r->steps, .gpu_count = l->gpus, .gpu = l->gpu};
    const fl_decision *decision = NULL;
    sample.woken = l->woken ? FL_BIT(FL_WAKE_MARKER) : 0;
    fl_status s = read_signals(l, &sample, d);
    if (l->instance && !fl_takes_kernels(l->o->policy)) {
        sample.record = NULL;
        sample.kind = NULL;
        sample.kind_count = 0;
        sample.record_count = sample.record_lost = 0;
    } else if (!s && l->instance) {
        s = fl_record_switch_show(&l->records, &sample, d);
    }
    if (!s && l->instance)
        s = fl_instance_step(l->instance, &sample, &decision, d);
    if (!s && l->o->on_step)
        s = l->o->on_step(l->o->user, &sample, decision, d);
    if (!s && l->session)
        s = carry_out(l, decision, d);
    for (uint32_t i = 0; !s && decision && !l->session && i < l->gpus;
         i++) /* shadow: nothing is set, records come all the same */
        if (decision->gpu[i][FL_SET_RECORDS].set)
            fl_record_switch_set(&l->records, i, decision->gpu[i][FL_SET_RECORDS].value > 0, now(l) - l->origin_ns);
    *delay = decision ? decision->delay_ns : l->o->period_ns;
    *wake = decision && decision->wake & FL_BIT(FL_WAKE_MARKER) && l->o->kernels;
    return s;
}

/* Wakes now and then, and when the guardian ends, to see that there is one; with `wake` at a marker too. */
static fl_status sleep_until(live *l, int64_t next, bool wake, fl_diag *d) {
    fl_status s = promise(l, next, d);
    l->woken = false;
    for (int64_t t; !s && (t = now(l)) < next && !stopped(l) && !over(l, t);) {
        const int64_t end = l->o->for_ns ? l->origin_ns + l->o->for_ns : next;
        if (wake)
            s = fl_kernels_await(l->o->kernels, end < next ? end : next, &l->woken, d);
        else
            l->o->clock.sleep_until(l->o->clock.user, end < next ? end : next);
        if (l->woken || (l->o->early && l->o->early(l->o->user)))
            break;
        s = s ? s : promise(l, next, d);
    }
    return s;
}

/* On hardware they are on with the collector; a simulated session is told from when on they cost time. */
static fl_status begin_records(live *l, fl_diag *d) {
    const fl_gpus *g = l->o->gpus;
    fl_status s = FL_OK;
    if (!l->reads.records || !fl_gpus_simulated(g))
        return FL_OK;
    for (uint32_t i = 0; !s && i < l->gpus; i++)
        s = g->back->set(g->self, i, FL_SET_RECORDS, 1, NULL, d);
    return s;
}

static fl_status drive(live *l, fl_diag *d) {
    int64_t next = l->origin_ns = now(l);
    fl_status s = begin_records(l, d);
    while (!s) {
        const int64_t started = now(l);
        if (stopped(l) || over(l, started))
            break;
        int64_t delay = 0;
        bool wake = false;
        s = promise(l, started, d);
        if (!s)
            s = make_step(l, started, &delay, &wake, d);
        const int64_t ended = now(l);
        l->loop_ns = ended - started;
        l->r->sum_ns += l->loop_ns;
        l->r->longest_ns = l->loop_ns > l->r->longest_ns ? l->loop_ns : l->r->longest_ns;
        l->r->steps++;
        next = delay > INT64_MAX - next ? INT64_MAX : next + delay;
        if (next < ended) {
            l->r->late++;
            next = ended;
        }
        if (!s)
            s = sleep_until(l, next, wake, d);
        next = now(l) < next ? now(l) : next; /* woken early */
    }
    l->r->lasted_ns = now(l) - l->origin_ns;
    return s;
}

/* ---- opening, closing ---- */

static fl_status open_live(live *l, fl_diag *d) {
    const fl_live_options *o = l->o;
    fl_status s = live_target_open(&l->target, o->target, d);
    if (!s)
        s = fl_guard_open(&l->guard, l->gpus, d);
    for (uint32_t i = 0; !s && i < l->gpus; i++)
        for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
            fl_guard_gpu_stale(l->guard, i, id, STALE_NS);
    for (uint32_t i = 0; !s && i < l->gpus; i++) {
        fl_gpu_facts f;
        if (!(s = o->gpus->back->facts(o->gpus->self, i, &f, d)))
            fl_bounds_set(l->guard, i, &f);
    }
    l->gpu = calloc(l->gpus + 1, sizeof *l->gpu);
    l->watched = calloc(l->gpus + 1, sizeof *l->watched);
    if (!s && (!l->gpu || !l->watched))
        s = fl_no_memory(d, "the live host");
    if (!s && o->policy)
        s = fl_record_switch_open(&l->records, l->gpus, l->reads.records, d);
    if (!s && o->policy) {
        const fl_instance_options in = {.policy = o->policy,
                                        .facts = o->facts,
                                        .layer = o->layer,
                                        .layer_count = o->layer_count,
                                        .min_set_interval_ns = o->min_set_interval_ns};
        s = fl_instance_open(&l->instance, &in, d);
    }
    if (!s && o->mode == FL_LIVE_CONTROL && o->policy) {
        const fl_session_options so = {.gpus = o->gpus,
                                       .cpu = o->cpu,
                                       .gpu_drives = o->policy->gpu_drives,
                                       .host_drives = o->policy->host_drives,
                                       .check_ns = o->check_ns};
        s = fl_session_open(&l->session, &so, d);
        if (!s)
            s = fl_effect_open(&l->effect, o->gpus, o->tell, o->user, d);
    }
    return s;
}

fl_status fl_live(const fl_live_options *o, fl_live_result *r, fl_diag *d) {
    *r = (fl_live_result){0};
    live l = {.o = o,
              .r = r,
              .gpus = o->gpus->back->count(o->gpus->self),
              .gpu_needs = o->gpu_needs,
              .host_needs = o->host_needs};
    if (o->policy) {
        l.reads = fl_reads_of(o->policy);
        l.gpu_needs = l.reads.gpu;
        l.host_needs = l.reads.host_needs;
    }
    fl_status s = open_live(&l, d);
    if (!s) {
        spare_uses(&l);
        s = drive(&l, d);
    }
    if (l.session) {
        r->guardians_lost = fl_session_replaced(l.session);
        fl_session_beat(l.session, now(&l) + LAST_GRACE_NS,
                        NULL); /* without a guardian it is given back all the same */
        fl_status back = fl_session_close(l.session, s ? NULL : d);
        s = s ? s : back;
    }
    if (l.instance)
        r->counts = fl_instance_counts_of(l.instance);
    if (l.guard)
        r->absurd = fl_bounds_tell(l.guard, l.gpus, r->absurd_names, sizeof r->absurd_names);
    r->effect = fl_effect_count(l.effect);
    fl_effect_close(l.effect);
    fl_instance_close(l.instance);
    fl_guard_close(l.guard);
    fl_record_switch_close(&l.records);
    live_target_close(&l.target);
    free(l.gpu);
    free(l.watched);
    return s;
}
