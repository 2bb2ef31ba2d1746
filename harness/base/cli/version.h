/* The version of foldline. */
#pragma once

#include <stdio.h>

/* "foldline 0.1.0 (1a2b3c4d5e6f)": the version and the commit of the build, where a repository told it, with "+" after
 * it where files had changed since. One line, whatever compiler built it. */
void fl_version_print(FILE *out);
