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
    "the "
    "slowdown.",
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
    "-o writes a row for each run, which foldline advise and compare read."};

#define BOUND_STANDARD 0.05
#define RUNS_STANDARD 3
#define CLOCKS_STANDARD 5
#define EVERY_NS INT64_C(50000000) /* between readings */
#define GRACE_NS INT64_C(30000000000)
#define ONE_SIDED 1.645  /* standard deviations by which the bound is lowered: one side, 5 % */
#define UNKNOWN_SD 0.005 /* of one run each: how well times usually repeat (FL_ROW_NOISE_TIME) */
#define NOISY_SD 0.02    /* a larger one prints a note */
#define SHORT_S 2        /* of shorter runs the steps of a sensor leave more than a percent open */
#define SAME_TIME 0.002  /* of a slowdown below it a clock costs nothing */
#define BELOW_MHZ 16     /* a clock that is lower than what was set by more than a step */
#define GPUS 64

typedef struct point { /* one clock */
    double mhz;
    size_t runs, room;
    double *time_s, *energy_j;
    double ran_mhz; /* the lowest median of its runs; INFINITY: not read */
} point;

typedef struct meter { /* one run of the command */
    fl_program program;
    bool started, last;
    int64_t start_ns, end_ns;                          /* of the command */
    int64_t seen_ns[GPUS], first_ns[GPUS];             /* power readings: the last one; the first reading */
    double first_j[GPUS], last_j[GPUS], power_w[GPUS]; /* the counter; power at the last reading */
    double sum_j[GPUS];                                /* of power over time */
    bool counts[GPUS], powers[GPUS];
    double *mhz;
    size_t mhzs, mhz_room;
} meter;

typedef struct tuner {
    char **command;
    double bound;
    int64_t runs, most;
    const char *out, *vendor, *list, *set_command, *undo_command, *name;
    bool manual, json;
    fl_gpus gpus;
    uint32_t count;
    fl_gpu_facts facts;  /* until the GPUs are closed */
    char device[128];    /* its name */
    int64_t index;       /* its number, of a single GPU; else -1 */
    fl_session *session; /* NULL: a user or another program sets */
    double *ladder;
    size_t clocks;
    double set_mhz; /* NAN: nothing was set yet */
    point *at;
    size_t points, point_room;
    meter m;
    int64_t done; /* runs that counted */
} tuner;

/* ---- one run ---- */

static int64_t now_ns(void) {
    const fl_clock clock = fl_clock_system();
    return clock.now(clock.user);
}

