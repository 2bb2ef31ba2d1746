/* Servers of a language model: what a token costs against the latency that it comes with, what a policy saves against
 * the load, and how the latencies of one run are distributed. */
#include "harness/report/picture/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MOST = 200, CURVE_POINTS = 400 };

typedef struct number_row { /* a row of a result: some columns as numbers */
    size_t policy;
    double value[6];
    bool violated;
} number_row;

typedef struct numbers {
    const char *const *column;                         /* wanted */
    size_t columns, required;                          /* the last ones may be missing, as older files lack them */
    size_t at[6], policy_at, workload_at, violated_at; /* their places; SIZE_MAX: there is none */
    bool named;                                        /* rows have policies, and means among them are left out */
    fl_names policy;
    number_row *row;
    size_t count, room;
} numbers;

static fl_status take_head(numbers *n, const fl_csv_row *row, fl_diag *d) {
    n->policy_at = fl_report_find(row, "policy");
    n->workload_at = fl_report_find(row, "workload");
    n->violated_at = fl_report_find(row, "violated");
    for (size_t k = 0; k < n->columns; k++)
        if (((n->at[k] = fl_report_find(row, n->column[k])) == SIZE_MAX && k < n->required) ||
            (n->named && n->policy_at == SIZE_MAX))
            return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "no column '%s', expected the file of foldline %s",
                           n->at[k] == SIZE_MAX ? n->column[k] : "policy",
                           n->named ? "compare SERVER REQUESTS" : "run SERVER REQUESTS --served");
    return FL_OK;
}

static double number_at(const fl_csv_row *row, size_t at) {
    double x;
    return at < row->count && fl_real_parse(row->field[at].text, &x) == FL_NUMBER_OK ? x : (double)NAN;
}

static fl_status take_row(void *user, const fl_csv_row *row, fl_diag *d) {
    numbers *n = user;
    if (n->policy_at == SIZE_MAX - 1) /* the head comes first */
        return take_head(n, row, d);
    if (n->workload_at < row->count && n->named && !strcmp(row->field[n->workload_at].text, "mean"))
        return FL_OK;
    number_row one = {.violated = number_at(row, n->violated_at) > 0};
    bool any = false;
    for (size_t k = 0; k < n->columns; k++) {
        one.value[k] = number_at(row, n->at[k]);
        any |= isfinite(one.value[k]);
    }
    if (!any)
        return FL_OK;
    if (n->named && n->policy_at >= row->count)
        return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "%zu fields, expected a policy in field %zu",
                       row->count, n->policy_at + 1);
    if (n->named)
        one.policy = fl_names_index(&n->policy, row->field[n->policy_at].text);
    fl_must_grow(&n->row, &n->room, n->count + 1, sizeof *n->row);
    n->row[n->count++] = one;
    return FL_OK;
}

/* The rows of the policies to draw; their names stay. */
static fl_status keep_rows(const fl_picture *p, numbers *n, fl_diag *d) {
    size_t kept = 0;
    const fl_status s = fl_picture_known(p, &n->policy, d);
    for (size_t i = 0; i < n->count; i++)
        if (fl_picture_shows(p, n->policy.item[n->row[i].policy]))
            n->row[kept++] = n->row[i];
    n->count = kept;
    return s;
}

static fl_status read_numbers(const char *input, const char *const *column, size_t columns, size_t required, bool named,
                              numbers *n, fl_diag *d) {
    const fl_csv_options options = {.trim = true};
    *n = (numbers){
        .column = column, .columns = columns, .required = required, .policy_at = SIZE_MAX - 1, .named = named};
    return fl_csv_read(input, &options, NULL, take_row, n, d);
}

static void free_numbers(numbers *n) {
    fl_names_free(&n->policy);
    free(n->row);
}

