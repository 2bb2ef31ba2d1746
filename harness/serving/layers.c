/* The law of a server's steps from layer tables. */
#include "harness/serving/inside.h"

#include "harness/base/work/work.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- the law from layer tables ---- */

/* How often a layer runs in a step: these once, and the norm before attention and that before the MLP in each block.
 * All others once in each block. */
static const char *const ONCE[] = {"embedding", "final_layernorm"};
static const char *const TWICE = "layernorm";
static const char *const SEQUENCE[] = {"lm_head", "sampler"};
static const char *const NEEDED[] = {"qkv_proj", "o_proj"};
static const char *const MLP[] = {"gate_up_proj", "down_proj"}; /* unless there is a mixture of experts: */
static const char *const MIXTURE = "moe";

enum { GRAPH_MOST = 512 }; /* vLLM captures graphs up to twice max_num_seqs, but no further than this */
enum { ROWS_MOST = 1500 }; /* of each class of steps that a fit looks at: enough for eight numbers */

static double at_line(const fl_layer_row *row, size_t count, double x) {
    size_t i = 1;
    if (x <= row[0].at)
        return row[0].time_s;
    if (x >= row[count - 1].at)
        return row[count - 1].time_s * (x / row[count - 1].at);
    while (row[i].at < x)
        i++;
    return row[i - 1].time_s +
           (row[i].time_s - row[i - 1].time_s) * ((x - row[i - 1].at) / (row[i].at - row[i - 1].at));
}

/* ---- what depends on tokens, and on sequences ---- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Every number at which some layer was measured, once. */
static size_t points_of(const fl_layers *l, double *at) {
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++)
        at[i] = l->row[i].at;
    qsort(at, l->count, sizeof *at, ascending);
    for (size_t i = 0; i < l->count; i++)
        if (!n || at[i] != at[n - 1])
            at[n++] = at[i];
    return n;
}

static double times_of(const char *layer, uint32_t blocks) {
    for (size_t i = 0; i < sizeof ONCE / sizeof *ONCE; i++)
        if (!strcmp(layer, ONCE[i]))
            return 1;
    return strcmp(layer, TWICE) ? blocks : 2.0 * blocks;
}

/* The table of the layers' sum; blocks 0: each layer once. */
static void sum_layers(const fl_layers *l, uint32_t blocks, fl_step_grid *t) {
    t->at = fl_must(malloc(l->count * sizeof *t->at));
    t->time_s = fl_must(malloc(l->count * sizeof *t->time_s));
    t->count = points_of(l, t->at);
    for (size_t i = 0; i < t->count; i++)
        t->time_s[i] = 0;
    for (size_t k = 0; k < l->name_count; k++) {
        size_t count;
        const fl_layer_row *row = fl_layers_find(l, l->names[k], &count);
        const double times = blocks ? times_of(l->names[k], blocks) : 1;
        for (size_t i = 0; row && i < t->count; i++)
            t->time_s[i] += times * at_line(row, count, t->at[i]);
    }
}

static fl_status need(const fl_layers *l, const char *const *name, size_t count, const char *what, double mhz,
                      fl_diag *d) {
    for (size_t i = 0; i < count; i++) {
        size_t rows;
        if (!fl_layers_find(l, name[i], &rows))
            return fl_refuse(d, "no layer '%s' among those %s at %g MHz, expected its rows", name[i], what, mhz);
    }
    return FL_OK;
}

static fl_status need_layers(const fl_serving_layers *t, fl_diag *d) {
    size_t rows;
    fl_status s = need(&t->dense, NEEDED, sizeof NEEDED / sizeof *NEEDED, "by tokens", t->sm_mhz, d);
    if (!s && !t->moe.count && !fl_layers_find(&t->dense, MIXTURE, &rows))
        s = need(&t->dense, MLP, sizeof MLP / sizeof *MLP, "by tokens (nor 'moe', nor --moe)", t->sm_mhz, d);
    return s ? s : need(&t->per_sequence, SEQUENCE, sizeof SEQUENCE / sizeof *SEQUENCE, "by sequences", t->sm_mhz, d);
}

/* A law with the sums of the tables alone. */
static fl_step_law law_of_sums(const fl_serving_layers *t, const fl_serving *s) {
    fl_step_law law = fl_step_law_none();
    law.ref_sm_mhz = law.sm_mhz[0] = t->sm_mhz;
    law.sm_count = 1;
    law.graph_tokens = !t->graphs ? 0 : s->max_seqs < GRAPH_MOST / 2 ? 2 * s->max_seqs : GRAPH_MOST;
    sum_layers(&t->dense, t->blocks, &law.by_tokens);
    sum_layers(&t->per_sequence, 0, &law.by_sequence);
    return law;
}

