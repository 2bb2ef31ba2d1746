/* Programs files: workloads as their authors publish them, in kinds of kernels, times and counts, instead of one row
 * for each launch. sim/synth_program.h makes kernel traces of them.
 *
 * Head "# foldline-programs 1"; keys sm_mhz, mem_mhz, cpu_mhz (clocks at which the times hold), kinds (file), source.
 * Columns: program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv; optional: stream,grid_x,block_x,cycles.
 *
 * A program's parts run one after the other, each for about part_s seconds; the whole sequence `cycles` times (parts
 * that alternate). The rows of a part are one iteration, in order, repeated until its time is over: `count` launches of
 * a kernel of mean time_us, with host time of mean gap_us before each. Rows of one part on several streams run side by
 * side. */
#ifndef FL_PROGRAMS_H
#define FL_PROGRAMS_H

#include "traces/diag.h"
#include "traces/records.h"

typedef struct fl_program_row {
    uint32_t program, kernel;         /* indices into names */
    uint32_t part;                    /* from 1, ascending within its program */
    uint32_t count;                   /* launches in one iteration, from 1 */
    double part_s;                    /* the same in all rows of a part */
    double time_us, time_cv;          /* mean, and coefficient of variation (a lognormal's) */
    double gap_us, gap_cv;            /* host time before each launch */
    int32_t stream;                   /* 0 where the file has none */
    uint32_t grid_x, block_x, cycles; /* 256, 256 and 1 where the file has none */
    int64_t line;
} fl_program_row;

typedef struct fl_programs {
    fl_head head;
    char **names;
    size_t name_count, name_room;
    fl_program_row *rows; /* the rows of a program stand together */
    size_t row_count, row_room;
    uint32_t *programs; /* program_count: indices into names, in order of appearance */
    size_t program_count, program_room;
} fl_programs;

/* Fills *p or leaves it zeroed. Refuses what any canonical file refuses, a program in two places, parts out of order
 * and rows of one part that disagree on part_s or cycles. */
fl_status fl_programs_read(const char *path, fl_programs *p, fl_diag *d);
/* Writes to `path` through a temporary file and a rename; all columns. */
fl_status fl_programs_write(const char *path, const fl_programs *p, fl_diag *d);
void fl_programs_free(fl_programs *p);

/* Building one in memory; names are copied. rows[].program and .kernel come from fl_programs_name. */
uint32_t fl_programs_name(fl_programs *p, const char *name); /* UINT32_MAX when out of memory */
fl_status fl_programs_add(fl_programs *p, const fl_program_row *row, fl_diag *d);

#endif
