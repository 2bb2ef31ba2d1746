#include "harness/report/report_svg.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void fl_html_text(FILE *f, const char *text) {
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", f);
        else if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if (*text == '"')
            fputs("&quot;", f);
        else if ((unsigned char)*text >= 32 || *text == '\n')
            fputc(*text, f);
    }
}

void fl_html_label(FILE *f, const char *label) {
    char part[512];
    while (*label) {
        size_t n = strcspn(label, ":,=-");
        n += label[n] != 0;
        snprintf(part, sizeof part, "%.*s", (int)n, label);
        fl_html_text(f, part);
        label += n;
        if (*label)
            fputs("<wbr>", f);
    }
}

void fl_chart_begin(fl_chart *c, FILE *f, double height, const char *alt) {
    *c = (fl_chart){.f = f,
                    .height = height,
                    .left = 58,
                    .right = FL_CHART_WIDTH - 18,
                    .top = 10,
                    .bottom = height - 44,
                    .x = FL_AXIS_EMPTY,
                    .y = FL_AXIS_EMPTY};
    c->x.round = c->y.round = true;
    fprintf(f, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", FL_CHART_WIDTH, height);
    fl_html_text(f, alt);
    fputs("\">\n", f);
}

void fl_chart_end(fl_chart *c) { fputs("</svg>\n", c->f); }

void fl_axis_hold(fl_axis *a, double value) {
    if (!isfinite(value) || (a->log && value <= 0))
        return;
    if (a->low > a->high)
        a->low = a->high = value;
    a->low = fmin(a->low, value);
    a->high = fmax(a->high, value);
}

static double place(const fl_axis *a, double value) {
    return a->log ? log10(value / a->low) / log10(a->high / a->low) : (value - a->low) / (a->high - a->low);
}

double fl_chart_x(const fl_chart *c, double value) { return c->left + place(&c->x, value) * (c->right - c->left); }
double fl_chart_y(const fl_chart *c, double value) { return c->bottom - place(&c->y, value) * (c->bottom - c->top); }

/* ---- axes ---- */

static double nice_step(double span, int ticks) {
    const double raw = span / ticks, power = pow(10, floor(log10(raw))), lead = raw / power;
    return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

/* What is drawn: never empty, and where it is to be round, from tick to tick. */
static double settle(fl_axis *a, int ticks) {
    if (a->low > a->high) {
        a->low = a->log ? 1 : 0;
        a->high = a->log ? 10 : 1;
    }
    if (a->log) {
        if (a->round) {
            a->low = pow(10, floor(log10(a->low) + 1e-9));
            a->high = pow(10, ceil(log10(a->high) - 1e-9));
        }
        if (a->high <= a->low * 1.0001) {
            a->low /= 2;
            a->high *= 2;
        }
        return 0;
    }
    if (a->high - a->low <= 1e-12 * fmax(fabs(a->high), 1e-300)) {
        const double pad = a->high == 0 ? 1 : fabs(a->high) * 0.1;
        a->low -= pad;
        a->high += pad;
    }
    const double step = nice_step(a->high - a->low, ticks);
    if (a->round) {
        a->low = step * floor(a->low / step + 1e-9);
        a->high = step * ceil(a->high / step - 1e-9);
    }
    return step;
}

static void tick(const fl_chart *c, bool is_x, double value) {
    const double size = fabs(value);
    char text[32];
    if (size >= 1e10 || (value != 0 && size < 1e-3 && size > 1e-12))
        snprintf(text, sizeof text, "%.3g", value);
    else if (size >= 1e6)
        snprintf(text, sizeof text, "%gM", value * 1e-6);
    else if (size >= 1e4)
        snprintf(text, sizeof text, "%gk", value * 1e-3);
    else
        snprintf(text, sizeof text, "%.6g", size < 1e-12 ? 0 : value);
    if (is_x) {
        const double x = fl_chart_x(c, value);
        fprintf(c->f, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x, c->top, x,
                c->bottom);
        fl_chart_label(c, x, c->bottom + 16, "middle", "tick", text);
    } else {
        const double y = fl_chart_y(c, value);
        fprintf(c->f, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", c->left, y, c->right,
                y);
        fl_chart_label(c, c->left - 6, y + 4, "end", "tick", text);
    }
}

static void draw_ticks(const fl_chart *c, bool is_x, double step) {
    const fl_axis *a = is_x ? &c->x : &c->y;
    if (!a->log) {
        for (double v = step * ceil(a->low / step - 1e-9); v <= a->high + 1e-9 * step; v += step)
            tick(c, is_x, v);
        return;
    }
    const double decades = log10(a->high / a->low);
    const int skip = (int)ceil(decades / 7);
    for (int e = (int)floor(log10(a->low) + 1e-9), n = 0; pow(10, e) <= a->high * 1.0001; e++, n++) {
        static const int lead[] = {1, 2, 5};
        for (int k = 0; k < (decades < 2.2 ? 3 : 1); k++) {
            const double v = lead[k] * pow(10, e);
            if (v >= a->low * 0.9999 && v <= a->high * 1.0001 && n % (skip > 0 ? skip : 1) == 0)
                tick(c, is_x, v);
        }
    }
}

void fl_chart_axes(fl_chart *c, bool y_ticks) {
    const double step_x = settle(&c->x, 6), step_y = settle(&c->y, 6);
    fputs("<g class=\"axes\">", c->f);
    draw_ticks(c, true, step_x);
    if (y_ticks)
        draw_ticks(c, false, step_y);
    fputs("</g>\n", c->f);
    if (c->x.label)
        fl_chart_label(c, (c->left + c->right) / 2, c->bottom + 35, "middle", "name", c->x.label);
    if (c->y.label) {
        fprintf(c->f, "<text class=\"name\" text-anchor=\"middle\" transform=\"translate(13 %.1f) rotate(-90)\">",
                (c->top + c->bottom) / 2);
        fl_html_text(c->f, c->y.label);
        fputs("</text>\n", c->f);
    }
}

/* ---- marks ---- */

void fl_chart_label(const fl_chart *c, double x, double y, const char *anchor, const char *class_name,
                    const char *text) {
    fprintf(c->f, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class_name, x, y, anchor);
    fl_html_text(c->f, text);
    fputs("</text>\n", c->f);
}

static void mark(FILE *f, double x, double y, double r, fl_look look) {
    static const char *const shape[FL_CHART_SHAPES] = {
        "",                                                 /* a circle */
        "M-.86-.86H.86V.86H-.86Z",                          /* square */
        "M0-1.15L1.1.8H-1.1Z",                              /* triangle */
        "M0-1.25L1.25 0L0 1.25L-1.25 0Z",                   /* diamond */
        "M0 1.15L1.1-.8H-1.1Z",                             /* triangle, down */
        "M-1-.35H-.35V-1H.35V-.35H1V.35H.35V1H-.35V.35H-1Z" /* plus */
    };
    const int which = look.shape % FL_CHART_SHAPES;
    if (!look.colour)
        fprintf(
            f,
            "<path class=\"c0 open\" transform=\"translate(%.1f %.1f) scale(%.1f)\" d=\"M-.9-.9L.9.9M-.9.9L.9-.9\"/>",
            x, y, r);
    else if (!which)
        fprintf(f, "<circle class=\"c%d solid\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", look.colour, x, y, r);
    else
        fprintf(f, "<path class=\"c%d solid\" transform=\"translate(%.1f %.1f) scale(%.1f)\" d=\"%s\"/>", look.colour,
                x, y, r, shape[which]);
}

void fl_chart_mark(const fl_chart *c, double x, double y, double size, fl_look look) { mark(c->f, x, y, size, look); }

static const char *dash_of(fl_look look) {
    static const char *const dash[] = {"", "6 3", "2 3", "8 3 2 3", "4 2"};
    return dash[look.dash % 5];
}

void fl_chart_line(const fl_chart *c, double x1, double y1, double x2, double y2, const char *class_name,
                   fl_look look) {
    fprintf(c->f, "<line class=\"c%d %s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", look.colour, class_name,
            x1, y1, x2, y2);
}

void fl_chart_path(const fl_chart *c, const double *x, const double *y, size_t count, bool steps,
                   const char *class_name, fl_look look) {
    bool open = false, any = false;
    double last = 0, last_x = 0;
    for (size_t i = 0; i < count; i++) {
        const bool there = isfinite(x[i]) && isfinite(y[i]) && (!c->x.log || x[i] > 0) && (!c->y.log || y[i] > 0);
        if (!there) {
            if (open && steps)
                fprintf(c->f, "H%.1f", last_x);
            open = false;
            continue;
        }
        const double px = fl_chart_x(c, x[i]), py = fl_chart_y(c, y[i]);
        if (!any)
            fprintf(c->f, "<path class=\"c%d line %s\" stroke-dasharray=\"%s\" d=\"", look.colour, class_name,
                    *dash_of(look) ? dash_of(look) : "none");
        if (open && steps && py != last)
            fprintf(c->f, "H%.1fV%.1f", px, py);
        else if (!open || !steps || i + 1 == count)
            fprintf(c->f, "%c%.1f %.1f", open ? 'L' : 'M', px, py);
        any = open = true;
        last = py;
        last_x = px;
    }
    if (any)
        fputs("\"/>\n", c->f);
}

void fl_chart_group(const fl_chart *c, const char *format, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    fputs("<g class=\"mark\"><title>", c->f);
    fl_html_text(c->f, text ? text : "");
    fputs("</title>", c->f);
    free(text);
}

void fl_chart_group_end(const fl_chart *c) { fputs("</g>\n", c->f); }

/* ---- legends ---- */

void fl_legend_begin(FILE *f) { fputs("<ul class=\"legend\">", f); }

void fl_legend_entry(FILE *f, fl_look look, bool line, const char *text) {
    fputs("<li><svg viewBox=\"0 0 26 14\" width=\"26\" height=\"14\" aria-hidden=\"true\">", f);
    if (line)
        fprintf(f, "<path class=\"c%d line\" stroke-dasharray=\"%s\" d=\"M1 7H25\"/>", look.colour,
                *dash_of(look) ? dash_of(look) : "none");
    else
        mark(f, 13, 7, 5, look);
    fputs("</svg> ", f);
    fl_html_text(f, text);
    fputs("</li>", f);
}

void fl_legend_end(FILE *f) { fputs("</ul>\n", f); }
