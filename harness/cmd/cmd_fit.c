#include "harness/base/command.h"
#include "harness/cmd/commands.h"
#include "harness/fit/fit.h"

#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} what[] = {
    {"device", fl_fit_device, "what belongs to a chip, from measured sweeps of several workloads"},
    {"workload", fl_fit_workload_command, "a workload's other settings, from a few measured ones"},
    {"split", fl_fit_split, "how well both do: device from half of the workloads, scored on the other half"},
    {"logs", fl_fit_logs, "a sweep, from logs of runs at fixed clocks"},
    {"trace", fl_fit_trace, "kinds of kernels, from recordings of a program at several clocks"},
    {"capping", fl_fit_capping, "the model of the power capping policies, from sweeps"},
    {"sensitivity", fl_fit_sensitivity, "DynaCo's metrics against frequency sensitivity, from runs over states"},
    {"sweetspot", fl_fit_sweetspot, "SweetSpot's alpha, from a frequency sweep"}};
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
        printf("foldline fit WHAT ...\n\nFits models and parameters of policies to measurements.\n\n");
        for (size_t i = 0; i < COUNT; i++)
            printf("  %-12s %s\n", what[i].name, what[i].help);
        printf("\nfoldline fit WHAT --help says more.\n");
        return FL_EXIT_OK;
    }
    const char *near = name ? fl_nearest(name, names, COUNT) : NULL;
    if (near)
        fl_refuse(&d, "'%s' is nothing to fit, did you mean '%s'?", name, near);
    else
        fl_refuse(&d, "%s%s%s, see foldline fit --help", name ? "'" : "nothing given", name ? name : "",
                  name ? "' is nothing to fit" : " to fit");
    return fl_command_fail("fit", &d);
}
