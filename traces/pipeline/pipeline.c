/* Pipeline files, both ways. */
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW_NAME(id, name) #name,
const char *const fl_pipeline_what_name[FL_PIPELINE_WHATS] = {FL_PIPELINE_WHAT(ROW_NAME)};
const char *const fl_pipeline_schedule_name[FL_PIPELINE_SCHEDULES] = {"1f1b", "gpipe", "interleaved", "list"};

enum { RANK, WHAT, SM_MHZ, TIME_S, POWER_W, REQUIRED };
enum { CHUNK = REQUIRED, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"rank", "what", "sm_mhz", "time_s", "power_w", "chunk"};

/* What a row of each kind has; the fields that it does not have must be empty. */
static const struct {
    bool clock, time, power;
} HAS[FL_PIPELINE_WHATS] = {
    [FL_PIPELINE_FORWARD] = {true, true, true}, [FL_PIPELINE_BACKWARD] = {true, true, true},
    [FL_PIPELINE_LOAD] = {.time = true},        [FL_PIPELINE_LOAD_IN_RECV] = {.time = true},
    [FL_PIPELINE_ACT] = {.time = true},         [FL_PIPELINE_GRAD] = {.time = true},
    [FL_PIPELINE_REDUCE_TIED] = {.time = true}, [FL_PIPELINE_REDUCE_DATA] = {.time = true},
    [FL_PIPELINE_STEP] = {.time = true},        [FL_PIPELINE_BLOCKED] = {.power = true},
};

typedef struct loader {
    fl_pipeline p;
    const char *path;
    size_t where[COLUMNS], width;
} loader;

/* ---- the head ---- */

static fl_status head_count(const fl_pipeline *p, const char *path, const char *key, int64_t standard, int64_t max,
                            uint32_t *value, fl_diag *d) {
    const char *text = fl_head_get(&p->head, key);
    int64_t n = standard;
    if (!text && !standard)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "head: no %s, expected '# %s: N'", key, key);
    if (text && (fl_int_parse(text, &n) != FL_NUMBER_OK || n < 1 || n > max))
        return fl_fail(d, FL_BAD_INPUT, path, fl_head_line(&p->head, key), 0, "%s is '%.100s', expected 1 to %lld", key,
                       text, (long long)max);
    *value = (uint32_t)n;
    return FL_OK;
}

static fl_status head_limit(fl_pipeline *p, const char *path, fl_diag *d) {
    const char *text = fl_head_get(&p->head, "power_limit_w");
    if (!text || (fl_real_parse(text, &p->limit_w) == FL_NUMBER_OK && p->limit_w > 0 && p->limit_w <= FL_WATTS_MOST))
        return FL_OK;
    return fl_fail(d, FL_BAD_INPUT, path, fl_head_line(&p->head, "power_limit_w"), 0,
                   "power_limit_w is '%.100s', expected a limit in W", text);
}

static fl_status head_order(fl_pipeline *p, const char *path, fl_diag *d) {
    const char *text = fl_head_get(&p->head, "order");
    const bool list = p->schedule == FL_PIPELINE_LIST;
    if (!list && text)
        return fl_fail(d, FL_BAD_INPUT, path, fl_head_line(&p->head, "order"), 0,
                       "order is stated, expected it with 'schedule: list' only");
    if (list && !text)
        return fl_fail(d, FL_BAD_INPUT, path, fl_head_line(&p->head, "schedule"), 0,
                       "the schedule is a list and no file has it, expected '# order: FILE'");
    if (!list)
        return FL_OK;
    p->order = fl_path_named(path, text);
    return p->order ? FL_OK : fl_no_memory(d, path);
}

