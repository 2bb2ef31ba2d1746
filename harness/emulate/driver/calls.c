/* The answer to one call of a client, and set calls that block their callers for a while. */
#include "harness/emulate/driver/inside.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "sim/gpu/gpu.h"
#include "sim/node/node.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* From this branch on the calls of application clocks answer NVML_DEPRECATED. */
#define FL_DRIVER_NO_APPLICATION_CLOCKS 590u

/* ---- answers ---- */

/* A bus address has four or eight digits of the domain. */
static const char *short_pci(const char *id) { return strlen(id) > 12 && id[8] == ':' ? id + 4 : id; }

static int32_t find_by_text(const fl_boards *all, const fl_ask *q, uint32_t *index) {
    for (uint32_t i = 0; i < all->gpu_count; i++) {
        char text[96];
        fl_identity_text(all->o, i, (fl_ask_text)q->a, text, sizeof text);
        const bool pci = q->a == FL_TEXT_PCI;
        if (text[0] && !strcasecmp(pci ? short_pci(text) : text, pci ? short_pci(q->text) : q->text)) {
            *index = i;
            return NVML_SUCCESS;
        }
    }
    return NVML_NOT_FOUND;
}

/* Whether the user asked for this call to fail. */
static bool is_about(const fl_refusal *r, int64_t now_ns, const fl_ask *q, bool about_gpu) {
    const bool there = r->gpu < 0 || (about_gpu && (uint32_t)r->gpu == q->gpu);
    const bool then = now_ns >= r->from_ns && now_ns < r->until_ns;
    return there && then && (r->call[0] ? !fnmatch(r->call, q->call, FNM_EXTMATCH) : about_gpu);
}

/* Whether a set must be accepted without any effect. */
static bool fl_calls_without_effect(const fl_boards *all, const fl_ask *q) {
    bool without = false;
    for (size_t i = 0; i < all->o->refusal_count; i++)
        without = without || (!all->o->refusal[i].result && is_about(&all->o->refusal[i], all->now_ns, q, true));
    return without;
}

/* Newer drivers refuse application clocks. */
static bool is_deprecated(const fl_boards *all, const fl_ask *q) {
    const bool set = q->op == FL_ASK_SET && (q->a == FL_SETS_TARGET || q->a == FL_SETS_TARGET_DEFAULT);
    const bool read = q->op == FL_ASK_NUMBER && (q->a == FL_NUMBER_TARGET_CLOCK || q->a == FL_NUMBER_DEFAULT_CLOCK);
    return (set || read) && all->o->driver.branch >= FL_DRIVER_NO_APPLICATION_CLOCKS;
}

/* Whether the request is about a device, not about the system or a set of events. */
static bool is_of_gpu(const fl_ask *q) {
    switch ((fl_ask_op)q->op) {
    case FL_ASK_TEXT:
        return q->a != FL_TEXT_DRIVER && q->a != FL_TEXT_LIBRARY && q->a != FL_TEXT_CUDA;
    case FL_ASK_EVENT_SET:
    case FL_ASK_EVENT_FREE:
    case FL_ASK_EVENT_NEXT:
        return false;
    default:
        return q->op > FL_ASK_TEXT;
    }
}

/* A requested error, else the error of a lost GPU or a bad handle, else NVML_SUCCESS. */
static int32_t fl_calls_refused(const fl_boards *all, uint32_t inits, const fl_ask *q) {
    const bool about_gpu = is_of_gpu(q);
    if (q->op != FL_ASK_INIT && !inits && !(q->op == FL_ASK_TEXT && q->a == FL_TEXT_CUDA))
        return q->op == FL_ASK_SHUTDOWN ? NVML_SUCCESS : NVML_UNINITIALIZED;
    if (about_gpu && q->gpu >= all->gpu_count)
        return NVML_INVALID_ARGUMENT;
    if (q->op == FL_ASK_NUMBER && q->a == FL_NUMBER_LOCK)
        return NVML_SUCCESS;
    for (size_t i = 0; i < all->o->refusal_count; i++)
        if (all->o->refusal[i].result && is_about(&all->o->refusal[i], all->now_ns, q, about_gpu))
            return all->o->refusal[i].result;
    if (is_deprecated(all, q))
        return NVML_DEPRECATED;
    return about_gpu && fl_node_gpu(all->node, q->gpu)->lost ? NVML_GPU_IS_LOST : NVML_SUCCESS;
}

