#include "harness/live/guard/vendors.h"

#include "harness/live/vendor/rsmi/rsmi.h"
#include "harness/live/vendor/ze/ze.h"
#include "sim/node/readout.h"

#include <stdio.h>
#include <string.h>

typedef struct vendor {
    const char *name;
    const char *prefix; /* prefix of its units; the first row is for all units without a prefix */
    fl_status (*open)(fl_gpus *g, const char *list, fl_diag *missing, fl_diag *d);
    const fl_readout *reader;
    uint64_t reads; /* the signals of a vendor without a reader */
} vendor;

static const vendor VENDORS[] = {
    {"nvidia", "", fl_nvml_host_open, &fl_readout_nvml, 0},
    {"intel", FL_ZE_PREFIX, fl_ze_host_open, NULL, FL_ZE_READS},
    {"amd", FL_RSMI_PREFIX, fl_rsmi_host_open, NULL, FL_RSMI_READS},
};
enum { COUNT = sizeof VENDORS / sizeof *VENDORS };

size_t fl_vendor_count(void) { return COUNT; }
const char *fl_vendor_name(size_t i) { return VENDORS[i].name; }

static const vendor *named(const char *name) {
    size_t i = 0;
    while (name && i < COUNT && strcmp(VENDORS[i].name, name) != 0)
        i++;
    return name && i < COUNT ? &VENDORS[i] : NULL;
}

uint64_t fl_vendor_reads(const char *name) {
    const vendor *v = named(name);
    return !v ? 0 : v->reader ? fl_readout_offers(v->reader) : v->reads;
}

const char *fl_vendor_of(const char *unit) {
    for (size_t i = COUNT; i-- > 1;)
        if (!strncmp(unit, VENDORS[i].prefix, strlen(VENDORS[i].prefix)))
            return VENDORS[i].name;
    return VENDORS[0].name;
}

/* Every GPU must answer; the caller has to leave out one that does not. */
static fl_status refuse_missing(fl_gpus *g, const fl_diag *silent, fl_diag *d) {
    fl_gpus_close(g);
    if (silent->status == FL_BAD_INPUT) {
        if (d)
            *d = *silent;
        return FL_BAD_INPUT;
    }
    return fl_error(d, silent->status, "%s (--gpus LIST with the others leaves it out)", silent->message);
}

static fl_status open_vendor(const vendor *v, fl_gpus *g, const char *list, fl_diag *missing, bool *any, fl_diag *d) {
    fl_diag silent = {0};
    fl_status s = v->open(g, list, &silent, d);
    *any = !s || silent.status; /* the vendor has a GPU here, whether or not it answers */
    if (missing)
        *missing = silent;
    return s || missing || !silent.status ? s : refuse_missing(g, &silent, d);
}

static fl_status open_named(fl_gpus *g, const char *name, const char *list, fl_diag *missing, fl_diag *d) {
    const char *known[COUNT + 1] = {[COUNT] = "auto"};
    bool any;
    for (size_t i = 0; i < COUNT; i++) {
        if (!strcmp(VENDORS[i].name, name))
            return open_vendor(&VENDORS[i], g, list, missing, &any, d);
        known[i] = VENDORS[i].name;
    }
    const char *near = fl_nearest(name, known, COUNT + 1);
    return fl_refuse(d, "unknown vendor '%.40s', %s%s%s", name,
                     near ? "did you mean '" : "expected nvidia, intel, amd or auto", near ? near : "",
                     near ? "'?" : "");
}

/* A list that begins with a unit, not an index, reveals the vendor. */
static const char *of_list(const char *list) {
    const bool unit = list && *list && strcmp(list, "all") != 0 && (*list < '0' || *list > '9');
    return unit ? fl_vendor_of(list) : NULL;
}

fl_status fl_vendor_open(fl_gpus *g, const char *name, const char *list, fl_diag *missing, fl_diag *d) {
    if (missing)
        *missing = (fl_diag){0};
    char said[sizeof d->message] = "";
    const bool any = !name || !strcmp(name, "auto");
    if (!any || of_list(list))
        return open_named(g, any ? of_list(list) : name, list, missing, d);
    for (size_t i = 0; i < COUNT; i++) {
        fl_diag why = {0};
        bool here;
        fl_status s = open_vendor(&VENDORS[i], g, list, missing, &here, &why);
        if (s != FL_HARDWARE || here) {
            if (s && d)
                *d = why;
            return s;
        }
        const size_t at = strlen(said);
        snprintf(said + at, sizeof said - at, "%s%.300s", i ? "; " : "", why.message);
    }
    return fl_error(d, FL_HARDWARE, "%s", said);
}
