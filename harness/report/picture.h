/* One picture, drawn by gnuplot: the script of its kind (plots/KIND.gp), a table, and the few facts that a script needs
 * beside it. The same scripts draw the files of `foldline plot` and the figures of the report's page.
 *
 * Table and facts are handed over in memory, and the picture comes back in memory, so that nothing is left behind
 * wherever it ends. Lengths are those of an SVG in pixels; PNG and PDF are the same picture at their own scale. */
#ifndef FL_PICTURE_H
#define FL_PICTURE_H

#include "traces/diag.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum fl_picture_size {
    FL_PICTURE_PRINT,  /* a file: wide, with a title, on white */
    FL_PICTURE_WIDE,   /* of a page, the whole width of a screen; the page's caption is the title */
    FL_PICTURE_NARROW, /* of a page, a phone's width */
    FL_PICTURE_PANEL   /* of a page, one of two beside each other */
} fl_picture_size;

enum { FL_PICTURE_COLOURS = 8, FL_PICTURE_SHAPES = 6, FL_PICTURE_LOOKS = 24 };

/* How a series looks: colour 1..FL_PICTURE_COLOURS, 0 = grey; shape and dash any number. FL_PICTURE_LOOKS pairs of
 * colour and shape differ. */
typedef struct fl_look {
    int colour, shape, dash;
} fl_look;

typedef struct fl_picture {
    fl_picture_size size;
    double width, height;            /* the whole; height grows with what stands in it */
    double left, right, top, bottom; /* the plot within it: distances from the picture's left and upper edge */
    double x0, x1, y0, y1;           /* what the plot's edges are in data */
    FILE *table, *facts;
    int table_fd, facts_fd;
    bool bars;                   /* it shows intervals, for the caption to say so */
    int legends, legend_columns; /* entries so far; columns that they stand in */
    double legend_width, legend_y;
} fl_picture;

/* Facts and table are empty. FL_IO, FL_NO_MEMORY. */
fl_status fl_picture_open(fl_picture *p, fl_picture_size size, fl_diag *d);
void fl_picture_close(fl_picture *p); /* takes a zeroed struct */

/* The plot's height and what lies left and right of it; first of all. */
void fl_picture_plot(fl_picture *p, double left, double right, double height);

/* The title and what it is about, in as many lines as they need: the plot moves down by them. On a page they are left
 * out, for the caption says them. */
void fl_picture_title(fl_picture *p, const char *title, const char *about);
/* The legend below, in as many columns as fit the width: the picture grows. After the title, before entries.
 * longest: the longest text in pixels. */
void fl_picture_legend(fl_picture *p, size_t count, double longest);
void fl_picture_entry(fl_picture *p, const char *text, fl_look look, int point);
/* gnuplot's number of a mark. Hollow is who breaks a bound; crosses are baselines. */
int fl_picture_point(fl_look look, bool baseline, bool hollow);

/* The plot's edges, in data: x0, x1, y0, y1 of the script too. */
void fl_picture_range(fl_picture *p, double x0, double x1, double y0, double y1);

/* Ticks along y, for the script: y_step. Returns the room that their numbers and the label need left of the plot. */
double fl_picture_ticks(fl_picture *p, double y0, double y1);

/* Variables of the script. Texts may hold any character. */
void fl_picture_text(fl_picture *p, const char *name, const char *text);
void fl_picture_number(fl_picture *p, const char *name, double value);

/* One field of the table: no quote or control character comes through, for gnuplot knows no quoting of them. A comma
 * is FL_PICTURE_COMMA, which written() of plots/style.gp turns back. */
enum { FL_PICTURE_COMMA = 31 };
void fl_picture_field(fl_picture *p, const char *text);

/* Pixels that a text takes, in the size of labels; a text of at most that many pixels, its middle left out where it
 * does not fit, into 256 bytes. */
double fl_text_width(const char *text);
char *fl_text_fit(const char *text, double width, char buf[256]);

/* Draws. format: "svg", "png", "pdf" or "page" (an SVG without background, whose marks have texts for the reader's
 * mouse). *bytes is malloc'd, with a NUL behind. FL_BAD_INPUT about `input` where gnuplot refuses, with its first line;
 * FL_IO where there is none. */
fl_status fl_picture_draw(fl_picture *p, const char *kind, const char *format, const char *input, char **bytes,
                          size_t *size, fl_diag *d);

/* From pixels to data and back. */
static inline double fl_picture_px(const fl_picture *p, double x) {
    return p->left + (x - p->x0) / (p->x1 - p->x0) * (p->right - p->left);
}
static inline double fl_picture_py(const fl_picture *p, double y) {
    return p->bottom - (y - p->y0) / (p->y1 - p->y0) * (p->bottom - p->top);
}
static inline double fl_picture_x(const fl_picture *p, double px) {
    return p->x0 + (px - p->left) / (p->right - p->left) * (p->x1 - p->x0);
}
static inline double fl_picture_y(const fl_picture *p, double py) {
    return p->y0 + (p->bottom - py) / (p->bottom - p->top) * (p->y1 - p->y0);
}

#endif
