#include "harness/advise/advise_files.h"

#include "harness/advise/advise_kernels.h"
#include "harness/advise/advise_log.h"
#include "harness/advise/advise_set.h"
#include "harness/chip/fit_clocks.h"
#include "harness/chip/sweep_check.h"
#include "harness/input/platform.h"
#include "harness/input/sweep_model.h"
#include "harness/input/sweep_notes.h"
#include "traces/tables.h"
#include "traces/trace_open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct source { /* the contents of all files together */
    const fl_texts *files;
    const fl_advise_options *o;
    fl_imported kernels; /* one recording */
    const char *kernels_path, *sweep_path;
    fl_log_run *run; /* run_count, one for each log; so are the next two */
    fl_log_ends *ends;
    const char **log;
    const char *run_path;
    char *board; /* its name in the last log; NULL = not known */
    size_t run_count;
    bool amd; /* a tool of AMD wrote one of the files */
} source;

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A log whose spacing leaves a larger share of the run's time open is told. */
#define COARSE 0.01

#define REST(s, d, ...) fl_sweep_note(&(s)->rests, &(s)->rest_count, d, __VA_ARGS__)

static fl_status add_subject(fl_advise_subjects *s, const char *name, fl_advise_subject **to, fl_diag *d) {
    if (fl_grow(&s->item, &s->room, s->count + 1, sizeof *s->item))
        return fl_no_memory(d, "the advice");
    *to = &s->item[s->count++];
    **to = (fl_advise_subject){.name = strdup(name)};
    return (*to)->name ? FL_OK : fl_no_memory(d, "the advice");
}

void fl_advise_close(fl_advise_subjects *s) {
    for (size_t i = 0; i < s->count; i++) {
        free(s->item[i].name);
        for (size_t k = 0; k < s->item[i].cases; k++)
            fl_stated_free(&s->item[i].of[k].stated);
    }
    for (size_t i = 0; i < s->rest_count; i++)
        free(s->rests[i]);
    free(s->rests);
    free(s->item);
    free(s->device);
    *s = (fl_advise_subjects){0};
}

/* ---- a sweep, or logs at several clocks ---- */

static int ascending(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* The clocks that were measured, where no platform lists the clocks. */
static fl_status ladder_of(const fl_sweep_chip *c, fl_device *dev, fl_diag *d) {
    dev->sm_mhz = calloc(c->rows.count + 1, sizeof *dev->sm_mhz);
    dev->mem_mhz = calloc(c->rows.count + 1, sizeof *dev->mem_mhz);
    if (!dev->sm_mhz || !dev->mem_mhz)
        return fl_no_memory(d, "the clocks");
    int32_t *const list[] = {dev->sm_mhz, dev->mem_mhz};
    uint32_t *const count[] = {&dev->sm_count, &dev->mem_count};
    for (size_t k = 0; k < 2; k++) {
        size_t rows = 0;
        for (size_t i = 0; i < c->rows.count; i++) /* leave out a clock that a user reaches only under another name */
            if (k || fl_fit_asked_mhz(&c->rows, c->rows.row[i].sm_mhz) == c->rows.row[i].sm_mhz)
                list[k][rows++] = (int32_t)lround(k ? c->rows.row[i].mem_mhz : c->rows.row[i].sm_mhz);
        qsort(list[k], rows, sizeof **list, ascending);
        for (size_t i = 0; i < rows; i++)
            if (!*count[k] || list[k][*count[k] - 1] < list[k][i])
                list[k][(*count[k])++] = list[k][i];
    }
    dev->default_sm_mhz = dev->sm_mhz[dev->sm_count - 1];
    dev->default_mem_mhz = dev->mem_mhz[dev->mem_count - 1];
    return FL_OK;
}

/* Savings are relative to the driver's default or, where that is not known, to the highest known clocks. */
static fl_setting_clocks reference_of(const fl_stated *s, const fl_device *dev) {
    fl_chip_guess g;
    const fl_setting_clocks last = {s->at[s->count - 1].sm_mhz, s->at[s->count - 1].mem_mhz};
    return fl_stated_at(s, dev->default_sm_mhz, dev->default_mem_mhz, &g)
               ? (fl_setting_clocks){dev->default_sm_mhz, dev->default_mem_mhz}
               : last;
}

static fl_status one_workload(const fl_sweep_chip *c, const char *path, const fl_sweep *sweep, uint32_t name,
                              const fl_device *dev, fl_advise_subjects *s, fl_diag *d) {
    fl_predicted p = {0};
    char low[48], high[48];
    fl_advise_subject *to = NULL;
    fl_status status = fl_sweep_chip_predict(c, path, sweep, name, dev, &p, d);
    if (!status)
        status = add_subject(s, sweep->names[name], &to, d);
    if (!status) {
        to->cases = 1;
        status = fl_stated_make(&p.sweep, name, true, p.law.sm_min_mhz, p.law.sm_max_mhz, dev->default_mem_mhz,
                                &to->of[0].stated, d);
    }
    if (!status && !to->of[0].stated.count)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                         "%s: no clock of the ladder lies within the measured range, %s to %s MHz", sweep->names[name],
                         fl_fit_clock_text(&c->rows, c->chip->sm_min, low, sizeof low),
                         fl_fit_clock_text(&c->rows, c->chip->sm_ref, high, sizeof high));
    if (!status)
        to->ref = reference_of(&to->of[0].stated, dev);
    fl_predicted_free(&p);
    return status;
}

