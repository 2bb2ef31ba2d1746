/* The reader of an engine's page where the host name has several addresses: each is tried within the one timeout. Names
 * are resolved here, by what stands in for the C library's functions. */
#include "harness/live/server/inside.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 3 };
static struct sockaddr_storage place[MOST];
static struct addrinfo entry[MOST];
static unsigned places;

static void add_place(const char *text, uint16_t port) {
    struct sockaddr_in *four = (struct sockaddr_in *)&place[places];
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&place[places];
    const bool is_six = strchr(text, ':') != NULL;
    memset(&place[places], 0, sizeof place[places]);
    if (is_six) {
        *six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
        inet_pton(AF_INET6, text, &six->sin6_addr);
    } else {
        *four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        inet_pton(AF_INET, text, &four->sin_addr);
    }
    entry[places] = (struct addrinfo){.ai_family = is_six ? AF_INET6 : AF_INET,
                                      .ai_socktype = SOCK_STREAM,
                                      .ai_addr = (struct sockaddr *)&place[places],
                                      .ai_addrlen = is_six ? sizeof *six : sizeof *four};
    if (places)
        entry[places - 1].ai_next = &entry[places];
    places++;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    (void)node, (void)service, (void)hints;
    *found = entry;
    return places ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *found) { (void)found; }

/* ---- a page, and an address that is silent ---- */

static int listener(const char *text, int backlog, uint16_t *port) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, text, &at.sin_addr);
    CU_ASSERT_FATAL(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, backlog) &&
                    !getsockname(fd, (struct sockaddr *)&at, &size));
    *port = ntohs(at.sin_port);
    return fd;
}

static void *serve(void *user) {
    const int fd = *(int *)user;
    for (int one; (one = accept(fd, NULL, NULL)) >= 0; close(one)) {
        static const char page[] = "HTTP/1.0 200 OK\r\n\r\nvllm:num_requests_running 8.0\n";
        char question[2048];
        if (recv(one, question, sizeof question, 0) > 0)
            (void)!send(one, page, sizeof page - 1, MSG_NOSIGNAL);
    }
    return NULL;
}

static double seconds_since(const struct timespec *from) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - from->tv_sec) + (double)(now.tv_nsec - from->tv_nsec) * 1e-9;
}

/* A first page; returns how long it took. */
static double read_page(fl_status want, fl_diag *d) {
    struct timespec from;
    fl_page_reader *r;
    fl_metrics m;
    clock_gettime(CLOCK_MONOTONIC, &from);
    const fl_status s = fl_page_reader_open(&r, "http://engine.test:8000/metrics", INT64_C(1000000000), &m, d);
    const double took = seconds_since(&from);
    FL_CHECK(s == want, "%s", d->message);
    if (!s)
        fl_page_reader_close(r);
    return took;
}

static void test_addresses(void) {
    uint16_t port, silent_port, closed_port;
    int page = listener("127.0.0.1", 8, &port);
    const int closed = listener("127.0.0.1", 1, &closed_port), silent = listener("127.0.0.2", 0, &silent_port);
    fl_diag d = {0};
    pthread_t thread;
    CU_ASSERT_FATAL(!pthread_create(&thread, NULL, serve, &page));
    close(closed);

    places = 0; /* nobody there, of either family; then the page */
    add_place("::1", closed_port);
    add_place("127.0.0.1", closed_port);
    add_place("127.0.0.1", port);
    FL_CHECK(read_page(FL_OK, &d) < 2, "an address that refuses takes no time");

    places = 0; /* nobody there at all: the last reason is told */
    add_place("::1", closed_port);
    add_place("127.0.0.1", closed_port);
    read_page(FL_HARDWARE, &d);
    FL_CHECK(strstr(d.message, "it cannot be reached: Connection refused"), "%s", d.message);

    int full[16]; /* a queue that is full: a call is never taken */
    for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(silent_port)};
        inet_pton(AF_INET, "127.0.0.2", &at.sin_addr);
        full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(full[i], (struct sockaddr *)&at, sizeof at);
    }
    places = 0;
    add_place("127.0.0.2", silent_port);
    add_place("127.0.0.1", port);
    const double took = read_page(FL_OK, &d);
    FL_CHECK(took > 0.9 && took < 2, "%g s, expected half of two seconds for the silent address", took);
    places = 0;
    add_place("127.0.0.2", silent_port);
    const double alone = read_page(FL_HARDWARE, &d);
    FL_CHECK(alone > 1.9 && alone < 4 && strstr(d.message, "two seconds"), "%g s: %s", alone, d.message);

    for (size_t i = 0; i < sizeof full / sizeof *full; i++)
        close(full[i]);
    close(silent);
    shutdown(page, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(page);
}

FL_SUITE("page_reader", {"every address of a name", test_addresses})
