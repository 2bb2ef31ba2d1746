/* The metrics page of a serving engine, as signals of a server.
 *
 * fl_server_host_open checks the URL, reads a first page and starts a thread that reads the page again and again.
 * fl_server_host_read gives the signals at a time and never waits: a late page makes them stale, then unknown.
 * fl_server_host_facts states the server to a policy. The host owns the thread until fl_server_host_close.
 * FL_BAD_INPUT: a wrong URL. FL_HARDWARE: no page. */
#pragma once

#include "harness/live/guard/guard.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdint.h>

/* The reader speaks plain HTTP on a thread of its own, so a late or lost page never delays a step of control. Every
 * wait ends: an exchange takes at most two seconds and four MiB. The name is looked up once, before anything is
 * controlled. If it has several addresses, as of IPv6 and of IPv4, an exchange tries one after the other within its two
 * seconds. */

typedef struct fl_page_counts {
    uint64_t pages, failed; /* exchanges with a page, and without one */
    uint64_t lies;          /* impossible values on the pages */
} fl_page_counts;

typedef struct fl_server_host fl_server_host;

typedef struct fl_server_host_options {
    const char *url;
    int64_t ttft_target_ns, tbt_target_ns; /* 0: not stated */
    double target_share;
    uint32_t gpus; /* number of the host's GPUs; the server runs on all of them */
} fl_server_host_options;

typedef struct fl_server_host_counts {
    fl_page_counts read;
    uint64_t restarts; /* restarts of the engine, as its counters show */
    uint64_t lost;     /* times that its signals became unknown without a page */
} fl_server_host_counts;

/* Open the server: look up its name, read a first page and start the thread. */
fl_status fl_server_host_open(fl_server_host **out, const fl_server_host_options *o, fl_diag *d);
void fl_server_host_close(fl_server_host *h); /* NULL is allowed */

/* Fill the facts of the server for a policy; the list of GPUs lives as long as the host. */
void fl_server_host_facts(const fl_server_host *h, fl_server_facts *f);

/* Return the signals that the first page has. */
uint64_t fl_server_host_has(const fl_server_host *h);

/* Read the signals among `needs` at t_ns, without waiting. tell receives each change in a line: pages that stop or
 * return, impossible values, a restart of the engine. */
void fl_server_host_read(fl_server_host *h, uint64_t needs, int64_t t_ns, fl_server_sample *out, fl_effect_tell *tell,
                         void *user);

fl_server_host_counts fl_server_host_count(fl_server_host *h);

typedef struct fl_page_url {
    char host[256]; /* without the brackets of an IPv6 address */
    char port[8];
    char path[1024];
} fl_page_url;

/* http://HOST[:PORT][/PATH]: port 80 and /metrics where they are not given. FL_BAD_INPUT otherwise, https too. */
fl_status fl_page_url_parse(const char *text, fl_page_url *url, fl_diag *d);
