/* Reads the rows of sweeps for fits, and the settings that a list such as "sm=952,1140" names. */
#include "harness/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/chip/chip.h"
#include "models/chip/chip.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <ctype.h>
#include <fnmatch.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows under power limits ---- */

static int number(double a, double b) { return isnan(a) || isnan(b) ? isnan(a) - isnan(b) : (a > b) - (a < b); }

static int setting(const fl_sweep_row *a, const fl_sweep_row *b) {
    if (a->workload != b->workload || a->kernel != b->kernel)
        return a->workload != b->workload ? (a->workload > b->workload) - (a->workload < b->workload)
                                          : (a->kernel > b->kernel) - (a->kernel < b->kernel);
    const int sm = number(a->sm_mhz, b->sm_mhz);
    return sm ? sm : number(a->mem_mhz, b->mem_mhz);
}

static double limit_of(const fl_sweep_row *r) { return isnan(r->power_cap_w) ? (double)INFINITY : r->power_cap_w; }

static int by_setting(const void *a, const void *b) {
    const fl_sweep_row *x = *(const fl_sweep_row *const *)a, *y = *(const fl_sweep_row *const *)b;
    const int order = setting(x, y);
    if (order)
        return order;
    const double p = limit_of(x), q = limit_of(y); /* highest first, as fl_cap_test requires */
    return p < q ? 1 : p > q ? -1 : (x > y) - (x < y);
}

/* The cells of a setting's rows; both are sorted alike, so cell i is row i. */
static void fill(const fl_sweep_row *const *row, size_t n, fl_cap_cell *cell) {
    for (size_t i = 0; i < n; i++)
        cell[i] = (fl_cap_cell){limit_of(row[i]), row[i]->time_s, row[i]->power_w, FL_CAP_FREE};
}

static size_t group_end(const fl_sweep_row *const *row, size_t count, size_t first) {
    size_t end = first + 1;
    while (end < count && setting(row[first], row[end]) == 0)
        end++;
    return end;
}

/* One verdict per row of the sweep, among the rows of the same workload, kernel and clocks (an unknown clock counts as
 * one clock). *repeats: whether the row's setting also exists under a lower limit that does not bind. The caller frees
 * both. */
static fl_status fl_fit_judge_limits(const fl_sweep *s, fl_cap_verdict **verdict, bool **repeats, fl_diag *d) {
    const size_t n = s->row_count;
    const fl_sweep_row **row = malloc((n + 1) * sizeof *row);
    fl_cap_cell *cell = calloc(n + 1, sizeof *cell);
    double *time = malloc((2 * n + 1) * sizeof *time), *power = time ? time + n : NULL;
    fl_cap_scatter scatter = fl_cap_scatter_of(NULL, NULL, 0);
    size_t told = 0;
    *verdict = calloc(n + 1, sizeof **verdict);
    *repeats = calloc(n + 1, sizeof **repeats);
    fl_status status = row && cell && time && *verdict && *repeats ? FL_OK : fl_no_memory(d, "the sweep");
    for (size_t i = 0; !status && i < n; i++)
        row[i] = &s->rows[i];
    if (!status)
        qsort(row, n, sizeof *row, by_setting);
    for (size_t i = 0, end = 0; !status && i < n; i = end) {
        end = group_end(row, n, i);
        fill(row + i, end - i, cell);
        told += fl_cap_repeats(cell, end - i, time + told, power + told);
    }
    if (!status)
        scatter = fl_cap_scatter_of(time, power, told);
    for (size_t i = 0, end = 0; !status && i < n; i = end) {
        end = group_end(row, n, i);
        fill(row + i, end - i, cell);
        fl_cap_test(cell, end - i, &scatter);
        for (size_t k = fl_cap_held(cell, end - i); k < end - i; k++)
            cell[k].verdict = FL_CAP_UNHELD;
        for (size_t k = i; k < end; k++) {
            const size_t at = (size_t)(row[k] - s->rows);
            (*verdict)[at] = cell[k - i].verdict;
            (*repeats)[at] = cell[k - i].verdict == FL_CAP_FREE && limit_of(row[k]) < limit_of(row[i]);
        }
    }
    free(row);
    free(cell);
    free(time);
    if (status) {
        free(*verdict);
        free(*repeats);
        *verdict = NULL;
        *repeats = NULL;
    }
    return status;
}

/* ---- reading the rows ---- */

