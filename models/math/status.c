#include "models/math/status.h"

const char *fl_model_text(fl_model_status s) {
    switch (s) {
    case FL_MODEL_OK:
        return "no error";
    case FL_MODEL_RANGE:
        return "outside the calibrated or measured range";
    case FL_MODEL_INVALID:
        return "an argument that no device has (negative, not a number or not monotone)";
    case FL_MODEL_OVERFLOW:
        return "too large for the simulator's integers (a slowdown beyond 65 or a power beyond 2 MW)";
    case FL_MODEL_NO_MEMORY:
        return "out of memory";
    case FL_MODEL_NO_FIT:
        return "the data do not determine a fit";
    }
    return "unknown model status";
}
