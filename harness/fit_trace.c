/* `foldline fit trace`: how each kernel depends on the clocks, from recordings of one program at several of them. */
#include "harness/commands.h"
#include "harness/fit.h"
#include "harness/fit_trace_kernels.h"
#include "harness/fit_trace_phases.h"
#include "harness/output.h"
#include "harness/platform.h"
#include "models/row.h"
#include "models/time.h"
#include "traces/kernels.h"
#include "traces/trace_open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "fit trace", "RECORDING ... --platform NAME -o KINDS.csv [--sm-mhz F ...]",
    "Makes a kinds file from recordings of one program at two or more SM clocks; a telemetry log alone becomes phases.",
    "Kernels are matched by name, grid and block. Those seen at two clocks or more get terms of their own; others "
    "borrow "
    "from\n"
    "their name, or from all (the row '*'); how much of the time each way covers is printed. Clocks come from the "
    "recordings,\n"
    "from telemetry joined to them (foldline import), or from --sm-mhz, once per file in order. Power: where "
    "recordings "
    "carry\n"
    "telemetry, two numbers that scale every kernel's core and memory activity are fitted to the mean power; else they "
    "are\n"
    "assumed to be 1, and the head says so.\n"
    "\n"
    "A telemetry log without kernels becomes a programs file of phases (-o PHASES.programs.csv and its kinds): "
    "lengths, "
    "clock,\n"
    "utilisation and power are known, how a phase depends on clocks is assumed from its memory utilisation, and marked "
    "so."};

typedef struct power_row { /* of one recording: mean power = base + alpha x core + beta x memory */
    double base_w, core_w, memory_w, seen_w;
} power_row;

typedef struct job {
    fl_platform platform;
    const fl_device *dev;
    fl_seen seen;
    fl_imported *file; /* count */
    double *sm_mhz;
    size_t count;
    double alpha, beta; /* scales of core and memory activity */
    size_t powers;      /* recordings they were fitted to; 0 = assumed */
    double power_mape_pct;
} job;

static fl_status no_memory(fl_diag *d) { return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the fit"); }

static double sharpness(const job *j) { return j->dev->sharpness >= 1 ? j->dev->sharpness : INFINITY; }

/* ---- power ---- */

static double mean_of(const fl_telemetry *t, const char *signal, int64_t from_ns, int64_t to_ns) {
    double sum = 0;
    size_t n = 0, at = 0;
    while (at < t->signal_count && strcmp(t->signal[at], signal) != 0)
        at++;
    for (size_t i = 0; at < t->signal_count && i < t->row_count; i++) {
        const double v = t->value[i * t->signal_count + at];
        if (t->t_ns[i] >= from_ns && t->t_ns[i] <= to_ns && !isnan(v)) {
            sum += v;
            n++;
        }
    }
    return n ? sum / (double)n : (double)NAN;
}

static const fl_seen_name *name_of(const job *j, const char *text) {
    for (size_t i = 0; i < j->seen.name_count; i++)
        if (!strcmp(j->seen.name[i].text, text))
            return &j->seen.name[i];
    return NULL;
}

static void shares_of(const job *j, const char *text, double *c, double *m, double *l) {
    const fl_seen_name *n = name_of(j, text);
    const bool own = n && n->own_ns > 0;
    *c = own ? n->c : j->seen.any_c;
    *l = own ? n->l : j->seen.any_l;
    const double p = sharpness(j), rest = 1 - *l, x = isinf(p) ? 0 : pow(rest, p) - pow(*c, p);
    *m = isinf(p) ? rest : x > 0 ? pow(x, 1 / p) : 0;
}

/* What the platform's law says of one recording for alpha = beta = 1, and what its telemetry shows. */
static bool power_of(const job *j, const fl_imported *f, double sm_mhz, power_row *row) {
    const fl_kernel_trace *t = &f->kernels;
    int64_t first = INT64_MAX, last = INT64_MIN;
    double core = 0, memory = 0, mhz = sm_mhz;
    fl_base base;
    for (size_t i = 0; i < t->op_count; i++) {
        first = t->ops[i].start_ns < first ? t->ops[i].start_ns : first;
        last = t->ops[i].end_ns > last ? t->ops[i].end_ns : last;
        mhz = t->ops[i].sm_mhz ? t->ops[i].sm_mhz : mhz;
    }
    const char *head = fl_head_get(&t->head, "sm_mhz");
    mhz = mhz > 0 ? mhz : head ? strtod(head, NULL) : 0;
    *row = (power_row){.seen_w = mean_of(&f->telemetry, "power_w", first, last)};
    if (isnan(row->seen_w) || last <= first || fl_base_make(j->dev, mhz, j->dev->default_mem_mhz, &base) != FL_MODEL_OK)
        return false;
    for (size_t i = 0; i < t->op_count; i++) {
        double c, m, l;
        if (t->ops[i].type != FL_OP_KERNEL)
            continue;
        shares_of(j, t->names[t->kinds[t->ops[i].kind].name], &c, &m, &l);
        const double share = (double)(t->ops[i].end_ns - t->ops[i].start_ns) / (double)(last - first),
                     ratio = j->seen.ref_mhz / mhz;
        core += share * fl_core_active(c, m, l, sharpness(j), ratio, 1);
        memory += share * fl_memory_active(c, m, l, sharpness(j), ratio, 1);
    }
    double sm_w, memory_w;
    if (fl_power_dynamic(j->dev, 1, 1, mhz, j->dev->default_mem_mhz, &sm_w, &memory_w) != FL_MODEL_OK)
        return false;
    row->base_w = base.total_mw * 1e-3;
    row->core_w = sm_w * core;
    row->memory_w = memory_w * memory;
    return true;
}

/* Two unknowns >= 0 by least squares; where the recordings cannot tell them apart both get the same. */
static void fit_power(job *j) {
    double cc = 0, cm = 0, mm = 0, cy = 0, my = 0, error = 0;
    power_row row;
    j->alpha = j->beta = 1;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < j->count; i++) {
            if (!j->file[i].has_kernels || !j->file[i].has_telemetry || !power_of(j, &j->file[i], j->sm_mhz[i], &row))
                continue;
            const double y = row.seen_w - row.base_w;
            if (pass) {
                error += fabs((row.base_w + j->alpha * row.core_w + j->beta * row.memory_w) / row.seen_w - 1);
                continue;
            }
            j->powers++;
            cc += row.core_w * row.core_w;
            cm += row.core_w * row.memory_w;
            mm += row.memory_w * row.memory_w;
            cy += row.core_w * y;
            my += row.memory_w * y;
        }
        if (!j->powers)
            return;
        if (pass)
            continue;
        const double determinant = cc * mm - cm * cm;
        if (j->powers > 1 && determinant > 1e-6 * cc * mm) {
            j->alpha = (cy * mm - my * cm) / determinant;
            j->beta = (my * cc - cy * cm) / determinant;
        } else {
            j->alpha = j->beta = (cy + my) / (cc + 2 * cm + mm);
        }
        if (j->alpha < 0) {
            j->alpha = 0;
            j->beta = my / mm;
        } else if (j->beta < 0) {
            j->beta = 0;
            j->alpha = cy / cc;
        }
        j->alpha = fmax(0, j->alpha);
        j->beta = fmax(0, j->beta);
    }
    j->power_mape_pct = 100 * error / (double)j->powers;
}

