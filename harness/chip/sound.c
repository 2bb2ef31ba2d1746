/* Drops rows that did not run at their clock, and maps set clocks to the clocks that ran. */
#include "harness/chip/chip.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "models/unsound/unsound.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- set clocks, and the clocks that ran ---- */

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

/* ---- dropping rows ---- */

#define JUDGED_MIN 5     /* rows of a workload: fewer are not judged (models/unsound/unsound.h) */
#define JUDGED_MOST 4096 /* rows of a workload at most: each is compared with all others */
#define SHOWN 12         /* rows that are reported one by one */

/* The origin of a row; NULL where no one measured it. */
static const fl_fit_line *line_of(const fl_fit_rows *r, const fl_chip_row *row) {
    const double asked = fl_fit_asked_mhz(r, row->sm_mhz);
    for (size_t i = 0; i < r->lines; i++) {
        const fl_fit_line *l = &r->line[i];
        if (l->entity == row->workload && fabs(l->sm_mhz - asked) < 1e-9 && fabs(l->mem_mhz - row->mem_mhz) < 1e-9 &&
            fabs(l->time_s - row->time_s) <= 0 && !(fabs(l->power_w - row->power_w) > 0))
            return l;
    }
    return NULL;
}

static fl_status add_unsound(fl_fit_rows *r, const fl_fit_line *line, const fl_unsound_row *found, fl_diag *d) {
    if (!line)
        return FL_OK;
    if (fl_grow(&r->unsound, &r->unsound_room, r->unsounds + 1, sizeof *r->unsound))
        return fl_no_memory(d, "the findings");
    r->unsound[r->unsounds++] = (fl_fit_unsound){*line, *found};
    return FL_OK;
}

static fl_status add_capped(fl_fit_rows *r, const fl_fit_line *line, const fl_chip_row *row, fl_diag *d) {
    if (fl_grow(&r->capped, &r->capped_room, r->cappeds + 1, sizeof *r->capped))
        return fl_no_memory(d, "the findings");
    r->capped[r->cappeds++] =
        (fl_fit_capped){line->entity, row->sm_mhz, row->mem_mhz, line->limit_w, row->time_s, row->power_w};
    r->limited++;
    return FL_OK;
}

static const fl_unsound_clock *clock_of(const fl_fit_rows *r, double sm_mhz) {
    for (size_t i = 0; i < r->clocks; i++)
        if (fabs(r->clock[i].sm_mhz - sm_mhz) <= 0.5)
            return &r->clock[i];
    return NULL;
}

/* Sets whether the row stays; its clock may change. */
static fl_status settle(fl_fit_rows *r, fl_chip_row *row, const fl_unsound_row *found, bool *stays, fl_diag *d) {
    const fl_fit_line *line = line_of(r, row);
    const double limit = line ? line->limit_w : (double)INFINITY;
    const bool slower = found->kind == FL_UNSOUND_SLOWER || found->kind == FL_UNSOUND_STUCK;
    const bool judged = r->entity[row->workload].count >= JUDGED_MIN;
    *stays = found->kind == FL_SOUND;
    if (found->kind == FL_UNSOUND_CLOCK) {
        const fl_unsound_clock *clock = clock_of(r, row->sm_mhz);
        *stays = clock && clock->clear;
        if (*stays)
            row->sm_mhz = clock->ran_mhz;
        return FL_OK;
    }
    /* A single limit held the row down where its power is close to the limit and its time is off the curve, or where
     * its power is at the limit and its time was not judged. */
    if (line && ((slower && row->power_w >= FL_CAP_CREST_LEAST * limit) ||
                 (!judged && row->power_w >= FL_CAP_CREST_MOST * limit))) {
        *stays = false;
        return add_capped(r, line, row, d);
    }
    return *stays ? FL_OK : add_unsound(r, line, found, d);
}

static int by_entity(const void *a, const void *b) {
    const fl_fit_capped *x = a, *y = b;
    if (x->entity != y->entity)
        return x->entity < y->entity ? -1 : 1;
    if (x->limit_w < y->limit_w || x->limit_w > y->limit_w)
        return x->limit_w < y->limit_w ? -1 : 1;
    return (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz);
}

fl_status fl_fit_drop_unsound(fl_fit_rows *r, fl_diag *d) {
    fl_unsound found = {0};
    if (r->cappeds)
        qsort(r->capped, r->cappeds, sizeof *r->capped, by_entity);
    if (r->latent)
        return FL_OK;
    for (size_t i = 0; i < r->entities; i++)
        if (r->entity[i].count > JUDGED_MOST)
            return fl_fail(d, FL_BAD_INPUT, r->file ? r->file[r->entity[i].file] : NULL, 0, 0,
                           "%s has %zu settings, expected at most %d of one workload", r->entity[i].workload,
                           r->entity[i].count, JUDGED_MOST);
    const fl_model_status m = fl_unsound_find(r->row, r->count, &found);
    if (m != FL_MODEL_OK)
        return fl_error(d, m == FL_MODEL_NO_MEMORY ? FL_NO_MEMORY : FL_BAD_INPUT, "the rows cannot be judged: %s",
                        fl_model_text(m));
    fl_status s = FL_OK;
    size_t kept = 0;
    for (size_t i = 0; i < found.clocks && r->clocks < FL_UNSOUND_CLOCKS; i++)
        r->clock[r->clocks++] = found.clock[i];
    for (size_t i = 0; !s && i < r->count; i++) {
        bool stays = true;
        s = settle(r, &r->row[i], &found.row[i], &stays, d);
        if (stays)
            r->row[kept++] = r->row[i];
    }
    if (!s)
        r->count = kept;
    fl_unsound_free(&found);
    fl_fit_rows_sort(r);
    if (!s && r->count == 0)
        s = fl_fail(d, FL_BAD_INPUT, r->file ? r->file[0] : NULL, 0, 0,
                    "no settings to fit: all rows are at a power limit, expected rows below the limit as well");
    if (r->cappeds)
        qsort(r->capped, r->cappeds, sizeof *r->capped, by_entity);
    return s;
}

