/* Advice on the workloads of a sweep, measured or predicted. */
#include "harness/advise/inside.h"

#include "harness/advise/advise.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/chip/chip.h"
#include "models/laws/device.h"
#include "sim/workload/workload.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- sweeps of power limits ---- */

#define SAME_W 0.5 /* a limit is set in whole watts */

/* Whether limits are all that was set for the workload. */
static bool limits_alone(const fl_sweep *s, uint32_t workload) {
    bool limits = false, clocks = false;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        limits |= r->workload == workload && !isnan(r->power_cap_w);
        clocks |= r->workload == workload && !isnan(r->sm_mhz);
    }
    return limits && !clocks;
}

/* Takes the limit from rows that ran under the board's own (they name none then), and leaves out rows above it. Returns
 * that limit: the device's default or, where that is not known, the highest of the sweep. INFINITY: no row names one,
 * or rows do that ran under none. A workload of which only limits were set gets an SM clock of 0: it stays as it is. */
static double fl_advise_settle_limits(fl_sweep *s, const fl_device *dev) {
    double own = 0;
    size_t kept = 0;
    for (size_t i = 0; i < s->row_count; i++)
        if (isnan(s->rows[i].sm_mhz) && limits_alone(s, s->rows[i].workload))
            for (size_t k = i, of = s->rows[i].workload; k < s->row_count; k++)
                s->rows[k].sm_mhz = s->rows[k].workload == of ? 0 : s->rows[k].sm_mhz;
    for (size_t i = 0; i < s->row_count; i++)
        own = fmax(own, isnan(s->rows[i].power_cap_w) ? (double)INFINITY : s->rows[i].power_cap_w);
    own = dev->power_default_w > 0 ? dev->power_default_w : own;
    for (size_t i = 0; i < s->row_count; i++) {
        fl_sweep_row *r = &s->rows[i];
        if (r->power_cap_w > own + SAME_W)
            continue;
        if (!(r->power_cap_w < own - SAME_W))
            r->power_cap_w = NAN;
        s->rows[kept++] = *r;
    }
    s->row_count = kept;
    return own;
}

/* Leaves out rows whose limit was not in force, for want of a right to set it or below what the board can hold. Where
 * even the highest limit is exceeded, the power is not that of one board, and no row is judged. */
static void drop_unheld(fl_sweep *s, const char *path, fl_advise_subjects *to) {
    double highest = 0;
    size_t kept = 0;
    fl_sweep_row first = {0};
    for (size_t i = 0; i < s->row_count; i++)
        highest = fmax(highest, isnan(s->rows[i].power_cap_w) ? 0 : s->rows[i].power_cap_w);
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i].power_cap_w >= highest && s->rows[i].power_w > FL_CAP_HELD_MOST * highest)
            return;
    for (size_t i = 0; i < s->row_count; i++) {
        if (s->rows[i].power_w > FL_CAP_HELD_MOST * s->rows[i].power_cap_w) {
            first = first.line ? first : s->rows[i];
        } else {
            s->rows[kept++] = s->rows[i];
        }
    }
    if (first.line)
        fl_advise_doubt(to,
                        "%s: %zu setting%s whose power limit the board did not hold: left out; the first is line %lld, "
                        "%g W under a limit of %g W",
                        basename(path), s->row_count - kept, s->row_count - kept == 1 ? "" : "s", (long long)first.line,
                        first.power_w, first.power_cap_w);
    s->row_count = kept;
}

static bool is_predicted(const fl_sweep_row *r) { return r->time_sd_pct > 0 || r->power_sd_pct > 0; }

/* Return true if a row is used as measured: it is a measurement, and it ran at the clock that it names. */
static bool fl_advise_as_measured(const fl_sweep_chip *c, const fl_sweep_row *r) {
    bool as = r->energy_j > 0 && !is_predicted(r);
    for (size_t i = 0; i < c->rows.unsounds; i++)
        as &= c->rows.unsound[i].at.line != r->line;
    for (size_t i = 0; i < c->rows.clocks; i++)
        as &= !(fabs(c->rows.clock[i].sm_mhz - r->sm_mhz) < 0.5);
    return as;
}

