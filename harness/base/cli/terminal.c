#include "harness/base/cli/terminal.h"

#include "harness/base/cli/page.h"
#include "traces/io/numbers.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int fl_terminal_width(FILE *stream) {
    struct winsize w;
    const char *columns = getenv("COLUMNS");
    const int fd = fileno(stream);
    int64_t n = FL_TERMINAL_STANDARD;
    if (isatty(fd) && !ioctl(fd, TIOCGWINSZ, &w) && w.ws_col)
        n = w.ws_col;
    else if (!columns || fl_int_parse(columns, &n) != FL_NUMBER_OK || n < 1 || n > 100000)
        n = FL_TERMINAL_STANDARD;
    return n > FL_TERMINAL_LEAST ? (int)n : FL_TERMINAL_LEAST;
}

void fl_terminal_say(FILE *stream, const char *format, ...) {
    char text[8192];
    va_list list;
    va_start(list, format);
    const bool terminal = isatty(fileno(stream));
    if (terminal)
        (void)vsnprintf(text, sizeof text, format, list);
    else
        vfprintf(stream, format, list);
    va_end(list);
    if (terminal) {
        const fl_page page = {.out = stream, .width = fl_terminal_width(stream)};
        fl_page_fill(&page, 0, 2, text);
    } else {
        putc('\n', stream);
    }
}
