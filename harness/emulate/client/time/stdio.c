/* Streams of the C library in virtual time. Its streams read and write by calls within it, which nothing can stand
 * before; a program that waits in one (sed on a pipe) would hold the token for ever. So the kernel is asked to hand
 * over what its functions read and write call (seccomp, by the address of the call), and they wait as everybody does.
 * Filters outlive an exec: they then hold the addresses of a program that is gone, and catch nothing.
 *
 * And popen, whose child must be announced. */
#include "harness/emulate/client/time/inside.h"

#include "harness/emulate/client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__

#define CHUNK 4096 /* of a pipe that is ready to take any, at least so much can be written */
enum { CAUGHT = 4, STEPS = 5, FILTER_MAX = 8 + CAUGHT * STEPS };

static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

static long write_all(int fd, const char *bytes, size_t n) {
    size_t done = 0;
    while (done < n) {
        const ssize_t some = write(fd, bytes + done, n - done < CHUNK ? n - done : CHUNK);
        if (some < 0)
            return done ? (long)done : -1;
        done += (size_t)some;
    }
    return (long)done;
}

static long caught(long number, const long a[3]) {
    if (inside || !fl_time_on()) {
        const long r = REAL(syscall)(number, a[0], a[1], a[2]);
        return r < 0 ? -errno : r;
    }
    inside = true; /* read and write of this library come here again, once they need not wait */
    const long r = number == SYS_read ? read((int)a[0], (void *)a[1], (size_t)a[2])
                                      : write_all((int)a[0], (const char *)a[1], (size_t)a[2]);
    inside = false;
    return r < 0 ? -errno : r;
}

/* Steps for one function of the C library: a call from within it goes to the trap, `left` steps on. */
static size_t add_function(struct sock_filter *to, const void *f, size_t left) {
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    if (!f || !dladdr1(f, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol || !symbol->st_size)
        return 0;
    const uint64_t from = (uintptr_t)f, end = from + symbol->st_size;
    if (from >> 32 != end >> 32)
        return 0;
    const unsigned ip = offsetof(struct seccomp_data, instruction_pointer);
    const struct sock_filter step[STEPS] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(from >> 32), 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)from, 0, 1),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)end, 0, (uint8_t)left),
    };
    memcpy(to, step, sizeof step);
    return STEPS;
}

/* After the session has been found (core.c). */
__attribute__((constructor(102))) static void catch_streams(void) {
    if (!fl_time_on() || !fl_raw_filtered(caught))
        return;
    void *c = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    const void *f[CAUGHT] = {c ? dlsym(c, "read") : NULL, c ? dlvsym(c, "__read_nocancel", "GLIBC_PRIVATE") : NULL,
                             c ? dlsym(c, "write") : NULL, c ? dlvsym(c, "__write_nocancel", "GLIBC_PRIVATE") : NULL};
    struct sock_filter filter[FILTER_MAX];
    size_t there = 0, n = 0;
    for (size_t i = 0; i < CAUGHT; i++)
        there += f[i] && add_function(filter, f[i], 0) > 0;
    const struct sock_filter head[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, (uint8_t)(there * STEPS + 2)),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_write, (uint8_t)(there * STEPS), 0), /* read is 0, write 1 */
    };
    memcpy(filter, head, sizeof head);
    n = sizeof head / sizeof *head;
    for (size_t i = 0, k = 0; i < CAUGHT; i++) {
        const size_t steps = f[i] ? add_function(filter + n, f[i], (there - k - 1) * STEPS + 1) : 0;
        n += steps;
        k += steps > 0;
    }
    const struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                             trap = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    filter[n++] = pass;
    filter[n++] = trap;
    const struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    /* Where the kernel refuses, the emulator's watchdog finds who waits. */
    if (there && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        (void)REAL(syscall)(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

#endif

/* ---- popen ---- */

typedef struct fl_popened {
    FILE *stream;
    pid_t pid;
    struct fl_popened *next;
} fl_popened;

static fl_popened *popened;

static _Noreturn void become_shell(const char *command, int end, int standard) {
    for (const fl_popened *p = popened; p; p = p->next)
        close(fileno(p->stream));
    if (end == standard)
        (void)fcntl(end, F_SETFD, 0);
    else if (dup2(end, standard) < 0)
        _exit(127);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

FL_SHOWN FILE *popen(const char *command, const char *type) {
    int wire[2];
    if (!fl_time_on())
        return REAL(popen)(command, type);
    const bool reads = type[0] == 'r';
    if ((!reads && type[0] != 'w') || (type[1] && strcmp(type + 1, "e") != 0)) {
        errno = EINVAL;
        return NULL;
    }
    fl_popened *p = calloc(1, sizeof *p);
    if (!p || pipe2(wire, O_CLOEXEC)) {
        free(p);
        return NULL;
    }
    if (!type[1])
        (void)fcntl(wire[!reads], F_SETFD, 0);
    p->stream = fdopen(wire[!reads], reads ? "r" : "w");
    p->pid = p->stream ? fork() : -1;
    if (!p->pid) {
        close(wire[!reads]); /* ours: a reader would never see the end */
        become_shell(command, wire[reads], reads);
    }
    const int error = errno;
    close(wire[reads]);
    if (p->pid > 0) {
        p->next = popened;
        popened = p;
        return p->stream;
    }
    if (p->stream)
        (void)fclose(p->stream);
    else
        close(wire[!reads]);
    free(p);
    errno = error;
    return NULL;
}

FL_SHOWN int pclose(FILE *stream) {
    int status = -1;
    fl_popened **at = &popened, *p;
    while (*at && (*at)->stream != stream)
        at = &(*at)->next;
    if (!(p = *at))
        return REAL(pclose)(stream);
    *at = p->next;
    const pid_t pid = p->pid;
    free(p);
    (void)fclose(stream);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}
