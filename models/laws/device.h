/* A device: everything the simulator may know of one type of GPU, its sensors and its host, and of a node of them. This
 * is the second public header of models/laws, for code that only describes chips.
 *
 * The program fills fl_node_spec from a platform file (harness/input/platform) and frees it with fl_node_spec_free. It
 * holds plain numbers, and no text except names. A member of 0 mostly means "the device has none"; each says so. */
#pragma once

#include "models/math/math.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- sensors: how the true course of a quantity becomes the values that software reads ---- */

typedef struct fl_sensor_spec {
    int64_t period_ns; /* between refreshes; 0 = a reading shows the true value at its instant */
    int64_t phase_ns;  /* time of the first refresh */
    int64_t window_ns; /* a refresh shows the mean over this long before it; 0 = the value at that instant */
    int64_t lag_ns;    /* time constant of a first-order lag behind the window; 0 = none */
    int64_t delay_ns;  /* from refresh to the first reading that shows it */
    double quantum;    /* readings are multiples of this; 0 = none */
    double noise;      /* standard deviation of seeded normal noise, in the unit of the reading */
    double wrap;       /* a counter starts again at 0 when it reaches this; 0 = never */
    int present;       /* 0: the device has no such sensor, its signals are invalid */
} fl_sensor_spec;

/* Rounds to the nearest multiple of quantum, halves up; quantum 0 leaves the value unchanged. */
double fl_sensor_quantise(double value, double quantum);

/* The value that a wrapping counter shows; wrap 0 = the counter never wraps. */
double fl_sensor_wrap(double value, double wrap);

/* One refresh of a first-order lag: moves `shown` towards `input` after dt_ns. With lag 0 the result is input. */
double fl_sensor_lag(double shown, double input, int64_t dt_ns, int64_t lag_ns);

typedef enum fl_sensor_id {
    FL_SENSOR_POWER,         /* power_w */
    FL_SENSOR_POWER_INSTANT, /* power_instant_w */
    FL_SENSOR_ENERGY,        /* energy_j, energy_ns */
    FL_SENSOR_UTILISATION,   /* util_gpu_pct, util_mem_pct */
    FL_SENSOR_PROFILE,       /* sm_active, dram_active, dram_bytes, alu_busy, gpu_clock_busy, compute_ns, copy_ns */
    FL_SENSOR_CLOCK,         /* sm_mhz, mem_mhz, throttle, power_violation_ns, thermal_violation_ns */
    FL_SENSOR_TEMPERATURE,   /* temp_c */
    FL_SENSOR_COUNT
} fl_sensor_id;

typedef enum fl_host_sensor_id {
    FL_HOST_SENSOR_CPU,         /* cpu_mhz, cpu_util_pct, cpu_uops, cpu_cycles, cpu_mem_bytes */
    FL_HOST_SENSOR_CPU_ENERGY,  /* cpu_energy_j */
    FL_HOST_SENSOR_NODE_POWER,  /* node_power_w */
    FL_HOST_SENSOR_NODE_ENERGY, /* node_energy_j */
    FL_HOST_SENSOR_COUNT
} fl_host_sensor_id;

typedef struct fl_actuator_spec {
    int64_t call_ns;   /* a call that sets a clock blocks its caller this long */
    int64_t settle_ns; /* from the end of the call until the clock has changed */
    int64_t read_ns;   /* reading all signals of one GPU blocks the caller this long */
    /* Of a call that sets a power limit; limit_call_ns 0: as for a clock. */
    int64_t limit_call_ns;  /* it blocks its caller this long */
    int64_t limit_force_ns; /* from the start of the call until the limit is in force; at most limit_call_ns */
} fl_actuator_spec;

/* The controller by which a board holds its power limit L. Each period it looks at the filtered power P. Over L it
 * lowers the clock at once, and below aim L it raises the clock again:
 *
 *   f becomes f (aim L / P)^exponent
 *
 * For recover_ns after a look over L the clock rises at each look, else on a slower grid. Measured on a V100
 * (GridPilot's recordings of steps of the limit). */
typedef struct fl_wall_spec {
    int64_t period_ns;  /* between looks; 0 = the board has no such controller */
    int64_t filter_ns;  /* time constant of the first-order filter of power */
    double exponent;    /* of the ratio of powers */
    double aim;         /* the power that a move aims at, as a share of the limit */
    int64_t rise_ns;    /* grid on which the clock rises: at the first look after each of its instants */
    double rise_mhz;    /* the largest move up */
    int64_t recover_ns; /* how long the clock rises at each look after one over the limit, unless the limit rises */
    double measured_w, burst_w; /* the limit under which rows were measured, and the most that they draw; 0 = no rows */
    int ideal; /* for comparison: each look sets at once the highest clock at which the running work fits the limit */
} fl_wall_spec;

