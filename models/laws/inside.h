/* What the files of models/laws share. Other modules include the public header alone. */
#pragma once

#include "models/laws/laws.h"

#include <stdbool.h>
#include <stdint.h>

/* Tokens rounded up to the sizes of captured graphs (vLLM's default list), where they are no more than `most`. */
uint32_t fl_step_padded(uint32_t tokens, uint32_t most);

/* Does the law rest on measurements at this clock, or between two? Then false. */
bool fl_step_outside(const fl_step_law *law, double sm_mhz);
