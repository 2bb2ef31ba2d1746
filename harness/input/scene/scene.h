/* A scene: what a run takes place on. It holds a platform, a workload built for it, its rates at every clock, and the
 * facts that a policy may know.
 *
 * A command fills an fl_scene_options through the rows of FL_SCENE_OPTIONS, then calls fl_scene_check and
 * fl_scenes_open, which make one scene for each trace, program, workload of a sweep, pipeline or request trace. Runs
 * share a scene and never change it. fl_scenes owns its scenes until fl_scenes_free; texts of the options must live as
 * long. fl_scene_give_back frees what only runs need, and fl_scene_build builds it again.
 *
 * The other parts are the choices behind the options: which parts of the node are simulated, arrivals, servers, faults,
 * replay of sweeps, plans. Wrong input is FL_BAD_INPUT with file and line. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "harness/input/policy/policy.h"
#include "models/chip/chip.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "sim/instance/instance.h"
#include "sim/pipeline/pipeline.h"
#include "sim/serving/serving.h"
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"
#include "traces/pipeline/pipeline.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How sure a fitted model is of a workload at each setting, and the risk of choosing a setting by that model
 * (models/chip/chip.h). */

typedef struct fl_setting_clocks {
    double sm_mhz, mem_mhz;
    double limit_w; /* the power limit that was set with the clocks; 0 = none: the board's own holds */
} fl_setting_clocks;

typedef struct fl_stated {
    fl_setting_clocks *at; /* count settings, ascending by memory clock, SM clock, limit (none comes last) */
    fl_chip_guess *guess;  /* the estimate at each setting, all kernels of the workload added up */
    size_t count;          /* 0: the model states nothing */
    bool fitted;           /* by a fit, not by columns of the sweep */
    fl_chip_basis basis;   /* what the estimates rest on, which fl_stated_at states of each */
    double time_noise_pct, power_noise_pct; /* of repeated runs, which fl_stated_at adds to the deviations */
} fl_stated;

/* Make the statement from the rows of a workload. The function adds up the kernels and takes their errors as fully
 * correlated, since they belong to one chip. It leaves out settings at which some kernel has no row, and settings
 * outside [sm_min, sm_max] MHz. If the rows were not predicted just now and none states a deviation, the result is
 * empty. mem_mhz: memory clock of rows that name none. Rows under the workload's highest power limit, and rows that
 * name no limit, count as under the board's own limit. */
fl_status fl_stated_make(const fl_sweep *s, uint32_t workload, bool predicted, double sm_min, double sm_max,
                         double mem_mhz, fl_stated *out, fl_diag *d);
void fl_stated_free(fl_stated *s);
/* Take over what predictions rest on, and how far their repeated runs differ. */
void fl_stated_rest(fl_stated *s, fl_chip_basis basis, double time_noise_pct, double power_noise_pct);

/* Return the clocks of all settings, s->count of them, which the caller frees. NULL: memory ran out. */
fl_chip_row *fl_stated_rows(const fl_stated *s);

bool fl_stated_same(fl_setting_clocks a, fl_setting_clocks b);

/* Interpolate linearly between the nearest SM clocks under the same limit, with the greater deviations of the two.
 * Return false outside the measured range. */
bool fl_stated_at(const fl_stated *s, fl_setting_clocks at, fl_chip_guess *out);

/* Judge a chosen setting against the reference (the driver's default). _chance: the chance that the real slowdown
 * exceeds the bound. _regret: the expected regret in power x time^delay, a share. NAN: the model states nothing there.
 */
double fl_stated_chance(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound);
double fl_stated_regret(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound,
                        double delay);

/* Arrivals as a text: "poisson:rate=20,count=500,seed=1" or the path of a list (traces/serving/serving.h).
 *
 * rate: requests per second. count: how many; or seconds=S for rate x S of them, rounded, so that every seed has the
 * same work. seed: the run's seed by default. */

typedef struct fl_arrivals_spec {
    const char *file; /* borrowed; NULL: drawn */
    double per_s;
    size_t count;
    uint64_t seed; /* 0: the seed of the run */
} fl_arrivals_spec;

#define FL_ARRIVALS_HELP                                                                                               \
    "requests over the workload, each one pass: a list (t_ns), or poisson:rate=R,count=N,seed=S (count or seconds)"

fl_status fl_arrivals_spec_parse(const char *text, fl_arrivals_spec *spec, fl_diag *d);

/* --no-cache: the program neither writes nor uses a cache beside big traces (traces/open/open.h). */

/* clang-format off */
#define FL_CACHE_OPTION(into)                                                                                          \
    {"no-cache", NULL, FL_OPTION_FLAG, into, 0, 0,                                                                     \
     "neither writes nor uses the FILE.foldline-cache beside big traces", FL_FOR_INPUT}
