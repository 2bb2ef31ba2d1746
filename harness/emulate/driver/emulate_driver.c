#include "harness/emulate/driver/emulate_driver.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

const char *fl_driver_name(const char *pattern, const char *beginning) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(names[i].name, beginning, strlen(beginning)) && !fnmatch(pattern, names[i].name, FNM_EXTMATCH))
            return names[i].name;
    return NULL;
}

const char *fl_driver_nearest(const char *text) {
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

bool fl_driver_has(const fl_driver *v, const char *name) {
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