/* Whether the laws have a row of the same setting under a limit that does not bind. */
static bool is_known(const fl_sweep_chip *c, const fl_sweep *s, const fl_sweep_row *r) {
    for (size_t i = 0; i < c->rows.count; i++) {
        const fl_chip_row *k = &c->rows.row[i];
        const fl_fit_entity *e = &c->rows.entity[k->workload];
        if (fabs(k->sm_mhz - r->sm_mhz) < 0.5 &&
            (!c->rows.mem_known || isnan(r->mem_mhz) || fabs(k->mem_mhz - r->mem_mhz) < 0.5) &&
            !strcmp(e->workload, s->names[r->workload]) && !strcmp(e->kernel, s->names[r->kernel]))
            return true;
    }
    return false;
}

/* Whether the row is a candidate by itself, as the laws have none of its setting. */
static bool stands_alone(const fl_sweep_chip *c, const fl_sweep *s, uint32_t workload, const fl_sweep_row *r) {
    return r->workload == workload && fl_advise_as_measured(c, r) && (!isnan(r->power_cap_w) || !is_known(c, s, r));
}

/* True if the setting of a predicted row was measured. */
static bool is_measured(const fl_sweep_chip *c, const fl_sweep *s, const fl_sweep_row *predicted) {
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (isnan(r->power_cap_w) && r->kernel == predicted->kernel && fabs(r->sm_mhz - predicted->sm_mhz) < 0.5 &&
            (isnan(r->mem_mhz) || fabs(r->mem_mhz - predicted->mem_mhz) < 0.5) &&
            stands_alone(c, s, predicted->workload, r))
            return true;
    }
    return false;
}

/* Into `to`, which has a workload's predicted rows: measured rows that the laws left out for a limit, and measured rows
 * under lower limits. Predicted rows at the same settings go, and those outside the clocks from sm_min to sm_max. */
static void fl_advise_add_limited(const fl_sweep_chip *c, const fl_sweep *measured, uint32_t workload, double sm_min,
                                  double sm_max, fl_sweep *to) {
    size_t kept = 0;
    for (size_t i = 0; i < to->row_count; i++)
        if (to->rows[i].sm_mhz >= sm_min && to->rows[i].sm_mhz <= sm_max && !is_measured(c, measured, &to->rows[i]))
            to->rows[kept++] = to->rows[i];
    to->row_count = kept;
    for (size_t i = 0; i < measured->row_count; i++) {
        const fl_sweep_row *r = &measured->rows[i];
        if (!stands_alone(c, measured, workload, r))
            continue;
        fl_must_grow(&to->rows, &to->row_room, to->row_count + 1, sizeof *to->rows);
        const fl_chip_guess g = fl_chip_measured(c->chip, r->time_s, r->energy_j / r->time_s, 1);
        fl_sweep_row *row = &to->rows[to->row_count++];
        *row = *r;
        row->time_sd_pct = g.time_sd_pct;
        row->power_sd_pct = g.power_sd_pct;
    }
}

/* ---- sweeps ---- */

/* FL_BAD_INPUT where sound rows contradict each other: the lower clock is much faster. */
static fl_status check_rows(const fl_fit_rows *rows, const char *path, fl_diag *d) {
    for (size_t e = 0; e < rows->entities; e++) {
        const fl_fit_entity *of = &rows->entity[e];
        for (size_t i = of->first; i < of->first + of->count; i++)
            for (size_t k = of->first; k < of->first + of->count; k++) {
                const fl_chip_row *low = &rows->row[i], *high = &rows->row[k];
                if (low->sm_mhz < high->sm_mhz && fabs(low->mem_mhz - high->mem_mhz) < 0.5 &&
                    low->time_s < FL_SWEEP_FASTER * high->time_s)
                    return fl_fail(
                        d, FL_BAD_INPUT, path, 0, 0,
                        "%s took %g s at %g MHz, but %g s at %g MHz: no clock explains that the lower one is "
                        "so much faster, expected one program, one input and the clocks at which it ran",
                        of->workload, low->time_s, low->sm_mhz, high->time_s, high->sm_mhz);
            }
    }
    return FL_OK;
}

/* Savings are relative to the driver's default or, where that is not known, to the highest known clocks, under the
 * board's own limit where that is known. */
static fl_setting_clocks reference_of(const fl_stated *s, const fl_device *dev) {
    const fl_setting_clocks own = {dev->default_sm_mhz, dev->default_mem_mhz, 0};
    fl_chip_guess g;
    size_t last = s->count - 1;
    while (last > 0 && s->at[last].limit_w > 0)
        last--;
    last = s->at[last].limit_w > 0 ? s->count - 1 : last;
    return fl_stated_at(s, own, &g) ? own : s->at[last];
}