static fl_event_state state_of(const fl_boards *all, uint32_t gpu) {
    const fl_gpu *g = fl_node_gpu(all->node, gpu);
    const fl_ask q = {.op = FL_ASK_NUMBER, .gpu = gpu, .a = FL_NUMBER_PSTATE, .call = "nvmlEventSetWait_v2"};
    return (fl_event_state){.sm_mhz = (uint32_t)g->dev->sm_mhz[g->sm],
                            .mem_mhz = (uint32_t)g->dev->mem_mhz[g->mem],
                            .pstate = fl_number_pstate(g),
                            .lost = fl_calls_refused(all, 1, &q) == NVML_GPU_IS_LOST};
}

void fl_calls_look(fl_boards *all) {
    for (uint32_t i = 0; all->events.first && i < all->gpu_count; i++) {
        const fl_event_state now = state_of(all, i);
        fl_events_look(&all->events, i, &now);
    }
}

static int32_t event_of(fl_boards *all, const fl_ask *q, fl_answer *out) {
    fl_ask_event event = {0};
    fl_event_state now;
    uint32_t number = 0;
    int32_t r = NVML_SUCCESS;
    switch ((fl_ask_op)q->op) {
    case FL_ASK_EVENT_SET:
        number = fl_events_open(&all->events);
        fl_list_put(out, &number, sizeof number);
        return number ? NVML_SUCCESS : NVML_NO_MEMORY;
    case FL_ASK_EVENT_FREE:
        return fl_events_close(&all->events, q->a) ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
    case FL_ASK_EVENT_ADD:
        now = state_of(all, q->gpu);
        return fl_events_add(&all->events, q->a, q->gpu, q->wide, &now);
    default: /* FL_ASK_EVENT_NEXT */
        r = fl_events_next(&all->events, q->a, &event);
        fl_list_put(out, &event, sizeof event);
        return r;
    }
}

void fl_calls_answer(fl_boards *all, uint32_t *inits, const fl_ask *q, fl_answer *out, bool *reading) {
    uint64_t v = 0;
    uint32_t index = 0;
    char text[96] = "";
    nvmlPciInfo_t pci;
    *reading = false;
    out->size = 0;
    out->result = fl_calls_refused(all, *inits, q);
    if (out->result)
        return;
    switch ((fl_ask_op)q->op) {
    case FL_ASK_INIT:
        *inits = q->a ? 1 : *inits + 1;
        break;
    case FL_ASK_SHUTDOWN:
        *inits -= *inits > 0; /* one shutdown too many is not an error */
        break;
    case FL_ASK_COUNT:
        fl_list_put(out, &all->gpu_count, sizeof all->gpu_count);
        break;
    case FL_ASK_BY_INDEX:
        out->result = q->a < all->gpu_count ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
        fl_list_put(out, &q->a, sizeof q->a);
        break;
    case FL_ASK_BY_TEXT:
        out->result = find_by_text(all, q, &index);
        fl_list_put(out, &index, sizeof index);
        break;
    case FL_ASK_TEXT:
        fl_identity_text(all->o, q->gpu < all->gpu_count ? q->gpu : 0, (fl_ask_text)q->a, text, sizeof text);
        out->result = text[0] ? NVML_SUCCESS : NVML_NOT_SUPPORTED; /* --board states a board without a serial number */
        fl_list_put(out, text, strlen(text) + 1);
        break;
    case FL_ASK_NUMBER:
        out->result = fl_number_of(all, q, &v);
        *reading = fl_number_is_reading(q);
        fl_list_put(out, &v, sizeof v);
        break;
    case FL_ASK_PCI:
        pci = fl_identity_pci(all->o, q->gpu);
        fl_list_put(out, &pci, sizeof pci);
        break;
    case FL_ASK_CLOCKS:
        fl_list_clocks(fl_boards_device(all, q->gpu), q, out);
        break;
    case FL_ASK_PROCESSES:
        fl_list_processes(all, q, out);
        break;
    case FL_ASK_SHARES:
        out->result = fl_list_shares(all, q, out);
        *reading = true;
        break;
    case FL_ASK_SAMPLES:
        out->result = fl_list_samples(all, q, out);
        *reading = true;
        break;
    case FL_ASK_FIELD:
        fl_list_field(all, q, out);
        *reading = true;
        break;
    case FL_ASK_PROFILE:
        fl_list_profile(all, q, out);
        *reading = true;
        break;
    case FL_ASK_EVENT_SET:
    case FL_ASK_EVENT_FREE:
    case FL_ASK_EVENT_ADD:
    case FL_ASK_EVENT_NEXT:
        out->result = event_of(all, q, out);
        break;
    default:
        out->result = NVML_INVALID_ARGUMENT;
    }
}

