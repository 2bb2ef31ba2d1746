/* Two quantities of every policy against each other. Every mark stands at its values. Of marks that would hide each
 * other, one keeps its shape and the others become rings around it, and one list names them from the inside out. This
 * file places the names, because gnuplot does not know what they would cover. Where names would cover marks or each
 * other, a legend below has all of them instead. */
#include "harness/report/picture/inside.h"

#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK = 6, LIST_MAX = 8, NAMED_MAX = 16, NUMBERED_MAX = 300 };
#define EQUAL 1e-4     /* share of the larger value, or of 100 %, that no axis magnifies to its whole length */
enum { COVERS = 120 }; /* the cost of covering a mark, which no name may do */

static void hold_all(const fl_plane *m, bool y, double *low, double *high) {
    *low = HUGE_VAL;
    *high = -HUGE_VAL;
    for (size_t i = 0; i < m->count; i++) {
        const fl_interval *v = y ? &m->spot[i].y : &m->spot[i].x;
        fl_hold(low, high, v->mean);
    }
    fl_hold(low, high, y ? m->lead.y.bound : m->lead.x.bound);
    for (size_t i = 0; m->p->bars && i < m->count; i++) {
        const fl_interval *v = y ? &m->spot[i].y : &m->spot[i].x;
        fl_hold(low, high, v->low);
        fl_hold(low, high, v->high);
    }
    /* Values that differ by rounding alone are drawn as equal ones. */
    const double span = *high - *low, equal = EQUAL * fmax(fmax(fabs(*low), fabs(*high)), 100),
                 room = span > equal ? 0.05 * span : fmax(fabs(*high) * 0.1, 0.5);
    *low -= room;
    *high += room;
}

/* Sets axes that hold every mark with its rings. */
static void set_range(fl_plane *m) {
    fl_picture *p = m->p;
    double x0, x1, y0, y1;
    hold_all(m, false, &x0, &x1);
    hold_all(m, true, &y0, &y1);
    p->left = fl_picture_ticks(p, y0, y1);
    fl_picture_range(p, x0, x1, y0, y1);
    fl_plane_places(m);
    double out[4] = {0}; /* pixels that rings reach beyond the left, right, upper and lower edge */
    for (size_t i = 0; i < m->count; i++) {
        const fl_spot *o = &m->spot[i];
        const double r = MARK * o->size + 2;
        const double beyond[4] = {p->left - (o->px - r), o->px + r - p->right, p->top - (o->py - r),
                                  o->py + r - p->bottom};
        for (size_t k = 0; k < 4; k++)
            out[k] = fmax(out[k], beyond[k]);
    }
    const double across = (x1 - x0) / (p->right - p->left - out[0] - out[1]),
                 up = (y1 - y0) / (p->bottom - p->top - out[2] - out[3]);
    fl_picture_range(p, x0 - out[0] * across, x1 + out[1] * across, y0 - out[3] * up, y1 + out[2] * up);
    fl_plane_places(m);
}

/* ---- names ---- */

/* Lines that pass through a name: intervals, which are drawn only for a few policies. */
static double cost_of_bars(const fl_plane *m, const fl_box *b) {
    double cost = 0;
    for (size_t i = 0; m->p->bars && i < m->count; i++) {
        const fl_spot *o = &m->spot[i];
        const fl_box across = {fl_picture_px(m->p, fmin(o->x.low, o->x.mean)), o->py - 1,
                               fl_picture_px(m->p, fmax(o->x.high, o->x.mean)), o->py + 1};
        const fl_box along = {o->px - 1, fl_picture_py(m->p, fmax(o->y.high, o->y.mean)), o->px + 1,
                              fl_picture_py(m->p, fmin(o->y.low, o->y.mean))};
        cost += (fl_boxes_meet(b, &across) ? 20 : 0) + (fl_boxes_meet(b, &along) ? 20 : 0);
    }
    return cost;
}

/* Marks, and the front's line. */
static void add_obstacles(fl_plane *m) {
    fl_clutter_open(&m->clutter, m->p->width, m->p->height);
    for (size_t i = 0; i < m->count; i++) {
        const fl_spot *o = &m->spot[i];
        const double r = MARK * o->size;
        fl_clutter_add(&m->clutter,
                       &(fl_obstacle){{o->px - r, o->py - r, o->px + r, o->py + r}, COVERS, 400, o->place});
    }
    for (size_t i = 0; i < m->segments; i++)
        fl_clutter_add(&m->clutter, &(fl_obstacle){m->segment[i], 15, 15, SIZE_MAX});
}

