/* Another process seen from outside: memory, descriptors, state, and the clocks of its vDSO. */
#include "harness/emulate/driver/driver.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

bool fl_remote_read(pid_t pid, uint64_t at, void *to, size_t n) {
    const struct iovec here = {to, n}, there = {(void *)(uintptr_t)at, n};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

bool fl_remote_write(pid_t pid, uint64_t at, const void *from, size_t n) {
    const struct iovec here = {(void *)(uintptr_t)from, n}, there = {(void *)(uintptr_t)at, n};
    return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

bool fl_remote_patch(pid_t pid, uint64_t at, const void *from, size_t n) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    const bool ok = fd >= 0 && pwrite(fd, from, n, (off_t)at) == (ssize_t)n;
    if (fd >= 0)
        close(fd);
    return ok;
}

int fl_remote_fd(int pidfd, int fd) { return (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0); }

/* ---- what /proc says ---- */

typedef struct fl_remote_state {
    char state;
    int process, parent;
    unsigned long long own, shared, blocked, ignored, caught;
} fl_remote_state;

static bool read_state(const char *path, fl_remote_state *s) {
    char line[256];
    FILE *f = fopen(path, "re");
    *s = (fl_remote_state){.state = 'X'};
    while (f && fgets(line, sizeof line, f)) {
        (void)sscanf(line, "State: %c", &s->state);
        (void)sscanf(line, "Tgid: %d", &s->process);
        (void)sscanf(line, "PPid: %d", &s->parent);
        (void)sscanf(line, "SigPnd: %llx", &s->own);
        (void)sscanf(line, "ShdPnd: %llx", &s->shared);
        (void)sscanf(line, "SigBlk: %llx", &s->blocked);
        (void)sscanf(line, "SigIgn: %llx", &s->ignored);
        (void)sscanf(line, "SigCgt: %llx", &s->caught);
    }
    if (f)
        fclose(f);
    return f != NULL;
}

static bool read_thread(pid_t pid, pid_t thread, fl_remote_state *s) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)thread);
    return read_state(path, s);
}

static bool read_process(pid_t pid, fl_remote_state *s) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return read_state(path, s);
}

pid_t fl_remote_process(pid_t thread) {
    fl_remote_state s;
    return read_process(thread, &s) ? s.process : 0;
}

pid_t fl_remote_parent(pid_t pid) {
    fl_remote_state s;
    return read_process(pid, &s) ? s.parent : 0;
}

int fl_remote_threads(pid_t pid, pid_t *all, int most) {
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && n < most && (e = readdir(dir));)
        if ((all[n] = atoi(e->d_name)) > 0)
            n++;
    if (dir)
        closedir(dir);
    return dir ? n : -1;
}

int fl_remote_children(pid_t pid, pid_t *all, int most) {
    char path[64];
    pid_t thread[1024];
    const int threads = fl_remote_threads(pid, thread, sizeof thread / sizeof *thread);
    int n = threads > 0 ? 0 : -1;
    for (int i = 0; i < threads && n >= 0; i++) {
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)thread[i]);
        FILE *f = fopen(path, "re");
        while (f && n < most && fscanf(f, "%d", &all[n]) == 1)
            n++;
        if (!f && fl_remote_lives(pid, thread[i]))
            n = -1;
        if (f)
            fclose(f);
    }
    return n;
}

bool fl_remote_lives(pid_t pid, pid_t thread) {
    fl_remote_state s;
    return read_thread(pid, thread, &s) && s.state != 'Z' && s.state != 'X';
}

#define BIT(signal) (UINT64_C(1) << ((signal)-1))

bool fl_remote_signalled(pid_t pid, pid_t thread, bool masked, uint64_t mask) {
    fl_remote_state s;
    if (!read_thread(pid, thread, &s))
        return false;
    const uint64_t quiet = BIT(SIGCHLD) | BIT(SIGCONT) | BIT(SIGURG) | BIT(SIGWINCH);
    return ((s.own | s.shared) & ~(masked ? mask : s.blocked) & ~s.ignored & ~(quiet & ~s.caught)) != 0;
}

bool fl_remote_pending(pid_t pid, pid_t thread, uint64_t set) {
    fl_remote_state s;
    return read_thread(pid, thread, &s) && ((s.own | s.shared) & set) != 0;
}

bool fl_remote_child_ended(pid_t pid, pid_t which) {
    fl_remote_state s;
    bool any = false, ended = false;
    if (which > 0)
        return !read_process(which, &s) || s.state == 'Z' || s.parent != pid;
    DIR *all = opendir("/proc");
    for (struct dirent *e; all && !ended && (e = readdir(all));) {
        const int child = atoi(e->d_name);
        if (child <= 0 || !read_process(child, &s) || s.parent != pid)
            continue;
        any = true;
        ended = s.state == 'Z';
    }
    if (all)
        closedir(all);
    return ended || !any;
}

/* ---- the clocks of the vDSO ---- */

#ifdef __x86_64__

static const struct {
    const char *name;
    unsigned number;
} vdso_call[] = {
    {"__vdso_clock_gettime", SYS_clock_gettime}, {"clock_gettime", SYS_clock_gettime}, {"__vdso_time", SYS_time},
    {"__vdso_gettimeofday", SYS_gettimeofday},   {"gettimeofday", SYS_gettimeofday},   {"time", SYS_time},
};

static uint64_t vdso_of(pid_t pid) {
    char path[64], line[512];
    unsigned long long at = 0, from;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && !at && fgets(line, sizeof line, f))
        if (strstr(line, "[vdso]") && sscanf(line, "%llx-", &from) == 1)
            at = from;
    if (f)
        fclose(f);
    return at;
}

/* The kernel maps the same vDSO into every 64-bit process, so this process's own shows where each function lies. */
static bool replace_clocks(pid_t pid, const unsigned char *own, uint64_t there) {
    const Elf64_Ehdr *eh = (const void *)own;
    bool clock = false;
    for (unsigned i = 0; i < eh->e_shnum; i++) {
        const Elf64_Shdr *sh = (const void *)(own + eh->e_shoff + i * sizeof *sh);
        if (sh->sh_type != SHT_DYNSYM)
            continue;
        const Elf64_Shdr *names = (const void *)(own + eh->e_shoff + sh->sh_link * sizeof *sh);
        const Elf64_Sym *symbol = (const void *)(own + sh->sh_offset);
        for (size_t k = 0; k < sh->sh_size / sizeof *symbol; k++)
            for (size_t c = 0; c < sizeof vdso_call / sizeof *vdso_call; c++) {
                if (strcmp((const char *)own + names->sh_offset + symbol[k].st_name, vdso_call[c].name) != 0)
                    continue;
                unsigned char code[] = {0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3}; /* mov eax, number; syscall; ret */
                memcpy(code + 1, &vdso_call[c].number, 4);
                if (!fl_remote_patch(pid, there + symbol[k].st_value, code, sizeof code))
                    return false;
                clock |= vdso_call[c].number == SYS_clock_gettime;
            }
    }
    return clock;
}

bool fl_remote_clocks(pid_t pid) {
    const uint64_t there = vdso_of(pid);
    const unsigned long own = getauxval(AT_SYSINFO_EHDR);
    return !there || (own && replace_clocks(pid, (const unsigned char *)own, there)); /* none: it makes system calls */
}

#else
bool fl_remote_clocks(pid_t pid) {
    (void)pid;
    return false;
}
#endif