/* Return what the controller lets a board draw between waits under a limit, in W. Measured rows may exceed the limit
 * that they were measured under, since a board averages over its waits. Their clocks are what that limit left, so it
 * holds none of them. The excess fades over the 10 % below it. So simulated iterations differ from those measured on
 * A100 and A40 boards by 0.1 % in time at 275 of 300 W, and by up to 1.5 % at 250 W (ML.ENERGY's Perseus artifact, SOSP
 * '24). */
static inline double fl_wall_allows_w(const fl_wall_spec *w, double limit_w) {
    if (!(w->burst_w > w->measured_w))
        return limit_w;
    const double above = 1 + (limit_w / w->measured_w - 1) / 0.1;
    return limit_w * (1 + (w->burst_w / w->measured_w - 1) * (above < 0 ? 0 : above > 1 ? 1 : above));
}

/* One RC stage and the effects of heat. T moves towards ambient + R P with time constant tau; leakage rises linearly.
 */
typedef struct fl_thermal_spec {
    int64_t period_ns; /* between looks; 0 = heat is not described */
    double ambient_c;
    double c_per_w; /* R */
    double tau_s;
    double leak_w_per_c, leak_ref_c; /* W added to C V for each degree above leak_ref_c */
    double limit_c, release_c;       /* the clock falls above the first, and rises again below the second */
} fl_thermal_spec;

/* The fold line of GEEPAFS (Eq. 1 to 4): memory bandwidth against the SM clock, in two segments that meet at the fold.
 *
 *   B(f) / B(fold) = 1 + a (f / fold - 1),   a = low up to the fold, a = high above it
 *
 * low is a1, high is a2, both relative to the fold: 1 means that bandwidth is proportional to the clock. low >= high >=
 * 0. max-scaling is the case without a slope: bandwidth does not depend on the SM clock. */
typedef struct fl_fold_line {
    double fold_mhz; /* 0 = bandwidth does not depend on the SM clock */
    double low, high;
} fl_fold_line;

/* Return true if the law has low >= high >= 0 and bandwidth is above 0 at lowest_mhz. Without a fold it is sound. */
bool fl_fold_line_sound(const fl_fold_line *b, double lowest_mhz);

/* Return the bandwidth at sm_mhz relative to that at the fold; 1 at every clock without a fold. */
double fl_fold_line_at(const fl_fold_line *b, double sm_mhz);

typedef struct fl_device {
    char name[64];
    int32_t *sm_mhz, *mem_mhz; /* ladders, ascending */
    uint32_t sm_count, mem_count;
    double default_sm_mhz, default_mem_mhz; /* the clocks that the driver aims at when nothing is locked */

    /* Power while a kernel runs (power-capping Eq. 2, extended), f in GHz, m and m_ref in MHz:
     *   P = alpha A V^2 f + beta B m/m_ref + B0(m) + C V + A0 V^2 f */
    double a_w;          /* A: W per V^2 GHz, SMs at full load */
    double a0_w;         /* A0: W per V^2 GHz, idle clock tree, while a context is open */
    double b_w;          /* B: W at the default memory clock, memory at full load */
    double *b0_w;        /* B0(m): W, one per memory clock: power of idle memory */
    double c_w;          /* C: W per V, static */
    double no_context_w; /* power of the board when no context is open, at its idle clock */
    int64_t gate_ns;     /* after this long without an op the GPU is power-gated: C V and A0 V^2 f vanish; 0 = never */
    fl_curve *voltage;   /* V(f) against MHz, monotone, with a floor; 1 at the lowest clock unless known */
    double sharpness;    /* p of kernel time, for kernels that give none */
    fl_fold_line bandwidth; /* for kernels that give no fold line of their own */

    double power_min_w, power_max_w, power_default_w; /* limits that may be set; 0 = not known */
    double tdp_w;
    double peak_bytes_per_s; /* at the default memory clock */
    uint32_t sms, cores_per_sm;
    fl_sensor_spec sensor[FL_SENSOR_COUNT];
    double util_mem_noise_pct; /* standard deviation of the memory utilisation reading */
    fl_actuator_spec actuator;
    fl_wall_spec wall;
    fl_thermal_spec thermal;
    /* Kernels that together ask for D > 1 times the bandwidth get 1 / (1 + interference (D - 1)) of it, because of row
     * conflicts and because they evict each other's cache lines. 0 = no loss. A sweep of kernels run together
     * calibrates it. */
    double interference;
    bool records_known; /* false: the platform does not state the cost of activity records, and they cost nothing */
    double records_slowdown;    /* share by which kernels take longer with activity records on */
    double records_kernel_s;    /* and by which each takes longer, whatever its length */
    double dram_share;          /* bytes/s with the memory controller fully active, as a share of peak; 0 = the peak */
    double v_excess;            /* this unit's V(f) is (1 + v_excess) times the curve (variation between units) */
    double v_sigma, leak_sigma; /* standard deviations between units, as shares: of V(f), and of C and leakage */
} fl_device;

