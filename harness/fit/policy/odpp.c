/* `foldline fit policy odpp`: trains the two networks of the policy odpp. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "models/laws/device.h"
#include "policies/compared/compared.h"
#include "policies/policy.h"
#include "policies/random.h"
#include "sim/node/node.h"
#include "traces/io/io.h"

#include <fnmatch.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Called for each scene, possibly several at once. index continues from file to file. The function must touch nothing
 * except what belongs to its index. */
typedef fl_status (*fl_fit_scene)(void *user, fl_scene *scene, size_t index, fl_diag *d);

enum { FL_FIT_HELD_OUT = 5 }; /* every fifth program serves only as a test */

/* ---- scenes ---- */

typedef struct job {
    fl_scenes scenes;
    size_t first, *taken; /* taken: the chosen scenes */
    void *items;          /* the address of an array of *count items of `size` bytes, with space for `room` */
    size_t size, *count, room;
    const char *match;
    fl_fit_scene each;
    void *user;
} job;

static fl_status do_scene(void *user, size_t index, fl_diag *d) {
    job *j = user;
    return j->each(j->user, j->scenes.item[j->taken[index]], j->first + index, d);
}

static void make_room(job *j, size_t count) {
    char *item;
    if (count)
        fl_must_grow(j->items, &j->room, j->first + count, j->size);
    memcpy(&item, j->items, sizeof item);
    if (count)
        memset(item + j->first * j->size, 0, count * j->size);
    *j->count += count;
}

static fl_status do_file(const fl_scene_options *o, const fl_texts *traces, unsigned threads, job *j, fl_diag *d) {
    size_t count = 0;
    fl_status s = fl_scenes_open(o, traces, &j->scenes, d);
    j->taken = fl_must(calloc(j->scenes.count + 1, sizeof *j->taken));
    for (size_t i = 0; !s && i < j->scenes.count; i++)
        if (!j->match || fnmatch(j->match, j->scenes.item[i]->w->name, 0) == 0)
            j->taken[count++] = i;
    if (!s) {
        make_room(j, count);
        s = fl_pool_run(do_scene, j, count, threads, "runs", d);
    }
    j->first += count;
    free(j->taken);
    fl_scenes_free(&j->scenes);
    return s;
}

/* Opens the scenes of each file of programs, or sweep, and frees them after use. match: a
 * shell pattern of the workloads to take; NULL: all. items: where the array of what is known of each scene begins, of
 * `size` bytes each, all 0 before its scene; *count, 0 at first, becomes their number, and the caller frees the array.
 * FL_BAD_INPUT where there is no file, or fewer scenes than FL_FIT_HELD_OUT. */
static fl_status fl_fit_scenes(const fl_scene_options *o, const char *match, const fl_texts *programs, unsigned threads,
                               void *items, size_t size, size_t *count, fl_fit_scene each, void *user, fl_diag *d) {
    job j = {.match = match, .items = items, .size = size, .count = count, .each = each, .user = user};
    if (!programs->count)
        return fl_refuse(d, "no programs to train on, expected files of programs, or sweeps");
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < programs->count; i++) {
        fl_scene_options of_file = *o;
        fl_texts one = {0};
        if (!(s = fl_texts_add(&one, programs->item[i], d)) && !(s = fl_scene_sort(&of_file, &one, d)))
            s = do_file(&of_file, &one, threads, &j, d);
        fl_texts_free(&one);
    }
    if (!s && *count < FL_FIT_HELD_OUT)
        s = fl_refuse(d, "%zu programs, expected at least %d: every fifth serves only as a test", *count,
                      FL_FIT_HELD_OUT);
    return s;
}

/* Trains the two networks of ODPP on what the policy itself would measure on simulated programs. Measured sweeps cannot
 * train them: they have one mean time and power for a kernel and clock, but no readings over time, from which the
 * policy takes the period, its energy and its utilisation. */

