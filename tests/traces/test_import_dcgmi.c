#include "tests/support/import_fixture.h"

#define FORMAT "dcgmi"
#define HEAD                                                                                                           \
    "#Entity   POWER             SMCLK             GPUTL        FBUSD\n"                                               \
    "ID          W                                              MB\n"
#define ROUND0                                                                                                         \
    "GPU 0     20.891            1410              85           0\nGPU 1     30.5              N/A               90  " \
    "         0\n"
#define ROUND1                                                                                                         \
    "GPU 0     21.000            1395              86           0\nGPU 1     31.5              1200              91  " \
    "         0\n"

static void test_good(void) {
    fl_taken t = fl_take(FORMAT, HEAD ROUND0 ROUND1);
    const fl_telemetry *m = &t.in.telemetry;
    FL_CHECK(t.status == FL_OK && t.in.has_telemetry && m->row_count == 4, "%s", t.d.message);
    FL_CHECK(m->row_count == 4 && m->t_ns[1] == 0 && m->t_ns[2] == 1000000000 && m->device[3] == 1, "rounds");
    FL_CHECK(fl_same_real(fl_signal(m, 0, "power_w"), 20.891) && fl_same_real(fl_signal(m, 3, "sm_mhz"), 1200) &&
                 isnan(fl_signal(m, 1, "sm_mhz")) && fl_same_real(fl_signal(m, 3, "util_gpu_pct"), 91),
             "values");
    FL_CHECK(fl_noted(&t.in, "no time stamps") && fl_noted(&t.in, "default") && fl_noted(&t.in, "FBUSD"), "notes");
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
}

static void test_interval(void) {
    const char *text = HEAD ROUND0 ROUND1;
    fl_taken t = fl_take_bytes(FORMAT, text, strlen(text), &(fl_import_options){.interval_s = 0.1, .device = 1});
    FL_CHECK(t.status == FL_OK && t.in.telemetry.row_count == 2 && t.in.telemetry.t_ns[1] == 100000000 &&
                 fl_noted(&t.in, "as given"),
             "%s", t.d.message);
    fl_imported_free(&t.in);
}

static void test_fields(void) {
    fl_taken t = fl_take(FORMAT, "# Entity  SMACT  DRAMA  TOTEC  TMPTR  MMCLK  MCUTL  GRACT\n"
                                 "GPU0      0.5    0.25   123456 40     877    12     0.75\n"
                                 "GPU0      0.5    0.25   123457 40     877    12     0.75\n");
    const fl_telemetry *m = &t.in.telemetry;
    FL_CHECK(t.status == FL_OK && m->row_count == 2, "%s", t.d.message);
    FL_CHECK(m->row_count == 2 && fl_same_real(fl_signal(m, 0, "sm_active_pct"), 50) &&
                 fl_same_real(fl_signal(m, 0, "dram_active_pct"), 25) &&
                 fabs(fl_signal(m, 0, "energy_j") - 123.456) < 1e-9 && fl_same_real(fl_signal(m, 0, "mem_mhz"), 877) &&
                 fl_same_real(fl_signal(m, 1, "gpu_clock_busy_pct"), 75),
             "values");
    fl_imported_free(&t.in);
}

static void test_surroundings(void) {
    static const struct {
        const char *text, *note;
    } CASE[] = {
        {"some shell says \"this\n" HEAD ROUND0 ROUND1, NULL},
        {HEAD ROUND0 HEAD ROUND1, "header is repeated 1 times"},
        {HEAD ROUND0 "GPU-I 7   1.0   1  1  0\nGPU-CI 3  1.0  1  1  0\n" ROUND1, "2 lines are not about whole GPUs"},
        {HEAD ROUND0 ROUND1 "GPU 0     21.0", "the last, is not ended"},
        {HEAD ROUND0 ROUND1 "GPU 0     21.0  1395  8  0", "the last, is not ended"},
        {"\xef\xbb\xbf" HEAD ROUND0 "\n\n" ROUND1, NULL},
        {HEAD ROUND0 "\x01\x01ID\n" ROUND1, "1 lines are not about whole GPUs"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = fl_take(FORMAT, CASE[i].text);
        FL_CHECK(t.status == FL_OK && t.in.telemetry.row_count == 4 && t.in.telemetry.t_ns[3] == 1000000000 &&
                     (!CASE[i].note || fl_noted(&t.in, CASE[i].note)),
                 "case %zu: %zu rows %s", i, t.in.telemetry.row_count, t.d.message);
        fl_imported_free(&t.in);
    }
    fl_taken t = fl_take(FORMAT, "#Entity  POWER\r\nID  W\r\nGPU 0  20.5\r\n");
    FL_CHECK(t.status == FL_OK && fl_same_real(fl_signal(&t.in.telemetry, 0, "power_w"), 20.5), "CRLF: %s",
             t.d.message);
    fl_imported_free(&t.in);
}

static void test_refused(void) {
    fl_refused(FORMAT, "#Entity   POWER\nID        mW\nGPU 0     20891\n", 2, 11, "unit of POWER is 'mW', expected W");
    fl_refused(FORMAT, HEAD "GPU 0     20,891            1410              85           0\n", 3, 11, "decimal point");
    fl_refused(FORMAT, HEAD "GPU 0     1410              85           0\n", 3, 42, "row has 3 values, expected 4");
    fl_refused(FORMAT, HEAD "GPU x     20.891            1410              85           0\n", 3, 5,
               "no number of the GPU");
    fl_refused(FORMAT, HEAD ROUND0 "#Entity   POWER\n", 5, 1, "header changes");
    fl_refused(FORMAT, "#Entity\n", 1, 8, "no columns");
    fl_refused(FORMAT, "#Entity FBUSD\nGPU 0 1\n", 1, 9, "no column that telemetry has a place for");
    fl_refused(FORMAT, HEAD, 0, 0, "no readings");
    fl_refused(FORMAT, "x\n", 1, 1, "no header line");
}

static void test_cut(void) { fl_cut_everywhere(FORMAT, HEAD ROUND0 ROUND1 ROUND0); }

static void test_sample(void) {
    const char *path = fl_sample_path("formats/dcgmi_dmon.txt");
    if (!path)
        return;
    fl_diag d = {0};
    fl_imported in;
    const fl_reader *reader;
    FL_CHECK(fl_reader_find(path, NULL, &reader, &d) == FL_OK && !strcmp(reader->name, FORMAT), "%s", d.message);
    FL_CHECK(fl_reader_read(reader, path, NULL, &in, &d) == FL_OK && in.telemetry.row_count == 5, "%s", d.message);
    fl_round_trip(&in);
    fl_imported_free(&in);
}

FL_SUITE("import_dcgmi", {"good", test_good}, {"interval", test_interval}, {"fields", test_fields},
         {"surroundings", test_surroundings}, {"refused", test_refused}, {"cut", test_cut}, {"sample", test_sample})
