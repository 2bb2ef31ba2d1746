/* Measured settings for fits: the rows of one or more sweep files. Each pair of workload and kernel is an entity of its
 * own. */
#pragma once

#include "harness/base/cli/args.h"
#include "models/chip/fit_chip.h"
#include "models/chip/probes.h"
#include "models/unsound/unsound.h"

#include <stdbool.h>

typedef struct fl_fit_entity {
    char *workload, *kernel; /* kernel may be empty */
    size_t file;             /* index of the file that it comes from */
    size_t first, count;     /* its rows */
} fl_fit_entity;

/* A row under a power limit that binds: the clock was requested, but not reached throughout. */
typedef struct fl_fit_capped {
    size_t entity;
    double sm_mhz, mem_mhz, limit_w, time_s, power_w;
} fl_fit_capped;

typedef struct fl_fit_line { /* the origin of a row */
    size_t entity;
    double sm_mhz, mem_mhz, time_s, limit_w;
    int64_t line;
} fl_fit_line;

typedef struct fl_fit_unsound { /* a row that was left out because it did not run at the clock it names */
    fl_fit_line at;
    fl_unsound_row found;
} fl_fit_unsound;

typedef struct fl_fit_rows {
    fl_chip_row *row; /* sorted by entity, memory clock, SM clock; workload = entity's index */
    size_t count, room;
    fl_fit_entity *entity; /* in the order of their first rows */
    size_t entities, entity_room;
    bool mem_known;    /* the files name memory clocks; else all rows have 1 MHz */
    size_t predicted;  /* rows left out because they state a deviation: a model predicted them */
    size_t limited;    /* rows left out because a power limit bound */
    size_t repeated;   /* rows left out because the same setting exists under a higher limit that does not bind */
    size_t clockless;  /* rows left out because they have no SM clock */
    size_t memless;    /* rows without a memory clock where others have one: assumed to be at the highest */
    double **activity; /* storage of the rows' activities, one block per file that has such columns */
    size_t activities, activity_room;
    fl_fit_capped *capped; /* the rows of `limited` whose workloads have other rows too; sorted by entity */
    size_t cappeds, capped_room;
    bool latent; /* no row has an SM clock: all are in capped, whether or not their limit binds (fit_latent.h) */
    double limit_low_w, limit_high_w; /* range of the sweep's power limits; 0 = it names none */
    fl_fit_line *line;                /* for all accepted rows, as they stood in the files */
    size_t lines, line_room;
    const char *const *file; /* the files' names, borrowed */
    fl_fit_unsound *unsound;
    size_t unsounds, unsound_room;
    fl_unsound_clock clock[FL_UNSOUND_CLOCKS]; /* wrong throughout; clear: its rows were relabelled */
    size_t clocks;
} fl_fit_rows;

/* only: names or patterns (*, ?) of workloads; empty = all. FL_BAD_INPUT where no row is left. A sweep that has only
 * power limits gives no rows, and sets latent. */
fl_status fl_fit_rows_read(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d);
/* The same, including rows that a model predicted, for callers that use the sweep as that model. */
fl_status fl_fit_rows_read_predicted(const fl_texts *files, const fl_texts *only, fl_fit_rows *r, fl_diag *d);
void fl_fit_rows_free(fl_fit_rows *r);
/* Call it after adding rows: it sorts them and finds each entity's rows. */
void fl_fit_rows_sort(fl_fit_rows *r);
void fl_fit_rows_notes(const fl_fit_rows *r); /* prints what was left out or assumed */

/* The clock that a row requested; it differs from the row's own where the clock was relabelled (fit_sound.h). */
double fl_fit_asked_mhz(const fl_fit_rows *r, double sm_mhz);

/* Writes "BFS / kernel2", or the workload alone, into buf. Returns buf. */
char *fl_fit_entity_name(const fl_fit_entity *e, char *buf, size_t size);

/* The settings of an entity that a list names. "sm=952,1140" is at the highest memory clock; "sm=952,1140/mem=877,405"
 * at those given. "ends" is the lowest and the highest SM clock at the highest memory clock; "corners" is the same at
 * the lowest and the highest memory clock; "all" is everything. "caps=150,250" names power limits, for a sweep that has
 * no SM clocks; its ends are those of the limits. "chosen:2" names 1 to 4 settings that tell most by a chip's
 * calibration (fit_chosen.h finds them); of each workload it takes the nearest settings that were measured. A list
 * never names a row that was not measured (time NaN). */
typedef struct fl_fit_at {
    enum { FL_FIT_LIST, FL_FIT_ENDS, FL_FIT_CORNERS, FL_FIT_ALL, FL_FIT_CHOSEN } kind;
    double sm[64], mem[16], cap[64];
    size_t sms, mems, caps; /* caps: "caps=150,250", of a sweep of power limits alone */
    size_t choose;          /* number of a chip's settings to choose */
    fl_probes chosen;       /* count 0: not chosen yet */
} fl_fit_at;

fl_status fl_fit_at_parse(const char *text, fl_fit_at *at, fl_diag *d);
bool fl_fit_at_has(const fl_fit_at *at, const fl_fit_rows *r, const fl_fit_entity *e, const fl_chip_row *row);