/* Grey for baselines, which all results have; the others in the order of the file. */
static int colour_of(const numbers *n, size_t policy) {
    int colour = 0;
    if (fl_report_is_baseline(n->policy.item[policy]))
        return 0;
    for (size_t i = 0; i <= policy; i++)
        colour += !fl_report_is_baseline(n->policy.item[i]);
    return 1 + (colour - 1) % FL_PICTURE_COLOURS;
}

static double widest(const numbers *n) {
    double most = 0;
    for (size_t i = 0; i < n->policy.count; i++)
        most = fmax(most, fl_text_width(n->policy.item[i]));
    return fmin(most, NAMES_MOST);
}

static void extent(const numbers *n, size_t k, double *low, double *high) {
    *low = HUGE_VAL;
    *high = -HUGE_VAL;
    for (size_t i = 0; i < n->count; i++)
        fl_hold(low, high, n->row[i].value[k]);
}

static size_t last_of(const numbers *n, size_t policy, size_t y) {
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < n->count; i++)
        if (n->row[i].policy == policy && isfinite(n->row[i].value[y]))
            last = i;
    return last;
}

/* ---- what the record beside a result says ---- */

enum { TARGETS_MAX = 4 };

typedef struct targets {
    double seconds[2][TARGETS_MAX]; /* of TTFT, of TBT: the distinct ones */
    size_t count[2];
    char about[512]; /* workload, platform and bounds */
} targets;

static void add_target(targets *t, size_t which, const cJSON *serving, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(serving, key);
    if (!cJSON_IsNumber(v) || !(v->valuedouble > 0) || t->count[which] == TARGETS_MAX)
        return;
    for (size_t i = 0; i < t->count[which]; i++)
        if (t->seconds[which][i] == v->valuedouble)
            return;
    t->seconds[which][t->count[which]++] = v->valuedouble;
}

/* Without a record there are no targets. */
static fl_status read_targets(const char *input, targets *t, fl_diag *d) {
    fl_report_data data = {0};
    fl_scope *scope = NULL;
    size_t scopes = 0;
    *t = (targets){0};
    if (fl_is_standard(input)) /* nothing lies beside it, and it cannot be read twice */
        return FL_OK;
    fl_status s = fl_report_read(input, &data, d);
    if (!s)
        s = fl_report_judge(&data, &(fl_texts){0}, d);
    if (!s) {
        const cJSON *workload, *workloads = cJSON_GetObjectItemCaseSensitive(data.provenance, "workloads");
        cJSON_ArrayForEach(workload, workloads) {
            const cJSON *serving = cJSON_GetObjectItemCaseSensitive(workload, "serving");
            add_target(t, 0, serving, "ttft_target_s");
            add_target(t, 1, serving, "tbt_target_s");
        }
        fl_scopes_make(&data, &scope, &scopes);
        fl_lead_about(&(fl_summary){.scope = scope}, t->about, sizeof t->about);
        fl_scopes_free(scope, scopes);
    }
    fl_report_free(&data);
    return s;
}

/* ---- energy per token against latency ---- */

/* An axis ends at this many medians, or as many targets if these are longer. */
#define CUT 4.0

static const char *short_name(const char *policy) {
    return fl_report_is_baseline(policy) ? policy + sizeof "baseline:" - 1 : policy;
}

/* Where the axis ends: at all latencies, or, where a server was overloaded, so that those of the others stay apart. The
 * runs beyond are cut off, and a text at the edge says their latency. */
static void latency_axis(const numbers *n, size_t k, const targets *t, fl_panel *panel) {
    double *sorted = fl_must(calloc(n->count + 1, sizeof *sorted)), most = 0, promised = 0;
    size_t count = 0;
    for (size_t i = 0; i < n->count; i++)
        if (isfinite(n->row[i].value[k]))
            sorted[count++] = n->row[i].value[k];
    gsl_sort(sorted, 1, count);
    count += !count; /* without any, one of 0 */
    for (size_t i = 0; i < t->count[k - 1]; i++)
        promised = fmax(promised, t->seconds[k - 1][i]);
    const double cut = CUT * fmax(sorted[(count - 1) / 2], promised);
    for (size_t i = 0; i < count; i++)
        most = sorted[i] <= cut ? sorted[i] : most;
    most = fmax(most, promised);
    panel->x0 = 0;
    panel->x1 = most > 0 ? most * (sorted[count - 1] > cut ? 1.5 : 1.08) : 1; /* the texts of runs beyond need room */
    free(sorted);
}

