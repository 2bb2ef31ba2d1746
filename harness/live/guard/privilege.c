#include "harness/live/guard/privilege.h"

#include <inttypes.h>
#include <stdio.h>

enum { CAP_SYS_ADMIN_BIT = 21 };

bool fl_privilege_capable(const char *status) {
    char line[256];
    uint64_t caps = 0;
    FILE *f = fopen(status, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "CapEff: %" SCNx64, &caps) == 1)
            break;
    if (f)
        fclose(f);
    return caps >> CAP_SYS_ADMIN_BIT & 1;
}

/* The initial namespace maps every id to itself: 0 0 4294967295. No other may. */
bool fl_privilege_maps_all(const char *uid_map) {
    uint64_t inside = 1, outside = 1, count = 0;
    FILE *f = fopen(uid_map, "re");
    if (!f)
        return true;
    const bool read = fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside, &count) == 3;
    fclose(f);
    return read && !inside && !outside && count == UINT32_MAX;
}

bool fl_privilege_initial(void) { return fl_privilege_maps_all("/proc/self/uid_map"); }

bool fl_privilege_admin(void) { return fl_privilege_capable("/proc/self/status") && fl_privilege_initial(); }
