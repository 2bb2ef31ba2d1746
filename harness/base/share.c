#include "harness/base/share.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

bool fl_share_parse(const char *text, double *value, bool *percent) {
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    *percent = end > text && *end == '%';
    if (*percent)
        *value /= 100;
    const char *rest = end + *percent;
    while (isspace((unsigned char)*rest))
        rest++;
    return end > text && !*rest && !errno && !isnan(*value);
}

fl_status fl_share_refuse(const char *what, double value, fl_diag *d) {
    return fl_refuse(d, "%s%g, expected a share: %g or %g%%; %g %% are said as %g%%", what, value, value / 100, value,
                     100 * value, 100 * value);
}
