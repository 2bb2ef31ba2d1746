#include "harness/input/scene/arrivals_spec.h"

#include "sim/base/poisson.h"
#include "traces/io/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 100000000 };

static const char name[] = "poisson";

static fl_status fail(const char *text, const char *what, fl_diag *d) {
    return fl_refuse(d, "arrivals '%s': %s", text, what);
}

static fl_status set(const char *text, const char *key, const char *value, fl_arrivals_spec *spec, double *seconds,
                     fl_diag *d) {
    static const char *const known[] = {"rate", "count", "seconds", "seed"};
    double x;
    int64_t n;
    const bool real = fl_real_parse(value, &x) == FL_NUMBER_OK, whole = fl_int_parse(value, &n) == FL_NUMBER_OK;
    if (!strcmp(key, "rate")) {
        spec->per_s = x;
        return real && x >= 1e-6 && x <= 1e9 ? FL_OK
                                             : fail(text, "rate, expected requests per second from 1e-6 to 1e9", d);
    }
    if (!strcmp(key, "count")) {
        spec->count = (size_t)n;
        return whole && n >= 1 && n <= COUNT_MAX ? FL_OK : fail(text, "count, expected a number from 1 to 1e8", d);
    }
    if (!strcmp(key, "seconds")) {
        *seconds = x;
        return real && x > 0 && x <= 26 * 86400.0 ? FL_OK : fail(text, "seconds, expected above 0, at most 26 days", d);
    }
    if (!strcmp(key, "seed")) {
        spec->seed = (uint64_t)n;
        return whole && n >= 1 ? FL_OK : fail(text, "seed, expected a whole number from 1 on", d);
    }
    const char *near = fl_nearest(key, known, sizeof known / sizeof *known);
    return near ? fl_refuse(d, "arrivals '%s': no '%s', did you mean '%s'?", text, key, near)
                : fail(text, "expected rate=R, count=N or seconds=S, and seed=N", d);
}

static fl_status parse_pairs(const char *text, char *copy, fl_arrivals_spec *spec, fl_diag *d) {
    double seconds = 0;
    char *save = NULL;
    fl_status s = FL_OK;
    for (char *pair = strtok_r(copy, ",", &save); !s && pair; pair = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(pair, '=');
        if (!equals)
            return fail(text, "expected rate=R, count=N or seconds=S, and seed=N", d);
        *equals = 0;
        s = set(text, pair, equals + 1, spec, &seconds, d);
    }
    if (s)
        return s;
    if (!(spec->per_s > 0))
        return fail(text, "no rate, expected rate=R in requests per second", d);
    if (!spec->count == !(seconds > 0))
        return fail(text, "expected either count=N or seconds=S", d);
    if (seconds > 0) {
        const double count = round(seconds * spec->per_s);
        if (!(count >= 1 && count <= COUNT_MAX))
            return fail(text, "rate x seconds, expected from 1 to 1e8 requests", d);
        spec->count = (size_t)count;
    }
    return FL_OK;
}

fl_status fl_arrivals_spec_parse(const char *text, fl_arrivals_spec *spec, fl_diag *d) {
    const size_t size = sizeof name - 1;
    *spec = (fl_arrivals_spec){0};
    if (strncmp(text, name, size) != 0 || (text[size] && text[size] != ':')) {
        spec->file = text;
        return FL_OK;
    }
    char *copy = strdup(text[size] ? text + size + 1 : "");
    fl_status s = copy ? parse_pairs(text, copy, spec, d) : fl_no_memory(d, "the arrivals");
    free(copy);
    return s;
}

fl_status fl_arrivals_make(const fl_arrivals_spec *spec, uint64_t run_seed, uint64_t draw, fl_arrivals *a, fl_diag *d) {
    *a = (fl_arrivals){0};
    if (spec->file)
        return fl_arrivals_read(spec->file, a, d);
    a->t_ns = malloc(spec->count * sizeof *a->t_ns);
    if (!a->t_ns)
        return fl_no_memory(d, "the arrivals");
    a->count = spec->count;
    if (fl_poisson((spec->seed ? spec->seed : run_seed) + draw, spec->per_s, a->t_ns, a->count))
        return FL_OK;
    fl_arrivals_free(a);
    return fl_refuse(d, "%zu arrivals at %g per second go beyond 26 days", spec->count, spec->per_s);
}
