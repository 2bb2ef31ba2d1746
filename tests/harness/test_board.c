#include "harness/base/cli/cli.h"
#include "harness/input/platform/platform.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>

/* A small sound board; the cases below break one line of it each. */
static const char sound[] = "{\n"
                            "\"foldline_board\": 1,\n"
                            "\"title\": \"A small board\",\n"
                            "\"name\": \"Small\",\n"
                            "\"sms\": 4,\n"
                            "\"sm_min_mhz\": 100,\n"
                            "\"sm_max_mhz\": 130,\n"
                            "\"mem_mhz\": [500, 1000],\n"
                            "\"limit_default_w\": 50,\n"
                            "\"notes\": {\"sms\": \"counted\", \"sm_min_mhz\": \"a log\", \"sm_max_mhz\": \"a log\",\n"
                            "\"mem_mhz\": \"a log\", \"limit_default_w\": \"a label\"}\n"
                            "}\n";

static char *with(const char *from, const char *to) {
    const char *at = strstr(sound, from);
    char *text = malloc(sizeof sound + strlen(to));
    if (!at || !text) {
        printf("\n    \"%s\" does not occur", from);
        exit(1);
    }
    sprintf(text, "%.*s%s%s", (int)(at - sound), sound, to, at + strlen(from));
    return text;
}

static fl_status open_text(const char *text, fl_board *b, fl_diag *d) {
    return fl_board_open(fl_temp_text("small.json", text), b, d);
}

/* What is stated arrives, what is not stays unknown. */
static void test_sound(void) {
    fl_board b;
    fl_diag d = {0};
    char text[128];
    FL_CHECK(open_text(sound, &b, &d) == FL_OK, "%s", d.message);
    FL_CHECK(b.fact[FL_BOARD_sms] == 4 && b.fact[FL_BOARD_sm_min_mhz] == 100 && b.fact[FL_BOARD_sm_max_mhz] == 130 &&
                 b.fact[FL_BOARD_limit_default_w] == 50 && b.mem_count == 2 && b.mem_mhz[1] == 1000 && !b.sm_count,
             "values");
    size_t known = 0;
    for (size_t i = 0; i < FL_BOARD_FACT_COUNT; i++) {
        known += isnan(b.fact[i]) ? 0 : 1;
        FL_CHECK(isnan(b.fact[i]) == !fl_board_source(&b, fl_board_rows[i].key), "%s", fl_board_rows[i].key);
    }
    FL_CHECK(known == 4, "%zu facts are known", known);
    FL_CHECK(!strcmp(fl_board_source(&b, "sms"), "counted"), "source");
    FL_CHECK(!fl_board_lacks(&b, text, sizeof text), "lacks %s", text);
    fl_board_free(&b);
    fl_board_free(&b); /* a second time is harmless */
}

