/* Reads the page over HTTP, again and again, on a thread of its own. */
#include "harness/live/server/inside.h"

#include "harness/live/guard/guard.h"
#include "harness/live/server/server.h"
#include "traces/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the address and the answer ---- */

fl_status fl_page_url_parse(const char *text, fl_page_url *u, fl_diag *d) {
    static const char SCHEME[] = "http://";
    *u = (fl_page_url){.port = "80", .path = "/metrics"};
    if (strncmp(text, SCHEME, sizeof SCHEME - 1) != 0)
        return fl_refuse(d, "'%.100s': expected http://HOST:PORT/PATH", text);
    const char *host = text + sizeof SCHEME - 1, *at = host, *close = *host == '[' ? strchr(host, ']') : NULL;
    host += close != NULL;
    at = close ? close : host + strcspn(host, ":/");
    const size_t size = (size_t)(at - host);
    at += close != NULL;
    if (!size || size >= sizeof u->host)
        return fl_refuse(d, "'%.100s': expected the name or address of a host after http://", text);
    memcpy(u->host, host, size);
    if (*at == ':') {
        int64_t port = 0;
        const size_t digits = strcspn(++at, "/");
        char number[8] = "";
        if (digits < sizeof number)
            memcpy(number, at, digits);
        if (fl_int_parse(number, &port) != FL_NUMBER_OK || port < 1 || port > 65535)
            return fl_refuse(d, "'%.100s': expected a port from 1 to 65535", text);
        snprintf(u->port, sizeof u->port, "%d", (int)port);
        at += digits;
    }
    if (*at && *at != '/')
        return fl_refuse(d, "'%.100s': expected a path after the host", text);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return fl_refuse(d, "'%.100s': it contains a blank or a control character, expected a path without", text);
    if (strlen(at) >= sizeof u->path)
        return fl_refuse(d, "'%.100s': longer than 1000 characters", text);
    if (at[0] && at[1])
        snprintf(u->path, sizeof u->path, "%s", at);
    return FL_OK;
}

/* The value of a head line of this name; NULL: it is not there. */
static const char *head_line(const char *head, const char *end, const char *name) {
    const size_t size = strlen(name);
    for (const char *at = head; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if ((size_t)(end - at) > size && !strncasecmp(at, name, size) && at[size] == ':') {
            for (at += size + 1; at < end && *at == ' ';)
                at++;
            return at;
        }
        at = stop ? stop + 1 : end;
    }
    return NULL;
}

fl_page_answer fl_page_answer_read(const char *bytes, size_t count, bool ended, const char **from, size_t *size,
                                   const char **why) {
    const char *end = memmem(bytes, count, "\r\n\r\n", 4);
    *why = "its answer is no HTTP";
    if (count >= 5 && memcmp(bytes, "HTTP/", 5) != 0)
        return FL_PAGE_WRONG;
    if (!end)
        return ended ? FL_PAGE_WRONG : FL_PAGE_MORE;
    const char *status = memchr(bytes, ' ', (size_t)(end - bytes));
    if (!status || end - status < 4)
        return FL_PAGE_WRONG;
    *why = "its answer is not 200 OK";
    if (memcmp(status + 1, "200", 3) != 0)
        return FL_PAGE_WRONG;
    *why = "its answer comes in chunks or packed, though none were asked for";
    if (head_line(bytes, end, "transfer-encoding") || head_line(bytes, end, "content-encoding"))
        return FL_PAGE_WRONG;
    const char *length = head_line(bytes, end, "content-length");
    *from = end + 4;
    *size = count - (size_t)(*from - bytes);
    if (!length)
        return ended ? FL_PAGE_WHOLE : FL_PAGE_MORE;
    size_t wanted = 0; /* digits up to the end of the line, which is there */
    for (; *length >= '0' && *length <= '9' && wanted < ((size_t)1 << 40); length++)
        wanted = wanted * 10 + (size_t)(*length - '0');
    *why = "its answer ends early";
    if (*size < wanted)
        return ended ? FL_PAGE_WRONG : FL_PAGE_MORE;
    *size = wanted;
    return FL_PAGE_WHOLE;
}

/* ---- the thread that reads ---- */

#define EXCHANGE_NS INT64_C(2000000000)
enum { PAGE_MAX = 4 << 20, READ = 64 << 10 };

struct fl_page_reader {
    fl_page_url url;
    struct addrinfo *address;        /* all that the host name has, in the order in which they are to be tried */
    const struct addrinfo *answered; /* that which took a call last; NULL: none yet */
    int64_t period_ns;
    int stop; /* becomes readable when the thread is to end */
    char *bytes;
    size_t room;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* of all that follows */
    fl_metrics page;
    bool fresh;
    fl_page_counts counts;
    char why[FL_PAGE_WHY];
};

