/* Errors as values, CSV, numbers, gzip, standard streams, and durable writing: the ground on which all readers and
 * writers of files stand.
 *
 * Functions that can fail return fl_status and fill the caller's fl_diag by fl_fail and its kin: FL_BAD_INPUT for the
 * user's file or value, FL_NO_MEMORY, FL_IO. Nothing here prints or exits. A reader calls fl_csv_read with a function
 * for each row, and fl_field_... for its numbers. A writer calls fl_output_open, then fl_output_commit or
 * fl_output_abort, so that no program ever sees half a file. What a function allocates belongs to the caller. */
#pragma once

#include "traces/io/records.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- errors: what is wrong, where, and what was expected ---- */

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
    bool of_values;       /* the row can be read, but its values cannot be true: fl_left_row may leave it out */
    char file[512];       /* empty = not about a file */
    char message[1024];   /* "what is wrong, expected what" */
} fl_diag;

/* Fills *d (which may be NULL) and returns status, so that callers write `return fl_fail(...)`. file may be NULL. The
 * function replaces control characters in the text by '?', so that no input can disturb a terminal. */
fl_status fl_fail(fl_diag *d, fl_status status, const char *file, int64_t line, int64_t column, const char *format, ...)
    __attribute__((format(printf, 6, 7), cold));

