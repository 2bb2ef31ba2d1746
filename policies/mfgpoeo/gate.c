#include "policies/mfgpoeo/gate.h"

enum { SAMPLES = 15, BUSY_AT_ONCE = 5, BUSY_AGAIN = 7 };

static uint32_t ones(uint32_t bits) {
    uint32_t count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

int fl_mfg_gate_sample(fl_mfg_gate *gate, int busy) {
    if (gate->idle) {
        gate->recent = (gate->recent << 1 | (busy != 0)) & ((UINT32_C(1) << SAMPLES) - 1);
        return ones(gate->recent) >= BUSY_AGAIN ? FL_MFG_GATE_PASSES : FL_MFG_GATE_WAITS;
    }
    gate->samples++;
    gate->busy += busy != 0;
    if (gate->busy >= BUSY_AT_ONCE)
        return FL_MFG_GATE_PASSES;
    gate->idle = gate->samples >= SAMPLES;
    return gate->idle ? FL_MFG_GATE_LIMITS : FL_MFG_GATE_WAITS;
}
