/* Plan files, both ways, and their clocks by instruction. */
#include "traces/pipeline/pipeline.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANS_MAX = 100000 };
enum { RANK, INSTRUCTION, FIRST, COUNT, SM_MHZ, REQUIRED, PLAN = REQUIRED, CHUNK, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"rank", "instruction", "first_microbatch", "count", "sm_mhz",
                                            "plan", "chunk"};

typedef struct loader {
    fl_plans p;
    size_t where[COLUMNS], width;
} loader;

/* ---- rows ---- */

static fl_status get_int(const loader *l, const fl_csv_row *row, size_t column, int64_t min, int64_t max, int64_t *n,
                         fl_diag *d) {
    return fl_field_int(row, l->where[column], COLUMN[column], min, max, n, d);
}

static fl_status add_number(fl_plans *p, int64_t number, fl_diag *d) {
    if (p->plan_count == PLANS_MAX)
        return fl_fail(d, FL_BAD_INPUT, p->file, 0, 0, "more than %d plans, expected fewer", PLANS_MAX);
    if (fl_grow(&p->number, &p->plan_room, p->plan_count + 1, sizeof *p->number))
        return fl_no_memory(d, "the plans");
    p->number[p->plan_count++] = number;
    return FL_OK;
}

static fl_status add_row(fl_plans *p, const fl_plan_row *r, fl_diag *d) {
    if (fl_grow(&p->row, &p->row_room, p->row_count + 1, sizeof *r))
        return fl_no_memory(d, "the plans");
    p->row[p->row_count++] = *r;
    p->ranks = r->rank + 1 > p->ranks ? r->rank + 1 : p->ranks;
    p->chunks = r->chunk + 1 > p->chunks ? r->chunk + 1 : p->chunks;
    p->microbatches = r->first + r->count > p->microbatches ? r->first + r->count : p->microbatches;
    p->top_mhz = r->sm_mhz > p->top_mhz ? r->sm_mhz : p->top_mhz;
    return FL_OK;
}

/* Plans come one after the other: a number is the last one's or a higher one. */
static fl_status take_number(loader *l, const fl_csv_row *row, fl_diag *d) {
    int64_t number = 0;
    const fl_plans *p = &l->p;
    fl_status s = l->where[PLAN] == SIZE_MAX ? FL_OK : get_int(l, row, PLAN, 0, INT64_MAX, &number, d);
    if (s)
        return s;
    if (p->plan_count && p->number[p->plan_count - 1] > number)
        return FL_FIELD_FAIL(d, row, l->where[PLAN], "plan %lld comes after %lld, expected ascending numbers",
                             (long long)number, (long long)p->number[p->plan_count - 1]);
    return p->plan_count && p->number[p->plan_count - 1] == number ? FL_OK : add_number(&l->p, number, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, l->where, d);
    }
    int64_t rank = 0, chunk = 0, first = 0, count = 0;
    fl_plan_row r = {.line = row->line};
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = take_number(l, row, d);
    if (!s)
        s = get_int(l, row, RANK, 0, FL_PIPELINE_RANKS_MAX - 1, &rank, d);
    if (!s && l->where[CHUNK] != SIZE_MAX)
        s = get_int(l, row, CHUNK, 0, FL_PIPELINE_CHUNKS_MAX - 1, &chunk, d);
    if (!s)
        s = get_int(l, row, FIRST, 0, FL_PIPELINE_MICROBATCHES_MAX - 1, &first, d);
    if (!s)
        s = get_int(l, row, COUNT, 1, FL_PIPELINE_MICROBATCHES_MAX - first, &count, d);
    if (!s)
        s = fl_field_real(row, l->where[SM_MHZ], COLUMN[SM_MHZ], 1, 1e5, &r.sm_mhz, d);
    if (s)
        return s;
    if (r.sm_mhz != (double)(int32_t)r.sm_mhz) /* boards are set in whole MHz */
        return FL_FIELD_FAIL(d, row, l->where[SM_MHZ], "sm_mhz is '%.60s', expected whole MHz",
                             row->field[l->where[SM_MHZ]].text);
    const char *name = row->field[l->where[INSTRUCTION]].text;
    r.backward = !strcmp(name, "backward");
    if (!r.backward && strcmp(name, "forward") != 0)
        return FL_FIELD_FAIL(d, row, l->where[INSTRUCTION], "instruction is '%.60s', expected forward or backward",
                             name);
    r.plan = (uint32_t)l->p.plan_count - 1;
    r.rank = (uint32_t)rank;
    r.chunk = (uint32_t)chunk;
    r.first = (uint32_t)first;
    r.count = (uint32_t)count;
    return add_row(&l->p, &r, d);
}

/* Whether two rows are of the same instructions: plan, rank, direction and chunk; else which comes first. */
static int by_what(const fl_plan_row *x, const fl_plan_row *y) {
    if (x->plan != y->plan)
        return x->plan < y->plan ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->backward != y->backward)
        return x->backward ? 1 : -1;
    return x->chunk == y->chunk ? 0 : x->chunk < y->chunk ? -1 : 1;
}

