#include "policies/mfgpoeo_index.h"

#include <math.h>
#include <string.h>

static double sum_ns(const fl_mfg_kind *k) { return k->count * k->mean_ns; }

static double square(double x) { return x * x; }

/* Squared standard errors of the averages of both sides, relative to each. */
static double base_error2(const fl_mfg_kind *k) { return square((double)k->base_stability) / k->base_count; }
static double error2(const fl_mfg_kind *k) { return square(fl_mfg_stability(k)) / k->count; }

double fl_mfg_coverage(const fl_mfg_data *data) {
    double covered = 0, total = data->over_ns;
    for (uint32_t i = 0; i < FL_MFG_KERNELS; i++) {
        const fl_mfg_kind *k = &data->kernel[i];
        covered += k->flags & FL_MFG_BASED ? sum_ns(k) : 0;
        total += sum_ns(k);
    }
    return total > 0 ? covered / total : 0;
}

/* ---- the database -------------------------------------------------------------------------------------------------
 */

static void mark(fl_mfg_kind *table, uint32_t size, const fl_mfg_filters *f, double least, double most) {
    for (uint32_t i = 0; i < size; i++) {
        fl_mfg_kind *k = &table[i];
        if (!k->count || !(k->flags & FL_MFG_BASED))
            continue;
        const double ratio = k->mean_ns / k->base_ns, away = fmax(least - ratio, ratio - most);
        if (away > f->th_repeat && away > f->repeat_sigma * sqrt(base_error2(k) + error2(k)))
            k->flags |= FL_MFG_VARIES;
    }
}

void fl_mfg_mark_varying(fl_mfg_data *data, const fl_mfg_filters *f, double least, double most) {
    mark(data->kernel, FL_MFG_KERNELS, f, least, most);
    if (least == 1 && most == 1)
        mark(data->gap, FL_MFG_GAPS, f, 1, 1);
}

static void store(fl_mfg_kind *k) {
    k->base_ns = k->mean_ns;
    k->base_stability = (float)fl_mfg_stability(k);
    k->base_count = k->count;
    k->flags |= FL_MFG_BASED;
}

static void pool(fl_mfg_kind *k) {
    const double n = (double)k->base_count + k->count, away = k->mean_ns - k->base_ns;
    const double m2 = square((double)k->base_stability * k->base_ns) * k->base_count + k->m2 +
                      square(away) * k->base_count * k->count / n;
    k->base_ns += away * k->count / n;
    k->base_stability = (float)(k->base_ns > 0 ? sqrt(m2 / n) / k->base_ns : 0);
    k->base_count += k->count;
}

static void update(fl_mfg_kind *table, uint32_t size, int64_t how) {
    for (uint32_t i = 0; i < size; i++) {
        fl_mfg_kind *k = &table[i];
        if (!k->count)
            continue;
        if (how == FL_MFG_POOLED && k->flags & FL_MFG_BASED)
            pool(k);
        else
            store(k);
    }
}

void fl_mfg_update(fl_mfg_data *data, const fl_mfg_filters *f) {
    update(data->kernel, FL_MFG_KERNELS, f->database);
    update(data->gap, FL_MFG_GAPS, f->database);
}

void fl_mfg_forget(fl_mfg_data *data) {
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
} weights;

static void weigh(const fl_mfg_kind *table, uint32_t size, double threshold, weights *stream) {
    for (uint32_t i = 0; i < size; i++) {
        const fl_mfg_kind *k = &table[i];
        if (!k->count)
            continue;
        weights *w = &stream[k->stream];
        w->all_ns += sum_ns(k);
        if (k->flags != FL_MFG_BASED || !((double)k->base_stability < threshold) || !(fl_mfg_stability(k) < threshold))
            continue;
        w->base_ns += k->count * k->base_ns;
        w->base_error2 += square(k->count * k->base_ns) * base_error2(k);
        w->ns += sum_ns(k);
        w->error2 += square(sum_ns(k)) * error2(k);
    }
}

/* The time of the measured work at the default clocks (lines 23, 24), and its squared error relative to itself. */
static double base_of(const weights *w, double *relative2) {
    *relative2 = w->base_ns > 0 && w->ns > 0 ? w->base_error2 / square(w->base_ns) + w->error2 / square(w->ns) : 0;
    return w->all_ns * (w->ns > 0 ? w->base_ns / w->ns : 1);
}

fl_mfg_index fl_mfg_index_of(const fl_mfg_data *data, const fl_mfg_filters *f) {
    weights exe[FL_MFG_STREAMS] = {{0}}, gap[FL_MFG_STREAMS] = {{0}};
    double base = 0, measured = 0, matched = 0, all = data->over_ns, variance = 0;
    weigh(data->kernel, FL_MFG_KERNELS, f->th_exe, exe);
    weigh(data->gap, FL_MFG_GAPS, f->th_gap, gap);
    for (uint32_t i = 0; i < FL_MFG_STREAMS; i++) {
        double exe2, gap2;
        all += exe[i].all_ns + gap[i].all_ns;
        if (!(exe[i].ns > 0))
            continue;
        matched += exe[i].ns + gap[i].ns;
        const double base_exe = base_of(&exe[i], &exe2), base_gap = base_of(&gap[i], &gap2);
        base += base_exe + base_gap;
        variance += square(base_exe) * exe2 + square(base_gap) * gap2;
        measured += exe[i].all_ns + gap[i].all_ns;
    }
    if (!(base > 0))
        return (fl_mfg_index){.index = NAN, .error = NAN};
    const double index = measured / base;
    return (fl_mfg_index){.index = index, .error = index * sqrt(variance) / base, .matched = matched / all};
}