static fl_status read_head(fl_pipeline *p, const char *path, fl_diag *d) {
    const char *schedule = fl_head_get(&p->head, "schedule");
    fl_status s = head_count(p, path, "stages", 0, FL_PIPELINE_RANKS_MAX, &p->stages, d);
    if (!s)
        s = head_count(p, path, "microbatches", 0, FL_PIPELINE_MICROBATCHES_MAX, &p->microbatches, d);
    if (!s)
        s = head_count(p, path, "chunks", 1, FL_PIPELINE_CHUNKS_MAX, &p->chunks, d);
    if (!s)
        s = head_count(p, path, "data_parallel", 1, FL_PIPELINE_RANKS_MAX, &p->data_parallel, d);
    if (!s)
        s = head_count(p, path, "tensor_parallel", 1, FL_PIPELINE_RANKS_MAX, &p->tensor_parallel, d);
    if (s)
        return s;
    const uint64_t ranks = (uint64_t)p->stages * p->data_parallel * p->tensor_parallel;
    if (ranks > FL_PIPELINE_RANKS_MAX)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "head: %llu ranks, expected at most %d", (unsigned long long)ranks,
                       FL_PIPELINE_RANKS_MAX);
    p->ranks = (uint32_t)ranks;
    if (!schedule)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "head: no schedule, expected '# schedule: 1f1b', gpipe, interleaved or list");
    size_t k = 0;
    while (k < FL_PIPELINE_SCHEDULES && strcmp(schedule, fl_pipeline_schedule_name[k]) != 0)
        k++;
    if (k == FL_PIPELINE_SCHEDULES)
        return fl_fail(d, FL_BAD_INPUT, path, fl_head_line(&p->head, "schedule"), 0,
                       "schedule is '%.100s', expected 1f1b, gpipe, interleaved or list", schedule);
    p->schedule = (fl_pipeline_schedule)k;
    if (p->chunks > 1 && p->schedule != FL_PIPELINE_INTERLEAVED)
        return fl_fail(d, FL_BAD_INPUT, path, fl_head_line(&p->head, "chunks"), 0,
                       "%u chunks, expected 1 with any schedule but interleaved", p->chunks);
    if (p->schedule == FL_PIPELINE_INTERLEAVED && p->microbatches % p->stages)
        return fl_fail(d, FL_BAD_INPUT, path, fl_head_line(&p->head, "microbatches"), 0,
                       "%u microbatches over %u stages, expected a multiple with an interleaved schedule",
                       p->microbatches, p->stages);
    const fl_status limit = head_limit(p, path, d);
    return limit ? limit : head_order(p, path, d);
}

/* ---- rows ---- */

static fl_status get_number(const loader *l, const fl_csv_row *row, size_t column, fl_pipeline_what what, bool has,
                            double min, double max, double *value, fl_diag *d) {
    const size_t at = l->where[column];
    *value = NAN;
    if (has)
        return fl_field_real(row, at, COLUMN[column], min, max, value, d);
    if (row->field[at].size)
        return FL_FIELD_FAIL(d, row, at, "%s of '%s' is '%.100s', expected nothing", COLUMN[column],
                             fl_pipeline_what_name[what], row->field[at].text);
    return FL_OK;
}

static fl_status get_index(const loader *l, const fl_csv_row *row, size_t column, uint32_t count, int32_t *value,
                           fl_diag *d) {
    const size_t at = l->where[column];
    int64_t n;
    *value = FL_PIPELINE_ALL;
    if (at == SIZE_MAX || !strcmp(row->field[at].text, "*") || (column == CHUNK && !row->field[at].size))
        return FL_OK;
    if (fl_int_parse(row->field[at].text, &n) != FL_NUMBER_OK || n < 0 || n >= count)
        return FL_FIELD_FAIL(d, row, at, "%s is '%.100s', expected 0 to %u, or * for all", COLUMN[column],
                             row->field[at].text, count - 1);
    *value = (int32_t)n;
    return FL_OK;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width) {
        l->width = row->count;
        fl_status s = fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, l->where, d);
        return s ? s : read_head(&l->p, l->path, d);
    }
    fl_pipeline_row r = {.line = row->line};
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = get_index(l, row, RANK, l->p.ranks, &r.rank, d);
    if (!s)
        s = get_index(l, row, CHUNK, l->p.chunks, &r.chunk, d);
    if (s)
        return s;
    size_t what = 0;
    while (what < FL_PIPELINE_WHATS && strcmp(row->field[l->where[WHAT]].text, fl_pipeline_what_name[what]) != 0)
        what++;
    if (what == FL_PIPELINE_WHATS) {
        s = fl_fail_unknown(d, row->file, "what", row->field[l->where[WHAT]].text, fl_pipeline_what_name,
                            FL_PIPELINE_WHATS);
        if (d)
            d->line = row->line, d->column = row->field[l->where[WHAT]].column;
        return s;
    }
    r.what = (fl_pipeline_what)what;
    s = get_number(l, row, SM_MHZ, r.what, HAS[what].clock, 1, 1e5, &r.sm_mhz, d);
    if (!s)
        s = get_number(l, row, TIME_S, r.what, HAS[what].time, HAS[what].clock ? 1e-9 : 0, 1e5, &r.time_s, d);
    if (!s)
        s = get_number(l, row, POWER_W, r.what, HAS[what].power, 0, 1e5, &r.power_w, d);
    return s ? s : fl_pipeline_add(&l->p, &r, d);
}

