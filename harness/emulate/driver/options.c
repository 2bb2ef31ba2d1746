/* Options of a session: the driver's version, and errors on request. */
#include "harness/emulate/driver/driver.h"

#include "harness/emulate/client/abi.h"
#include "traces/io/io.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the driver's version ---- */

#define STANDARD "550.54.15"
enum { BRANCH_MIN = 450, BRANCH_MAX = 999 };

/* The CUDA version that each branch came with. */
static const struct {
    uint32_t branch, cuda;
} cudas[] = {{450, 11000}, {455, 11010}, {460, 11020}, {465, 11030}, {470, 11040}, {495, 11050}, {510, 11060},
             {515, 11070}, {520, 11080}, {525, 12000}, {530, 12010}, {535, 12020}, {545, 12030}, {550, 12040},
             {555, 12050}, {560, 12060}, {565, 12070}, {570, 12080}, {575, 12090}, {580, 13000}, {590, 13010}};

typedef struct fl_since {
    const char *name;
    uint32_t branch;
} fl_since;
#define FL_ANSWERED(name, since) {#name, since},
#define FL_ABSENT(name, since, arguments) {#name, since},
static const fl_since names[] = {
#include "harness/emulate/client/nvml_names.inc"
};

/* A function that the pattern (fnmatch) matches and whose name has this beginning; NULL = none. */
static const char *fl_driver_name(const char *pattern, const char *beginning) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(names[i].name, beginning, strlen(beginning)) && !fnmatch(pattern, names[i].name, FNM_EXTMATCH))
            return names[i].name;
    return NULL;
}

/* The function whose name is nearest to the text, as a proposal; NULL = none is near. */
static const char *fl_driver_nearest(const char *text) {
    const char *all[sizeof names / sizeof *names];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        all[i] = names[i].name;
    return fl_nearest(text, all, sizeof names / sizeof *names);
}

/* 550, 550.54 or 550.54.15. */
static bool is_version(const char *text) {
    size_t parts = 1, digits = 0;
    for (; *text; text++) {
        if (*text == '.' && digits) {
            parts++;
            digits = 0;
        } else if (*text >= '0' && *text <= '9' && digits < 4) {
            digits++;
        } else {
            return false;
        }
    }
    return digits && parts <= 3;
}

fl_status fl_driver_parse(const char *text, fl_driver *out, fl_diag *d) {
    *out = (fl_driver){.given = text != NULL};
    text = text ? text : STANDARD;
    const unsigned long branch = is_version(text) ? strtoul(text, NULL, 10) : 0;
    if (branch < BRANCH_MIN || branch > BRANCH_MAX)
        return fl_refuse(d, "--driver '%s', expected a version from %d on, such as 535 or 535.104.05", text,
                         BRANCH_MIN);
    snprintf(out->text, sizeof out->text, "%s%s", text, strchr(text, '.') ? "" : ".0");
    out->branch = (uint32_t)branch;
    for (size_t i = 0; i < sizeof cudas / sizeof *cudas && cudas[i].branch <= branch; i++)
        out->cuda = cudas[i].cuda;
    return FL_OK;
}

/* Whether the driver has this function. A function whose first version is not known here counts as present. */
static bool fl_driver_has(const fl_driver *v, const char *name) {
    for (size_t i = 0; v->given && i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, name))
            return names[i].branch <= v->branch;
    return true;
}

/* No one finds a symbol without a name: the search for it ends at the comparison with its name. */
static bool hide(const fl_driver *v, unsigned char *image, size_t size) {
    Elf64_Ehdr eh;
    if (size < sizeof eh)
        return false;
    memcpy(&eh, image, sizeof eh);
    if (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_shoff > size ||
        (size - eh.e_shoff) / sizeof(Elf64_Shdr) < eh.e_shnum)
        return false;
    const Elf64_Shdr *sections = (const void *)(image + eh.e_shoff);
    for (size_t i = 0; i < eh.e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= eh.e_shnum)
            continue;
        const Elf64_Shdr *texts = &sections[sections[i].sh_link];
        if (sections[i].sh_offset + sections[i].sh_size > size || texts->sh_offset + texts->sh_size > size)
            return false;
        Elf64_Sym *symbol = (void *)(image + sections[i].sh_offset);
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbol; k++)
            if (symbol[k].st_name < texts->sh_size &&
                !fl_driver_has(v, (const char *)image + texts->sh_offset + symbol[k].st_name))
                symbol[k].st_name = 0;
        return true;
    }
    return false;
}

static bool write_all(int fd, const unsigned char *bytes, size_t size) {
    for (size_t at = 0; at < size;) {
        const ssize_t n = write(fd, bytes + at, size - at);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool read_all(int fd, unsigned char *bytes, size_t size) {
    for (size_t at = 0; at < size;) {
        const ssize_t n = read(fd, bytes + at, size - at);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

fl_status fl_driver_library(const fl_driver *v, const char *from, const char *to, fl_diag *d) {
    struct stat st;
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    const size_t size = in >= 0 && !fstat(in, &st) && st.st_size > 0 ? (size_t)st.st_size : 0;
    unsigned char *image = size ? malloc(size) : NULL;
    const bool whole = image && read_all(in, image, size) && hide(v, image, size);
    if (in >= 0)
        close(in);
    const int out = whole ? open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755) : -1;
    const bool made = out >= 0 && write_all(out, image, size);
    if (out >= 0)
        close(out);
    free(image);
    return made ? FL_OK : fl_error(d, FL_IO, "cannot make a library of driver %s from %s", v->text, from);
}

/* ---- errors on request ---- */

typedef struct fl_error_name {
    const char *name;
    int32_t result;
    const char *call; /* the calls that it concerns if the user names none */
} fl_error_name;

static const fl_error_name error_names[] = {
    {"no-permission", NVML_NO_PERMISSION, "nvmlDevice@(Set|Reset)*"},
    {"not-supported", NVML_NOT_SUPPORTED, ""},
    {"lost", NVML_GPU_IS_LOST, ""},
    {"timeout", NVML_TIMEOUT, ""},
    {"driver-gone", NVML_DRIVER_NOT_LOADED, "nvml*"},
    {"in-use", NVML_IN_USE, "nvmlDevice@(Set|Reset)*"},
    {"unknown", NVML_UNKNOWN, ""},
    {"without-effect", NVML_SUCCESS, "nvmlDeviceSet*"},
};
enum { NAMES = sizeof error_names / sizeof *error_names };

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
        candidate[k] = error_names[k].name;
    while (i < NAMES && strcmp(copy, error_names[i].name))
        i++;
    if (i == NAMES) {
        const char *near = fl_nearest(copy, candidate, NAMES);
        return fl_refuse(d, "--error '%s': unknown error, did you mean '%s'?", text, near ? near : error_names[0].name);
    }
    out->result = error_names[i].result;
    snprintf(out->call, sizeof out->call, "%s", error_names[i].call);
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
