/* The scheduler: which requests compute how many tokens in which step, by the rules of serving.h. */
#include "sim/serving/inside.h"

#include "models/laws/laws.h"
#include "sim/serving/serving.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static void fl_batch_settle(fl_batching *b);

/* Rules and requests that no server could work with, told before the run. */

static fl_status fl_batch_check_rules(const fl_batching_rules *r, fl_diag *d) {
    const struct {
        const char *name;
        uint64_t value;
    } row[] = {{"max_seqs", r->max_seqs},
               {"token_budget", r->token_budget},
               {"block_tokens", r->block_tokens},
               {"kv_blocks", r->kv_blocks}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!row[i].value)
            return fl_refuse(d, "%s of a server is 0, expected at least 1", row[i].name);
    return FL_OK;
}

fl_status fl_batching_check(const fl_batching_rules *rules, const fl_requests *requests, fl_diag *d) {
    fl_status s = fl_batch_check_rules(rules, d);
    if (!s && requests->count > FL_REQUESTS_MOST)
        s = fl_refuse(d, "%zu requests, expected at most %u", requests->count, (unsigned)FL_REQUESTS_MOST);
    for (size_t i = 0; !s && i < requests->count; i++) {
        const fl_request_row *q = &requests->row[i];
        const uint64_t tokens = (uint64_t)q->prompt_tokens + q->output_tokens, cached = tokens - 1,
                       blocks = (cached + rules->block_tokens - 1) / rules->block_tokens;
        if (rules->max_model_len && tokens > rules->max_model_len)
            s = fl_fail(d, FL_BAD_INPUT, requests->file, q->line, q->column,
                        "prompt_tokens is %" PRIu32 " with %" PRIu32 " output_tokens, %" PRIu64
                        " in all, expected at most the server's max_model_len, %" PRIu64,
                        q->prompt_tokens, q->output_tokens, tokens, rules->max_model_len);
        else if (blocks > rules->kv_blocks)
            s = fl_fail(d, FL_BAD_INPUT, requests->file, q->line, q->column,
                        "prompt_tokens is %" PRIu32 " with %" PRIu32 " output_tokens: %" PRIu64 " KV blocks of %" PRIu32
                        " tokens, expected at most the server's %" PRIu64,
                        q->prompt_tokens, q->output_tokens, blocks, rules->block_tokens, rules->kv_blocks);
        else if (!rules->chunked_prefill && cached > rules->token_budget)
            s = fl_fail(d, FL_BAD_INPUT, requests->file, q->line, q->column,
                        "prompt_tokens is %" PRIu32 " with %" PRIu32
                        " output_tokens: without chunked prefill they must fit into one step, expected at most "
                        "the server's token_budget and one, %" PRIu64,
                        q->prompt_tokens, q->output_tokens, (uint64_t)rules->token_budget + 1);
    }
    return s;
}

/* A server's requests, and the steps composed of them (sim/serving/serving.h). */

enum { TOKENS = 2048, SEQUENCES = 256, BLOCK = 16 };

fl_batching_rules fl_batching_defaults(void) {
    return (fl_batching_rules){.max_seqs = SEQUENCES,
                               .token_budget = TOKENS,
                               .block_tokens = BLOCK,
                               .chunked_prefill = true,
                               .prefix_cache = true};
}

/* Blocks for so many tokens. */
static uint32_t blocks_for(const fl_batching *b, uint32_t tokens) {
    return (uint32_t)(((uint64_t)tokens + b->rules.block_tokens - 1) / b->rules.block_tokens);
}

static const fl_request_row *row_of(const fl_batching *b, uint32_t r) { return &b->requests->row[r]; }

/* Tokens that a request has: its prompt, and what it has put out. */
static uint32_t tokens_of(const fl_batching *b, uint32_t r) { return row_of(b, r)->prompt_tokens + b->of[r].output; }

/* ---- beginning and end ---- */