#define UNKNOWN 1 /* MHz, memory: not known */

static bool wanted(const char *name, const fl_texts *only) {
    for (size_t i = 0; i < only->count; i++)
        if (fnmatch(only->item[i], name, 0) == 0)
            return true;
    return only->count == 0;
}

/* A predicted row states its deviations. It is only as good as the rows it was made from, so a fit learns nothing from
 * it. */
static void drop_predicted(fl_sweep *s, const fl_texts *only, fl_fit_rows *r) {
    size_t kept = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        if (s->rows[i].time_sd_pct > 0 || s->rows[i].power_sd_pct > 0) {
            r->predicted += wanted(s->names[s->rows[i].workload], only) ? 1 : 0;
            continue;
        }
        s->rows[kept++] = s->rows[i];
    }
    s->row_count = kept;
}

/* Index of the row's entity, which is added if it is new. SIZE_MAX: out of memory. */
static size_t entity_of(fl_fit_rows *r, const fl_sweep *s, const fl_sweep_row *row, size_t file, size_t since) {
    const char *workload = s->names[row->workload], *kernel = s->names[row->kernel];
    for (size_t i = r->entities; i-- > since;)
        if (!strcmp(r->entity[i].workload, workload) && !strcmp(r->entity[i].kernel, kernel))
            return i;
    if (fl_grow(&r->entity, &r->entity_room, r->entities + 1, sizeof *r->entity))
        return SIZE_MAX;
    fl_fit_entity *e = &r->entity[r->entities];
    *e = (fl_fit_entity){.workload = strdup(workload), .kernel = strdup(kernel), .file = file};
    r->entities++;
    return e->workload && e->kernel ? r->entities - 1 : SIZE_MAX;
}

/* Of two accounts that differ, that of the energy. */
static double power_of(const fl_sweep_row *row) {
    return fl_accounts_differ(row->energy_j, row->power_w * row->time_s) ? row->energy_j / row->time_s : row->power_w;
}

/* Stores a row's limit and its origin. */
static fl_status add_line(fl_fit_rows *r, size_t entity, const fl_sweep_row *row, fl_diag *d) {
    if (fl_grow(&r->line, &r->line_room, r->lines + 1, sizeof *r->line))
        return fl_no_memory(d, "the sweep");
    r->line[r->lines++] = (fl_fit_line){entity,      row->sm_mhz,   isnan(row->mem_mhz) ? UNKNOWN : row->mem_mhz,
                                        row->time_s, power_of(row), limit_of(row),
                                        row->line};
    return FL_OK;
}

/* Keeps the rows that a limit held down, for workloads that have other rows too. */
static fl_status add_capped(const fl_sweep *s, const fl_cap_verdict *verdict, const fl_texts *only, size_t since,
                            fl_fit_rows *r, fl_diag *d) {
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *row = &s->rows[i];
        size_t e = r->entities;
        r->unheld += verdict[i] == FL_CAP_UNHELD && wanted(s->names[row->workload], only) ? 1 : 0;
        if (verdict[i] != FL_CAP_BINDS || !wanted(s->names[row->workload], only))
            continue;
        r->limited++;
        for (size_t k = since; k < r->entities; k++)
            if (!strcmp(r->entity[k].workload, s->names[row->workload]) &&
                !strcmp(r->entity[k].kernel, s->names[row->kernel]))
                e = k;
        if (e == r->entities || isnan(row->power_w))
            continue;
        if (fl_grow(&r->capped, &r->capped_room, r->cappeds + 1, sizeof *r->capped))
            return fl_no_memory(d, "the sweep");
        r->capped[r->cappeds++] = (fl_fit_capped){
            e, row->sm_mhz, isnan(row->mem_mhz) ? UNKNOWN : row->mem_mhz, limit_of(row), row->time_s, row->power_w};
    }
    return FL_OK;
}

/* Stores the rows and workloads of a sweep that has only limits. */
static fl_status add_latent(const fl_sweep *s, const fl_cap_verdict *verdict, size_t file, const fl_texts *only,
                            fl_fit_rows *r, fl_diag *d) {
    const size_t since = r->entities;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *row = &s->rows[i];
        if (!wanted(s->names[row->workload], only) || isnan(row->power_cap_w) || isnan(row->power_w))
            continue;
        if (verdict[i] == FL_CAP_UNHELD) {
            r->unheld++;
            continue;
        }
        const size_t e = entity_of(r, s, row, file, since);
        if (e == SIZE_MAX || fl_grow(&r->capped, &r->capped_room, r->cappeds + 1, sizeof *r->capped))
            return fl_no_memory(d, "the sweep");
        r->mem_known |= !isnan(row->mem_mhz);
        r->capped[r->cappeds++] = (fl_fit_capped){
            e, NAN, isnan(row->mem_mhz) ? UNKNOWN : row->mem_mhz, limit_of(row), row->time_s, row->power_w};
    }
    return FL_OK;
}

