/* Text for a reader: shares, wrapped pages for terminal and roff, lines for the terminal. */
#include "harness/base/cli/inside.h"

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- the file of kernel classes beside a trace ---- */

fl_status fl_kinds_beside(const char *path, fl_head *head, char **kinds, fl_diag *d) {
    static const char programs[] = ".programs.csv"; /* x.programs.csv has x.kinds.csv */
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t stem = fl_stem_length(path, programs);
    *kinds = NULL;
    if (fl_is_standard(path))
        return fl_refuse(d, "-o '-' holds one file, but the kinds need another, expected a file name");
    if (!fl_name_ends(path, programs)) {
        const char *dot = memrchr(base, '.', stem - (size_t)(base - path));
        stem = dot ? (size_t)(dot - path) : stem;
    }
    if (asprintf(kinds, "%.*s.kinds.csv", (int)stem, path) < 0) {
        *kinds = NULL;
        return fl_no_memory(d, NULL);
    }
    return fl_head_set(head, "kinds", *kinds + (base - path)) ? FL_OK : fl_no_memory(d, NULL);
}

/* ---- shares: 0.05 or 5% ---- */

bool fl_share_parse(const char *text, double *value, bool *percent) {
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    *percent = end > text && *end == '%';
    if (*percent)
        *value /= 100;
    const char *rest = end + *percent;
    while (isspace((unsigned char)*rest))
        rest++;
    return end > text && !*rest && !errno && !isnan(*value);
}

char *fl_share_text(double value, char buf[FL_SHARE_TEXT]) {
    snprintf(buf, FL_SHARE_TEXT, "%g, expected a share: %g or %g%%; %g %% are said as %g%%", value, value / 100, value,
             100 * value, 100 * value);
    return buf;
}

fl_status fl_share_refuse(const char *what, double value, fl_diag *d) {
    char text[FL_SHARE_TEXT];
    return fl_refuse(d, "%s%s", what, fl_share_text(value, text));
}

/* ---- pages ---- */

enum {
    ROOM = 4096,    /* bytes of a line of a text, or of a term */
    NARROW = 24,    /* columns that the meaning of a row needs, at least */
    BELOW = 6,      /* its column when it stands below the term */
    ROFF_WIDTH = 72 /* columns of a command in a manual page: man(1) does not break these lines */
};

/* ---- characters ---- */

/* Escapes the characters that roff reads as commands or as typographic marks. */
static void put_escaped(const fl_page *p, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        if (!p->roff)
            putc(c, p->out);
        else if (c == '\\')
            fputs("\\e", p->out);
        else if (c == '-')
            fputs("\\-", p->out);
        else if (c == '\'')
            fputs("\\(aq", p->out);
        else if (c == '^')
            fputs("\\(ha", p->out);
        else if (c == '~')
            fputs("\\(ti", p->out);
        else if (c == '`')
            fputs("\\(ga", p->out);
        else if (c == '.' && !i)
            fputs("\\&.", p->out); /* a word may begin a line, where a dot would begin a request */
        else if (c == ',' && i + 1 < size)
            fputs(",\\:", p->out); /* roff may break a long list here */
        else
            putc(c, p->out);
    }
}

static void put_blanks(const fl_page *p, int count) {
    if (!p->roff && count > 0)
        fprintf(p->out, "%*s", count, "");
}

/* ---- words ---- */

static size_t next_word(const char **at) {
    *at += strspn(*at, " \n");
    return strcspn(*at, " \n");
}

/* How much of a word that is longer than a line goes into one: up to the last mark after which lists and paths may be
 * broken. */
static size_t part_that_fits(const char *word, size_t room) {
    for (size_t n = room; n > room / 2; n--)
        if (strchr(",/|:;=", word[n - 1]))
            return n;
    return room;
}