fl_status fl_pipeline_add(fl_pipeline *p, const fl_pipeline_row *row, fl_diag *d) {
    if (fl_grow(&p->row, &p->row_room, p->row_count + 1, sizeof *row))
        return fl_no_memory(d, "the pipeline");
    p->row[p->row_count++] = *row;
    return FL_OK;
}

static int by_what(const fl_pipeline_row *x, const fl_pipeline_row *y) {
    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->chunk == y->chunk ? 0 : x->chunk < y->chunk ? -1 : 1;
}

static int by_all(const void *a, const void *b) {
    const fl_pipeline_row *x = a, *y = b;
    const int what = by_what(x, y);
    if (what || isnan(x->sm_mhz))
        return what;
    return x->sm_mhz < y->sm_mhz ? -1 : x->sm_mhz > y->sm_mhz;
}

const fl_pipeline_row *fl_pipeline_rows(const fl_pipeline *p, uint32_t rank, uint32_t chunk, fl_pipeline_what what,
                                        size_t *count) {
    const struct {
        int32_t rank, chunk;
    } wanted[] = {{(int32_t)rank, (int32_t)chunk},
                  {(int32_t)rank, FL_PIPELINE_ALL},
                  {FL_PIPELINE_ALL, (int32_t)chunk},
                  {FL_PIPELINE_ALL, FL_PIPELINE_ALL}};
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        const fl_pipeline_row like = {.rank = wanted[k].rank, .chunk = wanted[k].chunk, .what = what};
        size_t from = 0, to = p->row_count;
        while (from < to) {
            const size_t middle = from + (to - from) / 2;
            if (by_what(&p->row[middle], &like) < 0)
                from = middle + 1;
            else
                to = middle;
        }
        for (size_t end = p->row_count; to < end;) {
            const size_t middle = to + (end - to) / 2;
            if (by_what(&p->row[middle], &like) <= 0)
                to = middle + 1;
            else
                end = middle;
        }
        if (to > from) {
            *count = to - from;
            return &p->row[from];
        }
    }
    *count = 0;
    return NULL;
}

double fl_pipeline_most_w(const fl_pipeline *p) {
    double most = 0;
    for (size_t i = 0; i < p->row_count; i++)
        if (HAS[p->row[i].what].clock)
            most = fmax(most, p->row[i].power_w);
    return most;
}

fl_status fl_pipeline_check_size(const fl_pipeline *p, fl_diag *d) {
    const uint64_t parts = (uint64_t)p->ranks * p->chunks * p->microbatches,
                   meetings = parts * (p->tensor_parallel - 1);
    if (parts > FL_PIPELINE_PARTS_MAX)
        return fl_fail(d, FL_BAD_INPUT, p->file, 0, 0,
                       "%llu forwards in one iteration (ranks x chunks x microbatches), expected at most %d",
                       (unsigned long long)parts, FL_PIPELINE_PARTS_MAX);
    if (meetings > FL_PIPELINE_MEETINGS_MAX)
        return fl_fail(d, FL_BAD_INPUT, p->file, 0, 0,
                       "%llu times a forward meets another of its tensor-parallel group, expected at most %d",
                       (unsigned long long)meetings, FL_PIPELINE_MEETINGS_MAX);
    return FL_OK;
}

fl_status fl_pipeline_finish(fl_pipeline *p, fl_diag *d) {
    static const fl_pipeline_what NEEDED[] = {FL_PIPELINE_FORWARD, FL_PIPELINE_BACKWARD, FL_PIPELINE_BLOCKED};
    const fl_status s = fl_pipeline_check_size(p, d);
    if (s)
        return s;
    if (p->row_count)
        qsort(p->row, p->row_count, sizeof *p->row, by_all);
    for (size_t i = 1; i < p->row_count; i++)
        if (!by_all(&p->row[i - 1], &p->row[i])) {
            const int64_t first = p->row[i - 1].line, second = p->row[i].line; /* qsort keeps no order among equals */
            return fl_fail(d, FL_BAD_INPUT, p->file, first > second ? first : second, 0,
                           "'%s' is stated twice, expected one row for each rank, chunk and clock (see line %lld)",
                           fl_pipeline_what_name[p->row[i].what], (long long)(first < second ? first : second));
        }
    for (uint32_t rank = 0; rank < p->ranks; rank++)
        for (uint32_t chunk = 0; chunk < p->chunks; chunk++)
            for (size_t k = 0; k < sizeof NEEDED / sizeof *NEEDED; k++) {
                size_t count;
                if (!fl_pipeline_rows(p, rank, chunk, NEEDED[k], &count))
                    return fl_fail(d, FL_BAD_INPUT, p->file, 0, 0, "rank %u has no '%s', expected a row of it or of *",
                                   rank, fl_pipeline_what_name[NEEDED[k]]);
            }
    return FL_OK;
}

