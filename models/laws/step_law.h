/* The time of one step of a serving engine, and how it loads the GPU, as a function of the batch and of the clocks.
 *
 * A step runs the matrix products of all its tokens (weights are read once, whatever the batch), the attention of its
 * prompt chunks (compute: query tokens times keys) and of its decodes (memory: the KV cache is read), and a few kernels
 * per sequence (output head, sampler). One after another, so their times add; within each, compute and memory overlap
 * as far as the p-norm |x, y| = (x^p + y^p)^(1/p) says. With n tokens, s sequences, D decodes, f = SM clock in GHz,
 * m = memory clock over that at which the law was measured:
 *
 *   T = t0 + d s + all-reduces(n)
 *       + |(a q(n) + e s) / f, w / m + w' / f|                                           matrix products
 *       + |c pairs / f, KV of the chunks (k / m + (k' + c') / f)|                        attention of prompt chunks
 *       + |e' D / f, KV of the decodes (k / m + k' / f)|                                 attention of decodes
 *
 * q(n) rounds up to the tiles of a matrix product: powers of two to 128, then multiples of 128. c': a chunk walks all
 * keys before it one after another, which bounds a short chunk over a long context. Beside a prompt chunk decodes run
 * in its kernel, which cannot share the keys among the query heads of a group: e' and k have values of their own there.
 * Layer tables, measured at one clock, replace a q(n) + e s and w there, see fl_step_table; what holds at other clocks
 * is then assumed: compute goes as 1 / f, memory as 1 / m. */
#pragma once

#include "models/laws/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one step of an engine computes: all that its time depends on. Zero it, then add each request's part. */
typedef struct fl_step_shape {
    uint32_t tokens;        /* computed in this step: those of prompt chunks, and one for each decode */
    uint32_t sequences;     /* requests in the step: prompts + decodes */
    uint32_t prompts;       /* of them, those with a chunk of their prompt */
    uint32_t decodes;       /* of them, those that decode one token */
    uint32_t prompt_tokens; /* of all tokens, those of prompt chunks */
    uint64_t pairs;         /* of prompt chunks: query tokens times the keys that each looks at */
    uint64_t kv_read;       /* tokens of KV that attention reads, by chunks and decodes */
    uint64_t kv_decode;     /* of them, by decodes */
} fl_step_shape;

/* A request that computes `tokens` tokens of its prompt, after `context` tokens that lie in the KV cache: query i of
 * the chunk looks at context + i keys. */
void fl_step_add_prompt(fl_step_shape *s, uint32_t tokens, uint64_t context);
/* A request that decodes one token after `context` tokens that lie in the KV cache; with its own it reads one more. */
void fl_step_add_decode(fl_step_shape *s, uint64_t context);

/* Seconds measured at the reference clock against tokens or sequences: points ascending, joined by lines; beyond the
 * last point, proportional. */
typedef struct fl_step_table {
    double *at, *time_s; /* owned by the law */
    size_t count;        /* 0 = the law has no such table */
} fl_step_table;

/* Seconds of attention measured at ref_sm_mhz, for `at` decodes with `kv` tokens of KV each, or for a prompt chunk of
 * `at` tokens over kv earlier ones: rows ascending by at, then by kv. Joined by lines along either; below the first its
 * value, beyond the last proportional. It corrects the law's equation by the factor by which that is off there, at all
 * clocks. */
typedef struct fl_step_grid {
    double *at, *kv, *time_s; /* owned by the law */
    size_t count;             /* 0 = the law has no such grid */
} fl_step_grid;

enum { FL_STEP_CLOCKS = 64 }; /* clocks of a law's measurements, at most */

