#include "tests/support/suite.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <errno.h>
#include <locale.h>
#include <math.h>

static void test_text(void) {
    static const struct {
        const char *file;
        int64_t line, column;
        const char *expected;
    } ROWS[] = {
        {"a.csv", 3, 7, "a.csv:3:7: wrong"}, {"a.csv", 3, 0, "a.csv:3: wrong"},
        {"a.csv", 0, 0, "a.csv: wrong"},     {NULL, 0, 0, "wrong"},
        {NULL, 4, 2, "line 4:2: wrong"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_diag d;
        char text[200];
        fl_status status = fl_fail(&d, FL_IO, ROWS[i].file, ROWS[i].line, ROWS[i].column, "%s", "wrong");
        FL_CHECK(status == FL_IO && d.status == FL_IO, "row %zu: status %d", i, status);
        fl_diag_text(&d, text, sizeof text);
        FL_CHECK(strcmp(text, ROWS[i].expected) == 0, "row %zu: '%s'", i, text);
    }
    FL_CHECK(fl_fail(NULL, FL_BAD_INPUT, "f", 1, 1, "x") == FL_BAD_INPUT, "a NULL diagnostic must do");
}

static void test_printable(void) {
    static const struct {
        const char *in, *out;
    } ROWS[] = {
        {"plain", "plain"},
        {"a\033[31mb\n\t\177", "a?[31mb???"},
        {"\303\251 \342\202\254 \360\237\230\200",
         "\303\251 \342\202\254 \360\237\230\200"}, /* e acute, euro, a face */
        {"\xc2\x9b"
         "5m",
         "??5m"}, /* CSI as a control character of the second set */
        {"\x9b"
         "5m",
         "?5m"},                      /* the same as a lone byte */
        {"\xc0\xaf", "??"},           /* too long a form */
        {"\xed\xa0\x80", "???"},      /* a surrogate */
        {"\xf4\x90\x80\x80", "????"}, /* beyond U+10FFFF */
        {"\xe2\x82", "??"},           /* cut off */
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_diag d;
        fl_fail(&d, FL_BAD_INPUT, ROWS[i].in, 0, 0, "%s", ROWS[i].in);
        FL_CHECK(strcmp(d.message, ROWS[i].out) == 0, "row %zu: message '%s'", i, d.message);
        FL_CHECK(strcmp(d.file, ROWS[i].out) == 0, "row %zu: file '%s'", i, d.file);
    }
    static char huge[5000];
    memset(huge, 'x', sizeof huge - 1);
    fl_diag d;
    fl_fail(&d, FL_BAD_INPUT, huge, 0, 0, "%s", huge);
    FL_CHECK(strlen(d.message) == sizeof d.message - 1 && strlen(d.file) == sizeof d.file - 1, "long texts are cut");
}

static void test_nearest(void) {
    static const char *const NAMES[] = {"start_ns", "end_ns", "name", "grid_x", "block_x", "stream"};
    static const struct {
        const char *name, *nearest;
    } ROWS[] = {
        {"start", NULL},     {"start_n", "start_ns"}, {"strat_ns", "start_ns"}, {"START_NS", "start_ns"}, {"end", NULL},
        {"endns", "end_ns"}, {"nmae", "name"},        {"block_y", "block_x"},   {"temperature", NULL},    {"", NULL},
        {"x", NULL},         {"steram", "stream"},    {"grid x", "grid_x"},     {"nam", "name"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *found = fl_nearest(ROWS[i].name, NAMES, sizeof NAMES / sizeof *NAMES);
        FL_CHECK(found == ROWS[i].nearest || (found && ROWS[i].nearest && strcmp(found, ROWS[i].nearest) == 0),
                 "'%s' gave '%s'", ROWS[i].name, found ? found : "nothing");
    }
    char longer[200];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    FL_CHECK(fl_nearest(longer, NAMES, 6) == NULL, "a very long name is near nothing");
}

static void test_unknown(void) {
    static const char *const known[] = {"alpha", "beta", "gamma"};
    static const struct {
        const char *name, *says;
        size_t count;
    } row[] = {{"alpah", "no thing 'alpah', did you mean 'alpha'?", 3},
               {"zzz", "no thing 'zzz', expected one of alpha, beta, gamma", 3},
               {"zzz", "no thing 'zzz', expected alpha", 1}};
    fl_diag d;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        FL_CHECK(fl_fail_unknown(&d, "f", "thing", row[i].name, known, row[i].count) == FL_BAD_INPUT &&
                     !strcmp(d.message, row[i].says) && !strcmp(d.file, "f"),
                 "'%s'", d.message);
    const char *many[60];
    for (size_t i = 0; i < 60; i++)
        many[i] = "workload";
    fl_fail_unknown(&d, NULL, "thing", "zzz", many, 60);
    FL_CHECK(strstr(d.message, " and ") && strstr(d.message, " more"), "'%s'", d.message);
}

static void test_grow(void) {
    double *items = NULL;
    size_t room = 0;
    FL_CHECK(fl_grow(&items, &room, 0, sizeof *items) == FL_OK && items == NULL, "nothing needed, nothing done");
    for (size_t i = 0; i < 1000; i++) {
        FL_CHECK(fl_grow(&items, &room, i + 1, sizeof *items) == FL_OK && room > i, "room %zu for %zu", room, i + 1);
        items[i] = (double)i;
    }
    for (size_t i = 0; i < 1000; i++)
        FL_CHECK(items[i] == (double)i, "item %zu is %g", i, items[i]);
    double *before = items;
    size_t room_before = room;
    FL_CHECK(fl_grow(&items, &room, SIZE_MAX / 4, sizeof *items) == FL_NO_MEMORY, "too much must be refused");
    FL_CHECK(items == before && room == room_before, "a failure changes nothing");
    free(items);
}

static void test_head(void) {
    fl_head h = {0};
    FL_CHECK(fl_head_get(&h, "a") == NULL, "an empty head has no entries");
    FL_CHECK(fl_head_set(&h, "a", "1") && fl_head_set(&h, "b", "2") && fl_head_set(&h, "a", "3"), "set");
    FL_CHECK(h.count == 2 && strcmp(fl_head_get(&h, "a"), "3") == 0 && strcmp(h.entry[1].key, "b") == 0,
             "replaced in place");
    fl_head_free(&h);
    fl_head_free(&h);
    FL_CHECK(h.count == 0 && h.entry == NULL, "zeroed");
}

static void test_intern(void) {
    fl_intern n = {0};
    char **names = NULL, text[32];
    size_t count = 0, room = 0;
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 5000; i++) {
            int size = snprintf(text, sizeof text, "kernel<%u>", (unsigned)i);
            uint32_t index = fl_intern_text(&n, &names, &count, &room, text, (size_t)size);
            FL_CHECK(index == i, "round %d: '%s' has index %u", round, text, (unsigned)index);
        }
    FL_CHECK(count == 5000, "%zu names", count);
    FL_CHECK(fl_intern_text(&n, &names, &count, &room, "kernel<12>tail", 10) == 12, "only the given bytes count");
    FL_CHECK(fl_intern_text(&n, &names, &count, &room, "kernel<1", 8) == 5000, "a beginning of a name is another name");
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    fl_intern_free(&n);
}

static void test_ints(void) {
    static const struct {
        const char *text;
        fl_number result;
        int64_t value;
    } ROWS[] = {
        {"0", FL_NUMBER_OK, 0},
        {"-0", FL_NUMBER_OK, 0},
        {"007", FL_NUMBER_OK, 7},
        {"9223372036854775807", FL_NUMBER_OK, INT64_MAX},
        {"-9223372036854775808", FL_NUMBER_OK, INT64_MIN},
        {"9223372036854775808", FL_NUMBER_RANGE, 0},
        {"-9223372036854775809", FL_NUMBER_RANGE, 0},
        {"18446744073709551616", FL_NUMBER_RANGE, 0},
        {"184467440737095516160", FL_NUMBER_RANGE, 0},
        {"99999999999999999999999999x", FL_NUMBER_SYNTAX, 0},
        {"", FL_NUMBER_SYNTAX, 0},
        {"-", FL_NUMBER_SYNTAX, 0},
        {"+1", FL_NUMBER_SYNTAX, 0},
        {"1.0", FL_NUMBER_SYNTAX, 0},
        {"1e3", FL_NUMBER_SYNTAX, 0},
        {"0x10", FL_NUMBER_SYNTAX, 0},
        {" 1", FL_NUMBER_SYNTAX, 0},
        {"1 ", FL_NUMBER_SYNTAX, 0},
        {"1,000", FL_NUMBER_SYNTAX, 0},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        int64_t value = 0;
        fl_number result = fl_int_parse(ROWS[i].text, &value);
        FL_CHECK(result == ROWS[i].result && value == ROWS[i].value, "'%s' gave %d, %lld", ROWS[i].text, result,
                 (long long)value);
    }
}

static void test_reals(void) {
    static const char *const GOOD[] = {"0",
                                       "-0.0",
                                       "1.5",
                                       ".5",
                                       "5.",
                                       "+2",
                                       "1e5",
                                       "1E-5",
                                       "1e+22",
                                       "1e23",
                                       "9007199254740993",
                                       "0.1",
                                       "123456789.123456789",
                                       "4.9e-324",
                                       "1e-400",
                                       "2.2250738585072011e-308",
                                       "179769313486231570000e288",
                                       "0e99999999999",
                                       "0.000000000000000000000000000000000000000000000000000000000000000000001",
                                       "3.14159265358979323846264338327950288",
                                       "9007199254740992e22"};
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        double value = NAN, expected = strtod(GOOD[i], NULL);
        FL_CHECK(fl_real_parse(GOOD[i], &value) == FL_NUMBER_OK && value == expected &&
                     !signbit(value) == !signbit(expected),
                 "'%s' gave %.17g, strtod %.17g", GOOD[i], value, expected);
    }
    static const char *const BAD[] = {"",    "-",   ".",     "e5", "1e", "1e+", "1.2.3",
                                      "inf", "nan", "0x1p3", " 1", "1 ", "1,5", "1d5"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        double value = 7;
        FL_CHECK(fl_real_parse(BAD[i], &value) == FL_NUMBER_SYNTAX && value == 7, "'%s' gave %g", BAD[i], value);
    }
    double value = 7;
    FL_CHECK(fl_real_parse("1e309", &value) == FL_NUMBER_RANGE && value == 7, "1e309 gave %g", value);
}

