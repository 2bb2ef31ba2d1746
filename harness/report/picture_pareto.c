/* Two quantities of every policy against each other. Marks that would hide each other stand one above the other; the
 * names beside the front are placed here, for gnuplot knows nothing of what they would cover. */
#include "harness/report/picture_lines.h"
#include "harness/report/pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARK = 6, STACK_MAX = 5, NAMED_MAX = 16, NUMBERED_MAX = 300 };

typedef struct spot {
    size_t item;
    fl_interval x, y;
    double px, py; /* of the mark, which may stand beside its place */
    bool front, hollow;
    size_t number; /* of the front, from the left, where it is too long to be named */
} spot;

typedef struct box {
    double x1, y1, x2, y2;
} box;

typedef struct plane {
    const fl_summary *s;
    const fl_looks *looks;
    fl_lead lead;
    fl_picture *p;
    spot *spot; /* count, the best first */
    size_t count;
    box *taken; /* names so far */
    size_t names, segments;
    box *segment; /* of the front */
} plane;

/* No other policy is better in one and no worse in the other. */
static void find_front(plane *m) {
    const double wx = m->lead.x.more ? 1 : -1, wy = m->lead.y.more ? 1 : -1;
    for (size_t i = 0; i < m->count; i++) {
        const spot *a = &m->spot[i];
        bool best = !m->s->item[a->item].baseline;
        for (size_t k = 0; best && k < m->count; k++) {
            const spot *b = &m->spot[k];
            const double dx = wx * (b->x.mean - a->x.mean), dy = wy * (b->y.mean - a->y.mean);
            best = m->s->item[b->item].baseline || !(dx >= 0 && dy >= 0 && (dx > 0 || dy > 0));
        }
        m->spot[i].front = best;
    }
}

static void hold_all(const plane *m, bool y, double *low, double *high) {
    *low = HUGE_VAL;
    *high = -HUGE_VAL;
    for (size_t i = 0; i < m->count; i++) {
        const fl_interval *v = y ? &m->spot[i].y : &m->spot[i].x;
        fl_hold(low, high, v->mean);
    }
    fl_hold(low, high, y ? m->lead.y.bound : m->lead.x.bound);
    const double from = *low, to = *high, most = 0.2 * (to - from); /* long intervals end at the edge */
    for (size_t i = 0; i < m->count; i++) {
        const fl_interval *v = y ? &m->spot[i].y : &m->spot[i].x;
        fl_hold(low, high, isfinite(v->low) ? fmax(v->low, from - most) : v->mean);
        fl_hold(low, high, isfinite(v->high) ? fmin(v->high, to + most) : v->mean);
    }
    const double span = *high - *low, room = span > 0 ? 0.05 * span : fmax(fabs(*high) * 0.1, 0.5);
    *low -= room;
    *high += room;
}

/* Marks at one place stand above each other: across the bound none may move. */
static void place_marks(plane *m) {
    for (size_t i = 0; i < m->count; i++) {
        m->spot[i].px = fl_picture_px(m->p, m->spot[i].x.mean);
        m->spot[i].py = fl_picture_py(m->p, m->spot[i].y.mean);
    }
    const bool small = m->count > FL_BARS_MAX; /* as their marks are */
    const double near = small ? 1.5 : 5, apart = small ? 6 : 10;
    bool *done = calloc(m->count + 1, sizeof *done);
    for (size_t i = 0; done && i < m->count; i++) {
        size_t stack[STACK_MAX] = {i}, n = 1;
        const double at = m->spot[i].py;
        for (size_t k = i + 1; !done[i] && k < m->count && n < STACK_MAX; k++)
            if (!done[k] && fabs(m->spot[k].px - m->spot[i].px) < near && fabs(m->spot[k].py - at) < near)
                stack[n++] = k;
        for (size_t k = 0; !done[i] && n > 1 && k < n; k++)
            m->spot[stack[k]].py = at + apart * ((double)k - 0.5 * (double)(n - 1));
        for (size_t k = 0; n > 1 && k < n; k++)
            done[stack[k]] = true;
    }
    free(done);
}

/* ---- names ---- */

static bool meet(const box *a, const box *b) {
    return a->x1 < b->x2 && b->x1 < a->x2 && a->y1 < b->y2 && b->y1 < a->y2;
}

