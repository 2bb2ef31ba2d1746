/* Advice: one clock for a workload, or one policy of an experiment, and how sure that choice is.
 *
 * fl_advise_open reads any files (a sweep, logs, a recording of kernels) into subjects: a workload with every setting
 * that a model knows, once for each assumption. fl_advise chooses the setting of least energy that holds the bound
 * under every assumption. fl_advise_commands_of gives the vendor's commands that set it. fl_advise_experiment chooses a
 * policy.
 *
 * The subjects own their texts until fl_advise_close. FL_BAD_INPUT says what the files lack. A choice that no setting
 * allows is the reference itself, and not an error. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/chip/chip.h"
#include "harness/input/scene/scene.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FL_ADVISE_CASES = 3 };

typedef struct fl_advise_case {
    const char *assume; /* the assumption about the kernels (compute, memory, balanced); NULL: none was necessary */
    fl_stated stated;   /* every setting that a user could set */
} fl_advise_case;

typedef struct fl_advice_interval {
    double value, low, high;
} fl_advice_interval;

/* Savings and slowdowns in percent, relative to the reference. The intervals are two stated standard deviations to
 * either side, over all cases. */
typedef struct fl_advice {
    fl_setting_clocks at;
    fl_advice_interval saving, slowdown;
    double chance; /* the chance that the real bound breaks: the largest over the cases; NAN: no model states how sure
                      its times are */
    bool stated;   /* the intervals include the model's stated error; else only the distance between the cases */
    fl_setting_clocks measure; /* the measurement that would narrow the result most; NAN: none would */
} fl_advice;

/* Choose the setting of least mean energy among those that every case allows (models/chip/chip.h). Settings that a case
 * does not know are ignored; the reference may always be chosen. FL_BAD_INPUT: a case does not know the reference. */
fl_status fl_advise(const fl_advise_case *c, size_t cases, fl_setting_clocks ref, double bound, double risk,
                    fl_advice *out, fl_diag *d);

/* Describe a given setting of a subject instead of choosing one. */
fl_status fl_advise_at(const fl_advise_case *c, size_t cases, fl_setting_clocks ref, fl_setting_clocks at, double bound,
                       fl_advice *out, fl_diag *d);

typedef struct fl_advise_policy {
    char *policy;              /* the policy as the command line writes it; NULL: none holds the bound */
    fl_advice_interval saving; /* percent; mean over workloads and seeds, and its 95 % interval (Student's t) */
    double chance;             /* share of the runs that broke the bound; where no policy holds it, of the best one */
    double worst_slowdown_pct;
    size_t runs, policies;
    double bound; /* the bound: the experiment's, where the caller gave none */
} fl_advise_policy;

/* Choose the policy of an experiment that saves most and holds the bound. bound INFINITY: use the experiment's.
 * FL_BAD_INPUT: the experiment replays distributions, or has no bound either. */
fl_status fl_advise_experiment(const char *path, const char *platform, double bound, double risk, fl_advise_policy *out,
                               fl_diag *d);
void fl_advise_policy_free(fl_advise_policy *p);

/* A run whose clock moved counts with the mean; the clock to set is the highest of those that it moved between. */
typedef struct fl_advise_lock {
    double ran_mhz, set_mhz;
} fl_advise_lock;

/* A workload that advice concerns, and how the user asked for it. */

typedef struct fl_advise_subject {
    char *name;
    fl_advise_case of[FL_ADVISE_CASES];
    bool single;  /* it was measured at one clock: the advice is no recommendation */
    size_t cases; /* 0: nothing is known of other clocks, and why says the reason */
    char *why;
    fl_setting_clocks ref;  /* the reference for savings: the driver's default, else the highest clocks measured */
    bool next_known;        /* false: fl_advice.measure says what to measure */
    fl_setting_clocks next; /* the next measurement; NAN: the answer was measured */
    bool *measured;         /* of each setting of the first case: it was measured; NULL: no law was fitted to a sweep */
    int64_t gpu;            /* the GPU of several in its logs; -1 = none */
    fl_advise_lock *lock;   /* locks of them, of the settings whose clock moved */
    size_t locks;
    char **file, **rests; /* of one program among several: its logs, and notes on them */
    size_t files, rest_count;
} fl_advise_subject;

typedef struct fl_advise_options {
    const char *platform, *kinds;  /* NULL = none */
    const char *board;             /* whose ladder counts where no platform does; NULL = the one that the files name */
    double interval_s;             /* interval of logs without time stamps; 0 = not given */
    int64_t device;                /* device of the logs; -1 = all of them */
    double bound;                  /* on the slowdown: which clock to measure next depends on it */
    const char *clocks, *workload; /* SM clocks of logs that state none; the program of all logs, or the workload of a
                                      sweep; NULL = all, by each file */
} fl_advise_options;

typedef struct fl_advise_subjects {
    fl_advise_subject *item;
    size_t count, room;
    char *device;              /* name of the GPU, "" where no file gives it; it reveals the vendor */
    int64_t gpu;               /* the GPU that the user named; -1 = none */
    char **rests;              /* rest_count notes on the basis of the advice */
    size_t rest_count, doubts; /* the first of the notes: numbers rest on doubtful data */
    char **aside;              /* aside_count logs that were not used, each with the reason */
    size_t aside_count;
    bool several_memories; /* memory clocks may be set too */
    bool folders;          /* the files lie in several folders */
    double own_limit_w;    /* the power limit of the board where none is set; 0 or INFINITY = not known */
} fl_advise_subjects;

/* Add a note that numbers rest on doubtful data, behind those that are there. */
void fl_advise_doubt(fl_advise_subjects *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* True where the note stands among those on what all the advice rests on. */
bool fl_advise_rests(const fl_advise_subjects *s, const char *note);

void fl_advise_close(fl_advise_subjects *s);

/* Choose one setting for all subjects that have an answer: the least energy of all together, among the settings that
 * each of them knows and allows. saving: of all together, percent. FL_BAD_INPUT: there is no such setting. */
fl_status fl_advise_common(const fl_advise_subjects *s, double bound, double risk, fl_setting_clocks *at,
                           double *saving, fl_diag *d);

/* Read a sweep; or logs of runs, each at fixed clocks; or a recording of kernels, with or without a log of the same
 * run. A folder counts as the files in it. Logs of several programs, and several GPUs in a log, give a subject each.
 * FL_BAD_INPUT names what is missing. */
fl_status fl_advise_open(const fl_texts *files, const fl_advise_options *o, fl_advise_subjects *s, fl_diag *d);

/* The commands of a vendor's tool that set a clock on a board and undo that. */

typedef struct fl_advise_commands {
    char set[224], undo[224]; /* "" = no command does it */
    const char *note;         /* what a user must know about them; NULL = nothing */
} fl_advise_commands;

/* Make the commands. gpu: its number as the vendor's tool counts; -1 = not known, then they concern all. device: the
 * board's name; "" = not known, which counts as an NVIDIA board. memory: whether the memory clock is set too. NVIDIA
 * boards can lock clocks from Volta on (nvidia-smi -lgc). Before that, Tesla, Quadro and Titan boards have application
 * clocks
 * (-ac), and GeForce boards have neither (nvidia-smi(1)). */
fl_advise_commands fl_advise_commands_of(const char *device, int64_t gpu, fl_setting_clocks at, bool memory);

/* Add the power limit of a setting. own_w: the board's own limit, which the undo command sets again; 0 or INFINITY =
 * not known. */
void fl_advise_add_limit(fl_advise_commands *c, const char *device, int64_t gpu, double limit_w, double own_w);
