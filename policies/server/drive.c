/* Step times learned while a server runs, and what drives a server's clocks. */
#include "policies/server/inside.h"

#include "policies/policy.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- step times ---- */

/* The terms are scaled to the order of one, so that one prior fits all. */
#define PROMPT_TOKENS 1024
#define SEQUENCES 64
#define KV_TOKENS 65536

#define PRIOR                                                                                                          \
    1e3           /* variance of the weights before anything was seen, in those of a step's noise: some ms to 0.3 ms   \
                   */
#define ENOUGH 24 /* steps, before a line is believed */
#define LEVERAGE 0.5 /* a load further from those seen than this says: not known */

static void terms(const fl_step_load *load, double *x) {
    x[0] = 1;
    x[1] = load->prompt_tokens / PROMPT_TOKENS;
    x[2] = load->sequences / SEQUENCES;
    x[3] = load->kv_tokens / KV_TOKENS;
}

void fl_step_times_begin(fl_step_times *t, const double *mhz, uint32_t clocks) {
    memset(t, 0, sizeof *t);
    t->clocks = clocks < FL_STEP_CLOCKS ? clocks : FL_STEP_CLOCKS;
    for (uint32_t i = 0; i < t->clocks; i++) {
        t->mhz[i] = mhz[i];
        t->line[i].shortest_s = INFINITY;
        for (int k = 0; k < FL_STEP_TERMS; k++)
            t->line[i].spread[k][k] = PRIOR;
    }
}

/* spread x; returns x' spread x. */
static double spread_of(const fl_step_line *l, const double *x, double *sx) {
    double h = 0;
    for (int i = 0; i < FL_STEP_TERMS; i++) {
        sx[i] = 0;
        for (int k = 0; k < FL_STEP_TERMS; k++)
            sx[i] += l->spread[i][k] * x[k];
        h += x[i] * sx[i];
    }
    return h;
}

static double line_at(const fl_step_line *l, const double *x) {
    double y = 0;
    for (int i = 0; i < FL_STEP_TERMS; i++)
        y += l->weight[i] * x[i];
    return y;
}

void fl_step_times_learn(fl_step_times *t, uint32_t clock, const fl_step_load *load, double time_s, double steps) {
    fl_step_line *l = &t->line[clock];
    double x[FL_STEP_TERMS], sx[FL_STEP_TERMS];
    terms(load, x);
    const double h = spread_of(l, x, sx), off = time_s - line_at(l, x);
    if (!(time_s > 0) || !isfinite(time_s) || !isfinite(h) || h < 0 || !(steps > 0))
        return;
    for (int i = 0; i < FL_STEP_TERMS; i++)
        l->weight[i] += sx[i] / (1 + h) * off;
    for (int i = 0; i < FL_STEP_TERMS; i++) /* of both triangles the same number, so that it stays symmetric */
        for (int k = 0; k <= i; k++)
            l->spread[i][k] = l->spread[k][i] = l->spread[i][k] - sx[i] * sx[k] / (1 + h);
    l->steps += steps;
    l->shortest_s = fmin(l->shortest_s, time_s);
}

/* NAN: what was seen at the clock does not say how long such a step takes. Away from the middle of what was seen a line
 * may fall below what any step takes: not under half of the shortest. */
static double known_time(const fl_step_line *l, const double *x) {
    double sx[FL_STEP_TERMS];
    if (l->steps < ENOUGH || !(spread_of(l, x, sx) <= LEVERAGE))
        return NAN;
    return fmax(line_at(l, x), l->shortest_s / 2);
}

void fl_step_times_all(const fl_step_times *t, const fl_step_load *load, double tolerance, double *time_s) {
    double x[FL_STEP_TERMS];
    terms(load, x);
    for (uint32_t i = 0; i < t->clocks; i++)
        time_s[i] = known_time(&t->line[i], x);
    uint32_t above = t->clocks, below = t->clocks; /* the nearest known ones; t->clocks: none */
    double bound[FL_STEP_CLOCKS];
    for (uint32_t i = t->clocks; i-- > 0;) {
        above = isnan(time_s[i]) ? above : i;
        bound[i] = above < t->clocks && above != i ? time_s[above] * (t->mhz[above] / t->mhz[i]) * (1 + tolerance)
                                                   : (double)NAN;
    }
    for (uint32_t i = 0; i < t->clocks; i++) {
        if (!isnan(time_s[i]))
            below = i;
        else
            bound[i] = isnan(bound[i]) && below < t->clocks ? time_s[below] : bound[i];
    }
    for (uint32_t i = 0; i < t->clocks; i++)
        time_s[i] = isnan(time_s[i]) ? bound[i] : time_s[i];
}

