#include "harness/report/page/embed.h"

#include "harness/report/data/html.h"

#include <stdlib.h>
#include <string.h>

/* Colours of plots/style.gp and their names in report.css. */
static const struct {
    int rgb;
    const char *name;
} colour[] = {{0x000000, "--ink"},  {0x6b747d, "--c0"},    {0x0072b2, "--c1"},    {0xd55e00, "--c2"},
              {0x00845f, "--c3"},   {0xb8558f, "--c4"},    {0xb37400, "--c5"},    {0x2f93cf, "--c6"},
              {0x1b1f24, "--c7"},   {0x7d6c00, "--c8"},    {0x5b6570, "--quiet"}, {0xe3e7eb, "--grid"},
              {0xd7dce1, "--band"}, {0xc3c9cf, "--faint"}, {0xa8330a, "--bad"},   {0xffffff, "--paper"}};

/* Other parts that the embedding removes or changes. */
static const struct {
    const char *from, *to;
} word[] = {{" color=\"black\"", ""},
            {" color=\"white\"", ""},
            {"='black'", "='currentColor'"},
            {"=\"black\"", "=\"currentColor\""},
            {" = 'black'", "='currentColor'"},
            {"xlink:href", "href"},
            {" font-family=\"DejaVu Sans\"", ""}};

static const char *put_colour(FILE *f, const char *at) {
    char *end = NULL;
    const long r = strtol(at + 4, &end, 10), g = *end == ',' ? strtol(end + 1, &end, 10) : 0,
               b = *end == ',' ? strtol(end + 1, &end, 10) : 0;
    if (*end != ')')
        return NULL;
    for (size_t i = 0; i < sizeof colour / sizeof *colour; i++)
        if (colour[i].rgb == (r << 16 | g << 8 | b)) {
            fprintf(f, "var(%s)", colour[i].name);
            return end + 1;
        }
    return NULL;
}

/* gnuplot's form of a mark's text, which it writes unchanged. */
static const char *put_tip(FILE *f, const char *at) {
    static const char begin[] = " onmousemove=\"gnuplot_svg.showHypertext(evt,'",
                      end[] = "')\" onmouseout=\"gnuplot_svg.hideHypertext()\"><title> </title>";
    if (strncmp(at, begin, sizeof begin - 1) != 0)
        return NULL;
    const char *text = at + sizeof begin - 1, *stop = strstr(text, end);
    char *copy = stop ? strndup(text, (size_t)(stop - text)) : NULL;
    if (!copy)
        return NULL;
    fputs(" class=\"tip\"><title>", f);
    fl_html_text(f, copy);
    fputs("</title>", f);
    free(copy);
    return stop + sizeof end - 1;
}

static void put_line(FILE *f, const char *at, const char *end) {
    while (at < end) {
        const char *next = !strncmp(at, "rgb(", 4) ? put_colour(f, at) : *at == ' ' ? put_tip(f, at) : NULL;
        for (size_t i = 0; !next && i < sizeof word / sizeof *word; i++)
            if (!strncmp(at, word[i].from, strlen(word[i].from))) {
                fputs(word[i].to, f);
                next = at + strlen(word[i].from);
            }
        if (!next)
            fputc(*at, f);
        at = next ? next : at + 1;
    }
    fputc('\n', f);
}

static bool begins(const char *line, const char *with) {
    line += strspn(line, " \t");
    return !strncmp(line, with, strlen(with));
}

void fl_embed(FILE *page, const char *svg, const char *class_name, bool marks) {
    const char *box = strstr(svg, "viewBox=\""), *at = strstr(svg, "<g id=\"gnuplot_canvas\">");
    if (!box || !at)
        return;
    box += 9;
    fprintf(page, "<svg class=\"%s\" viewBox=\"%.*s\">\n", class_name, (int)strcspn(box, "\""), box);
    bool in_marks = false, in_filter = false;
    for (const char *next; *at; at = next) {
        const char *end = at + strcspn(at, "\n");
        next = *end ? end + 1 : end;
        if (begins(at, "<defs>"))
            in_marks = true;
        in_filter |= begins(at, "<filter");
        const bool skip = in_filter || (in_marks && !marks) || begins(at, "<rect x=\"0\" y=\"0\"") || at == end;
        if (begins(at, "</filter>"))
            in_filter = false;
        if (begins(at, "</defs>"))
            in_marks = false;
        if (skip)
            continue;
        if (begins(at, "<g fill=\"none\"") && begins(next, "</g>")) { /* an empty group */
            next += strcspn(next, "\n");
            next += *next == '\n';
            continue;
        }
        if (begins(at, "<g id=\"gnuplot_"))
            fputs("<g>\n", page);
        else
            put_line(page, at, end);
    }
}
