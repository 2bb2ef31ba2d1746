/* One picture, drawn by gnuplot from the script of its kind (plots/KIND.gp), a table, and the few facts that a script
 * needs besides. The same scripts draw the files of `foldline plot` and the figures of the report's page.
 *
 * Table and facts are passed in memory, and the picture comes back in memory, so that nothing is left behind wherever
 * it ends. Lengths are those of an SVG in pixels; PNG and PDF are the same picture at their own scale. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum fl_picture_size {
    FL_PICTURE_PRINT,  /* a file: wide, with a title, on white */
    FL_PICTURE_WIDE,   /* on a page, the whole width of a screen; the page's caption is the title */
    FL_PICTURE_NARROW, /* on a page, a phone's width */
    FL_PICTURE_PANEL   /* on a page, one of two side by side */
} fl_picture_size;

enum { FL_PICTURE_COLOURS = 8, FL_PICTURE_SHAPES = 6, FL_PICTURE_LOOKS = 24 };

/* The look of a series: colour 1..FL_PICTURE_COLOURS, 0 = grey; shape and dash are any number. FL_PICTURE_LOOKS pairs
 * of colour and shape are distinct. */
typedef struct fl_look {
    int colour, shape, dash;
} fl_look;

typedef struct fl_picture {
    fl_picture_size size;
    double width, height;            /* size of the whole; height grows with the contents */
    double left, right, top, bottom; /* the plot within it: distances from the picture's left and upper edge */
    double x0, x1, y0, y1;           /* data values at the plot's edges */
    FILE *table, *facts;
    int table_fd, facts_fd;
    bool bars;                   /* it shows intervals; the caption then says so */
    int legends, legend_columns; /* entries so far; columns that they stand in */
    double legend_width, legend_y;
} fl_picture;

/* Starts a picture with empty facts and table. FL_IO, FL_NO_MEMORY. */
fl_status fl_picture_open(fl_picture *p, fl_picture_size size, fl_diag *d);
void fl_picture_close(fl_picture *p); /* accepts a zeroed struct */

/* Sets the plot's height and the room left and right of it; call it first. */
void fl_picture_plot(fl_picture *p, double left, double right, double height);

/* Adds the title and its explanation, in as many lines as they need: the plot moves down by them. On a page they are
 * left out, because the caption contains them. */
void fl_picture_title(fl_picture *p, const char *title, const char *about);
/* Adds the legend below, in as many columns as fit the width: the picture grows. Call it after the title and before
 * entries. longest: the longest text in pixels. */
void fl_picture_legend(fl_picture *p, size_t count, double longest);
void fl_picture_entry(fl_picture *p, const char *text, fl_look look, int point);
/* gnuplot's number of a mark. Hollow marks break a bound; crosses are baselines. */
int fl_picture_point(fl_look look, bool baseline, bool hollow);

/* Sets the data values at the plot's edges, also as x0, x1, y0, y1 of the script. */
void fl_picture_range(fl_picture *p, double x0, double x1, double y0, double y1);

/* Chooses ticks along y for the script: y_step. Returns the room that their numbers and the label need left of the
 * plot. */
double fl_picture_ticks(fl_picture *p, double y0, double y1);

/* Sets variables of the script. Texts may contain any character. */
void fl_picture_text(fl_picture *p, const char *name, const char *text);
void fl_picture_number(fl_picture *p, const char *name, double value);

/* Writes one field of the table without quotes and control characters, since gnuplot cannot quote them. A comma becomes
 * FL_PICTURE_COMMA, which written() of plots/style.gp turns back. */
enum { FL_PICTURE_COMMA = 31 };
void fl_picture_field(fl_picture *p, const char *text);

/* The width of a text in pixels, in the size of labels; and a text of at most that many pixels, shortened in the middle
 * where it does not fit, written into 256 bytes. */
double fl_text_width(const char *text);
char *fl_text_fit(const char *text, double width, char buf[256]);

/* Draws the picture. format: "svg", "png", "pdf" or "page" (an SVG without background, whose marks have texts for the
 * reader's mouse). *bytes is malloc'd and ends with a NUL. FL_BAD_INPUT about `input` where gnuplot refuses, with its
 * first line; FL_IO where gnuplot is not installed. */
fl_status fl_picture_draw(fl_picture *p, const char *kind, const char *format, const char *input, char **bytes,
                          size_t *size, fl_diag *d);

/* Conversions from pixels to data and back. */
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
