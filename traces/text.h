/* A text that stdio writes into memory. */
#ifndef FL_TEXT_H
#define FL_TEXT_H

#include <stdio.h>

typedef struct fl_text {
    FILE *file;
    char *text; /* of the stream; use what fl_text_close returns */
    size_t size;
} fl_text;

/* The stream to write to; NULL when out of memory. */
FILE *fl_text_open(fl_text *t);
/* Ends it, also where it was never opened. The whole text, which the caller frees; NULL where any of it found no
 * memory, which the stream itself need not have told: *size is then as it was. size may be NULL. */
char *fl_text_close(fl_text *t, size_t *size);

#endif
