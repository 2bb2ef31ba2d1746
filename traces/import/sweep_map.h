/* A sweep from a table of any origin: which of the table's columns, multiplied by what, gives which column of a sweep.
 *
 * As text: "sm_mhz=coreF,time_s=time/1000,workload=app+input". The left side is a column of a sweep (traces/files/tables.h).
 * The right side is its source: the name of a column in the table's header; that name divided or multiplied by a
 * number; a number alone, for a value that is the same in every row; or, for workload and kernel, several names joined
 * by '+', whose texts are joined by '.'. A name that contains a comma stands in single quotes. 1/NAME is for speeds,
 * where a time is wanted.
 *
 * A wide table has a column per clock: `header` is the number that heads such a column, and `cells` are the values
 * below it ("workload=name,sm_mhz=header,power_w=cells", "time_s=1/cells"). Each row gives one setting per such column;
 * columns that no number heads are ignored. */
#pragma once

#include "traces/io/csv.h"
#include "traces/io/diag.h"
#include "traces/io/records.h"

enum { FL_MAP_TERMS = 32, FL_MAP_PARTS = 8 };

typedef struct fl_map_term {
    char *target, *source;
} fl_map_term;

typedef struct fl_sweep_map { /* zeroed: an empty map */
    fl_map_term term[FL_MAP_TERMS];
    size_t count;
} fl_sweep_map;

/* Adds a term and copies both texts. Refuses an empty text and a target that the map already has. Only the reading of a
 * table checks whether target is a column of a sweep and source a column of the table. */
fl_status fl_sweep_map_add(fl_sweep_map *m, const char *target, const char *source, fl_diag *d);
/* Parses the terms of a text. m is empty after a failure. */
fl_status fl_sweep_map_parse(const char *text, fl_sweep_map *m, fl_diag *d);
void fl_sweep_map_free(fl_sweep_map *m);

/* Reads the table as fl_sweep_read() reads a sweep, with the same checks, which name the table's own lines and columns.
 * Columns that no term names are ignored. _times: power may be unknown, as with fl_sweep_read_times. */
fl_status fl_sweep_read_mapped(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_diag *d);
fl_status fl_sweep_read_mapped_times(const char *path, const fl_sweep_map *map, fl_sweep *s, fl_diag *d);
