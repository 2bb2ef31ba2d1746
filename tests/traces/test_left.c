/* The one rule for rows that readers leave out (traces/README.md), in every reader. */
#include "tests/support/import_fixture.h"

#include "policies/policy.h"

/* ---- disorder ---- */

static void test_disorder(void) {
    static const struct {
        int64_t t[8];
        size_t count, out;
        const char *marks;
    } CASE[] = {
        {{1, 2, 3, 4}, 4, 0, "...."},
        {{1, 2, 9, 3, 4}, 5, 1, "..x.."},
        {{5, 1, 6, 7}, 4, 1, NULL},
        {{1, 1, 1}, 3, 0, "..."},
        {{0}, 0, 0, ""},
        {{3, 2, 1}, 3, 2, NULL},
        {{1, 5, 2, 3, 4}, 5, 1, ".x..."},
        {{1, 2, 3, 0, 4}, 5, 1, "...x."},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        bool out[8];
        const size_t n = fl_disorder(CASE[i].t, CASE[i].count, out);
        FL_CHECK(n == CASE[i].out, "case %zu: %zu", i, n);
        for (size_t k = 0; CASE[i].marks && k < CASE[i].count; k++)
            FL_CHECK(out[k] == (CASE[i].marks[k] == 'x'), "case %zu: row %zu", i, k);
    }
}

/* ---- how many rows may be wrong, in each reader ---- */

/* A reader: its head, a row that is right, one that contradicts, and one without a value. @: the row's number, from 100
 * on. */
typedef struct kind {
    const char *format, *head, *right, *wrong, *empty;
} kind;

#define TELEMETRY "# foldline-telemetry 1\nt_ns,device,power_w,util_gpu_pct\n"
#define SMI "timestamp, index, power.draw [W]\n"
#define SMI_AT "2025/03/01 10:00:00.@"

#define REQUESTS "# foldline-requests 1\nt_ns,prompt_tokens,output_tokens\n"
#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens\n"
#define AZURE_AT "2023-11-16 18:15:46.@"
#define SWEEP "workload,sm_mhz,time_s,power_w,energy_j\n"
#define ZEUS "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
#define DVFS "appName,coreF,memF,argNo,kernel,time/ms,power/W\n"
#define KERNELS                                                                                                        \
    "# foldline-kernels 1\ndevice,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z\n"
#define NSYS "Start (ns),Duration (ns),Device,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Name\n"
#define ROCPROF "Agent_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n"
#define KINETO(ts, dur)                                                                                                \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"f\",\"ts\":" ts ",\"dur\":" dur ",\"pid\":0,\"tid\":7}"

