#include "harness/base/command.h"
#include "harness/base/memory.h"
#include "harness/base/version.h"
#include "harness/cmd/commands.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define ROW(name, summary) {#name, summary, fl_cmd_##name},

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {FL_COMMANDS(ROW)};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void usage(FILE *out) {
    fprintf(out,
            "foldline replays recorded GPU kernel and power traces under clock policies: energy, makespan, regret.\n\n"
            "usage: foldline COMMAND [options]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\nfoldline COMMAND --help says everything about one of them; foldline --version (-V) which one this is.\n"
                 "Exit status: 0 done; 1 a gate did not hold; 2 bad usage or input; 3 hardware or system refused.\n");
}

/* The status, unless what was printed did not arrive, or could not be made. */
static int written(int status) {
    if (fl_memory_failed() && (status == FL_EXIT_OK || status == FL_EXIT_GATE)) {
        fprintf(stderr, "foldline: out of memory\n");
        return FL_EXIT_SYSTEM;
    }
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    fprintf(stderr, "foldline: cannot write to standard output\n");
    return FL_EXIT_SYSTEM;
}

/* Who started us may have closed 0, 1 or 2. The next file that we open, a lock for one, would get that number, and what
 * is meant for a stream would go into it. */
static bool open_streams(void) {
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO) {
    }
    return fd >= 0 && !close(fd);
}

int main(int argc, char **argv) {
    if (!open_streams())
        return FL_EXIT_SYSTEM;
    fl_memory_watch();
    if (argc < 2) {
        usage(stderr);
        return FL_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return written(FL_EXIT_OK);
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        fl_version_print(stdout);
        return written(FL_EXIT_OK);
    }
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
        if (!strcmp(argv[1], names[i]))
            return written(commands[i].run(argc - 2, argv + 2));
    }
    fl_diag d = {0};
    const char *near = fl_nearest(argv[1], names, COMMANDS);
    if (near)
        fl_refuse(&d, "unknown command '%s', did you mean '%s'?", argv[1], near);
    else
        fl_refuse(&d, "unknown command '%s', see foldline --help", argv[1]);
    return fl_command_fail(NULL, &d);
}
