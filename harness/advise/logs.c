/* Advice on logs of runs: of one program, or of several, which are never merged. */
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

#define FL_MUST_NOTE(list, count, ...) fl_must_have(!fl_sweep_note(list, count, NULL, __VA_ARGS__))

/* The runs as rows of one program: of a sweep, and for a fit. */
static void rows_of(fl_advise_ran *const *ran, size_t count, fl_sweep *sweep, fl_fit_rows *rows) {
    rows->row = fl_must(calloc(count, sizeof *rows->row));
    rows->entity = fl_must(calloc(1, sizeof *rows->entity));
    sweep->rows = fl_must(calloc(count, sizeof *sweep->rows));
    rows->entities = rows->entity_room = 1;
    rows->entity[0] =
        (fl_fit_entity){.workload = fl_must(strdup(sweep->names[0])), .kernel = fl_must(strdup(sweep->names[1]))};
    rows->mem_known = true;
    for (size_t i = 0; i < count; i++)
        rows->mem_known &= !isnan(ran[i]->run.mem_mhz);
    double highest = 0;
    for (size_t i = 0; i < count; i++)
        highest = fmax(highest, isnan(ran[i]->run.limit_w) ? 0 : ran[i]->run.limit_w);
    for (size_t i = 0; i < count; i++) {
        const fl_log_run *r = &ran[i]->run;
        sweep->rows[sweep->row_count++] = (fl_sweep_row){.kernel = 1,
                                                         .sm_mhz = r->sm_mhz,
                                                         .mem_mhz = r->mem_mhz,
                                                         .power_cap_w = fl_log_limit(r->limit_w, r->power_w, highest),
                                                         .time_s = r->time_s,
                                                         .power_w = r->power_w,
                                                         .energy_j = r->time_s * r->power_w};
        rows->row[rows->count++] = (fl_chip_row){0, r->sm_mhz, rows->mem_known ? r->mem_mhz : 1, r->time_s, r->power_w};
    }
    rows->room = rows->count;
    fl_fit_rows_sort(rows);
}

/* The runs of one program as one workload; diagnostics name the last log. */
static fl_status from_runs(fl_advise_ran *const *ran, size_t count, const fl_platform *p, const fl_advise_options *o,
                           fl_sweep_chip *c, fl_advise_subjects *s, fl_diag *d) {
    char none[] = "";
    char *names[] = {ran[0]->program, none};
    const char *path = ran[count - 1]->path;
    fl_sweep sweep = {.names = names, .name_count = 2};
    fl_fit_rows rows = {0};
    rows_of(ran, count, &sweep, &rows);
    fl_status status = fl_sweep_chip_of_rows(c, &rows, path, p ? p->path : NULL, d);
    if (!status)
        status = fl_advise_rows(c, path, ran[count - 1]->board, &sweep, p, o, s, d);
    fl_fit_rows_free(&rows);
    free(sweep.rows);
    return status;
}

/* The share of a run's length that the spacing of its readings leaves open, the largest of all runs. */
static double open_share(fl_advise_ran *const *ran, size_t count) {
    double worst = 0;
    for (size_t i = 0; i < count; i++)
        worst = fmax(worst, ran[i]->ends.error_s / ran[i]->run.time_s);
    return worst;
}

/* What a log leaves open, and what was taken for it. */
static void note_runs(fl_advise_ran *const *ran, size_t count, fl_advise_subjects *s) {
    for (size_t i = 0; i < count; i++) {
        const fl_log_run *r = &ran[i]->run;
        const char *file = basename(ran[i]->path);
        if (!ran[i]->ends.whole)
            fl_advise_doubt(s, "%s: taken as the whole run, although the GPU does not idle before and after it", file);
        if (ran[i]->ends.idle_s > 0)
            fl_advise_doubt(s, "%s: " FL_LOG_IDLES, file, ran[i]->ends.idle_s, ran[i]->ends.idle_at_s);
        if (!isnan(ran[i]->ends.above_w))
            fl_advise_doubt(s, "%s: " FL_LOG_BY_POWER, file, ran[i]->ends.above_w);
        if (r->sm_stated)
            FL_ADVISE_REST(s, "%s states no SM clock: %g MHz are by its name or by --sm-mhz", file, r->sm_mhz);
        else if (r->sm_low_mhz < r->sm_high_mhz)
            FL_ADVISE_REST(s, "%s: " FL_LOG_WANDERS, file, r->sm_low_mhz, r->sm_high_mhz, r->sm_mhz);
    }
    const double worst = open_share(ran, count);
    if (worst >= COARSE)
        FL_ADVISE_REST(s,
                       "the readings' spacing: it leaves a run's length open by up to %.2g %%, which the intervals and "
                       "the chance of logs at several clocks count",
                       100 * worst);
}

