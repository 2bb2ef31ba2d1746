/* Measured runs of plans: three or four files with a common beginning. */
#include "traces/pipeline/pipeline.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS_MAX = 13 };

typedef struct table { /* one of the files: its columns, the first `required` of which must be there */
    const char *ending;
    const char *const *column;
    size_t count, required;
    fl_status (*take)(fl_pipeline_runs *r, const fl_csv_row *row, const size_t *where, fl_diag *d);
} table;

typedef struct loader {
    fl_pipeline_runs *r;
    const table *t;
    size_t where[COLUMNS_MAX], width;
} loader;

/* ---- fields ---- */

static fl_status get_int(const fl_csv_row *row, size_t at, const char *name, int64_t min, int64_t max, uint32_t *value,
                         fl_diag *d) {
    int64_t n = 0;
    const fl_status s = fl_field_int(row, at, name, min, max, &n, d);
    *value = (uint32_t)n;
    return s;
}

/* The place of a plan that is known already. */
static fl_status find_plan(const fl_pipeline_runs *r, const fl_csv_row *row, size_t at, uint32_t *plan, fl_diag *d) {
    int64_t n = 0;
    const fl_status s = fl_field_int(row, at, "plan", 0, INT64_MAX, &n, d);
    size_t from = 0, to = r->plan_count; /* they ascend */
    while (!s && from < to) {
        const size_t middle = from + (to - from) / 2;
        if (r->plan[middle] < n)
            from = middle + 1;
        else
            to = middle;
    }
    *plan = (uint32_t)from;
    if (!s && from < r->plan_count && r->plan[from] == n)
        return FL_OK;
    return s ? s : FL_FIELD_FAIL(d, row, at, "plan %lld is not among those that ask for clocks", (long long)n);
}

static fl_status find_rank(const fl_pipeline_runs *r, const fl_csv_row *row, size_t at, uint32_t *rank, fl_diag *d) {
    return get_int(row, at, "rank", 0, (int64_t)r->ranks - 1, rank, d);
}

/* ---- plans ---- */

/* Every plan asks each rank for a clock of each forward and each backward: in order, each row begins where the one
 * before has ended. */
static fl_status check_plans(const fl_pipeline_runs *r, const char *file, fl_diag *d) {
    const size_t cells = r->plan_count * r->ranks * 2;
    if (cells > r->asked_count)
        return fl_fail(d, FL_BAD_INPUT, file, 0, 0,
                       "%zu rows for %zu plans and %u ranks, expected at least one for each forward and each backward",
                       r->asked_count, r->plan_count, r->ranks);
    size_t at = 0;
    for (size_t i = 0; i < cells; i++) {
        const uint32_t plan = (uint32_t)(i / 2 / r->ranks), rank = (uint32_t)(i / 2 % r->ranks);
        const bool backward = i % 2;
        uint32_t next = 0;
        for (; at < r->asked_count && r->asked[at].plan == plan && r->asked[at].rank == rank &&
               r->asked[at].backward == backward && r->asked[at].first == next;
             at++)
            next += r->asked[at].count;
        if (next != r->microbatches)
            return fl_fail(d, FL_BAD_INPUT, file, 0, 0,
                           "plan %lld asks no clock for the %s of microbatch %u of rank %u, expected one clock for "
                           "each of %u microbatches",
                           (long long)r->plan[plan], backward ? "backward" : "forward", next, rank, r->microbatches);
    }
    return FL_OK;
}

static fl_status read_plans(fl_pipeline_runs *r, const char *path, fl_diag *d) {
    fl_plans plans;
    fl_status s = fl_plans_read(path, &plans, d);
    if (s)
        return s;
    if (plans.chunks > 1)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "%u chunks, expected 1: the fit knows no interleaved schedule",
                    plans.chunks);
    r->plan = plans.number;
    r->plan_count = plans.plan_count;
    r->ranks = plans.ranks;
    r->microbatches = plans.microbatches;
    r->top_mhz = plans.top_mhz;
    r->asked = plans.row;
    r->asked_count = plans.row_count;
    plans.number = NULL;
    plans.row = NULL;
    fl_plans_free(&plans);
    return s ? s : check_plans(r, path, d);
}

