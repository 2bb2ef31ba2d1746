#include "traces/files/activity.h"

#include <stdlib.h>
#include <string.h>

typedef struct span {
    int64_t start_ns, end_ns;
} span;

static int by_start(const void *a, const void *b) {
    int64_t x = ((const span *)a)->start_ns, y = ((const span *)b)->start_ns;
    return (x > y) - (x < y);
}

fl_status fl_activity_make(fl_activity *a, const fl_kernel_trace *t, int32_t device, int type) {
    size_t count = 0, sorted = 1;
    memset(a, 0, sizeof *a);
    for (size_t i = 0; i < t->op_count; i++)
        count += t->ops[i].device == device && t->ops[i].type == type;
    size_t room = count ? count : 1;
    span *s = malloc(room * sizeof *s);
    a->start_ns = malloc(room * sizeof *a->start_ns);
    a->end_ns = malloc(room * sizeof *a->end_ns);
    a->before_ns = malloc(room * sizeof *a->before_ns);
    if (!s || !a->start_ns || !a->end_ns || !a->before_ns) {
        free(s);
        return FL_NO_MEMORY;
    }
    count = 0;
    for (size_t i = 0; i < t->op_count; i++) {
        if (t->ops[i].device != device || t->ops[i].type != type)
            continue;
        s[count] = (span){t->ops[i].start_ns, t->ops[i].end_ns};
        sorted &= count == 0 || s[count - 1].start_ns <= s[count].start_ns;
        count++;
    }
    if (!sorted)
        qsort(s, count, sizeof *s, by_start);
    for (size_t i = 0; i < count; i++) {
        size_t n = a->count;
        if (n && s[i].start_ns <= a->end_ns[n - 1]) {
            a->end_ns[n - 1] = s[i].end_ns > a->end_ns[n - 1] ? s[i].end_ns : a->end_ns[n - 1];
            continue;
        }
        a->start_ns[n] = s[i].start_ns;
        a->end_ns[n] = s[i].end_ns;
        a->count++;
    }
    free(s);
    for (size_t i = 0; i < a->count; i++) {
        a->before_ns[i] = a->busy_ns;
        a->busy_ns += a->end_ns[i] - a->start_ns[i];
    }
    return FL_OK;
}

double fl_activity_until(const fl_activity *a, double t_ns) {
    size_t low = 0, high = a->count; /* spans before `low` start at or before t_ns */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((double)a->start_ns[middle] <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    double length = (double)(a->end_ns[low - 1] - a->start_ns[low - 1]), in = t_ns - (double)a->start_ns[low - 1];
    return (double)a->before_ns[low - 1] + (in < length ? in : length);
}

void fl_activity_free(fl_activity *a) {
    free(a->start_ns);
    free(a->end_ns);
    free(a->before_ns);
    memset(a, 0, sizeof *a);
}

size_t fl_activity_devices(const fl_kernel_trace *t, int32_t *device, size_t room) {
    size_t count = 0;
    for (size_t i = 0; i < t->op_count; i++) {
        int32_t v = t->ops[i].device;
        size_t k = 0;
        while (k < count && device[k] < v)
            k++;
        if ((k < count && device[k] == v) || count == room)
            continue;
        memmove(device + k + 1, device + k, (count - k) * sizeof *device);
        device[k] = v;
        count++;
    }
    return count;
}
