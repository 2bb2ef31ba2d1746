/* `foldline tune`: runs a command at a few clocks, and ends with the one of least energy within the bound. */
#include "harness/cmd/machine/inside.h"

#include "harness/advise/advise.h"
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/live/guard/guard.h"
#include "harness/live/host/host.h"
#include "harness/live/vendor/vendor.h"
#include "models/chip/chip.h"
#include "policies/policy.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const fl_command_help help = {
    "tune", "[--bound 5%] [--runs N] -- COMMAND ...",
    "Runs a command at two to five SM clocks of its GPU, and names the clock with the least energy within a bound on "
    "the slowdown. To try it without a GPU, or before any clock is set, run it under foldline emulate, as in the "
    "example.",
    "The first runs are at the highest clock and at about 70 % of it, in turn. Two laws through the measured rows then "
    "say "
    "which clock to measure next, until the best one was measured: the answer is always a measured clock. One run at "
    "the "
    "highest clock comes first and does not count. The bound is lowered by the noise of the runs. Time is that of the "
    "whole command, energy that of its GPUs in that time; the command's standard output is discarded.\n\n"
    "Clocks are set as by foldline live --control: a guardian puts them back whatever happens. Who may not set clocks "
    "takes --manual, which says what to set and waits, or --set-command with a command that may, such as 'sudo "
    "nvidia-smi "
    "-lgc {mhz},{mhz}'; then nothing but --undo-command puts the clock back.\n\n"
    "--caps does the same with the board's power limit, from its own down in steps of 5 W.\n\n"
    "-o writes a row for each run, which foldline advise and compare read."};

#define BOUND_STANDARD 0.05
#define RUNS_STANDARD 3
#define CLOCKS_STANDARD 5
#define EVERY_NS INT64_C(50000000) /* between readings */
#define GRACE_NS INT64_C(30000000000)
#define CAP_STEP_W 5 /* between limits that are tried */
#define BINDS 0.99   /* a limit below this share of the free power holds the command down */

/* ---- one run ---- */

static int64_t now_ns(void) {
    const fl_clock clock = fl_clock_system();
    return clock.now(clock.user);
}

/* The command's standard output goes nowhere, so that the screen is the tuner's. */
static fl_status start(fl_tuner *t, fl_diag *d) {
    const char *const none[] = {NULL};
    fflush(stdout);
    const int kept = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (kept < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) {
        if (kept >= 0)
            close(kept);
        return fl_error(d, FL_IO, "cannot discard the command's output: %s", fl_reason(errno));
    }
    t->m.start_ns = now_ns();
    t->m.started = true;
    const fl_status s = fl_program_start(&t->m.program, t->command, none, d);
    (void)dup2(kept, STDOUT_FILENO);
    close(kept);
    close(nowhere);
    return s;
}

static void take(fl_tune_meter *m, uint32_t i, int64_t t_ns, const fl_gpu_sample *s) {
    if (fl_gpu_known(s, FL_GPU_ENERGY_J)) {
        if (!m->counts[i])
            m->first_j[i] = s->value[FL_GPU_ENERGY_J];
        m->last_j[i] = s->value[FL_GPU_ENERGY_J];
        m->counts[i] = true;
    }
    if (!fl_gpu_known(s, FL_GPU_POWER_W))
        return;
    if (m->powers[i])
        m->sum_j[i] += 0.5 * (m->power_w[i] + s->value[FL_GPU_POWER_W]) * (double)(t_ns - m->seen_ns[i]) * 1e-9;
    else
        m->first_ns[i] = t_ns;
    m->power_w[i] = s->value[FL_GPU_POWER_W];
    m->seen_ns[i] = t_ns;
    m->powers[i] = true;
}

static fl_status on_step(void *user, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    fl_tuner *t = user;
    fl_tune_meter *m = &t->m;
    (void)decision;
    fl_status s = t->session ? fl_session_beat(t->session, now_ns() + EVERY_NS + GRACE_NS, d) : FL_OK;
    for (uint32_t i = 0; !s && i < sample->gpu_count; i++)
        take(m, i, sample->time_ns, &sample->gpu[i]);
    const fl_gpu_sample *first = &sample->gpu[0];
    if (!s && m->started && !m->program.ended && fl_gpu_known(first, FL_GPU_SM_MHZ)) {
        if (fl_grow(&m->mhz, &m->mhz_room, m->mhzs + 1, sizeof *m->mhz))
            return fl_no_memory(d, "the readings");
        m->mhz[m->mhzs++] = first->value[FL_GPU_SM_MHZ];
    }
    if (!s && !m->started)
        s = start(t, d);
    m->last = m->program.ended;
    return s;
}