/* Fills lines, starting in the given column of the current line. */
static void fill_from(const fl_page *p, int column, int rest, const char *text) {
    const int width = p->roff ? ROFF_WIDTH : p->width;
    bool begun = false;
    for (size_t size; (size = next_word(&text)); text += size) {
        const bool inside = begun && text[-1] != ' ' && text[-1] != '\n'; /* inside a word that was broken */
        if (begun && (inside || column + 1 + (int)size > width)) {
            putc('\n', p->out);
            column = p->indent + rest;
            put_blanks(p, column);
            begun = false;
        }
        if (begun)
            putc(' ', p->out);
        const int room = width - column - begun;
        if (!p->roff && room > 0 && (int)size > room)
            size = part_that_fits(text, (size_t)room);
        put_escaped(p, text, size);
        column += (int)size + begun;
        begun = true;
    }
    putc('\n', p->out);
}

void fl_page_fill(const fl_page *p, int first, int rest, const char *text) {
    put_blanks(p, p->indent + first);
    fill_from(p, p->indent + first, rest, text);
}

/* The length of an unbreakable unit: a word, including quoted parts in it. */
static size_t argument(const char *at) {
    char quote = '\0';
    size_t n = 0;
    for (; at[n] && (quote || at[n] != ' '); n++) {
        if (quote ? at[n] == quote : at[n] == '\'' || at[n] == '"')
            quote = quote ? '\0' : at[n];
    }
    return n;
}

/* An option and its value stay on one line. */
static size_t arguments(const char *at) {
    const size_t n = argument(at);
    if (at[0] != '-' || memchr(at, '=', n) || !at[n] || strchr("-|&>", at[n + 1]) || n == 2)
        return n;
    return n + 1 + argument(at + n + 1);
}

void fl_page_command(const fl_page *p, int first, const char *command) {
    const int width = p->roff ? ROFF_WIDTH : p->width;
    int column = p->indent + first;
    bool begun = false;
    put_blanks(p, column);
    if (p->roff)
        fputs("\\fB", p->out);
    while (*(command += strspn(command, " "))) {
        size_t size = arguments(command);
        if (column + 3 + (int)size > width)
            size = argument(command);
        const int end = command[size] ? 2 : 0; /* the backslash */
        if (begun && column + 1 + (int)size + end > width) {
            fputs(p->roff ? " \\e\\fR\n\\fB" : " \\\n", p->out);
            column = p->indent + first + 4;
            fprintf(p->out, "%*s", p->roff ? 4 : column, "");
            begun = false;
        }
        if (begun)
            putc(' ', p->out);
        put_escaped(p, command, size);
        column += (int)size + begun;
        begun = true;
        command += size;
    }
    fputs(p->roff ? "\\fR\n" : "\n", p->out);
}

/* ---- headings and rows ---- */

void fl_page_gap(const fl_page *p) { fputs(p->roff ? ".PP\n" : "\n", p->out); }

void fl_page_heading(const fl_page *p, const char *name) {
    if (p->roff)
        fprintf(p->out, ".SH %s\n", name);
    else
        fprintf(p->out, "\n%s\n", name);
}

void fl_page_subheading(const fl_page *p, const char *name) {
    if (p->roff)
        fprintf(p->out, ".SS %s\n", name);
    else
        fprintf(p->out, "\n%s:\n", name);
}

/* The column of the meaning of a row. */
static int right_of(const fl_page *p, int column) { return p->width - p->indent - column < NARROW ? BELOW : column; }

void fl_page_row(const fl_page *p, int column, const char *term, const char *text) {
    const int size = (int)strlen(term);
    if (p->roff) {
        fputs(".TP\n\\fB", p->out);
        put_escaped(p, term, (size_t)size);
        fputs("\\fR\n", p->out);
        fl_page_fill(p, 0, 0, text);
        return;
    }
    const int right = right_of(p, column);
    put_blanks(p, p->indent + 2);
    fputs(term, p->out);
    if (right < column || size + 2 >= column) {
        putc('\n', p->out);
        fl_page_fill(p, right, right, text);
        return;
    }
    put_blanks(p, column - size - 2);
    fill_from(p, p->indent + column, column, text);
}

