#include "tests/support/import_fixture.h"

#define FORMAT "nvidia-smi"
#define HEAD "timestamp, index, name, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%], pstate\n"
#define ROW0 "2024/02/29 23:59:59.500, 0, Board X, 65.91 W, 1410 MHz, 85 %, P0\n"
#define ROW1 "2024/02/29 23:59:59.750, 1, Board X, 70.00 W, 1395 MHz, 90 %, P0\n"
#define ROW2 "2024/03/01 00:00:00.000, 0, Board X, 66.00 W, 1410 MHz, 86 %, P0\n"

static void test_units_in_cells(void) {
    fl_taken t = fl_take(FORMAT, HEAD ROW0 ROW1 ROW2);
    const fl_telemetry *m = &t.in.telemetry;
    FL_CHECK(t.status == FL_OK && t.in.has_telemetry && !t.in.has_kernels && m->row_count == 3, "%s", t.d.message);
    /* 2024-02-29 23:59:59.5 UTC is 1709251199.5 s after 1970. */
    FL_CHECK(m->row_count == 3 && m->t_ns[0] == 1709251199500000000 && m->t_ns[2] - m->t_ns[0] == 500000000, "times");
    FL_CHECK(fl_same_real(fl_signal(m, 0, "power_w"), 65.91) && fl_same_real(fl_signal(m, 1, "sm_mhz"), 1395) &&
                 fl_same_real(fl_signal(m, 2, "util_gpu_pct"), 86) && m->device[1] == 1,
             "values");
    FL_CHECK(!strcmp(fl_head_get(&m->head, "device"), "Board X"), "name of the board");
    fl_taken odd = fl_take(FORMAT, "timestamp, power.draw [W], x\x1by\n2024/01/01 00:00:00.000, 5 W, 1\n");
    FL_CHECK(odd.status == FL_BAD_INPUT, "a header with a control character was taken");
    fl_imported_free(&odd.in);
    FL_CHECK(fl_noted(&t.in, "local time without a zone") && fl_noted(&t.in, "pstate"), "notes");
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
}

static void test_unit_of_header(void) {
    static const struct {
        const char *text;
        double power, clock;
    } CASE[] = {
        {"timestamp, power.draw [W], clocks.sm [MHz]\n2024/01/01 00:00:00.000, 65.91, 1410\n", 65.91, 1410},
        {"timestamp, power.draw [mW], clocks.sm [GHz]\n2024/01/01 00:00:00.000, 65910, 1.41\n", 65.91, 1410},
        {"timestamp, power.draw, clocks.sm\n2024/01/01 00:00:00.000, 65.91, 1410\n", 65.91, 1410},
        {"timestamp, power.draw.average [W], clocks.gr [MHz]\n2024/01/01 00:00:00.000, 65.91 W, 1410 MHz\n", 65.91,
         1410},
        {"timestamp, power.draw [W], clocks.sm [MHz], clocks.gr [MHz]\n2024/01/01 00:00:00.000, 65.91, 1410, 7\n",
         65.91, 1410},
        {"timestamp, clocks.gr [MHz], clocks.sm [MHz], power.draw.average [W], power.draw [W]\n"
         "2024/01/01 00:00:00.000, 7, 1410, 9, 65.91\n",
         65.91, 1410},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = fl_take(FORMAT, CASE[i].text);
        FL_CHECK(t.status == FL_OK && fabs(fl_signal(&t.in.telemetry, 0, "power_w") - CASE[i].power) < 1e-9 &&
                     fabs(fl_signal(&t.in.telemetry, 0, "sm_mhz") - CASE[i].clock) < 1e-9,
                 "case %zu: %s", i, t.d.message);
        fl_imported_free(&t.in);
    }
}

