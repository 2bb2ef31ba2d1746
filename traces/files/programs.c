/* Programs files, both ways. */
#include "traces/files/files.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAM, PART, PART_S, KERNEL, COUNT, TIME_US, TIME_CV, GAP_US, GAP_CV, REQUIRED };
enum { STREAM = REQUIRED, GRID_X, BLOCK_X, CYCLES, COLUMNS };

static const char *const COLUMN[COLUMNS] = {"program", "part",   "part_s", "kernel", "count",   "time_us", "time_cv",
                                            "gap_us",  "gap_cv", "stream", "grid_x", "block_x", "cycles"};

typedef struct loader {
    fl_programs p;
    size_t where[COLUMNS], width;
} loader;

uint32_t fl_programs_name(fl_programs *p, const char *name) {
    for (size_t i = p->name_count; i-- > 0;) /* those of the same program are the last ones */
        if (strcmp(p->names[i], name) == 0)
            return (uint32_t)i;
    if (fl_grow(&p->names, &p->name_room, p->name_count + 1, sizeof *p->names))
        return UINT32_MAX;
    char *copy = strdup(name);
    if (!copy)
        return UINT32_MAX;
    p->names[p->name_count] = copy;
    return (uint32_t)p->name_count++;
}

static bool known_program(const fl_programs *p, uint32_t program) {
    for (size_t i = 0; i < p->program_count; i++)
        if (p->programs[i] == program)
            return true;
    return false;
}

/* NULL, or what does not fit the rows before. */
static const char *misfit(const fl_programs *p, const fl_program_row *row) {
    const fl_program_row *last = p->row_count ? &p->rows[p->row_count - 1] : NULL;
    if (!last || last->program != row->program) {
        if (known_program(p, row->program))
            return "the rows of a program must stand together";
        return row->part == 1 ? NULL : "a program must begin with part 1";
    }
    if (row->cycles != last->cycles)
        return "cycles must be the same in all rows of a program";
    if (row->part == last->part)
        return row->part_s == last->part_s ? NULL : "part_s must be the same in all rows of a part";
    return row->part == last->part + 1 ? NULL : "parts must be numbered 1, 2, 3, ... in order";
}

fl_status fl_programs_add(fl_programs *p, const fl_program_row *row, fl_diag *d) {
    const char *wrong = misfit(p, row);
    if (wrong)
        return fl_refuse(d, "%s", wrong);
    if (fl_grow(&p->rows, &p->row_room, p->row_count + 1, sizeof *row) ||
        fl_grow(&p->programs, &p->program_room, p->program_count + 1, sizeof *p->programs))
        return fl_no_memory(d, NULL);
    if (!p->program_count || p->programs[p->program_count - 1] != row->program)
        p->programs[p->program_count++] = row->program;
    p->rows[p->row_count++] = *row;
    return FL_OK;
}

static fl_status get_real(const loader *l, const fl_csv_row *row, size_t column, double min, double max, double *value,
                          fl_diag *d) {
    return fl_field_real(row, l->where[column], COLUMN[column], min, max, value, d);
}

static fl_status get_int(const loader *l, const fl_csv_row *row, size_t column, int64_t min, int64_t max,
                         int64_t standard, int64_t *value, fl_diag *d) {
    *value = standard;
    return l->where[column] == SIZE_MAX ? FL_OK
                                        : fl_field_int(row, l->where[column], COLUMN[column], min, max, value, d);
}

static fl_status get_name(loader *l, const fl_csv_row *row, size_t column, uint32_t *index, fl_diag *d) {
    const fl_field *f = &row->field[l->where[column]];
    if (!f->size)
        return FL_FIELD_FAIL(d, row, l->where[column], "%s is empty, expected a name", COLUMN[column]);
    *index = fl_programs_name(&l->p, f->text);
    return *index == UINT32_MAX ? fl_no_memory(d, row->file) : FL_OK;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, l->where, d);
    }
    fl_program_row r = {.line = row->line};
    int64_t part, count, stream, grid, block, cycles;
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = get_name(l, row, PROGRAM, &r.program, d);
    if (!s)
        s = get_name(l, row, KERNEL, &r.kernel, d);
    if (!s)
        s = get_int(l, row, PART, 1, 1000000, 1, &part, d);
    if (!s)
        s = get_real(l, row, PART_S, 1e-6, 1e7, &r.part_s, d);
    if (!s)
        s = get_int(l, row, COUNT, 1, 1000000000, 1, &count, d);
    if (!s)
        s = get_real(l, row, TIME_US, 0.001, 1e12, &r.time_us, d);
    if (!s)
        s = get_real(l, row, TIME_CV, 0, 10, &r.time_cv, d);
    if (!s)
        s = get_real(l, row, GAP_US, 0, 1e12, &r.gap_us, d);
    if (!s)
        s = get_real(l, row, GAP_CV, 0, 10, &r.gap_cv, d);
    if (!s)
        s = get_int(l, row, STREAM, 0, 255, 0, &stream, d);
    if (!s)
        s = get_int(l, row, GRID_X, 1, UINT32_MAX, 256, &grid, d);
    if (!s)
        s = get_int(l, row, BLOCK_X, 1, 1024, 256, &block, d);
    if (!s)
        s = get_int(l, row, CYCLES, 1, 1000000, 1, &cycles, d);
    if (s)
        return s;
    r.part = (uint32_t)part;
    r.count = (uint32_t)count;
    r.stream = (int32_t)stream;
    r.grid_x = (uint32_t)grid;
    r.block_x = (uint32_t)block;
    r.cycles = (uint32_t)cycles;
    const char *wrong = misfit(&l->p, &r);
    if (wrong)
        return FL_FIELD_FAIL(d, row, l->where[PROGRAM], "'%.100s', part %u: %s", l->p.names[r.program], r.part, wrong);
    return fl_programs_add(&l->p, &r, d);
}

fl_status fl_programs_read(const char *path, fl_programs *p, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-programs"};
    loader l = {0};
    fl_status s = fl_csv_read(path, &OPTIONS, &l.p.head, on_row, &l, d);
    if (!s && !l.p.row_count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no programs, expected at least one row after the header");
    if (s)
        fl_programs_free(&l.p);
    *p = l.p;
    return s;
}

fl_status fl_programs_write(const char *path, const fl_programs *p, fl_diag *d) {
    fl_output *o;
    fl_status s = fl_output_begin(path, "foldline-programs", &p->head, &o, d);
    if (s)
        return s;
    FILE *file = fl_output_file(o);
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(file, "%s%s", i ? "," : "", COLUMN[i]);
    fputc('\n', file);
    for (size_t i = 0; i < p->row_count; i++) {
        const fl_program_row *r = &p->rows[i];
        fl_csv_put(file, p->names[r->program]);
        fprintf(file, ",%u,", r->part);
        fl_put_real(file, r->part_s);
        fputc(',', file);
        fl_csv_put(file, p->names[r->kernel]);
        fprintf(file, ",%u", r->count);
        for (size_t k = 0; k < 4; k++) {
            fputc(',', file);
            fl_put_real(file, (const double[]){r->time_us, r->time_cv, r->gap_us, r->gap_cv}[k]);
        }
        fprintf(file, ",%d,%u,%u,%u\n", r->stream, r->grid_x, r->block_x, r->cycles);
    }
    return fl_output_commit(o, d);
}

void fl_programs_free(fl_programs *p) {
    fl_head_free(&p->head);
    for (size_t i = 0; i < p->name_count; i++)
        free(p->names[i]);
    free(p->names);
    free(p->rows);
    free(p->programs);
    *p = (fl_programs){0};
}
