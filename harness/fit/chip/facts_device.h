/* A platform file of a GPU of which only facts are known. */
#pragma once

#include "harness/fit/chip/advice.h"
#include "harness/fit/chip/facts.h"

/* The file as JSON, with a note on each value: its origin, and two deviations to either side. base: the platform for
 * sensors, actuators and the host. The caller frees *root, also after a failure. */
fl_status fl_fit_facts_device(const fl_fit_facts *f, const fl_chip *chip, const fl_fit_advice *advice, const char *base,
                              cJSON **root, fl_diag *d);
