#include "harness/report/report_partial.h"

#include "harness/report/report_html.h"
#include "harness/report/report_lead.h"

#include <math.h>
#include <string.h>

bool fl_partial(const fl_policy_summary *p, fl_report_column column) {
    const size_t all = p->value[FL_REPORT_ENERGY_J].runs, with = p->value[column].runs;
    return with && with < all;
}

size_t fl_partial_most(const fl_summary *s) {
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(fl_summary_name(s, i), "baseline:default"))
            return s->item[i].value[FL_REPORT_ENERGY_J].runs;
    return 0;
}

bool fl_partial_rows(const fl_summary *s, const fl_policy_summary *p) {
    return p->value[FL_REPORT_ENERGY_J].runs < fl_partial_most(s);
}

static const fl_report_column regret[] = {FL_REPORT_REGRET_STATIC_PCT, FL_REPORT_REGRET_CLAIRVOYANT_PCT};
enum { REGRETS = sizeof regret / sizeof *regret, TOLD_MAX = 20 };

/* The fewest runs that one of its means of regret is over; 0: none leaves any out. */
static size_t fewest(const fl_policy_summary *p) {
    size_t runs = 0;
    for (size_t k = 0; k < REGRETS; k++)
        if (fl_partial(p, regret[k]) && (!runs || p->value[regret[k]].runs < runs))
            runs = p->value[regret[k]].runs;
    return runs;
}

static void note_means(FILE *f, const fl_summary *s) {
    size_t told = 0, more = 0;
    for (size_t k = 0; k < s->count; k++) {
        const fl_policy_summary *p = &s->item[s->order[k]];
        if (!fewest(p))
            continue;
        if (told >= TOLD_MAX) {
            more++;
            continue;
        }
        fputs(told++
                  ? ", "
                  : "<p class=\"note\">* A mean over some of the runs: one above the bound has no regret. With one: ",
              f);
        fl_html_text(f, fl_summary_name(s, s->order[k]));
        fprintf(f, " %zu of %zu", fewest(p), p->value[FL_REPORT_ENERGY_J].runs);
    }
    if (more)
        fprintf(f, ", and %zu more", more);
    if (told)
        fputs(". Energy and time are means over all runs.</p>\n", f);
}

static void note_rows(FILE *f, const fl_summary *s) {
    size_t told = 0, more = 0;
    for (size_t k = 0; k < s->count; k++) {
        const fl_policy_summary *p = &s->item[s->order[k]];
        if (!fl_partial_rows(s, p))
            continue;
        if (told >= TOLD_MAX) {
            more++;
            continue;
        }
        fputs(told++ ? ", "
                     : "<p class=\"note\">* behind a name: all its means are over some of the runs, and others "
                       "ran more. It has: ",
              f);
        fl_html_text(f, fl_summary_name(s, s->order[k]));
        fprintf(f, " %zu of %zu", p->value[FL_REPORT_ENERGY_J].runs, fl_partial_most(s));
    }
    if (more)
        fprintf(f, ", and %zu more", more);
    if (told)
        fputs(".</p>\n", f);
}

static bool of_scope(const fl_summary *s, const fl_report_row *x, size_t policy) {
    return x->policy == policy && x->variant == s->scope->variant && *s->scope->data->clock.item[x->clock] &&
           (s->scope->platform == FL_REPORT_ALL || x->platform == (size_t)s->scope->platform);
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

/* The clock of a static choice in this scope; where there are several, each workload with its own. */
static void note_clocks(FILE *f, const fl_summary *s) {
    const fl_report_data *r = s->scope->data;
    for (size_t i = 0; i < s->count; i++) {
        const size_t policy = s->item[i].policy;
        const fl_report_row *first = NULL;
        bool differ = false;
        size_t told = 0, more = 0;
        for (size_t k = 0; k < r->row_count; k++) {
            const fl_report_row *x = &r->row[k];
            if (!of_scope(s, x, policy))
                continue;
            first = first ? first : x;
            differ |= x->clock != first->clock;
        }
        if (!first)
            continue;
        fputs("<p class=\"note\">", f);
        fl_html_text(f, fl_summary_name(s, i));
        fputs(" is", f);
        if (!differ) {
            fputc(' ', f);
            fl_html_text(f, r->clock.item[first->clock]);
        }
        for (size_t k = 0; differ && k < r->row_count; k++) {
            const fl_report_row *x = &r->row[k];
            bool seen = !of_scope(s, x, policy);
            for (size_t n = 0; n < k && !seen; n++)
                seen = of_scope(s, &r->row[n], policy) && r->row[n].workload == x->workload &&
                       r->row[n].platform == x->platform && r->row[n].clock == x->clock;
            if (seen)
                continue;
            if (told >= TOLD_MAX) {
                more++;
                continue;
            }
            fputs(told++ ? "," : "", f);
            put_where(f, s, x);
        }
        if (more)
            fprintf(f, ", and %zu more in the table of workloads", more);
        fputs(".</p>\n", f);
    }
}

void fl_partial_notes(FILE *f, const fl_summary *s) {
    note_rows(f, s);
    note_means(f, s);
    note_clocks(f, s);
}
