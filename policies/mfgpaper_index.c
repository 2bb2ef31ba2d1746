#include "policies/mfgpaper_index.h"

#include <math.h>
#include <string.h>

enum { REPEAT_SIGMA = 4 }; /* standard errors that two baseline windows of a kind may differ by (assumed) */

static double sum_ns(const fl_mfp_kind *k) { return k->count * k->mean_ns; }

static double square(double x) { return x * x; }

/* Squared standard errors of the averages of both sides, relative to each. */
static double base_error2(const fl_mfp_kind *k) { return square((double)k->base_stability) / k->base_count; }
/* Few kernels say little about their own deviation. */
static double error2(const fl_mfp_kind *k) {
    return square(fmax(fl_mfp_stability(k), (double)k->base_stability)) / k->count;
}

double fl_mfp_coverage(const fl_mfp_data *data) {
    double covered = 0, total = data->over_ns;
    for (uint32_t i = 0; i < FL_MFP_KERNELS; i++) {
        const fl_mfp_kind *k = &data->kernel[i];
        covered += k->flags & FL_MFP_BASED ? sum_ns(k) : 0;
        total += sum_ns(k);
    }
    return total > 0 ? covered / total : 0;
}

double fl_mfp_seen(const fl_mfp_data *data) {
    double seen = 0, total = 0;
    for (uint32_t i = 0; i < FL_MFP_KERNELS; i++) {
        const fl_mfp_kind *k = &data->kernel[i];
        if (!(k->flags & FL_MFP_BASED))
            continue;
        seen += k->count ? k->base_count * k->base_ns : 0;
        total += k->base_count * k->base_ns;
    }
    return total > 0 ? seen / total : 1;
}

/* ---- the database -------------------------------------------------------------------------------------------------
 */

static void mark(fl_mfp_kind *table, uint32_t size, const fl_mfp_filters *f, double least, double most) {
    for (uint32_t i = 0; i < size; i++) {
        fl_mfp_kind *k = &table[i];
        if (!k->count || !(k->flags & FL_MFP_BASED))
            continue;
        const double ratio = k->mean_ns / k->base_ns, away = fmax(least - ratio, ratio - most);
        if (away > f->th_repeat && away > REPEAT_SIGMA * sqrt(base_error2(k) + error2(k)))
            k->flags |= FL_MFP_VARIES;
    }
}

void fl_mfp_mark_varying(fl_mfp_data *data, const fl_mfp_filters *f, double least, double most) {
    mark(data->kernel, FL_MFP_KERNELS, f, least, most);
    if (least == 1 && most == 1)
        mark(data->gap, FL_MFP_GAPS, f, 1, 1);
}

static void store(fl_mfp_kind *k) {
    k->base_ns = k->mean_ns;
    k->base_stability = (float)fl_mfp_stability(k);
    k->base_count = k->count;
    k->flags |= FL_MFP_BASED;
}

static void pool(fl_mfp_kind *k) {
    const double n = (double)k->base_count + k->count, away = k->mean_ns - k->base_ns;
    const double m2 = square((double)k->base_stability * k->base_ns) * k->base_count + k->m2 +
                      square(away) * k->base_count * k->count / n;
    k->base_ns += away * k->count / n;
    k->base_stability = (float)(k->base_ns > 0 ? sqrt(m2 / n) / k->base_ns : 0);
    k->base_count += k->count;
}

static void update(fl_mfp_kind *table, uint32_t size, int64_t how) {
    for (uint32_t i = 0; i < size; i++) {
        fl_mfp_kind *k = &table[i];
        if (!k->count)
            continue;
        if (how == FL_MFP_POOLED && k->flags & FL_MFP_BASED)
            pool(k);
        else
            store(k);
    }
}

void fl_mfp_update(fl_mfp_data *data, const fl_mfp_filters *f) {
    update(data->kernel, FL_MFP_KERNELS, f->database);
    update(data->gap, FL_MFP_GAPS, f->database);
}

