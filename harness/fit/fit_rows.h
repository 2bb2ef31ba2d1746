/* Measured settings for fits: the rows of one or more sweep files, each pair of workload and kernel an entity of its
 * own. */
#ifndef FL_FIT_ROWS_H
#define FL_FIT_ROWS_H

#include "harness/base/args.h"
#include "models/fit_chip.h"
#include "models/probes.h"

#include <stdbool.h>

typedef struct fl_fit_entity {
    char *workload, *kernel; /* kernel may be empty */
    size_t file;             /* index of the file it is from */
    size_t first, count;     /* its rows */
} fl_fit_entity;

typedef struct fl_fit_rows {
    fl_chip_row *row; /* sorted by entity, memory clock, SM clock; workload = entity's index */
    size_t count, room;
    fl_fit_entity *entity; /* in the order of their first rows */
    size_t entities, entity_room;
    bool mem_known;   /* the files name memory clocks; else all rows have 1 MHz */
    size_t limited;   /* rows left out: at a power limit that binds, or below the highest limit of their workload */
    size_t clockless; /* rows left out: without an SM clock */
    size_t memless;   /* rows without a memory clock where others have one: taken to be at the highest */
} fl_fit_rows;

/* only: names or patterns (*, ?) of workloads; empty = all. FL_BAD_INPUT where nothing is left. */
fl_status fl_fit_rows_read(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d);
void fl_fit_rows_free(fl_fit_rows *r);
/* After rows were added: sorts them, and finds each entity's. */
void fl_fit_rows_sort(fl_fit_rows *r);
void fl_fit_rows_notes(const fl_fit_rows *r); /* prints what was left out or assumed */

/* "BFS / kernel2", or the workload alone. Into buf; returns buf. */
char *fl_fit_entity_name(const fl_fit_entity *e, char *buf, size_t size);

/* Which settings of an entity a list names: "sm=952,1140" (at the highest memory clock; "sm=952,1140/mem=877,405" at
 * those), "ends" (lowest and highest SM clock at the highest memory clock), "corners" (the same at lowest and highest
 * memory clock), "all", "chosen:2" (so many of the settings that tell most by a chip's calibration, 1 to 4: fit_chosen.h
 * finds them; of each workload the nearest that were measured). A row that nobody measured (time NaN) is never named. */
typedef struct fl_fit_at {
    enum { FL_FIT_LIST, FL_FIT_ENDS, FL_FIT_CORNERS, FL_FIT_ALL, FL_FIT_CHOSEN } kind;
    double sm[64], mem[16];
    size_t sms, mems;
    size_t choose;    /* settings of a chip that are to be chosen */
    fl_probes chosen; /* count 0: not yet */
} fl_fit_at;

fl_status fl_fit_at_parse(const char *text, fl_fit_at *at, fl_diag *d);
bool fl_fit_at_has(const fl_fit_at *at, const fl_fit_rows *r, const fl_fit_entity *e, const fl_chip_row *row);

#endif
