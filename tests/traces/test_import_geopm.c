#include "tests/support/import_fixture.h"

#define FORMAT "geopm"
#define TOP "# geopm_version: 3.0\n# profile_name: \"it's\n# agent: monitor\n"
#define NAMES                                                                                                          \
    "TIME|EPOCH_COUNT|REGION_HASH|CPU_ENERGY|CPU_POWER|FREQUENCY|GPU_POWER-gpu-0|GPU_POWER-gpu-1|GPU_CORE_"            \
    "FREQUENCY_STATUS-gpu-1\n"
#define HEAD TOP NAMES
#define ROW0 "0.204296343|-1|0x00000000725e8066|100.5|nan|2763636363.636364|50|60|1.41e9\n"
#define ROW1 "0.309|0|0x0000000100000000|101.5|nan|2100000000|51|nan|1395000000\n"

static void test_good(void) {
    fl_taken t = fl_take(FORMAT, HEAD ROW0 ROW1);
    const fl_telemetry *m = &t.in.telemetry;
    FL_CHECK(t.status == FL_OK && m->row_count == 6, "%zu rows: %s", m->row_count, t.d.message);
    if (m->row_count != 6)
        return;
    FL_CHECK(m->device[0] == -1 && m->device[1] == 0 && m->device[2] == 1 && m->t_ns[0] == 204296343, "rows");
    FL_CHECK(fl_same_real(fl_signal(m, 0, "cpu_energy_j"), 100.5) &&
                 fabs(fl_signal(m, 0, "cpu_mhz") - 2763.636363636364) < 1e-9 && isnan(fl_signal(m, 0, "power_w")) &&
                 fl_same_real(fl_signal(m, 2, "power_w"), 60) && isnan(fl_signal(m, 5, "power_w")) &&
                 fl_same_real(fl_signal(m, 2, "sm_mhz"), 1410) && isnan(fl_signal(m, 1, "sm_mhz")) &&
                 fl_same_real(fl_signal(m, 5, "sm_mhz"), 1395),
             "values");
    FL_CHECK(fl_noted(&t.in, "EPOCH_COUNT, REGION_HASH, CPU_POWER") && fl_noted(&t.in, "since the controller started"),
             "notes");
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
}

/* Packages and cores become the host; a sum over GPUs stands aside where each is there. */
static void test_domains(void) {
    fl_taken t = fl_take(FORMAT, "TIME|CPU_ENERGY-package-0|CPU_ENERGY-package-1|CPU_FREQUENCY_STATUS-core-0|"
                                 "CPU_FREQUENCY_STATUS-core-1|CPU_FREQUENCY_STATUS-core-2|GPU_ENERGY\n"
                                 "1|10|20|1e9|2e9|3e9|7\n");
    const fl_telemetry *m = &t.in.telemetry;
    FL_CHECK(t.status == FL_OK && m->row_count == 2 && fl_same_real(fl_signal(m, 0, "cpu_energy_j"), 30) &&
                 fabs(fl_signal(m, 0, "cpu_mhz") - 2000) < 1e-9 && m->device[1] == 0 &&
                 fl_same_real(fl_signal(m, 1, "energy_j"), 7) && fl_noted(&t.in, "all GPUs together"),
             "%s", t.d.message);
    fl_imported_free(&t.in);
    t = fl_take(FORMAT, "TIME|GPU_ENERGY|GPU_ENERGY-gpu-2\n1|10|7\n");
    m = &t.in.telemetry;
    FL_CHECK(t.status == FL_OK && m->row_count == 1 && m->device[0] == 2 &&
                 fl_same_real(fl_signal(m, 0, "energy_j"), 7),
             "%s", t.d.message);
    fl_imported_free(&t.in);
}

