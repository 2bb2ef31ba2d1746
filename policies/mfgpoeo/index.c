#include "policies/mfgpoeo/index.h"

#include <math.h>

static const double NOTHING_LOSS = 0.05, EMPTY_COVERED = 0.94;

typedef struct part {     /* of one stream; ns */
    double base, now;     /* B, K: matched kernels as long as in the database, and as they were */
    double base_gap, gap; /* Gb, Gc: the same of gaps */
    double kernels;       /* E: all kernel time */
    uint32_t matched, matched_gaps;
} part;

static int matches(const fl_mfg_kind *k, double radius, double least) {
    return k->now.n >= least && k->base.n >= least && fmax(fl_mfg_cv(&k->base), fl_mfg_cv(&k->now)) <= radius;
}

/* Kernels, stream by stream; what the shares count goes to *index. Returns 0 where a side is empty. */
static int sum_kernels(const fl_mfg_data *data, double radius, part *stream, fl_mfg_index *index) {
    double all = data->over_ns, known = 0;
    for (uint32_t i = 0; i < FL_MFG_KERNELS; i++) {
        const fl_mfg_kind *k = &data->kernel[i];
        known += k->base.n;
        if (!(k->now.n > 0))
            continue;
        part *s = &stream[k->stream];
        all += k->now.ns;
        s->kernels += k->now.ns;
        index->covered += k->base.n > 0 ? k->now.ns : 0;
        if (!matches(k, radius, 1))
            continue;
        index->matched += k->now.ns;
        s->base += k->now.n * fl_mfg_mean(&k->base);
        s->now += k->now.n * fl_mfg_mean(&k->now);
        s->matched++;
    }
    for (uint32_t i = 0; i < FL_MFG_STREAMS; i++)
        index->unmatched += stream[i].matched ? 0 : stream[i].kernels;
    index->covered = fl_mfg_over(index->covered, all);
    index->matched = fl_mfg_over(index->matched, all);
    index->unmatched = fl_mfg_over(index->unmatched, all);
    if (!(data->kernels > 0))
        index->covered = EMPTY_COVERED;
    return data->kernels > 0 && known > 0;
}

static void sum_gaps(const fl_mfg_data *data, double radius, part *stream) {
    for (uint32_t i = 0; i < FL_MFG_GAPS; i++) {
        const fl_mfg_kind *k = &data->gap[i];
        if (!matches(k, radius, 2))
            continue;
        part *s = &stream[k->stream];
        s->base_gap += k->now.n * fl_mfg_mean(&k->base);
        s->gap += k->now.n * fl_mfg_mean(&k->now);
        s->matched_gaps++;
    }
}

fl_mfg_index fl_mfg_compare(const fl_mfg_data *data, double th_exe, double th_gap, double window_s) {
    part stream[FL_MFG_STREAMS] = {{.base = 0}};
    fl_mfg_index index = {.loss = 0};
    const int sides = sum_kernels(data, th_exe, stream, &index);
    double weights = 0, gap_weights = 0;
    uint32_t streams = 0;
    sum_gaps(data, th_gap, stream);
    for (uint32_t i = 0; i < FL_MFG_STREAMS; i++) {
        const part *s = &stream[i];
        if (!s->matched)
            continue;
        const double share = s->kernels / (window_s * 1e9), w = share * share;
        const double default_ns = fl_mfg_over(s->kernels * s->base, s->now) + s->base_gap;
        index.loss += w * (fl_mfg_over(s->kernels + s->gap, default_ns) - 1);
        index.exe += w * (fl_mfg_over(s->now, s->base) - 1);
        weights += w;
        streams++;
        if (!s->matched_gaps)
            continue;
        index.gap += w * (s->gap / s->base_gap - 1);
        gap_weights += w;
    }
    if (!sides || !streams) {
        index.loss = index.exe = index.gap = NOTHING_LOSS;
        return index;
    }
    index.loss /= weights + 1e-12;
    index.exe /= weights + 1e-12;
    index.gap /= gap_weights + 1e-12;
    return index;
}

double fl_mfg_objective(double power_w, double base_power_w, double loss, int64_t k) {
    double value = fl_mfg_over(power_w, base_power_w);
    for (int64_t i = 0; i < k; i++)
        value *= 1 + loss;
    return value;
}
