/* Programs files: workloads in the form in which authors publish them, as kinds of kernels, times and counts, not as
 * one row for each launch. sim/workload/synth_program.h makes kernel traces from them.
 *
 * The head is "# foldline-programs 1"; its keys are sm_mhz, mem_mhz, cpu_mhz (clocks at which the times hold), kinds
 * (file), source. Columns: program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv; optional:
 * stream,grid_x,block_x,cycles.
 *
 * The parts of a program run one after the other, each for about part_s seconds. The whole sequence runs `cycles` times
 * (for parts that alternate). The rows of a part are one iteration, in order, which repeats until the part's time is
 * over. A row is `count` launches of a kernel with mean time_us, and with a mean of gap_us of host time before each.
 * Rows of one part on several streams run side by side. */
#pragma once

#include "traces/io/diag.h"
#include "traces/io/records.h"

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

/* Fills *p or leaves it zeroed. Refuses everything that any canonical file refuses, and also a program in two places,
 * parts out of order, and rows of one part that disagree on part_s or cycles. */
fl_status fl_programs_read(const char *path, fl_programs *p, fl_diag *d);
/* Writes to `path` through a temporary file and a rename; all columns. */
fl_status fl_programs_write(const char *path, const fl_programs *p, fl_diag *d);
void fl_programs_free(fl_programs *p);

/* To build a program in memory; names are copied. fl_programs_name gives the values of rows[].program and .kernel. */
uint32_t fl_programs_name(fl_programs *p, const char *name); /* UINT32_MAX when out of memory */
fl_status fl_programs_add(fl_programs *p, const fl_program_row *row, fl_diag *d);
