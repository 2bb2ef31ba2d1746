/* Texts of a report: HTML, the lead, latencies, partial means. */
#include "harness/report/data/inside.h"

#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- HTML ---- */

void fl_html_text(FILE *f, const char *text) {
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", f);
        else if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if (*text == '"')
            fputs("&quot;", f);
        else if ((unsigned char)*text >= 32 || *text == '\n')
            fputc(*text, f);
    }
}

void fl_html_label(FILE *f, const char *label) {
    char part[512];
    while (*label) {
        size_t n = strcspn(label, ":,=-");
        n += label[n] != 0;
        snprintf(part, sizeof part, "%.*s", (int)n, label);
        fl_html_text(f, part);
        label += n;
        if (*label)
            fputs("<wbr>", f);
    }
}

/* ---- the two quantities of the first picture ---- */

const char *fl_merit_name(const fl_report_data *r) {
    const char *o = fl_report_objective(r);
    return !strcmp(o, "edp") ? "EDP saved" : !strcmp(o, "ed2p") ? "ED2P saved" : "energy saved";
}

/* The tightest upper limit that was requested for a column; NAN: none. */
static double promised(const fl_report_data *r, const char *column) {
    double limit = NAN;
    for (size_t i = 0; i < r->promises.count; i++)
        if (r->promises.item[i].below && !strcmp(r->promises.item[i].column, column))
            limit = fmin(limit, r->promises.item[i].limit);
    return limit;
}

bool fl_lead_anywhere(const fl_summary *s, fl_report_column column) {
    for (size_t i = 0; i < s->count; i++)
        if (isfinite(s->item[i].value[column].mean))
            return true;
    return false;
}

void fl_lead_of(const fl_summary *s, fl_lead *lead) {
    const char *merit = fl_merit_name(s->scope->data);
    if (fl_lead_anywhere(s, FL_REPORT_LATENCY_P99_S) && fl_lead_anywhere(s, FL_REPORT_REQUEST_J)) {
        const double bound = promised(s->scope->data, "latency_p99_s");
        double longest = isfinite(bound) ? bound : 0;
        for (size_t i = 0; i < s->count; i++)
            longest = fmax(longest, s->item[i].value[FL_REPORT_LATENCY_P99_S].mean);
        const bool seconds = longest >= 10; /* five digits of milliseconds */
        const double scale = seconds ? 1 : 1e3;
        *lead = (fl_lead){
            .x = {FL_REPORT_LATENCY_P99_S, scale, "latency p99", "", seconds ? " s" : " ms", -4, false, scale * bound},
            .y = {FL_REPORT_REQUEST_J, 1, "energy per request", "energy per request, J", " J", -4, false, NAN},
            .title = "Energy per request against latency"};
        snprintf(lead->x.label, sizeof lead->x.label, "latency p99,%s", lead->x.unit);
        return;
    }
    *lead = (fl_lead){.x = {FL_REPORT_SLOWDOWN, 100, "slowdown", "slowdown against the driver's default, %", " %", 2,
                            false, isfinite(s->scope->data->bound) ? 100 * s->scope->data->bound : (double)NAN},
                      .y = {-1, 1, merit, "", " %", 2, true, NAN}};
    snprintf(lead->y.label, sizeof lead->y.label, "%s, %%", merit);
    snprintf(lead->title, sizeof lead->title, "%s against slowdown", *merit == 'e' ? "Energy saved" : merit);
}

char *fl_lead_head(const fl_lead_axis *a, char buf[96]) {
    snprintf(buf, 96, "%s,%s", a->name, a->unit);
    return buf;
}

fl_interval fl_lead_value(const fl_lead_axis *a, const fl_policy_summary *p) {
    fl_interval v = a->column < 0 ? p->merit : p->value[a->column];
    v.mean *= a->scale;
    v.low *= a->scale;
    v.high *= a->scale;
    return v;
}

char *fl_lead_number(double value, char buf[32]) {
    const double size = fabs(value);
    snprintf(buf, 32, size >= 9999.5 && size < 1e15 ? "%.0f" : "%.4g", value);
    return buf;
}

char *fl_lead_short(const char *workload, char buf[256]) {
    const char *slash = strrchr(workload, '/'), *name = slash && slash[1] ? slash + 1 : workload;
    static const char *const ending[] = {".gz", ".csv", ".json", ".sqlite", ".nsys"}; /* in this order, from the end */
    snprintf(buf, 256, "%s", name);
    for (size_t i = 0; i < FL_COUNT(ending); i++) {
        const size_t length = strlen(buf), part = strlen(ending[i]);
        if (length > part && !strcmp(buf + length - part, ending[i]))
            buf[length - part] = 0;
    }
    return buf;
}

/* The names that occur once, else their number. */
static int put_names(char *text, size_t size, const fl_names *n, const char *many) {
    char name[256];
    return n->count == 1 ? snprintf(text, size, "%s", **n->item ? fl_lead_short(n->item[0], name) : "not recorded")
                         : snprintf(text, size, "%zu %s", n->count, many);
}

