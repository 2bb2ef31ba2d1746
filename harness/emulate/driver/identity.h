/* The identity of a simulated GPU: names, numbers, its place on the bus. For a board that nvidia-smi described
 * (--board) they are the described ones. */
#pragma once

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/protocol.h"
#include "harness/emulate/driver/options.h"
#include "harness/live/collector/ring.h"

void fl_identity_uuid(const fl_emulate_options *o, uint32_t gpu, uint8_t uuid[FL_RING_UUID]);
/* A text of a GPU, or of the system; "" = it has none. */
void fl_identity_text(const fl_emulate_options *o, uint32_t gpu, fl_ask_text what, char *out, size_t size);
nvmlPciInfo_t fl_identity_pci(const fl_emulate_options *o, uint32_t gpu);
uint64_t fl_identity_memory(const fl_emulate_options *o, uint32_t gpu); /* bytes */
