#include "harness/base/cli/command.h"
#include "harness/base/cli/commands.h"
#include "harness/report/picture/plot.h"

static const fl_command_help help = {
    "plot", "KIND INPUT.csv... -o OUTPUT.svg|png|pdf", "Draws a result with gnuplot.",
    "KIND, from the CSV of compare, sweep or merge: pareto (energy against slowdown, or against latency where requests "
    "arrive: bound, Pareto front, hollow who breaks the bound), workloads (energy against slowdown of every run), "
    "regret (bars), intervals (saving of each policy), ranks (mean ranks over workloads), with 95 % intervals where "
    "there are several runs, sensitivity (saving and slowdown over each parameter whose values differ: policies such "
    "as assure:theta=0.9). From FILE.regret.csv: regret-curves. From the --timeline of run: timeline (clock, and power "
    "under its limit), residency (time at each clock). From trace stats -o: trace (activity, power and clock). From "
    "plan --csv: frontier (planned clocks, their bound, executed plans). From run --instructions: gantt (what each "
    "rank did, by clock, waiting, and power; two plans stand above each other). Of servers, from the CSV of compare: "
    "serving (J per token against the 99th percentiles of TTFT and TBT), serving-load (saving against requests per "
    "second that arrive, against both baselines); from the --served of run: latencies (their distributions). A "
    "timeline of servers shows their queues too. Platform and bound come from the record beside the result."};

int fl_cmd_plot(int argc, char **argv) {
    fl_texts rest = {0};
    const char *output = NULL;
    const fl_option option[] = {{"o", "FILE", FL_OPTION_OUTPUT, &output, 0, 0,
                                 "what to write; its ending says the format (also .svg.gz); - is SVG"}};
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, 1, &rest, &status))
        return status;
    fl_diag d = {0};
    const char *const *const inputs = (const char *const *)rest.item + 1;
    fl_status s = rest.count >= 2 && output ? fl_plot_all(rest.item[0], inputs, rest.count - 1, output, &d)
                                            : fl_refuse(&d, "expected KIND INPUT.csv -o OUTPUT, see --help");
    return fl_command_close("plot", s, &d, option, 1, &rest);
}
