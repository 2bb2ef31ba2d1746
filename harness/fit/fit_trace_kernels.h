/* Kernels of several recordings of one program at different clocks, gathered by kind (name, grid, block). */
#ifndef FL_FIT_TRACE_KERNELS_H
#define FL_FIT_TRACE_KERNELS_H

#include "models/device.h"
#include "models/fit_kernel.h"
#include "traces/import.h"
#include "traces/intern.h"

enum { FL_TRACE_CLOCKS = 64 };

typedef struct fl_seen_kernel {          /* one kind */
    uint32_t name;                       /* index into names */
    fl_kernel_point at[FL_TRACE_CLOCKS]; /* ascending by clock; time: sum in ns, weight: count, until fitted */
    size_t clocks;
    double total_ns;
    bool fitted;
    fl_kernel_fit fit;
} fl_seen_kernel;

typedef struct fl_seen_name { /* what a kinds file has a row for */
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
    fl_seen_name *name; /* name_count, after fl_seen_fit */
    double total_ns, own_ns,
        named_ns;                /* time of all; of kinds with terms of their own; and of those that borrow by name */
    double any_c, any_l;         /* mean over time: for kernels of names that were seen at one clock only */
    double mape_pct, unseen_pct; /* over time; unseen NAN where no kind was seen at three clocks */
    double ref_mhz;              /* the highest clock seen */
} fl_seen;

/* Adds the kernels of a recording. sm_mhz: of those that do not say; 0 = none given. FL_BAD_INPUT where a kernel's
 * clock is not known. */
fl_status fl_seen_add(fl_seen *s, const char *path, const fl_kernel_trace *t, double sm_mhz, fl_diag *d);
/* Fits every kind seen at two clocks or more; names take the mean over time of their kinds. FL_BAD_INPUT where none
 * was. */
fl_status fl_seen_fit(fl_seen *s, double sharpness, fl_diag *d);
void fl_seen_free(fl_seen *s);

#endif