/* Logs of one program at several clocks. */
static fl_status from_clocks(const fl_advise_source *f, fl_advise_ran *const *ran, size_t count, const fl_platform *p,
                             fl_advise_subjects *s, fl_diag *d) {
    fl_sweep_chip c = {0};
    fl_status status = from_runs(ran, count, p, f->o, &c, s, d);
    fl_sweep_chip_free(&c);
    if (status)
        return status;
    fl_advise_subject *to = &s->item[s->count - 1];
    fl_stated *of = &to->of[0].stated;
    /* both ends are anywhere within half a spacing: two uniform errors, of whose range error_s is half */
    of->time_noise_pct = hypot(of->time_noise_pct, 100 * open_share(ran, count) / sqrt(6));
    size_t room = 0;
    for (size_t i = 0; i < count; i++)
        if (ran[i]->run.sm_low_mhz < ran[i]->run.sm_high_mhz) { /* a limit or the heat held it below the lock */
            fl_must_grow(&to->lock, &room, to->locks + 1, sizeof *to->lock);
            to->lock[to->locks++] = (fl_advise_lock){ran[i]->run.sm_mhz, ran[i]->run.sm_high_mhz};
        }
    note_runs(ran, count, s);
    return FL_OK;
}

/* Moves the subjects and notes of `from` to the end of those of `to`. */
static void take(fl_advise_subjects *to, fl_advise_subjects *from) {
    for (size_t i = 0; i < from->count; i++) {
        fl_must_grow(&to->item, &to->room, to->count + 1, sizeof *to->item);
        to->item[to->count++] = from->item[i];
    }
    for (size_t i = 0; i < from->doubts; i++)
        fl_advise_doubt(to, "%s", from->rests[i]);
    for (size_t i = from->doubts; i < from->rest_count; i++)
        if (!fl_advise_rests(to, from->rests[i]))
            FL_ADVISE_REST(to, "%s", from->rests[i]);
    from->count = 0;
    to->several_memories |= from->several_memories;
    to->own_limit_w = fmax(to->own_limit_w, from->own_limit_w);
}

/* A note on a log's power at one clock, and on what it is assumed to be. */
#define ONE_RUN                                                                                                        \
    "%s: %.4g W at %g MHz, busy for %.0f %% of the time: one measured setting, whose power tells what idles and what " \
    "works"

/* A run at one clock on a calibrated platform counts as one setting of a sweep. *done is false where the calibration
 * cannot describe this run; *s is then unchanged. */
static fl_status from_calibration(fl_advise_ran *ran, const fl_platform *p, const fl_advise_options *o,
                                  fl_advise_subjects *s, bool *done, fl_diag *d) {
    fl_sweep_chip c = {0};
    fl_one_probe probe = {0};
    fl_diag why = {0};
    fl_advise_subjects own = {0};
    *done = false;
    fl_status status = fl_sweep_chip_read(p->path, &c, d);
    if (status)
        return status;
    if (c.calibrated)
        probe = fl_one_probe_make(c.chip, &ran->run);
    fl_sweep_chip_free(&c);
    if (!probe.tells)
        return FL_OK;
    fl_advise_ran busy = *ran, *one = &busy;
    busy.run = probe.busy;
    status = from_runs(&one, 1, p, o, &c, &own, &why);
    *done = !status;
    if (!status) {
        fl_stated *of = &own.item[0].of[0].stated;
        fl_chip_row *at = fl_must(fl_stated_rows(of));
        fl_one_probe_add_idle(c.chip, &probe, at, of->guess, of->count);
        FL_ADVISE_REST(&own, ONE_RUN "; what programs of such a power do, the calibration's tell", basename(ran->path),
                       ran->run.power_w, ran->run.sm_mhz, 100 * probe.busy.time_s / ran->run.time_s);
        note_runs(&ran, 1, &own);
        free(at);
        take(s, &own);
    } else if (status == FL_BAD_INPUT) {
        status = FL_OK;
    } else {
        *d = why;
    }
    fl_advise_close(&own);
    fl_sweep_chip_free(&c);
    return status;
}

