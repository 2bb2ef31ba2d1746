#include "harness/base/cli/grid.h"

#include "traces/io/numbers.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

fl_grid fl_grid_headed(const char *const *head, size_t columns) {
    fl_grid g = {.columns = columns};
    for (size_t k = 0; k < columns; k++)
        fl_grid_add(&g, "%s", head[k]);
    return g;
}

/* Takes the text, NULL where memory ran out. */
static void take_cell(fl_grid *g, char *text) {
    if (!text || fl_grow(&g->cell, &g->room, g->count + 1, sizeof *g->cell)) {
        free(text);
        g->columns = 0; /* never prints a table with cells missing */
        return;
    }
    g->cell[g->count++] = text;
}

enum { BETWEEN = '\x1f' }; /* ASCII's separator of units */

void fl_grid_add(fl_grid *g, const char *format, ...) {
    char *text = NULL, *parted = strdup(format);
    va_list args;
    for (char *at = parted; at && (at = strchr(at, '\t'));) /* a text in a cell, as a file's name, may hold a tab */
        *at = BETWEEN;
    va_start(args, format);
    if (!parted || vasprintf(&text, parted, args) < 0)
        text = NULL;
    va_end(args);
    char *rest = text;
    for (const char *at = parted; at && rest && (at = strchr(at, BETWEEN)); at++)
        take_cell(g, strdup(strsep(&rest, (const char[]){BETWEEN, 0})));
    take_cell(g, rest ? strdup(rest) : NULL);
    free(parted);
    free(text);
}

void fl_grid_print(fl_grid *g, size_t left, FILE *out) {
    size_t rows = g->columns ? g->count / g->columns : 0;
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < g->columns; c++) {
            int width = 0;
            for (size_t k = c; k < g->count; k += g->columns)
                width = (int)strlen(g->cell[k]) > width ? (int)strlen(g->cell[k]) : width;
            fprintf(out, "%s%*s", c ? "  " : "",
                    c < left && c + 1 < g->columns ? -width
                    : c < left                     ? 0
                                                   : width,
                    g->cell[r * g->columns + c]);
        }
        fputc('\n', out);
    }
    fl_grid_free(g);
}

void fl_grid_free(fl_grid *g) {
    for (size_t i = 0; i < g->count; i++)
        free(g->cell[i]);
    free(g->cell);
    *g = (fl_grid){0};
}

char *fl_cell_text(double value, char *buf) {
    if (!isfinite(value))
        return strcpy(buf, "n/a");
    return fl_real_text(value, buf);
}
