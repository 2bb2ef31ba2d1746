/* Predicts the workloads of a sweep at every setting of a ladder. */
#include "harness/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/chip/chip.h"
#include "models/chip/chip.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- the chip ---- */

static fl_status read_calibration(const char *platform, fl_sweep_chip *c, fl_diag *d) {
    cJSON *tree = NULL;
    fl_status s = fl_json_read(platform, &tree, d);
    if (!s && cJSON_HasObjectItem(tree, "calibration")) {
        const fl_json root = fl_json_root(tree, platform);
        fl_json at;
        s = fl_json_get_object(&root, "calibration", &at, d);
        if (!s)
            s = fl_chip_from_json(&at, c->chip, &c->mem_known, d);
        if (!s)
            s = fl_fit_clocks_apply(&at, &c->rows, d);
        c->calibrated = !s;
    }
    cJSON_Delete(tree);
    return s;
}

fl_status fl_sweep_chip_read(const char *platform, fl_sweep_chip *c, fl_diag *d) {
    *c = (fl_sweep_chip){.chip = calloc(1, sizeof *c->chip)};
    const fl_status s = c->chip ? read_calibration(platform, c, d) : fl_no_memory(d, "the chip");
    if (s)
        fl_sweep_chip_free(c);
    return s;
}

fl_status fl_sweep_chip_of_rows(fl_sweep_chip *c, fl_fit_rows *rows, const char *sweep, const char *platform,
                                fl_diag *d) {
    *c = (fl_sweep_chip){.chip = calloc(1, sizeof *c->chip), .rows = *rows};
    *rows = (fl_fit_rows){0};
    fl_status s = c->chip ? FL_OK : fl_no_memory(d, "the chip");
    if (!s && platform)
        s = read_calibration(platform, c, d);
    if (!s)
        s = fl_fit_drop_unsound(&c->rows, d);
    if (!s && c->calibrated) {
        fl_fit_rows_match(&c->rows, c->chip, c->mem_known);
    } else if (!s) {
        c->mem_known = c->rows.mem_known;
        if (fl_chip_of_rows(c->rows.row, c->rows.count, c->chip) != FL_MODEL_OK)
            s = fl_fail(d, FL_BAD_INPUT, sweep, 0, 0,
                        "no workload has two %ssettings, and the platform has no calibration: expected a second clock, "
                        "or a platform that foldline fit device wrote",
                        c->rows.predicted ? "measured " : "");
    }
    if (s)
        fl_sweep_chip_free(c);
    return s;
}

fl_status fl_sweep_chip_open(fl_sweep_chip *c, const char *sweep, const char *platform, fl_diag *d) {
    const char *file[] = {sweep};
    const fl_texts files = {.item = file, .count = 1}, all = {0};
    fl_fit_rows rows = {0};
    *c = (fl_sweep_chip){0};
    const fl_status s = fl_fit_rows_read_powers(&files, &all, &rows, d);
    return s ? s : fl_sweep_chip_of_rows(c, &rows, sweep, platform, d);
}

fl_status fl_sweep_chip_plain(fl_sweep_chip *c, const char *sweep, const fl_device *dev, fl_diag *d) {
    const char *file[] = {sweep};
    const fl_texts files = {.item = file, .count = 1}, all = {0};
    fl_diag ignored = {0};
    *c = (fl_sweep_chip){.chip = calloc(1, sizeof *c->chip), .mem_known = true};
    if (!c->chip)
        return fl_no_memory(d, "the chip");
    fl_status s = fl_fit_rows_read_predicted(&files, &all, &c->rows, &ignored);
    if (!s)
        s = fl_fit_drop_unsound(&c->rows, &ignored);
    if (s == FL_OK && fl_chip_of_device(dev, c->chip) == FL_MODEL_OK) {
        fl_fit_rows_match(&c->rows, c->chip, c->mem_known);
        return FL_OK;
    }
    free(c->chip);
    c->chip = NULL;
    return s == FL_NO_MEMORY ? fl_no_memory(d, "the chip") : FL_OK;
}

