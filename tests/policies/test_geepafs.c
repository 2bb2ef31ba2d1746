#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>

#define HEAD                                                                                                           \
    "Apply policy: Assure\nMACHINE v100-test\nfreqset tool start..\nReset: device 0. device 1. \nMain loop start..\n"
#define ROW0 "2024-1-2 3:4:5, 10, 20, 40500, 855, 1050, 0, 0, 30000, 135, -1, 150000\n"
#define ROW1 "2024-1-2 3:4:5, 11, 21, 50250, 1050, -1, 0, 1, 31000, 855, 1440, 250001\n"
#define CLOSING "Interrupted.\nReset GPU frequency for: device 0. device 1. \n"
#define ROW2 "2024-1-2 3:4:6, 12, 22, 60000, 1050, -1, 100, 100, 32000, 855, -1, 1000"

static void test_good(void) {
    fl_decisions r;
    fl_diag d = {0};
    fl_status status = fl_geepafs_read(fl_temp_text("log", HEAD ROW0 ROW1 ROW2), &r, &d);
    FL_CHECK(status == FL_OK && r.gpu_count == 2 && r.step_count == 3 && r.torn_line == 0, "%d %lld: %s", status,
             (long long)d.line, d.message);
    if (status != FL_OK)
        return;
    static const char *const ENTRY[][2] = {{"policy", "Assure"}, {"machine", "v100-test"}, {"gpus", "2"}};
    for (size_t i = 0; i < 3; i++) {
        const char *value = fl_head_get(&r.head, ENTRY[i][0]);
        FL_CHECK(value && strcmp(value, ENTRY[i][1]) == 0, "%s is '%s'", ENTRY[i][0], value ? value : "missing");
    }
    static const char *const SIGNAL[] = {"util_gpu_pct", "util_mem_pct", "power_w", "sm_mhz", "loop_ns"};
    FL_CHECK(r.signal_count == 5 && r.control_count == 1 && strcmp(r.control[0], "sm_mhz") == 0, "columns");
    for (size_t i = 0; i < 5; i++)
        FL_CHECK(strcmp(r.signal[i], SIGNAL[i]) == 0, "signal %zu is %s", i, r.signal[i]);
    static const double VALUE[3][3][5] = {
        {{NAN, NAN, NAN, NAN, NAN}, {10, 20, 40.5, 855, NAN}, {0, 0, 30, 135, NAN}},
        {{NAN, NAN, NAN, NAN, 150000000}, {11, 21, 50.25, 1050, NAN}, {0, 1, 31, 855, NAN}},
        {{NAN, NAN, NAN, NAN, 250001000}, {12, 22, 60, 1050, NAN}, {100, 100, 32, 855, NAN}},
    };
    static const double SET[3][3] = {{NAN, 1050, NAN}, {NAN, NAN, 1440}, {NAN, NAN, NAN}};
    /* The second row comes one period after the first, the third as late as the second row's loop took. */
    static const int64_t T_NS[] = {0, 200000000, 450001000};
    for (size_t s = 0; s < 3; s++) {
        FL_CHECK(r.t_ns[s] == T_NS[s] && r.delay_ns[s] == -1 && r.line[s] == (int64_t)s + 6, "step %zu at %lld", s,
                 (long long)r.t_ns[s]);
        for (size_t g = 0; g < 3; g++) {
            double set = r.set[s * 3 + g];
            FL_CHECK(set == SET[s][g] || (isnan(set) && isnan(SET[s][g])), "step %zu row %zu sets %g", s, g, set);
            for (size_t i = 0; i < 5; i++) {
                double value = r.value[(s * 3 + g) * 5 + i];
                FL_CHECK(value == VALUE[s][g][i] || (isnan(value) && isnan(VALUE[s][g][i])),
                         "step %zu row %zu: %s is %g", s, g, SIGNAL[i], value);
                FL_CHECK(r.fresh[(s * 3 + g) * 5 + i] == !isnan(value), "step %zu row %zu: fresh mark of %s", s, g,
                         SIGNAL[i]);
            }
        }
    }
    fl_decisions_free(&r);
}

