#include "harness/live/vendor/nvml/inside.h"

fl_status fl_nvml_failed(fl_nvml_host *h, const fl_nvml_gpu *g, const char *what, int code, fl_diag *d) {
    const bool refused =
        code == FL_NVML_NO_PERMISSION || code == FL_NVML_NOT_SUPPORTED || code == FL_NVML_FUNCTION_NOT_FOUND;
    return fl_error(d, refused ? FL_IO : FL_HARDWARE, "GPU %u: %s: %s", g->index, what, fl_nvml_reason(&h->nvml, code));
}
