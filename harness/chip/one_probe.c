/* Powers at other clocks from the power of a single run. */
#include "harness/chip/chip.h"

#include "models/chip/chip.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define BUSY_LEAST 0.5 /* of the run, at least */
#define IDLE_LEAST 0.8 /* of the law's idle power, at least: the fit itself takes that power to be known to a tenth */
#define CORNERS 4

static double idle_w(const fl_chip *chip, double sm_mhz, double mem_mhz) {
    const fl_chip_load nothing = {.tc = 1};
    return fl_chip_power(chip, &nothing, sm_mhz, mem_mhz, fl_chip_time(chip, &nothing, sm_mhz, mem_mhz));
}

fl_one_probe fl_one_probe_make(const fl_chip *chip, const fl_log_run *run) {
    fl_one_probe p = {.busy = *run};
    const double share = run->busy > 0 && run->busy < 1 ? run->busy : 1;
    if (isnan(run->mem_mhz) || !(chip->mem_min < chip->mem_ref)) /* the only memory clock that the chip knows */
        p.busy.mem_mhz = chip->mem_ref;
    const fl_chip_row at = {.sm_mhz = run->sm_mhz, .mem_mhz = p.busy.mem_mhz};
    if (!chip->has_power || fl_fit_is_beyond(chip, &at) || share < BUSY_LEAST)
        return p;
    const double idle = idle_w(chip, at.sm_mhz, at.mem_mhz);
    const double watts = (run->power_w - (1 - share) * idle) / share;
    if (!(watts >= IDLE_LEAST * idle))
        return p;
    p.busy.power_w = watts;
    p.busy.time_s = share * run->time_s;
    p.idle_s = (1 - share) * run->time_s;
    p.tells = true;
    return p;
}

fl_status fl_one_probe_of_device(const fl_device *dev, const fl_log_run *run, fl_one_probe *p, fl_chip **chip,
                                 fl_diag *d) {
    *p = (fl_one_probe){.busy = *run};
    *chip = calloc(1, sizeof **chip);
    if (!*chip)
        return fl_no_memory(d, "the chip");
    if (fl_chip_of_device(dev, *chip) == FL_MODEL_OK)
        *p = fl_one_probe_make(*chip, run);
    return FL_OK;
}

/* The assumed time at a clock: linear between the nearest settings of its memory clock; NAN outside them. */
static double time_at(const fl_chip_row *at, const fl_chip_guess *guess, size_t count, double sm_mhz, double mem_mhz) {
    const fl_chip_guess *below = NULL, *above = NULL;
    double low = 0, high = INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (fabs(at[i].mem_mhz - mem_mhz) >= 0.5)
            continue;
        if (at[i].sm_mhz <= sm_mhz + 0.5 && at[i].sm_mhz >= low) {
            low = at[i].sm_mhz;
            below = &guess[i];
        }
        if (at[i].sm_mhz >= sm_mhz - 0.5 && at[i].sm_mhz <= high) {
            high = at[i].sm_mhz;
            above = &guess[i];
        }
    }
    if (!below || !above)
        return NAN;
    return high > low ? below->time_s + (sm_mhz - low) / (high - low) * (above->time_s - below->time_s) : below->time_s;
}

/* The lowest and the highest SM clock at the lowest and the highest memory clock: their times fix the assumed time law.
 * Returns how many there are. */
static size_t find_corners(const fl_chip *chip, const fl_chip_row *at, const fl_chip_guess *guess, size_t count,
                           fl_chip_row *corner) {
    const fl_chip_row *of[CORNERS] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < CORNERS; k++) {
            const double mem = k < 2 ? -1 : 1, sm = k % 2 ? 1 : -1;
            const double further = of[k] ? mem * (at[i].mem_mhz - of[k]->mem_mhz) : 1;
            if (!fl_fit_is_beyond(chip, &at[i]) &&
                (further > 0.5 || (further > -0.5 && sm * (at[i].sm_mhz - of[k]->sm_mhz) > 0)))
                of[k] = &at[i];
        }
    for (int k = 0; k < CORNERS; k++) {
        bool again = !of[k];
        for (int i = 0; i < k; i++)
            again |= of[i] == of[k];
        if (!again)
            corner[n++] = (fl_chip_row){
                .sm_mhz = of[k]->sm_mhz, .mem_mhz = of[k]->mem_mhz, .time_s = guess[of[k] - at].time_s, .power_w = NAN};
    }
    return n;
}

/* The known setting of the run and, with extra, one more setting. */
typedef struct knowledge {
    fl_chip_row row[CORNERS + 2];
    size_t count;
} knowledge;

