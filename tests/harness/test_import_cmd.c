/* foldline import and foldline trace, as a user calls them. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define KERNEL_HEAD "Start (ns),Duration (ns),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Ctx,Strm,Name\n"

static char out[65536];

/* Runs foldline with the arguments in the temporary folder; stdout and stderr go to `out`. The exit status. */
static int foldline(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int foldline(const char *format, ...) {
    char arguments[2048], command[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    fl_temp_path("x");
    snprintf(command, sizeof command, "cd '%s' && '%s' %s 2>&1", fl_temp_folder, FL_PROGRAM, arguments);
    FILE *f = popen(command, "r");
    size_t n = f ? fread(out, 1, sizeof out - 1, f) : 0;
    out[n] = '\0';
    int status = f ? pclose(f) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool exists(const char *name) {
    struct stat s;
    return stat(fl_temp_path(name), &s) == 0;
}

/* Bursts of kernels, and a board whose power follows them 100.25 s later on its own clock, read every 50 ms. */
static void write_run(void) {
    static const int BURST[][2] = {{500, 900}, {1300, 1450}, {1600, 2700}, {3100, 3200}, {3900, 4700}}; /* ms */
    static char kernels[1 << 16], readings[1 << 16];
    size_t k = (size_t)snprintf(kernels, sizeof kernels, KERNEL_HEAD), r;
    for (size_t b = 0; b < 5; b++)
        for (int ms = BURST[b][0]; ms < BURST[b][1]; ms += 10)
            k += (size_t)snprintf(kernels + k, sizeof kernels - k, "%d000000,9900000,64,1,1,128,1,1,X (0),1,7,f%zu\n",
                                  ms, b % 2);
    r = (size_t)snprintf(readings, sizeof readings, "timestamp, index, power.draw [W], clocks.sm [MHz]\n");
    for (int ms = 0; ms < 6000; ms += 50) {
        bool busy = false;
        for (size_t b = 0; b < 5; b++)
            busy |= ms > BURST[b][0] && ms <= BURST[b][1];
        int at = ms + 250;
        r += (size_t)snprintf(readings + r, sizeof readings - r, "1970/01/01 00:01:%02d.%03d, 3, %d.00 W, %d MHz\n",
                              40 + at / 1000, at % 1000, busy ? 250 : 60, busy ? 1410 : 210);
    }
    fl_temp_text("k.csv", kernels);
    fl_temp_text("r.csv", readings);
}

static void test_join(void) {
    write_run();
    FL_CHECK(foldline("import k.csv r.csv -o run.csv") == 0, "%s", out);
    FL_CHECK(strstr(out, "from nsys-csv") && strstr(out, "telemetry time = kernel time +100.2") &&
                 strstr(out, "correlation 1.00 with power_w") && strstr(out, "device 3 of the telemetry") &&
                 strstr(out, "written: run.telemetry.csv"),
             "%s", out);
    size_t size;
    char *text = fl_temp_slurp(fl_temp_path("run.csv"), &size);
    FL_CHECK(text && strstr(text, "# sm_mhz: 1410\n") && strstr(text, "# clock_offset_ns: 1002") &&
                 strstr(text, "# source: k.csv, imported as nsys-csv\n"),
             "%.400s", text ? text : "nothing");
    free(text);
    FL_CHECK(foldline("import k.csv r.csv -o run2.csv --offset 100.25") == 0 && strstr(out, "+100.250000 s"), "%s",
             out);
    /* The pair is summarised with its energy: 2.55 s active of 4.2 s, at 250 W, else at 60 W. */
    FL_CHECK(foldline("show run2.csv") == 0 && strstr(out, "60.1 % of the time") && strstr(out, "energy    73"), "%s",
             out);
    FL_CHECK(foldline("show run2.csv --json") == 0 && strstr(out, "\"energy_j\"") && strstr(out, "\"busy_pct\""), "%s",
             out);
    FL_CHECK(foldline("plot trace run2.csv -o run2.svg") == 0 && exists("run2.svg"), "%s", out);
    FL_CHECK(foldline("import k.csv --json") == 0 && strstr(out, "\"format\":\t\"nsys-csv\"") &&
                 strstr(out, "no clocks"),
             "%s", out);
}

static void test_run(void) {
    write_run();
    FL_CHECK(foldline("run k.csv --platform generic --policy nvboost --assume balanced") == 0 && strstr(out, "energy"),
             "%s", out);
    FL_CHECK(foldline("run k.csv --platform generic --policy nvboost") == 2, "%s", out);
    /* A pipe is kept whole, so that any format can be told and read twice. */
    FL_CHECK(
        foldline("import k.csv -o p.csv && mkfifo p.fifo && (cat p.csv > p.fifo & '%s' run p.fifo --platform generic "
                 "--policy nvboost --assume balanced)",
                 FL_PROGRAM) == 0 &&
            strstr(out, "makespan"),
        "%s", out);
    FL_CHECK(foldline("--version && (cat k.csv > p.fifo & '%s' run p.fifo --platform generic --policy nvboost "
                      "--assume balanced)",
                      FL_PROGRAM) == 0 &&
                 strstr(out, "makespan"),
             "%s", out);
    FL_CHECK(foldline("--version && (cat k.csv > p.fifo & '%s' import p.fifo --format nsys-csv)", FL_PROGRAM) == 0,
             "%s", out);
    FL_CHECK(foldline("run r.csv --platform generic --policy nvboost --assume balanced") == 2 &&
                 strstr(out, "has telemetry only"),
             "%s", out);
    fl_temp_text("s.csv", "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\na,,1000,,,2,50,\n");
    FL_CHECK(foldline("run s.csv --platform generic --policy nvboost") == 0 && strstr(out, "makespan"), "%s", out);
    FL_CHECK(foldline("import s.csv -o s2.csv") == 0 && strstr(out, "1 measured settings") && exists("s2.csv"), "%s",
             out);
}

/* What was read from a canonical file is written the same. */
static void test_round_trip(void) {
    write_run();
    FL_CHECK(foldline("import k.csv -o a.csv && '%s' import a.csv -o b.csv && cmp a.csv b.csv", FL_PROGRAM) == 0, "%s",
             out);
    FL_CHECK(foldline("import r.csv -o t.csv && '%s' import t.telemetry.csv -o u.telemetry.csv && cmp t.telemetry.csv "
                      "u.telemetry.csv",
                      FL_PROGRAM) == 0,
             "%s", out);
}

static void test_refused(void) {
    write_run();
    static const struct {
        const char *arguments, *part;
    } CASE[] = {
        {"import", "no file given"},
        {"import none.csv", "cannot open"},
        {"import k.csv -o k.csv", "same file as"},
        {"import k.csv --format nsys-cvs", "did you mean 'nsys-csv'"},
        {"import k.csv r.csv --format nsys-csv --format dcgmi --format geopm", "3 formats for 2 files"},
        {"import k.csv --format dcgmi", "no header line, expected '#Entity'"},
        {"import k.csv --offset 3", "--offset joins kernels and telemetry"},
        {"import r.csv r.csv", "a second file of telemetry"},
        {"import k.csv r.csv -o x.telemetry.csv", "names the telemetry"},
        {"import bad.csv -o x.csv", "bad.csv:3:5: Duration is"},
        {"import k.csv flat.csv -o x.csv", "--offset S"},
        {"show", "expected FILE"},
        {"plot trace k.csv -o k.jpg", "unknown picture format"},
    };
    fl_temp_text("bad.csv", KERNEL_HEAD "1,2,1,1,1,1,1,1,X (0),1,7,f\n100,x,1,1,1,1,1,1,X (0),1,7,f\n");
    char flat[4096] = "timestamp, power.draw [W]\n";
    for (int i = 0; i < 40; i++)
        snprintf(flat + strlen(flat), sizeof flat - strlen(flat), "2024/01/01 00:00:%02d.000, 60.00 W\n", i);
    fl_temp_text("flat.csv", flat);
    for (size_t i = 0; i < sizeof CASE / sizeof *CASE; i++)
        FL_CHECK(foldline("%s", CASE[i].arguments) == 2 && strstr(out, CASE[i].part), "%s: %s", CASE[i].arguments, out);
    FL_CHECK(!exists("x.csv") && !exists("x.telemetry.csv"), "something was written");
    fl_temp_remove();
}

static size_t count_of(const char *text, const char *what) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* A foreign trace given to run, compare or oracle directly: what its format does not carry is said on stderr, once for
 * all platforms and variants, and stands in the provenance; a canonical one has nothing to say. */
static void test_told(void) {
    static const char missing[] = "no clocks: kernels are taken at the platform's default";
    write_run();
    static const char *const commands[] = {"run k.csv --platform generic --assume balanced --policy nvboost",
                                           "run k.csv --platform generic --assume balanced --policy nvboost --json",
                                           "compare k.csv --platform generic --assume balanced --policy nvboost",
                                           "compare k.csv --platform generic --assume balanced"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        FL_CHECK(foldline("%s 2>err >seen && cat err", commands[i]) == 0 && count_of(out, missing) == 1, "%s: %s",
                 commands[i], out);
        FL_CHECK(foldline("%s 2>err >seen && cat err", commands[i]) == 0 && count_of(out, "note: k.csv: ") >= 2,
                 "%s: %s", commands[i], out);
    }
    FL_CHECK(foldline("%s 2>err >seen && cat seen", commands[1]) == 0 && count_of(out, missing) == 1 &&
                 strstr(out, "\"notes\""),
             "%s", out);
    fl_temp_text("two.json", "{\"foldline_experiment\": 1, \"about\": \"two\", \"traces\": [\"k.csv\"], \"assume\": "
                             "\"balanced\", \"platforms\": [\"generic\", "
                             "\"a100\"], \"policies\": [\"nvboost\"]}");
    FL_CHECK(foldline("compare two.json 2>err >seen && cat err") == 0 && count_of(out, missing) == 1,
             "two platforms: %s", out);
    FL_CHECK(
        foldline("import k.csv -o canonical.csv") == 0 &&
            foldline(
                "run canonical.csv --platform generic --assume balanced --policy nvboost 2>err >seen && cat err") ==
                0 &&
            !strstr(out, "canonical.csv: "),
        "%s", out);
}

FL_SUITE("import_cmd", {"join", test_join}, {"run", test_run}, {"told", test_told}, {"round trip", test_round_trip},
         {"refused", test_refused})
