/* The simulator's own speed: a bare loop that is its ceiling, and rows that are timed beside it. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/inside.h"
#include "harness/base/json/json.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include "tests/bench/all.h"
#include "tests/bench/folder.h"
#include "tests/bench/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "bench", "[--only REGEX] [--long] [--json] [--against FILE]",
    "Measures the simulator, row by row, each beside its goal. The ceiling is a bare loop over records of 24 bytes, "
    "{double length; float core, memory, activity; uint32 class}, that sums time and energy under the clock of the "
    "moment and is cut exactly at each policy step (10 ms); it is compiled with -O3, for AVX2 and FMA too, and the "
    "faster variant counts.",
    "Machines are noisy: a row is measured in rounds, in turn with the bare loop. 'value' is the median of the rounds, "
    "'noise' half of their range. 'of goal' below 1 says how near it comes. One thread and whole commands are timed in "
    "processor time, two threads by the clock on the wall.\n\n"
    "--against FILE reads what an earlier run printed with --json. Ratios and memory are compared as they are, times "
    "and rates by their best round and what the bare loop did in its best, so that the two machines may differ a "
    "little. A row has moved where it differs by more than the noise of both runs together, and by 5 % at least (50 % "
    "where its rounds last less than 10 ms). Exit status 1: a row moved for the worse. Give both runs the same "
    "options, and as many rounds as time allows."};

static fl_status tell(const fl_bench *b, bool json, const cJSON *earlier, const char *against, size_t *worse,
                      fl_diag *d) {
    size_t count = 0;
    fl_bench_figure *f = fl_bench_figures(b, &count);
    fl_status s = f ? FL_OK : fl_no_memory(d, NULL);
    if (!s && json) {
        cJSON *all = fl_bench_json(f, count);
        fl_json_tell(all);
    } else if (!s)
        fl_bench_print(f, count, stdout);
    if (!s && against)
        s = fl_bench_against(f, count, earlier, against, worse, json ? stderr : stdout, d);
    free(f);
    return s;
}

/* Names the groups of rows: what stands before the point. */
static fl_status refuse_name(const char *only, fl_diag *d) {
    char groups[256] = "", last[32] = "";
    for (const fl_bench_row *row = fl_bench_rows; *row->key; row++) {
        const size_t used = strlen(groups), size = strcspn(row->key, ".");
        if (strlen(last) == size && !strncmp(row->key, last, size))
            continue;
        snprintf(last, sizeof last, "%.*s", (int)size, row->key);
        snprintf(groups + used, sizeof groups - used, "%s%s%s", used ? ", " : "", last, row->key[size] ? ".*" : "");
    }
    return fl_refuse(d, "--only '%s' is the name of no row, expected part of one: %s (all: without --only)", only,
                     groups);
}

static fl_status measure(fl_bench *b, const char *only, regex_t *pattern, fl_diag *d) {
    b->program = FL_PROGRAM;
    b->only = only ? pattern : NULL;
    bool any = false, measured = false;
    for (const fl_bench_row *row = fl_bench_rows; *row->key; row++)
        any |= fl_bench_wants(b, row->key);
    if (!any)
        return refuse_name(only, d);
    fl_status s = fl_bench_folder_open(&b->folder, d);
    if (s)
        return s;
    s = fl_bench_run(b, d);
    fl_bench_folder_close(); /* with what a row that failed has left */
    for (size_t i = 0; !s && *fl_bench_rows[i].key; i++)
        measured |= fl_bench_wants(b, fl_bench_rows[i].key) && b->result[i].count;
    return s || measured ? s : fl_refuse(d, "--only '%s' names only rows that are measured with --long", only);
}

static int run(int argc, char **argv) {
    fl_bench b = {.repeat = 5};
    int64_t kernels = 10000000;
    bool json = false, matcher = false;
    const char *only = NULL, *against = NULL;
    const fl_option option[] = {
        {"kernels", "N", FL_OPTION_INT, &kernels, 1000, 1e9, "kernels of the trace on one stream (10000000)"},
        {"repeat", "N", FL_OPTION_INT, &b.repeat, 1, 1000, "rounds, of which the median counts (5)"},
        {"only", "REGEX", FL_OPTION_TEXT, &only, 0, 0, "rows whose name matches, 'one[.]' or 'load|command.run'"},
        {"long", NULL, FL_OPTION_FLAG, &b.thorough, 0, 0,
         "larger files, 100 M kernels (7 GB), and compare of 74 applications too: half an hour"},
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints the result as JSON"},
        {"against", "FILE", FL_OPTION_TEXT, &against, 0, 0, "says what moved since that run; a file of --json"},
    };
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    regex_t pattern;
    size_t worse = 0;
    cJSON *earlier = NULL;
    b.kernels = (uint64_t)kernels;
    fl_status s = rest.count ? fl_refuse(&d, "unexpected '%s'", rest.item[0]) : FL_OK;
    if (!s && only && !(matcher = regcomp(&pattern, only, REG_EXTENDED | REG_NOSUB) == 0))
        s = fl_refuse(&d, "--only '%s' is no regular expression", only);
    if (!s && against)
        s = fl_bench_earlier(against, &earlier, &d);
    if (!s)
        s = measure(&b, only, &pattern, &d);
    if (!s)
        s = tell(&b, json, earlier, against, &worse, &d);
    if (s)
        status = fl_command_fail(help.name, &d);
    else if (worse)
        status = FL_EXIT_GATE;
    if (matcher)
        regfree(&pattern);
    cJSON_Delete(earlier);
    fl_bench_free(&b);
    fl_texts_free(&rest);
    return status;
}

int main(int argc, char **argv) {
    fl_args_prefix = "tests/";
    const int status = run(argc - 1, argv + 1);
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    fprintf(stderr, "tests/bench: cannot write to standard output\n");
    return FL_EXIT_SYSTEM;
}
