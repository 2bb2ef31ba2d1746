/* Finds how wide error bars must be: measures it on several GPUs, each on workloads that its device was not fitted to.
 */
#include "harness/base/command.h"
#include "harness/base/grid.h"
#include "harness/chip/fit_sound.h"
#include "harness/base/json_out.h"
#include "harness/fit/fit.h"
#include "harness/fit/fit_bars.h"
#include "harness/fit/fit_half.h"
#include "harness/chip/fit_rows.h"
#include "harness/input/platform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit bars", "--sweep GPU=FILE... [--spec GPU=PLATFORM]... [--splits N] [--out BARS.json]",
    "Finds how wide error bars must be to hold 95 % of the errors: of each GPU on workloads that its device was not "
    "fitted to, beside what the device says of itself by its own workloads; and of platforms whose constants are taken "
    "as they are. The constants of models/fit_chip_bars.c are its result.",
    "Several sweeps of one GPU count as one. The table gives factors of the deviations that a device states: own, by "
    "the workloads that it was fitted to; real, on the others. A factor for a device that is not among them is typical "
    "(own / own typical)^trust: typical values are geometric means over the GPUs, trust is the slope of ln real over "
    "ln own. That of a spec is a standard deviation above the mean: nothing tells a good one from a bad one.\n\n"
    "--out also holds the constants by all GPUs but one, for each: fit split --bars FILE --without GPU judges a GPU by "
    "what the others say."};

enum { GPUS = 32 };
#define TRUST 0.5         /* the slope where the GPUs do not determine it */
#define TRUST_WEIGHT 0.05 /* as a variance of ln own */

typedef struct factors { /* logarithms, summed over sweeps */
    double own[FL_CHIP_KINDS][FL_CHIP_PLACES], real[FL_CHIP_KINDS][FL_CHIP_PLACES];
    double spec[FL_CHIP_KINDS][FL_CHIP_PLACES];
    double sweeps[FL_CHIP_KINDS][FL_CHIP_PLACES], specs[FL_CHIP_KINDS][FL_CHIP_PLACES];
} factors;

typedef struct gpu {
    char name[64];
    factors f;
} gpu;

typedef struct bars_options {
    fl_texts sweeps, specs;
    const char *out;
    int64_t splits, seed;
    bool json;
} bars_options;

typedef fl_chip_strains strains[FL_CHIP_KINDS][FL_CHIP_PLACES];

static void free_strains(strains s) {
    for (int k = 0; k < FL_CHIP_KINDS; k++)
        for (int p = 0; p < FL_CHIP_PLACES; p++)
            free(s[k][p].list);
}

static fl_status of_model(fl_model_status f, const char *path, fl_diag *d) {
    if (f == FL_MODEL_OK)
        return FL_OK;
    return f == FL_MODEL_NO_MEMORY ? fl_no_memory(d, NULL)
                                   : fl_fail(d, FL_BAD_INPUT, path, 0, 0, "cannot be fitted: %s", fl_model_text(f));
}

static fl_model_status strain_half(const fl_chip *chip, const fl_fit_rows *r, const bool *half, strains to) {
    fl_model_status f = FL_MODEL_OK;
    for (size_t i = 0; f == FL_MODEL_OK && i < r->entities; i++)
        if (!half || !half[i])
            f = fl_chip_strain(chip, &r->row[r->entity[i].first], r->entity[i].count, to);
    return f;
}

/* The times come first: the errors in power that follow from errors in time are measured by the real errors in time. */
static fl_status strain_others(fl_chip *chip, const fl_fit_rows *r, const bool *half, strains to, fl_diag *d) {
    strains times = {{{0}}};
    double own[FL_CHIP_PLACES];
    memcpy(own, chip->time_error.own, sizeof own);
    fl_model_status f = strain_half(chip, r, half, times);
    for (int p = 0; p < FL_CHIP_PLACES; p++)
        chip->time_error.own[p] = fl_chip_covering(&times[FL_CHIP_TIME][p]);
    if (f == FL_MODEL_OK)
        f = strain_half(chip, r, half, to);
    memcpy(chip->time_error.own, own, sizeof own);
    free_strains(times);
    return of_model(f, NULL, d);
}