/* ---- how far compute and memory overlap in matrix products ---- */

typedef struct overlap {
    const fl_step_grid *t;
    size_t count;
} overlap;

static void overlap_residuals(void *user, const double *x, double *residual) {
    const overlap *o = user;
    const double w = o->t->time_s[0], p = 1 + exp(x[1]), last = fl_step_tiles((uint32_t)o->t->at[o->count - 1]);
    const double a = exp(x[0]) * o->t->time_s[o->count - 1] / last;
    for (size_t i = 0; i < o->count; i++) {
        const double compute = a * fl_step_tiles((uint32_t)o->t->at[i]), large = fmax(compute, w);
        residual[i] = log(large * pow(pow(compute / large, p) + pow(w / large, p), 1 / p) / o->t->time_s[i]);
    }
    residual[o->count] = (x[1] - log(2)) / 2; /* a p-norm between 1.3 and 16 is expected of any chip */
}

/* p of |a q(n), w| that fits the table best. It matters at other clocks only: at that of the table its values hold. */
static fl_status fit_overlap(fl_step_law *law, uint32_t token_budget, fl_diag *d) {
    overlap o = {&law->by_tokens, 0};
    double x[2] = {0, log(2)};
    while (o.count < o.t->count && o.t->at[o.count] <= token_budget)
        o.count++;
    if (o.count < 3)
        return fl_refuse(d, "%zu numbers of tokens within the budget of %u, expected at least 3", o.count,
                         token_budget);
    const fl_model_status s = fl_least_squares(overlap_residuals, &o, x, 2, o.count + 1);
    fl_must_have(s != FL_MODEL_NO_MEMORY);
    law->sharpness = s == FL_MODEL_OK ? 1 + exp(fmin(x[1], 4)) : 3;
    return FL_OK;
}

/* ---- attention ---- */

typedef struct attention_fit {
    fl_serving_sample *sample;
    size_t count;
    double left_out; /* number of decodes whose steps the fit does not see; negative = none */
    double start[9];
} attention_fit;

enum { PAIR, CHUNK_KEY, KV, DECODE, KV_BESIDE, DECODE_BESIDE, FLOOR, SHARP, BESIDE_TOKEN, NUMBERS };

static fl_serving_kind kind_of(const fl_attention_row *r) {
    return !r->decodes ? FL_SERVING_CHUNK_ALONE : !r->chunk ? FL_SERVING_DECODES_ALONE : FL_SERVING_BOTH;
}

/* The numbers of the attention, in seconds at the clock of the tables (that is, at 1 GHz of a law of its own). */
static fl_step_law attention_law(const attention_fit *f, const double *x) {
    fl_step_law l = fl_step_law_none();
    l.pair = f->start[PAIR] * exp(x[PAIR]);
    l.chunk_key = f->start[CHUNK_KEY] * exp(x[CHUNK_KEY]);
    l.kv_s = f->start[KV] * exp(x[KV]);
    l.decode = f->start[DECODE] * exp(x[DECODE]);
    l.kv_beside_s = f->start[KV_BESIDE] * exp(x[KV_BESIDE]);
    l.decode_beside = f->start[DECODE_BESIDE] * exp(x[DECODE_BESIDE]);
    l.host_s = f->start[FLOOR] * exp(x[FLOOR]);
    l.beside_token = f->start[BESIDE_TOKEN] * exp(x[BESIDE_TOKEN]);
    l.attention_sharpness = 1 + f->start[SHARP] * exp(x[SHARP]);
    return l;
}

static void attention_residuals(void *user, const double *x, double *residual) {
    const attention_fit *f = user;
    const fl_step_law l = attention_law(f, x);
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++) {
        const fl_serving_sample *s = &f->sample[i];
        if (s->decodes == f->left_out)
            continue;
        const double predicted = fl_step_time_s(&l, &s->shape, 1000, 1);
        residual[n++] = s->weight * log((s->rest_s + predicted) / (s->rest_s + s->attention_s));
    }
    for (size_t k = 0; k < NUMBERS; k++) /* what the rows do not tell stays where it began */
        residual[n++] = 1e-3 * x[k];
}