static const kind KIND[] = {
    {"foldline-telemetry", TELEMETRY, "@000000,0,300,90\n", "@000000,0,1e9,90\n", "N/A,0,300,90\n"},
    {"foldline-telemetry", TELEMETRY, "@000000,0,300,90\n", "@000000,0,300,900\n", "nan,0,300,90\n"},
    {"foldline-telemetry", TELEMETRY, "@000000,0,300,90\n", "@000000,0,-inf,90\n", "@000000,n/a,300,90\n"},
    {"foldline-telemetry", TELEMETRY, "@000000,0,300,90\n", "1,0,300,90\n", "@000000,n/a,300,90\n"},
    {"nvidia-smi", SMI, SMI_AT ", 0, 300 W\n", SMI_AT ", 0, 150000 W\n", "[Unknown Error], [Unknown Error], 5 W\n"},
    {"nvidia-smi", SMI, SMI_AT ", 0, 300 W\n", SMI_AT ", 0, inf W\n", SMI_AT ", 0, [N/A]\n"},
    {"nvidia-smi", SMI, SMI_AT ", 0, 300 W\n", SMI_AT ", -1, 300 W\n", "Unable to determine the device handle\n"},
    {"nvidia-smi", SMI, SMI_AT ", 0, 300 W\n", "2025/03/01 09:40:00.@, 0, 300 W\n", SMI_AT ", 0, [N/A]\n"},
    {"dcgmi", "#Entity POWER GPUTL\nID W\n", "GPU 0 300.0 90\n", "GPU 0 300.0 900\n", "GPU 0 N/A N/W\n"},
    {"geopm", "# geopm_version: 3.0\nTIME|GPU_POWER\n", "@|300\n", "@|-300\n", "@|nan\n"},
    {"geopm", "# geopm_version: 3.0\nTIME|GPU_POWER\n", "@|300\n", "1|300\n", "nan|300\n"},
    {"foldline-kernels", KERNELS, "0,1,7,@000,@900,k,8,1,1,32,1,1\n", "0,1,7,@000,900,k,8,1,1,32,1,1\n",
     "0,1,7,0,0,k,8,1,1,32,1,1\n"},
    {"foldline-kernels", KERNELS, "0,1,7,@000,@900,k,8,1,1,32,1,1\n", "0,1,7,100001,100002,k,8,1,1,32,1,1\n",
     "0,1,7,@000,N/A,k,8,1,1,32,1,1\n"},
    {"nsys-csv", NSYS, "@000,900,X (0),8,1,1,32,1,1,f\n", "@000,-900,X (0),8,1,1,32,1,1,f\n",
     "0,0,X (0),8,1,1,32,1,1,f\n"},
    {"nsys-csv", NSYS, "@000,900,X (0),8,1,1,32,1,1,f\n", "@000,inf,X (0),8,1,1,32,1,1,f\n",
     "@000,[N/A],X (0),8,1,1,32,1,1,f\n"},
    {"rocprofv3", ROCPROF, "1,f,@000,@900\n", "1,f,@000,900\n", "1,f,@000,0\n"},
    {"rocprofv3", ROCPROF, "1,f,@000,@900\n", "1,f,@000,-1\n", "1,f,0,0\n"},
    {"kineto", "[", KINETO("@000", "900") ",\n", KINETO("@000", "-900") ",\n", KINETO("0", "0") ",\n"},
    {"kineto", "[", KINETO("@000", "900") ",\n", KINETO("-@000", "900") ",\n", KINETO("@000", "-@000") ",\n"},
    {"sweep", SWEEP, "a,@,2,100,200\n", "a,@,-2,100,200\n", "a,auto,2,100,200\n"},
    {"sweep", SWEEP, "a,@,2,100,200\n", "a,@,2,1e9,2e9\n", "a,@,,,\n"},
    {"sweep", SWEEP, "a,@,2,100,200\n", "a,@,2,inf,\n", "a,@,0,0,0\n"},
    {"sweep", SWEEP, "a,@,2,100,200\n", "a,9e9,2,100,200\n", "a,@,2,nan,\n"},
    {"sweep", SWEEP, "a,@,2,100,200\n", "a,@,2,100,900000\n", "a,@,timeout,100,\n"},
    {"zeus", ZEUS, "d,n,8,sgd,@,30,200\n", "d,n,8,sgd,@,-30,200\n", "d,n,8,sgd,@,failed,200\n"},
    {"gpu-dvfs", DVFS, "x,@,5000,1,k,20,100\n", "x,@,5000,1,k,20,1e9\n", "x,@,5000,1,k,0,0\n"},
    {"foldline-requests", REQUESTS, "@,5,7\n", "1,5,7\n", "@,0,7\n"},
    {"foldline-requests", REQUESTS, "@,5,7\n", "@,-5,7\n", "@,5,\n"},
    {"foldline-requests", REQUESTS, "@,5,7\n", "@,5,99999999999\n", "nan,5,7\n"},
    {"azure-llm", AZURE, AZURE_AT ",5,7\n", AZURE_AT ",-5,7\n", AZURE_AT ",5,0\n"},
    {"azure-llm", AZURE, AZURE_AT ",5,7\n", "2022-11-16 18:15:46.@,5,7\n", "N/A,5,7\n"},
    {"kineto", "[", KINETO("@000", "900") ",\n", KINETO("@000", "9e300") ",\n", KINETO("nan", "900") ",\n"},
};
enum { KINDS = sizeof KIND / sizeof *KIND };

static char *add_rows(char *to, const char *row, size_t count, int step, int *number) {
    for (size_t i = 0; i < count; i++, *number += step)
        for (const char *c = row; *c; c++)
            to += *c == '@' ? sprintf(to, "%d", 100 + *number) : sprintf(to, "%c", *c);
    return to;
}

