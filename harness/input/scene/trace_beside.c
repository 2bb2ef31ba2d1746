#include "harness/input/scene/trace_beside.h"

#include "traces/io/gzip.h"
#include "traces/open/trace_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fl_status join_telemetry(const char *beside, fl_imported *run, fl_diag *d) {
    const char *offset = fl_head_get(&run->kernels.head, "clock_offset_ns");
    if (!offset)
        return fl_import_note(
            run, d, "%s lies beside, but no clock_offset_ns says that both are on one clock: left out", beside);
    fl_imported one = {0};
    fl_status s = fl_trace_open(beside, NULL, NULL, &one, d);
    const char *same = fl_head_get(&one.telemetry.head, "clock_offset_ns");
    for (size_t i = 0; !s && i < one.note_count; i++)
        s = fl_import_note(run, d, "%s", one.note[i]);
    if (!s && one.has_telemetry && same && !strcmp(same, offset)) {
        run->telemetry = one.telemetry;
        run->has_telemetry = true;
        one.telemetry = (fl_telemetry){0};
    } else if (!s) {
        s = fl_import_note(run, d, "%s is of another import: left out", beside);
    }
    fl_imported_free(&one);
    return s;
}

fl_status fl_trace_beside(const char *path, fl_imported *run, fl_diag *d) {
    static const char *const ending[] = {"", ".gz"};
    fl_status s = FL_OK;
    if (!run->has_kernels || run->has_telemetry || !fl_name_ends(path, ".csv"))
        return FL_OK;
    for (size_t i = 0; !s && !run->has_telemetry && i < 2; i++) {
        char *beside = NULL;
        if (asprintf(&beside, "%.*s.telemetry.csv%s", (int)fl_stem_length(path, ".csv"), path, ending[i]) < 0)
            return fl_no_memory(d, NULL);
        s = access(beside, R_OK) ? FL_OK : join_telemetry(beside, run, d);
        free(beside);
    }
    return s;
}
