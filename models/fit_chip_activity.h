/* What a workload's activities (DRAM, SMs, their pipes) say of it. */
#ifndef FL_FIT_CHIP_ACTIVITY_H
#define FL_FIT_CHIP_ACTIVITY_H

#include "models/chip.h"

/* Whether the activities of the known rows help to tell what the workload is like. */
int fl_chip_uses_activity(const fl_chip *chip, const fl_chip_row *known, size_t known_count);

#endif
