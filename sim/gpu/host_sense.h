/* Sensors of the node itself: host CPU, CPU energy, node meter. The same meters as a GPU's (sim/gpu/meter.h), over the sums
 * of the node. Policies see these; scores use the truth. */
#pragma once

#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/base/wide.h"
#include "traces/io/diag.h"

#include <stdbool.h>

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

/* needs: FL_BIT(FL_HOST_...) of the signals somebody reads (LOOP_NS is not a sensor's). idle_mw: what the node and the
 * CPU are taken to have drawn before time 0. cpu: the CPU is modelled; without it its signals stay invalid. */
fl_status fl_host_sense_open(fl_host_sense **out, const fl_host_spec *host, bool cpu, uint64_t needs, uint64_t seed,
                             int64_t idle_node_mw, int64_t idle_cpu_mw, fl_diag *d);
void fl_host_sense_close(fl_host_sense *s);

/* As fl_sense_next, fl_sense_at and fl_sense_read, for the node. */
int64_t fl_host_sense_next(fl_host_sense *s, int64_t now_ps, int64_t read_ps);
/* Whether a window begins or ends at t; whether a reading needs the present point. Where not, `now` below may be NULL.
 */
bool fl_host_sense_due(const fl_host_sense *s, int64_t t);
bool fl_host_sense_instant(const fl_host_sense *s);
void fl_host_sense_at(fl_host_sense *s, const fl_host_point *p, int64_t t);
void fl_host_sense_read(fl_host_sense *s, const fl_host_point *now, int64_t t, bool remember, fl_host_sample *out);
