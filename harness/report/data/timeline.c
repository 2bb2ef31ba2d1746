#include "harness/report/data/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 16 };

size_t fl_signal_index(const fl_telemetry *t, const char *name) {
    for (size_t i = 0; i < t->signal_count; i++)
        if (!strcmp(t->signal[i], name))
            return i;
    return SIZE_MAX;
}

static int by_clock(const void *a, const void *b) {
    const fl_share *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* Groups equal clocks, and uses classes of equal width where there are many. */
static size_t gather(fl_share *x, size_t n) {
    qsort(x, n, sizeof *x, by_clock);
    size_t distinct = 0;
    for (size_t i = 0; i < n; i++)
        distinct += !i || x[i].low != x[i - 1].low;
    if (!n)
        return 0;
    enum { CLASSES = 16 };
    const double from = x[0].low, width = (x[n - 1].low - from) / CLASSES;
    size_t out = 0;
    double last = -1;
    for (size_t i = 0; i < n; i++) {
        const double class = distinct <= FL_SHARES_MAX ? x[i].low : fmin(CLASSES - 1, floor((x[i].low - from) / width));
        if (out && class == last) {
            x[out - 1].share += x[i].share;
            continue;
        }
        const double share = x[i].share;
        x[out] = distinct <= FL_SHARES_MAX ? (fl_share){x[i].low, x[i].low, share}
                                           : (fl_share){from + class * width, from + (class + 1) * width, share};
        out++;
        last = class;
    }
    return out;
}

fl_status fl_residency(const fl_telemetry *t, const char *path, fl_share **list, size_t *count, fl_diag *d) {
    const size_t clock = fl_signal_index(t, "sm_mhz");
    int64_t last[DEVICES_MAX];
    bool seen[DEVICES_MAX] = {0};
    double all = 0;
    size_t n = 0;
    *count = 0;
    *list = NULL;
    if (clock == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no column sm_mhz, expected the file of foldline run --timeline");
    fl_share *x = malloc((t->row_count + 1) * sizeof *x);
    if (!x)
        return fl_no_memory(d, "the residency");
    for (size_t i = 0; i < t->row_count; i++) {
        const int32_t device = t->device[i];
        const double mhz = t->value[i * t->signal_count + clock];
        if (device < 0 || device >= DEVICES_MAX)
            continue;
        const double span = seen[device] ? (double)(t->t_ns[i] - last[device]) : 0;
        seen[device] = true;
        last[device] = t->t_ns[i];
        if (span <= 0 || isnan(mhz))
            continue;
        x[n++] = (fl_share){mhz, mhz, span};
        all += span;
    }
    for (size_t i = 0; i < n; i++)
        x[i].share /= all;
    *count = gather(x, n);
    *list = x;
    return FL_OK;
}
