#include "harness/commands.h"
#include "harness/cmd_emulate.h"
#include "harness/live/commands.h"

#include <string.h>

typedef struct fl_command {
    const char *name, *summary;
    fl_command_function run;
} fl_command;

static const fl_command commands[] = {
    {"run", "one policy over one workload", fl_cmd_run},
    {"compare", "policies over workloads, against the oracles", fl_cmd_compare},
    {"sweep", "a grid of runs, durable, sharded", fl_cmd_sweep},
    {"merge", "shards of a grid into one result", fl_cmd_merge},
    {"search", "the best parameters, without the whole grid", fl_cmd_search},
    {"regress", "a recorded experiment run again, with gates", fl_cmd_regress},
    {"oracle", "best static clock, best clock per kernel, clairvoyant schedule", fl_cmd_oracle},
    {"fit", "models and parameters from measurements", fl_cmd_fit},
    {"replay", "a recorded policy's decisions, checked against the policy here", fl_cmd_replay},
    {"synth", "a synthetic kernel trace, seeded", fl_cmd_synth},
    {"import", "files of profilers and sensor tools, made canonical", fl_cmd_import},
    {"trace", "what is in a trace", fl_cmd_trace},
    {"policies", "the policies, their parameters and sources", fl_cmd_policies},
    {"platforms", "the platforms, their values and sources", fl_cmd_platforms},
    {"plot", "a picture of a result", fl_cmd_plot},
    {"live", "a policy on this machine's GPUs: shadow, or --control", fl_cmd_live},
    {"record", "telemetry of this machine's GPUs, of a program's life", fl_cmd_record},
    {"doctor", "what may be read and set on each GPU, and why not", fl_cmd_doctor},
    {"restore", "clocks and limits as they were before", fl_cmd_restore},
    {"emulate", "a program that uses NVML, on a simulated GPU", fl_cmd_emulate},
    {"report", "one page of results, to read and to print", fl_cmd_report},
    {"bench", "the simulator's own speed, as ratios within one run", fl_cmd_bench},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void usage(FILE *out) {
    fprintf(out,
            "foldline replays recorded GPU kernel and power traces under clock policies: energy, makespan, regret.\n\n"
            "usage: foldline COMMAND [options]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\nfoldline COMMAND --help says everything about one of them.\n"
                 "Exit status: 0 done; 1 a gate did not hold; 2 bad usage or input; 3 hardware or system refused.\n");
}

/* The status, unless what was printed did not arrive. */
static int written(int status) {
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    fprintf(stderr, "foldline: cannot write to standard output\n");
    return FL_EXIT_SYSTEM;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        usage(stderr);
        return FL_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return written(FL_EXIT_OK);
    }
    if (!strcmp(argv[1], "--version")) {
        puts("foldline " FL_VERSION);
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
        fl_fail(&d, FL_BAD_INPUT, NULL, 0, 0, "unknown command '%s', did you mean '%s'?", argv[1], near);
    else
        fl_fail(&d, FL_BAD_INPUT, NULL, 0, 0, "unknown command '%s', see foldline --help", argv[1]);
    return fl_report(NULL, &d);
}
