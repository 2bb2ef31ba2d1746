/* The node's CPU as Linux shows it: clocks (cpufreq), utilisation (/proc/stat), energy (RAPL's packages, wrap handled),
 * cycles and micro-operations (perf events, where allowed). Signals that cannot be had are not valid. Files in kHz, uJ,
 * uW. */
#pragma once

#include "harness/live/vendor/record.h"
#include "policies/policy.h"

typedef struct fl_cpu_host fl_cpu_host;

/* Below `root` (empty = /; tests have a tree of their own). needs, drives: bits of host signals and controls. */
fl_status fl_cpu_host_open(fl_cpu_host **out, const char *root, uint64_t needs, fl_diag *d);
void fl_cpu_host_close(fl_cpu_host *c); /* NULL is allowed */

/* FL_BIT(FL_HOST_...): signals that Linux has for some machine or other; the rest it has for none. */
uint64_t fl_cpu_host_reads(void);

/* Ladder and name are valid until close. */
void fl_cpu_host_facts(const fl_cpu_host *c, fl_host_facts *facts);
void fl_cpu_host_read(fl_cpu_host *c, fl_host_sample *sample);

/* Record of unit "cpu": the files that the controls among `drives` would write, with what they hold. FL_IO where a
 * control has no file here. */
fl_status fl_cpu_host_prior(const fl_cpu_host *c, uint64_t drives, fl_record *r, fl_diag *d);
/* FL_DEFAULT: what `prior` holds for that control. FL_IO where it was refused and nothing changed, else FL_HARDWARE. */
fl_status fl_cpu_host_set(fl_cpu_host *c, int control, double value, const fl_record *prior, fl_diag *d);

/* Writes every file of a record back and reads it back; the first failure is told, after all. */
fl_status fl_cpu_restore(const fl_record *r, fl_diag *d);
