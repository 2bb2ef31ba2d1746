/* One picture: texts, layout, and gnuplot. */
#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/inside.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Writes one field of the table without quotes and control characters, since gnuplot cannot quote them. A comma becomes
 * FL_PICTURE_COMMA, which written() of plots/style.gp turns back. */
enum { FL_PICTURE_COMMA = 31 };

enum { FONT = 12 }; /* pixels: all lengths of a layout are for this size, and a picture of another is scaled */

enum {
    LINE = 18,
    MARK = 22,
    GAP = 18,
    LEGENDS_MAX = 400,
    TITLE_FOOT = 14
}; /* of the legend: height of a row, width of a mark, space between columns */

/* ---- texts ---- */

/* Widths of DejaVu Sans, in parts of its size; a character without an entry counts as wide as most. */
static double em(char c) {
    return strchr("iljI|.,:;'! ", c)  ? 0.33
           : strchr("ftr()[]-/", c)   ? 0.40
           : strchr("mwMW%@=+<>_", c) ? 0.85
           : c >= 'A' && c <= 'Z'     ? 0.70
                                      : 0.62;
}

double fl_text_width(const char *text) {
    double sum = 0;
    for (; *text; text++)
        if (((unsigned char)*text & 0xc0) != 0x80) /* the first byte of a character */
            sum += em(*text);
    return 12 * sum;
}

char *fl_text_fit(const char *text, double width, char buf[256]) {
    size_t length = strlen(text), head = length < 120 ? length : 120;
    snprintf(buf, 256, "%.*s", (int)(length < 255 ? length : 255), text);
    while (fl_text_width(buf) > width && head > 3) { /* differences between labels usually stand at the end */
        head--;
        while (head > 1 && ((unsigned char)text[head / 3] & 0xc0) == 0x80)
            head--;
        const char *tail = text + length - (head - head / 3);
        while (((unsigned char)*tail & 0xc0) == 0x80)
            tail++;
        snprintf(buf, 256, "%.*s\xe2\x80\xa6%s", (int)(head / 3), text, tail);
    }
    return buf;
}

/* Writes a text for gnuplot. Within single quotes only the quote itself is special. Doubled it stands for itself, but
 * not as the first character. */
static void put_text(FILE *f, const char *text, size_t size) {
    fputc('\'', f);
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\'')
            fputs(i ? "''" : "\xe2\x80\x99", f);
        else
            fputc((unsigned char)text[i] < 32 || text[i] == 127 ? ' ' : text[i], f);
    fputc('\'', f);
}

void fl_picture_text(fl_picture *p, const char *name, const char *text) {
    fprintf(p->facts, "%s=", name);
    put_text(p->facts, text, strlen(text));
    fputc('\n', p->facts);
}

void fl_picture_number(fl_picture *p, const char *name, double value) {
    fprintf(p->facts, isfinite(value) ? "%s=%.17g\n" : "%s=NaN\n", name, value);
}

void fl_picture_field(FILE *table, const char *text) {
    for (; *text; text++)
        if (*text == ',')
            fputc(FL_PICTURE_COMMA, table);
        else if (*text == '"')
            fputc('\'', table);
        else if (*text == '\\') /* it would begin a line break or the like; this character only looks the same */
            fputs("\xe2\x88\x96", table);
        else
            fputc((unsigned char)*text < 32 || *text == 127 ? ' ' : *text, table);
}

/* ---- layout ---- */

