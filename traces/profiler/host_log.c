#include "traces/profiler/host_log.h"

#include <stdlib.h>
#include <string.h>

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