/* Write a text where it covers least: beside px, py, or at the right edge near py. */
static void put_beside(fl_lines *l, fl_clutter *c, double px, double py, bool edge, int colour, const char *text) {
    const fl_picture *p = l->p;
    const double width = fl_text_width(text), height = 14;
    double least = HUGE_VAL;
    fl_box best = {0};
    for (int far = 0; far < 8; far++)
        for (int turn = 0; turn < 8; turn++) {
            const double angle = turn * M_PI / 4, away = 8 + 8 * far;
            const double x = edge                ? p->right - width - 2
                             : cos(angle) > 0.1  ? px + away * cos(angle)
                             : cos(angle) < -0.1 ? px + away * cos(angle) - width
                                                 : px - width / 2;
            const double y = py - away * sin(angle) * (edge ? (far > 0) : 1) - height / 2;
            const fl_box b = {x, y, x + width, y + height};
            if (x < p->left + 2 || x + width > p->right || y < p->top || y + height > p->bottom - 1)
                continue;
            const double cost = fl_clutter_cost(c, &b, SIZE_MAX - 1, least) + away + (turn ? 1 : 0);
            if (cost < least) {
                least = cost;
                best = b;
            }
        }
    if (least == HUGE_VAL)
        return;
    fl_clutter_add(c, &(fl_obstacle){best, 1000, 1000, SIZE_MAX});
    fl_lines_text(l, best.x1, (best.y1 + best.y2) / 2, colour, text);
}

static void put_marks(fl_lines *l, const numbers *n, size_t x, size_t y, const targets *t) {
    const fl_picture *p = l->p;
    fl_clutter c;
    char text[512], seconds[32];
    fl_clutter_open(&c, p->width, p->height);
    for (size_t i = 0; i < n->count; i++) {
        const number_row *r = &n->row[i];
        const double px = fl_picture_px(p, r->value[x]), py = fl_picture_py(p, r->value[y]);
        if (!isfinite(px) || !isfinite(py))
            continue;
        fl_clutter_add(&c, &(fl_obstacle){{px - 5, py - 5, px + 5, py + 5}, 100, 100, SIZE_MAX});
        if (r->value[x] > l->panel.x1)
            continue;
        fl_lines_point(l, r->violated ? "ring" : "point", r->value[x], r->value[y], NAN, NAN, colour_of(n, r->policy));
        fl_lines_lift(l);
        snprintf(text, sizeof text, "%.200s: %.4g J/token, %.4g s%s", n->policy.item[r->policy], r->value[y],
                 r->value[x], r->violated ? ", breaks a bound" : "");
        fl_lines_tip(l, r->value[x], r->value[y], text);
    }
    for (size_t i = 0; i < t->count[x - 1]; i++) {
        const double at = t->seconds[x - 1][i], px = fl_picture_px(p, at);
        fl_lines_point(l, "wall", at, l->panel.y0, NAN, NAN, -1);
        fl_lines_point(l, "wall", at, l->panel.y1, NAN, NAN, -1);
        fl_lines_lift(l);
        fl_clutter_add(&c, &(fl_obstacle){{px - 2, p->top, px + 2, p->bottom}, 60, 60, SIZE_MAX});
    }
    for (size_t i = 0; i < t->count[x - 1]; i++) {
        snprintf(text, sizeof text, "target %s s", fl_lead_number(t->seconds[x - 1][i], seconds));
        put_beside(l, &c, fl_picture_px(p, t->seconds[x - 1][i]), p->top + 10, false, -1, text);
    }
    for (size_t i = 0; i < n->count; i++) { /* runs beyond the axis, and the last run of each other policy */
        const number_row *r = &n->row[i];
        const char *name = short_name(n->policy.item[r->policy]);
        const bool cut = r->value[x] > l->panel.x1;
        if (cut)
            snprintf(text, sizeof text, "%.200s %s s \xe2\x86\x92", name, fl_lead_number(r->value[x], seconds));
        if (cut || last_of(n, r->policy, y) == i)
            put_beside(l, &c, fl_picture_px(p, r->value[x]), fl_picture_py(p, r->value[y]), cut,
                       colour_of(n, r->policy), cut ? text : name);
    }
    fl_clutter_close(&c);
}