fl_status fl_fit_rows_sound(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d) {
    const fl_status s = fl_fit_rows_read(files, only, r, d);
    if (!s)
        fl_fit_rows_tell(r);
    return s ? s : fl_fit_drop_unsound(r, d);
}

/* ---- reports ---- */

static void print_clock(const fl_unsound_clock *c) {
    if (c->workloads)
        printf("note: rows at %g MHz in fact ran at about %.0f MHz (+- %.1g %%, from the times of %u workload%s): %s\n",
               c->sm_mhz, c->ran_mhz, c->sd_pct, c->workloads, c->workloads == 1 ? "" : "s",
               c->clear ? "used at that clock" : "left out, since another clock of the sweep is that one");
    else
        printf("note: rows at %g MHz count as %.0f MHz, the clock at which the device's own sweep ran there\n",
               c->sm_mhz, c->ran_mhz);
}

char *fl_fit_unsound_said(const fl_fit_rows *r, const char *workload, char *buf, size_t size) {
    const fl_fit_unsound *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < r->unsounds; i++)
        if (!strcmp(r->entity[r->unsound[i].at.entity].workload, workload)) {
            first = first && first->at.line < r->unsound[i].at.line ? first : &r->unsound[i];
            count++;
        }
    *buf = '\0';
    if (first)
        (void)snprintf(
            buf, size,
            "%zu row%s not in line with the other clocks; the first is line %lld, %g MHz: %s (time %+.1f %%, "
            "power %+.1f %%)",
            count, count == 1 ? " is" : "s are", (long long)first->at.line, first->at.sm_mhz,
            fl_unsound_text(first->found.kind), first->found.time_pct, first->found.power_pct);
    return buf;
}

void fl_fit_sound_notes(const fl_fit_rows *r) {
    char name[256];
    for (size_t i = 0; i < r->clocks; i++)
        if (fl_fit_clock_shows(r, i))
            print_clock(&r->clock[i]);
    if (r->unsounds)
        printf("note: %zu rows left out, since they did not run at the clock they name:\n", r->unsounds);
    for (size_t i = 0; i < r->unsounds && i < SHOWN; i++) {
        const fl_fit_unsound *u = &r->unsound[i];
        const fl_fit_entity *e = &r->entity[u->at.entity];
        printf("  %s:%lld: %s at %g MHz: %s", r->file[e->file], (long long)u->at.line,
               fl_fit_entity_name(e, name, sizeof name), u->at.sm_mhz, fl_unsound_text(u->found.kind));
        if (!isnan(u->found.ran_mhz))
            printf(", about %.0f MHz", u->found.ran_mhz);
        printf(" (time %+.1f %%, power %+.1f %%)\n", u->found.time_pct, u->found.power_pct);
    }
    if (r->unsounds > SHOWN)
        printf("  and %zu more; --json lists all\n", r->unsounds - SHOWN);
}

cJSON *fl_fit_sound_json(const fl_fit_rows *r) {
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; rows && i < r->unsounds; i++) {
        const fl_fit_unsound *u = &r->unsound[i];
        const fl_fit_entity *e = &r->entity[u->at.entity];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "file", r->file[e->file]);
        cJSON_AddNumberToObject(o, "line", (double)u->at.line);
        cJSON_AddStringToObject(o, "workload", e->workload);
        cJSON_AddStringToObject(o, "kernel", e->kernel);
        cJSON_AddNumberToObject(o, "sm_mhz", u->at.sm_mhz);
        if (r->mem_known)
            cJSON_AddNumberToObject(o, "mem_mhz", u->at.mem_mhz);
        cJSON_AddStringToObject(o, "why", fl_unsound_text(u->found.kind));
        cJSON_AddItemToObject(o, "ran_mhz",
                              isnan(u->found.ran_mhz) ? cJSON_CreateNull() : cJSON_CreateNumber(u->found.ran_mhz));
        cJSON_AddItemToArray(rows, o);
    }
    cJSON *clocks = cJSON_AddArrayToObject(root, "clocks");
    for (size_t i = 0; clocks && i < r->clocks; i++) {
        if (!fl_fit_clock_shows(r, i))
            continue;
        cJSON *o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "asked_mhz", r->clock[i].sm_mhz);
        cJSON_AddNumberToObject(o, "ran_mhz", r->clock[i].ran_mhz);
        cJSON_AddNumberToObject(o, "workloads", r->clock[i].workloads);
        cJSON_AddBoolToObject(o, "relabelled", r->clock[i].clear);
        cJSON_AddItemToArray(clocks, o);
    }
    return root;
}
