/* One simulated GPU: the clocks in force, what it draws, and its ledger. Internal to sim/.
 *
 * Energy is kept twice. Running sums: at each boundary the old power is charged up to that instant. Residence:
 * picoseconds of work per class, and of time, at each pair of clocks visited. Residence times the integer parts of the
 * rows gives the sums exactly, and is what splits them. */
#pragma once

#include "sim/base/path.h"
#include "sim/gpu/rates.h"
#include "sim/base/wide.h"

typedef struct fl_slot { /* residence at one pair of clocks */
    uint32_t sm, mem;
    const fl_clock_rates *rates;
    int64_t open_ps;   /* time with a context open, */
    int64_t gated_ps;  /* and of that, power-gated */
    int64_t *class_ps; /* class_count: work done, in ps of the length a kernel has here when alone */
    fl_wide sm_fj, memory_fj, unsplit_fj; /* of work that is not in class_ps: see fl_prefix_settle */
} fl_slot;

typedef struct fl_sums { /* since the start of the run */
    fl_wide energy_fj;
    fl_wide memory;  /* memory controller active: ps x 1/32768 */
    int64_t busy_ps; /* a kernel resident */
    uint64_t kernels, iterations;
    fl_wide alu, sms; /* ALUs active, SMs taken: ps x 1/32768; only where profiled */
    fl_wide bytes;    /* memory, weighted with the memory clock in MHz */
    int64_t copy_ps;  /* a copy running; only where profiled */
} fl_sums;

typedef struct fl_window { /* since the last boundary */
    fl_wide dyn_fj, memory, alu, sms;
} fl_window;

typedef struct fl_record_buffer {
    fl_kernel_record *record;
    size_t count, room;
    bool on, failed;
    bool slow; /* they cost time: the rates in force are those of fl_rates_recorded */
} fl_record_buffer;

typedef struct fl_gpu {
    uint32_t index, device;
    const fl_device *dev;
    const fl_workload *w;
    fl_rates *rates_of;
    uint32_t sm, mem; /* ladder indices in force */
    const fl_clock_rates *rates;
    fl_slot *slot; /* slot_count; slots[now] is the present one */
    uint32_t slot_count, slot_now;
    size_t slot_room;
    int64_t now_ps;            /* the base is charged up to here */
    int64_t closed_ps;         /* time without a context */
    int64_t closed_mw;         /* and what the board draws then */
    bool open;                 /* a context is open: from the start until the island's work is done */
    int64_t gate_ps;           /* fl_device's gate_ns */
    int64_t gate_at_ps;        /* nothing runs: what is not charged yet is gated from here on; else FL_TIME_NEVER */
    uint32_t lock_sm;          /* what is asked for: the lock, or the driver's default */
    uint32_t wall_sm, heat_sm; /* highest clocks that the power wall and heat allow; the clock in force is the least */
    int64_t wall_held_ps, heat_held_ps; /* time that the wall, or heat, kept the clock below what is asked for */
    int64_t leak_mw;                    /* what heat adds while a context is open */
    fl_wide leak_fj;
    int64_t leak_peak_mw;
    double temp_c, hottest_c; /* now, and the highest so far; NAN where heat is not modelled */
    bool counted;             /* a collector counts its kernels all along; else they are counted while records are on */
    bool marked;              /* its program passes iteration markers */
    uint64_t uncounted;       /* kernels that ended while nobody counted; */
    uint64_t stopped;         /* nobody counts now: those that had ended when the last one stopped */
    bool profiled;            /* somebody reads the profile sensor: ALU, SM and copy activity are summed too */
    bool lost;                /* fell off the bus: nothing on it moves, nothing of it can be read or set */
    fl_sums sums;
    fl_window window;
    /* several streams: what runs now */
    uint32_t stream_count; /* in all, not only those that run */
    uint32_t active, resident;
    int64_t demand_sms, demand_memory; /* sums, in 1/65536 */
    int64_t dyn_now_mw;                /* of what runs, at its present rates */
    int64_t peak_mw; /* of several streams, without leakage; a lone one's follows from its residence */
    int64_t busy_since_ps;
    bool scarce, touched, peak_due;
    uint32_t at_barrier; /* streams that wait only for another GPU */
    int64_t barrier_ps;  /* time during which there was one, up to barrier_since_ps */
    int64_t barrier_since_ps;
    fl_prefix_jump *jump; /* jump_count: work that is not in class_ps */
    size_t jump_count, jump_room;
    fl_record_buffer records;
    fl_path path;                  /* of the node; see fl_node_options */
    uint64_t taken[FL_PATH_COUNT]; /* see fl_path_count; of an island its first GPU counts */
} fl_gpu;

