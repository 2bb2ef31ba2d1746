#include "harness/log/server_head.h"

#include "traces/io/numbers.h"
#include "traces/io/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 3, TEXT = 128 };

static fl_status set(fl_head *h, uint32_t server, const char *what, const char *value, fl_diag *d) {
    char key[48];
    snprintf(key, sizeof key, "server%" PRIu32 ".%s", server, what);
    return fl_head_set(h, key, value) ? FL_OK : fl_no_memory(d, "the facts");
}

static fl_status put_gpus(fl_head *h, uint32_t server, const fl_server_facts *f, fl_diag *d) {
    fl_text t;
    size_t size;
    FILE *out = fl_text_open(&t);
    if (!out)
        return fl_no_memory(d, "the facts");
    for (uint32_t i = 0; i < f->gpu_count; i++)
        fprintf(out, "%s%" PRIu32, i ? "/" : "", f->gpu[i]);
    char *text = fl_text_close(&t, &size);
    fl_status s = text ? set(h, server, "gpus", text, d) : fl_no_memory(d, "the facts");
    free(text);
    return s;
}

fl_status fl_server_head_put(const fl_facts *facts, fl_head *h, fl_diag *d) {
    char text[TEXT];
    snprintf(text, sizeof text, "%" PRIu32, facts->server_count);
    fl_status s = FL_OK;
    if (facts->server_count && !fl_head_set(h, "servers", text))
        return fl_no_memory(d, "the facts");
    for (uint32_t i = 0; !s && i < facts->server_count; i++) {
        const fl_server_facts *f = &facts->server[i];
        s = put_gpus(h, i, f, d);
        snprintf(text, sizeof text, "%" PRIu32 "/%" PRIu64 "/%" PRIu64, f->max_seqs, f->token_budget, f->kv_tokens);
        if (!s)
            s = set(h, i, "limits", text, d);
        snprintf(text, sizeof text, "%" PRId64 "/%" PRId64 "/%.17g", f->ttft_target_ns, f->tbt_target_ns,
                 f->target_share);
        if (!s)
            s = set(h, i, "targets", text, d);
    }
    return s;
}

typedef struct source {
    const fl_head *head;
    const char *path;
    char key[48];
} source;

static fl_status wrong(const source *from, fl_diag *d) {
    return fl_fail(d, FL_BAD_INPUT, from->path, fl_head_line(from->head, from->key), 0, "head: %s is missing or wrong",
                   from->key);
}

/* Numbers of at least 0 joined by '/': at most `room`, *count of them; whole ones but the last where `real`. */
static fl_status numbers(source *from, uint32_t server, const char *what, double *v, size_t room, size_t *count,
                         fl_diag *d) {
    snprintf(from->key, sizeof from->key, "server%" PRIu32 ".%s", server, what);
    const char *at = fl_head_get(from->head, from->key);
    *count = 0;
    for (bool more = at != NULL; more;) {
        const size_t size = strcspn(at, "/");
        char one[FL_REAL_TEXT] = "";
        if (*count == room || !size || size >= sizeof one)
            return wrong(from, d);
        memcpy(one, at, size);
        if (fl_real_parse(one, &v[*count]) != FL_NUMBER_OK || !(v[*count] >= 0) || v[*count] >= 0x1p62)
            return wrong(from, d);
        ++*count;
        more = at[size] == '/';
        at += size + more;
    }
    return *count ? FL_OK : wrong(from, d);
}

static bool whole(double v, double most) { return v <= most && v == floor(v); }

static fl_status get(source *from, uint32_t server, uint32_t gpus, fl_server_facts *f, fl_diag *d) {
    double limit[NUMBERS], aim[NUMBERS], *index = calloc(gpus, sizeof *index);
    uint32_t *gpu = calloc(gpus, sizeof *gpu);
    size_t count = 0, n = 0;
    f->gpu = gpu;
    fl_status s = index && gpu ? numbers(from, server, "gpus", index, gpus, &count, d) : fl_no_memory(d, "the facts");
    for (size_t i = 0; !s && i < count; i++) {
        if (!whole(index[i], gpus - 1.0))
            s = wrong(from, d);
        else
            gpu[i] = (uint32_t)index[i];
    }
    free(index);
    f->gpu_count = (uint32_t)count;
    if (!s && !(s = numbers(from, server, "limits", limit, NUMBERS, &n, d)) &&
        (n != NUMBERS || !whole(limit[0], UINT32_MAX) || !whole(limit[1], 0x1p53) || !whole(limit[2], 0x1p53)))
        s = wrong(from, d);
    if (!s && !(s = numbers(from, server, "targets", aim, NUMBERS, &n, d)) &&
        (n != NUMBERS || !whole(aim[0], 0x1p53) || !whole(aim[1], 0x1p53) || aim[2] > 1))
        s = wrong(from, d);
    if (s)
        return s;
    f->max_seqs = (uint32_t)limit[0];
    f->token_budget = (uint64_t)limit[1];
    f->kv_tokens = (uint64_t)limit[2];
    f->ttft_target_ns = (int64_t)aim[0];
    f->tbt_target_ns = (int64_t)aim[1];
    f->target_share = aim[2];
    return FL_OK;
}

fl_status fl_server_head_get(const fl_head *h, const char *path, fl_facts *facts, fl_diag *d) {
    source from = {.head = h, .path = path, .key = "servers"};
    const char *text = fl_head_get(h, "servers");
    int64_t count = 0;
    if (!text)
        return FL_OK;
    if (fl_int_parse(text, &count) != FL_NUMBER_OK || count < 1 ||
        count > (int64_t)h->count) /* each has keys of its own */
        return wrong(&from, d);
    fl_server_facts *server = calloc((size_t)count, sizeof *server);
    if (!server)
        return fl_no_memory(d, "the facts");
    facts->server = server;
    facts->server_count = (uint32_t)count;
    fl_status s = FL_OK;
    for (uint32_t i = 0; !s && i < facts->server_count; i++)
        s = get(&from, i, facts->gpu_count, &server[i], d);
    if (s)
        fl_server_head_free(facts);
    return s;
}

void fl_server_head_free(fl_facts *facts) {
    for (uint32_t i = 0; i < facts->server_count; i++)
        free((uint32_t *)(uintptr_t)facts->server[i].gpu);
    free((fl_server_facts *)(uintptr_t)facts->server);
    facts->server = NULL;
    facts->server_count = 0;
}
