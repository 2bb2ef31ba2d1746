/* What a file is, by its first bytes. */
#include "traces/open/open.h"

#include "traces/open/inside.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A row for each type: what a message calls it, and the name in the first line of its files. */
static const struct {
    const char *name, *format;
} types[FL_FILE_TYPES] = {
    [FL_FILE_RECORDING] = {"a recording", NULL},
    [FL_FILE_SWEEP] = {"a sweep", "foldline-sweep"},
    [FL_FILE_PROGRAMS] = {"programs", "foldline-programs"},
    [FL_FILE_PIPELINE] = {"a pipeline", "foldline-pipeline"},
    [FL_FILE_SERVING] = {"a server", "foldline-serving"},
    [FL_FILE_REQUESTS] = {"requests", "foldline-requests"},
    [FL_FILE_KINDS] = {"kinds of kernels", "foldline-kinds"},
    [FL_FILE_PLAN] = {"a plan", "foldline-plan"},
    [FL_FILE_ARRIVALS] = {"arrivals", "foldline-arrivals"},
    [FL_FILE_LOG] = {"a log of decisions", "foldline-decisions"},
    [FL_FILE_EXPERIMENT] = {"an experiment", NULL},
    [FL_FILE_RESULT] = {"a result", NULL},
};

const char *fl_file_type_name(fl_file_type type) { return types[type].name; }

/* "# foldline-NAME 1" */
static bool says(const char *head, size_t size, const char *format) {
    const size_t n = format ? strlen(format) : 0;
    return n && size > n + 2 && !memcmp(head, "# ", 2) && !memcmp(head + 2, format, n) && head[2 + n] == ' ';
}

static fl_file_type type_of(const fl_reader *reader) {
    if (reader->gives & FL_GIVES_SETTINGS)
        return FL_FILE_SWEEP;
    return reader->gives & FL_GIVES_REQUESTS ? FL_FILE_REQUESTS : FL_FILE_RECORDING;
}

fl_status fl_file_type_find(const char *path, fl_file_type *type, fl_diag *d) {
    static const char KEY[] = "\"foldline_experiment\"", RESULT[] = "workload,policy,energy_j,";
    char head[FL_HEAD + 1];
    size_t size = 0;
    const fl_reader *reader = NULL;
    *type = FL_FILE_RECORDING;
    fl_status s = fl_head_read(path, head, &size, d);
    if (s)
        return s;
    for (size_t i = 0; i < FL_FILE_TYPES; i++)
        if (says(head, size, types[i].format)) {
            *type = (fl_file_type)i;
            return FL_OK;
        }
    if (memmem(head, size, KEY, sizeof KEY - 1)) {
        *type = FL_FILE_EXPERIMENT;
        return FL_OK;
    }
    if (size >= sizeof RESULT - 1 && !memcmp(head, RESULT, sizeof RESULT - 1)) {
        *type = FL_FILE_RESULT;
        return FL_OK;
    }
    s = fl_reader_of(path, head, size, &reader, d);
    if (!s)
        *type = type_of(reader);
    else if (s == FL_BAD_INPUT && fl_name_ends(path, ".json")) { /* its reader says what is wrong with it */
        *type = FL_FILE_EXPERIMENT;
        s = FL_OK;
    }
    return s;
}
