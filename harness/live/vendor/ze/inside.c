#include "harness/live/vendor/ze/inside.h"

fl_status fl_ze_failed(const fl_ze_gpu *g, const char *what, fl_ze_code code, fl_diag *d) {
    return fl_error(d, fl_ze_refused(code) ? FL_IO : FL_HARDWARE, "GPU %u: %s: %s", g->index, what, fl_ze_reason(code));
}
