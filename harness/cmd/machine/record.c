/* `foldline record`. */
#include "harness/cmd/machine/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/live/guard/guard.h"
#include "harness/live/host/host.h"
#include "harness/live/records/records.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const fl_command_help help = {
    "record", "-o FILE [--every-ms 100] [--for 60s] [--gpus LIST] [--kernels FILE [--iteration NAME]] [-- COMMAND ...]",
    "Records the readings of the GPUs and the CPU in a telemetry file. It changes no setting.",
    "With COMMAND, foldline runs it and records from just before its start until just after its end; foldline then "
    "ends with its exit status. foldline passes TERM, INT and HUP on to it. --for ends it by TERM, and by KILL if it "
    "continues. If a reading fails, foldline waits for the command's end. Without COMMAND, foldline records until "
    "--for or a signal ends it. It writes the file at the end. --kernels also writes the command's kernels: the "
    "command loads the collector ($FOLDLINE_COLLECTOR, else the one of this build) through CUDA_INJECTION64_PATH and "
    "NVTX_INJECTION64_PATH. The head of FILE tells the names of its NVTX ranges and marks; with --iteration, those of "
    "that NAME become iteration markers."};

typedef struct recorder {
    fl_telemetry t;
    size_t room_t, room_d, room_v;
    size_t gpu_columns, host_columns;
    const char *kernels_path; /* NULL = no kernels */
    char rings[PATH_MAX];     /* the folder of their rings, "" = none */
    char collector[PATH_MAX]; /* that goes into the program */
    fl_kernels *kernels;
    fl_kernel_trace trace;
    fl_texts iteration; /* names of markers */
    fl_trace_marks marks;
    uint32_t *kind_of; /* index in the trace of each kind of the records */
    size_t kinds, kind_room;
    char **command; /* NULL = none */
    fl_program program;
    bool last_read;
    int64_t start_ns, end_ns; /* of the program, on the clock of the file */
    int64_t origin_ns, for_ns;
} recorder;

static fl_status name_columns(recorder *r, fl_diag *d) {
    r->gpu_columns = fl_rows_count(FL_ROWS_GPU_SIGNAL);
    r->host_columns = fl_rows_count(FL_ROWS_HOST_SIGNAL);
    r->t.signal = calloc(r->gpu_columns + r->host_columns, sizeof *r->t.signal);
    for (size_t i = 0; r->t.signal && i < r->gpu_columns + r->host_columns; i++) {
        const fl_row_info *row = i < r->gpu_columns ? fl_rows_at(FL_ROWS_GPU_SIGNAL, i)
                                                    : fl_rows_at(FL_ROWS_HOST_SIGNAL, i - r->gpu_columns);
        if (!(r->t.signal[i] = strdup(row->name)))
            return fl_no_memory(d, "the recording");
        r->t.signal_count++;
    }
    return r->t.signal ? FL_OK : fl_no_memory(d, "the recording");
}

static fl_status add_row(recorder *r, int64_t t_ns, int32_t device, uint64_t valid, const double *value, fl_diag *d) {
    fl_telemetry *t = &r->t;
    const size_t width = t->signal_count, offset = device < 0 ? r->gpu_columns : 0,
                 count = device < 0 ? r->host_columns : r->gpu_columns;
    if (fl_grow(&t->t_ns, &r->room_t, t->row_count + 1, sizeof *t->t_ns) ||
        fl_grow(&t->device, &r->room_d, t->row_count + 1, sizeof *t->device) ||
        fl_grow(&t->value, &r->room_v, (t->row_count + 1) * width, sizeof *t->value))
        return fl_no_memory(d, "the recording");
    double *row = t->value + t->row_count * width;
    for (size_t i = 0; i < width; i++)
        row[i] = NAN;
    for (size_t i = 0; i < count; i++)
        if (valid >> i & 1)
            row[offset + i] = value[i];
    t->t_ns[t->row_count] = t_ns;
    t->device[t->row_count++] = device;
    return FL_OK;
}

/* A path that were cut would be another's. */
static fl_status fits(int length, size_t size, const char *what, const char *from, fl_diag *d) {
    return length >= 0 && (size_t)length < size
               ? FL_OK
               : fl_error(d, FL_IO, "%s: its path is longer than %zu bytes: %.60s...", what, size - 1, from);
}

