/* Results as tables: what is read, which rows are left, in which order, and what is printed in how many columns. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "harness/report/data/data.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

static const char RESULT[] = "name,energy_j,count,slowdown,note,seed\n"
                             "first,1234.5678,1234567,0.1,,1\n"
                             "second,0.000012345678,7,n/a,,1\n"
                             "\"third, quoted\",-5,12,0.03,,1\n";

/* The table as printed, malloc'd. */
static char *print(const fl_show_table *t, const fl_show_look *look) {
    fl_text text;
    FILE *f = fl_text_open(&text);
    fl_show_print(t, look, f);
    return fl_text_close(&text, NULL);
}

static fl_show_table read_text(const char *name, const char *text) {
    static char path[512];
    fl_show_table t;
    fl_diag d = {0};
    snprintf(path, sizeof path, "%s", fl_temp_text(name, text));
    FL_CHECK(!fl_show_read(path, &t, &d), "%s", d.message);
    return t;
}

static void test_print(void) {
    fl_show_table t = read_text("r.csv", RESULT);
    FL_CHECK(t.columns == 6 && t.rows == 3 && t.shown == 3, "%zu columns, %zu rows", t.columns, t.rows);
    FL_CHECK(!t.number[0] && t.number[1] && t.number[3] && !t.number[4], "what is a number");
    char *text = print(&t, &(fl_show_look){.digits = 5, .width = 80});
    FL_CHECK(text && !strcmp(text, "name             energy_j    count  slowdown  note  seed\n"
                                   "first              1234.6  1234567       0.1           1\n"
                                   "second         1.2346e-05        7       n/a           1\n"
                                   "third, quoted          -5       12      0.03           1\n"),
             "all fit:\n%s", text);
    free(text);
    text = print(&t, &(fl_show_look){.digits = 17, .width = 40, .rows = 2});
    FL_CHECK(text && !strncmp(text, "name          energy_j    count\n", 32) && strstr(text, "0.000012345678") &&
                 strstr(text, "\nalike in all rows: seed 1\nempty: note\nleft out, for they do not fit: slowdown\n") &&
                 strstr(text, "\n2 of 3 rows (--rows 0 for all)\n"),
             "too narrow:\n%s", text);
    free(text);
    text = print(&t, &(fl_show_look){.digits = 5, .width = 20});
    FL_CHECK(text && !strncmp(text, "name\nfirst\n", 11) && strstr(text, "third, qu\xe2\x80\xa6"), "one is left:\n%s",
             text);
    free(text);
    for (int width = 20; width < 90; width++) { /* no line is wider */
        text = print(&t, &(fl_show_look){.digits = 5, .width = width});
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            size_t n = 0;
            for (const char *c = line; *c; c++)
                n += ((unsigned char)*c & 0xc0) != 0x80;
            FL_CHECK(n <= (size_t)width || strchr(line, '(') || strchr(line, ':'), "%d: '%s'", width, line);
        }
        free(text);
    }
    fl_show_free(&t);
}

static void test_where(void) {
    static const struct {
        const char *condition, *left; /* first letters of the rows */
    } ROWS[] = {
        {"energy_j<0", "t"},   {"energy_j>0", "fs"},    {"slowdown<=0.1", "ft"}, {"slowdown<0.1", "t"},
        {"slowdown>=0", "ft"}, {"count=7", "s"},        {"count==7.0", "s"},     {"count!=7", "ft"},
        {"name=first", "f"},   {"name != first", "st"}, {"slowdown=n/a", "s"},   {"note=", "fst"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_show_table t = read_text("r.csv", RESULT);
        fl_diag d = {0};
        char left[4] = "";
        FL_CHECK(!fl_show_where(&t, ROWS[i].condition, &d), "%s: %s", ROWS[i].condition, d.message);
        for (size_t k = 0; k < t.shown && k < 3; k++)
            left[k] = t.cell[t.order[k] * t.columns][0];
        FL_CHECK(!strcmp(left, ROWS[i].left), "%s: %s, expected %s", ROWS[i].condition, left, ROWS[i].left);
        fl_show_free(&t);
    }
    static const char *const BAD[] = {"energy_j", "<5", "energy<5", "energy_j<x", "", "energy_j!5", "name<b"};
    fl_show_table t = read_text("r.csv", RESULT);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        fl_diag d = {0};
        FL_CHECK(fl_show_where(&t, BAD[i], &d) == FL_BAD_INPUT &&
                     (strstr(d.message, "expected") || strstr(d.message, "mean")),
                 "%s: %s", BAD[i], d.message);
    }
    fl_show_free(&t);
}