void fl_mfp_forget(fl_mfp_data *data) {
    memset(data->kernel, 0, sizeof data->kernel);
    memset(data->gap, 0, sizeof data->gap);
    data->kernel_kinds = data->gap_kinds = 0;
}

/* ---- the index ----------------------------------------------------------------------------------------------------
 */

typedef struct weights {        /* of one stream, names as in Algorithm 3 */
    double all_ns;              /* accuExeT or accuGapT */
    double base_ns, ns;         /* wghtT_base and wghtT_mesr: of what can be compared */
    double base_error2, error2; /* their squared standard errors */
    double unlike, rest2;       /* sum of base_ns (ratio of times)^2; of squares of what cannot be compared */
} weights;

static void weigh(const fl_mfp_kind *table, uint32_t size, double threshold, int64_t how, weights *stream) {
    for (uint32_t i = 0; i < size; i++) {
        const fl_mfp_kind *k = &table[i];
        const int based = k->flags & FL_MFP_BASED;
        if (!k->count || (how == FL_MFP_LONG_RUN && !based))
            continue;
        weights *w = &stream[k->stream];
        const double count = how == FL_MFP_LONG_RUN ? k->base_count : k->count;
        w->all_ns += count * k->mean_ns;
        if (k->flags != FL_MFP_BASED || !((double)k->base_stability < threshold) ||
            !(fl_mfp_stability(k) < threshold)) {
            w->rest2 += square(count * k->mean_ns);
            continue;
        }
        if (!(k->base_ns > 0))
            continue;
        w->base_ns += count * k->base_ns;
        w->base_error2 += square(count * k->base_ns) * base_error2(k);
        w->ns += count * k->mean_ns;
        w->error2 += square(count * k->mean_ns) * error2(k);
        w->unlike += count * square(k->mean_ns) / k->base_ns;
    }
}

/* The time of the work at the default clocks (lines 23, 24), and its squared errors relative to
 * itself: those of the database, of this measurement.
 * What cannot be compared is taken to be as much slower as the rest; it may differ from that as the kinds of the rest
 * do from each other. */
static double base_of(const weights *w, double *base2, double *own2) {
    *base2 = *own2 = 0;
    if (w->base_ns > 0 && w->ns > 0) {
        const double spread2 = fmax(w->unlike * w->base_ns / square(w->ns) - 1, 0); /* of the ratios, relative */
        *base2 = w->base_error2 / square(w->base_ns);
        *own2 = w->error2 / square(w->ns) + spread2 * w->rest2 / square(w->all_ns);
    }
    return w->all_ns * (w->ns > 0 ? w->base_ns / w->ns : 1);
}

fl_mfp_index fl_mfp_index_of(const fl_mfp_data *data, const fl_mfp_filters *f) {
    weights part[2][FL_MFP_STREAMS] = {{{0}}}; /* execution, gaps */
    double base = 0, measured = 0, matched = 0, all = data->over_ns, variance = 0, base_variance = 0;
    weigh(data->kernel, FL_MFP_KERNELS, f->th_exe, f->weights, part[0]);
    weigh(data->gap, FL_MFP_GAPS, f->th_gap, f->weights, part[1]);
    for (uint32_t i = 0; i < 2 * FL_MFP_STREAMS; i++) {
        const weights *w = &part[i % 2][i / 2];
        double base2, own2;
        all += w->all_ns;
        if (!(part[0][i / 2].ns > 0))
            continue;
        matched += w->ns;
        const double base_ns = base_of(w, &base2, &own2);
        base += base_ns;
        base_variance += square(base_ns) * base2;
        variance += square(base_ns) * (base2 + own2);
        measured += w->all_ns;
    }
    if (!(base > 0))
        return (fl_mfp_index){.index = NAN, .error = NAN, .base_error = NAN};
    const double index = measured / base;
    return (fl_mfp_index){.index = index,
                          .error = index * sqrt(variance) / base,
                          .base_error = index * sqrt(base_variance) / base,
                          .matched = matched / all};
}
