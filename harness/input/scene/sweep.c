/* Scenes of a sweep, and how sure a fitted model is of them. */
#include "harness/input/scene/inside.h"

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
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how sure a model is ---- */

static double or_zero(double x) { return isnan(x) ? 0 : x; }

static double limit_or_none(double limit_w) { return limit_w > 0 ? limit_w : (double)INFINITY; }

static int by_clocks(const void *a, const void *b) {
    const fl_setting_clocks *x = a, *y = b;
    if (fabs(x->mem_mhz - y->mem_mhz) > 0)
        return x->mem_mhz < y->mem_mhz ? -1 : 1;
    if (fabs(x->sm_mhz - y->sm_mhz) > 0)
        return x->sm_mhz < y->sm_mhz ? -1 : 1;
    return (limit_or_none(x->limit_w) > limit_or_none(y->limit_w)) -
           (limit_or_none(x->limit_w) < limit_or_none(y->limit_w));
}

bool fl_stated_same(fl_setting_clocks a, fl_setting_clocks b) {
    return fabs(a.sm_mhz - b.sm_mhz) < 0.5 && fabs(a.mem_mhz - b.mem_mhz) < 0.5 && fabs(a.limit_w - b.limit_w) < 0.5;
}

/* What settings of the rows have where a row names none. */
typedef struct standard {
    double mem_mhz, limit_w; /* limit_w: INFINITY where some row names no limit */
} standard;

static standard standard_of(const fl_sweep *s, uint32_t workload, double mem_mhz) {
    standard k = {mem_mhz, 0};
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i].workload == workload)
            k.limit_w = fmax(k.limit_w, isnan(s->rows[i].power_cap_w) ? (double)INFINITY : s->rows[i].power_cap_w);
    return k;
}

static fl_setting_clocks setting_of(const fl_sweep_row *r, const standard *k) {
    return (fl_setting_clocks){r->sm_mhz, isnan(r->mem_mhz) ? k->mem_mhz : r->mem_mhz,
                               r->power_cap_w < k->limit_w ? r->power_cap_w : 0};
}

/* The settings of the workload, each once. */
static fl_status find_settings(const fl_sweep *s, uint32_t workload, double sm_min, double sm_max, const standard *k,
                               fl_stated *out, fl_diag *d) {
    out->at = calloc(s->row_count + 1, sizeof *out->at);
    out->guess = calloc(s->row_count + 1, sizeof *out->guess);
    if (!out->at || !out->guess)
        return fl_no_memory(d, "the settings");
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload == workload && r->sm_mhz >= sm_min && r->sm_mhz <= sm_max)
            out->at[out->count++] = setting_of(r, k);
    }
    qsort(out->at, out->count, sizeof *out->at, by_clocks);
    size_t n = 0;
    for (size_t i = 0; i < out->count; i++)
        if (!n || !fl_stated_same(out->at[n - 1], out->at[i]))
            out->at[n++] = out->at[i];
    out->count = n;
    return FL_OK;
}

/* The mean of a kernel's rows at a setting; false where it has none. */
static bool kernel_at(const fl_sweep *s, uint32_t workload, uint32_t kernel, fl_setting_clocks at, const standard *k,
                      fl_chip_guess *g) {
    double n = 0;
    *g = (fl_chip_guess){0};
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload != workload || r->kernel != kernel || !fl_stated_same(at, setting_of(r, k)))
            continue;
        g->time_s += r->time_s;
        g->power_w += r->energy_j / r->time_s;
        g->time_sd_pct += or_zero(r->time_sd_pct);
        g->power_sd_pct += or_zero(r->power_sd_pct);
        n++;
    }
    if (!(n > 0))
        return false;
    *g = (fl_chip_guess){g->time_s / n, g->power_w / n, g->time_sd_pct / n, g->power_sd_pct / n, g->basis};
    return true;
}

/* Adds the workload's kernels up at one setting; false where one is not known there. */
static bool add_up(const fl_sweep *s, uint32_t workload, const uint32_t *kernel, size_t kernels, fl_setting_clocks at,
                   const standard *norm, fl_chip_guess *sum) {
    double time_sd = 0, energy = 0, power_sd = 0;
    *sum = (fl_chip_guess){0};
    for (size_t k = 0; k < kernels; k++) {
        fl_chip_guess g;
        if (!kernel_at(s, workload, kernel[k], at, norm, &g))
            return false;
        sum->time_s += g.time_s;
        energy += g.time_s * g.power_w;
        time_sd += g.time_s * g.time_sd_pct;
        power_sd += g.time_s * g.power_w * g.power_sd_pct;
    }
    sum->power_w = energy / sum->time_s;
    sum->time_sd_pct = time_sd / sum->time_s;
    sum->power_sd_pct = power_sd / energy;
    return true;
}

