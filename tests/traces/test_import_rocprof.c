#include "tests/support/import_fixture.h"

#define FORMAT "rocprofv3"
#define HEAD                                                                                                           \
    "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_"    \
    "Id\","                                                                                                            \
    "\"Start_Timestamp\",\"End_Timestamp\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\","            \
    "\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
#define ROW(agent, queue, name, start, end)                                                                            \
    "\"KERNEL_DISPATCH\"," agent "," queue ",69,1,16,\"" name "\",1451," start "," end ",64,2,1,1000,8,1\n"
#define GOOD                                                                                                           \
    HEAD ROW("4", "1", "void add<float>(float*, int)", "1000", "1500") ROW("4", "2", "sub(int)", "1200", "1300")       \
        ROW("6", "1", "sub(int)", "1600", "1700")

static void test_good(void) {
    fl_taken t = fl_take(FORMAT, GOOD);
    const fl_kernel_trace *k = &t.in.kernels;
    FL_CHECK(t.status == FL_OK && k->op_count == 3, "%s", t.d.message);
    if (t.status != FL_OK)
        return;
    FL_CHECK(k->ops[0].device == 0 && k->ops[2].device == 1 && fl_noted(&t.in, "agents 4, 6"), "agents to devices");
    FL_CHECK(!strcmp(fl_op_name(k, &k->ops[0]), "void add<float>(float*, int)") && k->ops[1].stream == 2 &&
                 k->ops[0].start_ns == 1000 && k->ops[0].end_ns == 1500 && k->ops[0].launch_ns == INT64_MIN,
             "op");
    /* 1000 work-items in groups of 64 are 16 groups, the last not full. */
    const fl_trace_kind *kind = &k->kinds[k->ops[0].kind];
    FL_CHECK(kind->grid[0] == 16 && kind->grid[1] == 4 && kind->grid[2] == 1 && kind->block[0] == 64 &&
                 kind->block[1] == 2 && fl_noted(&t.in, "work-items became groups"),
             "grid %u %u", kind->grid[0], kind->grid[1]);
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
}

static void test_agents(void) {
    static const struct {
        const char *text;
        int32_t first, second;
    } CASE[] = {
        {HEAD ROW("1", "1", "f", "1", "2") ROW("1", "1", "f", "3", "4"), 0, 0},
        {HEAD ROW("\"Agent 9\"", "1", "f", "1", "2") ROW("\"Agent 4\"", "1", "f", "3", "4"), 1, 0},
        {HEAD ROW("\"GPU 3\"", "1", "f", "1", "2") ROW("\"GPU 5\"", "1", "f", "3", "4"), 3, 5},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++) {
        fl_taken t = fl_take(FORMAT, CASE[i].text);
        FL_CHECK(t.status == FL_OK && t.in.kernels.ops[0].device == CASE[i].first &&
                     t.in.kernels.ops[1].device == CASE[i].second,
                 "case %zu: %s", i, t.d.message);
        fl_imported_free(&t.in);
    }
    fl_taken t = fl_take_bytes(FORMAT, GOOD, strlen(GOOD), &(fl_import_options){.device = 1});
    FL_CHECK(t.status == FL_OK && t.in.kernels.op_count == 1 && t.in.kernels.ops[0].start_ns == 1600, "%s",
             t.d.message);
    fl_imported_free(&t.in);
}

