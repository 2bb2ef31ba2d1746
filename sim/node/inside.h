/* The insides of a node, shared by node.c (all of it), node_island.c (what runs on its GPUs), node_host.c (what all of
 * them share), node_open.c and node_serving.c. */
#pragma once

#include "sim/gpu/actuator.h"
#include "sim/gpu/cpu.h"
#include "sim/gpu/heat.h"
#include "sim/gpu/host_sense.h"
#include "sim/gpu/sense.h"
#include "sim/gpu/wall.h"

typedef struct fl_node fl_node;

typedef struct fl_limit_pending { /* a power limit on its way; per GPU the newest alone */
    int64_t at_ps;                /* FL_TIME_NEVER = none */
    double watts;
} fl_limit_pending;

struct fl_node {
    const fl_workload *w;
    const fl_node_spec *spec;
    fl_rates *rates;
    fl_path path; /* FL_PATH_AUTO, or what a test forces */
    uint64_t seed;
    uint32_t gpu_count;
    fl_gpu *gpu;
    fl_actuator *actuator;
    fl_limit_pending *limit;
    fl_wall *wall;
    fl_heat *heat;
    fl_sense **sense;
    int64_t *lost_ps;           /* per GPU, FL_TIME_NEVER = never */
    fl_lane *lane;              /* by stream */
    fl_lane **lanes;            /* pointers to them, for the courses */
    fl_course *course;          /* by island */
    bool *finished;             /* by island */
    bool *stalled;              /* by island: it waits for a lost GPU for ever */
    bool stops, woken;          /* see fl_node_stop_at_markers */
    int64_t *ended;             /* by island */
    int64_t *request_ps;        /* by request: when it had been served */
    struct fl_engines *serving; /* of the island that serves; NULL = none does */
    int64_t now;
    uint64_t switches;
    fl_kernel_record *record;
    size_t record_count, record_room;
    /* what all GPUs share */
    bool meets;  /* any of the following is there */
    bool hosted; /* the CPU is modelled */
    fl_cpu cpu;
    fl_host_sense *host_sense;
    int64_t bus_ps;    /* next change of an APU's bandwidth */
    int64_t budget_ps; /* next dealing out of the GPUs' budget */
    fl_wide *dealt_fj; /* per GPU: energy at the last dealing */
    int64_t static_mw, comm_mw;
    bool copies;
};

static inline int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* One stream, which nothing else can disturb: it is scanned. */
static inline bool fl_node_is_lone(const fl_node *n, uint32_t island) {
    return n->w->island[island].lone && n->path != FL_PATH_EVENTS && !n->course[island].shared_bus;
}

/* The CPU's power warms the die that the GPU is on. */
static inline bool fl_node_one_die(const fl_node *n) { return n->hosted && n->spec->host.apu; }

/* The servers of a workload that serves; does nothing for another. The courses are open. */
struct fl_node_options;
fl_status fl_node_engines_open(fl_node *n, const struct fl_node_options *o, fl_diag *d);

/* ---- node_island.c ---- */

/* The earliest instant at which something must be done to a GPU of the island; until at most. Sensors are read at
 * read_ps and not before. */
int64_t fl_node_boundary(fl_node *n, const fl_island *is, int64_t now, int64_t until, int64_t read_ps);
/* An island to `until`, or to its end; where it stops at markers, to the next of them. */
fl_status fl_node_advance_island(fl_node *n, uint32_t k, int64_t until, int64_t read_ps, fl_diag *d);
/* A GPU on which nothing moves: idles to `until`, its sensors and actuators going on. Where it stands there already,
 * what is due at that instant still happens. */
fl_status fl_node_idle_to(fl_node *n, uint32_t gpu, int64_t until, int64_t read_ps, fl_diag *d);

/* ---- node_host.c ---- */

/* needs: FL_BIT(FL_HOST_...) of the signals that somebody reads. The GPUs are open. */
fl_status fl_node_host_open(fl_node *n, uint64_t needs, fl_diag *d);
void fl_node_host_close(fl_node *n);
/* The next instant at which all must stand still, given that nobody reads before read_ps. */
int64_t fl_node_host_next(fl_node *n, int64_t read_ps);
/* All stand at n->now, charged up to it. */
void fl_node_host_at(fl_node *n);
