/* What a workload's activities (DRAM, SMs, their pipes) say of it. */
#pragma once

#include "models/chip/chip.h"

/* Whether the activities of the known rows help to tell what the workload is like. */
int fl_chip_uses_activity(const fl_chip *chip, const fl_chip_row *known, size_t known_count);
