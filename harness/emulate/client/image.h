/* What a program's file says of it before it starts. Both sides ask: the server, and the hook before an exec. */
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

typedef enum fl_image_kind {
    FL_IMAGE_HOOKED, /* the dynamic linker starts it, so that it loads our library (or it is a script) */
    FL_IMAGE_GO,     /* it makes system calls past the C library */
    FL_IMAGE_STATIC,
    FL_IMAGE_NARROW, /* not a 64-bit program */
} fl_image_kind;

/* Reads the program headers one line at a time; notes name the tool that made the program. */
static inline fl_image_kind fl_image_of_elf(int fd, const Elf64_Ehdr *eh) {
    bool interpreter = false;
    for (int i = 0; i < eh->e_phnum && i < 64; i++) {
        Elf64_Phdr ph;
        unsigned char note[4096];
        if (pread(fd, &ph, sizeof ph, (off_t)(eh->e_phoff + (size_t)i * sizeof ph)) != (ssize_t)sizeof ph)
            break;
        interpreter |= ph.p_type == PT_INTERP;
        if (ph.p_type != PT_NOTE)
            continue;
        const size_t want = ph.p_filesz < sizeof note ? ph.p_filesz : sizeof note;
        const ssize_t n = pread(fd, note, want, (off_t)ph.p_offset);
        for (ssize_t at = 0; at + 16 <= n; at += 4)
            if (!memcmp(note + at, "Go\0\0", 4))
                return FL_IMAGE_GO;
    }
    return interpreter ? FL_IMAGE_HOOKED : FL_IMAGE_STATIC;
}

static inline fl_image_kind fl_image_of(const char *path) {
    fl_image_kind kind = FL_IMAGE_HOOKED;
    Elf64_Ehdr eh;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kind;
    if (pread(fd, &eh, sizeof eh, 0) == (ssize_t)sizeof eh && !memcmp(eh.e_ident, ELFMAG, SELFMAG))
        kind = eh.e_ident[EI_CLASS] == ELFCLASS64 ? fl_image_of_elf(fd, &eh) : FL_IMAGE_NARROW;
    close(fd);
    return kind;
}
