/* What pictures of lines share. */
#include "harness/report/picture/inside.h"

#include "harness/report/picture/picture.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { BETWEEN = 15, TITLE = 26, FOOT = 50, QUIET = 14 };

void fl_hold(double *low, double *high, double value) {
    if (isfinite(value)) {
        *low = fmin(*low, value);
        *high = fmax(*high, value);
    }
}

void fl_loosen(double *low, double *high) {
    if (!(*low <= *high)) {
        *low = 0;
        *high = 1;
    }
    const double room = *high > *low ? 0.06 * (*high - *low) : fmax(0.1 * fabs(*high), 0.5);
    *low -= room;
    *high += room;
}

void fl_lines_begin(fl_lines *l, fl_picture *p, int count, int across, double height, double names, bool tight,
                    const char *title, const char *about) {
    *l = (fl_lines){.p = p, .count = count, .across = across, .left = 66, .right = names + 14};
    l->cell_width = p->width / across;
    l->head = tight ? QUIET : TITLE;
    l->plot_height = height;
    l->cell_height = l->head + height + (tight ? 0 : FOOT);
    p->top = 6;
    fl_picture_plot(p, l->left, l->right, height);
    fl_picture_title(p, title, about);
    l->top = p->top;
    p->height = l->top + l->cell_height * ((count + across - 1) / across) + (tight ? FOOT : 0) + 4;
    fprintf(p->facts, "panels=%d\n", count);
    static const char *const array[] = {"panel_title", "panel_xlabel", "panel_ylabel", "panel_ticks", "panel_left",
                                        "panel_right", "panel_top",    "panel_bottom", "panel_x0",    "panel_x1",
                                        "panel_y0",    "panel_y1",     "panel_logx",   "panel_logy",  "panel_quiet"};
    for (size_t i = 0; i < sizeof array / sizeof *array; i++)
        fprintf(p->facts, "array %s[%d]\n", array[i], count);
    fputs("what,panel,x,y,low,high,colour,text,tip\n", p->table);
}

static double on(bool log, double value) { return log ? log10(value) : value; }

static double px_of(const fl_lines *l, double x) { return fl_picture_px(l->p, on(l->panel.log_x, x)); }
static double py_of(const fl_lines *l, double y) { return fl_picture_py(l->p, on(l->panel.log_y, y)); }

static int by_y(const void *a, const void *b) {
    const double *x = a, *y = b; /* y is the first member of an end */
    return (*x > *y) - (*x < *y);
}

/* Moves names apart without any leaving the plot. */
static void put_names(fl_lines *l) {
    const fl_picture *p = l->p;
    qsort(l->end, l->ends, sizeof *l->end, by_y);
    for (size_t i = 1; i < l->ends; i++)
        l->end[i].y = fmax(l->end[i].y, l->end[i - 1].y + BETWEEN);
    double floor = p->bottom;
    for (size_t i = l->ends; i--; floor = l->end[i].y - BETWEEN)
        l->end[i].y = fmin(l->end[i].y, floor);
    for (size_t i = 0; i < l->ends; i++) {
        const double y = fl_picture_y(p, l->end[i].y);
        char text[256];
        fprintf(p->table, "name,%d,%.17g,%.17g,n/a,n/a,%d,", l->at, l->panel.x1, l->panel.log_y ? pow(10, y) : y,
                l->end[i].colour);
        fl_picture_field(l->p->table, fl_text_fit(l->end[i].text, l->right - 12, text));
        fputs(",\n", p->table);
    }
    l->ends = 0;
}

void fl_lines_text(fl_lines *l, double px, double py, int colour, const char *text) {
    const double x = fl_picture_x(l->p, px), y = fl_picture_y(l->p, py);
    fprintf(l->p->table, "text,%d,%.17g,%.17g,n/a,n/a,%d,", l->at, l->panel.log_x ? pow(10, x) : x,
            l->panel.log_y ? pow(10, y) : y, colour);
    fl_picture_field(l->p->table, text);
    fputs(",\n", l->p->table);
}

static void indexed(fl_lines *l, const char *name, double value) {
    char text[64];
    snprintf(text, sizeof text, "%s[%d]", name, l->at);
    fl_picture_number(l->p, text, value);
}

static void indexed_text(fl_lines *l, const char *name, const char *value) {
    char text[64];
    snprintf(text, sizeof text, "%s[%d]", name, l->at);
    fl_picture_text(l->p, text, value);
}

