/* Settings to predict (--at, --ask), and the settings that are worth measuring. */
#include "harness/fit/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- settings to predict ---- */

static bool is_at(const fl_chip_row *row, double sm_mhz, double mem_mhz) {
    return fabs(row->sm_mhz - sm_mhz) < 0.5 && fabs(row->mem_mhz - mem_mhz) < 0.5;
}

/* since: index of the first row that was requested. */
static bool has(const fl_fit_rows *r, size_t entity, size_t since, double sm_mhz, double mem_mhz) {
    const fl_fit_entity *e = &r->entity[entity];
    for (size_t i = e->first; i < e->first + e->count; i++)
        if (is_at(&r->row[i], sm_mhz, mem_mhz))
            return true;
    for (size_t i = since; i < r->count; i++)
        if (r->row[i].workload == entity && is_at(&r->row[i], sm_mhz, mem_mhz))
            return true;
    return false;
}

static void ask(fl_fit_rows *r, size_t entity, size_t since, double sm_mhz, double mem_mhz) {
    if (has(r, entity, since, sm_mhz, mem_mhz))
        return;
    fl_must_grow(&r->row, &r->room, r->count + 1, sizeof *r->row);
    r->row[r->count++] = (fl_chip_row){(uint32_t)entity, sm_mhz, mem_mhz, NAN, NAN, NULL};
}

/* A user requests a clock by the name under which it is set; the row stands at the clock at which it runs. */
static void ask_list(const fl_fit_at *at, fl_fit_rows *r, size_t entity) {
    const fl_fit_entity *e = &r->entity[entity];
    const size_t since = r->count;
    for (size_t i = 0; e->count && i < at->sms; i++)
        for (size_t k = 0; k < (at->mems ? at->mems : 1); k++)
            ask(r, entity, since, fl_fit_ran_mhz(r, at->sm[i]),
                at->mems ? at->mem[k] : r->row[e->first + e->count - 1].mem_mhz);
}

fl_status fl_fit_ask(const char *list, const fl_chip *chip, fl_fit_rows *r, size_t *added, fl_diag *d) {
    const bool calibrated = !strcmp(list, "calibrated");
    fl_fit_at at = {0};
    fl_diag ignored = {0};
    *added = 0;
    if (!calibrated && (fl_fit_at_parse(list, &at, &ignored) || at.kind != FL_FIT_LIST))
        return fl_refuse(d, "--clocks %s, expected calibrated, or clocks as sm=952,1140 or sm=952,1140/mem=405,877",
                         list);
    if (calibrated && !chip->settings)
        return fl_refuse(d, "--clocks calibrated, but the device has no calibration, expected clocks as sm=952,1140");
    const size_t before = r->count;
    for (size_t i = 0; i < r->entities; i++) {
        if (!calibrated)
            ask_list(&at, r, i);
        const size_t since = r->count;
        for (size_t k = 0; calibrated && k < chip->settings; k++)
            ask(r, i, since, chip->setting_sm[k], r->mem_known ? chip->setting_mem[k] : chip->mem_ref);
    }
    *added = r->count - before;
    fl_fit_rows_sort(r);
    return FL_OK;
}

/* ---- settings that a calibration chooses ---- */

fl_status fl_fit_choose(const fl_chip *chip, fl_fit_at *at, fl_diag *d) {
    if (at->kind != FL_FIT_CHOSEN)
        return FL_OK;
    const fl_model_status s = fl_probes_choose(chip, at->choose, &at->chosen);
    fl_must_have(s != FL_MODEL_NO_MEMORY);
    return s == FL_MODEL_OK ? FL_OK
                            : fl_refuse(d,
                                        "--at chosen:%zu of a device calibrated with %u workloads at %u settings, "
                                        "expected %d workloads and more settings than it has to choose",
                                        at->choose, chip->shares, chip->settings, FL_PROBES_WORKLOADS);
}

char *fl_fit_probes_text(const fl_probes *p, bool memory, char *buf, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < p->count && used < size; i++) {
        used += (size_t)snprintf(buf + used, size - used, "%s%g", i ? " + " : "", p->at[i].sm_mhz);
        if (memory && used < size)
            used += (size_t)snprintf(buf + used, size - used, "/%g", p->at[i].mem_mhz);
    }
    if (used < size)
        (void)snprintf(buf + used, size - used, " MHz");
    return buf;
}

/* ---- settings to measure, and the expected errors ---- */

void fl_fit_advise(const fl_chip *chip, const fl_fit_rows *rows, size_t least, size_t most, fl_fit_advice *a) {
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
    fl_must_have(s != FL_MODEL_NO_MEMORY);
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
    for (size_t i = a->first; i < a->end; i++) {
        cJSON *o = fl_json_add_row(list);
        cJSON_AddNumberToObject(o, "probes", (double)(i + 1));
        add_set(o, "chosen", &a->chosen[i]);
        add_set(o, "usual", &a->usual[i]);
    }
    return list;
}
