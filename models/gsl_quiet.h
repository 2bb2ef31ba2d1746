/* GSL calls abort() on an error unless its handler is off; a library must not. Every file that calls GSL calls this
 * first. */
#ifndef FL_GSL_QUIET_H
#define FL_GSL_QUIET_H

/* Turns GSL's error handler off for the whole process, once; thread-safe. GSL's return codes are checked instead. */
void fl_gsl_quiet(void);

#endif
