/* Standing before the C library (LD_PRELOAD), and reaching what stands behind. */
#pragma once

#include <dlfcn.h>

#define FL_SHOWN __attribute__((visibility("default")))

/* The C library's own, found when first used: REAL(nanosleep)(...). */
#define REAL(name)                                                                                                     \
    __extension__({                                                                                                    \
        static __typeof__(&name) found_;                                                                               \
        if (!found_)                                                                                                   \
            *(void **)&found_ = dlsym(RTLD_NEXT, #name);                                                               \
        found_;                                                                                                        \
    })
