#include "harness/emulate/virtual/go.h"

#include "harness/emulate/driver/remote.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__

#define RANDOM_BYTES 16 /* the size of AT_RANDOM */
#define TEXT_MAX ((size_t)1 << 28)

static void fix_random(pid_t pid) {
    static const unsigned char fixed[RANDOM_BYTES] = "Foldline emulate";
    char path[64];
    Elf64_auxv_t aux;
    snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && read(fd, &aux, sizeof aux) == (ssize_t)sizeof aux)
        if (aux.a_type == AT_RANDOM)
            (void)fl_remote_write(pid, aux.a_un.a_val, fixed, sizeof fixed);
    if (fd >= 0)
        close(fd);
}

/* runtime.cputicks, with the instruction RDTSCP and, for processors without it, RDTSC. */
static const struct {
    const char *from, *to;
    size_t size;
} ticks[] = {
    /* rdtscp; shl rdx, 32; add rax, rdx -> xor eax, eax; xor edx, edx; nops */
    {"\x0f\x01\xf9\x48\xc1\xe2\x20\x48\x01\xd0", "\x31\xc0\x31\xd2\x90\x90\x90\x90\x90\x90", 10},
    /* mfence; lfence; rdtsc */
    {"\x0f\xae\xf0\x0f\xae\xe8\x0f\x31", "\x31\xc0\x31\xd2\x90\x90\x90\x90", 8},
};

static void stop_ticks_in(pid_t pid, uint64_t at, size_t size) {
    char *text = size < TEXT_MAX ? malloc(size) : NULL;
    if (text && fl_remote_read(pid, at, text, size))
        for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++) {
            const char *found = memmem(text, size, ticks[i].from, ticks[i].size);
            if (found)
                (void)fl_remote_patch(pid, at + (uint64_t)(found - text), ticks[i].to, ticks[i].size);
        }
    free(text);
}

void fl_go_settle(pid_t pid) {
    char path[64], exe[PATH_MAX], line[PATH_MAX + 128];
    fix_random(pid);
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    const ssize_t n = readlink(path, exe, sizeof exe - 1);
    if (n <= 0)
        return;
    exe[n] = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long from, to;
        if (sscanf(line, "%llx-%llx r-xp", &from, &to) == 2 && strstr(line, " r-xp ") && strstr(line, exe))
            stop_ticks_in(pid, from, (size_t)(to - from));
    }
    if (f)
        fclose(f);
}

#else
void fl_go_settle(pid_t pid) { (void)pid; }
#endif
