/* The replay of DynaCo as a user runs it: its verdicts, and the lines of the algorithms that the runs take. */
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

/* The sum of the numbers in the table's row that begins with `name`; -1 where the table has no such row. */
static double row_sum(const char *text, const char *table, const char *name) {
    const char *at = strstr(text, table), *stop = at ? strstr(at, "\n\n") : NULL;
    for (at = at ? strchr(at, '\n') : NULL; at && at < stop; at = strchr(at + 1, '\n')) {
        if (strncmp(at + 1, name, strlen(name)) != 0)
            continue;
        double sum = 0, value;
        int used;
        for (at += 1 + strlen(name); sscanf(at, "%*[ ]%lf%n", &value, &used) == 1 && *at != '\n'; at += used)
            sum += value;
        return sum;
    }
    return -1;
}

static const char *const tables[] = {"steps of 1levelTh (Algorithm 1), by line",
                                     "steps of multilevelTh (Algorithms 1 and 2), by line"};
static const struct {
    int table;
    const char *name;
} lines[] = {{0, "lines 4 and 5: memory is the bottleneck"},
             {0, "lines 11 and 12: both sensitive"},
             {0, "lines 15 and 16: CPU sensitive, GPU medium"},
             {0, "lines 18 and 19: CPU sensitive, GPU low"},
             {0, "lines 24 and 26: GPU sensitive alone"},
             {0, "lines 24 and 29: GPU medium alone"},
             {0, "lines 24 and 31: neither sensitive"},
             {1, "lines 4 and 5: memory is the bottleneck"},
             {1, "lines 11 and 12: both sensitive"},
             {1, "lines 15 and 16: CPU sensitive, GPU medium"},
             {1, "lines 18 and 19: CPU sensitive, GPU low"},
             {1, "line 25: GPU sensitive alone"},
             {1, "line 28: GPU medium alone"},
             {1, "line 30: neither sensitive"},
             {1, "line 36: the walk goes deeper"},
             {1, "line 35, not met: it is at Pmin"},
             {1, "line 40: the walk goes back"},
             {1, "line 39, not met: it is at P2"}};

/* Each verdict is as recorded, and some application takes each line of both algorithms. */
static void test_experiment(void) {
    FL_NIGHTLY_ONLY();
    int status;
    char *text = run_program(FL_ROOT "/harness/experiments/dynaco.json --all", &status);
    FL_CHECK(status == 0 && strstr(text, "reproduced") && !strstr(text, "BUT RECORDED"), "%d: %s", status, text);
    free(text);
    /* On a bus that passes the threshold. At 75 % of the peak it ends there. */
    text = run_program(FL_ROOT "/harness/experiments/dynaco.json --all --bus-share 0.979", &status);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        FL_CHECK(row_sum(text, tables[lines[i].table], lines[i].name) > 0, "%s: not taken, or not told", lines[i].name);
    free(text);
}

/* On a bus that ends below the threshold no application takes lines 4 and 5. */
static void test_a_line_never_taken(void) {
    int status;
    char arguments[400];
    snprintf(arguments, sizeof arguments, FL_ROOT "/harness/experiments/dynaco.json --all --bus-share 0.749%s",
             fl_nightly() ? "" : " --seeds 1");
    char *text = run_program(arguments, &status);
    FL_CHECK(row_sum(text, tables[0], lines[0].name) == 0 && row_sum(text, tables[1], lines[7].name) == 0 &&
                 row_sum(text, tables[0], lines[1].name) > 0,
             "%d: %s", status, text);
    free(text);
}

FL_SUITE("dynaco experiment", {"experiment", test_experiment}, {"a line never taken", test_a_line_never_taken})
