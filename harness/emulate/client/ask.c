#include "harness/emulate/client/ask.h"

#include "harness/emulate/client/link.h"

#include <string.h>

nvmlReturn_t fl_ask_for(const char *call, const fl_question *q, void *out, unsigned int size, unsigned int *got) {
    fl_answer answer;
    fl_ask ask;
    memset(&ask, 0, sizeof ask);
    ask.op = q->op;
    ask.gpu = (uint32_t)((uintptr_t)q->device - FL_HANDLE_BASE - 1);
    if (!q->device || (uintptr_t)q->device > UINT32_MAX)
        ask.gpu = UINT32_MAX;
    ask.a = q->a;
    ask.b = q->b;
    ask.c = q->c;
    ask.wide = q->wide;
    strncpy(ask.call, call, sizeof ask.call - 1);
    if (q->text)
        strncpy(ask.text, q->text, sizeof ask.text - 1);
    if (fl_link_ask(&ask, &answer))
        return NVML_DRIVER_NOT_LOADED;
    if (answer.result == NVML_SUCCESS && out && size)
        memcpy(out, answer.bytes, answer.size < size ? answer.size : size);
    if (got)
        *got = answer.size;
    return answer.result;
}

nvmlReturn_t fl_ask_begun(const char *call) {
    unsigned int n;
    const fl_question q = {.op = FL_ASK_COUNT};
    return fl_ask_for(call, &q, &n, sizeof n, NULL);
}

nvmlReturn_t fl_ask_wrong(const char *call) {
    const nvmlReturn_t r = fl_ask_begun(call);
    return r ? r : NVML_INVALID_ARGUMENT;
}

nvmlReturn_t fl_ask_wide(const char *call, nvmlDevice_t d, fl_ask_number n, unsigned int b, unsigned long long *out) {
    fl_question q = {.op = FL_ASK_NUMBER, .device = d, .a = n, .b = b};
    return out ? fl_ask_for(call, &q, out, sizeof *out, NULL) : fl_ask_wrong(call);
}

nvmlReturn_t fl_ask_uint(const char *call, nvmlDevice_t d, fl_ask_number n, unsigned int b, unsigned int *out) {
    unsigned long long wide;
    if (!out)
        return fl_ask_wrong(call);
    nvmlReturn_t r = fl_ask_wide(call, d, n, b, &wide);
    if (r == NVML_SUCCESS)
        *out = (unsigned int)wide;
    return r;
}

nvmlReturn_t fl_ask_chars(const char *call, nvmlDevice_t d, fl_ask_text which, char *out, unsigned int length) {
    char text[96] = "";
    unsigned int got = 0;
    if (!out)
        return fl_ask_wrong(call);
    fl_question q = {.op = FL_ASK_TEXT, .device = d, .a = which};
    nvmlReturn_t r = fl_ask_for(call, &q, text, sizeof text, &got);
    if (r != NVML_SUCCESS)
        return r;
    if (got > length)
        return NVML_INSUFFICIENT_SIZE;
    memcpy(out, text, got);
    return NVML_SUCCESS;
}

nvmlReturn_t fl_ask_set_to(const char *call, nvmlDevice_t d, fl_ask_set what, unsigned int b, unsigned int c) {
    fl_question q = {.op = FL_ASK_SET, .device = d, .a = what, .b = b, .c = c};
    return fl_ask_for(call, &q, NULL, 0, NULL);
}

nvmlReturn_t fl_ask_handle(const char *call, fl_question q, nvmlDevice_t *device) {
    unsigned int index = 0;
    if (!device)
        return fl_ask_wrong(call);
    nvmlReturn_t r = fl_ask_for(call, &q, &index, sizeof index, NULL);
    if (r == NVML_SUCCESS)
        *device = (nvmlDevice_t)(uintptr_t)(FL_HANDLE_BASE + index + 1);
    return r;
}