void fl_lead_about(const fl_summary *s, char *text, size_t size) {
    const fl_report_data *r = s->scope->data;
    const char *variant = r->variant.item[s->scope->variant];
    char name[256];
    size_t used = (size_t)put_names(text, size, &r->workload, "workloads");
    if (used < size && s->scope->platform != FL_REPORT_ALL)
        used += (size_t)snprintf(text + used, size - used, " on %s",
                                 fl_lead_short(r->platform.item[s->scope->platform], name));
    else if (used < size && (r->platform.count != 1 || *r->platform.item[0])) {
        used += (size_t)snprintf(text + used, size - used, " on ");
        if (used < size)
            used += (size_t)put_names(text + used, size - used, &r->platform, "platforms");
    }
    if (used < size && *variant)
        used += (size_t)snprintf(text + used, size - used, ", %s", variant);
    if (used < size && isfinite(r->bound))
        used += (size_t)snprintf(text + used, size - used, ", bound %.4g %% slowdown", 100 * r->bound);
    for (size_t i = 0; i < r->promises.count && used < size; i++) {
        char limit[FL_PROMISE_TEXT];
        used += (size_t)snprintf(text + used, size - used, ", %s", fl_promise_text(&r->promises.item[i], limit));
    }
}

void fl_lead_intervals(const fl_summary *s, char *text, size_t size) {
    const size_t w = s->scope->workloads, k = s->scope->seeds;
    bool any = false;
    *text = 0;
    for (size_t i = 0; i < s->count; i++)
        any |= s->item[i].merit.low < s->item[i].merit.high;
    if (!any)
        return;
    if (w > 1 && k > 1)
        snprintf(text, size, "95 %% intervals over %zu workloads and %zu seeds", w, k);
    else
        snprintf(text, size, "95 %% intervals over %zu %s", w > 1 ? w : k, w > 1 ? "workloads" : "seeds");
}

/* ---- requests and bounds ---- */

static bool drawable(const fl_policy_summary *p) {
    return isfinite(p->value[FL_REPORT_LATENCY_P99_S].mean) && isfinite(p->value[FL_REPORT_REQUEST_J].mean);
}

static void put_pair(FILE *f, const fl_lead *lead, const fl_policy_summary *p, const char *between) {
    char j[32], p99[32];
    fprintf(f, "%s%s%s%s%s", fl_lead_number(fl_lead_value(&lead->y, p).mean, j), lead->y.unit, between,
            fl_lead_number(fl_lead_value(&lead->x, p).mean, p99), lead->x.unit);
}

void fl_latency_short(FILE *f, const fl_summary *s, size_t item) {
    fl_lead lead;
    if (!drawable(&s->item[item]))
        return;
    fl_lead_of(s, &lead);
    put_pair(f, &lead, &s->item[item], " per request at a p99 latency of ");
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(fl_summary_name(s, i), "baseline:default") && drawable(&s->item[i])) {
            fputs(" (the driver's default: ", f);
            put_pair(f, &lead, &s->item[i], " at ");
            fputc(')', f);
        }
    fputs("; ", f);
}

void fl_bounds_put(FILE *f, const fl_report_data *r) {
    const char *before = ", under the bound of ";
    if (isfinite(r->bound)) {
        fprintf(f, "%s%g %%", before, 100 * r->bound);
        before = ", ";
    }
    for (size_t i = 0; i < r->promises.count; i++) {
        char text[FL_PROMISE_TEXT];
        fputs(before, f);
        fl_html_text(f, fl_promise_text(&r->promises.item[i], text));
        before = ", ";
    }
}

void fl_bounds_cell(FILE *f, const fl_scope *sc, size_t item) {
    const fl_report_data *r = sc->data;
    const size_t runs = sc->first[item + 1] - sc->first[item];
    size_t told = 0, broken[FL_PROMISES_MAX + 1] = {0};
    char text[FL_PROMISE_TEXT];
    for (size_t i = sc->first[item]; i < sc->first[item + 1]; i++)
        for (size_t bit = 0; bit <= r->promises.count; bit++)
            broken[bit] += r->row[sc->row[i]].broken >> bit & 1;
    fputs("<td class=\"text\">", f);
    for (size_t bit = 0; bit <= r->promises.count; bit++) {
        if (!broken[bit])
            continue;
        fl_html_text(f, told++ ? ", " : "");
        fl_html_text(f, fl_promises_name(&r->promises, r->bound, bit, text));
        fprintf(f, " in %zu of %zu", broken[bit], runs);
    }
    fputs(told ? "</td>" : "none</td>", f);
}

/* ---- means that leave out runs ---- */

bool fl_partial(const fl_policy_summary *p, fl_report_column column) {
    const size_t all = p->value[FL_REPORT_ENERGY_J].runs, with = p->value[column].runs;
    return with && with < all;
}