/* The text beside a mark: the front's number where there are too many names; "*" where runs are missing. */
static char *name_of(const fl_plane *m, const fl_spot *o, char name[256]) {
    const fl_policy_summary *p = &m->s->item[o->item];
    const char *whole = fl_summary_name(m->s, o->item);
    if (o->number)
        snprintf(name, 256, "%zu", o->number);
    else
        fl_text_fit(p->baseline ? whole + 9 : whole, m->p->right - m->p->left - 30, name);
    const size_t length = strlen(name);
    if (fl_partial_rows(m->s, p) && length < 254)
        memcpy(name + length, " *", 3);
    return name;
}

/* Whether another mark is nearer to the name than its own. */
static bool mistaken(const fl_plane *m, const fl_spot *o, const fl_box *b, double own) {
    for (size_t i = 0; i < m->count; i++) {
        const fl_spot *other = &m->spot[i];
        const double x = fmax(b->x1, fmin(other->px, b->x2)), y = fmax(b->y1, fmin(other->py, b->y2));
        if (fmax(fabs(x - other->px), fabs(y - other->py)) - MARK * other->size >= own)
            continue; /* most are far away */
        if (other->place != o->place && hypot(x - other->px, y - other->py) - MARK * other->size < own)
            return true;
    }
    return false;
}

/* Finds the nearest place where `lines` names of width `width` cover least. Returns its cost; where that exceeds
 * `most`, the place is arbitrary. */
static double seek(const fl_plane *m, size_t i, double width, size_t lines, double reach, double most, fl_box *best) {
    const fl_spot *o = &m->spot[i];
    const fl_picture *p = m->p;
    const double bound = fl_picture_px(p, m->lead.x.bound), more = 14 * (double)(lines - 1) / 2;
    double least = HUGE_VAL;
    for (double away = 9; away < 180; away *= 1.35)
        for (int turn = 0; turn < 16; turn++) {
            const double angle = turn * M_PI / 8, far = away + reach, cx = o->px + far * cos(angle),
                         cy = o->py - (far + more * fabs(sin(angle))) * sin(angle);
            const double side = cos(angle) > 0.3 ? 0 : cos(angle) < -0.3 ? width : width / 2;
            fl_box b = {cx - side, cy - 8 - more, cx - side + width, cy + 6 + more};
            const double shift = fmax(p->left + 3 - b.x1, 0) - fmax(b.x2 - p->right - 8, 0);
            b.x1 += shift;
            b.x2 += shift;
            const double lift = lines > 1 ? fmax(p->top - 6 - b.y1, 0) - fmax(b.y2 - p->bottom + 2, 0) : 0;
            b.y1 += lift;
            b.y2 += lift;
            if (b.y1 < p->top - 6 || b.y2 > p->bottom - 2)
                continue;
            const double far_away = away + 0.2 * (fabs(shift) + fabs(lift)) + (turn ? 1 : 0);
            const double covered = fl_clutter_cost(&m->clutter, &b, o->place, fmin(least, most) - far_away + 1);
            const double cost = far_away + (covered + cost_of_bars(m, &b) + (b.x1 < bound && b.x2 > bound ? 25 : 0));
            if (cost < least) {
                least = cost;
                *best = b;
            }
        }
    return least;
}

/* Writes names beside their mark, one below the other, with a line to the mark where it is far or could be mistaken.
 * Returns their cost. */
static double put_list(fl_plane *m, const size_t *of, size_t lines, double most, FILE *to) {
    const size_t place = m->spot[of[0]].place;
    const fl_spot *o = &m->spot[place];
    const fl_picture *p = m->p;
    char name[256];
    double width = 0, reach = 0;
    for (size_t k = 0; k < lines; k++)
        width = fmax(width, fl_text_width(name_of(m, &m->spot[of[k]], name)) + 2);
    for (size_t i = m->first[place]; i < m->first[place + 1]; i++)
        reach = fmax(reach, MARK * (m->spot[m->member[i]].size - 1));
    fl_box best = {0};
    const double least = seek(m, of[0], width, lines, reach, most, &best);
    if (least > most)
        return least;
    for (size_t k = 0; k < lines; k++) {
        fprintf(to, "name,%.17g,%.17g,n/a,n/a,0,0,", fl_picture_x(p, best.x1 + 1),
                fl_picture_y(p, best.y1 + 8 + 14 * (double)k));
        fl_picture_field(to, name_of(m, &m->spot[of[k]], name));
        fputs(",1\n", to);
    }
    const double nx = fmax(best.x1, fmin(o->px, best.x2)), ny = fmax(best.y1, fmin(o->py, best.y2)),
                 away = hypot(nx - o->px, ny - o->py);
    if (away > 15 + reach || mistaken(m, o, &best, away - MARK - reach))
        fprintf(to, "leader,%.17g,%.17g,%.17g,%.17g,0,0,,0\n", fl_picture_x(p, o->px), fl_picture_y(p, o->py),
                fl_picture_x(p, nx) - fl_picture_x(p, o->px), fl_picture_y(p, ny) - fl_picture_y(p, o->py));
    fl_clutter_add(&m->clutter, &(fl_obstacle){best, 1000, 1000, SIZE_MAX});
    return least;
}

