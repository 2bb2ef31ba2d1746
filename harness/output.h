/* Tables for people, JSON for machines, and the record of where a result comes from. */
#ifndef FL_RESULT_OUTPUT_H
#define FL_RESULT_OUTPUT_H

#include "harness/scene.h"
#include "harness/spec.h"
#include "sim/run.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* A table on a terminal: cells are text, columns as wide as needed, numbers (all but the first `left` columns)
 * right-aligned. */
typedef struct fl_grid {
    char **cell;
    size_t columns, count, room;
} fl_grid;

/* Adds one cell, row by row; a failure of memory shows as a missing table, never as a wrong one. */
void fl_grid_add(fl_grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fl_grid_print(const fl_grid *g, size_t left, FILE *out);
void fl_grid_free(fl_grid *g);

/* A real in the shortest form that reads back the same, or "n/a"; into buf (32 bytes). Returns buf. */
char *fl_cell_text(double value, char *buf);

/* "1200 MHz", or "1200 MHz, memory 810 MHz" where the device has several memory clocks; into buf. Returns buf. */
char *fl_clocks_text(const fl_device *dev, double sm_mhz, double mem_mhz, char *buf, size_t size);

/* Adds key: value to a JSON object; NAN and infinities become null. */
void fl_json_add_real(cJSON *object, const char *key, double value);

/* Version, C library, hash of the policy archive, seed; inputs with their SHA-256; platform; policies with all resolved
 * parameters; what the models stand on. The caller deletes it. NULL when out of memory. */
cJSON *fl_provenance(const fl_scenes *scenes, const fl_spec *spec, size_t spec_count, uint64_t seed);

/* Adds name: value of every option, as it stands, to a JSON object; a list of texts becomes an array. */
void fl_json_add_options(cJSON *object, const fl_option *option, size_t count);

/* Writes a JSON tree to path through a temporary file. */
fl_status fl_json_write(const char *path, const cJSON *tree, fl_diag *d);

/* Prints a JSON tree and a newline. */
void fl_json_print(const cJSON *tree, FILE *out);

/* Writes the record beside a result that is complete, with the result's SHA-256, so that it cannot pass for another's.
 */
fl_status fl_provenance_write(const char *csv, cJSON *record, fl_diag *d);

/* RESULT.csv -> RESULT.provenance.json. malloc'd. */
char *fl_provenance_path(const char *csv);

/* Notes on what a result stands on (assumed loads, gaps as host time, ignored controls), one line each, to out. */
void fl_scene_notes(const fl_scenes *scenes, FILE *out);
/* On stderr, each once: what the formats of the traces do not carry. */
void fl_scene_warnings(const fl_scenes *scenes);

#endif
