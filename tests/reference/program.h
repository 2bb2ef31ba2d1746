/* The second implementation is written as the authors wrote theirs: a program that measures and sleeps, one per GPU. It
 * runs on a thread of its own, which goes on only while a step of the policy waits for it. README.md says how such a
 * program becomes steps. */
#pragma once

#include "tests/reference/branches.h"
#include "tests/reference/measure.h"
#include "tests/reference/mfgpoeo.h"

#include <pthread.h>
#include <semaphore.h>

typedef struct ref_measured { /* one call of the controller, as the stop rule remembers it */
    double rho, objective;
    int gear, next;
} ref_measured;

typedef struct ref_owned { /* a window, freed with its program where the course ends in its midst */
    ref_data data;
    struct ref_owned *next;
} ref_owned;

typedef struct ref_program {
    /* the machine */
    const fl_gpu_facts *gpu;
    uint32_t index;
    int gears, memory_gears; /* N, M */
    uint64_t cores;

    /* the present step */
    int64_t now_ns;
    const fl_sample *sample;
    double wanted[FL_GPU_CONTROL_COUNT], last_set[FL_GPU_CONTROL_COUNT];
    bool reset_limit; /* the power limit becomes the default in this step */

    /* the course */
    const char *where;
    ref_products products;
    ref_owned *owned;
    ref_data *database;
    ref_index found;      /* of the last window that was compared */
    double window_s;      /* D */
    int64_t traced_ns;    /* of all traced windows since (re)start */
    double handed_on;     /* loss that the memory trial hands on */
    int gear, memory;     /* SM gear and memory gear of the loop */
    int refresh_each;     /* R */
    bool changed;         /* a phase change asks for a refresh */
    double bound;         /* C */
    ref_measured kept[6]; /* oldest first */
    int kept_count;

    /* the controller, since (re)start */
    int calls; /* n, and k of the present call */
    double error_sum, last_error, last_loss, last_gain;
    int gear_before[2]; /* measured at in the last call, and in the one before it */
    bool compounded;

    /* the thread */
    pthread_t thread;
    sem_t go, done;
    bool closing;
    struct ref_program *next;
} ref_program;

static inline void ref_reach(int branch) { ref_reached[branch]++; }

/* Hands the step back to the host, and returns in the next one. */
void ref_next_step(ref_program *p);

/* "A wait of W seconds that begins at step time t0 ends at the first step with t - t0 >= W." */
void ref_wait(ref_program *p, double seconds);

/* Sets a control at the end of this step, where it then differs. */
void ref_set(ref_program *p, int control, double value);
void ref_set_sm_gear(ref_program *p, int gear);
void ref_set_memory_gear(ref_program *p, int gear);
void ref_reset_limit(ref_program *p);
double ref_sm_mhz(const ref_program *p, int gear);

/* "One window": the idle gate, then `seconds` of samples and, if traced, of kernels. ref_forget frees it. */
void ref_idle_gate(ref_program *p, bool untouched);
ref_data *ref_window(ref_program *p, double seconds, bool traced);
void ref_forget(ref_program *p, ref_data *w);

/* ---- what the course calls (control.c) ---- */

/* One call of the controller with a window measured at p->gear. Returns the proposal. */
int ref_controller(ref_program *p, double loss, double measured_mhz);

/* The stop rule, after ref_controller. Returns the stable gear, or -1. */
int ref_stop_rule(ref_program *p);

/* The whole course; never returns. mfgpoeo.c */
void ref_course(ref_program *p);
