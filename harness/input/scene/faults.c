/* Parses --fault. */
#include "harness/input/scene/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/input/scene/scene.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum key { KEY_GPU, KEY_SERVER, KEY_SIGNAL, KEY_CONTROL, KEY_FROM, KEY_FOR, KEY_UNTIL, KEY_COUNT } key;
static const char *const key_name[KEY_COUNT] = {"gpu", "server", "signal", "control", "from_s", "for_s", "until_s"};

#define SIGNAL_KEYS                                                                                                    \
    (1u << KEY_GPU | 1u << KEY_SERVER | 1u << KEY_SIGNAL | 1u << KEY_FROM | 1u << KEY_FOR | 1u << KEY_UNTIL)
#define CONTROL_KEYS (1u << KEY_GPU | 1u << KEY_CONTROL | 1u << KEY_FROM | 1u << KEY_FOR | 1u << KEY_UNTIL)
static const struct {
    const char *name;
    unsigned keys;
    const char *expected;
} types[FL_FAULT_TYPE_COUNT] = {
    [FL_FAULT_DROP] = {"drop", SIGNAL_KEYS, "gpu or server, signal, from_s, for_s or until_s"},
    [FL_FAULT_FREEZE] = {"freeze", SIGNAL_KEYS, "gpu or server, signal, from_s, for_s or until_s"},
    [FL_FAULT_REFUSE] = {"refuse", CONTROL_KEYS, "gpu, control, from_s, for_s or until_s"},
    [FL_FAULT_LOST] = {"lost", 1u << KEY_GPU | 1u << KEY_FROM, "gpu or from_s"},
};

typedef struct request { /* the text taken apart; NULL = key not given */
    const char *text;    /* as it was written, for messages */
    fl_fault_type type;
    const char *value[KEY_COUNT];
} request;

static fl_status find_type(request *r, const char *name, fl_diag *d) {
    const char *names[FL_FAULT_TYPE_COUNT];
    for (int i = 0; i < FL_FAULT_TYPE_COUNT; i++) {
        names[i] = types[i].name;
        if (!strcmp(name, names[i])) {
            r->type = (fl_fault_type)i;
            return FL_OK;
        }
    }
    const char *near = fl_nearest(name, names, FL_FAULT_TYPE_COUNT);
    if (near)
        return fl_refuse(d, "fault '%s': no '%s', did you mean '%s'?", r->text, name, near);
    return fl_refuse(d, "fault '%s': no '%s', expected drop, freeze, refuse or lost", r->text, name);
}

/* One "key=value" in place: the '=' becomes the end of the key. */
static fl_status take_pair(request *r, char *pair, fl_diag *d) {
    char *equals = strchr(pair, '=');
    if (!equals || equals == pair)
        return fl_refuse(d, "fault '%s': '%s', expected key=value", r->text, pair);
    *equals = 0;
    int k = 0;
    while (k < KEY_COUNT && strcmp(pair, key_name[k]) != 0)
        k++;
    const char *names[KEY_COUNT];
    size_t count = 0;
    for (int i = 0; i < KEY_COUNT; i++)
        if (types[r->type].keys >> i & 1)
            names[count++] = key_name[i];
    const char *near = k < KEY_COUNT ? NULL : fl_nearest(pair, names, count);
    if (near)
        return fl_refuse(d, "fault '%s': no '%s', did you mean '%s'?", r->text, pair, near);
    if (k == KEY_COUNT || !(types[r->type].keys >> k & 1))
        return fl_refuse(d, "fault '%s': %s takes no '%s', expected %s", r->text, types[r->type].name, pair,
                         types[r->type].expected);
    if (r->value[k])
        return fl_refuse(d, "fault '%s': '%s' is given twice", r->text, pair);
    r->value[k] = equals + 1;
    return FL_OK;
}

static fl_status split(request *r, char *copy, fl_diag *d) {
    char *rest = strchr(copy, ':');
    if (rest)
        *rest++ = 0;
    fl_status s = find_type(r, copy, d);
    while (!s && rest) {
        char *pair = rest, *comma = strchr(rest, ',');
        rest = comma ? comma + 1 : NULL;
        if (comma)
            *comma = 0;
        s = take_pair(r, pair, d);
    }
    return s;
}

/* ---- values ---- */

