#include "harness/report/picture/inside.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

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
    "workload,policy,energy_j,slowdown,energy_saving_pct,regret_static_pct,regret_clairvoyant_pct,seed\n"              \
    "a,baseline:default,100,0,0,5,6,1\na,nvboost,99,0,1,5,6,1\na,\"slow:x=1,y=2\",90,0.2,9,n/a,n/a,1\n"                \
    "a,\"slow:x=2,y=2\",91,0.1,8,n/a,n/a,1\n"                                                                          \
    "b,baseline:default,100,0,0,5,6,1\nb,nvboost,98,0,2,5,6,1\nb,\"slow:x=1,y=2\",95,0.2,5,n/a,n/a,1\n"                \
    "b,\"slow:x=2,y=2\",96,0.1,4,n/a,n/a,1\n"                                                                          \
    "mean,baseline:default,100,0,0,5,6,1\nmean,nvboost,98.5,0,1.5,5,6,1\nmean,\"slow:x=1,y=2\",92,0.2,7,n/a,n/a,1\n"
#define SWEEP                                                                                                          \
    "workload,policy,energy_j,slowdown,energy_saving_pct,regret_static_pct,regret_clairvoyant_pct,seed\n"              \
    "a,baseline:default,100,0,0,5,6,1\na,nvboost,99,0,1,5,6,1\na,\"slow:x=1,y=2\",90,0.2,9,n/a,n/a,1\n"
#define REGRET                                                                                                         \
    "workload,policy,platform,variant,step,runs,reward_regret,low,high\n"                                              \
    "a,one,p,,1000,2,10,9,11\na,one,p,,2000,2,12,11,13\na,two,p,,1000,2,30,20,40\na,two,p,,2000,2,60,50,70\n"          \
    "a [v],one,p,v,1000,2,10,9,11\n"
#define FRONTIER                                                                                                       \
    "kind,time_s,energy_j,bound_j,judge_time_s,judge_energy_j,measured_time_s,measured_energy_j\n"                     \
    "plan,6,100,99,n/a,n/a,n/a,n/a\nplan,7,90,89,n/a,n/a,n/a,n/a\ndefault,6,110,n/a,n/a,n/a,n/a,n/a\n"
#define GANTT                                                                                                          \
    "rank,what,chunk,microbatch,start_s,end_s,sm_mhz,power_w\n0,forward,0,0,0,0.1,1000,200\n"                          \
    "0,wait,,,0.1,0.3,1000,90\n1,wait,,,0,0.1,1410,90\n1,backward,0,0,0.1,0.3,1410,290\n"
#define SERVERS                                                                                                        \
    "workload,policy,energy_j,slowdown,violated,energy_saving_pct,ttft_p99_s,tbt_p99_s,served_rps,energy_per_token_j," \
    "saving_static_pct,offered_rps\na,baseline:default,9,0,0,0,1,0.1,2,0.5,-10,2.01\n"                                 \
    "a,eco,8,0,0,9,1.5,0.12,2,0.4,1,2.01\na "                                                                          \
    "[v],eco,7,0,1,12,30,0.2,3,0.3,5,4\nmean,eco,7,0,1,10,15,0.15,2.5,0.35,1,3\n"
#define SERVED                                                                                                         \
    "request,ttft_ns,tpot_ns,tbt_max_ns,e2e_ns,energy_j,energy_per_token_j\n0,100000000,20000000,90000000,900000000,"  \
    "40,2\n1,300000000,,0,300000000,8,8\n"
#define TIMELINE                                                                                                       \
    "# foldline-telemetry 1\nt_ns,device,sm_mhz,mem_mhz,power_w,util_gpu_pct\n0,0,1500,1000,,\n0,1,1500,1000,,\n"      \
    "100000000,0,900,1000,80,99\n100000000,1,1500,1000,120,50\n"