fl_status fl_picture_serving(fl_picture *p, const char *input, size_t *drawn, fl_diag *d) {
    static const char *const column[] = {"energy_per_token_j", "ttft_p99_s", "tbt_p99_s"};
    numbers n;
    targets t;
    fl_lines l;
    fl_status s = read_numbers(input, column, 3, 3, true, &n, d);
    if (!s)
        s = keep_rows(p, &n, d);
    if (!s && n.count)
        s = read_targets(input, &t, d);
    *drawn = s ? 0 : n.count;
    if (*drawn) {
        char about[768];
        bool cut = false;
        fl_panel panel[2] = {
            {.title = "time to first token", .x_label = "99th percentile of TTFT, s", .y_label = "J per token"},
            {.title = "time between tokens", .x_label = "99th percentile of TBT, s", .y_label = "J per token"}};
        for (size_t k = 0; k < 2; k++) {
            extent(&n, 0, &panel[k].y0, &panel[k].y1);
            fl_loosen(&panel[k].y0, &panel[k].y1);
            panel[k].y0 = fmax(panel[k].y0, 0);
            latency_axis(&n, k + 1, &t, &panel[k]);
            for (size_t i = 0; i < n.count; i++)
                cut |= n.row[i].value[k + 1] > panel[k].x1;
        }
        snprintf(about, sizeof about, "%.400s%seach mark is a run; a hollow mark breaks a bound; grey: baselines%s",
                 t.about, *t.about ? "; " : "", cut ? "; arrow: a run beyond the axis, with its latency" : "");
        fl_lines_begin(&l, p, 2, p->width < 600 ? 1 : 2, 320, 10, false,
                       "What a token costs, and how long one waits for it", about);
        for (size_t k = 0; k < 2; k++) {
            fl_lines_panel(&l, &panel[k]);
            put_marks(&l, &n, k + 1, 0, &t);
        }
        fl_lines_end(&l);
    }
    free_numbers(&n);
    return s;
}

/* ---- saving against load ---- */

static int by_load(const void *a, const void *b) {
    const number_row *x = a, *y = b;
    if (x->policy != y->policy)
        return x->policy < y->policy ? -1 : 1;
    return (x->value[0] > y->value[0]) - (x->value[0] < y->value[0]);
}

/* It serves less than what arrives, by more than the time that the last requests take explains. */
static bool overloaded(const number_row *r) { return r->value[3] < 0.95 * r->value[0]; }

