/* The figures of a report, as SVG within the page. */
#include "harness/report/page/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- an SVG within the page ---- */

/* Colours of plots/style.gp and their names in report.css. */
static const struct {
    int rgb;
    const char *name;
} colour[] = {{0x000000, "--ink"},  {0x6b747d, "--c0"},    {0x0072b2, "--c1"},    {0xd55e00, "--c2"},
              {0x00845f, "--c3"},   {0xb8558f, "--c4"},    {0xb37400, "--c5"},    {0x2f93cf, "--c6"},
              {0x1b1f24, "--c7"},   {0x7d6c00, "--c8"},    {0x5b6570, "--quiet"}, {0xe3e7eb, "--grid"},
              {0xd7dce1, "--band"}, {0xc3c9cf, "--faint"}, {0xa8330a, "--bad"},   {0xffffff, "--paper"}};

/* Other parts that the embedding removes or changes. */
static const struct {
    const char *from, *to;
} word[] = {{" color=\"black\"", ""},
            {" color=\"white\"", ""},
            {"='black'", "='currentColor'"},
            {"=\"black\"", "=\"currentColor\""},
            {" = 'black'", "='currentColor'"},
            {"xlink:href", "href"},
            {" font-family=\"DejaVu Sans\"", ""}};

static const char *put_colour(FILE *f, const char *at) {
    char *end = NULL;
    const long r = strtol(at + 4, &end, 10), g = *end == ',' ? strtol(end + 1, &end, 10) : 0,
               b = *end == ',' ? strtol(end + 1, &end, 10) : 0;
    if (*end != ')')
        return NULL;
    for (size_t i = 0; i < sizeof colour / sizeof *colour; i++)
        if (colour[i].rgb == (r << 16 | g << 8 | b)) {
            fprintf(f, "var(%s)", colour[i].name);
            return end + 1;
        }
    return NULL;
}

/* gnuplot's form of a mark's text, which it writes unchanged. */
static const char *put_tip(FILE *f, const char *at) {
    static const char begin[] = " onmousemove=\"gnuplot_svg.showHypertext(evt,'",
                      end[] = "')\" onmouseout=\"gnuplot_svg.hideHypertext()\"><title> </title>";
    if (strncmp(at, begin, sizeof begin - 1) != 0)
        return NULL;
    const char *text = at + sizeof begin - 1, *stop = strstr(text, end);
    if (!stop)
        return NULL;
    char *copy = fl_must(strndup(text, (size_t)(stop - text)));
    fputs(" class=\"tip\"><title>", f);
    fl_html_text(f, copy);
    fputs("</title>", f);
    free(copy);
    return stop + sizeof end - 1;
}

static void put_line(FILE *f, const char *at, const char *end) {
    while (at < end) {
        const char *next = !strncmp(at, "rgb(", 4) ? put_colour(f, at) : *at == ' ' ? put_tip(f, at) : NULL;
        for (size_t i = 0; !next && i < sizeof word / sizeof *word; i++)
            if (!strncmp(at, word[i].from, strlen(word[i].from))) {
                fputs(word[i].to, f);
                next = at + strlen(word[i].from);
            }
        if (!next)
            fputc(*at, f);
        at = next ? next : at + 1;
    }
    fputc('\n', f);
}

static bool begins(const char *line, const char *with) {
    line += strspn(line, " \t");
    return !strncmp(line, with, strlen(with));
}

/* The SVG without the parts that a page supplies. Colours become those of the style sheet (so that one picture serves
 * light, dark and print), fonts are removed, and texts for the mouse become <title>s. marks: include the definitions of
 * the shapes; once on a page is enough, because they are the same in all pictures. */
static void fl_embed(FILE *page, const char *svg, const char *class_name, bool marks) {
    const char *box = strstr(svg, "viewBox=\""), *at = strstr(svg, "<g id=\"gnuplot_canvas\">");
    if (!box || !at)
        return;
    box += 9;
    fprintf(page, "<svg class=\"%s\" viewBox=\"%.*s\">\n", class_name, (int)strcspn(box, "\""), box);
    bool in_marks = false, in_filter = false;
    for (const char *next; *at; at = next) {
        const char *end = at + strcspn(at, "\n");
        next = *end ? end + 1 : end;
        if (begins(at, "<defs>"))
            in_marks = true;
        in_filter |= begins(at, "<filter");
        const bool skip = in_filter || (in_marks && !marks) || begins(at, "<rect x=\"0\" y=\"0\"") || at == end;
        if (begins(at, "</filter>"))
            in_filter = false;
        if (begins(at, "</defs>"))
            in_marks = false;
        if (skip)
            continue;
        if (begins(at, "<g fill=\"none\"") && begins(next, "</g>")) { /* an empty group */
            next += strcspn(next, "\n");
            next += *next == '\n';
            continue;
        }
        if (begins(at, "<g id=\"gnuplot_"))
            fputs("<g>\n", page);
        else
            put_line(page, at, end);
    }
}

