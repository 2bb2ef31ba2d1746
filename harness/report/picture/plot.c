/* `foldline plot`: kinds of pictures, their inputs and the file. */
#include "harness/report/picture/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/input/scene/scene.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PANELS_MOST = 6, TRACE_BINS = 500, OVERLAID = 2, OVERLAID_FILES = 6 };
static const char *const OVERLAY[OVERLAID] = {"sm_mhz", "power_w"};

typedef size_t (*of_summary)(fl_picture *p, const fl_summary *s, const fl_looks *looks);

static size_t intervals(fl_picture *p, const fl_summary *s, const fl_looks *l) {
    return fl_picture_rows(p, s, l, false);
}

static size_t ranks(fl_picture *p, const fl_summary *s, const fl_looks *l) { return fl_picture_rows(p, s, l, true); }

static size_t regret(fl_picture *p, const fl_summary *s, const fl_looks *l) {
    (void)l;
    return fl_picture_regret(p, s);
}

static size_t sensitivity(fl_picture *p, const fl_summary *s, const fl_looks *l) {
    (void)l;
    return fl_picture_studies(p, s, 0, PANELS_MOST);
}

static size_t published(fl_picture *p, const fl_summary *s, const fl_looks *l) {
    (void)l;
    return fl_picture_published(p, s);
}

typedef fl_status (*of_file)(fl_picture *p, const char *input, size_t *drawn, fl_diag *d);
typedef fl_status (*of_telemetry)(fl_picture *p, const fl_telemetry *t, const char *path, size_t *drawn, fl_diag *d);

