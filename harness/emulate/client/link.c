/* The client's end of the socket: one descriptor per thread. */
#include "harness/emulate/client/client.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Straight from the C library: what stands before it may be the interposer of virtual time, or a program's own. */
typedef struct fl_system {
    int (*socket)(int, int, int);
    int (*connect)(int, const struct sockaddr *, socklen_t);
    ssize_t (*send)(int, const struct msghdr *, int);
    ssize_t (*recv)(int, void *, size_t, int);
    int (*close)(int);
    int (*mask)(int, const sigset_t *, sigset_t *);
    int (*action)(int, const struct sigaction *, struct sigaction *);
} fl_system;

typedef struct fl_link {
    int fd; /* + 1, so that zeroed is none */
    pid_t owner;
    dev_t dev;
    ino_t ino;
} fl_link;

static fl_system own;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char path[sizeof((struct sockaddr_un *)0)->sun_path];
static pthread_key_t key;
static _Thread_local fl_link link_ __attribute__((tls_model("initial-exec")));

static void hang_up(void *value) {
    (void)value;
    struct stat st;
    if (link_.fd && link_.owner == getpid() && !fstat(link_.fd - 1, &st) && st.st_ino == link_.ino)
        own.close(link_.fd - 1);
    link_.fd = 0;
}

static void find_system(void) {
    void *c = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *h = c ? c : RTLD_NEXT;
    *(void **)&own.socket = dlsym(h, "socket");
    *(void **)&own.connect = dlsym(h, "connect");
    *(void **)&own.send = dlsym(h, "sendmsg");
    *(void **)&own.recv = dlsym(h, "recv");
    *(void **)&own.close = dlsym(h, "close");
    *(void **)&own.mask = dlsym(h, "pthread_sigmask");
    *(void **)&own.action = dlsym(h, "sigaction");
    const char *folder = getenv(FL_EMULATE_VARIABLE);
    if (folder && snprintf(path, sizeof path, "%s/" FL_EMULATE_SOCKET, folder) >= (int)sizeof path)
        path[0] = 0;
    (void)pthread_key_create(&key, hang_up);
}

static int is_ours(void) {
    struct stat st;
    return link_.fd && link_.owner == getpid() && !fstat(link_.fd - 1, &st) && st.st_ino == link_.ino &&
           st.st_dev == link_.dev;
}

static int connected(void) {
    if (is_ours())
        return link_.fd - 1;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct stat st;
    /* A fork's copy of its parent's goes; a number that a program closed and gave to something else stays. */
    if (link_.fd && link_.owner != getpid() && !fstat(link_.fd - 1, &st) && st.st_ino == link_.ino)
        own.close(link_.fd - 1);
    link_.fd = 0;
    if (!path[0])
        return -1;
    memcpy(to.sun_path, path, sizeof path);
    int fd = own.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int r;
    while ((r = own.connect(fd, (const struct sockaddr *)&to, sizeof to)) && errno == EINTR) {
    }
    if (r || fstat(fd, &st)) {
        own.close(fd);
        return -1;
    }
    link_ = (fl_link){fd + 1, getpid(), st.st_dev, st.st_ino};
    (void)pthread_setspecific(key, &link_);
    return fd;
}

/* The descriptor that goes with it, if any, is received as a new one. */
static ssize_t send_packet(int fd, fl_ask *ask) {
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } rights = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec all = {.iov_base = ask, .iov_len = sizeof *ask};
    struct msghdr m = {.msg_iov = &all, .msg_iovlen = 1};
    const int with = ask->spare - 1;
    if (with >= 0) {
        memcpy(CMSG_DATA(&rights.head), &with, sizeof with);
        m.msg_control = &rights;
        m.msg_controllen = sizeof rights;
    }
    ssize_t n;
    while ((n = own.send(fd, &m, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
    }
    return n;
}

static int say(fl_ask *ask) {
    pthread_once(&once, find_system);
    ask->thread = (int32_t)gettid();
    ask->image = FL_EMULATE_VERSION;
    const int fd = connected();
    return fd >= 0 && send_packet(fd, ask) == (ssize_t)sizeof *ask ? fd : -1;
}

static _Thread_local int signalled __attribute__((tls_model("initial-exec")));

int fl_link_signalled(void) { return signalled; }

int fl_link_hears(int number) {
    struct sigaction a;
    const int quiet = number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH;
    pthread_once(&once, find_system);
    return !own.action(number, NULL, &a) && a.sa_handler != SIG_IGN && !(a.sa_handler == SIG_DFL && quiet);
}

/* Whether one of the pending signals is heard, once the mask is as it was. */
static int deliverable(const sigset_t *mask) {
    sigset_t pending;
    if (sigpending(&pending))
        return 0;
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&pending, i) == 1 && sigismember(mask, i) != 1 && fl_link_hears(i))
            return 1;
    return 0;
}

static void (*done)(void);

void fl_link_when_answered(void (*f)(void)) { done = f; }

int fl_link_tell(fl_ask *ask) { return say(ask) < 0 ? -1 : 0; }

int fl_link_ask(fl_ask *ask, fl_answer *answer) {
    sigset_t all, before;
    pthread_once(&once, find_system);
    sigfillset(&all);
    own.mask(SIG_SETMASK, &all, &before);
    const int saved = errno, fd = say(ask);
    ssize_t n = -1;
    if (fd >= 0)
        while ((n = own.recv(fd, answer, sizeof *answer, 0)) < 0 && errno == EINTR) {
        }
    if (n < (ssize_t)FL_ANSWER_HEAD && is_ours()) { /* the emulator has gone */
        own.close(fd);
        link_.fd = 0;
    }
    const int woken = ask->op > FL_TIME_HELLO && n >= (ssize_t)FL_ANSWER_HEAD && answer->result == FL_WOKEN_SIGNAL,
              heard = woken && deliverable(&before);
    if (done)
        done();
    errno = saved;
    own.mask(SIG_SETMASK, &before, NULL); /* handlers run, which may ask and wait themselves */
    if (woken)
        signalled = heard;
    return n < (ssize_t)FL_ANSWER_HEAD ? -1 : 0;
}