static fl_status read_gpu(const request *r, int32_t *gpu, fl_diag *d) {
    const char *text = r->value[KEY_GPU];
    int64_t n = 0;
    if (!strcmp(text, "all"))
        *gpu = FL_FAULT_EVERY_GPU;
    else if (!strcmp(text, "host") && r->type != FL_FAULT_LOST)
        *gpu = FL_FAULT_HOST;
    else if (fl_int_parse(text, &n) == FL_NUMBER_OK && n >= 0 && n <= INT32_MAX)
        *gpu = (int32_t)n;
    else
        return fl_refuse(d, "fault '%s': gpu '%s', expected an index from 0%s", r->text, text,
                         r->type == FL_FAULT_LOST ? " or all" : ", all or host");
    return FL_OK;
}

static fl_status read_server(const request *r, int32_t *gpu, fl_diag *d) {
    const char *text = r->value[KEY_SERVER];
    int64_t n = 0;
    if (r->value[KEY_GPU])
        return fl_refuse(d, "fault '%s': gpu and server, expected one of them", r->text);
    if (!strcmp(text, "all"))
        *gpu = FL_FAULT_EVERY_SERVER;
    else if (fl_int_parse(text, &n) == FL_NUMBER_OK && n >= 0 && n <= UINT16_MAX)
        *gpu = FL_FAULT_SERVER - (int32_t)n;
    else
        return fl_refuse(d, "fault '%s': server '%s', expected an index from 0 or all", r->text, text);
    return FL_OK;
}

static const char *nearest_row(const char *name, const fl_row_set *set, size_t sets) {
    const char *names[64];
    size_t count = 0;
    for (size_t i = 0; i < sets; i++)
        for (size_t k = 0; k < fl_rows_count(set[i]) && count < 64; k++)
            names[count++] = fl_rows_at(set[i], k)->name;
    return fl_nearest(name, names, count);
}

/* The signal of a server. */
static fl_status read_server_row(const request *r, fl_fault *out, fl_diag *d) {
    const fl_row_set set = FL_ROWS_SERVER_SIGNAL;
    const char *name = r->value[KEY_SIGNAL], *near;
    if (!name || !strcmp(name, "all") || (out->row = fl_rows_find(set, name)) >= 0)
        return FL_OK;
    if (fl_rows_find(FL_ROWS_GPU_SIGNAL, name) >= 0 || fl_rows_find(FL_ROWS_HOST_SIGNAL, name) >= 0)
        return fl_refuse(d, "fault '%s': %s is no signal of a server, expected gpu= in place of server=", r->text,
                         name);
    if ((near = nearest_row(name, &set, 1)))
        return fl_refuse(d, "fault '%s': no signal '%s', did you mean '%s'?", r->text, name, near);
    return fl_refuse(d, "fault '%s': no signal '%s', expected one of a server or all", r->text, name);
}

/* The signal or control; where no gpu is given, whose it is says whether the host is meant. */
static fl_status read_row(const request *r, fl_fault *out, fl_diag *d) {
    const bool controls = r->type == FL_FAULT_REFUSE, given = r->value[KEY_GPU];
    const char *what = controls ? "control" : "signal", *name = r->value[controls ? KEY_CONTROL : KEY_SIGNAL];
    const fl_row_set set[3] = {controls ? FL_ROWS_GPU_CONTROL : FL_ROWS_GPU_SIGNAL,
                               controls ? FL_ROWS_HOST_CONTROL : FL_ROWS_HOST_SIGNAL, FL_ROWS_SERVER_SIGNAL};
    if (!name || !strcmp(name, "all"))
        return FL_OK;
    const int on_gpu = fl_rows_find(set[0], name), on_host = fl_rows_find(set[1], name);
    const bool host = given ? out->gpu == FL_FAULT_HOST : on_gpu < 0 && on_host >= 0;
    if (!controls && host && on_host >= 0 && FL_HOST_KNOWS >> on_host & 1)
        return fl_refuse(d, "fault '%s': %s is what the host itself knows and cannot fail, expected a sensor", r->text,
                         name);
    if ((host ? on_host : on_gpu) >= 0) {
        out->gpu = host ? FL_FAULT_HOST : out->gpu;
        out->row = host ? on_host : on_gpu;
        return FL_OK;
    }
    if (!controls && on_gpu < 0 && on_host < 0 && fl_rows_find(FL_ROWS_SERVER_SIGNAL, name) >= 0) {
        if (given)
            return fl_refuse(d, "fault '%s': %s is a signal of a server, expected server= in place of gpu=", r->text,
                             name);
        out->gpu = FL_FAULT_EVERY_SERVER;
        return read_server_row(r, out, d);
    }
    if (on_gpu >= 0 || on_host >= 0)
        return fl_refuse(d, "fault '%s': %s is a %s of %s, expected gpu=%s", r->text, name, what,
                         host ? "a GPU" : "the host", host ? "an index or all" : "host");
    const char *near = nearest_row(name, &set[host], given ? 1 : controls ? 2 : 3);
    if (near)
        return fl_refuse(d, "fault '%s': no %s '%s', did you mean '%s'?", r->text, what, name, near);
    return fl_refuse(d, "fault '%s': no %s '%s', expected one of the contract or all", r->text, what, name);
}

