/* NVTX 3 as a tool meets it: the program's NVTX asks the library that NVTX_INJECTION64_PATH names which calls it wants.
 * Own declarations. */
#pragma once

#include <stdint.h>

typedef enum fl_nvtx_module { FL_NVTX_CORE = 1, FL_NVTX_CORE2 = 5 } fl_nvtx_module;
enum { FL_NVTX_CALLBACKS = 1 /* the table that lists the modules */ };
enum { FL_NVTX_ASCII = 1, FL_NVTX_UNICODE = 2, FL_NVTX_REGISTERED = 3 };
enum { FL_NVTX_NO_TRACKING = -2 /* what a push returns where nobody counts how deep it is */ };

enum { /* callbacks of CORE */
       FL_NVTX_MARK_EX = 1,
       FL_NVTX_MARK_A,
       FL_NVTX_MARK_W,
       FL_NVTX_RANGE_START_EX,
       FL_NVTX_RANGE_START_A,
       FL_NVTX_RANGE_START_W,
       FL_NVTX_RANGE_END,
       FL_NVTX_RANGE_PUSH_EX,
       FL_NVTX_RANGE_PUSH_A,
       FL_NVTX_RANGE_PUSH_W,
       FL_NVTX_RANGE_POP
};

enum { /* of CORE2 */
       FL_NVTX_DOMAIN_MARK_EX = 1,
       FL_NVTX_DOMAIN_RANGE_START_EX,
       FL_NVTX_DOMAIN_RANGE_END,
       FL_NVTX_DOMAIN_RANGE_PUSH_EX,
       FL_NVTX_DOMAIN_RANGE_POP,
       FL_NVTX_DOMAIN_RESOURCE_CREATE,
       FL_NVTX_DOMAIN_RESOURCE_DESTROY,
       FL_NVTX_DOMAIN_NAME_CATEGORY_A,
       FL_NVTX_DOMAIN_NAME_CATEGORY_W,
       FL_NVTX_DOMAIN_REGISTER_STRING_A,
       FL_NVTX_DOMAIN_REGISTER_STRING_W
};

typedef struct fl_nvtx_attributes { /* nvtxEventAttributes_t */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message; /* char, wchar_t, or what the registration of a string returned */
} fl_nvtx_attributes;

typedef void (*fl_nvtx_function)(void);
typedef struct fl_nvtx_callbacks {
    uint64_t size; /* of this struct */
    /* Where the program's NVTX keeps the function of each callback, from 1 on; *count entries with the empty first. */
    int (*table)(fl_nvtx_module module, fl_nvtx_function ***slot, unsigned *count);
} fl_nvtx_callbacks;
typedef const void *fl_nvtx_export(uint32_t table);

/* Has mark(name) called at every mark and at the start of every range. A program may hold several copies of NVTX, one
 * in each of its libraries; each asks for itself. */
void fl_nvtx_attach(fl_nvtx_export *get, void (*mark)(const char *name));