static double cost_of(const plane *m, size_t self, const box *b, double bound_px) {
    double cost = 0;
    for (size_t i = 0; i < m->count; i++) {
        const spot *o = &m->spot[i];
        const box mark = {o->px - MARK, o->py - MARK, o->px + MARK, o->py + MARK};
        if (meet(b, &mark))
            cost += i == self ? 400 : 120;
    }
    for (size_t i = 0; i < m->names; i++)
        cost += meet(b, &m->taken[i]) ? 1000 : 0;
    for (size_t i = 0; i < m->segments; i++)
        cost += meet(b, &m->segment[i]) ? 15 : 0;
    if (b->x1 < bound_px && b->x2 > bound_px)
        cost += 25;
    return cost;
}

/* A name beside its mark: the nearest place that covers nothing, with a line to it where that is far. */
static void put_name(plane *m, size_t i, bool must) {
    const spot *o = &m->spot[i];
    fl_picture *p = m->p;
    const char *whole = fl_summary_name(m->s, o->item);
    char name[256];
    if (o->number)
        snprintf(name, sizeof name, "%zu", o->number);
    else
        fl_text_fit(m->s->item[o->item].baseline ? whole + 9 : whole, p->right - p->left - 20, name);
    const double width = fl_text_width(name) + 2, bound = fl_picture_px(p, m->lead.x.bound);
    box best = {0};
    double least = HUGE_VAL;
    for (double away = 9; away < 180; away *= 1.35)
        for (int turn = 0; turn < 16; turn++) {
            const double angle = turn * M_PI / 8, cx = o->px + away * cos(angle), cy = o->py - away * sin(angle);
            const double side = cos(angle) > 0.3 ? 0 : cos(angle) < -0.3 ? width : width / 2;
            box b = {cx - side, cy - 8, cx - side + width, cy + 6};
            const double shift = fmax(p->left + 3 - b.x1, 0) - fmax(b.x2 - p->right - 8, 0);
            b.x1 += shift;
            b.x2 += shift;
            if (b.y1 < p->top - 6 || b.y2 > p->bottom - 2)
                continue;
            const double cost = away + 0.2 * fabs(shift) + (turn ? 1 : 0) + cost_of(m, i, &b, bound);
            if (cost < least) {
                least = cost;
                best = b;
            }
        }
    if (least == HUGE_VAL || (!must && least > 40))
        return;
    m->taken[m->names++] = best;
    const double nx = fmax(best.x1, fmin(o->px, best.x2)), ny = fmax(best.y1, fmin(o->py, best.y2));
    const bool far = hypot(nx - o->px, ny - o->py) > 15;
    fprintf(p->table, "name,%.17g,%.17g,n/a,n/a,0,0,", fl_picture_x(p, best.x1 + 1),
            fl_picture_y(p, (best.y1 + best.y2) / 2 + 1));
    fl_picture_field(p, name);
    fputs(",\n", p->table);
    if (far)
        fprintf(p->table, "leader,%.17g,%.17g,%.17g,%.17g,0,0,,\n", fl_picture_x(p, o->px), fl_picture_y(p, o->py),
                fl_picture_x(p, nx) - fl_picture_x(p, o->px), fl_picture_y(p, ny) - fl_picture_y(p, o->py));
}

/* Every policy of the front; the baselines where there is room. At one place and one name, once. */
static void put_names(plane *m) {
    m->taken = calloc(m->count + 1, sizeof *m->taken);
    for (int baselines = 0; m->taken && baselines < 2; baselines++)
        for (size_t i = 0; i < m->count; i++)
            if (baselines ? m->s->item[m->spot[i].item].baseline : m->spot[i].front)
                put_name(m, i, !baselines);
    free(m->taken);
}

/* ---- rows ---- */

