/* Tables of any shape as sweeps: what a map says, what it computes, and what is refused where. */
#include "harness/input/scene/scene.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>

#define TABLE "name,input,clk,t (ms),\"P, W\",E\n\"a,b\",1,1000,5,100,500\na,2,2000,2.5,200,500\n"

/* Reads TABLE, or another, with a map. */
static fl_status take(const char *table, const char *spec, fl_sweep *s, fl_diag *d) {
    fl_sweep_map map;
    *s = (fl_sweep){0};
    fl_status status = fl_sweep_map_open(spec, &map, d);
    if (!status)
        status = fl_sweep_read_mapped(fl_temp_text("table.csv", table), &map, s, NULL, d);
    fl_sweep_map_free(&map);
    return status;
}

static void test_values(void) {
    static const struct {
        const char *map, *workload; /* of the first row */
        double sm_mhz, mem_mhz, time_s, power_w, energy_j;
    } table[] = {
        {"workload=name,sm_mhz=clk,time_s=t (ms)/1000,power_w='P, W'", "a,b", 1000, NAN, 0.005, 100, 0.5},
        {"workload=name,sm_mhz=clk,time_s='t (ms)'/1000,power_w='P, W'*1", "a,b", 1000, NAN, 0.005, 100, 0.5},
        {"workload=name+input,sm_mhz=clk,mem_mhz=877,time_s=t (ms) / 1000,power_w='P, W'", "a,b.1", 1000, 877, 0.005,
         100, 0.5},
        {" workload = name , sm_mhz = clk*2, time_s = 0.25, energy_j = E/1000", "a,b", 2000, NAN, 0.25, 2, 0.5},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fl_sweep s;
        fl_diag d = {0};
        FL_CHECK(take(TABLE, table[i].map, &s, &d) == FL_OK && s.row_count == 2, "row %zu: %s", i, d.message);
        const fl_sweep_row *r = s.rows;
        FL_CHECK(r && !strcmp(s.names[r->workload], table[i].workload) && r->sm_mhz == table[i].sm_mhz &&
                     (isnan(table[i].mem_mhz) ? isnan(r->mem_mhz) : r->mem_mhz == table[i].mem_mhz) &&
                     r->time_s == table[i].time_s && r->power_w == table[i].power_w &&
                     fabs(r->energy_j - table[i].energy_j) < 1e-15,
                 "row %zu: %s", i, r ? s.names[r->workload] : "nothing");
        fl_sweep_free(&s);
    }
}

