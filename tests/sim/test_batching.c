/* The scheduler of a serving engine, by hand. */
#include "models/laws/laws.h"
#include "sim/serving/serving.h"
#include "sim/serving/inside.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"
#include "tests/support/suite.h"

#include <inttypes.h>

/* ---- making requests ---- */

static void add(fl_requests *r, int64_t t_ns, uint32_t prompt, uint32_t output, uint32_t cached) {
    fl_diag d = {0};
    const fl_request_row row = {
        .t_ns = t_ns, .prompt_tokens = prompt, .output_tokens = output, .cached_tokens = cached};
    if (fl_requests_add(r, &row, &d))
        CU_FAIL_FATAL("no memory");
}

static fl_batching *open_server(const fl_batching_rules *rules, const fl_requests *r) {
    fl_batching *b = NULL;
    fl_diag d = {0};
    if (fl_batching_check(rules, r, &d) || fl_batching_new(&b, rules, r, &d)) {
        printf("\n    %s", d.message);
        CU_FAIL_FATAL("cannot open the server");
    }
    return b;
}

static void arrive(fl_batching *b, uint32_t r) { CU_ASSERT_FATAL(fl_batching_arrive(b, r, NULL) == FL_OK); }

/* ---- by hand ---- */

/* What the parts of a step are to be: "request:tokens@context" and the flags p(rompt) a(dmitted) e(mits) f(irst)
 * l(ast), one after the other. */
static void expect_step(fl_batching *b, const char *parts) {
    char text[512];
    size_t used = 0, count = 0;
    fl_step_shape shape;
    text[0] = '\0';
    const bool any = fl_batching_begin(b, &shape);
    const fl_batch_part *p = fl_batching_parts(b, &count);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u:%u@%u%s%s%s%s%s", i ? " " : "", p[i].request,
                                 p[i].tokens, p[i].context, p[i].prompt ? "p" : "", p[i].admitted ? "a" : "",
                                 p[i].emits ? "e" : "", p[i].first ? "f" : "", p[i].last ? "l" : "");
    FL_CHECK(any == (*parts != '\0') && !strcmp(text, parts), "step '%s', expected '%s'", text, parts);
    if (any)
        fl_batching_end(b);
}

static void expect_counts(fl_batching *b, uint32_t waiting, uint32_t running, uint64_t used) {
    const fl_batching_counts c = fl_batching_count(b);
    FL_CHECK(c.waiting == waiting && c.running == running && c.blocks_used == used,
             "%u waiting, %u running, %" PRIu64 " blocks, expected %u, %u, %" PRIu64, c.waiting, c.running,
             c.blocks_used, waiting, running, used);
}

static void test_one_request(void) {
    fl_requests r = {0};
    add(&r, 0, 20, 4, 0);
    fl_batching_rules rules = fl_batching_defaults();
    rules.kv_blocks = 2;
    fl_batching *b = open_server(&rules, &r);
    expect_step(b, "");
    arrive(b, 0);
    expect_counts(b, 1, 0, 0);
    expect_step(b, "0:20@0paef");
    expect_step(b, "0:1@20e");
    expect_step(b, "0:1@21e");
    expect_counts(b, 0, 1, 2);
    expect_step(b, "0:1@22el"); /* 23 tokens in the cache: the last one put out is never computed */
    expect_counts(b, 0, 0, 0);
    expect_step(b, "");
    fl_batching_free(b);
    fl_requests_free(&r);
}