bool fl_partial_rows(const fl_summary *s, const fl_policy_summary *p) {
    return p->value[FL_REPORT_ENERGY_J].runs < s->most;
}

static const fl_report_column regret[] = {FL_REPORT_REGRET_STATIC_PCT, FL_REPORT_REGRET_CLAIRVOYANT_PCT};
enum { REGRETS = sizeof regret / sizeof *regret, TOLD_MAX = 20 };

/* The smallest number of runs behind one of its means of regret; 0: none leaves any run out. */
static size_t fewest(const fl_policy_summary *p) {
    size_t runs = 0;
    for (size_t k = 0; k < REGRETS; k++)
        if (fl_partial(p, regret[k]) && (!runs || p->value[regret[k]].runs < runs))
            runs = p->value[regret[k]].runs;
    return runs;
}

/* Names the policies whose means are over some of the runs: those of regret, or, with rows, all of them. */
static void note_policies(FILE *f, const fl_summary *s, bool rows, const char *opening, const char *closing) {
    size_t told = 0, more = 0;
    for (size_t k = 0; k < s->count; k++) {
        const fl_policy_summary *p = &s->item[s->order[k]];
        const size_t ran = p->value[FL_REPORT_ENERGY_J].runs;
        if (rows ? !fl_partial_rows(s, p) : !fewest(p))
            continue;
        if (told >= TOLD_MAX) {
            more++;
            continue;
        }
        fputs(told++ ? ", " : opening, f);
        fl_html_text(f, fl_summary_name(s, s->order[k]));
        fprintf(f, " %zu of %zu", rows ? ran : fewest(p), rows ? s->most : ran);
    }
    if (more)
        fprintf(f, ", and %zu more", more);
    if (told)
        fputs(closing, f);
}

static void put_where(FILE *f, const fl_summary *s, const fl_report_row *x) {
    const fl_report_data *r = s->scope->data;
    char name[256];
    fputc(' ', f);
    fl_html_text(f, fl_lead_short(r->workload.item[x->workload], name));
    if (s->scope->platform == FL_REPORT_ALL && r->platform.count > 1) {
        fputs(" on ", f);
        fl_html_text(f, r->platform.item[x->platform]);
    }
    fputs(": ", f);
    fl_html_text(f, r->clock.item[x->clock]);
}

static bool same_choice(const void *owner, uint32_t index, const void *key) {
    const fl_report_row *a = &((const fl_report_data *)owner)->row[index], *b = key;
    return a->workload == b->workload && a->platform == b->platform && a->clock == b->clock;
}

/* Each workload with its clock, without repeats. */
static void put_each(FILE *f, const fl_summary *s, size_t i) {
    const fl_scope *sc = s->scope;
    fl_intern seen = {0};
    size_t told = 0, more = 0;
    for (size_t k = sc->first[i]; k < sc->first[i + 1]; k++) {
        const fl_report_row *x = &sc->data->row[sc->row[k]];
        if (!*sc->data->clock.item[x->clock])
            continue;
        const size_t key[] = {x->workload, x->platform, x->clock};
        fl_intern_slot *slot = fl_must(fl_intern_find(&seen, fl_hash(key, sizeof key), same_choice, sc->data, x));
        if (slot->index == UINT32_MAX) {
            slot->index = (uint32_t)sc->row[k];
            if (told >= TOLD_MAX) {
                more++;
                continue;
            }
            fputs(told++ ? "," : "", f);
            put_where(f, s, x);
        }
    }
    if (more)
        fprintf(f, ", and %zu more in the table of workloads", more);
    fl_intern_free(&seen);
}

/* The clock of a static choice in this scope; where there are several, each workload with its own. */
static void note_clocks(FILE *f, const fl_summary *s) {
    const fl_scope *sc = s->scope;
    const fl_report_data *r = sc->data;
    for (size_t i = 0; i < s->count; i++) {
        const fl_report_row *first = NULL;
        bool differ = false;
        for (size_t k = sc->first[i]; k < sc->first[i + 1]; k++) {
            const fl_report_row *x = &r->row[sc->row[k]];
            if (!*r->clock.item[x->clock])
                continue;
            first = first ? first : x;
            differ |= x->clock != first->clock;
        }
        if (!first)
            continue;
        fputs("<p class=\"note\">", f);
        fl_html_text(f, fl_summary_name(s, i));
        fputs(" is", f);
        if (differ) {
            put_each(f, s, i);
        } else {
            fputc(' ', f);
            fl_html_text(f, r->clock.item[first->clock]);
        }
        fputs(".</p>\n", f);
    }
}

void fl_partial_notes(FILE *f, const fl_summary *s) {
    note_policies(f, s, true,
                  "<p class=\"note\">* behind a name: all its means are over some of the runs, and others "
                  "ran more. It has: ",
                  ".</p>\n");
    note_policies(f, s, false,
                  "<p class=\"note\">* A mean over some of the runs: one above the bound has no regret. With one: ",
                  ". Energy and time are means over all runs.</p>\n");
    note_clocks(f, s);
}