void fl_page_below(const fl_page *p, int column, const char *text) {
    if (p->roff)
        fputs(".br\n", p->out);
    fl_page_fill(p, right_of(p, column), right_of(p, column), text);
}

/* ---- paragraphs ---- */

/* The column in which a row's meaning starts, 0 where the line is not a row; *term and *size: its term. */
static int row_of(const char *line, const char **term, size_t *size) {
    if (strncmp(line, "  ", 2) || line[2] == ' ' || line[2] == '\n' || !line[2])
        return 0;
    const char *end = line + strcspn(line, "\n"), *gap = strstr(line + 2, "  ");
    if (!gap || gap >= end)
        return 0;
    *term = line + 2;
    *size = (size_t)(gap - *term);
    return (int)(gap - line) + (int)strspn(gap, " ");
}

/* The column that fits all consecutive rows, so that their meanings are aligned. */
static int column_of_rows(const char *text) {
    const char *term;
    size_t size;
    int most = 0;
    for (int column; (column = row_of(text, &term, &size)) || !strncmp(text, "    ", 4);) {
        most = column > most ? column : most;
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return most;
}

static bool is_blank(const char *line) { return *line == '\n' || !*line; }

/* The lines of a paragraph, up to an empty line or an indented one. */
static size_t paragraph(const char *at) {
    size_t n = 0;
    do {
        n += strcspn(at + n, "\n");
        n += at[n] == '\n';
    } while (at[n] && !is_blank(at + n) && strncmp(at + n, "  ", 2) != 0);
    return n;
}

static void copy(char room[ROOM], const char *from, size_t size) {
    size = size < ROOM ? size : ROOM - 1;
    memcpy(room, from, size);
    room[size] = '\0';
}

void fl_page_text(const fl_page *p, const char *text) {
    char what[ROOM], left[ROOM];
    int right = 0; /* column of the meanings of rows; 0: no row stands above */
    while (*text) {
        const char *term = NULL;
        size_t size = 0, line = strcspn(text, "\n");
        const int column = row_of(text, &term, &size);
        if (is_blank(text)) {
            fl_page_gap(p);
            right = 0;
        } else if (column) {
            right = right ? right : column_of_rows(text);
            copy(left, term, size);
            copy(what, text + column, line - (size_t)column);
            fl_page_row(p, right, left, what);
        } else if (right && !strncmp(text, "    ", 4)) {
            copy(what, text, line);
            fl_page_below(p, right, what);
        } else if (!strncmp(text, "  ", 2)) {
            copy(what, text, line);
            if (p->roff)
                fputs(".br\n", p->out);
            fl_page_fill(p, 2, 2, what);
        } else {
            line = paragraph(text);
            copy(what, text, line);
            fl_page_fill(p, 0, 0, what);
            line -= text[line - 1] == '\n';
            right = 0;
        }
        text += line;
        text += *text == '\n';
    }
}

/* ---- lines for the terminal ---- */

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

void fl_notes_tell(const char *path, char *const *note, size_t count) {
    fl_ticker_clear();
    for (size_t i = 0; i < count; i++)
        fl_terminal_say(stderr, "note: %s: %s", basename(fl_input_name(path)), note[i]);
}

void fl_left_tell(const char *path, const fl_left_out *left) {
    static _Atomic uint32_t last; /* advice on servers opens its requests again for each draw */
    char text[400], *note = text;
    uint32_t now = fl_hash(path, strlen(path));
    for (int i = 0; fl_left_text(left, i, text, sizeof text); i++)
        now = now * 31 + fl_hash(text, strlen(text));
    if (atomic_exchange(&last, now) == now)
        return;
    for (int i = 0; fl_left_text(left, i, text, sizeof text); i++)
        fl_notes_tell(path, &note, *text ? 1 : 0);
}
