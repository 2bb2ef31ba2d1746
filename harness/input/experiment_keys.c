#include "harness/input/experiment_keys.h"

#include "harness/input/scene.h"

#include <math.h>

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
    ROW("drawn", INT, "", NULL, "how many are drawn beside those that the paper names", BETWEEN(1, 1000), MUST),
    ROW("seeds", INT, "", NULL, "one draw from each", BETWEEN(1, SEED_MAX), LIST, MUST)};
KEYS(applications, "applications", "synthetic applications, drawn anew from each seed (sim/synth_apps.h)", );

static const fl_key arrivals_key[] = {
    ROW("file", FILE_, "", NULL, "a list of arrivals, which then stands alone"),
    ROW("rate", REAL, "requests/s", NULL, "mean rate of a Poisson process", BETWEEN(1e-6, 1e9)),
    ROW("count", INT, "requests", NULL, "how many; or seconds", BETWEEN(1, 1e8)),
    ROW("seconds", REAL, "s", NULL, "rate x seconds requests; or count", BETWEEN(0, 2246400)),
    ROW("seed", INT, "", "the run's", "of the arrivals alone", BETWEEN(0, 1e15))};
KEYS(arrivals, "arrivals", "when requests come: a list, or a draw", );

#define DRAWS_ROWS                                                                                                     \
    ROW("step_ms", REAL | BY_NAME, "ms", "10", "length of a step", BETWEEN(0.01, 1e5)),                                \
    ROW("energy_cv", REAL | BY_NAME, "", "0.1", "deviation of a step's energy, as a share", BETWEEN(0, 3)),            \
    ROW("ratio", REAL | BY_NAME, "", "1", "core to uncore time at the top clock", BETWEEN(1e-6, 1e6)),                 \
    ROW("ratio_exponent", REAL | BY_NAME, "", "1", "how the ratio grows with the run time", BETWEEN(-10, 10)),         \
    ROW("ratio_cv", REAL | BY_NAME, "", "0.1", "deviation of the ratio, as a share", BETWEEN(0, 3)),                   \
    ROW("steps_max", REAL | BY_NAME, "steps", "0: none", "a run ends after so many", BETWEEN(0, 1e9)),                 \
    ROW("one_seed", BOOL, "", "false", "all repetitions draw alike")

static const fl_key draws_key[] = {DRAWS_ROWS};
const fl_keys fl_draws_keys = {
    .name = "draws",
    .help = "a replay drawn from each clock's mean and deviation (harness/study/draws_compare.h)",
    .key = draws_key,
    .count = sizeof draws_key / sizeof *draws_key};

/* ---- the node ---- */

#define NODE_ROWS                                                                                                      \
    ROW("wall", TEXT, "", "real", "how the board holds its power limit", .words = "real|ideal|off"),                   \
    ROW("heat", BOOL, "", "false", "simulates temperature, leakage and the thermal limit"),                            \
    ROW("no_interference", BOOL, "", "false", "kernels that share the bandwidth share it without loss"),               \
    ROW("no_cpu", BOOL, "", "false", "leaves the host CPU out"),                                                       \
    ROW("no_gating", BOOL, "", "false", "an idle GPU keeps its power"),                                                \
    ROW("units", INT, "", "all alike", "seed of the differences between units of one kind", BETWEEN(1, SEED_MAX)),     \
    ROW("gpu_budget_w", REAL, "W", "the platform's", "power of all GPUs together, dealt out as limits",                \
        BETWEEN(1, 1e7)),                                                                                              \
    ROW("cpu_power_scale", REAL, "", "1", "CPU power by this factor", BETWEEN(0.01, 100)),                             \
    ROW("bus_share", REAL, "", "the platform's", "an APU's bus reaches this share of its peak", BETWEEN(0.01, 1)),     \
    ROW("bus_spread", REAL, "", "0", "and this share of the peak less or more", BETWEEN(0, 0.5)),                      \
    ROW("actuator", TEXT, "", "the platform's", "from a call that sets a clock until it is in force, such as \"20ms\""), \
    ROW("setting_hosts", TEXT, "", "one, of a pipeline per-gpu", "one process for all GPUs in turn, or one each",      \
        .words = FL_HOSTS_ONE "|" FL_HOSTS_PER_GPU),                                                                   \
    ROW("records", TEXT, "", "cost", "what kernel records take: time as the platform says, none, or a row for each",   \
        .words = "cost|free|" FL_RECORDS_BOTH)