/* More blocks than all requests together could fill need not be there to be looked at. */
static uint32_t blocks_at_most(const fl_batching_rules *rules, const fl_requests *requests) {
    uint64_t all = 1;
    for (size_t i = 0; i < requests->count && all < rules->kv_blocks; i++)
        all += ((uint64_t)requests->row[i].prompt_tokens + requests->row[i].output_tokens) / rules->block_tokens + 1;
    const uint64_t n = all < rules->kv_blocks ? all : rules->kv_blocks;
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX - 1;
}

static void *some(size_t count, size_t size) { return calloc(count ? count : 1, size); }

fl_status fl_batching_new(fl_batching **out, const fl_batching_rules *rules, const fl_requests *requests, fl_diag *d) {
    fl_batching *b = *out = NULL;
    fl_status s = fl_batch_check_rules(rules, d);
    if (s)
        return s;
    if (!(b = calloc(1, sizeof *b)))
        return fl_no_memory(d, "a server");
    b->rules = *rules;
    b->requests = requests;
    b->most = requests->count < rules->max_seqs ? (uint32_t)requests->count : rules->max_seqs;
    for (size_t i = 0; rules->prefix_cache && !b->shares && i < requests->count; i++)
        b->shares = requests->row[i].cached_tokens >= rules->block_tokens;
    b->of = some(requests->count, sizeof *b->of);
    b->preempted = some(b->most, sizeof *b->preempted);
    b->preempted_room = b->most;
    b->running = some(b->most, sizeof *b->running);
    b->held = some(b->most, sizeof *b->held);
    b->part = some(b->most, sizeof *b->part);
    s = b->of && b->preempted && b->running && b->held && b->part
            ? fl_kv_open(&b->kv, blocks_at_most(rules, requests), d)
            : fl_no_memory(d, "the requests of a server");
    if (s)
        fl_batching_free(b);
    else
        *out = b;
    return s;
}

void fl_batching_free(fl_batching *b) {
    if (!b)
        return;
    for (size_t i = 0; b->of && i < b->requests->count; i++)
        free(b->of[i].place);
    fl_kv_close(&b->kv);
    free(b->of);
    free(b->preempted);
    free(b->queue);
    free(b->running);
    free(b->landed);
    free(b->held);
    free(b->part);
    free(b->lenders);
    free(b);
}

/* ---- the waiting queue ---- */

static bool anybody_waits(const fl_batching *b) { return b->preempted_count || b->queue_from < b->queue_count; }

static uint32_t first_waiting(const fl_batching *b) {
    return b->preempted_count ? b->preempted[b->preempted_count - 1] : b->queue[b->queue_from];
}

static bool make_place(const fl_batching *b, uint32_t request) {
    const fl_request_row *row = row_of(b, request);
    fl_batch_request *q = &b->of[request];
    if (!q->place)
        q->place = malloc(blocks_for(b, row->prompt_tokens + row->output_tokens - 1) * sizeof *q->place);
    return q->place != NULL;
}

fl_status fl_batching_arrive(fl_batching *b, uint32_t request, fl_diag *d) {
    fl_batch_request *q = &b->of[request];
    const bool again = q->state == FL_BATCH_DONE; /* who lends and borrows is settled then */
    if (fl_grow(&b->queue, &b->queue_room, b->queue_count + 1, sizeof *b->queue) || !make_place(b, request))
        return fl_no_memory(d, "a request that arrives");
    q->lender = FL_BATCH_NONE;
    const fl_status s = b->shares && !again ? fl_batch_lend(b, request, d) : FL_OK;
    if (s) {
        free(q->place);
        q->place = NULL;
        return s;
    }
    if (!anybody_waits(b)) /* who waits already is blocked for the rest of the row, and he is in front of us */
        b->steady = 0;
    q->state = FL_BATCH_WAITING;
    b->queue[b->queue_count++] = request;
    b->count.arrived++;
    return FL_OK;
}

fl_status fl_batching_arrive_again(fl_batching *b, uint32_t request, uint32_t output, fl_diag *d) {
    b->of[request].output = output;
    b->of[request].computed = 0;
    return fl_batching_arrive(b, request, d);
}

/* ---- transfers ---- */

static void give_back(fl_batching *b, fl_batch_request *q) {
    for (uint32_t i = q->blocks; i-- > 0;)
        fl_kv_give(&b->kv, q->place[i]);
    q->blocks = b->rules.prefix_cache ? q->computed / b->rules.block_tokens : 0;
}

