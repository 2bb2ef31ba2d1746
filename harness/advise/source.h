/* What the files of one advice contain together, and the advice on each sort of them. For the files of this room. */
#pragma once

#include "harness/advise/subject.h"
#include "harness/chip/log_run.h"
#include "harness/chip/sweep_chip.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/sweep_notes.h"
#include "traces/import/import.h"

typedef struct fl_advise_source { /* the contents of all files together */
    const fl_texts *files;
    const fl_advise_options *o;
    fl_imported kernels; /* one recording */
    const char *kernels_path, *sweep_path;
    fl_log_run *run; /* run_count, one for each log; so are the next two */
    fl_log_ends *ends;
    const char **log;
    const char *run_path;
    char *board; /* its name in the last log; NULL = not known */
    size_t run_count;
    bool amd; /* a tool of AMD wrote one of the files */
} fl_advise_source;

/* Adds a note on what the advice rests on. */
#define FL_ADVISE_REST(s, d, ...) fl_sweep_note(&(s)->rests, &(s)->rest_count, d, __VA_ARGS__)

/* *to: a new subject, until the next one. */
fl_status fl_advise_add(fl_advise_subjects *s, const char *name, fl_advise_subject **to, fl_diag *d);
/* For a platform whose constants alone say how times and powers depend on the clocks; p NULL = none. */
fl_status fl_advise_note_platform(fl_advise_subjects *s, const fl_platform *p, fl_diag *d);

/* In these, the platform may be NULL. Each workload of the rows that c was made of; diagnostics name path. */
fl_status fl_advise_rows(const fl_sweep_chip *c, const char *path, fl_sweep *sweep, const fl_platform *platform,
                         fl_advise_subjects *s, fl_diag *d);
fl_status fl_advise_sweep(const fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d);
/* Logs of one program at several clocks. */
fl_status fl_advise_logs(const fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d);
fl_status fl_advise_one_log(const fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d);
