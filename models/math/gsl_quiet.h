/* GSL calls abort() on an error unless its error handler is off, and a library must not abort. Every file that calls
 * GSL calls this function first. */
#pragma once

/* Turns GSL's error handler off for the whole process, once; thread-safe. Callers check GSL's return codes instead. */
void fl_gsl_quiet(void);
