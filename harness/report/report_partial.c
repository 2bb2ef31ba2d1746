#include "harness/report/report_partial.h"

#include "harness/report/report_html.h"

#include <math.h>
#include <string.h>

bool fl_partial(const fl_policy_summary *p, fl_report_column column) {
    const size_t all = p->value[FL_REPORT_ENERGY_J].runs, with = p->value[column].runs;
    return with && with < all;
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

/* The clocks of a static choice in this scope, each once, in the order of the rows. */
static void note_clocks(FILE *f, const fl_summary *s) {
    const fl_report_data *r = s->scope->data;
    for (size_t i = 0; i < s->count; i++) {
        size_t told = 0;
        for (size_t k = 0; k < r->row_count; k++) {
            const fl_report_row *x = &r->row[k];
            bool seen = x->policy != s->item[i].policy || x->variant != s->scope->variant ||
                        !*r->clock.item[x->clock] ||
                        (s->scope->platform != FL_REPORT_ALL && x->platform != (size_t)s->scope->platform);
            for (size_t n = 0; n < k && !seen; n++)
                seen = r->row[n].policy == x->policy && r->row[n].clock == x->clock && r->row[n].variant == x->variant;
            if (seen)
                continue;
            if (told < TOLD_MAX) {
                fputs(told ? "; " : "<p class=\"note\">", f);
                if (!told)
                    fl_html_text(f, fl_summary_name(s, i)), fputs(" is ", f);
                fl_html_text(f, r->clock.item[x->clock]);
            }
            told++;
        }
        if (told)
            fprintf(f, "%s%s.</p>\n", told > TOLD_MAX ? " and others" : "", told > 1 ? ", by workload" : "");
    }
}

void fl_partial_notes(FILE *f, const fl_summary *s) {
    note_means(f, s);
    note_clocks(f, s);
}