static fl_status find_collector(recorder *r, fl_diag *d) {
    const char *asked = getenv("FOLDLINE_COLLECTOR");
    char place[PATH_MAX];
    const bool given = asked && *asked;
    const char *from = given ? asked : fl_place(FL_PLACE_CLIENTS, place, sizeof place);
    const size_t size = sizeof r->collector;
    fl_status s = fits(snprintf(r->collector, size, "%s%s", from, given ? "" : "/libfoldline-collector.so"), size,
                       "the collector", from, d);
    if (!s && access(r->collector, R_OK))
        s = fl_fail(d, FL_IO, r->collector, 0, 0, "no collector there: %s", fl_reason(errno));
    return s;
}

static fl_status make_rings(recorder *r, fl_diag *d) {
    const char *base = getenv("TMPDIR");
    char path[PATH_MAX];
    base = base && *base ? base : "/tmp";
    fl_status s = fits(snprintf(path, sizeof path, "%s/foldline-rings-XXXXXX", base), sizeof path, "TMPDIR", base, d);
    if (!s && !mkdtemp(path))
        s = fl_fail(d, FL_IO, path, 0, 0, "cannot make the folder: %s", fl_reason(errno));
    if (!s)
        memcpy(r->rings, path, sizeof path);
    return s;
}

static void say(void *user, const char *line) {
    (void)user;
    fl_terminal_say(stderr, "foldline record: %s", line);
}

static fl_status open_kernels(recorder *r, fl_gpus *gpus, fl_diag *d) {
    if (!r->kernels_path)
        return FL_OK;
    fl_status s = find_collector(r, d);
    if (!s)
        s = make_rings(r, d);
    if (!s)
        s = fl_kernels_open(&r->kernels, r->rings, d);
    if (!s) {
        fl_kernels_gpus(r->kernels, fl_gpus_position, gpus);
        fl_kernels_tell(r->kernels, say, NULL);
        fl_kernels_iterations(r->kernels, r->iteration.item, r->iteration.count, true);
    }
    return s;
}

/* Iterations that were passed before the recording began are left out, as kernels are. */
static fl_status add_iterations(recorder *r, fl_diag *d) {
    const fl_marks *m = fl_kernels_marks(r->kernels);
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < m->count; i++)
        if (m->marker[i].time_ns >= 0)
            s = fl_trace_marks_add(&r->marks, m->marker[i].time_ns, (int32_t)m->marker[i].gpu,
                                   (int32_t)m->marker[i].program, d);
    return s;
}

static fl_status add_kernels(recorder *r, const fl_sample *sample, fl_diag *d) {
    if (fl_grow(&r->kind_of, &r->kind_room, sample->kind_count + 1, sizeof *r->kind_of))
        return fl_no_memory(d, "the recording");
    for (; r->kinds < sample->kind_count; r->kinds++) {
        const fl_kernel_kind *k = &sample->kind[r->kinds];
        r->kind_of[r->kinds] = fl_trace_add_kind(&r->trace, *k->name ? k->name : "(unnamed)", k->grid, k->block);
        if (r->kind_of[r->kinds] == UINT32_MAX)
            return fl_no_memory(d, "the recording");
    }
    for (uint64_t i = 0; i < sample->record_count; i++) {
        const fl_kernel_record *k = &sample->record[i];
        const fl_trace_op op = {.start_ns = k->start_ns,
                                .end_ns = k->end_ns,
                                .launch_ns = INT64_MIN,
                                .bytes = -1,
                                .kind = r->kind_of[k->kind],
                                .device = (int32_t)k->gpu,
                                .process = (int32_t)fl_kernels_programs(r->kernels)[i],
                                .stream = (int32_t)k->stream,
                                .host_thread = -1};
        if (k->end_ns >= k->start_ns && fl_trace_add_op(&r->trace, &op))
            return fl_no_memory(d, "the recording");
    }
    return FL_OK;
}

/* What --iteration can name, and whether all of it is there. */
static fl_status write_markers(recorder *r, const fl_kernels_counts *c, fl_diag *d) {
    const fl_marks *m = fl_kernels_marks(r->kernels);
    char text[1024];
    fl_marks_text(m, text, sizeof text);
    if (*text && !fl_head_set(&r->trace.head, "markers", text))
        return fl_no_memory(d, "the recording");
    if (*text && !r->iteration.count)
        fl_terminal_say(stderr, "foldline record: markers: %s (--iteration NAME makes iterations of them)", text);
    if (r->iteration.count && !m->iterations)
        return fl_error(d, FL_HARDWARE, "no marker of the name '%s' was recorded: %s", r->iteration.item[0],
                        *text ? text : "the program passed none, or uses an NVTX before version 3");
    snprintf(text, sizeof text, "%llu", (unsigned long long)c->marks_lost);
    if (c->marks_lost && !fl_head_set(&r->trace.head, "markers lost", text))
        return fl_no_memory(d, "the recording");
    return fl_trace_marks_place(&r->marks, &r->trace, d);
}