/* The rows that are to be left out stand between the others. */
static char *file_of(const kind *k, size_t right, size_t wrong, size_t empty) {
    int number = 0;
    char *text = malloc(strlen(k->head) + (right + wrong + empty) * 120 + 1), *at = text + sprintf(text, "%s", k->head);
    at = add_rows(at, k->right, (right + 1) / 2, 1, &number);
    int same = number; /* they take no time, or their loss would be a pause */
    at = add_rows(at, k->wrong, wrong, 0, &same);
    same = number;
    at = add_rows(at, k->empty, empty, 0, &same);
    add_rows(at, k->right, right / 2, 1, &number);
    return text;
}

static size_t rows_of(const fl_imported *in) {
    return in->has_telemetry ? in->telemetry.row_count
           : in->has_kernels ? in->kernels.op_count
           : in->has_sweep   ? in->sweep.row_count
                             : in->requests.count;
}

/* What is to be read, with one note on each sort of row among the doubts. */
static void check_taken(const kind *k, const char *text, size_t right, size_t wrong, size_t empty) {
    static const char *const sort[] = {"that contradict", "without a value"};
    const size_t count[] = {wrong, empty};
    char note[80];
    fl_taken t = fl_take(k->format, text);
    FL_CHECK(t.status == FL_OK && rows_of(&t.in) == right, "%s: %zu of %zu rows, %s; of\n%s", k->format, rows_of(&t.in),
             right, t.d.message, text);
    for (int i = 0; i < 2; i++) {
        snprintf(note, sizeof note, "%zu of %zu rows %s", count[i], right + wrong + empty, sort[i]);
        FL_CHECK(!count[i] || fl_noted(&t.in, note), "%s: not '%s'; of\n%s", k->format, note, text);
    }
    const size_t pause = fl_noted(&t.in, "no readings for"); /* rounds of dcgmi take time without a value too */
    FL_CHECK(t.in.doubt_count == (wrong > 0) + (size_t)(empty > 0) + pause, "%s: %zu doubts", k->format,
             t.in.doubt_count);
    fl_imported_free(&t.in);
}

static void check_refused(const kind *k, const char *text, const char *part) {
    fl_taken t = fl_take(k->format, text);
    FL_CHECK(t.status == FL_BAD_INPUT && strstr(t.d.message, part), "%s: status %d, '%s' has not '%s'; of\n%s",
             k->format, t.status, t.d.message, part, text);
    fl_imported_free(&t.in);
}

static void test_kinds(void) {
    static const struct {
        size_t right, wrong, empty;
        const char *refused; /* NULL: read */
    } CASE[] = {{4, 0, 0, NULL},  {4, 1, 0, NULL},  {30, 10, 0, NULL}, {30, 11, 0, "11 of 41 rows contradict"},
                {4, 0, 40, NULL}, {4, 1, 40, NULL}, {0, 0, 3, "value"}};
    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
            char *text = file_of(&KIND[k], CASE[i].right, CASE[i].wrong, CASE[i].empty);
            if (CASE[i].refused)
                check_refused(&KIND[k], text, CASE[i].refused);
            else
                check_taken(&KIND[k], text, CASE[i].right, CASE[i].wrong, CASE[i].empty);
            fl_left_strict = true;
            if (CASE[i].wrong || CASE[i].empty)
                check_refused(&KIND[k], text, "");
            else
                check_taken(&KIND[k], text, CASE[i].right, 0, 0);
            fl_left_strict = false;
            free(text);
        }
}

/* One row in a hundred may contradict. */
static void test_share(void) {
    char *text = file_of(&KIND[0], 1980, 20, 0);
    check_taken(&KIND[0], text, 1980, 20, 0);
    free(text);
    text = file_of(&KIND[0], 1979, 21, 0);
    check_refused(&KIND[0], text, "21 of 2000 rows contradict, expected at most 20");
    free(text);
}

/* ---- time ---- */

#define AT(s) "2025/03/01 10:" s ".000, "

