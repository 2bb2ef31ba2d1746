/* Kernel traces: building, writing, and reading row by row. */
#include "traces/files/files.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- building ---- */

fl_op_type fl_op_type_of(const char *name) {
    size_t size = strlen(name);
    if (name[0] != '[' || name[size - 1] != ']')
        return FL_OP_KERNEL;
    if (strcmp(name, "[sync]") == 0)
        return FL_OP_SYNC;
    return strcmp(name, "[iteration]") == 0 ? FL_OP_ITERATION : FL_OP_COPY;
}

static uint32_t add_name(fl_kernel_trace *t, const char *name) {
    for (size_t i = 0; i < t->name_count; i++)
        if (strcmp(t->names[i], name) == 0)
            return (uint32_t)i;
    if (t->name_count >= UINT32_MAX || fl_grow(&t->names, &t->name_room, t->name_count + 1, sizeof *t->names))
        return UINT32_MAX;
    char *copy = strdup(name);
    if (!copy)
        return UINT32_MAX;
    t->names[t->name_count] = copy;
    return (uint32_t)t->name_count++;
}

uint32_t fl_trace_add_kind(fl_kernel_trace *t, const char *name, const uint32_t grid[3], const uint32_t block[3]) {
    fl_trace_kind kind = {.name = add_name(t, name)};
    if (kind.name == UINT32_MAX)
        return UINT32_MAX;
    memcpy(kind.grid, grid, sizeof kind.grid);
    memcpy(kind.block, block, sizeof kind.block);
    for (size_t i = 0; i < t->kind_count; i++)
        if (memcmp(&t->kinds[i], &kind, sizeof kind) == 0)
            return (uint32_t)i;
    if (t->kind_count >= UINT32_MAX || fl_grow(&t->kinds, &t->kind_room, t->kind_count + 1, sizeof *t->kinds))
        return UINT32_MAX;
    t->kinds[t->kind_count] = kind;
    return (uint32_t)t->kind_count++;
}

fl_status fl_trace_add_op(fl_kernel_trace *t, const fl_trace_op *op) {
    if (t->op_count >= UINT32_MAX || fl_grow(&t->ops, &t->op_room, t->op_count + 1, sizeof *t->ops))
        return FL_NO_MEMORY;
    t->ops[t->op_count++] = *op;
    t->has_launches = t->has_launches || op->launch_ns != INT64_MIN;
    return FL_OK;
}

/* ---- writing ---- */

typedef struct columns { /* optional ones that some row fills */
    bool launch, thread, waits, bytes, sm_mhz;
} columns;

static void put_sizes(FILE *file, const uint32_t size[3], bool kernel) {
    for (int i = 0; i < 3; i++) {
        fputc(',', file);
        if (kernel || size[i])
            fl_put_int(file, size[i]);
    }
}

static void put_op(FILE *file, const fl_kernel_trace *t, const fl_trace_op *op, columns has) {
    const fl_trace_kind *kind = &t->kinds[op->kind];
    const char *name = t->names[kind->name];
    const int64_t first[] = {op->device, op->process, op->stream, op->start_ns, op->end_ns};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        fl_put_int(file, first[i]);
        fputc(',', file);
    }
    fl_csv_put(file, name);
    put_sizes(file, kind->grid, fl_op_type_of(name) == FL_OP_KERNEL);
    put_sizes(file, kind->block, fl_op_type_of(name) == FL_OP_KERNEL);
    if (has.launch) {
        fputc(',', file);
        if (op->launch_ns != INT64_MIN)
            fl_put_int(file, op->launch_ns);
    }
    if (has.thread) {
        fputc(',', file);
        if (op->host_thread >= 0)
            fl_put_int(file, op->host_thread);
    }
    if (has.waits) {
        fputc(',', file);
        for (uint16_t i = 0; i < op->waits_count; i++) {
            if (i)
                fputc('+', file);
            fl_put_int(file, t->waits[op->waits_first + i]);
        }
    }
    if (has.bytes) {
        fputc(',', file);
        if (op->bytes >= 0)
            fl_put_int(file, op->bytes);
    }
    if (has.sm_mhz) {
        fputc(',', file);
        if (op->sm_mhz)
            fl_put_int(file, op->sm_mhz);
    }
    fputc('\n', file);
}

