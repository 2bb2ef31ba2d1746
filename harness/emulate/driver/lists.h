/* Structs and lists that a program may ask of a board, into an answer of size 0. Results of NVML. */
#pragma once

#include "harness/emulate/driver/board.h"

#include <string.h>

static inline void fl_list_put(fl_answer *out, const void *bytes, size_t size) {
    memcpy(out->bytes, bytes, size);
    out->size = (uint32_t)size;
}

void fl_list_field(fl_boards *all, const fl_ask *q, fl_answer *out);
int32_t fl_list_samples(fl_boards *all, const fl_ask *q, fl_answer *out);
void fl_list_clocks(const fl_device *dev, const fl_ask *q, fl_answer *out);
void fl_list_processes(const fl_boards *all, const fl_ask *q, fl_answer *out);
int32_t fl_list_shares(fl_boards *all, const fl_ask *q, fl_answer *out);
void fl_list_profile(const fl_boards *all, const fl_ask *q, fl_answer *out);
