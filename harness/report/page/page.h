/* The page of `foldline report`: a result as one HTML file that needs no other file. Figures, style and script are
 * inline.
 *
 * Read the result with fl_report_read (report/data/data.h), then call fl_report_write. The page appears completely or
 * not at all. Figures need gnuplot; FL_IO if it is missing, unless no_figures is set. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "traces/io/io.h"

#include <stdbool.h>

typedef struct fl_report_options {
    const char *about;     /* the question; NULL = from the record beside the result */
    const char *reference; /* policy with which the others are compared; NULL = the best */
    const fl_texts *timelines;
    const fl_texts *instructions; /* of run --instructions: up to FL_GANTT_PLANS_MAX plans, above each other */
    bool no_figures;              /* only tables: needs no gnuplot */
    fl_bootstrap bootstrap;       /* draws 0 = a number that suits the size of each table */
} fl_report_options;

/* Writes the page to path through a temporary file. */
fl_status fl_report_write(const fl_report_data *r, const fl_report_options *o, const char *path, fl_diag *d);
