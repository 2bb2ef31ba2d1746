/* What the files of sim/base share. Other modules include the public header alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* value[i] = sqrt(-2 ln u[i]) cos(2 pi v[i]) by Box and Muller, u in (0, 1], v in [0, 1): `count` of them, a multiple
 * of 4. The vector form gives the same bits; false, with nothing done, where the processor lacks it. */
void fl_normals_plain(const double *u, const double *v, double *value, size_t count);
bool fl_normals_vector(const double *u, const double *v, double *value, size_t count);