/* Names of the workload's kernels, each once, into kernel; how many. */
static size_t find_kernels(const fl_sweep *s, uint32_t workload, uint32_t *kernel) {
    size_t n = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        size_t k = 0;
        while (k < n && kernel[k] != s->rows[i].kernel)
            k++;
        if (s->rows[i].workload == workload && k == n)
            kernel[n++] = s->rows[i].kernel;
    }
    return n;
}

fl_status fl_stated_make(const fl_sweep *s, uint32_t workload, bool predicted, double sm_min, double sm_max,
                         double mem_mhz, fl_stated *out, fl_diag *d) {
    *out = (fl_stated){0};
    bool any = predicted;
    for (size_t i = 0; i < s->row_count; i++)
        any |= s->rows[i].workload == workload && (s->rows[i].time_sd_pct > 0 || s->rows[i].power_sd_pct > 0);
    if (!any)
        return FL_OK;
    const standard k = standard_of(s, workload, mem_mhz);
    uint32_t *kernel = calloc(s->row_count + 1, sizeof *kernel);
    fl_status status =
        kernel ? find_settings(s, workload, sm_min, sm_max, &k, out, d) : fl_no_memory(d, "the settings");
    const size_t kernels = status ? 0 : find_kernels(s, workload, kernel);
    size_t n = 0;
    for (size_t i = 0; !status && i < out->count; i++)
        if (add_up(s, workload, kernel, kernels, out->at[i], &k, &out->guess[n]))
            out->at[n++] = out->at[i];
    out->count = n;
    out->fitted = true;
    free(kernel);
    if (status)
        fl_stated_free(out);
    return status;
}

void fl_stated_rest(fl_stated *s, fl_chip_basis basis, double time_noise_pct, double power_noise_pct) {
    s->basis = basis;
    s->time_noise_pct = time_noise_pct;
    s->power_noise_pct = power_noise_pct;
}

void fl_stated_free(fl_stated *s) {
    free(s->at);
    free(s->guess);
    *s = (fl_stated){0};
}

fl_chip_row *fl_stated_rows(const fl_stated *s) {
    fl_chip_row *row = calloc(s->count + 1, sizeof *row);
    for (size_t i = 0; row && i < s->count; i++)
        row[i] = (fl_chip_row){.sm_mhz = s->at[i].sm_mhz, .mem_mhz = s->at[i].mem_mhz};
    return row;
}

bool fl_stated_at(const fl_stated *s, fl_setting_clocks at, fl_chip_guess *out) {
    size_t below = s->count, above = s->count;
    for (size_t i = 0; i < s->count; i++) {
        if (fabs(s->at[i].mem_mhz - at.mem_mhz) >= 0.5 || fabs(s->at[i].limit_w - at.limit_w) >= 0.5)
            continue;
        if (s->at[i].sm_mhz <= at.sm_mhz + 0.5)
            below = i;
        if (above == s->count && s->at[i].sm_mhz >= at.sm_mhz - 0.5)
            above = i;
    }
    if (below == s->count || above == s->count)
        return false;
    const fl_chip_guess *a = &s->guess[below], *b = &s->guess[above];
    const double span = s->at[above].sm_mhz - s->at[below].sm_mhz;
    const double x = span > 0 ? (at.sm_mhz - s->at[below].sm_mhz) / span : 0;
    *out = (fl_chip_guess){a->time_s + x * (b->time_s - a->time_s),
                           a->power_w + x * (b->power_w - a->power_w),
                           hypot(fmax(a->time_sd_pct, b->time_sd_pct), s->time_noise_pct),
                           hypot(fmax(a->power_sd_pct, b->power_sd_pct), s->power_noise_pct),
                           s->basis,
                           s->time_noise_pct};
    return true;
}

/* The chosen setting and the reference: one of them where they are the same. */
static bool find_two(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, fl_chip_guess two[2],
                     size_t *top) {
    *top = fl_stated_same(chosen, ref) ? 0 : 1;
    return fl_stated_at(s, chosen, &two[0]) && fl_stated_at(s, ref, &two[1]);
}

double fl_stated_chance(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound) {
    fl_chip_guess two[2];
    size_t top;
    return find_two(s, chosen, ref, two, &top) ? fl_decide_chance(&two[0], &two[top], bound) : (double)NAN;
}

