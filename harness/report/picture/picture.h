/* Pictures, drawn by gnuplot from the script of their kind (in plots/), a table, and the few facts that a script needs
 * besides. The same scripts draw the files of `foldline plot` and the figures of the report's page.
 *
 * fl_plot makes a picture file of a result file. Inside a page: fl_picture_open, one of the fl_picture_KIND functions,
 * which fill table and facts, then fl_picture_draw and fl_picture_close. The caller frees the bytes.
 *
 * Table, facts and picture pass through memory, so an interrupted run leaves no file behind. Lengths are pixels of the
 * SVG; PNG and PDF are the same picture at their own scale. FL_IO: gnuplot is missing. FL_BAD_INPUT: gnuplot refuses,
 * with its first line. */
#pragma once

#include "harness/base/cli/cli.h"
#include "harness/report/data/data.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum fl_picture_size {
    FL_PICTURE_PRINT,  /* a file: wide, with a title, on white */
    FL_PICTURE_WIDE,   /* on a page, the whole width of a screen; the page's caption is the title */
    FL_PICTURE_NARROW, /* on a page, a phone's width */
    FL_PICTURE_PANEL   /* on a page, one of two side by side */
} fl_picture_size;

/* The look of a series: colour 1..FL_PICTURE_COLOURS, 0 = grey; shape and dash are any number. FL_PICTURE_LOOKS pairs
 * of colour and shape are distinct. */
typedef struct fl_look {
    int colour, shape, dash;
} fl_look;

typedef struct fl_plot_options {
    const char *platform;     /* of models: a name or a file; NULL for others */
    const char *title;        /* NULL: that of the kind; "none": neither title nor subtitle */
    double width, font;       /* pixels; 0: 900, 12. Marks and lines grow with the font */
    const fl_texts *policies; /* labels or families to draw beside the baselines; NULL or empty: all */
} fl_plot_options;

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
    const fl_plot_options *options;
} fl_picture;

/* Starts a picture with empty facts and table. FL_IO. */
fl_status fl_picture_open(fl_picture *p, fl_picture_size size, fl_diag *d);
void fl_picture_close(fl_picture *p); /* accepts a zeroed struct */

/* Draws the picture. format: "svg", "png", "pdf" or "page" (an SVG without background, whose marks have texts for the
 * reader's mouse). *bytes is malloc'd and ends with a NUL. FL_BAD_INPUT about `input` where gnuplot refuses, with its
 * first line; FL_IO where gnuplot is not installed. */
fl_status fl_picture_draw(fl_picture *p, const char *kind, const char *format, const char *input, char **bytes,
                          size_t *size, fl_diag *d);

/* The looks of all policies of a result, and its legend: one colour each where there are few, else one for each family.
 */

typedef struct fl_looks {
    fl_look *of; /* by policy */
    fl_names legend;
    fl_look *legend_look;
    bool by_family;
} fl_looks;

void fl_looks_make(const fl_report_data *r, fl_looks *l);
void fl_looks_free(fl_looks *l);

/* The contents of each picture: tables and facts for the scripts in plots/. Each function fills an open picture, which
 * fl_picture_draw then draws with the script named here. They return or set *drawn: marks, rows or panels; 0 = nothing
 * to draw. */

size_t fl_picture_pareto(fl_picture *p, const fl_summary *s, const fl_looks *looks);

/* rows: the best FL_ROWS_MAX with their intervals, by the ranking quantity or by their mean rank. */
enum { FL_ROWS_MAX = 40 };
size_t fl_picture_rows(fl_picture *p, const fl_summary *s, const fl_looks *looks, bool ranks);
/* regret: a pair of bars for each of the best FL_ROWS_MAX policies, each with its value. */
size_t fl_picture_regret(fl_picture *p, const fl_summary *s);

/* sensitivity: saving and slowdown over a parameter, beside each other, for studies first to first + count - 1. */
size_t fl_picture_studies(fl_picture *p, const fl_summary *s, size_t first, size_t count);

/* regret-curves: groups first to first + count - 1, one panel each. */
size_t fl_picture_curves(fl_picture *p, const fl_curves *c, size_t first, size_t count);

fl_status fl_picture_load(fl_picture *p, const char *input, size_t *drawn, fl_diag *d);

/* timeline, residency: of telemetry read from path. */
fl_status fl_picture_timeline(fl_picture *p, const fl_telemetry *t, const char *path, size_t *drawn, fl_diag *d);
fl_status fl_picture_residency(fl_picture *p, const fl_telemetry *t, const char *path, size_t *drawn, fl_diag *d);

/* locks: of a sweep with locks and power limits, read from input. */
fl_status fl_picture_locks(fl_picture *p, const char *input, size_t *drawn, fl_diag *d);

/* gantt: what `foldline run --instructions` wrote, of each of several plans a chart above the next. */
enum { FL_GANTT_PLANS_MAX = 2 };
fl_status fl_picture_gantt(fl_picture *p, const char *const *input, size_t plans, size_t *drawn, fl_diag *d);

/* Pictures of results, drawn by gnuplot from the result files and nothing else. */

extern const char *const fl_plot_kinds[]; /* ends with NULL */

/* Draw the picture of a kind from an input file. The ending of output gives the format: .svg, .png or .pdf; the file
 * appears completely or not at all. FL_BAD_INPUT: unknown kind (the message offers the nearest), unknown ending,
 * missing input. FL_IO: gnuplot is missing or refuses, with its first line. */
fl_status fl_plot(const char *kind, const char *input, const char *output, fl_diag *d);
/* Draw a picture from several inputs. gantt takes up to FL_GANTT_PLANS_MAX, timeline up to six, which it draws over
 * each other. models needs a platform and takes up to two inputs or none. FL_BAD_INPUT: an option that has no
 * effect on the kind. */
fl_status fl_plot_all(const char *kind, const fl_plot_options *o, const char *const *inputs, size_t count,
                      const char *output, fl_diag *d);
