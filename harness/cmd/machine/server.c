/* The server of requests that `foldline live --server` reads. */
#include "harness/cmd/machine/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/live/server/server.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static fl_status target(const char *text, int64_t *ns, fl_diag *d) {
    *ns = 0;
    return text ? fl_duration_parse(text, ns, d) : FL_OK;
}

fl_status fl_live_server_check(const fl_live_server *s, const fl_policy *policy, fl_diag *d) {
    int64_t ns;
    fl_page_url url;
    if (!s->url && (s->ttft || s->tbt))
        return fl_refuse(d, "--ttft and --tbt are targets of a server, expected --server URL as well");
    if (!s->url && policy && fl_reads_of(policy).server_needs)
        return fl_refuse(d, "policy %s reads the signals of a server that batches requests, expected --server URL",
                         policy->name);
    if (!s->url)
        return FL_OK;
    fl_status status = fl_page_url_parse(s->url, &url, d);
    if (!status)
        status = target(s->ttft, &ns, d);
    return status ? status : target(s->tbt, &ns, d);
}

static void names(char *text, size_t size, uint64_t bits) {
    size_t at = 0;
    *text = '\0';
    for (size_t i = 0; i < fl_rows_count(FL_ROWS_SERVER_SIGNAL) && at < size; i++)
        if (bits >> i & 1)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "",
                                   fl_rows_at(FL_ROWS_SERVER_SIGNAL, i)->name);
}

fl_status fl_live_server_open(fl_live_server *s, const fl_policy *policy, bool control, fl_facts *facts, fl_diag *d) {
    fl_server_host_options o = {.url = s->url, .target_share = s->target_share, .gpus = facts->gpu_count};
    char text[512];
    if (!s->url)
        return FL_OK;
    fl_status status = target(s->ttft, &o.ttft_target_ns, d);
    if (!status)
        status = target(s->tbt, &o.tbt_target_ns, d);
    if (!status)
        status = fl_server_host_open(&s->host, &o, d);
    if (status)
        return status;
    fl_server_host_facts(s->host, &s->facts);
    facts->server = &s->facts;
    facts->server_count = 1;
    const fl_reads reads = policy ? fl_reads_of(policy) : (fl_reads){0};
    const uint64_t has = fl_server_host_has(s->host), needs = reads.server_needs, uses = reads.server_uses;
    if (needs & ~has) {
        names(text, sizeof text, needs & ~has);
        if (control && !(needs & has))
            return fl_error(d, FL_HARDWARE, "policy %s has nothing to decide on: %s has none of what it needs (%s)",
                            policy->name, s->url, text);
        fl_terminal_say(stderr,
                        "foldline live: %s needs signals that the server's page does not have: %s; it may never decide",
                        policy->name, text);
    }
    if (uses & ~has) {
        names(text, sizeof text, uses & ~has);
        fl_terminal_say(stderr, "foldline live: the server's page does not have %s; %s does without", text,
                        policy->name);
    }
    return FL_OK;
}

void fl_live_server_close(fl_live_server *s) {
    fl_server_host_close(s->host);
    s->host = NULL;
}

void fl_live_server_tell(const fl_live_server *s, FILE *out) {
    if (!s->host)
        return;
    const fl_server_host_counts c = fl_server_host_count(s->host);
    fprintf(out, "%llu pages of the server, %llu failed", (unsigned long long)c.read.pages,
            (unsigned long long)c.read.failed);
    if (c.lost)
        fprintf(out, ", unknown %llu time%s for want of one", (unsigned long long)c.lost, c.lost == 1 ? "" : "s");
    if (c.read.lies)
        fprintf(out, ", %llu values that cannot be", (unsigned long long)c.read.lies);
    if (c.restarts)
        fprintf(out, ", counters fell %llu time%s", (unsigned long long)c.restarts, c.restarts == 1 ? "" : "s");
    fputc('\n', out);
}

void fl_live_server_json(const fl_live_server *s, cJSON *root) {
    cJSON *o = s->host ? cJSON_CreateObject() : cJSON_CreateNull();
    cJSON_AddItemToObject(root, "server", o);
    if (!s->host)
        return;
    const fl_server_host_counts c = fl_server_host_count(s->host);
    cJSON_AddNumberToObject(o, "pages", (double)c.read.pages);
    cJSON_AddNumberToObject(o, "failed", (double)c.read.failed);
    cJSON_AddNumberToObject(o, "lost", (double)c.lost);
    cJSON_AddNumberToObject(o, "values_that_cannot_be", (double)c.read.lies);
    cJSON_AddNumberToObject(o, "restarts", (double)c.restarts);
}
