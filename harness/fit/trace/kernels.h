/* Kernels of several recordings of one program at different clocks, gathered by kind (name, grid, block). */
#pragma once

#include "models/laws/device.h"
#include "models/fit/kernel.h"
#include "traces/import/import.h"
#include "traces/io/intern.h"

enum { FL_TRACE_CLOCKS = 64 };

typedef struct fl_seen_kernel {          /* one kind */
    uint32_t name;                       /* index into names */
    fl_kernel_point at[FL_TRACE_CLOCKS]; /* ascending by clock; until fitted, time: sum in ns, weight: count */
    size_t clocks;
    double total_ns;
    bool fitted;
    fl_kernel_fit fit;
} fl_seen_kernel;

typedef struct fl_seen_name { /* a name that gets a row in the kinds file */
    char *text;
    double total_ns, own_ns; /* own: of kinds seen at two clocks or more */
    double c, l, mape, unseen, unseen_ns;
} fl_seen_name;

typedef struct fl_seen {
    fl_seen_kernel *kernel;
    size_t kernel_count, kernel_room;
    fl_intern kernels, texts;
    char **names;
    size_t name_count, name_room;
    fl_seen_name *name;                /* name_count, after fl_seen_fit */
    double total_ns, own_ns, named_ns; /* time of all kernels; of kinds with terms of their own; of kinds that borrow
                                          the terms of their name */
    double any_c, any_l;               /* mean over time: for kernels whose names occurred at one clock only */
    double mape_pct, unseen_pct;       /* weighted by time; unseen is NAN where no kind occurred at three clocks */
    double ref_mhz;                    /* the highest clock seen */
} fl_seen;

/* Adds the kernels of a recording. sm_mhz: the clock of kernels that give none; 0 = not given. FL_BAD_INPUT where a
 * kernel's clock is not known. */
fl_status fl_seen_add(fl_seen *s, const char *path, const fl_kernel_trace *t, double sm_mhz, fl_diag *d);
/* Fits every kind that occurred at two clocks or more. A name takes the mean of its kinds, weighted by time.
 * FL_BAD_INPUT where no kind did. */
fl_status fl_seen_fit(fl_seen *s, double sharpness, fl_diag *d);
void fl_seen_free(fl_seen *s);