/* ---- measured ---- */

enum { M_PLAN, M_RANK, M_TIME, M_ENERGY, M_PLAN_TIME, M_PLAN_ENERGY, M_REQUIRED, M_COLUMNS = 11 };
static const char *const MEASURED_COLUMN[] = {
    "plan",          "rank",           "iter_time_s",      "iter_energy_j",  "plan_time_s",
    "plan_energy_j", "iter_time_sd_s", "iter_energy_sd_j", "plan_time_sd_s", "plan_energy_sd_j",
    "iterations"};

static fl_status take_measured(fl_pipeline_runs *r, const fl_csv_row *row, const size_t *where, fl_diag *d) {
    uint32_t plan = 0, rank = 0;
    fl_run_row m;
    double time_s, energy_j;
    fl_status s = find_plan(r, row, where[M_PLAN], &plan, d);
    if (!s)
        s = find_rank(r, row, where[M_RANK], &rank, d);
    if (!s)
        s = fl_field_real(row, where[M_TIME], "iter_time_s", 1e-6, 1e6, &m.time_s, d);
    if (!s)
        s = fl_field_real(row, where[M_ENERGY], "iter_energy_j", 1e-6, 1e9, &m.energy_j, d);
    if (!s)
        s = fl_field_real(row, where[M_PLAN_TIME], "plan_time_s", 1e-6, 1e6, &time_s, d);
    if (!s)
        s = fl_field_real(row, where[M_PLAN_ENERGY], "plan_energy_j", 1e-6, 1e9, &energy_j, d);
    if (s)
        return s;
    fl_run_row *run = &r->run[(size_t)plan * r->ranks + rank];
    if (run->time_s > 0)
        return FL_FIELD_FAIL(d, row, where[M_RANK], "a second row of plan %lld and rank %u, expected one",
                             (long long)r->plan[plan], (unsigned)rank);
    *run = m;
    r->time_s[plan] = time_s;
    r->energy_j[plan] = energy_j;
    return FL_OK;
}

/* ---- instructions ---- */

enum { I_PLAN, I_RANK, I_KIND, I_MHZ, I_COUNT, I_MEAN, I_SD, I_REQUIRED, I_COLUMNS = 8 };
static const char *const INSTRUCTION_COLUMN[] = {"plan",  "rank",        "kind",      "sm_mhz",
                                                 "count", "time_mean_s", "time_sd_s", "switched"};

static fl_status take_instruction(fl_pipeline_runs *r, const fl_csv_row *row, const size_t *where, fl_diag *d) {
    static const fl_pipeline_what KIND[] = {FL_PIPELINE_FORWARD, FL_PIPELINE_BACKWARD, FL_PIPELINE_LOAD,
                                            FL_PIPELINE_LOAD_IN_RECV};
    fl_part_row p = {.line = row->line};
    fl_status s = find_plan(r, row, where[I_PLAN], &p.plan, d);
    if (!s)
        s = find_rank(r, row, where[I_RANK], &p.rank, d);
    if (!s)
        s = fl_field_real(row, where[I_MHZ], "sm_mhz", 1, 1e5, &p.sm_mhz, d);
    if (!s)
        s = get_int(row, where[I_COUNT], "count", 1, UINT32_MAX, &p.count, d);
    if (!s)
        s = fl_field_real(row, where[I_MEAN], "time_mean_s", 1e-9, 1e6, &p.mean_s, d);
    if (!s)
        s = fl_field_real(row, where[I_SD], "time_sd_s", 0, 1e6, &p.sd_s, d);
    if (s)
        return s;
    size_t k = 0;
    const char *name = row->field[where[I_KIND]].text;
    while (k < sizeof KIND / sizeof *KIND && strcmp(name, fl_pipeline_what_name[KIND[k]]) != 0)
        k++;
    if (k == sizeof KIND / sizeof *KIND)
        return FL_FIELD_FAIL(d, row, where[I_KIND], "kind is '%.60s', expected forward, backward, load or load_in_recv",
                             name);
    p.what = KIND[k];
    if (fl_grow(&r->part, &r->part_room, r->part_count + 1, sizeof p))
        return fl_no_memory(d, row->file);
    r->part[r->part_count++] = p;
    return FL_OK;
}

