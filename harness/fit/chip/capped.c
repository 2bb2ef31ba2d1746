/* Settings under a power limit that binds, also of sweeps that have only limits. */
#include "harness/fit/chip/inside.h"

#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "traces/io/io.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- sweeps with clocks and limits ---- */

#define CAP_BINDS 0.99 /* a limit below this share of the free power holds a program down */
#define CAP_MIDDLE 0.8 /* of the free power: a limit to measure first */
#define CAP_LOW 0.6    /* and one beside it */
#define STEPS 48       /* clocks at which power is predicted, below the requested one */
#define DEEP 0.25      /* of the lowest calibrated clock: the deepest clock to which a prediction may take a board */

fl_status fl_fit_crest_parse(const char *text, fl_fit_crest *crest, fl_diag *d) {
    char *end = NULL;
    *crest = (fl_fit_crest){.kind = FL_FIT_CREST_RUN};
    if (!strcmp(text, "run"))
        return FL_OK;
    crest->kind = !strcmp(text, "device") ? FL_FIT_CREST_DEVICE : FL_FIT_CREST_GIVEN;
    if (crest->kind == FL_FIT_CREST_DEVICE)
        return FL_OK;
    crest->share = strtod(text, &end);
    if (end == text || *end || !(crest->share > 0.1 && crest->share <= 1))
        return fl_refuse(d,
                         "--crest %s, expected run, device, or the mean power divided by the limit, such as 0.95 "
                         "(0.1 to 1)",
                         text);
    return FL_OK;
}

static double share_of(const fl_fit_capped *c) { return c->power_w / c->limit_w; }

/* The run that the prediction may use: of the runs that requested the highest clock, the one in the middle of their
 * limits. */
static size_t pick_run(const fl_fit_capped *row, size_t count) {
    double highest = 0;
    size_t among = 0;
    for (size_t i = 0; i < count; i++)
        highest = fmax(highest, row[i].sm_mhz);
    for (size_t i = 0; i < count; i++)
        among += row[i].sm_mhz >= highest - 0.5 ? 1 : 0;
    for (size_t i = 0, k = 0; i < count; i++) /* the rows are sorted by limit */
        if (row[i].sm_mhz >= highest - 0.5 && k++ == among / 2)
            return i;
    return count;
}

size_t fl_fit_crest_of_rows(const fl_fit_rows *r, double *share, double *sd) {
    double *own = fl_must(malloc((2 * r->cappeds + r->entities + 1) * sizeof *own)), *all = own + r->cappeds;
    size_t loads = 0;
    for (size_t i = 0; i < r->cappeds;) {
        size_t n = 0;
        for (const size_t e = r->capped[i].entity; i < r->cappeds && r->capped[i].entity == e; i++)
            own[n++] = share_of(&r->capped[i]);
        gsl_sort(own, 1, n);
        all[loads++] = 0.5 * (own[(n - 1) / 2] + own[n / 2]);
    }
    if (loads) {
        gsl_sort(all, 1, loads);
        *share = fmin(1, 0.5 * (all[(loads - 1) / 2] + all[loads / 2]));
        *sd = (all[loads - 1] - all[0]) / 2; /* half their range, because they are few */
    }
    free(own);
    return loads;
}

typedef struct under { /* the predictions for a workload up to one requested clock */
    double mhz[STEPS + 1], power[STEPS + 1];
    fl_chip_guess guess[STEPS + 1];
} under;

static fl_status predict_up_to(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                               const fl_fit_capped *row, bool extrapolate, under *u, fl_diag *d) {
    fl_chip_row asked[STEPS + 1];
    const double low = fmin(row->sm_mhz, extrapolate ? DEEP * chip->sm_min : chip->sm_min);
    const double mem = row->mem_mhz;
    for (int i = 0; i <= STEPS; i++) {
        u->mhz[i] = low * pow(row->sm_mhz / low, (double)i / STEPS);
        asked[i] = (fl_chip_row){.sm_mhz = u->mhz[i], .mem_mhz = mem, .time_s = NAN, .power_w = NAN};
    }
    const fl_model_status f = fl_chip_predict(chip, known, known_count, asked, STEPS + 1, u->guess, NULL);
    for (int i = 0; i <= STEPS; i++)
        u->power[i] = u->guess[i].power_w;
    fl_must_have(f != FL_MODEL_NO_MEMORY);
    return f == FL_MODEL_OK ? FL_OK : fl_refuse(d, "%s", fl_model_text(f));
}

