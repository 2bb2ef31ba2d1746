#include "policies/random.h"
#include "tests/support/same_trace.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/files/files.h"
#include "traces/files/inside.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>

#define HEAD "# foldline-kernels 1\n# device: test chip\n"
#define COLUMNS "device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z"

static void test_good(void) {
    fl_kernel_trace t;
    fl_diag d = {0};
    const char *path = fl_temp_text(
        "good.csv",
        HEAD "# sm_mhz: 1410\n"
             "name,device,process,stream,start_ns,end_ns,grid_x,grid_y,grid_z,block_x,block_y,block_z,launch_ns,"
             "host_thread,waits_for,bytes,sm_mhz\n"
             "[iteration],0,0,0,100,100,,,,,,,,3,,,\n"
             "\"f<int, 2>\",0,0,7,100,200,4,2,1,64,1,1,50,3,,,\n"
             "# a remark\n"
             "[CUDA memcpy HtoD],0,0,7,200,260,,,,,,,120,3,1,4096,\n"
             "[sync],0,0,7,110,260,,,,,,,,3,0+1+2,,\n"
             "\"f<int, 2>\",0,0,8,150,170,4,2,1,64,1,1,,,,,1380\n"
             "\"f<int, 2>\",0,1,7,100,200,4,2,2,64,1,1,,,,,");
    fl_status status = fl_kernels_read(path, &t, NULL, &d);
    FL_CHECK(status == FL_OK, "%lld:%lld %s", (long long)d.line, (long long)d.column, d.message);
    if (status != FL_OK)
        return;
    FL_CHECK(t.op_count == 6 && t.kind_count == 5 && t.name_count == 4 && t.has_launches,
             "%zu ops, %zu kinds, %zu names", t.op_count, t.kind_count, t.name_count);
    FL_CHECK(strcmp(fl_head_get(&t.head, "device"), "test chip") == 0 &&
                 strcmp(fl_head_get(&t.head, "sm_mhz"), "1410") == 0,
             "head");
    static const uint8_t TYPE[] = {FL_OP_ITERATION, FL_OP_KERNEL, FL_OP_COPY, FL_OP_SYNC, FL_OP_KERNEL, FL_OP_KERNEL};
    for (size_t i = 0; i < 6; i++)
        FL_CHECK(t.ops[i].type == TYPE[i], "op %zu has type %d", i, t.ops[i].type);
    const fl_trace_op *k = &t.ops[1], *c = &t.ops[2], *s = &t.ops[3];
    FL_CHECK(k->start_ns == 100 && k->end_ns == 200 && k->launch_ns == 50 && k->stream == 7 && k->host_thread == 3 &&
                 k->bytes == -1 && k->sm_mhz == 0 && k->waits_count == 0,
             "the kernel");
    const fl_trace_kind *kind = &t.kinds[k->kind];
    FL_CHECK(strcmp(t.names[kind->name], "f<int, 2>") == 0 && kind->grid[0] == 4 && kind->grid[1] == 2 &&
                 kind->grid[2] == 1 && kind->block[0] == 64 && kind->block[2] == 1,
             "its kind");
    FL_CHECK(t.ops[4].kind == k->kind && t.ops[5].kind != k->kind && t.kinds[t.ops[5].kind].name == kind->name,
             "one kind for each name, grid and block");
    FL_CHECK(c->bytes == 4096 && c->waits_count == 1 && t.waits[c->waits_first] == 1, "the copy");
    FL_CHECK(s->waits_count == 3 && t.waits[s->waits_first + 2] == 2 && s->launch_ns == INT64_MIN, "the sync");
    FL_CHECK(t.ops[4].sm_mhz == 1380 && t.ops[4].host_thread == -1 && t.ops[5].process == 1, "the last rows");
    fl_kernel_trace_free(&t);
}

