/* What the files of harness/emulate/driver share. Other modules include the public header alone. */
#pragma once

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "models/laws/device.h"
#include "policies/policy.h"
#include "sim/gpu/gpu.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* One set call that ended, made or refused. */
void fl_outcome_set(fl_outcome *o, int64_t now_ns, size_t process, const fl_ask *q, int32_t result);

typedef struct fl_event_state { /* of one GPU: a change of it is an event */
    uint32_t sm_mhz, mem_mhz, pstate;
    bool lost;
} fl_event_state;

void fl_events_free(fl_events *all);
/* Creates a set. Returns its number, 0 where memory runs out. */
uint32_t fl_events_open(fl_events *all);
/* Removes the set of this number. Returns whether there was one. */
bool fl_events_close(fl_events *all, uint32_t number);
/* Registers the set for these kinds (NVML_EVENT_...) of a GPU's events from now on. Returns NVML's result. */
int32_t fl_events_add(fl_events *all, uint32_t number, uint32_t gpu, uint64_t kinds, const fl_event_state *now);
/* Reports the present state of a GPU to every set that is registered for it. */
void fl_events_look(fl_events *all, uint32_t gpu, const fl_event_state *now);
/* The oldest event of the set: NVML_SUCCESS; NVML_TIMEOUT where none has occurred, NVML_GPU_IS_LOST where none ever
 * can. */
int32_t fl_events_next(fl_events *all, uint32_t number, fl_ask_event *out);

/* Delivers the kernels that ended, and the markers that were passed, since the last call. */
void fl_rings_push(fl_emulated_rings *r, fl_diag *d);
bool fl_rings_wake(const fl_emulated_rings *r); /* whether a reader wants to be woken by markers */

void fl_boards_sample(fl_boards *all, uint32_t gpu, bool remember, fl_gpu_sample *out);
/* The time of the refresh that the sensor shows now, in ns of the session. */
int64_t fl_boards_refreshed(const fl_boards *all, uint32_t gpu, fl_sensor_id id);

/* Mean power of the memory in mW, between the last two refreshes of the power sensor at which someone asked, from the
 * memory's parts of the ledger. Below 0 where the model does not split power, or no context is open. */
int64_t fl_boards_memory_mw(fl_boards *all, uint32_t gpu);

int32_t fl_boards_check(const fl_boards *all, const fl_ask *q);
int32_t fl_boards_set(fl_boards *all, const fl_ask *q);
/* Return how long a set call blocks its caller, in ns. */
int64_t fl_boards_set_ns(fl_boards *all, const fl_ask *q);
/* Puts a power limit in force, by a call that ends at end_ns, unless a fault refuses it. */
void fl_boards_begin_limit(fl_boards *all, const fl_ask *q, int64_t end_ns);

static inline size_t fl_conn_account(const fl_conn *c) { return c->peer ? c->peer->account : FL_NOBODY; }

/* The identity of a simulated GPU: names, numbers, its place on the bus. For a board that nvidia-smi described
 * (--board) they are the described ones. */

/* A text of a GPU, or of the system; "" = it has none. */
void fl_identity_text(const fl_emulate_options *o, uint32_t gpu, fl_ask_text what, char *out, size_t size);

typedef struct fl_family { /* facts of a board that a program may query and that the models do not use */
    uint32_t architecture, major, minor, pci_device; /* major, minor: compute capability */
    uint64_t memory_mib;
} fl_family;

/* Return the family of a board, by the name and architecture that nvidia-smi printed, else by the platform's name. */
fl_family fl_identity_family(const fl_emulate_options *o, uint32_t gpu);
/* Write the FL_RING_UUID bytes of a UUID. */
void fl_identity_uuid(const fl_emulate_options *o, uint32_t gpu, uint8_t *uuid);
nvmlPciInfo_t fl_identity_pci(const fl_emulate_options *o, uint32_t gpu);
uint64_t fl_identity_memory(const fl_emulate_options *o, uint32_t gpu); /* bytes */

/* Structs and lists that a program may ask of a board, into an answer of size 0. Results of NVML. */

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

/* Numbers that a program may query from a board (FL_ASK_NUMBER). Results of NVML. */

int32_t fl_number_of(fl_boards *all, const fl_ask *q, uint64_t *out);
bool fl_number_is_reading(const fl_ask *q); /* whether the number comes from a sensor */

/* The performance state: 0 with a context open, 8 without. */
uint32_t fl_number_pstate(const fl_gpu *g);