double fl_stated_regret(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound,
                        double delay) {
    fl_chip_guess two[2], *all = malloc((s->count + 2) * sizeof *all);
    size_t top;
    double regret = NAN;
    if (all && find_two(s, chosen, ref, two, &top)) {
        size_t n = 0;
        all[n++] = two[0];
        all[n++] = two[top];
        for (size_t i = 0; i < s->count; i++)
            if (fl_stated_same((fl_setting_clocks){s->at[i].sm_mhz, s->at[i].mem_mhz, 0}, s->at[i]) &&
                !fl_stated_same(s->at[i], chosen) && !fl_stated_same(s->at[i], ref)) /* who chose set no limit */
                all[n++] = s->guess[i];
        regret = fl_decide_regret(all, n, top, 0, bound, delay);
    }
    free(all);
    return regret;
}

/* ---- notes on measured rows ---- */

fl_status fl_sweep_note(char ***note, size_t *count, fl_diag *d, const char *format, ...) {
    char *text = NULL, **more = realloc(*note, (*count + 1) * sizeof *more);
    va_list list;
    if (!more)
        return fl_no_memory(d, "the notes");
    *note = more;
    va_start(list, format);
    const int size = vasprintf(&text, format, list);
    va_end(list);
    if (size < 0)
        return fl_no_memory(d, "the notes");
    more[(*count)++] = text;
    return FL_OK;
}

static int order(double a, double b) {
    return isnan(a) || isnan(b) ? !isnan(b) - !isnan(a) : (a > b) - (a < b); /* not known comes last */
}

static int by_setting(const void *pa, const void *pb) {
    const fl_sweep_row *a = *(const fl_sweep_row *const *)pa, *b = *(const fl_sweep_row *const *)pb;
    int o = (a->kernel > b->kernel) - (a->kernel < b->kernel);
    o = o ? o : order(a->sm_mhz, b->sm_mhz);
    o = o ? o : order(a->mem_mhz, b->mem_mhz);
    return o ? o : order(a->power_cap_w, b->power_cap_w);
}

/* Rows of the workload whose setting another row before has. */
static fl_status count_again(const fl_sweep *sweep, uint32_t name, size_t *again, fl_diag *d) {
    const fl_sweep_row **row = malloc((sweep->row_count + 1) * sizeof *row);
    size_t n = 0;
    *again = 0;
    if (!row)
        return fl_no_memory(d, "the notes");
    for (size_t i = 0; i < sweep->row_count; i++)
        if (sweep->rows[i].workload == name)
            row[n++] = &sweep->rows[i];
    qsort(row, n, sizeof *row, by_setting);
    for (size_t i = 1; i < n; i++)
        *again += by_setting(&row[i - 1], &row[i]) == 0;
    free(row);
    return FL_OK;
}

/* Appends to note[0..count), malloc'd texts: settings of workload `name` (an index into the sweep's names) that were
 * predicted where the device was not calibrated, that contradict themselves (energy is not power x time, by over 5 %),
 * and that were measured more than once. */
static fl_status fl_sweep_notes(const fl_sweep *sweep, uint32_t name, char ***note, size_t *count, fl_diag *d) {
    const char *text = fl_head_get(&sweep->head, "beyond_calibration");
    const size_t beyond = text ? strcspn(text, ",") : 0;
    size_t odd = 0, again = 0;
    double worst = 0;
    int64_t line = 0;
    for (size_t i = 0; i < sweep->row_count; i++) {
        const fl_sweep_row *r = &sweep->rows[i];
        if (r->workload != name)
            continue;
        const double off = r->energy_j / (r->power_w * r->time_s) - 1;
        odd += fabs(off) > 0.05;
        if (fabs(off) > fabs(worst)) {
            worst = off;
            line = r->line;
        }
    }
    fl_status status = count_again(sweep, name, &again, d);
    if (!status && text)
        status = fl_sweep_note(note, count, d, "%.*s predicted at clocks that the device was not calibrated at%s",
                               (int)beyond, text, text + beyond);
    if (!status && odd)
        status = fl_sweep_note(
            note, count, d,
            "%zu settings whose energy_j is not power_w x time_s, by up to %+.0f %% (line %lld): energy_j "
            "counts, power follows from it",
            odd, 100 * worst, (long long)line);
    const fl_sweep_row *low = NULL, *high = NULL;
    if (!status)
        status = fl_sweep_odd(sweep, name, &low, &high, d);
    if (!status && low)
        status = fl_sweep_note(note, count, d,
                               "%s took %g s at %g MHz (line %lld), but %g s at %g MHz (line %lld): no clock explains "
                               "that, and one of these rows is wrong; what is computed from them is not to be trusted",
                               sweep->names[name], low->time_s, low->sm_mhz, (long long)low->line, high->time_s,
                               high->sm_mhz, (long long)high->line);
    if (!status)
        status = fl_sweep_unmoved(sweep, name, &low, &high, d);
    if (!status && low)
        status = fl_sweep_note(note, count, d, FL_SWEEP_UNMOVED, sweep->names[name], low->energy_j / low->time_s,
                               low->sm_mhz, high->energy_j / high->time_s, high->sm_mhz);
    if (!status && again)
        status =
            fl_sweep_note(note, count, d, "%zu rows repeat a setting: each setting is the mean of its rows", again);
    return status;
}