static uint64_t next(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void test_shortest(void) {
    static const struct {
        double value;
        const char *text;
    } ROWS[] = {{0, "0"},           {0.1, "0.1"},
                {47.155, "47.155"}, {1.0 / 3, "0.3333333333333333"},
                {100, "100"},       {0.1 + 0.2, "0.30000000000000004"},
                {1e22, "1e+22"},    {-1.5, "-1.5"},
                {INFINITY, "inf"}};
    char text[FL_REAL_TEXT];
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        FL_CHECK(strcmp(fl_real_text(ROWS[i].value, text), ROWS[i].text) == 0, "%.17g gave '%s'", ROWS[i].value, text);
    uint64_t seed = 20240917, state = seed;
    int wrong = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = next(&state);
        double value, back = NAN;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        fl_real_text(value, text);
        wrong += fl_real_parse(text, &back) != FL_NUMBER_OK || memcmp(&back, &value, sizeof value) != 0;
    }
    FL_CHECK(wrong == 0, "seed %llu: %d numbers do not come back", (unsigned long long)seed, wrong);
}

/* With a decimal comma in the locale, files stay as they are. Skipped silently where no such locale is installed. */
static void test_locale(void) {
    static const char *const LOCALES[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof LOCALES / sizeof *LOCALES; i++)
        if (setlocale(LC_ALL, LOCALES[i]))
            break;
    char text[FL_REAL_TEXT];
    double value = NAN;
    FL_CHECK(strcmp(fl_real_text(2.5, text), "2.5") == 0, "2.5 is written '%s'", text);
    FL_CHECK(fl_real_parse("1234567890.12345678901", &value) == FL_NUMBER_OK && value > 1234567890.1, "read %.17g",
             value);
    setlocale(LC_ALL, "C");
    FL_CHECK(strcmp(fl_reason(ENOENT), "No such file or directory") == 0 && *fl_reason(-1), "reasons");
}

