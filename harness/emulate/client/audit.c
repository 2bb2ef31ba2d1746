/* Linker hook (LD_AUDIT): whatever search for the driver's library a program begins, by name or by absolute path, there
 * or not, ends at the simulated one. So an emulated program can never reach a real GPU. */
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define FL_LIBRARY "libnvidia-ml.so"

__attribute__((visibility("default"))) unsigned int la_version(unsigned int version);
__attribute__((visibility("default"))) char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag);

unsigned int la_version(unsigned int version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag) {
    const char *ours = getenv("FOLDLINE_EMULATE_LIBRARY"), *slash = strrchr(name, '/');
    (void)cookie, (void)flag;
    const char *base = slash ? slash + 1 : name;
    const size_t n = sizeof FL_LIBRARY - 1;
    if (ours && !strncmp(base, FL_LIBRARY, n) && (!base[n] || base[n] == '.'))
        return (char *)(uintptr_t)ours;
    return (char *)(uintptr_t)name;
}