static int memory_file(FILE **f, fl_diag *d) {
    const int fd = memfd_create("foldline-picture", 0);
    *f = fd < 0 ? NULL : fdopen(dup(fd), "w");
    if (!*f) {
        fl_error(d, FL_IO, "cannot make a picture: %s", fl_reason(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

fl_status fl_picture_open(fl_picture *p, fl_picture_size size, fl_diag *d) {
    static const double width[] = {900, 860, 400, 440};
    *p = (fl_picture){.size = size, .width = width[size], .top = 20, .table_fd = -1, .facts_fd = -1};
    fl_picture_plot(p, 66, 18, 300);
    if ((p->table_fd = memory_file(&p->table, d)) < 0 || (p->facts_fd = memory_file(&p->facts, d)) < 0) {
        fl_picture_close(p);
        return d ? d->status : FL_IO;
    }
    fputs("array legend_text[400]\narray legend_x[400]\narray legend_y[400]\narray legend_pt[400]\narray "
          "legend_lc[400]\ntitle=''\nabout=''\ntitle_lines=0\n",
          p->facts);
    return FL_OK;
}

double fl_picture_scale(const fl_plot_options *o) { return o && o->font > 0 ? o->font / FONT : 1; }

void fl_picture_plot(fl_picture *p, double left, double right, double height) {
    p->left = left;
    p->right = p->width - right;
    p->bottom = p->top + height;
    p->height = p->bottom + 52;
}

void fl_picture_range(fl_picture *p, double x0, double x1, double y0, double y1) {
    p->x0 = x0;
    p->x1 = x1;
    p->y0 = y0;
    p->y1 = y1;
    fprintf(p->facts, "x0=%.17g\nx1=%.17g\ny0=%.17g\ny1=%.17g\n", x0, x1, y0, y1);
}

double fl_picture_ticks(fl_picture *p, double y0, double y1) {
    static const double mantissa[] = {1, 2, 5, 10};
    const double least = (y1 - y0) / 8, power = pow(10, floor(log10(least)));
    size_t k = 0;
    while (mantissa[k] * power < least && k < 3)
        k++;
    const double step = mantissa[k] * power, first = ceil(y0 / step);
    double widest = 0;
    for (int i = 0; i < 10 && (first + i) * step <= y1; i++) {
        char text[32];
        snprintf(text, sizeof text, "%g", (first + i) * step);
        widest = fmax(widest, fl_text_width(text));
    }
    fl_picture_number(p, "y_step", step);
    return fmax(60, widest + 42); /* the label stands upright: this is its height, and room on both sides */
}

void fl_picture_close(fl_picture *p) {
    if (p->table)
        fclose(p->table);
    if (p->facts)
        fclose(p->facts);
    if (p->table_fd > 0)
        close(p->table_fd);
    if (p->facts_fd > 0)
        close(p->facts_fd);
    *p = (fl_picture){0};
}

/* Writes NAME='line one'."\n".'line two', broken at blanks where the width ends, and within a word that is wider.
 * Returns the number of lines. */
static int put_lines(fl_picture *p, const char *name, const char *text, double width) {
    int lines = 0;
    fprintf(p->facts, "%s=", name);
    while (*text) {
        size_t fits = 0, blank = 0;
        char part[1024];
        for (size_t n = 1; n < sizeof part; n++) {
            if (((unsigned char)text[n] & 0xc0) == 0x80)
                continue;
            snprintf(part, sizeof part, "%.*s", (int)n, text);
            if (fits && fl_text_width(part) > width)
                break;
            fits = n;
            if (!text[n])
                break;
            if (text[n] == ' ')
                blank = n;
        }
        const size_t cut = !text[fits] ? fits : blank ? blank : fits;
        if (lines++)
            fputs(".\"\\n\".", p->facts);
        put_text(p->facts, text, cut);
        text += cut;
        text += *text == ' ';
    }
    fputs(lines ? "\n" : "''\n", p->facts);
    return lines;
}

void fl_picture_title(fl_picture *p, const char *title, const char *about) {
    const char *asked = p->options ? p->options->title : NULL;
    if (p->size != FL_PICTURE_PRINT || (asked && !strcmp(asked, "none")))
        return;
    title = asked ? asked : title;
    const double width = p->width - 40;
    const int titles = put_lines(p, "title", title, width * 12 / 16);
    const int lines = titles * 22 + put_lines(p, "about", about, width) * 17;
    fprintf(p->facts, "title_lines=%d\n", titles);
    p->top += lines + TITLE_FOOT;
    p->bottom += lines + TITLE_FOOT;
    p->height += lines + TITLE_FOOT;
}

void fl_picture_legend(fl_picture *p, size_t count, double longest) {
    const double column = longest + MARK + GAP;
    const int fit = (int)((p->width - 30) / column), columns = fit < 1 ? 1 : (size_t)fit > count ? (int)count : fit;
    const int rows = columns ? ((int)count + columns - 1) / columns : 0;
    p->legend_columns = rows ? ((int)count + rows - 1) / rows : 1; /* rows of about equal length */
    p->legend_width = column;
    p->legend_y = p->bottom + 66;
    p->height = p->legend_y + rows * LINE;
}

int fl_picture_point(fl_look look, bool baseline, bool hollow) {
    static const int filled[FL_PICTURE_SHAPES] = {7, 5, 9, 13, 11, 15}, cross[4] = {1, 2, 3, 13};
    return baseline ? cross[look.shape % 4] : filled[look.shape % FL_PICTURE_SHAPES] - hollow;
}

void fl_picture_entry(fl_picture *p, const char *text, fl_look look, int point) {
    char name[64];
    const int at = ++p->legends, row = (at - 1) / p->legend_columns, column = (at - 1) % p->legend_columns;
    if (at > LEGENDS_MAX)
        return;
    snprintf(name, sizeof name, "legend_text[%d]", at);
    fl_picture_text(p, name, text);
    fprintf(p->facts, "legend_x[%d]=%.1f\nlegend_y[%d]=%.1f\nlegend_pt[%d]=%d\nlegend_lc[%d]=%d\n", at,
            24 + column * p->legend_width, at, p->legend_y + row * LINE, at, point, at, look.colour);
}

/* ---- gnuplot ---- */

/* The first line of gnuplot's complaint, without the caret lines that point into the script. */
static void complaint(int fd, char *text, size_t size) {
    char all[4096];
    size_t n = 0;
    for (ssize_t got; n < sizeof all - 1 && (got = read(fd, all + n, sizeof all - 1 - n)) > 0;)
        n += (size_t)got;
    all[n] = 0;
    snprintf(text, size, "gnuplot failed");
    char *save = NULL;
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *colon = strstr(line, ": ");
        if (colon && (strstr(line, ".gp\"") || strstr(line, "line "))) {
            snprintf(text, size, "gnuplot: %s", colon + 2);
            return;
        }
    }
}

/* Runs both scripts, one after the other; the picture goes to descriptor `to`. */
static fl_status run_gnuplot(const char *facts, const char *script, int to, const char *input, fl_diag *d) {
    int out[2];
    if (pipe2(out, O_CLOEXEC))
        return fl_error(d, FL_IO, "cannot make a pipe: %s", fl_reason(errno));
    const pid_t pid = fork();
    if (pid == 0) {
        const int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(to, 1);
        dup2(out[1], 2);
        execlp("gnuplot", "gnuplot", facts, script, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    char text[512];
    complaint(out[0], text, sizeof text);
    close(out[0]);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return fl_error(d, FL_IO, "cannot run gnuplot: %s", fl_reason(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return fl_error(d, FL_IO, "cannot find gnuplot, expected it on the path (Debian: gnuplot-nox)");
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        return fl_fail(d, FL_BAD_INPUT, input, 0, 0, "cannot be drawn: %s", text);
    return FL_OK;
}

static fl_status whole_file(int fd, char **bytes, size_t *size, fl_diag *d) {
    struct stat about;
    if (fstat(fd, &about))
        return fl_error(d, FL_IO, "cannot read a picture: %s", fl_reason(errno));
    char *text = fl_must(malloc((size_t)about.st_size + 1));
    size_t n = 0;
    for (ssize_t got; n < (size_t)about.st_size; n += (size_t)got)
        if ((got = pread(fd, text + n, (size_t)about.st_size - n, (off_t)n)) <= 0) {
            free(text);
            return fl_error(d, FL_IO, "cannot read a picture");
        }
    text[n] = 0;
    *bytes = text;
    *size = n;
    return FL_OK;
}

fl_status fl_picture_draw(fl_picture *p, const char *kind, const char *format, const char *input, char **bytes,
                          size_t *size, fl_diag *d) {
    char folder[PATH_MAX], facts[64], table[64];
    fl_place(FL_PLACE_PLOTS, folder, sizeof folder);
    snprintf(facts, sizeof facts, "/dev/fd/%d", p->facts_fd);
    snprintf(table, sizeof table, "/dev/fd/%d", p->table_fd);
    fl_picture_text(p, "plots", folder);
    fl_picture_text(p, "input", table);
    fl_picture_text(p, "terminal", format);
    fl_picture_number(p, "scale", fl_picture_scale(p->options));
    fprintf(p->facts, "width=%g\nheight=%g\nleft=%g\nright=%g\ntop=%g\nbottom=%g\nnarrow=%d\nlegends=%d\n", p->width,
            p->height, p->left, p->right, p->top, p->bottom, p->width < 600,
            p->legends < LEGENDS_MAX ? p->legends : LEGENDS_MAX);
    const bool written = !fflush(p->table) && !fflush(p->facts) && !ferror(p->table) && !ferror(p->facts);
    const int to = memfd_create("foldline-drawn", MFD_CLOEXEC);
    fl_status s = !written || to < 0 ? fl_error(d, FL_IO, "cannot make a picture: %s", fl_reason(errno)) : FL_OK;
    char *script = fl_must_print("%s/%s.gp", folder, kind);
    if (!s)
        s = run_gnuplot(facts, script, to, input, d);
    fl_must_have(!fl_memory_failed()); /* while the table was made */
    if (!s)
        s = whole_file(to, bytes, size, d);
    if (to >= 0)
        close(to);
    free(script);
    return s;
}

/* ---- colour, shape and dash of a policy ---- */

/* Colour, shape and dash of each policy. */

void fl_looks_make(const fl_report_data *r, fl_looks *l) {
    *l = (fl_looks){0};
    size_t policies = 0;
    for (size_t p = 0; p < r->policy.count; p++)
        policies += !fl_report_is_baseline(r->policy.item[p]);
    const bool each = policies <= FL_PICTURE_LOOKS;
    l->by_family = !each;
    size_t *members = fl_must(calloc(r->policy.count + 1, sizeof *members)), baselines = 0; /* of a family so far */
    l->of = fl_must(calloc(r->policy.count + 1, sizeof *l->of));
    l->legend_look = fl_must(calloc(r->policy.count + 1, sizeof *l->legend_look));
    for (int baseline = 0; baseline < 2; baseline++) /* the legend ends with the baselines */
        for (size_t p = 0; p < r->policy.count; p++) {
            char family[128];
            const char *name = r->policy.item[p];
            if (fl_report_is_baseline(name) != (baseline != 0))
                continue;
            const size_t index = fl_names_index(&l->legend, baseline || each ? name : fl_label_family(name, family));
            l->of[p] = baseline ? (fl_look){.shape = (int)baselines++}
                                : (fl_look){.colour = 1 + (int)(index % FL_PICTURE_COLOURS),
                                            .shape = (int)(index % FL_PICTURE_SHAPES),
                                            .dash = (int)(members[index] % 5)};
            if (!members[index]++)
                l->legend_look[index] = l->of[p];
        }
    free(members);
}

bool fl_picture_shows(const fl_picture *p, const char *policy) {
    const fl_texts *asked = p->options ? p->options->policies : NULL;
    char family[128];
    if (!asked || !asked->count || fl_report_is_baseline(policy))
        return true;
    for (size_t i = 0; i < asked->count; i++)
        if (!strcmp(asked->item[i], policy) || !strcmp(asked->item[i], fl_label_family(policy, family)))
            return true;
    return false;
}

fl_status fl_picture_known(const fl_picture *p, const fl_names *n, fl_diag *d) {
    const fl_texts *asked = p->options ? p->options->policies : NULL;
    for (size_t i = 0; asked && i < asked->count; i++) {
        bool found = false;
        char family[128];
        for (size_t k = 0; k < n->count; k++)
            found |=
                !strcmp(asked->item[i], n->item[k]) || !strcmp(asked->item[i], fl_label_family(n->item[k], family));
        const char *near = found ? NULL : fl_nearest(asked->item[i], (const char *const *)n->item, n->count);
        if (near)
            return fl_refuse(d, "no policy '%s' in the result, did you mean '%s'?", asked->item[i], near);
        if (!found)
            return fl_refuse(d, "no policy '%s' in the result, expected a label or its part before the colon",
                             asked->item[i]);
    }
    return FL_OK;
}

void fl_looks_free(fl_looks *l) {
    free(l->of);
    free(l->legend_look);
    fl_names_free(&l->legend);
    *l = (fl_looks){0};
}
