/* Which foldline this is. */
#ifndef FL_VERSION_H
#define FL_VERSION_H

#include <stdio.h>

/* "foldline 0.1.0 (1a2b3c4d5e6f)": the version, and the commit that was built where a repository told it; "+" behind it
 * where files had changed since. One line, the same whatever compiled it. */
void fl_version_print(FILE *out);

#endif
