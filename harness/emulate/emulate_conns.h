/* The connections of a session's clients: one per thread that asks. */
#ifndef FL_EMULATE_CONNS_H
#define FL_EMULATE_CONNS_H

#include "harness/emulate/emulate_peers.h"

typedef struct fl_conn {
    int fd;
    fl_peer *peer;
    bool gone; /* to be freed once this round of events is over */
    struct fl_conn *next;
} fl_conn;

typedef struct fl_conns {
    fl_outcome *outcome;
    int events; /* an epoll; a connection's data is its fl_conn */
    fl_conn *first;
    void (*hung_up)(void *user, const fl_conn *c); /* gone by then, and not yet freed */
    void *user;
} fl_conns;

/* Takes in who waits at the listener. */
void fl_conns_accept(fl_conns *all, fl_peers *peers, int listener);
/* now_ns: of the session. */
void fl_conn_answer(fl_conns *all, fl_conn *c, int64_t now_ns, const fl_ask *q, const fl_answer *a);
/* Ends it; what it still had queued goes unread. */
void fl_conn_drop(fl_conns *all, fl_conn *c);
/* All of a process, or of everybody: peer NULL. */
void fl_conns_drop(fl_conns *all, const fl_peer *peer);
void fl_conns_free_gone(fl_conns *all);

static inline size_t fl_conn_account(const fl_conn *c) { return c->peer ? c->peer->account : FL_NOBODY; }

#endif