/* What surrounds the rows: shells, drivers, editors. */
static void test_surroundings(void) {
    static const struct {
        const char *text, *note;
        size_t rows;
    } CASE[] = {
        {"nohup: ignoring input\n" HEAD ROW0 ROW2, "1 lines above the header", 2},
        {"nohup: \"ignoring' input\r50 %\n\n" HEAD ROW0 ROW2, "2 lines above the header", 2},
        {HEAD ROW0 HEAD ROW2, "header is repeated 1 times", 2},
        {HEAD ROW0 "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.\n" ROW2, "line 3", 2},
        {HEAD ROW0 ROW1 "2024/03/01 00:00:00.000, 0, Bo", "line 4, the last", 2},
        {HEAD ROW0 ROW1 "2024/03/01 00:00:00.000, 0, Board X, 66.00 W, 1410 MHz, 8", "line 4, the last", 2},
        {"\xef\xbb\xbf" HEAD ROW0 ROW2, NULL, 2},
        {HEAD ROW0 "\n" ROW2 "\n\n", NULL, 2},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = fl_take(FORMAT, CASE[i].text);
        FL_CHECK(t.status == FL_OK && t.in.telemetry.row_count == CASE[i].rows &&
                     (!CASE[i].note || fl_noted(&t.in, CASE[i].note)),
                 "case %zu: %zu rows, '%s', %s", i, t.in.telemetry.row_count, t.d.message,
                 t.in.note_count ? t.in.note[0] : "");
        fl_imported_free(&t.in);
    }
    fl_taken t = fl_take(FORMAT, "timestamp, power.draw [W]\r\n2024/01/01 00:00:00.000, 65.91 W\r\n");
    FL_CHECK(t.status == FL_OK && fl_same_real(fl_signal(&t.in.telemetry, 0, "power_w"), 65.91), "%s", t.d.message);
    fl_imported_free(&t.in);
}

static void test_not_known(void) {
    static const char *const CELL[] = {"[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]",
                                       ""};
    for (size_t i = 0; i < sizeof CELL / sizeof *CELL; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "timestamp, power.draw [W], utilization.gpu [%%]\n2024/01/01 00:00:00.000, %s, 5 %%\n"
                 "2024/01/01 00:00:01.000, 50.00 W, 6 %%\n",
                 CELL[i]);
        fl_taken t = fl_take(FORMAT, text);
        FL_CHECK(t.status == FL_OK && isnan(fl_signal(&t.in.telemetry, 0, "power_w")) &&
                     fl_same_real(fl_signal(&t.in.telemetry, 1, "power_w"), 50),
                 "'%s': %s", CELL[i], t.d.message);
        fl_imported_free(&t.in);
    }
    fl_taken t = fl_take(FORMAT, "timestamp, power.draw [W], clocks.sm [MHz]\n2024/01/01 00:00:00.000, 50 W, [N/A]\n");
    FL_CHECK(t.status == FL_OK && t.in.telemetry.signal_count == 1 && fl_noted(&t.in, "sm_mhz is nowhere known"), "%s",
             t.d.message);
    fl_imported_free(&t.in);
    fl_refused(FORMAT, "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, [N/A]\n", 2, 1, "no row has a value");
}

/* The first readings after a driver woke up; an idle board's low power is none of that. */
static void test_garbage_first(void) {
    char text[4096];
    int n = snprintf(text, sizeof text,
                     "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, 1.20 W\n"
                     "2024/01/01 00:00:00.010, 1.30 W\n");
    for (int i = 2; i < 30; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "2024/01/01 00:00:00.%d0, %d.00 W\n", 10 + i, 50 + i);
    fl_taken t = fl_take(FORMAT, text);
    const fl_telemetry *m = &t.in.telemetry;
    FL_CHECK(t.status == FL_OK && isnan(fl_signal(m, 0, "power_w")) && isnan(fl_signal(m, 1, "power_w")) &&
                 fl_same_real(fl_signal(m, 2, "power_w"), 52) && fl_noted(&t.in, "2 first readings of power"),
             "%s", t.d.message);
    fl_imported_free(&t.in);
    t = fl_take(FORMAT, "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, 15 W\n2024/01/01 00:00:01.000, 300 W\n");
    FL_CHECK(fl_same_real(fl_signal(&t.in.telemetry, 0, "power_w"), 15), "idle power was taken for garbage");
    fl_imported_free(&t.in);
    t = fl_take(FORMAT, "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, 2 W\n2024/01/01 00:00:01.000, 8 W\n");
    FL_CHECK(fl_same_real(fl_signal(&t.in.telemetry, 0, "power_w"), 2), "a small board's power was taken for garbage");
    fl_imported_free(&t.in);
}

