/* GPOEO's course on one GPU, what is kept of it, and the parameters. */
#pragma once

#include "policies/gpoeo_model.h"
#include "policies/gpoeo_search.h"
#include "policies/gpoeo_trace.h"

typedef struct fl_gpoeo_params {
    double con_perf, spread, phase, phase_model, lowest_mhz, top_mhz, start_mhz, start_s, window_s, missing_s,
        period_ms;
    fl_table trees;
} fl_gpoeo_params;

typedef struct fl_gpoeo_gpu {                            /* zeros but for what fl_gpoeo_open sets */
    uint32_t state;                                      /* as its probe tells */
    uint32_t blind, aperiodic, checks, group, recording; /* group: of counters */
    uint32_t broken, breaks;                             /* broken: a record of this window was lost */
    int64_t busy_ns, begun_ns, known_ns;                 /* -1: never */
    int64_t settled_ns;                                  /* from then on readings are those of the clocks set last */
    double limit_w, set_sm, set_mem, optimised_s;
    double period_s;                     /* as found last */
    double base_energy, base_time;       /* at the default clocks */
    double least_w, most_w, sum_w;       /* of the windows watched since the choice */
    fl_gpoeo_counters counters, counted; /* counted: before the window */
    fl_gpoeo_search search;
    fl_gpoeo_trace trace;
} fl_gpoeo_gpu;

typedef struct fl_gpoeo_place { /* what a step of one GPU is about */
    const fl_gpoeo_params *p;
    fl_gpoeo_gpu *g;
    const fl_gpu_facts *f;
    const fl_gpu_sample *s;
    const fl_sample *sample;
    fl_command *command;
    uint32_t gpu;
} fl_gpoeo_place;

/* What is not zero at first. */
void fl_gpoeo_open(fl_gpoeo_gpu *g, const fl_gpu_facts *f);

void fl_gpoeo_step(const fl_gpoeo_place *at);
