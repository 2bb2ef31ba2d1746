#include "harness/base/cli/command.h"
#include "harness/base/cli/commands.h"
#include "harness/base/cli/fit.h"

#include <string.h>

#define LINE(name, summary) "  " #name "  " summary "\n"

static const fl_command_help help = {"fit", "WHAT ...", "Fits models and parameters of policies to measurements.",
                                     "WHAT is one of these; foldline fit WHAT --help says more.\n\n" FL_FITS(LINE)};

#define ROW(name, summary) {#name, summary, fl_cmd_fit_##name},

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} what[] = {FL_FITS(ROW)};
enum { COUNT = sizeof what / sizeof *what };

int fl_cmd_fit(int argc, char **argv) {
    fl_diag d = {0};
    const char *name = argc > 0 ? argv[0] : NULL;
    const char *names[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        names[i] = what[i].name;
        if (name && !strcmp(name, what[i].name))
            return what[i].run(argc - 1, argv + 1);
    }
    if (name && (!strcmp(name, "--help") || !strcmp(name, "-h"))) {
        int status = FL_EXIT_OK;
        fl_texts rest = {0};
        (void)fl_command_begin(1, argv, &help, NULL, 0, &rest, &status);
        return status;
    }
    const char *near = name ? fl_nearest(name, names, COUNT) : NULL;
    if (near)
        fl_refuse(&d, "foldline fit has no '%s', did you mean '%s'?", name, near);
    else if (name)
        fl_refuse(&d, "foldline fit has no '%s', see foldline fit --help", name);
    else
        fl_refuse(&d, "nothing to fit, see foldline fit --help");
    return fl_command_fail("fit", &d);
}
