/* What the tests of the live side share: the stub's state, a state folder of their own, this program as foldline. */
#pragma once

#include "harness/base/cli/commands.h"
#include "tests/support/stub_nvml.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static stub_state *stub;

static inline void stub_reset(unsigned gpus) {
    memset(stub, 0, sizeof *stub);
    stub->gpus = gpus;
    for (unsigned i = 0; i < gpus; i++)
        stub->gpu[i].limit_mw = 250000;
}

/* Maps a fresh state and points the environment at it and at the stub library. */
static inline void stub_open(unsigned gpus) {
    char path[512];
    static char state[600];
    snprintf(path, sizeof path, "%s", fl_temp_path("stub"));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *stub)) {
        perror(path);
        exit(1);
    }
    stub = mmap(NULL, sizeof *stub, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    snprintf(state, sizeof state, "%s", fl_temp_path("state"));
    setenv("FOLDLINE_STUB", path, 1);
    setenv("FOLDLINE_STATE", state, 1);
    setenv("FOLDLINE_RUN", fl_temp_path("run"), 1); /* other suites have GPUs of the same names */
    setenv("FOLDLINE_NVML", FL_STUB_NVML, 1);
    stub_reset(gpus);
}

static inline void empty_folder(const char *path) {
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));)
        unlinkat(dirfd(folder), e->d_name, 0);
    if (folder)
        closedir(folder);
}

static inline int files_in(const char *path, const char *ending) {
    DIR *folder = opendir(path);
    int count = 0;
    for (struct dirent *e; folder && (e = readdir(folder));) {
        size_t size = strlen(e->d_name), n = strlen(ending);
        count += size >= n && !strcmp(e->d_name + size - n, ending) && *e->d_name != '.';
    }
    if (folder)
        closedir(folder);
    return count;
}

/* Files of that ending in the state folder. */
static inline int left_behind(const char *ending) { return files_in(getenv("FOLDLINE_STATE"), ending); }

static inline void stub_close(void) {
    empty_folder(getenv("FOLDLINE_STATE"));
    rmdir(getenv("FOLDLINE_STATE"));
    empty_folder(getenv("FOLDLINE_RUN"));
    rmdir(getenv("FOLDLINE_RUN"));
    munmap(stub, sizeof *stub);
    fl_temp_remove();
}

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline void wait_us(int64_t us) {
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    while (nanosleep(&t, &t) && errno == EINTR) {
    }
}

/* Waits until it holds; after two minutes, far more than any machine needs, what follows finds that it does not. */
#define UNTIL(condition)                                                                                               \
    for (int64_t end_ = now_ns() + INT64_C(120000000000); !(condition) && now_ns() < end_; wait_us(500)) {             \
    }

/* Starts this test program once more as foldline, output into out.txt and err.txt of the temporary folder. */
static inline pid_t foldline_start(char *const *argv) {
    char out[512], err[512];
    snprintf(out, sizeof out, "%s", fl_temp_path("out.txt"));
    snprintf(err, sizeof err, "%s", fl_temp_path("err.txt"));
    pid_t pid = fork();
    if (pid)
        return pid;
    int o = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), e = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(o, 1);
    dup2(e, 2);
    close(o);
    close(e);
    execv("/proc/self/exe", argv);
    _exit(126);
}

static inline int exit_of(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Stands still from here on: it does not see its guardian end, and starts no other. */
static inline void hold_still(pid_t pid) {
    kill(pid, SIGSTOP);
    while (waitpid(pid, NULL, WUNTRACED) < 0 && errno == EINTR) {
    }
}

#define FOLDLINE(...) exit_of(foldline_start((char *[]){(char *)"foldline", __VA_ARGS__, NULL}))

/* Run the command of the live side that the arguments name; -1 where they name none. */
static inline int foldline_main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(int, char **);
    } COMMANDS[] = {
        {"live", fl_cmd_live}, {"record", fl_cmd_record}, {"doctor", fl_cmd_doctor}, {"restore", fl_cmd_restore}};
    for (size_t i = 0; argc > 1 && i < sizeof COMMANDS / sizeof *COMMANDS; i++)
        if (!strcmp(argv[1], COMMANDS[i].name)) {
            int status = COMMANDS[i].run(argc - 2, argv + 2);
            fflush(stdout);
            return status;
        }
    return -1;
}