static bool ended(fl_tune_meter *m) {
    const bool was = m->program.ended;
    if (m->started && fl_program_look(&m->program) && !was)
        m->end_ns = now_ns();
    return m->program.ended;
}

static bool stop(void *user) {
    fl_tuner *t = user;
    (void)ended(&t->m);
    return t->m.last || (fl_stop_asked() && !t->m.started);
}

static bool early(void *user) { return ended(&((fl_tuner *)user)->m); }

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *value, size_t count) {
    qsort(value, count, sizeof *value, ascending);
    return count ? value[count / 2] : (double)INFINITY;
}

/* Joules of all GPUs in the command's time; NAN: a GPU tells neither energy nor power. */
static double energy_of(const fl_tuner *t, double time_s) {
    const fl_tune_meter *m = &t->m;
    double sum = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const double span_s = (double)(m->seen_ns[i] - m->first_ns[i]) * 1e-9;
        if (m->counts[i] && m->last_j[i] > m->first_j[i])
            sum += m->last_j[i] - m->first_j[i];
        else if (m->powers[i])
            sum += span_s > 0 ? m->sum_j[i] / span_s * time_s : m->power_w[i] * time_s;
        else
            return NAN;
    }
    return sum;
}

/* Run the command once. */
static fl_status run_once(fl_tuner *t, double *time_s, double *energy_j, double *ran_mhz, fl_diag *d) {
    fl_live_result x;
    double *kept = t->m.mhz;
    const size_t room = t->m.mhz_room;
    t->m = (fl_tune_meter){.mhz = kept, .mhz_room = room};
    const fl_live_options o = {.mode = FL_LIVE_OBSERVE,
                               .gpus = &t->gpus,
                               .gpu_needs = FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_SM_MHZ),
                               .period_ns = EVERY_NS,
                               .clock = fl_clock_system(),
                               .stop = stop,
                               .early = early,
                               .on_step = on_step,
                               .user = t};
    const fl_status s = fl_live(&o, &x, d);
    fl_program_wait(&t->m.program);
    if (s)
        return s;
    if (fl_stop_asked())
        return fl_error(d, FL_HARDWARE, "stopped by a signal");
    if (t->m.program.exit_status)
        return fl_error(d, FL_HARDWARE, "the command ended with status %d, expected 0: its time tells nothing",
                        t->m.program.exit_status);
    *time_s = (double)(t->m.end_ns - t->m.start_ns) * 1e-9;
    if (!(*time_s > 0))
        return fl_error(d, FL_HARDWARE,
                        "the command took no time, expected one that uses a GPU (in emulated time only such a command "
                        "takes any)");
    *energy_j = energy_of(t, *time_s);
    *ran_mhz = median(t->m.mhz, t->m.mhzs);
    return isnan(*energy_j) ? fl_error(d, FL_HARDWARE, "a GPU tells neither its energy nor its power") : FL_OK;
}

/* ---- setting a clock ---- */

/* The command with {mhz}, or {watts}, filled in. */
static char *filled(const char *command, double mhz) {
    fl_text text;
    FILE *f = fl_text_open(&text);
    for (const char *c = command; f && *c; c++)
        if (!strncmp(c, "{mhz}", 5) || !strncmp(c, "{watts}", 7)) {
            fprintf(f, "%g", mhz);
            c += c[1] == 'm' ? 4 : 6;
        } else {
            fputc(*c, f);
        }
    return f ? fl_text_close(&text, NULL) : NULL;
}

static fl_status run_command(const char *command, double mhz, fl_diag *d) {
    char *line = filled(command, mhz);
    if (!line)
        return fl_no_memory(d, "the command");
    fflush(stdout);
    const int status = system(line); /* the user's own command line */
    fl_status s = FL_OK;
    if (status)
        s = fl_error(d, FL_HARDWARE, "'%s' ended with status %d, expected 0", line,
                     status > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : status);
    free(line);
    return s;
}

static fl_status ask_user(const fl_tuner *t, double mhz, fl_diag *d) {
    const fl_advise_commands c = fl_tune_commands(t, mhz);
    fprintf(stderr, "set the %s to %g %s%s%s%s, then press Enter: ", t->caps ? "power limit" : "SM clock", mhz,
            fl_tune_unit(t), *c.set ? " (sudo " : "", c.set, *c.set ? ")" : "");
    fflush(stderr);
    for (int c2 = getchar(); c2 != '\n'; c2 = getchar())
        if (c2 == EOF || fl_stop_asked())
            return fl_error(d, FL_HARDWARE, "nobody pressed Enter: the input has ended");
    return FL_OK;
}

