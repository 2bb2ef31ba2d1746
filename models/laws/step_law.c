/* The law of a serving engine's step, and the laws of a training stage. */
#include "models/laws/inside.h"

#include "models/laws/laws.h"
#include "models/math/math.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- training stages ---- */

#define SHARPNESS 12    /* of the minimum: within 1 % of it a tenth below the wall */
#define LEFT_SD 0.002   /* of what the law leaves, as a share of the time */
#define LEFT_REACH 0.03 /* over how much of the top clock it changes */

double fl_stage_law_at(const fl_stage_time *t, double clock) {
    const double held = pow(pow(clock, -SHARPNESS) + pow(t->wall, -SHARPNESS), -1.0 / SHARPNESS);
    return exp(t->log_t0) * (1 - t->share + t->share * FL_STAGE_F0 / held);
}

static double alike(double a, double b) {
    const double x = (a - b) / LEFT_REACH;
    return LEFT_SD * LEFT_SD * exp(-0.5 * x * x);
}

double fl_stage_time_at(const fl_stage_time *t, double clock) {
    double left = 0;
    for (size_t i = 0; i < t->count; i++)
        left += alike(clock, t->clock[i]) * t->weight[i];
    return fl_stage_law_at(t, clock) * exp(left);
}

static double volts(const fl_stage_power *p, double clock) { return 1 + p->rise * fmax(clock - p->knee, 0); }

double fl_stage_power_at(const fl_stage_power *p, double clock) {
    const double v = volts(p, clock) / volts(p, FL_STAGE_F0);
    return p->s + (1 - p->s) * clock / FL_STAGE_F0 * v * v;
}

/* Gaussian-process regression (Rasmussen and Williams, 2006, Eq. 2.25): weights = (K + sd^2)^-1 residual. */
int fl_stage_time_correct(fl_stage_time *t, const double *clock, const double *log_s, const double *sd, size_t count) {
    fl_gsl_quiet();
    gsl_matrix *k = gsl_matrix_alloc(count, count);
    gsl_vector *left = gsl_vector_alloc(count);
    double *at = malloc(count * sizeof *at), *weight = malloc(count * sizeof *weight);
    int good = k && left && at && weight;
    for (size_t i = 0; good && i < count; i++) {
        at[i] = clock[i];
        gsl_vector_set(left, i, log_s[i] - log(fl_stage_law_at(t, clock[i])));
        for (size_t j = 0; j < count; j++)
            gsl_matrix_set(k, i, j, alike(clock[i], clock[j]) + (i == j ? sd[i] * sd[i] : 0));
    }
    good = good && !gsl_linalg_cholesky_decomp1(k) && !gsl_linalg_cholesky_svx(k, left);
    for (size_t i = 0; good && i < count; i++)
        weight[i] = gsl_vector_get(left, i);
    gsl_matrix_free(k);
    gsl_vector_free(left);
    if (!good) {
        free(at);
        free(weight);
        return -1;
    }
    t->clock = at;
    t->weight = weight;
    t->count = count;
    return 0;
}

void fl_stage_time_free(fl_stage_time *t) {
    free(t->clock);
    free(t->weight);
    t->clock = t->weight = NULL;
    t->count = 0;
}

/* ---- steps of a serving engine ---- */

enum { TILE = 128 }; /* beyond it the tiles of matrix products no longer grow */

void fl_step_add_prompt(fl_step_shape *s, uint32_t tokens, uint64_t context) {
    const uint64_t c = tokens;
    s->tokens += tokens;
    s->prompt_tokens += tokens;
    s->sequences++;
    s->prompts++;
    s->pairs += c * context + c * (c + 1) / 2;
    s->kv_read += context + c;
}

void fl_step_add_decode(fl_step_shape *s, uint64_t context) {
    s->tokens++;
    s->sequences++;
    s->decodes++;
    s->kv_read += context + 1;
    s->kv_decode += context + 1;
}