/* ---- rows or a fit as the model ---- */

static void drop_clockless(fl_sweep_model *m) {
    fl_sweep *s = &m->sweep;
    size_t kept = 0;
    for (size_t i = 0; i < s->row_count; i++)
        kept += isnan(s->rows[i].sm_mhz) ? 0 : 1;
    if (!kept)
        return;
    m->clockless = s->row_count - kept;
    kept = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        if (isnan(s->rows[i].sm_mhz))
            continue;
        s->rows[kept] = s->rows[i];
        if (s->activity)
            memmove(s->activity + kept * FL_COUNTERS, s->activity + i * FL_COUNTERS, FL_COUNTERS * sizeof(double));
        if (s->util)
            memmove(s->util + kept * FL_UTILS, s->util + i * FL_UTILS, FL_UTILS * sizeof(double));
        kept++;
    }
    s->row_count = kept;
}

fl_status fl_sweep_model_open(const char *path, const char *model, const char *platform, fl_sweep_model *m,
                              fl_diag *d) {
    fl_platform p = {0};
    *m = (fl_sweep_model){.path = path, .fitted = !strcmp(model, "fitted")};
    if (!m->fitted && strcmp(model, "table") != 0)
        return fl_refuse(d, "--model '%s': expected table or fitted", model);
    fl_status s = fl_sweep_open(path, false, &m->sweep, &m->left, d);
    if (!s)
        drop_clockless(m);
    if (!s)
        s = fl_sweep_check_units(path, &m->sweep, d);
    if (!s)
        s = fl_sweep_check_kernels(path, &m->sweep, d);
    if (!s && (s = fl_sweep_check_twice(path, &m->sweep, &m->twice)) == FL_BAD_INPUT && !m->fitted)
        s = FL_OK; /* a note of each workload tells it */
    else if (s && m->twice.status)
        *d = m->twice;
    if (!s)
        s = fl_sweep_workloads(&m->sweep, &m->names, &m->count, d);
    if (!s)
        s = fl_platform_open(platform, 0, &p, d);
    if (!s && m->fitted)
        s = fl_sweep_chip_open(&m->chip, path, p.path, d);
    if (!s)
        s = fl_sweep_chip_plain(&m->plain, path, &p.node.device[p.node.gpu[0]], d);
    fl_platform_free(&p);
    if (s)
        fl_sweep_model_free(m);
    return s;
}

void fl_sweep_model_free(fl_sweep_model *m) {
    free(m->names);
    fl_sweep_free(&m->sweep);
    fl_sweep_chip_free(&m->chip);
    fl_sweep_chip_free(&m->plain);
    *m = (fl_sweep_model){0};
}

static fl_status note_predicted(const fl_sweep_model *m, const fl_predicted *p, const fl_device *dev, char ***note,
                                size_t *notes, fl_diag *d) {
    fl_status s = FL_OK;
    char low[48], high[48];
    if (p->unused)
        s = fl_sweep_note(note, notes, d,
                          "%zu rows outside the clocks that the platform was calibrated at teach nothing", p->unused);
    if (!s && p->beyond)
        s = fl_sweep_note(
            note, notes, d,
            "%zu of %zu clocks of %s lie outside those that %s (%s to %s MHz): they are extrapolated, and "
            "no static choice takes them%s",
            p->beyond, p->settings, dev->name,
            m->chip.calibrated ? "the platform was calibrated at" : "the sweep covers",
            fl_fit_clock_text(&m->chip.rows, m->chip.chip->sm_min, low, sizeof low),
            fl_fit_clock_text(&m->chip.rows, m->chip.chip->sm_ref, high, sizeof high),
            dev->default_sm_mhz < p->law.sm_min_mhz || dev->default_sm_mhz > p->law.sm_max_mhz
                ? ". The driver's default is one of them: all savings stand on it"
                : "");
    return s;
}

