/* Rules and requests that no server could work with, told before the run. */
#include "sim/serving/batching_inside.h"

#include <inttypes.h>

fl_status fl_batch_check_rules(const fl_batching_rules *r, fl_diag *d) {
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