/* Names that the reader would refuse must not get into a file. */
static fl_status check_names(const char *path, const fl_kernel_trace *t, fl_diag *d) {
    for (size_t i = 0; i < t->name_count; i++) {
        size_t left = strlen(t->names[i]), n;
        const char *text = t->names[i];
        for (; left && (n = fl_utf8(text, left)); text += n)
            left -= n;
        if (left || text == t->names[i])
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                           "cannot write the kernel name '%.60s', expected printable UTF-8", t->names[i]);
    }
    return FL_OK;
}

fl_status fl_kernels_write(const char *path, const fl_kernel_trace *t, fl_diag *d) {
    fl_status status = check_names(path, t, d);
    if (status)
        return status;
    fl_output *o;
    status = fl_output_begin(path, "foldline-kernels", &t->head, &o, d);
    if (status)
        return status;
    FILE *file = fl_output_file(o);
    columns has = {0};
    for (size_t i = 0; i < t->op_count; i++) {
        const fl_trace_op *op = &t->ops[i];
        has.launch = has.launch || op->launch_ns != INT64_MIN;
        has.thread = has.thread || op->host_thread >= 0;
        has.waits = has.waits || op->waits_count;
        has.bytes = has.bytes || op->bytes >= 0;
        has.sm_mhz = has.sm_mhz || op->sm_mhz;
    }
    fprintf(file, "device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z%s%s%s%s%s\n",
            has.launch ? ",launch_ns" : "", has.thread ? ",host_thread" : "", has.waits ? ",waits_for" : "",
            has.bytes ? ",bytes" : "", has.sm_mhz ? ",sm_mhz" : "");
    for (size_t i = 0; i < t->op_count; i++)
        put_op(file, t, &t->ops[i], has);
    return fl_output_commit(o, d);
}

/* ---- reading ---- */

enum {
    DEVICE,
    PROCESS,
    STREAM,
    START,
    END,
    NAME,
    GRID, /* and the two after it */
    BLOCK = GRID + 3,
    LAUNCH = BLOCK + 3,
    THREAD,
    WAITS,
    BYTES,
    SM_MHZ,
    COLUMNS,
    REQUIRED = LAUNCH
};

static const char *const COLUMN[COLUMNS] = {"device",    "process",     "stream",    "start_ns", "end_ns",  "name",
                                            "grid_x",    "grid_y",      "grid_z",    "block_x",  "block_y", "block_z",
                                            "launch_ns", "host_thread", "waits_for", "bytes",    "sm_mhz"};

typedef struct lane { /* one device, process and stream */
    int32_t device, process, stream;
    int64_t end_ns; /* latest so far */
} lane;

typedef struct jump { /* rows stand on consecutive lines, from `row` on `line` until the next jump */
    size_t row;
    int64_t line;
} jump;

typedef struct loader {
    fl_kernel_trace t;
    size_t where[COLUMNS], width; /* width 0: the header is still to come */
    fl_intern names, kinds, lanes;
    lane *lane;
    size_t lane_count, lane_room, last_lane; /* most rows follow one of their own lane */
    jump *jumps;
    size_t jump_count, jump_room;
    bool disorder; /* some op starts before an earlier row of its lane ends */
    fl_left_out left;
    size_t *gone; /* rows that were left out, ascending: waits_for numbers them too */
    size_t gone_count, gone_room, rows;
} loader;

/* ---- one row ---- */

static bool same_kind(const void *owner, uint32_t index, const void *key) {
    return memcmp((const fl_trace_kind *)owner + index, key, sizeof(fl_trace_kind)) == 0;
}

static bool same_lane(const void *owner, uint32_t index, const void *key) {
    const lane *a = (const lane *)owner + index;
    const int32_t *k = key;
    return a->device == k[0] && a->process == k[1] && a->stream == k[2];
}

static bool has_value(const loader *l, const fl_csv_row *row, size_t column) {
    return l->where[column] != SIZE_MAX && row->field[l->where[column]].size > 0;
}

