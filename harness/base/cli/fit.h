/* The table of the fits of `foldline fit`. To add one, write its file and add its row: X(NAME, SUMMARY) declares
 * fl_cmd_fit_NAME, which gets the arguments after NAME and returns the exit status (harness/base/cli/command.h). */
#pragma once

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