#define REPLAY_ROWS                                                                                                    \
    ROW("jitter", TEXT | REAL, "", "0", "of a sweep: its ops vary by this share, drawn by the seed", SHARE),           \
    ROW("iteration_s", REAL, "s", "none", "of a sweep: a marker after about so much work at the highest clock",        \
        BETWEEN(1e-3, 1e6))
#define ARRIVALS_ROW                                                                                                   \
    ROW("arrivals", TEXT | OBJECT, "", NULL, "every workload serves requests that come so: " FL_ARRIVALS_FORM,         \
        .of = &arrivals)
#define FL_ARRIVALS_FORM "a list's path, \"poisson:rate=20,count=500\", or its parts"

#define LOAD_ROWS                                                                                                      \
    ROW("scale", REAL, "", "1", "requests arrive at the servers so many times as fast", BETWEEN(1e-6, 1e6)),           \
    ROW("servers", INT, "servers", "1", "how many, each with GPUs of its own", BETWEEN(1, 1024)),                      \
    ROW("kv_blocks", INT, "blocks", "as 'serving' says", "KV blocks that requests of a server can use",                \
        BETWEEN(1, 1e12)),                                                                                             \
    ROW("token_budget", INT, "tokens", "as 'serving' says", "of one step of a server, at most", BETWEEN(1, 1e9)),       \
    ROW("route", TEXT, "", "round-robin", "which server gets a request", .words = "round-robin|least-loaded")
#define TARGET_ROWS                                                                                                    \
    ROW("ttft", TEXT, "", "none", "target of the time to first token, such as \"2s\""),                                \
    ROW("tbt", TEXT, "", "none", "target of the time between tokens, such as \"100ms\""),                              \
    ROW("target_share", REAL, "", FL_AS_TEXT(FL_TARGET_SHARE), "of all tokens that are to meet them", BETWEEN(1e-6, 1))

static const fl_key variant_key[] = {NODE_ROWS, REPLAY_ROWS, ARRIVALS_ROW, LOAD_ROWS, DRAWS_ROWS};
KEYS(variant, "variant", "what a variant changes; the keys of 'draws' only where the experiment has 'draws'", );

/* ---- policies ---- */

static const fl_key values_key[] = {
    ROW("each", TEXT | REAL | BOOL | NUMBERS, "", NULL, "these values; alone", ANY_NUMBER, LIST),
    ROW("from", REAL, "", NULL, "the first value", ANY_NUMBER), ROW("to", REAL, "", NULL, "the last", ANY_NUMBER),
    ROW("step", REAL, "", NULL, "from one to the next; or count", ANY_NUMBER),
    ROW("count", INT, "", NULL, "how many; or step", BETWEEN(1, 100000)),
    ROW("log", BOOL, "", "false", "equal ratios instead of equal steps, with count")};
KEYS(values, "values", "several values of a parameter: one policy for each, and for each combination", );

static const fl_key policy_key[] = {
    ROW("policy", TEXT, "", NULL, "a name (foldline policies), or the path of a .so", MUST),
    ROW("set", TEXT | REAL | BOOL | NUMBERS | OBJECT, "", NULL,
        "parameters (foldline policies NAME); files are relative to the experiment", ANY_NUMBER, NAMED, .of = &values),
    ROW("label", TEXT, "", "policy:parameter=value", "what its rows are called"),
    ROW("workloads", TEXT, "", "all", "shell patterns of those that it is for", LIST)};
KEYS(policy, "policy", "an entry of 'policies'", );

/* ---- what a paper says ---- */

static const fl_key where_key[] = {ROW("column", TEXT, "", NULL, "a column of the results", MUST),
                                   ROW("above", REAL, "", NULL, "only rows above it", ANY_NUMBER),
                                   ROW("below", REAL, "", NULL, "only rows below it", ANY_NUMBER)};
KEYS(where, "where", "rows that do not meet it are left out", );