/* The names at one place, from the inside out: policies, then baselines. With numbers in use, only the numbered. */
static double put_place(fl_plane *m, size_t place, double most, bool numbers, FILE *to) {
    size_t of[LIST_MAX], lines = 0;
    double worst = 0;
    for (int baseline = 0; baseline < 2; baseline++)
        for (size_t i = m->first[place]; i < m->first[place + 1]; i++) {
            const size_t k = m->member[i];
            if (m->s->item[m->spot[k].item].baseline != (baseline != 0) || (numbers && !m->spot[k].number))
                continue;
            of[lines++] = k;
            if (lines == LIST_MAX) {
                worst = fmax(worst, put_list(m, of, lines, most, to));
                lines = 0;
            }
        }
    return lines ? fmax(worst, put_list(m, of, lines, most, to)) : worst;
}

/* Names the front first, so that it has the choice of places. Returns the highest cost of a name; one of more than
 * `most` is not written. */
static double put_names(fl_plane *m, double most, bool numbers, FILE *to) {
    double worst = 0;
    fl_clutter_close(&m->clutter);
    add_obstacles(m);
    for (int front = 1; front >= 0; front--)
        for (size_t place = 0; place < m->count; place++) {
            bool on_front = false;
            for (size_t i = m->first[place]; i < m->first[place + 1]; i++)
                on_front |= m->spot[m->member[i]].front;
            if (m->first[place] < m->first[place + 1] && on_front == (front != 0))
                worst = fmax(worst, put_place(m, place, most, numbers, to));
        }
    return worst;
}

/* Rows with the names beside the marks; NULL where one would cost more than `most`. The caller frees them. */
static char *names_beside(fl_plane *m, double most, bool numbers) {
    char *rows = NULL;
    size_t size = 0;
    FILE *to = fl_must(open_memstream(&rows, &size));
    const bool fit = put_names(m, most, numbers, to) <= most;
    fclose(to);
    fl_must(rows);
    if (fit)
        return rows;
    free(rows);
    return NULL;
}

/* ---- rows ---- */

static void put_ranges(const fl_plane *m, const fl_spot *o) {
    const int colour = m->looks->of[m->s->item[o->item].policy].colour;
    const double left = fmax(o->x.low, m->p->x0), right = fmin(o->x.high, m->p->x1), low = fmax(o->y.low, m->p->y0),
                 high = fmin(o->y.high, m->p->y1);
    if (o->x.low < o->x.high)
        fprintf(m->p->table, "range,%.17g,%.17g,%.17g,0,0,%d,,0\n", left, o->y.mean, right - left, colour);
    if (o->y.low < o->y.high)
        fprintf(m->p->table, "range,%.17g,%.17g,0,%.17g,0,%d,,0\n", o->x.mean, low, high - low, colour);
}

/* A ring is a disc covered by paper; a thin one breaks the bound, like a hollow mark. A cross has no hollow form, so a
 * box marks it. */
static void put_mark(const fl_plane *m, const fl_spot *o) {
    enum { BOX = 4, CIRCLE = 6, DISC = 7, PAPER = -2 };
    const fl_policy_summary *p = &m->s->item[o->item];
    const fl_look look = m->looks->of[p->policy];
    const int point = o->thick <= 0 ? fl_picture_point(look, p->baseline, o->hollow) : o->hollow ? CIRCLE : DISC;
    char tip[512], runs[64] = "";
    FILE *f = m->p->table;
    if (p->baseline && o->hollow && o->thick <= 0)
        fprintf(f, "box,%.17g,%.17g,n/a,n/a,%d,%d,,1.3\n", o->x.mean, o->y.mean, BOX, look.colour);
    fprintf(f, "mark,%.17g,%.17g,n/a,n/a,%d,%d,", o->x.mean, o->y.mean, point, look.colour);
    if (fl_partial_rows(m->s, p))
        snprintf(runs, sizeof runs, ", mean of %zu of %zu runs", p->value[FL_REPORT_ENERGY_J].runs, m->s->most);
    snprintf(tip, sizeof tip, "%s: %s %s%s, %s %s%s%s%s", fl_summary_name(m->s, o->item), m->lead.y.name,
             fl_lead_number(o->y.mean, (char[32]){0}), m->lead.y.unit, m->lead.x.name,
             fl_lead_number(o->x.mean, (char[32]){0}), m->lead.x.unit, o->hollow ? ", breaks the bound" : "", runs);
    fl_picture_field(m->p->table, tip);
    fprintf(f, ",%g\n", o->size);
    if (point == DISC && o->thick > 0)
        fprintf(f, "paper,%.17g,%.17g,n/a,n/a,%d,%d,,%g\n", o->x.mean, o->y.mean, DISC, PAPER, o->size - o->thick);
}