/* Fail without a file: the first with status FL_BAD_INPUT, the second with any other. */
fl_status fl_refuse(fl_diag *d, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
fl_status fl_error(fl_diag *d, fl_status status, const char *format, ...) __attribute__((format(printf, 3, 4), cold));

/* FL_IO: the file (may be NULL) needs a library that this build does not have. what: "is gzipped". */
fl_status fl_no_library(fl_diag *d, const char *path, const char *what, const char *library) __attribute__((cold));

/* FL_NO_MEMORY: "out of memory for WHAT"; what may be NULL. */
fl_status fl_no_memory(fl_diag *d, const char *what) __attribute__((cold));

/* Return whether a path is "-", which means a standard stream. A file of that name is "./-". */
bool fl_is_standard(const char *path);
/* The name of an input in diagnostics and results: "<stdin>", or the path itself. */
const char *fl_input_name(const char *path);

/* Writes "file:line:column: message" into buf, without the parts that do not apply. Returns buf. */
char *fl_diag_text(const fl_diag *d, char *buf, size_t size);

/* Return the candidate nearest to name by edit distance (case-insensitive; a transposition counts one), or NULL where
 * none is near enough. The distance may be at most a third of the longer text; a distance of 1 is always allowed.
 * candidates: count entries. */
const char *fl_nearest(const char *name, const char *const *candidates, size_t count);

/* Write "1290 MHz is not on the SM ladder; the next ones are 1275 and 1305" into buf and return buf: what every lookup
 * of a clock says. of: "the SM ladder". mhz: its clocks, ascending; there may be none. */
enum { FL_OFF_LADDER_TEXT = 192 };
char *fl_off_ladder(double mhz, const char *of, const int32_t *ladder, size_t count, char buf[FL_OFF_LADDER_TEXT]);

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

/* Grow an array to room for `need` items of `size` bytes in *items (capacity *room), by doubling. Returns FL_OK or
 * FL_NO_MEMORY; on failure nothing changes. */
fl_status fl_grow(void *items, size_t *room, size_t need, size_t size);

/* ---- CSV ----
 *
 * A thin wrapper over libcsv: rows of fields with the line and column at which each field begins, strict quoting, a
 * limit on the length of a line, and numbers checked to the last character. It streams the file; memory use does not
 * grow with the file. */

typedef struct fl_field {
    const char *text; /* NUL-terminated, valid until the row function returns */
    size_t size;
    int64_t column; /* 1-based byte column of its first character */
} fl_field;

typedef struct fl_csv_row {
    const char *file;
    int64_t line; /* the line on which the row begins, from 1 */
    const fl_field *field;
    size_t count;
    bool torn; /* the last row of the file, which no newline ends */
} fl_csv_row;

/* Called for each row. Any result other than FL_OK stops the reading, and the reader returns it. */
typedef fl_status (*fl_row_function)(void *user, const fl_csv_row *row, fl_diag *d);

typedef struct fl_csv_options {
    char delimiter;     /* 0 = ',' */
    bool trim;          /* drop blanks around fields */
    const char *format; /* "foldline-kernels": read the commented head and check its version line; NULL = no head */
    bool head_optional;
    int head_lines; /* further plain lines to skip first */
} fl_csv_options;

/* Reads path row by row. It skips comment lines (#) after the head where `format` is given, and blank lines everywhere.
 * It refuses NUL bytes, bad quoting, a directory, and an empty file (no row at all). head may be NULL; it belongs to
 * the caller also on failure, who frees it with the rest of the struct. FL_BAD_INPUT: the file cannot be opened. FL_IO:
 * the file cannot be read to its end. */
fl_status fl_csv_read(const char *path, const fl_csv_options *options, fl_head *head, fl_row_function row, void *user,
                      fl_diag *d);

/* Numbers, checked to the last character; the diagnostic names the column. An empty field is an error for the first two
 * functions and NAN for the third. Reals are finite, in C syntax, whatever the locale. */
fl_status fl_field_int(const fl_csv_row *row, size_t index, const char *name, int64_t min, int64_t max, int64_t *value,
                       fl_diag *d);
fl_status fl_field_real(const fl_csv_row *row, size_t index, const char *name, double min, double max, double *value,
                        fl_diag *d);
fl_status fl_field_real_or_nan(const fl_csv_row *row, size_t index, const char *name, double min, double max,
                               double *value, fl_diag *d);

/* ---- interning: equal items by hash, such as texts to indices ---- */

typedef struct fl_intern_slot {
    uint32_t hash, index; /* index UINT32_MAX: the slot is empty */
} fl_intern_slot;

typedef struct fl_intern {
    fl_intern_slot *slot;
    size_t room, count;
} fl_intern;

/* True where item `index` of the owner equals the key. */
typedef bool (*fl_same_function)(const void *owner, uint32_t index, const void *key);

uint32_t fl_hash(const void *data, size_t size);

/* The slot of the item equal to key, or an empty slot (index UINT32_MAX) where the item belongs; the caller then stores
 * its index there. NULL when out of memory. The slot is valid until the next call. */
fl_intern_slot *fl_intern_find(fl_intern *n, uint32_t hash, fl_same_function same, const void *owner, const void *key);
void fl_intern_free(fl_intern *n);

/* A list of distinct texts. Returns the index of text in (*names) and adds a copy if it is new; UINT32_MAX when out of
 * memory. */
uint32_t fl_intern_text(fl_intern *n, char ***names, size_t *count, size_t *room, const char *text, size_t size);

/* ---- memory ----
 *
 * Every failed allocation is a status (fl_no_memory). If one of many trials fails, its status is easily lost, and a
 * result without it looks like any other. Therefore the first failure is noted for the whole process. From then on no
 * result file takes its place (fl_output_commit), and the program ends with an error. */

/* Notes that an allocation failed. The program's own allocations call it (harness/base/work/work.h). */
void fl_memory_lost(void);
bool fl_memory_failed(void);

/* ---- replacing files ----
 *
 * A new file in the folder of another file, which it replaces once it is complete. Where the file system allows it, the
 * new file has no name until then. If a killed process leaves one behind all the same, the next write into the folder
 * removes it (traces/io/beside.c). */

typedef struct fl_beside {
    int fd;          /* -1: not open. Whoever opened it closes it */
    char *temporary; /* its temporary name; NULL where it has none */
} fl_beside;

/* Creates the file. Returns 0 or an errno value. */
int fl_beside_open(fl_beside *b, const char *path, mode_t mode);
/* Puts the complete file, still open, in the place of path. Returns 0 or an errno value; after an error path is
 * unchanged. */
int fl_beside_place(fl_beside *b, const char *path);
/* Removes the file if it has not taken its place. Closes nothing. */
void fl_beside_drop(fl_beside *b);

/* ---- header rows of CSV files ---- */

/* Sets where[i] to the field index of known[i], or SIZE_MAX where the header lacks it; the first `required` of the
 * `count` columns must exist. Refuses unknown columns (offering the nearest name) and repeated ones. */
fl_status fl_columns_find(const fl_csv_row *header, const char *const *known, size_t count, size_t required,
                          size_t *where, fl_diag *d);

/* Refuses a row that does not have exactly `expected` fields. */
fl_status fl_columns_width(const fl_csv_row *row, size_t expected, fl_diag *d);

/* Copies the field texts [first, first + count) of a header, refusing empty and repeated names. *names is allocated
 * (also for count 0) and filled up to *named, also on failure, so that the caller can free it. */
fl_status fl_columns_names(const fl_csv_row *header, size_t first, size_t count, size_t skip, char ***names,
                           size_t *named, fl_diag *d);

/* Reports an error at a field: status FL_BAD_INPUT with the row's line and the field's column. */
#define FL_FIELD_FAIL(d, row, index, ...)                                                                              \
    fl_fail((d), FL_BAD_INPUT, (row)->file, (row)->line, (row)->field[index].column, __VA_ARGS__)

/* Report a row that can be read but cannot be true: inf, a negative length, a value beyond any device, disorder. */
#define FL_FIELD_WRONG(d, row, index, ...) (FL_FIELD_FAIL(d, row, index, __VA_ARGS__), fl_of_values(d))

/* Mark the diagnostic in *d (may be NULL) as one of impossible values. Return FL_BAD_INPUT. */
fl_status fl_of_values(fl_diag *d);

/* ---- rows that a reader leaves out ----
 *
 * All readers of recordings follow one rule (traces/README.md). A row in which the tool itself says "no value" is left
 * out at any share of the file. A row that contradicts itself, its neighbours or what a device can do is left out, up
 * to FL_LEFT_ROWS rows or FL_LEFT_SHARE of the file; a file with more is refused. A row that cannot be read, such as
 * one with another number of fields, refuses the file at once.
 *
 * A reader counts all three in an fl_left_out. Its caller passes one to a reading function and prints fl_left_text. A
 * caller that passes NULL gets a refusal at the first row of either kind, so that no row is lost without a word. */

#define FL_LEFT_ROWS 10
#define FL_LEFT_SHARE 0.01

typedef struct fl_left {
    size_t count;
    int64_t line, column; /* of the first; 0 where the format has none */
    char why[200];        /* of the first */
} fl_left;

typedef struct fl_left_out {
    size_t rows; /* all rows, those left out too */
    fl_left empty, wrong;
    fl_left doubted;   /* rows that were kept although two accounts in them differ */
    char earlier[400]; /* what was left out of the files that this file was made from, as its head says; "": nothing */
    bool strict;
    fl_diag own;   /* a row's error, until fl_left_row judges it */
    fl_diag first; /* the first contradiction */
} fl_left_out;

/* True: every reader refuses at the first row that it would leave out. Set it before any thread starts. */
extern bool fl_left_strict;

/* Return an empty count for a reader whose caller passed `to`, which may be NULL. */
fl_left_out fl_left_begin(const fl_left_out *to);
/* Leave out a row that has no value, or refuse it. line and column are those of the value; file may be NULL. */
fl_status fl_left_empty(fl_left_out *l, const char *file, int64_t line, int64_t column, fl_diag *d, const char *format,
                        ...) __attribute__((format(printf, 6, 7)));
/* End a row of data with its status, whose diagnostic is l->own: count it, and a contradiction as one, or pass the
 * error on to *d. */
fl_status fl_left_row(fl_left_out *l, fl_status status, fl_diag *d);
/* Count a row that is kept, but in doubt. */
void fl_left_doubt(fl_left_out *l, int64_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* End a file: FL_BAD_INPUT where too many rows contradict or none is left. Copies the count to *to, which may be NULL.
 */
fl_status fl_left_end(const fl_left_out *l, fl_left_out *to, const char *path, fl_diag *d);
/* The key of a canonical file's head that says what was left out when it was made from other files. */
#define FL_LEFT_KEY "left_out"
/* Take the value of that key, which may be NULL, before fl_left_end. */
void fl_left_earlier(fl_left_out *l, const char *value);
enum { FL_LEFT_DOUBT = 2 }; /* the sentence on rows that were kept */
/* Write what was left out or doubted as sentences: number 0, 1, ... until it returns false. A sentence that does not
 * apply is "". */
bool fl_left_text(const fl_left_out *l, int number, char *text, size_t size);

/* Mark the rows that are out of order: the fewest that leave the times of the others ascending. out: count marks, false
 * for a row that stays. Returns how many are marked; SIZE_MAX when out of memory. */
size_t fl_disorder(const int64_t *t_ns, size_t count, bool *out);

/* Return true for a text by which tools say that there is no value: "", N/A, nan, N/W, auto, failed, [Not Supported],
 * dashes, and the like. */
bool fl_no_value(const char *text);

/* Parse a time: "60s", "500ms", "5m", "1h", or a number of seconds. FL_BAD_INPUT for anything else, 0 and less. */
fl_status fl_duration_parse(const char *text, int64_t *ns, fl_diag *d);

/* ---- reading bytes ----
 *
 * fl_gunzip reads a file, "-" or a pipe, and unpacks a gzipped source on the way; its first two bytes identify it.
 * Memory use does not grow with the file.
 *
 * Deflate packs a thousand zeros into one byte, so a small file could fill a disk. The project's own samples pack 11
 * times at most. Beyond FL_GUNZIP_FREE bytes, a file that unpacks to more than FL_GUNZIP_TIMES its size is refused. */

typedef struct fl_gunzip fl_gunzip;

/* NULL where the file cannot be opened or is a directory (FL_BAD_INPUT), or where memory runs out; the diagnostic says
 * which. */
fl_gunzip *fl_gunzip_open(const char *path, fl_diag *d);

/* Fills up to size bytes; *got < size only at the end. FL_BAD_INPUT: the gzip data is damaged or cut off (its checksum
 * is verified), or other bytes follow it. FL_IO: reading fails. */
fl_status fl_gunzip_read(fl_gunzip *g, void *bytes, size_t size, size_t *got, fl_diag *d);

double fl_gunzip_share(const fl_gunzip *g); /* share of the source that was read, 0..1; 0 where its size is not known */
void fl_gunzip_close(fl_gunzip *g);         /* may be NULL */
bool fl_gunzip_packed(const fl_gunzip *g);

/* Reads the whole source into memory: *text, with a NUL after it; the caller frees it. FL_BAD_INPUT beyond `most`
 * bytes. */
fl_status fl_gunzip_text(const char *path, size_t most, char **text, size_t *size, fl_diag *d);

/* For callers that need a file: opens the file itself where it is plain, else a nameless file with the unpacked bytes.
 * Returns a descriptor at its first byte, which the caller closes; -1 on failure. */
int fl_gunzip_whole(const char *path, fl_diag *d);

/* Return whether a name ends in ".gz": FILE.csv.gz is a packed FILE.csv. The same bytes always make the same gzip file,
 * because its header carries no time and no name. */
bool fl_gzip_named(const char *path);
size_t fl_plain_length(const char *path); /* length of the name without ".gz" */
bool fl_name_ends(const char *path,
                  const char *ending); /* whether the plain name has this ending and something before it */
size_t fl_stem_length(const char *path,
                      const char *what); /* length without ".gz" and then without `what`, where the name has them */

/* ---- numbers as text ----
 *
 * Numbers have C syntax whatever the locale. They are read to the last character, and written so that reading gives the
 * same number. */

typedef enum fl_number {
    FL_NUMBER_OK,
    FL_NUMBER_SYNTAX, /* the text is not a number */
    FL_NUMBER_RANGE   /* the text is a number that is too large */
} fl_number;

/* Decimal digits with an optional minus. *value is set only on FL_NUMBER_OK. */
fl_number fl_int_parse(const char *text, int64_t *value);

/* [-+] digits [. digits] [e [-+] digits], digits on at least one side of the point; no inf, nan, hexadecimal or blanks.
 * Correctly rounded. */
fl_number fl_real_parse(const char *text, double *value);

#define FL_REAL_TEXT 32 /* room for any number with its NUL */

/* The shortest of 15, 16 or 17 digits that reads back as the same number (inf, -inf and nan as such). Returns buf. */
char *fl_real_text(double value, char buf[FL_REAL_TEXT]);

/* ---- progress of a long piece of work ----
 *
 * The worker updates counters that a program may show (harness/base/cli/cli.h). This module shows nothing, and counts
 * nothing until a program asks for it. */

typedef enum fl_stage {
    FL_STAGE_NONE,   /* no one asks, or another piece is in progress: later calls for this one do nothing */
    FL_STAGE_WHOLE,  /* the piece is the work itself */
    FL_STAGE_REFINES /* the piece is a part of work whose size is unknown */
} fl_stage;

/* Starts the counting of pieces. Call it before any thread starts. */
void fl_stage_watch(void);

/* Begins a piece. what: a static text. The size is in any unit, 0 = not known. Any thread may call it; of several
 * pieces at once the first counts. A piece of known size inside a piece of unknown size refines it. */
fl_stage fl_stage_begin(const char *what, uint64_t size);
void fl_stage_at(fl_stage mine, uint64_t done);
void fl_stage_add(fl_stage mine, uint64_t more);
void fl_stage_end(fl_stage mine);

typedef struct fl_stage_state {
    const char *what; /* NULL: nothing is in progress */
    uint64_t done, size;
    uint64_t begun; /* how many pieces have begun; distinguishes two pieces */
} fl_stage_state;
fl_stage_state fl_stage_look(void);

/* ---- standard streams in place of files, and sources that can be read only once ----
 *
 * "-" is the standard input, or the
 * standard output for a file to write. Readers look at the first bytes, read twice and compute hashes. A source that
 * cannot seek is therefore kept as a whole in a nameless file in $TMPDIR or /tmp, and every open reads that file from
 * its beginning. A killed process leaves nothing behind. */

/* Make the path of a file that `file` names as `path`: it is relative to the folder of `file`. The caller frees it.
 * NULL: no memory. */
char *fl_path_named(const char *file, const char *path);

/* Opens a file, "-" or a pipe for reading at its first byte, any number of times. -1 on failure. FL_BAD_INPUT: it
 * cannot be opened or is a directory. FL_IO: its contents cannot be read to their end or kept. */
int fl_open_read(const char *path, fl_diag *d);

/* Reserves the standard output for one file: from then on, printed text goes to the standard error. */
fl_status fl_stdout_claim(fl_diag *d);

/* ---- a text that stdio writes into memory ---- */

typedef struct fl_text {
    FILE *file;
    char *text; /* text of the stream; use the result of fl_text_close instead */
    size_t size;
} fl_text;

/* The stream to write to; NULL when out of memory. */
FILE *fl_text_open(fl_text *t);
/* Ends the text, also where it was never opened. Returns the whole text, which the caller frees. NULL where memory ran
 * out at any time, which the stream itself may not have reported; *size is then unchanged. size may be NULL. */
char *fl_text_close(fl_text *t, size_t *size);

/* ---- durable writing ---- */

/* Opens a FILE with a temporary name beside path. commit flushes, syncs and renames it; abort removes it. "-" is the
 * standard output, which receives everything at commit (traces/io/io.h). Output to a name that ends in ".gz" is
 * packed. */
typedef struct fl_output fl_output;
fl_output *fl_output_open(const char *path, fl_diag *d);
/* Open a file that must exist while it grows, such as the log of a live run. It is at its place from the beginning, and
 * readers see everything flushed. */
fl_output *fl_output_stream(const char *path, fl_diag *d);
FILE *fl_output_file(fl_output *o);
fl_status fl_output_commit(fl_output *o, fl_diag *d);
void fl_output_abort(fl_output *o);
/* Check that the file can be written, before a program runs whose result it will receive. NULL: no file is asked for.
 */
fl_status fl_output_try(const char *path, fl_diag *d);

void fl_csv_put(FILE *file, const char *text); /* writes one field, quoted where necessary */

void fl_put_int(FILE *file, int64_t value);
void fl_put_real(FILE *file, double value); /* the shortest text that reads back the same; nothing for NAN */

void fl_put_device(FILE *file, int32_t device); /* "host" for -1 */

/* Writes "# format 1" and the entries. FL_BAD_INPUT for an entry that would not read back unchanged. */
fl_status fl_put_head(FILE *file, const char *path, const char *format, const fl_head *h, fl_diag *d);

/* Opens path (*out) and writes the head, the beginning of a canonical file. Nothing stays open on failure. */
fl_status fl_output_begin(const char *path, const char *format, const fl_head *h, fl_output **out, fl_diag *d);