/* The next measurement of each workload. */
static fl_status find_next(const fl_sweep_chip *c, fl_advise_subjects *s, fl_diag *d) {
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < s->count; i++) {
        size_t k = 0;
        while (k < i && !fl_sweep_chip_alike(c, s->item[k].name, s->item[i].name))
            k++;
        if (k < i)
            s->item[i].next = s->item[k].next;
        else
            status = fl_sweep_chip_next(c, s->item[i].name, &s->item[i].next, d);
    }
    return status;
}

static bool has_rows(const fl_sweep_chip *c, const char *workload) {
    for (size_t i = 0; i < c->rows.entities; i++)
        if (c->rows.entity[i].count && !strcmp(c->rows.entity[i].workload, workload))
            return true;
    return false;
}

static fl_status from_rows(const fl_sweep_chip *c, const char *path, const fl_sweep *sweep, const fl_platform *platform,
                           fl_advise_subjects *s, fl_diag *d) {
    uint32_t *names = NULL;
    size_t count = 0;
    char low[48], high[48];
    fl_device own = {.name = ""};
    const fl_device *dev = platform ? &platform->node.device[platform->node.gpu[0]] : &own;
    double least = INFINITY, most = 0; /* clocks of the rows, not of a calibration */
    for (size_t i = 0; i < c->rows.count; i++) {
        least = fmin(least, c->rows.row[i].sm_mhz);
        most = fmax(most, c->rows.row[i].sm_mhz);
    }
    fl_status status = platform ? FL_OK : ladder_of(c, &own, d);
    if (!status)
        status = fl_sweep_workloads(sweep, &names, &count, d);
    for (size_t i = 0; !status && i < count; i++)
        status = has_rows(c, sweep->names[names[i]])
                     ? one_workload(c, path, sweep, names[i], dev, s, d)
                     : REST(s, d, "%s is left out: all its rows are %sat a power limit, or not at the clock they name",
                            sweep->names[names[i]], c->rows.predicted ? "predicted, " : "");
    if (!status && !s->count)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no workload has rows that a fit can use");
    if (!status)
        status = REST(s, d, "%s: %zu measured setting%s of %zu workload%s at %s%s%s MHz; %s", base_name(path),
                      c->rows.count, c->rows.count == 1 ? "" : "s", count, count == 1 ? "" : "s",
                      least < most ? fl_fit_clock_text(&c->rows, least, low, sizeof low) : "",
                      least < most ? " to " : "", fl_fit_clock_text(&c->rows, most, high, sizeof high),
                      platform ? "clocks in between are predicted"
                               : "the clocks that somebody measured are the choice: --platform has all of a GPU's");
    if (!status && c->rows.predicted)
        status = REST(s, d, "predicted rows of the file teach nothing: %zu", c->rows.predicted);
    if (!status && c->rows.unsounds)
        status = REST(s, d, "rows left out, as they did not run at the clock they name (fit device tells them): %zu",
                      c->rows.unsounds);
    for (size_t i = 0; !status && i < c->rows.clocks; i++)
        if (fl_fit_clock_shows(&c->rows, i))
            status =
                REST(s, d, "rows at %g MHz ran at about %.0f MHz", c->rows.clock[i].sm_mhz, c->rows.clock[i].ran_mhz);
    if (!status && s->count && fabs(s->item[0].ref.sm_mhz - dev->default_sm_mhz) >= 0.5)
        status = REST(s, d, "%g MHz to be compared with, as the driver's default, %g MHz, lies outside those",
                      s->item[0].ref.sm_mhz, dev->default_sm_mhz);
    if (!status && c->calibrated)
        status = REST(s, d, "the platform's calibration, from %u workloads", c->chip->workloads);
    if (!status)
        status = find_next(c, s, d);
    s->several_memories = dev->mem_count > 1 && c->mem_known;
    free(names);
    free(own.sm_mhz);
    free(own.mem_mhz);
    return status;
}