typedef struct layer {
    double size;
    bool baseline;
    size_t spot;
} layer;

static int by_depth(const void *a, const void *b) {
    const layer *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->baseline != y->baseline ? y->baseline - x->baseline : (x->spot < y->spot) - (x->spot > y->spot);
}

/* The most important last, so that it lies on top: first larger marks, then baselines, worse policies, and better ones.
 */
static void put_marks(fl_plane *m) {
    layer *l = fl_must(calloc(m->count + 1, sizeof *l));
    for (size_t i = 0; i < m->count; i++)
        l[i] = (layer){m->spot[i].size, m->s->item[m->spot[i].item].baseline, i};
    qsort(l, m->count, sizeof *l, by_depth);
    for (size_t i = 0; i < m->count; i++)
        put_ranges(m, &m->spot[l[i].spot]);
    for (size_t i = 0; i < m->count; i++)
        put_mark(m, &m->spot[l[i].spot]);
    free(l);
}

static int by_x(const void *a, const void *b) {
    const double *x = a, *y = b;
    return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Its steps, from the best on x to the best on y. */
static void put_front(fl_plane *m) {
    double(*at)[2] = fl_must(malloc((m->count + 1) * sizeof *at));
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->spot[i].front) {
            at[n][0] = m->spot[i].x.mean;
            at[n++][1] = m->spot[i].y.mean;
        }
    qsort(at, n, sizeof *at, by_x);
    m->segment = fl_must(calloc(2 * n + 1, sizeof *m->segment));
    for (size_t i = 1; i < n; i++) {
        const double x1 = fl_picture_px(m->p, at[i - 1][0]), x2 = fl_picture_px(m->p, at[i][0]),
                     y1 = fl_picture_py(m->p, at[i - 1][1]), y2 = fl_picture_py(m->p, at[i][1]);
        m->segment[m->segments++] = (fl_box){x1, y1 - 1, x2, y1 + 1};
        m->segment[m->segments++] = (fl_box){x2 - 1, fmin(y1, y2), x2 + 1, fmax(y1, y2)};
    }
    for (size_t i = 0; i < n; i++)
        fprintf(m->p->table, "front,%.17g,%.17g,n/a,n/a,0,0,,0\n", at[i][0], at[i][1]);
    free(at);
}

/* ---- the picture ---- */

static void put_numbers(fl_plane *m, size_t numbers, double most) {
    for (size_t n = 1; n <= numbers; n++) {
        const fl_spot *o = &m->spot[m->front[n - 1]];
        const fl_look look = m->looks->of[m->s->item[o->item].policy];
        char text[320], name[256];
        snprintf(text, sizeof text, "%zu %s", n, fl_text_fit(fl_summary_name(m->s, o->item), most, name));
        fl_picture_entry(m->p, text, look, fl_picture_point(look, false, o->hollow));
    }
}

/* Does the legend have entry i? None where names stand beside the marks. Where there are more families than looks, the
 * marks cannot identify them, and the numbers do. */
static bool told(const fl_plane *m, size_t i, bool named, size_t numbers) {
    return !named &&
           (!numbers || m->looks->legend.count <= FL_PICTURE_LOOKS || fl_report_is_baseline(m->looks->legend.item[i]));
}

