/* Opens the files that advice is asked about, and sorts them into sweeps, logs and recordings. */
#include "harness/advise/inside.h"

#include "harness/advise/advise.h"
#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "models/laws/device.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static fl_status add_log(fl_advise_source *f, const char *path, const fl_telemetry *t, fl_diag *d) {
    fl_log_run run;
    fl_log_ends ends;
    fl_status s = fl_log_run_find(path, t, f->o->device, &run, &ends, d);
    if (!s && !run.steady)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the clocks changed during the run, expected a run at one clock");
    if (s)
        return s;
    size_t runs = f->run_count, more_ends = runs, logs = runs;
    fl_must_grow(&f->run, &runs, runs + 1, sizeof *f->run);
    fl_must_grow(&f->ends, &more_ends, more_ends + 1, sizeof *f->ends);
    fl_must_grow(&f->log, &logs, logs + 1, sizeof *f->log);
    const char *board = fl_head_get(&t->head, "device");
    if (board && f->board && fl_advise_other_model(board, f->board))
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "the board is %s, but %s in %s: expected logs of one model of board", board, f->board,
                       f->run_path);
    free(f->board);
    f->board = board ? fl_must(strdup(board)) : NULL;
    f->ends[f->run_count] = ends;
    f->log[f->run_count] = path;
    f->run[f->run_count++] = run;
    f->run_path = path;
    return FL_OK;
}

/* What the file's numbers rest on with doubts: first on the terminal, and among what the advice rests on. */
static void tell_doubts(const char *path, const fl_imported *in, const fl_log_ends *ends, fl_advise_subjects *s) {
    fl_notes_tell(path, in->note, in->doubt_count);
    for (size_t i = 0; i < in->doubt_count; i++)
        FL_ADVISE_REST(s, "%s: %s", basename(path), in->note[i]);
    if (!ends || !fl_accounts_differ(ends->counter_w, ends->sensor_w))
        return;
    fl_terminal_say(stderr, "note: %s: " FL_LOG_ACCOUNTS, basename(path), ends->counter_w, ends->sensor_w);
    FL_ADVISE_REST(s, "%s: " FL_LOG_ACCOUNTS, basename(path), ends->counter_w, ends->sensor_w);
}

static fl_status add_file(fl_advise_source *f, const char *path, fl_advise_subjects *subjects, fl_diag *d) {
    const fl_import_options how = {.interval_s = f->o->interval_s, .device = (int32_t)f->o->device};
    const fl_reader *reader = NULL;
    fl_imported in = {0};
    fl_status s = fl_reader_find(path, NULL, &reader, d);
    f->amd |= !s && !strcmp(reader->name, "rocprofv3");
    if (!s)
        s = fl_log_open(path, NULL, &how, &in, d);
    if (!s && in.has_sweep && f->sweep_path)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "a second sweep, expected one");
    if (!s && in.has_kernels && f->kernels_path)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                    "a second recording of kernels, expected one; foldline fit trace combines several");
    if (!s && !in.has_sweep && !in.has_kernels && !in.has_telemetry)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "neither kernels nor readings nor settings, expected one of these");
    if (!s && in.has_telemetry)
        s = add_log(f, path, &in.telemetry, d);
    if (!s)
        tell_doubts(path, &in, in.has_telemetry ? &f->ends[f->run_count - 1] : NULL, subjects);
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

static fl_status from_kernels(fl_advise_source *f, const fl_platform *p, fl_advise_subjects *s, fl_diag *d) {
    bool assumed = false;
    const fl_log_run *run = f->run_count ? &f->run[0] : NULL;
    if (run)
        set_clock(&f->kernels.kernels, run->sm_mhz);
    fl_advise_subject *to = fl_advise_add(s, basename(f->kernels_path));
    const fl_status status = fl_advise_kernels(f->kernels_path, &f->kernels.kernels, run, f->o, to, &assumed, d);
    if (status)
        return status;
    FL_ADVISE_REST(s, "%s: the times of its kernels%s", basename(f->kernels_path),
                   assumed ? "; how they depend on clocks was assumed, three ways" : " and their kinds");
    if (run)
        FL_ADVISE_REST(s, "%s: %.4g W at %g MHz", basename(f->run_path), run->power_w, run->sm_mhz);
    fl_advise_note_platform(s, p);
    return FL_OK;
}

static bool several_clocks(const fl_advise_source *f) {
    for (size_t i = 1; i < f->run_count; i++)
        if (fabs(f->run[i].sm_mhz - f->run[0].sm_mhz) > 0.5)
            return true;
    return false;
}

/* The board that was measured; "" = no file says. */
static const char *board_name(const fl_advise_source *f) {
    const char *named = fl_head_get(&f->kernels.kernels.head, "device");
    return f->amd ? "AMD" : named ? named : f->board ? f->board : "";
}

static void note_board(const fl_advise_source *f, const char *measured, bool other_vendor, const fl_platform *p,
                       const fl_device *dev, fl_advise_subjects *s) {
    const char *file = basename(f->kernels_path ? f->kernels_path : f->run_path ? f->run_path : "");
    if (other_vendor)
        FL_ADVISE_REST(s,
                       "%s was recorded on another vendor's board (%s) than %s of platform %s: laws and clocks are the "
                       "platform's, the commands those of the board that was recorded",
                       file, measured, dev->name, p->name);
    else if (fl_advise_other_model(measured, dev->name))
        FL_ADVISE_REST(s,
                       "%s was recorded on another board (%s) than %s of platform %s: laws, clocks and saving are the "
                       "platform's, and may be wrong on the board that was recorded",
                       file, measured, dev->name, p->name);
}

fl_status fl_advise_open(const fl_texts *files, const fl_advise_options *o, fl_advise_subjects *s, fl_diag *d) {
    fl_advise_source f = {.files = files, .o = o};
    fl_platform p = {0};
    *s = (fl_advise_subjects){.gpu = -1};
    fl_status status = files->count ? FL_OK : fl_refuse(d, "no file given, expected a sweep, logs or a recording");
    if (!status && o->platform)
        status = fl_platform_open(o->platform, 0, &p, d);
    for (size_t i = 0; !status && i < files->count; i++)
        status = add_file(&f, files->item[i], s, d);
    const fl_platform *platform = o->platform ? &p : NULL;
    if (!status && f.sweep_path && (f.kernels_path || f.run_count))
        status = fl_fail(d, FL_BAD_INPUT, f.sweep_path, 0, 0, "a sweep and other files, expected the sweep alone");
    else if (!status && o->kinds && !f.kernels_path)
        status = fl_refuse(d, "--kinds has no effect without a recording of kernels, expected one");
    else if (!status && f.kernels_path && f.run_count > 1)
        status = fl_fail(d, FL_BAD_INPUT, f.run_path, 0, 0,
                         "two logs with a recording of kernels, expected the log of that run only");
    else if (!status)
        status = f.sweep_path         ? fl_advise_sweep(&f, platform, s, d)
                 : f.kernels_path     ? from_kernels(&f, platform, s, d)
                 : several_clocks(&f) ? fl_advise_logs(&f, platform, s, d)
                                      : fl_advise_one_log(&f, platform, s, d);
    const fl_device *dev = platform && !status ? &p.node.device[p.node.gpu[0]] : NULL;
    const char *measured = board_name(&f);
    const bool other = dev && fl_advise_other_vendor(measured, dev->name);
    if (!status && dev)
        note_board(&f, measured, other, &p, dev, s);
    s->gpu = o->device;
    s->device = fl_must(strdup(dev && !f.amd && !other ? dev->name : measured));
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
