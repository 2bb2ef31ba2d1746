/* The numbers of foldline show, by hand. */
#include "tests/support/import_fixture.h"

#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#define KERNELS                                                                                                        \
    "# foldline-kernels 1\n# sm_mhz: 1500\ndevice,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,"   \
    "block_y,block_z\n"                                                                                                \
    "0,0,1,1000000000,1400000000,a,1,1,1,128,1,1\n"                                                                    \
    "0,0,2,1200000000,1500000000,b,1,1,1,128,1,1\n"                                                                    \
    "0,0,1,1500005000,1600000000,a,2,1,1,128,1,1\n"                                                                    \
    "0,1,1,1650000000,1850000000,[CUDA memcpy HtoD],,,,,,\n"                                                           \
    "0,0,1,1900000000,2000000000,a,1,1,1,128,1,1\n"                                                                    \
    "1,0,1,1000000000,1100000000,c,1,1,1,128,1,1\n"                                                                    \
    "0,0,0,1000000000,1000000000,[iteration],,,,,,\n"

static bool near(double a, double b) { return fabs(a - b) < 1e-9; }

static void test_kernels(void) {
    fl_taken t = fl_take(NULL, KERNELS);
    fl_stats s;
    fl_diag d = {0};
    FL_CHECK(t.status == FL_OK && fl_stats_make(&s, &t.in, &d) == FL_OK, "%s%s", t.d.message, d.message);
    FL_CHECK(near(s.duration_s, 1) && s.kernels == 5 && s.copies == 1 && s.iterations == 1 && s.syncs == 0 &&
                 s.kinds == 4 && s.names == 3 && s.streams == 4 && s.processes == 2 && !s.has_launches && s.has_clocks,
             "%g s, %zu kernels, %zu kinds, %zu streams, %zu processes", s.duration_s, s.kernels, s.kinds, s.streams,
             s.processes);
    const fl_device_stats *v = s.device;
    FL_CHECK(s.device_count == 2 && v[0].device == 0 && v[0].kernels == 4 && v[0].streams == 3 && v[1].kernels == 1,
             "devices");
    /* Active 1.0 to 1.5, 1.500005 to 1.6, 1.9 to 2.0 s. */
    FL_CHECK(near(v[0].span_s, 1) && near(v[0].busy_s, 0.699995) && near(v[0].kernel_s, 0.899995) &&
                 near(v[0].copy_s, 0.2),
             "busy %.9g, kernels %.9g, copies %.9g", v[0].busy_s, v[0].kernel_s, v[0].copy_s);
    FL_CHECK(v[0].gaps == 2 && near(v[0].gap_s, 0.300005) && near(v[0].longest_gap_s, 0.3) && v[0].gap_count[0] == 1 &&
                 near(v[0].gap_class_s[0], 5e-6) && v[0].gap_count[4] == 1,
             "gaps");
    FL_CHECK(isnan(v[0].power_w) && isnan(v[0].energy_j) && v[0].readings == 0, "no telemetry");
    FL_CHECK(s.name_count == 3 && !strcmp(s.name[0].name, "a") && s.name[0].count == 3 && s.name[0].kinds == 2 &&
                 near(s.name[0].total_s, 0.599995) && near(s.name[0].max_s, 0.4) && !strcmp(s.name[1].name, "b"),
             "names");
    fl_stats_free(&s);
    fl_imported_free(&t.in);
}

static fl_taken with_telemetry(const char *telemetry) {
    fl_taken t = fl_take(NULL, KERNELS), m = fl_take(NULL, telemetry);
    FL_CHECK(m.status == FL_OK, "%s", m.d.message);
    t.in.telemetry = m.in.telemetry;
    t.in.has_telemetry = true;
    m.in.telemetry = (fl_telemetry){0};
    fl_imported_free(&m.in);
    return t;
}