static bool has_rows(const fl_sweep_chip *c, const char *workload) {
    for (size_t i = 0; i < c->rows.entities; i++)
        if (c->rows.entity[i].count && !strcmp(c->rows.entity[i].workload, workload))
            return true;
    return false;
}

/* Which settings of a workload are rows of the sweep, or the mean of some. */
static bool *find_measured(const fl_sweep_chip *c, const fl_sweep *sweep, uint32_t name, const fl_stated *s) {
    bool *measured = fl_must(calloc(s->count + 1, sizeof *measured));
    for (size_t k = 0; k < s->count; k++)
        for (size_t i = 0; i < sweep->row_count && !measured[k]; i++) {
            const fl_sweep_row *r = &sweep->rows[i];
            measured[k] =
                r->workload == name && fabs(fl_fit_ran_mhz(&c->rows, r->sm_mhz) - s->at[k].sm_mhz) < 0.5 &&
                !(fabs(r->mem_mhz - s->at[k].mem_mhz) >= 0.5) && !is_predicted(r) &&
                (isnan(r->power_cap_w) ? !(s->at[k].limit_w > 0) : fabs(r->power_cap_w - s->at[k].limit_w) < SAME_W);
        }
    return measured;
}

/* Whether rows differ in a clock or a limit. */
static bool several_settings(const fl_sweep *s) {
    for (size_t i = 1; i < s->row_count; i++)
        if (fabs(s->rows[i].sm_mhz - s->rows[0].sm_mhz) >= 0.5 ||
            fabs(s->rows[i].mem_mhz - s->rows[0].mem_mhz) >= 0.5 ||
            isnan(s->rows[i].power_cap_w) != isnan(s->rows[0].power_cap_w) ||
            fabs(s->rows[i].power_cap_w - s->rows[0].power_cap_w) >= SAME_W)
            return true;
    return false;
}

/* The only SM clock of a workload's rows; NAN: it has several, or none. */
static double only_clock(const fl_sweep_chip *c, const char *workload) {
    double mhz = NAN;
    for (size_t i = 0; i < c->rows.count; i++)
        if (!strcmp(c->rows.entity[c->rows.row[i].workload].workload, workload)) {
            if (!isnan(mhz) && fabs(c->rows.row[i].sm_mhz - mhz) >= 0.5)
                return NAN;
            mhz = c->rows.row[i].sm_mhz;
        }
    return mhz;
}

static fl_status one_workload(const fl_sweep_chip *c, const char *path, const fl_sweep *sweep, uint32_t name,
                              const fl_device *dev, double bound, fl_advise_subjects *s, fl_diag *d) {
    fl_predicted p = {0};
    char low[48], high[48];
    fl_status status =
        has_rows(c, sweep->names[name]) ? fl_sweep_chip_predict(c, path, sweep, name, dev, &p, d) : FL_OK;
    if (status) {
        fl_predicted_free(&p);
        return status;
    }
    fl_advise_add_limited(c, sweep, name, p.law.sm_min_mhz, p.law.sm_max_mhz, &p.sweep);
    if (!p.sweep.row_count) {
        fl_predicted_free(&p);
        fl_advise_doubt(s, "%s is left out: all its rows are %snot at the clock they name", sweep->names[name],
                        c->rows.predicted ? "predicted, or " : "");
        return FL_OK;
    }
    const double only = only_clock(c, sweep->names[name]);
    if (!isnan(only) && !c->calibrated && !several_settings(&p.sweep)) {
        const fl_log_run run = {.sm_mhz = only, .mem_mhz = dev->default_mem_mhz};
        (void)fl_advise_add_unknown(s, sweep->names[name], "measured at one clock", fl_advise_to_measure(&run, 0, dev));
        fl_predicted_free(&p);
        return FL_OK;
    }
    fl_advise_subject *to = fl_advise_add(s, sweep->names[name]);
    to->cases = 1;
    to->single = !isnan(only);
    status = fl_stated_make(&p.sweep, name, true, 0, INFINITY, dev->default_mem_mhz, &to->of[0].stated, d);
    if (!status && !to->of[0].stated.count)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                         "%s: no clock of the ladder lies within the measured range, %s to %s MHz", sweep->names[name],
                         fl_fit_clock_text(&c->rows, c->chip->sm_min, low, sizeof low),
                         fl_fit_clock_text(&c->rows, c->chip->sm_ref, high, sizeof high));
    if (!status)
        to->ref = reference_of(&to->of[0].stated, dev);
    fl_stated_rest(&to->of[0].stated, p.basis, p.time_noise_pct, p.power_noise_pct);
    to->measured = find_measured(c, sweep, name, &to->of[0].stated);
    if (!status)
        fl_advise_next(dev, bound, to);
    fl_predicted_free(&p);
    return status;
}

