/* MF-GPOEO as released, the idle gate before every window: it passes once the GPU is busy, and holds the SM clock at
 * its lowest while it is not. */
#pragma once

#include <stdint.h>

typedef struct fl_mfg_gate { /* all zero: it opens */
    uint32_t samples, busy;  /* of the first round */
    uint32_t recent;         /* one bit a sample of the second round, the newest lowest */
    uint32_t idle;           /* the second round: the first one has failed */
} fl_mfg_gate;

enum { FL_MFG_GATE_WAITS, FL_MFG_GATE_PASSES, FL_MFG_GATE_LIMITS }; /* LIMITS: it waits, and the limit is to be set */

/* What one sample of GPU utilisation makes of it. */
int fl_mfg_gate_sample(fl_mfg_gate *gate, int busy);
