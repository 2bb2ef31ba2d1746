/* Reads an engine's page of metrics again and again on a thread of its own, over plain HTTP, so that a page that is
 * late, hangs or is gone never holds up a step of control. Every wait ends: an exchange may take two seconds in all and
 * bring four MiB; a name is looked up once, before anything is controlled. Where it has several addresses, as of IPv6
 * and of IPv4, an exchange tries one after the other within its two seconds. */
#pragma once

#include "harness/live/server/metrics_page.h"
#include "traces/io/diag.h"

typedef struct fl_page_reader fl_page_reader;

typedef struct fl_page_counts {
    uint64_t pages, failed; /* exchanges that brought a page, or none */
    uint64_t lies;          /* values of them that cannot be */
} fl_page_counts;

enum { FL_PAGE_WHY = 160 };

/* Looks the host up and reads a first page into *first. FL_BAD_INPUT for a URL that is none; FL_HARDWARE where no page
 * is to be had, or one without any metric of an engine that is known. */
fl_status fl_page_reader_open(fl_page_reader **out, const char *url, int64_t period_ns, fl_metrics *first, fl_diag *d);

/* True where a page came since the last call; then it is in *m. Never waits. */
bool fl_page_reader_take(fl_page_reader *r, fl_metrics *m);

fl_page_counts fl_page_reader_count(fl_page_reader *r);
/* Why the last exchange brought no page; "" where it did. */
void fl_page_reader_why(fl_page_reader *r, char why[FL_PAGE_WHY]);

/* Ends the thread, in the midst of an exchange too. NULL is allowed. */
void fl_page_reader_close(fl_page_reader *r);