/* The source and the script of each kind; the script is plots/SCRIPT.gp. */
static const struct kind {
    const char *name, *script;
    of_summary result;
    of_telemetry telemetry;
    of_file file;        /* reads its input itself */
    const char *nothing; /* to say where there is nothing to draw */
} kinds[] = {
    {"pareto", "pareto", fl_picture_pareto, NULL, NULL, "no policy with an energy saving"},
    {"workloads", "workloads", fl_picture_workloads, NULL, NULL, "no run with an energy saving"},
    {"timeline", "lines", NULL, fl_picture_timeline, NULL, "no row of a GPU"},
    {"regret", "regret", regret, NULL, NULL, "no policy beside the baselines"},
    {"regret-curves", "lines", NULL, NULL, NULL, "no step with a regret"},
    {"sensitivity", "lines", sensitivity, NULL, NULL,
     "no policy with a parameter of several values, expected labels such as assure:theta=0.9"},
    {"intervals", "rows", intervals, NULL, NULL, "no policy with an energy saving"},
    {"ranks", "rows", ranks, NULL, NULL, "no two policies ran the same workloads"},
    {"published", "rows", published, NULL, NULL,
     "no published number beside it, expected the file of foldline compare EXPERIMENT -o FILE"},
    {"residency", "residency", NULL, fl_picture_residency, NULL, "no clock over any time"},
    {"trace", "trace", NULL, NULL, NULL, "no kernels and no telemetry"},
    {"frontier", "frontier", NULL, NULL, fl_picture_frontier, "no row below it"},
    {"locks", "lines", NULL, NULL, fl_picture_locks,
     "no workload with three locks under its highest power limit and a limit that acts at its highest lock"},
    {"models", "lines", NULL, NULL, NULL, "no kernel class and no workload at three clocks or more"},
    {"gantt", "gantt", NULL, NULL, NULL, "no row below it"},
    {"serving", "lines", NULL, NULL, fl_picture_serving,
     "no run of a server, expected the file of foldline compare SERVER REQUESTS"},
    {"serving-load", "lines", NULL, NULL, fl_picture_load,
     "no run of a server, expected the file of foldline compare SERVER REQUESTS"},
    {"latencies", "lines", NULL, NULL, fl_picture_latencies,
     "no request, expected the file of foldline run SERVER REQUESTS --served"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *const fl_plot_kinds[] = {"pareto",      "workloads",    "timeline",  "regret",    "regret-curves",
                                     "sensitivity", "intervals",    "ranks",     "published", "residency",
                                     "trace",       "frontier",     "locks",     "models",    "gantt",
                                     "serving",     "serving-load", "latencies", NULL};

/* ---- inputs ---- */

/* Keep the rows of the policies to draw, and of the baselines, so that legends have no others. */
static fl_status keep_policies(const fl_picture *p, fl_report_data *r, fl_diag *d) {
    fl_names kept = {0};
    size_t n = 0;
    const fl_status s = fl_picture_known(p, &r->policy, d);
    for (size_t i = 0; i < r->row_count; i++) {
        fl_report_row row = r->row[i];
        const char *name = r->policy.item[row.policy];
        if (!fl_picture_shows(p, name))
            continue;
        row.policy = fl_names_index(&kept, name);
        r->row[n++] = row;
    }
    r->row_count = n;
    fl_names_free(&r->policy);
    r->policy = kept;
    return s;
}

static fl_status from_result(const struct kind *k, const char *input, fl_picture *p, size_t *drawn, fl_diag *d) {
    fl_report_data data = {0};
    fl_scope *scope = NULL;
    size_t scopes = 0;
    fl_summary s = {0};
    fl_looks looks = {0};
    const fl_bootstrap b = {.seed = 1};
    fl_status st = fl_report_read(input, &data, d);
    if (!st)
        st = keep_policies(p, &data, d);
    if (!st)
        st = fl_report_judge(&data, &(fl_texts){0}, d);
    if (!st) {
        fl_scopes_make(&data, &scope, &scopes);
        fl_looks_make(&data, &looks);
        st = fl_summary_make(&scope[0], &b, NULL, &s, d);
    }
    if (!st)
        *drawn = k->result(p, &s, &looks);
    fl_summary_free(&s);
    fl_looks_free(&looks);
    fl_scopes_free(scope, scopes);
    if (data.path)
        fl_report_free(&data);
    return st;
}

/* Telemetry, or the power and clock of a trajectory. */
static fl_status read_telemetry(const char *input, fl_telemetry *t, fl_diag *d) {
    fl_left_out left;
    fl_decisions way = {0};
    const fl_status s = fl_telemetry_read(input, t, &left, d);
    if (!s)
        fl_left_tell(input, &left);
    if (!s || fl_trajectory_read(input, &way, NULL))
        return s;
    *t = (fl_telemetry){.signal = way.signal, .signal_count = way.signal_count, .row_count = way.step_count};
    t->head = way.head;
    t->t_ns = way.t_ns;
    way.signal = NULL;
    way.signal_count = 0;
    way.head = (fl_head){0};
    way.t_ns = NULL;
    t->device = fl_must(calloc(t->row_count, sizeof *t->device));
    t->value = fl_must(malloc(t->row_count * t->signal_count * sizeof *t->value));
    for (size_t i = 0; i < t->row_count; i++) /* the row of the GPU, behind that of the host */
        memcpy(t->value + i * t->signal_count, way.value + (2 * i + 1) * t->signal_count,
               t->signal_count * sizeof *t->value);
    fl_decisions_free(&way);
    if (d)
        *d = (fl_diag){0};
    return FL_OK;
}

static fl_status from_telemetry(const struct kind *k, const char *input, fl_picture *p, size_t *drawn, fl_diag *d) {
    fl_telemetry t = {0};
    fl_status s = read_telemetry(input, &t, d);
    if (!s)
        s = k->telemetry(p, &t, input, drawn, d);
    fl_telemetry_free(&t);
    return s;
}

/* Append GPU 0 of `from` as the device of that number, with its clock and power. */
static void append(fl_telemetry *to, const fl_telemetry *from, int32_t device) {
    const size_t at[OVERLAID] = {fl_signal_index(from, OVERLAY[0]), fl_signal_index(from, OVERLAY[1])};
    const size_t rows = to->row_count + from->row_count;
    to->t_ns = fl_must(realloc(to->t_ns, (rows + 1) * sizeof *to->t_ns));
    to->device = fl_must(realloc(to->device, (rows + 1) * sizeof *to->device));
    to->value = fl_must(realloc(to->value, (rows * OVERLAID + 1) * sizeof *to->value));
    for (size_t i = 0; i < from->row_count; i++) {
        if (from->device[i])
            continue;
        for (size_t k = 0; k < OVERLAID; k++)
            to->value[to->row_count * OVERLAID + k] =
                at[k] == SIZE_MAX ? (double)NAN : from->value[i * from->signal_count + at[k]];
        to->t_ns[to->row_count] = from->t_ns[i];
        to->device[to->row_count++] = device;
    }
}

/* Several recordings over each other, named as their files. */
static fl_status from_several(const char *const *input, size_t count, fl_picture *p, size_t *drawn, fl_diag *d) {
    fl_telemetry all = {.signal_count = OVERLAID};
    char key[32], name[48];
    fl_status s = FL_OK;
    all.signal = fl_must(calloc(OVERLAID, sizeof *all.signal));
    for (size_t k = 0; k < OVERLAID; k++)
        all.signal[k] = fl_must(strdup(OVERLAY[k]));
    for (size_t i = 0; !s && i < count; i++) {
        fl_telemetry one = {0};
        const char *slash = strrchr(input[i], '/');
        if (!(s = read_telemetry(input[i], &one, d)))
            append(&all, &one, (int32_t)i);
        fl_telemetry_free(&one);
        snprintf(key, sizeof key, FL_SERIES_KEY "%zu", i);
        snprintf(name, sizeof name, "%s", slash ? slash + 1 : input[i]);
        name[strcspn(name, ".")] = '\0';
        fl_must_have(fl_head_set(&all.head, key, name));
    }
    fl_must_have(fl_head_set(&all.head, "workload", "GPU 0 of each file"));
    if (!s)
        s = fl_picture_timeline(p, &all, input[0], drawn, d);
    fl_telemetry_free(&all);
    return s;
}

static fl_status from_curves(const char *input, fl_picture *p, size_t *drawn, fl_diag *d) {
    fl_curves c;
    fl_status s = fl_curves_read(input, NULL, &c, d);
    if (!s)
        s = fl_picture_known(p, c.policy, d);
    size_t kept = 0;
    for (size_t i = 0; !s && i < c.count; i++)
        if (fl_picture_shows(p, c.policy->item[c.mark[i].policy]))
            c.mark[kept++] = c.mark[i];
    c.count = kept;
    if (!s)
        *drawn = fl_picture_curves(p, &c, 0, PANELS_MOST);
    fl_curves_free(&c);
    return s;
}

static fl_status from_trace(const char *input, fl_picture *p, size_t *drawn, fl_diag *d) {
    char name[256];
    fl_imported run = {0};
    fl_picture_plot(p, 66, 18, 480);
    fl_picture_title(p, "Trace over time", fl_lead_short(input, name));
    fl_status s = fl_trace_open(input, NULL, NULL, &run, d);
    if (!s)
        s = fl_trace_beside(input, &run, d);
    *drawn = run.has_kernels || run.has_telemetry;
    if (!s && *drawn)
        s = fl_stats_put_series(p->table, &run, TRACE_BINS, d);
    fl_imported_free(&run);
    return s;
}

/* ---- the file ---- */

static fl_status check(const char *name, const char *output, const struct kind **k, const char **format, fl_diag *d) {
    *k = NULL;
    for (size_t i = 0; i < KINDS; i++)
        if (!strcmp(name, kinds[i].name))
            *k = &kinds[i];
    if (!*k) {
        const char *near = fl_nearest(name, fl_plot_kinds, KINDS);
        if (near)
            return fl_refuse(d, "unknown plot '%s', did you mean '%s'?", name, near);
        char all[512] = "";
        for (size_t i = 0; i < KINDS; i++) {
            const size_t at = strlen(all);
            (void)snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", fl_plot_kinds[i]);
        }
        return fl_refuse(d, "unknown plot '%s', expected %sone of: %s", name,
                         access(name, F_OK) ? "" : "first what to draw, ", all);
    }
    if (!output)
        return fl_refuse(d, "no -o FILE given, expected the picture to write: -o %s.svg", name);
    static const char *const formats[] = {"svg", "png", "pdf"};
    const size_t length = fl_plain_length(output);
    *format = fl_is_standard(output) ? "svg" : NULL;
    for (size_t i = 0; !*format && i < 3; i++)
        if (length > 4 && output[length - 4] == '.' && !strncmp(output + length - 3, formats[i], 3))
            *format = formats[i];
    if (!*format)
        return fl_fail(d, FL_BAD_INPUT, output, 0, 0,
                       "unknown picture format, expected a name ending in .svg, .png or .pdf");
    return FL_OK;
}

static fl_status write_whole(const char *output, const char *bytes, size_t size, fl_diag *d) {
    fl_output *o = fl_output_open(output, d);
    if (!o)
        return d->status;
    fwrite(bytes, 1, size, fl_output_file(o)); /* the commit checks whether the write succeeded */
    return fl_output_commit(o, d);
}

fl_status fl_plot(const char *name, const char *input, const char *output, fl_diag *d) {
    return fl_plot_all(name, NULL, &input, 1, output, d);
}

/* An SVG of the same drawing in other sizes: its head says how large the drawing is shown. Replaces *bytes. */
static void resize(char **bytes, size_t *size, const fl_picture *p, double scale) {
    char *from = strstr(*bytes, "width=\""), *to = from ? strstr(from, "viewBox") : NULL;
    if (!to)
        return;
    char *made = fl_must_print("%.*swidth=\"%.0f\" height=\"%.0f\"\n %s", (int)(from - *bytes), *bytes,
                               p->width * scale, p->height * scale, to);
    free(*bytes);
    *bytes = made;
    *size = strlen(made);
}

enum { WIDTH_LEAST = 360 }; /* of a layout: a name and a plot beside it */

static fl_status check_options(const struct kind *k, const fl_plot_options *o, fl_picture *p, fl_diag *d) {
    const double scale = fl_picture_scale(o);
    const bool policies = k->result || !strncmp(k->name, "serving", 7) || !strcmp(k->name, "regret-curves");
    if (o->policies && o->policies->count && !policies)
        return fl_refuse(d, "--policy has no effect on plot %s, whose input has no policies", k->name);
    p->options = o;
    p->width = (o->width > 0 ? o->width : scale * p->width) / scale;
    if (p->width < WIDTH_LEAST)
        return fl_refuse(d, "a width of %g is too small for this font, expected %.0f or more, or a smaller --font-size",
                         o->width, ceil(WIDTH_LEAST * scale));
    return FL_OK;
}

fl_status fl_plot_all(const char *name, const fl_plot_options *o, const char *const *inputs, size_t count,
                      const char *output, fl_diag *d) {
    static const fl_plot_options none = {0};
    o = o ? o : &none;
    const char *platform = o->platform;
    const bool gantt = !strcmp(name, "gantt"), timeline = !strcmp(name, "timeline"), models = !strcmp(name, "models");
    const char *input = count ? inputs[0] : platform;
    const size_t most = gantt ? FL_GANTT_PLANS_MAX : timeline ? OVERLAID_FILES : models ? 2 : 1;
    const struct kind *k = NULL;
    const char *format = NULL;
    fl_picture p = {0};
    char *bytes = NULL;
    size_t drawn = 0, size = 0;
    fl_status s = check(name, output, &k, &format, d);
    if (!s && count > most)
        s = fl_refuse(d, "plot %s: %zu inputs, expected %s", name, count,
                      gantt      ? "one or two"
                      : models   ? "at most two"
                      : timeline ? "one to six"
                                 : "one");
    if (!s && !models && !count)
        s = fl_refuse(d, "plot %s: no input, see foldline plot --help", name);
    if (!s && !models && platform)
        s = fl_refuse(d, "--platform has no effect on plot %s, expected it with plot models", name);
    if (!s)
        s = fl_picture_open(&p, FL_PICTURE_PRINT, d);
    if (!s)
        s = check_options(k, o, &p, d);
    if (!s)
        s = k->result                        ? from_result(k, input, &p, &drawn, d)
            : timeline && count > 1          ? from_several(inputs, count, &p, &drawn, d)
            : k->telemetry                   ? from_telemetry(k, input, &p, &drawn, d)
            : k->file                        ? k->file(&p, input, &drawn, d)
            : !strcmp(name, "regret-curves") ? from_curves(input, &p, &drawn, d)
            : models                         ? fl_picture_models(&p, platform, inputs, count, &drawn, d)
            : gantt                          ? fl_picture_gantt(&p, inputs, count, &drawn, d)
                                             : from_trace(input, &p, &drawn, d);
    if (!s && !drawn)
        s = fl_fail(d, FL_BAD_INPUT, input, 0, 0, "%s, nothing to draw", k->nothing);
    if (!s)
        s = fl_picture_draw(&p, k->script, format, input, &bytes, &size, d);
    if (!s && !strcmp(format, "svg") && o->font > 0)
        resize(&bytes, &size, &p, fl_picture_scale(o));
    if (!s)
        s = write_whole(output, bytes, size, d);
    fl_picture_close(&p);
    free(bytes);
    return s;
}
