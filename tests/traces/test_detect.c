/* Which reader takes a file, and what is said where none does. */
#include "tests/support/import_fixture.h"

#define KERNELS                                                                                                        \
    "# foldline-kernels 1\n# sm_mhz: 1500\ndevice,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,"   \
    "block_y,block_z\n0,0,7,1000,2500,f,1,1,1,128,1,1\n0,0,7,3000,3500,g,1,1,1,128,1,1\n"
#define TELEMETRY "# foldline-telemetry 1\nt_ns,device,power_w\n0,0,50\n100,0,51.25\n"
#define SWEEP "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\na,,1000,,,2,50,\n"

static void test_found(void) {
    static const char *const CASE[][2] = {
        {KERNELS, "foldline-kernels"},
        {"\xef\xbb\xbf" KERNELS, "foldline-kernels"},
        {TELEMETRY, "foldline-telemetry"},
        {SWEEP, "sweep"},
        {"# foldline-sweep 1\n" SWEEP, "sweep"},
        {"timestamp, power.draw [W]\n", "nvidia-smi"},
        {"nohup: ignoring input\nindex, utilization.gpu [%], power.draw [W]\n", "nvidia-smi"},
        {"2024/01/01 00:00:00.000, 65.91 W\n", "nvidia-smi"},
        {"#Entity   GPUTL\nGPU 0  5\n", "dcgmi"},
        {"# Entity   GPUTL\n", "dcgmi"},
        {"Start (ns),Duration (ns),CorrId,Device,Name\n", "nsys-csv"},
        {"NOTICE: x\n\nProcessing [x]...\nStart (s),Duration (ns),CorrId,Device,Name\n", "nsys-csv"},
        {"\"Kind\",\"Agent_Id\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\"\n", "rocprofv3"},
        {"\"Index\",\"KernelName\",\"BeginNs\",\"EndNs\"\n", "rocprofv3"},
        {"# geopm_version: 1.0\n# agent: monitor\nTIME|EPOCH_COUNT\n", "geopm"},
        {"TIME|CPU_ENERGY\n", "geopm"},
        {"Apply policy: Assure\nMACHINE x\n", "geepafs"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_diag d = {0};
        const fl_reader *reader = NULL;
        const char *path = fl_temp_text("unknown.txt", CASE[i][0]);
        FL_CHECK(fl_reader_find(path, NULL, &reader, &d) == FL_OK && reader && !strcmp(reader->name, CASE[i][1]),
                 "case %zu: %s, expected %s (%s)", i, reader ? reader->name : "none", CASE[i][1], d.message);
        FL_CHECK(fl_reader_find(path, CASE[i][1], &reader, &d) == FL_OK && !strcmp(reader->name, CASE[i][1]),
                 "by name");
    }
}

static void test_none(void) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *part;
    } CASE[] = {
        {"hello\nworld\n", 12, "not recognised, expected one of foldline-kernels, foldline-telemetry"},
        {"", 0, "the file is empty"},
        {"\xff\xfet\0i\0m\0e\0", 10, "UTF-16, expected UTF-8"},
        {"# foldline-kinds 1\n", 19, "says that it is 'foldline-kinds 1'"},
        {"\x1f\x8b\x08\x00garbage", 11, "the gzip data is cut off"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_diag d = {0};
        const fl_reader *reader = NULL;
        const char *path = fl_temp_write("unknown.txt", CASE[i].bytes, CASE[i].size);
        FL_CHECK(fl_reader_find(path, NULL, &reader, &d) == FL_BAD_INPUT && !reader && strstr(d.message, CASE[i].part),
                 "case %zu: %s", i, d.message);
    }
    fl_diag d = {0};
    const fl_reader *reader = NULL;
    FL_CHECK(fl_reader_find("/nonexistent/file", NULL, &reader, &d) == FL_BAD_INPUT && strstr(d.message, "cannot open"),
             "%s", d.message);
    FL_CHECK(fl_reader_find("/", NULL, &reader, &d) == FL_BAD_INPUT && strstr(d.message, "directory"), "%s", d.message);
}

