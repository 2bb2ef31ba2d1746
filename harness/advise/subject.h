/* A workload that advice concerns, and how the user asked for it. */
#pragma once

#include "harness/advise/advise.h"
#include "harness/chip/sweep_chip.h"

typedef struct fl_advise_subject {
    char *name;
    fl_advise_case of[FL_ADVISE_CASES];
    size_t cases;
    fl_setting_clocks ref; /* the reference for savings: the driver's default, else the highest clocks measured */
    fl_chip_next next;     /* known false: fl_advice.measure says what to measure instead */
} fl_advise_subject;

typedef struct fl_advise_options {
    const char *platform, *kinds; /* NULL = none */
    double interval_s;            /* interval of logs without time stamps; 0 = not given */
    int64_t device;               /* device of the logs; -1 = the only one */
} fl_advise_options;

typedef struct fl_advise_subjects {
    fl_advise_subject *item;
    size_t count, room;
    char *device; /* name of the GPU, "" where no file gives it; it reveals the vendor */
    int64_t gpu;  /* the GPU that the user named; -1 = none */
    char **rests; /* rest_count notes on the basis of the advice */
    size_t rest_count;
    bool several_memories; /* memory clocks may be set too */
    double own_limit_w;    /* the power limit of the board where none is set; 0 or INFINITY = not known */
} fl_advise_subjects;

void fl_advise_close(fl_advise_subjects *s);
