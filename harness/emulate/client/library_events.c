/* Simulated NVML: events. The server keeps the sets and what came; a wait asks it again and again, asleep in between,
 * so that it takes the time of the session, virtual or not. */
#include "harness/emulate/client/ask.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 10u /* between two looks; what comes and goes in between is counted by the server all the same */

_Static_assert(sizeof(nvmlEventData_t) == 32 && sizeof(nvmlEventData_v1_t) == 24, "layout of nvmlEventData_t");

FL_EXPORT(nvmlEventSetCreate, nvmlEventSet_t *set) {
    unsigned int number = 0;
    const fl_question q = {.op = FL_ASK_EVENT_SET};
    const nvmlReturn_t r = set ? fl_ask_for(__func__, &q, &number, sizeof number, NULL) : fl_ask_wrong(__func__);
    if (!r)
        *set = (nvmlEventSet_t)(uintptr_t)number;
    return r;
}
FL_EXPORT(nvmlEventSetFree, nvmlEventSet_t set) {
    const fl_question q = {.op = FL_ASK_EVENT_FREE, .a = (unsigned int)(uintptr_t)set};
    return fl_ask_for(__func__, &q, NULL, 0, NULL);
}
FL_EXPORT(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t d, unsigned long long *kinds) {
    return fl_ask_wide(__func__, d, FL_NUMBER_CONSTANT, NVML_EVENT_PSTATE | NVML_EVENT_XID | NVML_EVENT_CLOCK, kinds);
}
FL_EXPORT(nvmlDeviceRegisterEvents, nvmlDevice_t d, unsigned long long kinds, nvmlEventSet_t set) {
    const fl_question q = {.op = FL_ASK_EVENT_ADD, .device = d, .a = (unsigned int)(uintptr_t)set, .wide = kinds};
    return fl_ask_for(__func__, &q, NULL, 0, NULL);
}

static nvmlReturn_t wait_for(const char *call, nvmlEventSet_t set, nvmlEventData_t *out, unsigned int timeout_ms) {
    fl_ask_event event;
    const fl_question q = {.op = FL_ASK_EVENT_NEXT, .a = (unsigned int)(uintptr_t)set};
    for (unsigned int left = timeout_ms;;) {
        const nvmlReturn_t r = out ? fl_ask_for(call, &q, &event, sizeof event, NULL) : fl_ask_wrong(call);
        if (!r)
            *out = (nvmlEventData_t){.device = (nvmlDevice_t)(uintptr_t)(FL_HANDLE_BASE + event.gpu + 1),
                                     .eventType = event.kind,
                                     .eventData = event.data,
                                     .gpuInstanceId = ~0u,
                                     .computeInstanceId = ~0u};
        if (r != NVML_TIMEOUT || !left)
            return r;
        const unsigned int ms = left < LOOK_MS ? left : LOOK_MS;
        struct timespec pause = {0, (long)ms * 1000000};
        while (nanosleep(&pause, &pause)) { /* a signal's handler has run: the rest of it */
        }
        left -= ms;
    }
}
FL_EXPORT(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *out, unsigned int timeout_ms) {
    return wait_for(__func__, set, out, timeout_ms);
}
FL_EXPORT(nvmlEventSetWait, nvmlEventSet_t set, nvmlEventData_v1_t *out, unsigned int timeout_ms) {
    nvmlEventData_t event;
    const nvmlReturn_t r = wait_for(__func__, set, out ? &event : NULL, timeout_ms);
    if (!r)
        *out = (nvmlEventData_v1_t){event.device, event.eventType, event.eventData};
    return r;
}