static void note_limit(fl_fit_rows *r, double limit) {
    if (!isfinite(limit))
        return;
    r->limit_low_w = r->limit_low_w > 0 ? fmin(r->limit_low_w, limit) : limit;
    r->limit_high_w = fmax(r->limit_high_w, limit);
}

/* Keeps what was left out of a file, as sentences for fl_fit_rows_tell. */
static fl_status take_left(const char *path, const fl_left_out *left, fl_fit_rows *r, fl_diag *d) {
    char text[400];
    for (int i = 0; fl_left_text(left, i, text, sizeof text); i++) {
        if (!*text)
            continue;
        if (fl_grow(&r->left, &r->left_room, r->lefts + 1, sizeof *r->left) ||
            asprintf(&r->left[r->lefts], "%s: %s", basename(path), text) < 0)
            return fl_no_memory(d, "the sweep");
        r->lefts++;
    }
    return FL_OK;
}

void fl_fit_rows_tell(const fl_fit_rows *r) {
    fl_ticker_clear();
    for (size_t i = 0; i < r->lefts; i++)
        fl_terminal_say(stderr, "note: %s", r->left[i]);
}

typedef enum asked_rows { MEASURED, WITH_POWER, ALSO_PREDICTED } asked_rows; /* WITH_POWER: measured, power too */

static fl_status add_file(const char *path, size_t file, const fl_texts *only, asked_rows asked, fl_fit_rows *r,
                          fl_diag *d) {
    fl_sweep s = {0};
    fl_left_out left;
    fl_status status = fl_sweep_open(path, asked != WITH_POWER, &s, &left, d);
    if (!status)
        status = take_left(path, &left, r, d);
    const size_t since = r->entities;
    fl_cap_verdict *verdict = NULL;
    bool *repeats = NULL;
    if (!status)
        status = fl_sweep_check_units(path, &s, d);
    if (!status)
        status = fl_sweep_check_twice(path, &s, d);
    if (!status && asked != ALSO_PREDICTED)
        drop_predicted(&s, only, r);
    if (!status)
        status = fl_fit_judge_limits(&s, &verdict, &repeats, d);
    for (size_t i = 0; !status && i < s.row_count; i++) {
        const fl_sweep_row *row = &s.rows[i];
        if (!wanted(s.names[row->workload], only))
            continue;
        note_limit(r, limit_of(row));
        if (isnan(row->sm_mhz)) {
            r->clockless++;
            continue;
        }
        r->repeated += repeats[i] ? 1 : 0;
        if (verdict[i] == FL_CAP_BINDS || verdict[i] == FL_CAP_UNHELD || repeats[i])
            continue;
        const size_t e = entity_of(r, &s, row, file, since);
        if (e == SIZE_MAX || fl_grow(&r->row, &r->room, r->count + 1, sizeof *r->row)) {
            status = fl_no_memory(d, "the sweep");
            break;
        }
        r->mem_known |= !isnan(row->mem_mhz);
        r->row[r->count++] = (fl_chip_row){(uint32_t)e, row->sm_mhz, isnan(row->mem_mhz) ? UNKNOWN : row->mem_mhz,
                                           row->time_s, power_of(row)};
        status = add_line(r, e, row, d);
    }
    bool clocks = r->count > 0; /* a row of this or an earlier file has a clock */
    for (size_t i = 0; i < s.row_count; i++)
        clocks |= !isnan(s.rows[i].sm_mhz);
    if (!status && !clocks)
        status = add_latent(&s, verdict, file, only, r, d);
    else if (!status)
        status = add_capped(&s, verdict, only, since, r, d);
    free(verdict);
    free(repeats);
    fl_sweep_free(&s);
    return status;
}

