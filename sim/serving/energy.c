/* Energy of requests and tokens: how it is spread, over all requests and by their lengths. */
#include "sim/serving/inside.h"

#include "sim/base/base.h"
#include "sim/serving/serving.h"
#include "traces/io/io.h"
#include "traces/serving/serving.h"

#include <stdint.h>
#include <stdlib.h>

/* DynamoLLM (Stojkovic et al., HPCA 2025, Table 2): below the first is short, below the second medium. */
static const uint32_t PROMPT[] = {256, 1024}, OUTPUT[] = {100, 350};

static uint32_t length_of(uint32_t tokens, const uint32_t *border) {
    return tokens < border[0] ? 0 : tokens < border[1] ? 1 : 2;
}

uint32_t fl_served_class_of(uint32_t prompt_tokens, uint32_t output_tokens) {
    return 3 * length_of(prompt_tokens, PROMPT) + length_of(output_tokens, OUTPUT);
}

const char *const fl_served_class_name[FL_SERVED_CLASSES] = {"SS", "SM", "SL", "MS", "MM", "ML", "LS", "LM", "LL"};

/* Statistics of joules: fl_times_of of picojoules, as a picosecond is to a second. class: FL_SERVED_CLASSES = all. */
static void spread(const fl_engines *v, uint32_t class, int64_t *pj, fl_served_energy *out) {
    const fl_request_row *row = v->u->requests->row;
    size_t n = 0;
    *out = (fl_served_energy){0};
    for (int per_token = 0; per_token < 2; per_token++) {
        n = 0;
        for (size_t i = 0; i < v->u->requests->count; i++) {
            if (class < FL_SERVED_CLASSES && fl_served_class_of(row[i].prompt_tokens, row[i].output_tokens) != class)
                continue;
            const fl_wide all = (v->served[i].prefill_fj + v->served[i].decode_fj) / 1000;
            out->output_tokens += per_token ? row[i].output_tokens : 0;
            pj[n++] = (int64_t)(per_token ? all / row[i].output_tokens : all);
        }
        *(per_token ? &out->token_j : &out->request_j) = fl_times_of(pj, n);
    }
    out->requests = n;
}

fl_status fl_served_spread_energy(const fl_engines *v, fl_served_summary *sum, fl_diag *d) {
    int64_t *pj = malloc(v->u->requests->count * sizeof *pj);
    if (!pj)
        return fl_no_memory(d, "what the run served");
    spread(v, FL_SERVED_CLASSES, pj, &sum->energy);
    for (uint32_t c = 0; c < FL_SERVED_CLASSES; c++)
        spread(v, c, pj, &sum->class[c]);
    free(pj);
    return FL_OK;
}
