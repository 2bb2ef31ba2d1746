/* Synthetic traffic to a server of language models, seeded: the same options give the same requests for ever. */
#pragma once

#include "traces/serving/requests.h"

typedef struct fl_synth_requests_options {
    uint64_t seed;
    double rate;    /* requests per second, mean over a day */
    double seconds; /* arrivals up to here; 0 = until `most` */
    uint64_t most;  /* requests; 0 = until `seconds`. Of both, what comes first */
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
