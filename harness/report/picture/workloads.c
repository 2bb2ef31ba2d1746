/* Every run of every policy as a mark, its saving against its slowdown, workload by workload. The means of `pareto`
 * would hide which policy breaks the bound on which workload. plots/pareto.gp draws it. */
#include "harness/report/picture/lines.h"
#include "harness/report/picture/pictures.h"

#include <math.h>

enum { MANY = 60 }; /* number of marks above which they are small */

static bool shown(const fl_report_row *r) {
    return isfinite(r->value[FL_REPORT_SLOWDOWN]) && isfinite(r->value[FL_REPORT_SAVING_PCT]);
}

static void put_mark(fl_picture *p, const fl_report_data *data, const fl_report_row *r, fl_look look) {
    const char *policy = data->policy.item[r->policy];
    const bool breaks = r->value[FL_REPORT_VIOLATED] > 0;
    const double slowdown = 100 * r->value[FL_REPORT_SLOWDOWN], saving = r->value[FL_REPORT_SAVING_PCT];
    char tip[512];
    fprintf(p->table, "mark,%.17g,%.17g,n/a,n/a,%d,%d,", slowdown, saving,
            fl_picture_point(look, fl_report_is_baseline(policy), breaks), look.colour);
    snprintf(tip, sizeof tip, "%s, %s: %.4g %% saved, %.4g %% slower%s", policy, data->workload.item[r->workload],
             saving, slowdown, breaks ? ", breaks the bound" : "");
    fl_picture_field(p, tip);
    fputs(",1\n", p->table);
}

static void put_legend(fl_picture *p, const fl_looks *looks, bool hollow) {
    static const char breaks[] = "hollow: breaks the bound";
    char name[256];
    const double most = p->width - 80;
    double longest = hollow ? fl_text_width(breaks) : 0;
    for (size_t i = 0; i < looks->legend.count; i++)
        longest = fmax(longest, fl_text_width(fl_text_fit(looks->legend.item[i], most, name)));
    fl_picture_legend(p, looks->legend.count + hollow, longest);
    for (size_t i = 0; i < looks->legend.count; i++)
        fl_picture_entry(p, fl_text_fit(looks->legend.item[i], most, name), looks->legend_look[i],
                         fl_picture_point(looks->legend_look[i], fl_report_is_baseline(looks->legend.item[i]), false));
    if (hollow)
        fl_picture_entry(p, breaks, (fl_look){0}, fl_picture_point((fl_look){0}, false, true));
}

fl_status fl_picture_workloads(fl_picture *p, const fl_summary *s, const fl_looks *looks, size_t *drawn, fl_diag *d) {
    const fl_scope *scope = s->scope;
    const fl_report_data *data = scope->data;
    const double bound = isfinite(data->bound) ? 100 * data->bound : (double)NAN;
    double x0 = HUGE_VAL, x1 = -HUGE_VAL, y0 = HUGE_VAL, y1 = -HUGE_VAL;
    bool hollow = false;
    char about[512], text[64];
    (void)d;
    *drawn = 0;
    for (size_t i = 0; i < scope->first[scope->policy_count]; i++) {
        const fl_report_row *r = &data->row[scope->row[i]];
        if (!shown(r))
            continue;
        fl_hold(&x0, &x1, 100 * r->value[FL_REPORT_SLOWDOWN]);
        fl_hold(&y0, &y1, r->value[FL_REPORT_SAVING_PCT]);
        hollow |= r->value[FL_REPORT_VIOLATED] > 0;
        ++*drawn;
    }
    if (!*drawn)
        return FL_OK;
    fl_hold(&x0, &x1, bound);
    fl_loosen(&x0, &x1);
    fl_loosen(&y0, &y1);
    fl_picture_plot(p, 60, 24, 400);
    fl_picture_range(p, x0, x1, y0, y1);
    p->left = fl_picture_ticks(p, y0, y1);
    fl_lead_about(s, about, sizeof about);
    fl_picture_title(p, "Energy saved against slowdown, workload by workload", about);
    put_legend(p, looks, hollow);
    fl_picture_text(p, "x_label", "slowdown against the driver's default, %");
    fl_picture_text(p, "y_label", "energy saved, %");
    fl_picture_number(p, "x_bound", bound);
    snprintf(text, sizeof text, "bound %g %%", bound);
    fl_picture_text(p, "bound_text", text);
    fl_picture_number(p, "many", *drawn > MANY);
    fputs("what,x,y,dx,dy,point,colour,text,size\n", p->table);
    for (size_t k = scope->policy_count; k-- > 0;) /* the first lie on top: baselines, then in the given order */
        for (size_t i = scope->first[k]; i < scope->first[k + 1]; i++)
            if (shown(&data->row[scope->row[i]]))
                put_mark(p, data, &data->row[scope->row[i]], looks->of[scope->policy[k]]);
    return FL_OK;
}
