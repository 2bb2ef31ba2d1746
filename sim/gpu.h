/* One simulated GPU: its clocks, its ledger, and the streams that run on it. Internal to sim/.
 *
 * Energy is kept twice. Running sums: at each boundary the old power is charged up to that instant. Residence:
 * picoseconds of work per class, and of time, at each pair of clocks visited. Residence times the integer parts of the
 * rows gives the sums exactly, and is what splits them. */
#ifndef FL_GPU_H
#define FL_GPU_H

#include "sim/rates.h"
#include "sim/wide.h"

typedef struct fl_slot { /* residence at one pair of clocks */
    uint32_t sm, mem;
    const fl_clock_rates *rates;
    int64_t open_ps;   /* time with a context open */
    int64_t *class_ps; /* class_count: work done, in ps of the length a kernel has here when alone */
} fl_slot;

typedef enum fl_phase {
    FL_PHASE_FRESH, /* the next op may not start yet, or nobody has looked */
    FL_PHASE_GAP,
    FL_PHASE_RUN,
    FL_PHASE_DONE
} fl_phase;

typedef struct fl_lane { /* one stream in execution */
    const fl_stream *s;
    struct fl_gpu *gpu;
    uint64_t next; /* ops before it have finished */
    uint64_t launched;
    uint32_t class_id;
    fl_phase phase;
    int64_t length_ps;    /* of the kernel in progress, alone at the present clocks */
    int64_t left_ps;      /* of the gap or kernel; for a kernel as of since_ps */
    int64_t charged_ps;   /* of the work since since_ps; below zero: work before it that has not been charged */
    int64_t since_ps;     /* last change of rate or clock */
    int64_t *event_ps;    /* end of gap or kernel, FL_TIME_NEVER while waiting: a cell of its course */
    int64_t start_ps;     /* of the kernel in progress */
    uint32_t rate;        /* in 1/65536 */
    uint32_t sms, memory; /* demands of the kernel in progress, in 1/65536 */
    int32_t dyn_mw;       /* its power above the base, alone */
    uint32_t marks;       /* passed */
    int64_t *mark_ps;     /* s->mark_count: when each was passed */
} fl_lane;

typedef struct fl_sums { /* since the start of the run */
    fl_wide energy_fj;
    fl_wide memory;  /* memory controller active: ps x 1/32768 */
    int64_t busy_ps; /* a kernel resident */
    uint64_t kernels, iterations;
} fl_sums;

typedef struct fl_window { /* since the last boundary */
    fl_wide dyn_fj, memory;
} fl_window;

typedef struct fl_record_buffer {
    fl_kernel_record *record;
    size_t count, room;
    bool on, failed;
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
    int64_t now_ps;    /* the base is charged up to here */
    int64_t closed_ps; /* time without a context */
    int64_t closed_mw; /* and what the board draws then */
    bool open;         /* a context is open: from the start until the island's work is done */
    fl_sums sums;
    fl_window window;
    /* several streams: what runs now */
    uint32_t active, resident;
    int64_t demand_sms, demand_memory; /* sums, in 1/65536 */
    int64_t dyn_now_mw;                /* of what runs, at its present rates */
    int64_t peak_mw;                   /* of several streams; a lone one's follows from its residence */
    int64_t busy_since_ps;
    bool scarce, touched, peak_due;
    fl_record_buffer records;
} fl_gpu;

fl_status fl_gpu_open(fl_gpu *g, const fl_workload *w, fl_rates *rates, const fl_node_spec *node, uint32_t index,
                      uint32_t sm, uint32_t mem, fl_diag *d);
void fl_gpu_close(fl_gpu *g);

/* Charges the base and folds the window's sums, up to t. */
void fl_gpu_settle(fl_gpu *g, int64_t t);

/* Puts other clocks in force at g->now_ps; the lanes must be rescaled by their path. */
fl_status fl_gpu_clock(fl_gpu *g, uint32_t sm, uint32_t mem, fl_diag *d);

/* What is left of an op after a change of its length, rounded; untouched when the length stays. */
int64_t fl_rescale_ps(int64_t left, int64_t before, int64_t after);

void fl_gpu_record(fl_gpu *g, const fl_lane *lane, int64_t end_ps);

/* What the board draws when nothing runs on it, and what it draws now. */
static inline int64_t fl_gpu_idle_mw(const fl_gpu *g) { return g->open ? g->rates->base.total_mw : g->closed_mw; }
static inline int64_t fl_gpu_power_mw(const fl_gpu *g) { return fl_gpu_idle_mw(g) + g->dyn_now_mw; }

/* ---- scan: a lone stream ---- */
/* Advances to `until`, or to the end of the stream; returns the instant reached. Charges into g->window; the caller
 * settles. */
int64_t fl_scan_advance(fl_gpu *g, fl_lane *lane, int64_t until);
void fl_scan_rescale(fl_gpu *g, fl_lane *lane, const fl_clock_rates *before);

/* ---- streams: any number of streams of one island ---- */
typedef struct fl_host_thread {
    const fl_thread *t;
    size_t next;
    int64_t *event_ps; /* FL_TIME_NEVER while it waits for the GPU or the queue; a cell of its course */
    bool waiting;      /* in a synchronisation */
} fl_host_thread;

typedef struct fl_course { /* an island in execution */
    const fl_island *is;
    const fl_workload *w;
    fl_lane **lane; /* by stream index of the workload; only those of the island are used */
    fl_lane **mine; /* the island's, in order */
    fl_gpu **gpu;   /* the island's */
    fl_host_thread *thread;
    int64_t *event_ps; /* next event of each lane, then of each thread: in one place, since every event looks for the
                          earliest */
    uint32_t queue;
    bool simple;   /* no launches and no waits: an op may begin as soon as the one before it has ended */
    uint32_t done; /* lanes and threads that have finished */
} fl_course;

int64_t fl_streams_advance(fl_course *c, int64_t until);
/* After fl_gpu_clock at instant t. */
void fl_streams_rescale(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t);
/* Lanes that wait for what can never come: a description of the first into buf, or NULL. */
const char *fl_streams_stuck(const fl_course *c, char *buf, size_t size);

#endif