/* A first guess from single rows: the longest chunk, the longest context of a short chunk, the most KV of decodes. */
static void guess(attention_fit *f) {
    const fl_serving_sample *longest = NULL, *walk = NULL, *most = NULL, *beside = NULL;
    double least = INFINITY;
    for (size_t i = 0; i < f->count; i++) {
        const fl_serving_sample *s = &f->sample[i];
        least = fmin(least, s->attention_s);
        if (s->kind == FL_SERVING_CHUNK_ALONE && (!longest || s->shape.prompt_tokens > longest->shape.prompt_tokens))
            longest = s;
        if (s->kind == FL_SERVING_CHUNK_ALONE &&
            (!walk || s->shape.kv_read / s->shape.prompt_tokens > walk->shape.kv_read / walk->shape.prompt_tokens))
            walk = s;
        if (s->kind == FL_SERVING_DECODES_ALONE && (!most || s->shape.kv_decode > most->shape.kv_decode))
            most = s;
        if (s->kind == FL_SERVING_BOTH && (!beside || s->shape.kv_decode > beside->shape.kv_decode))
            beside = s;
    }
    beside = beside ? beside : most;
    f->start[PAIR] = longest->attention_s / (double)longest->shape.pairs;
    f->start[CHUNK_KEY] = walk->attention_s / (double)walk->shape.kv_read;
    f->start[KV] = most->attention_s / (double)most->shape.kv_decode;
    f->start[KV_BESIDE] = beside->attention_s / (double)beside->shape.kv_decode;
    f->start[DECODE] = f->start[DECODE_BESIDE] = least / 16;
    f->start[FLOOR] = least;
    f->start[SHARP] = 0.5;
    f->start[BESIDE_TOKEN] = 0.1 / longest->shape.prompt_tokens;
}

static fl_status fit_attention(const attention_fit *f, double *x, fl_diag *d) {
    size_t rows = 0;
    for (size_t i = 0; i < f->count; i++)
        rows += f->sample[i].decodes != f->left_out;
    memset(x, 0, NUMBERS * sizeof *x);
    const fl_model_status s = fl_least_squares(attention_residuals, (void *)f, x, NUMBERS, rows + NUMBERS);
    fl_must_have(s != FL_MODEL_NO_MEMORY);
    return s == FL_MODEL_OK ? FL_OK : fl_refuse(d, "no law fits the attention table: %s", fl_model_text(s));
}

/* A server runs such a step: within its limits, where they are known. */
static bool can_run(const fl_attention_row *r, const fl_serving *s) {
    const double kv = r->decodes * r->kv_decode + r->chunk + r->kv_chunk;
    const double sequences = r->decodes + (r->chunk > 0), longest = fmax(r->kv_decode, r->chunk + r->kv_chunk);
    return r->chunk + r->decodes <= s->token_budget && sequences <= s->max_seqs &&
           (!s->kv_blocks || kv <= (double)s->kv_blocks * s->block_tokens) &&
           (!s->max_model_len || longest <= (double)s->max_model_len);
}

static fl_step_shape shape_of(const fl_attention_row *r) {
    fl_step_shape shape = {0};
    if (r->chunk > 0)
        fl_step_add_prompt(&shape, (uint32_t)r->chunk, (uint64_t)r->kv_chunk);
    shape.tokens += (uint32_t)r->decodes;
    shape.sequences += (uint32_t)r->decodes;
    shape.decodes = (uint32_t)r->decodes;
    shape.kv_decode = (uint64_t)(r->decodes * r->kv_decode);
    shape.kv_read += shape.kv_decode;
    return shape;
}

/* The table's rows that the server can run, thinned to ROWS_MOST of each kind; each kind weighs the same in all. */
static fl_status take_samples(const fl_serving_layers *t, const fl_serving *s, const fl_step_law *law, attention_fit *f,
                              fl_diag *d) {
    static const char *const name[FL_SERVING_KINDS] = {"a prompt chunk alone", "decodes alone", "both"};
    size_t count[FL_SERVING_KINDS] = {0}, seen[FL_SERVING_KINDS] = {0}, taken[FL_SERVING_KINDS] = {0};
    for (size_t i = 0; i < t->attention.count; i++)
        count[kind_of(&t->attention.row[i])] += can_run(&t->attention.row[i], s);
    for (fl_serving_kind k = 0; k < FL_SERVING_KINDS; k++)
        if (!count[k] && k != FL_SERVING_BOTH)
            return fl_refuse(d,
                             "the attention table has no row of %s at %g MHz that this server can run, expected some",
                             name[k], t->sm_mhz);
    f->sample = fl_must(malloc((t->attention.count + t->moe.count) * sizeof *f->sample));
    for (size_t i = 0; i < t->attention.count; i++) {
        const fl_attention_row *r = &t->attention.row[i];
        const fl_serving_kind k = kind_of(r);
        if (!can_run(r, s) || seen[k]++ % ((count[k] + ROWS_MOST - 1) / ROWS_MOST))
            continue;
        fl_serving_sample *x = &f->sample[f->count++];
        *x = (fl_serving_sample){.shape = shape_of(r), .kind = k, .decodes = r->decodes};
        x->attention_s = t->blocks * r->time_s;
        fl_step_shape rest = x->shape;
        rest.prompts = rest.decodes = 0;
        x->rest_s = fl_step_time_s(law, &rest, law->ref_sm_mhz, 1);
        taken[k]++;
    }
    for (size_t i = 0; i < f->count; i++)
        f->sample[i].weight = sqrt(1.0 / (double)taken[f->sample[i].kind]);
    guess(f);
    return FL_OK;
}

