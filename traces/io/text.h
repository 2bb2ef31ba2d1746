/* A text that stdio writes into memory. */
#pragma once

#include <stdio.h>

typedef struct fl_text {
    FILE *file;
    char *text; /* text of the stream; use the result of fl_text_close instead */
    size_t size;
} fl_text;

/* The stream to write to; NULL when out of memory. */
FILE *fl_text_open(fl_text *t);
/* Ends the text, also where it was never opened. Returns the whole text, which the caller frees. NULL where memory ran
 * out at any time, which the stream itself may not have reported; *size is then unchanged. size may be NULL. */
char *fl_text_close(fl_text *t, size_t *size);