/* clang-format on */

/* Which parts of a node are simulated, and how. A user may switch a part on, off or make it ideal, to see its share. */

typedef struct fl_node_choice {
    const char *wall;        /* "real", "ideal" or "off"; NULL = real */
    bool heat;               /* heat is off unless asked for: it makes time matter */
    bool no_contention;      /* leaves out the interference between kernels that share the bandwidth */
    bool no_cpu;             /* host time as recorded, no CPU power */
    bool no_gating;          /* an idle GPU keeps its power */
    int64_t units;           /* seed of the variation between boards; 0 = all alike */
    const char *hosts;       /* FL_HOSTS_ONE or FL_HOSTS_PER_GPU; NULL = one */
    const char *records;     /* "cost", "free" or "both"; NULL = cost */
    const char *record_cost; /* what activity records cost, "2%" or "0.8us"; NULL = as the platform states */
    const char *actuator;    /* clock-change latency, "20ms" or "0"; NULL = the platform's */
    double gpu_budget_w;     /* of all GPUs together; 0 = the platform's */
    double cpu_power;        /* factor on the CPU's power; 0 = 1 */
    double bus_share;        /* share of its peak that an APU's bus reaches; 0 = the platform's */
    double bus_spread;       /* that share varies each period by up to this share of the peak; 0 = it does not */
} fl_node_choice;

#define FL_RECORDS_BOTH "both"
#define FL_HOSTS_ONE "one"
#define FL_HOSTS_PER_GPU "per-gpu"

/* Apply the choice to a platform's node. If boards differ (units), each GPU of the node gets a device of its own.
 * FL_BAD_INPUT: an unknown word, or a part that the platform does not describe. */
fl_status fl_node_choose(fl_node_spec *node, const fl_node_choice *c, fl_diag *d);

/* Fill what *c leaves open from *rest. */
void fl_node_choice_merge(fl_node_choice *c, const fl_node_choice *rest);
/* Read the keys of a checked experiment (harness/input/experiment/experiment.h). Members that are set already stay. */
fl_status fl_node_choice_read(const fl_json *root, fl_node_choice *c, fl_diag *d);

/* clang-format off */
#define FL_NODE_OPTIONS(c)                                                                                             \
    {"wall", "real|ideal|off", FL_OPTION_CHOICE, &(c).wall, 0, 0, "power limit of the board (real)", FL_FOR_MACHINE},  \
    {"heat", NULL, FL_OPTION_FLAG, &(c).heat, 0, 0,                                                                    \
     "simulates heat: temperature, leakage, thermal limit", FL_FOR_MACHINE},                                           \
    {"no-interference", NULL, FL_OPTION_FLAG, &(c).no_contention, 0, 0,                                                \
     "kernels that share the bandwidth lose nothing by it", FL_FOR_MACHINE},                                           \
    {"no-cpu", NULL, FL_OPTION_FLAG, &(c).no_cpu, 0, 0, "leaves the host CPU out", FL_FOR_MACHINE},                    \
    {"no-gating", NULL, FL_OPTION_FLAG, &(c).no_gating, 0, 0, "an idle GPU is never power-gated", FL_FOR_MACHINE},     \
    {"units", "SEED", FL_OPTION_INT, &(c).units, 1, 9e15,                                                              \
     "makes the GPUs differ, as units of one model do", FL_FOR_MACHINE},                                               \
    {"records", "cost|free|both", FL_OPTION_CHOICE, &(c).records, 0, 0,                                                \
     "activity records: they take time as the platform states, none, or both to compare (cost)", FL_FOR_MACHINE},      \
    {"record-cost", "2%|0.8us", FL_OPTION_TEXT, &(c).record_cost, 0, 0,                                                \
     "share of kernel time, or time per kernel, that records take (the platform's)", FL_FOR_MACHINE},                  \
    {"cpu-power-scale", "X", FL_OPTION_REAL, &(c).cpu_power, 0.01, 100,                                                \
     "multiplies the CPU's power", FL_FOR_MACHINE},                                                                    \
    {"bus-share", "X", FL_OPTION_REAL, &(c).bus_share, 0.01, 1,                                                        \
     "share of its peak that an APU's bus reaches", FL_FOR_MACHINE},                                                   \
    {"bus-spread", "X", FL_OPTION_REAL, &(c).bus_spread, 0, 0.5,                                                       \
     "by how much of the peak that share varies", FL_FOR_MACHINE},                                                     \
    {"actuator", "TIME", FL_OPTION_TEXT, &(c).actuator, 0, 0,                                                          \
     "time from setting a GPU's clock until it takes effect, such as 20ms, or 0", FL_FOR_MACHINE},                     \
    {"setting-hosts", "one|per-gpu", FL_OPTION_CHOICE, &(c).hosts, 0, 0,                                               \
     "who reads and sets the GPUs: one process, all in turn, or one per GPU (one; of a pipeline "                      \
     "per-gpu)", FL_FOR_MACHINE},                                                                                      \
    {"gpu-budget", "W", FL_OPTION_REAL, &(c).gpu_budget_w, 1, 1e7,                                                     \
     "power budget of all GPUs, divided into limits; the default run is held to it too", FL_FOR_MACHINE}