/* Kernels of one stream overlap where libraries use dependent launches; a trace holds one at a time. */
static fl_status part_lanes(recorder *r, fl_diag *d) {
    static const char *const key[] = {"ends cut", "dependent launches", "moved to streams of their own"};
    fl_lanes_parted parted;
    char text[256], number[32];
    fl_status s = fl_lanes_part(&r->trace, true, &parted, d);
    const size_t count[] = {parted.cut, parted.dependent, parted.moved};
    for (int i = 0; !s && fl_lanes_text(&parted, i, text, sizeof text); i++) {
        if (!*text)
            continue;
        fl_terminal_say(stderr, "foldline record: %s", text);
        snprintf(number, sizeof number, "%zu", count[i]);
        if (!fl_head_set(&r->trace.head, key[i], number))
            s = fl_no_memory(d, "the recording");
    }
    return s;
}

static fl_status write_kernels(recorder *r, fl_diag *d) {
    const fl_kernels_counts c = fl_kernels_count(r->kernels);
    char text[128];
    snprintf(text, sizeof text, "%llu", (unsigned long long)(c.lost + c.damaged));
    if (!fl_head_set(&r->trace.head, "source", "foldline record") || !fl_head_set(&r->trace.head, "lost", text))
        return fl_no_memory(d, "the recording");
    snprintf(text, sizeof text, "%llu programs", (unsigned long long)c.ends_missing);
    if (c.ends_missing && !fl_head_set(&r->trace.head, "end missing", text))
        return fl_no_memory(d, "the recording");
    snprintf(text, sizeof text, "%llu kernels on no GPU of these", (unsigned long long)c.elsewhere);
    if (c.elsewhere && !fl_head_set(&r->trace.head, "left out", text))
        return fl_no_memory(d, "the recording");
    if (!r->trace.op_count && c.elsewhere)
        return fl_error(
            d, FL_HARDWARE,
            "no kernel was recorded: all %llu ran on GPUs that --gpus leaves out, on MIG instances, or where "
            "the driver tells no UUID (before CUDA 11.4)",
            (unsigned long long)c.elsewhere);
    if (!r->trace.op_count)
        return fl_error(d, FL_HARDWARE,
                        "no kernel was recorded: the program used no GPU, another profiler holds CUPTI, or no libcupti "
                        "works there (FOLDLINE_CUPTI=/path/of/libcupti.so names one)");
    fl_status s = part_lanes(r, d);
    if (!s)
        s = fl_record_clocks(&r->trace, &r->t, say, NULL, d);
    if (!s)
        s = write_markers(r, &c, d);
    return s ? s : fl_kernels_write(r->kernels_path, &r->trace, d);
}

static void close_kernels(recorder *r) {
    fl_kernels_close(r->kernels);
    DIR *folder = *r->rings ? opendir(r->rings) : NULL; /* made by us; what a program left in it nobody reads now */
    for (struct dirent *e; folder && (e = readdir(folder));)
        unlinkat(dirfd(folder), e->d_name, 0);
    if (folder)
        closedir(folder);
    if (*r->rings)
        rmdir(r->rings);
    fl_kernel_trace_free(&r->trace);
    fl_trace_marks_free(&r->marks);
    free(r->kind_of);
}

static fl_status start(recorder *r, int64_t t_ns, fl_diag *d) {
    const char *const none[] = {NULL}, *const injected[] = {"FOLDLINE_RINGS",
                                                            r->rings,
                                                            "CUDA_INJECTION64_PATH",
                                                            r->collector,
                                                            "NVTX_INJECTION64_PATH",
                                                            r->collector,
                                                            NULL};
    const fl_clock clock = fl_clock_system();
    const int64_t now = clock.now(clock.user);
    r->start_ns = t_ns;
    r->origin_ns = now - t_ns;
    r->program.limit_ns = r->for_ns ? r->origin_ns + r->for_ns : 0;
    return fl_program_start(&r->program, r->command, r->kernels ? injected : none, d);
}