static fl_status read_whole(const loader *l, const fl_csv_row *row, size_t column, int64_t min, int64_t max,
                            int64_t *value, fl_diag *d) {
    return fl_field_int(row, l->where[column], COLUMN[column], min, max, value, d);
}

static fl_status read_name(loader *l, const fl_csv_row *row, uint32_t *name, fl_diag *d) {
    const fl_field *f = &row->field[l->where[NAME]];
    if (f->size == 0)
        return FL_FIELD_FAIL(d, row, l->where[NAME], "name is empty, expected a kernel name");
    size_t known = l->t.name_count;
    *name = fl_intern_text(&l->names, &l->t.names, &l->t.name_count, &l->t.name_room, f->text, f->size);
    if (*name == UINT32_MAX)
        return fl_no_memory(d, row->file);
    for (size_t i = 0, n; *name == known && i < f->size; i += n)
        if ((n = fl_utf8(f->text + i, f->size - i)) == 0)
            return FL_FIELD_FAIL(d, row, l->where[NAME],
                                 "name holds byte 0x%02x at its place %zu, expected printable UTF-8",
                                 (unsigned)(unsigned char)f->text[i], i + 1);
    return FL_OK;
}

static fl_status read_kind(loader *l, const fl_csv_row *row, fl_trace_op *op, fl_diag *d) {
    fl_trace_kind kind;
    fl_status status = read_name(l, row, &kind.name, d);
    if (status)
        return status;
    op->type = (uint8_t)fl_op_type_of(row->field[l->where[NAME]].text);
    for (size_t i = 0; i < 6; i++) {
        int64_t size = 0;
        if (op->type == FL_OP_KERNEL || has_value(l, row, GRID + i)) {
            status = read_whole(l, row, GRID + i, 0, UINT32_MAX, &size, d);
            if (status)
                return status;
        }
        *(i < 3 ? &kind.grid[i] : &kind.block[i - 3]) = (uint32_t)size;
    }
    fl_intern_slot *slot = fl_intern_find(&l->kinds, fl_hash(&kind, sizeof kind), same_kind, l->t.kinds, &kind);
    if (!slot)
        return fl_no_memory(d, row->file);
    if (slot->index == UINT32_MAX) {
        if (fl_grow(&l->t.kinds, &l->t.kind_room, l->t.kind_count + 1, sizeof kind))
            return fl_no_memory(d, row->file);
        l->t.kinds[l->t.kind_count] = kind;
        slot->index = (uint32_t)l->t.kind_count++;
    }
    op->kind = slot->index;
    return FL_OK;
}