fl_step_law fl_step_law_none(void) {
    return (fl_step_law){.sharpness = 1,
                         .attention_sharpness = 1,
                         .time_error = -1,
                         .power_error = -1,
                         .sm_load = 1,
                         .memory_load = 1,
                         .expert_sharpness = 1,
                         .expert_ranks = 1,
                         .expert_slices = 1,
                         .expert_seed = 1,
                         .replicas = 1};
}

void fl_step_law_free(fl_step_law *law) {
    for (size_t i = 0; i < FL_STEP_GRIDS; i++) {
        free(law->grid[i].at);
        free(law->grid[i].kv);
        free(law->grid[i].time_s);
    }
    free(law->popularity);
    *law = (fl_step_law){0};
}

static bool grid_is_sound(const fl_step_grid *g) {
    for (size_t i = 0; i < g->count; i++) {
        const double at = g->at[i], before = i ? g->at[i - 1] : 0, kv = g->kv ? g->kv[i] : 0;
        const bool ascends = at > before || (i && g->kv && at >= before && kv > g->kv[i - 1]);
        if (!ascends || !(at >= 1) || !isfinite(at) || !(kv >= 0) || !isfinite(kv) || !(g->time_s[i] > 0) ||
            !isfinite(g->time_s[i]))
            return false;
    }
    return true;
}

fl_model_status fl_step_law_check(const fl_step_law *law) {
    const double part[] = {law->host_s,        law->host_sequence_s, law->token,
                           law->sequence,      law->weights_s,       law->weights_clock,
                           law->pair,          law->chunk_key,       law->kv_s,
                           law->kv_clock,      law->decode,          law->kv_beside_s,
                           law->beside_token,  law->reduce_s,        law->reduce_token_s,
                           law->decode_beside, law->ref_sm_mhz,      law->ref_mem_mhz,
                           law->sm_load,       law->memory_load,     law->expert_floor_s,
                           law->expert_s,      law->expert_token,    law->expert_skew,
                           law->expert_clock,  law->expert_load,     law->kv_bytes,
                           law->exchange_s,    law->exchange_token_s};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (!(part[i] >= 0) || !isfinite(part[i]))
            return FL_MODEL_INVALID;
    if (!fl_step_experts_sound(law) || !(law->sharpness >= 1) || !(law->attention_sharpness >= 1) ||
        law->sm_count > FL_STEP_CLOCKS)
        return FL_MODEL_INVALID;
    for (uint32_t i = 0; i < law->sm_count; i++)
        if (!(law->sm_mhz[i] > (i ? law->sm_mhz[i - 1] : 0)) || !isfinite(law->sm_mhz[i]))
            return FL_MODEL_INVALID;
    for (size_t i = 0; i < FL_STEP_GRIDS; i++)
        if (!grid_is_sound(&law->grid[i]) || (law->grid[i].count && !(law->ref_sm_mhz > 0)))
            return FL_MODEL_INVALID;
    return law->by_tokens.count || law->token > 0 || law->weights_s > 0 || law->host_s > 0 ? FL_MODEL_OK
                                                                                           : FL_MODEL_INVALID;
}

uint32_t fl_step_tiles(uint32_t tokens) {
    uint32_t tile = 1;
    if (tokens > UINT32_MAX - TILE)
        return tokens;
    if (tokens > TILE)
        return (tokens + TILE - 1) / TILE * TILE;
    while (tile < tokens)
        tile *= 2;
    return tokens ? tile : 0;
}

uint32_t fl_step_padded(uint32_t tokens, uint32_t most) {
    if (tokens > most || tokens <= 2)
        return tokens;
    const uint32_t size = tokens <= 4 ? 4 : tokens <= 256 ? (tokens + 7) / 8 * 8 : (tokens + 15) / 16 * 16;
    return size <= most ? size : tokens; /* no graph of that size was captured: such a step runs without one */
}

