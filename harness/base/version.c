#include "harness/base/version.h"

#include "harness/base/commit.h"

void fl_version_print(FILE *out) {
    const char *commit = FL_COMMIT;
    fprintf(out, "foldline %s%s%s%s\n", FL_VERSION, *commit ? " (" : "", commit, *commit ? ")" : "");
}
