/* How good `fit device` and `fit workload` are: the device from a seeded half of the workloads, the errors on the other
 * half, mean of several splits. */
#include "harness/base/command.h"
#include "harness/base/grid.h"
#include "harness/base/json_out.h"
#include "harness/fit/fit.h"
#include "harness/fit/fit_capped.h"
#include "harness/fit/fit_chosen.h"
#include "harness/fit/fit_decide.h"
#include "harness/fit/fit_latent.h"
#include "harness/fit/fit_sound.h"
#include "policies/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit split", "--sweep FILE [--at LIST] [--splits N] [--device-sweep FILE] [--decide]",
    "Fits a device to half of the workloads of a sweep, predicts the other half from the named settings alone, and\n"
    "gives the mean errors over several such splits.",
    "With --device-sweep the device comes from that sweep instead, and all workloads of --sweep are predicted.\n"
    "--at chosen:2 looks at the two settings that tell most (1 to 4), chosen in each split by the workloads that the\n"
    "device is fitted to; of a workload without them, at the nearest it has.\n"
    "Settings under a power limit that binds are predicted too, and scored apart (capped): see fit workload --help.\n"
    "\n"
    "--decide scores what one would do with the predictions: of each workload, the clock of least energy within "
    "--bound\n"
    "of the time at the top, by the prediction and by the measurements. --risk R chooses among the clocks where the\n"
    "chance that the real time breaks the bound is at most R, as the fit states its own deviations; whether that held "
    "is\n"
    "tested (binomial: choices of one workload in several splits go together, so a refutation is a warning). The "
    "policies\n"
    "that are ranked are static clocks: compare --model table and --model fitted rank others."};

typedef struct split_options {
    fl_texts sweeps, device;
    const char *at, *crest;
    int64_t splits, seed;
    bool json, plain, decide;
    fl_fit_question question;
} split_options;

enum { CLASSES = 4, PARTS = 8 };

enum { SETS = 64 };

typedef struct totals {
    struct {
        char text[160];
        size_t splits;
    } chosen[SETS]; /* settings, and in how many splits; of more sets the first so many are told */
    size_t sets;
    double sum[CLASSES][PARTS], count[CLASSES];
    fl_fit_decisions decided, rash; /* rash: without the risk */
} totals;

/* half[i]: whether the device is fitted to entity i. */
static void draw_half(const fl_fit_rows *r, uint64_t seed, uint64_t split, bool *half) {
    fl_random random = fl_random_seed(seed, split);
    size_t left = (r->entities + 1) / 2;
    for (size_t i = 0; i < r->entities; i++) { /* each subset of that size is as likely */
        half[i] = fl_random_unit(&random) * (double)(r->entities - i) < (double)left;
        left -= half[i] ? 1 : 0;
    }
}

static void decide(const split_options *o, const fl_fit_rows *r, const fl_fit_entity *e, const fl_fit_result_of *result,
                   totals *t) {
    const fl_fit_question rash = {o->question.bound, 1};
    fl_fit_choice c;
    if (fl_fit_decide(r, e, result->guess, &o->question, &c))
        fl_fit_decisions_add(&t->decided, &c);
    if (fl_fit_decide(r, e, result->guess, &rash, &c))
        fl_fit_decisions_add(&t->rash, &c);
}

static void count_chosen(const fl_probes *p, bool mem_known, totals *t) {
    char text[sizeof t->chosen[0].text];
    size_t i = 0;
    fl_fit_probes_text(p, mem_known, text, sizeof text);
    while (i < t->sets && strcmp(t->chosen[i].text, text) != 0)
        i++;
    if (i == SETS)
        return;
    memcpy(t->chosen[i].text, text, sizeof text);
    t->chosen[i].splits++;
    t->sets += i == t->sets;
}

