/* The calls of ROCm SMI, its codes, and what they mean. */
#include "harness/live/vendor/rsmi/inside.h"

#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* ---- the library ---- */

static const char *const NAMES[] = {"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5",
                                    "librocm_smi64.so.1", "librocm_smi64.so",   NULL};

static const struct {
    fl_rsmi_code code;
    const char *text;
} CODES[] = {{FL_RSMI_INVALID, "refuses the argument"},
             {FL_RSMI_NOT_SUPPORTED, "not supported"},
             {FL_RSMI_FILE, "a file of the driver cannot be read or written"},
             {FL_RSMI_NO_PERMISSION, "no permission"},
             {FL_RSMI_INIT, "no driver that it can start"},
             {FL_RSMI_NOT_YET, "this version of the library does not offer it"},
             {FL_RSMI_BUSY, "in use by somebody else"}};

const char *fl_rsmi_reason(fl_rsmi_code code) {
    for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++)
        if (CODES[i].code == code)
            return CODES[i].text;
    return "unknown error";
}

/* the call was refused and nothing has changed */
static int fl_rsmi_refused(fl_rsmi_code code) {
    return code == FL_RSMI_NO_PERMISSION || code == FL_RSMI_NOT_SUPPORTED || code == FL_RSMI_NOT_YET ||
           code == FL_RSMI_BUSY;
}

static bool plausible(uint32_t count, uint32_t current, uint32_t most) {
    return count >= 1 && count <= most && (current < count || current == UINT32_MAX);
}

/* Exactly one layout fits. If the library filled the new layout, its first word is 0 or 1. Read as the old layout, that
 * means no clocks, or one clock and a current index beyond it (namely its count). If it filled the old layout, its
 * first word is its count: 2 and more is not a bool, and with 1 the current index 0 stands where the new layout has a
 * count. */
bool fl_rsmi_clocks_of(const fl_rsmi_clocks *c, uint32_t *count, uint32_t *current, const uint64_t **hz) {
    if (plausible(c->word[0], c->word[1], 32)) {
        *count = c->old.count;
        *current = c->old.current;
        *hz = c->old.hz;
    } else if (c->word[0] <= 1 && plausible(c->word[1], c->word[2], 33)) {
        *count = c->new.count;
        *current = c->new.current;
        *hz = c->new.hz;
    } else {
        return false;
    }
    *current = *current < *count ? *current : *count;
    return true;
}

/* The library itself writes to both streams where there is no driver; this program reports that itself. */
static fl_rsmi_code init_quietly(const fl_rsmi *r) {
    int kept[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        kept[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
        if (null >= 0 && kept[i] >= 0)
            dup2(null, i + 1);
    }
    const fl_rsmi_code code = r->init(0);
    fflush(stdout);
    for (int i = 0; i < 2; i++)
        if (kept[i] >= 0) {
            dup2(kept[i], i + 1);
            close(kept[i]);
        }
    if (null >= 0)
        close(null);
    return code;
}

fl_status fl_rsmi_open(fl_rsmi *r, fl_diag *d) {
    const char *missing = NULL;
    *r = (fl_rsmi){0};
    r->library = fl_library_open("FOLDLINE_RSMI", NAMES, "ROCm SMI library", r->path, sizeof r->path, d);
    if (!r->library)
        return FL_HARDWARE;
#define FIND(member, must, parameters, newest, older)                                                                  \
    if (!fl_library_find(r->library, newest, older, &r->member) && (must))                                             \
        missing = newest;
    FL_RSMI_CALLS(FIND)
    const fl_rsmi_code code = missing ? FL_RSMI_OK : init_quietly(r);
    if (missing)
        fl_error(d, FL_HARDWARE, "%s has no %s: no ROCm SMI library, or too old", r->path, missing);
    else if (code)
        fl_error(d, FL_HARDWARE, "%s does not start: %s", r->path, fl_rsmi_reason(code));
    if (!missing && !code)
        return FL_OK;
    dlclose(r->library);
    *r = (fl_rsmi){0};
    return FL_HARDWARE;
}

void fl_rsmi_close(fl_rsmi *r) {
    if (!r->library)
        return;
    r->shut_down();
    dlclose(r->library);
    *r = (fl_rsmi){0};
}

/* ---- failures in words ---- */

fl_status fl_rsmi_failed(const fl_rsmi_gpu *g, const char *what, fl_rsmi_code code, fl_diag *d) {
    return fl_error(d, fl_rsmi_refused(code) ? FL_IO : FL_HARDWARE, "GPU %u: %s: %s", g->index, what,
                    fl_rsmi_reason(code));
}