static bool is_predicted(const fl_sweep_row *r) { return r->time_sd_pct > 0 || r->power_sd_pct > 0; }

static size_t count_predicted(const fl_sweep *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->row_count; i++)
        n += is_predicted(&s->rows[i]);
    return n;
}

/* One workload of a file that a fit wrote, as the file states it. */
static fl_status one_stated(const char *path, const fl_sweep *sweep, uint32_t name, const fl_device *dev,
                            fl_advise_subjects *s, fl_diag *d) {
    fl_advise_subject *to = NULL;
    fl_status status = add_subject(s, sweep->names[name], &to, d);
    if (!status) {
        to->cases = 1;
        status = fl_stated_make(sweep, name, true, 0, INFINITY, dev->default_mem_mhz, &to->of[0].stated, d);
    }
    if (!status && !to->of[0].stated.count)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "%s: no row names an SM clock", sweep->names[name]);
    if (!status)
        to->ref = reference_of(&to->of[0].stated, dev);
    return status;
}

/* Predictions in a file, without a calibration that could make them again: the function uses the deviations that the
 * file states for its rows. Measured rows are as sure as measurements repeat. */
static fl_status from_stated(const char *path, fl_sweep *sweep, const fl_platform *platform, fl_advise_subjects *s,
                             fl_diag *d) {
    static const fl_device none = {.name = ""};
    const fl_device *dev = platform ? &platform->node.device[platform->node.gpu[0]] : &none;
    const size_t predicted = count_predicted(sweep);
    uint32_t *names = NULL;
    size_t count = 0;
    double mem = NAN;
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
        status = one_stated(path, sweep, names[i], dev, s, d);
    if (!status)
        status = REST(s, d, "%s: %zu measured and %zu predicted settings of %zu workload%s, as sure as the file states",
                      base_name(path), sweep->row_count - predicted, predicted, count, count == 1 ? "" : "s");
    free(names);
    return status;
}

