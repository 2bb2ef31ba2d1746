/* A program of our session that becomes one without our hooks (Go, static): just before, it asks the kernel to hold the
 * calls of what follows, and tells the server where it hears of them. */
#include "harness/emulate/client/filter.h"
#include "harness/emulate/client/image.h"
#include "harness/emulate/client/time/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_server(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *folder = getenv(FL_EMULATE_VARIABLE);
    if (!folder ||
        snprintf(to.sun_path, sizeof to.sun_path, "%s/" FL_EMULATE_SOCKET, folder) >= (int)sizeof to.sun_path)
        return -1;
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Between the filter and its being heard of, this thread makes no call that the filter holds. Where it cannot be made,
 * the server finds the program and ends the session. */
static void hold_next(const char *path) {
    fl_ask q;
    fl_answer a;
    const fl_image_kind kind = fl_image_of(path);
    if (kind != FL_IMAGE_GO && kind != FL_IMAGE_STATIC)
        return;
    const int server = connect_server();
    if (server < 0)
        return;
    memset(&q, 0, sizeof q);
    q.op = FL_TIME_HOLD;
    q.image = FL_EMULATE_VERSION;
    q.thread = (int32_t)gettid();
    const int calls = fl_filter_install();
    q.a = (uint32_t)calls;
    if (calls >= 0 && send(server, &q, sizeof q, MSG_NOSIGNAL) == (ssize_t)sizeof q)
        (void)REAL(recv)(server, &a, sizeof a, 0);
    close(server);
}

FL_SHOWN int execve(const char *path, char *const argv[], char *const envp[]) {
    if (fl_time_on())
        hold_next(path);
    return REAL(execve)(path, argv, envp);
}
FL_SHOWN int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }

/* The file that execvp would run. */
static void hold_found(const char *name) {
    char path[4096];
    const char *at = getenv("PATH");
    if (strchr(name, '/')) {
        hold_next(name);
        return;
    }
    while (at && *at) {
        const size_t n = strcspn(at, ":");
        if (n && snprintf(path, sizeof path, "%.*s/%s", (int)n, at, name) < (int)sizeof path && !access(path, X_OK)) {
            hold_next(path);
            return;
        }
        at += n + (at[n] == ':');
    }
}

FL_SHOWN int execvpe(const char *name, char *const argv[], char *const envp[]) {
    if (fl_time_on())
        hold_found(name);
    return REAL(execvpe)(name, argv, envp);
}
FL_SHOWN int execvp(const char *name, char *const argv[]) {
    if (fl_time_on())
        hold_found(name);
    return REAL(execvp)(name, argv);
}