/* clang-format on */

/* Options about one rank of a pipeline: rank=R:X. */

/* Parse "rank=R:X" with X above 0. `what` is the option's name, for diagnostics. */
fl_status fl_rank_value_parse(const char *what, const char *text, uint32_t *rank, double *value, fl_diag *d);

#define FL_SLOW_HELP "makes rank R of the pipeline compute X times as long (may be repeated)"

/* Replace *p by a pipeline in which the ranks that --slow names compute slower (sim/pipeline/pipeline.h). */
fl_status fl_pipeline_slow_down(fl_pipeline *p, const fl_texts *slow, fl_diag *d);

/* How the workloads of a sweep are replayed. A table of times and powers states neither how much the parts of a program
 * vary nor where its iterations end, so a user may choose both. */

typedef struct fl_replay_choice { /* NULL and 0: not chosen */
    const char *jitter;           /* a share such as 0.05 or 5% (fl_share_parse); NULL = 0 */
    double iteration_s;           /* work between iteration markers, in s; 0 = no markers */
    double op_us;                 /* length of an op at the highest clock; 0 = about 10 ms */
} fl_replay_choice;

/* Fill jitter, iteration_ns and op_ns of *out. FL_BAD_INPUT: the jitter is not a share from 0 to 1. */
fl_status fl_replay_choose(const fl_replay_choice *c, fl_sweep_replay *out, fl_diag *d);
/* Return the first choice that is made, as an option (or with `key` as a key of an experiment); NULL if none is. */
const char *fl_replay_chosen(const fl_replay_choice *c, bool key);
/* Return true if the work is drawn. Each seed then has a scene of its own. */
bool fl_replay_drawn(const fl_replay_choice *c);
/* Fill what *c leaves open from *rest. */
void fl_replay_merge(fl_replay_choice *c, const fl_replay_choice *rest);

/* clang-format off */
#define FL_REPLAY_OPTIONS(c)                                                                                           \
    {"jitter", "SHARE", FL_OPTION_TEXT, &(c).jitter, 0, 0,                                                             \
     "of a sweep: how much its ops vary, 0.05 or 5%, drawn from the seed (0)", FL_FOR_INPUT},                          \
    {"iteration", "S", FL_OPTION_REAL, &(c).iteration_s, 1e-3, 1e6,                                                    \
     "of a sweep: puts an iteration marker about every S seconds of work at the highest clock (none)", FL_FOR_INPUT},  \
    {"op-us", "US", FL_OPTION_REAL, &(c).op_us, 1, 1e6,                                                                \
     "of a sweep: kernels last about US microseconds at the highest clock (10000)", FL_FOR_INPUT}
/* clang-format on */

/* Servers of a language model as a user asks for them: server file, request trace, numbers, and latency targets. The
 * command line, experiments and their variants use the same names. */

typedef struct fl_serving_choice { /* NULL and 0: not chosen */
    const char *server;            /* a serving file (traces/serving/serving.h); NULL = nothing is served */
    const char *requests;          /* a request trace (traces/serving/serving.h) */
    double scale;                  /* factor on the arrival rate; 0 = 1 */
    int64_t servers;               /* number of servers; 0 = 1 */
    const char *pools;             /* "4+4": so many prefill and decode servers; NULL = all are mixed */
    const char *link;       /* "16,20us": GB/s and latency between two servers of pools; NULL = FL_LINK_ASSUMED */
    double kv_bytes;        /* of a token, of all GPUs of a server; 0 = the server file's */
    int64_t kv_blocks;      /* KV blocks of each server; 0 = the server file's */
    int64_t token_budget;   /* tokens of one step of each server; 0 = the server file's */
    const char *route;      /* NULL = round-robin */
    const char *ttft, *tbt; /* latency targets, as "2s" and "100ms"; NULL = none */
    double target_share;    /* share of tokens that must meet the targets; 0 = FL_TARGET_SHARE */
} fl_serving_choice;

#define FL_TARGET_SHARE 0.99
/* Two A800 over NVLink: 37 us and 177 GB/s at the top of 72 measured transfers (AFlex, duihuhu/sglang). */
#define FL_LINK_ASSUMED "177,37us"