/* The command's standard output goes nowhere, so that the screen is the tuner's. */
static fl_status start(tuner *t, fl_diag *d) {
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

static void take(meter *m, uint32_t i, int64_t t_ns, const fl_gpu_sample *s) {
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
    tuner *t = user;
    meter *m = &t->m;
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

static bool ended(meter *m) {
    const bool was = m->program.ended;
    if (m->started && fl_program_look(&m->program) && !was)
        m->end_ns = now_ns();
    return m->program.ended;
}

static bool stop(void *user) {
    tuner *t = user;
    (void)ended(&t->m);
    return t->m.last || (fl_stop_asked() && !t->m.started);
}

static bool early(void *user) { return ended(&((tuner *)user)->m); }

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *value, size_t count) {
    qsort(value, count, sizeof *value, ascending);
    return count ? value[count / 2] : (double)INFINITY;
}

/* Joules of all GPUs in the command's time; NAN: a GPU tells neither energy nor power. */
static double energy_of(const tuner *t, double time_s) {
    const meter *m = &t->m;
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
static fl_status run_once(tuner *t, double *time_s, double *energy_j, double *ran_mhz, fl_diag *d) {
    fl_live_result x;
    double *kept = t->m.mhz;
    const size_t room = t->m.mhz_room;
    t->m = (meter){.mhz = kept, .mhz_room = room};
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

/* The command with {mhz} filled in. */
static char *filled(const char *command, double mhz) {
    fl_text text;
    FILE *f = fl_text_open(&text);
    for (const char *c = command; f && *c; c++)
        if (!strncmp(c, "{mhz}", 5)) {
            fprintf(f, "%g", mhz);
            c += 4;
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

static fl_status ask_user(const tuner *t, double mhz, fl_diag *d) {
    const fl_setting_clocks at = {.sm_mhz = mhz, .mem_mhz = NAN};
    const fl_advise_commands c = fl_advise_commands_of(t->device, t->index, at, false);
    fprintf(stderr, "set the SM clock to %g MHz%s%s%s, then press Enter: ", mhz, *c.set ? " (sudo " : "", c.set,
            *c.set ? ")" : "");
    fflush(stderr);
    for (int c2 = getchar(); c2 != '\n'; c2 = getchar())
        if (c2 == EOF || fl_stop_asked())
            return fl_error(d, FL_HARDWARE, "nobody pressed Enter: the input has ended");
    return FL_OK;
}

static fl_status set_clock(tuner *t, double mhz, fl_diag *d) {
    fl_status s = FL_OK;
    if (t->set_mhz == mhz)
        return FL_OK;
    if (t->manual)
        s = ask_user(t, mhz, d);
    else if (t->set_command)
        s = run_command(t->set_command, mhz, d);
    for (uint32_t i = 0; !s && t->session && i < t->count; i++) {
        bool made = false;
        s = fl_session_beat(t->session, now_ns() + GRACE_NS, d);
        if (!s)
            s = fl_session_may(t->session, (int32_t)i, FL_SET_SM_MHZ, mhz, &made, d);
        if (!s && made)
            s = fl_session_set(t->session, (int32_t)i, FL_SET_SM_MHZ, mhz, d);
    }
    t->set_mhz = s ? (double)NAN : mhz;
    return s;
}

/* ---- points ---- */

static double mean(const double *value, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += value[i];
    return sum / (double)count;
}

/* Relative deviation of single runs, of all clocks together; NAN: no clock has two runs. */
static double noise(const tuner *t, bool energy, size_t *freedom) {
    double sum = 0;
    *freedom = 0;
    for (size_t i = 0; i < t->points; i++) {
        const double *value = energy ? t->at[i].energy_j : t->at[i].time_s, m = mean(value, t->at[i].runs);
        for (size_t k = 0; k < t->at[i].runs; k++)
            sum += (value[k] / m - 1) * (value[k] / m - 1);
        *freedom += t->at[i].runs - 1;
    }
    return *freedom ? sqrt(sum / (double)*freedom) : (double)NAN;
}

static const point *top_of(const tuner *t) {
    const point *top = &t->at[0];
    for (size_t i = 1; i < t->points; i++)
        top = t->at[i].mhz > top->mhz ? &t->at[i] : top;
    return top;
}

/* The bound that a mean of the usual number of runs must hold, so that noise alone seldom breaks the user's. */
static double lowered_bound(const tuner *t) {
    size_t freedom;
    const double sd = noise(t, false, &freedom), one = isnan(sd) ? UNKNOWN_SD : sd;
    return fmax(0, (1 + t->bound) * exp(-ONE_SIDED * one * sqrt(2 / (double)t->runs)) - 1);
}

static fl_status point_at(tuner *t, double mhz, point **at, fl_diag *d) {
    for (size_t i = 0; i < t->points; i++)
        if (t->at[i].mhz == mhz) {
            *at = &t->at[i];
            return FL_OK;
        }
    if (fl_grow(&t->at, &t->point_room, t->points + 1, sizeof *t->at))
        return fl_no_memory(d, "the clocks");
    *at = &t->at[t->points++];
    **at = (point){.mhz = mhz, .ran_mhz = INFINITY};
    return FL_OK;
}

static fl_status measure(tuner *t, double mhz, bool counts, fl_diag *d) {
    point *at = NULL;
    double time_s = 0, energy_j = 0, ran_mhz = 0;
    fl_status s = set_clock(t, mhz, d);
    if (!s)
        s = run_once(t, &time_s, &energy_j, &ran_mhz, d);
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
        at->ran_mhz = fmin(at->ran_mhz, ran_mhz);
        t->done++;
    }
    FILE *out = t->json ? stderr : stdout;
    if (counts)
        fprintf(out, "run %-3lld %6g MHz %10.3f s %11.1f J %8.1f W", (long long)t->done, mhz, time_s, energy_j,
                energy_j / time_s);
    else
        fprintf(out, "warm-up %5g MHz %10.3f s, does not count", mhz, time_s);
    if (ran_mhz < mhz - BELOW_MHZ)
        fprintf(out, "   ran at %g MHz", ran_mhz);
    fputc('\n', out);
    fflush(out);
    return s;
}

static fl_chip_row *rows_of(const tuner *t, fl_diag *d) {
    fl_chip_row *row = calloc(t->points + 1, sizeof *row);
    if (!row)
        (void)fl_no_memory(d, "the rows");
    for (size_t i = 0; row && i < t->points; i++) {
        const double time = mean(t->at[i].time_s, t->at[i].runs), energy = mean(t->at[i].energy_j, t->at[i].runs);
        row[i] = (fl_chip_row){.sm_mhz = t->at[i].mhz, .mem_mhz = 1, .time_s = time, .power_w = energy / time};
    }
    return row;
}

/* The clock to measure next; NAN: the answer was measured, or enough clocks were. */
static fl_status next_clock(const tuner *t, double *mhz, fl_diag *d) {
    *mhz = NAN;
    if (t->points >= (size_t)t->most)
        return FL_OK;
    fl_chip_row *row = rows_of(t, d);
    if (!row)
        return FL_NO_MEMORY;
    *mhz = fl_two_laws_next(row, t->points, t->ladder, t->clocks, lowered_bound(t));
    free(row);
    return FL_OK;
}

static fl_status tune(tuner *t, fl_diag *d) {
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

/* ---- the answer ---- */

/* Student's 0.975 quantile. */
static double student(size_t freedom) {
    static const double q[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};
    const size_t count = sizeof q / sizeof *q;
    return freedom < 1 ? (double)NAN : freedom <= count ? q[freedom - 1] : 2 + 2.3 / (double)freedom;
}

static const point *best_of(const tuner *t) {
    const point *top = top_of(t), *best = top;
    const double bound = lowered_bound(t), top_s = mean(top->time_s, top->runs);
    for (size_t i = 0; i < t->points; i++) {
        const point *p = &t->at[i];
        if (mean(p->time_s, p->runs) <= (1 + bound) * top_s &&
            mean(p->energy_j, p->runs) < mean(best->energy_j, best->runs))
            best = p;
    }
    return best;
}

static int by_clock(const void *a, const void *b) {
    const double x = ((const point *)a)->mhz, y = ((const point *)b)->mhz;
    return (x < y) - (x > y);
}

static void tell_clock(const tuner *t) {
    const point *best = best_of(t);
    const fl_setting_clocks at = {.sm_mhz = best->mhz, .mem_mhz = NAN};
    const fl_advise_commands c = fl_advise_commands_of(t->device, t->index, at, false);
    if (*c.set)
        printf("set   %s\nundo  %s\n", c.set, c.undo);
}

static void add_mean(fl_grid *g, double value, double sd, int digits) {
    if (isnan(sd))
        fl_grid_add(g, "%.*f", digits, value);
    else
        fl_grid_add(g, "%.*f ± %.*f", digits, value, digits, value * sd);
}

static void tell_json(const tuner *t) {
    const point *top = top_of(t), *best = best_of(t);
    const fl_setting_clocks at = {.sm_mhz = best->mhz, .mem_mhz = NAN};
    const fl_advise_commands c = fl_advise_commands_of(t->device, t->index, at, false);
    cJSON *root = cJSON_CreateObject(), *clocks = cJSON_AddArrayToObject(root, "clocks");
    const double top_s = mean(top->time_s, top->runs), top_j = mean(top->energy_j, top->runs);
    fl_json_add_real(root, "sm_mhz", best->mhz);
    fl_json_add_real(root, "reference_sm_mhz", top->mhz);
    fl_json_add_real(root, "bound", t->bound);
    fl_json_add_real(root, "saving_pct", 100 * (1 - mean(best->energy_j, best->runs) / top_j));
    fl_json_add_real(root, "slowdown_pct", 100 * (mean(best->time_s, best->runs) / top_s - 1));
    cJSON_AddStringToObject(root, "set", best == top ? "" : c.set);
    cJSON_AddStringToObject(root, "undo", best == top ? "" : c.undo);
    for (size_t i = 0; i < t->points; i++) {
        cJSON *p = cJSON_CreateObject();
        cJSON_AddItemToArray(clocks, p);
        fl_json_add_real(p, "sm_mhz", t->at[i].mhz);
        fl_json_add_real(p, "runs", (double)t->at[i].runs);
        fl_json_add_real(p, "time_s", mean(t->at[i].time_s, t->at[i].runs));
        fl_json_add_real(p, "energy_j", mean(t->at[i].energy_j, t->at[i].runs));
    }
    fl_json_print(root, stdout);
    cJSON_Delete(root);
}

static void tell_notes(const tuner *t) {
    size_t ignored;
    const double time_sd = noise(t, false, &ignored), top_s = mean(top_of(t)->time_s, top_of(t)->runs);
    if (time_sd > NOISY_SD)
        fl_terminal_say(stderr, "note: runs at one clock differ by %.1f %%: more --runs, or a quieter machine",
                        100 * time_sd);
    if (top_s < SHORT_S)
        fl_terminal_say(stderr,
                        "note: a run takes %.2g s, of which a sensor's steps leave percents open: a longer one tells "
                        "more",
                        top_s);
    const point *best = best_of(t);
    if (best != top_of(t) && fabs(mean(best->time_s, best->runs) / top_s - 1) < SAME_TIME)
        fl_terminal_say(stderr,
                        "note: the time does not depend on the clock: the host or the memory sets the pace, or the "
                        "command does not wait for the GPU");
    for (size_t i = 0; i < t->points; i++)
        if (t->at[i].ran_mhz < t->at[i].mhz - BELOW_MHZ)
            fl_terminal_say(stderr, "note: at %g MHz the GPU ran at %g MHz: a limit of power or heat held it down",
                            t->at[i].mhz, t->at[i].ran_mhz);
}

static void tell(tuner *t) {
    size_t freedom = 0, ignored;
    qsort(t->at, t->points, sizeof *t->at, by_clock);
    const point *top = top_of(t), *best = best_of(t);
    const double top_s = mean(top->time_s, top->runs), top_j = mean(top->energy_j, top->runs);
    const double time_sd = noise(t, false, &freedom), energy_sd = noise(t, true, &ignored), q = student(freedom);
    fl_grid g = {0};
    fl_grid_column(&g, "MHz", "SM clock that was set");
    fl_grid_column(&g, "runs", "number of runs, the warm-up left out");
    fl_grid_column(&g, "time s", "mean, and deviation of a single run");
    fl_grid_column(&g, "energy J", "mean, and deviation of a single run");
    fl_grid_column(&g, "slowdown %", "time above that at the highest clock");
    fl_grid_column(&g, "saved %", "energy saved against the highest clock");
    fl_grid_column(&g, "", "%s", "");
    for (size_t i = 0; i < t->points; i++) {
        const point *p = &t->at[i];
        const double time = mean(p->time_s, p->runs), energy = mean(p->energy_j, p->runs);
        fl_grid_add(&g, "%g\t%zu", p->mhz, p->runs);
        add_mean(&g, time, time_sd, 3);
        add_mean(&g, energy, energy_sd, 1);
        fl_grid_add(&g, "%.2f\t%.2f\t%s", 100 * (time / top_s - 1), 100 * (1 - energy / top_j),
                    p == best ? "<- the answer" : "");
    }
    putchar('\n');
    fl_grid_print(&g, 0, stdout);
    if (best == top) {
        printf("\n%g MHz, as it is: no other clock that was measured saves energy within the bound of %g %%\n",
               best->mhz, 100 * t->bound);
    } else {
        const double few = sqrt(1 / (double)best->runs + 1 / (double)top->runs);
        const double time = mean(best->time_s, best->runs) / top_s, energy = mean(best->energy_j, best->runs) / top_j;
        printf("\n%g MHz instead of %g: saves %.1f", best->mhz, top->mhz, 100 * (1 - energy));
        if (freedom)
            printf(" ± %.1f", 100 * energy * q * energy_sd * few);
        printf(" %% of the energy, takes %.1f", fabs(100 * (time - 1)));
        if (freedom)
            printf(" ± %.1f", 100 * time * q * time_sd * few);
        printf(" %% %s (95 %%%s)\n", time < 1 ? "less time" : "longer", freedom ? "" : ": unknown, one run each");
        if (freedom && 1 - energy < energy * q * energy_sd * few)
            fl_terminal_say(stderr, "note: the saving is within the noise of the runs, and may be none");
        tell_clock(t);
    }
}

static fl_status write_rows(const tuner *t, fl_diag *d) {
    char none[] = "", *name = strdup(basename(t->command[0])), *names[] = {name, none};
    fl_sweep sweep = {.names = names, .name_count = 2};
    fl_status s = name ? FL_OK : fl_no_memory(d, "the rows");
    bool ok = fl_head_set(&sweep.head, "source", "foldline tune") && fl_head_set(&sweep.head, "device", t->device);
    for (size_t i = 0; !s && ok && i < t->points; i++)
        for (size_t k = 0; !s && k < t->at[i].runs; k++) {
            if (fl_grow(&sweep.rows, &sweep.row_room, sweep.row_count + 1, sizeof *sweep.rows)) {
                s = fl_no_memory(d, "the rows");
                break;
            }
            sweep.rows[sweep.row_count++] = (fl_sweep_row){.kernel = 1,
                                                           .sm_mhz = t->at[i].mhz,
                                                           .mem_mhz = NAN,
                                                           .power_cap_w = NAN,
                                                           .time_s = t->at[i].time_s[k],
                                                           .power_w = t->at[i].energy_j[k] / t->at[i].time_s[k],
                                                           .energy_j = t->at[i].energy_j[k],
                                                           .energy_cv = NAN,
                                                           .ratio = NAN,
                                                           .ratio_cv = NAN,
                                                           .time_sd_pct = NAN,
                                                           .power_sd_pct = NAN};
        }
    if (!s && !ok)
        s = fl_no_memory(d, "the rows");
    if (!s)
        s = fl_sweep_write(t->out, &sweep, d);
    fl_head_free(&sweep.head);
    free(sweep.rows);
    free(name);
    return s;
}

/* ---- the command ---- */

static fl_status open_tuner(tuner *t, fl_diag *d) {
    fl_status s = fl_vendor_open(&t->gpus, t->vendor, t->list, NULL, d);
    if (s)
        return s;
    t->count = t->gpus.back->count(t->gpus.self);
    if (t->count > GPUS || (t->count > 1 && !t->list))
        return fl_refuse(d, "this machine has %u GPUs: --gpus says which the command uses, at most %d", t->count, GPUS);
    if ((s = t->gpus.back->facts(t->gpus.self, 0, &t->facts, d)))
        return s;
    snprintf(t->device, sizeof t->device, "%s", t->facts.name);
    t->index = t->count == 1 ? (int64_t)t->gpus.back->index(t->gpus.self, 0) : -1;
    t->ladder = calloc(t->facts.sm.count + 1, sizeof *t->ladder);
    if (!t->ladder)
        return fl_no_memory(d, "the clocks");
    const double top = t->facts.default_sm_mhz > 0 ? t->facts.default_sm_mhz : (double)INFINITY;
    for (uint32_t i = 0; i < t->facts.sm.count && t->facts.sm.mhz[i] <= top; i++)
        t->ladder[t->clocks++] = t->facts.sm.mhz[i];
    if (t->clocks < 2)
        return fl_error(d, FL_HARDWARE, "the GPU (%s) states no clocks that could be set", t->facts.name);
    if (t->manual || t->set_command)
        return FL_OK;
    const fl_session_options so = {.gpus = &t->gpus, .gpu_drives = FL_BIT(FL_SET_SM_MHZ), .check_ns = GRACE_NS / 100};
    s = fl_session_open(&t->session, &so, d);
    return s;
}

static void close_tuner(tuner *t, fl_status *s, fl_diag *d) {
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

static void free_tuner(tuner *t) {
    for (size_t i = 0; i < t->points; i++) {
        free(t->at[i].time_s);
        free(t->at[i].energy_j);
    }
    free(t->at);
    free(t->ladder);
    free(t->m.mhz);
}

int fl_cmd_tune(int argc, char **argv) {
    tuner t = {.bound = BOUND_STANDARD, .runs = RUNS_STANDARD, .most = CLOCKS_STANDARD, .set_mhz = NAN};
    fl_texts rest = {0};
    const fl_option option[] = {
        {"bound", "X", FL_OPTION_SHARE, &t.bound, 0, 100,
         "largest slowdown allowed: 0.05 or 5% (" FL_AS_TEXT(BOUND_STANDARD) ")", FL_FOR_POLICIES | FL_MOST_USED},
        {"runs", "N", FL_OPTION_INT, &t.runs, 1, 1000, "runs at each clock (" FL_AS_TEXT(RUNS_STANDARD) ")",
         FL_FOR_METHOD | FL_MOST_USED},
        {"clocks", "N", FL_OPTION_INT, &t.most, 2, 100, "clocks to measure, at most (" FL_AS_TEXT(CLOCKS_STANDARD) ")",
         FL_FOR_METHOD},
        {"gpus", "LIST", FL_OPTION_TEXT, &t.list, 0, 0,
         "indices or UUIDs of the GPUs that the command uses (the machine's only one)", FL_FOR_MACHINE | FL_MOST_USED},
        {"vendor", "auto|nvidia|intel|amd", FL_OPTION_CHOICE, &t.vendor, 0, 0, FL_VENDOR_HELP, FL_FOR_MACHINE},
        {"manual", NULL, FL_OPTION_FLAG, &t.manual, 0, 0, "says which clock to set, and waits", FL_FOR_MACHINE},
        {"set-command", "CMD", FL_OPTION_TEXT, &t.set_command, 0, 0, "sets a clock, {mhz} in its text", FL_FOR_MACHINE},
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
    if (!s && t.set_command && !strstr(t.set_command, "{mhz}"))
        s = fl_refuse(&d, "--set-command '%s' has no {mhz}, expected it where the clock belongs", t.set_command);
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
        const fl_status written = write_rows(&t, s ? &later : &d);
        s = s ? s : written;
    }
    if (!s && t.json)
        tell_json(&t);
    else if (!s)
        tell(&t);
    if (!s)
        tell_notes(&t);
    if (s)
        status = fl_command_fail("tune", &d);
    free_tuner(&t);
    fl_texts_free(&rest);
    return status;
}
