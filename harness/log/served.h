/* What a run completed, for people and machines: requests, iterations and barriers. */
#pragma once

#include "sim/node/run.h"
#include "sim/serving/served.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* The lines of a run's text. For a server of a language model: its requests, latencies, targets and energy. Otherwise
 * each line is absent where no request arrives, no marker is passed, or no barrier spans GPUs. */
void fl_served_print(const fl_run_result *r, FILE *out);
void fl_served_note(const fl_run_result *r, FILE *out);
/* Adds those of "served", "requests", "iterations", "barrier_wait_s" that exist. */
void fl_served_json(cJSON *into, const fl_run_result *r);

/* Writes two files: request,arrival_ns,start_ns,end_ns,latency_ns and
 * gpu,process,stream,iteration,start_ns,end_ns,time_ns. Each uses a temporary file and a rename. */
fl_status fl_served_write_requests(const char *path, const fl_service *s, fl_diag *d);
/* request,server,arrival_ns,taken_ns,first_token_ns,done_ns,prompt_tokens,output_tokens,ttft_ns,tpot_ns,tbt_max_ns,
 * e2e_ns,ttft_missed,tbt_missed,preemptions,prefill_j,decode_j: of a server of a language model. tpot_ns is empty of a
 * single token; tbt_missed counts tokens. */
fl_status fl_served_write_batched(const char *path, const fl_served_result *r, const fl_requests *requests, fl_diag *d);
fl_status fl_served_write_iterations(const char *path, const fl_service *s, fl_diag *d);