/* ---- the figures ---- */

enum { CURVES_MAX = 24, STUDIES_MAX = 24 };

static void begin(fl_figures *g, const char *class_name, const char *alt) {
    fprintf(g->f, "<figure%s><div class=\"plot\" role=\"img\" aria-label=\"", class_name);
    fl_html_text(g->f, alt);
    fputs("\">\n", g->f);
}

static void caption(fl_figures *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void caption(fl_figures *g, const char *format, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, format);
    fl_must_have(vasprintf(&text, format, args) >= 0);
    va_end(args);
    fputs("</div><figcaption>", g->f);
    fl_html_text(g->f, text);
    fputs("</figcaption></figure>\n", g->f);
    free(text);
}

/* Draws a finished picture and embeds it in the page. */
static fl_status put(fl_figures *g, fl_picture *p, const char *script, const char *class_name, fl_diag *d) {
    char *svg = NULL;
    size_t size;
    fl_status s = fl_picture_draw(p, script, "page", g->input, &svg, &size, d);
    if (!s)
        fl_embed(g->f, svg, class_name, !g->drawn++);
    free(svg);
    return s;
}

/* Returns "; bars: 95 % intervals over ..." or nothing. */
static const char *bars(const fl_summary *s, bool drawn, char text[160]) {
    char intervals[128] = "";
    if (!drawn)
        return strcpy(text, "");
    fl_lead_intervals(s, intervals, sizeof intervals);
    snprintf(text, 160, "%s%s", *intervals ? "; bars: " : "", intervals);
    return text;
}

/* A function that fills an open picture. */
typedef fl_status fill(fl_picture *p, void *from, size_t *drawn, fl_diag *d);

/* A figure as wide as the page; a phone shows a second drawing of it. It stays open for its caption if *drawn. */
static fl_status put_wide(fl_figures *g, fill *make, void *from, const char *script, const char *alt, size_t *drawn,
                          fl_diag *d) {
    static const struct {
        fl_picture_size size;
        const char *class_name;
    } drawing[] = {{FL_PICTURE_WIDE, "for-wide"}, {FL_PICTURE_NARROW, "for-narrow"}};
    fl_status s = FL_OK;
    *drawn = 0;
    for (size_t i = 0; !s && i < 2; i++) {
        fl_picture p = {0};
        s = fl_picture_open(&p, drawing[i].size, d);
        if (!s)
            s = make(&p, from, drawn, d);
        if (!s && *drawn && !i)
            begin(g, " class=\"lead\"", alt);
        if (!s && *drawn)
            s = put(g, &p, script, drawing[i].class_name, d);
        fl_picture_close(&p);
    }
    return s;
}

typedef struct pareto {
    const fl_summary *s;
    const fl_looks *looks;
    bool bars;
} pareto;

static fl_status fill_pareto(fl_picture *p, void *from, size_t *drawn, fl_diag *d) {
    pareto *x = from;
    (void)d;
    *drawn = fl_picture_pareto(p, x->s, x->looks);
    x->bars = p->bars;
    return FL_OK;
}

fl_status fl_figure_pareto(fl_figures *g, const fl_summary *s, const fl_looks *looks, fl_diag *d) {
    char about[512], alt[700], over[160];
    pareto from = {s, looks, false};
    fl_lead lead;
    size_t drawn;
    if (g->off)
        return FL_OK;
    fl_lead_of(s, &lead);
    fl_lead_about(s, about, sizeof about);
    snprintf(alt, sizeof alt, "Scatter plot of %zu policies and baselines, %s: %s over %s; the table has the numbers.",
             s->count, about, lead.y.name, lead.x.name);
    const fl_status st = put_wide(g, fill_pareto, &from, "pareto", alt, &drawn, d);
    if (!st && drawn)
        caption(g,
                "%s: %s. %s and left is better. The dotted line is the Pareto front of the policies that hold all "
                "bounds%s. "
                "A ring around a mark is one more policy at the same place; its name stands below that of the mark%s.",
                lead.title, about, lead.y.more ? "Up" : "Down",
                isfinite(lead.x.bound)
                    ? ", the dashed line is the bound. Hollow marks, thin rings and boxed crosses break it in a run"
                    : "",
                bars(s, from.bars, over));
    return st;
}