/* Return true if any member is chosen. */
bool fl_serving_choice_any(const fl_serving_choice *c);

/* Fill what *c leaves open from *rest. */
void fl_serving_choice_merge(fl_serving_choice *c, const fl_serving_choice *rest);
/* Read the keys of a checked experiment or variant, except the two files. Members that are set already stay. Texts live
 * as long as the tree. */
fl_status fl_serving_choice_read(const fl_json *root, fl_serving_choice *c, fl_diag *d);

/* clang-format off */
#define FL_SERVING_OPTIONS(c)                                                                                          \
    {"scale", "X", FL_OPTION_REAL, &(c).scale, 1e-6, 1e6,                                                              \
     "requests arrive so many times as fast (1)", FL_FOR_SERVING},                                                     \
    {"servers", "N", FL_OPTION_INT, &(c).servers, 1, 1024,                                                             \
     "so many servers, each with GPUs of its own; without a policy all numbers up to it (1)", FL_FOR_SERVING},         \
    {"pools", "P+D", FL_OPTION_TEXT, &(c).pools, 0, 0,                                                                 \
     "P servers for prompts and D for outputs instead, such as 4+4 (all do both)", FL_FOR_SERVING},                    \
    {"link", "GB/S,TIME", FL_OPTION_TEXT, &(c).link, 0, 0,                                                             \
     "bandwidth and latency from a server of pools to another (" FL_LINK_ASSUMED ", assumed)", FL_FOR_SERVING},        \
    {"kv-bytes", "N", FL_OPTION_REAL, &(c).kv_bytes, 1, 1e9,                                                           \
     "of a token, which pools move (as the server's file says)", FL_FOR_SERVING},                                      \
    {"kv-blocks", "N", FL_OPTION_INT, &(c).kv_blocks, 1, 1e12,                                                         \
     "KV blocks that requests of a server can use (as its file says)", FL_FOR_SERVING},                                \
    {"token-budget", "N", FL_OPTION_INT, &(c).token_budget, 1, 1e9,                                                    \
     "tokens of one step of a server, at most (as its file says)", FL_FOR_SERVING},                                    \
    {"route", "round-robin|least-loaded", FL_OPTION_CHOICE, &(c).route, 0, 0,                                          \
     "which server gets a request (round-robin)", FL_FOR_SERVING},                                                     \
    {"ttft", "TIME", FL_OPTION_TEXT, &(c).ttft, 0, 0,                                                                  \
     "target of the time to first token, such as 2s (none)", FL_FOR_SERVING},                                          \
    {"tbt", "TIME", FL_OPTION_TEXT, &(c).tbt, 0, 0,                                                                    \
     "target of the time between tokens, such as 100ms (none)", FL_FOR_SERVING},                                       \
    {"target-share", "X", FL_OPTION_REAL, &(c).target_share, 1e-6, 1,                                                  \
     "of all tokens that are to meet the targets (" FL_AS_TEXT(FL_TARGET_SHARE) ")", FL_FOR_SERVING}
/* clang-format on */

/* Servers of a language model and their requests, read from files. A serving workload borrows from this struct, so it
 * lives as long as the scene. */

typedef struct fl_serving_scene {
    char *path;        /* of the serving file */
    fl_serving stated; /* the contents of that file */
    fl_step_law law;   /* the law of step times and powers, made of the file; all servers share it */
    fl_requests requests;
    uint32_t *gpu; /* GPUs of all servers, one server after the other */
    fl_serving_server *server;
    fl_server_facts *facts; /* for policies; setup.server_count entries */
    fl_serving_setup setup; /* points into this struct, which must stay at its address */
} fl_serving_scene;

/* Write the sentence about the law that every result prints: on which GPU and at which clocks it was measured, from
 * what, and its error. Return buf. */
char *fl_serving_scene_clocks(const fl_serving_scene *s, char *buf, size_t size);

/* The power that is asked of a node over time: --target, for runs and for a live host. */
/* clang-format off */
#define FL_TARGET_OPTION(into)                                                                                         \
    {"target", "FILE", FL_OPTION_TEXT, into, 0, 0,                                                                     \
     "power that the GPUs are to draw together, over time (t_ns, watts): policies see target_w, results score it",     \
     FL_FOR_INPUT}
/* clang-format on */