/* One quantity, told by several columns, is not added up: of the widest domain, by the newest name. */
static void test_told_twice(void) {
    static const struct {
        const char *text, *signal;
        double value;
        const char *note;
    } rows[] = {
        {"CPU_ENERGY|CPU_ENERGY-package-0|CPU_ENERGY-package-1\n1|100|50|50\n", "cpu_energy_j", 100,
         "the same: CPU_ENERGY-package-0, CPU_ENERGY-package-1"},
        {"CPU_ENERGY-package-0|CPU_ENERGY-package-1|CPU_ENERGY\n1|50|50|100\n", "cpu_energy_j", 100, "the same: "},
        {"CPU_ENERGY-package-0|CPU_ENERGY-board-0|CPU_ENERGY-package-1\n1|50|100|50\n", "cpu_energy_j", 100,
         "the same: "},
        {"CPU_ENERGY|ENERGY_PACKAGE\n1|100|100\n", "cpu_energy_j", 100, "the same: ENERGY_PACKAGE"},
        {"ENERGY_PACKAGE-package-0|CPU_ENERGY-package-0\n1|60|60\n", "cpu_energy_j", 60,
         "the same: ENERGY_PACKAGE-package-0"},
        {"CPU_ENERGY-core-0|CPU_ENERGY-package-0|CPU_ENERGY-core-1|CPU_ENERGY-package-1\n1|10|50|12|51\n",
         "cpu_energy_j", 101, "the same: CPU_ENERGY-core-0, CPU_ENERGY-core-1"},
        {"CPU_ENERGY-core-0|CPU_ENERGY-tile-0|CPU_ENERGY-core-1\n1|10|21|12\n", "cpu_energy_j", 22,
         "the same: CPU_ENERGY-tile-0"},
        {"CPU_CYCLES_THREAD|CPU_CYCLES_THREAD-cpu-0|CPU_CYCLES_THREAD-cpu-1\n1|9|4|5\n", "cpu_cycles", 9, "the same: "},
        {"CPU_FREQUENCY_STATUS|CPU_FREQUENCY_STATUS-core-0\n1|2e9|3e9\n", "cpu_mhz", 2000, "the same: "},
        {"GPU_ENERGY-gpu-0|GPU_ENERGY-gpu_chip-0\n1|30|14\n", "energy_j", 30, "the same: GPU_ENERGY-gpu_chip-0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text, "TIME|%s", rows[i].text);
        fl_taken t = fl_take(FORMAT, text);
        FL_CHECK(t.status == FL_OK && t.in.telemetry.row_count == 1, "%s: %s", rows[i].text, t.d.message);
        if (t.status == FL_OK)
            FL_CHECK(fl_same_real(fl_signal(&t.in.telemetry, 0, rows[i].signal), rows[i].value) &&
                         fl_noted(&t.in, rows[i].note),
                     "%s: %s is %g", rows[i].text, rows[i].signal, fl_signal(&t.in.telemetry, 0, rows[i].signal));
        fl_imported_free(&t.in);
    }
}

static void test_surroundings(void) {
    static const char *const CASE[] = {
        "\xef\xbb\xbf" HEAD ROW0 ROW1,
        HEAD ROW0 "# agent: monitor\n" NAMES ROW1,
        HEAD ROW0 ROW1 "0.4|0|0x00|102.5|nan|21000",
        HEAD ROW0 ROW1 "0.4|0|0x00|102.5|nan|2100000000|51|nan|139500",
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = fl_take(FORMAT, CASE[i]);
        FL_CHECK(t.status == FL_OK && t.in.telemetry.row_count == 6 && t.in.telemetry.t_ns[0] == 204296343,
                 "case %zu: %s", i, t.d.message);
        fl_imported_free(&t.in);
    }
}

static void test_refused(void) {
    fl_refused(FORMAT, HEAD "0.2|-1|0x00|100,5|nan|2.7e9|50|60|1.4e9\n", 5, 13, "decimal point");
    fl_refused(FORMAT, HEAD "0.2|-1|0x00|100.5|nan|2.7e9|50|60\n", 5, 32, "row has 8 fields, expected 9");
    fl_refused(FORMAT, HEAD "nan|-1|0x00|100.5|nan|2.7e9|50|60|1.4e9\n", 5, 1, "TIME is 'nan'");
    fl_refused(FORMAT, HEAD "0.2|-1|0x00|0xff|nan|2.7e9|50|60|1.4e9\n", 5, 13, "CPU_ENERGY is '0xff'");
    fl_refused(FORMAT, "TIME|REGION_HASH\n1|0x00\n", 1, 1, "no column that telemetry has a place for");
    fl_refused(FORMAT, TOP, 1, 1, "no header line");
    fl_refused(FORMAT, HEAD, 0, 0, "no readings");
}

static void test_cut(void) { fl_cut_everywhere(FORMAT, HEAD ROW0 ROW1); }

/* ---- the daemon's log ---- */

#define LOG                                                                                                            \
    "Apply policy: Assure\nMACHINE v100-test\nfreqset tool start..\nReset: device 0. device 1. \nMain loop start..\n"  \
    "2024-1-2 3:4:5, 10, 20, 40500, 855, 1050, 0, 0, 30000, 135, -1, 150000\n"                                         \
    "2024-1-2 3:4:5, 11, 21, 50250, 1050, -1, 0, 1, 31000, 855, 1440, 250001\n"

static void test_geepafs(void) {
    fl_taken t = fl_take("geepafs", LOG "2024-1-2 3:4:6, 11");
    const fl_telemetry *m = &t.in.telemetry;
    FL_CHECK(t.status == FL_OK && m->row_count == 6, "%s", t.d.message);
    FL_CHECK(m->row_count == 6 && m->device[0] == -1 && m->device[5] == 1 && m->t_ns[5] == 200000000 &&
                 fl_same_real(fl_signal(m, 1, "power_w"), 40.5) && fl_same_real(fl_signal(m, 4, "sm_mhz"), 1050) &&
                 fl_same_real(fl_signal(m, 3, "loop_ns"), 150000000),
             "values");
    FL_CHECK(fl_noted(&t.in, "line 8, the last") && fl_noted(&t.in, "clocks that were set"), "notes");
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
    fl_cut_everywhere("geepafs", LOG);
}

static void test_samples(void) {
    static const struct {
        const char *file, *format;
        size_t rows;
    } SAMPLE[] = {{"formats/geopm_trace.txt", FORMAT, 12}, {"logs/geepafs-v100-maxq-p90.log", "geepafs", 36000}};
    for (size_t i = 0; i < 2; i++) {
        const char *path = fl_sample_path(SAMPLE[i].file);
        if (!path)
            continue;
        fl_diag d = {0};
        fl_imported in;
        const fl_reader *reader;
        FL_CHECK(fl_reader_find(path, NULL, &reader, &d) == FL_OK && !strcmp(reader->name, SAMPLE[i].format), "%s",
                 d.message);
        FL_CHECK(fl_reader_read(reader, path, NULL, &in, &d) == FL_OK && in.telemetry.row_count == SAMPLE[i].rows,
                 "%zu rows, %s", in.telemetry.row_count, d.message);
        fl_round_trip(&in);
        fl_imported_free(&in);
    }
}

FL_SUITE("import_geopm", {"good", test_good}, {"domains", test_domains}, {"told twice", test_told_twice},
         {"surroundings", test_surroundings}, {"refused", test_refused}, {"cut", test_cut}, {"geepafs", test_geepafs},
         {"samples", test_samples})