#define LOCKS                                                                                                          \
    "workload,sm_mhz,power_cap_w,time_s,power_w\na,500,300,1,100\na,1000,300,0.5,150\na,1500,300,0.4,200\n"            \
    "a,1500,150,0.45,150\n"
#define PUBLISHED                                                                                                      \
    "{\"published\": [{\"quantity\": \"saved\", \"unit\": \"%\", \"block\": \"claim\", \"kind\": \"predicted\", "      \
    "\"published_low\": 20, \"published_high\": 20, \"simulated\": 25, \"verdict\": \"reproduced\"}]}\n"
#define TRAJECTORY "t_s,demand_w,power_w,set_w,sm_mhz\n0,90,80,,1500\n0.05,90,85,100,1300\n0.1,90,100,,1400\n"

/* Each file is a line of its own, named as the file; a trajectory too. */
static void test_over_each_other(void) {
    make_folder();
    char *in[] = {strdup(write_file("recorded.csv", TRAJECTORY)), strdup(write_file("simulated.csv", TIMELINE))};
    const char *out = in_folder("over.svg");
    fl_diag d = {0};
    FL_CHECK(fl_plot_all("timeline", NULL, (const char *const *)in, 2, out, &d) == FL_OK, "%s", d.message);
    FILE *f = fopen(out, "r");
    char *text = calloc(1, 1 << 20);
    CU_ASSERT_FATAL(f && text && fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    FL_CHECK(strstr(text, ">recorded<") && strstr(text, ">simulated<"), "both names");
    free(text);
    FL_CHECK(fl_plot_all("residency", NULL, (const char *const *)in, 2, out, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "2 inputs, expected one"),
             "%s", d.message);
    free(in[0]);
    free(in[1]);
}

static void test_every_kind_and_format(void) {
    static const struct {
        const char *ending, *magic;
    } format[] = {{"svg", "<?xml"}, {"png", "\x89PNG"}, {"pdf", "%PDF"}};
    make_folder();
    const char *compare = strdup(write_file("c.csv", COMPARE)), *timeline = strdup(write_file("t.csv", TIMELINE)),
               *regret = strdup(write_file("c.regret.csv", REGRET)), *gantt = strdup(write_file("gantt.csv", GANTT)),
               *frontier = strdup(write_file("f.csv", FRONTIER)), *servers = strdup(write_file("servers.csv", SERVERS)),
               *served = strdup(write_file("served.csv", SERVED)), *locks = strdup(write_file("locks.csv", LOCKS));
    write_file("c.published.json", PUBLISHED);
    for (size_t k = 0; fl_plot_kinds[k]; k++)
        for (size_t f = 0; f < 3; f++) {
            char name[64], head[8] = {0};
            fl_diag d = {0};
            snprintf(name, sizeof name, "%s.%s", fl_plot_kinds[k], format[f].ending);
            const char *out = in_folder(name), *kind = fl_plot_kinds[k];
            const char *input = !strcmp(kind, "timeline") || !strcmp(kind, "residency") || !strcmp(kind, "trace")
                                    ? timeline
                                : !strcmp(kind, "gantt")         ? gantt
                                : !strcmp(kind, "frontier")      ? frontier
                                : !strcmp(kind, "latencies")     ? served
                                : !strcmp(kind, "locks")         ? locks
                                : !strncmp(kind, "serving", 7)   ? servers
                                : !strcmp(kind, "regret-curves") ? regret
                                                                 : compare;
            const bool models = !strcmp(kind, "models");
            const fl_plot_options v100 = {.platform = "v100-300w"};
            const fl_status s = fl_plot_all(kind, models ? &v100 : NULL, models ? &locks : &input, 1, out, &d);
            FL_CHECK(s == FL_OK, "%s: %s", name, d.message);
            FILE *file = fopen(out, "rb");
            size_t got = file ? fread(head, 1, sizeof head - 1, file) : 0;
            if (file)
                fclose(file);
            FL_CHECK(got > 4 && !strncmp(head, format[f].magic, strlen(format[f].magic)), "%s begins with '%s'", name,
                     head);
        }
    free((char *)(uintptr_t)compare);
    free((char *)(uintptr_t)servers);
    free((char *)(uintptr_t)served);
    free((char *)(uintptr_t)timeline);
    free((char *)(uintptr_t)regret);
    free((char *)(uintptr_t)gantt);
    free((char *)(uintptr_t)frontier);
    free((char *)(uintptr_t)locks);
}

/* Ends of straight pieces drawn in a colour. */
static int pieces(const char *picture, const char *colour) {
    FILE *f = fopen(picture, "r");
    char *text = calloc(1, 1 << 20), stroke[64];
    CU_ASSERT_FATAL(f && text && fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    int count = 0;
    snprintf(stroke, sizeof stroke, "<path stroke='%s'", colour);
    for (const char *at = text; (at = strstr(at, stroke)); at++)
        for (const char *c = at; *c && *c != '/'; c++)
            count += *c == 'L';
    free(text);
    return count;
}

/* Rows of several GPUs come in turn; each GPU has its line all the same. */
static void test_lines(void) {
    static const struct {
        const char *kind, *table;
        int least; /* of each GPU */
    } row[] = {
        {"timeline",
         "# foldline-telemetry 1\nt_ns,device,sm_mhz,mem_mhz,power_w,util_gpu_pct\n0,0,1500,1000,,\n0,1,1500,1000,,\n"
         "100000000,0,900,1000,80,99\n100000000,1,1300,1000,120,50\n200000000,0,1000,1000,90,99\n"
         "200000000,1,1400,1000,110,50\n",
         4 + 1},
        {"trace",
         "# foldline-telemetry 1\nt_ns,device,sm_mhz,power_w,util_gpu_pct\n0,0,1000,100,10\n0,1,1000,110,20\n"
         "100000000,0,900,101,30\n100000000,1,800,120,40\n200000000,0,900,100,30\n200000000,1,800,120,40\n",
         1 + 3 + 2 + 3} /* its key has a piece */,
    };
    make_folder();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_diag d = {0};
        const char *in = write_file("lines.csv", row[i].table), *out = in_folder("lines.svg");
        FL_CHECK(fl_plot(row[i].kind, in, out, &d) == FL_OK, "%s: %s", row[i].kind, d.message);
        const int first = pieces(out, "rgb(  0, 114, 178)"), second = pieces(out, "rgb(213,  94,   0)");
        FL_CHECK(first >= row[i].least && second >= row[i].least, "%s: %d and %d pieces, expected %d", row[i].kind,
                 first, second, row[i].least);
    }
}

static int times_in(const char *file, const char *word) {
    FILE *f = fopen(file, "r");
    char *text = calloc(1, 1 << 20);
    CU_ASSERT_FATAL(f && text && fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        count++;
    free(text);
    return count;
}

/* A server's policies stand at the load that was asked for; one that serves less of it is crossed out, in both panels.
 */
static void test_overloaded(void) {
    static const char head[] = "policy,violated,energy_saving_pct,saving_static_pct,offered_rps,served_rps\n";
    char table[512];
    int crosses[2];
    make_folder();
    for (int k = 0; k < 2; k++) {
        fl_diag d = {0};
        snprintf(table, sizeof table, "%sbaseline:default,0,0,-5,4,3.9\none,0,5,1,4,3.9\ntwo,1,9,4,4,%s\n", head,
                 k ? "3" : "3.81");
        const char *in = write_file("load.csv", table), *out = in_folder("load.svg");
        FL_CHECK(fl_plot("serving-load", in, out, &d) == FL_OK, "%s", d.message);
        crosses[k] = times_in(out, "<use xlink:href='#gpPt1'");
    }
    FL_CHECK(crosses[0] == 0 && crosses[1] == 2, "%d and %d crosses", crosses[0], crosses[1]);
}

/* Where the texts of a picture stand: from the top, those of `name`, in this order and each once. */
static void in_order(const char *picture, const char *const *name, size_t count) {
    FILE *f = fopen(picture, "r");
    char *text = calloc(1, 1 << 20);
    CU_ASSERT_FATAL(f && text && fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    const char *last = NULL;
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(text, name[i]);
        FL_CHECK(at != NULL, "%s has no '%s'", picture, name[i]);
        FL_CHECK(at && !strstr(at + 1, name[i]), "%s has '%s' twice", picture, name[i]);
        FL_CHECK(!last || at < last, "%s: '%s' is out of order", picture, name[i]);
        last = at; /* gnuplot writes the labels of an axis from below */
    }
    FL_CHECK(!strstr(text, ">policy<"), "%s has the head of the table", picture);
    free(text);
}

/* The best first, and nothing mixed up between names and rows. */
static void test_tables(void) {
    static const struct {
        const char *kind, *name[5];
        size_t count;
    } row[] = {{"intervals", {">slow:x=1,y=2<", ">slow:x=2,y=2<", ">nvboost<", ">baseline:default<"}, 4},
               {"regret", {">slow:x=1,y=2<", ">nvboost<"}, 2},
               {"ranks", {">slow:x=1,y=2<", ">slow:x=2,y=2<", ">nvboost<"}, 3}};
    make_folder();
    const char *compare = strdup(write_file("c.csv", COMPARE)), *sweep = strdup(write_file("s.csv", SWEEP));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_diag d = {0};
        const bool without_means = !strcmp(row[i].kind, "regret");
        const char *out = in_folder("table.svg"), *input = without_means ? sweep : compare;
        FL_CHECK(fl_plot(row[i].kind, input, out, &d) == FL_OK, "%s: %s", row[i].kind, d.message);
        in_order(out, row[i].name, row[i].count);
    }
    fl_diag d = {0};
    FL_CHECK(fl_plot("pareto", sweep, in_folder("table.svg"), &d) == FL_OK, "pareto without means: %s", d.message);
    free((char *)(uintptr_t)compare);
    free((char *)(uintptr_t)sweep);
}

/* A name is no format: per cent signs stand as they are. */
static void test_percent(void) {
    static const char table[] =
        "workload,policy,energy_j,slowdown,energy_saving_pct,regret_static_pct,regret_clairvoyant_pct,seed\n"
        "a,one [5% more],90,0.2,9,1,2,1\na,two %s %d 100%,91,0.1,8,1,2,1\n"
        "b,one [5% more],90,0.2,9,1,2,1\nb,two %s %d 100%,91,0.1,8,1,2,1\n"
        "mean,one [5% more],90,0.2,9,1,2,1\nmean,two %s %d 100%,91,0.1,8,1,2,1\n";
    static const char *const kinds[] = {"regret", "intervals", "ranks", "pareto"};
    make_folder();
    const char *input = strdup(write_file("percent.csv", table));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char text[1 << 16] = "";
        fl_diag d = {0};
        const char *out = in_folder("percent.svg");
        FL_CHECK(fl_plot(kinds[i], input, out, &d) == FL_OK, "%s: %s", kinds[i], d.message);
        FILE *f = fopen(out, "r");
        const size_t size = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f)
            fclose(f);
        FL_CHECK(size && strstr(text, "one [5% more]") && strstr(text, "two %s %d 100%"), "%s: other names", kinds[i]);
    }
    free((char *)(uintptr_t)input);
}