static int by_place(const void *a, const void *b) {
    const fl_plan_row *x = a, *y = b;
    const int what = by_what(x, y);
    if (what || x->first != y->first)
        return what ? what : x->first < y->first ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static const char *name_of(const fl_plan_row *r) { return r->backward ? "backward" : "forward"; }

static fl_status sort_rows(fl_plans *p, fl_diag *d) {
    if (!p->row_count)
        return fl_fail(d, FL_BAD_INPUT, p->file, 0, 0, "no plans, expected at least one");
    qsort(p->row, p->row_count, sizeof *p->row, by_place);
    for (size_t i = 1; i < p->row_count; i++) {
        const fl_plan_row *x = &p->row[i - 1], *y = &p->row[i];
        if (!by_what(x, y) && y->first < x->first + x->count)
            return fl_fail(d, FL_BAD_INPUT, p->file, x->line > y->line ? x->line : y->line, 0,
                           "plan %lld asks twice for the %s of microbatch %u of rank %u, expected one clock for each "
                           "(see line %lld)",
                           (long long)p->number[x->plan], name_of(y), y->first, y->rank,
                           (long long)(x->line < y->line ? x->line : y->line));
    }
    return FL_OK;
}

static fl_status look_at_header(void *user, const fl_csv_row *row, fl_diag *d) {
    size_t where[COLUMNS];
    *(bool *)user = fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, where, d) == FL_OK;
    return FL_BAD_INPUT; /* seen enough */
}

bool fl_plans_is(const char *path) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-plan", .head_optional = true};
    fl_head head = {0};
    bool is = false;
    fl_csv_read(path, &OPTIONS, &head, look_at_header, &is, NULL);
    fl_head_free(&head);
    return is;
}

fl_status fl_plans_read(const char *path, fl_plans *p, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-plan", .head_optional = true};
    loader l = {0};
    fl_status s = (l.p.file = strdup(path)) ? FL_OK : fl_no_memory(d, path);
    if (!s)
        s = fl_csv_read(path, &OPTIONS, &l.p.head, on_row, &l, d);
    if (!s)
        s = sort_rows(&l.p, d);
    if (s)
        fl_plans_free(&l.p);
    *p = l.p;
    return s;
}

fl_status fl_plans_write(const char *path, const fl_plans *p, fl_diag *d) {
    const bool several = p->plan_count > 1 || (p->plan_count && p->number[0]), chunks = p->chunks > 1;
    fl_output *o;
    fl_status s = fl_output_begin(path, "foldline-plan", &p->head, &o, d);
    if (s)
        return s;
    FILE *file = fl_output_file(o);
    fprintf(file, "%srank,instruction%s,first_microbatch,count,sm_mhz\n", several ? "plan," : "",
            chunks ? ",chunk" : "");
    for (size_t i = 0; i < p->row_count; i++) {
        const fl_plan_row *r = &p->row[i];
        if (several)
            fprintf(file, "%lld,", (long long)p->number[r->plan]);
        fprintf(file, "%u,%s,", r->rank, name_of(r));
        if (chunks)
            fprintf(file, "%u,", r->chunk);
        fprintf(file, "%u,%u,%.0f\n", r->first, r->count, r->sm_mhz);
    }
    return fl_output_commit(o, d);
}

void fl_plans_free(fl_plans *p) {
    fl_head_free(&p->head);
    free(p->file);
    free(p->number);
    free(p->row);
    *p = (fl_plans){0};
}

fl_status fl_plans_find(const fl_plans *p, int64_t number, size_t *place, fl_diag *d) {
    size_t from = 0, to = p->plan_count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (p->number[middle] < number)
            from = middle + 1;
        else
            to = middle;
    }
    *place = from;
    if (from < p->plan_count && p->number[from] == number)
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, p->file, 0, 0, "no plan %lld, expected one of %zu, %lld to %lld", (long long)number,
                   p->plan_count, p->plan_count ? (long long)p->number[0] : 0,
                   p->plan_count ? (long long)p->number[p->plan_count - 1] : 0);
}

/* ---- clocks ---- */

fl_status fl_pipeline_clocks_new(const fl_pipeline *p, fl_pipeline_clocks *c, fl_diag *d) {
    *c = (fl_pipeline_clocks){.ranks = p->ranks, .chunks = p->chunks, .microbatches = p->microbatches};
    c->mhz = calloc((size_t)c->ranks * 2 * c->chunks * c->microbatches, sizeof *c->mhz);
    return c->mhz ? FL_OK : fl_no_memory(d, "the plan");
}

void fl_pipeline_clocks_free(fl_pipeline_clocks *c) {
    free(c->mhz);
    *c = (fl_pipeline_clocks){0};
}

static const fl_plan_row *first_row(const fl_plans *p, size_t place, uint32_t rank) {
    size_t from = 0, to = p->row_count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        const fl_plan_row *r = &p->row[middle];
        if (r->plan != place ? r->plan < place : r->rank < rank)
            from = middle + 1;
        else
            to = middle;
    }
    return p->row + from;
}

