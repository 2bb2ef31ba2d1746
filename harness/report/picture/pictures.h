/* The contents of each picture: tables and facts for the scripts in plots/. Each function fills an open picture, which
 * fl_picture_draw then draws with the script named here. *drawn: marks, rows or panels; 0 = nothing to draw. */
#pragma once

#include "harness/report/picture/looks.h"
#include "harness/report/picture/picture.h"
#include "harness/report/data/curves.h"
#include "harness/report/data/lead.h"
#include "harness/report/data/sensitivity.h"
#include "harness/report/data/timeline.h"

/* pareto: every policy and baseline, with bound, front and violators; intervals of up to FL_BARS_MAX. */
enum { FL_BARS_MAX = 60 };
fl_status fl_picture_pareto(fl_picture *p, const fl_summary *s, const fl_looks *looks, size_t *drawn, fl_diag *d);

/* pareto too: every run of every policy, workload by workload. */
fl_status fl_picture_workloads(fl_picture *p, const fl_summary *s, const fl_looks *looks, size_t *drawn, fl_diag *d);

/* rows: the best FL_ROWS_MAX with their intervals, by the ranking quantity or by their mean rank. */
enum { FL_ROWS_MAX = 40 };
fl_status fl_picture_rows(fl_picture *p, const fl_summary *s, const fl_looks *looks, bool ranks, size_t *drawn,
                          fl_diag *d);
/* regret: a pair of bars for each of the best FL_ROWS_MAX policies, each with its value. */
fl_status fl_picture_regret(fl_picture *p, const fl_summary *s, size_t *drawn, fl_diag *d);

/* sensitivity: saving and slowdown over a parameter, beside each other, for studies first to first + count - 1. */
fl_status fl_picture_studies(fl_picture *p, const fl_summary *s, size_t first, size_t count, size_t *drawn, fl_diag *d);

/* regret-curves: groups first to first + count - 1, one panel each. */
fl_status fl_picture_curves(fl_picture *p, const fl_curves *c, size_t first, size_t count, size_t *drawn, fl_diag *d);

/* serving, serving-load: of the CSV of a comparison of servers; latencies: of the requests that a run served. */
fl_status fl_picture_serving(fl_picture *p, const char *input, size_t *drawn, fl_diag *d);
fl_status fl_picture_load(fl_picture *p, const char *input, size_t *drawn, fl_diag *d);
fl_status fl_picture_latencies(fl_picture *p, const char *input, size_t *drawn, fl_diag *d);

/* timeline, residency: of telemetry read from path. */
fl_status fl_picture_timeline(fl_picture *p, const fl_telemetry *t, const char *path, size_t *drawn, fl_diag *d);
fl_status fl_picture_residency(fl_picture *p, const fl_telemetry *t, const char *path, size_t *drawn, fl_diag *d);

/* frontier: of the file of foldline plan --csv. */
fl_status fl_picture_frontier(fl_picture *p, const char *input, size_t *drawn, fl_diag *d);

/* gantt: what `foldline run --instructions` wrote, of each of several plans a chart above the next. */
enum { FL_GANTT_PLANS_MAX = 2 };
fl_status fl_picture_gantt(fl_picture *p, const char *const *input, size_t plans, size_t *drawn, fl_diag *d);
