/* What a run takes place on: a platform, a workload built for it, the rows of both, and what a policy may know. */
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

/* How sure a fitted model is of a workload at each setting, and what follows for who chooses one by it
 * (models/chip/chip.h). */

typedef struct fl_setting_clocks {
    double sm_mhz, mem_mhz;
    double limit_w; /* the power limit that was set with the clocks; 0 = none: the board's own holds */
} fl_setting_clocks;

typedef struct fl_stated {
    fl_setting_clocks *at; /* count settings, ascending by memory clock, SM clock, limit (none comes last) */
    fl_chip_guess *guess;  /* theirs: the workload's kernels one after the other */
    size_t count;          /* 0: the model states nothing */
    bool fitted;           /* by a fit, not by columns of the sweep */
} fl_stated;

/* Of a workload's rows, its kernels added up: their errors are taken to go together, as one chip's do. Settings that
 * some kernel was not measured or predicted at, and those outside [sm_min, sm_max] MHz, are left out. Of rows that were
 * not predicted just now it is empty where none states a deviation. mem_mhz: of rows that name no memory clock. Rows
 * under the workload's highest power limit, and rows that name none, are at the board's own limit. */
fl_status fl_stated_make(const fl_sweep *s, uint32_t workload, bool predicted, double sm_min, double sm_max,
                         double mem_mhz, fl_stated *out, fl_diag *d);
void fl_stated_free(fl_stated *s);

/* The clocks of its settings, count of them, which the caller frees; NULL: out of memory. */
fl_chip_row *fl_stated_rows(const fl_stated *s);

bool fl_stated_same(fl_setting_clocks a, fl_setting_clocks b);

/* At a setting, between the nearest SM clocks under the same limit by a line (the greater deviations of the two); false
 * outside them. */
bool fl_stated_at(const fl_stated *s, fl_setting_clocks at, fl_chip_guess *out);

/* Of a chosen setting against the reference (the driver's default): the chance that the real slowdown exceeds the
 * bound, and the regret to expect in power x time^delay, a share. NAN where the model states nothing there. */
double fl_stated_chance(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound);
double fl_stated_regret(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound,
                        double delay);

/* Arrivals as a text: "poisson:rate=20,count=500,seed=1" or the path of a list (traces/serving/serving.h).
 *
 * rate: requests per second. count, or seconds=S for rate x S of them, rounded: the same work under every seed. seed:
 * the run's where there is none. */

typedef struct fl_arrivals_spec {
    const char *file; /* borrowed; NULL: drawn */
    double per_s;
    size_t count;
    uint64_t seed; /* 0: the run's */
} fl_arrivals_spec;

#define FL_ARRIVALS_HELP                                                                                               \
    "requests over the workload, each one pass: a list (t_ns), or poisson:rate=R,count=N,seed=S (count or seconds)"

fl_status fl_arrivals_spec_parse(const char *text, fl_arrivals_spec *spec, fl_diag *d);

/* --no-cache: nothing is kept beside big traces, and what is there is not used (traces/open/open.h). */

/* clang-format off */
#define FL_CACHE_OPTION(into)                                                                                          \
    {"no-cache", NULL, FL_OPTION_FLAG, into, 0, 0,                                                                     \
     "neither writes nor uses the FILE.foldline-cache beside big traces"}

/* Which parts of a node are simulated, and how: what a user may switch on, off or make ideal to see what it does. */

typedef struct fl_node_choice {
    const char *wall;     /* "real", "ideal" or "off"; NULL = real */
    bool heat;            /* heat is off unless asked for: it makes time matter */
    bool no_contention;   /* no interference between kernels that share the bandwidth */
    bool no_cpu;          /* host time as recorded, no CPU power */
    bool no_gating;       /* an idle GPU keeps its power */
    int64_t units;        /* seed of the variation between units; 0 = all alike */
    const char *hosts;    /* FL_HOSTS_ONE or FL_HOSTS_PER_GPU; NULL = one */
    const char *records;  /* "cost", "free" or "both"; NULL = cost */
    const char *actuator; /* from a call that sets a clock until it is in force, "20ms" or "0"; NULL = the platform's */
    double gpu_budget_w;  /* of all GPUs together; 0 = the platform's */
    double cpu_power;     /* CPU power by this factor; 0 = 1 */
    double bus_share;     /* an APU's bus reaches this share of its peak; 0 = as the platform says */
    double bus_spread;    /* and this share of the peak less or more, anew each period; 0 = no wider */
} fl_node_choice;