/* Devices fitted to halves of the sweep: the factors they find for themselves, and their errors on the other halves. */
static fl_status measure(const bars_options *o, const char *path, const fl_fit_rows *r, factors *to, fl_diag *d) {
    strains all = {{{0}}};
    double own[FL_CHIP_KINDS][FL_CHIP_PLACES] = {{0}}, n[FL_CHIP_KINDS][FL_CHIP_PLACES] = {{0}};
    bool *half = calloc(r->entities + 1, sizeof *half);
    fl_chip_row *row = malloc((r->count + 1) * sizeof *row);
    fl_chip *chip = malloc(sizeof *chip);
    fl_status s = half && row && chip ? FL_OK : fl_no_memory(d, NULL);
    for (int64_t split = 0; !s && split < o->splits; split++) {
        size_t rows = 0;
        fl_fit_draw_half(r, (uint64_t)o->seed, (uint64_t)split, half);
        for (size_t i = 0; i < r->count; i++)
            if (half[r->row[i].workload])
                row[rows++] = r->row[i];
        s = of_model(fl_chip_fit(row, rows, FL_CHIP_BEST, chip), path, d);
        if (!s)
            s = strain_others(chip, r, half, all, d);
        for (int k = 0; !s && k < FL_CHIP_KINDS; k++)
            for (int p = 0; p < FL_CHIP_PLACES; p++) {
                const double x = k == FL_CHIP_TIME ? chip->time_error.own[p] : chip->power_error.own[p];
                own[k][p] += x > 0 ? log(x) : 0;
                n[k][p] += x > 0 ? 1 : 0;
            }
    }
    for (int k = 0; !s && k < FL_CHIP_KINDS; k++)
        for (int p = 0; p < FL_CHIP_PLACES; p++) {
            const double real = fl_chip_covering(&all[k][p]);
            if (!(real > 0) || !(n[k][p] > 0))
                continue;
            to->own[k][p] += own[k][p] / n[k][p];
            to->real[k][p] += log(real);
            to->sweeps[k][p]++;
        }
    free_strains(all);
    free(half);
    free(row);
    free(chip);
    return s;
}

static fl_status measure_spec(const char *platform, const fl_fit_rows *r, factors *to, fl_diag *d) {
    fl_platform p = {0};
    strains all = {{{0}}};
    fl_chip *chip = malloc(sizeof *chip);
    fl_status s = chip ? fl_platform_open(platform, 1, &p, d) : fl_no_memory(d, NULL);
    if (!s)
        s = of_model(fl_chip_of_device(&p.node.device[0], chip), platform, d);
    fl_fit_rows at = *r;
    at.row = s ? NULL : malloc((r->count + 1) * sizeof *at.row);
    if (!s && !at.row)
        s = fl_no_memory(d, NULL);
    for (size_t i = 0; !s && i < r->count; i++) {
        at.row[i] = r->row[i];
        at.row[i].mem_mhz = r->mem_known ? r->row[i].mem_mhz : chip->mem_ref;
    }
    if (!s)
        s = strain_others(chip, &at, NULL, all, d);
    for (int k = 0; !s && k < FL_CHIP_KINDS; k++)
        for (int i = 0; i < FL_CHIP_PLACES; i++) {
            const double real = fl_chip_covering(&all[k][i]);
            to->spec[k][i] += real > 0 ? log(real) : 0;
            to->specs[k][i] += real > 0 ? 1 : 0;
        }
    free(at.row);
    free_strains(all);
    free(chip);
    fl_platform_free(&p);
    return s;
}

/* Splits "GPU=REST"; *rest points after the sign. Adds the GPU if it is new. */
static fl_status find_gpu(const char *text, gpu *list, size_t *count, size_t *at, const char **rest, fl_diag *d) {
    const char *sign = strchr(text, '=');
    if (!sign || sign == text || !sign[1] || (size_t)(sign - text) >= sizeof list->name)
        return fl_refuse(d, "'%s', expected GPU=FILE", text);
    const size_t length = (size_t)(sign - text);
    *rest = sign + 1;
    for (*at = 0; *at < *count; ++*at)
        if (strlen(list[*at].name) == length && !strncmp(list[*at].name, text, length))
            return FL_OK;
    if (*count == GPUS)
        return fl_refuse(d, "more than %d GPUs", GPUS);
    list[*at] = (gpu){0};
    memcpy(list[*at].name, text, length);
    ++*count;
    return FL_OK;
}