static double table_at(const fl_step_grid *t, double x) {
    size_t from = 0, to = t->count - 1;
    if (x <= t->at[0])
        return t->time_s[0];
    if (x >= t->at[to])
        return t->time_s[to] * (x / t->at[to]);
    while (to - from > 1) {
        const size_t middle = from + (to - from) / 2;
        if (t->at[middle] <= x)
            from = middle;
        else
            to = middle;
    }
    return t->time_s[from] + (t->time_s[to] - t->time_s[from]) * ((x - t->at[from]) / (t->at[to] - t->at[from]));
}

/* Along the rows [from, to) of one number of decodes. */
static double along_kv(const fl_step_grid *g, size_t from, size_t to, double kv) {
    const fl_step_grid line = {.at = g->kv + from, .time_s = g->time_s + from, .count = to - from};
    return table_at(&line, kv);
}

static double grid_at(const fl_step_grid *g, double decodes, double kv) {
    size_t from = 0, to = fl_step_line_end(g, 0);
    while (to < g->count && g->at[to] <= decodes) {
        from = to;
        to = fl_step_line_end(g, from);
    }
    const double here = along_kv(g, from, to, kv), n = g->at[from];
    if (decodes <= n)
        return here;
    if (to == g->count)
        return here * (decodes / n);
    return here + (along_kv(g, to, fl_step_line_end(g, to), kv) - here) * ((decodes - n) / (g->at[to] - n));
}

typedef fl_step_part part;

static void add(part *sum, double compute_s, double memory_s, double p) {
    sum->time_s += fl_time_norm(compute_s, memory_s, p);
    sum->compute_s += compute_s;
    sum->memory_s += memory_s;
}

/* f_ratio: clock of the table over the clock asked for. At 1 and m = 1 the time is the table's to the last digits.
 * follows: share of the memory's part that goes as 1 / f. */
static void add_table(part *sum, const fl_step_grid *t, double x, double f_ratio, double m, double p, double follows) {
    const double whole = table_at(t, x), memory = fmin(t->time_s[0], whole);
    const double compute = whole > memory ? whole * pow(1 - pow(memory / whole, p), 1 / p) : 0;
    add(sum, compute * f_ratio, memory * (1 - follows) / m + memory * follows * f_ratio, p);
}

static void add_scaled(part *sum, const part *one, double factor) {
    sum->time_s += factor * one->time_s;
    sum->compute_s += factor * one->compute_s;
    sum->memory_s += factor * one->memory_s;
}

/* The attention of prompt chunks with so many pairs and tokens of KV, by the equation. */
static part chunks_by_law(const fl_step_law *law, double pairs, double kv, double ghz, double m) {
    part one = {0};
    const double walk_s = kv * law->chunk_key / ghz;
    add(&one, law->pair * pairs / ghz, kv * (law->kv_s / m + law->kv_clock / ghz) + walk_s, law->attention_sharpness);
    one.compute_s += walk_s; /* it waits for keys one after another, and the memory is not busy for it */
    one.memory_s -= walk_s;
    return one;
}

/* The grid is looked at for the mean chunk, and the mean context that makes as many pairs. */
static void add_chunks(part *sum, const fl_step_law *law, const fl_step_shape *s, double ghz, double m) {
    const double kv = (double)(s->kv_read - s->kv_decode), pairs = (double)s->pairs;
    const part here = chunks_by_law(law, pairs, kv, ghz, m);
    double factor = 1;
    if (law->by_chunk.count) {
        const double chunk = (double)s->prompt_tokens / s->prompts;
        const double context = fmax(pairs / s->prompt_tokens - (chunk + 1) / 2, 0);
        const double same_pairs = chunk * (context + (chunk + 1) / 2);
        const part then = chunks_by_law(law, same_pairs, context + chunk, law->ref_sm_mhz / 1000, 1);
        factor = then.time_s > 0 ? grid_at(&law->by_chunk, chunk, context) / then.time_s : 1;
    }
    add_scaled(sum, &here, factor);
}