typedef struct fl_step_law {
    double host_s;          /* t0: per step, follows no clock: host work that the GPU waits for */
    double host_sequence_s; /* d: per sequence */

    /* Matrix products: a, e in GHz s per token and sequence; w, w' in s and GHz s. */
    double token, sequence, weights_s, weights_clock;
    /* Attention: c in GHz s per query token and key; c' in GHz s per key of a chunk; k, k' in s and GHz s per token of
     * KV that is read; e' in GHz s per decode. _beside: in a step that has a prompt chunk too. */
    double pair, chunk_key, kv_s, kv_clock, decode;
    double kv_beside_s, decode_beside;
    double beside_token; /* decodes beside n prompt tokens take 1 + beside_token n times as long as beside few */
    double sharpness, attention_sharpness; /* p of the norms, >= 1 */
    fl_step_table by_tokens;   /* all that depends on the tokens of the step, and what each step costs anyway */
    fl_step_table by_sequence; /* all that depends on its sequences */
    fl_step_grid by_decodes, by_decodes_beside; /* attention of decodes: alone, and beside a chunk of few tokens */
    fl_step_grid by_chunk;                      /* attention of a prompt chunk */
    /* Steps of no more tokens than this are padded to the sizes of captured CUDA graphs: 1, 2, 4, multiples of 8 to
     * 256, of 16 beyond. 0 = none are. Only where by_tokens is there: a law fitted to whole steps has it in them. */
    uint32_t graph_tokens;

    /* Tensor parallel: each rank computes its share, and the ranks meet `reduces` times a step (two per layer), each
     * time for reduce_s + reduce_token_s n. 0 = one GPU. No clock changes it; neither SMs nor memory count as loaded.
     */
    uint32_t reduces;
    double reduce_s, reduce_token_s;

    /* Where it was measured. Clocks in MHz, ascending; one clock: all that the law says of others is assumed. */
    double sm_mhz[FL_STEP_CLOCKS];
    uint32_t sm_count;
    double ref_sm_mhz, ref_mem_mhz; /* at which tables hold, and to which memory terms refer; 0 = not known */

    /* Errors on what the fit did not see, as mean shares; negative = not known. */
    double time_error, power_error;
    /* Load of the chip by a step that does nothing but compute, or nothing but read memory: shares of the platform's
     * A and B (models/laws/power.h). 1 where a platform was fitted together with the law. */
    double sm_load, memory_load;
} fl_step_law;

/* A law of nothing but zeros, sharpness 1, loads 1, errors not known. */
fl_step_law fl_step_law_none(void);
/* Frees the tables, zeroes the law. */
void fl_step_law_free(fl_step_law *law);
/* FL_MODEL_INVALID where a member is negative, not finite, or a table is not ascending; a law that gives no time. */
fl_model_status fl_step_law_check(const fl_step_law *law);

/* Tokens rounded up to the tiles of a matrix product. */
uint32_t fl_step_tiles(uint32_t tokens);
/* Tokens rounded up to the sizes of captured graphs (vLLM's default list), where they are no more than `most`. */
uint32_t fl_step_padded(uint32_t tokens, uint32_t most);

/* A step at clocks. */
typedef struct fl_step_point {
    double time_s;
    double compute, memory; /* shares of time_s in which SMs, and memory, are busy: 0..1 each */
    bool outside;           /* the SM clock lies outside those measured, or only one was measured and this is another */
} fl_step_point;

/* At sm_mhz and mem_ratio = memory clock over the law's (1 where the law does not know it). FL_MODEL_INVALID: a clock
 * that is not positive. A step without sequences takes no time. A continuous function of both clocks. */
fl_model_status fl_step_at(const fl_step_law *law, const fl_step_shape *shape, double sm_mhz, double mem_ratio,
                           fl_step_point *point);

/* The time alone; 0 where fl_step_at would refuse. */
double fl_step_time_s(const fl_step_law *law, const fl_step_shape *shape, double sm_mhz, double mem_ratio);
/* Does the law rest on measurements at this clock, or between two? Then false. */
bool fl_step_outside(const fl_step_law *law, double sm_mhz);
