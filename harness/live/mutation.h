/* The switches of harness/live/vendor/mutation.h under the name that this room has had for them. */
#ifndef FL_LIVE_MUTATION_H
#define FL_LIVE_MUTATION_H

#include "harness/live/vendor/mutation.h"

#endif