/* Tables of spreadsheets, and rows of settings that were not made or failed. */
static void test_separators(void) {
    static const struct {
        const char *table;
        size_t rows, left;
    } row[] = {
        {"app;clock;ms;W\nx;900;1,30;80\nx;1500;1,00;120\n", 2, 0},
        {"app;clock;ms;W\nx;900;1.30;80\n\"x\";1500;1.00;120\n", 2, 0},
        {"app\tclock\tms\tW\nx\t900\t1.30\t80\nx\t1500\t1.00\t120\n", 2, 0},
        {"app,clock,ms,W\nx,auto,1.1,90\nx,900,1.30,80\nx,1500,,\nx,1200,nan,nan\nx,1300,0,0\n", 1, 4},
        {"app;clock;ms;W\nx;default;1,1;90\nx;900;1,30;80\n", 1, 1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_sweep_map map;
        fl_sweep s = {0};
        fl_left_out left;
        fl_diag d = {0};
        FL_CHECK(!fl_sweep_map_parse("workload=app,sm_mhz=clock,time_s=ms/1000,power_w=W", &map, &d) &&
                     !fl_sweep_read_mapped(fl_temp_text("t.csv", row[i].table), &map, &s, &left, &d),
                 "row %zu: %s", i, d.message);
        FL_CHECK(s.row_count == row[i].rows && left.empty.count == row[i].left && s.rows &&
                     fabs(s.rows->time_s - 0.0013) < 1e-12,
                 "row %zu: %zu rows, %zu left out", i, s.row_count, left.empty.count);
        fl_sweep_free(&s);
        fl_sweep_map_free(&map);
    }
}

static void test_refusals(void) {
    static const struct {
        const char *table, *map;
        int64_t line, column;
        const char *expected;
    } row[] = {
        {TABLE, "workload=name,sm_mhz=clkk,time_s=1,power_w=1", 1, 1, "did you mean 'clk'?"},
        {TABLE, "workload=name+inputs,sm_mhz=clk,time_s=1,power_w=1", 1, 1, "no column 'inputs' for workload"},
        {TABLE, "workload=name,sm_mz=clk,time_s=1,power_w=1", 1, 1, "expected 'sm_mhz'"},
        {TABLE, "workload=name,sm_mhz=clk,power_w=1", 1, 1, "column 'time_s' is missing"},
        {TABLE, "workload=name,sm_mhz=clk,time_s=1", 1, 1, "expected one"},
        {TABLE, "workload=name,time_s=1,power_w=1", 1, 1, "column 'sm_mhz' is missing"},
        {TABLE, "workload=name,sm_mhz=clk,time_s=E/x,power_w=1", 1, 1, "no column 'E/x' for time_s"},
        {TABLE, "workload=name,sm_mhz=clk,time_s=E/0,power_w=1", 1, 1, "no column 'E/0' for time_s"},
        {TABLE, "workload=name,sm_mhz", 0, 0, "expected a term such as sm_mhz=COLUMN"},
        {TABLE, "workload=name,,sm_mhz=clk", 0, 0, "expected a term such as"},
        {TABLE, "workload=,sm_mhz=clk", 0, 0, "expected a term such as"},
        {TABLE, "sm_mhz=clk,sm_mhz=E", 0, 0, "sm_mhz twice"},
        {TABLE, "workload=name,sm_mhz=clk,time_s=t (ms)/1000,power_w='P, W',energy_j=E", 2, 20,
         "energy_j is 1000 times power_w x time_s"},
        {TABLE, "workload=name,sm_mhz=clk,time_s=t (ms)/1000,power_w='P, W'*10,energy_j=E/100000", 2, 20,
         "energy_j is 0.001 times"},
        {"n,c,t,p\na,1,2,-3\n", "workload=n,sm_mhz=c,time_s=t,power_w=p", 2, 7, "power_w is '-3'"},
        {"n,c,t,p\na,1,2,3\na,1,2\n", "workload=n,sm_mhz=c,time_s=t,power_w=p", 3, 5, "expected 4"},
        {"n,c,t,p\na,1,2,3 N\n", "workload=n,sm_mhz=c,time_s=t,power_w=p*2", 2, 7, "power_w is '3 N'"},
        {"n,c,t,p\na,1,0,3\n", "workload=n,sm_mhz=c,time_s=t/1000,power_w=p", 2, 5, "time_s is 0"},
        {"n,t\na,1\n", "workload=n,sm_mhz=header,time_s=cells,power_w=1", 1, 1, "no column is headed by a number"},
        {"n,900,1000,900\na,1,2,3\n", "workload=n,sm_mhz=header,time_s=cells,power_w=1", 1, 12, "'900' is given twice"},
        {"n,900,1000\na,1,b\n", "workload=n,sm_mhz=header,time_s=cells,power_w=1", 2, 5, "time_s is 'b'"},
        {"n,900,1000\na,1,-2\n", "workload=n,sm_mhz=header,time_s=1,power_w=cells*2", 2, 5, "power_w is '-4'"},
        {"n,900,1000\na,1\n", "workload=n,sm_mhz=header,time_s=cells,power_w=1", 2, 3, "expected 3"},
        {"n,900,1000\na,1,0\n", "workload=n,sm_mhz=header,time_s=1/cells,power_w=1", 2, 5, "time_s is"},
        {"n,c,s\na,1,0\n", "workload=n,sm_mhz=c,time_s=1/s,power_w=1", 2, 5, "time_s is"},
        {"n,c,s\na,1,0\n", "workload=n,sm_mhz=c,time_s=1/speed,power_w=1", 1, 1, "no column 'speed'"},
        {"n,c,t,p\n", "workload=n,sm_mhz=c,time_s=t,power_w=p", 0, 0, "no settings"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_sweep s;
        fl_diag d = {0};
        const fl_status status = take(row[i].table, row[i].map, &s, &d);
        FL_CHECK(status == FL_BAD_INPUT && d.line == row[i].line && d.column == row[i].column &&
                     strstr(d.message, row[i].expected) && !s.rows,
                 "row %zu, %s: %d %lld:%lld: %s", i, row[i].map, (int)status, (long long)d.line, (long long)d.column,
                 d.message);
        fl_sweep_free(&s);
    }
}

/* A column per clock: each row is a setting per column, whatever else the row holds. */
static void test_wide(void) {
    static const char table[] = "name,900,note,1000.5\na,0.5,x,1\nb,0.25,y,2\n";
    static const struct {
        const char *map;
        double mhz[4], time[4], power[4];
    } row[] = {
        {"workload=name,sm_mhz=header,time_s=1/cells,power_w=10",
         {900, 1000.5, 900, 1000.5},
         {2, 1, 4, 0.5},
         {10, 10, 10, 10}},
        {"workload=name,sm_mhz=header*2,time_s=cells*4,power_w=cells/2",
         {1800, 2001, 1800, 2001},
         {2, 4, 1, 8},
         {0.25, 0.5, 0.125, 1}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_sweep s;
        fl_diag d = {0};
        FL_CHECK(take(table, row[i].map, &s, &d) == FL_OK && s.row_count == 4, "%s: %s", row[i].map, d.message);
        for (size_t k = 0; k < s.row_count; k++)
            FL_CHECK(
                s.rows[k].sm_mhz == row[i].mhz[k] && s.rows[k].time_s == row[i].time[k] &&
                    s.rows[k].power_w == row[i].power[k] && !strcmp(s.names[s.rows[k].workload], k < 2 ? "a" : "b"),
                "%s, %zu: %g MHz, %g s, %g W", row[i].map, k, s.rows[k].sm_mhz, s.rows[k].time_s, s.rows[k].power_w);
        fl_sweep_free(&s);
    }
    /* A column of that very name is itself. */
    fl_sweep s;
    fl_diag d = {0};
    FL_CHECK(take("name,cells,header\na,5,900\n", "workload=name,sm_mhz=header,time_s=cells,power_w=1", &s, &d) ==
                     FL_OK &&
                 s.row_count == 1 && s.rows[0].sm_mhz == 900 && s.rows[0].time_s == 5,
             "%s", d.message);
    fl_sweep_free(&s);
}

/* GPU-DVFS-Dataset keeps performance and power in two files, of which the first finds the second. */
static void test_two_files(void) {
    char path[600], power[600];
    fl_imported in = {0};
    fl_diag d = {0};
    const fl_reader *reader = NULL;
    snprintf(path, sizeof path, "%s",
             fl_temp_text("a_performance.csv", "frequency(MHz),900,1000\nfft,0.8,1\nlu,0.9,1\n"));
    FL_CHECK(fl_reader_find(path, NULL, &reader, &d) == FL_OK && fl_reader_read(reader, path, NULL, &in, &d) == FL_OK &&
                 in.sweep.row_count == 4 && isnan(in.sweep.rows[0].power_w) && in.sweep.rows[0].time_s == 1.25,
             "times alone: %s", d.message);
    fl_imported_free(&in);
    snprintf(power, sizeof power, "%s",
             fl_temp_text("a_power.csv", "frequency(MHz),1000,900\nlu,120,90\nfft,150,100\n"));
    CU_ASSERT_FATAL(reader && fl_reader_read(reader, path, NULL, &in, &d) == FL_OK && in.sweep.row_count == 4);
    FL_CHECK(in.sweep.rows[0].power_w == 100 && in.sweep.rows[0].energy_j == 125 && in.sweep.rows[1].power_w == 150 &&
                 in.sweep.rows[2].power_w == 90 && in.sweep.rows[3].power_w == 120,
             "%g %g %g %g", in.sweep.rows[0].power_w, in.sweep.rows[1].power_w, in.sweep.rows[2].power_w,
             in.sweep.rows[3].power_w);
    fl_imported_free(&in);
    FL_CHECK(fl_reader_read(reader, power, NULL, &in, &d) == FL_BAD_INPUT && strstr(d.message, "a_performance.csv"),
             "%s", d.message);
    snprintf(power, sizeof power, "%s", fl_temp_text("a_power.csv", "frequency(MHz),1000,900\nlu,-120,90\n"));
    FL_CHECK(fl_reader_read(reader, path, NULL, &in, &d) == FL_OK && in.doubt_count == 1 &&
                 strstr(in.note[0], "a_power.csv: 1 of 2 rows that contradict: left out; the first is line 2"),
             "%s, %s", d.message, in.note_count ? in.note[0] : "no note");
    fl_imported_free(&in);
}

/* The same map as a file. */
static void test_file(void) {
    fl_sweep s;
    fl_diag d = {0};
    const char *good = "{\"workload\": \"name\", \"sm_mhz\": \"clk\", \"mem_mhz\": 877, \"time_s\": \"t (ms)/1000\", "
                       "\"energy_j\": \"E/1000\"}";
    char path[600];
    snprintf(path, sizeof path, "%s", fl_temp_text("map.json", good));
    FL_CHECK(take(TABLE, path, &s, &d) == FL_OK && s.row_count == 2 && s.rows[1].mem_mhz == 877 &&
                 s.rows[1].power_w == 200,
             "%s", d.message);
    fl_sweep_free(&s);
    static const char *const bad[] = {"{}", "{\"sm_mhz\": [\"clk\"]}", "[]", "{\"sm_mhz\": \"\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(path, sizeof path, "%s", fl_temp_text("map.json", bad[i]));
        FL_CHECK(take(TABLE, path, &s, &d) == FL_BAD_INPUT && !s.rows, "%s: %s", bad[i], d.message);
    }
}

/* Public tables are known by their headers. */
static void test_public(void) {
    static const struct {
        const char *reader, *seed, *workload;
        fl_sweep_row row;
        double dram;
    } table[] = {
        {"gpu-dvfs",
         "gpu-dvfs/two.csv",
         "saxpy.input00",
         {.sm_mhz = 1600, .mem_mhz = 4000, .power_cap_w = NAN, .time_s = 0.002, .power_w = 200},
         NAN},
        {"nv-dvfs",
         "nv-dvfs/one.csv",
         "saxpy.input000",
         {.sm_mhz = 1087, .mem_mhz = 877, .power_cap_w = NAN, .time_s = 0.002, .power_w = 150},
         50},
        {"zeus",
         "zeus/two.csv",
         "images.small.256.adam",
         {.sm_mhz = NAN, .mem_mhz = NAN, .power_cap_w = 100, .time_s = 12, .power_w = 90},
         NAN},
        {"gpu-dvfs-wide",
         "gpu-dvfs-wide/two_performance.csv",
         "saxpy",
         {.sm_mhz = 900, .mem_mhz = NAN, .power_cap_w = NAN, .time_s = 1.25, .power_w = 80},
         NAN},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char path[600];
        const fl_reader *reader = NULL;
        fl_imported in = {0};
        fl_diag d = {0};
        snprintf(path, sizeof path, "%s/tests/fuzz/seeds/%s", FL_ROOT, table[i].seed);
        FL_CHECK(fl_reader_find(path, NULL, &reader, &d) == FL_OK && !strcmp(reader->name, table[i].reader), "%s: %s",
                 path, reader ? reader->name : d.message);
        FL_CHECK(reader && fl_reader_read(reader, path, NULL, &in, &d) == FL_OK && in.has_sweep, "%s: %s", path,
                 d.message);
        const fl_sweep_row *r = in.sweep.rows, *e = &table[i].row;
        const double have[] = {r ? r->sm_mhz : 0, r ? r->mem_mhz : 0, r ? r->power_cap_w : 0, r ? r->time_s : 0,
                               r ? r->power_w : 0},
                     want[] = {e->sm_mhz, e->mem_mhz, e->power_cap_w, e->time_s, e->power_w};
        for (size_t k = 0; k < 5; k++)
            FL_CHECK(isnan(want[k]) ? isnan(have[k]) : have[k] == want[k], "%s: value %zu is %g, expected %g", path, k,
                     have[k], want[k]);
        FL_CHECK(r && !strcmp(in.sweep.names[r->workload], table[i].workload), "%s: another workload", path);
        FL_CHECK(isnan(table[i].dram) ? !in.sweep.activity
                                      : in.sweep.activity && in.sweep.activity[FL_COUNTER_DRAM] == table[i].dram,
                 "%s: other activities", path);
        fl_imported_free(&in);
    }
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("sweep_map", {"values", test_values}, {"separators", test_separators}, {"refusals", test_refusals},
         {"a file", test_file}, {"wide", test_wide}, {"two files", test_two_files}, {"public tables", test_public},
         {"clean up", test_clean_up})