/* A run at one clock, where no calibration tells what other clocks do. */
static fl_status from_assumptions(const fl_advise_source *f, fl_advise_ran *ran, const fl_platform *p,
                                  fl_advise_subjects *s, fl_diag *d) {
    fl_one_probe probe;
    const fl_log_run *run = &ran->run;
    const char *file = basename(ran->path);
    fl_advise_subject *to = fl_advise_add(s, file);
    to->single = true;
    fl_status status = fl_advise_log(ran->path, run, f->o, to, &probe, d);
    if (status)
        return status;
    if (probe.tells)
        FL_ADVISE_REST(s,
                       ONE_RUN "; how the program depends on clocks was assumed, three ways: no calibration tells it",
                       file, run->power_w, run->sm_mhz, 100 * probe.busy.time_s / run->time_s);
    else
        FL_ADVISE_REST(
            s,
            "%s: %.4g W at %g MHz; how the program depends on clocks was assumed, three ways, so that this is what the "
            "platform says of any program",
            file, run->power_w, run->sm_mhz);
    note_runs(&ran, 1, s);
    fl_advise_note_platform(s, p);
    return FL_OK;
}

/* ---- the programs of the logs ---- */

typedef struct program {
    fl_advise_ran **ran; /* those that are used, then those that are set aside */
    size_t count, sound;
} program;

static int by_program(const void *a, const void *b) {
    const fl_advise_ran *x = *(fl_advise_ran *const *)a, *y = *(fl_advise_ran *const *)b;
    const int o = strcmp(x->program, y->program);
    return o ? o : (x > y) - (x < y);
}

static bool several_clocks(const program *g) {
    for (size_t i = 1; i < g->sound; i++)
        if (fabs(g->ran[i]->run.sm_mhz - g->ran[0]->run.sm_mhz) > 0.5)
            return true;
    return false;
}

static fl_status check_boards(const program *g, fl_diag *d) {
    const fl_advise_ran *named = NULL;
    for (size_t i = 0; i < g->count; i++) {
        const fl_advise_ran *r = g->ran[i];
        if (r->board && named && fl_advise_other_model(r->board, named->board))
            return fl_fail(d, FL_BAD_INPUT, r->path, 0, 0,
                           "the board is %s, but %s in %s: expected logs of one model of board", r->board, named->board,
                           named->path);
        named = r->board ? r : named;
    }
    return FL_OK;
}

/* Sets aside what contradicts, and puts it last. */
static void judge(program *g, const fl_advise_idle *all) {
    fl_advise_judge(g->ran, g->count, all);
    for (size_t i = 0; i < g->count; i++)
        if (!g->ran[i]->aside) {
            fl_advise_ran *r = g->ran[i];
            memmove(g->ran + g->sound + 1, g->ran + g->sound, (i - g->sound) * sizeof(*g->ran));
            g->ran[g->sound++] = r;
        }
}

static fl_status refuse_aside(const fl_advise_ran *r, fl_diag *d) {
    return fl_fail(d, FL_BAD_INPUT, r->path, r->line, 0, "%s", r->aside);
}

static const fl_advise_ran *first_aside(const fl_advise_source *f) {
    for (size_t i = 0; i < f->ran_count; i++)
        if (f->ran[i].aside)
            return &f->ran[i];
    return NULL;
}

static fl_status one_program(const fl_advise_source *f, const program *g, const fl_platform *p, fl_advise_subjects *s,
                             fl_diag *d) {
    bool done = false;
    fl_status status = check_boards(g, d);
    if (!status && several_clocks(g)) {
        status = from_clocks(f, g->ran, g->sound, p, s, d);
        if (!status)
            FL_ADVISE_REST(s, "that the %zu logs did equal work: the same program with the same input", g->sound);
        return status;
    }
    if (!status && p && g->sound)
        status = from_calibration(g->ran[0], p, f->o, s, &done, d);
    if (status || done)
        return status;
    return g->sound < g->count ? refuse_aside(g->ran[g->sound], d) : from_assumptions(f, g->ran[0], p, s, d);
}

static fl_setting_clocks to_measure(const fl_advise_source *f, const program *g, const fl_platform *p) {
    const fl_log_run *run = &g->ran[0]->run;
    double top = 0;
    for (size_t i = 0; i < f->ran_count; i++)
        top = fmax(top, isnan(f->ran[i].run.sm_mhz) ? 0 : f->ran[i].run.sm_mhz);
    return g->sound ? fl_advise_to_measure(run, top, p ? &p->node.device[p->node.gpu[0]] : NULL)
                    : (fl_setting_clocks){run->sm_mhz, run->mem_mhz, 0}; /* that run again */
}

