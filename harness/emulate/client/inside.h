/* What the files of harness/emulate/client share. Other modules include the public header alone. */
#pragma once

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"

/* How the functions of the library ask: each is a line that says what. */

/* Declares and begins an exported function. */
#define FL_EXPORT(name, ...)                                                                                           \
    __attribute__((visibility("default"))) nvmlReturn_t name(__VA_ARGS__);                                             \
    nvmlReturn_t name(__VA_ARGS__)

typedef struct fl_question {
    fl_ask_op op;
    nvmlDevice_t device;
    unsigned int a, b, c;
    unsigned long long wide;
    const char *text;
} fl_question;

/* Up to `size` bytes of the answer into out; *got, where not NULL, takes how many there were. */
nvmlReturn_t fl_ask_for(const char *call, const fl_question *q, void *out, unsigned int size, unsigned int *got);
/* Whether the process has begun, or what was asked to go wrong with the call. */
nvmlReturn_t fl_ask_begun(const char *call);
/* An argument is wrong: NVML_INVALID_ARGUMENT, unless the process has not begun: the driver's library looks at that
 * first. */
nvmlReturn_t fl_ask_wrong(const char *call);
/* One number (FL_ASK_NUMBER). NULL out: as fl_ask_wrong. */
nvmlReturn_t fl_ask_wide(const char *call, nvmlDevice_t d, fl_ask_number n, unsigned int b, unsigned long long *out);
nvmlReturn_t fl_ask_uint(const char *call, nvmlDevice_t d, fl_ask_number n, unsigned int b, unsigned int *out);
/* A text that must fit `length` with its end. */
nvmlReturn_t fl_ask_chars(const char *call, nvmlDevice_t d, fl_ask_text which, char *out, unsigned int length);
/* The device that a question for an index finds. */
nvmlReturn_t fl_ask_handle(const char *call, fl_question q, nvmlDevice_t *device);
nvmlReturn_t fl_ask_set_to(const char *call, nvmlDevice_t d, fl_ask_set what, unsigned int b, unsigned int c);

/* Functions of one shape. Most readings are one number. */
#define FL_READ(name, number)                                                                                          \
    FL_EXPORT(name, nvmlDevice_t d, unsigned int *out) { return fl_ask_uint(__func__, d, number, 0, out); }

#define FL_READ_CONSTANT(name, value)                                                                                  \
    FL_EXPORT(name, nvmlDevice_t d, unsigned int *out) {                                                               \
        return fl_ask_uint(__func__, d, FL_NUMBER_CONSTANT, value, out);                                               \
    }