/* One setting of each workload, on a platform without a calibration: the same as a log of one run. */
static fl_status from_single_rows(const source *f, const fl_sweep *sweep, fl_advise_subjects *s, fl_diag *d) {
    fl_status status = REST(s, d,
                            "%s: one measured setting of each workload, whose power tells what idles and what works; "
                            "how they depend on clocks was assumed, three ways",
                            base_name(f->sweep_path));
    for (size_t i = 0; !status && i < sweep->row_count; i++) {
        const fl_sweep_row *r = &sweep->rows[i];
        const fl_log_run run = {r->sm_mhz, r->mem_mhz, r->time_s, r->power_w, true, NAN};
        fl_one_probe told;
        fl_advise_subject *to = NULL;
        if (isnan(r->sm_mhz))
            return fl_fail(d, FL_BAD_INPUT, f->sweep_path, r->line, 0,
                           "no sm_mhz, expected the SM clock of the setting");
        status = add_subject(s, sweep->names[r->workload], &to, d);
        if (!status)
            status = fl_advise_log(f->sweep_path, &run, f->o, to, &told, d);
        if (!status && !told.tells)
            status = REST(s, d, "%s: its power tells nothing", to->name);
    }
    return status;
}

static bool single_rows(const fl_sweep *s) {
    for (size_t i = 0; i < s->row_count; i++)
        for (size_t k = 0; k < i; k++)
            if (s->rows[i].workload == s->rows[k].workload)
                return false;
    return true;
}

static fl_status from_sweep(const source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d) {
    fl_sweep sweep = {0};
    fl_sweep_chip c = {0};
    fl_diag why = {0};
    fl_status status = fl_sweep_read(f->sweep_path, &sweep, d);
    if (status)
        return status;
    status = fl_sweep_check_units(f->sweep_path, &sweep, &why);
    if (!status)
        status = fl_sweep_check_twice(f->sweep_path, &sweep, &why);
    const bool sound = !status;
    if (sound)
        status = fl_sweep_chip_open(&c, f->sweep_path, p ? p->path : NULL, &why);
    if (sound && status != FL_NO_MEMORY && !c.calibrated && count_predicted(&sweep))
        status = from_stated(f->sweep_path, &sweep, p, s, d);
    else if (!status)
        status = from_rows(&c, f->sweep_path, &sweep, p, s, d);
    else if (sound && status == FL_BAD_INPUT && p && single_rows(&sweep))
        status = from_single_rows(f, &sweep, s, d);
    else
        *d = why;
    fl_sweep_chip_free(&c);
    fl_sweep_free(&sweep);
    return status;
}

static bool several_clocks(const source *f) {
    for (size_t i = 1; i < f->run_count; i++)
        if (fabs(f->run[i].sm_mhz - f->run[0].sm_mhz) > 0.5)
            return true;
    return false;
}

/* The runs as rows of one program: of a sweep, and for a fit. */
static fl_status rows_of(const fl_log_run *run, size_t count, fl_sweep *sweep, fl_fit_rows *rows, fl_diag *d) {
    rows->row = calloc(count, sizeof *rows->row);
    rows->entity = calloc(1, sizeof *rows->entity);
    sweep->rows = calloc(count, sizeof *sweep->rows);
    if (!sweep->rows || !rows->row || !rows->entity)
        return fl_no_memory(d, "the logs");
    rows->entities = rows->entity_room = 1;
    rows->entity[0] = (fl_fit_entity){.workload = strdup(sweep->names[0]), .kernel = strdup(sweep->names[1])};
    if (!rows->entity[0].workload || !rows->entity[0].kernel)
        return fl_no_memory(d, "the logs");
    rows->mem_known = true;
    for (size_t i = 0; i < count; i++)
        rows->mem_known &= !isnan(run[i].mem_mhz);
    for (size_t i = 0; i < count; i++) {
        const fl_log_run *r = &run[i];
        sweep->rows[sweep->row_count++] = (fl_sweep_row){.kernel = 1,
                                                         .sm_mhz = r->sm_mhz,
                                                         .mem_mhz = r->mem_mhz,
                                                         .power_cap_w = NAN,
                                                         .time_s = r->time_s,
                                                         .power_w = r->power_w,
                                                         .energy_j = r->time_s * r->power_w};
        rows->row[rows->count++] =
            (fl_chip_row){0, r->sm_mhz, rows->mem_known ? r->mem_mhz : 1, r->time_s, r->power_w, NULL};
    }
    rows->room = rows->count;
    fl_fit_rows_sort(rows);
    return FL_OK;
}