/* The op that a row of the file became; SIZE_MAX where it was left out. */
static size_t op_of(const loader *l, size_t row) {
    size_t low = 0, high = l->gone_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (l->gone[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->gone_count && l->gone[low] == row ? SIZE_MAX : row - low;
}

static fl_status read_waits(loader *l, const fl_csv_row *row, fl_trace_op *op, fl_diag *d) {
    size_t i = l->where[WAITS];
    const char *text = row->field[i].text;
    fl_kernel_trace *t = &l->t;
    for (;;) {
        char number[24];
        size_t size = strcspn(text, "+");
        int64_t wait = -1;
        if (size < sizeof number) {
            memcpy(number, text, size);
            number[size] = '\0';
            if (fl_int_parse(number, &wait) != FL_NUMBER_OK)
                wait = -1;
        }
        if (wait < 0)
            return FL_FIELD_FAIL(d, row, i, "waits_for is '%.40s', expected row numbers joined by '+'",
                                 row->field[i].text);
        if ((uint64_t)wait >= l->rows)
            return FL_FIELD_WRONG(d, row, i, "waits_for names row %lld, expected rows before its own, which is %zu",
                                  (long long)wait, l->rows);
        if (op->waits_count == UINT16_MAX)
            return FL_FIELD_FAIL(d, row, i, "waits_for names more than %d rows", UINT16_MAX);
        if (t->wait_count >= UINT32_MAX || fl_grow(&t->waits, &t->wait_room, t->wait_count + 1, sizeof *t->waits))
            return fl_no_memory(d, row->file);
        const size_t on = op_of(l, (size_t)wait);
        if (on != SIZE_MAX) {
            t->waits[t->wait_count++] = (uint32_t)on;
            op->waits_count++;
        }
        if (text[size] == '\0')
            return FL_OK;
        text += size + 1;
    }
}

static fl_status read_times(const loader *l, const fl_csv_row *row, fl_trace_op *op, fl_diag *d) {
    fl_status status = read_whole(l, row, START, 0, INT64_MAX, &op->start_ns, d);
    if (!status)
        status = read_whole(l, row, END, 0, INT64_MAX, &op->end_ns, d);
    if (status)
        return status;
    if (op->end_ns < op->start_ns)
        return FL_FIELD_WRONG(d, row, l->where[END], "end_ns %lld is before start_ns %lld", (long long)op->end_ns,
                              (long long)op->start_ns);
    if (!has_value(l, row, LAUNCH))
        return FL_OK;
    status = read_whole(l, row, LAUNCH, 0, INT64_MAX, &op->launch_ns, d);
    if (!status && op->launch_ns > op->start_ns)
        return FL_FIELD_WRONG(d, row, l->where[LAUNCH], "launch_ns %lld is after start_ns %lld",
                              (long long)op->launch_ns, (long long)op->start_ns);
    return status;
}

static void extend_lane(loader *l, lane *at, const fl_trace_op *op) {
    l->disorder = l->disorder || op->start_ns < at->end_ns;
    at->end_ns = op->end_ns > at->end_ns ? op->end_ns : at->end_ns;
}

/* Notes where the op's lane has come to, so that an ordered file needs no sorting afterwards. */
static fl_status follow_lane(loader *l, const fl_csv_row *row, const fl_trace_op *op, fl_diag *d) {
    if (op->type != FL_OP_KERNEL && op->type != FL_OP_COPY)
        return FL_OK;
    const int32_t key[3] = {op->device, op->process, op->stream};
    if (l->lane_count && same_lane(l->lane, (uint32_t)l->last_lane, key)) {
        extend_lane(l, &l->lane[l->last_lane], op);
        return FL_OK;
    }
    fl_intern_slot *slot = fl_intern_find(&l->lanes, fl_hash(key, sizeof key), same_lane, l->lane, key);
    if (!slot)
        return fl_no_memory(d, row->file);
    if (slot->index == UINT32_MAX) {
        if (fl_grow(&l->lane, &l->lane_room, l->lane_count + 1, sizeof *l->lane))
            return fl_no_memory(d, row->file);
        l->lane[l->lane_count] = (lane){op->device, op->process, op->stream, 0};
        slot->index = (uint32_t)l->lane_count++;
    }
    l->last_lane = slot->index;
    extend_lane(l, &l->lane[slot->index], op);
    return FL_OK;
}

static fl_status note_line(loader *l, const fl_csv_row *row, fl_diag *d) {
    size_t n = l->t.op_count;
    if (l->jump_count) {
        const jump *last = &l->jumps[l->jump_count - 1];
        if (row->line - last->line == (int64_t)(n - last->row))
            return FL_OK;
    }
    if (fl_grow(&l->jumps, &l->jump_room, l->jump_count + 1, sizeof *l->jumps))
        return fl_no_memory(d, row->file);
    l->jumps[l->jump_count++] = (jump){n, row->line};
    return FL_OK;
}

/* What a row lacks of its times; NULL: nothing. A marker may stand at 0. */
static const char *lacks(const loader *l, const fl_csv_row *row) {
    const char *start = row->field[l->where[START]].text, *end = row->field[l->where[END]].text;
    if (fl_no_value(start) || fl_no_value(end))
        return "start_ns or end_ns has no value";
    if (strcmp(start, "0") != 0 || strcmp(end, "0") != 0)
        return NULL;
    const fl_op_type type = fl_op_type_of(row->field[l->where[NAME]].text);
    if (type == FL_OP_KERNEL || type == FL_OP_COPY)
        return "start_ns and end_ns are 0, as of a kernel without times";
    return NULL;
}

static fl_status read_op(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_trace_op op = {.launch_ns = INT64_MIN, .bytes = -1, .host_thread = -1, .waits_first = 0};
    int64_t device = 0, process = 0, stream = 0, thread = -1, sm_mhz = 0;
    fl_status status = fl_columns_width(row, l->width, d);
    const char *without = status ? NULL : lacks(l, row);
    if (without)
        return fl_left_empty(&l->left, row->file, row->line, row->field[l->where[START]].column, d, "%s", without);
    if (!status)
        status = read_whole(l, row, DEVICE, 0, INT32_MAX, &device, d);
    if (!status)
        status = read_whole(l, row, PROCESS, 0, INT32_MAX, &process, d);
    if (!status)
        status = read_whole(l, row, STREAM, 0, INT32_MAX, &stream, d);
    if (!status)
        status = read_times(l, row, &op, d);
    if (!status)
        status = read_kind(l, row, &op, d);
    if (!status && has_value(l, row, THREAD))
        status = read_whole(l, row, THREAD, 0, INT32_MAX, &thread, d);
    if (!status && has_value(l, row, BYTES))
        status = read_whole(l, row, BYTES, 0, INT64_MAX, &op.bytes, d);
    if (!status && has_value(l, row, SM_MHZ))
        status = read_whole(l, row, SM_MHZ, 1, UINT16_MAX, &sm_mhz, d);
    if (!status && has_value(l, row, WAITS)) {
        op.waits_first = (uint32_t)l->t.wait_count;
        status = read_waits(l, row, &op, d);
    }
    if (status)
        return status;
    op.device = (int32_t)device;
    op.process = (int32_t)process;
    op.stream = (int32_t)stream;
    op.host_thread = (int32_t)thread;
    op.sm_mhz = (uint16_t)sm_mhz;
    status = follow_lane(l, row, &op, d);
    if (!status)
        status = note_line(l, row, d);
    if (!status && fl_trace_add_op(&l->t, &op))
        status = fl_no_memory(d, row->file);
    return status;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (l->width) {
        const size_t ops = l->t.op_count, waits = l->t.wait_count;
        const fl_status status = fl_left_row(&l->left, read_op(l, row, &l->left.own), d);
        if (!status && l->t.op_count == ops) {
            if (fl_grow(&l->gone, &l->gone_room, l->gone_count + 1, sizeof *l->gone))
                return fl_no_memory(d, row->file);
            l->gone[l->gone_count++] = l->rows;
            l->t.wait_count = waits;
        }
        l->rows++;
        return status;
    }
    l->width = row->count;
    return fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, l->where, d);
}

/* ---- the whole file ---- */

static int64_t line_of(const loader *l, size_t op) {
    size_t low = 0, high = l->jump_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (l->jumps[middle].row <= op)
            low = middle;
        else
            high = middle;
    }
    return l->jumps[low].line + (int64_t)(op - l->jumps[low].row);
}

