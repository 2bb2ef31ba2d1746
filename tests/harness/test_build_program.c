/* Programs straight into workloads: what comes out is what their trace would give. */
#include "harness/input/platform/platform.h"
#include "policies/random.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/same_workload.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

static void read_kinds(fl_kinds *k, bool phases) {
    const char *text = phases
                           ? "# foldline-kinds 1\nname,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz,phase\n"
                             "k0,1,0.2,0,2,1,0.2,0.6,0,0,0.3\nk0,0.2,1,0,2,0.4,1,0.6,0,0,0.7\n"
                             "*,0.4,1,0,2,0.4,1,0.7,0,0,1\n"
                           : "# foldline-kinds 1\nname,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"
                             "*,0.4,1,0,2,0.4,1,0.7,0,0\n";
    fl_diag d = {0};
    FL_CHECK(!fl_kinds_read(fl_temp_text("kinds.csv", text), k, &d), "%s", d.message);
}

static void draw_program(fl_programs *p, fl_random *r, int32_t streams) {
    static const char *const NAME[] = {"k0", "k1", "k2", "[CUDA memcpy HtoD]"};
    fl_diag d = {0};
    const uint32_t program = fl_programs_name(p, "a program"), cycles = (uint32_t)(1 + fl_random_below(r, 3)),
                   parts = (uint32_t)(1 + fl_random_below(r, 3));
    for (uint32_t part = 1; part <= parts; part++) {
        const double part_s = 0.001 * (double)(1 + fl_random_below(r, 50));
        for (uint64_t i = 0, rows = 1 + fl_random_below(r, 4); i < rows; i++) {
            const fl_program_row row = {.program = program,
                                        .kernel = fl_programs_name(p, NAME[fl_random_below(r, 4)]),
                                        .part = part,
                                        .count = (uint32_t)(1 + fl_random_below(r, 5)),
                                        .part_s = part_s,
                                        .time_us = (double)(1 + fl_random_below(r, 900)),
                                        .time_cv = fl_random_below(r, 2) ? 0.4 : 0,
                                        .gap_us = (double)fl_random_below(r, 90),
                                        .gap_cv = fl_random_below(r, 2) ? 1.2 : 0,
                                        .stream = (int32_t)fl_random_below(r, (uint64_t)streams),
                                        .grid_x = (uint32_t)(1 + fl_random_below(r, 99)),
                                        .block_x = 256,
                                        .cycles = cycles};
            FL_CHECK(!fl_programs_add(p, &row, &d), "%s", d.message);
        }
    }
}

static void test_same_as_by_trace(void) {
    fl_platform platform;
    fl_kinds kinds[2];
    fl_diag d = {0};
    int direct = 0;
    FL_CHECK(!fl_platform_open("generic", 0, &platform, &d), "%s", d.message);
    for (int i = 0; i < 2; i++)
        read_kinds(&kinds[i], i);
    for (uint64_t seed = 1; seed <= 80; seed++) {
        fl_random r = fl_random_seed(seed, 23);
        fl_programs p = {0};
        fl_kernel_trace t;
        fl_workload *a = NULL, *b = NULL;
        const int32_t streams = seed % 5 ? 1 : 3;
        const fl_build_options how = {
            .windows = 20, .kinds = seed % 7 ? &kinds[seed % 2] : NULL, .assume = seed % 14 ? "balanced" : NULL};
        draw_program(&p, &r, streams);
        const double seconds = seed % 3 ? 0 : 0.02;
        FL_CHECK(!fl_build_program(&a, "p", &p, 0, seed, seconds, &platform.node, &how, &d), "%s", d.message);
        FL_CHECK(!fl_synth_program(&p, 0, seed, seconds, &t, &d), "%s", d.message);
        const fl_status s = fl_build_trace(&b, "p", &t, &platform.node, &how, &d);
        FL_CHECK(!a || (!s && fl_same_workload(a, b)), "seed %d", (int)seed);
        FL_CHECK(a || s || streams > 1, "seed %d: by its trace, though it has one stream", (int)seed);
        direct += a != NULL;
        fl_workload_free(a);
        if (!s)
            fl_workload_free(b);
        fl_kernel_trace_free(&t);
        fl_programs_free(&p);
    }
    FL_CHECK(direct > 50, "%d went straight", direct);
    for (int i = 0; i < 2; i++)
        fl_kinds_free(&kinds[i]);
    fl_platform_free(&platform);
    fl_temp_remove();
}

FL_SUITE("build_program", {"same_as_by_trace", test_same_as_by_trace})
