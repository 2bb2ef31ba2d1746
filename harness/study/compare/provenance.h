/* The record of where a result comes from: program, inputs, platforms and policies, as JSON beside the result. */
#pragma once

#include "harness/input/policy/policy.h"
#include "harness/input/scene/scene.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

/* Version, C library, hash of the policy archive, seed; inputs with their SHA-256; platform; policies with all resolved
 * parameters; what the models stand on. The caller deletes it. */
cJSON *fl_provenance(const fl_scenes *scenes, const fl_spec *spec, size_t spec_count, uint64_t seed);

/* SHA-256 of what a result holds, unpacked where it is gzipped, so that packing it later makes no other result of it.
 * As fl_file_sha256 else. */
char *fl_result_sha256(const char *path, char hash[65]);

/* Writes the record beside a result that is complete, with the result's SHA-256, so that it cannot pass for another's.
 * The standard output has nothing beside it: FL_OK then. */
fl_status fl_provenance_write(const char *csv, cJSON *record, fl_diag *d);

/* RESULT.csv -> RESULT.provenance.json. malloc'd. */
char *fl_provenance_path(const char *csv);
