/* The page of a report, from head to end. */
#include "harness/report/page/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/page/page.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct page {
    FILE *f;
    const fl_report_data *r;
    const fl_report_options *o;
    fl_scope *scope;
    size_t scope_count;
    fl_looks looks;
    fl_figures *figures;
    fl_summary first; /* the summary of the first scope, with which the page begins */
} page;

/* ---- the head of the page ---- */

/* style sheet and script lie beside the gnuplot scripts */
static fl_status include(FILE *f, const char *name, fl_diag *d) {
    char path[5000], buf[4096];
    snprintf(path, sizeof path, "%s/%s", fl_place(FL_PLACE_PLOTS, buf, sizeof buf), name);
    FILE *in = fopen(path, "re");
    if (!in)
        return fl_fail(d, FL_IO, path, 0, 0, "cannot open: %s, expected it beside the plots", fl_reason(errno));
    for (size_t got; (got = fread(buf, 1, sizeof buf, in)) > 0;)
        fwrite(buf, 1, got, f);
    const bool bad = ferror(in);
    fclose(in);
    return bad ? fl_fail(d, FL_IO, path, 0, 0, "cannot be read") : FL_OK;
}

static const char *about_of(const page *p) {
    const char *about = p->o->about ? p->o->about : fl_report_text(p->r, "about");
    return about ? about : cJSON_GetStringValue(cJSON_GetObjectItem(p->r->published, "about"));
}

static const char *file_name(const page *p) {
    const char *slash = strrchr(p->r->path, '/');
    return slash ? slash + 1 : p->r->path;
}

static fl_status put_head(const page *p, fl_diag *d) {
    FILE *f = p->f;
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
          f);
    fl_html_text(f, file_name(p));
    fputs(" \xe2\x80\x93 Foldline report</title>\n<style>\n", f);
    fl_status s = include(f, "report.css", d);
    fputs("</style></head>\n<body>\n", f);
    return s;
}

/* ---- the summary ---- */

static void span(FILE *f, const fl_interval *x, double scale, const char *unit) {
    fprintf(f, "%.2f %s", x->mean * scale, unit);
    if (isfinite(x->low) && x->low < x->high)
        fprintf(f, " <span class=\"ci\">[%.2f, %.2f]</span>", x->low * scale, x->high * scale);
}

static void name(FILE *f, const char *policy) {
    fputs("<strong>", f);
    fl_html_text(f, policy);
    fputs("</strong>", f);
}

static bool comparable(const fl_summary *s, size_t i) {
    return i != s->reference && !s->item[i].baseline && isfinite(s->item[i].merit.mean);
}

/* The next best policy to compare with the reference: one that also holds the bound. */
static size_t next_best(const fl_summary *s) {
    for (size_t k = 0; k < s->count; k++)
        if (comparable(s, s->order[k]) && !(s->item[s->order[k]].violations > 0))
            return s->order[k];
    return SIZE_MAX;
}

/* The policies with a better value that break the bound. */
static void put_beyond(FILE *f, const fl_summary *s) {
    size_t beyond = 0;
    for (size_t i = 0; i < s->count; i++)
        beyond +=
            comparable(s, i) && s->item[i].violations > 0 && s->item[i].merit.mean > s->item[s->reference].merit.mean;
    if (beyond)
        fprintf(f, " %zu that save%s more break%s a bound.", beyond, beyond == 1 ? "s" : "", beyond == 1 ? "s" : "");
}

/* What one clock saves without any policy: the first policy has to beat it. Only if every run has such a clock. */
static void put_static(FILE *f, const fl_summary *s) {
    const fl_policy_summary *best = &s->item[s->reference];
    for (size_t i = 0; i < s->count; i++) {
        const fl_policy_summary *p = &s->item[i];
        if (!p->baseline || strcmp(fl_summary_name(s, i), "baseline:static") != 0 || !isfinite(p->merit.mean) ||
            p->violations > 0 || p->value[FL_REPORT_ENERGY_J].runs < s->most)
            continue;
        fprintf(f, " The best static clock saves %s", p->merit.mean > best->merit.mean ? "more: " : "");
        span(f, &p->merit, 1, "%");
        fputs(".", f);
    }
}

