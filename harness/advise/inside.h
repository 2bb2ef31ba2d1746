/* What the files of harness/advise share. Other modules include the public header alone. */
#pragma once

#include "harness/advise/advise.h"
#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* A recording of kernels at every clock: simulated at each, once for each assumption about how its kernels depend on
 * the clocks, where that is not known. */

/* Fills to->of and to->ref. run: the log of the same run, or NULL; its power scales the model's. *assumed: whether the
 * kinds had to be assumed. */
fl_status fl_advise_kernels(const char *path, const fl_kernel_trace *t, const fl_log_run *run,
                            const fl_advise_options *o, fl_advise_subject *to, bool *assumed, fl_diag *d);

/* A log of one run at one clock, extended to other clocks on a platform of which only constants are known. */

/* Fills to->of and to->ref. Times follow from three assumptions about how kernels depend on clocks. Powers follow from
 * the run's own power where that tells any (p->tells), else from the platform's laws, scaled to meet it. */
fl_status fl_advise_log(const char *path, const fl_log_run *run, const fl_advise_options *o, fl_advise_subject *to,
                        fl_one_probe *p, fl_diag *d);

/* True if the measured board certainly is of one vendor, and the other board is not. */
bool fl_advise_other_vendor(const char *measured, const char *device);

/* True if both names certainly state a model, and different ones: "NVIDIA GeForce RTX 5090" and "A100-SXM4-80GB". */
bool fl_advise_other_model(const char *measured, const char *device);

/* The contents of all files of one advice, and the advice on each sort of file. */

typedef struct fl_advise_ran { /* one GPU in a log: one run of a program */
    const char *path;          /* borrowed */
    char *program;             /* with the GPU where the log has several */
    int64_t gpu;               /* that GPU; -1 = the log has one */
    char *board;               /* NULL = not known */
    fl_log_run run;
    fl_log_ends ends;
    char *aside;  /* why it is not used; NULL = it is */
    int64_t line; /* of the reason; 0 = none */
} fl_advise_ran;

typedef struct fl_advise_source {
    const fl_texts *files;
    const fl_advise_options *o;
    fl_imported kernels; /* one recording */
    const char *kernels_path, *sweep_path;
    fl_advise_ran *ran;
    size_t ran_count, ran_room;
    bool folders; /* the files lie in several folders, whose names then tell programs apart */
    bool amd;     /* a tool of AMD wrote one of the files */
} fl_advise_source;

/* Adds a note on what the advice rests on. */
#define FL_ADVISE_REST(s, ...) fl_must_have(!fl_sweep_note(&(s)->rests, &(s)->rest_count, NULL, __VA_ARGS__))

/* Free the subjects behind the first `count`. */
void fl_advise_drop(fl_advise_subjects *s, size_t count);
/* Returns a new subject, which is valid until the next one is added. */
fl_advise_subject *fl_advise_add(fl_advise_subjects *s, const char *name);
/* For a platform whose constants alone say how times and powers depend on the clocks; p NULL = none. */
void fl_advise_note_platform(fl_advise_subjects *s, const fl_platform *p);

/* In these, the platform may be NULL. Each workload of the rows that c was made of; diagnostics name path. gpu: the
 * name of the GPU that was measured; NULL = not known. */
fl_status fl_advise_rows(const fl_sweep_chip *c, const char *path, const char *gpu, fl_sweep *sweep,
                         const fl_platform *platform, const fl_advise_options *o, fl_advise_subjects *s, fl_diag *d);
/* Make a device of the clocks that a user may set on the GPU that was measured: those of the board where it is given or
 * the GPU's name tells it, else steps of 15 MHz, from half of the lowest measured clock to the highest, and the
 * measured ones. gpu: the name, "" = not known. *from: "board a30", NULL: steps. The caller frees *from and dev's
 * ladders. */
fl_status fl_advise_ladder(const fl_sweep_chip *c, const char *board, const char *gpu, fl_device *dev, char **from,
                           fl_diag *d);
/* Find the next clock to measure (fl_two_laws_next), by the measured settings of the subject. */
void fl_advise_next(const fl_device *dev, double bound, fl_advise_subject *to);
fl_status fl_advise_sweep(const fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d);
/* Return the clock that tells most of a program that ran at one: about 70 % of the top clock, or the top clock. dev
 * NULL: the ladder is not known, and top_mhz is the highest clock that any log shows. */
fl_setting_clocks fl_advise_to_measure(const fl_log_run *run, double top_mhz, const fl_device *dev);
/* Returns a new subject of which nothing is known at other clocks, and why. */
fl_advise_subject *fl_advise_add_unknown(fl_advise_subjects *s, const char *name, const char *why,
                                         fl_setting_clocks next);

typedef struct fl_advise_idle { /* of all logs: how many, and how many idle before and after the run */
    size_t count, before, after;
} fl_advise_idle;

/* Set aside what is no whole run of equal work (aside tells why), among count runs of one program. */
void fl_advise_judge(fl_advise_ran **r, size_t count, const fl_advise_idle *all);
/* All logs: one program, or a subject for each. Names the programs by o->workload where that is set. */
fl_status fl_advise_logs(fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d);
