#include "traces/io/text.h"

#include "traces/io/memory.h"

#include <stdlib.h>

FILE *fl_text_open(fl_text *t) {
    *t = (fl_text){0};
    return t->file = open_memstream(&t->text, &t->size);
}

char *fl_text_close(fl_text *t, size_t *size) {
    if (!t->file)
        return NULL;
    const bool torn = ferror(t->file) != 0;
    const bool closed = !fclose(t->file);
    t->file = NULL;
    if (torn || !closed || !t->text) { /* where the last byte found none, all is well but for the text */
        fl_memory_lost();
        free(t->text);
        return NULL;
    }
    if (size)
        *size = t->size;
    return t->text;
}
