/* The effect of a parameter on results: policies of one family whose labels differ in a number. */
#pragma once

#include "harness/report/data/summary.h"

typedef struct fl_study_point {
    double x;          /* the parameter */
    size_t line, item; /* line: index into rest; item: into the summary */
} fl_study_point;

typedef struct fl_study {
    const char *family;
    char name[64];         /* of the parameter */
    fl_study_point *point; /* by line, then by x */
    size_t count;
    fl_names rest; /* the other settings of the labels, as text */
} fl_study;

/* Calls `each` for every family and parameter that takes several values while all else is equal. */
void fl_studies(const fl_summary *s, void (*each)(void *user, const fl_study *t), void *user);
