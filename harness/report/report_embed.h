/* A picture of gnuplot as a part of a page. */
#ifndef FL_REPORT_EMBED_H
#define FL_REPORT_EMBED_H

#include <stdbool.h>
#include <stdio.h>

/* The SVG without what a page has of its own: colours become those of the style sheet (so that one picture serves
 * light, dark and print), fonts go, texts for the mouse become <title>s. marks: its shapes are told here; once on a
 * page is enough, for they are the same in all. */
void fl_embed(FILE *page, const char *svg, const char *class_name, bool marks);

#endif
