/* The subjects of advice: workloads from any files that the program reads, as settings that a model knows. */
#pragma once

#include "harness/advise/advise_subject.h"
#include "harness/base/args.h"

typedef struct fl_advise_subjects {
    fl_advise_subject *item;
    size_t count, room;
    char *device; /* name of the GPU, "" where no file gives it; it reveals the vendor */
    int64_t gpu;  /* the GPU that the user named among those of a log; -1 = none */
    char **rests; /* rest_count notes on the basis of the advice */
    size_t rest_count;
    bool several_memories; /* memory clocks may be set too */
} fl_advise_subjects;

/* Reads a sweep; or logs of a program's runs, each at fixed clocks; or a recording of kernels, with or without a log of
 * the same run. FL_BAD_INPUT names what is missing. */
fl_status fl_advise_open(const fl_texts *files, const fl_advise_options *o, fl_advise_subjects *s, fl_diag *d);
void fl_advise_close(fl_advise_subjects *s);
