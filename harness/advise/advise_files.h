/* What advice can be given on: workloads out of any files that the program reads, as settings that a model knows. */
#ifndef FL_ADVISE_FILES_H
#define FL_ADVISE_FILES_H

#include "harness/advise/advise.h"
#include "harness/base/args.h"

typedef struct fl_advise_subject { /* a workload */
    char *name;
    fl_advise_case of[FL_ADVISE_CASES];
    size_t cases;
    fl_setting_clocks ref; /* what savings are against: the driver's default, else the highest clocks measured */
} fl_advise_subject;

typedef struct fl_advise_subjects {
    fl_advise_subject *item;
    size_t count, room;
    char *device;  /* name of the GPU, "" where nobody says; it tells the vendor */
    char **rests;  /* rest_count: what the advice rests on */
    size_t rest_count;
    bool several_memories; /* memory clocks may be set too */
} fl_advise_subjects;

typedef struct fl_advise_options {
    const char *platform, *kinds; /* NULL = none */
    double interval_s;            /* of logs without time stamps; 0 = not given */
    int64_t device;               /* of logs; -1 = the only one */
} fl_advise_options;

/* A sweep; or logs of a program's runs, each at fixed clocks; or a recording of kernels, with a log of that run or
 * without. FL_BAD_INPUT names what is missing. */
fl_status fl_advise_open(const fl_texts *files, const fl_advise_options *o, fl_advise_subjects *s, fl_diag *d);
void fl_advise_close(fl_advise_subjects *s);

#endif
