/* The parameter struct of a policy: what each type takes and refuses, layer over layer, and its text again. */
#include "policies/policy.h"
#include "sim/instance/inside.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/exact.h"
#include "tests/support/suite.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef struct own {
    double real;
    int64_t whole, on, pick;
    fl_table list, table, keyed;
} own;

enum { REAL, WHOLE, ON, PICK, LIST, TABLE, KEYED };

static const fl_param rows[] = {
    FL_PARAM(own, real, REAL(-1, 2.5), "W", "0.5", "a number"),
    FL_PARAM(own, whole, INT(-3, 7), "", "4", "a whole number"),
    FL_PARAM(own, on, BOOL, "", "on", "a switch"),
    FL_PARAM(own, pick, CHOICE("one|two|three"), "", "two", "a choice"),
    FL_PARAM(own, list, LIST(0, 10), "", "1/2.5", "numbers"),
    FL_PARAM(own, table, TABLE("a|b|c"), "", NULL, "a table"),
    FL_PARAM(own, keyed, TABLE("key:name|a|b"), "", NULL, "a table by name"),
};

static const fl_policy policy = {.name = "test", .param = rows, .param_count = COUNT(rows), .param_size = sizeof(own)};

static fl_status set(own **out, const char *name, const char *text, const fl_table *table, fl_diag *d) {
    const fl_setting s = {name, text, table};
    const fl_layer layer = {"here", &s, 1};
    void *params = NULL;
    const fl_status status = fl_params_resolve(&params, &policy, &layer, name ? 1 : 0, d);
    *out = params;
    return status;
}

static void expect_text(const own *p, uint32_t row, const char *want) {
    char *buf = exact(NULL, 64), *same = fl_params_text(&policy, p, row, buf, 64);
    FL_CHECK(same == buf && strcmp(buf, want) == 0, "%s: '%s', expected '%s'", rows[row].name, buf, want);
    const size_t length = strlen(want);
    for (size_t size = 1; size <= length; size++) { /* cut to size, and not a byte further */
        char *cut = exact(NULL, size);
        fl_params_text(&policy, p, row, cut, size);
        FL_CHECK(strncmp(cut, want, size - 1) == 0 && cut[size - 1] == '\0', "%s: '%s' of %zu bytes", rows[row].name,
                 cut, size);
        free(cut);
    }
    fl_params_text(&policy, p, row, NULL, 0);
    free(buf);
}

static void test_defaults(void) {
    static const char *const text[] = {"0.5", "4", "1", "two", "1/2.5", "0x3 table", "0x2 table"};
    own *p = NULL;
    fl_diag d = {0};
    CU_ASSERT_FATAL(set(&p, NULL, NULL, NULL, &d) == FL_OK);
    FL_CHECK(p->real == 0.5 && p->whole == 4 && p->on == 1 && p->pick == 1 && p->list.row_count == 2 &&
                 p->list.column_count == 1 && p->list.cell[0] == 1 && p->list.cell[1] == 2.5 &&
                 p->table.row_count == 0 && p->table.column_count == 3 && p->keyed.column_count == 2,
             "the defaults");
    for (uint32_t i = 0; i < COUNT(rows); i++)
        expect_text(p, i, text[i]);
    fl_params_free(&policy, p);
    fl_params_free(&policy, NULL);
}