static const fl_command_help help = {
    "fit policy odpp", "PROGRAMS.csv ... --platform NAME -o WEIGHTS.csv",
    "Trains the two networks of the policy odpp, which predict the energy and time of a period at a clock.",
    "The authors published neither weights nor training data. foldline runs every program at 450 to 1920 MHz, in steps "
    "of --step, and measures it as the policy does: a trace of the simulated sensors, its period, and power and "
    "utilisation in the last period. The inputs are the value of the straight lines through 450, 945, 1425 and 1920 "
    "MHz, the clock divided by 1920 MHz, and power, U and V at 1920 MHz; the targets are the measured values. The "
    "training is the same as the retraining within the policy: Adam, mean squared error, batches of 256. Every fifth "
    "program serves only as a test.\n\n"
    "harness/experiments/odpp.weights.csv is made by\n"
    "  for n in 1001 1002 1003; do foldline synth --apps 57 --seed $n -o $n.programs.csv; done\n"
    "  foldline fit policy odpp 100[123].programs.csv --platform rtx3080ti --match 'gnn_*' --seconds 120 -o "
    "WEIGHTS.csv\n"
    "which leaves out the programs that stand for published ones."};

enum { PROBES = 4, BATCH = 256 };
static const double probe_mhz[PROBES] = {450, 945, 1425, 1920};
static const double start_s = 16;
static const int64_t sample_ns = 100000000;

typedef struct program { /* all measurements of one program */
    fl_odpp_run *run;    /* clock_count */
} program;

typedef struct fit {
    double step_mhz;
    uint32_t clocks;
    program *program;
    size_t count;
    int64_t seed, epochs;
    fl_mlp net[FL_ODPP_QUANTITIES];
} fit;

/* ---- measuring ---- */

typedef struct watcher {
    fl_fft work;
    fl_readings trace;
    double limit_w, mhz, length_s;
    fl_odpp_run run;
    bool done;
} watcher;

static void end_trace(watcher *w, bool last) {
    const double period = fl_odpp_period_s(&w->work, &w->trace, w->limit_w),
                 missing = fl_odpp_missing_s(fl_readings_length_s(&w->trace), period);
    w->length_s += missing;
    w->done = last || !(missing > 0) || w->trace.count == FL_FFT_MAX;
    if (w->done)
        w->run = fl_odpp_measure(&w->trace, w->mhz, period, FL_ODPP_IDLE_W);
}

/* Ends the run once everything is measured, by an error that the caller does not report. */
static fl_status on_watch(void *user, const fl_gpu_sample *gpu, uint32_t count, int64_t t_ps, fl_diag *d) {
    watcher *w = user;
    const double since_s = (double)t_ps * 1e-12 - start_s - FL_ODPP_SETTLE_S;
    (void)count;
    (void)d;
    if (since_s < 0)
        return FL_OK;
    fl_readings_add(&w->trace, gpu, t_ps / 1000);
    if (since_s >= w->length_s)
        end_trace(w, false);
    return w->done ? FL_HARDWARE : FL_OK;
}

static double clock_of(const fit *f, uint32_t i) { return fmin(probe_mhz[0] + i * f->step_mhz, probe_mhz[PROBES - 1]); }