static void test_energy(void) {
    /* From 83.33 W at 1.0 s to 100 W at 1.5 s, to 200 W at 1.8 s, and so to 2.0 s: 45.83 + 45 + 40 J. */
    fl_taken t = with_telemetry("# foldline-telemetry 1\nt_ns,device,power_w,sm_mhz,util_gpu_pct\n0,0,50,1000,100\n"
                                "1500000000,0,100,1500,50\n1800000000,0,200,1500,50\n1000000000,host,,,\n");
    fl_stats s;
    fl_diag d = {0};
    FL_CHECK(fl_stats_make(&s, &t.in, &d) == FL_OK, "%s", d.message);
    const fl_device_stats *v = s.device;
    FL_CHECK(near(v->energy_j, 130.83333333333334) && near(v->power_w, 130.83333333333334) && near(v->sm_mhz, 1250) &&
                 near(v->util_pct, 75) && v->readings == 3 && isnan(s.device[1].energy_j),
             "%g J, %g W, %g MHz, %g %%", v->energy_j, v->power_w, v->sm_mhz, v->util_pct);
    fl_stats_free(&s);
    fl_imported_free(&t.in);
    t = with_telemetry(
        "# foldline-telemetry 1\nt_ns,device,power_w,energy_j\n1000000000,0,50,1000\n2000000000,0,50,1077\n");
    FL_CHECK(fl_stats_make(&s, &t.in, &d) == FL_OK && near(s.device->energy_j, 77), "counter: %g J",
             s.device->energy_j);
    fl_stats_free(&s);
    fl_imported_free(&t.in);
}

static void test_telemetry_only(void) {
    fl_taken t =
        fl_take(NULL, "# foldline-telemetry 1\nt_ns,device,power_instant_w\n1000000000,0,50\n2000000000,0,100\n"
                      "3000000000,0,70\n");
    fl_stats s;
    fl_diag d = {0};
    FL_CHECK(fl_stats_make(&s, &t.in, &d) == FL_OK && near(s.duration_s, 2) && s.kernels == 0 && s.device_count == 1 &&
                 near(s.device->energy_j, 160) && near(s.device->power_w, 80) && near(s.device->interval_s, 1),
             "%g s, %g J, %g W", s.duration_s, s.device->energy_j, s.device->power_w);
    fl_stats_free(&s);
    fl_imported_free(&t.in);
    t = fl_take(NULL, "# foldline-telemetry 1\nt_ns,device,cpu_mhz\n1000000000,host,2000\n4000000000,host,2100\n");
    FL_CHECK(fl_stats_make(&s, &t.in, &d) == FL_OK && near(s.duration_s, 3) && s.device_count == 0, "host only");
    fl_stats_free(&s);
    fl_imported_free(&t.in);
}

static void test_series(void) {
    fl_taken t = with_telemetry("# foldline-telemetry 1\nt_ns,device,power_w\n1050000000,0,50\n1650000000,0,100\n");
    fl_diag d = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    FL_CHECK(out && fl_stats_put_series(out, &t.in, 10, &d) == FL_OK, "%s", d.message);
    if (out)
        fclose(out);
    static const char *const LINE[] = {"t_s,device,busy_pct,copy_pct,power_w,sm_mhz,util_gpu_pct\n",
                                       "\n0.05,0,100,0,50,,\n",
                                       "\n0.15,0,100,0,50,,\n", /* held */
                                       "\n0.65,0,0,50,100,,\n",
                                       "\n0.95,0,100,0,,,\n",
                                       "\n0.05,1,100,0,,,\n"};
    for (size_t i = 0; text && i < sizeof LINE / sizeof *LINE; i++)
        FL_CHECK(strstr(text, LINE[i]) != NULL, "no line %s in\n%s", LINE[i], text);
    free(text);
    fl_imported_free(&t.in);
}

FL_SUITE("trace_stats", {"kernels", test_kernels}, {"energy", test_energy}, {"telemetry only", test_telemetry_only},
         {"series", test_series})
