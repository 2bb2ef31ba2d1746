#include "harness/report/data/partial.h"

#include "harness/report/data/html.h"
#include "harness/report/data/lead.h"

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
static fl_status put_each(FILE *f, const fl_summary *s, size_t i, fl_diag *d) {
    const fl_scope *sc = s->scope;
    fl_intern seen = {0};
    fl_status st = FL_OK;
    size_t told = 0, more = 0;
    for (size_t k = sc->first[i]; !st && k < sc->first[i + 1]; k++) {
        const fl_report_row *x = &sc->data->row[sc->row[k]];
        if (!*sc->data->clock.item[x->clock])
            continue;
        const size_t key[] = {x->workload, x->platform, x->clock};
        fl_intern_slot *slot = fl_intern_find(&seen, fl_hash(key, sizeof key), same_choice, sc->data, x);
        if (!slot) {
            st = fl_no_memory(d, "the report");
        } else if (slot->index == UINT32_MAX) {
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
    return st;
}

/* The clock of a static choice in this scope; where there are several, each workload with its own. */
static fl_status note_clocks(FILE *f, const fl_summary *s, fl_diag *d) {
    const fl_scope *sc = s->scope;
    const fl_report_data *r = sc->data;
    fl_status st = FL_OK;
    for (size_t i = 0; !st && i < s->count; i++) {
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
            st = put_each(f, s, i, d);
        } else {
            fputc(' ', f);
            fl_html_text(f, r->clock.item[first->clock]);
        }
        fputs(".</p>\n", f);
    }
    return st;
}

fl_status fl_partial_notes(FILE *f, const fl_summary *s, fl_diag *d) {
    note_policies(f, s, true,
                  "<p class=\"note\">* behind a name: all its means are over some of the runs, and others "
                  "ran more. It has: ",
                  ".</p>\n");
    note_policies(f, s, false,
                  "<p class=\"note\">* A mean over some of the runs: one above the bound has no regret. With one: ",
                  ". Energy and time are means over all runs.</p>\n");
    return note_clocks(f, s, d);
}