/* Whether the runs belong to one program. */
static fl_status from_runs(const source *f, const fl_log_run *run, const fl_platform *p, fl_sweep_chip *c,
                           fl_advise_subjects *s, fl_diag *d) {
    char program[] = "program", none[] = "";
    char *names[] = {program, none};
    fl_sweep sweep = {.names = names, .name_count = 2};
    fl_fit_rows rows = {0};
    fl_status status = rows_of(run, f->run_count, &sweep, &rows, d);
    if (!status)
        status = fl_sweep_chip_of_rows(c, &rows, f->run_path, p ? p->path : NULL, d);
    if (!status)
        status = from_rows(c, f->run_path, &sweep, p, s, d);
    fl_fit_rows_free(&rows);
    free(sweep.rows);
    return status;
}

/* The deviations of the fit do not include it. */
static fl_status note_spacing(const source *f, fl_advise_subjects *s, fl_diag *d) {
    double worst = 0;
    for (size_t i = 0; i < f->run_count; i++)
        worst = fmax(worst, f->ends[i].error_s / f->run[i].time_s);
    return worst < COARSE ? FL_OK
                          : REST(s, d,
                                 "the readings' spacing: it leaves a run's length open by up to %.2g %%, which "
                                 "the intervals and the chance leave out",
                                 100 * worst);
}

static fl_status from_logs(const source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d) {
    fl_sweep_chip c = {0};
    fl_status status = fl_log_runs_alike(f->log, f->run, f->ends, f->run_count, d);
    if (!status)
        status = from_runs(f, f->run, p, &c, s, d);
    if (!status)
        status = REST(s, d, "that the %zu logs are of the same program and the same input", f->run_count);
    for (size_t i = 0; !status && i < f->run_count; i++)
        if (!f->ends[i].whole)
            status = REST(s, d, "that %s has the whole run, although the GPU does not idle before and after it",
                          base_name(f->log[i]));
    if (!status)
        status = note_spacing(f, s, d);
    fl_sweep_chip_free(&c);
    return status;
}

/* ---- reading ---- */

static fl_status add_log(source *f, const char *path, const fl_telemetry *t, fl_diag *d) {
    fl_log_run run;
    fl_log_ends ends;
    fl_status s = fl_log_run_find(path, t, f->o->device, &run, &ends, d);
    if (!s && !run.steady)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the clocks changed during the run, expected a run at one clock");
    if (s)
        return s;
    size_t runs = f->run_count, more_ends = runs, logs = runs;
    if (fl_grow(&f->run, &runs, runs + 1, sizeof *f->run) ||
        fl_grow(&f->ends, &more_ends, more_ends + 1, sizeof *f->ends) ||
        fl_grow(&f->log, &logs, logs + 1, sizeof *f->log))
        return fl_no_memory(d, "the logs");
    const char *board = fl_head_get(&t->head, "device");
    free(f->board);
    if (!(f->board = board ? strdup(board) : NULL) && board)
        return fl_no_memory(d, "the logs");
    f->ends[f->run_count] = ends;
    f->log[f->run_count] = path;
    f->run[f->run_count++] = run;
    f->run_path = path;
    return FL_OK;
}

static fl_status add_file(source *f, const char *path, fl_diag *d) {
    const fl_import_options how = {.interval_s = f->o->interval_s, .device = (int32_t)f->o->device};
    const fl_reader *reader = NULL;
    fl_imported in = {0};
    fl_status s = fl_reader_find(path, NULL, &reader, d);
    f->amd |= !s && !strcmp(reader->name, "rocprofv3");
    if (!s)
        s = fl_trace_open(path, NULL, &how, &in, d);
    if (!s && in.has_sweep && f->sweep_path)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "a second sweep, expected one");
    if (!s && in.has_kernels && f->kernels_path)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                    "a second recording of kernels, expected one; foldline fit trace combines several");
    if (!s && !in.has_sweep && !in.has_kernels && !in.has_telemetry)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "neither kernels nor readings nor settings, expected one of these");
    if (!s && in.has_telemetry)
        s = add_log(f, path, &in.telemetry, d);
    if (!s && in.has_sweep)
        f->sweep_path = path;
    if (!s && in.has_kernels) {
        f->kernels_path = path;
        f->kernels = in;
        in = (fl_imported){0};
    }
    fl_imported_free(&in);
    return s;
}

