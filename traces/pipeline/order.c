/* Lists of the instructions of each stage. */
#include "traces/pipeline/pipeline.h"

#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROW_NAME(id, name) #name,
const char *const fl_instruction_name[FL_INSTRUCTION_TYPES] = {FL_INSTRUCTIONS(ROW_NAME)};

enum { STAGE, INDEX, INSTRUCTION, MICROBATCH, MICROBATCH2, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"stage", "index", "instruction", "microbatch", "microbatch2"};

typedef struct loader {
    fl_pipeline_order o;
    uint32_t microbatches;
    size_t where[COLUMNS], width;
} loader;

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

static fl_status get_int(const loader *l, const fl_csv_row *row, size_t column, int64_t min, int64_t max,
                         int32_t *value, fl_diag *d) {
    int64_t n = 0;
    fl_status s = fl_field_int(row, l->where[column], COLUMN[column], min, max, &n, d);
    *value = (int32_t)n;
    return s;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, COLUMNS, COLUMNS, l->where, d);
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

static fl_status read_lists(const char *path, loader *l, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    return fl_csv_read(path, &OPTIONS, NULL, on_row, l, d);
}

fl_status fl_pipeline_order_stages(const char *path, uint32_t *stages, fl_diag *d) {
    loader l = {.microbatches = FL_PIPELINE_MICROBATCHES_MAX};
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
    loader l = {.microbatches = microbatches};
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