/* What commands add up over time, of logs with pauses and with two accounts of energy. */
static void test_over_time(void) {
    static const struct {
        const char *text, *note;
        double energy_j, covered_s, power_w;
    } CASE[] = {
        {SMI AT("00:00") "0, 300\n" AT("00:01") "0, 300\n" AT("00:02") "0, 300\n" AT("30:00") "0, 300\n" AT(
             "30:01") "0, 300\n",
         "no readings for 1798 s, 2 s after the first", 900, 3, 300},
        {SMI AT("00:00") "0, 100\n" AT("00:01") "0, 100\n" AT("00:02") "0, 100\n" AT("00:12") "0, 100\n", NULL, 1200,
         12, 100},
        {SMI AT("00:00") "0, 100\n" AT("00:01") "0, 100\n" AT("00:02") "0, 100\n" AT("00:13") "0, 100\n",
         "no readings for 11 s", 200, 2, 100},
        {SMI AT("00:00") "0, 100\n" AT("00:01") "0, 300\n" AT("00:02") "0, [N/A]\n" AT("30:00") "0, 300\n" AT(
             "30:01") "0, 300\n",
         "no readings", 500, 2, 250},
        {"# foldline-telemetry "
         "1\nt_ns,device,power_w,energy_j\n0,0,100,50\n1000000000,0,100,150\n2000000000,0,100,250\n"
         "100000000000,0,100,9250\n101000000000,0,100,9350\n",
         "no readings for 98 s", 300, 3, 100},
        {"# foldline-telemetry 1\nt_ns,device,power_w,energy_j\n0,0,100,0\n1000000000,0,100,85\n2000000000,0,100,170\n",
         "85 W by the energy counter, 100 W by the power readings; the counter's is taken", 170, 2, 100},
        {"# foldline-telemetry 1\nt_ns,device,power_w,energy_j\n0,0,100,0\n1000000000,0,100,95\n2000000000,0,100,190\n",
         NULL, 190, 2, 100},
        {"# foldline-telemetry "
         "1\nt_ns,device,power_instant_w,energy_j\n0,0,100,0\n1000000000,0,100,200\n2000000000,0,100,400\n",
         "200 W by the energy counter", 400, 2, 100},
        /* a counter that was reset has no account */
        {"# foldline-telemetry "
         "1\nt_ns,device,power_w,energy_j\n0,0,100,900\n1000000000,0,100,0\n2000000000,0,100,1000\n",
         "the energy counter falls 1 time, as after a reset", 200, 2, 100},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = fl_take(NULL, CASE[i].text);
        fl_stats s = {0};
        FL_CHECK(t.status == FL_OK && fl_stats_make(&s, &t.in, &t.d) == FL_OK, "case %zu: %s", i, t.d.message);
        if (s.device_count)
            FL_CHECK(fabs(s.device[0].energy_j - CASE[i].energy_j) < 1e-6 &&
                         fabs(s.device[0].covered_s - CASE[i].covered_s) < 1e-6 &&
                         fabs(s.device[0].power_w - CASE[i].power_w) < 1e-6,
                     "case %zu: %g J, %g s, %g W", i, s.device[0].energy_j, s.device[0].covered_s, s.device[0].power_w);
        FL_CHECK(CASE[i].note ? fl_noted(&t.in, CASE[i].note) : t.in.doubt_count == 0, "case %zu: %s", i,
                 t.in.note_count ? t.in.note[0] : "");
        fl_stats_free(&s);
        fl_imported_free(&t.in);
    }
}

/* The series that a picture draws does not hold a reading through a pause. */
static void test_series(void) {
    fl_taken t = fl_take(
        NULL, SMI AT("00:00") "0, 300\n" AT("00:01") "0, 300\n" AT("00:02") "0, 300\n" AT("00:03") "0, 300\n" AT(
                  "01:00") "0, 200\n" AT("01:01") "0, 200\n" AT("01:03") "0, 200\n" AT("01:04") "0, 200\n");
    fl_text out = {0};
    FILE *file = fl_text_open(&out);
    FL_CHECK(t.status == FL_OK && file && fl_stats_put_series(file, &t.in, 64, &t.d) == FL_OK, "%s", t.d.message);
    size_t size = 0, held = 0, empty = 0;
    char *text = fl_text_close(&out, &size);
    for (char *line = text ? strchr(text, '\n') : NULL; line && line[1]; line = strchr(line + 1, '\n')) {
        double at = 0, watts = 0;
        const int n = sscanf(line, "\n%lf,0,,,%lf", &at, &watts);
        FL_CHECK(n == 1 ? at > 4 && at < 60 : n == 2 && (watts > 250) == (at < 30), "%g s: %g W", at, watts);
        held += n == 2;
        empty += n == 1;
    }
    FL_CHECK(held == 8 && empty == 56, "%zu bins with power, %zu without", held, empty);
    free(text);
    fl_imported_free(&t.in);
}

