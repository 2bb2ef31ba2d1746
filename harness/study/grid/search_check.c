#include "harness/study/grid/search_check.h"

#include "policies/random.h"

#include <stdlib.h>

/* Draws `count` of the pairs to the front. */
static void draw(size_t *pair, size_t of, size_t count) {
    fl_random r = fl_random_seed(FL_SEARCH_CHECK_SEED, UINT64_C(0x636865636b));
    for (size_t i = 0; i < count; i++) {
        const size_t k = i + (size_t)fl_random_below(&r, of - i), swap = pair[i];
        pair[i] = pair[k];
        pair[k] = swap;
    }
}

static void compare(const fl_pair_sum *sum, size_t specs, size_t winner, fl_search_check *out) {
    out->winner = fl_pair_sum_mean(&sum[winner]);
    out->best_spec = SIZE_MAX;
    for (size_t i = 0; i < specs; i++) {
        const fl_search_sum here = fl_pair_sum_mean(&sum[i]);
        if (here.runs != out->winner.runs)
            continue;
        out->compared++;
        if (here.violated)
            continue;
        out->held++;
        if (out->best_spec == SIZE_MAX || here.ratio < out->best.ratio ||
            (here.ratio == out->best.ratio && i == winner)) {
            out->best_spec = i;
            out->best = here;
        }
    }
}

fl_status fl_search_check_run(fl_trials *t, const fl_comparison_options *o, const bool *use, size_t winner,
                              fl_search_check *out, fl_diag *d) {
    const size_t specs = o->spec_count;
    size_t *pair = calloc(o->scenes->count * o->seeds + 1, sizeof *pair);
    fl_pair_job *job = calloc(specs * FL_SEARCH_CHECK_PAIRS + 1, sizeof *job);
    fl_pair_sum *sum = calloc(specs + 1, sizeof *sum);
    *out = (fl_search_check){0};
    fl_status s = pair && job && sum ? FL_OK : fl_no_memory(d, "the check");
    if (!s) {
        out->of = fl_pairs_of(o, use, pair);
        out->pairs = out->of < FL_SEARCH_CHECK_PAIRS ? out->of : FL_SEARCH_CHECK_PAIRS;
        draw(pair, out->of, out->pairs);
        for (size_t i = 0; i < specs * out->pairs; i++)
            job[i] = (fl_pair_job){.spec = i / out->pairs, .pair = pair[i % out->pairs]};
        s = fl_pairs_run(t, o, job, specs * out->pairs, d);
    }
    for (size_t i = 0; !s && i < specs * out->pairs; i++)
        fl_pair_sum_add(&sum[job[i].spec], &job[i]);
    if (!s)
        compare(sum, specs, winner, out);
    if (!s && out->best_spec != SIZE_MAX && out->best_spec != winner)
        s = fl_search_score(t, o, out->best_spec, use, &out->everywhere, d);
    free(pair);
    free(job);
    free(sum);
    return s;
}
