/* May this process change what NVIDIA's driver lets only the administrator change? The driver asks for CAP_SYS_ADMIN in
 * the initial user namespace: root in a namespace of its own (a rootless container) has every capability there and is
 * refused all the same. */
#pragma once

#include <stdbool.h>

bool fl_privilege_admin(void);
bool fl_privilege_initial(void); /* in the initial user namespace */

/* The same of files like /proc/self/status and /proc/self/uid_map. True where there is no such uid_map: a kernel
 * without user namespaces. */
bool fl_privilege_capable(const char *status);
bool fl_privilege_maps_all(const char *uid_map);