static void test_bad(void) {
    static const struct {
        const char *in;
        int64_t line, column;
        const char *message;
    } ROWS[] = {
        {COLUMNS "\n0,0,7,1,2,f,1,1,1,1,1,1\n", 1, 1, "expected '# foldline-kernels 1' first"},
        {"# foldline-kernels 3\n" COLUMNS "\n", 1, 1, "version '3'"},
        {HEAD COLUMNS "\n", 0, 0, "trace is empty"},
        {HEAD, 3, 0, "before the first row"},
        {HEAD "# alone: yes\n" COLUMNS "\n0,0,7,1,2,f,1,1,1,1,1,1\n", 3, 0, "alone is 'yes', expected 1"},
        {HEAD "device,process,stream,start_sn,end_ns\n", 3, 23, "unknown column 'start_sn', expected 'start_ns'"},
        {HEAD COLUMNS ",correlation\n", 3, 89, "unknown column 'correlation', expected one of device, process"},
        {HEAD COLUMNS ",name\n", 3, 89, "column 'name' is given twice"},
        {HEAD "device,process,stream,start_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z\n", 3, 74,
         "column 'end_ns' is missing"},
        {HEAD COLUMNS "\n0,0,7,1,2,f,1,1,1,1,1,1\n0,0,7,3,4,f,1\n", 5, 13, "row has 7 fields, expected 12"},
        {HEAD COLUMNS "\n0,0,7,1,2,f,1,1,1,1,1,1\n0,0,7,3,4,f,1", 5, 13,
         "the last row is cut off: it has 7 fields, expected 12"},
        {HEAD COLUMNS "\n0,0,7,1,2,f,1,1,1,1,1,1,1\n", 4, 25, "row has 13 fields, expected 12"},
        {HEAD COLUMNS "\n0,0,7,9,5,f,1,1,1,1,1,1\n", 4, 9, "end_ns 5 is before start_ns 9"},
        {HEAD COLUMNS "\n0,0,7,-1,5,f,1,1,1,1,1,1\n", 4, 7, "start_ns is '-1', expected a whole number of at least 0"},
        {HEAD COLUMNS "\n0,0,7,1.5,5,f,1,1,1,1,1,1\n", 4, 7, "start_ns is '1.5'"},
        {HEAD COLUMNS "\n0,0,7,99999999999999999999,5,f,1,1,1,1,1,1\n", 4, 7, "start_ns is '99999999999999999999'"},
        {HEAD COLUMNS "\n-1,0,7,1,5,f,1,1,1,1,1,1\n", 4, 1, "device is '-1'"},
        {HEAD COLUMNS "\n0,0,2147483648,1,5,f,1,1,1,1,1,1\n", 4, 5, "stream is '2147483648'"},
        {HEAD COLUMNS "\n0,0,7,1,5,,1,1,1,1,1,1\n", 4, 11, "name is empty"},
        {HEAD COLUMNS "\n0,0,7,1,5,f\xff,1,1,1,1,1,1\n", 4, 11, "name holds byte 0xff at its place 2"},
        {HEAD COLUMNS "\n0,0,7,1,5,f,1,,1,1,1,1\n", 4, 15, "grid_y is empty"},
        {HEAD COLUMNS "\n0,0,7,1,5,f,1,4294967296,1,1,1,1\n", 4, 15, "grid_y is '4294967296'"},
        {HEAD COLUMNS "\n0,0,7,1,5,[copy],1,x,1,1,1,1\n", 4, 20, "grid_y is 'x'"},
        {HEAD COLUMNS ",launch_ns\n0,0,7,10,20,f,1,1,1,1,1,1,11\n", 4, 27, "launch_ns 11 is after start_ns 10"},
        {HEAD COLUMNS ",waits_for\n0,0,7,1,2,f,1,1,1,1,1,1,\n0,0,7,3,4,f,1,1,1,1,1,1,1\n", 5, 25,
         "waits_for names row 1, expected rows before its own, which is 1"},
        {HEAD COLUMNS ",waits_for\n0,0,7,1,2,f,1,1,1,1,1,1,\n0,0,7,3,4,f,1,1,1,1,1,1,0+\n", 5, 25, "waits_for is '0+'"},
        {HEAD COLUMNS ",waits_for\n0,0,7,1,2,f,1,1,1,1,1,1,\n0,0,7,3,4,f,1,1,1,1,1,1,-1\n", 5, 25, "waits_for is '-1'"},
        {HEAD COLUMNS ",waits_for\n0,0,7,1,2,f,1,1,1,1,1,1,\n0,0,7,3,4,f,1,1,1,1,1,1,0 0\n", 5, 25,
         "waits_for is '0 0'"},
        {HEAD COLUMNS ",bytes\n0,0,7,1,2,f,1,1,1,1,1,1,-4\n", 4, 25, "bytes is '-4'"},
        {HEAD COLUMNS ",sm_mhz\n0,0,7,1,2,f,1,1,1,1,1,1,70000\n", 4, 25,
         "sm_mhz is '70000', expected a whole number from 1 to 65535"},
        /* overlap, in order, out of order, with a comment between, across an op of no length */
        {HEAD COLUMNS "\n0,0,7,1,9,f,1,1,1,1,1,1\n0,0,7,8,12,g,1,1,1,1,1,1\n", 5, 1,
         "'g' (8 to 12 ns) overlaps 'f' of line 4"},
        {HEAD COLUMNS "\n0,0,7,8,12,g,1,1,1,1,1,1\n0,0,8,1,2,f,1,1,1,1,1,1\n# note\n\n0,0,7,1,9,f,1,1,1,1,1,1\n", 8, 1,
         "'f' (1 to 9 ns) overlaps 'g' of line 4"},
        {HEAD COLUMNS "\n0,0,7,1,9,f,1,1,1,1,1,1\n0,0,7,5,5,[copy],,,,,,\n", 5, 1, "'[copy]' (5 to 5 ns) overlaps 'f'"},
        {HEAD COLUMNS "\n0,0,7,5,9,f,1,1,1,1,1,1\n0,0,7,5,9,f,1,1,1,1,1,1\n", 5, 1, "overlaps"},
        {HEAD COLUMNS "\n0,0,7,1,2,\"f,1,1,1,1,1,1\n", 4, 11, "quote is not closed"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_kernel_trace t, zero = {0};
        fl_diag d = {0};
        memset(&t, 0xaa, sizeof t);
        const char *path = fl_temp_text("bad.csv", ROWS[i].in);
        fl_status status = fl_kernels_read(path, &t, NULL, &d);
        FL_CHECK(status == FL_BAD_INPUT, "row %zu: status %d", i, status);
        FL_CHECK(d.line == ROWS[i].line && d.column == ROWS[i].column, "row %zu: %lld:%lld: %s", i, (long long)d.line,
                 (long long)d.column, d.message);
        FL_CHECK(strstr(d.message, ROWS[i].message), "row %zu: '%s'", i, d.message);
        FL_CHECK(memcmp(&t, &zero, sizeof t) == 0, "row %zu: something was left in the struct", i);
        fl_kernel_trace_free(&t);
    }
}

/* What must not count as overlap. */
static void test_no_overlap(void) {
    static const char *const ROWS[] = {
        HEAD COLUMNS "\n0,0,7,5,9,f,1,1,1,1,1,1\n0,0,7,1,5,f,1,1,1,1,1,1\n", /* touching, unsorted */
        HEAD COLUMNS "\n0,0,7,1,9,f,1,1,1,1,1,1\n0,0,8,1,9,f,1,1,1,1,1,1\n", /* another stream */
        HEAD COLUMNS "\n0,0,7,1,9,f,1,1,1,1,1,1\n0,1,7,1,9,f,1,1,1,1,1,1\n", /* another process */
        HEAD COLUMNS "\n0,0,7,1,9,f,1,1,1,1,1,1\n1,0,7,1,9,f,1,1,1,1,1,1\n", /* another device */
        HEAD COLUMNS "\n0,0,7,1,9,f,1,1,1,1,1,1\n0,0,7,2,8,[sync],,,,,,\n0,0,7,3,3,[iteration],,,,,,\n",
        HEAD COLUMNS "\n0,0,7,5,9,f,1,1,1,1,1,1\n0,0,7,5,5,f,1,1,1,1,1,1\n0,0,7,9,9,f,1,1,1,1,1,1\n", /* no length */
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_kernel_trace t;
        fl_diag d = {0};
        FL_CHECK(fl_kernels_read(fl_temp_text("fine.csv", ROWS[i]), &t, NULL, &d) == FL_OK, "row %zu: %s", i,
                 d.message);
        fl_kernel_trace_free(&t);
    }
}

static void test_types(void) {
    FL_CHECK(fl_op_type_of("[sync]") == FL_OP_SYNC && fl_op_type_of("[iteration]") == FL_OP_ITERATION &&
                 fl_op_type_of("[CUDA memset]") == FL_OP_COPY && fl_op_type_of("[]") == FL_OP_COPY &&
                 fl_op_type_of("[") == FL_OP_KERNEL && fl_op_type_of("[a] b") == FL_OP_KERNEL &&
                 fl_op_type_of("f[]") == FL_OP_KERNEL && fl_op_type_of("") == FL_OP_KERNEL,
             "types of names");
}

/* ---- round trips ---- */

static uint64_t next(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t below(uint64_t *state, uint32_t n) { return (uint32_t)(next(state) % n); }

static void make_trace(fl_kernel_trace *t, uint64_t seed) {
    static const char *const NAME[] = {
        "f",           "void g<int, (char)34>(\"x\")", "#hash", " blank ", "\303\251t\303\251", "[sync]",
        "[iteration]", "[CUDA memcpy, DtoH]"};
    uint64_t s = seed;
    memset(t, 0, sizeof *t);
    fl_head_set(&t->head, "device", "a chip: 80 \"GB\"");
    fl_head_set(&t->head, "source", "");
    bool optional[5];
    for (size_t i = 0; i < 5; i++)
        optional[i] = below(&s, 2);
    size_t count = 1 + below(&s, 200);
    int64_t at[4] = {0};
    for (size_t i = 0; i < count; i++) {
        uint32_t lane = below(&s, 4), name = below(&s, 8);
        uint32_t grid[3] = {0}, block[3] = {0};
        for (int k = 0; k < 3; k++) {
            grid[k] = name < 5 || below(&s, 4) == 0 ? below(&s, 5) * 1000000007u : 0;
            block[k] = name < 5 ? below(&s, 3) : 0;
        }
        fl_trace_op op = {.launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1};
        op.kind = fl_trace_add_kind(t, NAME[name], grid, block);
        op.type = (uint8_t)fl_op_type_of(NAME[name]);
        op.device = lane & 1;
        op.stream = lane & 2 ? INT32_MAX : 0;
        op.start_ns = at[lane] + (below(&s, 3) ? 0 : (int64_t)below(&s, 1u << 30));
        op.end_ns = op.start_ns + (int64_t)below(&s, 1000000);
        at[lane] = op.end_ns;
        if (optional[0] && below(&s, 2))
            op.launch_ns = op.start_ns / 2;
        if (optional[1] && below(&s, 2))
            op.host_thread = (int32_t)below(&s, 1000);
        if (optional[2] && i && below(&s, 2)) {
            op.waits_first = (uint32_t)t->wait_count;
            op.waits_count = (uint16_t)(1 + below(&s, 3));
            for (int k = 0; k < op.waits_count; k++)
                if (fl_grow(&t->waits, &t->wait_room, t->wait_count + 1, sizeof *t->waits) == FL_OK)
                    t->waits[t->wait_count++] = below(&s, (uint32_t)i);
        }
        if (optional[3] && below(&s, 2))
            op.bytes = (int64_t)(next(&s) >> 1);
        if (optional[4] && below(&s, 2))
            op.sm_mhz = (uint16_t)(1 + below(&s, 65535));
        fl_trace_add_op(t, &op);
    }
}

static void test_round_trip(void) {
    for (uint64_t seed = 1; seed <= 200; seed++) {
        fl_kernel_trace a, b;
        fl_diag d = {0};
        char first[512], second[512];
        snprintf(first, sizeof first, "%s", fl_temp_path("first.csv"));
        snprintf(second, sizeof second, "%s", fl_temp_path("second.csv"));
        make_trace(&a, seed);
        FL_CHECK(fl_kernels_write(first, &a, &d) == FL_OK, "seed %llu: %s", (unsigned long long)seed, d.message);
        fl_status status = fl_kernels_read(first, &b, NULL, &d);
        FL_CHECK(status == FL_OK && fl_same_trace(&a, &b), "seed %llu: status %d: %lld: %s", (unsigned long long)seed,
                 status, (long long)d.line, d.message);
        FL_CHECK(fl_kernels_write(second, &b, &d) == FL_OK, "seed %llu: %s", (unsigned long long)seed, d.message);
        size_t sizes[2] = {0};
        char *x = fl_temp_slurp(first, &sizes[0]), *y = fl_temp_slurp(second, &sizes[1]);
        FL_CHECK(x && y && sizes[0] == sizes[1] && memcmp(x, y, sizes[0]) == 0, "seed %llu: other bytes",
                 (unsigned long long)seed);
        free(x);
        free(y);
        fl_kernel_trace_free(&a);
        fl_kernel_trace_free(&b);
    }
}

static void test_write_refuses(void) {
    static const uint32_t ONE[3] = {1, 1, 1};
    fl_kernel_trace t = {0};
    fl_diag d = {0};
    const char *path = fl_temp_path("refused.csv");
    fl_trace_op op = {
        .launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1, .kind = fl_trace_add_kind(&t, "a\nb", ONE, ONE)};
    fl_trace_add_op(&t, &op);
    FL_CHECK(fl_kernels_write(path, &t, &d) == FL_BAD_INPUT && strstr(d.message, "a?b"), "%s", d.message);
    fl_kernel_trace_free(&t);
    op.kind = fl_trace_add_kind(&t, "a", ONE, ONE);
    fl_trace_add_op(&t, &op);
    static const char *const ENTRY[][2] = {{"a:b", "c"}, {"a", "b\nc"}, {"", "c"}, {"a", " b"}};
    for (size_t i = 0; i < 4; i++) {
        fl_head_set(&t.head, ENTRY[i][0], ENTRY[i][1]);
        FL_CHECK(fl_kernels_write(path, &t, &d) == FL_BAD_INPUT && strstr(d.message, "head entry"), "%zu: %s", i,
                 d.message);
        fl_head_free(&t.head);
    }
    FL_CHECK(access(path, F_OK) != 0, "no file after a refusal");
    fl_kernel_trace_free(&t);
}

/* ---- kinds ---- */

#define KIND_COLUMNS "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"

static void test_kinds(void) {
    fl_kinds k;
    fl_diag d = {0};
    fl_status status =
        fl_kinds_read(fl_temp_text("kinds.csv", "# foldline-kinds 1\n" KIND_COLUMNS
                                                "\"f<1, 2>\",0.7,0.2,0.1,9.5,1,0.4,0.5,1410,1593\n"
                                                "\"#f\",1,0,0,inf,0.5,0.25,,,\n*,1,0,0,inf,0.5,0.25,,,\n"),
                      &k, &d);
    FL_CHECK(status == FL_OK && k.count == 3, "%lld:%lld %s", (long long)d.line, (long long)d.column, d.message);
    if (status != FL_OK)
        return;
    const fl_kind_load *own = fl_kinds_find(&k, "f<1, 2>"), *any = fl_kinds_find(&k, "other");
    FL_CHECK(own == &k.kind[0] && any == &k.kind[2], "found");
    FL_CHECK(own->tc == 0.7 && own->tm == 0.2 && own->tl == 0.1 && own->sharpness == 9.5 && own->alpha == 1 &&
                 own->beta == 0.4 && own->sm_demand == 0.5 && own->sm_mhz == 1410 && own->mem_mhz == 1593,
             "own row");
    FL_CHECK(isinf(any->sharpness) && isnan(any->sm_demand) && any->sm_mhz == 0 && any->mem_mhz == 0, "row of *");
    char path[512];
    snprintf(path, sizeof path, "%s", fl_temp_path("kinds2.csv"));
    fl_kinds again = {0};
    FL_CHECK(fl_kinds_write(path, &k, &d) == FL_OK && fl_kinds_read(path, &again, &d) == FL_OK && again.count == 3,
             "%s", d.message);
    for (size_t i = 0; i < again.count; i++) {
        fl_kind_load x = k.kind[i], y = again.kind[i];
        FL_CHECK(strcmp(x.name, y.name) == 0 && x.tc == y.tc && x.tm == y.tm && x.tl == y.tl &&
                     x.sharpness == y.sharpness && x.alpha == y.alpha && x.beta == y.beta && x.sm_mhz == y.sm_mhz &&
                     x.mem_mhz == y.mem_mhz &&
                     (x.sm_demand == y.sm_demand || (isnan(x.sm_demand) && isnan(y.sm_demand))),
                 "row %zu does not come back", i);
    }
    k.count--;
    free(k.kind[2].name);
    FL_CHECK(fl_kinds_find(&k, "other") == NULL, "no row at all");
    fl_kinds_free(&k);
    fl_kinds_free(&again);
}

/* Found by index what a walk through all rows finds: names of their own, those that several rows share, "*" or none. */
static void test_kinds_index(void) {
    enum { ROWS = 60 };
    fl_kind_load row[ROWS] = {0};
    char name[ROWS][8];
    for (uint64_t seed = 1; seed <= 200; seed++) {
        fl_random r = fl_random_seed(seed, 0);
        fl_kinds k = {.kind = row, .count = fl_random_below(&r, ROWS)};
        for (size_t i = 0; i < k.count; i++) {
            const unsigned which = (unsigned)fl_random_below(&r, 40);
            snprintf(name[i], sizeof name[i], which ? "k%u" : "*", which);
            row[i].name = name[i];
        }
        fl_kinds_index index = fl_kinds_index_make(&k);
        for (unsigned which = 0; which < 45; which++) {
            char asked[8];
            snprintf(asked, sizeof asked, which ? "k%u" : "*", which);
            FL_CHECK(fl_kinds_index_find(&index, asked) == fl_kinds_find(&k, asked), "seed %u, %s", (unsigned)seed,
                     asked);
        }
        fl_kinds_index_free(&index);
    }
}

#define PHASE_COLUMNS "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz,phase,host_bound,host_upc\n"

/* Rows of one name one after the other are its phases; the host columns are optional one by one. */
static void test_phases(void) {
    fl_kinds k, again;
    fl_diag d = {0};
    FL_CHECK(
        fl_kinds_read(fl_temp_text("phases.csv", "# foldline-kinds 1\n" PHASE_COLUMNS "f,1,0,0,9,1,0,1,,,0.25,0.5,\n"
                                                 "f,0,1,0,9,0,1,1,,,0.75,,\ng,1,0,0,9,1,0,1,,,,,1.5\n"),
                      &k, &d) == FL_OK,
        "%s", d.message);
    const fl_kind_load *f = fl_kinds_find(&k, "f"), *g = fl_kinds_find(&k, "g");
    FL_CHECK(f && g && fl_kinds_phases(&k, f) == 2 && fl_kinds_phases(&k, g) == 1, "phases");
    FL_CHECK(f && f[0].phase == 0.25 && f[1].phase == 0.75 && g->phase == 1, "shares");
    FL_CHECK(f && f[0].host_bound == 0.5 && isnan(f[1].host_bound) && isnan(f[0].host_upc) && g->host_upc == 1.5 &&
                 isnan(g->host_gb_s),
             "host columns");
    const char *path = fl_temp_path("phases2.csv");
    FL_CHECK(fl_kinds_write(path, &k, &d) == FL_OK && fl_kinds_read(path, &again, &d) == FL_OK && again.count == 3 &&
                 again.kind[1].phase == 0.75 && again.kind[2].host_upc == 1.5 && isnan(again.kind[2].host_bound),
             "comes back: %s", d.message);
    fl_kinds_free(&k);
    fl_kinds_free(&again);
    static const struct {
        const char *rows, *message;
    } bad[] = {
        {"f,1,0,0,9,1,0,1,,,0.25,,\n", "phases of 'f' add up to 0.25, expected 1"},
        {"f,1,0,0,9,1,0,1,,,0.25,,\ng,1,0,0,9,1,0,1,,,,,\n", "phases of 'f' add up to 0.25, expected 1"},
        {"f,1,0,0,9,1,0,1,,,0.75,,\nf,1,0,0,9,1,0,1,,,0.75,,\n", "phases of 'f' add up to 1.5, expected 1"},
        {"f,1,0,0,9,1,0,1,,,0,,\n", "phase 0, expected a share"},
        {"f,1,0,0,9,1,0,1,,,1.5,,\n", "phase"},
        {"f,1,0,0,9,1,0,1,,,1,2,\n", "host_bound"},
        {"f,1,0,0,9,1,0,1,,,,,\nf,1,0,0,9,1,0,1,,,,,\n", "a second row for 'f'"},
        {"f,1,0,0,9,1,0,1,,,0.25,,\nf,1,0,0,9,1,0,1,,,1,,\n", "a row of the whole kernel behind one of its phases"},
        {"f,1,0,0,9,1,0,1,,,0.5,,\ng,1,0,0,9,1,0,1,,,,,\nf,1,0,0,9,1,0,1,,,0.5,,\n", "phases of 'f'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[1024];
        snprintf(text, sizeof text, "# foldline-kinds 1\n" PHASE_COLUMNS "%s", bad[i].rows);
        d = (fl_diag){0};
        FL_CHECK(fl_kinds_read(fl_temp_text("bad.csv", text), &k, &d) == FL_BAD_INPUT &&
                     strstr(d.message, bad[i].message),
                 "row %zu: %s", i, d.message);
    }
}

#define FOLD_COLUMNS "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz,fold_mhz,fold_low,fold_high\n"

/* A fold line, none, and the platform's. */
static void test_folds(void) {
    fl_kinds k, again;
    fl_diag d = {0};
    const char *text = "# foldline-kinds 1\n" FOLD_COLUMNS "f,0,1,0,9,1,1,1,,,912.5,1.25,0.125\n"
                       "g,0,1,0,9,1,1,1,,,none,,\nh,0,1,0,9,1,1,1,,,,,\n";
    FL_CHECK(fl_kinds_read(fl_temp_text("folds.csv", text), &k, &d) == FL_OK && k.count == 3, "%s", d.message);
    const char *path = fl_temp_path("folds2.csv");
    FL_CHECK(fl_kinds_write(path, &k, &d) == FL_OK && fl_kinds_read(path, &again, &d) == FL_OK, "%s", d.message);
    for (int i = 0; i < 2; i++) {
        const fl_kind_load *l = i ? again.kind : k.kind;
        FL_CHECK(l[0].fold_mhz == 912.5 && l[0].fold_low == 1.25 && l[0].fold_high == 0.125 && isinf(l[1].fold_mhz) &&
                     l[2].fold_mhz == 0,
                 "pass %d", i);
    }
    fl_kinds_free(&k);
    fl_kinds_free(&again);
    static const struct {
        const char *rows, *message;
        int64_t column;
    } bad[] = {
        {FOLD_COLUMNS "f,0,1,0,9,1,1,1,,,900,0.1,0.2\n", "fold_high 0.2 above fold_low 0.1", 27},
        {FOLD_COLUMNS "f,0,1,0,9,1,1,1,,,900,1,\n", "fold_high", 25},
        {FOLD_COLUMNS "f,0,1,0,9,1,1,1,,,0,1,0\n", "fold_mhz", 19},
        {"name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz,fold_mhz\nf,0,1,0,9,1,1,1,,,900\n",
         "a fold_mhz without slopes", 19},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char all[1024];
        snprintf(all, sizeof all, "# foldline-kinds 1\n%s", bad[i].rows);
        d = (fl_diag){0};
        FL_CHECK(fl_kinds_read(fl_temp_text("bad.csv", all), &k, &d) == FL_BAD_INPUT && d.line == 3 &&
                     d.column == bad[i].column && strstr(d.message, bad[i].message),
                 "row %zu: %lld:%lld %s", i, (long long)d.line, (long long)d.column, d.message);
    }
}

static void test_bad_kinds(void) {
    static const struct {
        const char *in;
        int64_t line, column;
        const char *message;
    } ROWS[] = {
        {"# foldline-kinds 1\n" KIND_COLUMNS, 0, 0, "no kinds"},
        {"# foldline-kinds 1\nname,tc,tm,tl,sharpnes,alpha,beta,sm_demand,sm_mhz,mem_mhz\n", 2, 15,
         "expected 'sharpness'"},
        {"# foldline-kinds 1\n" KIND_COLUMNS "f,0,0,0,9,1,1,,,\n", 3, 3, "all zero"},
        {"# foldline-kinds 1\n" KIND_COLUMNS "f,-1,0,0,9,1,1,,,\n", 3, 3, "tc is '-1'"},
        {"# foldline-kinds 1\n" KIND_COLUMNS "f,1,nan,0,9,1,1,,,\n", 3, 5, "tm is 'nan'"},
        {"# foldline-kinds 1\n" KIND_COLUMNS "f,1,1,0,0.5,1,1,,,\n", 3, 9, "sharpness is '0.5'"},
        {"# foldline-kinds 1\n" KIND_COLUMNS "f,1,1,0,9,1,1,1.5,,\n", 3, 15, "sm_demand is '1.5'"},
        {"# foldline-kinds 1\n" KIND_COLUMNS ",1,1,0,9,1,1,1,,\n", 3, 1, "name is empty"},
        {"# foldline-kinds 1\n" KIND_COLUMNS "f,1,1,0,9,1,1,1,,\nf,1,1,0,9,1,1,1,,\n", 4, 1, "second row for 'f'"},
        {"# foldline-kinds 1\n" KIND_COLUMNS "f,1,1,0,9,1,1,1\n", 3, 15, "row has 8 fields, expected 10"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_kinds k, zero = {0};
        fl_diag d = {0};
        memset(&k, 0xaa, sizeof k);
        fl_status status = fl_kinds_read(fl_temp_text("bad.csv", ROWS[i].in), &k, &d);
        FL_CHECK(status == FL_BAD_INPUT && d.line == ROWS[i].line && d.column == ROWS[i].column &&
                     strstr(d.message, ROWS[i].message),
                 "row %zu: %d %lld:%lld: %s", i, status, (long long)d.line, (long long)d.column, d.message);
        FL_CHECK(memcmp(&k, &zero, sizeof k) == 0, "row %zu: something was left in the struct", i);
    }
}

static void test_clean_up(void) {
    fl_temp_remove();
    FL_CHECK(fl_temp_folder[0] == '\0', "removed");
}

FL_SUITE("kernels", {"good", test_good}, {"folds", test_folds}, {"bad", test_bad}, {"no overlap", test_no_overlap},
         {"types", test_types}, {"round trip", test_round_trip}, {"write refuses", test_write_refuses},
         {"kinds", test_kinds}, {"kinds by index", test_kinds_index}, {"phases and host columns", test_phases},
         {"bad kinds", test_bad_kinds}, {"clean up", test_clean_up})
