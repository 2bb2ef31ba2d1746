/* JSON in and out, through cJSON.
 *
 * Reading: fl_json_read parses a file into a tree that the caller frees with cJSON_Delete. fl_json_root gives a
 * fl_json, a value with its place in the file, and the typed getters go on from there. Texts are borrowed from the
 * tree. Errors are FL_BAD_INPUT with file, line, column and the dotted key ("gpu.power.a_w: -3, expected a number >=
 * 0").
 *
 * Rows of keys (fl_keys) describe a whole file: fl_keys_check checks it, fl_keys_print explains it, fl_keys_schema
 * makes its JSON Schema. Writing: fl_json_write, fl_json_print and fl_json_text notice when memory ran out. */
#pragma once

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FL_JSON_PATH_MAX 256

typedef struct fl_json {         /* a value and its place; a small struct, passed by value and copied freely */
    const cJSON *node;           /* borrowed from the tree */
    const char *file;            /* borrowed */
    char path[FL_JSON_PATH_MAX]; /* "gpu.power", "gpus[1].sms"; empty at the root */
} fl_json;

/* Reads and parses a file. Free the tree with cJSON_Delete. The top value must be an object. FL_BAD_INPUT: no file can
 * be opened, or, with line and column, the file is not valid JSON (a NUL byte, a second value and a repeated key are
 * errors too). FL_IO: reading fails. */
fl_status fl_json_read(const char *path, cJSON **tree, fl_diag *d);
fl_status fl_json_read_any(const char *path, cJSON **tree, fl_diag *d); /* allows a top value of any type */
fl_json fl_json_root(const cJSON *tree, const char *file);

/* Reports "KEY: " and the formatted reason about this value as FL_BAD_INPUT, with the line and column of the value or
 * its key. For a missing value they are those of the deepest object around it. The function reads the file once more to
 * find them. */
