/* What a run served, for people and machines: requests, iterations, barriers. */
#ifndef FL_LOG_SERVED_H
#define FL_LOG_SERVED_H

#include "sim/run.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* Lines of a run's text; nothing where nothing arrives, no marker was passed, no barrier spans GPUs. */
void fl_served_print(const fl_run_result *r, FILE *out);
void fl_served_note(const fl_run_result *r, FILE *out);
/* "requests", "iterations", "barrier_wait_s": those there are. */
void fl_served_json(cJSON *into, const fl_run_result *r);

/* request,arrival_ns,start_ns,end_ns,latency_ns and gpu,process,stream,iteration,start_ns,end_ns,time_ns, through a
 * temporary file. */
fl_status fl_served_write_requests(const char *path, const fl_service *s, fl_diag *d);
fl_status fl_served_write_iterations(const char *path, const fl_service *s, fl_diag *d);

#endif
