/* MF-GPOEO as released, the stop rule: is one of the gears measured so far good enough to stay? */
#pragma once

#include <stdint.h>

enum { FL_MFG_KEPT = 6 };

typedef struct fl_mfg_tried { /* one measured gear */
    double rho;               /* (loss - bound) / bound */
    double objective;
    int32_t gear, next; /* next: what the controller proposed then */
} fl_mfg_tried;

typedef struct fl_mfg_tries { /* the last six, the latest at count - 1; a phase change does not clear them */
    fl_mfg_tried entry[FL_MFG_KEPT];
    uint32_t count;
} fl_mfg_tries;

typedef struct fl_mfg_search { /* where the search stands */
    uint32_t adjustments;      /* since (re)start */
    uint32_t gears;            /* on the SM ladder */
    int late;                  /* more than 75 s have been traced since (re)start */
    int low_memory;            /* the memory clock is in the lower half of its ladder */
} fl_mfg_search;

void fl_mfg_try(fl_mfg_tries *t, fl_mfg_tried tried);

/* The gear to stay at; -1: the search goes on. */
int32_t fl_mfg_stop(const fl_mfg_tries *t, const fl_mfg_search *s);
