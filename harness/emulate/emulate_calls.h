/* What the emulator answers, by kind of answer. Internal to emulate_calls.c, emulate_numbers.c and emulate_lists.c. */
#ifndef FL_EMULATE_CALLS_H
#define FL_EMULATE_CALLS_H

#include "harness/emulate/emulate_inside.h"

#include <string.h>

#define FL_MEMORY_USED (UINT64_C(1) << 30)

static inline const fl_device *fl_calls_device(const fl_emulator *e, uint32_t gpu) {
    return &e->spec->device[e->spec->gpu[gpu]];
}

/* us since the epoch, as the session counts it, at t_ns of the session. */
static inline uint64_t fl_calls_us(const fl_emulator *e, int64_t t_ns) {
    return (uint64_t)((e->realtime_ns + t_ns) / 1000);
}

static inline void fl_calls_reply(fl_answer *out, const void *bytes, size_t size) {
    memcpy(out->bytes, bytes, size);
    out->size = (uint32_t)size;
}

/* Numbers; a result of NVML. */
int32_t fl_calls_number(fl_emulator *e, const fl_ask *q, uint64_t *out);
bool fl_calls_reads(const fl_ask *q); /* the number is a sensor's */
/* A signal times scale; NVML_NOT_SUPPORTED where the board has no sensor for it, or it is missing now. */
int32_t fl_calls_signal(fl_emulator *e, uint32_t gpu, int id, double scale, uint64_t *out);
int32_t fl_calls_limit(double watts, uint64_t *out);

/* Structs and lists, into the answer. */
void fl_calls_field(fl_emulator *e, const fl_ask *q, fl_answer *out);
int32_t fl_calls_samples(fl_emulator *e, const fl_ask *q, fl_answer *out);
void fl_calls_clocks(const fl_device *dev, const fl_ask *q, fl_answer *out);
void fl_calls_processes(const fl_emulator *e, const fl_ask *q, fl_answer *out);
int32_t fl_calls_shares(fl_emulator *e, const fl_ask *q, fl_answer *out);
void fl_calls_profile(const fl_emulator *e, const fl_ask *q, fl_answer *out);
void fl_calls_read_node(fl_emulator *e, bool remember, fl_answer *out);

#endif
