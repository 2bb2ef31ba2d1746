/* JSON for machines: results and records, written through cJSON. */
#pragma once

#include "harness/base/cli/args.h"

#include <cjson/cJSON.h>

/* Adds key: value to a JSON object; NAN and infinities become null. */
void fl_json_add_real(cJSON *object, const char *key, double value);

/* Adds an empty object to an array. */
cJSON *fl_json_add_row(cJSON *array);

/* Adds an array of texts to a JSON object. */
void fl_json_add_texts(cJSON *object, const char *key, char *const *text, size_t count);

/* Adds each line of a text of notes ("note: ...") to an array, without the leading "note: ". The function modifies the
 * text; NULL means that the text could not be made for lack of memory. */
void fl_json_add_notes(cJSON *array, char *text);

/* Adds name: value of every option, with its current value, to a JSON object; a list of texts becomes an array. */
void fl_json_add_options(cJSON *object, const fl_option *option, size_t count);

/* The text of a tree, on many lines or on one; the caller frees it. NULL: memory ran out, now or while a tree was made.
 */
char *fl_json_text(const cJSON *tree, bool lines);

/* Writes a JSON tree to path through a temporary file. */
fl_status fl_json_write(const char *path, const cJSON *tree, fl_diag *d);

/* Prints a JSON tree and a newline. Where memory ran out it prints nothing, and main() reports that at the end. */
void fl_json_print(const cJSON *tree, FILE *out);
void fl_json_tell(cJSON *tree); /* to the standard output, and frees it */