/* Of a program whose last reading never came. */
static void wait_for_program(recorder *r) {
    const fl_clock clock = fl_clock_system();
    fl_program_wait(&r->program);
    if (r->program.pid && !r->last_read)
        r->end_ns = clock.now(clock.user) - r->origin_ns;
}

static fl_status on_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    recorder *r = user;
    (void)decision;
    fl_status s =
        sample->host.valid ? add_row(r, sample->time_ns, -1, sample->host.valid, sample->host.value, d) : FL_OK;
    for (uint32_t i = 0; !s && i < sample->gpu_count; i++)
        s = add_row(r, sample->time_ns, (int32_t)i, sample->gpu[i].valid, sample->gpu[i].value, d);
    if (!s && r->kernels)
        s = add_kernels(r, sample, d);
    if (!s && r->kernels)
        s = add_iterations(r, d);
    if (!s && r->command && !r->program.pid)
        s = start(r, sample->time_ns, d);
    if (r->program.ended && !r->last_read) {
        r->last_read = true;
        r->end_ns = sample->time_ns;
    }
    return s;
}

/* When the program has ended, one more reading, and then the end. */
static bool stop(void *user) {
    recorder *r = user;
    fl_program_look(&r->program);
    return r->last_read || (fl_stop_asked() && !r->command);
}

/* The loop sleeps until the next reading; when the program has just ended, that is now. */
static bool early(void *user) {
    recorder *r = user;
    return fl_program_look(&r->program);
}

static int64_t now(void *user) {
    const fl_clock clock = fl_clock_system();
    (void)user;
    return clock.now(clock.user);
}

static void sleep_until(void *user, int64_t t_ns) {
    const recorder *r = user;
    const fl_clock clock = fl_clock_system();
    clock.sleep_until(clock.user, fl_program_wake_ns(&r->program, t_ns));
}

static void drop_empty_columns(fl_telemetry *t) {
    size_t kept = 0, width = t->signal_count;
    for (size_t c = 0; c < width; c++) {
        bool any = false;
        for (size_t i = 0; i < t->row_count && !any; i++)
            any = !isnan(t->value[i * width + c]);
        if (!any) {
            free(t->signal[c]);
            continue;
        }
        for (size_t i = 0; i < t->row_count; i++)
            t->value[i * width + kept] = t->value[i * width + c];
        t->signal[kept++] = t->signal[c];
    }
    for (size_t i = 0; i < t->row_count; i++)
        memmove(t->value + i * kept, t->value + i * width, kept * sizeof *t->value);
    t->signal_count = kept;
}

static fl_status write_file(recorder *r, const fl_gpus *gpus, const char *path, fl_diag *d) {
    char text[256], key[32];
    bool ok = fl_head_set(&r->t.head, "source", "foldline record");
    ok = ok && fl_head_set(&r->t.head, "vendor", gpus->back->vendor);
    ok = ok && fl_head_set(&r->t.head, "driver", gpus->back->driver(gpus->self));
    for (uint32_t i = 0; ok && i < gpus->back->count(gpus->self); i++) {
        fl_gpu_facts f;
        snprintf(key, sizeof key, "gpu%u", i);
        if (!gpus->back->facts(gpus->self, i, &f, NULL) && *f.name)
            ok = fl_head_set(&r->t.head, key, f.name);
    }
    if (ok && r->program.pid) {
        snprintf(text, sizeof text, "%lld to %lld ns, exit status %d", (long long)r->start_ns, (long long)r->end_ns,
                 r->program.exit_status);
        ok = fl_head_set(&r->t.head, "program", text);
    }
    if (!ok)
        return fl_no_memory(d, "the recording");
    drop_empty_columns(&r->t);
    return fl_telemetry_write(path, &r->t, d);
}