static int by_entity(const void *a, const void *b) {
    const fl_chip_row *x = a, *y = b;
    if (x->workload != y->workload)
        return x->workload < y->workload ? -1 : 1;
    if (x->mem_mhz < y->mem_mhz || x->mem_mhz > y->mem_mhz)
        return x->mem_mhz < y->mem_mhz ? -1 : 1;
    return (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz);
}

/* Where no memory clock was set, a GPU under load runs at its highest. */
static void fill_memory(fl_fit_rows *r) {
    double highest = 0;
    for (size_t i = 0; i < r->count; i++)
        highest = fmax(highest, r->row[i].mem_mhz);
    for (size_t i = 0; i < r->count; i++)
        if (r->row[i].mem_mhz <= UNKNOWN) {
            r->row[i].mem_mhz = highest;
            r->memless++;
        }
    for (size_t i = 0; i < r->lines; i++)
        r->line[i].mem_mhz = r->line[i].mem_mhz <= UNKNOWN ? highest : r->line[i].mem_mhz;
    for (size_t i = 0; i < r->cappeds; i++)
        r->capped[i].mem_mhz = r->capped[i].mem_mhz <= UNKNOWN ? highest : r->capped[i].mem_mhz;
}

void fl_fit_rows_sort(fl_fit_rows *r) {
    if (r->count)
        qsort(r->row, r->count, sizeof *r->row, by_entity);
    for (size_t i = 0; i < r->entities; i++)
        r->entity[i].count = 0;
    for (size_t i = r->count; i-- > 0;) {
        r->entity[r->row[i].workload].first = i;
        r->entity[r->row[i].workload].count++;
    }
}

void fl_fit_rows_match(fl_fit_rows *r, const fl_chip *chip, bool chip_knows) {
    for (size_t i = 0; i < r->count && r->mem_known != chip_knows; i++)
        r->row[i].mem_mhz = chip->mem_ref;
    for (size_t i = 0; i < r->cappeds && r->mem_known != chip_knows; i++)
        r->capped[i].mem_mhz = chip->mem_ref;
}

static fl_status read_rows(const fl_texts *files, const fl_texts *only, asked_rows asked, fl_fit_rows *r, fl_diag *d) {
    fl_fit_rows fresh = {0};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < files->count; i++)
        s = add_file(files->item[i], i, only, asked, &fresh, d);
    fresh.latent = !s && fresh.count == 0 && fresh.cappeds > 0;
    if (!s && fresh.count == 0 && !fresh.latent)
        s = fl_fail(d, FL_BAD_INPUT, files->count ? files->item[0] : NULL, 0, 0,
                    "no settings to fit%s, expected %srows with an SM clock, or with a power limit and a power%s",
                    fresh.predicted ? ": predicted rows teach nothing" : "", fresh.predicted ? "measured " : "",
                    only->count ? " of the workloads asked for" : "");
    if (!s && fresh.mem_known)
        fill_memory(&fresh);
    fresh.file = files->item;
    if (!s) {
        fl_fit_rows_sort(&fresh);
    } else {
        fl_fit_rows_free(&fresh);
    }
    *r = fresh;
    return s;
}

fl_status fl_fit_rows_read(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d) {
    return read_rows(files, only, MEASURED, r, d);
}

fl_status fl_fit_rows_read_powers(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d) {
    return read_rows(files, only, WITH_POWER, r, d);
}

fl_status fl_fit_rows_read_predicted(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d) {
    return read_rows(files, only, ALSO_PREDICTED, r, d);
}

void fl_fit_rows_free(fl_fit_rows *r) {
    for (size_t i = 0; i < r->entities; i++) {
        free(r->entity[i].workload);
        free(r->entity[i].kernel);
    }
    free(r->entity);
    free(r->row);
    free(r->capped);
    free(r->line);
    free(r->unsound);
    for (size_t i = 0; i < r->lefts; i++)
        free(r->left[i]);
    free(r->left);
    *r = (fl_fit_rows){0};
}

void fl_fit_rows_notes(const fl_fit_rows *r) {
    if (r->predicted)
        printf("note: %zu rows left out, since they are predictions\n", r->predicted);
    if (r->limited)
        printf("note: %zu rows left out, since a power limit binds there\n", r->limited);
    if (r->unheld)
        printf(
            "note: %zu rows left out, since the board did not hold their power limit: it drew more, or ran as under a "
            "higher one\n",
            r->unheld);
    if (r->repeated)
        printf("note: %zu rows left out, since they repeat a setting under a lower limit that does not bind\n",
               r->repeated);
    if (r->clockless && !r->latent)
        printf("note: %zu rows left out, since they have no SM clock\n", r->clockless);
    if (r->memless)
        printf("note: %zu rows without a memory clock count as measured at the highest memory clock of the others\n",
               r->memless);
}