void fl_sweep_chip_free(fl_sweep_chip *c) {
    fl_fit_rows_free(&c->rows);
    free(c->chip);
    *c = (fl_sweep_chip){0};
}

bool fl_fit_is_beyond(const fl_chip *chip, const fl_chip_row *row) {
    return row->sm_mhz < chip->sm_min - 0.5 || row->sm_mhz > chip->sm_ref + 0.5 || row->mem_mhz < chip->mem_min - 0.5 ||
           row->mem_mhz > chip->mem_ref + 0.5;
}

fl_chip_guess fl_chip_measured(const fl_chip *chip, double time_s, double power_w, double rows) {
    return (fl_chip_guess){time_s, power_w, 100 * chip->time_error.scatter / sqrt(rows),
                           100 * chip->power_error.scatter / sqrt(rows)};
}

fl_chip_guess fl_chip_repeats(double time_s, double power_w) {
    return (fl_chip_guess){time_s, power_w, 100 * FL_ROW_NOISE_TIME, 100 * FL_ROW_NOISE_POWER};
}

/* ---- one workload at the settings of a ladder ---- */

typedef struct prediction { /* of one kernel */
    const fl_sweep_chip *c;
    const fl_fit_entity *e;
    uint32_t kernel;    /* index of its name in the sweep */
    fl_chip_row *known; /* known_count of the entity's rows */
    size_t known_count;
    fl_chip_row *asked; /* one for each pair of clocks: mems x SM clocks */
    fl_chip_guess *guess;
    size_t asked_count;
} prediction;

static void prediction_free(prediction *p) {
    free(p->known);
    free(p->asked);
    free(p->guess);
}

/* The rows of a kernel that may be used: those within the calibration. */
static fl_status find_known(prediction *p, size_t *unused, fl_diag *d) {
    p->known = calloc(p->e->count + 1, sizeof *p->known);
    if (!p->known)
        return fl_no_memory(d, "the settings");
    for (size_t i = p->e->first; i < p->e->first + p->e->count; i++) {
        if (fl_fit_is_beyond(p->c->chip, &p->c->rows.row[i]))
            ++*unused;
        else
            p->known[p->known_count++] = p->c->rows.row[i];
    }
    return FL_OK;
}

/* Laws of a workload's own hold between its own rows. */
static void narrow(const prediction *p, fl_sweep_law *law) {
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < p->known_count; i++) {
        low = fmin(low, p->known[i].sm_mhz);
        high = fmax(high, p->known[i].sm_mhz);
    }
    law->sm_min_mhz = fmax(law->sm_min_mhz, low - 0.5);
    law->sm_max_mhz = fmin(law->sm_max_mhz, high + 0.5);
}

/* Index of the entity's kernel among the names of the sweep; UINT32_MAX where the entity belongs to another workload.
 */
static uint32_t kernel_of(const fl_sweep *s, uint32_t name, const fl_fit_entity *e) {
    for (size_t i = 0; !strcmp(e->workload, s->names[name]) && i < s->row_count; i++)
        if (s->rows[i].workload == name && !strcmp(s->names[s->rows[i].kernel], e->kernel))
            return s->rows[i].kernel;
    return UINT32_MAX;
}

/* The mean of the rows measured at a setting, also of those that the device's own power limit held down: it holds
 * whoever sets that clock down as well. False where there is none. */
static bool measured_at(const prediction *p, const fl_chip_row *at, const fl_device *dev, fl_chip_guess *g) {
    double n = 0, time = 0, power = 0;
    for (size_t i = 0; i < p->known_count; i++) {
        if (fabs(p->known[i].sm_mhz - at->sm_mhz) >= 0.5 || fabs(p->known[i].mem_mhz - at->mem_mhz) >= 0.5)
            continue;
        time += p->known[i].time_s;
        power += p->known[i].power_w;
        n++;
    }
    for (size_t i = 0; !(n > 0) && i < p->c->rows.cappeds; i++) {
        const fl_fit_capped *r = &p->c->rows.capped[i];
        if (&p->c->rows.entity[r->entity] == p->e && fabs(r->limit_w - dev->power_default_w) < 0.5 &&
            fabs(r->sm_mhz - at->sm_mhz) < 0.5 && (!p->c->mem_known || fabs(r->mem_mhz - at->mem_mhz) < 0.5)) {
            *g = fl_chip_measured(p->c->chip, r->time_s, r->power_w, 1);
            return true;
        }
    }
    if (n > 0)
        *g = fl_chip_measured(p->c->chip, time / n, power / n, n);
    return n > 0;
}

