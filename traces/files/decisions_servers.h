/* The rows of servers that a policy saw, within a decisions file (the layout is in traces/io/records.h): their signals,
 * and the steps of their engines. Shared by readers, writers and the logs of running hosts. */
#pragma once

#include "traces/io/csv.h"
#include "traces/io/diag.h"
#include "traces/io/records.h"

#include <stdio.h>

typedef struct fl_servers_room { /* items that each array of fl_logged_servers has room for */
    size_t value, fresh, lost, batch, until;
} fl_servers_room;

/* ---- adding: a server's row of the present step, the servers in order; then the steps of engines that it saw ---- */

/* value, fresh: signal_count of them. lost: as in fl_logged_servers. FL_NO_MEMORY where there is no room. */
fl_status fl_servers_add(fl_logged_servers *s, fl_servers_room *room, const double *value, const bool *fresh,
                         uint64_t lost);
fl_status fl_servers_add_batch(fl_logged_servers *s, fl_servers_room *room, const fl_logged_batch *batch);
/* The step is over: all rows so far belong to it and those before. */
fl_status fl_servers_end_step(fl_logged_servers *s, fl_servers_room *room);

/* ---- reading: `at` is the first of the columns ---- */

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

/* ---- writing ---- */

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
