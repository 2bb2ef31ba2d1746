#include "harness/live/vendor/rsmi/inside.h"

fl_status fl_rsmi_failed(const fl_rsmi_gpu *g, const char *what, fl_rsmi_code code, fl_diag *d) {
    return fl_error(d, fl_rsmi_refused(code) ? FL_IO : FL_HARDWARE, "GPU %u: %s: %s", g->index, what,
                    fl_rsmi_reason(code));
}