/* The first instruction of a rank without a clock, or none: the rank then has all of them or has none. */
static fl_status check_rank(const fl_plans *plans, size_t place, const fl_pipeline_clocks *c, uint32_t rank,
                            fl_diag *d) {
    const size_t each = (size_t)c->chunks * c->microbatches;
    const double *mhz = fl_pipeline_clock(c, rank, false, 0, 0);
    size_t asked = 0, lacks = 0;
    for (size_t i = 0; i < 2 * each; i++)
        asked += mhz[i] > 0;
    while (asked && lacks < 2 * each && mhz[lacks] > 0)
        lacks++;
    if (!asked || lacks == 2 * each)
        return FL_OK;
    char chunk[40] = "";
    if (c->chunks > 1)
        snprintf(chunk, sizeof chunk, " of chunk %zu", lacks % each / c->microbatches);
    return fl_fail(d, FL_BAD_INPUT, plans->file, 0, 0,
                   "plan %lld asks no clock for the %s of microbatch %zu%s of rank %u, expected one for each of %u "
                   "microbatches",
                   (long long)plans->number[place], lacks < each ? "forward" : "backward", lacks % c->microbatches,
                   chunk, rank, c->microbatches);
}

fl_status fl_plans_clocks(const fl_plans *plans, size_t place, const fl_pipeline *p, fl_pipeline_clocks *c,
                          fl_diag *d) {
    fl_status s = fl_pipeline_clocks_new(p, c, d);
    const fl_plan_row *end = plans->row + plans->row_count;
    for (const fl_plan_row *r = first_row(plans, place, 0); !s && r < end && r->plan == place; r++) {
        if (r->rank >= p->ranks)
            s = fl_fail(d, FL_BAD_INPUT, plans->file, r->line, 0, "rank is %u, expected 0 to %u: the pipeline has %u",
                        r->rank, p->ranks - 1, p->ranks);
        else if (r->chunk >= p->chunks)
            s = fl_fail(d, FL_BAD_INPUT, plans->file, r->line, 0, "chunk is %u, expected 0 to %u: the pipeline has %u",
                        r->chunk, p->chunks - 1, p->chunks);
        else if (r->first + r->count > p->microbatches)
            s = fl_fail(d, FL_BAD_INPUT, plans->file, r->line, 0,
                        "microbatch %u, expected 0 to %u: the pipeline has %u", r->first + r->count - 1,
                        p->microbatches - 1, p->microbatches);
        for (uint32_t m = 0; !s && m < r->count; m++)
            *fl_pipeline_clock(c, r->rank, r->backward, r->chunk, r->first + m) = r->sm_mhz;
    }
    for (uint32_t rank = 0; !s && rank < p->ranks; rank++)
        s = check_rank(plans, place, c, rank, d);
    if (s)
        fl_pipeline_clocks_free(c);
    return s;
}

fl_status fl_plans_add(fl_plans *plans, int64_t number, const fl_pipeline_clocks *c, fl_diag *d) {
    const uint32_t place = (uint32_t)plans->plan_count;
    fl_status s = FL_OK;
    if (plans->plan_count && plans->number[plans->plan_count - 1] >= number)
        return fl_fail(d, FL_BAD_INPUT, plans->file, 0, 0, "plan %lld comes after %lld, expected ascending numbers",
                       (long long)number, (long long)plans->number[plans->plan_count - 1]);
    s = add_number(plans, number, d);
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t part = 0; part < 2 * c->chunks; part++) { /* forwards of all chunks, then backwards */
            const bool backward = part >= c->chunks;
            const uint32_t chunk = part % c->chunks;
            for (uint32_t m = 0, next; !s && m < c->microbatches; m = next) {
                const double mhz = *fl_pipeline_clock(c, rank, backward, chunk, m);
                for (next = m + 1; next < c->microbatches && *fl_pipeline_clock(c, rank, backward, chunk, next) == mhz;)
                    next++;
                if (mhz > 0)
                    s = add_row(plans,
                                &(fl_plan_row){.plan = place,
                                               .rank = rank,
                                               .chunk = chunk,
                                               .first = m,
                                               .count = next - m,
                                               .backward = backward,
                                               .sm_mhz = mhz},
                                d);
            }
        }
    return s;
}

fl_status fl_plans_check_ladder(const fl_plans *plans, size_t place, uint32_t rank, const int32_t *mhz, uint32_t count,
                                fl_diag *d) {
    const fl_plan_row *end = plans->row + plans->row_count;
    for (const fl_plan_row *r = first_row(plans, place, rank); r < end && r->plan == place && r->rank == rank; r++) {
        uint32_t i = 0;
        while (i + 1 < count && mhz[i] < r->sm_mhz)
            i++;
        if (!count || mhz[i] == r->sm_mhz)
            continue;
        char of[64], text[FL_OFF_LADDER_TEXT];
        (void)snprintf(of, sizeof of, "the SM ladder of rank %u's board", rank);
        return fl_fail(d, FL_BAD_INPUT, plans->file, r->line, 0, "sm_mhz: %s",
                       fl_off_ladder(r->sm_mhz, of, mhz, count, text));
    }
    return FL_OK;
}
