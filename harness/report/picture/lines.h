/* Panels of lines over a common kind of axis, with each line named at its end, for plots/lines.gp. A row of the table
 * is a point: what,panel,x,y,low,high,colour,text,tip. */
#pragma once

#include "harness/report/picture/picture.h"

enum { FL_PANELS_MAX = 12, FL_ENDS_MAX = 40 };

typedef struct fl_panel {
    const char *title, *x_label, *y_label; /* "" = none */
    double x0, x1, y0, y1;
    bool log_x, log_y, quiet_x; /* quiet_x: only the panel below has the numbers */
    const double *tick;         /* ticks along x at these values, as many as find room; NULL = gnuplot chooses */
    size_t ticks;
} fl_panel;

typedef struct fl_lines {
    fl_picture *p;
    fl_panel panel;
    int at, across, count; /* at: the current panel, from 1 */
    double top, head, plot_height, cell_width, cell_height, left, right;
    double y; /* y of the last point, while the line continues */
    bool down;
    struct {
        double y;
        char text[256];
        int colour;
    } end[FL_ENDS_MAX];
    size_t ends;
} fl_lines;

/* count panels, `across` in a row, with plots of height pixels, and `names` pixels at the right for names; tight:
 * panels without titles, with numbers along x only below the last. Panels then follow one after the other. */
void fl_lines_begin(fl_lines *l, fl_picture *p, int count, int across, double height, double names, bool tight,
                    const char *title, const char *about);
/* Begins the next panel; the names of the previous one are written. */
void fl_lines_panel(fl_lines *l, const fl_panel *panel);
void fl_lines_end(fl_lines *l);

/* A point of the line in work: "line", "dashed" (drawn over it), "faint", "strong", "wall", "slope" or "band" (low to
 * high); a "point" stands alone, a "ring" is a hollow one. Points that are not on a logarithmic axis are left out. */
void fl_lines_point(fl_lines *l, const char *what, double x, double y, double low, double high, int colour);
/* The same for a line that holds its value until the next point. */
void fl_lines_step(fl_lines *l, const char *what, double x, double y, int colour);
void fl_lines_lift(fl_lines *l); /* the line ends */
/* An upright line from low to high, limited to the panel. */
void fl_lines_range(fl_lines *l, double x, double low, double high, int colour);
/* For the reader's mouse. */
void fl_lines_tip(fl_lines *l, double x, double y, const char *text);
/* The line's name beside its end, at y. */
void fl_lines_name(fl_lines *l, double y, int colour, const char *text);

/* Extends low to high to include value; NAN does not count. */
void fl_hold(double *low, double *high, double value);
/* Adds room around the data: 6 % on both sides, and some where all values are equal. */
void fl_loosen(double *low, double *high);
