#include "harness/report/data/lead.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    const size_t length = strlen(name), ending = length > 4 && !strcmp(name + length - 4, ".csv") ? 4 : 0;
    snprintf(buf, 256, "%.*s", (int)(length - ending), name);
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
