#include "harness/base/cli/share.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
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

char *fl_share_text(double value, char buf[FL_SHARE_TEXT]) {
    snprintf(buf, FL_SHARE_TEXT, "%g, expected a share: %g or %g%%; %g %% are said as %g%%", value, value / 100, value,
             100 * value, 100 * value);
    return buf;
}

fl_status fl_share_refuse(const char *what, double value, fl_diag *d) {
    char text[FL_SHARE_TEXT];
    return fl_refuse(d, "%s%s", what, fl_share_text(value, text));
}