/* Ctrl-C ended the daemon: its rows end at one line of text or two. */
static void test_closing(void) {
    static const struct {
        const char *in;
        size_t steps;
    } ROWS[] = {
        {HEAD ROW0 ROW1 CLOSING, 2},
        {HEAD ROW0 ROW1 "Interrupted.\n", 2},
        {HEAD ROW0 ROW1 "Reset: device 0, device 1\n", 2}, /* commas are no fields of a row */
        {HEAD ROW0 "signal 2\nReset GPU frequ", 1},        /* cut off in the last line */
        {HEAD ROW0 "Signal 2, at 2024-1-2 3:4:6", 1},
        {HEAD ROW0 ROW2 "\n" CLOSING, 2},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_decisions r;
        fl_diag d = {0};
        fl_status status = fl_geepafs_read(fl_temp_text("log", ROWS[i].in), &r, &d);
        FL_CHECK(status == FL_OK && r.step_count == ROWS[i].steps && r.torn_line == 0 && r.gpu_count == 2,
                 "row %zu: %d, %zu steps, torn at %lld; %lld: %s", i, status, r.step_count, (long long)r.torn_line,
                 (long long)d.line, d.message);
        fl_decisions_free(&r);
    }
}

static void test_torn(void) {
    static const struct {
        const char *in;
        size_t steps;
        int64_t torn;
    } ROWS[] = {
        {HEAD ROW0 ROW1 "2024-1-2 3:4:6, 12, 22", 2, 8},
        {HEAD ROW0 "2024-1-2 3:4:5, 11, 21, 50250, 1050, -1, 0, 1, 31000, 855, 1440, ", 1, 7},
        {HEAD ROW0 "2", 1, 7},
        {HEAD ROW0 ROW2, 2, 0},
        {HEAD ROW0 ROW1, 2, 0},
        {"Apply policy: Assure\nMain loop start..\n" ROW0, 1, 0}, /* a shorter head */
        {"Apply policy: Assure\r\nMain loop start..\r\n2024-1-2 3:4:5, 10, 20, 40500, 855, 1050, 150\r\n", 1, 0},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_decisions r;
        fl_diag d = {0};
        fl_status status = fl_geepafs_read(fl_temp_text("log", ROWS[i].in), &r, &d);
        FL_CHECK(status == FL_OK && r.step_count == ROWS[i].steps && r.torn_line == ROWS[i].torn,
                 "row %zu: %d, %zu steps, torn at %lld; %lld: %s", i, status, r.step_count, (long long)r.torn_line,
                 (long long)d.line, d.message);
        FL_CHECK(d.status == FL_OK && d.message[0] == '\0', "row %zu: a message without a failure: %s", i, d.message);
        fl_decisions_free(&r);
    }
}