/* The kernels ran at the clock that the log shows. */
static void set_clock(fl_kernel_trace *t, double sm_mhz) {
    for (size_t i = 0; i < t->op_count; i++)
        if (!t->ops[i].sm_mhz)
            t->ops[i].sm_mhz = (uint16_t)lround(sm_mhz);
}

/* For a platform whose constants alone say how times and powers depend on the clocks. */
static fl_status note_platform(fl_advise_subjects *s, const fl_platform *p, fl_diag *d) {
    s->several_memories = p && p->node.device[p->node.gpu[0]].mem_count > 1;
    return p ? REST(s, d, "platform %s: its laws of time and power as they are", p->name) : FL_OK;
}

static fl_status from_kernels(source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d) {
    fl_advise_subject *to = NULL;
    bool assumed = false;
    const fl_log_run *run = f->run_count ? &f->run[0] : NULL;
    if (run)
        set_clock(&f->kernels.kernels, run->sm_mhz);
    fl_status status = add_subject(s, base_name(f->kernels_path), &to, d);
    if (!status)
        status = fl_advise_kernels(f->kernels_path, &f->kernels.kernels, run, f->o, to, &assumed, d);
    if (!status)
        status = REST(s, d, "%s: the times of its kernels%s", base_name(f->kernels_path),
                      assumed ? "; how they depend on clocks was assumed, three ways" : " and their kinds");
    if (!status && run)
        status = REST(s, d, "%s: %.4g W at %g MHz", base_name(f->run_path), run->power_w, run->sm_mhz);
    return status ? status : note_platform(s, p, d);
}

/* A note on a log's power at one clock, and on what it is assumed to be. */
#define ONE_RUN                                                                                                        \
    "%s: %.4g W at %g MHz, busy for %.0f %% of the time: one measured setting, whose power tells what idles and what " \
    "works"

/* A run at one clock on a calibrated platform counts as one setting of a sweep. *done is false where the calibration
 * cannot describe this run; *s is then unchanged. */
static fl_status from_calibration(const source *f, const fl_platform *p, fl_advise_subjects *s, bool *done,
                                  fl_diag *d) {
    fl_sweep_chip c = {0};
    fl_one_probe probe = {0};
    fl_diag why = {0};
    *done = false;
    fl_status status = fl_sweep_chip_read(p->path, &c, d);
    if (status)
        return status;
    if (c.calibrated)
        probe = fl_one_probe_make(c.chip, &f->run[0]);
    fl_sweep_chip_free(&c);
    if (!probe.tells)
        return FL_OK;
    source one = *f;
    one.run_count = 1;
    status = from_runs(&one, &probe.busy, p, &c, s, &why);
    *done = !status;
    if (!status) {
        fl_stated *of = &s->item[0].of[0].stated;
        fl_one_probe_add_idle(c.chip, &probe, of->at, of->guess, of->count);
        status =
            REST(s, d, ONE_RUN "; what programs of such a power do, the calibration's tell", base_name(f->run_path),
                 f->run[0].power_w, f->run[0].sm_mhz, 100 * probe.busy.time_s / f->run[0].time_s);
    } else if (status == FL_BAD_INPUT) {
        fl_advise_close(s);
        status = FL_OK;
    } else {
        *d = why;
    }
    fl_sweep_chip_free(&c);
    return status;
}

