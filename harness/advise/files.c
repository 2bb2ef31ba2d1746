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

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- folders ---- */

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Adds the files of a folder, and of the folders in it, that a reader knows. */
static fl_status add_folder(const char *path, fl_texts *files, fl_diag *d) {
    fl_status s = FL_OK;
    const size_t size = strlen(path);
    const fl_reader *reader = NULL;
    fl_diag unknown = {0};
    struct dirent **entry = NULL;
    const int n = scandir(path, &entry, NULL, NULL);
    if (n < 0)
        return fl_fail(d, FL_IO, path, 0, 0, "cannot list the folder: %s", fl_reason(errno));
    for (int i = 0; i < n; i++) {
        char *file = fl_must_print("%s%s%s", path, size && path[size - 1] == '/' ? "" : "/", entry[i]->d_name);
        struct stat st;
        const bool is = !s && entry[i]->d_name[0] != '.' && !lstat(file, &st);
        if (is && S_ISDIR(st.st_mode)) {
            s = add_folder(file, files, d);
        } else if (is && !stat(file, &st) && S_ISREG(st.st_mode)) {
            if (fl_reader_find(file, NULL, &reader, &unknown)) {
                fl_terminal_say(stderr, "note: %s: left out, as no reader knows its format", file);
            } else {
                fl_must_grow(&files->item, &files->room, files->count + 1, sizeof *files->item);
                files->item[files->count++] = fl_must(strdup(file));
            }
        }
        free(file);
        free(entry[i]);
    }
    free(entry);
    return s;
}

/* The files themselves, with those of folders. The texts are copies. */
static fl_status expand(const fl_texts *given, fl_texts *files, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < given->count; i++) {
        struct stat st;
        if (!stat(given->item[i], &st) && S_ISDIR(st.st_mode)) {
            const size_t before = files->count;
            s = add_folder(given->item[i], files, d);
            if (!s && files->count == before)
                s = fl_fail(d, FL_BAD_INPUT, given->item[i], 0, 0, "a folder without a log, expected logs");
            else if (!s)
                qsort(files->item + before, files->count - before, sizeof *files->item, by_text);
        } else {
            fl_must_grow(&files->item, &files->room, files->count + 1, sizeof *files->item);
            files->item[files->count++] = fl_must(strdup(given->item[i]));
        }
    }
    return s;
}

/* ---- one file ---- */

/* The GPUs of a log in ascending order, in *list, which the caller frees. */
static size_t gpus_of(const fl_telemetry *t, int32_t **list) {
    size_t count = 0, room = 0;
    *list = NULL;
    for (size_t i = 0; i < t->row_count; i++) {
        size_t k = 0;
        while (k < count && (*list)[k] < t->device[i])
            k++;
        if (t->device[i] < 0 || (k < count && (*list)[k] == t->device[i]))
            continue;
        fl_must_grow(list, &room, count + 1, sizeof **list);
        memmove(*list + k + 1, *list + k, (count - k) * sizeof **list);
        (*list)[k] = t->device[i];
        count++;
    }
    return count;
}

/* Whether the files lie in several folders, whose names then tell programs apart. */
static bool several_folders(const fl_texts *files) {
    for (size_t i = 1; i < files->count; i++) {
        const char *a = strrchr(files->item[0], '/'), *b = strrchr(files->item[i], '/');
        const size_t n = a ? (size_t)(a - files->item[0]) : 0, m = b ? (size_t)(b - files->item[i]) : 0;
        if (n != m || strncmp(files->item[0], files->item[i], n) != 0)
            return true;
    }
    return false;
}

/* The run of one GPU of a log. One that cannot be read as a run is set aside. */
static void add_gpu(fl_advise_source *f, const char *path, double sm_mhz, const fl_telemetry *t, int64_t device,
                    bool several) {
    fl_advise_ran ran = {
        .path = path, .gpu = several ? device : -1, .run = {.sm_mhz = NAN, .mem_mhz = NAN, .steady = true}};
    fl_diag why = {0};
    char key[32];
    const fl_status s = fl_log_run_find(path, t, device, sm_mhz, &ran.run, &ran.ends, &why);
    if (s == FL_NO_MEMORY)
        fl_must(NULL);
    if (s) {
        ran.aside = fl_must(strdup(why.message));
        ran.line = why.line;
    }
    char *program =
        fl_must(f->o->workload ? strdup(f->o->workload) : fl_log_program(path, &t->head, &ran.run, f->folders));
    ran.program = several ? fl_must_print("%s GPU %lld", program, (long long)device) : fl_must(strdup(program));
    free(program);
    (void)snprintf(key, sizeof key, "gpu%lld", (long long)(device < 0 ? 0 : device));
    const char *board = fl_head_get(&t->head, "device");
    board = board ? board : fl_head_get(&t->head, key);
    ran.board = board ? fl_must(strdup(board)) : NULL;
    fl_must_grow(&f->ran, &f->ran_room, f->ran_count + 1, sizeof *f->ran);
    f->ran[f->ran_count++] = ran;
}

