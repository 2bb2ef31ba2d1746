/* The program: finds the command and calls it. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/work/work.h"
#include "harness/cmd/cmd.h"
#include "traces/io/io.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The status, unless what was printed did not arrive, or could not be made. */
static int written(int status) {
    fl_ticker_stop();
    if (fl_memory_failed() && (status == FL_EXIT_OK || status == FL_EXIT_GATE)) {
        fprintf(stderr, "foldline: out of memory\n");
        return FL_EXIT_SYSTEM;
    }
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    fprintf(stderr, "foldline: cannot write to standard output\n");
    return FL_EXIT_SYSTEM;
}

/* Of commands that wait for a machine, or for another program, nobody knows how far they are; and those have the
 * terminal to themselves. */
static bool shows_progress(const char *command) {
    static const char *const without[] = {"live", "record", "doctor", "restore", "emulate", "help"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (!strcmp(command, without[i]))
            return false;
    return true;
}

/* The parent process may have closed 0, 1 or 2. The next file that we open, a lock for one, would get that number, and
 * what is meant for a stream would go into it. */
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
    fl_commands_open();
    if (argc < 2) {
        fl_usage(stderr);
        return FL_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        fl_usage(stdout);
        return written(FL_EXIT_OK);
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        fl_version_print(stdout);
        return written(FL_EXIT_OK);
    }
    int status = FL_EXIT_OK;
    if (shows_progress(argv[1]))
        fl_ticker_start(argv[1]);
    if (fl_command_run(argc - 1, argv + 1, &status))
        return written(status);
    fl_diag d = {0};
    (void)fl_command_unknown(argv[1], &d);
    return fl_command_fail(NULL, &d);
}
