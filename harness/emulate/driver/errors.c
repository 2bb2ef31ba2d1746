#include "harness/emulate/driver/errors.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/driver/emulate_driver.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fl_error_name {
    const char *name;
    int32_t result;
    const char *call; /* the calls that it concerns if the user names none */
} fl_error_name;

static const fl_error_name names[] = {
    {"no-permission", NVML_NO_PERMISSION, "nvmlDevice@(Set|Reset)*"},
    {"not-supported", NVML_NOT_SUPPORTED, ""},
    {"lost", NVML_GPU_IS_LOST, ""},
    {"timeout", NVML_TIMEOUT, ""},
    {"driver-gone", NVML_DRIVER_NOT_LOADED, "nvml*"},
    {"in-use", NVML_IN_USE, "nvmlDevice@(Set|Reset)*"},
    {"unknown", NVML_UNKNOWN, ""},
    {"without-effect", NVML_SUCCESS, "nvmlDeviceSet*"},
};
enum { NAMES = sizeof names / sizeof *names };

static fl_status bad_request(const char *text, fl_diag *d, const char *why) {
    return fl_refuse(d, "--error '%s': %s", text, why);
}

static fl_status take_pair(const char *text, char *pair, fl_refusal *out, double *for_s, fl_diag *d) {
    char *value = strchr(pair, '='), *end;
    if (!value)
        return bad_request(text, d, "expected KEY=VALUE pairs: gpu, call, from_s, for_s");
    *value++ = 0;
    const double number = strtod(value, &end);
    const bool real = end != value && !*end && number >= 0 && number < 1e9;
    if (!strcmp(pair, "call") && *value && strlen(value) < sizeof out->call) {
        snprintf(out->call, sizeof out->call, "%s", value);
        return FL_OK;
    }
    if (!strcmp(pair, "call") || (strcmp(pair, "gpu") && strcmp(pair, "from_s") && strcmp(pair, "for_s")))
        return bad_request(text, d, "expected the keys gpu, call, from_s, for_s");
    if (!real || (!strcmp(pair, "gpu") && (number != floor(number) || number > 1023)))
        return bad_request(text, d, "expected a number that is not negative, for gpu a whole one");
    if (!strcmp(pair, "gpu"))
        out->gpu = (int32_t)number;
    else if (!strcmp(pair, "from_s"))
        out->from_ns = (int64_t)(number * 1e9);
    else
        *for_s = number;
    return FL_OK;
}

/* A pattern that matches no call would let a test pass that tests nothing. */
static fl_status check_call(const char *text, const fl_refusal *r, fl_diag *d) {
    const bool sets = r->result == NVML_SUCCESS; /* for "without effect": only sets have an effect */
    if (!r->call[0] || fl_driver_name(r->call, sets ? "nvmlDeviceSet" : "") ||
        (sets && fl_driver_name(r->call, "nvmlDeviceReset")))
        return FL_OK;
    if (sets && fl_driver_name(r->call, ""))
        return bad_request(text, d, "the call sets nothing, expected one that sets clocks or limits");
    const char *near = fl_driver_nearest(r->call);
    return fl_refuse(d, "--error '%s': NVML has no function '%s'%s%s%s", text, r->call, near ? ", did you mean '" : "",
                     near ? near : "", near ? "'?" : "");
}

fl_status fl_refusal_parse(const char *text, fl_refusal *out, fl_diag *d) {
    char copy[256];
    double for_s = -1;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return bad_request(text, d, "too long");
    char *rest = strchr(copy, ':');
    if (rest)
        *rest++ = 0;
    *out = (fl_refusal){.gpu = -1, .until_ns = INT64_MAX};
    const char *candidate[NAMES];
    size_t i = 0;
    for (size_t k = 0; k < NAMES; k++)
        candidate[k] = names[k].name;
    while (i < NAMES && strcmp(copy, names[i].name))
        i++;
    if (i == NAMES) {
        const char *near = fl_nearest(copy, candidate, NAMES);
        return fl_refuse(d, "--error '%s': unknown error, did you mean '%s'?", text, near ? near : names[0].name);
    }
    out->result = names[i].result;
    snprintf(out->call, sizeof out->call, "%s", names[i].call);
    fl_status s = FL_OK;
    for (char *save = NULL, *pair = rest ? strtok_r(rest, ",", &save) : NULL; !s && pair;
         pair = strtok_r(NULL, ",", &save))
        s = take_pair(text, pair, out, &for_s, d);
    if (!s)
        s = check_call(text, out, d);
    if (!s && for_s >= 0)
        out->until_ns = out->from_ns + (int64_t)(for_s * 1e9);
    return s;
}
