#include "harness/fit/chip/advice.h"

#include "harness/base/cli/grid.h"
#include "harness/base/json/json_out.h"
#include "harness/chip/clocks.h"
#include "harness/fit/chip/chosen.h"

#include <math.h>

fl_status fl_fit_advise(const fl_chip *chip, const fl_fit_rows *rows, size_t least, size_t most, fl_fit_advice *a,
                        fl_diag *d) {
    fl_model_status s = FL_MODEL_OK;
    *a = (fl_fit_advice){
        .first = least - 1, .end = least - 1, .memory = chip->mem_min < chip->mem_ref, .made_up = !chip->workloads};
    for (size_t n = least; s == FL_MODEL_OK && n <= most; n++) {
        s = fl_probes_choose(chip, n, &a->chosen[n - 1]);
        if (s != FL_MODEL_OK)
            break;
        a->end = n;
        if (fl_probes_usual(chip, n, &a->usual[n - 1]) == FL_MODEL_OK)
            s = fl_probes_expect(chip, &a->usual[n - 1]);
        fl_fit_name_probes(rows, &a->chosen[n - 1]);
        fl_fit_name_probes(rows, &a->usual[n - 1]);
    }
    return s == FL_MODEL_NO_MEMORY ? fl_no_memory(d, "the probes") : FL_OK;
}

static void add_errors(fl_grid *g, const fl_probes *p) {
    const double value[] = {p->time_pct, p->power_pct, p->energy_pct};
    for (size_t i = 0; i < 3; i++)
        if (p->count == 0 || isnan(value[i]))
            fl_grid_add(g, "-");
        else
            fl_grid_add(g, "%.2f", value[i]);
}

void fl_fit_advice_print(const fl_fit_advice *a) {
    static const char *const head[] = {"measure", "time %", "power %", "energy %",
                                       "usual",   "time %", "power %", "energy %"};
    char text[160];
    if (a->end == a->first) {
        printf("note: there is no advice on which clocks to measure of a new workload: it takes %d workloads at more "
               "settings than you want to measure\n",
               FL_PROBES_WORKLOADS);
        return;
    }
    fl_grid g = FL_GRID_HEADED(head);
    for (size_t i = a->first; i < a->end; i++) {
        fl_grid_add(&g, "%s", fl_fit_probes_text(&a->chosen[i], a->memory, text, sizeof text));
        add_errors(&g, &a->chosen[i]);
        fl_grid_add(&g, "%s", fl_fit_probes_text(&a->usual[i], a->memory, text, sizeof text));
        add_errors(&g, &a->usual[i]);
    }
    printf("\n"
           "best clocks to measure of a new workload, and the mean errors to expect at the other clocks (each of %zu "
           "%sworkloads predicted from the rest)\n\n",
           a->chosen[a->first].tested, a->made_up ? "made-up " : "");
    fl_grid_print(&g, 1, stdout);
}

static void add_set(cJSON *to, const char *key, const fl_probes *p) {
    cJSON *o = p->count ? cJSON_AddObjectToObject(to, key) : NULL;
    cJSON *list = o ? cJSON_AddArrayToObject(o, "at") : NULL;
    for (size_t i = 0; list && i < p->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateDoubleArray((double[]){p->at[i].sm_mhz, p->at[i].mem_mhz}, 2));
    if (!o)
        return;
    fl_json_add_real(o, "time_pct", p->time_pct);
    fl_json_add_real(o, "power_pct", p->power_pct);
    fl_json_add_real(o, "energy_pct", p->energy_pct);
    cJSON_AddNumberToObject(o, "workloads", (double)p->tested);
}

cJSON *fl_fit_advice_json(const fl_fit_advice *a) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = a->first; list && i < a->end; i++) {
        cJSON *o = fl_json_add_row(list);
        cJSON_AddNumberToObject(o, "probes", (double)(i + 1));
        add_set(o, "chosen", &a->chosen[i]);
        add_set(o, "usual", &a->usual[i]);
    }
    return list;
}
