/* The results of a model function. Models are pure functions of numbers: no I/O, no state, no text. */
#pragma once

typedef enum fl_model_status {
    FL_MODEL_OK = 0,
    FL_MODEL_RANGE,    /* outside the calibrated or measured range; models extrapolate only on request */
    FL_MODEL_INVALID,  /* an impossible argument: negative, NaN, not monotone */
    FL_MODEL_OVERFLOW, /* does not fit the engine's integers (a slowdown beyond 65x, a power beyond 2 MW) */
    FL_MODEL_NO_MEMORY,
    FL_MODEL_NO_FIT /* a fit did not converge, or the data do not determine it */
} fl_model_status;

/* Static text, for diagnostics. */
const char *fl_model_text(fl_model_status s);
