/* What the files of traces/files share: rows and cells of decisions files, and kinds by name. */
#pragma once

#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FL_KERNEL_COLUMNS 10

fl_status fl_kernel_columns_check(const fl_csv_row *header, size_t at, fl_diag *d);
/* True where the row's device is "kind" or "kernel". */
bool fl_kernel_row(const fl_csv_row *row);
fl_status fl_kernel_row_read(const fl_csv_row *row, size_t at, size_t step, fl_decisions *r, fl_decisions_room *room,
                             fl_diag *d);
/* The ten cells of the row of a host (*lost, 0 where empty) or of a GPU (lost NULL: all empty). */
fl_status fl_kernel_cells_read(const fl_csv_row *row, size_t at, uint64_t *lost, fl_diag *d);

typedef struct fl_step_place {
    size_t step, between, behind;
    int64_t t_ns;
} fl_step_place;

void fl_put_kernel_names(FILE *file);
void fl_put_kernel_cells(FILE *file, uint64_t lost); /* of a host's or GPU's row; 0 = empty */
void fl_put_kind_row(FILE *file, const fl_step_place *at, size_t index, const fl_logged_kind *kind);
void fl_put_kernel_row(FILE *file, const fl_step_place *at, const fl_logged_kernel *kernel);

/* True where the columns of servers begin at this column of the header. */
bool fl_server_columns(const fl_csv_row *header, size_t at);
fl_status fl_server_columns_read(const fl_csv_row *header, size_t at, fl_logged_servers *s, fl_diag *d);
/* True where the row's device is "server" or "batch". */
bool fl_server_row(const fl_csv_row *row);
fl_status fl_server_row_read(const fl_csv_row *row, size_t at, fl_logged_servers *s, fl_servers_room *room, fl_diag *d);
/* The cells in the row of a host or of a GPU: all empty. */
fl_status fl_server_cells_read(const fl_csv_row *row, size_t at, const fl_logged_servers *s, fl_diag *d);
/* At the end of a step: it has the same servers as the first. Then fl_servers_end_step. */
fl_status fl_server_step_read(const fl_csv_row *row, fl_logged_servers *s, fl_servers_room *room, fl_diag *d);

typedef struct fl_server_place { /* where a row stands */
    size_t step;
    int64_t t_ns;
    size_t between;            /* columns from after `device` to before those of servers */
    const char *const *signal; /* names, signals of them */
    size_t signals;
} fl_server_place;

/* Columns of servers with so many signals. */
size_t fl_server_column_count(size_t signals);
void fl_put_server_names(FILE *file, const char *const *signal, size_t count);
void fl_put_server_cells(FILE *file, size_t signals); /* of a host's or GPU's row: empty */
/* Names of the fresh signals of a row, or '*' where those are all that have a value. */
void fl_put_fresh(FILE *file, const char *const *signal, const double *value, const bool *fresh, size_t signals);
/* value (NAN = invalid) and fresh: at->signals of them. */
void fl_put_server_row(FILE *file, const fl_server_place *at, size_t server, uint64_t lost, const double *value,
                       const bool *fresh);
void fl_put_batch_row(FILE *file, const fl_server_place *at, const fl_logged_batch *batch);

/* The load of a kernel name; the row "*" where the name has no row of its own; NULL where neither exists. */
const fl_kind_load *fl_kinds_find(const fl_kinds *k, const char *name);