fl_status fl_pipeline_read(const char *path, fl_pipeline *p, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-pipeline"};
    loader l = {.path = path};
    fl_status s = (l.p.file = strdup(path)) ? FL_OK : fl_no_memory(d, path);
    if (!s)
        s = fl_csv_read(path, &OPTIONS, &l.p.head, on_row, &l, d);
    if (!s)
        s = fl_pipeline_finish(&l.p, d);
    if (s)
        fl_pipeline_free(&l.p);
    *p = l.p;
    return s;
}

fl_status fl_pipeline_write(const char *path, const fl_pipeline *p, fl_diag *d) {
    fl_output *o;
    fl_status s = fl_output_begin(path, "foldline-pipeline", &p->head, &o, d);
    if (s)
        return s;
    FILE *file = fl_output_file(o);
    fputs(p->chunks > 1 ? "rank,what,sm_mhz,time_s,power_w,chunk\n" : "rank,what,sm_mhz,time_s,power_w\n", file);
    for (size_t i = 0; i < p->row_count; i++) {
        const fl_pipeline_row *r = &p->row[i];
        if (r->rank == FL_PIPELINE_ALL)
            fputc('*', file);
        else
            fprintf(file, "%d", r->rank);
        fprintf(file, ",%s", fl_pipeline_what_name[r->what]);
        for (size_t k = 0; k < 3; k++) {
            fputc(',', file);
            fl_put_real(file, (const double[]){r->sm_mhz, r->time_s, r->power_w}[k]);
        }
        if (p->chunks > 1 && r->chunk != FL_PIPELINE_ALL)
            fprintf(file, ",%d", r->chunk);
        else if (p->chunks > 1)
            fputs(",*", file);
        fputc('\n', file);
    }
    return fl_output_commit(o, d);
}

void fl_pipeline_free(fl_pipeline *p) {
    fl_head_free(&p->head);
    free(p->file);
    free(p->order);
    free(p->row);
    *p = (fl_pipeline){0};
}

/* ---- lists of the instructions of each stage ---- */

#define ORDER_NAME(id, name) #name,
const char *const fl_instruction_name[FL_INSTRUCTION_TYPES] = {FL_INSTRUCTIONS(ORDER_NAME)};

enum { STAGE, INDEX, INSTRUCTION, MICROBATCH, MICROBATCH2, ORDER_COLUMNS };
static const char *const ORDER_COLUMN[ORDER_COLUMNS] = {"stage", "index", "instruction", "microbatch", "microbatch2"};

typedef struct order_loader {
    fl_pipeline_order o;
    uint32_t microbatches;
    size_t where[ORDER_COLUMNS], width;
} order_loader;

/* How many microbatches an instruction names. */
static int microbatches_of(fl_instruction_type type) {
    switch (type) {
    case FL_DO_SEND_ACT_RECV_GRAD:
    case FL_DO_SEND_GRAD_RECV_ACT:
        return 2;
    case FL_DO_REDUCE_TIED:
    case FL_DO_REDUCE_DATA:
    case FL_DO_STEP:
        return 0;
    default:
        return 1;
    }
}

fl_status fl_pipeline_order_new(fl_pipeline_order *o, uint32_t stages, fl_diag *d) {
    *o = (fl_pipeline_order){.stage = calloc(stages, sizeof *o->stage), .stages = stages};
    return o->stage ? FL_OK : fl_no_memory(d, "the pipeline");
}

fl_status fl_pipeline_order_add(fl_pipeline_order *o, uint32_t stage, fl_instruction item, fl_diag *d) {
    fl_pipeline_list *l = &o->stage[stage];
    if (fl_grow(&l->item, &l->room, l->count + 1, sizeof item))
        return fl_no_memory(d, "the pipeline");
    l->item[l->count++] = item;
    return FL_OK;
}

