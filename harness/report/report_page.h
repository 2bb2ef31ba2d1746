/* A result as one page that needs nothing else: figures inline, style and script within. */
#ifndef FL_REPORT_PAGE_H
#define FL_REPORT_PAGE_H

#include "harness/base/args.h"
#include "harness/report/report_data.h"

typedef struct fl_report_options {
    const char *about;     /* the question; NULL = as the record beside the result says */
    const char *reference; /* policy that the others are held against; NULL = the best */
    const fl_texts *timelines;
    bool no_figures;        /* tables alone: needs no gnuplot */
    fl_bootstrap bootstrap; /* draws 0 = as many as fit the size of each table */
} fl_report_options;

/* Writes the page to path through a temporary file. */
fl_status fl_report_write(const fl_report_data *r, const fl_report_options *o, const char *path, fl_diag *d);

#endif