static fl_status from_one_log(source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d) {
    fl_advise_subject *to = NULL;
    fl_one_probe probe;
    bool done = false;
    fl_status status = p ? from_calibration(f, p, s, &done, d) : FL_OK;
    if (status || done)
        return status;
    status = add_subject(s, base_name(f->run_path), &to, d);
    if (!status)
        status = fl_advise_log(f->run_path, &f->run[0], f->o, to, &probe, d);
    if (!status && probe.tells)
        status = REST(
            s, d, ONE_RUN "; how the program depends on clocks was assumed, three ways: no calibration tells it",
            base_name(f->run_path), f->run[0].power_w, f->run[0].sm_mhz, 100 * probe.busy.time_s / f->run[0].time_s);
    else if (!status)
        status = REST(
            s, d,
            "%s: %.4g W at %g MHz; how the program depends on clocks was assumed, three ways, so that this is what the "
            "platform says of any program",
            base_name(f->run_path), f->run[0].power_w, f->run[0].sm_mhz);
    if (!status)
        status = note_platform(s, p, d);
    return status;
}

/* The board that was measured; "" = no file says. */
static const char *board_name(const source *f) {
    const char *named = fl_head_get(&f->kernels.kernels.head, "device");
    return f->amd ? "AMD" : named ? named : f->board ? f->board : "";
}

static fl_status note_board(const source *f, const char *measured, bool other_vendor, const fl_platform *p,
                            const fl_device *dev, fl_advise_subjects *s, fl_diag *d) {
    const char *file = base_name(f->kernels_path ? f->kernels_path : f->run_path ? f->run_path : "");
    if (other_vendor)
        return REST(s, d,
                    "%s was recorded on another vendor's board (%s) than %s of platform %s: laws and clocks are the "
                    "platform's, the commands those of the board that was recorded",
                    file, measured, dev->name, p->name);
    return fl_advise_other_model(measured, dev->name)
               ? REST(s, d,
                      "%s was recorded on another board (%s) than %s of platform %s: laws, clocks and saving are the "
                      "platform's, and may be wrong on the board that was recorded",
                      file, measured, dev->name, p->name)
               : FL_OK;
}

fl_status fl_advise_open(const fl_texts *files, const fl_advise_options *o, fl_advise_subjects *s, fl_diag *d) {
    source f = {.files = files, .o = o};
    fl_platform p = {0};
    *s = (fl_advise_subjects){.gpu = -1};
    fl_status status = files->count ? FL_OK : fl_refuse(d, "no file given, expected a sweep, logs or a recording");
    if (!status && o->platform)
        status = fl_platform_open(o->platform, 0, &p, d);
    for (size_t i = 0; !status && i < files->count; i++)
        status = add_file(&f, files->item[i], d);
    const fl_platform *platform = o->platform ? &p : NULL;
    if (!status && f.sweep_path && (f.kernels_path || f.run_count))
        status = fl_fail(d, FL_BAD_INPUT, f.sweep_path, 0, 0, "a sweep and other files, expected the sweep alone");
    else if (!status && f.kernels_path && f.run_count > 1)
        status = fl_fail(d, FL_BAD_INPUT, f.run_path, 0, 0,
                         "two logs with a recording of kernels, expected the log of that run only");
    else if (!status)
        status = f.sweep_path         ? from_sweep(&f, platform, s, d)
                 : f.kernels_path     ? from_kernels(&f, platform, s, d)
                 : several_clocks(&f) ? from_logs(&f, platform, s, d)
                                      : from_one_log(&f, platform, s, d);
    const fl_device *dev = platform && !status ? &p.node.device[p.node.gpu[0]] : NULL;
    const char *measured = board_name(&f);
    const bool other = dev && fl_advise_other_vendor(measured, dev->name);
    if (!status && dev)
        status = note_board(&f, measured, other, &p, dev, s, d);
    if (f.run_count)
        s->gpu = o->device;
    if (!status && !(s->device = strdup(dev && !f.amd && !other ? dev->name : measured)))
        status = fl_no_memory(d, "the advice");
    fl_platform_free(&p);
    fl_imported_free(&f.kernels);
    free(f.run);
    free(f.ends);
    free(f.log);
    free(f.board);
    if (status)
        fl_advise_close(s);
    return status;
}
