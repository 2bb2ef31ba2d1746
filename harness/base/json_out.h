/* JSON for machines: results and records, written through cJSON. */
#ifndef FL_JSON_OUT_H
#define FL_JSON_OUT_H

#include "harness/base/args.h"

#include <cjson/cJSON.h>

/* Adds key: value to a JSON object; NAN and infinities become null. */
void fl_json_add_real(cJSON *object, const char *key, double value);

/* Adds each line of a text of notes ("note: ...") to an array, without what it begins with. Writes into text; NULL: it
 * could not be made for want of memory. */
void fl_json_add_notes(cJSON *array, char *text);

/* Adds name: value of every option, as it stands, to a JSON object; a list of texts becomes an array. */
void fl_json_add_options(cJSON *object, const fl_option *option, size_t count);

/* The text of a tree, on many lines or on one; malloc'd. NULL when out of memory, then or while any tree was made. */
char *fl_json_text(const cJSON *tree, bool lines);

/* Writes a JSON tree to path through a temporary file. */
fl_status fl_json_write(const char *path, const cJSON *tree, fl_diag *d);

/* Prints a JSON tree and a newline. Nothing when out of memory, which main() tells of at the end. */
void fl_json_print(const cJSON *tree, FILE *out);

#endif