#define FL_RECORDS_BOTH "both"
#define FL_HOSTS_ONE "one"
#define FL_HOSTS_PER_GPU "per-gpu"

/* Applies it to a platform's node. The devices of a varied node are its GPUs' own. FL_BAD_INPUT for an unknown word, or
 * a part that the platform does not describe. */
fl_status fl_node_choose(fl_node_spec *node, const fl_node_choice *c, fl_diag *d);

/* Fills what *c leaves open from *rest. */
void fl_node_choice_merge(fl_node_choice *c, const fl_node_choice *rest);
/* The keys of an experiment that was checked (harness/input/experiment/experiment.h); what is set already stays. */
fl_status fl_node_choice_read(const fl_json *root, fl_node_choice *c, fl_diag *d);

/* clang-format off */
#define FL_NODE_OPTIONS(c)                                                                                             \
    {"wall", "HOW", FL_OPTION_TEXT, &(c).wall, 0, 0, "power wall: real, ideal or off (real)"},                         \
    {"heat", NULL, FL_OPTION_FLAG, &(c).heat, 0, 0, "simulates heat: temperature, leakage, thermal limit"},            \
    {"no-interference", NULL, FL_OPTION_FLAG, &(c).no_contention, 0, 0,                                                \
     "kernels that share the bandwidth lose nothing by it"},                                                           \
    {"no-cpu", NULL, FL_OPTION_FLAG, &(c).no_cpu, 0, 0, "leaves the host CPU out"},                                    \
    {"no-gating", NULL, FL_OPTION_FLAG, &(c).no_gating, 0, 0, "an idle GPU is never power-gated"},                     \
    {"units", "SEED", FL_OPTION_INT, &(c).units, 1, 9e15, "makes the GPUs differ, as units of one model do"},          \
    {"records", "HOW", FL_OPTION_TEXT, &(c).records, 0, 0,                                                             \
     "kernel records: cost (they take time, as the platform states), free, or both (to compare) (cost)"},              \
    {"cpu-power-scale", "X", FL_OPTION_REAL, &(c).cpu_power, 0.01, 100, "multiplies the CPU's power"},                 \
    {"bus-share", "X", FL_OPTION_REAL, &(c).bus_share, 0.01, 1, "share of its peak that an APU's bus reaches"},        \
    {"bus-spread", "X", FL_OPTION_REAL, &(c).bus_spread, 0, 0.5, "by how much of the peak that share varies"},         \
    {"actuator", "TIME", FL_OPTION_TEXT, &(c).actuator, 0, 0,                                                          \
     "time from setting a GPU's clock until it takes effect, such as 20ms, or 0"},                                     \
    {"setting-hosts", "HOW", FL_OPTION_TEXT, &(c).hosts, 0, 0,                                                         \
     "who reads and sets the GPUs: one process, all in turn, or per-gpu (one; of a pipeline per-gpu)"},                \
    {"gpu-budget", "W", FL_OPTION_REAL, &(c).gpu_budget_w, 1, 1e7, "power budget of all GPUs, divided into limits"}

/* Options that say something of one rank of a pipeline: rank=R:X. */

/* "rank=R:X", the X above 0; `what` is the option, for diagnostics. */
fl_status fl_rank_value_parse(const char *what, const char *text, uint32_t *rank, double *value, fl_diag *d);

#define FL_SLOW_HELP "makes rank R of the pipeline compute X times as long (may be repeated)"

/* Each text of --slow: a rank that computes slower (sim/pipeline/pipeline.h). *p is replaced. */
fl_status fl_pipeline_slow_down(fl_pipeline *p, const fl_texts *slow, fl_diag *d);

/* How the workloads of a sweep are replayed, as far as a user may choose: a table of times and powers says neither how
 * alike the parts of a program are nor where its iterations end. */

typedef struct fl_replay_choice { /* as asked for; NULL and 0 where nobody did */
    const char *jitter;           /* a share as people write it (harness/base/cli/cli.h); NULL = 0 */
    double iteration_s;           /* 0 = no markers */
} fl_replay_choice;