/* Runs at nearly one rate differ in something else: the line goes through their mean. */
static void put_savings(fl_lines *l, const numbers *n, size_t y) {
    for (size_t i = 0, end; i < n->count; i = end) {
        const size_t policy = n->row[i].policy;
        const int colour = colour_of(n, policy);
        double last = NAN;
        for (end = i; end < n->count && n->row[end].policy == policy;) {
            const double x = n->row[end].value[0];
            double sum = 0;
            size_t count = 0;
            for (; end < n->count && n->row[end].policy == policy && n->row[end].value[0] <= 1.02 * x; end++)
                if (isfinite(n->row[end].value[y])) {
                    sum += n->row[end].value[y];
                    count++;
                }
            if (!count)
                continue;
            last = sum / (double)count;
            fl_lines_point(l, "line", x, last, NAN, NAN, colour);
        }
        fl_lines_lift(l);
        fl_lines_name(l, last, colour, n->policy.item[policy]);
    }
    for (size_t i = 0; i < n->count; i++) { /* every run */
        const number_row *r = &n->row[i];
        const int colour = colour_of(n, r->policy);
        fl_lines_point(l, r->violated ? "ring" : "point", r->value[0], r->value[y], NAN, NAN, colour);
        if (overloaded(r))
            fl_lines_point(l, "cross", r->value[0], r->value[y], NAN, NAN, colour);
    }
    fl_lines_lift(l);
}

fl_status fl_picture_load(fl_picture *p, const char *input, size_t *drawn, fl_diag *d) {
    static const char *const column[] = {"offered_rps", "energy_saving_pct", "saving_static_pct", "served_rps",
                                         "energy_per_token_j"};
    static const char *const title[] = {"against the driver's default",
                                        "against the best static clock that meets the targets"};
    numbers n;
    fl_lines l;
    targets t = {0};
    fl_status s = read_numbers(input, column, 5, 4, true, &n, d);
    if (!s &&
        read_targets(input, &t, &(fl_diag){0})) /* the loads alone make a picture, whose workload has no name then */
        t = (targets){0};
    if (!s)
        s = keep_rows(p, &n, d);
    size_t kept = 0;
    for (size_t i = 0; !s && i < n.count; i++) /* where no requests arrive there is no load */
        if (isfinite(n.row[i].value[0]))
            n.row[kept++] = n.row[i];
    n.count = kept;
    *drawn = kept;
    if (*drawn) {
        double low, high, low2, high2, least_j, most_j;
        char about[768];
        snprintf(
            about, sizeof about,
            "%.400s%slines are means of runs at one load; a hollow mark breaks a bound; a crossed mark serves less "
            "than 95 %% of what arrives",
            t.about, *t.about ? "; " : "");
        fl_panel panel = {.x_label = "requests per second that arrive", .y_label = "energy saved, %"};
        qsort(n.row, n.count, sizeof *n.row, by_load);
        extent(&n, 0, &panel.x0, &panel.x1);
        panel.x0 = 0;
        panel.x1 *= 1.06;
        extent(&n, 1, &low, &high);
        extent(&n, 2, &low2, &high2);
        panel.y0 = fmin(low, low2); /* one scale: they are to be held against each other */
        panel.y1 = fmax(high, high2);
        fl_loosen(&panel.y0, &panel.y1);
        extent(&n, 4, &least_j, &most_j);
        fl_lines_begin(&l, p, least_j <= most_j ? 3 : 2, p->width < 600 ? 1 : 2, 320, fmin(widest(&n), 0.2 * p->width),
                       false, "What a policy saves and a token costs, against the load", about);
        for (size_t k = 0; k < 2; k++) {
            panel.title = title[k];
            fl_lines_panel(&l, &panel);
            fl_lines_point(&l, "slope", panel.x0, 0, NAN, NAN, 0);
            fl_lines_point(&l, "slope", panel.x1, 0, NAN, NAN, 0);
            fl_lines_lift(&l);
            put_savings(&l, &n, k + 1);
        }
        if (least_j <= most_j) {
            panel.title = "J per token; the best static clock at each load is grey";
            panel.y_label = "J per token";
            panel.y0 = least_j;
            panel.y1 = most_j;
            fl_loosen(&panel.y0, &panel.y1);
            panel.y0 = fmax(panel.y0, 0);
            fl_lines_panel(&l, &panel);
            put_savings(&l, &n, 4);
        }
        fl_lines_end(&l);
    }
    free_numbers(&n);
    return s;
}

/* ---- distributions of one run ---- */

