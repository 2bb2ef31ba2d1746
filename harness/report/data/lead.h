/* The lead of a result: the two quantities that its first picture compares, and the bound. */
#pragma once

#include "harness/report/data/summary.h"

typedef struct fl_lead_axis {
    int column;       /* a fl_report_column, or -1: the ranking quantity */
    double scale;     /* from the column's unit to the displayed unit */
    const char *name; /* "slowdown" */
    char label[96];   /* of the axis, with its unit */
    const char *unit; /* after a number: " %" */
    int digits;       /* for a table: digits after the point; below 0, significant digits */
    bool more;        /* more is better */
    double bound;     /* in the displayed unit; NAN = none */
} fl_lead_axis;

typedef struct fl_lead {
    fl_lead_axis x, y;
    char title[96];
} fl_lead;

/* Where requests arrive: p99 of the latency against energy per request. Else the saving against the slowdown. */
void fl_lead_of(const fl_summary *s, fl_lead *lead);
/* "slowdown, %" */
char *fl_lead_head(const fl_lead_axis *a, char buf[96]);
/* A policy's mean and interval on an axis, in the displayed unit. */
fl_interval fl_lead_value(const fl_lead_axis *a, const fl_policy_summary *p);

/* Four significant digits without an exponent, and without truncating large numbers: 0.05, 5.266, 526600. */
char *fl_lead_number(double value, char buf[32]);

/* A workload's name without the folder and the ending of its file; into 256 bytes. Returns buf. */
char *fl_lead_short(const char *workload, char buf[256]);

/* The subject of a picture on one line: the workload or their number, the platform, the variant, the bounds. */
void fl_lead_about(const fl_summary *s, char *text, size_t size);
/* "95 % intervals over 3 workloads and 5 seeds", or "" where there are none: one run of one workload, or all equal. */
void fl_lead_intervals(const fl_summary *s, char *text, size_t size);

/* A column without any number is left out. */
bool fl_lead_anywhere(const fl_summary *s, fl_report_column column);

/* "energy saved", "EDP saved" or "ED2P saved". */
const char *fl_merit_name(const fl_report_data *r);
