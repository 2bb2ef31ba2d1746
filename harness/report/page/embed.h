/* A picture of gnuplot, embedded in a page. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* The SVG without the parts that a page supplies. Colours become those of the style sheet (so that one picture serves
 * light, dark and print), fonts are removed, and texts for the mouse become <title>s. marks: include the definitions of
 * the shapes; once on a page is enough, because they are the same in all pictures. */
void fl_embed(FILE *page, const char *svg, const char *class_name, bool marks);