/* ln T at a clock, linear between the predicted ones. */
static double ln_time_at(const under *u, double mhz, double *sd_pct) {
    int i = 1;
    while (i < STEPS && u->mhz[i] < mhz)
        i++;
    const double span = log(u->mhz[i] / u->mhz[i - 1]), w = span > 0 ? log(mhz / u->mhz[i - 1]) / span : 1;
    *sd_pct = (1 - w) * u->guess[i - 1].time_sd_pct + w * u->guess[i].time_sd_pct;
    return (1 - w) * log(u->guess[i - 1].time_s) + w * log(u->guess[i].time_s);
}

static void predict_row(const fl_chip *chip, const under *u, const fl_fit_capped *row, double crest, double crest_sd,
                        bool extrapolate, fl_fit_capped_row *out) {
    const double watts = crest * row->limit_w;
    double mhz = NAN, lower = NAN, sd = 0, ignored = 0;
    out->guess = (fl_chip_guess){NAN, NAN, NAN, NAN};
    fl_model_status s = fl_cap_clock(u->mhz, u->power, STEPS + 1, watts, &mhz);
    const double lowest_sd = hypot(u->guess[0].power_sd_pct / 100, crest_sd / crest);
    if (s == FL_MODEL_RANGE &&
        u->power[0] < watts * exp(lowest_sd)) /* the lowest clock meets the limit, within the uncertainty */
        s = FL_MODEL_OK;
    out->ran_mhz = mhz;
    out->beyond = s == FL_MODEL_RANGE || mhz < chip->sm_min - 0.5;
    if (s != FL_MODEL_OK || (out->beyond && !extrapolate))
        return;
    const double ln_time = ln_time_at(u, mhz, &sd);
    const fl_chip_guess *top = &u->guess[STEPS];
    out->guess = (fl_chip_guess){exp(ln_time), fmin(watts, top->power_w), sd, 100 * crest_sd / crest};
    if (top->power_w <= watts) { /* the limit is not expected to bind */
        out->guess = *top;
        return;
    }
    /* The uncertainty of the power moves the clock, and with it the time. */
    const double doubt = hypot(top->power_sd_pct / 100, crest_sd / crest);
    if (fl_cap_clock(u->mhz, u->power, STEPS + 1, watts * exp(-doubt), &lower) == FL_MODEL_OK)
        out->guess.time_sd_pct = hypot(sd, 100 * (ln_time_at(u, lower, &ignored) - ln_time));
}

static fl_status predict_all(const fl_chip *chip, const fl_fit_rows *r, const fl_chip_row *known, size_t known_count,
                             double crest_sd, bool extrapolate, fl_fit_capped_result *o, fl_diag *d) {
    fl_status s = FL_OK;
    bool *done = fl_must(calloc(o->count + 1, sizeof *done));
    for (size_t i = 0; !s && i < o->count; i++) { /* one prediction for all limits of a requested clock */
        const fl_fit_capped *row = &r->capped[o->first + i];
        under u;
        if (done[i])
            continue;
        s = predict_up_to(chip, known, known_count, row, extrapolate, &u, d);
        for (size_t k = i; !s && k < o->count; k++) {
            const fl_fit_capped *other = &r->capped[o->first + k];
            if (fabs(other->sm_mhz - row->sm_mhz) > 1e-9 || fabs(other->mem_mhz - row->mem_mhz) > 1e-9)
                continue;
            predict_row(chip, &u, other, o->crest, crest_sd, extrapolate, &o->row[k]);
            done[k] = true;
            o->refused += o->row[k].beyond && !extrapolate ? 1 : 0;
        }
    }
    free(done);
    return s;
}

