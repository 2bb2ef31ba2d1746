/* Numbers as JSON writes them. */
#ifndef FL_KINETO_NUMBER_H
#define FL_KINETO_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal microseconds to whole nanoseconds, rounded to the nearest, exactly whatever their size. False where text is
 * no such number or too large. */
bool fl_us_to_ns(const char *text, size_t size, int64_t *ns);
/* A whole number, also as a writer of floating-point numbers has it ("7.0"). */
bool fl_json_whole(const char *text, size_t size, int64_t *value);

#endif