static void test_time(void) {
    /* Summer time ends: 02:59:59 is followed by 02:00:00. */
    fl_taken t = fl_take(FORMAT, "timestamp, power.draw [W]\n2024/10/27 02:59:59.000, 50 W\n"
                                 "2024/10/27 02:00:00.000, 51 W\n2024/10/27 02:00:01.000, 52 W\n");
    const fl_telemetry *m = &t.in.telemetry;
    FL_CHECK(t.status == FL_OK && m->row_count == 3 && m->t_ns[1] - m->t_ns[0] == 1000000000 &&
                 m->t_ns[2] - m->t_ns[1] == 1000000000 && fl_noted(&t.in, "set back by an hour"),
             "%s", t.d.message);
    fl_imported_free(&t.in);
    /* Readings that go on far beyond the change must all be moved. */
    t = fl_take(FORMAT, "timestamp, power.draw [W]\n2024/10/27 02:59:59.000, 50 W\n2024/10/27 02:00:00.000, 51 W\n"
                        "2024/10/27 02:50:00.000, 52 W\n2024/10/27 04:00:00.000, 53 W\n");
    m = &t.in.telemetry;
    FL_CHECK(t.status == FL_OK && m->row_count == 4 && m->t_ns[3] - m->t_ns[0] == INT64_C(7201000000000) &&
                 !fl_noted(&t.in, "order of time"),
             "%s", t.d.message);
    fl_imported_free(&t.in);
    t = fl_take(FORMAT, "timestamp, power.draw [W]\n2024/10/27 02:00:01.000, 51 W\n2024/10/27 02:00:00.000, 50 W\n");
    FL_CHECK(t.status == FL_OK && t.in.telemetry.row_count == 1 && fl_noted(&t.in, "1 of 2 rows that contradict"), "%s",
             t.d.message);
    fl_imported_free(&t.in);
    const char *none = "power.draw [W]\n50 W\n51 W\n52 W\n";
    t = fl_take_bytes(FORMAT, none, strlen(none), &(fl_import_options){.interval_s = 0.5, .device = -1});
    FL_CHECK(t.status == FL_OK && t.in.telemetry.row_count == 3 && t.in.telemetry.t_ns[0] == 0 &&
                 t.in.telemetry.t_ns[2] == 1000000000 && fl_noted(&t.in, "0.5 s apart"),
             "%s", t.d.message);
    fl_imported_free(&t.in);
    fl_refused(FORMAT, none, 1, 1, "no column timestamp");
}

static void test_boards(void) {
    fl_taken t = fl_take(FORMAT, "timestamp, uuid, power.draw [W]\n2024/01/01 00:00:00.000, GPU-b, 50 W\n"
                                 "2024/01/01 00:00:00.000, GPU-a, 60 W\n2024/01/01 00:00:01.000, GPU-b, 51 W\n");
    FL_CHECK(t.status == FL_OK && t.in.telemetry.device[0] == 0 && t.in.telemetry.device[1] == 1 &&
                 t.in.telemetry.device[2] == 0 && fl_noted(&t.in, "numbered as they come"),
             "%s", t.d.message);
    fl_imported_free(&t.in);
    t = fl_take(FORMAT, "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, 50 W\n2024/01/01 00:00:00.000, 60 W\n");
    FL_CHECK(t.status == FL_BAD_INPUT && strstr(t.d.message, "several GPUs"), "%s", t.d.message);
    fl_imported_free(&t.in);
    const char *two = HEAD ROW0 ROW1 ROW2;
    t = fl_take_bytes(FORMAT, two, strlen(two), &(fl_import_options){.device = 1});
    FL_CHECK(t.status == FL_OK && t.in.telemetry.row_count == 1 && t.in.telemetry.device[0] == 1, "%s", t.d.message);
    fl_imported_free(&t.in);
}