/* The runs at all clocks, followed by the four runs for the lines. */
static fl_status measure(void *user, fl_scene *s, size_t index, fl_diag *d) {
    fit *f = user;
    program *p = &f->program[index];
    const fl_device *dev = &s->platform.node.device[s->platform.node.gpu[0]];
    watcher *w = fl_must(malloc(sizeof *w));
    p->run = fl_must(calloc(f->clocks + PROBES, sizeof *p->run));
    fl_status status = FL_OK;
    for (uint32_t i = 0; !status && i < f->clocks + PROBES; i++) {
        const double mhz = i < f->clocks ? clock_of(f, i) : probe_mhz[i - f->clocks];
        if (fl_ladder_index(dev->sm_mhz, dev->sm_count, mhz) < 0) {
            char text[FL_OFF_LADDER_TEXT];
            status = fl_refuse(d, "%s: %s; expected the clocks of an RTX 3080 Ti", dev->name,
                               fl_off_ladder(mhz, "the SM ladder", dev->sm_mhz, dev->sm_count, text));
            break;
        }
        fl_run_result result = {0};
        memset(w, 0, sizeof *w);
        w->limit_w = fl_readings_limit_w(&s->facts.gpu[0]);
        w->mhz = mhz;
        w->length_s = FL_ODPP_TRACE_S;
        const fl_run_options o = {.w = s->w,
                                  .rates = s->rates,
                                  .spec = &s->platform.node,
                                  .facts = &s->facts,
                                  .first_sm_mhz = mhz,
                                  .on_watch = on_watch,
                                  .watch_needs = FL_READINGS_NEEDS,
                                  .truth_ns = sample_ns,
                                  .user = w};
        status = fl_run(&o, &result, d);
        if (!status)
            fl_run_result_free(&result);
        if (w->done)
            status = FL_OK;
        else if (!status && w->trace.count < 2)
            status = fl_refuse(d, "%s ends before the measurement does, expected a run of more than %g s", s->w->name,
                               start_s + 1);
        else if (!status)
            end_trace(w, true);
        p->run[i] = w->run;
    }
    free(w);
    return status;
}

/* ---- training ---- */

/* One row of inputs and its target; returns the value of the lines. */
static double sample_of(const fit *f, size_t index, int quantity, double *x, double *y) {
    const program *p = &f->program[index / f->clocks];
    const fl_odpp_run *run = &p->run[index % f->clocks], *lines = &p->run[f->clocks];
    const double line = fl_odpp_line(lines, PROBES, quantity, run->mhz);
    fl_odpp_inputs(x, line, run->mhz, probe_mhz[PROBES - 1], &lines[PROBES - 1]);
    *y = fl_odpp_quantity(run, quantity);
    return line;
}

static bool tests(const fit *f, size_t index) { return index / f->clocks % FL_FIT_HELD_OUT == FL_FIT_HELD_OUT - 1; }

static fl_status train(void *user, size_t quantity, fl_diag *d) {
    fit *f = user;
    (void)d;
    const size_t all = f->count * f->clocks;
    size_t *order = fl_must(malloc((all + 1) * sizeof *order)), count = 0;
    fl_mlp_adam *adam = fl_must(calloc(1, sizeof *adam));
    fl_random random = fl_random_seed((uint64_t)f->seed, quantity);
    for (size_t i = 0; i < all; i++)
        if (!tests(f, i))
            order[count++] = i;
    fl_mlp_draw(&f->net[quantity], &random);
    for (int64_t epoch = 0; epoch < f->epochs; epoch++) {
        double x[BATCH * FL_MLP_INPUTS], y[BATCH];
        for (size_t i = count; i > 1; i--) {
            const size_t k = fl_random_below(&random, i), kept = order[i - 1];
            order[i - 1] = order[k];
            order[k] = kept;
        }
        for (size_t at = 0; at < count; at += BATCH) {
            const uint32_t n = (uint32_t)(count - at < BATCH ? count - at : BATCH);
            for (uint32_t i = 0; i < n; i++)
                sample_of(f, order[at + i], (int)quantity, &x[i * FL_MLP_INPUTS], &y[i]);
            fl_mlp_train(&f->net[quantity], adam, x, y, n);
        }
    }
    free(order);
    free(adam);
    return FL_OK;
}

/* ---- reports ---- */

/* Over the training samples, or over the held-out ones: their mean, and the root mean squares of lines and network. */
typedef struct score {
    double n, mean, lines, network;
} score;

static score score_of(const fit *f, int quantity, bool held_out) {
    score r = {0};
    double sum = 0, lines = 0, network = 0;
    for (size_t i = 0; i < f->count * f->clocks; i++) {
        double x[FL_MLP_INPUTS], y;
        const double line = sample_of(f, i, quantity, x, &y);
        if (tests(f, i) != held_out)
            continue;
        r.n++;
        sum += y;
        lines += (line - y) * (line - y);
        network += pow(fl_mlp_predict(&f->net[quantity], x) - y, 2);
    }
    r.mean = sum / r.n;
    r.lines = sqrt(lines / r.n);
    r.network = sqrt(network / r.n);
    return r;
}