/* Fills jitter and iteration_ns of *out. FL_BAD_INPUT where the jitter is no share from 0 to 1. */
fl_status fl_replay_choose(const fl_replay_choice *c, fl_sweep_replay *out, fl_diag *d);
/* True where the work is drawn: other seeds are other scenes. */
bool fl_replay_drawn(const fl_replay_choice *c);
/* Fills what *c leaves open from *rest. */
void fl_replay_merge(fl_replay_choice *c, const fl_replay_choice *rest);

/* clang-format off */
#define FL_REPLAY_OPTIONS(c)                                                                                           \
    {"jitter", "SHARE", FL_OPTION_TEXT, &(c).jitter, 0, 0,                                                             \
     "of a sweep: how much its ops vary, 0.05 or 5%, drawn from the seed (0)"},                                        \
    {"iteration", "S", FL_OPTION_REAL, &(c).iteration_s, 1e-3, 1e6,                                                    \
     "of a sweep: puts an iteration marker about every S seconds of work at the highest clock (none)"}

/* What a user asks of servers of a language model: which server, which requests, how many of both, and the latencies
 * that are to be held. On the command line and, under the same names, in an experiment and its variants. */

typedef struct fl_serving_choice { /* as asked for; NULL and 0 where nobody did */
    const char *server;            /* a file that states a server (traces/serving/serving.h); NULL = nothing is served */
    const char *requests;          /* a request trace (traces/serving/serving.h) */
    double scale;                  /* of the rate of arrivals; 0 = 1 */
    int64_t servers;               /* 0 = 1 */
    int64_t kv_blocks;             /* of each; 0 = as the server's file says */
    int64_t token_budget;          /* of a step of each, likewise */
    const char *route;             /* NULL = round-robin */
    const char *ttft, *tbt;        /* targets, as "2s" and "100ms"; NULL = none */
    double target_share;           /* of tokens that are to meet them; 0 = FL_TARGET_SHARE */
} fl_serving_choice;

#define FL_TARGET_SHARE 0.99

/* True where anything was asked for. */
bool fl_serving_choice_any(const fl_serving_choice *c);

/* Fills what *c leaves open from *rest. */
void fl_serving_choice_merge(fl_serving_choice *c, const fl_serving_choice *rest);
/* The keys of an experiment or a variant that was checked (FL_SERVING_ROWS), save the two files; what is set already
 * stays. Texts live as long as the tree. */
fl_status fl_serving_choice_read(const fl_json *root, fl_serving_choice *c, fl_diag *d);

/* clang-format off */
#define FL_SERVING_OPTIONS(c)                                                                                          \
    {"serving", "FILE", FL_OPTION_TEXT, &(c).server, 0, 0,                                                             \
     "a server of a language model, which answers --requests in batches (foldline fit serving makes it)"},             \
    {"requests", "FILE", FL_OPTION_TEXT, &(c).requests, 0, 0, "what is asked of it, and when (foldline-requests)"},    \
    {"scale", "X", FL_OPTION_REAL, &(c).scale, 1e-6, 1e6, "requests arrive so many times as fast (1)"},                \
    {"servers", "N", FL_OPTION_INT, &(c).servers, 1, 1024, "so many servers, each with GPUs of its own (1)"},          \
    {"kv-blocks", "N", FL_OPTION_INT, &(c).kv_blocks, 1, 1e12,                                                         \
     "KV blocks that requests of a server can use (as its file says)"},                                                \
    {"token-budget", "N", FL_OPTION_INT, &(c).token_budget, 1, 1e9,                                                    \
     "tokens of one step of a server, at most (as its file says)"},                                                    \
    {"route", "HOW", FL_OPTION_TEXT, &(c).route, 0, 0,                                                                 \
     "which server gets a request: round-robin or least-loaded (round-robin)"},                                        \
    {"ttft", "TIME", FL_OPTION_TEXT, &(c).ttft, 0, 0, "target of the time to first token, such as 2s (none)"},         \
    {"tbt", "TIME", FL_OPTION_TEXT, &(c).tbt, 0, 0, "target of the time between tokens, such as 100ms (none)"},        \
    {"target-share", "X", FL_OPTION_REAL, &(c).target_share, 1e-6, 1,                                                  \
     "of all tokens that are to meet the targets (" FL_AS_TEXT(FL_TARGET_SHARE) ")"}

