/* JSON configuration through cJSON: files read whole with the line and column of a syntax error, and typed getters
 * whose diagnostics name file and dotted key ("gpu.power.a_w: -3, expected a number >= 0"). */
#ifndef FL_JSON_H
#define FL_JSON_H

#include "traces/diag.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

#define FL_JSON_SIZE_MAX (16u << 20) /* bytes in one configuration file; larger is refused */
#define FL_JSON_PATH_MAX 256

typedef struct fl_json {         /* a value and where it stands; a small struct, passed by value and copied freely */
    const cJSON *node;           /* borrowed from the tree */
    const char *file;            /* borrowed */
    char path[FL_JSON_PATH_MAX]; /* "gpu.power", "gpus[1].sms"; empty at the root */
} fl_json;

/* Reads and parses; the tree is freed with cJSON_Delete. The top value must be an object. FL_BAD_INPUT where there is
 * no file that can be opened, or with line and column where it is not JSON (a NUL byte, a second value and a key given
 * twice are errors too); FL_IO where reading fails. */
fl_status fl_json_read(const char *path, cJSON **tree, fl_diag *d);
fl_status fl_json_read_any(const char *path, cJSON **tree, fl_diag *d); /* the same, whatever the top value is */
fl_json fl_json_root(const cJSON *tree, const char *file);

/* "KEY: " and the formatted reason, about this value, as FL_BAD_INPUT with the line and column of the value or its key;
 * of what is missing, those of the deepest object around it. Reads the file once more for them. */
fl_status fl_json_fail(const fl_json *at, fl_diag *d, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Refuses a key that is not among `known` and offers the nearest. */
fl_status fl_json_known(const fl_json *object, const char *const *known, size_t count, fl_diag *d);

/* Members. _has is false for a missing key. The getters refuse a missing key, a wrong type and a value out of [min,
 * max]. */
bool fl_json_has(const fl_json *object, const char *key);
fl_status fl_json_get(const fl_json *object, const char *key, fl_json *value, fl_diag *d);
fl_status fl_json_get_object(const fl_json *object, const char *key, fl_json *value, fl_diag *d);
fl_status fl_json_get_array(const fl_json *object, const char *key, fl_json *value, fl_diag *d);
fl_status fl_json_get_real(const fl_json *object, const char *key, double min, double max, double *value, fl_diag *d);
fl_status fl_json_get_int(const fl_json *object, const char *key, int64_t min, int64_t max, int64_t *value, fl_diag *d);
fl_status fl_json_get_bool(const fl_json *object, const char *key, bool *value, fl_diag *d);
fl_status fl_json_get_text(const fl_json *object, const char *key, const char **value,
                           fl_diag *d); /* borrowed, not empty */

/* The same for a value at hand, such as an entry of an array. */
fl_status fl_json_real(const fl_json *at, double min, double max, double *value, fl_diag *d);
fl_status fl_json_int(const fl_json *at, int64_t min, int64_t max, int64_t *value, fl_diag *d);
fl_status fl_json_object(const fl_json *at, fl_diag *d);

/* Walking an array or object: for (fl_json e = fl_json_first(&a); e.node; e = fl_json_next(&a, &e)). */
fl_json fl_json_first(const fl_json *parent);
fl_json fl_json_next(const fl_json *parent, const fl_json *entry);
size_t fl_json_count(const fl_json *parent);

/* The text form of a policy parameter: a number, true/false as 1/0, a text as it is, a list of numbers joined by '/'.
 * The caller frees *text. */
fl_status fl_json_param_text(const fl_json *at, char **text, fl_diag *d);

#endif