static fl_status record(recorder *r, const char *out, const char *vendor, const char *list, double every_ms,
                        int64_t *steps, fl_diag *d) {
    fl_gpus gpus = {0};
    fl_cpu_host *cpu = NULL;
    fl_live_result x = {0};
    const uint64_t host = FL_BIT(FL_HOST_CPU_MHZ) | FL_BIT(FL_HOST_CPU_UTIL_PCT) | FL_BIT(FL_HOST_CPU_ENERGY_J) |
                          FL_BIT(FL_HOST_CPU_CYCLES);
    fl_status s = fl_vendor_open(&gpus, vendor, list, NULL, d);
    if (!s)
        s = fl_cpu_host_open(&cpu, NULL, host, d);
    if (!s)
        s = fl_output_try(out, d);
    if (!s)
        s = fl_output_try(r->kernels_path, d);
    if (!s)
        s = open_kernels(r, &gpus, d);
    if (!s)
        s = name_columns(r, d);
    if (!s) {
        fl_live_options o = {.mode = FL_LIVE_OBSERVE,
                             .gpus = &gpus,
                             .cpu = cpu,
                             .kernels = r->kernels,
                             .gpu_needs = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1,
                             .host_needs = host,
                             .period_ns = (int64_t)(every_ms * 1e6),
                             .for_ns = r->command ? 0 : r->for_ns,
                             .clock = {now, sleep_until, r},
                             .stop = stop,
                             .early = early,
                             .on_step = on_step,
                             .user = r};
        fl_stop_listen();
        s = fl_live(&o, &x, d);
        wait_for_program(r);
    }
    *steps = (int64_t)x.steps;
    if (r->t.row_count) { /* what was read before a failure is kept too */
        fl_status written = write_file(r, &gpus, out, s ? NULL : d);
        s = s ? s : written;
    }
    if (!s && r->kernels)
        s = write_kernels(r, d);
    if (!s)
        fl_terminal_say(stderr, "foldline record: %lld readings in %.3f s, %llu late, %.3g ms each", (long long)*steps,
                        (double)x.lasted_ns * 1e-9, (unsigned long long)x.late,
                        x.steps ? (double)x.sum_ns * 1e-6 / (double)x.steps : 0);
    if (x.absurd)
        fl_terminal_say(stderr, "foldline record: %llu impossible readings were left out: %s",
                        (unsigned long long)x.absurd, x.absurd_names);
    fl_cpu_host_close(cpu);
    fl_gpus_close(&gpus);
    return s;
}

int fl_cmd_record(int argc, char **argv) {
    fl_texts rest = {0};
    recorder r = {0};
    const char *out = NULL, *vendor = NULL, *gpus = NULL, *lasts = NULL;
    double every_ms = 100;
    int64_t steps = 0;
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "telemetry file to write", FL_FOR_OUTPUT},
        {"every-ms", "X", FL_OPTION_REAL, &every_ms, 0.1, 1e7, "time between readings (100)", FL_FOR_OUTPUT},
        {"for", "TIME", FL_OPTION_TEXT, &lasts, 0, 0, "ends after 60s, 5m, 1h or 500ms"},
        {"kernels", "FILE", FL_OPTION_OUTPUT, &r.kernels_path, 0, 0, "kernel trace of COMMAND to write", FL_FOR_OUTPUT},
        {"iteration", "NAME", FL_OPTION_LIST, &r.iteration, 0, 0,
         "with --kernels: the NVTX range or mark that begins an iteration (may be repeated)", FL_FOR_INPUT},
        {"vendor", "auto|nvidia|intel|amd", FL_OPTION_CHOICE, &vendor, 0, 0, FL_VENDOR_HELP, FL_FOR_MACHINE},
        {"gpus", "LIST", FL_OPTION_TEXT, &gpus, 0, 0, "indices or UUIDs joined by commas (all of the vendor)",
         FL_FOR_MACHINE},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_status s = out ? FL_OK : fl_refuse(&d, "expected -o FILE, see --help");
    if (!s && r.kernels_path && !rest.count)
        s = fl_refuse(&d, "--kernels needs a program to run: -- COMMAND");
    s = s ? s : fl_marks_check(r.iteration.item, r.iteration.count, &d);
    if (!s && r.iteration.count && !r.kernels_path)
        s = fl_refuse(&d, "--iteration needs --kernels FILE");
    if (!s && lasts)
        s = fl_duration_parse(lasts, &r.for_ns, &d);
    if (!s && rest.count) {
        s = fl_texts_add(&rest, NULL, &d);
        r.command = (char **)(uintptr_t)rest.item;
    }
    if (!s)
        s = record(&r, out, vendor, gpus, every_ms, &steps, &d);
    if (s)
        status = fl_command_fail("record", &d);
    else if (r.command)
        status = r.program.exit_status;
    close_kernels(&r);
    fl_telemetry_free(&r.t);
    fl_texts_free(&rest);
    fl_texts_free(&r.iteration);
    return status;
}
