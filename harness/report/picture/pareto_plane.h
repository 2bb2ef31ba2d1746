/* Marks on the plane of two quantities: which spots are on the front, and which stand at the same place. */
#pragma once

#include "harness/report/picture/pareto_clutter.h"
#include "harness/report/data/lead.h"
#include "harness/report/picture/looks.h"

typedef struct fl_spot {
    size_t item;
    fl_interval x, y;
    double px, py; /* pixels of the mark */
    size_t place;  /* the first of the spots that stand at the same place */
    double size;   /* 1, or larger for a ring around others */
    double thick;  /* thickness of the ring, in the same unit; 0: the mark keeps its shape */
    bool front, hollow;
    size_t number; /* its number on the front, from the left, where the front is too long for names */
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

/* Finds the front: the spots for which no other policy is better in one quantity and no worse in the other. Numbers it
 * where it is longer than `named`. Call it once. */
fl_status fl_plane_front(fl_plane *m, size_t named, fl_diag *d);
/* Computes where the marks stand, and the rings around marks that would be hidden; call it again after each change of
 * the picture's size. */
fl_status fl_plane_places(fl_plane *m, fl_diag *d);
void fl_plane_close(fl_plane *m);
