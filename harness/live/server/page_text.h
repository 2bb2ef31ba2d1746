/* The two texts around a page of metrics: its address, and the answer that it comes in. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct fl_page_url {
    char host[256]; /* without the brackets of an IPv6 address */
    char port[8];
    char path[1024];
} fl_page_url;

/* http://HOST[:PORT][/PATH]: port 80 and /metrics where they are not given. FL_BAD_INPUT otherwise, https too. */
fl_status fl_page_url_parse(const char *text, fl_page_url *url, fl_diag *d);

/* What is there of an answer so far: */
typedef enum fl_page_answer {
    FL_PAGE_MORE,  /* more is to come */
    FL_PAGE_WHOLE, /* *from and *size are the page */
    FL_PAGE_WRONG  /* *why says why it is none */
} fl_page_answer;

/* ended: nothing comes after these bytes. */
fl_page_answer fl_page_answer_read(const char *bytes, size_t count, bool ended, const char **from, size_t *size,
                                   const char **why);
