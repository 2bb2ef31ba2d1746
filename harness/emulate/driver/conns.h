/* The connections of a session's clients: one per thread that sends requests. */
#pragma once

#include "harness/emulate/driver/peers.h"

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
    void (*hung_up)(void *user, const fl_conn *c); /* called when a connection has closed, before it is freed */
    void *user;
} fl_conns;

/* Accepts the clients that wait at the listener. */
void fl_conns_accept(fl_conns *all, fl_peers *peers, int listener);
/* The next request: recv()'s result. Of the descriptor that came with it, q->spare holds the number here + 1; 0: none.
 */
ssize_t fl_conn_hear(const fl_conn *c, fl_ask *q);
/* now_ns: of the session. */
void fl_conn_answer(fl_conns *all, fl_conn *c, int64_t now_ns, const fl_ask *q, const fl_answer *a);
/* Closes it; requests that it had queued are not read. */
void fl_conn_drop(fl_conns *all, fl_conn *c);
/* All connections of a process, or of every process: peer NULL. */
void fl_conns_drop(fl_conns *all, const fl_peer *peer);
void fl_conns_free_gone(fl_conns *all);

static inline size_t fl_conn_account(const fl_conn *c) { return c->peer ? c->peer->account : FL_NOBODY; }