static int three_way(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_lane_and_start(const void *a, const void *b, void *ops) {
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const fl_trace_op *x = (const fl_trace_op *)ops + i, *y = (const fl_trace_op *)ops + k;
    int order = three_way(x->device, y->device);
    order = order ? order : three_way(x->process, y->process);
    order = order ? order : three_way(x->stream, y->stream);
    order = order ? order : three_way(x->start_ns, y->start_ns);
    order = order ? order : three_way(x->end_ns, y->end_ns);
    return order ? order : three_way(i, k);
}

static const char *name_of(const fl_kernel_trace *t, uint32_t op) { return t->names[t->kinds[t->ops[op].kind].name]; }

/* Takes the marked ops out, and the waits for them. */
static fl_status take_out(fl_kernel_trace *t, const bool *out, fl_diag *d) {
    uint32_t *now = malloc((t->op_count + 1) * sizeof *now);
    size_t kept = 0, waits = 0;
    if (!now)
        return fl_no_memory(d, NULL);
    t->has_launches = false;
    for (size_t i = 0; i < t->op_count; i++) {
        now[i] = out[i] ? UINT32_MAX : (uint32_t)kept;
        if (out[i])
            continue;
        fl_trace_op op = t->ops[i];
        const size_t first = op.waits_first, count = op.waits_count;
        op.waits_first = (uint32_t)waits;
        op.waits_count = 0;
        for (size_t k = 0; k < count; k++)
            if (now[t->waits[first + k]] != UINT32_MAX) {
                t->waits[waits++] = now[t->waits[first + k]];
                op.waits_count++;
            }
        op.waits_first = op.waits_count ? op.waits_first : 0;
        t->has_launches |= op.launch_ns != INT64_MIN;
        t->ops[kept++] = op;
    }
    t->op_count = kept;
    t->wait_count = waits;
    free(now);
    return FL_OK;
}

static fl_status overlap_at(loader *l, const char *path, uint32_t a, uint32_t b, fl_diag *d) {
    const fl_kernel_trace *t = &l->t;
    const uint32_t later = b > a ? b : a, earlier = a + b - later;
    const fl_trace_op *x = &t->ops[later], *y = &t->ops[earlier];
    fl_fail(&l->left.own, FL_BAD_INPUT, path, line_of(l, later), 1,
            "'%.200s' (%lld to %lld ns) overlaps '%.200s' of line %lld (%lld to %lld ns), expected one at a "
            "time in device %d, process %d, stream %d",
            name_of(t, later), (long long)x->start_ns, (long long)x->end_ns, name_of(t, earlier),
            (long long)line_of(l, earlier), (long long)y->start_ns, (long long)y->end_ns, x->device, x->process,
            x->stream);
    l->left.rows--; /* the row was counted as it came */
    return fl_left_row(&l->left, fl_of_values(&l->left.own), d);
}

/* Rows may stand in any order, so overlap shows only in sorted ones. The op that begins later is left out. */
static fl_status check_overlap(loader *l, const char *path, fl_diag *d) {
    fl_kernel_trace *t = &l->t;
    uint32_t *index = malloc(t->op_count * sizeof *index);
    bool *out = calloc(t->op_count, sizeof *out);
    size_t count = 0, gone = 0;
    fl_status status = index && out ? FL_OK : fl_no_memory(d, path);
    for (size_t i = 0; !status && i < t->op_count; i++)
        if (t->ops[i].type == FL_OP_KERNEL || t->ops[i].type == FL_OP_COPY)
            index[count++] = (uint32_t)i;
    if (!status)
        qsort_r(index, count, sizeof *index, by_lane_and_start, t->ops);
    for (size_t i = 1, last = 0; i < count && !status; i++) {
        const fl_trace_op *a = &t->ops[index[last]], *b = &t->ops[index[i]];
        if (a->device == b->device && a->process == b->process && a->stream == b->stream && b->start_ns < a->end_ns) {
            status = overlap_at(l, path, index[last], index[i], d);
            out[index[i]] = true;
            gone++;
            continue;
        }
        last = i;
    }
    if (!status && gone)
        status = take_out(t, out, d);
    free(index);
    free(out);
    return status;
}

fl_status fl_kernels_read(const char *path, fl_kernel_trace *t, fl_left_out *left, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-kernels"};
    loader l = {.left = fl_left_begin(left)};
    fl_status status = fl_csv_read(path, &OPTIONS, &l.t.head, on_row, &l, d);
    const char *alone = fl_head_get(&l.t.head, "alone");
    if (!status && alone && strcmp(alone, "0") != 0 && strcmp(alone, "1") != 0)
        status = fl_fail(d, FL_BAD_INPUT, path, fl_head_line(&l.t.head, "alone"), 0,
                         "alone is '%.40s', expected 1 if each stream was recorded alone, else 0", alone);
    if (!status && l.disorder)
        status = check_overlap(&l, path, d);
    fl_left_earlier(&l.left, fl_head_get(&l.t.head, FL_LEFT_KEY));
    if (!status)
        status = fl_left_end(&l.left, left, path, d);
    if (!status && l.t.op_count == 0)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the trace is empty, expected at least one row after the header");
    fl_intern_free(&l.names);
    fl_intern_free(&l.kinds);
    fl_intern_free(&l.lanes);
    free(l.lane);
    free(l.jumps);
    free(l.gone);
    if (status)
        fl_kernel_trace_free(&l.t);
    *t = l.t;
    return status;
}
