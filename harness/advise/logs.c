/* Advice on logs of runs of one program. */
#include "harness/advise/inside.h"

#include "harness/advise/advise.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/chip/chip.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A log whose spacing leaves a larger share of the run's time open is told. */
#define COARSE 0.01

/* The runs as rows of one program: of a sweep, and for a fit. */
static void rows_of(const fl_log_run *run, size_t count, fl_sweep *sweep, fl_fit_rows *rows) {
    rows->row = fl_must(calloc(count, sizeof *rows->row));
    rows->entity = fl_must(calloc(1, sizeof *rows->entity));
    sweep->rows = fl_must(calloc(count, sizeof *sweep->rows));
    rows->entities = rows->entity_room = 1;
    rows->entity[0] =
        (fl_fit_entity){.workload = fl_must(strdup(sweep->names[0])), .kernel = fl_must(strdup(sweep->names[1]))};
    rows->mem_known = true;
    for (size_t i = 0; i < count; i++)
        rows->mem_known &= !isnan(run[i].mem_mhz);
    double highest = 0;
    for (size_t i = 0; i < count; i++)
        highest = fmax(highest, isnan(run[i].limit_w) ? 0 : run[i].limit_w);
    for (size_t i = 0; i < count; i++) {
        const fl_log_run *r = &run[i];
        const bool lower =
            r->limit_w < highest && r->power_w >= FL_CAP_CREST_LEAST * r->limit_w; /* it may have bound */
        sweep->rows[sweep->row_count++] = (fl_sweep_row){.kernel = 1,
                                                         .sm_mhz = r->sm_mhz,
                                                         .mem_mhz = r->mem_mhz,
                                                         .power_cap_w = lower ? r->limit_w : (double)NAN,
                                                         .time_s = r->time_s,
                                                         .power_w = r->power_w,
                                                         .energy_j = r->time_s * r->power_w};
        rows->row[rows->count++] =
            (fl_chip_row){0, r->sm_mhz, rows->mem_known ? r->mem_mhz : 1, r->time_s, r->power_w, NULL};
    }
    rows->room = rows->count;
    fl_fit_rows_sort(rows);
}

/* Whether the runs belong to one program. */
static fl_status from_runs(const fl_advise_source *f, const fl_log_run *run, const fl_platform *p, fl_sweep_chip *c,
                           fl_advise_subjects *s, fl_diag *d) {
    char program[] = "program", none[] = "";
    char *names[] = {program, none};
    fl_sweep sweep = {.names = names, .name_count = 2};
    fl_fit_rows rows = {0};
    rows_of(run, f->run_count, &sweep, &rows);
    fl_status status = fl_sweep_chip_of_rows(c, &rows, f->run_path, p ? p->path : NULL, d);
    if (!status)
        status = fl_advise_rows(c, f->run_path, &sweep, p, s, d);
    fl_fit_rows_free(&rows);
    free(sweep.rows);
    return status;
}

/* The deviations of the fit do not include it. */
static void note_spacing(const fl_advise_source *f, fl_advise_subjects *s) {
    double worst = 0;
    for (size_t i = 0; i < f->run_count; i++)
        worst = fmax(worst, f->ends[i].error_s / f->run[i].time_s);
    if (worst >= COARSE)
        FL_ADVISE_REST(s,
                       "the readings' spacing: it leaves a run's length open by up to %.2g %%, which the intervals and "
                       "the chance leave out",
                       100 * worst);
}

fl_status fl_advise_logs(const fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d) {
    fl_sweep_chip c = {0};
    const char *slow = NULL;
    fl_status status = fl_log_runs_alike(f->log, f->run, f->ends, f->run_count, &slow, d);
    if (!status)
        status = from_runs(f, f->run, p, &c, s, d);
    fl_sweep_chip_free(&c);
    if (status)
        return status;
    FL_ADVISE_REST(s, "that the %zu logs are of the same program and the same input", f->run_count);
    for (size_t i = 0; i < f->run_count; i++)
        if (!f->ends[i].whole)
            FL_ADVISE_REST(s, "that %s has the whole run, although the GPU does not idle before and after it",
                           basename(f->log[i]));
    if (slow)
        FL_ADVISE_REST(s, "that all logs have whole runs, although %s took longer than its clock says of most boards",
                       basename(slow));
    note_spacing(f, s);
    return FL_OK;
}

/* A note on a log's power at one clock, and on what it is assumed to be. */
#define ONE_RUN                                                                                                        \
    "%s: %.4g W at %g MHz, busy for %.0f %% of the time: one measured setting, whose power tells what idles and what " \
    "works"

/* A run at one clock on a calibrated platform counts as one setting of a sweep. *done is false where the calibration
 * cannot describe this run; *s is then unchanged. */
static fl_status from_calibration(const fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, bool *done,
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
    fl_advise_source one = *f;
    one.run_count = 1;
    status = from_runs(&one, &probe.busy, p, &c, s, &why);
    *done = !status;
    if (!status) {
        fl_stated *of = &s->item[0].of[0].stated;
        fl_chip_row *at = fl_must(fl_stated_rows(of));
        fl_one_probe_add_idle(c.chip, &probe, at, of->guess, of->count);
        FL_ADVISE_REST(s, ONE_RUN "; what programs of such a power do, the calibration's tell", basename(f->run_path),
                       f->run[0].power_w, f->run[0].sm_mhz, 100 * probe.busy.time_s / f->run[0].time_s);
        free(at);
    } else if (status == FL_BAD_INPUT) {
        fl_advise_close(s);
        status = FL_OK;
    } else {
        *d = why;
    }
    fl_sweep_chip_free(&c);
    return status;
}

fl_status fl_advise_one_log(const fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d) {
    fl_one_probe probe;
    bool done = false;
    fl_status status = p ? from_calibration(f, p, s, &done, d) : FL_OK;
    if (status || done)
        return status;
    status = fl_advise_log(f->run_path, &f->run[0], f->o, fl_advise_add(s, basename(f->run_path)), &probe, d);
    if (status)
        return status;
    if (probe.tells)
        FL_ADVISE_REST(
            s, ONE_RUN "; how the program depends on clocks was assumed, three ways: no calibration tells it",
            basename(f->run_path), f->run[0].power_w, f->run[0].sm_mhz, 100 * probe.busy.time_s / f->run[0].time_s);
    else
        FL_ADVISE_REST(
            s,
            "%s: %.4g W at %g MHz; how the program depends on clocks was assumed, three ways, so that this is what the "
            "platform says of any program",
            basename(f->run_path), f->run[0].power_w, f->run[0].sm_mhz);
    fl_advise_note_platform(s, p);
    return FL_OK;
}