/* Which limit goes without saying. */
static void note_limits(const fl_sweep *sweep, const fl_device *dev, fl_advise_subjects *s) {
    size_t lower = 0;
    for (size_t i = 0; i < sweep->row_count; i++)
        lower += isnan(sweep->rows[i].power_cap_w) ? 0 : 1;
    if (lower && isinf(s->own_limit_w))
        FL_ADVISE_REST(s, "settings under a power limit, as they were measured (tune --caps measures others): %zu",
                       lower);
    else if (lower)
        FL_ADVISE_REST(s,
                       "settings under a lower power limit than the board's own, as they were measured (tune "
                       "--caps measures others): %zu; %g W count as its own, %s",
                       lower, s->own_limit_w,
                       dev->power_default_w > 0 ? "which the platform says" : "the highest that was measured");
}

fl_status fl_advise_rows(const fl_sweep_chip *c, const char *path, const char *gpu, fl_sweep *sweep,
                         const fl_platform *platform, const fl_advise_options *o, fl_advise_subjects *s, fl_diag *d) {
    uint32_t *names = NULL;
    size_t count = 0;
    char low[48], high[48], *from = NULL;
    fl_device own = {.name = ""};
    const fl_device *dev = platform ? &platform->node.device[platform->node.gpu[0]] : &own;
    double least = INFINITY, most = 0; /* clocks of the rows, not of a calibration */
    for (size_t i = 0; i < c->rows.count; i++) {
        least = fmin(least, c->rows.row[i].sm_mhz);
        most = fmax(most, c->rows.row[i].sm_mhz);
    }
    drop_unheld(sweep, path, s);
    s->own_limit_w = fl_advise_settle_limits(sweep, dev);
    fl_status status = check_rows(&c->rows, path, d);
    if (!status && !platform)
        status = fl_advise_ladder(c, o->board, gpu ? gpu : "", &own, &from, d);
    for (size_t i = 0; !status && !platform && i < sweep->row_count; i++) /* even where a limit held it down */
        if (isnan(sweep->rows[i].power_cap_w) && fl_advise_as_measured(c, &sweep->rows[i]) &&
            sweep->rows[i].sm_mhz > own.default_sm_mhz)
            own.default_sm_mhz = (int32_t)lround(sweep->rows[i].sm_mhz);
    if (!status)
        status = fl_sweep_workloads(sweep, &names, &count, d);
    for (size_t i = 0; !status && i < count; i++) {
        const fl_sweep_row *lowest, *highest;
        status = fl_sweep_unmoved(sweep, names[i], &lowest, &highest, d);
        if (!status && lowest)
            fl_advise_doubt(s, FL_SWEEP_UNMOVED, sweep->names[names[i]], lowest->energy_j / lowest->time_s,
                            lowest->sm_mhz, highest->energy_j / highest->time_s, highest->sm_mhz);
        if (!status)
            status = one_workload(c, path, sweep, names[i], dev, o->bound, s, d);
    }
    if (!status && !s->count)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no workload has rows that a fit can use");
    if (!status) {
        FL_ADVISE_REST(s, "%s: %zu measured setting%s of %zu workload%s at %s%s%s MHz; %s%s%s", basename(path),
                       c->rows.count, c->rows.count == 1 ? "" : "s", count, count == 1 ? "" : "s",
                       least < most ? fl_fit_clock_text(&c->rows, least, low, sizeof low) : "",
                       least < most ? " to " : "", fl_fit_clock_text(&c->rows, most, high, sizeof high),
                       c->calibrated ? "clocks in between are predicted"
                                     : "two laws through each workload's own rows predict the clocks in between",
                       platform ? ""
                       : from   ? ", on the ladder of "
                                : ", in steps of 15 MHz: no platform describes the GPU",
                       from ? from : "");
        if (c->rows.clockless && !c->rows.latent)
            fl_advise_doubt(s, "%s: rows left out, as they name no SM clock: %zu", basename(path), c->rows.clockless);
        if (c->rows.predicted)
            FL_ADVISE_REST(s, "predicted rows of the file teach nothing: %zu", c->rows.predicted);
        note_limits(sweep, dev, s);
        if (c->rows.unsounds)
            fl_advise_doubt(
                s, "%s: rows left out, as they did not run at the clock they name (fit device tells them): %zu",
                basename(path), c->rows.unsounds);
        for (size_t i = 0; i < c->rows.clocks; i++)
            if (fl_fit_clock_shows(&c->rows, i))
                FL_ADVISE_REST(s, "rows at %g MHz ran at about %.0f MHz", c->rows.clock[i].sm_mhz,
                               c->rows.clock[i].ran_mhz);
        if (s->item[0].ref.sm_mhz > 0 && fabs(s->item[0].ref.sm_mhz - dev->default_sm_mhz) >= 0.5)
            FL_ADVISE_REST(s, "%g MHz to be compared with, as the driver's default, %g MHz, lies outside those",
                           s->item[0].ref.sm_mhz, dev->default_sm_mhz);
        if (c->calibrated)
            FL_ADVISE_REST(s, "the platform's calibration, from %u workloads", c->chip->workloads);
    }
    s->several_memories = dev->mem_count > 1 && c->mem_known;
    free(names);
    free(from);
    free(own.sm_mhz);
    free(own.mem_mhz);
    return status;
}