/* What the file's numbers rest on with doubts: the first of what the advice rests on. */
static void tell_doubts(const fl_advise_source *f, const char *path, const fl_imported *in, size_t first,
                        fl_advise_subjects *s) {
    bool apart = false; /* the notes compare the energies of the run itself, not those of the whole log */
    for (size_t i = first; i < f->ran_count; i++)
        apart |= !f->ran[i].aside && fl_accounts_differ(f->ran[i].ends.counter_w, f->ran[i].ends.sensor_w);
    for (size_t i = 0; i < in->doubt_count; i++)
        if (!apart || !strstr(in->note[i], "two accounts of its energy"))
            fl_advise_doubt(s, "%s: %s", basename(path), in->note[i]);
    for (size_t i = first; i < f->ran_count; i++) {
        const fl_log_ends *ends = &f->ran[i].ends;
        if (f->ran[i].aside || !fl_accounts_differ(ends->counter_w, ends->sensor_w))
            continue;
        fl_advise_doubt(s, "%s: " FL_LOG_ACCOUNTS, basename(path), ends->counter_w, ends->sensor_w);
    }
}

static void add_log(fl_advise_source *f, const char *path, double sm_mhz, const fl_telemetry *t) {
    int32_t *gpu = NULL;
    const size_t count = gpus_of(t, &gpu);
    if (f->o->device >= 0 || count < 2)
        add_gpu(f, path, sm_mhz, t, f->o->device, false);
    else
        for (size_t i = 0; i < count; i++)
            add_gpu(f, path, sm_mhz, t, gpu[i], true);
    free(gpu);
}

static fl_status add_file(fl_advise_source *f, const char *path, double sm_mhz, fl_advise_subjects *subjects,
                          fl_diag *d) {
    const fl_import_options how = {.interval_s = f->o->interval_s, .device = (int32_t)f->o->device};
    const fl_reader *reader = NULL;
    const size_t first = f->ran_count;
    fl_imported in = {0};
    fl_status s = fl_reader_find(path, NULL, &reader, d);
    f->amd |= !s && strstr(" rocprofv3 rocpd amd-smi rocm-smi ", reader->name);
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
        add_log(f, path, sm_mhz, &in.telemetry);
    if (!s)
        tell_doubts(f, path, &in, first, subjects);
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
    const fl_advise_ran *ran = f->ran_count ? &f->ran[0] : NULL;
    const fl_log_run *run = ran ? &ran->run : NULL;
    if (ran && ran->aside)
        return fl_fail(d, FL_BAD_INPUT, ran->path, ran->line, 0, "%s", ran->aside);
    if (ran && !run->steady)
        return fl_fail(d, FL_BAD_INPUT, ran->path, 0, 0, FL_LOG_CHANGED ", expected a run at one clock",
                       FL_LOG_CHANGE(run));
    if (run)
        set_clock(&f->kernels.kernels, run->sm_mhz);
    fl_advise_subject *to = fl_advise_add(s, basename(f->kernels_path));
    const fl_status status = fl_advise_kernels(f->kernels_path, &f->kernels.kernels, run, f->o, to, &assumed, d);
    if (status)
        return status;
    FL_ADVISE_REST(s, "%s: the times of its kernels%s", basename(f->kernels_path),
                   assumed ? "; how they depend on clocks was assumed, three ways"
                           : " and the file of its kernel classes");
    if (run)
        FL_ADVISE_REST(s, "%s: %.4g W at %g MHz", basename(ran->path), run->power_w, run->sm_mhz);
    fl_advise_note_platform(s, p);
    return FL_OK;
}

/* The board that was measured; "" = no file says, or the files name several models. */
static const char *board_name(const fl_advise_source *f) {
    const char *named = fl_head_get(&f->kernels.kernels.head, "device"), *board = NULL;
    for (size_t i = 0; i < f->ran_count; i++) {
        const char *is = f->ran[i].board;
        if (is && board && fl_advise_other_model(is, board))
            return f->amd ? "AMD" : "";
        board = is ? is : board;
    }
    return f->amd ? "AMD" : named ? named : board ? board : "";
}