static double mean_of(double sum, double n) { return n > 0 ? sum / n : (double)NAN; }

/* The constants from all GPUs but one (NULL: from all). */
static fl_chip_bar pool(const gpu *list, size_t count, const char *without, int k, int p) {
    double x = 0, y = 0, n = 0, xx = 0, xy = 0, spec = 0, spec2 = 0, specs = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count; i++) {
            const factors *f = &list[i].f;
            if (without && !strcmp(without, list[i].name))
                continue;
            const double own = mean_of(f->own[k][p], f->sweeps[k][p]), real = mean_of(f->real[k][p], f->sweeps[k][p]);
            if (pass == 0 && f->specs[k][p] > 0) {
                const double one = f->spec[k][p] / f->specs[k][p];
                spec += one;
                spec2 += one * one;
                specs++;
            }
            if (isnan(own))
                continue;
            if (pass == 0) {
                x += own;
                y += real;
                n++;
            } else {
                xx += (own - x / n) * (own - x / n);
                xy += (own - x / n) * (real - y / n);
            }
        }
    /* Nothing distinguishes a good data sheet from a bad one, so the factor must also cover one that is worse than
     * most. */
    const double mean = mean_of(spec, specs), spread = specs > 1 ? (spec2 - specs * mean * mean) / (specs - 1) : 0;
    double wide = specs > 0 ? exp(mean + sqrt(fmax(0, spread))) : n > 0 ? exp(y / n) : 1;
    if (p == FL_CHIP_OTHER_MEMORY && !(specs > 0)) /* no better than beyond the SM clocks */
        wide = pool(list, count, without, k, FL_CHIP_OUTSIDE).spec;
    if (!(n > 0))
        return (fl_chip_bar){1, 1, TRUST, wide};
    const double trust = (xy / n + TRUST * TRUST_WEIGHT) / (xx / n + TRUST_WEIGHT);
    return (fl_chip_bar){exp(y / n), exp(x / n), fmin(1, fmax(0, trust)), wide};
}

enum { BAR_VALUES = 8 };

/* One kind of error at one place, for GPU i, or for all where i is count. */
static void values_of(const gpu *list, size_t count, size_t i, int k, int p, double value[BAR_VALUES]) {
    const factors *f = i < count ? &list[i].f : NULL;
    const fl_chip_bar b = pool(list, count, f ? list[i].name : NULL, k, p);
    const double own = f ? exp(mean_of(f->own[k][p], f->sweeps[k][p])) : (double)NAN;
    value[0] = own;
    value[1] = f ? exp(mean_of(f->real[k][p], f->sweeps[k][p])) : (double)NAN;
    value[2] = f ? exp(mean_of(f->spec[k][p], f->specs[k][p])) : (double)NAN;
    value[3] = b.typical;
    value[4] = b.own_typical;
    value[5] = b.trust;
    value[6] = b.spec;
    value[7] = f ? b.typical * pow(own / b.own_typical, b.trust) : (double)NAN;
}

static void print_all(const gpu *list, size_t count) {
    static const char *const head[] = {"GPU",     "errors",      "own",   "real", "spec",
                                       "typical", "own typical", "trust", "spec", "by the others"};
    fl_grid g = FL_GRID_HEADED(head);
    char name[64];
    double value[BAR_VALUES];
    for (int k = 0; k < FL_CHIP_KINDS; k++)
        for (int p = 0; p < FL_CHIP_PLACES; p++)
            for (size_t i = 0; i <= count; i++) {
                values_of(list, count, i, k, p, value);
                (void)snprintf(name, sizeof name, "%s, %s", fl_fit_bars_kind[k], fl_fit_bars_place[p]);
                fl_grid_add(&g, "%s\t%s", i < count ? list[i].name : "all", name);
                for (size_t c = 0; c < BAR_VALUES; c++)
                    if (isnan(value[c]))
                        fl_grid_add(&g, "-");
                    else
                        fl_grid_add(&g, "%.3f", value[c]);
            }
    fl_grid_print(&g, 2, stdout);
}