static void put_next(FILE *f, const fl_summary *s) {
    const size_t next = next_best(s);
    if (next == SIZE_MAX)
        return;
    const fl_interval *x = &s->item[next].merit_pair.difference; /* next minus the reference */
    fputs(" Of the others, ", f);
    name(f, fl_summary_name(s, next));
    fprintf(f, " saves most; it differs by %.2f points", x->mean);
    if (x->low == 0 && x->high == 0)
        fputs(": in no run is there a difference.", f);
    else if (isfinite(x->low))
        fprintf(f, " <span class=\"ci\">[%.2f, %.2f]</span>: %s", x->low, x->high,
                x->low > 0 || x->high < 0 ? "a difference that the interval supports."
                                          : "the interval contains zero, so neither is shown to be better.");
    else
        fputs("; one run each, so no interval.", f);
}

static void put_short(const page *p) {
    const fl_summary *s = &p->first;
    FILE *f = p->f;
    size_t policies = 0;
    for (size_t i = 0; i < s->count; i++)
        policies += !s->item[i].baseline;
    fputs("<p class=\"short\">", f);
    if (s->reference < s->count) {
        const fl_policy_summary *best = &s->item[s->reference];
        const bool over = best->violations > 0;
        if (over && !p->o->reference) /* a policy that breaks a bound never comes first */
            fputs("No policy holds the bounds in every run, so none comes first. ", f);
        name(f, fl_summary_name(s, s->reference));
        fprintf(f, " %s: ", p->o->reference ? "is the reference" : over ? "saves most of them" : "comes first");
        fl_latency_short(f, s, s->reference);
        fprintf(f, "%s ", fl_merit_name(p->r));
        span(f, &best->merit, 1, "%");
        fputs(" at a slowdown of ", f);
        span(f, &best->value[FL_REPORT_SLOWDOWN], 100, "%");
        if (!over)
            fl_bounds_put(f, p->r);
        else
            fprintf(f, ", beyond a bound in %.0f of %zu runs", best->violations, best->value[FL_REPORT_ENERGY_J].runs);
        fputs(".", f);
        put_static(f, s);
        put_next(f, s);
        put_beyond(f, s);
    }
    fprintf(f,
            "</p>\n<ul class=\"facts\"><li><b>%zu</b> %s</li><li><b>%zu</b> workload%s</li><li><b>%zu</b> seed%s</li>",
            policies, policies == 1 ? "policy" : "policies", p->r->workload.count, p->r->workload.count == 1 ? "" : "s",
            p->r->seed_count, p->r->seed_count == 1 ? "" : "s");
    if (p->r->variant.count > 1)
        fprintf(f, "<li><b>%zu</b> variants</li>", p->r->variant.count);
    fprintf(f, "<li><b>%zu</b> rows</li></ul>\n", p->r->row_count);
    fputs("<p>Platform", f);
    for (size_t i = 0; i < p->r->platform.count; i++) {
        fputs(i ? ", " : p->r->platform.count > 1 ? "s: " : ": ", f);
        fl_html_text(f, *p->r->platform.item[i] ? p->r->platform.item[i] : "not recorded");
    }
    fputs(".</p>\n", f);
}

/* ---- the sections of scopes ---- */

static void scope_title(const page *p, const fl_scope *s, char *text, size_t size) {
    const char *variant = p->r->variant.item[s->variant];
    snprintf(text, size, "%s%s%s",
             *variant                  ? variant
             : p->r->variant.count > 1 ? "plain"
                                       : "",
             p->r->platform.count > 1 ? (*variant || p->r->variant.count > 1 ? ", on " : "On ") : "",
             p->r->platform.count < 2       ? ""
             : s->platform == FL_REPORT_ALL ? "all platforms"
                                            : p->r->platform.item[s->platform]);
}

