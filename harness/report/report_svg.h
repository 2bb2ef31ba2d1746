/* Charts as inline SVG for the report: no fonts, scripts or colours of their own; the page's style sheet gives them, so
 * that one figure serves light, dark and print. Coordinates are those of a view box FL_CHART_WIDTH wide. */
#ifndef FL_REPORT_SVG_H
#define FL_REPORT_SVG_H

#include <stdbool.h>
#include <stdio.h>

enum { FL_CHART_WIDTH = 480, FL_CHART_COLOURS = 8, FL_CHART_SHAPES = 6 };

typedef struct fl_axis {
    double low, high; /* of the data, widened to ticks by fl_chart_axes where round is set */
    bool log, round;
    const char *label;
} fl_axis;

typedef struct fl_chart {
    FILE *f;
    double height, left, right, top, bottom; /* the plot's edges in the view box */
    fl_axis x, y;
} fl_chart;

/* How a series looks: colour 1..FL_CHART_COLOURS, 0 = grey; shape and dash any number. */
typedef struct fl_look {
    int colour, shape, dash;
} fl_look;

/* Text with & < > " escaped. */
void fl_html_text(FILE *f, const char *text);
/* The same for a policy's label, which may break after its punctuation. */
void fl_html_label(FILE *f, const char *label);

/* alt: what a reader hears who does not see the figure. */
void fl_chart_begin(fl_chart *c, FILE *f, double height, const char *alt);
void fl_chart_end(fl_chart *c);
/* Grows an axis to hold a value; NAN, and on a log axis what is not above 0, is left out. An axis starts as
 * FL_AXIS_EMPTY. */
#define FL_AXIS_EMPTY                                                                                                  \
    { .low = 1, .high = 0 }
void fl_axis_hold(fl_axis *a, double value);
/* Grid, ticks and labels; sets low and high to what is drawn. y_ticks false: rows are labelled by the caller. */
void fl_chart_axes(fl_chart *c, bool y_ticks);

double fl_chart_x(const fl_chart *c, double value);
double fl_chart_y(const fl_chart *c, double value);

/* At view-box coordinates. */
void fl_chart_mark(const fl_chart *c, double x, double y, double size, fl_look look);
void fl_chart_line(const fl_chart *c, double x1, double y1, double x2, double y2, const char *class_name, fl_look look);
void fl_chart_label(const fl_chart *c, double x, double y, const char *anchor, const char *class_name,
                    const char *text);

/* A line through points in data coordinates; it breaks where one is NAN or not on the axis. */
void fl_chart_path(const fl_chart *c, const double *x, const double *y, size_t count, bool steps,
                   const char *class_name, fl_look look);
/* A group whose tooltip is the text; closed by fl_chart_group_end. */
void fl_chart_group(const fl_chart *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fl_chart_group_end(const fl_chart *c);

/* A legend beneath a figure: begin, one entry each, end. */
void fl_legend_begin(FILE *f);
void fl_legend_entry(FILE *f, fl_look look, bool line, const char *text);
void fl_legend_end(FILE *f);

#endif