static void test_off_ladder(void) {
    static const int32_t ladder[] = {1260, 1275, 1305, 1410};
    static const struct {
        double mhz;
        size_t first, count; /* of the ladder */
        const char *text;
    } rows[] = {{1290, 0, 4, "1290 MHz is not on the SM ladder; the next ones are 1275 and 1305"},
                {1275.5, 0, 4, "1275.5 MHz is not on the SM ladder; the next ones are 1275 and 1305"},
                {1, 0, 4, "1 MHz is not on the SM ladder; the lowest is 1260"},
                {1411, 0, 4, "1411 MHz is not on the SM ladder; the highest is 1410"},
                {1290, 1, 1, "1290 MHz is not on the SM ladder; the highest is 1275"},
                {1290, 0, 0, "1290 MHz is not on the SM ladder"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[FL_OFF_LADDER_TEXT];
        fl_off_ladder(rows[i].mhz, "the SM ladder", ladder + rows[i].first, rows[i].count, text);
        FL_CHECK(!strcmp(text, rows[i].text), "%s", text);
    }
}

FL_SUITE("diag", {"text", test_text}, {"off_ladder", test_off_ladder}, {"printable", test_printable},
         {"nearest", test_nearest}, {"unknown", test_unknown}, {"grow", test_grow}, {"head", test_head},
         {"intern", test_intern}, {"ints", test_ints}, {"reals", test_reals}, {"shortest", test_shortest},
         {"locale", test_locale})