static fl_status set_clock(fl_tuner *t, double mhz, fl_diag *d) {
    fl_status s = FL_OK;
    if (t->set_mhz == mhz)
        return FL_OK;
    if (t->manual)
        s = ask_user(t, mhz, d);
    else if (t->set_command)
        s = run_command(t->set_command, mhz, d);
    for (uint32_t i = 0; !s && t->session && i < t->count; i++) {
        bool made = false;
        const int what = t->caps ? FL_SET_POWER_LIMIT_W : FL_SET_SM_MHZ;
        s = fl_session_beat(t->session, now_ns() + GRACE_NS, d);
        if (!s)
            s = fl_session_may(t->session, (int32_t)i, what, mhz, &made, d);
        if (!s && made)
            s = fl_session_set(t->session, (int32_t)i, what, mhz, d);
    }
    t->set_mhz = s ? (double)NAN : mhz;
    return s;
}

/* ---- points ---- */

static fl_status point_at(fl_tuner *t, double mhz, fl_tune_point **at, fl_diag *d) {
    for (size_t i = 0; i < t->points; i++)
        if (t->at[i].mhz == mhz) {
            *at = &t->at[i];
            return FL_OK;
        }
    if (fl_grow(&t->at, &t->point_room, t->points + 1, sizeof *t->at))
        return fl_no_memory(d, "the clocks");
    *at = &t->at[t->points++];
    **at = (fl_tune_point){.mhz = mhz, .ran_mhz = INFINITY};
    return FL_OK;
}

static fl_status measure(fl_tuner *t, double mhz, bool counts, fl_diag *d) {
    fl_tune_point *at = NULL;
    double time_s = 0, energy_j = 0, ran_mhz = 0;
    fl_status s = set_clock(t, mhz, d);
    if (!s)
        s = run_once(t, &time_s, &energy_j, &ran_mhz, d);
    if (!s && !t->caps && isfinite(ran_mhz) && ran_mhz > mhz + FL_TUNE_STEP_MHZ)
        s = fl_error(d, FL_HARDWARE,
                     "the GPU ran at %g MHz, expected %g MHz: nothing has set the clock, or it takes longer than a run",
                     ran_mhz, mhz);
    if (s)
        return s;
    if (counts)
        s = point_at(t, mhz, &at, d);
    if (!s && counts) {
        size_t room = at->room;
        if (fl_grow(&at->time_s, &room, at->runs + 1, sizeof *at->time_s) ||
            fl_grow(&at->energy_j, &at->room, at->runs + 1, sizeof *at->energy_j))
            return fl_no_memory(d, "the runs");
        at->time_s[at->runs] = time_s;
        at->energy_j[at->runs++] = energy_j;
        at->ran_mhz = t->caps ? INFINITY : fmin(at->ran_mhz, ran_mhz); /* a limit lowers the clock, as it should */
        t->done++;
    }
    FILE *out = t->json ? stderr : stdout;
    if (counts)
        fprintf(out, "run %-3lld %6g %-3s %10.3f s %11.1f J %8.1f W", (long long)t->done, mhz, fl_tune_unit(t), time_s,
                energy_j, energy_j / time_s);
    else
        fprintf(out, "warm-up %5g %-3s %10.3f s, does not count", mhz, fl_tune_unit(t), time_s);
    if (!t->caps && ran_mhz < mhz - FL_TUNE_STEP_MHZ)
        fprintf(out, "   ran at %g MHz", ran_mhz);
    fputc('\n', out);
    fflush(out);
    return s;
}

static fl_chip_row *rows_of(const fl_tuner *t, fl_diag *d) {
    fl_chip_row *row = calloc(t->points + 1, sizeof *row);
    if (!row)
        (void)fl_no_memory(d, "the rows");
    for (size_t i = 0; row && i < t->points; i++) {
        const double time = fl_tune_mean(t->at[i].time_s, t->at[i].runs),
                     energy = fl_tune_mean(t->at[i].energy_j, t->at[i].runs);
        row[i] = (fl_chip_row){.sm_mhz = t->at[i].mhz, .mem_mhz = 1, .time_s = time, .power_w = energy / time};
    }
    return row;
}

/* The clock to measure next; NAN: the answer was measured, or enough clocks were. Of power limits the laws take each as
 * a clock, and the power under the highest one as the top: a limit above it changes nothing. They only say where to
 * measure, for the answer is a measured limit. */
