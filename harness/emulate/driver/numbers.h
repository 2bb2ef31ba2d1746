/* Numbers that a program may query from a board (FL_ASK_NUMBER). Results of NVML. */
#pragma once

#include "harness/emulate/driver/board.h"

#define FL_COOL_C 40u /* constant temperature of a board whose heat is not simulated */
#define FL_MEMORY_USED (UINT64_C(1) << 30)

int32_t fl_number_of(fl_boards *all, const fl_ask *q, uint64_t *out);
bool fl_number_is_reading(const fl_ask *q); /* whether the number comes from a sensor */
/* A signal in NVML's own units (sim/node/readout.h); NVML_NOT_SUPPORTED where the board has no sensor for it, or it is
 * missing now. */
int32_t fl_number_signal(fl_boards *all, uint32_t gpu, int id, uint64_t *out);
/* NVML's number of its architecture; UINT32_MAX where the name does not reveal it. */
uint32_t fl_number_architecture(const fl_device *dev);
/* The performance state: 0 with a context open, 8 without. */
uint32_t fl_number_pstate(const fl_gpu *g);
/* A limit in mW; NVML_NOT_SUPPORTED where the chip has none. */
int32_t fl_number_limit(double watts, uint64_t *out);
