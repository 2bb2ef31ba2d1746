#include "harness/chip/clocks.h"

#include <math.h>
#include <stdio.h>

#define SAME_MHZ 0.5

/* The clock of the rows nearest to a given one. */
static double nearest(const fl_fit_rows *r, double sm_mhz) {
    double best = sm_mhz, least = INFINITY;
    for (size_t i = 0; i < r->count; i++) {
        const double far = fabs(log(r->row[i].sm_mhz / sm_mhz));
        if (far < least) {
            least = far;
            best = r->row[i].sm_mhz;
        }
    }
    return best;
}

double fl_fit_ran_mhz(const fl_fit_rows *r, double asked_mhz) {
    double ran = asked_mhz;
    for (size_t i = 0; i < r->clocks; i++)
        if (fabs(r->clock[i].sm_mhz - ran) <= SAME_MHZ)
            ran = r->clock[i].clear ? r->clock[i].ran_mhz : nearest(r, r->clock[i].ran_mhz);
    return ran;
}

bool fl_fit_clock_shows(const fl_fit_rows *r, size_t i) {
    const fl_unsound_clock *c = &r->clock[i];
    for (size_t k = 0; !c->workloads && k < r->count; k++)
        if (fabs(r->row[k].sm_mhz - c->ran_mhz) < 1e-6)
            return true;
    return c->workloads > 0;
}

char *fl_fit_clock_text(const fl_fit_rows *r, double sm_mhz, char *buf, size_t size) {
    const double asked = fl_fit_asked_mhz(r, sm_mhz);
    if (asked < sm_mhz || asked > sm_mhz)
        (void)snprintf(buf, size, "%g (which runs at %.0f)", asked, sm_mhz);
    else
        (void)snprintf(buf, size, "%g", sm_mhz);
    return buf;
}

void fl_fit_name_probes(const fl_fit_rows *r, fl_probes *p) {
    for (size_t i = 0; i < p->count; i++)
        p->at[i].sm_mhz = fl_fit_asked_mhz(r, p->at[i].sm_mhz);
}

cJSON *fl_fit_clocks_to_json(const fl_fit_rows *r) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; list && i < r->clocks; i++)
        cJSON_AddItemToArray(list, cJSON_CreateDoubleArray((double[]){r->clock[i].sm_mhz, r->clock[i].ran_mhz}, 2));
    return list;
}

fl_status fl_fit_clocks_apply(const fl_json *calibration, fl_fit_rows *r, fl_diag *d) {
    fl_json list;
    if (!fl_json_has(calibration, FL_FIT_CLOCKS_KEY))
        return FL_OK;
    fl_status s = fl_json_get_array(calibration, FL_FIT_CLOCKS_KEY, &list, d);
    for (fl_json e = s ? (fl_json){0} : fl_json_first(&list); !s && e.node; e = fl_json_next(&list, &e)) {
        double value[2] = {0};
        size_t n = 0;
        if (!cJSON_IsArray(e.node) || fl_json_count(&e) != 2)
            return fl_json_fail(&e, d, "expected two clocks, as asked and as run");
        for (fl_json x = fl_json_first(&e); !s && x.node; x = fl_json_next(&e, &x))
            s = fl_json_real(&x, 1, 1e5, &value[n++], d);
        for (size_t i = 0; !s && i < r->count; i++)
            if (fabs(r->row[i].sm_mhz - value[0]) <= SAME_MHZ)
                r->row[i].sm_mhz = value[1];
        if (!s && r->clocks < FL_UNSOUND_CLOCKS)
            r->clock[r->clocks++] = (fl_unsound_clock){value[0], value[1], NAN, 0, 1};
    }
    fl_fit_rows_sort(r);
    return s;
}
