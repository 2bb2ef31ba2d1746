/* Errors as values: what is wrong, where, and what was expected. These functions never print or exit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fl_status {
    FL_OK = 0,
    FL_BAD_INPUT,  /* the user's file, name or value; exit status 2 */
    FL_NO_MEMORY,  /* exit status 3 */
    FL_IO,         /* cannot read, write or create; exit status 3 (2 for an input that cannot be opened) */
    FL_HARDWARE,   /* hardware, real or simulated, failed or refused; exit status 3 */
    FL_MODEL_FAULT /* a model or run produced NaN, a negative value or a ledger that does not balance; exit status 3 */
} fl_status;

typedef struct fl_diag {
    fl_status status;
    int64_t line, column; /* from 1; 0 = does not apply */
    char file[512];       /* empty = not about a file */
    char message[1024];   /* "what is wrong, expected what" */
} fl_diag;

/* Fills *d (which may be NULL) and returns status, so that callers write `return fl_fail(...)`. file may be NULL. The
 * function replaces control characters in the text by '?', so that no input can disturb a terminal. */
fl_status fl_fail(fl_diag *d, fl_status status, const char *file, int64_t line, int64_t column, const char *format, ...)
    __attribute__((format(printf, 6, 7), cold));

/* The same without a file: the first with status FL_BAD_INPUT, the second with any other. */
fl_status fl_refuse(fl_diag *d, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
fl_status fl_error(fl_diag *d, fl_status status, const char *format, ...) __attribute__((format(printf, 3, 4), cold));

/* FL_NO_MEMORY: "out of memory for WHAT"; what may be NULL. */
fl_status fl_no_memory(fl_diag *d, const char *what) __attribute__((cold));

/* "-" stands for a standard stream where a file is named (traces/io/standard.h). A file of that name is "./-". */
bool fl_is_standard(const char *path);
/* The name of an input in diagnostics and results: "<stdin>", or the path itself. */
const char *fl_input_name(const char *path);

/* Writes "file:line:column: message" into buf, without the parts that do not apply. Returns buf. */
char *fl_diag_text(const fl_diag *d, char *buf, size_t size);

/* The candidate nearest to name by edit distance (case-insensitive; a transposition counts one), or NULL where none is
 * near enough to offer: the distance must be at most a third of the longer text, and at least 1 is always allowed.
 * candidates: count entries. */
const char *fl_nearest(const char *name, const char *const *candidates, size_t count);

/* FL_BAD_INPUT about `file` (may be NULL): "no WHAT 'name'", and a suggestion: the nearest of `known`, or the first
 * ones. */
fl_status fl_fail_unknown(fl_diag *d, const char *file, const char *what, const char *name, const char *const *known,
                          size_t count);

/* The system's reason for an errno value, in English whatever the locale is. */
const char *fl_reason(int error);

/* Bytes in the UTF-8 character at text (size bytes left), or 0 where there is no valid, printable one (control
 * characters do not count as printable). */
size_t fl_utf8(const char *text, size_t size);

/* Replaces what fl_utf8 refuses by '?', so that the text cannot disturb a terminal. Its size stays. */
void fl_printable(char *text, size_t size);

/* For growing arrays: makes room for `need` items of `size` bytes in *items (capacity *room), by doubling. Returns
 * FL_OK or FL_NO_MEMORY; on failure nothing changes. */
fl_status fl_grow(void *items, size_t *room, size_t need, size_t size);