static fl_status one_split(const split_options *o, const fl_fit_rows *r, const fl_fit_rows *device,
                           const fl_fit_at *asked, const bool *half, totals *t, fl_diag *d) {
    fl_chip chip;
    fl_fit_at at = *asked;
    fl_chip_row *row = malloc((r->count + 1) * sizeof *row);
    size_t n = 0;
    if (!row)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < r->count; i++)
        if (half[r->row[i].workload])
            row[n++] = r->row[i];
    const fl_model_status f = fl_chip_fit(device->count ? device->row : row, device->count ? device->count : n,
                                          o->plain ? FL_CHIP_PLAIN : FL_CHIP_FULL, &chip);
    free(row);
    fl_status s = f == FL_MODEL_OK ? FL_OK : fl_refuse(d, "no device can be fitted: %s", fl_model_text(f));
    if (!s)
        s = fl_fit_choose(&chip, &at, d);
    if (!s && at.kind == FL_FIT_CHOSEN)
        count_chosen(&at.chosen, chip.mem_min < chip.mem_ref, t);
    fl_fit_score all = {0};
    fl_fit_crest crest = {0};
    if (!s)
        s = fl_fit_crest_parse(o->crest, &crest, d);
    for (size_t i = 0; !s && i < r->entities; i++) {
        fl_fit_result_of result = {0};
        fl_fit_capped_result capped = {0};
        fl_chip_load load;
        if (r->latent) {
            s = fl_fit_latent_run(&chip, r, i, &at, &all, &capped, &load, d);
            fl_fit_capped_free(&capped);
            continue;
        }
        if ((half[i] && !device->count) || r->entity[i].count == 0)
            continue;
        s = fl_fit_capped_run(&chip, r, i, &at, &crest, true, &all, &capped, d);
        fl_fit_capped_free(&capped);
        if (!s)
            s = fl_fit_entity_run(&chip, r, &r->entity[i], &at, true, &result, d);
        if (!s)
            s = fl_fit_score_add(&all, &result.score, d);
        if (!s && o->decide)
            decide(o, r, &r->entity[i], &result, t);
        fl_fit_result_free(&result);
    }
    static const int which[CLASSES] = {FL_FIT_INSIDE, FL_FIT_OUTSIDE, FL_FIT_BOTH, FL_FIT_CAPPED};
    for (int c = 0; !s && c < CLASSES; c++) {
        const fl_fit_means m = fl_fit_score_means(&all, which[c]);
        const double value[PARTS] = {m.time_mape,   m.time_p95,   m.power_mape,  m.power_p95,
                                     m.energy_mape, m.energy_p95, m.time_within, m.power_within};
        if (m.rows == 0)
            continue;
        for (int k = 0; k < PARTS; k++)
            t->sum[c][k] += value[k];
        t->count[c]++;
    }
    fl_fit_score_free(&all);
    return s;
}

static const char *const class_name[CLASSES] = {"interpolated", "extrapolated", "all", "capped"};
static const char *const part_name[PARTS] = {"time_mape_pct",       "time_p95_pct",        "power_mape_pct",
                                             "power_p95_pct",       "energy_mape_pct",     "energy_p95_pct",
                                             "time_within_2sd_pct", "power_within_2sd_pct"};

/* Energy that caution loses, in points: of the regrets with and without the risk. */
static double caution_cost(const totals *t) {
    return t->decided.count > 0 ? 100 * (t->decided.regret / t->decided.count - t->rash.regret / t->rash.count)
                                : (double)NAN;
}

static void print_text(const split_options *o, const fl_fit_rows *r, const totals *t) {
    static const char *const head[] = {
        "rows", "time %", "p95", "power %", "p95", "energy %", "p95", "time within 2 sd %", "power within 2 sd %"};
    fl_grid g = FL_GRID_HEADED(head);
    for (int c = 0; c < CLASSES; c++) {
        if (!(t->count[c] > 0))
            continue;
        fl_grid_add(&g, "%s", class_name[c]);
        for (int k = 0; k < PARTS; k++)
            fl_grid_add(&g, "%.2f", t->sum[c][k] / t->count[c]);
    }
    fl_grid_print(&g, 1, stdout);
    if (o->device.count)
        printf("\nfitted at %s, device from another sweep\n", o->at);
    else
        printf("\nfitted at %s, mean of %lld splits, seed %lld\n", o->at, (long long)o->splits, (long long)o->seed);
    for (size_t i = 0; i < t->sets; i++)
        printf("%s %s in %zu of %lld splits\n", i ? "       " : "chosen:", t->chosen[i].text, t->chosen[i].splits,
               (long long)o->splits);
    fl_fit_rows_notes(r);
    fl_fit_sound_notes(r);
    if (!o->decide)
        return;
    fl_fit_decisions_print(&t->decided, &o->question);
    if (o->question.risk < 1 && t->rash.count > 0)
        printf("without --risk: the real bound breaks at %.1f %%, energy %+.2f %%; so caution costs %.2f points of "
               "energy\n",
               100 * t->rash.broken / t->rash.count, 100 * t->rash.regret / t->rash.count, caution_cost(t));
}