static void test_lacks(void) {
    static const struct {
        const char *from, *to, *lacks;
    } rows[] = {
        {"\"sm_min_mhz\": 100,\n", "", "the lowest SM clock"},
        {"\"sm_max_mhz\": 130,\n", "", "the highest SM clock"},
        {"\"mem_mhz\": [500, 1000],\n", "", "memory clocks"},
        {"\"limit_default_w\": 50,\n", "", "the default power limit"},
        {"\"sm_min_mhz\": 100,\n", "\"sm_idle_mhz\": 100,\n", NULL},
        {"\"sm_min_mhz\": 100,\n\"sm_max_mhz\": 130,\n", "\"sm_mhz\": [100, 130],\n", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = with(rows[i].from, rows[i].to), *notes = strstr(text, "\"notes\""), said[128];
        fl_board b;
        fl_diag d = {0};
        /* one note for each value that is left */
        static const char *const keys[] = {"sms",    "sm_min_mhz", "sm_max_mhz",     "sm_idle_mhz",
                                           "sm_mhz", "mem_mhz",    "limit_default_w"};
        char whole[1024];
        int used = snprintf(whole, sizeof whole, "%.*s\"notes\": {", (int)(notes - text), text);
        for (size_t k = 0, n = 0; k < sizeof keys / sizeof *keys; k++) {
            char quoted[32];
            snprintf(quoted, sizeof quoted, "\"%s\": ", keys[k]);
            const char *at = strstr(text, quoted);
            if (at && at < notes)
                used +=
                    snprintf(whole + used, sizeof whole - (size_t)used, "%s\"%s\": \"seen\"", n++ ? ", " : "", keys[k]);
        }
        snprintf(whole + used, sizeof whole - (size_t)used, "}}");
        FL_CHECK(open_text(whole, &b, &d) == FL_OK, "row %zu: %s", i, d.message);
        const char *lacks = fl_board_lacks(&b, said, sizeof said);
        FL_CHECK(rows[i].lacks ? lacks && !strcmp(lacks, rows[i].lacks) : !lacks, "row %zu lacks %s", i,
                 lacks ? lacks : "nothing");
        fl_board_free(&b);
        free(text);
    }
}

static void test_bad(void) {
    static const struct {
        const char *from, *to, *message;
    } rows[] = {
        {"\"foldline_board\": 1", "\"foldline_board\": 2", "foldline_board: 2, expected a number in 1..1"},
        {"\"title\": \"A small board\"", "\"titel\": \"A\"", "titel: unknown key, expected \"title\"?"},
        {"\"sms\": 4", "\"sms\": -4", "sms: -4, expected"},
        {"\"sms\": 4", "\"sms\": \"4\"", "sms: a text, expected a number"},
        {"\"sms\": 4", "\"sms\": 1e999", "sms: inf"},
        {"\"sms\": \"counted\", ", "", "sms: no source, expected a line in notes"},
        {"\"sms\": 4,\n", "", "notes.sms: names no value of this file"},
        {"\"mem_mhz\": \"a log\", ", "", "mem_mhz: no source"},
        {"\"mem_mhz\": [500, 1000]", "\"mem_mhz\": [1000, 500]", "mem_mhz[1]: 500 after 1000"},
        {"\"name\": \"Small\"", "\"name\": \"\"", "name: empty"},
        {"\"sms\": \"counted\"", "\"sms\": 3", "notes.sms: a number"},
        {"\"notes\": {", "\"note\": {", "note: unknown key, expected \"notes\"?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = with(rows[i].from, rows[i].to);
        fl_board b;
        fl_diag d = {0};
        FL_CHECK(open_text(text, &b, &d) == FL_BAD_INPUT, "row %zu loads", i);
        FL_CHECK(strstr(d.message, rows[i].message) != NULL, "row %zu: %s", i, d.message);
        FL_CHECK(!b.name && !b.note, "row %zu is half-filled", i);
        free(text);
    }
    for (size_t n = 0; n + 2 < strlen(sound); n++) { /* no beginning of a file may load */
        char *text = strndup(sound, n);
        fl_board b;
        fl_diag d = {0};
        FL_CHECK(open_text(text, &b, &d) == FL_BAD_INPUT, "%zu bytes load", n);
        free(text);
    }
}

/* Every bundled board: it opens, its numbers are in order, and no platform has its name. */
static void test_bundled(void) {
    char **name = NULL, **platform = NULL;
    size_t count = 0, platforms = 0;
    fl_diag d = {0};
    FL_CHECK(fl_board_list(&name, &count, &d) == FL_OK && count >= 20, "%zu boards", count);
    FL_CHECK(fl_platform_list(&platform, &platforms, &d) == FL_OK, "%s", d.message);
    for (size_t i = 0; i < count; i++) {
        fl_board b;
        const double *f = b.fact;
        FL_CHECK(fl_board_open(name[i], &b, &d) == FL_OK, "%s: %s", name[i], d.message);
        if (!b.name)
            continue;
        FL_CHECK(b.note_count >= 4, "%s: %zu facts", name[i], b.note_count);
        /* comparisons with what is unknown are false */
        FL_CHECK(!(f[FL_BOARD_sm_min_mhz] >= f[FL_BOARD_sm_max_mhz]), "%s: ladder", name[i]);
        FL_CHECK(!(f[FL_BOARD_sm_idle_mhz] >= f[FL_BOARD_sm_max_mhz]), "%s: idle clock", name[i]);
        FL_CHECK(!(f[FL_BOARD_sm_base_mhz] > f[FL_BOARD_sm_boost_mhz]), "%s: base clock", name[i]);
        FL_CHECK(!(f[FL_BOARD_sm_default_mhz] > f[FL_BOARD_sm_max_mhz]), "%s: default clock", name[i]);
        FL_CHECK(!(f[FL_BOARD_limit_min_w] > f[FL_BOARD_limit_default_w]) &&
                     !(f[FL_BOARD_limit_default_w] > f[FL_BOARD_limit_max_w]),
                 "%s: limits", name[i]);
        FL_CHECK(!(f[FL_BOARD_idle_min_w] > f[FL_BOARD_idle_max_w]) &&
                     !(f[FL_BOARD_idle_max_w] > f[FL_BOARD_limit_default_w]),
                 "%s: idle power", name[i]);
        FL_CHECK(isnan(f[FL_BOARD_power_refresh_ms]) == isnan(f[FL_BOARD_power_window_ms]), "%s: power reading",
                 name[i]);
        for (size_t k = 0; k < platforms; k++)
            FL_CHECK(strcmp(platform[k], name[i]) != 0, "%s is a platform too", name[i]);
        fl_platform p;
        FL_CHECK(fl_platform_open(name[i], 0, &p, &d) == FL_BAD_INPUT && strstr(d.message, "power model is unknown"),
                 "%s: %s", name[i], d.message);
        fl_board_free(&b);
    }
    fl_place_list_free(name, count);
    fl_place_list_free(platform, platforms);
    fl_board b;
    FL_CHECK(fl_board_open("l40ss", &b, &d) == FL_BAD_INPUT && strstr(d.message, "did you mean 'l40s'"), "%s",
             d.message);
    FL_CHECK(!fl_board_exists("generic") && !fl_board_exists("./l4.json") && fl_board_exists("l4"), "names");
}

/* The nearest note tells whether a value is assumed. */
static void test_assumed(void) {
    fl_platform p;
    fl_diag d = {0};
    FL_CHECK(fl_platform_open("v100-163w", 0, &p, &d) == FL_OK, "%s", d.message);
    FL_CHECK(fl_platform_assumed(&p, "gpu.power.a_w"), "A is assumed");
    FL_CHECK(!fl_platform_assumed(&p, "gpu.power.c_w"), "C is measured");
    FL_CHECK(!fl_platform_assumed(&p, "gpu.power.nothing"), "no note");
    fl_platform_free(&p);
    FL_CHECK(fl_platform_open("h100", 0, &p, &d) == FL_OK && fl_platform_assumed(&p, "gpu.power.a_w"),
             "by the note on all of power");
    fl_platform_free(&p);
    FL_CHECK(fl_platform_open("apu-a10-5800k", 0, &p, &d) == FL_OK && fl_platform_assumed(&p, "gpu.power.a_w"), "%s",
             d.message);
    FL_CHECK(!fl_platform_assumed(&p, "gpu.power.gate_after_ms"), "a note of its own counts, not that on all of power");
    fl_platform_free(&p);
}

FL_SUITE("board", {"a sound board", test_sound}, {"what it lacks", test_lacks}, {"bad boards", test_bad},
         {"bundled boards", test_bundled}, {"assumed values", test_assumed})