static part decodes_by_law(const fl_step_law *law, const fl_step_shape *s, double ghz, double m) {
    part one = {0};
    const bool beside = s->prompts > 0;
    const double kv_s = beside ? law->kv_beside_s : law->kv_s;
    add(&one, (beside ? law->decode_beside : law->decode) * s->decodes / ghz,
        (double)s->kv_decode * (kv_s / m + law->kv_clock / ghz), law->attention_sharpness);
    return one;
}

static void add_decodes(part *sum, const fl_step_law *law, const fl_step_shape *s, double ghz, double m) {
    const fl_step_grid *g = s->prompts ? &law->by_decodes_beside : &law->by_decodes;
    const part here = decodes_by_law(law, s, ghz, m);
    double factor = 1 + law->beside_token * s->prompt_tokens;
    if (g->count) {
        const part then = decodes_by_law(law, s, law->ref_sm_mhz / 1000, 1);
        factor *= then.time_s > 0 ? grid_at(g, s->decodes, (double)s->kv_decode / s->decodes) / then.time_s : 1;
    }
    add_scaled(sum, &here, factor);
}

static part step_parts(const fl_step_law *law, const fl_step_shape *s, double ghz, double m) {
    part sum = {0};
    const double p = law->sharpness;
    if (law->by_tokens.count) {
        const double f_ratio = law->ref_sm_mhz / (1000 * ghz);
        const double least = law->by_tokens.time_s[0] * law->ref_sm_mhz / 1000;
        const double follows = fmin(1, law->weights_clock / least);
        add_table(&sum, &law->by_tokens, fl_step_padded(s->tokens, law->graph_tokens), f_ratio, m, p, follows);
        if (law->by_sequence.count)
            add_table(&sum, &law->by_sequence, s->sequences, f_ratio, m, p, follows);
    } else {
        add(&sum, (law->token * fl_step_tiles(s->tokens) + law->sequence * s->sequences) / ghz,
            law->weights_s / m + law->weights_clock / ghz, p);
    }
    if (s->prompts)
        add_chunks(&sum, law, s, ghz, m);
    if (s->decodes)
        add_decodes(&sum, law, s, ghz, m);
    if (law->experts) {
        const part experts = fl_step_experts_at(law, s->group_tokens ? s->group_tokens : s->tokens, ghz, m);
        add_scaled(&sum, &experts, 1);
    }
    sum.time_s += law->host_s + law->host_sequence_s * s->sequences +
                  law->reduces * (law->reduce_s + law->reduce_token_s * s->tokens) +
                  law->exchanges * (law->exchange_s + law->exchange_token_s * s->group_tokens);
    return sum;
}

bool fl_step_outside(const fl_step_law *law, double sm_mhz) {
    const double slack = 0.5; /* ladders round their clocks */
    return !law->sm_count || sm_mhz < law->sm_mhz[0] - slack || sm_mhz > law->sm_mhz[law->sm_count - 1] + slack;
}

fl_model_status fl_step_at(const fl_step_law *law, const fl_step_shape *shape, double sm_mhz, double mem_ratio,
                           fl_step_point *point) {
    if (!(sm_mhz > 0) || !isfinite(sm_mhz) || !(mem_ratio > 0) || !isfinite(mem_ratio))
        return FL_MODEL_INVALID;
    *point = (fl_step_point){.outside = fl_step_outside(law, sm_mhz)};
    if (!shape->sequences)
        return FL_MODEL_OK;
    const part sum = step_parts(law, shape, sm_mhz / 1000, mem_ratio);
    if (!(sum.time_s > 0) || !isfinite(sum.time_s))
        return FL_MODEL_INVALID;
    point->time_s = sum.time_s;
    point->compute = fmin(1, sum.compute_s / sum.time_s);
    point->memory = fmin(1, fmax(0, sum.memory_s) / sum.time_s);
    return FL_MODEL_OK;
}

double fl_step_time_s(const fl_step_law *law, const fl_step_shape *shape, double sm_mhz, double mem_ratio) {
    fl_step_point at;
    return fl_step_at(law, shape, sm_mhz, mem_ratio, &at) == FL_MODEL_OK ? at.time_s : 0;
}
