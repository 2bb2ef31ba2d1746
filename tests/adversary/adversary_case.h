/* A workload as an adversary draws and changes it: one program of phases, kinds of kernels, lengths and jitter, small
 * enough that a file of some ten rows holds it. All that it draws obeys the laws of the models: a kernel's slowdown at
 * a clock is between 1 and top / f. */
#pragma once

#include "policies/random.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

enum { FL_ADVERSARY_KINDS = 4, FL_ADVERSARY_PARTS = 4, FL_ADVERSARY_ROWS = 3 };

typedef struct fl_adversary_kind { /* see fl_kind_load */
    double tc, tm, tl, alpha, beta, sm_demand;
    bool copy; /* a copy of memory instead: no clock changes what it takes */
} fl_adversary_kind;

typedef struct fl_adversary_row { /* see fl_program_row */
    uint32_t kind, count, stream;
    double time_us, time_cv, gap_us, gap_cv;
} fl_adversary_row;

typedef struct fl_adversary_part {
    double seconds;
    uint32_t rows;
    bool marked; /* each iteration begins with a marker */
    fl_adversary_row row[FL_ADVERSARY_ROWS];
} fl_adversary_part;

typedef struct fl_adversary_case {
    uint64_t seed; /* of its kernels, of the sensors and of the policy */
    uint32_t kinds, parts, cycles;
    bool unsteady; /* see below; else each row of a part is a kind of its own, by its grid */
    fl_adversary_kind kind[FL_ADVERSARY_KINDS];
    fl_adversary_part part[FL_ADVERSARY_PARTS];
} fl_adversary_case;

typedef struct fl_adversary_range { /* what may be drawn */
    double seconds;                 /* longest program, at the top clock */
    uint32_t streams;               /* most, 1 or more */
    /* One kind of kernel (name and grid) may take one time in one part and another in the next. A kind that is bound by
     * memory and then, half as long, by the core takes the same at half the clock: no reading tells the two apart. */
    bool unsteady;
    /* What a counter needs to tell the work: all kernels take the same, move the same bytes per second and come in
     * iterations of as many, each begun by a marker, on one stream. They differ in what a clock does to them and in
     * power. */
    bool alike;
} fl_adversary_range;

/* A new one, which lasts 1 s or more (or `seconds`, where that is less). */
fl_adversary_case fl_adversary_draw(fl_random *r, const fl_adversary_range *range);
/* The same with one to three things changed. */
fl_adversary_case fl_adversary_change(const fl_adversary_case *from, fl_random *r, const fl_adversary_range *range);

/* Stated length at the top clock, in s. */
double fl_adversary_seconds(const fl_adversary_case *c);

/* As files hold it, recorded at the given clocks. The same case, the same bytes.
 * The caller frees both, also after a failure. FL_NO_MEMORY. */
fl_status fl_adversary_files(const fl_adversary_case *c, double sm_mhz, double mem_mhz, fl_programs *p, fl_kinds *k,
                             fl_diag *d);