static size_t count_predicted(const fl_sweep *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->row_count; i++)
        n += is_predicted(&s->rows[i]);
    return n;
}

/* One workload of a file that a fit wrote, as the file states it. */
static fl_status one_stated(const char *path, const fl_sweep *sweep, uint32_t name, bool predicted,
                            const fl_device *dev, fl_advise_subjects *s, fl_diag *d) {
    fl_advise_subject *to = fl_advise_add(s, sweep->names[name]);
    to->cases = 1;
    fl_status status = fl_stated_make(sweep, name, true, 0, INFINITY, dev->default_mem_mhz, &to->of[0].stated, d);
    if (!status && !to->of[0].stated.count)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "%s: no row names an SM clock", sweep->names[name]);
    if (!status)
        to->ref = reference_of(&to->of[0].stated, dev);
    to->next_known = !predicted;
    to->next = (fl_setting_clocks){NAN, NAN, 0}; /* all was measured */
    return status;
}

/* Settings that no law can predict: predictions in a file, without a calibration that could make them again, or rows
 * of one clock under several power limits. The function uses the deviations that the file states for its rows. Measured
 * rows are as sure as measurements repeat. */
static fl_status from_stated(const char *path, fl_sweep *sweep, const fl_platform *platform, fl_advise_subjects *s,
                             fl_diag *d) {
    static const fl_device none = {.name = ""};
    const fl_device *dev = platform ? &platform->node.device[platform->node.gpu[0]] : &none;
    const size_t predicted = count_predicted(sweep);
    uint32_t *names = NULL;
    size_t count = 0;
    double mem = NAN;
    drop_unheld(sweep, path, s);
    s->own_limit_w = fl_advise_settle_limits(sweep, dev);
    for (size_t i = 0; i < sweep->row_count; i++) {
        fl_sweep_row *r = &sweep->rows[i];
        s->several_memories |= fabs(r->mem_mhz - mem) >= 0.5; /* false where one is NAN */
        mem = isnan(mem) ? r->mem_mhz : mem;
        if (!is_predicted(r)) {
            const fl_chip_guess g = fl_chip_repeats(r->time_s, r->power_w);
            r->time_sd_pct = g.time_sd_pct;
            r->power_sd_pct = g.power_sd_pct;
        }
    }
    fl_status status = fl_sweep_workloads(sweep, &names, &count, d);
    for (size_t i = 0; !status && i < count; i++)
        status = one_stated(path, sweep, names[i], predicted > 0, dev, s, d);
    free(names);
    if (status)
        return status;
    FL_ADVISE_REST(s, "%s: %zu measured and %zu predicted settings of %zu workload%s, as sure as %s", basename(path),
                   sweep->row_count - predicted, predicted, count, count == 1 ? "" : "s",
                   predicted ? "the file states"
                             : "measurements usually repeat: no law fits them, so what lies between is unknown");
    note_limits(sweep, dev, s);
    return status;
}