fl_status fl_serving_samples(const fl_serving_layers *t, const fl_serving *s, fl_serving_sample **sample, size_t *count,
                             fl_diag *d) {
    attention_fit f = {0};
    fl_status status = need_layers(t, d);
    if (!status) {
        fl_step_law law = law_of_sums(t, s);
        status = take_samples(t, s, &law, &f, d);
        fl_step_law_free(&law);
    }
    for (size_t i = 0; !status && i < t->moe.count && t->moe.row[i].sm_mhz > 0; i++) {
        const fl_expert_row *r = &t->moe.row[i];
        f.sample[f.count++] = (fl_serving_sample){.attention_s = t->blocks * r->time_s,
                                                  .tokens = r->tokens,
                                                  .experts = r->experts,
                                                  .weight = sqrt(1.0 / (double)t->moe.count)};
    }
    *sample = f.sample;
    *count = f.count;
    return status;
}

/* Each number of decodes left out in turn. */
static fl_status leave_out(attention_fit *f, fl_serving_errors *left_out, fl_diag *d) {
    double done = -1, x[NUMBERS];
    fl_status s = FL_OK;
    while (!s) {
        double next = INFINITY;
        for (size_t i = 0; i < f->count; i++)
            next = f->sample[i].decodes > fmax(done, 0) ? fmin(next, f->sample[i].decodes) : next;
        if (isinf(next))
            break;
        done = f->left_out = next;
        s = fit_attention(f, x, d);
        const fl_step_law l = attention_law(f, x);
        for (size_t i = 0; !s && i < f->count; i++) {
            const fl_serving_sample *one = &f->sample[i];
            if (one->decodes == done)
                fl_serving_errors_add(left_out, one->rest_s + fl_step_time_s(&l, &one->shape, 1000, 1),
                                      one->rest_s + one->attention_s);
        }
    }
    f->left_out = -1;
    return s;
}

/* ---- grids ---- */