#define SELECTION_ROWS(must)                                                                                           \
    ROW("policy", TEXT, "", NULL, "shell pattern of the rows' policies", .required = must),                            \
    ROW("column", TEXT, "", NULL, "a column of the results, in its unit", .required = must),                           \
    ROW("workload", TEXT, "", "*", "shell pattern of the workloads"),                                                  \
    ROW("variant", TEXT, "", "the plain node", "name of a variant"),                                                   \
    ROW("over", TEXT, "", "mean",                                                                                      \
        "mean, geomean, median, min, max, sum, error, count_below:X or count_above:X of the rows"),                    \
    ROW("draws", TEXT, "", "mean", "of the numbers of each draw of the applications", .words = "mean|min|max|sum"),    \
    ROW("against", TEXT, "", NULL, "policy of the row that each is held against"),                                     \
    ROW("against_column", TEXT, "", "column", "its column"),                                                           \
    ROW("as", TEXT, "", NULL, "how the two are held against each other",                                               \
        .words = "saving_pct|change_pct|ratio|difference|abs_difference"),                                             \
    ROW("where", OBJECT, "", NULL, "which rows count", .of = &where),                                                  \
    ROW("least_of", TEXT, "", NULL, "1 where the row is at most those of these policies, else 0", LIST),               \
    ROW("most_of", TEXT, "", NULL, "1 where it is at least those, else 0", LIST)

static const fl_key selection_key[] = {SELECTION_ROWS(true)};
KEYS(selection, "selection", "rows of the results, made one number", );

static const fl_key gate_key[] = {
    ROW("above", REAL | OBJECT, "the line's", NULL, "the simulated number is above it", ANY_NUMBER, .of = &selection),
    ROW("below", REAL | OBJECT, "the line's", NULL, "or below", ANY_NUMBER, .of = &selection),
    ROW("within", REAL, "the line's", NULL, "at most so far from the published one", BETWEEN(0, HUGE_VAL)),
    ROW("within_pct", REAL, "%", NULL, "the same, as a share of it", BETWEEN(0, HUGE_VAL)),
    ROW("errors", REAL, "", NULL, "and keeps its bounds by so many standard errors", BETWEEN(0, HUGE_VAL)),
    ROW("draws", TEXT, "", "most", "of the draws of the applications", .words = "most|all")};
KEYS(gate, "gate", "what must hold; compare ends with 1 where it does not", );

static const fl_key published_key[] = {
    ROW("quantity", TEXT, "", NULL, "what it is called", MUST),
    ROW("unit", TEXT, "", NULL, "its unit, for the reader"),
    ROW("published", REAL | NUMBERS | NOTHING, "the line's", NULL,
        "the paper's number, [low, high], or null where it prints none", ANY_NUMBER, MUST),
    ROW("simulated", OBJECT, "", NULL, "the number that stands beside it", .of = &selection),
    ROW("share_of", OBJECT, "", NULL, "makes it a share of this, in percent", .of = &selection),
    ROW("gate", OBJECT, "", NULL, "without one the line only reports", .of = &gate),
    ROW("note", TEXT, "", NULL, "printed under the table"),
    ROW("fails", TEXT, "", NULL, "why the gate does not hold here; where it does, that is a failure"),
    ROW("by_draw", TEXT, "", NULL, "name of a column of the table of draws")};
KEYS(published, "published", "a line of the table of published results (harness/study/published.h)", );

static const fl_key cell_key[] = {SELECTION_ROWS(false)};
KEYS(cell, "cell", "a part of a selection; +KEY puts its text behind what KEY has so far", .behind = true);

static const fl_key table_key[] = {
    ROW("title", TEXT, "", NULL, "stands over it", MUST),
    ROW("each", OBJECT, "", NULL, "what all cells select", .of = &cell),
    ROW("columns", OBJECT, "", NULL, "what a column selects beside that", NAMED, MUST, .of = &cell),
    ROW("rows", OBJECT, "", NULL, "and a row", NAMED, MUST, .of = &cell)};
KEYS(table, "table", "selections side by side", );

/* ---- the experiment ---- */

