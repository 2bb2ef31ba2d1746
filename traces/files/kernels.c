#include "traces/files/kernels.h"

#include "traces/io/csv.h"
#include "traces/io/writing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