/* parts: may be NULL. */
static fl_status predict(prediction *p, fl_chip_load *parts, fl_diag *d) {
    const fl_model_status f =
        fl_chip_predict(p->c->chip, p->known, p->known_count, p->asked, p->asked_count, p->guess, parts);
    if (f != FL_MODEL_OK)
        return fl_error(d, f == FL_MODEL_NO_MEMORY ? FL_NO_MEMORY : FL_BAD_INPUT,
                        "%s: no model fits its %zu settings: %s", p->e->workload, p->known_count, fl_model_text(f));
    return FL_OK;
}

/* The memory clocks of the ladder that the chip knows: all within its calibration or, where it does not distinguish
 * them, the default. Writes them into mem and returns how many. */
static uint32_t memories(const fl_sweep_chip *c, const fl_device *dev, double *mem) {
    uint32_t n = 0;
    if (!c->mem_known) {
        mem[0] = dev->default_mem_mhz;
        return 1;
    }
    for (uint32_t i = 0; i < dev->mem_count; i++)
        if (dev->mem_mhz[i] >= c->chip->mem_min - 0.5 && dev->mem_mhz[i] <= c->chip->mem_ref + 0.5)
            mem[n++] = dev->mem_mhz[i];
    return n;
}

static fl_status ask_ladder(prediction *p, const fl_device *dev, const double *mem, uint32_t mems, fl_diag *d) {
    p->asked_count = (size_t)mems * dev->sm_count;
    p->asked = calloc(p->asked_count + 1, sizeof *p->asked);
    p->guess = calloc(p->asked_count + 1, sizeof *p->guess);
    if (!p->asked || !p->guess)
        return fl_no_memory(d, "the settings");
    for (uint32_t k = 0; k < mems; k++)
        for (uint32_t i = 0; i < dev->sm_count; i++)
            p->asked[(size_t)k * dev->sm_count + i] =
                (fl_chip_row){.sm_mhz = dev->sm_mhz[i],
                              .mem_mhz = p->c->mem_known ? mem[k] : p->c->chip->mem_ref,
                              .time_s = NAN,
                              .power_w = NAN};
    return FL_OK;
}

/* Sums the stated deviations over settings within the calibration that were not measured. */
typedef struct expected {
    double time, power, n;
} expected;

static fl_status add_rows(const prediction *p, const fl_device *dev, const double *mem, uint32_t name,
                          fl_predicted *out, expected *e, fl_diag *d) {
    if (fl_grow(&out->sweep.rows, &out->sweep.row_room, out->sweep.row_count + p->asked_count, sizeof *out->sweep.rows))
        return fl_no_memory(d, "the settings");
    for (size_t i = 0; i < p->asked_count; i++) {
        fl_chip_guess g = p->guess[i];
        out->basis = i ? out->basis : g.basis;
        if (isnan(g.time_s) && p->c->chip->law == FL_CHIP_OWN)
            continue; /* a memory clock at which the workload was measured once or never */
        if (!measured_at(p, &p->asked[i], dev, &g) && !fl_fit_is_beyond(p->c->chip, &p->asked[i])) {
            e->time += g.time_sd_pct;
            e->power += g.power_sd_pct;
            e->n++;
        }
        if (!(g.time_s > 0) || !(g.power_w > 0) || !isfinite(g.time_s * g.power_w))
            return fl_refuse(d, "%s: the model gives no time and power at %g MHz", p->e->workload, p->asked[i].sm_mhz);
        out->sweep.rows[out->sweep.row_count++] = (fl_sweep_row){.workload = name,
                                                                 .kernel = p->kernel,
                                                                 .sm_mhz = p->asked[i].sm_mhz,
                                                                 .mem_mhz = mem[i / dev->sm_count],
                                                                 .power_cap_w = NAN,
                                                                 .time_s = g.time_s,
                                                                 .power_w = g.power_w,
                                                                 .energy_j = g.time_s * g.power_w,
                                                                 .energy_cv = NAN,
                                                                 .ratio = NAN,
                                                                 .ratio_cv = NAN,
                                                                 .time_sd_pct = g.time_sd_pct,
                                                                 .power_sd_pct = g.power_sd_pct};
    }
    return FL_OK;
}

