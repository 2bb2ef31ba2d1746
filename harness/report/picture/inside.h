/* What the files of harness/report/picture share. Other modules include the public header alone. */
#pragma once

#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FL_PICTURE_COLOURS = 8, FL_PICTURE_SHAPES = 6, FL_PICTURE_LOOKS = 24 };

/* Sets the plot's height and the space left and right of it; call it first. */
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

/* Return the factor from lengths of the layout to those of the file. */
double fl_picture_scale(const fl_plot_options *o);

/* Whether a policy is among those to draw; baselines always are. */
bool fl_picture_shows(const fl_picture *p, const char *policy);
/* Check that each policy that was asked for is among the names. FL_BAD_INPUT offers the nearest. */
fl_status fl_picture_known(const fl_picture *p, const fl_names *n, fl_diag *d);

/* Sets variables of the script. Texts may contain any character. */
void fl_picture_text(fl_picture *p, const char *name, const char *text);
void fl_picture_number(fl_picture *p, const char *name, double value);

void fl_picture_field(FILE *table, const char *text);

/* The width of a text in pixels, in the size of labels; and a text of at most that many pixels, shortened in the middle
 * where it does not fit, written into 256 bytes. */
double fl_text_width(const char *text);
char *fl_text_fit(const char *text, double width, char buf[256]);

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

/* pareto: every policy and baseline, with bound, front and violators; intervals of up to FL_BARS_MAX. */
enum { FL_BARS_MAX = 60 };

/* workloads: a row for each policy, with what every run of it saved and how much slower it was. */
size_t fl_picture_workloads(fl_picture *p, const fl_summary *s, const fl_looks *looks);

/* published: a row for each number of a paper, from the record beside the result. Returns the number of rows. */
size_t fl_picture_published(fl_picture *p, const fl_summary *s);

/* serving, serving-load: of the CSV of a comparison of servers; latencies: of the requests that a run served. */
fl_status fl_picture_serving(fl_picture *p, const char *input, size_t *drawn, fl_diag *d);

fl_status fl_picture_latencies(fl_picture *p, const char *input, size_t *drawn, fl_diag *d);

/* frontier: of the file of foldline plan --rows. */
fl_status fl_picture_frontier(fl_picture *p, const char *input, size_t *drawn, fl_diag *d);

/* models: the laws of time, bandwidth and power of a platform, for the classes of a kinds file, the workloads of a
 * sweep with its points, or without inputs for three examples. */
fl_status fl_picture_models(fl_picture *p, const char *platform, const char *const *inputs, size_t count, size_t *drawn,
                            fl_diag *d);

/* Panels of lines over a common kind of axis, with each line named at its end, for plots/lines.gp. A row of the table
 * is a point: what,panel,x,y,low,high,colour,text,tip. */

enum { FL_PANELS_MAX = 12, FL_ENDS_MAX = 40 };

/* Key of a telemetry's head with the name of the series of a device, such as "series.0"; without it, "GPU 0". */
#define FL_SERIES_KEY "series."

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
/* A text that begins at a pixel of the picture. */
void fl_lines_text(fl_lines *l, double px, double py, int colour, const char *text);

/* Extends low to high to include value; NAN does not count. */
void fl_hold(double *low, double *high, double value);
/* Adds room around the data: 6 % on both sides, and some where all values are equal. */
void fl_loosen(double *low, double *high);

/* What a name on a picture would cover: boxes, each with the cost of covering it. A grid of pixels holds them, so that
 * a search looks only at those near the name. */

typedef struct fl_box { /* pixels, x1 <= x2, y1 <= y2 */
    double x1, y1, x2, y2;
} fl_box;

static inline bool fl_boxes_meet(const fl_box *a, const fl_box *b) {
    return a->x1 < b->x2 && b->x1 < a->x2 && a->y1 < b->y2 && b->y1 < a->y2;
}

typedef struct fl_obstacle {
    fl_box box;
    double cost, own; /* own: the cost for a name of the same owner */
    size_t owner;     /* SIZE_MAX: no owner */
} fl_obstacle;

typedef struct fl_clutter_entry {
    uint32_t obstacle, next; /* next entry of the cell; 0: none */
} fl_clutter_entry;

typedef struct fl_clutter {
    fl_obstacle *item;
    size_t count, room;
    fl_clutter_entry *entry; /* entry 0 is unused */
    size_t entries, entry_room;
    uint32_t *head; /* first entry of each of columns x rows cells */
    size_t columns, rows;
} fl_clutter;

/* width, height: of the picture; boxes outside are found too. */
void fl_clutter_open(fl_clutter *c, double width, double height);
void fl_clutter_close(fl_clutter *c); /* accepts a zeroed struct */

void fl_clutter_add(fl_clutter *c, const fl_obstacle *o);

/* The cost of what a box of `owner` covers; the sum stops once it exceeds `most`. Costs are whole numbers, so their
 * order does not matter. */
double fl_clutter_cost(const fl_clutter *c, const fl_box *box, size_t owner, double most);

/* Marks on the plane of two quantities: which spots are on the front, and which stand at the same place. */

typedef struct fl_spot {
    size_t item;
    fl_interval x, y;
    double px, py; /* pixels of the mark */
    size_t place;  /* the first of the spots that stand at the same place */
    double size;   /* 1, or larger for a ring around others */
    double thick;  /* thickness of the ring, in the same unit; 0: the mark keeps its shape */
    bool front, hollow;
    size_t number; /* its number in the legend, from the left; 0: none */
} fl_spot;

typedef struct fl_plane {
    const fl_summary *s;
    const fl_looks *looks;
    fl_lead lead;
    fl_picture *p;
    fl_spot *spot; /* count, the best first */
    size_t count;
    size_t *front, fronts;  /* spots of the front, from the left */
    size_t *first, *member; /* spots by place: those at spot i's are member[first[i]] to member[first[i + 1] - 1] */
    size_t segments;
    fl_box *segment;    /* of the front */
    fl_clutter clutter; /* what names must not cover */
    bool ringed;        /* there are rings */
} fl_plane;

/* Finds the front among the policies that hold the bound in every run: the spots for which no other is better in one
 * quantity and no worse in the other. Call it once. */
void fl_plane_front(fl_plane *m);
/* Computes where the marks stand, and the rings around marks that would be hidden; call it again after each change of
 * the picture's size. */
void fl_plane_places(fl_plane *m);
void fl_plane_close(fl_plane *m);
