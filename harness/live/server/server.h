/* MODULE harness/live/server */
#pragma once

#include "harness/live/guard/guard.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdint.h>

/* Reads an engine's page of metrics again and again on a thread of its own, over plain HTTP, so that a page that is
 * late, hangs or is gone never holds up a step of control. Every wait ends: an exchange may take two seconds in all and
 * bring four MiB; a name is looked up once, before anything is controlled. Where it has several addresses, as of IPv6
 * and of IPv4, an exchange tries one after the other within its two seconds. */

typedef struct fl_page_counts {
    uint64_t pages, failed; /* exchanges that brought a page, or none */
    uint64_t lies;          /* values of them that cannot be */
} fl_page_counts;

/* A server of requests as a live host sees it: its pages are read beside the loop, and each step of the policy gets
 * what the last of them told. */

typedef struct fl_server_host fl_server_host;

typedef struct fl_server_host_options {
    const char *url;
    int64_t ttft_target_ns, tbt_target_ns; /* 0: not stated */
    double target_share;
    uint32_t gpus; /* of the host: it runs on all of them */
} fl_server_host_options;

typedef struct fl_server_host_counts {
    fl_page_counts read;
    uint64_t restarts; /* of the engine, as its counters tell */
    uint64_t lost;     /* times that its signals became unknown for want of a page */
} fl_server_host_counts;

/* As fl_page_reader_open. */
fl_status fl_server_host_open(fl_server_host **out, const fl_server_host_options *o, fl_diag *d);
void fl_server_host_close(fl_server_host *h); /* NULL is allowed */

/* What a policy may know of it; the list of GPUs lives as long as the host does. */
void fl_server_host_facts(const fl_server_host *h, fl_server_facts *f);

/* Signals that its first page told. */
uint64_t fl_server_host_has(const fl_server_host *h);

/* The signals among `needs` at t_ns. What changed is told in a line: pages that stay away or come back, values that
 * cannot be, an engine that began anew. Never waits. */
void fl_server_host_read(fl_server_host *h, uint64_t needs, int64_t t_ns, fl_server_sample *out, fl_effect_tell *tell,
                         void *user);

fl_server_host_counts fl_server_host_count(fl_server_host *h);

/* The two texts around a page of metrics: its address, and the answer that it comes in. */

typedef struct fl_page_url {
    char host[256]; /* without the brackets of an IPv6 address */
    char port[8];
    char path[1024];
} fl_page_url;

/* http://HOST[:PORT][/PATH]: port 80 and /metrics where they are not given. FL_BAD_INPUT otherwise, https too. */
fl_status fl_page_url_parse(const char *text, fl_page_url *url, fl_diag *d);