/* Servers of a language model and what is asked of them, read from their files: what a workload that serves borrows, so
 * that it lives as long as the scene. */

typedef struct fl_serving_scene {
    char *path;        /* of the serving file */
    fl_serving stated; /* what it says */
    fl_step_law law;   /* made of it, for the servers, which are alike */
    fl_requests requests;
    uint32_t *gpu; /* of all servers, one server after the other */
    fl_serving_server *server;
    fl_server_facts *facts; /* for policies: setup.server_count */
    fl_serving_setup setup; /* points into this struct, which is not to be moved */
} fl_serving_scene;

/* What every result says of the law: at which clocks it was measured, or that it was not, of which GPU, from what, and
 * how wrong it is; into buf. Returns buf. */
char *fl_serving_scene_clocks(const fl_serving_scene *s, char *buf, size_t size);

typedef struct fl_scene_options { /* as asked for; NULL and 0 where nobody did */
    const char *platform;
    int64_t gpus;              /* 0 = as many as the platform has, or the trace uses */
    const char *kinds;         /* file; NULL = what the trace names */
    const char *assume;        /* see fl_build_options */
    const char *sweep;         /* file of measured settings; NULL = none */
    const char *programs;      /* programs file (traces/files/files.h); NULL = none */
    const char *pipeline;      /* a pipeline of training (traces/pipeline/pipeline.h), each rank a GPU; NULL = none */
    fl_texts slow;             /* its ranks that compute slower (harness/input/scene/scene.h) */
    fl_serving_choice serving; /* servers of a language model and what is asked of them */
    int64_t applications;      /* drawn ones beside those of fl_synth_apps, which are then the programs; 0 = no such */
    int64_t application_seed;
    double seconds;          /* about how long each program lasts; 0 = as its file says */
    fl_texts only;           /* workloads of the sweep or programs; none = all */
    const char *model;       /* of a sweep: "table" or "fitted" */
    int64_t repeat;          /* of a sweep's workloads, or iterations of a pipeline */
    fl_replay_choice replay; /* of a sweep's workloads */
    int64_t windows;         /* of work */
    int64_t seed;
    const char *arrivals;   /* of requests (harness/input/scene/scene.h); NULL: each workload is one pass */
    int64_t draws;          /* each scene under so many seeds of sensors, policies and arrivals */
    int64_t draw;           /* which of them; set by fl_scenes_open */
    bool no_cache;          /* nothing is kept beside traces, and what is there is not used (traces/open/open.h) */
    const char *variant;    /* added to the names of the workloads; NULL = nothing */
    fl_node_choice node;    /* which parts of the node are simulated, and how */
    fl_stated_facts stated; /* what policies are told of each program; a comparison tells its bound itself */
    enum {
        FL_SCENES_AT_ONCE, /* built when opened, and held */
        FL_SCENES_COUNTED, /* built when opened; big ones are given back, and fl_scene_build builds each in its turn */
        FL_SCENES_IN_TURN  /* the same, but of a long program only a short form is built first, to see that it can be */
    } hold;                /* of traces and programs; the texts of the options must then live as long as the scenes */
} fl_scene_options;

#define FL_MODEL_STANDARD "table"
#define FL_REPEAT_STANDARD 1
#define FL_WINDOWS_STANDARD 20
#define FL_SEED_STANDARD 1

/* Gives model, repeat, windows, seed and draws their standard where nobody asked for another: the command line first,
 * then an experiment (fl_experiment_apply). */
void fl_scene_resolve(fl_scene_options *o);

/* FL_BAD_INPUT where an option is given of what no scene of these would be made of: it would do nothing. Before
 * fl_scene_resolve. */
fl_status fl_scene_check(const fl_scene_options *o, const fl_texts *traces, fl_diag *d);

/* The programs of a file, or those that were drawn: shared by their scenes, freed with the last. */
typedef struct fl_program_set {
    fl_programs p;
    fl_kinds kinds;
    char *kinds_path; /* of the file that the kinds were read from; NULL: they were drawn, or there are none */
    bool has_kinds;
    size_t users;
} fl_program_set;

struct fl_scene_again {
    fl_scene_options o;
    fl_program_set *set; /* NULL: a trace */
    size_t index;        /* of the program */
    fl_kinds kinds;      /* of a trace: read once, for the file may change, or be a pipe */
    bool has_kinds;
    fl_cache_key key; /* of a trace: of the bytes that were read */
};