/* ---- columns that telemetry has a place for ---- */

#define MASK "clocks_event_reasons.active"
#define HELD "clocks_throttle_reasons."

static void test_columns(void) {
    static const struct {
        const char *text, *signal;
        double value;
    } CASE[] = {
        {"timestamp, " MASK "\n" AT("00:00") "0x0000000000000004\n", "throttle", FL_THROTTLE_POWER},
        {"timestamp, " MASK "\n" AT("00:00") "0x0000000000000080\n", "throttle", FL_THROTTLE_POWER},
        {"timestamp, " MASK "\n" AT("00:00") "0x0000000000000001\n", "throttle", FL_THROTTLE_IDLE},
        {"timestamp, " MASK "\n" AT("00:00") "0x0000000000000002\n", "throttle", 0},
        {"timestamp, " HELD "active\n" AT("00:00") "0x0000000000000048\n", "throttle",
         FL_THROTTLE_THERMAL + FL_THROTTLE_OTHER},
        {"timestamp, " HELD "sw_power_cap, " HELD "hw_thermal_slowdown\n" AT("00:00") "Active, Active\n", "throttle",
         FL_THROTTLE_POWER + FL_THROTTLE_THERMAL},
        {"timestamp, " HELD "gpu_idle, " HELD "sync_boost\n" AT("00:00") "Not Active, Not Active\n", "throttle", 0},
        {"timestamp, " HELD "sw_power_cap, " MASK "\n" AT("00:00") "Not Active, 0x4\n", "throttle", FL_THROTTLE_POWER},
        {"timestamp, " HELD "sw_power_cap, " HELD "gpu_idle\n" AT("00:00") "[N/A], Active\n", "throttle",
         FL_THROTTLE_IDLE},
        {"timestamp, clocks_event_reasons_counters.sw_power_cap [us]\n" AT("00:00") "250 us\n", "power_violation_ns",
         250000},
        {"#Entity DVCCTR\nID\nGPU 0 4\n", "throttle", FL_THROTTLE_POWER},
        {"#Entity EPLMT POWER\nID W W\nGPU 0 250 99\n", "power_limit_w", 250},
        {"#Entity EPLMT PMLMT\nID W W\nGPU 0 250 300\n", "power_limit_w", 300},
        {"#Entity SMCLK POWER\nID W\nGPU 0 2147483632 99\n", "sm_mhz", NAN},
        {"TIME|NVML::GPU_POWER-gpu-0\n1|200\n", "power_w", 200},
        {"TIME|DCGM::SM_ACTIVE-gpu-0\n1|0.5\n", "sm_active_pct", 50},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = fl_take(NULL, CASE[i].text);
        FL_CHECK(t.status == FL_OK, "case %zu: %s", i, t.d.message);
        if (t.status == FL_OK)
            FL_CHECK(fl_same_real(fl_signal(&t.in.telemetry, 0, CASE[i].signal), CASE[i].value) &&
                         !fl_noted(&t.in, "no place for them"),
                     "case %zu: %g", i, fl_signal(&t.in.telemetry, 0, CASE[i].signal));
        fl_imported_free(&t.in);
    }
    fl_refused("nvidia-smi", "timestamp, " HELD "sw_power_cap\n" AT("00:00") "Perhaps\n", 2, 26,
               "Active or Not Active");
    fl_refused("nvidia-smi", "timestamp, " MASK "\n" AT("00:00") "four\n", 2, 26, "a mask");
}

FL_SUITE("left", {"disorder", test_disorder}, {"kinds of rows", test_kinds}, {"share", test_share},
         {"over time", test_over_time}, {"series", test_series}, {"columns", test_columns})