fl_status fl_batching_reserve(fl_batching *b, uint32_t request, uint32_t context, uint32_t output, bool *fits) {
    fl_batch_request *q = &b->of[request];
    const uint32_t need = blocks_for(b, context + 1);
    *fits = !b->preempted_count && need <= fl_kv_free(&b->kv);
    if (*fits) { /* a row of steps may have taken blocks that are not accounted yet */
        fl_batch_settle(b);
        *fits = need <= fl_kv_free(&b->kv);
    }
    if (!*fits)
        return FL_OK;
    if (!make_place(b, request))
        return FL_NO_MEMORY;
    for (q->blocks = 0; q->blocks < need; q->blocks++)
        q->place[q->blocks] = fl_kv_take(&b->kv);
    q->computed = context;
    q->output = output;
    q->lender = FL_BATCH_NONE;
    b->steady = 0;
    return FL_OK;
}

void fl_batching_cancel(fl_batching *b, uint32_t request) {
    fl_batch_request *q = &b->of[request];
    give_back(b, q);
    free(q->place);
    q->place = NULL;
    q->blocks = q->computed = 0;
}

fl_status fl_batching_land(fl_batching *b, uint32_t request, fl_diag *d) {
    if (fl_grow(&b->landed, &b->landed_room, b->landed_count + 1, sizeof *b->landed) ||
        fl_grow(&b->preempted, &b->preempted_room, b->most + b->landed_count + 1, sizeof *b->preempted))
        return fl_no_memory(d, "a request whose KV has moved");
    b->of[request].state = FL_BATCH_WAITING;
    b->landed[b->landed_count++] = request;
    b->count.arrived++;
    b->steady = 0;
    return FL_OK;
}

const uint32_t *fl_batching_held(const fl_batching *b, size_t *count) {
    *count = b->held_count;
    return b->held;
}

bool fl_batching_is_held(const fl_batching *b, uint32_t request) { return b->of[request].state == FL_BATCH_HELD; }

uint32_t fl_batching_context(const fl_batching *b, uint32_t request) { return b->of[request].computed; }

/* ---- one step ---- */

static void preempt_last(fl_batching *b) {
    const uint32_t r = b->running[--b->running_count];
    fl_batch_request *q = &b->of[r];
    b->count.lost_tokens += q->computed;
    b->count.preemptions++;
    give_back(b, q);
    q->computed = 0;
    q->preemptions++;
    q->state = FL_BATCH_WAITING;
    b->preempted[b->preempted_count++] = r;
    b->lost++;
}

/* Request r computes `tokens` tokens in this step: takes the blocks for them, which must be free. */
static void add_part(fl_batching *b, uint32_t r, uint32_t tokens, bool admitted) {
    fl_batch_request *q = &b->of[r];
    const uint32_t has = tokens_of(b, r), context = q->computed, need = blocks_for(b, context + tokens);
    const bool emits = context + tokens == has, prompt = !q->output || has - context > 1;
    while (q->blocks < need)
        q->place[q->blocks++] = fl_kv_take(&b->kv);
    q->computed += tokens;
    b->part[b->part_count++] = (fl_batch_part){.request = r,
                                               .tokens = tokens,
                                               .context = context,
                                               .output = q->output,
                                               .prompt = prompt,
                                               .admitted = admitted,
                                               .emits = emits,
                                               .first = emits && !q->output,
                                               .last = emits && q->output + 1 == row_of(b, r)->output_tokens};
    if (prompt) {
        fl_step_add_prompt(&b->shape, tokens, context);
        b->count.prompt_tokens += tokens;
    } else {
        fl_step_add_decode(&b->shape, context);
        b->count.decode_tokens++;
    }
}