/* what: the text that comes back, or a part of what is said. */
static void test_texts(void) {
    static const struct {
        uint32_t row;
        const char *text;
        bool fine;
        const char *what;
    } cases[] = {
        {REAL, "2.5", true, "2.5"},
        {REAL, "-1", true, "-1"},
        {REAL, "2.6", false, "2.6 is out of range, expected -1 to 2.5"},
        {REAL, "-1.1", false, "-1.1 is out of range"},
        {REAL, "1e999", false, "'1e999' is too large"},
        {REAL, "two", false, "'two' is not a number"},
        {REAL, "", false, "'' is not a number"},
        {WHOLE, "7", true, "7"},
        {WHOLE, "-3", true, "-3"},
        {WHOLE, "8", false, "8 is out of range, expected -3 to 7"},
        {WHOLE, "-4", false, "-4 is out of range"},
        {WHOLE, "1.5", false, "'1.5' is not a whole number"},
        {WHOLE, "99999999999999999999", false, "is too large"},
        {ON, "0", true, "0"},
        {ON, "1", true, "1"},
        {ON, "false", true, "0"},
        {ON, "true", true, "1"},
        {ON, "off", true, "0"},
        {ON, "on", true, "1"},
        {ON, "yes", false, "'yes' is not a switch"},
        {PICK, "one", true, "one"},
        {PICK, "two", true, "two"},
        {PICK, "three", true, "three"},
        {PICK, "thre", false, "'thre' is not a choice, expected one of one|two|three"},
        {PICK, "onetwo", false, "is not a choice"},
        {PICK, "one|two", false, "is not a choice"},
        {PICK, "", false, "is not a choice"},
        {LIST, "", true, ""},
        {LIST, "3", true, "3"},
        {LIST, "3/0/10/4.25", true, "3/0/10/4.25"},
        {LIST, "3/11", false, "11 is out of range, expected 0 to 10"},
        {LIST, "3//4", false, "'' is not a number"},
        {LIST, "3/", false, "'' is not a number"},
        {TABLE, "file.csv", false, "is a text, expected a table"},
        {KEYED, "file.csv", false, "is a text, expected a table"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        own *p = NULL;
        fl_diag d = {0};
        const fl_status s = set(&p, rows[cases[i].row].name, cases[i].text, NULL, &d);
        FL_CHECK(s == (cases[i].fine ? FL_OK : FL_BAD_INPUT) && (p != NULL) == cases[i].fine, "case %zu: %d, %s", i, s,
                 d.message);
        if (cases[i].fine && p)
            expect_text(p, cases[i].row, cases[i].what);
        else
            FL_CHECK(strstr(d.message, cases[i].what) && strstr(d.message, rows[cases[i].row].name) &&
                         strstr(d.message, "policy test") && strstr(d.message, "here"),
                     "case %zu: %s", i, d.message);
        fl_params_free(&policy, p);
    }
}

static void test_tables(void) {
    static const double cell[] = {1, 2, 3, 4, 5, 6}, bad[] = {1, 2, 3, 4, (double)NAN, 6}, far[] = {1, 11};
    static const char *const key[] = {"x", "y", "z"};
    const fl_table three = {.cell = cell, .row_count = 2, .column_count = 3},
                   two = {.key = key, .cell = cell, .row_count = 3, .column_count = 2},
                   plain = {.cell = cell, .row_count = 3, .column_count = 2},
                   broken = {.cell = bad, .row_count = 2, .column_count = 3},
                   one = {.cell = cell, .row_count = 6, .column_count = 1},
                   wide = {.cell = far, .row_count = 2, .column_count = 1},
                   named = {.key = key, .cell = cell, .row_count = 2, .column_count = 3},
                   none = {.row_count = 0, .column_count = 2};
    const struct {
        uint32_t row;
        const fl_table *table;
        const char *error, *text;
    } cases[] = {
        {TABLE, &three, NULL, "2x3 table"},
        {TABLE, &named, NULL, "2x3 table"}, /* a key that nobody asked for is left out */
        {TABLE, &two, "the table has 2 columns of numbers, expected 3", NULL},
        {TABLE, &broken, "row 2 of the table holds a number that is not finite", NULL},
        {KEYED, &two, NULL, "3x2 table"},
        {KEYED, &plain, "the table has no text key, expected one", NULL},
        {KEYED, &none, NULL, "0x2 table"},
        {KEYED, &three, "3 columns of numbers, expected 2", NULL},
        {LIST, &one, NULL, "1/2/3/4/5/6"},
        {LIST, &wide, "11 is out of range", NULL},
        {LIST, &plain, "2 columns of numbers, expected 1", NULL},
        {REAL, &one, "got a table, expected a single value", NULL},
        {PICK, &one, "got a table", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        own *p = NULL;
        fl_diag d = {0};
        const fl_status s = set(&p, rows[cases[i].row].name, NULL, cases[i].table, &d);
        FL_CHECK(cases[i].error ? s == FL_BAD_INPUT && !p && strstr(d.message, cases[i].error) : s == FL_OK && p,
                 "case %zu: %d, %s", i, s, d.message);
        if (s == FL_OK && p) {
            expect_text(p, cases[i].row, cases[i].text);
            const fl_table t = fl_params_table(&policy, p, cases[i].row);
            const size_t cells = (size_t)t.row_count * t.column_count;
            FL_CHECK((t.key != NULL) == (cases[i].row == KEYED && t.row_count > 0) && t.cell != cases[i].table->cell &&
                         (!cells || memcmp(t.cell, cases[i].table->cell, cells * sizeof *t.cell) == 0),
                     "case %zu: its cells", i);
            for (uint32_t k = 0; t.key && k < t.row_count; k++)
                FL_CHECK(t.key[k] != key[k] && strcmp(t.key[k], key[k]) == 0, "case %zu: key %u", i, k);
        }
        fl_params_free(&policy, p);
    }
}

/* A later layer, and within one a later setting, takes the place of an earlier one; a name that is none is told. */
static void test_layers(void) {
    static const double cell[] = {9, 8};
    const fl_table list = {.cell = cell, .row_count = 2, .column_count = 1};
    const fl_setting low[] = {{"real", "1", NULL}, {"list", "7", NULL}, {"whole", "1", NULL}, {"whole", "2", NULL}},
                     high[] = {{"list", NULL, &list}, {"real", "2", NULL}}, wrong[] = {{"whol", "3", NULL}};
    const fl_layer layer[] = {{"low", low, 4}, {"high", high, 2}, {"wrong", wrong, 1}};
    void *out = NULL;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_params_resolve(&out, &policy, layer, 2, &d) == FL_OK);
    const own *p = out;
    FL_CHECK(p->real == 2 && p->whole == 2 && p->list.row_count == 2 && p->list.cell[0] == 9 && p->pick == 1,
             "%g, %d, %u numbers", p->real, (int)p->whole, p->list.row_count);
    own *copy = fl_params_copy(&policy, out);
    CU_ASSERT_FATAL(copy != NULL);
    FL_CHECK(copy->real == 2 && copy->list.cell != p->list.cell && copy->list.row_count == 2 &&
                 copy->list.cell[1] == 8 && copy->table.column_count == 3 && copy->table.cell != p->table.cell,
             "a copy shares nothing");
    fl_params_free(&policy, out);
    FL_CHECK(copy->list.cell[0] == 9 && copy->list.cell[1] == 8, "and outlives the first");
    fl_params_free(&policy, copy);
    FL_CHECK(fl_params_resolve(&out, &policy, layer, 3, &d) == FL_BAD_INPUT && !out &&
                 strstr(d.message, "'whol' (wrong): unknown, did you mean 'whole'?"),
             "%s", d.message);
}

/* A policy whose only row is a list: the copy's cells are its own, and either may go first. */
static void test_only_a_list(void) {
    const fl_policy lone = {.name = "lone", .param = &rows[LIST], .param_count = 1, .param_size = sizeof(own)};
    void *out = NULL;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_params_resolve(&out, &lone, NULL, 0, &d) == FL_OK && out);
    own *copy = fl_params_copy(&lone, out);
    CU_ASSERT_FATAL(copy != NULL);
    FL_CHECK(copy->list.cell != ((const own *)out)->list.cell && copy->list.row_count == 2, "a list of its own");
    fl_params_free(&lone, out);
    FL_CHECK(copy->list.cell[0] == 1 && copy->list.cell[1] == 2.5, "which outlives the first");
    fl_params_free(&lone, copy);
}