static void put_mark(const plane *m, const spot *o) {
    const fl_policy_summary *p = &m->s->item[o->item];
    const fl_look look = m->looks->of[p->policy];
    char tip[512];
    FILE *f = m->p->table;
    const double x = fl_picture_x(m->p, o->px), y = fl_picture_y(m->p, o->py);
    const double left = fmax(o->x.low, m->p->x0), right = fmin(o->x.high, m->p->x1), low = fmax(o->y.low, m->p->y0),
                 high = fmin(o->y.high, m->p->y1);
    if (o->x.low < o->x.high)
        fprintf(f, "range,%.17g,%.17g,%.17g,0,0,%d,,\n", left, y, right - left, look.colour);
    if (o->y.low < o->y.high)
        fprintf(f, "range,%.17g,%.17g,0,%.17g,0,%d,,\n", x, low, high - low, look.colour);
    fprintf(f, "mark,%.17g,%.17g,n/a,n/a,%d,%d,", x, y, fl_picture_point(look, p->baseline, o->hollow), look.colour);
    fl_picture_field(m->p, fl_summary_name(m->s, o->item));
    fputc(',', f);
    snprintf(tip, sizeof tip, "%s: %s %.4g%s, %s %.4g%s%s", fl_summary_name(m->s, o->item), m->lead.y.name, o->y.mean,
             m->lead.y.unit, m->lead.x.name, o->x.mean, m->lead.x.unit, o->hollow ? ", breaks the bound" : "");
    fl_picture_field(m->p, tip);
    fputc('\n', f);
}