static fl_status put_scope(const page *p, const fl_summary *s, size_t index, fl_diag *d) {
    char id[64], title[256];
    FILE *f = p->f;
    scope_title(p, s->scope, title, sizeof title);
    if (p->scope_count > 1) {
        fprintf(f, "<details%s class=\"scope\"><summary>", index ? "" : " open");
        fl_html_text(f, title);
        fputs("</summary>\n", f);
    }
    snprintf(id, sizeof id, "policies-%zu", index);
    fl_figures *g = p->figures;
    fl_table_policies(f, s, &p->looks, id);
    fl_status st = fl_figure_pareto(g, s, &p->looks, d);
    fputs("<div class=\"figures\">\n", f);
    if (!st)
        st = fl_figure_merit(g, s, &p->looks, d);
    if (!st)
        st = fl_figure_regret(g, s, d);
    fputs("</div>\n", f);
    if (!st && s->paired) {
        fputs("<h3>Paired comparison and ranks</h3>\n<p class=\"note\">Each difference is taken within a workload and "
              "seed, "
              "so that what the workloads have in common does not blur it.",
              f);
        char intervals[128];
        fl_lead_intervals(s, intervals, sizeof intervals);
        if (*intervals)
            fputs(" Intervals stand for themselves; with many pairs, one in twenty misses by chance.", f);
        fputs("</p>\n", f);
        if (*intervals && s->scope->workloads < 6)
            fprintf(f,
                    "<p class=\"note\">Of %zu workload%s an interval is rough: it cannot reach beyond the values that "
                    "were seen.</p>\n",
                    s->scope->workloads, s->scope->workloads == 1 ? "" : "s");
        snprintf(id, sizeof id, "pairs-%zu", index);
        fl_table_pairs(f, s, id);
        fputs("<div class=\"figures\">\n", f);
        st = fl_figure_ranks(g, s, &p->looks, d);
        fputs("</div>\n", f);
    }
    if (!st)
        st = fl_figures_sensitivity(g, s, d);
    if (p->scope_count > 1)
        fputs("</details>\n", f);
    return st;
}

static fl_status put_scopes(const page *p, fl_diag *d) {
    fputs("<section id=\"policies\"><h2>Policies</h2>\n", p->f);
    fl_status s = put_scope(p, &p->first, 0, d);
    for (size_t i = 1; !s && i < p->scope_count; i++) {
        fl_summary other;
        s = fl_summary_make(&p->scope[i], &p->o->bootstrap, NULL, &other, d);
        if (!s) {
            s = put_scope(p, &other, i, d);
            fl_summary_free(&other);
        }
    }
    fputs("</section>\n", p->f);
    return s;
}

/* ---- the page ---- */

static void put_nav(const page *p) {
    FILE *f = p->f;
    fputs("<nav aria-label=\"Sections\"><a href=\"#policies\">Policies</a>", f);
    if (p->r->regret_path && !p->o->no_figures)
        fputs("<a href=\"#regret\">Regret</a>", f);
    if (p->o->timelines->count && !p->o->no_figures)
        fputs("<a href=\"#timelines\">Timelines</a>", f);
    if (p->r->serves && !p->o->no_figures)
        fputs("<a href=\"#load\">Load</a>", f);
    if (p->o->instructions->count && !p->o->no_figures)
        fputs("<a href=\"#instructions\">Instructions</a>", f);
    if (p->r->published)
        fputs("<a href=\"#published\">Published</a>", f);
    fputs("<a href=\"#by-workload\">Workloads</a><a href=\"#models\">Models</a><a "
          "href=\"#provenance\">Provenance</a></nav>\n",
          f);
}

static fl_status put_timelines(const page *p, fl_diag *d) {
    fl_status s = FL_OK;
    if (!p->o->timelines->count || p->o->no_figures)
        return FL_OK;
    fputs("<section id=\"timelines\"><h2>Clock and power over time</h2>\n<div class=\"figures\">\n", p->f);
    for (size_t i = 0; !s && i < p->o->timelines->count; i++)
        s = fl_figures_timeline(p->figures, p->o->timelines->item[i], d);
    fputs("</div></section>\n", p->f);
    return s;
}

