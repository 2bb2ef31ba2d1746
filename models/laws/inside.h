/* What the files of models/laws share: parts of a step law, and states of a CPU. */
#pragma once

#include "models/laws/laws.h"

#include <stdbool.h>
#include <stdint.h>

/* Round tokens up to the sizes of captured graphs (vLLM's default list), if they are at most `most`. */
uint32_t fl_step_padded(uint32_t tokens, uint32_t most);

/* A part of the step: seconds, and those in which compute and memory would be busy if they had not to wait. */
typedef struct fl_step_part {
    double time_s, compute_s, memory_s;
} fl_step_part;

/* The experts of a step of `tokens` tokens on the slowest rank, all blocks together. */
fl_step_part fl_step_experts_at(const fl_step_law *law, double tokens, double ghz, double m);
/* Return the end of the rows [from, ...) that have the same `at`. */
size_t fl_step_line_end(const fl_step_grid *g, size_t from);
/* Return true if the law's numbers of experts, ranks and replicas can be. */
bool fl_step_experts_sound(const fl_step_law *law);

/* Return false if the law was measured at this clock or on both sides of it, else true. */
bool fl_step_outside(const fl_step_law *law, double sm_mhz);
