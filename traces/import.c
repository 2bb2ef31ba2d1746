#include "traces/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_import_note(fl_imported *out, fl_diag *d, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0 || fl_grow(&out->note, &out->note_room, out->note_count + 1, sizeof *out->note) != FL_OK) {
        if (size >= 0)
            free(text);
        return fl_no_memory(d, NULL);
    }
    /* Notes quote the file: what could disturb a terminal is replaced. */
    for (size_t left = (size_t)size, n = 0, at = 0; left; left -= n, at += n)
        if ((n = fl_utf8(text + at, left)) == 0) {
            text[at] = '?';
            n = 1;
        }
    out->note[out->note_count++] = text;
    return FL_OK;
}

void fl_imported_free(fl_imported *out) {
    fl_kernel_trace_free(&out->kernels);
    fl_telemetry_free(&out->telemetry);
    for (size_t i = 0; i < out->note_count; i++)
        free(out->note[i]);
    free(out->note);
    memset(out, 0, sizeof *out);
}
