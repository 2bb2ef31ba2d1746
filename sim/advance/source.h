/* What an island's work comes from: one stream by itself, several streams with their host threads, servers of requests.
 * The node advances an island between boundaries and tells it what happened at them; how the work goes on there is the
 * source's to know. Internal to sim/. */
#pragma once

#include "sim/gpu/course.h"
#include "traces/io/diag.h"

typedef struct fl_source {
    bool stands; /* once its GPU is lost nothing of it moves or draws any more */
    /* From where the island's GPUs stand to `target`, or to the end of the work: *done. *reached: the instant. Charges
     * as fl_scan_advance does. */
    fl_status (*advance)(fl_course *c, int64_t target, int64_t *reached, bool *done, fl_diag *d);
    /* Nothing of it will ever go on by itself. Into `why` what it waits for, or nothing where only the loss of a GPU
     * explains it. */
    bool (*stuck)(const fl_course *c, char *why, size_t size);
    /* Other rates are in force on g since t, up to which all is charged. */
    void (*rescale)(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t);
    /* g fell off the bus, and is charged up to now. */
    void (*lose)(fl_course *c, fl_gpu *g);
    /* Power above the base with what runs on g now, if its SM clock were `sm`, with these rates; < 0: nothing runs. */
    int64_t (*predict_mw)(const fl_course *c, const fl_gpu *g, uint32_t sm, const fl_clock_rates *rates);
    /* Optional: the sums of g as they will be at t, which lies before the next boundary. False where it has to stop
     * there to tell. busy_only: only busy_ps is wanted, the others may be 0. */
    bool (*foresee)(fl_course *c, const fl_gpu *g, int64_t t, bool busy_only, fl_sums *sums);
    /* Optional: after all that happened at a boundary, before sensors are read. */
    void (*at_boundary)(const fl_course *c, fl_gpu *g);
    /* Optional: continues a hash with what the positions of the lanes do not tell. */
    uint64_t (*hash)(const fl_course *c, uint64_t h);
    /* Optional: frees what it alone has. */
    void (*close)(fl_course *c);
} fl_source;

/* One stream that nothing else can disturb: it is scanned. */
extern const fl_source fl_source_lone;
/* Any number of streams with their host threads. */
extern const fl_source fl_source_streams;
