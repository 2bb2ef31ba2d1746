/* A GPU of which only facts are known, namely its ladders and its TDP. Everything else comes from the bundled chips, an
 * idle log and a run. */
#pragma once

#include "harness/base/json/json.h"
#include "harness/chip/rows.h"
#include "harness/input/platform/board.h"
#include "models/chip/fit_kin.h"

/* A file of facts: {"name": "...", "sm_mhz": ladder, "mem_mhz": ladder, "default_mem_mhz": MHz, "tdp_w": W,
 * "peak_gb_s": GB/s}, ladders as in a platform file. The name, the default memory clock (the highest) and the bandwidth
 * are optional. */
typedef struct fl_fit_facts {
    char name[64];
    int32_t *sm, *mem;
    fl_kin_facts known; /* borrows sm and mem */
    double peak_gb_s;   /* NAN = not known */
    size_t kin;         /* bundled chips behind the prior */
    size_t idle_clocks; /* clocks in the idle log; 0 = none */
    size_t run_rows;    /* rows of the run */
    fl_kin_spread prior, after;
    fl_board board;    /* the board whose facts these are, where it is a bundled one; else zeroed */
    bool step_assumed; /* only the ends of the board's ladder are known */
    bool low_assumed;  /* and the lowest of these is known only as the clock of the idle board */
    bool mem_known;    /* the run and the facts both have memory clocks */
} fl_fit_facts;

/* Reads the facts of a file, or of a bundled board by its name; the other function, of a platform by its name.
 * FL_BAD_INPUT where a board lacks a required fact. */
fl_status fl_fit_facts_read(const char *path, fl_fit_facts *f, fl_diag *d);
fl_status fl_fit_facts_of_platform(const char *name, fl_fit_facts *f, fl_diag *d);
void fl_fit_facts_free(fl_fit_facts *f);

/* Makes the chip. idle: a log, NULL = none. run: a sweep of one workload, NULL = none. */
fl_status fl_fit_facts_chip(fl_fit_facts *f, const char *idle, const char *run, fl_chip *chip, fl_diag *d);

/* Prints each part of the law: its centre, two deviations to either side, and the same for the prior. */
void fl_fit_facts_print(const fl_fit_facts *f);
