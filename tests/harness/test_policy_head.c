/* The parameters of a policy through the head of a decisions file and back: as they were, tables with every cell. */
#include "harness/log/log.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 3000 };

typedef struct params {
    double level;
    fl_table clocks, cells, list;
} params;

static const fl_param PARAMS[] = {
    {"level", "", FL_PARAM_REAL, offsetof(params, level), "0.1", 0, 1, NULL, "a number"},
    {"clocks", "MHz", FL_PARAM_TABLE, offsetof(params, clocks), NULL, 0, 0, "key:kernel|sm_mhz|mem_mhz", "keyed"},
    {"cells", "", FL_PARAM_TABLE, offsetof(params, cells), NULL, 0, 0, "a|b", "not keyed"},
    {"list", "", FL_PARAM_LIST, offsetof(params, list), "1/2", -1e9, 1e9, NULL, "numbers"},
};

static const char *init(void *state, const void *p, const fl_facts *facts) {
    (void)state;
    (void)p;
    (void)facts;
    return NULL;
}

static void step(void *state, const void *p, const fl_facts *facts, const fl_sample *s, fl_command *c) {
    (void)state;
    (void)p;
    (void)facts;
    (void)s;
    (void)c;
}

static const fl_signal_row SIGNALS[] = {FL_NEEDS(GPU_POWER_W)};

static const fl_policy POLICY = {FL_POLICY_ABI,
                                 .name = "headed",
                                 .summary = "",
                                 .source = "",
                                 FL_SIGNAL_ROWS(SIGNALS),
                                 .param = PARAMS,
                                 .param_count = sizeof PARAMS / sizeof *PARAMS,
                                 .param_size = sizeof(params),
                                 .init = init,
                                 .step = step};

static double cells[ROWS * 2], plain[4] = {0.1, -3, 5e-324, 1e300}, list[200];
static const char *keys[ROWS];

static fl_facts facts(void) {
    static const int32_t sm[] = {500, 1000}, mem[] = {1000};
    static const fl_gpu_facts gpu[] = {{.sm = {sm, 2}, .mem = {mem, 1}}};
    return (fl_facts){.gpu_count = 1, .gpu = gpu, .seed = 7};
}

static bool same(const fl_table *a, const fl_table *b) {
    bool equal = a->row_count == b->row_count && a->column_count == b->column_count && !a->key == !b->key;
    for (uint32_t r = 0; equal && r < a->row_count; r++) {
        equal = !a->key || !strcmp(a->key[r], b->key[r]);
        for (uint32_t c = 0; equal && c < a->column_count; c++)
            equal = a->cell[r * a->column_count + c] == b->cell[r * b->column_count + c];
    }
    return equal;
}

/* Kernel names have commas, quotes, colons and now and then a line's end; a list is longer than any one line of text.
 */
static void make(fl_table *keyed, fl_table *free_of_keys, fl_table *numbers) {
    static char name[ROWS][80];
    for (int i = 0; i < ROWS; i++) {
        snprintf(name[i], sizeof name[i], "void f<%d, \"x\">(int*, float): %s", i, i % 7 ? "a\tb" : "\xc3\xa9\n");
        keys[i] = name[i];
        cells[2 * i] = i / 3.0;
        cells[2 * i + 1] = -1e-9 * i;
    }
    for (int i = 0; i < 200; i++)
        list[i] = 1000 + i / 7.0;
    *keyed = (fl_table){.cell = cells, .key = keys, .row_count = ROWS, .column_count = 2};
    *free_of_keys = (fl_table){.cell = plain, .row_count = 2, .column_count = 2};
    *numbers = (fl_table){.cell = list, .row_count = 200, .column_count = 1};
}

static void test_there_and_back(void) {
    fl_table keyed, free_of_keys, numbers;
    fl_diag d = {0};
    const fl_facts f = facts();
    make(&keyed, &free_of_keys, &numbers);
    const fl_setting setting[] = {{.name = "level", .text = "0.3"},
                                  {.name = "clocks", .table = &keyed},
                                  {.name = "cells", .table = &free_of_keys},
                                  {.name = "list", .table = &numbers}};
    const fl_layer layer = {.origin = "test", .setting = setting, .count = 4};
    static int64_t now = 0, delay = 1;
    fl_decisions out = {.gpu_count = 1, .step_count = 1, .t_ns = &now, .delay_ns = &delay}, in = {0};
    FL_CHECK(!fl_policy_head_put(&out.head, &POLICY, &f, &layer, 1, &d), "%s", d.message);
    FL_CHECK(!fl_decisions_write(fl_temp_path("log.csv"), &out, &d), "%s", d.message);
    FL_CHECK(!fl_decisions_read(fl_temp_path("log.csv"), &in, &d), "%s", d.message);
    fl_policy_head head = {0};
    FL_CHECK(!fl_policy_head_get(&head, &in.head, "log.csv", &POLICY, &d), "%s", d.message);
    fl_instance *i = NULL;
    fl_instance_options o = {.policy = &POLICY, .facts = &f, .layer = &head.layer, .layer_count = 1};
    FL_CHECK(!fl_instance_open(&i, &o, &d), "%s", d.message);
    if (i) {
        const fl_table t[] = {keyed, free_of_keys, numbers};
        char text[64];
        FL_CHECK(!strcmp(fl_instance_param_text(i, 0, text, sizeof text), "0.3"), "level is %s", text);
        for (uint32_t k = 0; k < 3; k++) {
            const fl_table back = fl_instance_param_table(i, k + 1);
            FL_CHECK(same(&t[k], &back), "%s came back otherwise", PARAMS[k + 1].name);
        }
    }
    fl_instance_close(i);
    fl_policy_head_free(&head);
    fl_decisions_free(&in);
    fl_head_free(&out.head);
    fl_temp_remove();
}

static void test_refused(void) {
    static const struct {
        const char *key, *value, *says;
    } row[] = {
        {"table.clocks", "nonsense", "expected a list of rows, as JSON"},
        {"table.clocks", "{}", "expected a list of rows"},
        {"table.clocks", "[[\"k\",1]]", "row 1: expected a list of as many cells"},
        {"table.clocks", "[[\"k\",1,2],[3,1,2]]", "row 2: the key is no text"},
        {"table.cells", "[[1,true]]", "expected numbers"},
        {"table.cells", "[[1,\"1\"]]", "expected numbers"},
        {"table.speeds", "[]", "has no table 'speeds'"},
        {"table.level", "[]", "has no table 'level'"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_head h = {0};
        fl_diag d = {0};
        fl_policy_head head = {0};
        FL_CHECK(fl_head_set(&h, row[i].key, row[i].value), "head");
        FL_CHECK(fl_policy_head_get(&head, &h, "log.csv", &POLICY, &d) == FL_BAD_INPUT &&
                     strstr(d.message, row[i].says) && !strcmp(d.file, "log.csv"),
                 "%s: %s says '%s'", row[i].key, row[i].value, d.message);
        fl_policy_head_free(&head);
        fl_head_free(&h);
    }
}

FL_SUITE("policy_head", {"there and back", test_there_and_back}, {"refused", test_refused})
