/* One simulated GPU and the host CPU: clocks in force, power, the power limit of the board, heat, sensors, energy. Also
 * the state of an island in execution, which sim/advance moves.
 *
 * sim/node owns these objects and calls them at boundaries; other modules read fl_gpu and make fl_rates. Make rates
 * with fl_rates_new and share them between runs; each _open has a _close. Opening fails with FL_NO_MEMORY or
 * FL_BAD_INPUT. Most calls between do not fail.
 *
 * In this order: rates (length and power of each class at each pair of clocks); the GPU; clock sets (fl_actuator);
 * streams and islands in execution (fl_lane, fl_course); sensors of the node; the CPU; heat; sensors of a GPU; the
 * power limit of a board (fl_wall); boards that differ.
 *
 * Energy is kept twice. Running sums: each boundary charges the old power up to its instant. Residence: picoseconds of
 * work per class, and of time, at each pair of clocks visited. Residence times the integer parts of the rows gives the
 * sums exactly, and splits them into parts. */
#pragma once

#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "policies/policy.h"
#include "sim/base/base.h"
#include "sim/gpu/work.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- rates: the rows of a workload at each pair of clocks ----
 *
 * The first run that uses a clock builds its rows; all runs share them. They never change once visible. */

typedef struct fl_clock_rates {
    fl_base base;
    const fl_row *row;         /* class_count */
    const fl_row_parts *parts; /* class_count */
    int32_t max_dyn_mw;        /* over the classes: no mix of n kernels draws more than n times this above the base */
    fl_prefix_cell *prefix;    /* by stream */
    double gpu_sd, mem_sd;     /* measured deviations of the utilisation readings, in points; NAN: not measured */
} fl_clock_rates;

typedef struct fl_rates fl_rates;

/* The expected error of a model, from which --model-error draws another chip. */
typedef struct fl_model_error {
    double time_pct, power_pct; /* mean absolute errors */
    uint64_t seed;
} fl_model_error;

/* Draw errors for each class's length and power, and for the device's base power. Call it before the first use. Errors
 * are lognormal and smooth over the clocks. Errors of time are 0 at the reference clock and grow away from it; errors
 * of power occur at every clock. If the reference is an end of the ladder, the mean absolute errors over the ladder are
 * those given; nearer its middle they are smaller. */
void fl_rates_err(fl_rates *r, const fl_model_error *e);

/* Make rates for a workload on a node. Both are borrowed for the life of the rates. */
fl_status fl_rates_new(fl_rates **out, const fl_workload *w, const fl_node_spec *node, fl_diag *d);
void fl_rates_free(fl_rates *r);
/* Count a run that uses these rates. Returns the number of such runs so far. */
uint32_t fl_rates_used(fl_rates *r);

/* Return the rows at a pair of clocks; builds them at first use. Thread-safe. device: index into the node's devices;
 * sm, mem: ladder indices. */
fl_status fl_rates_at(fl_rates *r, uint32_t device, uint32_t sm, uint32_t mem, const fl_clock_rates **out, fl_diag *d);

