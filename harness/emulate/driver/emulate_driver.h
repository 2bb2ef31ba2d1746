/* The driver's version: what a library of that version reports about itself, and which names it exports. */
#pragma once

#include "traces/io/diag.h"

#define FL_DRIVER_HELP                                                                                                 \
    "a driver of that version, such as 535 or 535.104.05: its names and answers (550.54.15, with every name)"

typedef struct fl_driver {
    char text[32];   /* 550.54.15 */
    uint32_t branch; /* 550 */
    uint32_t cuda;   /* 12040 */
    bool given;      /* names of newer versions are not exported */
} fl_driver;

/* NULL: the default version, with every name. */
fl_status fl_driver_parse(const char *text, fl_driver *out, fl_diag *d);

/* Whether the driver has this function. A function whose first version is not known here counts as present. */
bool fl_driver_has(const fl_driver *v, const char *name);

/* A function that the pattern (fnmatch) matches and whose name has this beginning; NULL = none. */
const char *fl_driver_name(const char *pattern, const char *beginning);
/* The function whose name is nearest to the text, as a proposal; NULL = none is near. */
const char *fl_driver_nearest(const char *text);

/* Copies the library `from` to `to` without the names that the driver lacks. */
fl_status fl_driver_library(const fl_driver *v, const char *from, const char *to, fl_diag *d);

/* From this branch on the calls of application clocks answer NVML_DEPRECATED. */
#define FL_DRIVER_NO_APPLICATION_CLOCKS 590u
/* The first branch with the fields of average and instant power, and of power limits. */
#define FL_DRIVER_POWER_FIELDS 535u