static int by_x(const void *a, const void *b) {
    const double *x = a, *y = b;
    return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Its steps, from the best on x to the best on y. */
static void put_front(plane *m) {
    double(*at)[2] = malloc((m->count + 1) * sizeof *at);
    size_t n = 0;
    for (size_t i = 0; at && i < m->count; i++)
        if (m->spot[i].front) {
            at[n][0] = m->spot[i].x.mean;
            at[n++][1] = m->spot[i].y.mean;
        }
    if (at)
        qsort(at, n, sizeof *at, by_x);
    m->segment = calloc(2 * n + 1, sizeof *m->segment);
    for (size_t i = 1; m->segment && i < n; i++) {
        const double x1 = fl_picture_px(m->p, at[i - 1][0]), x2 = fl_picture_px(m->p, at[i][0]),
                     y1 = fl_picture_py(m->p, at[i - 1][1]), y2 = fl_picture_py(m->p, at[i][1]);
        m->segment[m->segments++] = (box){x1, y1 - 1, x2, y1 + 1};
        m->segment[m->segments++] = (box){x2 - 1, fmin(y1, y2), x2 + 1, fmax(y1, y2)};
    }
    for (size_t i = 0; i < n; i++)
        fprintf(m->p->table, "front,%.17g,%.17g,n/a,n/a,0,0,,\n", at[i][0], at[i][1]);
    free(at);
}

/* ---- the picture ---- */

/* A front that is too long for names gets numbers, which the legend explains. Returns how many. */
static size_t number_front(plane *m) {
    size_t front = 0;
    for (size_t i = 0; i < m->count; i++)
        front += m->spot[i].front;
    for (size_t i = 0; front > NAMED_MAX && i < m->count; i++)
        for (size_t k = 0; m->spot[i].front && k < m->count; k++)
            m->spot[i].number += m->spot[k].front && (m->spot[k].x.mean < m->spot[i].x.mean ||
                                                      (m->spot[k].x.mean == m->spot[i].x.mean && k <= i));
    return front > NAMED_MAX ? front < NUMBERED_MAX ? front : NUMBERED_MAX : 0;
}

static const spot *numbered(const plane *m, size_t number) {
    size_t i = 0;
    while (m->spot[i].number != number)
        i++;
    return &m->spot[i];
}

static void put_numbers(plane *m, size_t numbers, double most) {
    for (size_t n = 1; n <= numbers; n++) {
        const spot *o = numbered(m, n);
        const fl_look look = m->looks->of[m->s->item[o->item].policy];
        char text[320], name[256];
        snprintf(text, sizeof text, "%zu %s", n, fl_text_fit(fl_summary_name(m->s, o->item), most, name));
        fl_picture_entry(m->p, text, look, fl_picture_point(look, false, o->hollow));
    }
}

/* More families than looks: none can be told by its mark, and the numbers say whom they belong to. */
static bool told(const plane *m, size_t i, size_t numbers) {
    return !numbers || m->looks->legend.count <= FL_PICTURE_LOOKS || fl_report_is_baseline(m->looks->legend.item[i]);
}

static void put_legend(plane *m, size_t hollow) {
    const size_t numbers = number_front(m);
    double longest = 0;
    size_t count = (hollow > 0) + numbers;
    char name[256];
    const double most = m->p->width - 80;
    for (size_t i = 0; i < m->looks->legend.count; i++) {
        if (!told(m, i, numbers))
            continue;
        longest = fmax(longest, fl_text_width(fl_text_fit(m->looks->legend.item[i], most, name)));
        count++;
    }
    for (size_t n = 1; n <= numbers; n++)
        longest = fmax(longest, fl_text_width(fl_text_fit(fl_summary_name(m->s, numbered(m, n)->item), most, name)) +
                                    fl_text_width("000 "));
    static const char breaks[] = "hollow: breaks the bound in a run";
    if (hollow)
        longest = fmax(longest, fl_text_width(breaks));
    fl_picture_legend(m->p, count, longest);
    for (size_t i = 0; i < m->looks->legend.count; i++) {
        const bool baseline = fl_report_is_baseline(m->looks->legend.item[i]);
        if (!told(m, i, numbers))
            continue;
        const fl_look look = m->looks->legend_look[i];
        fl_picture_entry(m->p, fl_text_fit(m->looks->legend.item[i], most, name), look,
                         fl_picture_point(look, baseline, false));
    }
    if (hollow)
        fl_picture_entry(m->p, breaks, (fl_look){0}, fl_picture_point((fl_look){0}, false, true));
    put_numbers(m, numbers, most);
}

static fl_status gather(plane *m, fl_diag *d) {
    m->spot = calloc(m->s->count + 1, sizeof *m->spot);
    if (!m->spot)
        return fl_no_memory(d, "a picture");
    for (size_t k = 0; k < m->s->count; k++) {
        const fl_policy_summary *p = &m->s->item[m->s->order[k]];
        spot o = {.item = m->s->order[k],
                  .x = fl_lead_value(&m->lead.x, p),
                  .y = fl_lead_value(&m->lead.y, p),
                  .hollow = !p->baseline && p->violations > 0};
        if (isfinite(o.x.mean) && isfinite(o.y.mean))
            m->spot[m->count++] = o;
    }
    return FL_OK;
}

fl_status fl_picture_pareto(fl_picture *p, const fl_summary *s, const fl_looks *looks, size_t *drawn, fl_diag *d) {
    plane m = {.s = s, .looks = looks, .p = p};
    char about[512], intervals[128];
    size_t hollow = 0;
    fl_lead_of(s, &m.lead);
    fl_status st = gather(&m, d);
    *drawn = m.count;
    if (st || !m.count) {
        free(m.spot);
        return st;
    }
    fl_lead_about(s, about, sizeof about);
    fl_lead_intervals(s, intervals, sizeof intervals);
    p->bars = *intervals && m.count <= FL_BARS_MAX;
    if (p->bars)
        snprintf(about + strlen(about), sizeof about - strlen(about), "; bars: %s", intervals);
    for (size_t i = 0; i < m.count; i++)
        hollow += m.spot[i].hollow;
    find_front(&m);
    fl_picture_plot(p, 60, 24, p->width < 600 ? 320 : 400);
    fl_picture_title(p, m.lead.title, about);
    put_legend(&m, hollow);
    double x0, x1, y0, y1;
    hold_all(&m, false, &x0, &x1);
    hold_all(&m, true, &y0, &y1);
    fl_picture_range(p, x0, x1, y0, y1);
    place_marks(&m);
    fl_picture_text(p, "x_label", m.lead.x.label);
    fl_picture_text(p, "y_label", m.lead.y.label);
    fl_picture_number(p, "x_bound", m.lead.x.bound);
    char text[64];
    snprintf(text, sizeof text, "bound %.4g%s", m.lead.x.bound, m.lead.x.unit);
    fl_picture_text(p, "bound_text", text);
    fl_picture_number(p, "many", m.count > FL_BARS_MAX);
    fputs("what,x,y,dx,dy,point,colour,text,tip\n", p->table);
    put_front(&m);
    for (int baselines = 1; baselines >= 0; baselines--) /* what matters last, so that it lies above */
        for (size_t i = m.count; i--;)
            if (s->item[m.spot[i].item].baseline == (baselines != 0))
                put_mark(&m, &m.spot[i]);
    put_names(&m);
    free(m.segment);
    free(m.spot);
    return FL_OK;
}