static void find_entity(const fl_fit_rows *r, size_t e, size_t *first, size_t *count) {
    *first = *count = 0;
    while (*first < r->cappeds && r->capped[*first].entity != e)
        ++*first;
    while (*first + *count < r->cappeds && r->capped[*first + *count].entity == e)
        ++*count;
}

/* The rows of an entity that the prediction uses: those that `at` names and that the device can predict. known: room
 * for e->count rows. Returns how many. */
static size_t known_of(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_entity *e, const fl_fit_at *at,
                       bool extrapolate, fl_chip_row *known) {
    size_t n = 0;
    for (size_t i = e->first; i < e->first + e->count; i++)
        if (fl_fit_at_has(at, r, e, &r->row[i]) && (extrapolate || !fl_fit_is_beyond(chip, &r->row[i])))
            known[n++] = r->row[i];
    return n;
}

fl_status fl_fit_capped_run(const fl_chip *chip, const fl_fit_rows *r, size_t e, const fl_fit_at *at,
                            const fl_fit_crest *crest, bool extrapolate, fl_fit_score *score, fl_fit_capped_result *out,
                            fl_diag *d) {
    fl_fit_capped_result o = {.crest = NAN};
    *out = o;
    find_entity(r, e, &o.first, &o.count);
    fl_chip_row *known = fl_must(calloc(r->entity[e].count + 1, sizeof *known));
    const size_t n = known_of(chip, r, &r->entity[e], at, extrapolate, known);
    if (o.count == 0 || n == 0 || !chip->has_power) {
        free(known);
        return FL_OK;
    }
    const fl_fit_capped *row = &r->capped[o.first];
    double sd = FL_ROW_NOISE_POWER;
    o.row = fl_must(calloc(o.count, sizeof *o.row));
    const size_t run = crest->kind == FL_FIT_CREST_RUN && o.count > 1 ? pick_run(row, o.count) : o.count;
    if (crest->kind == FL_FIT_CREST_GIVEN) {
        o.crest = crest->share;
    } else if (run < o.count) {
        o.crest = fmin(1, share_of(&row[run]));
    } else if (chip->crest > 0) {
        o.crest = chip->crest;
        sd = hypot(sd, chip->crest_sd);
    }
    for (size_t i = 0; i < o.count; i++)
        o.row[i] = (fl_fit_capped_row){.guess = {NAN, NAN, NAN, NAN}, .ran_mhz = NAN, .looked = i == run};
    fl_status s = FL_OK;
    if (!isnan(o.crest))
        s = predict_all(chip, r, known, n, sd, extrapolate, &o, d);
    for (size_t i = 0; !s && i < o.count; i++)
        if (!o.row[i].looked && !isnan(o.row[i].guess.time_s))
            fl_fit_score_add_row(&score->capped, &o.row[i].guess, row[i].time_s, row[i].power_w);
    free(known);
    if (s)
        fl_fit_capped_free(&o);
    *out = o;
    return s;
}

void fl_fit_capped_free(fl_fit_capped_result *result) {
    free(result->row);
    *result = (fl_fit_capped_result){0};
}

/* ---- sweeps that have only limits ---- */

static int by_limit(const void *a, const void *b) {
    const fl_cap_cell *x = a, *y = b;
    return (x->limit_w < y->limit_w) - (x->limit_w > y->limit_w); /* highest first */
}

/* The law of a workload by those of its rows that at names; NULL: by all. NO_FIT: none of their limits binds. */
static fl_model_status law_of(const fl_fit_rows *r, size_t first, size_t count, const bool *looked, fl_cap_law *law) {
    fl_cap_cell *cell = fl_must(calloc(count + 1, sizeof *cell));
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!looked || looked[i])
            cell[n++] = (fl_cap_cell){r->capped[first + i].limit_w, r->capped[first + i].time_s,
                                      r->capped[first + i].power_w, FL_CAP_FREE};
    qsort(cell, n, sizeof *cell, by_limit);
    const fl_model_status s = fl_cap_law_fit(law, cell, n);
    free(cell);
    return s;
}