static fl_status next_clock(const fl_tuner *t, double *mhz, fl_diag *d) {
    *mhz = NAN;
    if (t->points >= (size_t)t->most)
        return FL_OK;
    fl_chip_row *row = rows_of(t, d);
    double *ladder = calloc(t->clocks + 1, sizeof *ladder), top = t->ladder[t->clocks - 1];
    size_t clocks = 0;
    for (size_t i = 0; row && t->caps && i < t->points; i++)
        top = t->at[i].mhz == t->ladder[t->clocks - 1] ? fmin(row[i].power_w, top) : top;
    for (size_t i = 0; row && i < t->points; i++)
        row[i].sm_mhz = fmin(row[i].sm_mhz, top);
    for (size_t i = 0; ladder && i < t->clocks; i++)
        if (t->ladder[i] < (t->caps ? BINDS : 1) * top)
            ladder[clocks++] = t->ladder[i];
    if (row && ladder) {
        ladder[clocks++] = top;
        /* Noise may keep one choice after the other just above the bound: the last one then aims a margin lower. */
        const bool last = t->points + 1 == (size_t)t->most && t->points > 2;
        const double bound = fl_tune_bound(t), margin = fmin(bound, t->bound - bound);
        const bool none = last && fl_tune_best(t)->mhz == t->ladder[t->clocks - 1];
        *mhz = fl_two_laws_next(row, t->points, ladder, clocks, none ? bound - margin : bound);
    }
    const bool found = row && ladder;
    free(row);
    free(ladder);
    return found ? FL_OK : fl_no_memory(d, "the rows");
}

static fl_status tune(fl_tuner *t, fl_diag *d) {
    const double top = t->ladder[t->clocks - 1];
    double next = NAN;
    fl_status s = measure(t, top, false, d);
    if (!s)
        s = measure(t, top, true, d);
    if (!s)
        s = next_clock(t, &next, d);
    for (bool first = true; !s && !isnan(next); first = false) {
        for (int64_t i = 0; !s && i < t->runs; i++) { /* the top in turn with it, as heat and others change over time */
            s = measure(t, next, true, d);
            if (!s && (first ? i + 1 < t->runs : !i))
                s = measure(t, top, true, d);
        }
        if (!s)
            s = next_clock(t, &next, d);
    }
    return s;
}

/* ---- the command ---- */

static fl_status open_tuner(fl_tuner *t, fl_diag *d) {
    fl_status s = fl_vendor_open(&t->gpus, t->vendor, t->list, NULL, d);
    if (s)
        return s;
    t->count = t->gpus.back->count(t->gpus.self);
    if (t->count > FL_TUNE_GPUS || (t->count > 1 && !t->list))
        return fl_refuse(d, "this machine has %u GPUs: --gpus says which the command uses, at most %d", t->count,
                         FL_TUNE_GPUS);
    if ((s = t->gpus.back->facts(t->gpus.self, 0, &t->facts, d)))
        return s;
    snprintf(t->device, sizeof t->device, "%s", t->facts.name);
    t->index = t->count == 1 ? (int64_t)t->gpus.back->index(t->gpus.self, 0) : -1;
    const double own_w = t->facts.power_default_w, least_w = t->facts.power_min_w;
    const bool limits = own_w > 0 && least_w > 0 && least_w < own_w;
    const size_t steps = limits ? (size_t)((own_w - least_w) / CAP_STEP_W) : 0;
    t->ladder = calloc(t->facts.sm.count + steps + 2, sizeof *t->ladder);
    if (!t->ladder)
        return fl_no_memory(d, "the clocks");
    const double top = t->facts.default_sm_mhz > 0 ? t->facts.default_sm_mhz : (double)INFINITY;
    for (uint32_t i = 0; !t->caps && i < t->facts.sm.count && t->facts.sm.mhz[i] <= top; i++)
        t->ladder[t->clocks++] = t->facts.sm.mhz[i];
    for (size_t i = 0; t->caps && limits && i <= steps; i++)
        t->ladder[t->clocks++] = own_w - CAP_STEP_W * (double)(steps - i);
    if (t->clocks < 2)
        return fl_error(d, FL_HARDWARE, "the GPU (%s) states no %s that could be set", t->facts.name,
                        t->caps ? "power limits" : "clocks");
    if (t->manual || t->set_command)
        return FL_OK;
    const fl_session_options so = {.gpus = &t->gpus,
                                   .gpu_drives = FL_BIT(t->caps ? FL_SET_POWER_LIMIT_W : FL_SET_SM_MHZ),
                                   .check_ns = GRACE_NS / 100};
    s = fl_session_open(&t->session, &so, d);
    return s;
}