typedef struct fl_scene_options { /* NULL and 0: not chosen */
    const char *platform;
    int64_t gpus;              /* 0 = as many as the platform has, or the trace uses */
    const char *kinds;         /* file; NULL = what the trace names */
    const char *assume;        /* see fl_build_options */
    const char *sweep;         /* file of measured settings; NULL = none */
    const char *programs;      /* programs file (traces/files/files.h); NULL = none */
    const char *pipeline;      /* a pipeline of training (traces/pipeline/pipeline.h), each rank a GPU; NULL = none */
    fl_texts slow;             /* ranks of the pipeline that compute slower: rank=R:X */
    fl_serving_choice serving; /* servers of a language model and their requests */
    int64_t applications;      /* number of drawn applications beside those of fl_synth_apps; 0 = no applications */
    int64_t application_seed;
    double seconds;          /* approximate length of each program; 0 = as its file says */
    fl_texts only;           /* workloads of the sweep or programs; none = all */
    const char *model;       /* of a sweep: "table" or "fitted" */
    int64_t repeat;          /* runs of each workload of a sweep, or iterations of a pipeline */
    fl_replay_choice replay; /* of a sweep's workloads */
    int64_t windows;         /* windows of work for the worst-window slowdown */
    int64_t seed;
    const char *arrivals;   /* an arrivals text (fl_arrivals_spec_parse); NULL: each workload is one pass */
    const char *target;     /* a target file (traces/files/files.h); NULL: no power is asked for */
    int64_t draws;          /* number of draws of each scene: seeds of sensors, policies and arrivals */
    int64_t draw;           /* index of the draw; set by fl_scenes_open */
    bool no_cache;          /* neither writes nor uses a cache beside traces (traces/open/open.h) */
    const char *variant;    /* added to the names of the workloads; NULL = nothing */
    fl_node_choice node;    /* which parts of the node are simulated, and how */
    fl_stated_facts stated; /* what policies are told of each program; a comparison tells its bound itself */
    enum {
        FL_SCENES_AT_ONCE, /* built when opened, and held */
        FL_SCENES_COUNTED, /* built when opened; big ones are given back, and fl_scene_build builds each in its turn */
        FL_SCENES_IN_TURN  /* as FL_SCENES_COUNTED, but the first build of a long program is a short check */
    } hold;                /* for traces and programs; texts of the options must then live as long as the scenes */
} fl_scene_options;

#define FL_MODEL_STANDARD "table"
#define FL_REPEAT_STANDARD 1
#define FL_WINDOWS_STANDARD 20
#define FL_SEED_STANDARD 1

/* Set model, repeat, windows, seed and draws to their defaults, if neither the command line nor an experiment
 * (fl_experiment_apply) chose them. */
void fl_scene_resolve(fl_scene_options *o);

/* Take the files of a command apart by what they are: a sweep, programs, a pipeline, a server and its requests go to
 * *o, and recordings stay in *files. FL_BAD_INPUT: two files of one type where one is expected, or a file of which
 * nothing can be replayed. Call it on what the command line gives, before an experiment adds to it. */
fl_status fl_scene_sort(fl_scene_options *o, fl_texts *files, fl_diag *d);
/* Refuse options that would do nothing, because no scene of this input uses them (FL_BAD_INPUT). Call it before
 * fl_scene_resolve. */
fl_status fl_scene_check(const fl_scene_options *o, const fl_texts *traces, fl_diag *d);

/* Check policies before anything of the input is read: their parameters, and their init where the input cannot change
 * what the policy is told of the node. varies: the scenes differ in more than the input. FL_BAD_INPUT as from
 * fl_instance_open. */
fl_status fl_scene_check_policies(const fl_scene_options *o, const fl_spec *spec, size_t count, bool varies,
                                  fl_diag *d);

/* The programs of a file, or drawn ones. Their scenes share the set, and the last scene frees it. */
typedef struct fl_program_set {
    fl_programs p;
    fl_kinds kinds;
    char *kinds_path; /* the file of the kernel classes; NULL: they were drawn, or there are none */
    bool has_kinds;
    size_t users;
} fl_program_set;

struct fl_scene_again {
    fl_scene_options o;
    fl_program_set *set; /* NULL: a trace */
    size_t index;        /* of the program */
    fl_kinds kinds;      /* kernel classes of a trace: read once, because the file may change, or be a pipe */
    bool has_kinds;
    fl_cache_key key; /* key of the bytes of the trace that were read */
};

