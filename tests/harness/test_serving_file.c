/* Serving files and the tables that servers are fitted to: read, written, turned into laws and rules, refused. */
#include "harness/input/scene/scene.h"
#include "models/laws/laws.h"
#include "sim/serving/serving.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define HEAD "# foldline-serving 1\n# model: m\n# max_seqs: 8\n# token_budget: 64\n# block_tokens: 16\n"
#define COLUMNS "what,at,kv,value\n"
#define LAW "token,,,0.001\n"

static void test_read(void) {
    fl_serving s;
    fl_diag d = {0};
    const char *path =
        fl_temp_text("a.csv", HEAD "# kv_blocks: 100\n# prefix_cache: no\n# tensor_parallel: 2\n" COLUMNS
                                   "host_s,,,0.002\nref_sm_mhz,,,1500\nclock,,,900\nclock,,,1500\n"
                                   "by_tokens,1,,0.01\nby_tokens,8,,0.02\nby_decodes,1,16,0.001\n"
                                   "by_decodes,1,32,0.002\nby_decodes,2,16,0.003\nby_chunk,16,0,0.004\n");
    CU_ASSERT_FATAL(fl_serving_read(path, &s, &d) == FL_OK);
    FL_CHECK(s.max_seqs == 8 && s.token_budget == 64 && s.block_tokens == 16 && s.kv_blocks == 100 &&
                 s.tensor_parallel == 2,
             "limits");
    FL_CHECK(s.chunked_prefill && !s.prefix_cache && s.async_scheduling && !s.max_model_len, "rules");
    FL_CHECK(s.number[FL_SERVING_host_s] == 0.002 && s.number[FL_SERVING_sharpness] == 1 &&
                 s.number[FL_SERVING_time_error] == -1,
             "numbers");
    FL_CHECK(s.sm_count == 2 && s.sm_mhz[1] == 1500, "clocks");
    fl_step_law law;
    fl_batching_rules rules;
    CU_ASSERT_FATAL(fl_serving_file_law(&s, &law, &d) == FL_OK && fl_serving_file_rules(&s, 0, &rules, &d) == FL_OK);
    FL_CHECK(law.host_s == 0.002 && law.by_tokens.count == 2 && law.by_tokens.time_s[1] == 0.02, "the law");
    FL_CHECK(law.by_decodes.count == 3 && law.by_decodes.kv[1] == 32 && law.by_chunk.kv[0] == 0, "its grids");
    FL_CHECK(rules.max_seqs == 8 && rules.kv_blocks == 100 && !rules.prefix_cache, "the rules");
    char text[FL_SERVING_CLOCKS_TEXT];
    FL_CHECK(!strcmp(fl_serving_clocks_text(&law, text, sizeof text), "clocks were measured on: 900, 1500 MHz"), "%s",
             text);
    law.sm_count = 1;
    FL_CHECK(strstr(fl_serving_clocks_text(&law, text, sizeof text), "clocks were not measured"), "%s", text);
    fl_step_law_free(&law);
    fl_serving_free(&s);
}

/* What is written comes back the same. */
static void test_written(void) {
    fl_serving s, back;
    fl_diag d = {0};
    char copy[512];
    CU_ASSERT_FATAL(fl_serving_read(FL_ROOT "/traces/samples/serving/rtx4090-llama3.1-8b.serving.csv", &s, &d) ==
                    FL_OK);
    snprintf(copy, sizeof copy, "%s", fl_temp_path("copy.csv"));
    fl_step_law law;
    CU_ASSERT_FATAL(fl_serving_file_law(&s, &law, &d) == FL_OK);
    CU_ASSERT_FATAL(fl_serving_file_take(&s, &law, &d) == FL_OK);
    CU_ASSERT_FATAL(fl_serving_write(copy, &s, &d) == FL_OK && fl_serving_read(copy, &back, &d) == FL_OK);
    FL_CHECK(!memcmp(s.number, back.number, sizeof s.number), "numbers");
    for (size_t i = 0; i < FL_SERVING_TABLES; i++)
        FL_CHECK(s.table[i].count == back.table[i].count &&
                     !memcmp(s.table[i].value, back.table[i].value, s.table[i].count * sizeof(double)),
                 "table %zu", i);
    FL_CHECK(law.sm_count == 1 && law.by_chunk.count == 96 && law.by_decodes.count == 99, "what the sample holds");
    fl_step_law_free(&law);
    fl_serving_free(&s);
    fl_serving_free(&back);
}

