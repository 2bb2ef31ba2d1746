#include "harness/base/cli/kinds_beside.h"

#include "traces/io/gzip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_kinds_beside(const char *path, fl_head *head, char **kinds, fl_diag *d) {
    static const char programs[] = ".programs.csv"; /* x.programs.csv has x.kinds.csv */
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t stem = fl_stem_length(path, programs);
    *kinds = NULL;
    if (fl_is_standard(path))
        return fl_refuse(d, "-o '-' holds one file, but the kinds need another, expected a file name");
    if (!fl_name_ends(path, programs)) {
        const char *dot = memrchr(base, '.', stem - (size_t)(base - path));
        stem = dot ? (size_t)(dot - path) : stem;
    }
    if (asprintf(kinds, "%.*s.kinds.csv", (int)stem, path) < 0) {
        *kinds = NULL;
        return fl_no_memory(d, NULL);
    }
    return fl_head_set(head, "kinds", *kinds + (base - path)) ? FL_OK : fl_no_memory(d, NULL);
}
