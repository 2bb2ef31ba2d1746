/* What a run takes place on: a platform, a workload built for it, the rows of both, and what a policy may know. */
#pragma once

#include "harness/base/cli/args.h"
#include "harness/input/scene/arrivals_spec.h"
#include "harness/input/scene/cache_option.h"
#include "harness/input/platform/facts.h"
#include "harness/input/scene/node_choice.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/rank_option.h"
#include "harness/input/scene/replay_choice.h"
#include "harness/input/scene/serving_scene.h"
#include "harness/input/scene/stated.h"
#include "sim/workload/build.h"
#include "sim/pipeline/pipeline.h"
#include "sim/gpu/rates.h"
#include "traces/pipeline/order.h"
#include "traces/files/programs.h"
#include "traces/open/cache_key.h"

typedef struct fl_scene_options { /* as asked for; NULL and 0 where nobody did */
    const char *platform;
    int64_t gpus;              /* 0 = as many as the platform has, or the trace uses */
    const char *kinds;         /* file; NULL = what the trace names */
    const char *assume;        /* see fl_build_options */
    const char *sweep;         /* file of measured settings; NULL = none */
    const char *programs;      /* programs file (traces/files/programs.h); NULL = none */
    const char *pipeline;      /* a pipeline of training (traces/pipeline/pipeline.h), each rank a GPU; NULL = none */
    fl_texts slow;             /* its ranks that compute slower (harness/input/scene/rank_option.h) */
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
    const char *arrivals;   /* of requests (harness/input/scene/arrivals_spec.h); NULL: each workload is one pass */
    int64_t draws;          /* each scene under so many seeds of sensors, policies and arrivals */
    int64_t draw;           /* which of them; set by fl_scenes_open */
    bool no_cache;          /* nothing is kept beside traces, and what is there is not used (traces/open/trace_open.h) */
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

/* ---- for what makes scenes ---- */

/* Adds an empty scene. fl_scenes_free frees it, also where a later step fails. */
fl_status fl_scene_add(fl_scenes *all, const char *source, fl_scene **s, fl_diag *d);
/* The steps that all scenes share, once the workload and the platform are there: requests, names, ladders, rates and
 * facts. */
fl_status fl_scene_complete(fl_scene *s, const fl_scene_options *o, fl_diag *d);
/* Gives the workload the requests that --arrivals asks for. */
fl_status fl_scene_serve(fl_scene *s, const fl_scene_options *o, fl_diag *d);
/* True where `only` lists the name, or lists nothing. */
bool fl_scene_wanted(const fl_texts *only, const char *name);
/* FL_BAD_INPUT where `only` lists a name that is none of names[index[0..count)]. */
fl_status fl_scene_check_wanted(const fl_texts *only, const char *path, char *const *names, const uint32_t *index,
                                size_t count, fl_diag *d);
/* One user less; the last one frees the set. NULL: nothing to do. */
void fl_program_set_leave(fl_program_set *set);

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
/* clang-format on */
