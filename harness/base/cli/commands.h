/* The table of commands. To add one, write its file and add its row: X(NAME, SUMMARY, WORDS) declares fl_cmd_NAME,
 * which gets the arguments after the command's name and returns the exit status (harness/base/cli/cli.h), and `foldline
 * --help` lists the rows in this order. WORDS: what a user may type instead; the message about an unknown command then
 * offers this one. */
#pragma once

#define FL_COMMANDS(X)                                                                                                 \
    X(run, "one policy over one workload", "simulate sim play")                                                        \
    X(compare, "policies over workloads, or what there is to gain at all", "oracle baselines benchmark bench")         \
    X(grid, "policies x parameters x workloads x seeds, durable, sharded", "sweep merge resume continue")              \
    X(search, "the best parameters, without the whole grid", "optimize optimise explore")                              \
    X(regress, "a result against a recorded or another one, with gates", "gate ci test baseline diff")                 \
    X(plan, "clocks for a pipeline of training: the least energy within a time", "schedule")                           \
    X(tune, "your command at a few clocks, and the one that saves most", "measure")                                    \
    X(advise, "one clock for what was measured, and how sure that is", "recommend best suggest choose")                \
    X(fit, "models and parameters from measurements", "calibrate train learn")                                         \
    X(verify, "a log of decisions, checked against the policy here", "replay check validate audit")                    \
    X(synth, "a synthetic kernel trace, or requests, seeded", "generate")                                              \
    X(import, "files of profilers and sensor tools, made canonical", "convert formats format")                         \
    X(show, "what is in a file: a trace, a sweep, a result, a log, a platform",                                        \
      "trace stats stat info inspect head cat print view")                                                             \
    X(list, "the policies, or the platforms; or one of them in full", "ls policy platform board boards gpus")          \
    X(plot, "a picture of a result or a trace", "draw graph chart picture")                                            \
    X(report, "one page of results, to read and to print", "html page")                                                \
    X(live, "a policy on this machine's GPUs: shadow, or --control", "control daemon set")                             \
    X(record, "telemetry of this machine's GPUs, of a program's life", "monitor log top")                              \
    X(doctor, "what may be read and set on each GPU, and why not", "status query")                                     \
    X(restore, "clocks and limits as they were before", "reset undo")                                                  \
    X(emulate, "a program that uses NVML, on a simulated GPU", "mock fake")                                            \
    X(help, "a command, or a topic: experiments, traces, platforms, policies", "version man")

/* The parts of commands: X(NAME, IDENT, SUMMARY, WORDS) declares fl_cmd_IDENT, which gets the arguments after NAME. To
 * add a part, write its file and add its row. */
#define FL_COMMAND_PARTS(X)                                                                                            \
    X("fit device", fit_device, "what belongs to a chip, from measured sweeps of several workloads",                   \
      "platform chip gpu board")                                                                                       \
    X("fit workload", fit_workload, "a workload's other settings, from a few measured ones", "kernel program")         \
    X("fit logs", fit_logs, "a sweep, from logs of runs at fixed clocks", "log")                                       \
    X("fit sensor", fit_sensor, "a power sensor's refresh, window and gain, from its log and an external meter", "")   \
    X("fit power-limit", fit_power_limit, "how a board holds its power limit, from logs with steps of the limit",      \
      "cap limit")                                                                                                     \
    X("fit pipeline", fit_pipeline, "a pipeline's times and powers, from executed clock plans", "")                    \
    X("fit serving", fit_serving,                                                                                      \
      "a server's batch steps: times and power, from layer tables, step tables or a measured run", "server")           \
    X("fit trace", fit_trace, "kernel classes, from recordings of a program at several clocks", "")                    \
    X("fit policy", fit_policy, "what one policy needs: a model, a table, weights or a parameter", "")                 \
    X("fit policy capping", fit_policy_capping, "the model of the power capping policies, from sweeps", "")            \
    X("fit policy odpp", fit_policy_odpp, "the two networks of the policy odpp, from simulated programs", "")          \
    X("fit policy sensitivity", fit_policy_sensitivity,                                                                \
      "DynaCo's metrics against frequency sensitivity, from runs over states", "")                                     \
    X("fit policy sweetspot", fit_policy_sweetspot, "SweetSpot's alpha, from a frequency sweep", "")                   \
    X("fit policy draws", fit_policy_draws, "a distribution replay, from what was published of other policies", "")    \
    X("synth requests", synth_requests, "requests to a server of language models, seeded", "")                         \
    X("list policies", list_policies, "the policies, their parameters and sources", "policy")                          \
    X("list platforms", list_platforms, "the platforms, their values and sources",                                     \
      "platform board boards gpu gpus device devices")

#define FL_COMMAND_DECLARE(name, summary, words) int fl_cmd_##name(int argc, char **argv);
FL_COMMANDS(FL_COMMAND_DECLARE)
#define FL_PART_DECLARE(name, ident, summary, words) int fl_cmd_##ident(int argc, char **argv);
FL_COMMAND_PARTS(FL_PART_DECLARE)
