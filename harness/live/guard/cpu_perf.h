/* Counts over all CPUs from the kernel's perf events, where this user may have them (perf_event_paranoid, CAP_PERFMON).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Retired micro-operations have no generic event: AMD PMCx0C1, Intel UOPS_RETIRED.RETIRE_SLOTS (0xC2, mask 2). */
typedef enum fl_perf_event { FL_PERF_CYCLES, FL_PERF_UOPS_AMD, FL_PERF_UOPS_INTEL } fl_perf_event;

typedef struct fl_perf { /* one event, a file per CPU */
    int *fd;
    uint32_t count; /* 0 = not to be had */
} fl_perf;

void fl_perf_open(fl_perf *k, uint32_t cores, fl_perf_event event);
bool fl_perf_read(const fl_perf *k, double *sum); /* since it was opened */
void fl_perf_close(fl_perf *k);                   /* a zeroed struct is allowed */