/* Waits for the socket (-1: for nothing) until until_ns. 1: it is ready; 0: time is over, or the thread is to end. */
static int wait_for(const fl_page_reader *r, int fd, short events, int64_t until_ns) {
    for (;;) {
        const int64_t left = until_ns - fl_clock_ns();
        struct pollfd p[2] = {{.fd = r->stop, .events = POLLIN}, {.fd = fd, .events = events}};
        const int ready = left > 0 ? poll(p, 2, (int)((left + 999999) / 1000000)) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        return ready > 0 && !p[0].revents && p[1].revents;
    }
}

static bool failed(char *why, const char *what, int error) {
    snprintf(why, FL_PAGE_WHY, "%s%s%s", what, error ? ": " : "", error ? fl_reason(error) : "");
    return false;
}

static bool connect_to(const fl_page_reader *r, const struct addrinfo *to, int fd, int64_t until_ns, char *why) {
    int error = 0;
    socklen_t size = sizeof error;
    if (!connect(fd, to->ai_addr, to->ai_addrlen))
        return true;
    if (errno != EINPROGRESS)
        return failed(why, "it cannot be reached", errno);
    if (!wait_for(r, fd, POLLOUT, until_ns))
        return failed(why, "it does not answer a call in two seconds", 0);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) || error)
        return failed(why, "it cannot be reached", error);
    return true;
}

/* A socket that is connected to one address; -1: why not. */
static int call(const fl_page_reader *r, const struct addrinfo *to, int64_t until_ns, char *why) {
    const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        failed(why, "no socket", errno);
    else if (connect_to(r, to, fd, until_ns, why))
        return fd;
    else
        close(fd);
    return -1;
}

/* The address that took a call last, then each of the others, until one takes it. Each may take an equal part of the
 * time that is left, so that one that is silent leaves some for the next. */
static int call_any(fl_page_reader *r, int64_t until_ns, char *why) {
    const struct addrinfo *last = r->answered;
    int left = 0, fd = -1;
    for (const struct addrinfo *a = r->address; a; a = a->ai_next)
        left++;
    for (const struct addrinfo *a = last ? last : r->address, *next; a && fd < 0; a = next, left--) {
        const int64_t now = fl_clock_ns();
        fd = call(r, a, now + (until_ns - now) / left, why);
        r->answered = fd < 0 ? r->answered : a;
        next = a == last ? r->address : a->ai_next;
        if (next == last && last)
            next = last->ai_next;
    }
    return fd;
}

static bool ask(const fl_page_reader *r, int fd, int64_t until_ns, char *why) {
    char text[2048];
    const bool six = strchr(r->url.host, ':') != NULL;
    const int size = snprintf(
        text, sizeof text, "GET %s HTTP/1.0\r\nHost: %s%s%s:%s\r\nAccept: text/plain\r\nUser-Agent: foldline\r\n\r\n",
        r->url.path, six ? "[" : "", r->url.host, six ? "]" : "", r->url.port);
    for (int sent = 0; sent < size;) {
        const ssize_t n = send(fd, text + sent, (size_t)(size - sent), MSG_NOSIGNAL);
        if (n >= 0)
            sent += (int)n;
        else if (errno != EAGAIN && errno != EINTR)
            return failed(why, "it hangs up", errno);
        else if (errno == EAGAIN && !wait_for(r, fd, POLLOUT, until_ns))
            return failed(why, "it does not take a question in two seconds", 0);
    }
    return true;
}

static bool make_room(fl_page_reader *r, size_t count) {
    if (r->room - count >= READ)
        return true;
    char *more = realloc(r->bytes, r->room + 4 * READ);
    if (!more)
        return false;
    r->bytes = more;
    r->room += 4 * READ;
    return true;
}

