/* A sensor model: how a sensor turns the true course of a quantity into the values that software reads. */
#pragma once

#include <stdint.h>

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
