/* What a chip is: everything the simulator may know of one kind of GPU, and of a node of them. Filled from platform
 * files by the program; plain numbers, no text beyond names. */
#ifndef FL_DEVICE_H
#define FL_DEVICE_H

#include "models/curve.h"
#include "models/sensor.h"

#include <stdint.h>

typedef enum fl_sensor_id {
    FL_SENSOR_POWER,         /* power_w */
    FL_SENSOR_POWER_INSTANT, /* power_instant_w */
    FL_SENSOR_ENERGY,        /* energy_j, energy_ns */
    FL_SENSOR_UTILISATION,   /* util_gpu_pct, util_mem_pct */
    FL_SENSOR_PROFILE,       /* sm_active, dram_active, dram_bytes, alu_busy, gpu_clock_busy, compute_ns, copy_ns */
    FL_SENSOR_CLOCK,         /* sm_mhz, mem_mhz */
    FL_SENSOR_COUNT
} fl_sensor_id;

typedef struct fl_actuator_spec {
    int64_t call_ns;   /* a set call keeps its caller this long */
    int64_t settle_ns; /* from the end of the call until the clock has changed */
    int64_t read_ns;   /* reading all signals of one GPU keeps the caller this long */
} fl_actuator_spec;

typedef struct fl_device {
    char name[64];
    int32_t *sm_mhz, *mem_mhz; /* ladders, ascending */
    uint32_t sm_count, mem_count;
    double default_sm_mhz, default_mem_mhz; /* what the driver aims at when nothing is locked */

    /* Power while a kernel runs (power-capping Eq. 2, extended), f in GHz, m and m_ref in MHz:
     *   P = alpha A V^2 f + beta B m/m_ref + B0(m) + C V + A0 V^2 f */
    double a_w;          /* A: W per V^2 GHz, SMs at full load */
    double a0_w;         /* A0: W per V^2 GHz, idle clock tree, while a context is open */
    double b_w;          /* B: W at the default memory clock, memory at full load */
    double *b0_w;        /* B0(m): W, one per memory clock: what idle memory draws */
    double c_w;          /* C: W per V, static */
    double no_context_w; /* the board when no context is open, at its idle clock */
    fl_curve *voltage;   /* V(f) against MHz, monotone, with a floor; 1 at the lowest clock unless known */
    double sharpness;    /* p of kernel time for kernels that do not say */

    double power_min_w, power_max_w, power_default_w; /* settable limits; 0 = not known */
    double tdp_w;
    double peak_bytes_per_s; /* at the default memory clock */
    uint32_t sms, cores_per_sm;
    fl_sensor_spec sensor[FL_SENSOR_COUNT];
    double util_mem_noise_pct; /* standard deviation of the memory utilisation reading */
    fl_actuator_spec actuator;
} fl_device;

typedef struct fl_host_spec {
    char name[64];
    double static_w; /* the node without its GPUs, while the program runs; 0 = not modelled */
    int32_t *cpu_mhz, *boost_mhz;
    uint32_t cpu_count, boost_count;
    double default_cpu_mhz;
    double peak_bytes_per_s;
    uint32_t cores;
    int apu;
    uint32_t launch_queue; /* launches that a stream holds before the host has to wait */
} fl_host_spec;

typedef struct fl_node_spec {
    char name[64];
    fl_device *device; /* device_count kinds */
    uint32_t device_count;
    uint32_t *gpu; /* gpu_count: index of its kind */
    uint32_t gpu_count;
    fl_host_spec host;
} fl_node_spec;

void fl_node_spec_free(fl_node_spec *n); /* takes a zeroed struct; leaves it zeroed */

/* Index of the ladder clock equal to mhz, or -1. */
int fl_ladder_index(const int32_t *mhz, uint32_t count, double value);

#endif
