/* The rows of kernel records that a policy saw, within a decisions file (the layout is in traces/io/records.h). Shared by
 * readers, writers and the logs of running hosts. */
#pragma once

#include "traces/io/csv.h"
#include "traces/io/diag.h"
#include "traces/io/records.h"

#include <stdio.h>

typedef struct fl_decisions_room { /* items that each array of fl_decisions has room for */
    size_t t_ns, delay_ns, line, value, fresh, set;
    size_t kind, kernel, lost, kinds_until, kernels_until;
} fl_decisions_room;

/* ---- kernel records: adding; FL_NO_MEMORY where there is no room ---- */

/* A new step, with all kinds and records so far. */
fl_status fl_decisions_add_step(fl_decisions *r, fl_decisions_room *room, size_t step, uint64_t lost);
/* To the step: the name is copied. */
fl_status fl_decisions_add_kind(fl_decisions *r, fl_decisions_room *room, size_t step, const fl_logged_kind *kind);
fl_status fl_decisions_add_kernel(fl_decisions *r, fl_decisions_room *room, size_t step,
                                  const fl_logged_kernel *kernel);

/* ---- reading: `at` is the first of the ten columns ---- */

#define FL_KERNEL_COLUMNS 10

/* Refuses text in the cells [from, until) of a row that has none there. */
fl_status fl_cells_empty(const fl_csv_row *row, size_t from, size_t until, fl_diag *d);
fl_status fl_kernel_columns_check(const fl_csv_row *header, size_t at, fl_diag *d);
/* True where the row's device is "kind" or "kernel". */
bool fl_kernel_row(const fl_csv_row *row);
fl_status fl_kernel_row_read(const fl_csv_row *row, size_t at, size_t step, fl_decisions *r, fl_decisions_room *room,
                             fl_diag *d);
/* The ten cells of the row of a host (*lost, 0 where empty) or of a GPU (lost NULL: all empty). */
fl_status fl_kernel_cells_read(const fl_csv_row *row, size_t at, uint64_t *lost, fl_diag *d);

/* ---- writing; `between` is the number of columns from after `device` to `delay_ns`, `behind` of those after these ten ---- */

void fl_put_commas(FILE *file, size_t count);

typedef struct fl_step_place {
    size_t step, between, behind;
    int64_t t_ns;
} fl_step_place;

void fl_put_kernel_names(FILE *file);
void fl_put_kernel_cells(FILE *file, uint64_t lost); /* of a host's or GPU's row; 0 = empty */
void fl_put_kind_row(FILE *file, const fl_step_place *at, size_t index, const fl_logged_kind *kind);
void fl_put_kernel_row(FILE *file, const fl_step_place *at, const fl_logged_kernel *kernel);