static void test_names(void) {
    fl_diag d = {0};
    const fl_reader *reader = NULL;
    FL_CHECK(fl_reader_find("x", "nsys_csv", &reader, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "did you mean 'nsys-csv'"),
             "%s", d.message);
    FL_CHECK(fl_reader_find("x", "zzz", &reader, &d) == FL_BAD_INPUT && strstr(d.message, "expected one of"), "%s",
             d.message);
    for (size_t i = 0; i < fl_readers_count; i++)
        for (size_t k = 0; k < i; k++)
            FL_CHECK(strcmp(fl_readers[i]->name, fl_readers[k]->name) != 0, "%s twice", fl_readers[i]->name);
}

/* The seeds of a reader's fuzzer lie in a folder of its name, which tests/CMakeLists.txt makes the fuzzer of. */
static void test_seeds(void) {
    static const char list[] = FL_ROOT "/tests/fuzz/fuzzers.txt";
    size_t size = 0;
    char *text = fl_temp_slurp(list, &size);
    for (size_t i = 0; i < fl_readers_count; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/tests/fuzz/seeds/%s", FL_ROOT, fl_readers[i]->name);
        DIR *folder = opendir(path);
        size_t seeds = 0;
        for (const struct dirent *e; folder && (e = readdir(folder));)
            seeds += e->d_name[0] != '.';
        if (folder)
            closedir(folder);
        FL_CHECK(seeds > 0, "%s has no seeds", path);
        snprintf(path, sizeof path, "\n%s | ", fl_readers[i]->name);
        const char *row = text ? strstr(text, path) : NULL;
        FL_CHECK(row && !strncmp(strchrnul(row + strlen(path), '|'), "| fuzz_reader.c |", 17), "%s has no fuzzer in %s",
                 fl_readers[i]->name, list);
    }
    free(text);
}

/* Every reader on everybody else's files, forced: refused with a message, or taken whole; never a crash. */
static void test_forced(void) {
    static const char *const TEXT[] = {KERNELS,
                                       TELEMETRY,
                                       SWEEP,
                                       "timestamp, power.draw [W]\n2024/01/01 00:00:00.000, 5 W\n",
                                       "#Entity   POWER\nGPU 0  5\n",
                                       "TIME|CPU_ENERGY\n1|2\n",
                                       "\n\n\n",
                                       "\"\n",
                                       "|",
                                       "#"};
    for (size_t r = 0; r < fl_readers_count; r++)
        for (size_t i = 0; i < sizeof TEXT / sizeof *TEXT; i++) {
            fl_taken t = fl_take(fl_readers[r]->name, TEXT[i]);
            FL_CHECK(t.status == FL_OK || (t.status == FL_BAD_INPUT && t.d.message[0]), "%s on text %zu: %d %s",
                     fl_readers[r]->name, i, t.status, t.d.message);
            fl_imported_free(&t.in);
        }
}

/* Notes quote files: nothing in them may disturb a terminal. */
static void test_notes(void) {
    fl_imported in = {0};
    fl_diag d = {0};
    FL_CHECK(fl_import_note(&in, &d, "left out: %s", "a\x1b[31mb\xff\xc3\xa9") == FL_OK &&
                 !strcmp(in.note[0], "left out: a?[31mb?\xc3\xa9"),
             "'%s'", in.note[0]);
    fl_imported_free(&in);
}

static void test_canonical(void) {
    fl_taken t = fl_take(NULL, KERNELS);
    FL_CHECK(t.status == FL_OK && t.in.has_kernels && !t.in.has_telemetry && t.in.kernels.op_count == 2, "%s",
             t.d.message);
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
    t = fl_take(NULL, TELEMETRY);
    FL_CHECK(t.status == FL_OK && !t.in.has_kernels && t.in.has_telemetry, "%s", t.d.message);
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
    t = fl_take(NULL, SWEEP);
    FL_CHECK(t.status == FL_OK && !t.in.has_kernels && !t.in.has_telemetry && t.in.has_sweep &&
                 t.in.sweep.row_count == 1,
             "%s", t.d.message);
    fl_imported_free(&t.in);
    fl_cut_everywhere("foldline-kernels", KERNELS);
    fl_cut_everywhere("foldline-telemetry", TELEMETRY);
    fl_refused("foldline-telemetry", "# foldline-telemetry 1\nt_ns,device,power_w\n0,0,5", 3, 6, "may be cut off");
}

FL_SUITE("detect", {"found", test_found}, {"none", test_none}, {"names", test_names}, {"seeds", test_seeds},
         {"forced", test_forced}, {"notes", test_notes}, {"canonical", test_canonical})
