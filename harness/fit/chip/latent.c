#include "harness/fit/chip/latent.h"

#include "models/chip/cap.h"
#include "models/chip/predict.h"
#include "models/chip/row_curve.h"

#include <math.h>
#include <stdlib.h>

static double memory_of(const fl_fit_rows *r, const fl_fit_capped *row, const fl_chip *law) {
    return r->mem_known ? row->mem_mhz : law->mem_ref;
}

static void find_entity(const fl_fit_rows *r, size_t e, size_t *first, size_t *count) {
    *first = *count = 0;
    while (*first < r->cappeds && r->capped[*first].entity != e)
        ++*first;
    while (*first + *count < r->cappeds && r->capped[*first + *count].entity == e)
        ++*count;
}

fl_status fl_fit_latent_fill(fl_fit_rows *r, const fl_chip *law, fl_diag *d) {
    for (size_t e = 0; e < r->entities; e++) {
        size_t first = 0, count = 0;
        double top_w = 0, highest = 0;
        find_entity(r, e, &first, &count);
        for (size_t i = first; i < first + count; i++)
            if (r->capped[i].limit_w > highest) {
                highest = r->capped[i].limit_w;
                top_w = r->capped[i].power_w;
            }
        for (size_t i = first; i < first + count; i++) {
            const fl_fit_capped *row = &r->capped[i];
            double mhz = NAN;
            if (fl_cap_latent(law, memory_of(r, row, law), top_w, row->power_w, &mhz) != FL_MODEL_OK)
                continue;
            if (fl_grow(&r->row, &r->room, r->count + 1, sizeof *r->row))
                return fl_no_memory(d, "the sweep");
            r->row[r->count++] = (fl_chip_row){.workload = (uint32_t)e,
                                               .sm_mhz = mhz,
                                               .mem_mhz = row->mem_mhz,
                                               .time_s = row->time_s,
                                               .power_w = row->power_w};
        }
    }
    fl_fit_rows_sort(r);
    return r->count ? FL_OK
                    : fl_fail(d, FL_BAD_INPUT, r->file[0], 0, 0,
                              "the platform's power model reaches no row's power at any clock, expected the platform "
                              "of the GPU that was measured");
}

static bool is_named(const fl_fit_at *at, const fl_fit_rows *r, size_t first, size_t count, double limit) {
    double low = INFINITY, high = 0;
    for (size_t i = first; i < first + count; i++) {
        low = fmin(low, r->capped[i].limit_w);
        high = fmax(high, r->capped[i].limit_w);
    }
    if (at->kind != FL_FIT_LIST)
        return at->kind == FL_FIT_ALL || limit <= low || limit >= high;
    for (size_t i = 0; i < at->caps; i++)
        if (fabs(at->cap[i] - limit) < 0.5)
            return true;
    return false;
}

/* Mean power under a limit. Its share of the limit is linear between the known limits, and constant beyond them. */
static double power_under(const fl_fit_rows *r, const fl_fit_capped_result *o, double limit) {
    const fl_fit_capped *below = NULL, *above = NULL;
    for (size_t i = 0; i < o->count; i++) {
        const fl_fit_capped *row = &r->capped[o->first + i];
        if (!o->row[i].looked)
            continue;
        if (row->limit_w <= limit && (!below || row->limit_w > below->limit_w))
            below = row;
        if (row->limit_w >= limit && (!above || row->limit_w < above->limit_w))
            above = row;
    }
    if (!below || !above) { /* beyond the known limits; above a limit that did not bind, none binds */
        const fl_fit_capped *end = below ? below : above;
        const double watts = limit * end->power_w / end->limit_w;
        return below && end->power_w < FL_CAP_CREST_LEAST * end->limit_w ? end->power_w : watts;
    }
    const double span = above->limit_w - below->limit_w, w = span > 0 ? (limit - below->limit_w) / span : 0;
    const double share = (1 - w) * below->power_w / below->limit_w + w * above->power_w / above->limit_w;
    if (above->power_w >= FL_CAP_CREST_LEAST * above->limit_w)
        return share * limit;
    return fmin(limit * below->power_w / below->limit_w,
                above->power_w); /* some limit between the two is the highest that binds */
}

