#include "harness/plot.h"
#include "tests/suite.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

static const char *in_folder(const char *name) {
    static char path[4][512];
    static int which;
    char *p = path[which++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static const char *write_file(const char *name, const char *text) {
    const char *path = in_folder(name);
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
    return path;
}

static void make_folder(void) {
    if (!*folder) {
        snprintf(folder, sizeof folder, "%s/fl-plot-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    }
}

#define COMPARE                                                                                                        \
    "workload,policy,slowdown,energy_saving_pct,regret_static_pct,regret_clairvoyant_pct\n"                            \
    "a,baseline:default,0,0,5,6\na,nvboost,0,0,5,6\na,slow:x=1,0.2,9,n/a,n/a\n"                                        \
    "mean,baseline:default,0,0,5,6\nmean,nvboost,0,0,5,6\nmean,slow:x=1,0.2,9,n/a,n/a\n"
#define TIMELINE                                                                                                       \
    "# foldline-telemetry 1\nt_ns,device,sm_mhz,mem_mhz,power_w,util_gpu_pct\n0,0,1500,1000,,\n0,1,1500,1000,,\n"      \
    "100000000,0,900,1000,80,99\n100000000,1,1500,1000,120,50\n"

static void test_every_kind_and_format(void) {
    static const struct {
        const char *ending, *magic;
    } format[] = {{"svg", "<?xml"}, {"png", "\x89PNG"}, {"pdf", "%PDF"}};
    make_folder();
    const char *compare = strdup(write_file("c.csv", COMPARE)), *timeline = strdup(write_file("t.csv", TIMELINE));
    for (size_t k = 0; fl_plot_kinds[k]; k++)
        for (size_t f = 0; f < 3; f++) {
            char name[64], head[8] = {0};
            fl_diag d = {0};
            snprintf(name, sizeof name, "%s.%s", fl_plot_kinds[k], format[f].ending);
            const char *out = in_folder(name), *input = strcmp(fl_plot_kinds[k], "timeline") ? compare : timeline;
            FL_CHECK(fl_plot(fl_plot_kinds[k], input, out, &d) == FL_OK, "%s: %s", name, d.message);
            FILE *file = fopen(out, "rb");
            size_t got = file ? fread(head, 1, sizeof head - 1, file) : 0;
            if (file)
                fclose(file);
            FL_CHECK(got > 4 && !strncmp(head, format[f].magic, strlen(format[f].magic)), "%s begins with '%s'", name,
                     head);
        }
    free((char *)(uintptr_t)compare);
    free((char *)(uintptr_t)timeline);
}

static void test_refusals(void) {
    make_folder();
    const char *good = strdup(write_file("g.csv", COMPARE));
    const char *rubbish = strdup(write_file("r.csv", "not,a,result\n1,2,3\n"));
    const struct {
        const char *kind, *input, *output, *says;
        fl_status status;
    } row[] = {{"pareto_", good, "x.svg", "pareto", FL_BAD_INPUT},
               {"pareto", "/nowhere/x.csv", "x.svg", "No such file", FL_BAD_INPUT},
               {"pareto", good, "x.gif", ".svg", FL_BAD_INPUT},
               {"pareto", good, "x", ".svg", FL_BAD_INPUT},
               {"pareto", good, "it's.svg", "quote", FL_BAD_INPUT},
               {"pareto", rubbish, "x.svg", "cannot be drawn", FL_BAD_INPUT},
               {"pareto", good, "no/such/folder/x.svg", "cannot write", FL_IO}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_diag d = {0};
        char part[600];
        const char *out = in_folder(row[i].output);
        FL_CHECK(fl_plot(row[i].kind, row[i].input, out, &d) == row[i].status, "row %zu: %s", i, d.message);
        FL_CHECK(strstr(d.message, row[i].says) != NULL, "row %zu: %s", i, d.message);
        snprintf(part, sizeof part, "%s.part", out);
        FL_CHECK(access(out, F_OK) && access(part, F_OK), "row %zu left something behind", i);
    }
    free((char *)(uintptr_t)good);
    free((char *)(uintptr_t)rubbish);
}

FL_SUITE("plot", {"every kind in every format", test_every_kind_and_format},
         {"refusals leave nothing behind", test_refusals})
