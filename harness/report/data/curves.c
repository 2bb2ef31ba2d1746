#include "harness/report/data/curves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    const fl_report_data *r;
    size_t at[8];
    bool headed;
    fl_curves *to;
} reading;

static const char *const column[8] = {"workload", "policy", "platform",      "variant",
                                      "step",     "low",    "reward_regret", "high"};

static fl_status read_row(void *user, const fl_csv_row *row, fl_diag *d) {
    reading *c = user;
    if (!c->headed) {
        for (size_t k = 0; k < 8; k++) {
            c->at[k] = fl_report_find(row, column[k]);
            if (c->at[k] == SIZE_MAX)
                return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "no column '%s' of a regret file", column[k]);
        }
        c->headed = true;
        return FL_OK;
    }
    for (size_t k = 0; k < 8; k++)
        if (c->at[k] >= row->count)
            return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "row has %zu fields", row->count);
    const char *workload = row->field[c->at[0]].text, *platform = row->field[c->at[2]].text,
               *variant = row->field[c->at[3]].text;
    char group[512];
    fl_curve_mark m = {.policy = SIZE_MAX};
    for (size_t p = 0; c->r && p < c->r->policy.count; p++)
        if (!strcmp(c->r->policy.item[p], row->field[c->at[1]].text))
            m.policy = p;
    if (c->r && m.policy == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1,
                       "policy '%s' is not in the result that this file belongs to", row->field[c->at[1]].text);
    const bool on = c->r ? c->r->platform.count > 1 : *platform != 0; /* else the page names it */
    const bool tagged = strchr(workload, '[') != NULL;                /* the name may contain the variant already */
    snprintf(group, sizeof group, "%s%s%s%s%s%s", workload, *variant && !tagged ? " [" : "", tagged ? "" : variant,
             *variant && !tagged ? "]" : "", on ? " on " : "", on ? platform : "");
    fl_status s = c->r ? FL_OK : fl_names_index(&c->to->own, row->field[c->at[1]].text, &m.policy, d);
    if (!s)
        s = fl_names_index(&c->to->group, group, &m.group, d);
    double *into[4] = {&m.step, &m.low, &m.mean, &m.high};
    for (size_t k = 0; !s && k < 4; k++) {
        *into[k] = NAN;
        if (strcmp(row->field[c->at[4 + k]].text, "n/a") != 0)
            s = fl_field_real_or_nan(row, c->at[4 + k], column[4 + k], -HUGE_VAL, HUGE_VAL, into[k], d);
    }
    if (!s && fl_grow(&c->to->mark, &c->to->room, c->to->count + 1, sizeof *c->to->mark))
        s = fl_no_memory(d, "the report");
    if (!s)
        c->to->mark[c->to->count++] = m;
    return s;
}

fl_status fl_curves_read(const char *path, const fl_report_data *r, fl_curves *c, fl_diag *d) {
    reading in = {.r = r, .to = c};
    const fl_csv_options options = {.trim = true};
    *c = (fl_curves){.policy = r ? &r->policy : &c->own};
    fl_status s = fl_csv_read(path, &options, NULL, read_row, &in, d);
    if (!s && !r && !c->count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no row below the header, expected at least one to draw");
    if (s)
        fl_curves_free(c);
    return s;
}

void fl_curves_free(fl_curves *c) {
    fl_names_free(&c->group);
    fl_names_free(&c->own);
    free(c->mark);
    *c = (fl_curves){0};
}
