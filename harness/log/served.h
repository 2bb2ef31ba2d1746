/* What a run served, for people and machines: requests, iterations, barriers. */
#ifndef FL_LOG_SERVED_H
#define FL_LOG_SERVED_H

#include "sim/run.h"
#include "sim/served.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* Lines of a run's text. Of a server of a language model: its requests, latencies, targets and energy. Else
 * nothing where nothing arrives, no marker was passed, no barrier spans GPUs. */
void fl_served_print(const fl_run_result *r, FILE *out);
void fl_served_note(const fl_run_result *r, FILE *out);
/* "served", "requests", "iterations", "barrier_wait_s": those there are. */
void fl_served_json(cJSON *into, const fl_run_result *r);

/* request,arrival_ns,start_ns,end_ns,latency_ns and gpu,process,stream,iteration,start_ns,end_ns,time_ns, through a
 * temporary file. */
fl_status fl_served_write_requests(const char *path, const fl_service *s, fl_diag *d);
/* request,server,arrival_ns,taken_ns,first_token_ns,done_ns,prompt_tokens,output_tokens,ttft_ns,tpot_ns,tbt_max_ns,
 * e2e_ns,ttft_missed,tbt_missed,preemptions,prefill_j,decode_j: of a server of a language model. tpot_ns is empty of a
 * single token; tbt_missed counts tokens. */
fl_status fl_served_write_batched(const char *path, const fl_served_result *r, const fl_requests *requests,
                                  fl_diag *d);
fl_status fl_served_write_iterations(const char *path, const fl_service *s, fl_diag *d);

#endif
