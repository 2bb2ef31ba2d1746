#include "harness/emulate/emulate_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

void fl_peer_name(fl_emulated_process *p) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)p->pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(p->name, sizeof p->name, f))
        p->name[strcspn(p->name, "\n")] = 0;
    if (f)
        fclose(f);
}

static pid_t parent_of(pid_t pid) {
    char path[64], line[512];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    const char *after = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    if (after)
        (void)sscanf(after, ") %*c %d", &parent);
    if (f)
        fclose(f);
    return parent;
}

fl_peer *fl_peer_of(fl_emulator *e, pid_t pid) {
    fl_peer *p = e->peer;
    while (p && p->pid != pid)
        p = p->next;
    if (p)
        return p;
    fl_emulate_result *r = e->r;
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    p = fd >= 0 ? calloc(1, sizeof *p) : NULL;
    if (!p || fl_grow(&r->process, &r->process_room, r->process_count + 1, sizeof *r->process)) {
        free(p);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    *p = (fl_peer){.pid = pid, .pidfd = fd, .parent = parent_of(pid), .account = r->process_count, .next = e->peer};
    r->process[r->process_count] = (fl_emulated_process){.pid = pid};
    fl_peer_name(&r->process[r->process_count++]);
    e->peer = p;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};
    epoll_ctl(e->deaths, EPOLL_CTL_ADD, fd, &ev);
    return p;
}

void fl_conn_drop(fl_emulator *e, fl_conn *c) {
    if (c->gone)
        return;
    c->gone = true;
    if (c->peer)
        c->peer->uses--;
    c->peer = NULL;
    close(c->fd);
    for (fl_delayed **at = &e->delayed; *at;) {
        fl_delayed *x = *at;
        if (x->conn == c) {
            *at = x->next;
            free(x);
        } else {
            at = &x->next;
        }
    }
    if (e->turns)
        fl_turns_hung_up(e, c);
}

void fl_peer_bury(fl_emulator *e, fl_peer *p) {
    const pid_t pid = p->pid, parent = p->parent;
    for (fl_conn *c = e->conn; c; c = c->next)
        if (c->peer == p) /* what it still had queued goes unread */
            fl_conn_drop(e, c);
    for (fl_peer **at = &e->peer; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    close(p->pidfd);
    free(p);
    if (e->turns)
        fl_turns_died(e, pid, parent);
}

void fl_peers_bury(fl_emulator *e) {
    struct epoll_event ev[16];
    int n;
    do {
        n = epoll_wait(e->deaths, ev, 16, 0);
        for (int i = 0; i < n; i++)
            fl_peer_bury(e, ev[i].data.ptr);
    } while (n == 16);
}
