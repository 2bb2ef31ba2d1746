#include "harness/report/plot.h"

#include "harness/base/place.h"
#include "harness/report/plot_table.h"
#include "traces/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const fl_plot_kinds[] = {"pareto",    "timeline", "regret",    "regret-curves", "sensitivity",
                                     "intervals", "ranks",    "residency", "trace",         NULL};

static bool quotable(const char *path) { /* inside gnuplot's single quotes nothing but the quote itself is special */
    return !strpbrk(path, "'\n\r");
}

/* The first line that gnuplot complained with, without the caret lines that point into the script. */
static void complaint(int fd, char *text, size_t size) {
    char all[4096];
    size_t n = 0;
    for (ssize_t got; n < sizeof all - 1 && (got = read(fd, all + n, sizeof all - 1 - n)) > 0;)
        n += (size_t)got;
    all[n] = 0;
    snprintf(text, size, "gnuplot failed");
    char *save = NULL;
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *colon = strstr(line, ": ");
        if (colon && (strstr(line, ".gp\"") || strstr(line, "line "))) {
            snprintf(text, size, "gnuplot: %s", colon + 2);
            return;
        }
    }
}

static fl_status run_gnuplot(const char *script, const char *variables, const char *input, fl_diag *d) {
    int out[2];
    if (pipe2(out, O_CLOEXEC))
        return fl_error(d, FL_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        dup2(out[1], 2);
        execlp("gnuplot", "gnuplot", "-e", variables, script, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    char text[512];
    complaint(out[0], text, sizeof text);
    close(out[0]);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return fl_error(d, FL_IO, "cannot run gnuplot: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return fl_error(d, FL_IO, "cannot find gnuplot, expected it on the path (Debian: gnuplot-nox)");
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        return fl_fail(d, FL_BAD_INPUT, input, 0, 0, "cannot be drawn: %s", text);
    return FL_OK;
}

static fl_status check(const char *kind, const char *input, const char *output, const char **format, fl_diag *d) {
    size_t kinds = 0;
    bool known = false;
    for (; fl_plot_kinds[kinds]; kinds++)
        known |= !strcmp(kind, fl_plot_kinds[kinds]);
    if (!known) {
        const char *near = fl_nearest(kind, fl_plot_kinds, kinds);
        if (near)
            return fl_refuse(d, "unknown plot '%s', did you mean '%s'?", kind, near);
        return fl_refuse(d, "unknown plot '%s', see foldline plot --help", kind);
    }
    const char *dot = strrchr(output, '.');
    *format = dot ? dot + 1 : "";
    if (strcmp(*format, "svg") && strcmp(*format, "png") && strcmp(*format, "pdf"))
        return fl_fail(d, FL_BAD_INPUT, output, 0, 0,
                       "unknown picture format, expected a name ending in .svg, .png or .pdf");
    if (!quotable(input) || !quotable(output))
        return fl_refuse(d, "a quote or a line break in a file name, expected neither");
    if (access(input, R_OK))
        return fl_fail(d, FL_BAD_INPUT, input, 0, 0, "cannot open: %s", strerror(errno));
    return FL_OK;
}

/* The table that a kind is drawn from, at path; the output's name shows which picture it belongs to. */
static fl_status make_table(const char *kind, const char *input, const char *path, const char *output, fl_diag *d) {
    FILE *f = fopen(path, "we");
    if (!f)
        return fl_fail(d, FL_IO, output, 0, 0, "cannot write: %s", strerror(errno));
    fl_status s = fl_plot_table(kind, input, f, d);
    const bool bad = ferror(f);
    if ((fclose(f) || bad) && !s)
        s = fl_fail(d, FL_IO, output, 0, 0, "cannot write: %s", strerror(errno));
    return s;
}

fl_status fl_plot(const char *kind, const char *input, const char *output, fl_diag *d) {
    const char *format = NULL;
    char folder[PATH_MAX];
    fl_place(FL_PLACE_PLOTS, folder, sizeof folder);
    char *script = NULL, *variables = NULL, *temporary = NULL, *table = NULL;
    fl_status s = check(kind, input, output, &format, d);
    if (s)
        return s;
    s = fl_plot_columns(kind, input, d);
    if (s)
        return s;
    const bool by_table = fl_plot_needs_table(kind);
    if (asprintf(&temporary, "%s.part", output) < 0 || asprintf(&table, "%s.part.csv", output) < 0 ||
        asprintf(&script, "%s/%s.gp", folder, kind) < 0 ||
        asprintf(&variables, "plots='%s'; input='%s'; output='%s'; terminal='%s'", folder, by_table ? table : input,
                 temporary, format) < 0) {
        free(temporary);
        free(table);
        free(script);
        return fl_no_memory(d, NULL);
    }
    int fd = open(temporary, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        s = fl_fail(d, FL_IO, output, 0, 0, "cannot write: %s", strerror(errno));
    else
        close(fd);
    if (!s && by_table)
        s = make_table(kind, input, table, output, d);
    if (!s)
        s = run_gnuplot(script, variables, input, d);
    if (!s && fl_memory_failed())
        s = fl_no_memory(d, output);
    if (!s && rename(temporary, output))
        s = fl_fail(d, FL_IO, output, 0, 0, "cannot write: %s", strerror(errno));
    if (s)
        unlink(temporary);
    if (by_table)
        unlink(table);
    free(script);
    free(variables);
    free(temporary);
    free(table);
    return s;
}