/* ---- driving ---- */

const char *fl_drive_check(const fl_facts *facts) {
    if (!facts->server_count)
        return "needs a server that batches requests";
    for (uint32_t i = 0; i < facts->server_count; i++) {
        const fl_server_facts *f = &facts->server[i];
        if (!f->gpu_count)
            return "needs to know which GPUs each server runs on";
        for (uint32_t k = 0; k < f->gpu_count; k++) {
            if (f->gpu[k] >= facts->gpu_count || !facts->gpu[f->gpu[k]].sm.count)
                return "needs the SM ladder of every GPU of a server";
            for (uint32_t j = 0; j <= i; j++)
                for (uint32_t n = 0; n < (j < i ? facts->server[j].gpu_count : k); n++)
                    if (facts->server[j].gpu[n] == f->gpu[k])
                        return "needs servers that share no GPU";
        }
    }
    return NULL;
}

const char *fl_drive_check_targets(const fl_facts *facts) {
    const char *why = fl_drive_check(facts);
    for (uint32_t i = 0; !why && i < facts->server_count; i++)
        if (!(facts->server[i].ttft_target_ns > 0) || !(facts->server[i].tbt_target_ns > 0))
            why = "needs a TTFT and a TBT target of every server, expected --ttft and --tbt";
    return why;
}

void fl_drive_begin(fl_drive *s, const fl_facts *facts, uint32_t server, const fl_table *listed, uint32_t standard,
                    double lowest) {
    const fl_ladder ladder = facts->gpu[facts->server[server].gpu[0]].sm;
    const double top = fl_ladder_max(ladder);
    const uint32_t asked = listed && listed->row_count ? listed->row_count : standard;
    double mhz[FL_STEP_CLOCKS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < asked && count + 1 < FL_STEP_CLOCKS; i++) {
        const double share = lowest + (1 - lowest) * i / fmax(1, standard - 1.0),
                     clock = fl_ladder_up(ladder, listed && listed->row_count ? listed->cell[i] : share * top);
        if (clock < top && (!count || clock > mhz[count - 1]))
            mhz[count++] = clock;
    }
    mhz[count++] = top;
    memset(s, 0, sizeof *s);
    fl_step_times_begin(&s->times, mhz, count);
    s->clock = -1;
    s->force_ns = -1;
    s->waiting = s->running = s->oldest_wait_s = NAN;
    s->tbt_sum_ns = s->tbt_count = s->prompt_count = s->batches = NAN;
}

double fl_drive_value(const fl_server_sample *s, int id) {
    const double v = s->value[id];
    return fl_server_known(s, id) && isfinite(v) && v >= 0 ? v : (double)NAN;
}

/* In force where each GPU that tells its clock shows it, or after the longest wait: a power wall may keep it lower. */
static void arrive(fl_drive *s, const fl_facts *facts, const fl_sample *sample, uint32_t server, double settle_s) {
    const fl_server_facts *f = &facts->server[server];
    int shown = 0, all = 1;
    if (s->clock < 0 || s->force_ns >= 0)
        return;
    for (uint32_t k = 0; k < f->gpu_count; k++) {
        const fl_gpu_sample *g = &sample->gpu[f->gpu[k]];
        if (!fl_gpu_known(g, FL_GPU_SM_MHZ))
            continue;
        shown = 1;
        all &= g->value[FL_GPU_SM_MHZ] == fl_ladder_up(facts->gpu[f->gpu[k]].sm, s->mhz);
    }
    if ((shown && all) || (double)(sample->time_ns - s->set_ns) >= settle_s * 1e9)
        s->force_ns = sample->time_ns;
}

/* Steps of the engine that ran at the clock in force from their beginning to their end. */
static void learn_records(fl_drive *s, const fl_sample *sample, uint32_t server) {
    for (uint64_t i = 0; sample->batch && i < sample->batch_count; i++) {
        const fl_batch_record *b = &sample->batch[i];
        if (b->server != server)
            continue;
        s->prompt_tokens = b->prompt_tokens;
        s->kv_read = (double)b->kv_tokens;
        if (s->clock < 0 || s->force_ns < 0 || b->start_ns < s->force_ns)
            continue;
        const fl_step_load load = {b->prompt_tokens, b->decode_sequences, (double)b->kv_tokens};
        fl_step_times_learn(&s->times, (uint32_t)s->clock, &load, (double)(b->end_ns - b->start_ns) * 1e-9, 1);
    }
}