static bool answer(fl_page_reader *r, int fd, int64_t until_ns, fl_metrics *m, char *why) {
    size_t count = 0;
    for (;;) {
        const char *from, *wrong;
        size_t size;
        if (!make_room(r, count))
            return failed(why, "no memory for its page", 0);
        const ssize_t n = recv(fd, r->bytes + count, READ, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            return failed(why, "it hangs up", errno);
        if (n < 0) {
            if (!wait_for(r, fd, POLLIN, until_ns))
                return failed(why, "its page does not come in two seconds", 0);
            continue;
        }
        count += (size_t)n;
        switch (fl_page_answer_read(r->bytes, count, n == 0, &from, &size, &wrong)) {
        case FL_PAGE_WRONG:
            return failed(why, wrong, 0);
        case FL_PAGE_WHOLE:
            fl_metrics_read(from, size, m);
            return m->known ? true : failed(why, "its page has no metric of vLLM's names", 0);
        case FL_PAGE_MORE:
            break;
        }
        if (count > PAGE_MAX)
            return failed(why, "its page is larger than 4 MiB", 0);
        if (fl_clock_ns() >= until_ns) /* it comes, but drop by drop */
            return failed(why, "its page does not come in two seconds", 0);
    }
}

static bool exchange(fl_page_reader *r, fl_metrics *m, char *why) {
    const int64_t until_ns = fl_clock_ns() + EXCHANGE_NS;
    const int fd = call_any(r, until_ns, why);
    if (fd < 0)
        return false;
    const bool ok = ask(r, fd, until_ns, why) && answer(r, fd, until_ns, m, why);
    close(fd);
    return ok;
}

static void *loop(void *user) {
    fl_page_reader *r = user;
    for (int64_t next = fl_clock_ns() + r->period_ns;; next += r->period_ns) {
        struct pollfd p = {.fd = r->stop, .events = POLLIN};
        fl_metrics m;
        char why[FL_PAGE_WHY] = "";
        wait_for(r, -1, 0, next);
        if (poll(&p, 1, 0) == 1)
            return NULL;
        next = next < fl_clock_ns() ? fl_clock_ns() : next;
        const bool ok = exchange(r, &m, why);
        pthread_mutex_lock(&r->lock);
        if (ok)
            r->page = m;
        r->fresh |= ok;
        r->counts.pages += ok;
        r->counts.failed += !ok;
        r->counts.lies += ok ? m.lies : 0;
        memcpy(r->why, why, sizeof why);
        pthread_mutex_unlock(&r->lock);
    }
}

static fl_status look_up(fl_page_reader *r, fl_diag *d) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    const int error = getaddrinfo(r->url.host, r->url.port, &hints, &r->address);
    if (error || !r->address)
        return fl_error(d, FL_HARDWARE, "server %s: its address is not known: %s", r->url.host, gai_strerror(error));
    return FL_OK;
}

static fl_status start(fl_page_reader *r, fl_diag *d) {
    const int error = fl_stop_thread(&r->thread, loop, r);
    r->running = !error;
    return error ? fl_error(d, FL_HARDWARE, "cannot start the reader of pages: %s", fl_reason(error)) : FL_OK;
}

fl_status fl_page_reader_open(fl_page_reader **out, const char *url, int64_t period_ns, fl_metrics *first, fl_diag *d) {
    char why[FL_PAGE_WHY] = "";
    *out = NULL;
    fl_page_reader *r = calloc(1, sizeof *r);
    if (!r)
        return fl_no_memory(d, "the reader of pages");
    pthread_mutex_init(&r->lock, NULL);
    r->period_ns = period_ns;
    r->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fl_status s = r->stop < 0 ? fl_error(d, FL_HARDWARE, "cannot start the reader of pages: %s", fl_reason(errno))
                              : fl_page_url_parse(url, &r->url, d);
    if (!s)
        s = look_up(r, d);
    if (!s && !exchange(r, first, why))
        s = fl_error(d, FL_HARDWARE, "server %s: %s", url, why);
    if (!s) {
        r->page = *first;
        r->fresh = true;
        r->counts = (fl_page_counts){.pages = 1, .lies = first->lies};
        s = start(r, d);
    }
    if (s) {
        fl_page_reader_close(r);
        return s;
    }
    *out = r;
    return FL_OK;
}

bool fl_page_reader_take(fl_page_reader *r, fl_metrics *m) {
    if (pthread_mutex_trylock(&r->lock)) /* a page is being put there: the next step has it */
        return false;
    const bool fresh = r->fresh;
    if (fresh)
        *m = r->page;
    r->fresh = false;
    pthread_mutex_unlock(&r->lock);
    return fresh;
}

fl_page_counts fl_page_reader_count(fl_page_reader *r) {
    pthread_mutex_lock(&r->lock);
    const fl_page_counts counts = r->counts;
    pthread_mutex_unlock(&r->lock);
    return counts;
}

void fl_page_reader_why(fl_page_reader *r, char why[FL_PAGE_WHY]) {
    pthread_mutex_lock(&r->lock);
    memcpy(why, r->why, FL_PAGE_WHY);
    pthread_mutex_unlock(&r->lock);
}

void fl_page_reader_close(fl_page_reader *r) {
    if (!r)
        return;
    if (r->running) {
        const uint64_t one = 1;
        if (write(r->stop, &one, sizeof one) == sizeof one)
            pthread_join(r->thread, NULL);
    }
    if (r->stop >= 0)
        close(r->stop);
    pthread_mutex_destroy(&r->lock);
    if (r->address)
        freeaddrinfo(r->address);
    free(r->bytes);
    free(r);
}