static void test_refused(void) {
    static const struct {
        const char *text;
        int line, column;
        const char *part;
    } rows[] = {
        {"# foldline-serving 1\n# token_budget: 64\n# block_tokens: 16\n" COLUMNS LAW, 0, 0, "no max_seqs"},
        {HEAD "# kv_blocks: many\n" COLUMNS LAW, 6, 0, "kv_blocks is 'many'"},
        {HEAD "# prefix_cache: maybe\n" COLUMNS LAW, 6, 0, "expected yes or no"},
        {HEAD "what,at,value\n", 6, 0, "kv"},
        {HEAD COLUMNS "tokens,,,1\n", 7, 1, "no what 'tokens'"},
        {HEAD COLUMNS LAW "token,,,1\n", 8, 1, "stands in line 7 already"},
        {HEAD COLUMNS "token,,,-1\n", 7, 9, "token"},
        {HEAD COLUMNS "token,3,,1\n", 7, 7, "at of token is '3'"},
        {HEAD COLUMNS "by_tokens,4,,1\nby_tokens,4,,1\n", 8, 11, "expected ascending points"},
        {HEAD COLUMNS "by_tokens,4,7,1\n", 7, 13, "kv of by_tokens"},
        {HEAD COLUMNS "by_decodes,4,,1\n", 7, 14, "kv"},
        {HEAD COLUMNS "clock,,,900\nclock,,,900\n", 8, 9, "expected ascending clocks"},
        {HEAD COLUMNS "reduces,,,1.5\n", 7, 11, "whole number"},
        {HEAD COLUMNS "by_tokens,4,,1\n", 0, 0, "ref_sm_mhz"},
        {HEAD COLUMNS "host_s,,,1\n", 0, 0, "a step's tokens cost no time"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fl_serving s;
        fl_diag d = {0};
        const fl_status status = fl_serving_read(fl_temp_text("bad.csv", rows[i].text), &s, &d);
        FL_CHECK(status == FL_BAD_INPUT && strstr(d.message, rows[i].part), "row %zu: '%s', expected '%s'", i,
                 d.message, rows[i].part);
        FL_CHECK(d.line == rows[i].line && (!rows[i].column || d.column == rows[i].column),
                 "row %zu: line %d, column %d", i, (int)d.line, (int)d.column);
    }
    fl_serving s;
    fl_diag d = {0};
    fl_batching_rules rules;
    CU_ASSERT_FATAL(fl_serving_read(fl_temp_text("ok.csv", HEAD COLUMNS LAW), &s, &d) == FL_OK);
    FL_CHECK(fl_serving_file_rules(&s, 0, &rules, &d) == FL_BAD_INPUT && strstr(d.message, "KV blocks"), "%s",
             d.message);
    FL_CHECK(fl_serving_file_rules(&s, 7, &rules, &d) == FL_OK && rules.kv_blocks == 7, "stated in place of the file");
    fl_serving_free(&s);
}

/* ---- tables of measurements ---- */

static void test_tables(void) {
    fl_layers l;
    fl_attention a;
    fl_step_rows r;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_layers_read(fl_temp_text("l.csv", "# x\ntime_us,layer,tokens\n5,b,2\n3,a,8\n4,b,1\n"), "tokens",
                                   &l, NULL, &d) == FL_OK);
    size_t count = 0;
    const fl_layer_row *row = fl_layers_find(&l, "b", &count);
    FL_CHECK(count == 2 && row && row[0].at == 1 && fabs(row[1].time_s - 5e-6) < 1e-15, "rows of a layer ascend");
    CU_ASSERT(!fl_layers_find(&l, "c", &count) && !count);
    fl_layers_free(&l);
    CU_ASSERT_FATAL(fl_layers_read(fl_temp_text("l.csv", "sm_mhz,power_w,layer,tokens,time_us\n900,,a,8,3\n"
                                                         "800,70,a,8,4\n"),
                                   "tokens", &l, NULL, &d) == FL_OK);
    FL_CHECK(l.count == 2 && l.row[0].sm_mhz == 800 && l.row[0].power_w == 70 && isnan(l.row[1].power_w), "clocks");
    fl_layers_free(&l);
    CU_ASSERT_FATAL(
        fl_attention_read(fl_temp_text("a.csv", "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n16,8,2,32,9.5\n"),
                          &a, NULL, &d) == FL_OK);
    FL_CHECK(a.count == 1 && a.row[0].chunk == 16 && a.row[0].kv_decode == 32 && fabs(a.row[0].time_s - 9.5e-6) < 1e-15,
             "attention");
    fl_attention_free(&a);
    CU_ASSERT_FATAL(fl_step_rows_read(fl_temp_text("s.csv", "phase,sm_mhz,batch,tokens,context_tokens,time_s\n"
                                                            "prefill,900,1,100,0,0.1\ndecode,900,4,4,50,0.02\n"),
                                      &r, NULL, &d) == FL_OK);
    FL_CHECK(r.count == 2 && r.row[0].prefill && isnan(r.row[1].power_w) && r.row[1].context == 50, "steps");
    fl_step_rows_free(&r);
}

