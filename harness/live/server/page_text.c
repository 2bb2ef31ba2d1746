#include "harness/live/server/page_text.h"

#include "traces/io/numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
