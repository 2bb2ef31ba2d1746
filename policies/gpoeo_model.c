#include "policies/gpoeo_model.h"
#include "policies/gpoeo_search.h"

#include <math.h>

static int has(const char *text, const char *part) {
    for (; *text; text++) {
        uint32_t i = 0;
        while (part[i] && (text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 'a' - 'A' : text[i]) == part[i])
            i++;
        if (!part[i])
            return 1;
    }
    return 0;
}

fl_gpoeo_pipe fl_gpoeo_pipe_of(const char *name) {
    static const char *const fp64[] = {"dgemm", "double", "fp64", "f64"}, *const tensor[] = {"gemm", "conv",
                                                                                             "attention", "mma"};
    for (uint32_t i = 0; i < FL_COUNT(fp64); i++)
        if (has(name, fp64[i]))
            return FL_GPOEO_FP64_PIPE;
    for (uint32_t i = 0; i < FL_COUNT(tensor); i++)
        if (has(name, tensor[i]))
            return FL_GPOEO_TENSOR_PIPE;
    return FL_GPOEO_OTHER_PIPE;
}

void fl_gpoeo_take(fl_gpoeo_counters *c, const fl_sample *sample, uint32_t gpu) {
    enum { KNOWN = 64 }; /* kinds come again and again: their names are searched once a step */
    uint8_t known[KNOWN] = {0};
    for (uint64_t i = 0; sample->record && i < sample->record_count; i++) {
        const fl_kernel_record *r = &sample->record[i];
        if (r->gpu != gpu || r->end_ns < 0 || r->end_ns < r->start_ns || r->kind >= sample->kind_count)
            continue;
        const double seconds = (double)(r->end_ns - r->start_ns) * 1e-9;
        uint8_t unknown = 0, *of = r->kind < KNOWN ? &known[r->kind] : &unknown;
        if (!*of)
            *of = (uint8_t)(1 + fl_gpoeo_pipe_of(sample->kind[r->kind].name));
        const fl_gpoeo_pipe pipe = (fl_gpoeo_pipe)(*of - 1);
        c->busy_s += seconds;
        c->tensor_s += pipe == FL_GPOEO_TENSOR_PIPE ? seconds : 0;
        c->fp64_s += pipe == FL_GPOEO_FP64_PIPE ? seconds : 0;
    }
}

static void features_at(const fl_gpoeo_counters *c, double mhz, double *feature) {
    feature[FL_GPOEO_CLOCK] = mhz / FL_GPOEO_CLOCK_MHZ;
    feature[FL_GPOEO_BUSY] = c->counted_s > 0 ? fmin(c->busy_s / c->counted_s, 1) : 0;
    feature[FL_GPOEO_TENSOR] = c->busy_s > 0 ? c->tensor_s / c->busy_s : 0;
    feature[FL_GPOEO_FP64] = c->busy_s > 0 ? c->fp64_s / c->busy_s : 0;
}

int32_t fl_gpoeo_predict(const fl_table *trees, const fl_gpoeo_counters *c, fl_ladder clocks, int32_t low, int32_t high,
                         uint32_t band, double bound) {
    const uint32_t count = fl_trees_count(trees, FL_GPOEO_MODELS, FL_GPOEO_FEATURES);
    double least = INFINITY, feature[FL_GPOEO_FEATURES];
    int32_t best = high;
    for (int32_t i = high; i >= low; i--) {
        const double mhz = clocks.mhz[i];
        const uint32_t of = 2 * (band == FL_GPOEO_OWN_BAND ? fl_gpoeo_band(mhz) : band);
        features_at(c, mhz, feature);
        const double cost = fl_gpoeo_cost(fl_trees_predict(trees, count, of + FL_GPOEO_ENERGY, feature),
                                          fl_trees_predict(trees, count, of + FL_GPOEO_TIME, feature), bound);
        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    return best;
}