typedef struct fl_slot { /* residence at one pair of clocks */
    uint32_t sm, mem;
    const fl_clock_rates *rates;
    int64_t open_ps;                      /* time with a context open, */
    int64_t gated_ps;                     /* and of that, power-gated */
    int64_t *class_ps;                    /* class_count: work done, in ps of the length a kernel has here when alone */
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

/* ---- the GPU ---- */

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
    uint32_t lock_sm;          /* requested clock: the lock, or the driver's default */
    uint32_t wall_sm, heat_sm; /* highest clocks that the power limit and heat allow; the clock in force is the least */
    int64_t wall_held_ps, heat_held_ps; /* time that the power limit, or heat, kept the clock below the request */
    int64_t leak_mw;                    /* what heat adds while a context is open */
    fl_wide leak_fj;
    int64_t leak_peak_mw;
    double temp_c, hottest_c; /* now, and the highest so far; NAN where heat is not modelled */
    bool counted;             /* a collector counts its kernels all along; else they are counted while records are on */
    bool marked;              /* its program passes iteration markers */
    uint64_t uncounted;       /* kernels that ended while no collector counted */
    uint64_t stopped;         /* while none counts: kernels that had ended when the last collector stopped */
    bool profiled;            /* some sensor needs them: ALU, SM and copy activity are summed too */
    bool readings;            /* its utilisation readings were measured: they are the means of SMs and memory */
    bool lost;                /* fell off the bus: it does not move, and no read or set of it succeeds */
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

/* Charge the base up to t, at the old power, and add the window's sums. */
void fl_gpu_charge_to(fl_gpu *g, int64_t t);

/* Return the clock in force: the least of the lock, the power limit's clock and heat's clock. */
uint32_t fl_gpu_allowed_sm(const fl_gpu *g);

/* Put clocks, and the cost of records by records.slow, in force at g->now_ps. The caller must rescale the lanes by
 * their way of advancing (fl_source.rescale). */
fl_status fl_gpu_clock(fl_gpu *g, uint32_t sm, uint32_t mem, fl_diag *d);

static inline int64_t fl_gpu_gated_mw(const fl_gpu *g) {
    return (int64_t)g->rates->base.static_mw + g->rates->base.tree_mw;
}

/* Subtract the power that gating saved up to t from the running sum. The start of gating needs no boundary. */
static inline void fl_gpu_gate_to(fl_gpu *g, int64_t t) {
    if (t <= g->gate_at_ps)
        return;
    g->slot[g->slot_now].gated_ps += t - g->gate_at_ps;
    g->sums.energy_fj -= (fl_wide)(t - g->gate_at_ps) * fl_gpu_gated_mw(g);
    g->gate_at_ps = t;
}

/* Leave gating at t, as the first op begins; and let the GPU rest from t on, as the last op has ended. */
static inline void fl_gpu_wake(fl_gpu *g, int64_t t) {
    fl_gpu_gate_to(g, t);
    g->gate_at_ps = FL_TIME_NEVER;
}

static inline void fl_gpu_rest(fl_gpu *g, int64_t t) { g->gate_at_ps = g->gate_ps ? t + g->gate_ps : FL_TIME_NEVER; }

/* Return the board's power, mW: base = idle but not gated; idle = gated where it is; cool = with what runs; power =
 * leakage by heat included. */
static inline int64_t fl_gpu_base_mw(const fl_gpu *g) { return g->open ? g->rates->base.total_mw : g->closed_mw; }
static inline int64_t fl_gpu_idle_mw(const fl_gpu *g) {
    const bool gated = g->open && g->gate_ps && g->gate_at_ps <= g->now_ps;
    return fl_gpu_base_mw(g) - (gated ? fl_gpu_gated_mw(g) : 0);
}
static inline int64_t fl_gpu_cool_mw(const fl_gpu *g) { return fl_gpu_idle_mw(g) + g->dyn_now_mw; }
static inline int64_t fl_gpu_power_mw(const fl_gpu *g) { return fl_gpu_cool_mw(g) + (g->open ? g->leak_mw : 0); }

/* Charge work done by one op of a class into the window, and into the residence of the present clocks. */
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

/* ---- clock sets: from the call to the clock in force ----
 *
 * A set call occupies its caller for a time. The clock then settles, and later calls settle later. A clock that settles
 * while a kernel runs changes the rest of that kernel (fl_source.rescale). */

#define FL_PENDING_MAX 64

typedef struct fl_pending {
    int64_t at_ps;
    int32_t sm, mem; /* ladder indices; -1 = this one stays */
} fl_pending;

typedef struct fl_actuator {
    const fl_device *dev;
    fl_pending queue[FL_PENDING_MAX]; /* by time */
    uint32_t count;
    uint32_t sm_default, mem_default;
} fl_actuator;

void fl_actuator_open(fl_actuator *a, const fl_device *dev);

/* Queue a set call that ends at called_ps. Clocks are in MHz on the ladder, FL_DEFAULT (-1) = the driver's, NAN = this
 * one stays. If 64 are settling, the newest replaces the one before it. */
void fl_actuator_set(fl_actuator *a, int64_t called_ps, double sm_mhz, double mem_mhz);

/* Return when the next set settles, or FL_TIME_NEVER. */
static inline int64_t fl_actuator_next(const fl_actuator *a) { return a->count ? a->queue[0].at_ps : FL_TIME_NEVER; }

/* Apply the sets that have settled by t to *sm and *mem. Returns true if these changed. */
bool fl_actuator_take(fl_actuator *a, int64_t t, uint32_t *sm, uint32_t *mem);

/* ---- streams and islands in execution ---- */

typedef enum fl_phase {
    FL_PHASE_FRESH, /* the next op may not start yet, or has not been examined */
    FL_PHASE_GAP,
    FL_PHASE_RUN,
    FL_PHASE_DONE,
    FL_PHASE_LOST /* in progress on a GPU that fell off the bus */
} fl_phase;

typedef struct fl_lane { /* one stream in execution */
    const fl_stream *s;
    fl_gpu *gpu;
    uint64_t next; /* ops before it have finished */
    uint64_t launched;
    uint32_t class_id;
    fl_phase phase;
    int64_t length_ps; /* of the kernel in progress, alone at the present clocks; its work in ns before that */
    fl_work p;
    uint32_t sms, memory;     /* demands of the kernel in progress, in 1/65536 */
    int32_t dyn_mw;           /* its power above the base, alone */
    uint32_t marks;           /* passed */
    int64_t *mark_ps;         /* s->mark_count: when each was passed */
    int64_t began_ps;         /* of the kernel in progress, its earlier phases included */
    bool in_parts;            /* the op before was a phase of the same kernel */
    int64_t worked_ps;        /* lone streams: time spent in ops rather than gaps */
    bool at_barrier;          /* only an event of another GPU keeps its next op from starting */
    bool spinning;            /* and that op spins meanwhile: since p.since_ps, or since the clock changed */
    int64_t *iteration_ps;    /* s->iterations: when each marker was passed */
    uint64_t iterations;      /* passed */
    fl_prefix_place place[2]; /* where a lone stream stood last, on a table of its clocks: place[stands] */
    uint32_t stands;
    fl_prefix_look stop, window; /* where it is likely to look next on that table: for a stretch, for foreseen sums */
} fl_lane;

/* Append the record of the kernel that has just ended. Sets g->records.failed if there is no memory. */
void fl_lane_record(const fl_lane *l, int64_t end_ps);

typedef struct fl_host_thread {
    const fl_thread *t;
    size_t next;
    fl_work p;
    int64_t work_ns; /* of the stretch of host time in progress */
    uint32_t load;   /* its fl_host_load */
    bool computing;  /* in a stretch of host time */
    bool waiting;    /* in a synchronisation, or for room in a queue */
    bool asleep;     /* until a request arrives */
} fl_host_thread;

typedef struct fl_host_sums {   /* of one island, since the node collected them last */
    int64_t *time_ps, *work_ps; /* by host load: time spent computing, and work done in it */
    int64_t active_ps;          /* host threads that have not ended x time: what is not computing is waiting */
} fl_host_sums;

typedef struct fl_ahead fl_ahead; /* what lanes do next (sim/advance/free.c) */

typedef struct fl_shortcut { /* a faster way through several streams, with the bits of the general one */
    bool may;
    uint32_t shorts;  /* tries in a row that were hardly worth their start */
    uint64_t sit_out; /* events to go another way before the next try */
} fl_shortcut;

typedef struct fl_course {          /* an island in execution */
    const struct fl_source *source; /* how its work goes on (sim/advance/advance.h) */
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
    int64_t *ends_ps;      /* one stream with launches: when its last ops ended, op i at i & ends_mask; else NULL */
    uint64_t ends_mask, ends_queue; /* ends_queue: the queue, or more ops than there are */
    bool stops;                     /* an advance ends at each instant at which an iteration marker is passed */
    bool marked;                    /* the last advance ended so */
    bool by_events;             /* it has stopped so: sim/advance/launches.c no longer knows when its last ops ended */
    fl_ahead *ahead;            /* NULL unless free.may */
    struct fl_engines *serving; /* of the source that serves requests (sim/node/open.c): there are no lanes */
    fl_shortcut free, lanes;
} fl_course;

/* ---- sensors of the node itself: host CPU, CPU energy, node meter ----
 *
 * They use the same meters as a GPU's sensors (sim/gpu/inside.h), over the sums of the node. Policies see sensors;
 * scores use the truth. */

typedef struct fl_host_point {        /* integrals from time 0 to an instant, and what holds at it */
    fl_wide node_fj, cpu_fj;          /* the whole node; the CPU package */
    fl_wide uops, cycles;             /* counts x 2^20 */
    fl_wide bytes;                    /* bytes x 2^20 */
    int64_t busy_ps;                  /* thread time not asleep, all threads */
    fl_wide mhz_ps;                   /* CPU clock x time */
    int64_t node_mw, cpu_mw, cpu_mhz; /* at this instant */
} fl_host_point;

typedef struct fl_host_sense fl_host_sense;

/* The signals that each sensor gives: FL_BIT(FL_HOST_...). */
extern const uint64_t fl_host_sense_signals[FL_HOST_SENSOR_COUNT];

/* Open the sensors. needs: FL_BIT(FL_HOST_...) of the signals that will be read; no sensor gives LOOP_NS. idle_..._mw:
 * assumed power before time 0. cpu: the CPU is modelled; without it its signals stay invalid. */
fl_status fl_host_sense_open(fl_host_sense **out, const fl_host_spec *host, bool cpu, uint64_t needs, uint64_t seed,
                             int64_t idle_node_mw, int64_t idle_cpu_mw, fl_diag *d);
void fl_host_sense_close(fl_host_sense *s);

/* Do for the node what fl_sense_next, fl_sense_at and fl_sense_read do for a GPU. */
int64_t fl_host_sense_next(fl_host_sense *s, int64_t now_ps, int64_t read_ps);
/* Return whether a window begins or ends at t; and whether a reading needs the present point. If it does not, `now` of
 * fl_host_sense_read may be NULL. */
bool fl_host_sense_due(const fl_host_sense *s, int64_t t);
bool fl_host_sense_instant(const fl_host_sense *s);
void fl_host_sense_at(fl_host_sense *s, const fl_host_point *p, int64_t t);
void fl_host_sense_read(fl_host_sense *s, const fl_host_point *now, int64_t t, bool remember, fl_host_sample *out);

/* ---- the host CPU: its clock and its energy ----
 *
 * Software asks for a state, the hardware enters boost states by itself, and limits hold it down. Threads and their
 * work belong to the courses (sim/advance/streams.c); they share the one clock that is kept here. */

typedef struct fl_cpu_slot { /* residence in one state */
    int64_t open_ps, wait_ps;
    int64_t *time_ps, *work_ps; /* by host load */
} fl_cpu_slot;

typedef struct fl_cpu_pending {
    int64_t at_ps;
    int32_t state, boost; /* -1 = stays */
    bool limit;           /* limit_w counts */
    double limit_w;
} fl_cpu_pending;

#define FL_CPU_PENDING_MAX 16

typedef struct fl_cpu {
    fl_cpu_spec own;         /* the platform's, with the clock at which the workload was recorded */
    const fl_cpu_spec *spec; /* that */
    const fl_host_spec *host;
    uint32_t state_count, soft_count, load_count;
    fl_cpu_state *state;
    fl_cpu_row *row; /* load_count for each state */
    fl_cpu_slot *slot;
    uint32_t now;     /* state in force */
    uint32_t asked;   /* by software, below soft_count */
    uint32_t ceiling; /* what budget and limit leave */
    bool boost;       /* software allows it */
    fl_cpu_pending queue[FL_CPU_PENDING_MAX];
    uint32_t pending;
    int64_t look_ps; /* next look of the controllers, FL_TIME_NEVER where none is needed */
    int64_t limit_mw;
    double filtered_cpu_mw, filtered_all_mw;
    fl_wide seen_cpu_fj, seen_all_fj; /* at the last look, */
    int64_t seen_ps;                  /* and when that was */
    int64_t now_ps;                   /* charged up to here */
    fl_host_point sums;
    fl_wide charged_fj; /* sums.cpu_fj at the last charge */
    double mean_fj;     /* energy of the last stretch between two charges, */
    int64_t mean_ps;    /* and how long that took */
    int64_t peak_mw;    /* the largest mean power of such a stretch */
    uint64_t switches;
} fl_cpu;

/* Open a CPU; host->cpu.count must be above 0. loads: load_count - 1 of them, after the platform's own. ref_mhz: CPU
 * clock at which host time was recorded, 0 = the platform's. The struct must not move. */
fl_status fl_cpu_open(fl_cpu *c, const fl_host_spec *host, double ref_mhz, const fl_host_load *loads,
                      uint32_t load_count, fl_diag *d);
void fl_cpu_close(fl_cpu *c);

/* The rows in force: load_count. */
const fl_cpu_row *fl_cpu_rows(const fl_cpu *c);

/* Queue a set call that ends at called_ps. mhz: a software state, FL_DEFAULT, or NAN = this one stays; boost: 1, 0,
 * FL_DEFAULT, NAN; limit_w: W, FL_DEFAULT, NAN. Returns false where too many are settling. */
bool fl_cpu_set(fl_cpu *c, int64_t called_ps, double mhz, double boost, double limit_w);

int64_t fl_cpu_next(const fl_cpu *c);

/* Move the sums of one course into the residence of the present state. */
void fl_cpu_collect(fl_cpu *c, fl_host_sums *sums);
/* Charge the package up to t. Call it after fl_cpu_collect for all courses. */
void fl_cpu_charge_to(fl_cpu *c, int64_t t);
/* Return the mean power of the last stretch between two charges, mW. */
int64_t fl_cpu_mw(const fl_cpu *c);

/* At t, up to which the CPU is charged: let sets settle, and apply budget and limit. gpu_fj: energy of the GPUs up to
 * t. Returns true if the state in force has changed. */
bool fl_cpu_at(fl_cpu *c, int64_t t, fl_wide gpu_fj);

/* Return the energy by residence. It must equal sums.cpu_fj; a difference is a fault of the program. */
fl_wide fl_cpu_residence_fj(const fl_cpu *c);

/* ---- heat of one die: one RC stage ----
 *
 * The temperature follows the mean power of each period, leakage follows the temperature, and the GPU's clock falls at
 * the thermal limit. The die is the GPU's; on an APU also the CPU's. A device whose thermal period is 0
 * has no heat model. With heat, the same work at the same clock costs more later in a run. */

typedef struct fl_heat {
    const fl_thermal_spec *spec;
    int64_t period_ps, next_ps; /* next_ps: FL_TIME_NEVER while heat is not modelled */
    double keep;
    bool acts;
    fl_wide seen_fj;
} fl_heat;

/* Starts at the temperature of a board that idles with its context open, g->temp_c. cpu_mw: power of an idle CPU on the
 * same die, 0 = none. */
void fl_heat_open(fl_heat *h, fl_gpu *g, int64_t cpu_mw);

/* Call it when the GPU stands at t and is charged up to t. Where a look is due, it sets temperature, leakage and
 * g->heat_sm. cpu_fj: energy up to t of a CPU on the same die, else 0. */
void fl_heat_at(fl_heat *h, fl_gpu *g, fl_wide cpu_fj, int64_t t);

static inline int64_t fl_heat_next(const fl_heat *h) { return h->next_ps; }

/* ---- sensors of one simulated GPU: from the true course to what software reads ----
 *
 * A window's mean is the difference of two integrals. So a sensor asks for boundaries only at the start and the end of
 * windows that will be read. Before time 0 the GPU counts as idle at its first clocks. */

typedef struct fl_sense fl_sense;

/* The signals that each sensor gives: FL_BIT(FL_GPU_...). */
extern const uint64_t fl_sense_signals[FL_SENSOR_COUNT];

/* Open the sensors of a GPU. needs: FL_BIT(FL_GPU_...) of the signals that will be read. */
fl_status fl_sense_open(fl_sense **out, const fl_gpu *g, uint64_t needs, uint64_t seed, fl_diag *d);
void fl_sense_close(fl_sense *s);

/* Return the next instant after now at which a sensor needs this GPU at a boundary, if no read comes before read_ps;
 * FL_TIME_NEVER: none. *begins: windows only begin there, so known sums of that instant can replace the boundary. */
int64_t fl_sense_next(fl_sense *s, int64_t now_ps, int64_t read_ps, bool *begins);

/* Begin and end the windows of instant t, up to which the GPU is charged. */
void fl_sense_at(fl_sense *s, const fl_gpu *g, int64_t t);

/* Return whether the windows need only busy_ps of the sums at which they begin. */
bool fl_sense_busy_only(const fl_sense *s);

/* Begin windows at t, like fl_sense_at, from the GPU's sums of that instant. */
void fl_sense_begin(fl_sense *s, const fl_sums *sums, int64_t t);

/* Return what software reads at t. Fresh means refreshed since the last call with remember set. */
void fl_sense_read(fl_sense *s, const fl_gpu *g, int64_t t, bool remember, fl_gpu_sample *out);

/* ---- the power limit of one board (power capping) ----
 *
 * fl_wall is the controller that enforces it, in control.c: it has a period, a filter and a power law (fl_wall_spec).
 * While filtered power exceeds the limit, it lowers the SM clock below the requested one; afterwards it raises the
 * clock again. It sleeps while no work that could run at the present clocks can reach the limit. */

/* Return the board's power at another SM clock with its present work, in mW; < 0: not known. */
typedef int64_t (*fl_wall_predict)(void *user, uint32_t sm);

typedef struct fl_wall {
    const fl_wall_spec *spec;
    int64_t period_ps, next_ps; /* next_ps: FL_TIME_NEVER while it sleeps */
    int64_t limit_mw;           /* the limit in force: the smaller of the next two */
    int64_t set_mw, dealt_mw;   /* set by software or the board; dealt from a budget of the node, INT64_MAX = none */
    int64_t default_mw;
    double keep;                     /* share of the old filtered power that remains after one period */
    double filtered_mw, ceiling_mhz; /* ceiling: meaningful while it acts */
    bool acts;
    int64_t recover_ps; /* up to here the clock may rise at each look */
    fl_wide seen_fj;
    int64_t seen_ps;
} fl_wall;

/* Start the controller. On a board without a controller or without a limit it always sleeps. */
void fl_wall_open(fl_wall *w, const fl_gpu *g);

/* Set another limit in W; FL_DEFAULT (-1) = the board's own. Returns false where the board has no controller. */
bool fl_wall_limit(fl_wall *w, double watts);

/* Sets the share of a budget of several boards that this board gets. */
void fl_wall_deal(fl_wall *w, int64_t mw);

/* Call it when the GPU stands at t and is charged up to t. Where a look is due, it sets g->wall_sm. */
void fl_wall_at(fl_wall *w, fl_gpu *g, int64_t t, fl_wall_predict predict, void *user);

/* Wake the controller if the limit is in reach. Call it after a change of clocks, limit or leakage at t. */
void fl_wall_wake(fl_wall *w, const fl_gpu *g, int64_t t);

static inline int64_t fl_wall_next(const fl_wall *w) { return w->next_ps; }

/* ---- boards of one type that differ: seeded V(f) and leakage ---- */

/* Give every GPU of the node a device of its own: V(f) x (1 + v_sigma n), C and leakage x (1 + leak_sigma n), n drawn
 * from a normal distribution cut at three standard deviations, by the seed and the GPU's index alone. Once per node. */
fl_status fl_node_vary(fl_node_spec *node, uint64_t seed, fl_diag *d);