typedef struct fl_scene {
    char *source;              /* path of the trace, programs, sweep, pipeline or requests */
    char *kinds;               /* path of its file of kernel classes; NULL = none */
    char *order;               /* path of a pipeline's list of instructions; NULL = none */
    char *asked;               /* platform as the user named it */
    fl_node_choice node;       /* texts borrowed from the options */
    fl_serving_scene *serving; /* servers and their requests; NULL = none */
    double jitter;             /* by how much the ops of a sweep's workload vary, a share */
    int64_t iteration_ns;      /* work between the markers of a sweep's workload; 0 = no markers */
    int64_t op_ns;             /* stated length of a sweep's kernels; 0 = not stated */
    int64_t repeat;            /* runs of a sweep's workload, or iterations of a pipeline; 0 for other workloads */
    char *slow;                /* --slow of a pipeline, joined by blanks; NULL = none */
    char *variant;             /* name of the variant of the node; NULL = plain */
    char *arrivals;            /* the arrivals text; NULL = none */
    char *target_path;         /* path of the target file; NULL = none */
    fl_target target;          /* its rows; none without a file */
    char *applications;        /* seed of drawn applications; NULL: they are not drawn */
    uint64_t draw;             /* index of the draw: 0, 1, ... */
    bool clipped;              /* the ladders were cut to the measured clocks */
    char **note;               /* note_count notes on what the trace's format lacks: what was assumed or left out */
    size_t note_count;
    fl_platform platform;
    fl_workload *w;
    fl_stated stated;     /* how sure a fitted model is of w; empty: no model states it */
    fl_pipeline pipeline; /* no ranks: the scene is not a pipeline */
    fl_pipeline_order instructions;
    fl_pipeline_op *op; /* the instruction of each op of a pipeline's workload, stream by stream; else NULL */
    fl_rates *rates;    /* NULL while the scene is not built */
    fl_facts facts;
    struct fl_scene_again *again; /* how to build it again; NULL: it always stays built */
} fl_scene;

typedef struct fl_scenes {
    fl_scene **item; /* each its own allocation: rates and facts point into it */
    size_t count, room;
    size_t clipped; /* scenes whose ladder was cut to the clocks that were measured */
} fl_scenes;

/* Return the power target of a scene; NULL: it has none. */
const fl_target *fl_scene_target(const fl_scene *s);

void fl_scenes_free(fl_scenes *s);
/* Free what only runs need of the scenes from `first` on, for good. Names and results stay valid. */
void fl_scenes_forget(fl_scenes *s, size_t first);
/* Free what only runs need of a scene that can be built again. Leave other scenes as they are. */
void fl_scene_give_back(fl_scene *s);
/* Refuse an output among the options that is an input of a scene or of a policy: a trace, kernel classes, a platform, a
 * pipeline's instructions, a table, a plan, a plug-in (FL_BAD_INPUT). */
fl_status fl_scenes_spare(const fl_scenes *s, const fl_spec *spec, size_t specs, const fl_option *option, size_t count,
                          fl_diag *d);
/* Move the scenes of `more` behind those of `all`. */
fl_status fl_scenes_append(fl_scenes *all, fl_scenes *more, fl_diag *d);

/* Cut the SM ladders of the node to [sm_min, sm_max] MHz. Return true if anything was cut. */
bool fl_node_clip(fl_node_spec *n, double sm_min, double sm_max);
enum { FL_MEMORY_CLOCKS_MAX = 256 }; /* more than any board has */
/* Cut the memory ladders of the node to `count` clocks in MHz. Leave a board that has none of them as it is. Return
 * true if anything was cut. */
bool fl_node_clip_memory(fl_node_spec *n, const double *mhz, size_t count);

/* The options that all commands with a scene share, for their tables of options. */
/* clang-format off */
#define FL_SCENE_OPTIONS(o)                                                                                            \
    {"platform", "NAME", FL_OPTION_TEXT, &(o).platform, 0, 0,                                                          \
     "platform, or a path to its file (see foldline list platforms)", FL_FOR_MACHINE | FL_MOST_USED},                  \
    {"gpus", "N", FL_OPTION_INT, &(o).gpus, 1, 1024,                                                                   \
     "number of GPUs, instead of the platform's own", FL_FOR_MACHINE},                                                 \
    {"kinds", "FILE", FL_OPTION_TEXT, &(o).kinds, 0, 0, "how kernel classes depend on clocks", FL_FOR_INPUT},        \
    {"assume", "compute|balanced|memory", FL_OPTION_CHOICE, &(o).assume, 0, 0,                                         \
     "bottleneck of unknown kernel classes", FL_FOR_INPUT},                                                                     \
    {"slow", "rank=R:X", FL_OPTION_LIST, &(o).slow, 0, 0, FL_SLOW_HELP, FL_FOR_INPUT},                                 \
    {"seconds", "S", FL_OPTION_REAL, &(o).seconds, 1e-3, 1e7,                                                          \
     "approximate length of each program (as its file says)", FL_FOR_INPUT},                                           \
    {"workload", "NAME", FL_OPTION_LIST, &(o).only, 0, 0,                                                              \
     "only this workload of the sweep or programs (may be repeated)", FL_FOR_INPUT},                                   \
    {"model", "table|fitted", FL_OPTION_CHOICE, &(o).model, 0, 0,                                                      \
     "model of a sweep: interpolated, or fitted laws (" FL_MODEL_STANDARD ")", FL_FOR_INPUT},                          \
    {"repeat", "N", FL_OPTION_INT, &(o).repeat, 1, 1e6,                                                                \
     "runs of each workload of the sweep, or iterations of the pipeline "                                              \
     "(" FL_AS_TEXT(FL_REPEAT_STANDARD) ")", FL_FOR_INPUT},                                                            \
    FL_REPLAY_OPTIONS((o).replay),                                                                                     \
    {"arrivals", "SPEC", FL_OPTION_TEXT, &(o).arrivals, 0, 0, FL_ARRIVALS_HELP, FL_FOR_INPUT},                         \
    FL_NODE_OPTIONS((o).node),                                                                                         \
    FL_CACHE_OPTION(&(o).no_cache),                                                                                    \
    FL_STRICT_OPTION,                                                                                                  \
    {"seed", "N", FL_OPTION_INT, &(o).seed, 1, 9e15,                                                                   \
     "seed of sensors and policies (" FL_AS_TEXT(FL_SEED_STANDARD) ")"}