typedef struct fl_scene {
    char *source;              /* path of the trace, programs, sweep, pipeline or requests */
    char *kinds;               /* path of its kinds file; NULL = none */
    char *order;               /* path of a pipeline's list of instructions; NULL = none */
    char *asked;               /* platform as it was asked for */
    fl_node_choice node;       /* texts borrowed from the options */
    fl_serving_scene *serving; /* servers and their requests; NULL = none */
    double jitter;             /* of a sweep's workload: how much its ops vary */
    int64_t iteration_ns;      /* and work between its markers; 0 = none */
    int64_t repeat;            /* and how often it runs, or iterations of a pipeline; 0 of others */
    char *slow;                /* of a pipeline: --slow, joined by blanks; NULL = none */
    char *variant;             /* of the node, see fl_scene_options; NULL = plain */
    char *arrivals;            /* as asked for, NULL = none */
    char *applications;        /* seed of drawn applications; NULL: they are not drawn */
    uint64_t draw;             /* which of the options' draws: 0, 1, ... */
    bool clipped;              /* the ladders were cut to what was measured */
    char **note;               /* note_count: what the trace's format does not carry and was assumed, or left out */
    size_t note_count;
    fl_platform platform;
    fl_workload *w;
    fl_stated stated;     /* how sure a fitted model is of w; empty where nothing states it */
    fl_pipeline pipeline; /* of a pipeline; no ranks: it is none */
    fl_pipeline_order instructions;
    fl_pipeline_op *op; /* and what each op of the workload is, stream by stream; NULL of others */
    fl_rates *rates;    /* NULL while the scene is not built */
    fl_facts facts;
    struct fl_scene_again *again; /* how to build it anew; NULL: it is held */
} fl_scene;

typedef struct fl_scenes {
    fl_scene **item; /* each its own allocation: rates and facts point into it */
    size_t count, room;
    size_t clipped; /* scenes whose ladder was cut to the clocks that were measured */
} fl_scenes;

void fl_scenes_free(fl_scenes *s);
/* Gives back what only runs need of the scenes from `first` on; what they are stays. */
void fl_scenes_forget(fl_scenes *s, size_t first);
/* Gives back what only runs need of a scene that can be built anew; leaves others alone. */
void fl_scene_give_back(fl_scene *s);
/* FL_BAD_INPUT where an output among the options is a file that a scene was read from: trace, kinds, platform. */
fl_status fl_scenes_spare(const fl_scenes *s, const fl_option *option, size_t count, fl_diag *d);
/* Moves the scenes of `more` behind those of `all`. */
fl_status fl_scenes_append(fl_scenes *all, fl_scenes *more, fl_diag *d);

/* Cuts every ladder of the node to [min, max] MHz and to one memory clock (0 = leaves them). True if anything was cut.
 */
bool fl_node_clip(fl_node_spec *n, double sm_min, double sm_max, double mem_mhz);

