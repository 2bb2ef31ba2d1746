/* What the files of models/laws share: padding of steps to captured graphs, and the measured range of a step law. */
#pragma once

#include "models/laws/laws.h"

#include <stdbool.h>
#include <stdint.h>

/* Round tokens up to the sizes of captured graphs (vLLM's default list), if they are at most `most`. */
uint32_t fl_step_padded(uint32_t tokens, uint32_t most);

/* Return false if the law was measured at this clock or on both sides of it, else true. */
bool fl_step_outside(const fl_step_law *law, double sm_mhz);
