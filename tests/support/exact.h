/* Arrays in memory of exactly their size: with the address sanitizer a suite ends where one more element is touched. */
#pragma once

#include <stdlib.h>
#include <string.h>

/* A copy, or `bytes` zeros where from is NULL. free() it. */
static inline void *exact(const void *from, size_t bytes) {
    void *copy = calloc(1, bytes);
    if (!copy)
        exit(1);
    if (from && bytes)
        memcpy(copy, from, bytes);
    return copy;
}