/* Columns shift between versions; a stream column is better than the hardware's queue. */
static void test_versions(void) {
    fl_taken t =
        fl_take(FORMAT, "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Start_Timestamp\",\"End_Timestamp\","
                        "\"Kernel_Name\",\"LDS_Block_Size\"\n"
                        "\"KERNEL_DISPATCH\",\"Agent 1\",7,3,10,20,\"f\",0\n"
                        "\"MARKER\",\"Agent 1\",7,3,10,20,\"g\",0\n");
    FL_CHECK(t.status == FL_OK && t.in.kernels.op_count == 1 && t.in.kernels.ops[0].stream == 3 &&
                 fl_noted(&t.in, "1 rows are neither"),
             "v3: %s", t.d.message);
    fl_imported_free(&t.in);
    t = fl_take(FORMAT,
                "\"Index\",\"KernelName\",\"gpu-id\",\"queue-id\",\"queue-index\",\"pid\",\"tid\",\"grd\",\"wgr\","
                "\"DispatchNs\",\"BeginNs\",\"EndNs\",\"CompleteNs\"\n"
                "0,\"f(int, int) [clone .kd]\",51830,2,0,77,78,4096,256,90,100,200,300\n");
    const fl_kernel_trace *k = &t.in.kernels;
    FL_CHECK(t.status == FL_OK && k->op_count == 1, "v1: %s", t.d.message);
    FL_CHECK(k->op_count == 1 && k->ops[0].start_ns == 100 && k->ops[0].end_ns == 200 && k->ops[0].launch_ns == 90 &&
                 k->ops[0].host_thread == 78 && k->ops[0].process == 77 && k->ops[0].stream == 2 &&
                 k->kinds[0].grid[0] == 16 && k->kinds[0].block[0] == 256 && k->has_launches,
             "v1 op");
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
    t = fl_take(FORMAT, "\"Kind\",\"Direction\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\"Correlation_Id\","
                        "\"Start_Timestamp\",\"End_Timestamp\"\n"
                        "\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",\"Agent 0\",\"Agent 4\",1,10,20\n"
                        "\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_HOST\",\"Agent 4\",\"Agent 0\",1,30,40\n");
    k = &t.in.kernels;
    FL_CHECK(t.status == FL_OK && k->op_count == 2 && k->ops[0].type == FL_OP_COPY && k->ops[0].device == 0 &&
                 k->ops[1].device == 0 && !strcmp(fl_op_name(k, &k->ops[0]), "[MEMORY_COPY_HOST_TO_DEVICE]"),
             "copies: %s", t.d.message);
    fl_imported_free(&t.in);
}

static void test_order(void) {
    fl_taken t = fl_take(FORMAT, HEAD ROW("1", "1", "b", "5000", "6000") ROW("1", "1", "a", "1000", "9000"));
    FL_CHECK(t.status == FL_OK && t.in.kernels.ops[0].start_ns == 1000 && t.in.kernels.ops[1].stream == 2 &&
                 fl_noted(&t.in, "order of time") && fl_noted(&t.in, "1 ops overlap"),
             "%s", t.d.message);
    fl_round_trip(&t.in);
    fl_imported_free(&t.in);
}

static void test_refused(void) {
    fl_refused(FORMAT, HEAD ROW("x", "1", "f", "1", "2"), 2, 19, "expected such as 1, 'Agent 4' or 'GPU 3'");
    fl_refused(FORMAT, HEAD ROW("1", "1", "f", "9", "2"), 2, 42, "the end 2 is before the start 9");
    fl_refused(FORMAT, HEAD ROW("1", "1", "f", "1.5", "2"), 2, 40, "Start_Timestamp is '1.5'");
    fl_refused(FORMAT, HEAD ROW("1", "1", "f", "\"1,500\"", "2"), 2, 40, "thousands");
    fl_refused(FORMAT, HEAD ROW("1", "1", "", "1", "2"), 2, 31, "Kernel_Name is empty");
    fl_refused(FORMAT, HEAD "\"KERNEL_DISPATCH\",1\n", 2, 19, "row has 2 fields");
    fl_refused(FORMAT, HEAD "\"KERNEL_DISPATCH\",1,\"\n", 2, 21, "quote is not closed");
    fl_refused(FORMAT, "\"Kernel_Name\",\"Start_Timestamp\"\n", 1, 1, "no header line");
    fl_refused(FORMAT, HEAD, 0, 0, "no kernels");
    fl_refused(FORMAT, "\"Kernel_Name\",\"\tStart_Timestamp\",\"End_Timestamp\"\n\"f\",1,2\n", 1, 0,
               "no column 'Start_Timestamp'");
}

static void test_cut(void) {
    fl_cut_everywhere(FORMAT, HEAD ROW("\"GPU 3\"", "1", "f(int, int)", "1", "2") ROW("\"GPU 3\"", "1", "g", "3", "4"));
    fl_cut_everywhere(FORMAT, "\"KernelName\",\"gpu-id\",\"BeginNs\",\"EndNs\"\n\"f\",1,1,200\n\"g\",1,300,4000\n");
}

static void test_sample(void) {
    const char *path = fl_sample_path("formats/rocprofv3_kernel_trace.csv");
    if (!path)
        return;
    fl_diag d = {0};
    fl_imported in;
    const fl_reader *reader;
    FL_CHECK(fl_reader_find(path, NULL, &reader, &d) == FL_OK && !strcmp(reader->name, FORMAT), "%s", d.message);
    FL_CHECK(fl_reader_read(reader, path, NULL, &in, &d) == FL_OK && in.kernels.op_count == 7, "%s", d.message);
    fl_round_trip(&in);
    fl_imported_free(&in);
}

FL_SUITE("import_rocprof", {"good", test_good}, {"agents", test_agents}, {"versions", test_versions},
         {"order", test_order}, {"refused", test_refused}, {"cut", test_cut}, {"sample", test_sample})
