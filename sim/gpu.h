/* One simulated GPU: its clocks, its ledger, and the streams that run on it. Internal to sim/.
 *
 * Energy is kept twice. Running sums: at each boundary the old power is charged up to that instant. Residence:
 * picoseconds of work per class, and of time, at each pair of clocks visited. Residence times the integer parts of the
 * rows gives the sums exactly, and is what splits them. */
#ifndef FL_GPU_H
#define FL_GPU_H

#include "models/cpu_row.h"
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
    FL_PHASE_DONE,
    FL_PHASE_LOST /* in progress on a GPU that fell off the bus */
} fl_phase;

typedef struct fl_progress { /* a kernel, or a stretch of host time, on its way */
    int64_t left_ps;         /* as of since_ps */
    int64_t charged_ps;      /* of the work since since_ps; below zero: work before it that has not been charged */
    int64_t since_ps;        /* last change of rate or clock */
    int64_t start_ps;        /* when a kernel began; up to when the time of host work is charged */
    int64_t *event_ps;       /* when it ends, FL_TIME_NEVER while waiting: a cell of its course */
    uint32_t rate;           /* in 1/65536 */
} fl_progress;

typedef struct fl_lane { /* one stream in execution */
    const fl_stream *s;
    struct fl_gpu *gpu;
    uint64_t next; /* ops before it have finished */
    uint64_t launched;
    uint32_t class_id;
    fl_phase phase;
    int64_t length_ps; /* of the kernel in progress, alone at the present clocks; its work in ns before that */
    fl_progress p;
    uint32_t sms, memory;  /* demands of the kernel in progress, in 1/65536 */
    int32_t dyn_mw;        /* its power above the base, alone */
    uint32_t marks;        /* passed */
    int64_t *mark_ps;      /* s->mark_count: when each was passed */
    int64_t began_ps;      /* of the kernel in progress, its earlier phases included */
    bool in_parts;         /* the op before was a phase of the same kernel */
    int64_t worked_ps;     /* lone streams: time spent in ops rather than gaps */
    bool at_barrier;       /* only an event of another GPU keeps its next op from starting */
    int64_t *iteration_ps; /* s->iterations: when each marker was passed */
    uint64_t iterations;   /* passed */
} fl_lane;

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
    uint32_t lock_sm;          /* what is asked for: the lock, or the driver's default */
    uint32_t wall_sm, heat_sm; /* highest clocks that the power wall and heat allow; the clock in force is the least */
    int64_t wall_held_ps, heat_held_ps; /* time that the wall, or heat, kept the clock below what is asked for */
    int64_t leak_mw;                    /* what heat adds while a context is open */
    fl_wide leak_fj;
    int64_t leak_peak_mw;
    double temp_c, hottest_c; /* now, and the highest so far; NAN where heat is not modelled */
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
    fl_record_buffer records;
} fl_gpu;

fl_status fl_gpu_open(fl_gpu *g, const fl_workload *w, fl_rates *rates, const fl_node_spec *node, uint32_t index,
                      uint32_t sm, uint32_t mem, fl_diag *d);
void fl_gpu_close(fl_gpu *g);

/* Charges the base and folds the window's sums, up to t. */
void fl_gpu_settle(fl_gpu *g, int64_t t);

/* The clock that lock, wall and heat leave. */
uint32_t fl_gpu_allowed_sm(const fl_gpu *g);

/* Puts other clocks in force at g->now_ps; the lanes must be rescaled by their path. */
fl_status fl_gpu_clock(fl_gpu *g, uint32_t sm, uint32_t mem, fl_diag *d);

/* What is left of an op after a change of its length, rounded; untouched when the length stays. */
int64_t fl_rescale_ps(int64_t left, int64_t before, int64_t after);

void fl_gpu_record(fl_gpu *g, const fl_lane *lane, int64_t end_ps);

/* What the board draws when nothing runs on it, and what it draws now. */
static inline int64_t fl_gpu_idle_mw(const fl_gpu *g) { return g->open ? g->rates->base.total_mw : g->closed_mw; }
static inline int64_t fl_gpu_cool_mw(const fl_gpu *g) { return fl_gpu_idle_mw(g) + g->dyn_now_mw; }
static inline int64_t fl_gpu_power_mw(const fl_gpu *g) { return fl_gpu_cool_mw(g) + (g->open ? g->leak_mw : 0); }

/* ---- scan: a lone stream ---- */
/* Advances to `until`, or to the end of the stream; returns the instant reached. Charges into g->window; the caller
 * settles. */
int64_t fl_scan_advance(fl_gpu *g, fl_lane *lane, int64_t until, uint32_t gap_mul);
void fl_scan_rescale_host(fl_lane *lane, uint32_t mul_before, uint32_t mul_after);
void fl_scan_rescale(fl_gpu *g, fl_lane *lane, const fl_clock_rates *before);

/* ---- streams: any number of streams of one island ---- */
typedef struct fl_host_thread {
    const fl_thread *t;
    size_t next;
    fl_progress p;
    int64_t work_ns; /* of the stretch of host time in progress */
    uint32_t load;   /* its fl_host_load */
    bool computing;  /* in a stretch of host time */
    bool waiting;    /* in a synchronisation, or for room in a queue */
    bool asleep;     /* until a request arrives */
} fl_host_thread;

typedef struct fl_host_sums {   /* of one island, since the node took them last */
    int64_t *time_ps, *work_ps; /* by host load: time spent computing, and work done in it */
    int64_t active_ps;          /* host threads that have not ended x time: what is not computing is waiting */
} fl_host_sums;

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
    int64_t *request_ps;    /* by request: when it had been served; of the node */
    bool simple;            /* no launches and no waits: an op may begin as soon as the one before it has ended */
    uint32_t done;          /* lanes and threads that have finished */
    const fl_cpu_row *host; /* by host load, at the CPU's present state; NULL: the CPU is not modelled */
    fl_host_sums sums;
    int64_t lone_worked_ps; /* of a lone stream, as of active_since_ps */
    uint32_t active;        /* host threads that have not ended, recorded ones and those of streams without launches */
    int64_t active_since_ps;
    bool shared_bus;       /* an APU: host work takes its share of the GPU's bandwidth */
    uint32_t capacity;     /* of the memory bus now, in 1/65536 */
    uint32_t interference; /* in 1/65536, see fl_device */
} fl_course;

/* At instant 0: host threads begin; c->host, sums and the rest are set. */
void fl_streams_begin(fl_course *c);
int64_t fl_streams_advance(fl_course *c, int64_t until);
/* A host thread whose event is due at t, or that waits, goes on if it can. True if anything moved. */
bool fl_streams_thread(fl_course *c, fl_host_thread *h, int64_t t);
/* Charges what host threads did up to t into the sums. */
void fl_streams_settle_host(fl_course *c, int64_t t);
/* The CPU has gone from the rows `before` to c->host at t, sums settled. */
void fl_streams_rescale_host(fl_course *c, const fl_cpu_row *before, int64_t t);
/* After fl_gpu_clock at instant t. */
void fl_streams_rescale(fl_course *c, fl_gpu *g, const fl_clock_rates *before, int64_t t);
/* g fell off the bus at t, where it has been settled: what ran on it never ends. */
void fl_streams_lose(fl_course *c, fl_gpu *g);
/* Lanes that wait for what can never come: a description of the first into buf, or NULL. */
const char *fl_streams_stuck(const fl_course *c, char *buf, size_t size);

#endif