/* The options that all commands with a scene share, for their tables of options. */
/* clang-format off */
#define FL_SCENE_OPTIONS(o)                                                                                            \
    {"platform", "NAME", FL_OPTION_TEXT, &(o).platform, 0, 0,                                                          \
     "platform, or a path to its file (see foldline platforms)"},                                                      \
    {"gpus", "N", FL_OPTION_INT, &(o).gpus, 1, 1024, "number of GPUs, instead of the platform's own"},                 \
    {"kinds", "FILE", FL_OPTION_TEXT, &(o).kinds, 0, 0, "how kinds of kernels depend on clocks"},                      \
    {"assume", "HOW", FL_OPTION_TEXT, &(o).assume, 0, 0, "bottleneck of unknown kinds: compute, memory or balanced"},  \
    {"sweep", "FILE", FL_OPTION_TEXT, &(o).sweep, 0, 0, "measured settings; each of its workloads is replayed"},       \
    {"programs", "FILE", FL_OPTION_TEXT, &(o).programs, 0, 0, "programs made of kinds of kernels; each is replayed"},  \
    {"pipeline", "FILE", FL_OPTION_TEXT, &(o).pipeline, 0, 0,                                                          \
     "pipeline-parallel training: each rank is a GPU, which draws power while it waits"},                              \
    {"slow", "rank=R:X", FL_OPTION_LIST, &(o).slow, 0, 0, FL_SLOW_HELP},                                               \
    {"seconds", "S", FL_OPTION_REAL, &(o).seconds, 1e-3, 1e7,                                                          \
     "approximate length of each program (as its file says)"},                                                         \
    {"workload", "NAME", FL_OPTION_LIST, &(o).only, 0, 0,                                                              \
     "only this workload of the sweep or programs (may be repeated)"},                                                 \
    {"model", "KIND", FL_OPTION_TEXT, &(o).model, 0, 0,                                                                \
     "model of a sweep: table (interpolated) or fitted (" FL_MODEL_STANDARD ")"},                                      \
    {"repeat", "N", FL_OPTION_INT, &(o).repeat, 1, 1e6,                                                                \
     "runs of each workload of the sweep, or iterations of the pipeline (" FL_AS_TEXT(FL_REPEAT_STANDARD) ")"},        \
    FL_REPLAY_OPTIONS((o).replay),                                                                                     \
    {"arrivals", "SPEC", FL_OPTION_TEXT, &(o).arrivals, 0, 0, FL_ARRIVALS_HELP},                                       \
    FL_NODE_OPTIONS((o).node),                                                                                         \
    FL_CACHE_OPTION(&(o).no_cache),                                                                                    \
    {"seed", "N", FL_OPTION_INT, &(o).seed, 1, 9e15,                                                                   \
     "seed of sensors and policies (" FL_AS_TEXT(FL_SEED_STANDARD) ")"}

/* What a reader of a result should know of the measured rows that it stands on. */