/* ---- output ---- */

static fl_status add_kind(const job *j, fl_kinds *k, const char *name, double c, double l, fl_diag *d) {
    const double p = sharpness(j), rest = 1 - l, x = isinf(p) ? 0 : pow(rest, p) - pow(c, p),
                 m = isinf(p) ? rest
                     : x > 0  ? pow(x, 1 / p)
                              : 0;
    fl_kind_load load = {.tc = c,
                         .tm = m,
                         .tl = l,
                         .sharpness = p,
                         .alpha = j->alpha * fl_core_active(c, m, l, p, 1, 1),
                         .beta = j->beta * fl_memory_active(c, m, l, p, 1, 1),
                         .sm_demand = NAN,
                         .sm_mhz = j->seen.ref_mhz,
                         .phase = 1,
                         .host_bound = NAN,
                         .host_alpha = NAN,
                         .host_upc = NAN,
                         .host_gb_s = NAN};
    if (!(load.name = strdup(name)) || fl_grow(&k->kind, &k->room, k->count + 1, sizeof load)) {
        free(load.name);
        return no_memory(d);
    }
    k->kind[k->count++] = load;
    return FL_OK;
}

static bool put(fl_head *h, const char *key, double value) {
    char text[64];
    snprintf(text, sizeof text, "%.4g", value);
    return fl_head_set(h, key, text);
}

static fl_status write_kinds(const job *j, const char *path, fl_diag *d) {
    fl_kinds k = {0};
    const fl_seen *s = &j->seen;
    bool ok = fl_head_set(&k.head, "source", "foldline fit trace") &&
              fl_head_set(&k.head, "device", j->platform.name) &&
              put(&k.head, "covered_own_pct", 100 * s->own_ns / s->total_ns) &&
              put(&k.head, "covered_by_name_pct", 100 * s->named_ns / s->total_ns) &&
              fl_head_set(&k.head, "power",
                          j->powers ? "two scales fitted to the recordings' mean power"
                                    : "assumed: core and memory activity scaled by 1");
    /* the error that results carry: that on clocks left out where it is known, else that on the clocks fitted */
    ok = ok && put(&k.head, "model_time_mape_pct", isnan(s->unseen_pct) ? s->mape_pct : s->unseen_pct);
    ok = ok && (!j->powers || put(&k.head, "model_power_mape_pct", j->power_mape_pct));
    fl_status status = ok ? FL_OK : no_memory(d);
    for (size_t i = 0; !status && i < s->name_count; i++)
        if (s->name[i].own_ns > 0)
            status = add_kind(j, &k, s->name[i].text, s->name[i].c, s->name[i].l, d);
    if (!status)
        status = add_kind(j, &k, "*", s->any_c, s->any_l, d);
    if (!status)
        status = fl_kinds_write(path, &k, d);
    fl_kinds_free(&k);
    return status;
}