static void close_tuner(fl_tuner *t, fl_status *s, fl_diag *d) {
    fl_diag ignored;
    if (t->session) {
        fl_session_beat(t->session, now_ns() + GRACE_NS, NULL);
        const fl_status back = fl_session_close(t->session, *s ? &ignored : d);
        *s = *s ? *s : back;
    } else if (t->undo_command && !isnan(t->set_mhz)) {
        const fl_status back = run_command(t->undo_command, t->set_mhz, *s ? &ignored : d);
        *s = *s ? *s : back;
    }
    fl_gpus_close(&t->gpus);
}

static void free_tuner(fl_tuner *t) {
    for (size_t i = 0; i < t->points; i++) {
        free(t->at[i].time_s);
        free(t->at[i].energy_j);
    }
    free(t->at);
    free(t->ladder);
    free(t->m.mhz);
}

int fl_cmd_tune(int argc, char **argv) {
    fl_tuner t = {.bound = BOUND_STANDARD, .runs = RUNS_STANDARD, .most = CLOCKS_STANDARD, .set_mhz = NAN};
    fl_texts rest = {0};
    const fl_option option[] = {
        {"bound", "X", FL_OPTION_SHARE, &t.bound, 0, 100,
         "largest slowdown allowed: 0.05 or 5% (" FL_AS_TEXT(BOUND_STANDARD) ")", FL_FOR_POLICIES | FL_MOST_USED},
        {"runs", "N", FL_OPTION_INT, &t.runs, 1, 1000, "runs at each clock (" FL_AS_TEXT(RUNS_STANDARD) ")",
         FL_FOR_METHOD | FL_MOST_USED},
        {"clocks", "N", FL_OPTION_INT, &t.most, 2, 100, "clocks to measure, at most (" FL_AS_TEXT(CLOCKS_STANDARD) ")",
         FL_FOR_METHOD},
        {"caps", NULL, FL_OPTION_FLAG, &t.caps, 0, 0, "tunes the power limit, in place of the SM clock", FL_FOR_METHOD},
        {"gpus", "LIST", FL_OPTION_TEXT, &t.list, 0, 0,
         "indices or UUIDs of the GPUs that the command uses (the machine's only one)", FL_FOR_MACHINE | FL_MOST_USED},
        {"vendor", "auto|nvidia|intel|amd", FL_OPTION_CHOICE, &t.vendor, 0, 0, FL_VENDOR_HELP, FL_FOR_MACHINE},
        {"manual", NULL, FL_OPTION_FLAG, &t.manual, 0, 0, "says which clock to set, and waits", FL_FOR_MACHINE},
        {"set-command", "CMD", FL_OPTION_TEXT, &t.set_command, 0, 0,
         "sets a clock, {mhz} in its text; with --caps {watts}", FL_FOR_MACHINE},
        {"undo-command", "CMD", FL_OPTION_TEXT, &t.undo_command, 0, 0, "puts the clock back at the end",
         FL_FOR_MACHINE},
        {"o", "FILE", FL_OPTION_OUTPUT, &t.out, 0, 0, "sweep to write, a row for each run",
         FL_FOR_OUTPUT | FL_MOST_USED},
        FL_JSON_OPTION(&t.json),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_status s = rest.count ? FL_OK : fl_refuse(&d, "expected a command to run: -- COMMAND");
    if (!s && t.manual && t.set_command)
        s = fl_refuse(&d, "--manual and --set-command: expected one of them");
    if (!s && t.set_command && !strstr(t.set_command, t.caps ? "{watts}" : "{mhz}"))
        s = fl_refuse(&d, "--set-command '%s' has no %s, expected it where the %s belongs", t.set_command,
                      t.caps ? "{watts}" : "{mhz}", t.caps ? "limit" : "clock");
    if (!s && t.undo_command && !t.set_command)
        s = fl_refuse(&d, "--undo-command has no effect without --set-command");
    if (!s)
        s = fl_texts_add(&rest, NULL, &d);
    t.command = (char **)(uintptr_t)rest.item;
    if (!s) {
        s = open_tuner(&t, &d);
        fl_stop_listen();
        if (!s)
            s = tune(&t, &d);
        fl_status ends = s;
        fl_diag later = {0};
        close_tuner(&t, &ends, s ? &later : &d);
        s = s ? s : ends;
    }
    if (t.done && t.out) { /* what was measured before a failure is kept too */
        fl_diag later = {0};
        const fl_status written = fl_tune_write(&t, s ? &later : &d);
        s = s ? s : written;
    }
    if (!s && t.json)
        fl_tune_json(&t);
    else if (!s)
        fl_tune_tell(&t);
    if (!s)
        fl_tune_notes(&t);
    if (s)
        status = fl_command_fail("tune", &d);
    free_tuner(&t);
    fl_texts_free(&rest);
    return status;
}