static int by_place(const void *a, const void *b) {
    const fl_part_row *x = a, *y = b;
    if (x->plan != y->plan)
        return x->plan < y->plan ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* ---- power limits ---- */

enum { C_FAMILY, C_PLAN, C_RANK, C_LIMIT, C_TIME, C_ENERGY, C_REQUIRED, C_COLUMNS = 13 };
static const char *const CAP_COLUMN[] = {
    "family",      "plan",           "rank",          "power_limit_w",    "plan_time_s",    "plan_energy_j",
    "iter_time_s", "iter_time_sd_s", "iter_energy_j", "iter_energy_sd_j", "plan_time_sd_s", "plan_energy_sd_j",
    "iterations"};

static fl_status take_cap(fl_pipeline_runs *r, const fl_csv_row *row, const size_t *where, fl_diag *d) {
    fl_cap_run c = {0};
    uint32_t rank = 0;
    double watts = 0;
    fl_status s = fl_field_int(row, where[C_PLAN], "plan", 0, INT64_MAX, &c.plan, d);
    if (!s)
        s = find_rank(r, row, where[C_RANK], &rank, d);
    if (!s)
        s = fl_field_real(row, where[C_LIMIT], "power_limit_w", 1, 1e5, &watts, d);
    if (!s)
        s = fl_field_real(row, where[C_TIME], "plan_time_s", 1e-6, 1e6, &c.time_s, d);
    if (!s)
        s = fl_field_real(row, where[C_ENERGY], "plan_energy_j", 1e-6, 1e9, &c.energy_j, d);
    if (s)
        return s;
    snprintf(c.family, sizeof c.family, "%s", row->field[where[C_FAMILY]].text);
    const fl_cap_run *last = r->cap_count ? &r->cap[r->cap_count - 1] : NULL;
    if (!last || last->plan != c.plan || strcmp(last->family, c.family) != 0) {
        if (fl_grow(&r->cap, &r->cap_room, r->cap_count + 1, sizeof c) ||
            fl_grow(&r->limit_w, &r->limit_room, (r->cap_count + 1) * r->ranks, sizeof *r->limit_w))
            return fl_no_memory(d, row->file);
        memset(r->limit_w + r->cap_count * r->ranks, 0, r->ranks * sizeof *r->limit_w);
        r->cap[r->cap_count++] = c;
    }
    double *limit_w = &r->limit_w[(r->cap_count - 1) * r->ranks + rank];
    if (*limit_w > 0)
        return FL_FIELD_FAIL(d, row, where[C_RANK], "a second row of %s plan %lld and rank %u, expected one", c.family,
                             (long long)c.plan, (unsigned)rank);
    *limit_w = watts;
    return FL_OK;
}

static fl_status check_caps(const fl_pipeline_runs *r, const char *file, fl_diag *d) {
    for (size_t i = 0; i < r->cap_count * r->ranks; i++)
        if (!(r->limit_w[i] > 0))
            return fl_fail(d, FL_BAD_INPUT, file, 0, 0, "%s plan %lld has no row of rank %zu, expected one",
                           r->cap[i / r->ranks].family, (long long)r->cap[i / r->ranks].plan, i % r->ranks);
    return FL_OK;
}

/* ---- files ---- */

static const table TABLE[] = {
    {.ending = "plans.csv"}, /* traces/pipeline/pipeline.h */
    {"measured.csv", MEASURED_COLUMN, M_COLUMNS, M_REQUIRED, take_measured},
    {"instructions.csv", INSTRUCTION_COLUMN, I_COLUMNS, I_REQUIRED, take_instruction},
    {"caps.csv", CAP_COLUMN, C_COLUMNS, C_REQUIRED, take_cap},
};
enum { PLANS, MEASURED, PARTS, CAPS };

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, l->t->column, l->t->count, l->t->required, l->where, d);
    }
    const fl_status s = fl_columns_width(row, l->width, d);
    return s ? s : l->t->take(l->r, row, l->where, d);
}