fl_status fl_fit_latent_fill(fl_fit_rows *r, double top_mhz, double mem_mhz, fl_diag *d) {
    for (size_t e = 0; e < r->entities; e++) {
        size_t first = 0, count = 0;
        fl_cap_law law;
        find_entity(r, e, &first, &count);
        if (law_of(r, first, count, NULL, &law) != FL_MODEL_OK)
            continue;
        for (size_t i = first; i < first + count; i++) {
            const fl_fit_capped *row = &r->capped[i];
            fl_must_grow(&r->row, &r->room, r->count + 1, sizeof *r->row);
            r->row[r->count++] = (fl_chip_row){.workload = (uint32_t)e,
                                               .sm_mhz = top_mhz * fl_cap_law_clock(&law, row->power_w),
                                               .mem_mhz = r->mem_known ? row->mem_mhz : mem_mhz,
                                               .time_s = row->time_s,
                                               .power_w = row->power_w};
        }
    }
    fl_fit_rows_sort(r);
    return r->count ? FL_OK
                    : fl_fail(d, FL_BAD_INPUT, r->file[0], 0, 0,
                              "no power limit holds any workload down, expected limits below the power that it draws");
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

double fl_fit_latent_next(const fl_fit_rows *r, const fl_fit_capped_result *of) {
    double high = 0, free_w = 0, low = INFINITY;
    size_t bind = 0;
    for (size_t i = 0; i < of->count; i++)
        if (of->row[i].looked && r->capped[of->first + i].limit_w > high) {
            high = r->capped[of->first + i].limit_w;
            free_w = r->capped[of->first + i].power_w;
        }
    for (size_t i = 0; i < of->count; i++) {
        const double limit = r->capped[of->first + i].limit_w;
        if (of->row[i].looked && limit < CAP_BINDS * free_w) {
            low = fmin(low, limit);
            bind++;
        }
    }
    if (bind >= 2 || !(free_w > 0))
        return NAN;
    return round(bind && low < CAP_MIDDLE * free_w ? sqrt(low * free_w)
                 : bind                            ? CAP_LOW * free_w
                                                   : CAP_MIDDLE * free_w);
}

fl_status fl_fit_latent_run(const fl_fit_rows *r, size_t e, const fl_fit_at *at, fl_fit_score *score,
                            fl_fit_capped_result *out, fl_diag *d) {
    fl_fit_capped_result o = {.crest = NAN};
    char name[256];
    fl_cap_law law;
    size_t named = 0;
    find_entity(r, e, &o.first, &o.count);
    o.row = fl_must(calloc(o.count + 1, sizeof *o.row));
    bool *looked = fl_must(calloc(o.count + 1, sizeof *looked));
    for (size_t i = 0; i < o.count; i++) {
        looked[i] = is_named(at, r, o.first, o.count, r->capped[o.first + i].limit_w);
        named += looked[i];
    }
    const fl_model_status f = law_of(r, o.first, o.count, looked, &law);
    fl_status s = FL_OK;
    if (f != FL_MODEL_OK)
        s = fl_fail(d, FL_BAD_INPUT, r->file[r->entity[e].file], 0, 0, "%s: %s",
                    fl_fit_entity_name(&r->entity[e], name, sizeof name),
                    named < 2 ? "the fit may use fewer than two of its power limits, expected two or more"
                              : "none of the power limits that the fit may use holds it down, expected one below the "
                                "power that it draws");
    for (size_t i = 0; !s && i < o.count; i++) {
        const fl_fit_capped *row = &r->capped[o.first + i];
        o.row[i] = (fl_fit_capped_row){.looked = looked[i], .ran_mhz = NAN};
        if (looked[i]) {
            o.row[i].guess = (fl_chip_guess){row->time_s, row->power_w, NAN, NAN, FL_CHIP_STATED};
            score->fitted++;
            continue;
        }
        o.row[i].guess = fl_cap_law_at(&law, row->limit_w);
        fl_fit_score_add_row(&score->capped, &o.row[i].guess, row->time_s, row->power_w);
    }
    free(looked);
    if (s)
        fl_fit_capped_free(&o);
    *out = o;
    return s;
}
