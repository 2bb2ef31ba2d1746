/* Whose tokens and whose energy those of a step are. The steps of a row, in which the same requests decode one token
 * each and none ends, cost the same however many requests they are: what each of them gets is summed up once. */
#include "sim/serving/inside.h"

void fl_step_taken(fl_engines *v, fl_engine *e) {
    if (!e->shape.prompts) /* who is taken from the queue computes a part of its prompt */
        return;
    size_t count;
    const fl_batch_part *part = fl_batching_parts(e->batching, &count);
    for (size_t i = 0; i < count; i++) {
        fl_served *s = &v->served[part[i].request];
        if (!part[i].admitted || s->taken_ps != FL_TIME_NEVER)
            continue;
        s->taken_ps = e->begin_ps;
        s->cached_tokens = part[i].context;
    }
}

/* ---- tokens ---- */

/* `count` tokens at `t`, each so long after the one of its request before. True where they miss the target. */
static bool note_tbt(fl_engines *v, fl_engine *e, int64_t t, int64_t tbt, uint32_t count) {
    const bool missed = tbt > v->tbt_ps;
    fl_tbt_run *before = e->tbt_runs ? &e->tbt[e->tbt_runs - 1] : NULL;
    e->tbt_count += count;
    e->tbt_sum_ps += (fl_wide)tbt * count;
    e->tbt_missed += missed ? count : 0;
    if (before && before->end_ps == t && before->tbt_ps == tbt)
        before->count += count;
    else if (e->tbt_runs == e->tbt_room && fl_grow(&e->tbt, &e->tbt_room, e->tbt_runs + 1, sizeof *e->tbt))
        v->status = FL_NO_MEMORY;
    else
        e->tbt[e->tbt_runs++] = (fl_tbt_run){t, tbt, count};
    return missed;
}

static void first_token(fl_engines *v, fl_engine *e, uint32_t request, int64_t t) {
    fl_served *s = &v->served[request];
    const int64_t ttft = t - s->arrival_ps;
    s->first_ps = t;
    s->ttft_missed = ttft > v->ttft_ps;
    if (e->ttft_count == e->first_room && fl_grow(&e->first, &e->first_room, e->ttft_count + 1, sizeof *e->first)) {
        v->status = FL_NO_MEMORY;
        return;
    }
    e->first[e->ttft_count++] = request;
    e->ttft_sum_ps += ttft;
    e->ttft_missed += s->ttft_missed;
    e->prompt_tokens += v->u->requests->row[request].prompt_tokens;
    e->cached_tokens += s->cached_tokens;
}

static void later_token(fl_engines *v, fl_engine *e, uint32_t request, int64_t t) {
    fl_served *s = &v->served[request];
    const int64_t tbt = t - v->last_ps[request];
    s->tbt_missed += note_tbt(v, e, t, tbt, 1);
    s->worst_tbt_ps = tbt > s->worst_tbt_ps ? tbt : s->worst_tbt_ps;
}

static void put_out(fl_engines *v, fl_engine *e, const fl_batch_part *part, int64_t t) {
    e->tokens++;
    if (part->first)
        first_token(v, e, part->request, t);
    else
        later_token(v, e, part->request, t);
    v->last_ps[part->request] = t;
    if (!part->last)
        return;
    v->served[part->request].done_ps = t;
    e->last = part->request;
    e->finished++;
    v->finished++;
}

/* ---- energy ---- */

/* What the prompts of a step draw of it. In a step of both kinds: as the times that it would take with the prompts
 * alone and with the decodes alone, at the first rank's clocks. */
static fl_wide prompts_fj(const fl_engine *e) {
    const fl_step_shape *all = &e->shape;
    if (!all->decodes || !all->prompts)
        return all->prompts ? e->step_fj : 0;
    const fl_step_shape prompts = {.tokens = all->prompt_tokens,
                                   .sequences = all->prompts,
                                   .prompts = all->prompts,
                                   .prompt_tokens = all->prompt_tokens,
                                   .pairs = all->pairs,
                                   .kv_read = all->kv_read - all->kv_decode};
    const fl_step_shape decodes = {.tokens = all->decodes,
                                   .sequences = all->decodes,
                                   .decodes = all->decodes,
                                   .kv_read = all->kv_decode,
                                   .kv_decode = all->kv_decode};
    const int64_t p = fl_step_alone_ps(e, &prompts), d = fl_step_alone_ps(e, &decodes);
    return e->step_fj * p / ((fl_wide)p + d);
}

/* Of a sum to be shared by equal parts: one part. What does not divide is carried on. */
static fl_wide each_of(fl_engine *e, fl_wide fj, uint32_t count) {
    fj += e->carry_fj;
    const fl_wide each = fj == (int64_t)fj ? (int64_t)fj / count : fj / count;
    e->carry_fj = fj - each * count;
    return each;
}

void fl_step_settle(fl_engines *v, fl_engine *e) {
    for (uint32_t i = 0; e->row_steps && i < e->members; i++) {
        fl_served *s = &v->served[e->member[i]];
        s->decode_fj += e->row_fj;
        s->tbt_missed += e->row_missed;
        s->worst_tbt_ps = e->row_worst_ps > s->worst_tbt_ps ? e->row_worst_ps : s->worst_tbt_ps;
        v->last_ps[e->member[i]] = e->row_ps;
    }
    e->row_steps = 0;
    e->row_fj = 0;
    e->row_worst_ps = 0;
    e->row_missed = 0;
}

/* ---- the two ways ---- */

static void account_row(fl_engines *v, fl_engine *e) {
    const int64_t t = e->end_ps, tbt = t - e->row_ps;
    e->row_steps++;
    e->row_missed += note_tbt(v, e, t, tbt, e->members);
    e->row_worst_ps = tbt > e->row_worst_ps ? tbt : e->row_worst_ps;
    e->row_fj += each_of(e, e->step_fj, e->members);
    e->row_ps = t;
    e->tokens += e->members;
}

static void account_parts(fl_engines *v, fl_engine *e) {
    size_t count;
    const fl_batch_part *part = fl_batching_parts(e->batching, &count);
    const fl_wide prompts = prompts_fj(e);
    const fl_wide each = e->shape.decodes ? each_of(e, e->step_fj - prompts, e->shape.decodes) : 0;
    fl_wide given = 0;
    uint64_t tokens = 0;
    uint32_t out = 0;
    for (size_t i = 0; i < count; i++) {
        fl_served *s = &v->served[part[i].request];
        if (part[i].prompt) {
            tokens += part[i].tokens;
            const fl_wide up_to = prompts * (fl_wide)tokens / e->shape.prompt_tokens;
            s->prefill_fj += up_to - given;
            given = up_to;
        } else {
            s->decode_fj += each;
        }
        if (part[i].emits)
            put_out(v, e, &part[i], e->end_ps);
        out += part[i].emits;
        e->member[i] = part[i].request;
    }
    e->members = out == count ? out : 0;
    e->row_ps = e->end_ps;
}

void fl_step_account(fl_engines *v, fl_engine *e) {
    e->steps++;
    e->computed += e->shape.tokens;
    e->steps_fj += e->step_fj;
    if (e->members && fl_batching_same(e->batching) && fl_batching_steady(e->batching) > 1) {
        account_row(v, e);
        return;
    }
    fl_step_settle(v, e);
    account_parts(v, e);
}
