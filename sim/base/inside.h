/* The two forms of the block of normals, which tests compare. Other modules include base.h alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Fill value[i] = sqrt(-2 ln u[i]) cos(2 pi v[i]) by Box and Muller, u in (0, 1], v in [0, 1). count is a multiple of
 * 4. The vector form gives the same bits; it returns false, with nothing done, where the CPU lacks the registers. */
void fl_normals_plain(const double *u, const double *v, double *value, size_t count);
bool fl_normals_vector(const double *u, const double *v, double *value, size_t count);