/* The share of requests whose value, in units of `unit`, is at most so large, in at most CURVE_POINTS steps; the ends
 * always. */
static void put_share(fl_lines *l, const numbers *n, size_t k, double unit, int colour, const char *name,
                      double *room) {
    size_t count = 0;
    for (size_t i = 0; i < n->count; i++)
        if (isfinite(n->row[i].value[k]))
            room[count++] = n->row[i].value[k] * unit;
    gsl_sort(room, 1, count);
    const size_t every = count / CURVE_POINTS + 1;
    if (count)
        fl_lines_step(l, "line", room[0], 0, colour);
    for (size_t i = 0; i < count; i = i + 1 == count ? count : i + every < count ? i + every : count - 1)
        fl_lines_step(l, "line", room[i], 100.0 * (double)(i + 1) / (double)count, colour);
    fl_lines_lift(l);
    if (count)
        fl_lines_name(l, colour == 1 ? 100 : 90, colour, name);
}

/* From the least to the largest of two columns, and a little to either side, so that equal times too make an axis. */
static void span(const numbers *n, size_t k, size_t also, double unit, fl_panel *panel) {
    panel->x0 = HUGE_VAL;
    panel->x1 = -HUGE_VAL;
    for (size_t i = 0; i < n->count; i++) {
        if (n->row[i].value[k] > 0)
            fl_hold(&panel->x0, &panel->x1, n->row[i].value[k] * unit);
        if (n->row[i].value[also] > 0)
            fl_hold(&panel->x0, &panel->x1, n->row[i].value[also] * unit);
    }
    const bool any = panel->x0 <= panel->x1; /* single tokens alone have no time between them */
    panel->x0 = any ? panel->x0 / 1.3 : 1e-3;
    panel->x1 = any ? panel->x1 * 1.3 : 1;
}

fl_status fl_picture_latencies(fl_picture *p, const char *input, size_t *drawn, fl_diag *d) {
    static const char *const column[] = {"ttft_ns", "tpot_ns",  "tbt_max_ns",
                                         "e2e_ns",  "energy_j", "energy_per_token_j"};
    numbers n;
    fl_lines l;
    const fl_status s = read_numbers(input, column, 6, 4, false, &n, d);
    double *room = fl_must(malloc((n.count + 1) * sizeof *room));
    *drawn = s ? 0 : n.count;
    if (*drawn) {
        fl_panel panel = {
            .title = "of a request", .x_label = "seconds", .y_label = "share of requests, %", .y1 = 100, .log_x = true};
        const bool energies = n.at[4] != SIZE_MAX && n.at[5] != SIZE_MAX;
        fl_lines_begin(&l, p, energies ? 3 : 2, p->width < 600 ? 1 : 2, 320, fl_text_width("longest (TBT) "), false,
                       energies ? "How long requests took, and what they cost" : "How long requests took",
                       "the share of requests whose time, or energy, is at most so much");
        span(&n, 0, 3, 1e-9, &panel);
        fl_lines_panel(&l, &panel);
        put_share(&l, &n, 0, 1e-9, 1, "to first token", room);
        put_share(&l, &n, 3, 1e-9, 2, "end to end", room);
        panel.title = "between its tokens";
        span(&n, 1, 2, 1e-9, &panel);
        fl_lines_panel(&l, &panel);
        put_share(&l, &n, 1, 1e-9, 1, "mean (TPOT)", room);
        put_share(&l, &n, 2, 1e-9, 2, "longest (TBT)", room);
        if (energies) {
            panel.title = "energy of the steps";
            panel.x_label = "joules";
            span(&n, 4, 5, 1, &panel);
            fl_lines_panel(&l, &panel);
            put_share(&l, &n, 4, 1, 1, "of a request", room);
            put_share(&l, &n, 5, 1, 2, "of a token", room);
        }
        fl_lines_end(&l);
    }
    free(room);
    free_numbers(&n);
    return s;
}