static fl_status predict(const fl_chip *chip, const fl_fit_rows *r, fl_fit_capped_result *o, double top_w,
                         fl_chip_row *known, fl_fit_score *score, fl_chip_load *load, fl_diag *d) {
    fl_chip_row *const asked = known + o->count;
    fl_chip_guess *guess = calloc(o->count + 1, sizeof *guess);
    size_t n = 0, m = 0;
    fl_status s = guess ? FL_OK : fl_no_memory(d, "the rows under limits");
    for (size_t i = 0; !s && i < o->count; i++) {
        const fl_fit_capped *row = &r->capped[o->first + i];
        const double mem = memory_of(r, row, chip),
                     watts = o->row[i].looked ? row->power_w : power_under(r, o, row->limit_w);
        double mhz = NAN;
        const bool told = fl_cap_latent(chip, mem, top_w, watts, &mhz) == FL_MODEL_OK;
        o->row[i].ran_mhz = mhz;
        o->row[i].guess = (fl_chip_guess){NAN, told && !o->row[i].looked ? watts : NAN, NAN, NAN};
        if (!told)
            continue;
        const fl_chip_row at = {.sm_mhz = mhz, .mem_mhz = mem, .time_s = row->time_s, .power_w = row->power_w};
        if (o->row[i].looked)
            known[n++] = at;
        else
            asked[m++] = at;
    }
    const fl_model_status f = s || n == 0 ? FL_MODEL_NO_FIT : fl_chip_predict(chip, known, n, asked, m, guess, load);
    if (!s && f != FL_MODEL_OK)
        s = fl_error(d, f == FL_MODEL_NO_MEMORY ? FL_NO_MEMORY : FL_BAD_INPUT,
                     "the rows under limits cannot be fitted: %s", fl_model_text(f));
    for (size_t i = 0, k = 0; !s && i < o->count; i++) {
        const fl_fit_capped *row = &r->capped[o->first + i];
        fl_chip_guess *g = &o->row[i].guess;
        if (o->row[i].looked)
            *g = (fl_chip_guess){row->time_s, row->power_w, NAN, NAN};
        else if (!isnan(g->power_w)) {
            *g = (fl_chip_guess){guess[k].time_s, g->power_w, guess[k].time_sd_pct, 100 * FL_ROW_NOISE_POWER};
            k++;
            s = fl_fit_score_add_row(&score->capped, g, row->time_s, row->power_w, d);
        }
    }
    score->fitted += s ? 0 : n;
    free(guess);
    return s;
}

fl_status fl_fit_latent_run(const fl_chip *chip, const fl_fit_rows *r, size_t e, const fl_fit_at *at,
                            fl_fit_score *score, fl_fit_capped_result *out, fl_chip_load *load, fl_diag *d) {
    fl_fit_capped_result o = {.crest = NAN};
    char name[256];
    double lowest = INFINITY, highest = 0, top_w = 0;
    find_entity(r, e, &o.first, &o.count);
    o.row = calloc(o.count + 1, sizeof *o.row);
    fl_chip_row *known = calloc(2 * o.count + 1, sizeof *known);
    fl_status s = o.row && known ? FL_OK : fl_no_memory(d, "the rows under limits");
    for (size_t i = 0; !s && i < o.count; i++) {
        const fl_fit_capped *row = &r->capped[o.first + i];
        o.row[i].looked = is_named(at, r, o.first, o.count, row->limit_w);
        if (!o.row[i].looked)
            continue;
        lowest = fmin(lowest, row->limit_w);
        if (row->limit_w > highest) {
            highest = row->limit_w;
            top_w = row->power_w;
        }
    }
    if (!s && !(highest > lowest))
        s = fl_fail(d, FL_BAD_INPUT, r->file[r->entity[e].file], 0, 0,
                    "%s: the fit may use fewer than two of its power limits, expected two or more",
                    fl_fit_entity_name(&r->entity[e], name, sizeof name));
    if (!s)
        s = predict(chip, r, &o, top_w, known, score, load, d);
    free(known);
    if (s)
        fl_fit_capped_free(&o);
    *out = o;
    return s;
}