static fl_status make_room(fl_pipeline_runs *r, fl_diag *d) {
    const size_t cells = r->plan_count * r->ranks; /* at most half the rows that were read */
    r->run = calloc(cells + 1, sizeof *r->run);
    r->time_s = calloc(r->plan_count + 1, sizeof *r->time_s);
    r->energy_j = calloc(r->plan_count + 1, sizeof *r->energy_j);
    return r->run && r->time_s && r->energy_j ? FL_OK : fl_no_memory(d, "the plans");
}

static fl_status check_measured(const fl_pipeline_runs *r, const char *file, fl_diag *d) {
    for (size_t i = 0; i < r->plan_count * r->ranks; i++)
        if (!(r->run[i].time_s > 0))
            return fl_fail(d, FL_BAD_INPUT, file, 0, 0, "plan %lld was not measured on rank %zu, expected a row",
                           (long long)r->plan[i / r->ranks], i % r->ranks);
    return FL_OK;
}

fl_status fl_pipeline_runs_read(const char *base, fl_pipeline_runs *r, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-plan", .head_optional = true};
    fl_status s = FL_OK;
    *r = (fl_pipeline_runs){0};
    for (size_t k = 0; !s && k < sizeof TABLE / sizeof *TABLE; k++) {
        loader l = {.r = r, .t = &TABLE[k]};
        fl_head head = {0};
        char *path = NULL;
        if (asprintf(&path, "%s.%s", base, TABLE[k].ending) < 0) {
            path = NULL;
            s = fl_no_memory(d, base);
        }
        const bool there = k != CAPS || !path || !access(path, F_OK);
        if (!s && k == PLANS)
            s = read_plans(r, path, d);
        else if (!s && there)
            s = fl_csv_read(path, &OPTIONS, &head, on_row, &l, d);
        fl_head_free(&head);
        if (!s && k == PLANS)
            s = make_room(r, d);
        if (!s && k == MEASURED)
            s = check_measured(r, path, d);
        if (!s && k == PARTS && r->part_count)
            qsort(r->part, r->part_count, sizeof *r->part, by_place);
        if (!s && k == CAPS)
            s = check_caps(r, path, d);
        free(path);
    }
    if (s)
        fl_pipeline_runs_free(r);
    return s;
}

static bool is_before(uint32_t plan, uint32_t rank, uint32_t than_plan, uint32_t than_rank) {
    return plan != than_plan ? plan < than_plan : rank < than_rank;
}

size_t fl_pipeline_runs_asked(const fl_pipeline_runs *r, uint32_t plan, uint32_t rank) {
    size_t from = 0, to = r->asked_count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (is_before(r->asked[middle].plan, r->asked[middle].rank, plan, rank))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

size_t fl_pipeline_runs_part(const fl_pipeline_runs *r, uint32_t plan, uint32_t rank) {
    size_t from = 0, to = r->part_count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (is_before(r->part[middle].plan, r->part[middle].rank, plan, rank))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

void fl_pipeline_runs_free(fl_pipeline_runs *r) {
    free(r->plan);
    free(r->asked);
    free(r->run);
    free(r->time_s);
    free(r->energy_j);
    free(r->part);
    free(r->cap);
    free(r->limit_w);
    *r = (fl_pipeline_runs){0};
}