/* clang-format on */

/* Append a note on the measured rows behind a result, for its readers. */
fl_status fl_sweep_note(char ***note, size_t *count, fl_diag *d, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Faults as they are asked for on the command line: TYPE, or TYPE:key=value,key=value.
 *
 *   drop:gpu=0,signal=power_w,from_s=1,for_s=2     the signal is missing
 *   freeze:gpu=all,signal=energy_j,from_s=1        the signal holds its value and is never fresh
 *   refuse:gpu=0,control=sm_mhz,until_s=5          sets of the control fail
 *   lost:gpu=1,from_s=3                            the GPU is gone, for good
 *   drop:gpu=host,signal=cpu_uops
 *   freeze:server=0,signal=waiting,from_s=5        a signal of a server stays at its value
 *
 * gpu: an index, all or host. server: an index or all, only with drop and freeze. Without both, a fault concerns all
 * GPUs; a signal or control of the host or of servers concerns the host or all servers. lost must name its GPU. signal,
 * control: a name of the contract or all (the default). from_s: 0 by default. for_s or until_s: for ever by default.
 * Times are seconds of the host's time. */

#define FL_FAULT_SPEC_HELP                                                                                             \
    "drop, freeze, refuse or lost, then :gpu=,server=,signal=,control=,from_s=,for_s=,until_s= (may be repeated)"

/* Parse all texts. *out has texts->count faults and the caller frees it; NULL after a failure, or without texts. */
fl_status fl_fault_specs_parse(const fl_texts *texts, fl_fault **out, fl_diag *d);

/* Scenes that are built in turn, and the kernel classes of a trace. */

/* Build a scene that was given back, with the same contents; do nothing if it is built. Threads may build any number of
 * scenes at once. FL_BAD_INPUT: the trace has changed since it was first read. */
fl_status fl_scene_build(fl_scene *s, fl_diag *d);
/* Read the kernel classes of a trace: the given file; the one that the head names, relative to the trace; or
 * TRACE.kinds.csv beside TRACE.csv. assume: the command's --assume, with which a missing named file counts as none; ""
 * = not given, NULL = the command has no such option. The caller frees *path, which is NULL where there is no file.
 * FL_BAD_INPUT: the file is wrong, or the named one is missing, with the line that names it. */
fl_status fl_scene_kinds_read(const char *given, const char *trace, const fl_head *head, const char *assume,
                              char **path, fl_kinds *kinds, fl_diag *d);

/* --path: a test forces one of the simulator's ways of advancing (sim/base/base.h). */

/* clang-format off */
#define FL_PATH_OPTION(into)                                                                                           \
    {"path", "auto|plain|vector|prefix|events|launches", FL_OPTION_CHOICE, into, 0, 0,                                 \
     "for tests: how to advance; results do not depend on it (auto)"}
/* clang-format on */

/* Force the way of advancing that --path names; NULL: none was given. */
void fl_path_option_use(const char *name);
/* With --path, print on stderr how often each way was taken. */
void fl_path_option_tell(const char *name);

/* Plans by instruction as a policy's table, in the order in which each rank of a pipeline reaches its instructions. */

typedef struct fl_laid {
    fl_layer layer; /* one table, which goes over the spec's own layer; empty if the spec has no plan */
    fl_setting setting;
    fl_table table;
} fl_laid;

/* Lay out the plan of a spec for the pipeline of a scene. *l must stay at its address while its layer is in use; free
 * it with fl_laid_free. scene NULL: there is no pipeline. FL_BAD_INPUT, with the plan's line if one is wrong: the spec
 * has a plan but the scene no pipeline, the plan does not fit the pipeline, or the GPU does not have a planned clock.
 */
fl_status fl_plan_lay(const fl_spec *spec, const fl_scene *scene, fl_laid *l, fl_diag *d);
void fl_laid_free(fl_laid *l);

/* Open the scenes that the options ask for: one per kernel trace, one per program, one per workload of the sweep, one
 * for the pipeline and one for the requests; all of them again for each draw. The function resolves a copy of *o first.
 * *scenes must be zeroed; free it also after a failure. */
fl_status fl_scenes_open(const fl_scene_options *o, const fl_texts *traces, fl_scenes *scenes, fl_diag *d);

/* Conversion of a serving file to what the simulator takes, and back. */

enum { FL_SERVING_CLOCKS_TEXT = 2048 };

/* The exponent of Zipf's law that a range over skewed routing of tokens to experts assumes. */
#define FL_SKEW_ASSUMED 1.0

/* Make the step law of a file that was read; free it with fl_step_law_free. FL_BAD_INPUT: the numbers make no law. */
fl_status fl_serving_file_law(const fl_serving *s, fl_step_law *law, fl_diag *d);
/* Make the limits of the scheduler. kv_blocks: overrides the file's value if not 0. FL_BAD_INPUT: both are 0. */
fl_status fl_serving_file_rules(const fl_serving *s, uint64_t kv_blocks, fl_batching_rules *rules, fl_diag *d);
/* Replace the law in *s. After FL_NO_MEMORY the caller still frees *s. */
fl_status fl_serving_file_take(fl_serving *s, const fl_step_law *law, fl_diag *d);

/* Write the statement that every result prints: "clocks were measured on: 900, 1500 and 2100 MHz", or that they were
 * not measured and what is assumed. Return buf. */
char *fl_serving_clocks_text(const fl_step_law *law, char *buf, size_t size);
/* What a law assumes, with its range in time, and in joules per token on a device (NULL: no joules): over even and
 * skewed routing to experts, and over what follows the SM clock where only one was measured. Empty where nothing is
 * assumed. It begins the first line of a result. */
char *fl_serving_assumed_text(const fl_step_law *law, const fl_device *dev, uint32_t token_budget, uint32_t max_seqs,
                              char *buf, size_t size);
/* The same for a scene; empty where it has no server. */
char *fl_scene_assumed_text(const fl_scene *s, char *buf, size_t size);
/* Write "steps of more than N tokens were not measured: ..." if steps within the budget lie beyond the law's table;
 * else "". Return buf. */
char *fl_serving_beyond_text(const fl_step_law *law, uint32_t token_budget, char *buf, size_t size);

/* Parse --map, which maps the columns of a foreign table. spec: "sm_mhz=coreF,time_s=time/1000"
 * (traces/import/import.h), or the name of a .json file with such an object: {"sm_mhz": "coreF", "time_s": "time/1000",
 * "mem_mhz": 877}. The caller frees *m, which is empty after a failure. */
fl_status fl_sweep_map_open(const char *spec, fl_sweep_map *m, fl_diag *d);

/* Texts about scenes: their clocks, and what a result on them rests on. */

/* Write "1200 MHz", or "1200 MHz, memory 810 MHz" for a device with several memory clocks. Return buf. */
char *fl_clocks_text(const fl_device *dev, double sm_mhz, double mem_mhz, char *buf, size_t size);

/* Return true if the joules of this scene come from board data with an assumed power law, and neither from measured
 * rows nor from laws fitted to such rows. */
bool fl_scene_power_assumed(const fl_scene *s);
/* Return true if these clocks were not measured, but other clocks of the same table were: time and power are then
 * interpolated. */
bool fl_scene_interpolated(const fl_scene *s, double sm_mhz, double mem_mhz);
/* Print, as the first line of a result, what the law of servers assumes, with its range, or nothing. */
void fl_scene_assumed(const fl_scenes *scenes, FILE *out);
/* Print notes on what a result rests on (assumed loads, gaps as host time, ignored controls), one line each. */
void fl_scene_notes(const fl_scenes *scenes, FILE *out);
/* Print on stderr, each once, what the formats of the traces lack. */
void fl_scene_warnings(const fl_scenes *scenes);

/* Add the telemetry that lies beside a kernel trace to *run, which was read from path: X.telemetry.csv beside X.csv, as
 * foldline import writes them. Both heads must name the same clock_offset_ns, which shows that they have one clock;
 * otherwise a note says that the telemetry was left out. A run without kernels, or with telemetry of its own, stays. */
fl_status fl_trace_beside(const char *path, fl_imported *run, fl_diag *d);
