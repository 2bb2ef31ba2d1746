#include "traces/io/duration.h"

#include <stdlib.h>
#include <string.h>

fl_status fl_duration_parse(const char *text, int64_t *ns, fl_diag *d) {
    static const struct {
        const char *unit;
        double ns;
    } UNITS[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
    char *end;
    const double value = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof UNITS / sizeof *UNITS; i++)
        if (!strcmp(end, UNITS[i].unit) && value > 0 && value * UNITS[i].ns >= 1 && value * UNITS[i].ns < 9e18) {
            *ns = (int64_t)(value * UNITS[i].ns);
            return FL_OK;
        }
    return fl_refuse(d, "'%.40s' is not a time, expected one such as 60s, 5m, 1h or 500ms", text);
}
