/* The processes of a session, each noted when first heard of, and their deaths. */
#ifndef FL_EMULATE_PEERS_H
#define FL_EMULATE_PEERS_H

#include "harness/emulate/emulate_outcome.h"

typedef struct fl_peer { /* one process */
    pid_t pid;
    int pidfd;
    uint32_t uses; /* connections */
    uint32_t inits;
    pid_t parent;
    bool root;      /* so far as its last connection said */
    size_t account; /* its place in the report */
    struct fl_peer *next;
} fl_peer;

typedef struct fl_peers {
    fl_outcome *outcome;
    int deaths; /* an epoll of its own for pidfds, looked at before every request */
    fl_peer *first;
    void (*died)(void *user, const fl_peer *p); /* it is out of the list by then */
    void *user;
} fl_peers;

/* NULL where it is gone. */
fl_peer *fl_peer_of(fl_peers *all, pid_t pid);
void fl_peer_bury(fl_peers *all, fl_peer *p);
/* Dead clients first: a set that a killed client had queued must not be made after what others do about its death. */
void fl_peers_bury(fl_peers *all);

#endif