static void print_json(const gpu *list, size_t count) {
    static const char *const key[BAR_VALUES] = {"own",         "real",  "spec",         "typical",
                                                "own_typical", "trust", "spec_typical", "others"};
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
    double value[BAR_VALUES];
    for (int k = 0; k < FL_CHIP_KINDS; k++)
        for (int p = 0; p < FL_CHIP_PLACES; p++)
            for (size_t i = 0; i <= count; i++) {
                cJSON *row = fl_json_add_row(rows);
                values_of(list, count, i, k, p, value);
                cJSON_AddItemToObject(row, "gpu", i < count ? cJSON_CreateString(list[i].name) : cJSON_CreateNull());
                cJSON_AddStringToObject(row, "error", fl_fit_bars_kind[k]);
                cJSON_AddStringToObject(row, "place", fl_fit_bars_place[p]);
                for (size_t c = 0; c < BAR_VALUES; c++)
                    fl_json_add_real(row, key[c], value[c]);
            }
    fl_json_tell(root);
}

static cJSON *bars_without(const gpu *list, size_t count, const char *without) {
    fl_chip_bars bars;
    for (int k = 0; k < FL_CHIP_KINDS; k++)
        for (int p = 0; p < FL_CHIP_PLACES; p++)
            bars.of[k][p] = pool(list, count, without, k, p);
    return fl_fit_bars_to_json(&bars);
}

static fl_status write_all(const gpu *list, size_t count, const char *path, fl_diag *d) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddItemToObject(root, "all", bars_without(list, count, NULL));
    cJSON *without = cJSON_AddObjectToObject(root, "without");
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToObject(without, list[i].name, bars_without(list, count, list[i].name));
    const fl_status s = root ? fl_json_write(path, root, d) : fl_no_memory(d, NULL);
    cJSON_Delete(root);
    return s;
}

static fl_status run_all(const bars_options *o, fl_diag *d) {
    gpu *list = calloc(GPUS, sizeof *list);
    const fl_texts none = {0};
    size_t count = 0, at = 0;
    fl_status s = list ? FL_OK : fl_no_memory(d, NULL);
    for (size_t i = 0; !s && i < o->sweeps.count; i++) {
        const char *path = NULL;
        fl_fit_rows rows = {0};
        s = find_gpu(o->sweeps.item[i], list, &count, &at, &path, d);
        const fl_texts files = {.item = &path, .count = 1};
        if (!s)
            s = fl_fit_rows_sound(&files, &none, &rows, d);
        if (!s && rows.entities < 2)
            s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "one workload, expected two or more to split");
        if (!s)
            s = measure(o, path, &rows, &list[at].f, d);
        for (size_t k = 0; !s && k < o->specs.count; k++) {
            const char *platform = NULL;
            size_t of = 0;
            s = find_gpu(o->specs.item[k], list, &count, &of, &platform, d);
            if (!s && of == at)
                s = measure_spec(platform, &rows, &list[at].f, d);
        }
        fl_fit_rows_free(&rows);
    }
    if (!s && o->json)
        print_json(list, count);
    else if (!s)
        print_all(list, count);
    if (!s && o->out)
        s = write_all(list, count, o->out, d);
    free(list);
    return s;
}

int fl_cmd_fit_bars(int argc, char **argv) {
    bars_options o = {.splits = 10, .seed = 1001};
    fl_texts rest = {0};
    const fl_option option[] = {
        {"sweep", "GPU=FILE", FL_OPTION_LIST, &o.sweeps, 0, 0, "measured settings of a GPU; given several times"},
        {"spec", "GPU=PLATFORM", FL_OPTION_LIST, &o.specs, 0, 0,
         "a platform whose constants stand for the GPU's; may be given several times"},
        {"splits", "N", FL_OPTION_INT, &o.splits, 1, 100000, "splits of each sweep (10)"},
        {"seed", "N", FL_OPTION_INT, &o.seed, 0, 1e15, "seed of the splits (1001)"},
        {"out", "FILE", FL_OPTION_OUTPUT, &o.out, 0, 0, "the constants, for fit split --bars"},
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
        s = fl_refuse(&d, "no sweep, expected --sweep GPU=FILE");
    if (!s)
        s = run_all(&o, &d);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &rest);
}
