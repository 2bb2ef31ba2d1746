#include "traces/import/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_reader_read(const fl_reader *reader, const char *path, const fl_import_options *o, fl_imported *out,
                         fl_diag *d) {
    static const fl_import_options all = {.device = -1};
    *out = (fl_imported){0};
    const fl_status s = reader->read(path, o ? o : &all, out, d);
    if (s)
        fl_imported_free(out);
    return s;
}

static void add_note(fl_imported *out, const char *format, va_list arguments) {
    char *text = NULL;
    int size = vasprintf(&text, format, arguments);
    if (size < 0 || fl_grow(&out->note, &out->note_room, out->note_count + 1, sizeof *out->note)) {
        if (size >= 0)
            free(text);
        out->note_lost = true;
        return;
    }
    /* Notes quote the file: what could disturb a terminal is replaced. */
    fl_printable(text, (size_t)size);
    out->note[out->note_count++] = text;
}

void fl_import_say(fl_imported *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_note(out, format, arguments);
    va_end(arguments);
}

fl_status fl_import_said(const fl_imported *out, fl_diag *d) {
    return out->note_lost ? fl_no_memory(d, "the notes") : FL_OK;
}

fl_status fl_import_note(fl_imported *out, fl_diag *d, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_note(out, format, arguments);
    va_end(arguments);
    return fl_import_said(out, d);
}

void fl_import_torn(fl_imported *out, int64_t line) {
    if (line)
        fl_import_say(out, "line %lld, the last, is not ended and may be cut off: left out", (long long)line);
}

void fl_imported_free(fl_imported *out) {
    fl_kernel_trace_free(&out->kernels);
    fl_telemetry_free(&out->telemetry);
    fl_sweep_free(&out->sweep);
    fl_requests_free(&out->requests);
    for (size_t i = 0; i < out->note_count; i++)
        free(out->note[i]);
    free(out->note);
    memset(out, 0, sizeof *out);
}