static void test_tables_refused(void) {
    static const struct {
        const char *text, *part;
    } layers[] = {{"layer,tokens\na,1\n", "time_us"},
                  {"layer,tokens,time_us\na,1,2\na,1,3\n", "a second row of a at 1 tokens, the first is in line 2"},
                  {"layer,tokens,time_us,sm_mhz\na,1,2,900\na,1,2,800\na,1,3,900\n", "the first is in line 2"},
                  {"layer,tokens,time_us,sm_mhz\na,1,2,\n", "sm_mhz"},
                  {"layer,tokens,time_us,power_w\na,1,2,-1\n", "power_w"},
                  {"layer,tokens,time_us\na,0,2\n", "tokens"},
                  {"layer,tokens,time_us\na,1,0\n", "time_us"},
                  {"layer,tokens,time_us\n,1,2\n", "without a name"},
                  {"layer,tokens,time_us\n", "no rows"}};
    static const struct {
        const char *row, *part;
    } attention[] = {{"0,0,0,0,1", "no part of a step"},
                     {"0,16,1,16,1", "no part of a step"},
                     {"0,0,4,0,1", "no part of a step"},
                     {"16,0,0,16,1", "no part of a step"},
                     {"16,0,0,0,-1", "time_us"}},
      steps[] = {{"idle,900,1,1,0,1,1", "expected prefill or decode"},
                 {"prefill,900,2,4,0,1,1", "expected one prompt"},
                 {"decode,900,2,4,0,1,1", "expected one for each"},
                 {"decode,0,2,2,0,1,1", "sm_mhz"},
                 {"decode,900,2,2,0,nan,1", "time_s"}};
    char text[256];
    for (size_t i = 0; i < COUNT(layers); i++) {
        fl_layers l;
        fl_diag d = {0};
        FL_CHECK(fl_layers_read(fl_temp_text("bad.csv", layers[i].text), "tokens", &l, NULL, &d) == FL_BAD_INPUT &&
                     strstr(d.message, layers[i].part),
                 "layers %zu: '%s'", i, d.message);
    }
    for (size_t i = 0; i < COUNT(attention); i++) {
        fl_attention a;
        fl_diag d = {0};
        snprintf(text, sizeof text, "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n%s\n", attention[i].row);
        FL_CHECK(fl_attention_read(fl_temp_text("bad.csv", text), &a, NULL, &d) == FL_BAD_INPUT &&
                     strstr(d.message, attention[i].part) && d.line == 2,
                 "attention %zu: '%s'", i, d.message);
    }
    for (size_t i = 0; i < COUNT(steps); i++) {
        fl_step_rows r;
        fl_diag d = {0};
        snprintf(text, sizeof text, "phase,sm_mhz,batch,tokens,context_tokens,time_s,power_w\n%s\n", steps[i].row);
        FL_CHECK(fl_step_rows_read(fl_temp_text("bad.csv", text), &r, NULL, &d) == FL_BAD_INPUT &&
                     strstr(d.message, steps[i].part) && d.line == 2,
                 "steps %zu: '%s'", i, d.message);
    }
    fl_temp_remove();
}

/* Runs that failed have no time; a few rows may contradict. */
static void test_left_out(void) {
    fl_layers l;
    fl_attention a;
    fl_step_rows r;
    fl_left_out left;
    fl_diag d = {0};
    FL_CHECK(fl_layers_read(fl_temp_text("l.csv", "layer,tokens,time_us\na,1,5\na,2,\na,4,0\na,8,nan\nb,1,-7\n"),
                            "tokens", &l, &left, &d) == FL_OK &&
                 l.count == 1 && l.name_count == 1 && left.empty.count == 3 && left.empty.line == 3 &&
                 left.wrong.count == 1,
             "%s", d.message);
    fl_layers_free(&l);
    FL_CHECK(
        fl_attention_read(fl_temp_text("a.csv", "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n16,8,2,32,9.5\n"
                                                "16,8,2,32,N/A\n0,0,0,0,5\n"),
                          &a, &left, &d) == FL_OK &&
            a.count == 1 && left.empty.count == 1 && left.wrong.count == 1 && left.wrong.line == 4,
        "%s", d.message);
    fl_attention_free(&a);
    FL_CHECK(fl_step_rows_read(fl_temp_text("s.csv", "phase,sm_mhz,batch,tokens,context_tokens,time_s,power_w\n"
                                                     "prefill,1410,1,8,8,0.01,N/A\nprefill,1410,1,8,8,failed,200\n"
                                                     "decode,1410,2,2,8,0.01,1e9\n"),
                               &r, &left, &d) == FL_OK &&
                 r.count == 1 && left.empty.count == 1 && left.wrong.count == 1,
             "%s", d.message);
    fl_step_rows_free(&r);
}

FL_SUITE("serving_file", {"read", test_read}, {"written", test_written}, {"refused", test_refused},
         {"tables", test_tables}, {"tables refused", test_tables_refused}, {"left out", test_left_out})
