/* What GPOEO predicts from: a clock, and stand-ins for the performance counters that kernel records do not carry. */
#pragma once

#include "policies/policy.h"
#include "policies/trees.h"

/* The released models take the clock and fifteen counters: 1.2 IPC, L1 and L2 misses, and the utilisation of twelve
 * pipes. Of these, kernel records let one guess two: the shares of kernel time of kernels called after tensor or FP64
 * work stand for those two pipes. Beside them the sum of kernel times over the time stands for how busy the SMs are; it
 * is cut at 1, so that kernels side by side in streams may hide idle time. Thirteen are left out: IPC, both misses, and
 * the pipes adu, fma, alu, fp16, xu, tex, cbu, ipa, lsu and uniform. */
enum { FL_GPOEO_CLOCK, FL_GPOEO_BUSY, FL_GPOEO_TENSOR, FL_GPOEO_FP64, FL_GPOEO_FEATURES };

/* Three bands of SM clocks, each with a model of energy and one of time, over those at the default clocks. */
enum { FL_GPOEO_BANDS = 3, FL_GPOEO_ENERGY = 0, FL_GPOEO_TIME = 1, FL_GPOEO_MODELS = 2 * FL_GPOEO_BANDS };
#define FL_GPOEO_CLOCK_MHZ 1800.0 /* clocks are given over this one; the counters are read at it */
#define FL_GPOEO_COUNTERS_MEM_MHZ 9251.0

typedef enum fl_gpoeo_pipe { FL_GPOEO_OTHER_PIPE, FL_GPOEO_TENSOR_PIPE, FL_GPOEO_FP64_PIPE } fl_gpoeo_pipe;

/* By a part of the kernel's name, in lower case: FP64 first ("dgemm", "double", "fp64", "f64"), then tensor ("gemm",
 * "conv", "attention", "mma"). A stated guess: nothing says that such a kernel uses the pipe. */
fl_gpoeo_pipe fl_gpoeo_pipe_of(const char *name);

/* Which band an SM clock is in: up to 1019 MHz, up to 1424, above. */
static inline uint32_t fl_gpoeo_band(double mhz) { return mhz <= 1019 ? 0 : mhz <= 1424 ? 1 : 2; }

typedef struct fl_gpoeo_counters {   /* what records tell of the time in which counters are read */
    double counted_s;                /* that time */
    double busy_s, tensor_s, fp64_s; /* of kernels: all, and those called after tensor and FP64 work */
} fl_gpoeo_counters;

/* Adds the records of a step that are of that GPU. */
void fl_gpoeo_take(fl_gpoeo_counters *c, const fl_sample *sample, uint32_t gpu);

/* Of the gears low to high of a ladder the one of least predicted E T^2 (fl_gpoeo_cost), of equals the highest. band:
 * whose model is asked; FL_GPOEO_OWN_BAND: that of each clock. trees: as fl_trees_count takes it. */
#define FL_GPOEO_OWN_BAND FL_GPOEO_BANDS
int32_t fl_gpoeo_predict(const fl_table *trees, const fl_gpoeo_counters *c, fl_ladder clocks, int32_t low, int32_t high,
                         uint32_t band, double bound);