static void note_board(const fl_advise_source *f, const char *measured, bool other_vendor, const fl_platform *p,
                       const fl_device *dev, fl_advise_subjects *s) {
    const char *file = basename(f->kernels_path ? f->kernels_path : f->ran_count ? f->ran[0].path : "");
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

static fl_status check_sorts(const fl_advise_source *f, fl_diag *d) {
    if (f->sweep_path && (f->kernels_path || f->ran_count))
        return fl_fail(d, FL_BAD_INPUT, f->sweep_path, 0, 0, "a sweep and other files, expected the sweep alone");
    if (f->o->kinds && !f->kernels_path)
        return fl_refuse(d, "--kinds has no effect without a recording of kernels, expected one");
    if (f->o->board && (f->o->platform || f->kernels_path))
        return fl_refuse(d, "--board has no effect %s, expected it for measured settings without a platform",
                         f->o->platform ? "with --platform, which has the clocks" : "on a recording of kernels");
    if (f->o->clocks && !f->ran_count)
        return fl_refuse(d, "--sm-mhz has no effect without logs, expected logs");
    if (f->o->workload && f->kernels_path && !f->ran_count)
        return fl_refuse(d, "--workload has no effect on a recording of kernels, expected a sweep or logs");
    if (!f->kernels_path || f->ran_count < 2)
        return FL_OK;
    return f->ran[0].path == f->ran[1].path
               ? fl_fail(d, FL_BAD_INPUT, f->ran[0].path, 0, 0, "readings of several GPUs, expected --device N")
               : fl_fail(d, FL_BAD_INPUT, f->ran[1].path, 0, 0,
                         "two logs with a recording of kernels, expected the log of that run only");
}

/* Keeps the workload of a sweep that --workload names. The others have taken part in the fits. */
static fl_status keep_one(const fl_advise_source *f, fl_advise_subjects *s, fl_diag *d) {
    const char **name = fl_must(calloc(s->count + 1, sizeof *name));
    size_t at = 0;
    for (size_t i = 0; i < s->count; i++)
        name[i] = s->item[i].name;
    while (at < s->count && strcmp(name[at], f->o->workload) != 0)
        at++;
    const fl_status status =
        at < s->count ? FL_OK : fl_fail_unknown(d, f->sweep_path, "workload", f->o->workload, name, s->count);
    free(name);
    if (status)
        return status;
    const fl_advise_subject kept = s->item[at];
    s->item[at] = s->item[0];
    s->item[0] = kept;
    fl_advise_drop(s, 1);
    return FL_OK;
}

static void source_free(fl_advise_source *f, fl_texts *files) {
    fl_imported_free(&f->kernels);
    for (size_t i = 0; i < f->ran_count; i++) {
        free(f->ran[i].program);
        free(f->ran[i].board);
        free(f->ran[i].aside);
    }
    free(f->ran);
    for (size_t i = 0; i < files->count; i++)
        free((char *)(uintptr_t)files->item[i]);
    free(files->item);
}

/* A program that was measured at one clock gets a range, not a recommendation: what it does at other clocks follows
 * from assumptions or from other programs. */
static void tell_single(fl_advise_subjects *s) {
    const char *name = NULL;
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->item[i].single && s->item[i].cases) {
            name = s->item[i].name;
            count++;
        }
    if (count == 1)
        fl_advise_doubt(
            s,
            "not a recommendation: %s was measured at one clock, so the ranges are what assumptions or other "
            "programs allow; measure the next clock first",
            name);
    else if (count)
        fl_advise_doubt(s,
                        "not recommendations: %zu workloads were measured at one clock, so their ranges are what "
                        "other programs allow; measure their next clocks first",
                        count);
}

fl_status fl_advise_open(const fl_texts *given, const fl_advise_options *o, fl_advise_subjects *s, fl_diag *d) {
    fl_texts files = {0};
    fl_advise_source f = {.files = &files, .o = o};
    fl_platform p = {0};
    double *mhz = NULL;
    *s = (fl_advise_subjects){.gpu = -1};
    fl_status status = given->count ? FL_OK : fl_refuse(d, "no file given, expected a sweep, logs or a recording");
    if (!status && o->platform)
        status = fl_platform_open(o->platform, 0, &p, d);
    if (!status)
        status = expand(given, &files, d);
    if (!status) {
        f.folders = s->folders = several_folders(&files);
        mhz = fl_must(calloc(files.count, sizeof *mhz));
        status = fl_log_clocks(o->clocks, files.count, mhz, d);
    }
    for (size_t i = 0; !status && i < files.count; i++)
        status = add_file(&f, files.item[i], mhz[i], s, d);
    const fl_platform *platform = o->platform ? &p : NULL;
    if (!status)
        status = check_sorts(&f, d);
    if (!status)
        status = f.sweep_path     ? fl_advise_sweep(&f, platform, s, d)
                 : f.kernels_path ? from_kernels(&f, platform, s, d)
                                  : fl_advise_logs(&f, platform, s, d);
    if (!status && f.sweep_path && o->workload)
        status = keep_one(&f, s, d);
    if (!status)
        tell_single(s);
    const fl_device *dev = platform && !status ? &p.node.device[p.node.gpu[0]] : NULL;
    const char *measured = board_name(&f);
    const bool other = dev && fl_advise_other_vendor(measured, dev->name);
    if (!status && dev)
        note_board(&f, measured, other, &p, dev, s);
    s->gpu = o->device;
    s->device = fl_must(strdup(dev && !f.amd && !other ? dev->name : measured));
    fl_platform_free(&p);
    source_free(&f, &files);
    free(mhz);
    if (status)
        fl_advise_close(s);
    return status;
}
