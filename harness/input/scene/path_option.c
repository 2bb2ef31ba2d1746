#include "harness/input/scene/path_option.h"

#include "sim/base/path.h"

#include <string.h>

fl_status fl_path_option_use(const char *name, fl_diag *d) {
    for (int i = 0; name && i < FL_PATH_COUNT; i++)
        if (!strcmp(name, fl_path_names[i])) {
            fl_path_force((fl_path)i);
            return FL_OK;
        }
    return name ? fl_refuse(d, "--path '%s', expected auto, plain, vector, prefix, events or launches", name) : FL_OK;
}

void fl_path_option_tell(const char *name) {
    if (!name)
        return;
    fputs("paths taken:", stderr);
    for (int i = FL_PATH_PLAIN; i < FL_PATH_COUNT; i++)
        fprintf(stderr, "%s %s %llu", i > FL_PATH_PLAIN ? "," : "", fl_path_names[i],
                (unsigned long long)fl_path_taken((fl_path)i));
    fputc('\n', stderr);
}