static const fl_key experiment_key[] = {
    ROW("$schema", TEXT, "", NULL, "for editors; not read"),
    ROW("foldline_experiment", INT, "", NULL, "version of these keys", BETWEEN(1, 1), MUST),
    ROW("about", TEXT, "", NULL, "what it is, for the reader"),
    ROW("platform", TEXT, "", NULL, "a name (foldline platforms), or the path of its file"),
    ROW("platforms", TEXT, "", NULL, "everything on each; in the place of platform", LIST),
    ROW("gpus", INT, "GPUs", "the platform's", "how many", BETWEEN(1, 1024)),
    NODE_ROWS,
    ROW("variants", OBJECT, "", NULL, "every workload again with these changes, beside the plain one", NAMED,
        .of = &variant),
    ROW("traces", FILE_, "", NULL, "kernel traces", LIST),
    ROW("programs", FILE_, "", NULL, "programs made of kinds of kernels; each is a workload"),
    ROW("pipeline", FILE_, "", NULL, "a pipeline of training, each rank a GPU; it is a workload"),
    ROW("slow", TEXT, "", NULL, "ranks of the pipeline that compute slower: rank=R:X", LIST),
    ROW("serving", FILE_, "", NULL, "a server of a language model, which answers 'requests' in batches"),
    ROW("requests", FILE_, "", NULL, "what is asked of it, and when"),
    LOAD_ROWS,
    TARGET_ROWS,
    ROW("applications", OBJECT, "", NULL, "drawn applications in the place of programs", .of = &applications),
    ROW("seconds", REAL, "s", "as the file says", "about how long each program lasts", BETWEEN(1e-3, 1e7)),
    ROW("sweep", FILE_, "", NULL, "measured settings; each of its workloads is replayed"),
    ROW("model", TEXT, "", FL_MODEL_STANDARD, "between the rows of a sweep", .words = "table|fitted"),
    ROW("draws", OBJECT, "", NULL, "the sweep as a distribution replay", .of = &fl_draws_keys),
    ROW("workloads", TEXT, "", "all", "only these of the sweep or the programs", LIST),
    ROW("repeat", INT, "", FL_AS_TEXT(FL_REPEAT_STANDARD), "runs each workload of the sweep so often", BETWEEN(1, 1e6)),
    REPLAY_ROWS,
    ROW("kinds", FILE_, "", "what the trace names", "how kinds of kernels depend on clocks"),
    ROW("assume", TEXT, "", NULL, "of kinds that nobody knows", .words = "compute|memory|balanced"),
    ARRIVALS_ROW,
    ROW("policies", TEXT | OBJECT, "", NULL, "what is compared: a name, SPEC of the command line, or an entry", LIST,
        .of = &policy),
    ROW("bound", TEXT | REAL, "", "none", "largest slowdown, 0.05 or \"5%\"; or a limit on a column", SHARE),
    ROW("bounds", TEXT | REAL, "", "none", "several of them, as --bound takes them", LIST, SHARE),
    ROW("deadline", REAL, "s", "none", "tells the policies by when each program is to end", BETWEEN(1e-3, 1e9)),
    ROW("expected", REAL, "s", "none", "tells them how long it takes at the default clocks", BETWEEN(1e-3, 1e9)),
    ROW("objective", TEXT, "", "energy", "what the references make least", .words = "energy|edp|ed2p"),
    ROW("oracles", BOOL | TEXT, "", "true", "false leaves the references out; static: all but the best static clock",
        .words = "static"),
    ROW("positions", INT, "positions", FL_AS_TEXT(FL_POSITIONS_STANDARD), "of work, where the clairvoyant schedule may switch", BETWEEN(1, 1e6)),
    ROW("seed", INT, "", FL_AS_TEXT(FL_SEED_STANDARD), "of sensors and policies", BETWEEN(1, SEED_MAX)),
    ROW("seeds", INT, "", "1", "runs of each policy, with seeds from seed on", BETWEEN(1, 100000)),
    ROW("power_window_ms", REAL, "ms", "15", "windows of the power statistics", BETWEEN(0.1, 1e6)),
    ROW("assumed", TEXT, "", NULL, "what a replay of a paper rests on; printed at its end", LIST),
    ROW("published", OBJECT, "", NULL, "what the paper says, beside what comes out here", LIST, .of = &published),
    ROW("tables", OBJECT, "", NULL, "more tables of the results", LIST, .of = &table)};

const fl_keys fl_experiment_keys = {.name = "experiment",
                                    .help = "a JSON file; paths are relative to it, and what the command line says "
                                            "goes before what it says",
                                    .key = experiment_key,
                                    .count = sizeof experiment_key / sizeof *experiment_key};
/* clang-format on */
