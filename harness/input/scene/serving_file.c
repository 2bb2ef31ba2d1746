#include "harness/input/scene/serving_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool copy(double **to, const double *from, size_t count) {
    *to = malloc(count * sizeof **to);
    if (*to)
        memcpy(*to, from, count * sizeof **to);
    return *to != NULL;
}

static fl_status copy_table(fl_step_table *to, const fl_serving_points *from, fl_diag *d) {
    if (!from->count)
        return FL_OK;
    if (!copy(&to->at, from->at, from->count) || !copy(&to->time_s, from->value, from->count))
        return fl_no_memory(d, "the tables of a step law");
    to->count = from->count;
    return FL_OK;
}

static fl_status copy_grid(fl_step_grid *to, const fl_serving_points *from, fl_diag *d) {
    if (!from->count)
        return FL_OK;
    if (!copy(&to->at, from->at, from->count) || !copy(&to->kv, from->kv, from->count) ||
        !copy(&to->time_s, from->value, from->count))
        return fl_no_memory(d, "the tables of a step law");
    to->count = from->count;
    return FL_OK;
}

enum { BY_TOKENS, BY_SEQUENCE, BY_DECODES, BY_DECODES_BESIDE, BY_CHUNK }; /* tables of a serving file */

fl_status fl_serving_file_law(const fl_serving *s, fl_step_law *law, fl_diag *d) {
    fl_step_law l = fl_step_law_none();
    /* The rows of the file are named as the members of the law. */
#define TAKE(name, standard, least, most) l.name = (__typeof__(l.name))s->number[FL_SERVING_##name];
    FL_SERVING_NUMBERS_ALL(TAKE)
#undef TAKE
    l.sm_count = s->sm_count;
    memcpy(l.sm_mhz, s->sm_mhz, s->sm_count * sizeof *l.sm_mhz);
    fl_status status = copy_table(&l.by_tokens, &s->table[BY_TOKENS], d);
    if (!status)
        status = copy_table(&l.by_sequence, &s->table[BY_SEQUENCE], d);
    if (!status)
        status = copy_grid(&l.by_decodes, &s->table[BY_DECODES], d);
    if (!status)
        status = copy_grid(&l.by_decodes_beside, &s->table[BY_DECODES_BESIDE], d);
    if (!status)
        status = copy_grid(&l.by_chunk, &s->table[BY_CHUNK], d);
    if (!status && fl_step_law_check(&l) != FL_MODEL_OK)
        status = fl_fail(d, FL_BAD_INPUT, s->file, 0, 0,
                         "its numbers are no law of a step, expected times that are positive for every batch");
    if (status)
        fl_step_law_free(&l);
    *law = l;
    return status;
}

fl_status fl_serving_file_rules(const fl_serving *s, uint64_t kv_blocks, fl_batching_rules *rules, fl_diag *d) {
    const uint64_t blocks = kv_blocks ? kv_blocks : s->kv_blocks;
    if (!blocks)
        return fl_fail(d, FL_BAD_INPUT, s->file, fl_head_line(&s->head, "kv_blocks"), 0,
                       "how many KV blocks the server has is not known, expected '# kv_blocks: N' or --kv-blocks N");
    *rules = fl_batching_defaults();
    rules->max_seqs = s->max_seqs;
    rules->token_budget = s->token_budget;
    rules->block_tokens = s->block_tokens;
    rules->kv_blocks = blocks;
    rules->max_model_len = s->max_model_len;
    rules->chunked_prefill = s->chunked_prefill;
    rules->prefix_cache = s->prefix_cache;
    rules->async_scheduling = s->async_scheduling;
    return FL_OK;
}

/* kv: NULL of a table. */
static fl_status take_points(fl_serving_points *to, const double *at, const double *kv, const double *time_s,
                             size_t count, fl_diag *d) {
    fl_status s = FL_OK;
    to->count = 0;
    for (size_t i = 0; !s && i < count; i++)
        s = fl_serving_add_point(to, at[i], kv ? kv[i] : 0, time_s[i], d);
    return s;
}

fl_status fl_serving_file_take(fl_serving *s, const fl_step_law *law, fl_diag *d) {
#define PUT(name, standard, least, most) s->number[FL_SERVING_##name] = (double)law->name;
    FL_SERVING_NUMBERS_ALL(PUT)
#undef PUT
    s->sm_count = law->sm_count;
    memcpy(s->sm_mhz, law->sm_mhz, law->sm_count * sizeof *s->sm_mhz);
    const fl_step_table *table[] = {&law->by_tokens, &law->by_sequence};
    const fl_step_grid *grid[] = {&law->by_decodes, &law->by_decodes_beside, &law->by_chunk};
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < 2; i++)
        status = take_points(&s->table[BY_TOKENS + i], table[i]->at, NULL, table[i]->time_s, table[i]->count, d);
    for (size_t i = 0; !status && i < 3; i++)
        status = take_points(&s->table[BY_DECODES + i], grid[i]->at, grid[i]->kv, grid[i]->time_s, grid[i]->count, d);
    return status;
}

char *fl_serving_clocks_text(const fl_step_law *law, char *buf, size_t size) {
    if (law->sm_count < 2) {
        snprintf(buf, size,
                 "clocks were not measured: compute is assumed to go as 1/SM clock, memory as 1/memory clock%s",
                 law->ref_sm_mhz > 0 ? "" : ", from a clock that is not known");
        return buf;
    }
    int n = snprintf(buf, size, "clocks were measured on:");
    for (uint32_t i = 0; i < law->sm_count && n >= 0 && (size_t)n < size; i++)
        n += snprintf(buf + n, size - (size_t)n, "%s %g", i ? "," : "", law->sm_mhz[i]);
    if (n >= 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, " MHz");
    return buf;
}

char *fl_serving_beyond_text(const fl_step_law *law, uint32_t token_budget, char *buf, size_t size) {
    const fl_step_table *t = &law->by_tokens;
    *buf = '\0';
    if (t->count && t->at[t->count - 1] < token_budget)
        snprintf(buf, size,
                 "steps of more than %g tokens were not measured, and the budget allows %u: their time is taken "
                 "proportional to the tokens",
                 t->at[t->count - 1], token_budget);
    return buf;
}
