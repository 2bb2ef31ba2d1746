/* How late the power sensor is: what it shows after the first change of the clock, until it stays where it is. */
#pragma once

#include <stdint.h>

enum { FL_TIGHTROPE_READINGS = 256 };

typedef struct fl_tightrope_lag {
    double before_w;                                                 /* before the change; 0: nothing is watched */
    double after_s[FL_TIGHTROPE_READINGS], w[FL_TIGHTROPE_READINGS]; /* readings since */
    uint32_t count;
} fl_tightrope_lag;

void fl_tightrope_lag_begin(fl_tightrope_lag *l, double before_w);

/* A fresh reading, after_s after the new clock was reached. Where the memory is full every second one is dropped. */
void fl_tightrope_lag_add(fl_tightrope_lag *l, double after_s, double w);

/* Seconds after which less than 6 % of the change were still to come; NAN: the sensor is still on its way, or has not
 * moved by 1 %. */
double fl_tightrope_lag_seconds(const fl_tightrope_lag *l);

/* 1: the last readings are one level, so that nothing is on its way; 0 where there are too few to tell. */
int fl_tightrope_lag_still(const fl_tightrope_lag *l);
