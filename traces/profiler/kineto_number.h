/* Numbers in the syntax of JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Converts decimal microseconds to whole nanoseconds, rounded to the nearest, exactly at any size. False where text is
 * not such a number or is too large. */
bool fl_us_to_ns(const char *text, size_t size, int64_t *ns);
/* Parses a whole number, also in the form that a writer of floating-point numbers gives it ("7.0"). */
bool fl_json_whole(const char *text, size_t size, int64_t *value);
