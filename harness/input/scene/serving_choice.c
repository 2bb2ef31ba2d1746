#include "harness/input/scene/serving_choice.h"

#include "traces/io/duration.h"

#include <string.h>

static const char *const routes[] = {"round-robin", "least-loaded"};

bool fl_serving_choice_any(const fl_serving_choice *c) {
    return c->server || c->requests || c->scale > 0 || c->servers || c->kv_blocks || c->token_budget || c->route ||
           c->ttft || c->tbt || c->target_share > 0;
}

static fl_status find_route(const char *text, fl_route *route, fl_diag *d) {
    const size_t count = sizeof routes / sizeof *routes;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(text, routes[i])) {
            *route = i ? FL_ROUTE_LEAST_LOADED : FL_ROUTE_ROUND_ROBIN;
            return FL_OK;
        }
    const char *near = fl_nearest(text, routes, count);
    return near ? fl_refuse(d, "route '%s', did you mean '%s'?", text, near)
                : fl_refuse(d, "route '%s', expected round-robin or least-loaded", text);
}

static fl_status find_target(const char *what, const char *text, int64_t *ns, fl_diag *d) {
    *ns = 0;
    if (!text || !fl_duration_parse(text, ns, NULL))
        return FL_OK;
    return fl_refuse(d, "%s '%.40s', expected a time such as 2s or 100ms", what, text);
}

fl_status fl_serving_choice_resolve(const fl_serving_choice *c, fl_serving_setup *setup, fl_diag *d) {
    setup->scale = c->scale > 0 ? c->scale : 1;
    setup->target_share = c->target_share > 0 ? c->target_share : FL_TARGET_SHARE;
    setup->route = FL_ROUTE_ROUND_ROBIN;
    fl_status s = c->route ? find_route(c->route, &setup->route, d) : FL_OK;
    if (!s)
        s = find_target("ttft", c->ttft, &setup->ttft_target_ns, d);
    return s ? s : find_target("tbt", c->tbt, &setup->tbt_target_ns, d);
}

fl_status fl_serving_choice_check(const fl_serving_choice *c, fl_diag *d) {
    const struct {
        bool given;
        const char *name;
    } part[] = {{c->scale > 0, "--scale"},         {c->servers > 0, "--servers"},
                {c->kv_blocks > 0, "--kv-blocks"}, {c->token_budget > 0, "--token-budget"},
                {c->route != NULL, "--route"},     {c->ttft != NULL, "--ttft"},
                {c->tbt != NULL, "--tbt"},         {c->target_share > 0, "--target-share"}};
    fl_serving_setup ignored;
    if (c->requests && !c->server)
        return fl_refuse(
            d, "--requests are for a server, expected --serving FILE with it (what a run served is written by --served "
               "FILE)");
    if (c->server && !c->requests)
        return fl_refuse(d, "--serving needs what is asked of it, expected --requests FILE with it");
    for (size_t i = 0; !c->server && i < sizeof part / sizeof *part; i++)
        if (part[i].given)
            return fl_refuse(d,
                             "%s is of a server and does nothing here, expected --serving FILE and --requests FILE "
                             "with it",
                             part[i].name);
    if (c->target_share > 0 && !c->ttft && !c->tbt)
        return fl_refuse(d, "--target-share is of latencies, expected --ttft TIME or --tbt TIME with it");
    return fl_serving_choice_resolve(c, &ignored, d);
}

void fl_serving_choice_merge(fl_serving_choice *c, const fl_serving_choice *rest) {
    c->server = c->server ? c->server : rest->server;
    c->requests = c->requests ? c->requests : rest->requests;
    c->scale = c->scale > 0 ? c->scale : rest->scale;
    c->servers = c->servers ? c->servers : rest->servers;
    c->kv_blocks = c->kv_blocks ? c->kv_blocks : rest->kv_blocks;
    c->token_budget = c->token_budget ? c->token_budget : rest->token_budget;
    c->route = c->route ? c->route : rest->route;
    c->ttft = c->ttft ? c->ttft : rest->ttft;
    c->tbt = c->tbt ? c->tbt : rest->tbt;
    c->target_share = c->target_share > 0 ? c->target_share : rest->target_share;
}

static fl_status get_text(const fl_json *root, const char *key, const char **into, fl_diag *d) {
    return *into || !fl_json_has(root, key) ? FL_OK : fl_json_get_text(root, key, into, d);
}

/* What a key means is wrong here, where the file can be named. */
static fl_status check_key(const fl_json *root, const char *key, const fl_serving_choice *c, fl_diag *d) {
    fl_serving_setup ignored;
    fl_diag why = {0};
    fl_json at;
    if (!fl_json_has(root, key) || !fl_serving_choice_resolve(c, &ignored, &why))
        return FL_OK;
    const fl_status s = fl_json_get(root, key, &at, d);
    return s ? s : fl_json_fail(&at, d, "%s", why.message);
}

fl_status fl_serving_choice_read(const fl_json *root, fl_serving_choice *c, fl_diag *d) {
    fl_status s =
        c->scale > 0 || !fl_json_has(root, "scale") ? FL_OK : fl_json_get_real(root, "scale", 1e-6, 1e6, &c->scale, d);
    if (!s && !c->servers && fl_json_has(root, "servers"))
        s = fl_json_get_int(root, "servers", 1, 1024, &c->servers, d);
    if (!s && !c->kv_blocks && fl_json_has(root, "kv_blocks"))
        s = fl_json_get_int(root, "kv_blocks", 1, INT64_C(1000000000000), &c->kv_blocks, d);
    if (!s && !c->token_budget && fl_json_has(root, "token_budget"))
        s = fl_json_get_int(root, "token_budget", 1, 1000000000, &c->token_budget, d);
    if (!s && !(c->target_share > 0) && fl_json_has(root, "target_share"))
        s = fl_json_get_real(root, "target_share", 1e-6, 1, &c->target_share, d);
    if (s || (s = get_text(root, "route", &c->route, d)) || (s = check_key(root, "route", c, d)) ||
        (s = get_text(root, "ttft", &c->ttft, d)) || (s = check_key(root, "ttft", c, d)) ||
        (s = get_text(root, "tbt", &c->tbt, d)))
        return s;
    return check_key(root, "tbt", c, d);
}