/* Without records: tokens of running requests come one a step, so the mean time between them is that of a step. */
static void learn_means(fl_drive *s, const fl_sample *sample, const fl_server_sample *u) {
    const double sum = fl_drive_value(u, FL_SERVER_TBT_SUM_NS), count = fl_drive_value(u, FL_SERVER_TBT_COUNT),
                 prompts = fl_drive_value(u, FL_SERVER_PROMPT_TOKENS), batches = fl_drive_value(u, FL_SERVER_BATCHES);
    if (!fl_server_fresh(u, FL_SERVER_TBT_COUNT) || isnan(sum) || isnan(count))
        return;
    const double tokens = count - s->tbt_count, step_ns = (sum - s->tbt_sum_ns) / tokens;
    const double steps =
        isnan(batches - s->batches) ? (double)(sample->time_ns - s->counted_ns) / step_ns : batches - s->batches;
    if (tokens > 0 && step_ns > 0 && steps > 0) { /* false where one is not known */
        const double more = prompts - s->prompt_count;
        s->prompt_tokens = more > 0 ? more / steps : 0;
        if (s->clock >= 0 && s->force_ns >= 0 && s->force_ns <= s->counted_ns) {
            const fl_step_load load = fl_drive_load(s);
            fl_step_times_learn(&s->times, (uint32_t)s->clock, &load, step_ns * 1e-9, steps);
        }
    }
    s->tbt_sum_ns = sum;
    s->tbt_count = count;
    s->prompt_count = prompts;
    s->batches = batches;
    s->counted_ns = sample->time_ns;
}

int fl_drive_take(fl_drive *s, const fl_facts *facts, const fl_sample *sample, uint32_t server, double settle_s) {
    if (server >= sample->server_count)
        return 0;
    const fl_server_sample *u = &sample->server[server];
    const double used = fl_drive_value(u, FL_SERVER_KV_USED_PCT), wait = fl_drive_value(u, FL_SERVER_OLDEST_WAIT_NS);
    arrive(s, facts, sample, server, settle_s);
    s->waiting = fl_drive_value(u, FL_SERVER_WAITING);
    s->running = fl_drive_value(u, FL_SERVER_RUNNING);
    s->oldest_wait_s = wait * 1e-9;
    s->kv_tokens = isnan(used) ? 0 : used / 100 * (double)facts->server[server].kv_tokens;
    s->told |= sample->batch != NULL;
    if (s->told)
        learn_records(s, sample, server);
    else
        learn_means(s, sample, u);
    return !isnan(s->waiting) && !isnan(s->running);
}

fl_step_load fl_drive_load(const fl_drive *s) {
    return (fl_step_load){
        .prompt_tokens = s->prompt_tokens, .sequences = isnan(s->running) ? 0 : s->running, .kv_tokens = s->kv_tokens};
}

void fl_drive_clock(const fl_facts *facts, uint32_t server, double mhz, fl_command *c) {
    const fl_server_facts *f = &facts->server[server];
    for (uint32_t k = 0; k < f->gpu_count; k++)
        fl_set_gpu(c, f->gpu[k], FL_SET_SM_MHZ, mhz > 0 ? fl_ladder_up(facts->gpu[f->gpu[k]].sm, mhz) : FL_DEFAULT);
}

void fl_drive_set(fl_drive *s, const fl_facts *facts, const fl_sample *sample, uint32_t server, uint32_t clock,
                  fl_command *c) {
    if (s->clock == (int64_t)clock)
        return;
    s->clock = clock;
    s->mhz = s->times.mhz[clock];
    s->set_ns = sample->time_ns;
    s->force_ns = -1;
    s->moves++;
    fl_drive_clock(facts, server, s->mhz, c);
}

void fl_drive_set_default(fl_drive *s, const fl_facts *facts, uint32_t server, fl_command *c) {
    if (s->clock < 0 && s->moves)
        return;
    s->clock = -1;
    s->mhz = 0;
    s->moves++;
    fl_drive_clock(facts, server, 0, c);
}