static void test_columns(void) {
    static const struct {
        const char *choices, *text;
        uint32_t columns;
        bool keyed;
    } cases[] = {{NULL, "", 0, false},
                 {"", "", 0, false},
                 {"a", "a", 1, false},
                 {"a|b|c", "a|b|c", 3, false},
                 {"key:n", "n", 0, true},
                 {"key:n|a", "n|a", 1, true},
                 {"key:n|a|b", "n|a|b", 2, true},
                 {"keys:n|a", "keys:n|a", 2, false},
                 {"key:", "", 0, true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool keyed = !cases[i].keyed;
        const char *text = NULL;
        const fl_param row = {.type = FL_PARAM_TABLE, .choices = cases[i].choices};
        const uint32_t columns = fl_param_columns(&row, &keyed, &text);
        FL_CHECK(columns == cases[i].columns && keyed == cases[i].keyed && strcmp(text, cases[i].text) == 0 &&
                     fl_param_columns(&row, NULL, NULL) == columns,
                 "case %zu: %u columns, keyed %d, '%s'", i, columns, keyed, text);
    }
}

/* A plug-in's row that lies outside its struct, by a byte, is refused before anything is written. */
static void test_outside(void) {
    fl_param row = rows[REAL];
    const fl_policy odd = {.name = "odd", .param = &row, .param_count = 1, .param_size = 16};
    void *out = NULL;
    for (uint32_t at = 0; at <= 32; at++) {
        fl_diag d = {0};
        row.offset = at;
        const fl_status s = fl_params_resolve(&out, &odd, NULL, 0, &d);
        FL_CHECK(at <= 8 ? s == FL_OK && out : s == FL_BAD_INPUT && !out && strstr(d.message, "outside"), "%u: %d, %s",
                 at, s, d.message);
        fl_params_free(&odd, out);
    }
    const fl_policy empty = {.name = "empty"};
    fl_diag d = {0};
    CU_ASSERT(fl_params_resolve(&out, &empty, NULL, 0, &d) == FL_OK && out);
    void *copy = fl_params_copy(&empty, out);
    CU_ASSERT(copy != NULL);
    fl_params_free(&empty, copy);
    fl_params_free(&empty, out);
}

FL_SUITE("params", {"defaults", test_defaults}, {"texts", test_texts}, {"tables", test_tables}, {"layers", test_layers},
         {"only a list", test_only_a_list}, {"columns", test_columns}, {"outside", test_outside})