#define SECONDS_MAX 1e9 /* 31 years, well within 64 bits of nanoseconds */

static fl_status read_seconds(const request *r, key k, int64_t *ns, fl_diag *d) {
    double seconds = 0;
    if (fl_real_parse(r->value[k], &seconds) != FL_NUMBER_OK || !(seconds >= 0 && seconds <= SECONDS_MAX))
        return fl_refuse(d, "fault '%s': %s '%s', expected seconds from 0 to %g", r->text, key_name[k], r->value[k],
                         SECONDS_MAX);
    *ns = llround(seconds * 1e9);
    return FL_OK;
}

static fl_status read_times(const request *r, fl_fault *out, fl_diag *d) {
    fl_status s = FL_OK;
    if (r->value[KEY_FOR] && r->value[KEY_UNTIL])
        return fl_refuse(d, "fault '%s': for_s and until_s, expected one of them", r->text);
    if (r->value[KEY_FROM])
        s = read_seconds(r, KEY_FROM, &out->from_ns, d);
    if (!s && r->value[KEY_UNTIL])
        s = read_seconds(r, KEY_UNTIL, &out->until_ns, d);
    if (!s && r->value[KEY_FOR] && !(s = read_seconds(r, KEY_FOR, &out->until_ns, d)))
        out->until_ns += out->from_ns;
    if (!s && out->until_ns <= out->from_ns)
        s = fl_refuse(d, "fault '%s': ends no later than it begins, expected %s", r->text,
                      r->value[KEY_FOR] ? "for_s > 0" : "until_s > from_s");
    return s;
}

fl_status fl_fault_spec_parse(const char *text, fl_fault *out, fl_diag *d) {
    *out = (fl_fault){.gpu = FL_FAULT_EVERY_GPU, .row = FL_FAULT_EVERY_ROW, .until_ns = FL_FAULT_FOR_EVER};
    request r = {.text = text};
    char *copy = strdup(text);
    if (!copy)
        return fl_no_memory(d, NULL);
    fl_status s = split(&r, copy, d);
    out->type = r.type;
    if (!s && r.type == FL_FAULT_LOST && !r.value[KEY_GPU])
        s = fl_refuse(d, "fault '%s': it does not say which GPU is lost, expected gpu=an index or gpu=all", text);
    if (!s && r.value[KEY_GPU])
        s = read_gpu(&r, &out->gpu, d);
    if (!s && r.value[KEY_SERVER])
        s = read_server(&r, &out->gpu, d);
    if (!s)
        s = r.value[KEY_SERVER] ? read_server_row(&r, out, d) : read_row(&r, out, d);
    if (!s)
        s = read_times(&r, out, d);
    free(copy);
    return s;
}

fl_status fl_fault_specs_parse(const fl_texts *texts, fl_fault **out, fl_diag *d) {
    *out = NULL;
    if (!texts->count)
        return FL_OK;
    fl_fault *list = calloc(texts->count, sizeof *list);
    fl_status s = list ? FL_OK : fl_no_memory(d, NULL);
    for (size_t i = 0; !s && i < texts->count; i++)
        s = fl_fault_spec_parse(texts->item[i], &list[i], d);
    if (s)
        free(list);
    else
        *out = list;
    return s;
}