double fl_fit_asked_mhz(const fl_fit_rows *r, double sm_mhz) {
    for (size_t i = r->clocks; i-- > 0;) /* the last entry first: a sweep may correct what its device said */
        if (r->clock[i].clear && fabs(r->clock[i].ran_mhz - sm_mhz) < 1e-6)
            sm_mhz = r->clock[i].sm_mhz;
    return sm_mhz;
}

char *fl_fit_entity_name(const fl_fit_entity *e, char *buf, size_t size) {
    (void)snprintf(buf, size, "%s%s%s", e->workload, *e->kernel ? " / " : "", e->kernel);
    return buf;
}

/* ---- the settings that a list names ---- */

static const char *numbers(const char *text, double *list, size_t room, size_t *count) {
    for (;;) {
        char *end = NULL;
        const double x = isdigit((unsigned char)*text) ? strtod(text, &end) : 0;
        if (!(x > 0) || !isfinite(x) || *count == room)
            return NULL;
        list[(*count)++] = x;
        if (*end != ',')
            return end;
        text = end + 1;
    }
}

fl_status fl_fit_at_parse(const char *text, fl_fit_at *at, fl_diag *d) {
    *at = (fl_fit_at){.kind = FL_FIT_LIST};
    if (!strcmp(text, "ends")) {
        at->kind = FL_FIT_ENDS;
        return FL_OK;
    }
    if (!strcmp(text, "corners")) {
        at->kind = FL_FIT_CORNERS;
        return FL_OK;
    }
    if (!strcmp(text, "all")) {
        at->kind = FL_FIT_ALL;
        return FL_OK;
    }
    if (!strncmp(text, "caps=", 5)) {
        const char *end = numbers(text + 5, at->cap, 64, &at->caps);
        return end && !*end ? FL_OK : fl_refuse(d, "--at %s, expected power limits in W, as caps=150,250", text);
    }
    const char *rest = strncmp(text, "sm=", 3) ? NULL : numbers(text + 3, at->sm, 64, &at->sms);
    if (rest && !strncmp(rest, "/mem=", 5))
        rest = numbers(rest + 5, at->mem, 16, &at->mems);
    if (!rest || *rest)
        return fl_refuse(d, "--at %s, expected ends, corners, all, or clocks as sm=952,1530 or sm=952,1530/mem=405,877",
                         text);
    return FL_OK;
}

static bool listed(const double *list, size_t count, double x) {
    for (size_t i = 0; i < count; i++)
        if (fabs(list[i] - x) < 0.5)
            return true;
    return false;
}

bool fl_fit_at_has(const fl_fit_at *at, const fl_fit_rows *r, const fl_fit_entity *e, const fl_chip_row *row) {
    double low_mem = INFINITY, high_mem = 0;
    if (isnan(row->time_s))
        return false;
    for (size_t i = e->first; i < e->first + e->count; i++) {
        if (isnan(r->row[i].time_s))
            continue;
        low_mem = fmin(low_mem, r->row[i].mem_mhz);
        high_mem = fmax(high_mem, r->row[i].mem_mhz);
    }
    const bool high = row->mem_mhz >= high_mem - 0.5, low = row->mem_mhz <= low_mem + 0.5;
    if (at->kind == FL_FIT_ALL)
        return true;
    if (at->kind == FL_FIT_LIST)
        return listed(at->sm, at->sms, fl_fit_asked_mhz(r, row->sm_mhz)) &&
               (at->mems ? listed(at->mem, at->mems, row->mem_mhz) : high);
    if (!high && !(low && at->kind == FL_FIT_CORNERS))
        return false;
    double lowest = INFINITY, highest = 0; /* SM clocks of this workload at this memory clock */
    for (size_t i = e->first; i < e->first + e->count; i++)
        if (!isnan(r->row[i].time_s) && fabs(r->row[i].mem_mhz - row->mem_mhz) < 0.5) {
            lowest = fmin(lowest, r->row[i].sm_mhz);
            highest = fmax(highest, r->row[i].sm_mhz);
        }
    return row->sm_mhz <= lowest + 0.5 || row->sm_mhz >= highest - 0.5;
}
