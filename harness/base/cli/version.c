#include "harness/base/cli/version.h"

#if __has_include("harness/base/cli/commit.h") /* made by the build (commit.cmake) */
#include "harness/base/cli/commit.h"
#else
#define FL_COMMIT ""
#endif

void fl_version_print(FILE *out) {
    const char *commit = FL_COMMIT;
    fprintf(out, "foldline %s%s%s%s\n", FL_VERSION, *commit ? " (" : "", commit, *commit ? ")" : "");
}
