#include "harness/input/scene/serving_scene.h"

#include "harness/input/scene/serving_file.h"
#include "traces/import/import.h"

#include <stdlib.h>
#include <string.h>

/* Servers alike, with GPUs one after the other. */
static fl_status make_servers(fl_serving_scene *s, uint32_t count, const fl_batching_rules *rules, fl_diag *d) {
    const uint32_t each = s->stated.tensor_parallel;
    s->gpu = calloc((size_t)count * each + 1, sizeof *s->gpu);
    s->server = calloc((size_t)count + 1, sizeof *s->server);
    s->facts = calloc((size_t)count + 1, sizeof *s->facts);
    if (!s->gpu || !s->server || !s->facts)
        return fl_no_memory(d, "the servers");
    for (uint32_t i = 0; i < count * each; i++)
        s->gpu[i] = i;
    for (uint32_t i = 0; i < count; i++)
        s->server[i] =
            (fl_serving_server){.rules = *rules, .law = &s->law, .gpu = s->gpu + (size_t)i * each, .gpu_count = each};
    s->setup.server = s->server;
    s->setup.server_count = count;
    s->setup.requests = &s->requests;
    fl_serving_facts(&s->setup, s->facts);
    return FL_OK;
}

/* A file that import makes requests of is named as such. */
static fl_status read_requests(const char *path, fl_requests *r, fl_diag *d) {
    const fl_reader *reader = NULL;
    fl_diag none = {0};
    const fl_status s = fl_requests_read(path, r, d);
    if (s == FL_BAD_INPUT && strcmp(path, "-") != 0 && !fl_reader_find(path, NULL, &reader, &none) &&
        !strcmp(reader->name, "azure-llm"))
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "%s, expected a file of foldline-requests: foldline import %s -o requests.csv makes one",
                       reader->what, path);
    return s;
}

fl_status fl_serving_scene_open(const fl_serving_choice *c, fl_serving_scene **out, fl_diag *d) {
    fl_batching_rules rules = {0};
    fl_serving_scene *s = *out = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(c->server)))
        return fl_no_memory(d, "the servers");
    s->law = fl_step_law_none();
    const uint32_t count = (uint32_t)(c->servers ? c->servers : 1);
    fl_status status = fl_serving_read(c->server, &s->stated, d);
    if (!status && (uint64_t)count * s->stated.tensor_parallel > FL_SERVING_GPUS_MAX)
        status = fl_refuse(d, "%u servers of %u GPUs each, expected at most %d GPUs", count, s->stated.tensor_parallel,
                           FL_SERVING_GPUS_MAX);
    if (!status)
        status = fl_serving_file_rules(&s->stated, (uint64_t)c->kv_blocks, &rules, d);
    if (!status && c->token_budget)
        rules.token_budget = (uint32_t)c->token_budget;
    if (!status)
        status = fl_serving_file_law(&s->stated, &s->law, d);
    if (!status)
        status = read_requests(c->requests, &s->requests, d);
    if (!status)
        status = fl_serving_choice_resolve(c, &s->setup, d);
    return status ? status : make_servers(s, count, &rules, d);
}

void fl_serving_scene_free(fl_serving_scene *s) {
    if (!s)
        return;
    fl_step_law_free(&s->law);
    fl_serving_free(&s->stated);
    fl_requests_free(&s->requests);
    free(s->gpu);
    free(s->server);
    free(s->facts);
    free(s->path);
    free(s);
}

uint32_t fl_serving_scene_gpus(const fl_serving_scene *s) { return s->setup.server_count * s->stated.tensor_parallel; }

char *fl_serving_scene_clocks(const fl_serving_scene *s, char *buf, size_t size) {
    const char *gpu = fl_head_get(&s->stated.head, "gpu"), *fitted = fl_head_get(&s->stated.head, "fitted");
    fl_serving_clocks_text(&s->law, buf, size);
    size_t used = strlen(buf);
    if (gpu && used < size)
        used += (size_t)snprintf(buf + used, size - used, "; steps of %.80s", gpu);
    if (fitted && used < size)
        used += (size_t)snprintf(buf + used, size - used, ", law from %.160s", fitted);
    if (used < size && s->law.time_error >= 0)
        used += (size_t)snprintf(buf + used, size - used, ", mean error in time %.2g %% on %s that the fit did not see",
                                 100 * s->law.time_error, s->law.sm_count > 1 ? "clocks" : "batches");
    if (used < size && s->law.power_error >= 0)
        used += (size_t)snprintf(buf + used, size - used, ", in power %.2g %%", 100 * s->law.power_error);
    char beyond[256];
    if (used < size && *fl_serving_beyond_text(&s->law, s->setup.server[0].rules.token_budget, beyond, sizeof beyond))
        snprintf(buf + used, size - used, "; %s", beyond);
    return buf;
}
