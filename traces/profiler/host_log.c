/* The host's calls, sorted, and found by correlation id; kinds of calls by their names. */
#include "traces/profiler/inside.h"

#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- the log ---- */

fl_status fl_host_log_call(fl_host_log *log, fl_host_call call) {
    if (fl_grow(&log->call, &log->call_room, log->call_count + 1, sizeof call))
        return FL_NO_MEMORY;
    log->call[log->call_count++] = call;
    return FL_OK;
}

fl_status fl_host_log_wait(fl_host_log *log, fl_host_wait wait) {
    if (fl_grow(&log->wait, &log->wait_room, log->wait_count + 1, sizeof wait))
        return FL_NO_MEMORY;
    log->wait[log->wait_count++] = wait;
    return FL_OK;
}

fl_status fl_host_log_detail(fl_host_log *log, fl_sync_detail detail) {
    if (fl_grow(&log->detail, &log->detail_room, log->detail_count + 1, sizeof detail))
        return FL_NO_MEMORY;
    log->detail[log->detail_count++] = detail;
    return FL_OK;
}

void fl_host_log_free(fl_host_log *log) {
    free(log->call);
    free(log->wait);
    free(log->detail);
    memset(log, 0, sizeof *log);
}

static bool name_has(const char *name, size_t size, const char *part) { return memmem(name, size, part, strlen(part)); }

fl_call_kind fl_call_kind_of(const char *name, size_t size) {
    if (name_has(name, size, "Synchronize"))
        return name_has(name, size, "Stream") || name_has(name, size, "Event") ? FL_CALL_WAIT : FL_CALL_WAIT_ALL;
    if (name_has(name, size, "EventRecord"))
        return FL_CALL_RECORD;
    if (name_has(name, size, "Launch"))
        return FL_CALL_LAUNCH;
    if (name_has(name, size, "Memset"))
        return FL_CALL_LAUNCH;
    if (name_has(name, size, "Memcpy"))
        return name_has(name, size, "Async") ? FL_CALL_LAUNCH : FL_CALL_COPY;
    return FL_CALL_OTHER;
}