static int by_decodes(const void *a, const void *b) {
    const fl_attention_row *x = a, *y = b;
    if (x->decodes != y->decodes)
        return x->decodes < y->decodes ? -1 : 1;
    if (x->kv_decode != y->kv_decode)
        return x->kv_decode < y->kv_decode ? -1 : 1;
    if (x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    return x->kv_chunk < y->kv_chunk ? -1 : x->kv_chunk > y->kv_chunk;
}

/* The row of a chunk without decodes; `row`: in the order of by_decodes, where those come first. */
static const fl_attention_row *chunk_alone(const fl_attention_row *row, size_t count, const fl_attention_row *r) {
    const fl_attention_row alone = {.chunk = r->chunk, .kv_chunk = r->kv_chunk};
    return bsearch(&alone, row, count, sizeof *row, by_decodes);
}

/* What a row adds to a grid: a chunk or decodes alone as measured, less the floor that every step pays; decodes beside
 * a chunk by how much they lengthen it, brought to a chunk of few tokens. false: the row is not of this grid. */
static bool grid_value(const fl_serving_layers *t, const fl_attention_row *row, const fl_attention_row *r,
                       fl_serving_kind which, double floor_s, double beside_token, double *time_s) {
    const fl_attention_row *alone = which == FL_SERVING_BOTH ? chunk_alone(row, t->attention.count, r) : NULL;
    if (kind_of(r) != which || (which == FL_SERVING_BOTH && !alone))
        return false;
    *time_s = t->blocks * r->time_s - floor_s;
    if (which == FL_SERVING_BOTH)
        *time_s = t->blocks * (r->time_s - alone->time_s) / (1 + beside_token * r->chunk);
    *time_s = fmax(*time_s, 0.01 * t->blocks * r->time_s); /* less would be noise of the measurement */
    return true;
}

/* The mean over the rows of each point; `row`: in the order of by_decodes. */
static void make_grid(const fl_serving_layers *t, const fl_attention_row *row, fl_serving_kind which, double floor_s,
                      double beside_token, fl_step_grid *g) {
    const size_t count = t->attention.count;
    size_t n = 0;
    g->at = fl_must(malloc(count * sizeof *g->at));
    g->kv = fl_must(malloc(count * sizeof *g->kv));
    g->time_s = fl_must(malloc(count * sizeof *g->time_s));
    for (size_t i = 0; i < count; i++) {
        double time_s;
        const double at = which == FL_SERVING_CHUNK_ALONE ? row[i].chunk : row[i].decodes;
        const double kv = which == FL_SERVING_CHUNK_ALONE ? row[i].kv_chunk : row[i].kv_decode;
        if (!grid_value(t, row, &row[i], which, floor_s, beside_token, &time_s))
            continue;
        if (!g->count || at != g->at[g->count - 1] || kv != g->kv[g->count - 1]) {
            g->at[g->count] = at;
            g->kv[g->count] = kv;
            g->time_s[g->count++] = 0;
            n = 0;
        }
        double *mean = &g->time_s[g->count - 1];
        *mean += (time_s - *mean) / (double)++n;
    }
}

static void make_grids(const fl_serving_layers *t, double floor_s, fl_step_law *law) {
    fl_attention_row *row = fl_must(malloc(t->attention.count * sizeof *row));
    memcpy(row, t->attention.row, t->attention.count * sizeof *row);
    qsort(row, t->attention.count, sizeof *row, by_decodes);
    make_grid(t, row, FL_SERVING_CHUNK_ALONE, floor_s, 0, &law->by_chunk);
    make_grid(t, row, FL_SERVING_DECODES_ALONE, floor_s, 0, &law->by_decodes);
    make_grid(t, row, FL_SERVING_BOTH, 0, law->beside_token, &law->by_decodes_beside);
    free(row);
}

fl_status fl_serving_layers_fit(const fl_serving_layers *t, const fl_serving *s, fl_step_law *out,
                                fl_serving_errors *left_out, fl_serving_errors *experts, fl_diag *d) {
    fl_step_law law = fl_step_law_none();
    attention_fit f = {.left_out = -1};
    double x[NUMBERS];
    fl_status status = need_layers(t, d);
    if (!status) {
        law = law_of_sums(t, s);
        status = fit_overlap(&law, s->token_budget, d);
    }
    if (!status && t->moe.count) /* before attention, whose rows weigh as parts of whole steps */
        status = fl_serving_experts_fit(t, s, &law, experts, d);
    if (!status)
        status = take_samples(t, s, &law, &f, d);
    if (!status && left_out)
        status = leave_out(&f, left_out, d);
    if (!status)
        status = fit_attention(&f, x, d);
    if (!status) {
        const fl_step_law a = attention_law(&f, x);
        const double ghz = t->sm_mhz / 1000;
        law.pair = a.pair * ghz; /* seconds at this clock become GHz s */
        law.chunk_key = a.chunk_key * ghz;
        law.decode = a.decode * ghz;
        law.decode_beside = a.decode_beside * ghz;
        law.beside_token = a.beside_token;
        law.host_s = t->host_s;
        law.kv_s = a.kv_s;
        law.kv_beside_s = a.kv_beside_s;
        law.attention_sharpness = a.attention_sharpness;
        for (size_t i = 0; i < law.by_tokens.count; i++) /* what attention costs anyway */
            law.by_tokens.time_s[i] += a.host_s;
        if (s->tensor_parallel > 1) { /* the ranks meet after o_proj and after down_proj */
            law.reduces = 2 * t->blocks;
            law.reduce_s = t->reduce_s;
            law.reduce_token_s = t->reduce_token_s;
        }
        make_grids(t, a.host_s, &law);
        law.replicas = t->data_parallel;
        if (t->data_parallel > 1) { /* tokens go to their experts and come back */
            law.exchanges = 2 * t->blocks;
            law.exchange_s = t->exchange_s;
            law.exchange_token_s = t->exchange_token_s;
        }
    }

    free(f.sample);
    if (status)
        fl_step_law_free(&law);
    *out = law;
    return status;
}