/* Rows in doubt are among the notes of each workload. */
static fl_status note_left(const fl_left_out *left, char ***note, size_t *notes, fl_diag *d) {
    char text[400];
    fl_status s = FL_OK;
    for (int i = 0; !s && fl_left_text(left, i, text, sizeof text); i++)
        s = *text && i != FL_LEFT_DOUBT ? fl_sweep_note(note, notes, d, "%s", text) : FL_OK;
    return s;
}

/* Count the rows of the workload that its replay does not use, and say why. */
static fl_status note_unused(const fl_sweep *s, uint32_t name, const fl_workload *w, char ***note, size_t *notes,
                             fl_diag *d) {
    const fl_load *load = &w->class[0].load;
    double cap = NAN;
    size_t rows = 0, capped = 0, memory = 0;
    for (size_t i = 0; i < s->row_count; i++)
        if (s->rows[i].workload == name && !(s->rows[i].power_cap_w <= cap) && !isnan(s->rows[i].power_cap_w))
            cap = s->rows[i].power_cap_w;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (r->workload != name)
            continue;
        rows++;
        if (r->power_cap_w < cap)
            capped++;
        else if (!isnan(r->mem_mhz) && !fl_measured_find(load->measured, load->ref_mem_mhz, r->mem_mhz))
            memory++;
    }
    fl_status status = FL_OK;
    if (capped)
        status = fl_sweep_note(note, notes, d,
                               "%zu of %zu rows of a workload are not replayed, because their power limit lies below "
                               "its highest, %g W: the platform's laws say what a limit does, and advise what was "
                               "measured",
                               capped, rows, cap);
    if (!status && memory)
        status = fl_sweep_note(note, notes, d,
                               "%zu of %zu rows of a workload are not replayed, because their memory clock is not the "
                               "platform's or was not measured from %g to %g MHz; --model fitted uses them",
                               memory, rows, w->sm_min_mhz, w->sm_max_mhz);
    return status;
}

/* Name the rows that the fits leave out. A table replays them, and a static clock may be one of them. */
static fl_status note_unsound(const fl_sweep_model *m, uint32_t name, char ***note, size_t *notes, fl_diag *d) {
    char said[300];
    return *fl_fit_unsound_said(&m->plain.rows, m->sweep.names[name], said, sizeof said)
               ? fl_sweep_note(
                     note, notes, d,
                     "%s. Advise and fits leave such rows out, a table counts them: what is computed from them "
                     "is not to be trusted",
                     said)
               : FL_OK;
}

fl_status fl_sweep_model_build(const fl_sweep_model *m, size_t i, const fl_node_spec *node,
                               const fl_sweep_replay *replay, fl_workload **w, fl_stated *stated, char ***note,
                               size_t *notes, fl_diag *d) {
    const uint32_t name = m->names[i];
    const fl_device *dev = &node->device[node->gpu[0]];
    fl_predicted p = {0};
    fl_status s = note_left(&m->left, note, notes, d);
    if (!s && m->clockless)
        s = fl_sweep_note(note, notes, d, "rows left out, as they name no SM clock: %zu", m->clockless);
    if (!s && m->twice.status)
        s = fl_sweep_note(note, notes, d,
                          "line %lld: %s; each setting is the mean of its rows, which is not to be trusted",
                          (long long)m->twice.line, m->twice.message);
    if (!s)
        s = fl_sweep_notes(&m->sweep, name, note, notes, d);
    if (!s && !m->fitted)
        s = note_unsound(m, name, note, notes, d);
    if (!s && m->fitted) {
        s = fl_sweep_chip_predict(&m->chip, m->path, &m->sweep, name, dev, &p, d);
        if (!s)
            s = note_predicted(m, &p, dev, note, notes, d);
    }
    if (!s && m->plain.chip)
        s = fl_sweep_chip_shares(&m->plain, &m->sweep, name, &p.law, d);
    const fl_sweep *rows = m->fitted ? &p.sweep : &m->sweep;
    if (!s)
        s = fl_build_sweep(w, m->path, rows, name, &p.law, replay, node, d);
    if (!s && !m->fitted)
        s = note_unused(rows, name, *w, note, notes, d);
    if (!s)
        s = fl_stated_make(rows, name, m->fitted, (*w)->sm_min_mhz, (*w)->sm_max_mhz, dev->default_mem_mhz, stated, d);
    fl_stated_rest(stated, p.basis, p.time_noise_pct, p.power_noise_pct);
    fl_predicted_free(&p);
    return s;
}