static void test_sort(void) {
    static const struct {
        const char *column, *order;
    } ROWS[] = {{"energy_j", "tsf"}, {"-energy_j", "fst"}, {"slowdown", "tfs"}, {"-slowdown", "fts"},
                {"-name", "tsf"},    {"seed", "fst"},      {"-seed", "fst"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_show_table t = read_text("r.csv", RESULT);
        fl_diag d = {0};
        char order[4] = "";
        FL_CHECK(!fl_show_sort(&t, ROWS[i].column, &d), "%s", d.message);
        for (size_t k = 0; k < t.shown && k < 3; k++)
            order[k] = t.cell[t.order[k] * t.columns][0];
        FL_CHECK(!strcmp(order, ROWS[i].order), "%s: %s, expected %s", ROWS[i].column, order, ROWS[i].order);
        fl_show_free(&t);
    }
}

static void test_json(void) {
    fl_show_table t =
        read_text("a.json", "{\"version\": 2, \"few\": [{\"x\": 1}], \"rows\": [{\"a\": 1.5, \"b\": \"t\"}, "
                            "{\"b\": \"u\", \"c\": [1, {\"d\": null}], \"a\": null}], "
                            "\"about\": {\"who\": \"us\"}}");
    FL_CHECK(t.columns == 3 && t.rows == 2 && !strcmp(t.name[2], "c"), "%zu x %zu", t.columns, t.rows);
    FL_CHECK(!strcmp(t.cell[0], "1.5") && !*t.cell[2] && !*t.cell[3] && !strcmp(t.cell[4], "u") &&
                 !strcmp(t.cell[5], "[1,{\"d\":null}]"),
             "cells: %s %s", t.cell[0], t.cell[5]);
    const char *who = fl_head_get(&t.head, "about.who");
    FL_CHECK(who && !strcmp(who, "us"), "the head");
    fl_show_free(&t);
    t = read_text("l.json", " [{\"a\": 1}, {\"b\": \"x\", \"a\": 2}]");
    FL_CHECK(t.columns == 2 && t.rows == 2 && !strcmp(t.cell[2], "2") && !strcmp(t.cell[3], "x"), "%zu x %zu",
             t.columns, t.rows);
    fl_show_free(&t);
    t = read_text("m.json", "{\"rows\": [{\"a\": 1}, [2]]}"); /* no table */
    FL_CHECK(t.columns == 2 && t.rows == 1 && !strcmp(t.cell[1], "[{\"a\":1},[2]]"), "%zu x %zu", t.columns, t.rows);
    fl_show_free(&t);
    t = read_text("b.json", "{\"energy_j\": 3, \"time\": {\"s\": 4}, \"shares\": [{\"mhz\": 5}]}");
    FL_CHECK(t.columns == 2 && t.rows == 3 && !strcmp(t.cell[2], "time.s") && !strcmp(t.cell[3], "4"), "%zu x %zu",
             t.columns, t.rows);
    fl_show_free(&t);
}

/* What a terminal would obey, what is no UTF-8, and where a text with either is cut. */
static void test_bytes(void) {
    fl_show_table t = read_text(
        "r.csv", "name,energy_j\n\"a\x1b[2J\nb\",1\nlat\xe9n,2\nd\xc2\x9b\x7f"
                 "e,3\n"
                 "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9,4\n");
    char *text = print(&t, &(fl_show_look){.digits = 5, .width = 20});
    FL_CHECK(
        text &&
            !strcmp(text,
                    "name        energy_j\n"
                    "a?[2J?b            1\n"
                    "lat?n              2\n"
                    "d???e              3\n"
                    "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xe2\x80\xa6         4\n"),
        "bytes:\n%s", text);
    free(text);
    fl_show_free(&t);
}

static void test_names(void) {
    fl_show_table t = read_text("r.csv", "v,v,v.2,v\n1,2,3,4\n");
    FL_CHECK(t.columns == 4 && !strcmp(t.name[0], "v") && !strcmp(t.name[1], "v.2") && !strcmp(t.name[2], "v.2.2") &&
                 !strcmp(t.name[3], "v.3"),
             "%s %s %s", t.name[1], t.name[2], t.name[3]);
    fl_show_free(&t);
}

static void test_bad(void) {
    static const struct {
        const char *text, *part;
    } ROWS[] = {{"", "empty"},
                {"a,b\n1\n", "row has 1 fields, expected 2"},
                {"a,b\n1,2\n3,4,5\n", "row has 3 fields"},
                {"{\"a\": 1", "ends too early"},
                {"[1, 2]", "expected an object or a list of objects"},
                {"[{\"a\": 1}, [2]]", "expected an object or a list of objects"},
                {"[]", "expected an object or a list of objects"},
                {"[{\"a\": 1, \"a\": 2}]", "given twice"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_show_table t;
        fl_diag d = {0};
        const fl_status s = fl_show_read(fl_temp_text("bad", ROWS[i].text), &t, &d);
        FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, ROWS[i].part), "%zu: %s", i, d.message);
        fl_show_free(&t);
    }
    fl_temp_remove();
}

FL_SUITE("show", {"print", test_print}, {"where", test_where}, {"sort", test_sort}, {"JSON", test_json},
         {"bytes", test_bytes}, {"names", test_names}, {"bad", test_bad})
