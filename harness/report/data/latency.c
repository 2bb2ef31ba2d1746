#include "harness/report/data/latency.h"

#include "harness/report/data/html.h"
#include "harness/report/data/lead.h"

#include <math.h>
#include <string.h>

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