static fl_status rows(fl_figures *g, const fl_summary *s, const fl_looks *looks, bool ranks, fl_diag *d) {
    char about[512], over[160], merit[64];
    fl_picture p = {0};
    size_t drawn = 0;
    if (g->off)
        return FL_OK;
    fl_status st = fl_picture_open(&p, FL_PICTURE_PANEL, d);
    if (!st)
        drawn = fl_picture_rows(&p, s, looks, ranks);
    fl_lead_about(s, about, sizeof about);
    snprintf(merit, sizeof merit, "%s", fl_merit_name(s->scope->data));
    *merit = (char)toupper((unsigned char)*merit);
    if (!st && drawn && (!ranks || drawn > 1)) {
        begin(g, "",
              ranks ? "Dot plot of mean ranks; the table of pairs has the numbers."
                    : "Dot plot of the policies, the best first; the table has the numbers.");
        st = put(g, &p, "rows", "", d);
        if (!st && ranks)
            caption(g,
                    "Mean rank by %s, %s%s. A run that breaks a bound ranks behind those that hold it. Baselines are "
                    "not ranked%s.",
                    fl_merit_name(s->scope->data), about, bars(s, p.bars, over),
                    drawn == FL_ROWS_MAX ? "; the best 40" : "");
        else if (!st)
            caption(g, "%s against the driver's default, the best first and last who breaks a bound%s: %s%s.", merit,
                    drawn == FL_ROWS_MAX ? " (40)" : "", about, bars(s, p.bars, over));
    }
    fl_picture_close(&p);
    return st;
}

fl_status fl_figure_merit(fl_figures *g, const fl_summary *s, const fl_looks *looks, fl_diag *d) {
    return rows(g, s, looks, false, d);
}

fl_status fl_figure_ranks(fl_figures *g, const fl_summary *s, const fl_looks *looks, fl_diag *d) {
    return rows(g, s, looks, true, d);
}

fl_status fl_figure_regret(fl_figures *g, const fl_summary *s, fl_diag *d) {
    fl_picture p = {0};
    size_t drawn = 0;
    bool any = false;
    for (size_t i = 0; i < s->count; i++)
        any |= !s->item[i].baseline && (isfinite(s->item[i].value[FL_REPORT_REGRET_STATIC_PCT].mean) ||
                                        isfinite(s->item[i].value[FL_REPORT_REGRET_CLAIRVOYANT_PCT].mean));
    if (g->off || !any)
        return FL_OK;
    fl_status st = fl_picture_open(&p, FL_PICTURE_PANEL, d);
    if (!st)
        drawn = fl_picture_regret(&p, s);
    if (!st && drawn) {
        begin(g, "", "Bar chart of the regret of each policy; the table has the numbers.");
        st = put(g, &p, "regret", "", d);
        if (!st)
            caption(g, "What each policy left on the table. Hatched: a mean over the runs that hold the bound; n/a: no "
                       "run holds it.");
    }
    fl_picture_close(&p);
    return st;
}

static void count_study(void *user, const fl_study *t) {
    (void)t;
    ++*(size_t *)user;
}

fl_status fl_figures_sensitivity(fl_figures *g, const fl_summary *s, fl_diag *d) {
    size_t studies = 0;
    char over[160];
    fl_status st = FL_OK;
    if (!g->off)
        fl_studies(s, count_study, &studies);
    if (!studies)
        return FL_OK;
    fputs("<h3>Sensitivity to parameters</h3>\n<div class=\"figures\">\n", g->f);
    for (size_t i = 0; !st && i < studies && i < STUDIES_MAX; i++) {
        fl_picture p = {0};
        st = fl_picture_open(&p, FL_PICTURE_PANEL, d);
        if (!st) {
            fl_picture_studies(&p, s, i, 1);
            begin(g, "", "Line charts: saving and slowdown over a parameter; the table has the numbers.");
            st = put(g, &p, "lines", "", d);
        }
        if (!st)
            caption(g,
                    "Ticks stand at the values tried; a line for each setting of the others, or, where they are many, "
                    "a bundle and its mean%s.",
                    bars(s, p.bars, over));
        fl_picture_close(&p);
    }
    fputs("</div>\n", g->f);
    if (studies > STUDIES_MAX)
        fprintf(g->f, "<p class=\"note\">%d of %zu parameters are drawn.</p>\n", STUDIES_MAX, studies);
    return st;
}