static void print(const job *j, const char *path) {
    const fl_seen *s = &j->seen;
    size_t own = 0;
    for (size_t i = 0; i < s->kernel_count; i++)
        own += s->kernel[i].fitted;
    printf("%zu of %zu kinds of kernels at two clocks or more: %.1f %% of the time\n", own, s->kernel_count,
           100 * s->own_ns / s->total_ns);
    printf("borrowed from kernels of the same name: %.1f %%; from all: %.1f %%\n", 100 * s->named_ns / s->total_ns,
           100 * (s->total_ns - s->own_ns - s->named_ns) / s->total_ns);
    printf("mean error in time: %.2f %% on the clocks fitted", s->mape_pct);
    if (isnan(s->unseen_pct))
        printf("; two clocks cannot show it on others\n");
    else
        printf(", %.2f %% on a clock left out\n", s->unseen_pct);
    if (j->powers)
        printf("power: core x %.3g, memory x %.3g from %zu recordings, mean error %.2f %%\n", j->alpha, j->beta,
               j->powers, j->power_mape_pct);
    else
        printf("power: no telemetry with the kernels, assumed\n");
    printf("written: %s\n", path);
}

static fl_status open_files(job *j, const fl_texts *paths, const char *format, const fl_texts *clocks, fl_diag *d) {
    j->file = calloc(paths->count + 1, sizeof *j->file);
    j->sm_mhz = calloc(paths->count + 1, sizeof *j->sm_mhz);
    fl_status s = j->file && j->sm_mhz ? FL_OK : no_memory(d);
    if (!s && clocks->count && clocks->count != paths->count)
        s = fl_fail(d, FL_BAD_INPUT, NULL, 0, 0, "--sm-mhz %zu times for %zu recordings, expected one for each",
                    clocks->count, paths->count);
    for (size_t i = 0; !s && i < paths->count; i++, j->count += !s) {
        char *end = NULL;
        if (clocks->count) {
            j->sm_mhz[i] = strtod(clocks->item[i], &end);
            if (end == clocks->item[i] || *end || !(j->sm_mhz[i] > 0))
                return fl_fail(d, FL_BAD_INPUT, NULL, 0, 0, "--sm-mhz '%s', expected a clock in MHz", clocks->item[i]);
        }
        s = fl_trace_open(paths->item[i], format, NULL, &j->file[i], d);
    }
    return s;
}

int fl_fit_trace(int argc, char **argv) {
    fl_texts paths = {0}, clocks = {0};
    const char *platform = NULL, *out = NULL, *format = NULL;
    const fl_option option[] = {
        {"platform", "NAME", FL_OPTION_TEXT, &platform, 0, 0, "the GPU that it was recorded on"},
        {"o", "FILE", FL_OPTION_TEXT, &out, 0, 0, "the kinds file (or programs file of phases) to write"},
        {"sm-mhz", "F", FL_OPTION_LIST, &clocks, 0, 0,
         "SM clock of a recording that does not say, once per file in order"},
        {"format", "NAME", FL_OPTION_TEXT, &format, 0, 0, "of the recordings (found)"},
    };
    int status = FL_EXIT_OK;
    if (!fl_begin(argc, argv, &help, option, sizeof option / sizeof *option, &paths, &status))
        return status;
    fl_diag d = {0};
    job j = {0};
    size_t kernels = 0;
    fl_status s =
        paths.count && out && platform
            ? FL_OK
            : fl_fail(&d, FL_BAD_INPUT, NULL, 0, 0, "expected recordings, --platform NAME and -o FILE, see --help");
    if (!s)
        s = fl_platform_open(platform, 0, &j.platform, &d);
    if (!s) {
        j.dev = &j.platform.node.device[j.platform.node.gpu[0]];
        s = open_files(&j, &paths, format, &clocks, &d);
    }
    for (size_t i = 0; i < j.count; i++)
        kernels += j.file[i].has_kernels;
    if (!s && !kernels) {
        s = paths.count == 1
                ? fl_fit_phases(&j.file[0].telemetry, j.dev, paths.item[0], out, &d)
                : fl_fail(&d, FL_BAD_INPUT, NULL, 0, 0, "no kernels in any, expected one log to find phases in");
    } else if (!s) {
        for (size_t i = 0; !s && i < j.count; i++)
            if (j.file[i].has_kernels)
                s = fl_seen_add(&j.seen, paths.item[i], &j.file[i].kernels, j.sm_mhz[i], &d);
        if (!s)
            s = fl_seen_fit(&j.seen, sharpness(&j), &d);
        if (!s) {
            fit_power(&j);
            s = write_kinds(&j, out, &d);
        }
        if (!s)
            print(&j, out);
    }
    if (s)
        status = fl_report("fit trace", &d);
    for (size_t i = 0; i < j.count; i++)
        fl_imported_free(&j.file[i]);
    free(j.file);
    free(j.sm_mhz);
    fl_seen_free(&j.seen);
    fl_platform_free(&j.platform);
    fl_texts_free(&paths);
    fl_texts_free(&clocks);
    return status;
}