static fl_status get_int(const order_loader *l, const fl_csv_row *row, size_t column, int64_t min, int64_t max,
                         int32_t *value, fl_diag *d) {
    int64_t n = 0;
    fl_status s = fl_field_int(row, l->where[column], ORDER_COLUMN[column], min, max, &n, d);
    *value = (int32_t)n;
    return s;
}

static fl_status on_instruction(void *user, const fl_csv_row *row, fl_diag *d) {
    order_loader *l = user;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, ORDER_COLUMN, ORDER_COLUMNS, ORDER_COLUMNS, l->where, d);
    }
    int32_t stage, index;
    fl_instruction item = {0};
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = get_int(l, row, STAGE, 0, l->o.stages - 1, &stage, d);
    if (!s)
        s = get_int(l, row, INDEX, 0, INT32_MAX, &index, d);
    if (s)
        return s;
    if ((size_t)index != l->o.stage[stage].count)
        return FL_FIELD_FAIL(d, row, l->where[INDEX], "index is %d, expected %zu, the next of stage %d", index,
                             l->o.stage[stage].count, stage);
    size_t type = 0;
    const fl_field *name = &row->field[l->where[INSTRUCTION]];
    while (type < FL_INSTRUCTION_TYPES && strcmp(name->text, fl_instruction_name[type]) != 0)
        type++;
    if (type == FL_INSTRUCTION_TYPES) {
        s = fl_fail_unknown(d, row->file, "instruction", name->text, fl_instruction_name, FL_INSTRUCTION_TYPES);
        if (d)
            d->line = row->line, d->column = name->column;
        return s;
    }
    item.type = (fl_instruction_type)type;
    const int64_t last = (int64_t)l->microbatches - 1;
    const int named = microbatches_of(item.type);
    s = get_int(l, row, MICROBATCH, named > 0 ? 0 : -1, named > 0 ? last : -1, &item.microbatch, d);
    if (!s)
        s = get_int(l, row, MICROBATCH2, named > 1 ? 0 : -1, named > 1 ? last : -1, &item.microbatch2, d);
    return s ? s : fl_pipeline_order_add(&l->o, (uint32_t)stage, item, d);
}

static fl_status read_lists(const char *path, order_loader *l, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    return fl_csv_read(path, &OPTIONS, NULL, on_instruction, l, d);
}

fl_status fl_pipeline_order_stages(const char *path, uint32_t *stages, fl_diag *d) {
    order_loader l = {.microbatches = FL_PIPELINE_MICROBATCHES_MAX};
    fl_status s = fl_pipeline_order_new(&l.o, FL_PIPELINE_RANKS_MAX, d);
    if (!s)
        s = read_lists(path, &l, d);
    *stages = 0;
    for (uint32_t i = 0; !s && i < l.o.stages; i++)
        *stages = l.o.stage[i].count ? i + 1 : *stages;
    if (!s && !*stages)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no instructions, expected some");
    fl_pipeline_order_free(&l.o);
    return s;
}

bool fl_pipeline_order_same(const fl_pipeline_order *x, const fl_pipeline_order *y) {
    bool same = x->stages == y->stages;
    for (uint32_t s = 0; same && s < x->stages; s++) {
        same = x->stage[s].count == y->stage[s].count;
        for (size_t i = 0; same && i < x->stage[s].count; i++) {
            const fl_instruction *a = &x->stage[s].item[i], *b = &y->stage[s].item[i];
            same = a->type == b->type && a->microbatch == b->microbatch && a->microbatch2 == b->microbatch2 &&
                   a->chunk == b->chunk;
        }
    }
    return same;
}

fl_status fl_pipeline_order_read(const char *path, uint32_t stages, uint32_t microbatches, fl_pipeline_order *o,
                                 fl_diag *d) {
    order_loader l = {.microbatches = microbatches};
    fl_status s = fl_pipeline_order_new(&l.o, stages, d);
    if (!s)
        s = read_lists(path, &l, d);
    for (uint32_t i = 0; !s && i < stages; i++)
        if (!l.o.stage[i].count)
            s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "stage %u has no instructions, expected some", i);
    if (s)
        fl_pipeline_order_free(&l.o);
    *o = l.o;
    return s;
}

void fl_pipeline_order_free(fl_pipeline_order *o) {
    for (uint32_t i = 0; o->stage && i < o->stages; i++)
        free(o->stage[i].item);
    free(o->stage);
    *o = (fl_pipeline_order){0};
}