static void print_json(const split_options *o, const fl_fit_rows *r, const totals *t) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "at", o->at);
    cJSON_AddNumberToObject(root, "splits", (double)o->splits);
    for (int c = 0; c < CLASSES; c++) {
        cJSON *at = cJSON_AddObjectToObject(root, class_name[c]);
        for (int k = 0; k < PARTS; k++)
            fl_json_add_real(at, part_name[k], t->count[c] > 0 ? t->sum[c][k] / t->count[c] : (double)NAN);
    }
    cJSON *sets = t->sets ? cJSON_AddObjectToObject(root, "chosen") : NULL;
    for (size_t i = 0; i < t->sets; i++)
        cJSON_AddNumberToObject(sets, t->chosen[i].text, (double)t->chosen[i].splits);
    cJSON_AddItemToObject(root, "unsound", fl_fit_sound_json(r));
    if (o->decide) {
        cJSON *decisions = cJSON_AddObjectToObject(root, "decisions");
        fl_fit_decisions_json(&t->decided, &o->question, decisions);
        fl_json_add_real(decisions, "caution_costs_pct", caution_cost(t));
    }
    fl_json_print(root, stdout);
    cJSON_Delete(root);
}

static fl_status run_all(split_options *o, fl_diag *d) {
    fl_fit_rows rows = {0}, device = {0};
    const fl_texts none = {0};
    fl_fit_at at;
    totals t = {0};
    fl_status s = fl_fit_at_parse(o->at, &at, d);
    if (!s)
        s = fl_fit_rows_read(&o->sweeps, &none, &rows, d);
    if (!s)
        s = fl_fit_drop_unsound(&rows, d);
    if (!s && o->device.count) {
        s = fl_fit_rows_read(&o->device, &none, &device, d);
        if (!s)
            s = fl_fit_drop_unsound(&device, d);
        o->splits = 1;
    }
    if (!s && (device.latent || (rows.latent && !device.count)))
        s = fl_fail(d, FL_BAD_INPUT, (device.latent ? &o->device : &o->sweeps)->item[0], 0, 0,
                    "power limits but no SM clocks: a power law must tell the clock under a limit, expected "
                    "--device-sweep with clocks, or fit device --base and fit workload");
    if (!s && rows.entities < 2 && !device.count)
        s = fl_fail(d, FL_BAD_INPUT, o->sweeps.item[0], 0, 0, "one workload, expected two or more to split");
    bool *half = s ? NULL : calloc(rows.entities + 1, sizeof *half);
    if (!s && !half)
        s = fl_no_memory(d, NULL);
    for (int64_t i = 0; !s && i < o->splits; i++) {
        draw_half(&rows, (uint64_t)o->seed, (uint64_t)i, half);
        s = one_split(o, &rows, &device, &at, half, &t, d);
    }
    if (!s && o->json)
        print_json(o, &rows, &t);
    else if (!s)
        print_text(o, &rows, &t);
    free(half);
    fl_fit_rows_free(&rows);
    fl_fit_rows_free(&device);
    return s;
}

int fl_cmd_fit_split(int argc, char **argv) {
    split_options o = {.at = "ends", .crest = "run", .splits = 20, .seed = 1, .question = {0.05, 1}};
    fl_texts rest = {0};
    const fl_option option[] = {
        {"sweep", "FILE", FL_OPTION_LIST, &o.sweeps, 0, 0, "measured settings; may be given several times"},
        {"at", "LIST", FL_OPTION_TEXT, &o.at, 0, 0, "settings that may be looked at, as for fit workload (ends)"},
        {"crest", "LIST", FL_OPTION_TEXT, &o.crest, 0, 0, "of capped rows, as for fit workload (run)"},
        {"splits", "N", FL_OPTION_INT, &o.splits, 1, 100000, "splits (20)"},
        {"seed", "N", FL_OPTION_INT, &o.seed, 0, 1e15, "seed of the splits (1)"},
        {"device-sweep", "FILE", FL_OPTION_LIST, &o.device, 0, 0, "fits the device to this sweep"},
        {"decide", NULL, FL_OPTION_FLAG, &o.decide, 0, 0, "scores the clocks that one would choose"},
        {"bound", "SHARE", FL_OPTION_SHARE, &o.question.bound, 0, 10, "on the slowdown, for --decide (0.05)"},
        {"risk", "SHARE", FL_OPTION_SHARE, &o.question.risk, 0, 1,
         "highest chance that the real time breaks the bound, for --decide (1: the prediction decides)"},
        {"plain", NULL, FL_OPTION_FLAG, &o.plain, 0, 0, "the simulator's own law, without link and stall"},
        {"json", NULL, FL_OPTION_FLAG, &o.json, 0, 0, "prints the result as JSON"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_status s = FL_OK;
    if (rest.count)
        s = fl_refuse(&d, "'%s' is no option, see --help", rest.item[0]);
    else if (!o.sweeps.count)
        s = fl_refuse(&d, "no sweep, expected --sweep FILE");
    if (!s)
        s = run_all(&o, &d);
    if (s)
        status = fl_command_fail(help.name, &d);
    fl_command_end(option, sizeof option / sizeof *option, &rest);
    return status;
}
