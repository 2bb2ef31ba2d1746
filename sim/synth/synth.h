/* Synthetic workloads, seeded: kernel traces, mixes of programs, MF-GPOEO's applications, and requests. The same
 * options always give the same data.
 *
 * Start from fl_synth_standard or fl_synth_requests_standard and call the function of the wanted data. Each fills a
 * struct of traces/, which the caller frees by the function beside that struct. FL_BAD_INPUT names the option that is
 * out of range. */
#pragma once

#include "models/laws/device.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct fl_synth_options {
    uint64_t seed;
    uint64_t kernels;              /* in all, dealt evenly to the streams */
    uint32_t kinds, streams, gpus; /* streams: per GPU */
    double mean_us;                /* of a kernel */
    double gap_us;                 /* mean host time before each */
    double memory;                 /* share of kinds that are memory-bound, 0..1 */
    double sm_demand;              /* of each kind, 0..1; 0 = drawn between 0.2 and 1 */
    double burst;                  /* kernels of one kind in a row, mean: 1 = none */
    bool launches;                 /* record launch times on one host thread per GPU */
} fl_synth_options;

extern const fl_synth_options
    fl_synth_standard; /* 10,000 kernels of 32 kinds on one stream, 200 us, half memory-bound */

/* Make a kernel trace at the given clocks, and its kinds. */
fl_status fl_synth_trace(const fl_synth_options *o, double sm_mhz, double mem_mhz, fl_kernel_trace *t, fl_kinds *k,
                         fl_diag *d);

/* Make a mix of programs, one process per name of the kinds. Each runs kernels of about mean_us for `seconds` when
 * alone, without host time in between. The trace says that they were recorded alone (head key "alone"), so a replay
 * makes them share the GPU. */
fl_status fl_synth_mix(const fl_kinds *kinds, uint64_t seed, double seconds, double mean_us, double sm_mhz,
                       double mem_mhz, fl_kernel_trace *t, fl_diag *d);

/* ---- applications for MF-GPOEO's evaluation (Model-Free GPU Online Energy Optimization, Section V) ----
 *
 * 17 applications whose best static clocks are those of Table V, as nearly as the device allows, and more over the same
 * range.
 *
 * The paper publishes for each application of AIBench the SM gear and memory clock of least energy within 5 % of
 * slowdown, for some how much they lose at the lowest memory clocks, and for all under which power cap they do best;
 * not their kernels. So the shape of an application (kinds, lengths, grids, phases, streams, gaps) is drawn, and the
 * shares of its kernels that depend on the clocks are solved for the published clocks: no policy takes part in that. */

/* Make programs of 1500 s each, at the default clocks of dev, and their kinds: the 17, then `drawn` ones called gnn_01,
 * gnn_02, ... On failure both structs are zeroed. FL_BAD_INPUT for a device without the paper's clocks. */
fl_status fl_synth_apps(const fl_device *dev, uint32_t drawn, uint64_t seed, fl_programs *p, fl_kinds *k, fl_diag *d);

/* ---- traffic to a server of language models ---- */

typedef struct fl_synth_requests_options {
    uint64_t seed;
    double rate;    /* requests per second, mean over a day */
    double seconds; /* arrivals up to here; 0 = until `most` */
    uint64_t most;  /* requests; 0 = until `seconds`. With both, the earlier end counts */
    /* Coefficient of variation of the times between arrivals, which are gamma distributed: 1 = a Poisson process, more
     * = bursts, less = an even stream. */
    double cv;
    /* The rate follows a day: rate (1 - daily cos(2 pi t / day_s)), least at time 0, most half a day later. 0..1; 0 =
     * the same all day. The times between arrivals are stretched accordingly, so that bursts keep their shape. */
    double daily, day_s;
    /* Lengths are lognormal: the median, and the standard deviation of the logarithm. At least 1, at most `most`. */
    double prompt_median, prompt_sigma, output_median, output_sigma;
    uint32_t prompt_most, output_most;
    uint32_t shared; /* tokens with which every prompt begins (a system prompt): what of it an earlier prompt had too
                        becomes cached_tokens */
} fl_synth_requests_options;

/* 1 request per second for ten minutes, Poisson. Medians of 1020 and 129 tokens: the conversation trace of Patel et
 * al., "Splitwise", ISCA 2024, section 3.1. Sigma 1 is assumed; so are the largest lengths, 8192 and 2048. */
extern const fl_synth_requests_options fl_synth_requests_standard;

/* Fills *r or leaves it zeroed. FL_BAD_INPUT with the name of the option that is out of range, or where arrivals go
 * beyond 26 days or there are none. */
fl_status fl_synth_requests(const fl_synth_requests_options *o, fl_requests *r, fl_diag *d);