static void test_bad(void) {
    static const struct {
        const char *in;
        int64_t line, column;
        const char *message;
    } ROWS[] = {
        {ROW0, 1, 1, "expected 'Apply policy: ' and its name"},
        {"Apply policy: Assure\n" ROW0, 2, 1, "expected the line 'Main loop start..'"},
        {"Apply policy: Assure\nMACHINE x\ty\nMain loop start..\n" ROW0, 2, 1,
         "control character in the name of the machine"},
        {"Apply policy: Assure\nMACHINE x\n", 0, 0, "no whole row"},
        {HEAD, 0, 0, "no whole row"},
        {HEAD "2024-1-2 3:4:5, 10", 0, 0, "no whole row"},
        {HEAD "2024-1-2 3:4:5, 10, 20, 40500, 855, 1050, 7, 150000\n", 6, 46,
         "row has 8 fields, expected a time, five numbers"},
        {HEAD ROW0 "2024-1-2 3:4:6, 12, 22\n" ROW1, 7, 21, "row has 3 fields, expected 12"},
        {HEAD ROW0 "2024-1-2 3:4:6, 12, 22\n", 7, 21, "row has 3 fields, expected 12"},
        {HEAD CLOSING, 6, 1, "row has 1 field, expected a time"},
        {HEAD CLOSING ROW0, 6, 1, "row has 1 field, expected a time"},
        {HEAD ROW0 "Interrupted.\n" ROW1, 7 + 1, 1, "'2024-1-2 3:4:5' after the lines with which the daemon ended"},
        {HEAD ROW0 CLOSING "Reset again\n", 9, 1, "'Reset again' after the lines with which"},
        {HEAD ROW0 CLOSING "2", 9, 1, "'2' after the lines with which"},
        {HEAD ROW0 "Interrupted.\n\"\"\n", 8, 1, "'' after the lines with which"},
        {HEAD ROW0 "2024-1-2 3:4:6, 12, 22\n" CLOSING, 7, 21, "row has 3 fields, expected 12"},
        {HEAD ROW0 "-Interrupted.\n", 7, 1, "row has 1 field, expected 12"},
        {HEAD "2024-13-2 3:4:5, 10, 20, 40500, 855, 1050, 150\n", 6, 1, "'2024-13-2 3:4:5' is no time"},
        {HEAD "2024-1-2 3:4, 10, 20, 40500, 855, 1050, 150\n", 6, 1, "'2024-1-2 3:4' is no time"},
        {HEAD "2024-1-2 3:4:5x, 10, 20, 40500, 855, 1050, 150\n", 6, 1, "is no time"},
        {HEAD "2024-1-2 3:4:5, 101, 20, 40500, 855, 1050, 150\n", 6, 17, "GPU utilisation (%) is '101', expected"},
        {HEAD "2024-1-2 3:4:5, 10, -1, 40500, 855, 1050, 150\n", 6, 21, "memory utilisation (%) is '-1'"},
        {HEAD "2024-1-2 3:4:5, 10, 20, 40.5, 855, 1050, 150\n", 6, 25, "power (mW) is '40.5'"},
        {HEAD "2024-1-2 3:4:5, 10, 20, 40500, N/A, 1050, 150\n", 6, 32, "SM clock (MHz) is 'N/A'"},
        {HEAD "2024-1-2 3:4:5, 10, 20, 40500, 855, -2, 150\n", 6, 37, "set clock (MHz, -1 for none) is '-2'"},
        {HEAD "2024-1-2 3:4:5, 10, 20, 40500, 855, 0, 150\n", 6, 37, "set clock is 0"},
        {HEAD "2024-1-2 3:4:5, 10, 20, 40500, 855, 1050, -150\n", 6, 43, "loop duration (us) is '-150'"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_decisions r, zero = {0};
        fl_diag d = {0};
        memset(&r, 0xaa, sizeof r);
        fl_status status = fl_geepafs_read(fl_temp_text("log", ROWS[i].in), &r, &d);
        FL_CHECK(status == FL_BAD_INPUT && d.line == ROWS[i].line && d.column == ROWS[i].column &&
                     strstr(d.message, ROWS[i].message),
                 "row %zu: %d %lld:%lld: %s", i, status, (long long)d.line, (long long)d.column, d.message);
        FL_CHECK(memcmp(&r, &zero, sizeof r) == 0, "row %zu: something was left in the struct", i);
    }
}

/* What the log becomes can be written and read again. */
static void test_as_decisions(void) {
    fl_decisions r, u = {0};
    fl_diag d = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", fl_temp_path("decisions.csv"));
    FL_CHECK(fl_geepafs_read(fl_temp_text("log", HEAD ROW0 ROW1 ROW2), &r, &d) == FL_OK, "%s", d.message);
    FL_CHECK(fl_decisions_write(path, &r, &d) == FL_OK && fl_decisions_read(path, &u, &d) == FL_OK, "%lld: %s",
             (long long)d.line, d.message);
    FL_CHECK(u.step_count == 3 && memcmp(u.t_ns, r.t_ns, 3 * sizeof *r.t_ns) == 0 && memcmp(u.fresh, r.fresh, 45) == 0,
             "%zu steps came back", u.step_count);
    fl_decisions_free(&r);
    fl_decisions_free(&u);
    fl_temp_remove();
}

FL_SUITE("geepafs", {"good", test_good}, {"closing lines", test_closing}, {"torn", test_torn}, {"bad", test_bad},
         {"as decisions", test_as_decisions})
