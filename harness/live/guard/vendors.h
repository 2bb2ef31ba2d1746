/* The vendor of this machine's GPUs: every vendor's back end behind one function. */
#pragma once

#include "harness/live/vendor/backend.h"

#define FL_VENDORS_MAX 3
#define FL_VENDOR_HELP "nvidia, intel or amd; auto = the first of them that has a GPU here (auto)"

size_t fl_vendor_count(void);
const char *fl_vendor_name(size_t i); /* in the order in which auto tries them */

/* name: a vendor; NULL or "auto" = the vendor of the units in the list, else the first that has a GPU. list: indices or
 * units joined by commas, NULL or "all" = every GPU of that vendor. FL_HARDWARE where there is none, with what each
 * vendor's library said in one line. FL_BAD_INPUT where the name is unknown (with the nearest one), or a name of the
 * list matches no GPU. missing: NULL = every GPU of the list must answer; else those that do are opened, and *missing
 * says which were left out. */
fl_status fl_vendor_open(fl_gpus *g, const char *name, const char *list, fl_diag *missing, fl_diag *d);

/* FL_BIT(FL_GPU_...): signals for which its library has calls. A board may lack some of them. NULL = no vendor: none.
 */
uint64_t fl_vendor_reads(const char *name);

/* The vendor of a unit, by the name that its back end gave it. */
const char *fl_vendor_of(const char *unit);
