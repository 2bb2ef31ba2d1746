#include "harness/base/share.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool fl_share_parse(const char *text, double *value, bool *percent) {
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    *percent = end > text && !strcmp(end, "%");
    if (*percent) {
        *value /= 100;
        end++;
    }
    return end > text && !*end && !errno && !isnan(*value);
}

fl_status fl_share_refuse(const char *what, double value, fl_diag *d) {
    return fl_refuse(d, "%s%g, expected a share: %g or %g%%; %g %% are said as %g%%", what, value, value / 100, value,
                     100 * value, 100 * value);
}
