/* What the files of harness/report/page share. Other modules include the public header alone. */
#pragma once

#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdio.h>

/* The figures of a report, each a <figure> with a caption and a text for readers who cannot see it. They are the
 * pictures of `foldline plot`, drawn by the same scripts at the page's sizes (harness/report/picture/picture.h). A
 * figure without data is left out. */

typedef struct fl_figures {
    FILE *f;           /* the page */
    const char *input; /* the result, for diagnostics */
    bool off;          /* no figure at all */
    size_t drawn;      /* figures drawn so far */
} fl_figures;

/* The first figure of a scope, as wide as the page; a phone shows another drawing of it. */
fl_status fl_figure_pareto(fl_figures *g, const fl_summary *s, const fl_looks *looks, fl_diag *d);
/* The ranking quantity of the policies, and their mean ranks, as rows. */
fl_status fl_figure_merit(fl_figures *g, const fl_summary *s, const fl_looks *looks, fl_diag *d);
fl_status fl_figure_ranks(fl_figures *g, const fl_summary *s, const fl_looks *looks, fl_diag *d);
fl_status fl_figure_regret(fl_figures *g, const fl_summary *s, fl_diag *d);
/* For each family whose labels differ in a number: saving and slowdown over that parameter; with a heading. */
fl_status fl_figures_sensitivity(fl_figures *g, const fl_summary *s, fl_diag *d);
/* From RESULTS.regret.csv: cumulative regret over steps, one figure for each workload and variant. */
fl_status fl_figures_curves(fl_figures *g, const fl_report_data *r, fl_diag *d);
/* From a telemetry file: clock and power over time, and the shares of time at each clock. */
fl_status fl_figures_timeline(fl_figures *g, const char *path, fl_diag *d);
/* Servers: what policies save against the load, from the columns that a comparison of servers has. */
fl_status fl_figure_load(fl_figures *g, const fl_report_data *r, fl_diag *d);
/* What each rank of a pipeline did, of `count` plans above each other. */
fl_status fl_figure_gantt(fl_figures *g, const char *const *path, size_t count, fl_diag *d);

/* The tables of a report. Cells carry the number by which they sort. The page's script makes tables of class "sortable"
 * sortable; they read well without it. */

/* id: of the table element, unique in the page. */
void fl_table_policies(FILE *f, const fl_summary *s, const fl_looks *looks, const char *id);
void fl_table_pairs(FILE *f, const fl_summary *s, const char *id);
/* Every workload under every policy, intervals over the seeds; b->draws 0 = 1000. */
void fl_table_workloads(FILE *f, const fl_report_data *r, const fl_bootstrap *b);

/* Tables from the records beside the result; nothing where these do not exist. */
void fl_table_published(FILE *f, const fl_report_data *r);
void fl_table_models(FILE *f, const fl_report_data *r);
void fl_list_provenance(FILE *f, const fl_report_data *r, const fl_bootstrap *b);

/* Cells, for the sections. */
void fl_cell_head(FILE *f, const char *text); /* of a column of numbers */
void fl_cell_head_text(FILE *f, const char *text);
void fl_cell_text_put(FILE *f, const char *text);
void fl_cell_number(FILE *f, double value, int digits);