static fl_status predict_kernel(const fl_sweep_chip *c, const fl_fit_entity *e, uint32_t kernel, uint32_t name,
                                const fl_device *dev, const double *mem, uint32_t mems, fl_predicted *out,
                                expected *sum, fl_diag *d) {
    prediction p = {.c = c, .e = e, .kernel = kernel};
    char low[48], high[48];
    fl_status s = find_known(&p, &out->unused, d);
    if (!s && !e->count)
        s = fl_refuse(d,
                      "%s: a fit can use none of its rows: all are at a power limit, or did not run at the clock "
                      "they name",
                      e->workload);
    if (!s && !p.known_count)
        s = fl_refuse(d,
                      "%s: none of its settings lies within the clocks that the platform was calibrated at (%s to %s "
                      "MHz), expected one",
                      e->workload, fl_fit_clock_text(&c->rows, c->chip->sm_min, low, sizeof low),
                      fl_fit_clock_text(&c->rows, c->chip->sm_ref, high, sizeof high));
    if (!s && c->chip->law == FL_CHIP_OWN)
        narrow(&p, &out->law);
    if (!s)
        s = ask_ladder(&p, dev, mem, mems, d);
    if (!s)
        s = predict(&p, NULL, d);
    if (!s)
        s = add_rows(&p, dev, mem, name, out, sum, d);
    prediction_free(&p);
    return s;
}

#define FREEDOM 2 /* repeated runs, at least, beyond one of each setting: fewer tell no noise */

/* How far repeated runs at a setting differ, all workloads together, of the mean of as many runs as a setting has. */
static void find_noise(const fl_sweep_chip *c, const char *workload, fl_predicted *out) {
    double time = 0, power = 0, freedom = 0, runs = 0, settings = 0;
    for (size_t i = 0, end; i < c->rows.count; i = end) { /* equal settings lie side by side */
        const fl_chip_row *r = &c->rows.row[i];
        double t = 0, p = 0;
        for (end = i;
             end < c->rows.count && c->rows.row[end].workload == r->workload &&
             fabs(c->rows.row[end].sm_mhz - r->sm_mhz) < 0.5 && fabs(c->rows.row[end].mem_mhz - r->mem_mhz) < 0.5;
             end++) {
            t += log(c->rows.row[end].time_s);
            p += log(c->rows.row[end].power_w);
        }
        const double n = (double)(end - i);
        for (size_t k = i; k < end; k++) {
            time += pow(log(c->rows.row[k].time_s) - t / n, 2);
            power += pow(log(c->rows.row[k].power_w) - p / n, 2);
        }
        freedom += n - 1;
        if (!strcmp(c->rows.entity[r->workload].workload, workload)) {
            runs += n;
            settings++;
        }
    }
    if (freedom < FREEDOM || !(runs > 0))
        return;
    out->time_noise_pct = 100 * sqrt(time / freedom * settings / runs);
    out->power_noise_pct = isnan(power) ? 0 : 100 * sqrt(power / freedom * settings / runs);
}

