/* Formats of other tools x commands: which pairs give an answer. import and show always do. advise does where there is
 * power (and, at a single setting, a platform), compare for requests and for settings with clocks. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/import/import.h"
#include "traces/open/open.h"

#include <sys/wait.h>

#define SEEDS FL_ROOT "/tests/fuzz/seeds/"
#define SERVER FL_ROOT "/traces/samples/serving/rtx4090-llama3.1-8b.serving.csv"

/* The file is copied to `as`, where a log has to have its clock in its name. advise, compare: what the command needs
 * besides the file; NULL: it refuses. */
typedef struct pair {
    const char *format, *file, *as, *advise, *compare;
} pair;

#define BOARD "--platform a100"
#define REQUESTS SERVER " --kv-blocks 4000 --platform a100"
#define TARGET REQUESTS " --ttft 30s"

static const pair PAIR[] = {
    {"foldline-kernels", "k.csv", NULL, NULL, NULL}, /* needs --platform with its clock, and --assume */
    {"foldline-telemetry", "t.csv", NULL, NULL, NULL},
    {"sweep", "s.csv", NULL, NULL, NULL},
    {"foldline-requests", "classes.csv", NULL, NULL, REQUESTS},
    {"nsys-sqlite", "host.sqlite", NULL, BOARD, BOARD " --assume balanced"},
    {"kineto", "new.json", NULL, BOARD, BOARD " --assume balanced"},
    {"nsys-csv", "ns.csv", NULL, BOARD, BOARD " --assume balanced"},
    {"rocprofv3", "v3.csv", NULL, BOARD, BOARD " --assume balanced"},
    {"nvidia-smi", "good.csv", NULL, BOARD, NULL},
    {"nvidia-smi-dmon", "good.txt", NULL, BOARD " --device 0", NULL},
    {"dcgm-exporter", "good.txt", NULL, BOARD " --device 0", NULL},
    {"prometheus", "good.json", NULL, BOARD " --device 0", NULL},
    {"zeus-power", "good.csv", "zeus@1410.csv", BOARD " --device 0", NULL},
    {"amd-smi", "run@1700.csv", NULL, SEEDS "amd-smi/run@1200.csv --bound 30%", NULL},
    {"rocm-smi", "run@1700.csv", NULL, SEEDS "rocm-smi/run@1200.csv --bound 30%", NULL},
    {"rocpd", "good.db", NULL, BOARD, BOARD " --assume balanced"},
    {"nsys-exec", "good.csv", NULL, BOARD, BOARD " --assume balanced"},
    {"mooncake", "good.jsonl", NULL, TARGET, REQUESTS},
    {"burstgpt", "good.csv", NULL, TARGET, REQUESTS},
    {"vllm-bench", "good.json", NULL, TARGET, REQUESTS},
    {"kernel-tuner", "good.json", NULL, "", BOARD},
    {"zeus-windows", "good.csv", NULL, "", NULL}, /* settings without a clock */
    {"dcgmi", "good.txt", NULL, BOARD, NULL},
    {"geopm", "trace.txt", NULL, NULL, NULL}, /* two rows are no run */
    {"geepafs", "log.txt", NULL, NULL, NULL},
    {"gpu-dvfs", "two.csv", NULL, NULL, NULL}, /* clocks of no platform that is shipped */
    {"nv-dvfs", "one.csv", NULL, NULL, NULL},
    {"zeus", "two.csv", NULL, "", NULL}, /* settings without a clock */
    {"azure-llm", "2024.csv", NULL, TARGET, REQUESTS},
    {"gpu-dvfs-wide", "two_performance.csv", NULL, "", "--platform generic"},
};

static char out[1 << 16];

static int foldline(const char *command, const char *file, const char *more) {
    char line[4096];
    snprintf(line, sizeof line, "cd '%s' && '%s' %s %s %s 2>&1", fl_temp_folder, FL_PROGRAM, command, more, file);
    FILE *f = popen(line, "r");
    const size_t n = f ? fread(out, 1, sizeof out - 1, f) : 0;
    out[n] = '\0';
    const int status = f ? pclose(f) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_pairs(void) {
    for (size_t i = 0; i < sizeof PAIR / sizeof *PAIR; i++) {
        const pair *p = &PAIR[i];
        const fl_reader *reader = NULL; /* a build may be without its library (FL_HAS_SQLITE, FL_HAS_YAJL) */
        fl_diag d = {0};
        if (!fl_reader_find("x", p->format, &reader, &d) && fl_reader_missing(reader))
            continue;
        char path[700];
        size_t size = 0;
        snprintf(path, sizeof path, SEEDS "%s/%s", p->format, p->file);
        if (p->as) {
            char *bytes = fl_temp_slurp(path, &size);
            FL_CHECK(bytes != NULL, "%s", path);
            snprintf(path, sizeof path, "%s", fl_temp_write(p->as, bytes ? bytes : "", size));
            free(bytes);
        }
        fl_temp_path("x");
        FL_CHECK(foldline("import", path, "") == 0, "%s: import: %s", p->format, out);
        FL_CHECK(foldline("import --json", path, "") == 0 && out[0] == '{', "%s: import --json: %s", p->format, out);
        FL_CHECK(foldline("show", path, "") == 0, "%s: show: %s", p->format, out);
        FL_CHECK(foldline("show --json", path, "") == 0, "%s: show --json: %s", p->format, out);
        const char *const command[] = {"advise", "compare"}, *const more[] = {p->advise, p->compare};
        for (size_t k = 0; k < 2; k++) {
            const int status = foldline(command[k], path, more[k] ? more[k] : "");
            FL_CHECK(status == (more[k] ? 0 : 2), "%s: %s: status %d: %s", p->format, command[k], status, out);
        }
    }
}

static void test_whole(void) {
    for (size_t r = 0; r < fl_readers_count; r++) {
        size_t rows = 0;
        for (size_t i = 0; i < sizeof PAIR / sizeof *PAIR; i++)
            rows += !strcmp(PAIR[i].format, fl_readers[r]->name);
        FL_CHECK(rows > 0, "%s has no row in the table of formats and commands", fl_readers[r]->name);
        FL_CHECK(fl_readers[r]->tool && *fl_readers[r]->tool && fl_readers[r]->gives, "%s says what it gives",
                 fl_readers[r]->name);
    }
    FL_CHECK(foldline("import --list", "", "") == 0 && strstr(out, "nvidia-smi-dmon"), "%s", out);
}

FL_SUITE("format_commands", {"pairs", test_pairs}, {"whole", test_whole})