fl_status fl_figures_curves(fl_figures *g, const fl_report_data *r, fl_diag *d) {
    fl_curves c = {0};
    size_t shown = 0;
    fl_status st = g->off ? FL_OK : fl_curves_read(r->regret_path, r, &c, d);
    if (g->off)
        return FL_OK;
    fputs("<div class=\"figures\">\n", g->f);
    for (size_t i = 0; !st && i < c.group.count && i < CURVES_MAX; i++) {
        fl_picture p = {0};
        size_t drawn = 0;
        char alt[600];
        snprintf(alt, sizeof alt, "Line chart: cumulative regret of each policy over the steps of %s.",
                 c.group.item[i]);
        st = fl_picture_open(&p, FL_PICTURE_PANEL, d);
        if (!st)
            drawn = fl_picture_curves(&p, &c, i, 1);
        if (!st && drawn) {
            begin(g, "", alt);
            st = put(g, &p, "lines", "", d);
            if (!st)
                caption(g, "%s.%s", c.group.item[i],
                        p.x0 > 0 ? " Both axes logarithmic: policies without regret are not drawn; dotted, a steady "
                                   "loss."
                                 : "");
            shown++;
        }
        fl_picture_close(&p);
    }
    fputs("</div>\n", g->f);
    if (c.group.count > CURVES_MAX)
        fprintf(g->f, "<p class=\"note\">%zu of %zu workloads and variants are drawn; the file has them all.</p>\n",
                shown, c.group.count);
    fl_curves_free(&c);
    return st;
}

fl_status fl_figures_timeline(fl_figures *g, const char *path, fl_diag *d) {
    static const struct {
        fl_status (*make)(fl_picture *p, const fl_telemetry *t, const char *path, size_t *drawn, fl_diag *d);
        const char *script, *alt, *what;
    } figure[] = {{fl_picture_timeline, "lines", "Line charts: SM clock and power over time.",
                   "clock and power over time, dashed the power limit in force where the file knows it"},
                  {fl_picture_residency, "residency", "Bar chart: share of time at each SM clock.",
                   "residency, the share of time at each SM clock, all GPUs together"}};
    fl_telemetry t = {0};
    fl_left_out left = {0};
    const char *slash = strrchr(path, '/');
    fl_status s = g->off ? FL_OK : fl_telemetry_read(path, &t, &left, d);
    if (!s)
        fl_left_tell(path, &left);
    for (size_t i = 0; !s && !g->off && i < 2; i++) {
        fl_picture p = {0};
        size_t drawn = 0;
        s = fl_picture_open(&p, FL_PICTURE_PANEL, d);
        if (!s)
            s = figure[i].make(&p, &t, path, &drawn, d);
        if (!s && drawn) {
            begin(g, "", figure[i].alt);
            s = put(g, &p, figure[i].script, "", d);
            if (!s)
                caption(g, "%s: %s.", slash ? slash + 1 : path, figure[i].what);
        }
        fl_picture_close(&p);
    }
    fl_telemetry_free(&t);
    return s;
}

static fl_status fill_load(fl_picture *p, void *from, size_t *drawn, fl_diag *d) {
    const fl_report_data *const *r = from;
    return fl_picture_load(p, (*r)->path, drawn, d);
}

fl_status fl_figure_load(fl_figures *g, const fl_report_data *r, fl_diag *d) {
    size_t drawn = 0;
    if (g->off || !r->serves)
        return FL_OK;
    const fl_status s = put_wide(g, fill_load, &r, "lines",
                                 "Line charts: energy that each policy saves over the requests that arrive; the table "
                                 "of workloads has the numbers.",
                                 &drawn, d);
    if (!s && drawn)
        caption(g, "What a policy saves against the load: lines are means of runs at one load; hollow marks break a "
                   "bound; crossed ones serve less than 95 %% of what arrives.");
    return s;
}

typedef struct plans {
    const char *const *path;
    size_t count;
} plans;

static fl_status fill_gantt(fl_picture *p, void *from, size_t *drawn, fl_diag *d) {
    const plans *x = from;
    return fl_picture_gantt(p, x->path, x->count, drawn, d);
}

fl_status fl_figure_gantt(fl_figures *g, const char *const *path, size_t count, fl_diag *d) {
    plans from = {path, count};
    size_t drawn = 0;
    if (g->off || !count)
        return FL_OK;
    if (count > FL_GANTT_PLANS_MAX)
        return fl_refuse(d, "--instructions: %zu files, expected one or two", count);
    const fl_status s = put_wide(g, fill_gantt, &from, "gantt",
                                 "Gantt chart: the instructions of each rank over time, coloured by clock, and the "
                                 "power of all boards.",
                                 &drawn, d);
    if (!s)
        caption(g,
                "%s: tall bars are backward, lower ones forward, in the colour of their clock; grey: transfers and "
                "loads; sand: waiting. Below: what all boards draw together.",
                count > 1 ? "Two plans" : "One plan");
    return s;
}