/* named: names stand beside the marks. numbers: entries of the front, which have numbers beside their marks. */
static void put_legend(fl_plane *m, bool named, size_t numbers) {
    double longest = 0;
    bool hollow = false, thin = false, boxed = false, partial = false;
    for (size_t i = 0; i < m->count; i++) {
        const fl_policy_summary *p = &m->s->item[m->spot[i].item];
        hollow |= m->spot[i].hollow;
        thin |= m->spot[i].hollow && m->spot[i].thick > 0;
        boxed |= m->spot[i].hollow && m->spot[i].thick <= 0 && p->baseline;
        partial |= fl_partial_rows(m->s, p);
    }
    size_t count = hollow + partial + numbers;
    char name[256];
    const double most = m->p->width - 80;
    for (size_t i = 0; i < m->looks->legend.count; i++) {
        if (!told(m, i, named, numbers))
            continue;
        longest = fmax(longest, fl_text_width(fl_text_fit(m->looks->legend.item[i], most, name)));
        count++;
    }
    for (size_t n = 1; n <= numbers; n++)
        longest =
            fmax(longest, fl_text_width(fl_text_fit(fl_summary_name(m->s, m->spot[m->front[n - 1]].item), most, name)) +
                              fl_text_width("000 "));
    char breaks[96];
    snprintf(breaks, sizeof breaks, "hollow mark%s%s: breaks the bound in a run",
             thin ? boxed ? ", thin ring" : " or thin ring" : "", boxed ? " or boxed cross" : "");
    static const char fewer[] = "* a mean over some of the runs";
    if (hollow)
        longest = fmax(longest, fl_text_width(breaks));
    if (partial)
        longest = fmax(longest, fl_text_width(fewer));
    fl_picture_legend(m->p, count, longest);
    for (size_t i = 0; i < m->looks->legend.count; i++) {
        const bool baseline = fl_report_is_baseline(m->looks->legend.item[i]);
        if (!told(m, i, named, numbers))
            continue;
        const fl_look look = m->looks->legend_look[i];
        fl_picture_entry(m->p, fl_text_fit(m->looks->legend.item[i], most, name), look,
                         fl_picture_point(look, baseline, false));
    }
    if (hollow)
        fl_picture_entry(m->p, breaks, (fl_look){0}, fl_picture_point((fl_look){0}, false, true));
    if (partial)
        fl_picture_entry(m->p, fewer, (fl_look){0}, -1);
    put_numbers(m, numbers, most);
}

static void gather(fl_plane *m) {
    m->spot = fl_must(calloc(m->s->count + 1, sizeof *m->spot));
    for (size_t k = 0; k < m->s->count; k++) {
        const fl_policy_summary *p = &m->s->item[m->s->order[k]];
        fl_spot o = {.item = m->s->order[k],
                     .x = fl_lead_value(&m->lead.x, p),
                     .y = fl_lead_value(&m->lead.y, p),
                     .hollow = p->violations > 0,
                     .size = 1};
        if (isfinite(o.x.mean) && isfinite(o.y.mean))
            m->spot[m->count++] = o;
    }
}

size_t fl_picture_pareto(fl_picture *p, const fl_summary *s, const fl_looks *looks) {
    fl_plane m = {.s = s, .looks = looks, .p = p};
    char about[512], intervals[128];
    fl_lead_of(s, &m.lead);
    gather(&m);
    if (!m.count) {
        fl_plane_close(&m);
        return 0;
    }
    fl_lead_about(s, about, sizeof about);
    fl_lead_intervals(s, intervals, sizeof intervals);
    p->bars = *intervals && m.count <= FL_BARS_MAX;
    if (p->bars)
        snprintf(about + strlen(about), sizeof about - strlen(about), "; bars: %s", intervals);
    fl_plane_front(&m);
    fl_picture_plot(p, 60, 24, p->width < 600 ? 320 : 400);
    set_range(&m);
    fputs("what,x,y,dx,dy,point,colour,text,size\n", p->table);
    put_front(&m);
    put_marks(&m);
    char *names = m.count <= NAMED_MAX ? names_beside(&m, COVERS - 1, false) : NULL;
    const bool named = names;
    const size_t numbers = named || !looks->by_family ? 0 : m.fronts < NUMBERED_MAX ? m.fronts : NUMBERED_MAX;
    for (size_t i = 0; i < numbers; i++)
        m.spot[m.front[i]].number = i + 1;
    if (numbers)
        names = names_beside(&m, HUGE_VAL, true);
    fputs(names ? names : "", p->table);
    free(names);
    if (m.ringed)
        snprintf(about + strlen(about), sizeof about - strlen(about), "; a ring: one more policy at the same place%s",
                 named ? ", named beside it" : "");
    fl_picture_title(p, m.lead.title, about);
    put_legend(&m, named, numbers);
    fl_picture_text(p, "x_label", m.lead.x.label);
    fl_picture_text(p, "y_label", m.lead.y.label);
    fl_picture_number(p, "x_bound", m.lead.x.bound);
    char text[64], limit[32];
    snprintf(text, sizeof text, "bound %s%s", fl_lead_number(m.lead.x.bound, limit), m.lead.x.unit);
    fl_picture_text(p, "bound_text", text);
    fl_picture_number(p, "many", m.count > FL_BARS_MAX);
    fl_plane_close(&m);
    return m.count;
}