/* A budget of 10: decodes come first, prompts are cut. */
static void test_chunks(void) {
    fl_requests r = {0};
    add(&r, 0, 4, 5, 0);
    add(&r, 0, 14, 2, 0);
    add(&r, 0, 3, 1, 0);
    fl_batching_rules rules = {
        .max_seqs = 8, .token_budget = 10, .block_tokens = 4, .kv_blocks = 100, .chunked_prefill = true};
    fl_batching *b = open_server(&rules, &r);
    for (uint32_t i = 0; i < 3; i++)
        arrive(b, i);
    expect_step(b, "0:4@0paef 1:6@0pa");
    expect_step(b, "0:1@4e 1:8@6pef 2:1@0pa");
    expect_step(b, "0:1@5e 1:1@14el 2:2@1pefl");
    expect_step(b, "0:1@6e");
    expect_step(b, "0:1@7el");
    expect_step(b, "");
    fl_batching_free(b);
    /* Whole prompts only: the second does not fit beside the first. */
    rules.chunked_prefill = false;
    rules.token_budget = 15;
    b = open_server(&rules, &r);
    for (uint32_t i = 0; i < 3; i++)
        arrive(b, i);
    expect_step(b, "0:4@0paef");
    expect_step(b, "0:1@4e 1:14@0paef");
    expect_step(b, "0:1@5e 1:1@14el 2:3@0paefl");
    fl_batching_free(b);
    /* One at a time. */
    rules.max_seqs = 1;
    b = open_server(&rules, &r);
    arrive(b, 2);
    arrive(b, 0);
    expect_step(b, "2:3@0paefl");
    expect_step(b, "0:4@0paef");
    fl_batching_free(b);
    fl_requests_free(&r);
}

/* Four blocks of four tokens. Both fill two; the first to need a third one takes those of the other, which starts again
 * when the first is done, with its prompt and its outputs in one chunk. */
static void test_preemption(void) {
    fl_requests r = {0};
    add(&r, 0, 7, 4, 0);
    add(&r, 0, 7, 4, 0);
    add(&r, 0, 1, 1, 0);
    fl_batching_rules rules = {
        .max_seqs = 8, .token_budget = 64, .block_tokens = 4, .kv_blocks = 4, .chunked_prefill = true};
    fl_batching *b = open_server(&rules, &r);
    arrive(b, 0);
    arrive(b, 1);
    expect_step(b, "0:7@0paef 1:7@0paef");
    expect_step(b, "0:1@7e 1:1@7e");
    arrive(b, 2); /* there is room for it in the next step, which admits nobody */
    expect_step(b, "0:1@8e");
    size_t count = 0;
    const uint32_t *gone = fl_batching_preempted(b, &count);
    FL_CHECK(count == 1 && gone[0] == 1 && fl_batching_preemptions(b, 1) == 1, "%zu preempted", count);
    expect_counts(b, 2, 1, 3);
    FL_CHECK(fl_batching_count(b).oldest_waiting == 1, "the preempted one is first");
    FL_CHECK(fl_batching_count(b).lost_tokens == 8, "%" PRIu64 " lost", fl_batching_count(b).lost_tokens);
    expect_step(b, "0:1@9el"); /* 1 needs three blocks and there is one; 2 stands behind it */
    expect_step(b, "1:9@0pae 2:1@0paefl");
    expect_step(b, "1:1@9el");
    expect_step(b, "");
    expect_counts(b, 0, 0, 0);
    fl_batching_free(b);
    /* With a prefix cache it finds its first block again: its second was the first to be taken. */
    rules.prefix_cache = true;
    b = open_server(&rules, &r);
    arrive(b, 0);
    arrive(b, 1);
    expect_step(b, "0:7@0paef 1:7@0paef");
    expect_step(b, "0:1@7e 1:1@7e");
    expect_step(b, "0:1@8e");
    expect_step(b, "0:1@9el");
    expect_step(b, "1:5@4pae");
    FL_CHECK(fl_batching_count(b).cached_tokens == 4, "its own block");
    fl_batching_free(b);
    fl_requests_free(&r);
}

