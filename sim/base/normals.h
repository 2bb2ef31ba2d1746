/* Standard normals of one generator, made in blocks: what the distribution replay draws from at each step. */
#pragma once

#include "policies/random.h"

#include <stdbool.h>
#include <stddef.h>

enum { FL_NORMALS = 64 }; /* in a block; a multiple of 8 */

typedef struct fl_normals {  /* plain state: a copy of it is a copy of everything */
    fl_random first, random; /* at the first of the block, and behind its last */
    double value[FL_NORMALS];
    size_t next;
} fl_normals;

fl_normals fl_normals_seed(uint64_t seed, uint64_t component);

/* The next block, by the vector form where the processor has it. */
void fl_normals_refill(fl_normals *n);

/* The next normal. Each is what fl_random_normal would make of the same two uniform numbers, but for rounding (1e-14 at
 * most). */
static inline double fl_normals_next(fl_normals *n) {
    if (n->next == FL_NORMALS)
        fl_normals_refill(n);
    return n->value[n->next++];
}

/* The generator as it was before the last normal. */
fl_random fl_normals_last(const fl_normals *n);

/* value[i] = sqrt(-2 ln u[i]) cos(2 pi v[i]) by Box and Muller, u in (0, 1], v in [0, 1): `count` of them, a multiple
 * of 4. The vector form gives the same bits; false, with nothing done, where the processor lacks it. */
void fl_normals_plain(const double *u, const double *v, double *value, size_t count);
bool fl_normals_vector(const double *u, const double *v, double *value, size_t count);
