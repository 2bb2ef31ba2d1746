/* What the files of harness/serving share. Other modules include the public header alone. */
#pragma once

#include "harness/serving/serving.h"
#include "models/laws/laws.h"
#include "sim/serving/serving.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far predictions lie from measurements: relative errors, collected one by one. */

typedef struct fl_serving_errors {
    double *error; /* predicted / measured - 1 */
    size_t count, room;
} fl_serving_errors;

typedef struct fl_serving_spread {   /* in percent; NAN of no errors */
    double mean, median, p95, worst; /* of the absolute values */
    double bias;                     /* mean of the errors with their sign */
} fl_serving_spread;

void fl_serving_errors_add(fl_serving_errors *e, double predicted, double measured);
/* Sorts them. */
fl_serving_spread fl_serving_errors_spread(fl_serving_errors *e);
void fl_serving_errors_free(fl_serving_errors *e);

/* The law of a server's steps from layer tables: kernel times of one block. */

typedef struct fl_serving_layers {
    fl_layers dense, per_sequence;
    fl_attention attention;
    fl_expert_rows moe;                  /* none: the model has no experts, or they are rows 'moe' of dense */
    uint32_t experts, top_k;             /* 0: the most experts of the table's rows; those of a row of one token */
    uint32_t data_parallel;              /* replicas that step together */
    bool expert_parallel;                /* each rank holds whole experts, else a slice of each */
    double exchange_s, exchange_token_s; /* of one exchange of tokens among replicas; for data_parallel > 1 */
    uint32_t blocks;                     /* of the model: 32 for an 8B Llama */
    bool graphs;                         /* the engine runs captured CUDA graphs, whose sizes are padded */
    double sm_mhz;                       /* of rows without a clock; 0: there are none */
    double host_s;
    double reduce_s, reduce_token_s; /* of one all-reduce; for tensor_parallel > 1 */
} fl_serving_layers;

/* Fits a law to tables of one clock, for the server *s, whose limits bound what is looked at: steps that it cannot run
 * are left out. *law is to be freed. `left_out`: how well a law predicts the steps of a number of decodes that it has
 * not seen, each such number left out in turn (NULL: not asked); steps as they are made of the tables by adding their
 * layers. `experts`: of the experts' equation on its rows. FL_BAD_INPUT where tables lack what the law needs. */
fl_status fl_serving_layers_fit(const fl_serving_layers *t, const fl_serving *s, fl_step_law *law,
                                fl_serving_errors *left_out, fl_serving_errors *experts, fl_diag *d);

typedef enum fl_serving_kind {
    FL_SERVING_CHUNK_ALONE,
    FL_SERVING_DECODES_ALONE,
    FL_SERVING_BOTH,
    FL_SERVING_KINDS
} fl_serving_kind;

typedef struct fl_serving_sample { /* one row of the attention table as a step of the whole model */
    fl_step_shape shape;
    fl_serving_kind kind;
    double decodes;
    double rest_s, attention_s; /* the step's other layers, and this one in all blocks; no experts, no host */
    double tokens, experts;     /* of experts alone, whose time is attention_s; 0: of a step */
    double weight;
} fl_serving_sample;

/* Make the steps that tables of one clock tell by adding their layers, and experts alone if their table has clocks. The
 * caller frees *sample. */
fl_status fl_serving_samples(const fl_serving_layers *t, const fl_serving *s, fl_serving_sample **sample, size_t *count,
                             fl_diag *d);

/* Count the model's experts in its table where they are not stated, and drop the rows of the fewest: a table repeats
 * one block, so these may stay in the L2 cache between repeats, where those of a whole model do not. */
void fl_serving_experts_take(fl_serving_layers *t);

/* Fits the law's experts to the table t->moe, for the GPUs of a server and its replicas. seen: errors of the equation
 * on the rows that it was fitted to; the law has the rows themselves too. */