/* ---- set calls ---- */

struct fl_delayed {
    fl_conn *conn;
    fl_ask ask;
    int64_t due_ns;
    struct fl_delayed *next;
};

static void end_call(fl_sets *s, fl_conn *c, const fl_ask *q, int32_t result) {
    const fl_answer a = {.result = result};
    const int64_t now_ns = s->boards->now_ns;
    fl_outcome_set(s->boards->outcome, now_ns, fl_conn_account(c), q, result);
    fl_conn_answer(s->conns, c, now_ns, q, &a);
}

bool fl_sets_allowed(fl_sets *s, fl_conn *c, const fl_ask *q) {
    int32_t result = fl_calls_refused(s->boards, c->peer->inits, q);
    if (!result && q->a != FL_SETS_RECORDS && !c->peer->root && !s->boards->o->anyone)
        result = NVML_NO_PERMISSION;
    if (!result)
        result = fl_boards_check(s->boards, q);
    if (result)
        end_call(s, c, q, result);
    return !result;
}

void fl_sets_make(fl_sets *s, fl_conn *c, const fl_ask *q) {
    end_call(s, c, q, fl_calls_without_effect(s->boards, q) ? NVML_SUCCESS : fl_boards_set(s->boards, q));
}

int64_t fl_sets_begin(fl_sets *s, const fl_ask *q, int64_t from_ns) {
    const int64_t end_ns = from_ns + fl_boards_set_ns(s->boards, q);
    if (q->a == FL_SETS_LIMIT && !fl_calls_without_effect(s->boards, q))
        fl_boards_begin_limit(s->boards, q, end_ns);
    return end_ns;
}

void fl_sets_delay(fl_sets *s, fl_conn *c, const fl_ask *q) {
    struct fl_delayed *x = calloc(1, sizeof *x), **at = &s->delayed;
    if (!x) {
        const fl_answer a = {.result = NVML_UNKNOWN};
        fl_conn_answer(s->conns, c, s->boards->now_ns, q, &a);
        return;
    }
    *x = (struct fl_delayed){.conn = c, .ask = *q, .due_ns = fl_sets_begin(s, q, s->boards->now_ns)};
    while (*at && (*at)->due_ns <= x->due_ns)
        at = &(*at)->next;
    x->next = *at;
    *at = x;
}

int64_t fl_sets_next_ns(const fl_sets *s) { return s->delayed ? s->delayed->due_ns : INT64_MAX; }

void fl_sets_end(fl_sets *s, fl_peers *peers, int64_t now_ns) {
    while (s->delayed && s->delayed->due_ns <= now_ns) {
        struct fl_delayed *x = s->delayed;
        fl_peers_bury(peers);
        if (x != s->delayed) /* its caller has died, so the set is not made */
            continue;
        s->delayed = x->next;
        fl_boards_go(s->boards, x->due_ns);
        fl_sets_make(s, x->conn, &x->ask);
        free(x);
    }
}

void fl_sets_forget(fl_sets *s, const fl_conn *c) {
    for (struct fl_delayed **at = &s->delayed; *at;) {
        struct fl_delayed *x = *at;
        if (x->conn == c) {
            *at = x->next;
            free(x);
        } else {
            at = &x->next;
        }
    }
}
