/* The driver's version: what a library of that version says of itself, and which names it has. */
#ifndef FL_EMULATE_DRIVER_H
#define FL_EMULATE_DRIVER_H

#include "traces/diag.h"

#define FL_DRIVER_HELP                                                                                                 \
    "a driver of that version, such as 535 or 535.104.05: its names and answers (550.54.15, with every name)"

typedef struct fl_driver {
    char text[32];   /* 550.54.15 */
    uint32_t branch; /* 550 */
    uint32_t cuda;   /* 12040 */
    bool given;      /* names that are newer are not there */
} fl_driver;

/* NULL: the standard one, with every name. */
fl_status fl_driver_parse(const char *text, fl_driver *out, fl_diag *d);

/* Whether the driver has this function; one of which nobody here knows when it came is there. */
bool fl_driver_has(const fl_driver *v, const char *name);

/* Writes the library `from` as `to` without the names that the driver has not. */
fl_status fl_driver_library(const fl_driver *v, const char *from, const char *to, fl_diag *d);

/* From this branch on the calls of application clocks answer NVML_DEPRECATED. */
#define FL_DRIVER_NO_APPLICATION_CLOCKS 590u
/* The first with the fields of average and instant power, and of power limits. */
#define FL_DRIVER_POWER_FIELDS 535u

#endif
