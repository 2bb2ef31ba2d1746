/* The processes of a session, each registered at its first request, and their deaths. */
#pragma once

#include "harness/emulate/driver/outcome.h"

typedef struct fl_peer { /* one process */
    pid_t pid;
    int pidfd;
    uint32_t uses; /* connections */
    uint32_t inits;
    pid_t parent;
    bool doomed;    /* its process group is about to be killed */
    bool root;      /* as its last connection said */
    size_t account; /* index in the report */
    struct fl_peer *next;
} fl_peer;

typedef struct fl_peers {
    fl_outcome *outcome;
    int deaths; /* an epoll for the pidfds, checked before every request */
    fl_peer *first;
    void (*died)(void *user, const fl_peer *p); /* called when the process has been removed from the list */
    void *user;
} fl_peers;

/* NULL where the process has already ended. */
fl_peer *fl_peer_of(fl_peers *all, pid_t pid);
/* Through its pidfd, because the number may belong to another process by now. */
void fl_peer_kill(const fl_peers *all, pid_t pid);
void fl_peer_bury(fl_peers *all, fl_peer *p);
/* Handles dead clients first: a set that a killed client had queued must not be made after other processes have reacted
 * to its death. */
void fl_peers_bury(fl_peers *all);