/* Rules 1 and 2. Returns what is left of the budget. */
static uint32_t compose_running(fl_batching *b) {
    uint32_t budget = b->rules.token_budget;
    for (uint32_t i = 0; i < b->running_count && budget; i++) {
        const uint32_t r = b->running[i];
        const fl_batch_request *q = &b->of[r];
        const uint32_t wants = tokens_of(b, r) - q->computed, tokens = wants < budget ? wants : budget;
        const uint32_t need = blocks_for(b, q->computed + tokens) - q->blocks;
        while (need > fl_kv_free(&b->kv) && i < b->running_count)
            preempt_last(b);
        if (i == b->running_count) /* it was the last itself */
            break;
        add_part(b, r, tokens, false);
        budget -= tokens;
    }
    return budget;
}

/* The first `found` of its blocks are those at `place`. */
static void admit(fl_batching *b, uint32_t r, const fl_kv_place *place, uint32_t found, uint32_t tokens) {
    fl_batch_request *q = &b->of[r];
    if (b->preempted_count)
        b->preempted_count--;
    else
        b->queue_from++;
    for (uint32_t i = 0; i < found; i++) {
        q->place[i] = place[i];
        fl_kv_share(&b->kv, place[i]);
    }
    q->blocks = found;
    q->computed = found * b->rules.block_tokens;
    q->state = FL_BATCH_RUNNING;
    b->running[b->running_count++] = r;
    b->count.admissions++;
    b->count.cached_tokens += q->computed;
    add_part(b, r, tokens, true);
}

/* Add the requests whose KV was transferred from another server. A block for the next token of each is reserved
 * already. Return what is left of the budget. */
static uint32_t compose_landed(fl_batching *b, uint32_t budget) {
    while (b->landed_from < b->landed_count && budget && b->running_count < b->most) {
        const uint32_t r = b->landed[b->landed_from++];
        b->of[r].state = FL_BATCH_RUNNING;
        b->running[b->running_count++] = r;
        b->count.admissions++;
        add_part(b, r, 1, true);
        budget--;
    }
    return budget;
}

/* Rule 3. */
static void compose_waiting(fl_batching *b, uint32_t budget) {
    while (anybody_waits(b) && budget && b->running_count < b->most) {
        const uint32_t r = first_waiting(b);
        uint32_t idle = 0;
        const fl_kv_place *place = NULL;
        const uint32_t found = b->rules.prefix_cache ? fl_batch_find(b, r, &place, &idle) : 0;
        const uint32_t context = found * b->rules.block_tokens, wants = tokens_of(b, r) - context;
        const uint32_t tokens = wants < budget ? wants : budget, need = blocks_for(b, context + tokens) - found;
        if ((tokens < wants && !b->rules.chunked_prefill) || (uint64_t)need + idle > fl_kv_free(&b->kv))
            break;
        admit(b, r, place, found, tokens);
        budget -= tokens;
    }
}

/* Steps that will certainly follow this one with the same parts: nobody was admitted or preempted, so that whoever
 * waits finds even less room in them; each part decodes, and none is finished before the last of these steps; and there
 * are blocks for all of them. */
static uint32_t steps_that_follow(const fl_batching *b) {
    if (b->lost || b->shape.decodes != b->running_count || b->rules.hands_over)
        return 0;
    uint32_t steps = UINT32_MAX;
    for (uint32_t i = 0; i < b->part_count; i++) {
        const fl_batch_part *p = &b->part[i];
        const uint32_t left = row_of(b, p->request)->output_tokens - p->output - 1;
        if (p->admitted)
            return 0;
        steps = left < steps ? left : steps;
    }
    const uint64_t room = (uint64_t)(fl_kv_free(&b->kv) / b->part_count) * b->rules.block_tokens;
    return room < steps ? (uint32_t)room : steps;
}

bool fl_batching_begin(fl_batching *b, fl_step_shape *shape) {
    if (b->steady) {
        b->steady--;
        b->behind++;
        b->shape.kv_read += b->part_count;
        b->shape.kv_decode += b->part_count;
        b->same = true;
        b->count.decode_tokens += b->part_count;
    } else {
        fl_batch_settle(b);
        b->shape = (fl_step_shape){0};
        b->part_count = b->lost = 0;
        const uint32_t budget = compose_running(b);
        if (!b->lost)
            compose_waiting(b, compose_landed(b, budget));
        b->same = false;
        b->settled = false;
        if (b->part_count) {
            b->steady = steps_that_follow(b);
            b->settled = b->steady > 0;
        }
    }
    *shape = b->shape;
    b->count.steps += b->part_count > 0;
    return b->part_count > 0;
}