/* The second shares 9 tokens with the first: two whole blocks of four. */
static void test_shared_prefix(void) {
    fl_requests r = {0};
    add(&r, 0, 12, 3, 0);
    add(&r, 0, 10, 1, 9);
    add(&r, 0, 8, 1, 8); /* one token must be computed, so one block of the two is left alone */
    add(&r, 0, 40, 1, 0);
    add(&r, 0, 9, 1, 8);
    fl_batching_rules rules = {.max_seqs = 8,
                               .token_budget = 64,
                               .block_tokens = 4,
                               .kv_blocks = 10,
                               .chunked_prefill = true,
                               .prefix_cache = true};
    fl_batching *b = open_server(&rules, &r);
    arrive(b, 0);
    expect_step(b, "0:12@0paef");
    arrive(b, 1);
    expect_step(b, "0:1@12e 1:2@8paefl");
    arrive(b, 2);
    expect_step(b, "0:1@13el 2:4@4paefl");
    expect_counts(b, 0, 0, 0);
    arrive(b, 3);
    expect_step(b, "3:40@0paefl"); /* takes every block */
    arrive(b, 4);
    expect_step(b, "4:1@8paefl"); /* the youngest prompt of eight tokens is that of 3 */
    expect_step(b, "");
    fl_batching_free(b);
    /* The same two at once: the blocks of a chunk count as soon as the step that computes them is composed. */
    b = open_server(&rules, &r);
    arrive(b, 0);
    arrive(b, 1);
    expect_step(b, "0:12@0paef 1:2@8paefl");
    fl_batching_free(b);
    fl_requests_free(&r);
}

/* ---- refusals ---- */

static void test_refused(void) {
    fl_requests r = {0};
    add(&r, 0, 1, 1, 0);
    add(&r, 0, 50, 15, 0);
    r.file = strdup("r.csv");
    r.row[1].line = 7;
    r.row[1].column = 3;
    const fl_batching_rules good = {
        .max_seqs = 1, .token_budget = 64, .block_tokens = 16, .kv_blocks = 4, .max_model_len = 65};
    static const struct {
        const char *what, *says;
        fl_batching_rules rules;
    } rows[] = {
        {"cache",
         "r.csv:7:3: prompt_tokens is 50 with 15 output_tokens: 4 KV blocks of 16 tokens, expected at most the "
         "server's 3",
         {1, 64, 16, 3, 65, 0, 0, 0}},
        {"length",
         "r.csv:7:3: prompt_tokens is 50 with 15 output_tokens, 65 in all, expected at most the server's "
         "max_model_len, 64",
         {1, 64, 16, 4, 64, 0, 0, 0}},
        {"budget",
         "r.csv:7:3: prompt_tokens is 50 with 15 output_tokens: without chunked prefill they must fit into one step, "
         "expected at most the server's token_budget and one, 64",
         {1, 63, 16, 4, 65, 0, 0, 0}},
        {"no sequences", "max_seqs of a server is 0, expected at least 1", {0, 64, 16, 4, 65, 0, 0, 0}},
        {"no budget", "token_budget of a server is 0, expected at least 1", {1, 0, 16, 4, 65, 0, 0, 0}},
        {"no block", "block_tokens of a server is 0, expected at least 1", {1, 64, 0, 4, 65, 0, 0, 0}},
        {"no blocks", "kv_blocks of a server is 0, expected at least 1", {1, 64, 16, 0, 65, 0, 0, 0}},
    };
    fl_diag d = {0};
    FL_CHECK(fl_batching_check(&good, &r, &d) == FL_OK, "%s", d.message);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2048];
        FL_CHECK(fl_batching_check(&rows[i].rules, &r, &d) == FL_BAD_INPUT &&
                     !strcmp(fl_diag_text(&d, text, sizeof text), rows[i].says),
                 "%s: '%s'", rows[i].what, fl_diag_text(&d, text, sizeof text));
    }
    fl_requests_free(&r);
}

FL_SUITE("batching", {"one request, by hand", test_one_request}, {"budget and chunks, by hand", test_chunks},
         {"preemption, by hand", test_preemption}, {"shared prefixes, by hand", test_shared_prefix},
         {"what could never be served", test_refused})