fl_status fl_gpu_open(fl_gpu *g, const fl_workload *w, fl_rates *rates, const fl_node_spec *node, uint32_t index,
                      uint32_t sm, uint32_t mem, fl_diag *d);
void fl_gpu_close(fl_gpu *g);

/* Charges the base up to t, at the old power, and folds the window's sums in. */
void fl_gpu_charge_to(fl_gpu *g, int64_t t);

/* The clock that lock, wall and heat leave. */
uint32_t fl_gpu_allowed_sm(const fl_gpu *g);

/* Puts clocks, and what records.slow says, in force at g->now_ps; the lanes must be rescaled by their path. */
fl_status fl_gpu_clock(fl_gpu *g, uint32_t sm, uint32_t mem, fl_diag *d);

/* ---- power gating: an idle GPU loses C V and A0 V^2 f, the memory stays powered; it wakes in no time ---- */

static inline int64_t fl_gpu_gated_mw(const fl_gpu *g) {
    return (int64_t)g->rates->base.static_mw + g->rates->base.tree_mw;
}

/* Takes what is not drawn up to t off the running sum. No boundary is needed where gating begins. */
static inline void fl_gpu_gate_to(fl_gpu *g, int64_t t) {
    if (t <= g->gate_at_ps)
        return;
    g->slot[g->slot_now].gated_ps += t - g->gate_at_ps;
    g->sums.energy_fj -= (fl_wide)(t - g->gate_at_ps) * fl_gpu_gated_mw(g);
    g->gate_at_ps = t;
}

/* The first op begins, the last one has ended. */
static inline void fl_gpu_wake(fl_gpu *g, int64_t t) {
    fl_gpu_gate_to(g, t);
    g->gate_at_ps = FL_TIME_NEVER;
}

static inline void fl_gpu_rest(fl_gpu *g, int64_t t) { g->gate_at_ps = g->gate_ps ? t + g->gate_ps : FL_TIME_NEVER; }

/* What the board draws awake with nothing running on it, what it draws idle as it is, and what it draws now. */
static inline int64_t fl_gpu_base_mw(const fl_gpu *g) { return g->open ? g->rates->base.total_mw : g->closed_mw; }
static inline int64_t fl_gpu_idle_mw(const fl_gpu *g) {
    const bool gated = g->open && g->gate_ps && g->gate_at_ps <= g->now_ps;
    return fl_gpu_base_mw(g) - (gated ? fl_gpu_gated_mw(g) : 0);
}
static inline int64_t fl_gpu_cool_mw(const fl_gpu *g) { return fl_gpu_idle_mw(g) + g->dyn_now_mw; }
static inline int64_t fl_gpu_power_mw(const fl_gpu *g) { return fl_gpu_cool_mw(g) + (g->open ? g->leak_mw : 0); }

/* Charges work done by one op of a class into the window, and into the residence of the present clocks. */
static inline void fl_gpu_charge(fl_gpu *g, uint32_t class_id, int64_t ps) {
    const fl_row *row = &g->rates->row[class_id];
    g->window.dyn_fj += ps * row->dyn_mw;
    g->window.memory += ps * row->memory;
    if (g->profiled) {
        g->window.alu += ps * row->alu;
        g->window.sms += ps * row->sms;
        g->sums.copy_ps += row->resident ? 0 : ps;
    }
    g->slot[g->slot_now].class_ps[class_id] += ps;
}
