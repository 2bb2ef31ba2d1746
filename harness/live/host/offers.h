/* What a vendor's library gives a policy: all that it needs, with what stand-in, or why it cannot decide. From the
 * descriptor of the policy and the table of what each library can read (fl_vendor_reads): nothing is listed by hand. */
#pragma once

#include "policies/policy.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct fl_offer {
    fl_policy here;      /* the policy as it runs there; borrows what the policy does */
    uint64_t gpu, host;  /* signals that it lacks there, of those that it then reads */
    uint64_t instead_of; /* signals that others stand in for; 0 = none */
    uint64_t without;    /* signals that it lacks there, and does without */
    uint64_t given;      /* that the collector gives */
    bool markers;        /* it needs the program's markers, and has them with the collector */
    bool may_record;     /* it needs no kernel records, and takes them where the collector runs */
    bool may_mark;       /* it takes markers where the collector runs */
    bool records;        /* it needs kernel records, or their number, and has them with the collector */
    bool no_records;     /* it needs them, and that vendor has no collector */
    bool sees;           /* it reads no signal, or one of them at least is to be had */
} fl_offer;

/* vendor: as in fl_vendor_name. markers: which of them count is said, or may be. */
fl_offer fl_offer_of(const fl_policy *p, const char *vendor, bool markers);

/* "all", "all, without dram_bytes", "all, kernel records by the collector", "all, markers by the collector",
 * "util_gpu_pct, util_mem_pct instead of compute_ns, copy_ns", "lacks node_power_w: cannot decide". */
void fl_offer_text(const fl_offer *o, char *text, size_t size);

/* "util_gpu_pct, util_mem_pct instead of compute_ns, copy_ns"; "" where nothing stands in. */
void fl_offer_instead(const fl_offer *o, char *text, size_t size);
