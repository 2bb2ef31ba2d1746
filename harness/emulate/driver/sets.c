#include "harness/emulate/driver/sets.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/driver/calls.h"

#include <stdlib.h>

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

void fl_sets_delay(fl_sets *s, fl_conn *c, const fl_ask *q) {
    struct fl_delayed *x = calloc(1, sizeof *x), **at = &s->delayed;
    if (!x) {
        const fl_answer a = {.result = NVML_UNKNOWN};
        fl_conn_answer(s->conns, c, s->boards->now_ns, q, &a);
        return;
    }
    *x = (struct fl_delayed){.conn = c, .ask = *q, .due_ns = s->boards->now_ns + fl_boards_set_ns(s->boards, q)};
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
