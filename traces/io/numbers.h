/* Numbers as text, in C syntax whatever the locale: read to the last character, and written so that reading gives the
 * same number. */
#pragma once

#include <stdint.h>

typedef enum fl_number {
    FL_NUMBER_OK,
    FL_NUMBER_SYNTAX, /* the text is not a number */
    FL_NUMBER_RANGE   /* the text is a number that is too large */
} fl_number;

/* Decimal digits with an optional minus. *value is set only on FL_NUMBER_OK. */
fl_number fl_int_parse(const char *text, int64_t *value);

/* [-+] digits [. digits] [e [-+] digits], digits on at least one side of the point; no inf, nan, hexadecimal or blanks.
 * Correctly rounded. */
fl_number fl_real_parse(const char *text, double *value);

#define FL_REAL_TEXT 32 /* room for any number with its NUL */

/* The shortest of 15, 16 or 17 digits that reads back as the same number (inf, -inf and nan as such). Returns buf. */
char *fl_real_text(double value, char buf[FL_REAL_TEXT]);