static size_t files(void) {
    char line[300], said[32] = "";
    snprintf(line, sizeof line, "ls -A '%s' | wc -l", folder);
    FILE *p = popen(line, "r");
    const size_t got = p ? fread(said, 1, sizeof said - 1, p) : 0;
    if (p)
        pclose(p);
    return got ? strtoul(said, NULL, 10) : 0;
}

static void test_refusals(void) {
    make_folder();
    const char *good = strdup(write_file("g.csv", COMPARE));
    const char *words = strdup(
        write_file("w.csv", "workload,policy,platform,variant,step,runs,reward_regret,low,high\na [v],p,,v,,,,,\n"));
    const char *bare = strdup(write_file("b.csv", "# foldline-telemetry 1\nt_ns,device,sm_mhz,power_w\n"));
    const char *means = strdup(write_file("m.csv", "workload,policy,energy_j\na,p,1\nmean,p,1\n"));
    const char *rubbish = strdup(write_file("r.csv", "not,a,result\n1,2,3\n"));
    const char *plain = strdup(write_file("p.csv", "workload,policy,energy_j,slowdown,energy_saving_pct\na,p,1,0,0\n"));
    const struct {
        const char *kind, *input, *output, *says;
        fl_status status;
    } row[] = {{"pareto_", good, "x.svg", "pareto", FL_BAD_INPUT},
               {"pareto", "/nowhere/x.csv", "x.svg", "No such file", FL_BAD_INPUT},
               {"pareto", good, "x.gif", ".svg", FL_BAD_INPUT},
               {"pareto", good, "x", ".svg", FL_BAD_INPUT},
               {"pareto", rubbish, "x.svg", "expected the CSV of compare", FL_BAD_INPUT},
               {"ranks", rubbish, "x.svg", "expected the CSV of compare", FL_BAD_INPUT},
               {"ranks", "/nowhere/x.csv", "x.svg", "No such file", FL_BAD_INPUT},
               {"sensitivity", plain, "x.svg", "no policy with a parameter", FL_BAD_INPUT},
               {"ranks", plain, "x.svg", "no two policies ran the same workloads", FL_BAD_INPUT},
               {"residency", good, "x.svg", "foldline-telemetry", FL_BAD_INPUT},
               {"regret-curves", good, "x.svg", "no column 'platform'", FL_BAD_INPUT},
               {"regret-curves", words, "x.svg", "no step with a regret, nothing to draw", FL_BAD_INPUT},
               {"timeline", good, "x.svg", "foldline-telemetry", FL_BAD_INPUT},
               {"timeline", bare, "x.svg", "no readings", FL_BAD_INPUT},
               {"trace", good, "x.svg", "not recognised", FL_BAD_INPUT},
               {"pareto", means, "x.svg", "no columns workload, policy, energy_j and slowdown", FL_BAD_INPUT},
               {"regret", means, "x.svg", "no columns workload, policy, energy_j and slowdown", FL_BAD_INPUT},
               {"intervals", good, "no/such/folder/x.svg", "cannot create", FL_IO},
               {"pareto", good, "no/such/folder/x.svg", "cannot create", FL_IO}};
    const size_t before = files();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_diag d = {0};
        const char *out = in_folder(row[i].output);
        FL_CHECK(fl_plot(row[i].kind, row[i].input, out, &d) == row[i].status, "row %zu: %s", i, d.message);
        FL_CHECK(strstr(d.message, row[i].says) != NULL, "row %zu: %s", i, d.message);
        FL_CHECK(files() == before, "row %zu left something behind", i);
    }
    free((char *)(uintptr_t)words);
    free((char *)(uintptr_t)bare);
    free((char *)(uintptr_t)means);
    free((char *)(uintptr_t)good);
    free((char *)(uintptr_t)rubbish);
    free((char *)(uintptr_t)plain);
}

static void test_away(void) {
    char line[300];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    FL_CHECK(*folder && system(line) == 0 && access(folder, F_OK), "%s is left", folder);
}

FL_SUITE("plot", {"over each other", test_over_each_other}, {"lines", test_lines},
         {"overloaded servers", test_overloaded}, {"every kind in every format", test_every_kind_and_format},
         {"names and rows", test_tables}, {"per cent signs", test_percent},
         {"refusals leave nothing behind", test_refusals}, {"nothing left", test_away})