/* The tested values as ticks, from the left, as many as do not touch; always both ends. */
static void put_ticks(fl_lines *l) {
    char list[2048] = "", one[64];
    double until = -HUGE_VAL;
    size_t used = 0;
    const size_t n = l->panel.ticks;
    for (size_t i = 0; i < n && used < sizeof list - 64; i++) {
        snprintf(one, sizeof one, "%.5g", l->panel.tick[i]);
        const double half = fl_text_width(one) / 2 + 3, at = px_of(l, l->panel.tick[i]);
        char last[64];
        snprintf(last, sizeof last, "%.5g", l->panel.tick[n - 1]);
        const double end = px_of(l, l->panel.tick[n - 1]) - fl_text_width(last) / 2 - 3;
        if (at - half < until || (i + 1 < n && at + half > end))
            continue;
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s\"%s\" %.17g", used ? "," : "", one, l->panel.tick[i]);
        until = at + half;
    }
    indexed_text(l, "panel_ticks", list);
}

void fl_lines_panel(fl_lines *l, const fl_panel *panel) {
    fl_picture *p = l->p;
    if (l->at)
        put_names(l);
    const int row = l->at / l->across, column = l->at % l->across;
    l->at++;
    l->panel = *panel;
    p->left = column * l->cell_width + l->left;
    p->right = (column + 1) * l->cell_width - l->right;
    p->top = l->top + row * l->cell_height + l->head;
    p->bottom = p->top + l->plot_height;
    p->x0 = on(panel->log_x, panel->x0);
    p->x1 = on(panel->log_x, panel->x1);
    p->y0 = on(panel->log_y, panel->y0);
    p->y1 = on(panel->log_y, panel->y1);
    indexed_text(l, "panel_title", panel->title);
    indexed_text(l, "panel_xlabel", panel->quiet_x ? "" : panel->x_label);
    indexed_text(l, "panel_ylabel", panel->y_label);
    indexed(l, "panel_left", p->left);
    indexed(l, "panel_right", p->right);
    indexed(l, "panel_top", p->top);
    indexed(l, "panel_bottom", p->bottom);
    indexed(l, "panel_x0", panel->x0);
    indexed(l, "panel_x1", panel->x1);
    indexed(l, "panel_y0", panel->y0);
    indexed(l, "panel_y1", panel->y1);
    indexed(l, "panel_logx", panel->log_x);
    indexed(l, "panel_logy", panel->log_y);
    indexed(l, "panel_quiet", panel->quiet_x);
    put_ticks(l);
}

void fl_lines_end(fl_lines *l) {
    if (l->at)
        put_names(l);
}

void fl_lines_point(fl_lines *l, const char *what, double x, double y, double low, double high, int colour) {
    if (!isfinite(x) || (l->panel.log_x && x <= 0) || (isfinite(y) && l->panel.log_y && y <= 0))
        return;
    if (!isfinite(y)) { /* the line is interrupted */
        fl_lines_lift(l);
        return;
    }
    fprintf(l->p->table, "%s,%d,%.17g,%.17g,%.17g,%.17g,%d,,\n", what, l->at, x, y, isfinite(low) ? low : y,
            isfinite(high) ? high : y, colour);
    l->down = true;
    l->y = y;
}

void fl_lines_step(fl_lines *l, const char *what, double x, double y, int colour) {
    if (l->down && isfinite(y) && y != l->y)
        fl_lines_point(l, what, x, l->y, NAN, NAN, colour);
    fl_lines_point(l, what, x, y, NAN, NAN, colour);
}

void fl_lines_range(fl_lines *l, double x, double low, double high, int colour) {
    fl_lines_point(l, "range", x, fmax(low, l->panel.y0), NAN, NAN, colour);
    fl_lines_point(l, "range", x, fmin(high, l->panel.y1), NAN, NAN, colour);
    fl_lines_lift(l);
}

void fl_lines_lift(fl_lines *l) {
    fputc('\n', l->p->table);
    l->down = false;
}

void fl_lines_tip(fl_lines *l, double x, double y, const char *text) {
    if (!isfinite(x) || !isfinite(y) || (l->panel.log_x && x <= 0) || (l->panel.log_y && y <= 0))
        return;
    fprintf(l->p->table, "tip,%d,%.17g,%.17g,n/a,n/a,0,,", l->at, x, y);
    fl_picture_field(l->p->table, text);
    fputc('\n', l->p->table);
}

void fl_lines_name(fl_lines *l, double y, int colour, const char *text) {
    if (l->ends == FL_ENDS_MAX || !isfinite(y) || (l->panel.log_y && y <= 0))
        return;
    l->end[l->ends].y = fmin(fmax(py_of(l, y), l->p->top), l->p->bottom);
    l->end[l->ends].colour = colour;
    snprintf(l->end[l->ends++].text, sizeof l->end->text, "%s", text);
}
