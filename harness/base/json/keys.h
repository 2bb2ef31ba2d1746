/* The keys of a JSON file as rows: the same rows check a file before anything reads it, print the page that explains it
 * and make its JSON Schema, so that none of the three can differ from another. */
#pragma once

#include "harness/base/json/json.h"

#include <stdio.h>

/* What a value may be: any of these bits. */
enum {
    FL_KEY_TEXT = 1, /* not empty; one of `words` where there are any */
    FL_KEY_FILE = 2, /* a path, relative to the file that says it */
    FL_KEY_REAL = 4, /* min to max, both included; HUGE_VAL = no end */
    FL_KEY_INT = 8,  /* the same, whole */
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
    bool share;        /* above 1 only as a text in percent: harness/base/cli/share.h */
    const char *words; /* "a|b"; NULL = any text */
    const fl_keys *of;
    const char *unit, *standard, *help; /* standard: what holds without the key, NULL = nothing */
} fl_key;

struct fl_keys {
    const char *name, *help;
    const fl_key *key;
    size_t count;
    const fl_key *any; /* what the value of any other key is; NULL: other keys are refused */
    bool behind;       /* a '+' may stand before each key (harness/study/compare/result_tables.h) */
};

/* FL_BAD_INPUT at the first key that the rows do not know, with the nearest, and at the first value of another type,
 * out of its range or not among its words; also in what lies inside. */
fl_status fl_keys_check(const fl_keys *keys, const fl_json *at, fl_diag *d);

/* A page: the rows of `keys`, then those of every object that they name, each once. */
void fl_keys_print(const fl_keys *keys, FILE *out);
/* The same as a JSON Schema (draft 7). NULL when out of memory. */
cJSON *fl_keys_schema(const fl_keys *keys, const char *title);
