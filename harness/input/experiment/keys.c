/* The keys of an experiment, as rows. */
#include "harness/input/experiment/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/scene.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
#define ROW(name_, type_, unit_, standard_, help_, ...)                                                                \
    {.name = name_, .type = type_, .unit = unit_, .standard = standard_, .help = help_, __VA_ARGS__}
#define BETWEEN(low, high) .min = (low), .max = (high)
#define SHARE BETWEEN(0, 1), .share = true
#define ANY_NUMBER BETWEEN(-HUGE_VAL, HUGE_VAL)
#define LIST .shape = FL_KEY_LIST
#define NAMED .shape = FL_KEY_NAMED
#define MUST .required = true
#define KEYS(id, name_, help_, ...)                                                                                    \
    static const fl_keys id = {.name = name_, .help = help_, .key = id##_key,                                          \
                               .count = sizeof id##_key / sizeof *id##_key, __VA_ARGS__}
enum { TEXT = FL_KEY_TEXT, FILE_ = FL_KEY_FILE, REAL = FL_KEY_REAL, INT = FL_KEY_INT, BOOL = FL_KEY_BOOL,
       NOTHING = FL_KEY_NULL, NUMBERS = FL_KEY_NUMBERS, OBJECT = FL_KEY_OBJECT, BY_NAME = FL_KEY_BY_NAME };
#define SEED_MAX 9e15

/* ---- workloads ---- */

static const fl_key applications_key[] = {
    ROW("drawn", INT, "", NULL, "number of applications drawn, besides those that the paper names",
        BETWEEN(1, 1000), MUST),
    ROW("seeds", INT, "", NULL, "seeds; one draw from each", BETWEEN(1, SEED_MAX), LIST, MUST)};
KEYS(applications, "applications", "synthetic applications, drawn anew from each seed", );

static const fl_key arrivals_key[] = {
    ROW("file", FILE_, "", NULL, "a list of arrivals; excludes the other keys"),
    ROW("rate", REAL, "requests/s", NULL, "mean rate of a Poisson process", BETWEEN(1e-6, 1e9)),
    ROW("count", INT, "requests", NULL, "number of requests; or seconds", BETWEEN(1, 1e8)),
    ROW("seconds", REAL, "s", NULL, "makes rate x seconds requests; or count", BETWEEN(0, 2246400)),
    ROW("seed", INT, "", "the run's", "seed of the arrivals alone", BETWEEN(0, 1e15))};
KEYS(arrivals, "arrivals", "when requests arrive: a list, or a draw", );

#define DRAWS_ROWS                                                                                                     \
    ROW("step_ms", REAL | BY_NAME, "ms", "10", "length of a step", BETWEEN(0.01, 1e5)),                                \
    ROW("energy_cv", REAL | BY_NAME, "", "0.1", "deviation of a step's energy, as a share", BETWEEN(0, 3)),            \
    ROW("ratio", REAL | BY_NAME, "", "1", "core to uncore time at the top clock", BETWEEN(1e-6, 1e6)),                 \
    ROW("ratio_exponent", REAL | BY_NAME, "", "1", "how the ratio grows with the run time", BETWEEN(-10, 10)),         \
    ROW("ratio_best_mhz", REAL | BY_NAME, "MHz", "0: by the exponent", "clock of the least energy times ratio",        \
        BETWEEN(0, 1e5)),                                                                                              \
    ROW("ratio_slope", REAL | BY_NAME, "", "0", "growth of that product with each 100 MHz from there, as a share",     \
        BETWEEN(0, 10)),                                                                                               \
    ROW("ratio_cv", REAL | BY_NAME, "", "0.1", "deviation of the ratio, as a share", BETWEEN(0, 3)),                   \
    ROW("steps_max", REAL | BY_NAME, "steps", "0: none", "a run ends after this many", BETWEEN(0, 1e9)),               \
    ROW("one_seed", BOOL, "", "false", "all repetitions use the same draws")

static const fl_key draws_key[] = {DRAWS_ROWS};
const fl_keys fl_draws_keys = {
    .name = "draws",
    .help = "a replay drawn from each clock's mean and deviation",
    .key = draws_key,
    .count = sizeof draws_key / sizeof *draws_key};

/* ---- the node ---- */

#define NODE_ROWS                                                                                                      \
    ROW("wall", TEXT, "", "real", "how the board holds its power limit", .words = "real|ideal|off"),                   \
    ROW("heat", BOOL, "", "false", "simulates temperature, leakage and the thermal limit"),                            \
    ROW("no_interference", BOOL, "", "false", "kernels share the bandwidth without loss"),                             \
    ROW("no_cpu", BOOL, "", "false", "leaves the host CPU out"),                                                       \
    ROW("no_gating", BOOL, "", "false", "an idle GPU keeps its power"),                                                \
    ROW("units", INT, "", "all alike", "seed of the differences between units of one kind", BETWEEN(1, SEED_MAX)),     \
    ROW("gpu_budget_w", REAL, "W", "the platform's", "power of all GPUs together, divided into limits",                \
        BETWEEN(1, 1e7)),                                                                                              \
    ROW("cpu_power_scale", REAL, "", "1", "multiplies the CPU power by this factor", BETWEEN(0.01, 100)),              \
    ROW("bus_share", REAL, "", "the platform's", "an APU's bus reaches this share of its peak", BETWEEN(0.01, 1)),     \
    ROW("bus_spread", REAL, "", "0", "the share varies by this much, up and down", BETWEEN(0, 0.5)),                   \
    ROW("actuator", TEXT, "", "the platform's", "time until a set clock takes effect, such as \"20ms\""),              \
    ROW("setting_hosts", TEXT, "", "one; for a pipeline per-gpu", "one process for all GPUs in turn, or one each",     \
        .words = FL_HOSTS_ONE "|" FL_HOSTS_PER_GPU),                                                                   \
    ROW("records", TEXT, "", "cost", "cost of activity records: the platform's time, none, or a row for each",         \
        .words = "cost|free|" FL_RECORDS_BOTH),                                                                        \
    ROW("record_cost", TEXT, "", "the platform's", "what records cost: \"2%\" of kernel time, or \"0.8us\" a kernel")
#define REPLAY_ROWS                                                                                                    \
    ROW("jitter", TEXT | REAL, "", "0", "for a sweep: ops vary by this share, drawn by the seed", SHARE),              \
    ROW("iteration_s", REAL, "s", "none", "for a sweep: a marker after about this much work at the top clock",         \
        BETWEEN(1e-3, 1e6)),                                                                                           \
    ROW("op_us", REAL, "us", "10000", "for a sweep: about how long a kernel lasts at the top clock", BETWEEN(1, 1e6))
#define ARRIVALS_ROW                                                                                                   \
    ROW("arrivals", TEXT | OBJECT, "", NULL, "every workload serves requests that arrive by this: " FL_ARRIVALS_FORM,  \
        .of = &arrivals)
#define FL_ARRIVALS_FORM "a list's path, \"poisson:rate=20,count=500\", or its parts"

#define LOAD_ROWS                                                                                                      \
    ROW("scale", REAL, "", "1", "requests arrive at the servers this many times as fast", BETWEEN(1e-6, 1e6)),         \
    ROW("servers", INT, "servers", "1", "number of servers, each with its own GPUs", BETWEEN(1, 1024)),                \
    ROW("pools", TEXT, "", "all servers do both", "servers for prompts and for outputs instead, such as \"4+4\""),     \
    ROW("link", TEXT, "", FL_LINK_ASSUMED, "GB/s and latency between two servers of pools"),                           \
    ROW("kv_bytes", REAL, "bytes", "as 'serving' says", "KV cache of a token, which pools move", BETWEEN(1, 1e9)),     \
    ROW("kv_blocks", INT, "blocks", "as 'serving' says", "KV blocks that the requests of a server can use",            \
        BETWEEN(1, 1e12)),                                                                                             \
    ROW("token_budget", INT, "tokens", "as 'serving' says", "most tokens in one step of a server", BETWEEN(1, 1e9)),   \
    ROW("route", TEXT, "", "round-robin", "which server gets a request", .words = "round-robin|least-loaded")
#define TARGET_ROWS                                                                                                    \
    ROW("ttft", TEXT, "", "none", "target of the time to first token, such as \"2s\""),                                \
    ROW("tbt", TEXT, "", "none", "target of the time between tokens, such as \"100ms\""),                              \
    ROW("target_share", REAL, "", FL_AS_TEXT(FL_TARGET_SHARE), "share of tokens that must meet them", BETWEEN(1e-6, 1))

static const fl_key variant_key[] = {NODE_ROWS, REPLAY_ROWS, ARRIVALS_ROW, LOAD_ROWS, DRAWS_ROWS};
KEYS(variant, "variant", "what a variant changes; the keys of 'draws' only where the experiment has 'draws'", );

/* ---- policies ---- */

static const fl_key values_key[] = {
    ROW("each", TEXT | REAL | BOOL | NUMBERS, "", NULL, "these values; excludes the other keys", ANY_NUMBER, LIST),
    ROW("from", REAL, "", NULL, "the first value", ANY_NUMBER), ROW("to", REAL, "", NULL, "the last value", ANY_NUMBER),
    ROW("step", REAL, "", NULL, "distance between values; or count", ANY_NUMBER),
    ROW("count", INT, "", NULL, "number of values; or step", BETWEEN(1, 100000)),
    ROW("log", BOOL, "", "false", "equal ratios instead of equal steps, with count")};
KEYS(values, "values", "several values of a parameter: one policy for each, and for each combination", );

static const fl_key policy_key[] = {
    ROW("policy", TEXT, "", NULL, "a name (foldline list policies), or the path of a .so", MUST),
    ROW("set", TEXT | REAL | BOOL | NUMBERS | OBJECT, "", NULL,
        "parameters (foldline list policies NAME); files are relative to the experiment", ANY_NUMBER, NAMED, .of = &values),
    ROW("label", TEXT, "", "policy:parameter=value", "name of its rows"),
    ROW("workloads", TEXT, "", "all", "shell patterns of the workloads that it applies to", LIST)};
KEYS(policy, "policy", "an entry of 'policies'", );

/* ---- what a paper says ---- */

static const fl_key where_key[] = {ROW("column", TEXT, "", NULL, "a column of the results", MUST),
                                   ROW("above", REAL, "", NULL, "only rows above it", ANY_NUMBER),
                                   ROW("below", REAL, "", NULL, "only rows below it", ANY_NUMBER)};
KEYS(where, "where", "leaves out the rows that do not meet it", );

#define SELECTION_ROWS(must)                                                                                           \
    ROW("policy", TEXT, "", NULL, "shell pattern of the rows' policies", .required = must),                            \
    ROW("column", TEXT, "", NULL, "a column of the results, in its unit", .required = must),                           \
    ROW("workload", TEXT, "", "*", "shell pattern of the workloads"),                                                  \
    ROW("variant", TEXT, "", "the plain node", "name of a variant"),                                                   \
    ROW("over", TEXT, "", "mean",                                                                                      \
        "mean, geomean, median, min, max, sum, error, count_below:X or count_above:X of the rows"),                    \
    ROW("draws", TEXT, "", "mean", "combines the numbers of the draws of applications", .words = "mean|min|max|sum"),  \
    ROW("against", TEXT, "", NULL, "policy of the row to compare each row with"),                                      \
    ROW("against_column", TEXT, "", "column", "column of that row"),                                                   \
    ROW("as", TEXT, "", NULL, "how the two are compared",                                                              \
        .words = "saving_pct|change_pct|ratio|difference|abs_difference"),                                             \
    ROW("where", OBJECT, "", NULL, "which rows count", .of = &where),                                                  \
    ROW("least_of", TEXT, "", NULL, "1 if the row is at most those of these policies, else 0", LIST),                  \
    ROW("most_of", TEXT, "", NULL, "1 if it is at least those, else 0", LIST)

static const fl_key selection_key[] = {SELECTION_ROWS(true)};
KEYS(selection, "selection", "rows of the results, combined into one number", );

static const fl_key gate_key[] = {
    ROW("above", REAL | OBJECT, "the line's", NULL, "the simulated number is above it", ANY_NUMBER, .of = &selection),
    ROW("below", REAL | OBJECT, "the line's", NULL, "or below", ANY_NUMBER, .of = &selection),
    ROW("within", REAL, "the line's", NULL, "largest distance from the published number", BETWEEN(0, HUGE_VAL)),
    ROW("within_pct", REAL, "%", NULL, "the same, as a share of it", BETWEEN(0, HUGE_VAL)),
    ROW("errors", REAL, "", NULL, "holds by at least this many standard errors", BETWEEN(0, HUGE_VAL)),
    ROW("repetitions", REAL, "", NULL, "the published number is a mean of so many, and has a sampling error", BETWEEN(1, 1e6)),
    ROW("draws", TEXT, "", "most", "on how many draws of the applications it must hold", .words = "most|all")};
KEYS(gate, "gate", "what must hold for the verdict 'reproduced'", );

static const fl_key cell_key[] = {SELECTION_ROWS(false)};
KEYS(cell, "cell", "a part of a selection; +KEY appends its text to the value of KEY", .behind = true);

static const fl_key published_key[] = {
    ROW("quantity", TEXT, "", NULL, "name of the quantity", MUST),
    ROW("unit", TEXT, "", NULL, "its unit, for the reader"),
    ROW("published", REAL | NUMBERS | NOTHING, "the line's", NULL,
        "the paper's number, [low, high], or null if it prints none", ANY_NUMBER, MUST),
    ROW("simulated", OBJECT, "", NULL, "the simulated number to compare", .of = &selection),
    ROW("share_of", OBJECT, "", NULL, "gives the number as a share of this, in percent", .of = &selection),
    ROW("gate", OBJECT, "", NULL, "without one the line only reports", .of = &gate),
    ROW("block", TEXT, "", "detail", "a claim of the system, a detail or rival, or an input, which has no verdict",
        .words = "detail|claim|input"),
    ROW("kind", TEXT, "", "predicted", "calibrated: in view when a number was chosen, so no prediction",
        .words = "predicted|calibrated|input"),
    ROW("verdict", TEXT, "", "reproduced", "compare ends with status 1 if another one comes out",
        .words = "reproduced|within the sampling error|depends on an unpublished input|contradicts another number|"
                 "not reproduced"),
    ROW("because", TEXT, "", NULL, "range of the input, the other number, or the cause; for the last three verdicts"),
    ROW("holds_at", OBJECT, "", NULL, "changes of 'simulated' with which the gate holds: the unpublished input", LIST,
        .of = &cell),
    ROW("note", TEXT, "", NULL, "printed under the table"),
    ROW("by_draw", TEXT, "", NULL, "name of a column of the table of draws")};
KEYS(published, "published", "a line of the table of published results", );

static const fl_key calibrated_key[] = {
    ROW("what", TEXT, "", NULL, "the numbers and their values", MUST),
    ROW("count", INT, "", "1", "how many numbers", BETWEEN(1, 1000)),
    ROW("to", TEXT, "", NULL, "the published numbers that they were chosen by", MUST),
    ROW("before", TEXT, "", NULL, "what came out before", MUST)};
KEYS(calibrated, "calibrated", "numbers chosen so that published ones come out", );

static const fl_key table_key[] = {
    ROW("title", TEXT, "", NULL, "title above the table", MUST),
    ROW("each", OBJECT, "", NULL, "what all cells select", .of = &cell),
    ROW("columns", OBJECT, "", NULL, "what each column selects in addition", NAMED, MUST, .of = &cell),
    ROW("rows", OBJECT, "", NULL, "what each row selects in addition", NAMED, MUST, .of = &cell)};
KEYS(table, "table", "selections side by side", );

/* ---- the experiment ---- */

static const fl_key experiment_key[] = {
    ROW("$schema", TEXT, "", NULL, "for editors; foldline does not read it"),
    ROW("foldline_experiment", INT, "", NULL, "version of these keys", BETWEEN(1, 1), MUST),
    ROW("about", TEXT, "", NULL, "description for the reader"),
    ROW("platform", TEXT, "", NULL, "a name (foldline list platforms), or the path of its file"),
    ROW("platforms", TEXT, "", NULL, "runs everything on each; replaces platform", LIST),
    ROW("gpus", INT, "GPUs", "the platform's", "number of GPUs", BETWEEN(1, 1024)),
    NODE_ROWS,
    ROW("variants", OBJECT, "", NULL, "every workload again with these changes, beside the plain one", NAMED,
        .of = &variant),
    ROW("traces", FILE_, "", NULL, "kernel traces", LIST),
    ROW("programs", FILE_, "", NULL, "programs made of kernel classes; each is a workload"),
    ROW("pipeline", FILE_, "", NULL, "a pipeline of training, each rank a GPU; it is a workload"),
    ROW("slow", TEXT, "", NULL, "ranks of the pipeline that compute slower: rank=R:X", LIST),
    ROW("serving", FILE_, "", NULL, "a server of a language model, which answers 'requests' in batches"),
    ROW("requests", FILE_, "", NULL, "the requests, and when they arrive"),
    LOAD_ROWS,
    TARGET_ROWS,
    ROW("applications", OBJECT, "", NULL, "drawn applications instead of programs", .of = &applications),
    ROW("seconds", REAL, "s", "as the file says", "about how long each program lasts", BETWEEN(1e-3, 1e7)),
    ROW("sweep", FILE_, "", NULL, "measured settings; each of its workloads is replayed"),
    ROW("model", TEXT, "", FL_MODEL_STANDARD, "how values between the rows of a sweep are found",
        .words = "table|fitted"),
    ROW("draws", OBJECT, "", NULL, "the sweep as a distribution replay", .of = &fl_draws_keys),
    ROW("workloads", TEXT, "", "all", "only these of the sweep or the programs", LIST),
    ROW("repeat", INT, "", FL_AS_TEXT(FL_REPEAT_STANDARD), "runs each workload of the sweep this many times",
        BETWEEN(1, 1e6)),
    REPLAY_ROWS,
    ROW("kinds", FILE_, "", "what the trace names", "how kernel classes depend on clocks"),
    ROW("target", FILE_, "", "none", "power that the GPUs are to draw together, over time (t_ns, watts)"),
    ROW("assume", TEXT, "", NULL, "assumption about unknown kernel classes", .words = "compute|memory|balanced"),
    ARRIVALS_ROW,
    ROW("policies", TEXT | OBJECT, "", NULL, "policies to compare: a name, SPEC of the command line, or an entry", LIST,
        .of = &policy),
    ROW("bound", TEXT | REAL, "", "none", "largest slowdown, 0.05 or \"5%\"; or a limit on a column", SHARE),
    ROW("bounds", TEXT | REAL, "", "none", "several bounds, as --bound takes them", LIST, SHARE),
    ROW("deadline", REAL, "s", "none", "tells the policies when each program should end", BETWEEN(1e-3, 1e9)),
    ROW("expected", REAL, "s", "none", "tells them how long each takes at the default clocks", BETWEEN(1e-3, 1e9)),
    ROW("streams", INT, "", "none", "tells them how many streams of each use one GPU, at most", BETWEEN(1, 1e6)),
    ROW("objective", TEXT, "", "energy", "quantity that the references minimise", .words = "energy|edp|ed2p"),
    ROW("oracles", BOOL | TEXT, "", "true", "false leaves the references out; static: all but the best static clock",
        .words = "static"),
    ROW("positions", INT, "positions", "each kernel",
        "points in the work where the clairvoyant schedule may switch", BETWEEN(1, 1e6)),
    ROW("seed", INT, "", FL_AS_TEXT(FL_SEED_STANDARD), "seed of sensors and policies", BETWEEN(1, SEED_MAX)),
    ROW("seeds", INT, "", "1", "runs of each policy, with seeds from seed on", BETWEEN(1, 100000)),
    ROW("power_window_ms", REAL, "ms", "15", "windows of the power statistics", BETWEEN(0.1, 1e6)),
    ROW("assumed", TEXT, "", NULL, "what a replay of a paper rests on; printed at its end", LIST),
    ROW("calibrated", OBJECT, "", NULL, "what was chosen by published numbers", LIST, .of = &calibrated),
    ROW("published", OBJECT, "", NULL, "what the paper says, beside the simulated values", LIST, .of = &published),
    ROW("tables", OBJECT, "", NULL, "more tables of the results", LIST, .of = &table)};

const fl_keys fl_experiment_keys = {.name = "experiment",
                                    .help = "a JSON file; paths are relative to it, and options of the command line "
                                            "override it",
                                    .key = experiment_key,
                                    .count = sizeof experiment_key / sizeof *experiment_key};
/* clang-format on */
