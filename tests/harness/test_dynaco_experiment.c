/* The replay of DynaCo as a user runs it: its gates, and that a line of an algorithm which nothing takes is a failure.
 */
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *run_program(const char *arguments, int *status) {
    char command[1024], *text = calloc(1 << 19, 1);
    snprintf(command, sizeof command, "'%s' compare %s 2>&1", FL_PROGRAM, arguments);
    FILE *p = popen(command, "r");
    if (!p || !text)
        exit(1);
    (void)!fread(text, 1, (1 << 19) - 1, p);
    const int ended = pclose(p);
    *status = ended >= 0 ? ended >> 8 : -1;
    return text;
}

/* The line that begins with `name` ends in `end`. */
static bool line_ends(const char *text, const char *name, const char *end) {
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        const char *stop = strchr(at, '\n');
        if ((at == text || at[-1] == '\n') && stop && (size_t)(stop - at) > strlen(end) &&
            !strncmp(stop - strlen(end), end, strlen(end)))
            return true;
    }
    return false;
}

static const char *const lines[] = {
    "Algorithm 1, lines 4 and 5",    "Algorithm 1, lines 11 and 12", "Algorithm 1, lines 15 and 16",
    "Algorithm 1, lines 18 and 19",  "Algorithm 1, lines 24 and 26", "Algorithm 1, lines 24 and 29",
    "Algorithm 1, lines 24 and 31",  "Algorithm 2, lines 4 and 5",   "Algorithm 2, lines 11 and 12",
    "Algorithm 2, lines 15 and 16",  "Algorithm 2, lines 18 and 19", "Algorithm 2, line 25",
    "Algorithm 2, line 28",          "Algorithm 2, line 30",         "Algorithm 2, line 36",
    "Algorithm 2, line 35, not met", "Algorithm 2, line 40",         "Algorithm 2, line 39, not met"};

static void test_gates(void) {
    FL_NIGHTLY_ONLY();
    int status;
    char *text = run_program(FL_ROOT "/harness/experiments/dynaco.json", &status);
    const char *const stated[] = {"miniMD: ED2 gain of multilevelTh, above ideal static's",
                                  "Lulesh, multilevelTh: CPU at P3 and P4", "S3D: ED2 gain of multilevelTh  "};
    FL_CHECK(status == 0 && strstr(text, "above 0: holds") && !strstr(text, ": FAILS\n"), "%d: %s", status,
             strstr(text, "\nquantity") ? strstr(text, "\nquantity") : text);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        FL_CHECK(line_ends(text, lines[i], "above 0: holds"), "%s: not taken, or not told", lines[i]);
    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++)
        FL_CHECK(line_ends(text, stated[i], "FAILED, as stated"), "%s: not told as a failure", stated[i]);
    FL_CHECK(strstr(text, "steps of 1levelTh (Algorithm 1), by line") &&
                 strstr(text, "\nline 36: the walk goes deeper"),
             "no counts by application");
    free(text);
}

/* On a bus that ends below the threshold lines 4 and 5 are never taken: it fails for them. */
static void test_a_line_never_taken(void) {
    int status;
    char arguments[400];
    snprintf(arguments, sizeof arguments, FL_ROOT "/harness/experiments/dynaco.json --bus-share 0.749%s",
             fl_nightly() ? "" : " --seeds 1");
    char *text = run_program(arguments, &status);
    FL_CHECK(status == 1 && line_ends(text, lines[0], "above 0: FAILS") &&
                 line_ends(text, lines[7], "above 0: FAILS") && line_ends(text, lines[1], "above 0: holds"),
             "%d: %s", status, strstr(text, "\nquantity") ? strstr(text, "\nquantity") : text);
    free(text);
}

FL_SUITE("dynaco experiment", {"gates", test_gates}, {"a line never taken", test_a_line_never_taken})
