/* The tables of a report. Cells carry the number by which they sort. The page's script makes tables of class "sortable"
 * sortable; they read well without it. */
#pragma once

#include "harness/report/data/summary.h"
#include "harness/report/picture/looks.h"

/* id: of the table element, unique in the page. */
fl_status fl_table_policies(FILE *f, const fl_summary *s, const fl_looks *looks, const char *id, fl_diag *d);
void fl_table_pairs(FILE *f, const fl_summary *s, const char *id);
/* Every workload under every policy, intervals over the seeds; b->draws 0 = 1000. */
fl_status fl_table_workloads(FILE *f, const fl_report_data *r, const fl_bootstrap *b, fl_diag *d);

/* Tables from the records beside the result; nothing where these do not exist. */
void fl_table_published(FILE *f, const fl_report_data *r);
void fl_table_models(FILE *f, const fl_report_data *r);
void fl_list_provenance(FILE *f, const fl_report_data *r, const fl_bootstrap *b);

/* Cells, for the sections. */
void fl_cell_head(FILE *f, const char *text); /* of a column of numbers */
void fl_cell_head_text(FILE *f, const char *text);
void fl_cell_text_put(FILE *f, const char *text);
void fl_cell_number(FILE *f, double value, int digits);
