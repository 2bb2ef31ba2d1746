/* The table of commands. To add one, write its file and add its row: X(NAME, SUMMARY) declares fl_cmd_NAME, which gets
 * the arguments after the command's name and returns the exit status (harness/base/cli/cli.h), and `foldline --help`
 * lists the rows in this order. */
#pragma once

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

/* The parts of `foldline synth` beside kernel traces: X(NAME, SUMMARY) declares fl_cmd_synth_NAME. */
#define FL_SYNTHS(X) X(requests, "requests to a server of language models, seeded")

#define FL_COMMAND_DECLARE(name, summary) int fl_cmd_##name(int argc, char **argv);
FL_COMMANDS(FL_COMMAND_DECLARE)
#define FL_SYNTH_DECLARE(name, summary) int fl_cmd_synth_##name(int argc, char **argv);
FL_SYNTHS(FL_SYNTH_DECLARE)

/* The table of the fits of `foldline fit`. To add one, write its file and add its row: X(NAME, SUMMARY) declares
 * fl_cmd_fit_NAME, which gets the arguments after NAME and returns the exit status (harness/base/cli/cli.h). */

#define FL_FITS(X)                                                                                                     \
    X(device, "what belongs to a chip, from measured sweeps of several workloads")                                     \
    X(workload, "a workload's other settings, from a few measured ones")                                               \
    X(probes, "which clocks of a workload to measure, so that the others can be told from them")                       \
    X(split, "how well both do: device from half of the workloads, scored on the other half")                          \
    X(logs, "a sweep, from logs of runs at fixed clocks")                                                              \
    X(sensor, "a power sensor's refresh, window and gain, from its log and an external meter")                         \
    X(pipeline, "a pipeline's times and powers, from executed clock plans")                                            \
    X(serving, "a server's batch steps: times and power, from layer tables, step tables or a measured run")            \
    X(trace, "kinds of kernels, from recordings of a program at several clocks")                                       \
    X(capping, "the model of the power capping policies, from sweeps")                                                 \
    X(odpp, "the two networks of the policy odpp, from simulated programs")                                            \
    X(sensitivity, "DynaCo's metrics against frequency sensitivity, from runs over states")                            \
    X(sweetspot, "SweetSpot's alpha, from a frequency sweep")                                                          \
    X(draws, "a distribution replay, from what was published of other policies")

#define FL_FIT_DECLARE(name, summary) int fl_cmd_fit_##name(int argc, char **argv);
FL_FITS(FL_FIT_DECLARE)