fl_status fl_sweep_chip_predict(const fl_sweep_chip *c, const char *file, const fl_sweep *s, uint32_t name,
                                const fl_device *dev, fl_predicted *out, fl_diag *d) {
    expected sum = {0};
    fl_predicted p = {
        .sweep = {.head = s->head, .names = s->names, .name_count = s->name_count},
        .law = {.predicted = true, .sm_min_mhz = c->chip->sm_min - 0.5, .sm_max_mhz = c->chip->sm_ref + 0.5},
        .settings = dev->sm_count};
    double *mem = calloc(dev->mem_count + 1, sizeof *mem);
    fl_status status = mem ? FL_OK : fl_no_memory(d, "the settings");
    const uint32_t mems = status ? 0 : memories(c, dev, mem);
    if (!status && !c->chip->has_power)
        status = fl_fail(d, FL_BAD_INPUT, file, 0, 0, "%s: no power model fits the sweep", s->names[name]);
    if (!status && !mems)
        status = fl_fail(d, FL_BAD_INPUT, file, 0, 0,
                         "%s was measured at memory clocks of %g to %g MHz, expected some of %s's: %d to %d MHz",
                         s->names[name], c->chip->mem_min, c->chip->mem_ref, dev->name, dev->mem_mhz[0],
                         dev->mem_mhz[dev->mem_count - 1]);
    bool any = false;
    for (size_t i = 0; !status && i < c->rows.entities; i++) {
        const uint32_t kernel = kernel_of(s, name, &c->rows.entity[i]);
        if (kernel == UINT32_MAX)
            continue;
        any = true;
        status = predict_kernel(c, &c->rows.entity[i], kernel, name, dev, mem, mems, &p, &sum, d);
    }
    if (!status && !any)
        status = fl_fail(d, FL_BAD_INPUT, file, 0, 0, "%s: a fit can use none of its settings", s->names[name]);
    find_noise(c, s->names[name], &p);
    for (uint32_t i = 0; i < dev->sm_count; i++)
        p.beyond += dev->sm_mhz[i] < p.law.sm_min_mhz || dev->sm_mhz[i] > p.law.sm_max_mhz;
    /* the mean absolute value of a normal deviate is sqrt(2/pi) of its deviation */
    p.law.time_pct = sum.n > 0 ? sqrt(M_2_PI) * sum.time / sum.n : (double)NAN;
    p.law.power_pct = sum.n > 0 ? sqrt(M_2_PI) * sum.power / sum.n : (double)NAN;
    free(mem);
    if (status)
        fl_predicted_free(&p);
    *out = p;
    return status;
}

/* At one memory clock the data cannot separate the memory's part from the rest: the time that no clock changes counts
 * as memory time first. */
static fl_load shares_of(const fl_chip *chip, const fl_chip_load *parts) {
    const bool told = chip->mem_min < chip->mem_ref;
    return (fl_load){.tc = parts->tc,
                     .tm = told ? parts->tm : parts->tm + parts->tl,
                     .tl = told ? parts->tl : 0,
                     .sharpness = chip->sharpness,
                     .ref_sm_mhz = chip->sm_ref,
                     .ref_mem_mhz = chip->mem_ref};
}

fl_status fl_sweep_chip_shares(const fl_sweep_chip *c, const fl_sweep *s, uint32_t name, fl_sweep_law *law,
                               fl_diag *d) {
    fl_status status = FL_OK;
    law->load = calloc(s->name_count + 1, sizeof *law->load);
    if (!law->load)
        return fl_no_memory(d, "the settings");
    for (size_t i = 0; !status && i < c->rows.entities; i++) {
        size_t unused = 0;
        fl_chip_load parts = {0};
        prediction p = {.c = c, .e = &c->rows.entity[i], .kernel = kernel_of(s, name, &c->rows.entity[i])};
        if (p.kernel == UINT32_MAX)
            continue;
        status = find_known(&p, &unused, d);
        if (!status && p.known_count > 1) { /* a single setting predicts nothing */
            status = predict(&p, &parts, d);
            if (!status)
                law->load[p.kernel] = shares_of(c->chip, &parts);
            else if (status == FL_BAD_INPUT)
                status = FL_OK; /* not known in this case either */
        }
        prediction_free(&p);
    }
    if (status) {
        free(law->load);
        law->load = NULL;
    }
    return status;
}

void fl_predicted_free(fl_predicted *p) {
    free(p->sweep.rows);
    free(p->law.load);
    *p = (fl_predicted){0};
}