static fl_model_status predict(const fl_chip *chip, const knowledge *k, const fl_chip_row *at, size_t count,
                               fl_chip_guess *guess) {
    return fl_chip_predict(chip, k->row, k->count, at, count, guess, NULL);
}

/* Deviations of ln P - ln P(ref), from three predictions: from the known settings; from those and P(ref) at its
 * predicted value; and from those and P(ref) one deviation higher. The first two do not contain the deviation of
 * P(ref); the third says how much of that deviation each P shares. */
static void relative(fl_chip_guess *guess, const fl_chip_guess *known, const fl_chip_guess *higher, size_t count,
                     double ref_sd) {
    for (size_t i = 0; i < count; i++)
        guess[i].power_sd_pct =
            hypot(known[i].power_sd_pct, 100 * (log(higher[i].power_w / known[i].power_w) - ref_sd));
}

static fl_model_status find_powers(const fl_chip *chip, knowledge *k, const fl_chip_row *ref, const fl_chip_row *at,
                                   size_t count, fl_chip_guess *room) {
    fl_chip_guess top = {0};
    fl_model_status m = predict(chip, k, at, count, room);
    if (m == FL_MODEL_OK)
        m = predict(chip, k, ref, 1, &top);
    const double sd = top.power_sd_pct / 100;
    fl_chip_row *more = &k->row[k->count];
    *more = *ref;
    more->power_w = top.power_w;
    const bool ran_there = fabs(ref->sm_mhz - k->row[0].sm_mhz) < 0.5 && fabs(ref->mem_mhz - k->row[0].mem_mhz) < 0.5;
    if (m != FL_MODEL_OK || ran_there)
        return m;
    k->count++;
    m = predict(chip, k, at, count, room + count);
    more->power_w = top.power_w * exp(sd);
    if (m == FL_MODEL_OK)
        m = predict(chip, k, at, count, room + 2 * count);
    if (m == FL_MODEL_OK)
        relative(room, room + count, room + 2 * count, count, sd);
    return m;
}

fl_status fl_one_probe_powers(const fl_chip *chip, const fl_one_probe *p, const fl_chip_row *ref, const fl_chip_row *at,
                              fl_chip_guess *guess, size_t count, fl_diag *d) {
    fl_chip_row top = {.sm_mhz = ref->sm_mhz, .mem_mhz = ref->mem_mhz, .power_w = NAN};
    knowledge k = {{{.sm_mhz = p->busy.sm_mhz, .mem_mhz = p->busy.mem_mhz, .power_w = p->busy.power_w}}, 1};
    fl_chip_guess *room = calloc(3 * count + 1, sizeof *room);
    if (!room)
        return fl_no_memory(d, "the powers");
    k.row[0].time_s = time_at(at, guess, count, p->busy.sm_mhz, p->busy.mem_mhz);
    top.time_s = time_at(at, guess, count, ref->sm_mhz, ref->mem_mhz);
    k.count += find_corners(chip, at, guess, count, k.row + 1);
    const fl_model_status m =
        isnan(k.row[0].time_s) || isnan(top.time_s) ? FL_MODEL_INVALID : find_powers(chip, &k, &top, at, count, room);
    for (size_t i = 0; m == FL_MODEL_OK && i < count; i++) {
        const bool is_ref = fabs(at[i].sm_mhz - top.sm_mhz) < 0.5 && fabs(at[i].mem_mhz - top.mem_mhz) < 0.5;
        guess[i].power_w = room[i].power_w;
        guess[i].power_sd_pct = is_ref ? 0 : room[i].power_sd_pct;
    }
    free(room);
    return m == FL_MODEL_OK          ? FL_OK
           : m == FL_MODEL_NO_MEMORY ? fl_no_memory(d, "the powers")
                                     : fl_refuse(d, "no power model fits the run: %s", fl_model_text(m));
}

void fl_one_probe_add_idle(const fl_chip *chip, const fl_one_probe *p, const fl_chip_row *at, fl_chip_guess *guess,
                           size_t count) {
    for (size_t i = 0; p->idle_s > 0 && i < count; i++) {
        fl_chip_guess *g = &guess[i];
        const double busy_j = g->time_s * g->power_w, idle_j = p->idle_s * idle_w(chip, at[i].sm_mhz, at[i].mem_mhz);
        const double time = g->time_s + p->idle_s;
        g->power_sd_pct *= busy_j / (busy_j + idle_j);
        g->time_sd_pct *= g->time_s / time;
        g->power_w = (busy_j + idle_j) / time;
        g->time_s = time;
    }
}