/* One setting of each workload, on a platform without a calibration: the same as logs of one run. Of one workload the
 * assumptions say something; of several they would say nearly the same of each. */
static fl_status from_single_rows(const fl_advise_source *f, const fl_sweep *sweep, const fl_platform *p,
                                  fl_advise_subjects *s, fl_diag *d) {
    fl_status status = FL_OK;
    const bool several = sweep->row_count > 1;
    FL_ADVISE_REST(s, "%s: one measured setting of each workload, %s", basename(f->sweep_path),
                   several ? "and nothing that tells what other clocks do to them"
                           : "whose power tells what idles and what works; how it depends on clocks was assumed, three "
                             "ways");
    for (size_t i = 0; !status && i < sweep->row_count; i++) {
        const fl_sweep_row *r = &sweep->rows[i];
        const fl_log_run run = {.sm_mhz = r->sm_mhz,
                                .mem_mhz = r->mem_mhz,
                                .time_s = r->time_s,
                                .power_w = r->power_w,
                                .steady = true,
                                .busy = NAN,
                                .limit_w = NAN};
        fl_one_probe told;
        if (isnan(r->sm_mhz))
            return fl_fail(d, FL_BAD_INPUT, f->sweep_path, r->line, 0,
                           "no sm_mhz, expected the SM clock of the setting");
        if (several) {
            (void)fl_advise_add_unknown(s, sweep->names[r->workload], "measured at one clock",
                                        fl_advise_to_measure(&run, 0, &p->node.device[p->node.gpu[0]]));
            continue;
        }
        fl_advise_subject *to = fl_advise_add(s, sweep->names[r->workload]);
        to->single = true;
        status = fl_advise_log(f->sweep_path, &run, f->o, to, &told, d);
        if (!status && !told.tells)
            FL_ADVISE_REST(s, "%s: its power tells nothing", to->name);
    }
    return status;
}

/* Whether a workload ran under several power limits. */
static bool has_limits(const fl_sweep *s) {
    for (size_t i = 0; i < s->row_count; i++)
        for (size_t k = 0; k < i; k++)
            if (s->rows[i].workload == s->rows[k].workload &&
                fabs(s->rows[i].power_cap_w - s->rows[k].power_cap_w) >= 0.5)
                return true;
    return false;
}

static bool single_rows(const fl_sweep *s) {
    for (size_t i = 0; i < s->row_count; i++)
        for (size_t k = 0; k < i; k++)
            if (s->rows[i].workload == s->rows[k].workload)
                return false;
    return true;
}

fl_status fl_advise_sweep(const fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d) {
    fl_sweep sweep = {0};
    fl_sweep_chip c = {0};
    fl_diag why = {0};
    fl_left_out left; /* what opened the file has told of it */
    fl_status status = fl_sweep_open(f->sweep_path, false, &sweep, &left, d);
    if (status)
        return status;
    status = fl_sweep_check_units(f->sweep_path, &sweep, &why);
    if (!status)
        status = fl_sweep_check_kernels(f->sweep_path, &sweep, &why);
    if (!status)
        status = fl_sweep_check_twice(f->sweep_path, &sweep, &why);
    const bool sound = !status;
    if (sound)
        status = fl_sweep_chip_open(&c, f->sweep_path, p ? p->path : NULL, &why);
    if (sound && status != FL_NO_MEMORY && !c.calibrated && count_predicted(&sweep))
        status = from_stated(f->sweep_path, &sweep, p, s, d);
    else if (!status)
        status = fl_advise_rows(&c, f->sweep_path, fl_head_get(&sweep.head, "device"), &sweep, p, f->o, s, d);
    else if (sound && status == FL_BAD_INPUT && has_limits(&sweep))
        status = from_stated(f->sweep_path, &sweep, p, s, d);
    else if (sound && status == FL_BAD_INPUT && p && single_rows(&sweep))
        status = from_single_rows(f, &sweep, p, s, d);
    else
        *d = why;
    fl_sweep_chip_free(&c);
    fl_sweep_free(&sweep);
    return status;
}