/* Appends one. */
fl_status fl_sweep_note(char ***note, size_t *count, fl_diag *d, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Faults as they are asked for on the command line: TYPE, or TYPE:key=value,key=value.
 *
 *   drop:gpu=0,signal=power_w,from_s=1,for_s=2     the signal is missing
 *   freeze:gpu=all,signal=energy_j,from_s=1        it holds its value and is never fresh
 *   refuse:gpu=0,control=sm_mhz,until_s=5          sets of the control fail
 *   lost:gpu=1,from_s=3                            the GPU is gone, for good
 *   drop:gpu=host,signal=cpu_uops
 *   freeze:server=0,signal=waiting,from_s=5        a server of --serving tells nothing new
 *
 * gpu: an index, all or host. server: an index or all; it takes drop and freeze only. Both left out: all GPUs, or the
 * host or all servers where the signal or control is one of theirs; lost must say which GPU. signal, control: a name of
 * the contract or all (the default). from_s: 0 by default. for_s or until_s: for ever by default. Times are seconds of
 * the host's time. */

#define FL_FAULT_SPEC_HELP                                                                                             \
    "drop, freeze, refuse or lost, then :gpu=,server=,signal=,control=,from_s=,for_s=,until_s= (may be repeated)"

/* All of them: *out has texts->count faults, for the caller to free(). NULL after a failure, or where there are none.
 */
fl_status fl_fault_specs_parse(const fl_texts *texts, fl_fault **out, fl_diag *d);

/* Scenes of kernels: of a trace, or of what a program expands to; and how a scene is built again. */

/* Builds a scene that was given back, as it was; nothing where it is built. Any number of scenes at once. FL_BAD_INPUT
 * where its trace is no longer the one that was read first: what was said of it would be said of another. */
fl_status fl_scene_build(fl_scene *s, fl_diag *d);
/* The kinds file of a trace: as given; as the head names it, relative to the trace; or TRACE.kinds.csv beside
 * TRACE.csv. The caller frees it. NULL: there is none. */
char *fl_scene_kinds_path(const char *given, const char *trace, const fl_head *head);

/* --path: a test of the simulator forces one of its ways of advancing (sim/base/base.h). */

/* clang-format off */
#define FL_PATH_OPTION(into)                                                                                           \
    {"path", "NAME", FL_OPTION_TEXT, into, 0, 0,                                                                       \
     "for tests: plain, vector, prefix, events or launches is how to advance; results do not depend on it (auto)"}

/* Forces what --path says; nothing where it was not given (NULL). FL_BAD_INPUT for an unknown name. */
fl_status fl_path_option_use(const char *name, fl_diag *d);
/* With --path: on stderr, how often each path was taken. */
void fl_path_option_tell(const char *name);

/* A plan by instruction becomes the table of a policy: in the order in which each rank of a scene's pipeline comes to
 * its instructions. */

typedef struct fl_laid {
    fl_layer layer; /* one table, over the spec's own layer; empty where the spec has no plan */
    fl_setting setting;
    fl_table table;
} fl_laid;

/* Fills *l, which is to be freed and stay where it is while its layer is in use, for a spec on a scene. NULL for the
 * scene: where nothing has a pipeline. FL_BAD_INPUT where there is none to lay the plan out, where the plan does not
 * fit it, and where it asks for a clock that the GPU does not have; at the plan's line where one is to blame. */
fl_status fl_plan_lay(const fl_spec *spec, const fl_scene *scene, fl_laid *l, fl_diag *d);
void fl_laid_free(fl_laid *l);

/* Opens the scenes that the options ask for, of every kind of workload. */

/* One scene per kernel trace, one per program, one per workload of the sweep, one of the pipeline and one of the
 * requests; all of them again for each draw. Resolves a copy of *o first. */
fl_status fl_scenes_open(const fl_scene_options *o, const fl_texts *traces, fl_scenes *scenes, fl_diag *d);

/* From a serving file to what the simulator takes, and back. */

enum { FL_SERVING_CLOCKS_TEXT = 1024 };

/* The law of a file that was read; fl_step_law_free frees it. FL_BAD_INPUT where the numbers are no law. */
fl_status fl_serving_file_law(const fl_serving *s, fl_step_law *law, fl_diag *d);
/* The limits of its scheduler. kv_blocks: in place of the file's where not 0; where both are 0, FL_BAD_INPUT. */
fl_status fl_serving_file_rules(const fl_serving *s, uint64_t kv_blocks, fl_batching_rules *rules, fl_diag *d);
/* Puts a law into *s, in place of what it holds of one. FL_NO_MEMORY: *s is still to be freed. */
fl_status fl_serving_file_take(fl_serving *s, const fl_step_law *law, fl_diag *d);

/* What every result has to say: "clocks were measured on: 900, 1500 and 2100 MHz", or that they were not, and what is
 * assumed then. Writes into buf and returns it. */
char *fl_serving_clocks_text(const fl_step_law *law, char *buf, size_t size);
/* "steps of more than N tokens were not measured: ..." where steps within the budget lie beyond the law's table; else
 * "". Returns buf. */
char *fl_serving_beyond_text(const fl_step_law *law, uint32_t token_budget, char *buf, size_t size);

/* What --map says: a text, or a JSON file. */

/* spec: "sm_mhz=coreF,time_s=time/1000" (traces/import/import.h), or the name of a file that ends in .json and holds the
 * same as an object: {"sm_mhz": "coreF", "time_s": "time/1000", "mem_mhz": 877}. *m is left empty on failure; the
 * caller frees it. */
fl_status fl_sweep_map_open(const char *spec, fl_sweep_map *m, fl_diag *d);

/* What is told of scenes in plain words: their clocks, and what a result on them stands on. */

/* "1200 MHz", or "1200 MHz, memory 810 MHz" where the device has several memory clocks; into buf. Returns buf. */
char *fl_clocks_text(const fl_device *dev, double sm_mhz, double mem_mhz, char *buf, size_t size);

/* Whether joules of this scene come from a platform's law of power that nobody measured: it is neither a table of rows
 * nor laws fitted to them. */
bool fl_scene_power_assumed(const fl_scene *s);
/* Whether nobody measured the clocks, but others of the same table: time and power there are interpolated. */
bool fl_scene_interpolated(const fl_scene *s, double sm_mhz, double mem_mhz);
/* Notes on what a result stands on (assumed loads, gaps as host time, ignored controls), one line each, to out. */
void fl_scene_notes(const fl_scenes *scenes, FILE *out);
/* On stderr, each once: what the formats of the traces do not carry. */
void fl_scene_warnings(const fl_scenes *scenes);

/* Telemetry that lies beside a kernel trace: X.telemetry.csv of X.csv, as foldline import writes the two. */

/* Adds it to *run, read from path, where it is there and both heads name the same clock_offset_ns: then both are of one
 * import, and on one clock. Where it is there and they do not, a note says that it was left out. Nothing happens to a
 * run without kernels, or that has telemetry. */
fl_status fl_trace_beside(const char *path, fl_imported *run, fl_diag *d);
