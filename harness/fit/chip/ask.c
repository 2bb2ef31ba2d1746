/* Settings to predict that were not measured (--clocks). */
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
    r->row[r->count++] = (fl_chip_row){(uint32_t)entity, sm_mhz, mem_mhz, NAN, NAN};
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
