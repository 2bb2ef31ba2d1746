#include "traces/profiler/host_find.h"

#include <stdlib.h>

/* ---- sorting in place: heaps, as a sort that needs room would double what is held ---- */

static int three_way(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_correlation(const fl_host_call *a, const fl_host_call *b) {
    int order = three_way(a->correlation, b->correlation);
    order = order ? order : three_way(a->ns, b->ns);
    return order ? order : three_way(a->thread, b->thread);
}

static void sink(fl_host_call *call, size_t at, size_t count) {
    fl_host_call moving = call[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && by_correlation(&call[child], &call[child + 1]) < 0;
        if (by_correlation(&moving, &call[child]) >= 0)
            break;
        call[at] = call[child];
    }
    call[at] = moving;
}

static void sort_calls(fl_host_call *call, size_t count) {
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++)
        sorted = by_correlation(&call[i - 1], &call[i]) <= 0;
    if (sorted)
        return;
    for (size_t i = count / 2; i-- > 0;)
        sink(call, i, count);
    for (size_t end = count; end-- > 1;) {
        fl_host_call largest = call[0];
        call[0] = call[end];
        call[end] = largest;
        sink(call, 0, end);
    }
}

const fl_host_call *fl_host_find_call(const fl_host_log *log, uint32_t correlation) {
    size_t low = 0, high = log->call_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (log->call[middle].correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    return low < log->call_count && log->call[low].correlation == correlation ? &log->call[low] : NULL;
}

static int detail_order(const void *a, const void *b) {
    const fl_sync_detail *x = a, *y = b;
    int order = three_way(x->correlation, y->correlation);
    return order ? order : three_way(x->ns, y->ns);
}

const fl_sync_detail *fl_host_find_detail(const fl_host_log *log, uint32_t correlation) {
    size_t low = 0, high = log->detail_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (log->detail[middle].correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    return low < log->detail_count && log->detail[low].correlation == correlation ? &log->detail[low] : NULL;
}

void fl_host_log_sort(fl_host_log *log) {
    sort_calls(log->call, log->call_count);
    if (log->detail_count)
        qsort(log->detail, log->detail_count, sizeof *log->detail, detail_order);
}