static void finish(fl_batching *b, uint32_t r) {
    fl_batch_request *q = &b->of[r];
    give_back(b, q);
    q->state = FL_BATCH_DONE;
    b->count.finished++;
    fl_batch_part_with(b, r);
}

static void hold(fl_batching *b, uint32_t r) {
    b->of[r].state = FL_BATCH_HELD;
    b->held[b->held_count++] = r;
    b->count.held++;
}

void fl_batching_release(fl_batching *b, uint32_t request) {
    b->count.held--;
    finish(b, request);
}

void fl_batching_end(fl_batching *b) {
    b->held_count = 0;
    if (b->steady) {
        b->unseen++;
        b->count.output_tokens += b->part_count;
        return;
    }
    fl_batch_settle(b);
    bool finished = false;
    for (uint32_t i = 0; i < b->part_count; i++) {
        const fl_batch_part *p = &b->part[i];
        if (!p->emits)
            continue;
        b->of[p->request].output++;
        b->count.output_tokens++;
        if (p->last)
            finish(b, p->request);
        else if (b->rules.hands_over)
            hold(b, p->request);
        finished |= p->last || b->rules.hands_over;
    }
    if (!finished)
        return;
    uint32_t left = 0;
    for (uint32_t i = 0; i < b->running_count; i++)
        if (b->of[b->running[i]].state == FL_BATCH_RUNNING)
            b->running[left++] = b->running[i];
    b->running_count = left;
}

/* Brings parts, requests and blocks up to date. */
/* Blocks are taken step by step, and in each in the order of the parts, as if every step had done so itself. */
static void fl_batch_settle(fl_batching *b) {
    if (!b->behind && !b->unseen)
        return;
    for (uint32_t s = 0; s < b->behind; s++)
        for (uint32_t i = 0; i < b->part_count; i++) {
            fl_batch_request *q = &b->of[b->part[i].request];
            if (q->computed++ == q->blocks * b->rules.block_tokens)
                q->place[q->blocks++] = fl_kv_take(&b->kv);
        }
    for (uint32_t i = 0; i < b->part_count; i++) {
        fl_batch_part *p = &b->part[i];
        fl_batch_request *q = &b->of[p->request];
        const fl_request_row *row = row_of(b, p->request);
        q->output += b->unseen;
        p->context = q->computed - 1;
        p->output = q->computed - row->prompt_tokens;
        p->last = p->output + 1 == row->output_tokens;
    }
    b->behind = b->unseen = 0;
}

/* ---- what others may know ---- */

const fl_batch_part *fl_batching_parts(fl_batching *b, size_t *count) {
    fl_batch_settle(b);
    *count = b->part_count;
    return b->part;
}

const uint32_t *fl_batching_preempted(const fl_batching *b, size_t *count) {
    *count = b->lost;
    return b->lost ? b->preempted + b->preempted_count - b->lost : NULL;
}

uint32_t fl_batching_steady(const fl_batching *b) { return b->settled ? b->steady + 1 : 0; }

bool fl_batching_same(const fl_batching *b) { return b->same; }

fl_batching_counts fl_batching_count(fl_batching *b) {
    fl_batch_settle(b);
    fl_batching_counts c = b->count;
    c.waiting = (uint32_t)(b->queue_count - b->queue_from + b->landed_count - b->landed_from) + b->preempted_count;
    c.running = b->running_count;
    c.oldest_waiting = anybody_waits(b)                   ? first_waiting(b)
                       : b->landed_from < b->landed_count ? b->landed[b->landed_from]
                                                          : UINT32_MAX;
    c.blocks_used = b->kv.used;
    return c;
}

uint32_t fl_batching_preemptions(const fl_batching *b, uint32_t request) { return b->of[request].preemptions; }

uint32_t fl_batching_output(fl_batching *b, uint32_t request) {
    fl_batch_settle(b);
    return b->of[request].output;
}