static fl_status put_load(const page *p, fl_diag *d) {
    if (!p->r->serves || p->o->no_figures)
        return FL_OK;
    fputs("<section id=\"load\"><h2>Saving against the load</h2>\n", p->f);
    const fl_status s = fl_figure_load(p->figures, p->r, d);
    fputs("</section>\n", p->f);
    return s;
}

static fl_status put_instructions(const page *p, fl_diag *d) {
    const fl_texts *files = p->o->instructions;
    if (!files->count || p->o->no_figures)
        return FL_OK;
    fputs("<section id=\"instructions\"><h2>What each rank did</h2>\n", p->f);
    const fl_status s = fl_figure_gantt(p->figures, (const char *const *)files->item, files->count, d);
    fputs("</section>\n", p->f);
    return s;
}

static fl_status put_regret(const page *p, fl_diag *d) {
    if (!p->r->regret_path || p->o->no_figures)
        return FL_OK;
    fputs(
        "<section id=\"regret\"><h2>Cumulative regret</h2>\n<p>What each policy lost against always playing the best "
        "clock, in the reward of EnergyUCB Eq. 3, step by step. The policies that keep one clock are the grey band. "
        "On linear axes a policy that learns bends; on two logarithmic ones it is flatter than the dotted line.</p>\n",
        p->f);
    fl_status s = fl_figures_curves(p->figures, p->r, d);
    fputs("</section>\n", p->f);
    return s;
}

static fl_status put_body(const page *p, fl_diag *d) {
    FILE *f = p->f;
    const char *about = about_of(p), *version = fl_report_text(p->r, "foldline");
    fputs("<header><p class=\"kind\">Foldline report</p><h1>", f);
    fl_html_text(f, about ? about : file_name(p));
    fputs("</h1>\n", f);
    put_nav(p);
    fputs("</header>\n<main>\n<section id=\"short\"><h2>In short</h2>\n", f);
    put_short(p);
    if (!p->r->provenance)
        fputs("<p class=\"warn\">No record of where this result comes from lies beside it.</p>\n", f);
    else if (!version || strcmp(version, FL_VERSION) != 0)
        fputs("<p class=\"warn\">This result was made by another version of foldline than this page.</p>\n", f);
    fputs("</section>\n", f);
    fl_status s = put_scopes(p, d);
    if (!s)
        s = put_regret(p, d);
    if (!s)
        s = put_timelines(p, d);
    if (!s)
        s = put_load(p, d);
    if (!s)
        s = put_instructions(p, d);
    if (s)
        return s;
    fl_table_published(f, p->r);
    fputs("<section id=\"by-workload\"><h2>Workload by workload</h2>\n", f);
    fl_table_workloads(f, p->r, &p->o->bootstrap);
    fputs("</section>\n<section id=\"models\"><h2>Platforms and models</h2>\n", f);
    fl_table_models(f, p->r);
    fputs("</section>\n<section id=\"provenance\"><h2>Provenance</h2>\n", f);
    fl_list_provenance(f, p->r, &p->o->bootstrap);
    fputs("</section>\n</main>\n<script>\n", f);
    s = include(f, "report.js", d);
    fputs("</script>\n</body></html>\n", f);
    return s;
}

fl_status fl_report_write(const fl_report_data *r, const fl_report_options *o, const char *path, fl_diag *d) {
    page p = {.r = r, .o = o};
    fl_scopes_make(r, &p.scope, &p.scope_count);
    fl_looks_make(r, &p.looks);
    fl_status s = fl_summary_make(&p.scope[0], &o->bootstrap, o->reference, &p.first, d);
    fl_output *out = s ? NULL : fl_output_open(path, d);
    if (!s && !out)
        s = d->status;
    if (!s) {
        p.f = fl_output_file(out);
        fl_figures figures = {.f = p.f, .input = r->path, .off = o->no_figures};
        p.figures = &figures;
        s = put_head(&p, d);
        if (!s)
            s = put_body(&p, d);
        if (s)
            fl_output_abort(out);
        else
            s = fl_output_commit(out, d);
    }
    fl_summary_free(&p.first);
    fl_looks_free(&p.looks);
    fl_scopes_free(p.scope, p.scope_count);
    return s;
}
