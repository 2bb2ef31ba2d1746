/* The switches of harness/live/vendor/mutation.h under the name that this room has had for them. */
#pragma once

#include "harness/live/vendor/mutation.h"
