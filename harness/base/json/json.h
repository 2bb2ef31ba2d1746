/* JSON configuration through cJSON. Syntax errors have a line and a column; the diagnostics of the typed getters name
 * the file and the dotted key ("gpu.power.a_w: -3, expected a number >= 0"). */
#pragma once

#include "traces/io/diag.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

#define FL_JSON_SIZE_MAX (16u << 20) /* bytes in one configuration file; larger is refused */
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
fl_status fl_json_read_any(const char *path, cJSON **tree, fl_diag *d); /* the same for a top value of any kind */
fl_json fl_json_root(const cJSON *tree, const char *file);

/* Reports "KEY: " and the formatted reason about this value as FL_BAD_INPUT, with the line and column of the value or
 * its key. For a missing value they are those of the deepest object around it. The function reads the file once more to
 * find them. */
fl_status fl_json_fail(const fl_json *at, fl_diag *d, const char *format, ...) __attribute__((format(printf, 3, 4)));

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

/* The same for a value that the caller already has, such as an entry of an array. */
fl_status fl_json_real(const fl_json *at, double min, double max, double *value, fl_diag *d);
fl_status fl_json_int(const fl_json *at, int64_t min, int64_t max, int64_t *value, fl_diag *d);
fl_status fl_json_object(const fl_json *at, fl_diag *d);

/* To walk an array or object: for (fl_json e = fl_json_first(&a); e.node; e = fl_json_next(&a, &e)). */
fl_json fl_json_first(const fl_json *parent);
fl_json fl_json_next(const fl_json *parent, const fl_json *entry);
size_t fl_json_count(const fl_json *parent);

/* The text form of a policy parameter: a number, 1 or 0 for true or false, an unchanged text, or a list of numbers
 * joined by '/'. The caller frees *text. */
fl_status fl_json_param_text(const fl_json *at, char **text, fl_diag *d);