static void test_refused(void) {
    fl_refused(FORMAT, HEAD "2024/02/29 23:59:59.500, 0, Board X, 65,91 W, 1410 MHz, 85 %, P0\n", 2, 63,
               "decimal commas or thousands separators");
    fl_refused(FORMAT, "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, \"65,91\"\n", 2, 26, "decimal point");
    fl_refused(FORMAT, "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, \"1,234.5\"\n", 2, 26, "thousands");
    fl_refused(FORMAT, "timestamp;power.draw [W]\n2024/01/01 00:00:00.000;65,91\n", 1, 10, "semicolons");
    fl_refused(FORMAT, "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, 65.91 V\n", 2, 26, "expected W");
    fl_refused(FORMAT, "timestamp, power.draw [kg]\n2024/01/01 00:00:00.000, 65.91\n", 1, 12, "'kg'");
    fl_refused(FORMAT, "timestamp, power.draw [W]\n01.02.2024 10:00, 65.91\n", 2, 1, "timestamp is '01.02.2024 10:00'");
    fl_refused(FORMAT, "timestamp, power.draw [W]\n2024/13/01 00:00:00.000, 65.91\n", 2, 1, "timestamp");
    static const char *const no_day[] = {"2023/02/31", "2023/02/29", "2100/02/29",
                                         "2024/02/30", "2023/04/31", "2023/11/31"};
    for (size_t i = 0; i < sizeof no_day / sizeof *no_day; i++) {
        char text[128];
        snprintf(text, sizeof text, "timestamp, power.draw [W]\n%s 00:00:00.000, 65.91\n", no_day[i]);
        fl_refused(FORMAT, text, 2, 1, "timestamp");
    }
    fl_refused(FORMAT, "timestamp, power.draw [W]\n2024/02/29 00:00:00.000, -5 W\n", 2, 26,
               "expected 0 to 10000"); /* a leap year */
    fl_refused(FORMAT, "timestamp, power.draw [W]\n9024/01/01 00:00:00.000, 65.91\n", 2, 1, "timestamp");
    fl_refused(FORMAT, "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, -5 W\n", 2, 26, "expected 0 to 10000");
    fl_refused(FORMAT, "timestamp, power.draw [W]\n2024/01/01 00:00:00.000\n", 2, 1, "row has 1 field");
    fl_refused(FORMAT, "2024/01/01 00:00:00.000, 65.91 W\n2024/01/01 00:00:01.000, 65.91 W\n", 1, 1, "no noheader");
    fl_refused(FORMAT, "timestamp, power.draw [W]\n", 0, 0, "no readings");
}

static void test_cut(void) { fl_cut_everywhere(FORMAT, "nohup: ignoring input\n" HEAD ROW0 ROW1 ROW2); }

static void test_sample(void) {
    const char *path = fl_sample_path("formats/nvidia_smi_query_nounits.csv");
    if (!path)
        return;
    fl_diag d = {0};
    fl_imported in;
    const fl_reader *reader;
    FL_CHECK(fl_reader_find(path, NULL, &reader, &d) == FL_OK && !strcmp(reader->name, FORMAT), "%s", d.message);
    FL_CHECK(fl_reader_read(reader, path, NULL, &in, &d) == FL_OK && in.telemetry.row_count == 399, "%zu rows, %s",
             in.telemetry.row_count, d.message);
    FL_CHECK(fl_same_real(fl_signal(&in.telemetry, 0, "sm_mhz"), 1410), "clock");
    fl_round_trip(&in);
    fl_imported_free(&in);
}

FL_SUITE("import_nvidia_smi", {"units in cells", test_units_in_cells}, {"units in the header", test_unit_of_header},
         {"surroundings", test_surroundings}, {"not known", test_not_known}, {"garbage first", test_garbage_first},
         {"time", test_time}, {"boards", test_boards}, {"refused", test_refused}, {"cut", test_cut},
         {"sample", test_sample})
