#include "models/math/gsl_quiet.h"

#include <gsl/gsl_errno.h>
#include <pthread.h>

static void turn_off(void) { (void)gsl_set_error_handler_off(); }

void fl_gsl_quiet(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, turn_off);
}