fl_status fl_serving_experts_fit(const fl_serving_layers *t, const fl_serving *s, fl_step_law *law,
                                 fl_serving_errors *seen, fl_diag *d);

/* Open the scene of so many servers and append it to *scenes. With pools their numbers count. */
fl_status fl_serving_open(const fl_scene_options *asked, uint32_t servers, fl_scenes *scenes, fl_diag *d);

/* A choice with a margin: it holds also when other requests arrive, and when the law is wrong by its error. Each draw
 * puts blocks of the recorded requests together, and multiplies all times of the law by one factor. The blocks are
 * drawn with replacement, so some requests repeat and others are missing. Fewer than FL_SERVING_REDRAWN_LEAST requests
 * stay as they are. The factors are the quantiles of a lognormal. Its deviation follows from the error in time that the
 * server's file states; where it states none, the factor is 1. */
typedef struct fl_serving_margin {
    size_t draws, broken; /* draws: 0 where nothing meets the targets, or where all draws would be alike; broken: draws
                             in which the choice missed a target */
    size_t recorded;      /* the best point for the recorded requests and the law as it is */
    double saving_range;  /* two standard deviations of the saving, in percent of the energy; NAN: not known */
} fl_serving_margin;
enum { FL_SERVING_REDRAWN_LEAST = 3 };

/* Set r->best to the cheapest point whose chance of breaking a target is at most `risk`, or to r->count. The chance is
 * (broken + 1) / (draws + 1). There are as many draws as the risk needs, and 20 at least. Without draws r->best stays.
 */
fl_status fl_serving_margin_choose(const fl_serving_oracle_options *o, double risk, fl_serving_oracle *r,
                                   fl_serving_margin *m, fl_diag *d);

/* Writes the clocks of a point for people, with the memory clock if the board has several. Returns buf. */
char *fl_serving_oracle_clocks(const fl_serving_oracle *o, const fl_serving_point *p, char *buf, size_t size);

/* What a board draws during a step, from the shares of the step's time that load it. f in GHz:
 *     P = p0 + f v(f)^2 (pi + uc pc) + um pm
 * uc, um: the compute and memory shares (models/laws/laws.h). v is flat up to a knee and then rises in a line, relative
 * to its floor: v(f) = 1 + rise max(f / top - knee, 0). It is the platform's law (models/laws/laws.h) with B0 + C V =
 * p0, A0 = pi, A = pc and B = pm at one memory clock. */

typedef struct fl_serving_power {
    double p0_w, idle_w, compute_w, memory_w; /* p0; pi, pc in W per GHz at v = 1; pm */
    double knee, rise, top_mhz;
} fl_serving_power;

typedef struct fl_serving_load { /* a measured step */
    double sm_mhz, compute, memory, power_w;
} fl_serving_load;

enum { FL_SERVING_POWERS_LEAST = 8 }; /* rows that a fit needs: more than the six numbers of the law */

/* Fit the law to measured steps. top_mhz: of the chip, at which v is largest. FL_BAD_INPUT: nothing fits. */
fl_status fl_serving_power_fit(const fl_serving_load *load, size_t count, double top_mhz, fl_serving_power *out,
                               fl_diag *d);
double fl_serving_power_at(const fl_serving_power *p, double sm_mhz, double compute, double memory);
double fl_serving_power_v(const fl_serving_power *p, double sm_mhz);

/* A measured run of a server against its simulation: the same requests arrive, and each step takes the time of a law,
 * at one clock and without a GPU. The comparison shows how much slower or faster the engine is than the law. */

typedef struct fl_serving_times { /* of one request, in seconds from its arrival */
    double first_s, last_s;
} fl_serving_times;

/* times: one per request of the trace. sm_mhz: the clock of all steps. A request goes to the data-parallel replica with
 * the fewest. FL_BAD_INPUT where a request can never be served. */