/* One program of several: by its own logs, or with the reason why nothing is known. */
static fl_status add_program(const fl_advise_source *f, const program *g, const fl_platform *p, fl_advise_subjects *s,
                             fl_diag *d) {
    fl_advise_subjects own = {0};
    fl_diag why = {0};
    bool done = false;
    fl_status status = check_boards(g, &why);
    if (!status && several_clocks(g)) {
        status = from_clocks(f, g->ran, g->sound, p, &own, &why);
        done = !status;
    } else if (!status && p && g->sound) {
        status = from_calibration(g->ran[0], p, f->o, &own, &done, &why);
    }
    if (status && status != FL_BAD_INPUT) {
        *d = why;
        fl_advise_close(&own);
        return status;
    }
    fl_advise_subject *to = NULL;
    if (done) {
        for (size_t i = own.doubts; i < own.rest_count; i++)
            FL_MUST_NOTE(&own.item[0].rests, &own.item[0].rest_count, "%s", own.rests[i]);
        take(s, &own);
        to = &s->item[s->count - 1];
    } else {
        to = fl_advise_add_unknown(s, g->ran[0]->program,
                                   status     ? why.message
                                   : g->sound ? "measured at one clock"
                                              : "no whole run",
                                   to_measure(f, g, p));
    }
    to->gpu = g->ran[0]->gpu;
    for (size_t i = 0; i < g->sound; i++)
        FL_MUST_NOTE(&to->file, &to->files, "%s", g->ran[i]->path);
    fl_advise_close(&own);
    return FL_OK;
}

static fl_status several_programs(const fl_advise_source *f, const program *g, size_t count, const fl_platform *p,
                                  fl_advise_subjects *s, fl_diag *d) {
    size_t answered = 0, alone = 0, logs = 0, sound = 0;
    fl_status status = FL_OK;
    for (size_t i = 0; !status && i < count; i++) {
        status = add_program(f, &g[i], p, s, d);
        answered += !status && s->item[s->count - 1].cases > 0;
        alone += !status && !s->item[s->count - 1].cases && g[i].sound;
        logs += g[i].count;
        sound += g[i].sound;
    }
    if (!status && !sound)
        status = refuse_aside(first_aside(f), d);
    if (status)
        return status;
    FL_ADVISE_REST(
        s, "%zu log%s of %zu programs, by what the logs or their names say: --workload NAME says that it is one", logs,
        logs == 1 ? "" : "s", count);
    if (answered)
        FL_ADVISE_REST(s, "that the logs of a program did equal work: the same program with the same input");
    if (alone)
        FL_ADVISE_REST(s, "%zu program%s measured at one clock: no log says what another clock does to %s", alone,
                       alone == 1 ? " was" : "s were", alone == 1 ? "it" : "them");
    return FL_OK;
}

fl_status fl_advise_logs(fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d) {
    fl_advise_ran **ran = fl_must(calloc(f->ran_count, sizeof(*ran)));
    program *g = fl_must(calloc(f->ran_count, sizeof *g));
    size_t count = 0;
    for (size_t i = 0; i < f->ran_count; i++)
        ran[i] = &f->ran[i];
    qsort(ran, f->ran_count, sizeof(*ran), by_program);
    for (size_t i = 0; i < f->ran_count; i++) {
        if (!i || strcmp(ran[i]->program, ran[i - 1]->program) != 0)
            g[count++].ran = ran + i;
        g[count - 1].count++;
    }
    fl_advise_idle idle = {.count = f->ran_count};
    for (size_t i = 0; i < f->ran_count; i++) {
        idle.before += f->ran[i].ends.idle_before;
        idle.after += f->ran[i].ends.idle_after;
    }
    for (size_t i = 0; i < count; i++)
        judge(&g[i], &idle);
    for (size_t i = 0; i < f->ran_count; i++)
        if (f->ran[i].aside)
            FL_MUST_NOTE(&s->aside, &s->aside_count, "%s: %s", basename(f->ran[i].path), f->ran[i].aside);
    const fl_status status = count == 1 ? one_program(f, &g[0], p, s, d) : several_programs(f, g, count, p, s, d);
    free(ran);
    free(g);
    return status;
}