static inline bool fl_device_records_cost(const fl_device *dev) {
    return dev->records_slowdown > 0 || dev->records_kernel_s > 0;
}

/* The host CPU. Its states are the clocks that software may set and, above them, boost clocks that only the hardware
 * enters. The power in a state, with V relative to the lowest state and f in GHz, is
 *
 *   P = static_w V + core_w V^2 f (sum over threads: alpha while computing, wait_alpha while it waits for the GPU)
 *
 * A trace recorded its host time at clock ref_mhz. At clock f it takes (bound ref_mhz / f + 1 - bound) times as long.
 */
typedef struct fl_cpu_spec {
    int32_t *mhz; /* states that software may set, ascending; count 0 = the CPU is not modelled */
    double *volt; /* count */
    uint32_t count;
    int32_t *boost_mhz; /* boost states, ascending, all above mhz[count - 1] */
    double *boost_volt;
    uint32_t boost_count;
    double default_mhz;         /* the state that the system asks for when nothing is set */
    double ref_mhz;             /* clock at which host time counts as recorded; 0 = the highest state */
    double static_w, core_w;    /* of the package, see above */
    double bound;               /* CPU-bound share of host time, 0..1 */
    double alpha, wait_alpha;   /* activity of a thread that computes, and of one that waits */
    double upc, wait_upc;       /* micro-operations per cycle of a computing and of a waiting thread, at ref_mhz */
    double bytes_per_s;         /* memory traffic of a computing thread at ref_mhz */
    int sleeps;                 /* a waiting thread sleeps: it draws no power and issues no micro-operations */
    int64_t call_ns, settle_ns; /* of setting a state */
    int64_t period_ns;          /* period of the controllers of boost and power limit */
    int64_t filter_ns;          /* time constant of their filter of power */
    double power_min_w, power_max_w, power_default_w; /* package limits that software may set; 0 = not known */
} fl_cpu_spec;

typedef struct fl_host_spec {
    char name[64];
    double static_w; /* power of the node without its GPUs and CPU, while the program runs; 0 = not modelled */
    double comm_w;   /* power added while a copy between host and GPU runs */
    fl_cpu_spec cpu;
    double peak_bytes_per_s;
    uint32_t cores;
    int apu;         /* CPU and GPU share memory bandwidth and budget_w */
    double budget_w; /* APU: the CPU enters boost states while CPU and GPU together draw at most this power; 0 = no
                        budget */
    double bus_min, bus_max; /* APU: range of the bandwidth that traffic reaches, as shares of peak; drawn anew each
                                bus_period_ns */
    int64_t bus_period_ns;
    double gpu_budget_w;   /* discrete GPUs: one limit for all together, divided into power limits; 0 = none */
    int hosts_per_gpu;     /* each GPU has a process of its own that reads and sets it; 0: one has all in turn */
    uint32_t launch_queue; /* launches that a stream queues before the host has to wait */
    fl_sensor_spec sensor[FL_HOST_SENSOR_COUNT];
} fl_host_spec;

typedef struct fl_node_spec {
    char name[64];
    fl_device *device; /* device_count kinds */
    uint32_t device_count;
    uint32_t *gpu; /* gpu_count entries: index of each GPU's kind in device */
    uint32_t gpu_count;
    fl_host_spec host;
} fl_node_spec;

void fl_node_spec_free(fl_node_spec *n); /* accepts a zeroed struct; leaves the struct zeroed */

/* Return the device's interference in 1/65536, as fl_shares_capacity expects it. */
uint32_t fl_gpu_interference(const fl_device *dev);

/* Return the index of the ladder clock equal to value, or -1. */
int fl_ladder_index(const int32_t *mhz, uint32_t count, double value);