fl_status fl_serving_simulate(const fl_requests *requests, const fl_batching_rules *rules, const fl_step_law *law,
                              double sm_mhz, fl_serving_times *times, fl_served_summary *sum, fl_diag *d);

/* The measured times of a trace that has them. FL_BAD_INPUT where one lacks its first or last token. */
fl_status fl_serving_measured(const fl_requests *requests, fl_serving_times *times, fl_diag *d);

typedef struct fl_serving_latency { /* seconds; over requests of one output token TPOT is not defined */
    double ttft_mean, ttft_p50, ttft_p99, tpot_p50, tpot_p99, e2e_p50, e2e_p99;
} fl_serving_latency;

/* Of the requests [from, to). */
fl_serving_latency fl_serving_latency_of(const fl_requests *requests, const fl_serving_times *times, size_t from,
                                         size_t to);

/* The factors of a calibration: `all` for every time of the law except all-reduces, `decodes` also for the attention of
 * decodes, `experts` also for experts and exchanges. */
typedef struct fl_serving_factors {
    double all, decodes, experts;
} fl_serving_factors;

/* Multiplies the times of the law. */
void fl_serving_scale(fl_step_law *law, fl_serving_factors by);

/* Scales the law so that the simulated latencies of the first `learn` requests come as near to the measured ones as
 * they can: least squares of the logarithms of TPOT p50, end to end p50 and mean TTFT, and of the factors. */
fl_status fl_serving_calibrate(const fl_requests *requests, const fl_batching_rules *rules, size_t learn, double sm_mhz,
                               fl_step_law *law, fl_serving_factors *factor, fl_diag *d);

/* The law of a server's steps, and their power, from step tables: times and board powers of whole steps over clocks. */

typedef struct fl_serving_clock_error { /* of a clock that the fit did not see */
    double sm_mhz;
    bool end; /* the lowest or highest clock: it was extrapolated */
    fl_serving_spread time, power;
} fl_serving_clock_error;

typedef struct fl_serving_steps_fit {
    fl_step_law law;
    fl_serving_power power;
    bool has_power;
    fl_serving_spread seen_time, seen_power; /* on what the fit saw */
    fl_serving_clock_error clock[FL_STEP_CLOCKS];
    uint32_t clocks;
    size_t rows;
    double lowest_mhz, highest_mhz; /* of the table */
} fl_serving_steps_fit;

/* Fits to all rows but those of clock leave_out (0: none), for a server with the limits of *s (its token budget cuts
 * prompts). Errors: of that clock, or, where none is left out, of each clock left out in turn if there are three or
 * more. FL_BAD_INPUT where the table has no decode, no prefill, or no clock is left. */
fl_status fl_serving_steps_make(const fl_step_rows *rows, const fl_serving *s, double leave_out,
                                fl_serving_steps_fit *fit, fl_diag *d);
/* Set the law's errors to those of inner clocks, or of all where only ends were left out. */
void fl_serving_clock_errors_sum(fl_serving_steps_fit *fit);

/* Fits a law to layer tables as fl_serving_layers_fit does, at one clock or several. With several, *fit also has the
 * errors of each clock left out in turn, if there are three or more; with powers, their law. With one clock
 * its rows are 0. The caller frees fit->law. */
fl_status fl_serving_clocks_fit(const fl_serving_layers *t, const fl_serving *s, fl_serving_steps_fit *fit,
                                fl_serving_errors *left_out, fl_serving_errors *experts, fl_diag *d);

/* A platform that draws the fitted powers, with the rest from platform `base`. */
fl_status fl_serving_steps_platform(const fl_serving_steps_fit *fit, const char *base, const char *path, fl_diag *d);

void fl_serving_spread_json(cJSON *json, const char *name, const fl_serving_spread *e);
void fl_serving_steps_print(const fl_serving_steps_fit *fit);
void fl_serving_steps_json(cJSON *json, const fl_serving_steps_fit *fit);