static void print_json(const fit *f) {
    static const char *const name[FL_ODPP_QUANTITIES] = {"energy_j", "time_s"};
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
    for (int row = 0; row < 2 * FL_ODPP_QUANTITIES; row++) {
        const score r = score_of(f, row / 2, row % 2);
        cJSON *o = fl_json_add_row(rows);
        cJSON_AddStringToObject(o, "quantity", name[row / 2]);
        cJSON_AddBoolToObject(o, "held_out", row % 2);
        cJSON_AddNumberToObject(o, "samples", r.n);
        fl_json_add_real(o, "mean", r.mean);
        fl_json_add_real(o, "rms_lines", r.lines);
        fl_json_add_real(o, "rms_network", r.network);
    }
    fl_json_tell(root);
}

static void print_errors(const fit *f) {
    static const char *const head[] = {"quantity", "programs",         "samples",
                                       "mean",     "rms of the lines", "rms of the network"};
    static const char *const name[FL_ODPP_QUANTITIES] = {"energy J", "time s"};
    fl_grid g = FL_GRID_HEADED(head);
    for (int row = 0; row < 2 * FL_ODPP_QUANTITIES; row++) {
        const score r = score_of(f, row / 2, row % 2);
        fl_grid_add(&g, "%s\t%s\t%g\t%.4g\t%.4g\t%.4g", name[row / 2], row % 2 ? "held out" : "trained on", r.n, r.mean,
                    r.lines, r.network);
    }
    fl_grid_print(&g, 2, stdout);
    fl_grid_free(&g);
}

static fl_status write_weights(const fit *f, const char *path, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    fputs("energy,time\n", fl_output_file(o));
    for (uint32_t i = 0; i < FL_MLP_SIZE; i++)
        fprintf(fl_output_file(o), "%.7g,%.7g\n", f->net[FL_ODPP_ENERGY].value[i], f->net[FL_ODPP_TIME].value[i]);
    return fl_output_commit(o, d);
}

int fl_cmd_fit_policy_odpp(int argc, char **argv) {
    fl_scene_options so = {0};
    fl_texts files = {0};
    const char *out = NULL, *match = NULL;
    int64_t threads = 0;
    bool json = false;
    fit f = {.step_mhz = 45, .epochs = 200, .seed = 1};
    const fl_option option[] = {
        FL_SCENE_OPTIONS(so),
        {"match", "PATTERN", FL_OPTION_TEXT, &match, 0, 0, "only workloads with such a name, as a shell pattern (all)"},
        {"step", "MHZ", FL_OPTION_REAL, &f.step_mhz, 1, 1e4, "between the clocks that are learnt from (45)"},
        {"epochs", "N", FL_OPTION_INT, &f.epochs, 1, 1e6, "passes over all samples (200)"},
        {"shuffle", "N", FL_OPTION_INT, &f.seed, 1, 9e15, "seed of the first weights and of the order (1)"},
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "the weights to write", FL_FOR_OUTPUT | FL_MOST_USED},
        FL_JSON_OPTION(&json),
        FL_THREADS_OPTION(&threads),
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &files, &status))
        return status;
    fl_diag d = {0};
    f.clocks = (uint32_t)ceil((probe_mhz[PROBES - 1] - probe_mhz[0]) / f.step_mhz - 1e-9) + 1;
    fl_status s =
        fl_fit_scenes(&so, match, &files, (unsigned)threads, &f.program, sizeof *f.program, &f.count, measure, &f, &d);
    if (!s)
        s = fl_pool_run(train, &f, FL_ODPP_QUANTITIES, (unsigned)threads, "networks", &d);
    if (!s && json)
        print_json(&f);
    else if (!s)
        print_errors(&f);
    if (!s && out)
        s = write_weights(&f, out, &d);
    for (size_t i = 0; i < f.count; i++)
        free(f.program[i].run);
    free(f.program);
    return fl_command_close("fit policy odpp", s, &d, option, sizeof option / sizeof *option, &files);
}
