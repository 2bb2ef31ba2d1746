#include "sim/serving/serving.h"

#include "sim/base/wide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static fl_status check(const fl_serving_setup *u, const char *name, fl_diag *d) {
    if (!u->requests || !u->requests->count)
        return fl_refuse(d, "%s: no request, expected at least one", name);
    if (!u->server_count)
        return fl_refuse(d, "%s: no server, expected at least one", name);
    if (!(u->scale >= 0) || !isfinite(u->scale))
        return fl_refuse(d, "%s: scale %g, expected a number above 0", name, u->scale);
    if (u->ttft_target_ns < 0 || u->tbt_target_ns < 0 || u->signals_ns < 0)
        return fl_refuse(d, "%s: a latency target or period below 0, expected 0 or more", name);
    if (!(u->target_share >= 0) || u->target_share > 1)
        return fl_refuse(d, "%s: %g of all tokens are to meet the targets, expected 0 to 1", name, u->target_share);
    if (fl_serving_arrival_ps(u, u->requests->count - 1) >= FL_TIME_END)
        return fl_refuse(d, "%s: requests arrive beyond 26 days of simulated time", name);
    for (uint32_t i = 0; i < u->server_count; i++) {
        const fl_serving_server *s = &u->server[i];
        if (!s->gpu_count || !s->law)
            return fl_refuse(d, "%s: server %u has no %s", name, i, s->law ? "GPU" : "law of its steps");
        if (fl_step_law_check(s->law) != FL_MODEL_OK)
            return fl_refuse(d, "%s: the law of server %u is not one: a time below 0, or none at all", name, i);
        fl_status refused = fl_batching_check(&s->rules, u->requests, d);
        if (refused)
            return refused;
        for (uint32_t k = 0; k <= i; k++) /* of one server, too */
            for (uint32_t a = 0; a < s->gpu_count; a++)
                for (uint32_t b = 0; b < (k < i ? u->server[k].gpu_count : a); b++)
                    if (s->gpu[a] == u->server[k].gpu[b])
                        return fl_refuse(d, "%s: GPU %u serves twice, expected each to be of one server", name,
                                         s->gpu[a]);
    }
    return FL_OK;
}

/* What of a step follows from the clocks but not from its batch, as the row of a class: power above the base at full
 * load, and by how much kernel records, or an error of the model that is asked for, stretch it. */
static fl_status add_class(fl_workload *w, const fl_serving_server *s, uint32_t index, fl_diag *d) {
    char name[32];
    uint32_t id;
    snprintf(name, sizeof name, "step of server %u", index);
    const fl_kernel_kind kind = {.name = name, .name_id = index, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    const fl_load load = {.tl = 1,
                          .alpha = s->law->sm_load,
                          .beta = s->law->memory_load,
                          .sm_demand = 1,
                          .ref_sm_mhz = s->law->ref_sm_mhz > 0 ? s->law->ref_sm_mhz : 1000,
                          .ref_mem_mhz = s->law->ref_mem_mhz > 0 ? s->law->ref_mem_mhz : 1000};
    return fl_workload_add_class(w, &load, &kind, &id, d);
}

static fl_status add_island(fl_workload *w, const fl_serving_setup *u, fl_diag *d) {
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < u->server_count; i++)
        gpus += u->server[i].gpu_count;
    w->island = calloc(1, sizeof *w->island);
    if (!w->island)
        return fl_no_memory(d, w->name);
    w->island_count = 1;
    w->island->serves = true;
    w->island->gpu = calloc(gpus, sizeof *w->island->gpu);
    if (!w->island->gpu)
        return fl_no_memory(d, w->name);
    for (uint32_t i = 0; i < u->server_count; i++)
        for (uint32_t k = 0; k < u->server[i].gpu_count; k++) {
            const uint32_t gpu = u->server[i].gpu[k];
            w->island->gpu[w->island->gpu_count++] = gpu;
            w->gpu_count = gpu >= w->gpu_count ? gpu + 1 : w->gpu_count;
        }
    return FL_OK;
}

fl_status fl_serving_workload(fl_workload **out, const char *name, const fl_serving_setup *setup, fl_diag *d) {
    fl_workload *w = NULL;
    fl_status s = check(setup, name, d);
    if (!s)
        s = fl_workload_new(&w, name, d);
    for (uint32_t i = 0; !s && i < setup->server_count; i++)
        s = add_class(w, &setup->server[i], i, d);
    if (!s)
        s = add_island(w, setup, d);
    if (s) {
        fl_workload_free(w);
        return s;
    }
    w->serving = setup;
    w->gaps_are_host = false;
    for (uint32_t i = 0; i < setup->server_count; i++) {
        const fl_step_law *law = setup->server[i].law;
        w->assumed |= law->sm_count < 2;
        if (law->sm_count < 2)
            continue;
        w->sm_min_mhz = fmax(w->sm_min_mhz, law->sm_mhz[0]);
        w->sm_max_mhz = fmin(w->sm_max_mhz, law->sm_mhz[law->sm_count - 1]);
    }
    *out = w;
    return FL_OK;
}

void fl_serving_facts(const fl_serving_setup *setup, fl_server_facts *out) {
    for (uint32_t i = 0; i < setup->server_count; i++) {
        const fl_serving_server *s = &setup->server[i];
        out[i] = (fl_server_facts){.gpu = s->gpu,
                                   .gpu_count = s->gpu_count,
                                   .max_seqs = s->rules.max_seqs,
                                   .token_budget = s->rules.token_budget,
                                   .kv_tokens = s->rules.kv_blocks * s->rules.block_tokens,
                                   .ttft_target_ns = setup->ttft_target_ns,
                                   .tbt_target_ns = setup->tbt_target_ns,
                                   .target_share = setup->target_share};
    }
}

int64_t fl_serving_arrival_ps(const fl_serving_setup *setup, size_t i) {
    const int64_t ns = fl_requests_scaled_ns(setup->requests->row[i].t_ns, setup->scale > 0 ? setup->scale : 1);
    return ns > FL_TIME_END / FL_PS_PER_NS ? FL_TIME_END : ns * FL_PS_PER_NS;
}
