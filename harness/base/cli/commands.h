/* The table of commands. To add one, write its file and add its row: X(NAME, SUMMARY) declares fl_cmd_NAME, which gets
 * the arguments after the command's name and returns the exit status (harness/base/cli/command.h), and `foldline --help`
 * lists the rows in this order. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>
#include <stdio.h>

#define FL_COMMANDS(X)                                                                                                 \
    X(run, "one policy over one workload")                                                                             \
    X(compare, "policies over workloads, against the oracles")                                                         \
    X(sweep, "a grid of runs, durable, sharded")                                                                       \
    X(merge, "shards of a grid into one result")                                                                       \
    X(search, "the best parameters, without the whole grid")                                                           \
    X(regress, "a recorded experiment run again, with gates")                                                          \
    X(oracle, "best static clock, best clock per kernel, clairvoyant schedule")                                        \
    X(plan, "clocks for a pipeline of training: the least energy within a time")                                       \
    X(advise, "one clock for what was measured, and how sure that is")                                                 \
    X(fit, "models and parameters from measurements")                                                                  \
    X(replay, "a recorded policy's decisions, checked against the policy here")                                        \
    X(synth, "a synthetic kernel trace, or requests, seeded")                                                          \
    X(import, "files of profilers and sensor tools, made canonical")                                                   \
    X(trace, "what is in a trace")                                                                                     \
    X(policies, "the policies, their parameters and sources")                                                          \
    X(platforms, "the platforms, their values and sources")                                                            \
    X(show, "a result as a table")                                                                                     \
    X(plot, "a picture of a result")                                                                                   \
    X(live, "a policy on this machine's GPUs: shadow, or --control")                                                   \
    X(record, "telemetry of this machine's GPUs, of a program's life")                                                 \
    X(doctor, "what may be read and set on each GPU, and why not")                                                     \
    X(restore, "clocks and limits as they were before")                                                                \
    X(emulate, "a program that uses NVML, on a simulated GPU")                                                         \
    X(report, "one page of results, to read and to print")                                                             \
    X(help, "a command, or a topic: experiments, traces, platforms, policies")

/* Parts of synth: fl_cmd_synth_NAME, as the parts of fit (harness/base/cli/fit.h). */
#define FL_SYNTHS(X) X(requests, "requests to a server of language models, seeded")

#define FL_COMMAND_DECLARE(name, summary) int fl_cmd_##name(int argc, char **argv);
FL_COMMANDS(FL_COMMAND_DECLARE)
#define FL_SYNTH_DECLARE(name, summary) int fl_cmd_synth_##name(int argc, char **argv);
FL_SYNTHS(FL_SYNTH_DECLARE)

/* The list of commands (harness/cmd/help.c). */
void fl_usage(FILE *out);
#define FL_ABOUT "foldline replays recorded GPU kernel and power traces under clock policies: energy, makespan, regret."
#define FL_USAGE "foldline COMMAND [options]"
#define FL_MORE_HELP                                                                                                   \
    "foldline COMMAND --help says everything about one of them, foldline help experiments everything about the keys "  \
    "of an experiment; foldline --version (-V) which one this is."
/* Runs the command argv[0] with what follows; false where there is none of that name. */
bool fl_command_run(int argc, char **argv, int *status);
/* FL_BAD_INPUT: "unknown WHAT 'NAME'", with the nearest command, or topic of help. */
fl_status fl_command_unknown(const char *what, const char *name, bool topics, fl_diag *d);