fl_status fl_json_fail(const fl_json *at, fl_diag *d, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Return what a value is, as a message says it: "a number". */
const char *fl_json_type(const cJSON *n);
/* Refuse a key that is none of the known ones; the message offers the nearest, or lists them. */
fl_status fl_json_unknown(const fl_json *at, const char *const *known, size_t count, fl_diag *d);
/* Refuses a key that is not among `known` and offers the nearest one. */
fl_status fl_json_known(const fl_json *object, const char *const *known, size_t count, fl_diag *d);

/* Members of an object. _has is false for a missing key. The getters refuse a missing key, a wrong type and a value
 * outside [min, max]. */
bool fl_json_has(const fl_json *object, const char *key);
fl_status fl_json_get(const fl_json *object, const char *key, fl_json *value, fl_diag *d);
fl_status fl_json_get_object(const fl_json *object, const char *key, fl_json *value, fl_diag *d);
fl_status fl_json_get_array(const fl_json *object, const char *key, fl_json *value, fl_diag *d);
fl_status fl_json_get_real(const fl_json *object, const char *key, double min, double max, double *value, fl_diag *d);
fl_status fl_json_get_int(const fl_json *object, const char *key, int64_t min, int64_t max, int64_t *value, fl_diag *d);
fl_status fl_json_get_bool(const fl_json *object, const char *key, bool *value, fl_diag *d);
fl_status fl_json_get_text(const fl_json *object, const char *key, const char **value,
                           fl_diag *d); /* borrowed, not empty */

/* Check and convert a value that the caller already has, such as an entry of an array. */
fl_status fl_json_real(const fl_json *at, double min, double max, double *value, fl_diag *d);
fl_status fl_json_int(const fl_json *at, int64_t min, int64_t max, int64_t *value, fl_diag *d);
fl_status fl_json_object(const fl_json *at, fl_diag *d);

/* To walk an array or object: for (fl_json e = fl_json_first(&a); e.node; e = fl_json_next(&a, &e)). */
fl_json fl_json_first(const fl_json *parent);
fl_json fl_json_next(const fl_json *parent, const fl_json *entry);
size_t fl_json_count(const fl_json *parent);

/* Make the text form of a policy parameter: a number, 1 or 0 for true or false, an unchanged text, or a list of numbers
 * joined by '/'. The caller frees *text. */
fl_status fl_json_param_text(const fl_json *at, char **text, fl_diag *d);

/* JSON for machines: results and records, written through cJSON. */

/* Adds key: value to a JSON object; NAN and infinities become null. */
void fl_json_add_real(cJSON *object, const char *key, double value);

/* Adds an empty object to an array. */
cJSON *fl_json_add_row(cJSON *array);

/* Adds an array of texts to a JSON object. */
void fl_json_add_texts(cJSON *object, const char *key, char *const *text, size_t count);

/* Adds what `put` prints of `of` as the array "notes": each line, without a leading "note: ". */
void fl_json_add_notes(cJSON *object, void (*put)(const void *of, FILE *out), const void *of);

/* Adds name: value of every option, with its current value, to a JSON object; a list of texts becomes an array. */
void fl_json_add_options(cJSON *object, const fl_option *option, size_t count);

/* Return the text of a tree, on many lines or on one; the caller frees it. NULL: memory ran out, now or while the tree
 * was made. */
char *fl_json_text(const cJSON *tree, bool lines);

/* Writes a JSON tree to path through a temporary file. */
fl_status fl_json_write(const char *path, const cJSON *tree, fl_diag *d);

/* Write an array of objects as a CSV, one row each. The columns are the keys, in order of first appearance; an object
 * in an object gives columns OUTER_INNER, and OUTER alone for its key "value". Arrays are left out, null is n/a. */
fl_status fl_json_write_rows(const char *path, const cJSON *rows, fl_diag *d);

/* Prints a JSON tree and a newline. Where memory ran out it prints nothing, and main() reports that at the end. */
void fl_json_print(const cJSON *tree, FILE *out);
void fl_json_tell(cJSON *tree); /* prints the tree to the standard output and frees it */

/* The keys of a JSON file as rows. The same rows check a file before anything reads it, print the page that explains it
 * and make its JSON Schema, so these three always agree. */

/* The types that a value may have, as bits. */
enum {
    FL_KEY_TEXT = 1, /* not empty; one of `words` where there are any */
    FL_KEY_FILE = 2, /* a path, relative to the file that says it */
    FL_KEY_REAL = 4, /* min to max, both included; HUGE_VAL = no end */
    FL_KEY_INT = 8,  /* a whole number, min to max */
    FL_KEY_BOOL = 16,
    FL_KEY_NULL = 32,
    FL_KEY_NUMBERS = 64, /* a list of numbers */
    FL_KEY_OBJECT = 128, /* with the keys of `of` */
    FL_KEY_BY_NAME = 256 /* an object of such numbers, one for each workload */
};

typedef enum fl_key_shape { FL_KEY_ONE, FL_KEY_LIST, FL_KEY_NAMED } fl_key_shape; /* NAMED: an object, names are free */

typedef struct fl_keys fl_keys;

typedef struct fl_key {
    const char *name;
    unsigned type; /* of the value; of each entry of a list or of named ones */
    fl_key_shape shape;
    bool required;
    double min, max;
    bool share;        /* above 1 only as a text in percent: harness/base/cli/cli.h */
    const char *words; /* "a|b"; NULL = any text */
    const fl_keys *of;
    const char *unit, *standard, *help; /* standard: what holds without the key, NULL = nothing */
} fl_key;

struct fl_keys {
    const char *name, *help;
    const fl_key *key;
    size_t count;
    const fl_key *any; /* what the value of any other key is; NULL: other keys are refused */
    bool behind;       /* a '+' may stand before each key (harness/study/compare/compare.h) */
};

/* Check an object and everything inside it against the rows. FL_BAD_INPUT: a key that the rows do not have (the message
 * offers the nearest), or a value of another type, out of its range or not among its words. */
fl_status fl_keys_check(const fl_keys *keys, const fl_json *at, fl_diag *d);

/* Print the rows of `keys`, then the rows of every object that they name, each once. */
void fl_keys_print(const fl_keys *keys, FILE *out);
/* Make a JSON Schema (draft 7) of the rows. NULL: memory ran out. */
cJSON *fl_keys_schema(const fl_keys *keys, const char *title);
