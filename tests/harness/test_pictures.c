/* What the pictures show, read from the SVG that gnuplot draws: that titles are whole and the plot has its room, that
 * the bound, who breaks it, and who hides behind another can be seen, and that nothing is claimed that is not there. */
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <math.h>
#include <unistd.h>

static char folder[256], picture[1 << 20];

static const char *in_folder(const char *name) {
    static char path[4][512];
    static int which;
    char *p = path[which++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static FILE *make(const char *name) {
    if (!*folder) {
        snprintf(folder, sizeof folder, "%s/fl-pictures-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    }
    FILE *f = fopen(in_folder(name), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    return f;
}

static void write_text(const char *name, const char *text) {
    FILE *f = make(name);
    fputs(text, f);
    fclose(f);
}

/* Into `picture`. */
static void draw(const char *kind, const char *input) {
    fl_diag d = {0};
    const char *out = in_folder("p.svg");
    *picture = 0;
    FL_CHECK(fl_plot(kind, in_folder(input), out, &d) == FL_OK, "%s of %s: %s", kind, input, d.message);
    FILE *f = fopen(out, "r");
    const size_t n = f ? fread(picture, 1, sizeof picture - 1, f) : 0;
    picture[n] = 0;
    if (f)
        fclose(f);
}

static size_t count(const char *what) {
    size_t n = 0;
    for (const char *at = picture; (at = strstr(at, what)); at++)
        n++;
    return n;
}

typedef struct spot {
    double x, y, size;
    int point;
    char colour[32];
} spot;

/* Marks and rings of the plot, which are larger than the marks of the legend. Paper within a ring is none. */
static size_t marks(spot *m, size_t room) {
    size_t n = 0;
    for (const char *at = picture; n < room && (at = strstr(at, "<use xlink:href='#gpPt")); at++)
        if (sscanf(at, "<use xlink:href='#gpPt%d' transform='translate(%lf,%lf) scale(%lf)' color='%31[^']",
                   &m[n].point, &m[n].x, &m[n].y, &m[n].size, m[n].colour) == 5 &&
            m[n].size > 4.6 && strcmp(m[n].colour, "rgb(255, 255, 255)") != 0)
            n++;
    return n;
}

static bool hollow(const spot *m) { /* gnuplot counts its points from 1, their shapes from 0 */
    return m->point == 3 || m->point == 5 || m->point == 7 || m->point == 9 || m->point == 11 || m->point == 13;
}

/* The plot's edges: the border of two lines. */
static bool edges(double *left, double *right, double *top, double *bottom) {
    for (const char *at = picture; (at = strstr(at, "d='M")); at++) {
        double x[3], y[3];
        if (sscanf(at, "d='M%lf,%lf L%lf,%lf L%lf,%lf", &x[0], &y[0], &x[1], &y[1], &x[2], &y[2]) == 6 &&
            x[0] == x[1] && y[1] == y[2] && x[2] > x[1] && y[1] > y[0]) {
            *left = x[0];
            *right = x[2];
            *top = y[0];
            *bottom = y[1];
            return true;
        }
    }
    return false;
}

enum { POLICIES = 15 };

/* The right end of the front's line, in pixels; 0 without one. */
static double front_end(void) {
    double last = 0;
    const char *front = strstr(picture, "<path stroke='rgb(107, 116, 125)' stroke-dasharray");
    for (const char *at = front ? strstr(front, "d='") : NULL; at && *at != '/'; at++) {
        double x;
        if ((*at == 'M' || *at == 'L') && sscanf(at + 1, "%lf,", &x) == 1)
            last = x > last ? x : last;
    }
    return last;
}

/* Policy k is k % slower, saves k % where k is even and less where it is odd; 13 stands where 12 does. From 6 % on the
 * bound of 5 % is broken. */
static void fifteen(void) {
    FILE *f = make("fifteen.csv");
    fputs("workload,policy,energy_j,slowdown,energy_saving_pct,violated,seed,platform\n", f);
    for (int w = 0; w < 2; w++) {
        fprintf(f, "w%d,baseline:default,100,0,0,0,1,board\n", w);
        for (int k = 0; k < POLICIES; k++) {
            const int as = k == 13 ? 12 : k;
            fprintf(f, "w%d,\"policy-of-some-length:number=%d,other=1\",%d,%g,%d,%d,1,board\n", w, k, 100 - as,
                    as * 0.01, as % 2 ? as - 3 : as, as > 5);
        }
    }
    fclose(f);
    write_text("fifteen.provenance.json", "{\"options\": {\"bound\": 0.05}}\n");
}

static void test_pareto(void) {
    double left = 0, right = 0, top = 0, bottom = 0, width = 0, height = 0, x1, y1, x2, y2;
    fifteen();
    draw("pareto", "fifteen.csv");
    CU_ASSERT_EQUAL_FATAL(sscanf(strstr(picture, "width=\""), "width=\"%lf\" height=\"%lf", &width, &height), 2);
    FL_CHECK(edges(&left, &right, &top, &bottom) && right - left >= width / 2 && bottom - top >= 300,
             "the plot is %g of %g wide, %g high", right - left, width, bottom - top);
    FL_CHECK(strstr(picture, ">Energy saved against slowdown<") &&
                 strstr(picture, ">2 workloads on board, bound 5 % slowdown"),
             "the title is cut");
    /* the bound, from below to above, between who holds it and who does not */
    const char *bound = strstr(picture, "<path stroke='rgb(168,  51,  10)'");
    CU_ASSERT_PTR_NOT_NULL_FATAL(bound);
    CU_ASSERT_EQUAL_FATAL(sscanf(strstr(bound, "d='"), "d='M%lf,%lf L%lf,%lf", &x1, &y1, &x2, &y2), 4);
    FL_CHECK(x1 == x2 && fabs(fabs(y1 - y2) - (bottom - top)) < 1 && strstr(picture, ">bound 5 %<"),
             "the bound's line");
    spot m[64];
    const size_t n = marks(m, 64);
    FL_CHECK(n == POLICIES + 1, "%zu marks", n);
    for (size_t i = 0; i < n; i++) {
        FL_CHECK(hollow(&m[i]) == (m[i].x > x1 + 1), "mark %zu at %g, the bound at %g: hollow %d", i, m[i].x, x1,
                 hollow(&m[i]));
        for (size_t k = 0; k < i; k++)
            FL_CHECK(hypot(m[i].x - m[k].x, m[i].y - m[k].y) >= 8 || m[k].size >= m[i].size + 3,
                     "marks %zu and %zu hide each other", k, i);
    }
    FL_CHECK(strstr(picture, ">hollow mark or thin ring: breaks the bound in a run<") != NULL,
             "hollow is not explained");
    FL_CHECK(front_end() > left + 100 && front_end() <= x1 + 1, "the front ends at %g, the bound is at %g", front_end(),
             x1);
    /* names stand beside the marks, or in the legend, not in both */
    for (int k = 0; k < POLICIES; k++) {
        char bare[64];
        snprintf(bare, sizeof bare, "number=%d", k);
        size_t all = 0;
        for (const char *at = picture; (at = strstr(at, bare)); at++)
            all += at[strlen(bare)] == ',' || at[strlen(bare)] == ';';
        FL_CHECK(all == 1, "policy %d is named %zu times", k, all);
    }
    FL_CHECK(!strstr(picture, "95 %"), "intervals are claimed, and all runs agree");
}

/* Marks of one value stand at it, all of them, each larger than the one that is drawn over it, and all are named. */
static void test_one_place(void) {
    enum { SAME = 7 };
    FILE *f = make("same.csv");
    fputs("workload,policy,energy_j,slowdown,energy_saving_pct,violated,seed,platform\n"
          "w,baseline:default,100,0,0,1,1,board\nw,far,70,0.04,30,0,1,board\n",
          f);
    for (int k = 0; k < SAME; k++)
        fprintf(f, "w,\"same:sm_mhz=153%d,mem_mhz=877\",90,0.02,10,%d,1,board\n", k, k == 3);
    fclose(f);
    draw("pareto", "same.csv");
    spot m[64];
    const size_t n = marks(m, 64);
    FL_CHECK(n == SAME + 3, "%zu marks, expected one each and the box of a baseline beyond its bound", n);
    const spot *zero = NULL, *far = NULL, *last = NULL;
    for (size_t i = 0; i < n; i++) {
        zero = !zero || m[i].y > zero->y ? &m[i] : zero;
        far = !far || m[i].y < far->y ? &m[i] : far;
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(zero);
    const double x = (zero->x + far->x) / 2, y = zero->y + (far->y - zero->y) / 3;
    size_t there = 0, thin = 0;
    for (size_t i = 0; i < n; i++) {
        if (hypot(m[i].x - x, m[i].y - y) > 0.5)
            continue;
        there++;
        thin += hollow(&m[i]);
        FL_CHECK(!last || m[i].size <= last->size - 2.5, "mark %zu of %g covers one of %g", i, m[i].size, last->size);
        last = &m[i];
    }
    FL_CHECK(there == SAME, "%zu of %d marks stand at their values", there, SAME);
    FL_CHECK(thin == 1, "%zu of them break the bound", thin);
    for (int k = 0; k < SAME; k++) {
        char name[64];
        snprintf(name, sizeof name, ">same:sm_mhz=153%d,mem_mhz=877<", k);
        FL_CHECK(count(name) == 1, "%zu times %s", count(name), name);
    }
    double left = 0, right = 0, top = 0, bottom = 0;
    CU_ASSERT_FATAL(edges(&left, &right, &top, &bottom));
    for (size_t i = 0; i < n; i++) /* half of a mark is about its size */
        FL_CHECK(m[i].x - m[i].size > left && m[i].x + m[i].size < right && m[i].y - m[i].size > top &&
                     m[i].y + m[i].size < bottom,
                 "mark %zu of %g at %g, %g reaches over the edge", i, m[i].size, m[i].x, m[i].y);
    FL_CHECK(count(">hollow mark, thin ring or boxed cross: breaks the bound in a run<") == 1, "what breaks a bound");
}

/* Latencies of minutes are seconds, in plain digits; the label has its room; a mean over fewer runs says so. */
static void test_large_numbers(void) {
    FILE *f = make("large.csv");
    fputs("workload,policy,energy_j,slowdown,energy_saving_pct,violated,seed,platform,latency_p99_s,"
          "energy_per_request_j\nw,baseline:static,90,0.1,10,0,1,board,299,19000\n",
          f);
    for (int seed = 1; seed <= 2; seed++)
        fprintf(f, "w,baseline:default,100,0,0,1,%d,board,526.6,24400\nw,p,90,0.1,10,0,%d,board,300,19500\n", seed,
                seed);
    fclose(f);
    write_text("large.provenance.json", "{\"options\": {\"bounds\": [\"latency_p99_s <= 300\"]}}\n");
    draw("pareto", "large.csv");
    FL_CHECK(count(">bound 300 s<") == 1 && count(">latency p99, s<") == 1, "the unit of the bound");
    FL_CHECK(count(">24000<") == 1 && !strstr(picture, "e+0"), "digits");
    FL_CHECK(count(">static *<") == 1 && count(">* a mean over some of the runs<") == 1 && !count(">p *<"),
             "a mean over one run of two");
    double x = 0, y = 0;
    const char *label = strstr(picture, ">energy per request, J<"), *open = label;
    while (open && open > picture && strncmp(open, "translate(", 10) != 0)
        open--;
    FL_CHECK(label && sscanf(open, "translate(%lf,%lf)", &x, &y) == 2 && x >= 12, "the label begins at %g", x - 12);
}

/* Policies that the legend has by families have numbers beside their marks on the front, which the legend explains. */
static void test_long_front(void) {
    enum { LONG = 30 };
    FILE *f = make("long.csv");
    fputs("workload,policy,energy_j,slowdown,energy_saving_pct,seed\n", f);
    for (int k = 0; k < LONG; k++)
        fprintf(f, "w,p:x=%d,%d,%g,%d,1\n", k, 100 - k, k * 0.01, k);
    fclose(f);
    draw("pareto", "long.csv");
    for (int k = 0; k < LONG; k++) {
        char beside[32], below[32];
        snprintf(below, sizeof below, ">%d p:x=%d<", k + 1, k);
        FL_CHECK(count(below) == 1, "%zu times %s", count(below), below);
        snprintf(beside, sizeof beside, "<text>%d</text>", k + 1);
        FL_CHECK(count(beside) >= 1, "no %s beside its mark", beside);
    }
}

static void test_intervals(void) {
    static const char head[] = "workload,policy,energy_j,slowdown,energy_saving_pct,violated,seed,platform\n";
    static const struct {
        const char *rows, *says;
    } row[] = {{"a,p,90,0,10,0,1,x\n", NULL},
               {"a,p,90,0,10,0,1,x\nb,p,90,0,10,0,1,x\n", NULL}, /* two that agree */
               {"a,p,90,0,10,0,1,x\na,p,80,0,20,0,2,x\n", "95 % intervals over 2 seeds"},
               {"a,p,90,0,10,0,1,x\nb,p,80,0,20,0,1,x\n", "95 % intervals over 2 workloads"},
               {"a,p,90,0,10,0,1,x\na,p,91,0,9,0,2,x\nb,p,80,0,20,0,1,x\nb,p,81,0,19,0,2,x\n",
                "95 % intervals over 2 workloads and 2 seeds"}};
    static const char *const kinds[] = {"pareto", "intervals"};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        FILE *f = make("i.csv");
        fprintf(f, "%s%s", head, row[i].rows);
        fclose(f);
        for (size_t k = 0; k < 2; k++) {
            draw(kinds[k], "i.csv");
            FL_CHECK(row[i].says ? strstr(picture, row[i].says) != NULL : !strstr(picture, "95 %"), "%s, row %zu",
                     kinds[k], i);
        }
    }
}

static void test_bars(void) {
    write_text("bars.csv", "workload,policy,energy_j,slowdown,energy_saving_pct,violated,seed,regret_static_pct,"
                           "regret_clairvoyant_pct\n"
                           "a,none,90,0,10,0,1,0,0.25\na,some,91,0,9,0,1,1.5,2.5\na,over,80,0.5,20,1,1,n/a,n/a\n"
                           "a,part,90,0.5,8,0,1,3,4\nb,part,80,0.5,8,1,1,n/a,n/a\n");
    static const char stroke[] = "<path stroke='rgb(255, 255, 255)'";
    draw("regret", "bars.csv");
    static const char *const value[] = {">0<", ">0.25<", ">1.50<", ">2.50<", ">3.00<", ">4.00<"};
    for (size_t i = 0; i < sizeof value / sizeof *value; i++)
        FL_CHECK(count(value[i]) == 1, "%zu times %s", count(value[i]), value[i]);
    FL_CHECK(count(">n/a<") == 2, "%zu times n/a", count(">n/a<"));
    FL_CHECK(count("hatched: mean over the runs that hold the bound<") == 1, "the legend does not say what is hatched");
    size_t strokes = 0; /* one path, a piece each */
    for (const char *at = strstr(picture, stroke); at && *at && strncmp(at, "/>", 2) != 0; at++)
        strokes += *at == 'M';
    FL_CHECK(strokes > 40, "%zu strokes of hatching", strokes);
    write_text("whole.csv", "workload,policy,energy_j,slowdown,energy_saving_pct,violated,seed,regret_static_pct,"
                            "regret_clairvoyant_pct\na,some,91,0,9,0,1,1.5,2.5\na,over,80,0.5,20,1,1,n/a,n/a\n");
    draw("regret", "whole.csv");
    FL_CHECK(!count(stroke) && !count("hatched"), "a mean over all runs is hatched");
}

/* A row for each policy; red is who breaks the bound in a run, and that run is hollow. */
static void test_workloads(void) {
    FILE *f = make("runs.csv");
    fputs("workload,policy,energy_j,slowdown,energy_saving_pct,violated,seed,platform\n", f);
    for (int w = 0; w < 8; w++)
        fprintf(f, "w%d,holds,90,0.0%d,10,0,1,board\nw%d,breaks,80,0.1%d,2%d,%d,1,board\n", w, w % 5, w, w, w, w > 4);
    fclose(f);
    write_text("runs.provenance.json", "{\"options\": {\"bound\": 0.05}}\n");
    draw("workloads", "runs.csv");
    size_t red = 0;
    for (const char *at = picture; (at = strstr(at, "<use xlink:href='#gpPt5'")); at++) {
        const char *end = strchr(at, '\n');
        red += end && strstr(at, "color='rgb(168,  51,  10)'") && strstr(at, "color='rgb(168,  51,  10)'") < end;
    }
    FL_CHECK(red == 2 * 3 + 1, "%zu hollow red marks, expected three runs in two panels and one in the legend", red);
    FL_CHECK(count(">breaks 3 of 8<") == 1 && count(">breaks<") == 1 && count(">holds<") == 1 && !count(">breaks 0"),
             "who breaks the bound, and in how many runs");
    FL_CHECK(count(">bound 5 %<") == 1, "the bound's line has no name");
    FL_CHECK(strstr(picture, ">8 workloads on board, bound 5 % slowdown; line: all runs"), "what it is about");
}

/* Names stand beside marks, targets are lines, and a run far beyond the others is cut off with its latency. */
static void test_serving(void) {
    static const char head[] = "workload,policy,energy_j,slowdown,seed,platform,energy_saving_pct,violated,"
                               "energy_per_token_j,ttft_p99_s,tbt_p99_s\n";
    FILE *f = make("serving.csv");
    fprintf(f, "%s", head);
    fputs("some/requests.csv,baseline:default,100,0,1,board.json,0,0,1.4,0.9,0.1\n"
          "some/requests.csv,near,90,0,1,board.json,10,0,1.3,1.2,0.15\n"
          "some/requests.csv,far,80,0,1,board.json,20,1,1.2,57.1,0.2\n",
          f);
    fclose(f);
    write_text("serving.provenance.json", "{\"options\": {}, \"workloads\": [{\"serving\": {\"ttft_target_s\": 2, "
                                          "\"tbt_target_s\": 0.25}}]}\n");
    draw("serving", "serving.csv");
    FL_CHECK(count(">target 2 s<") == 1 && count(">target 0.25 s<") == 1, "the targets have no lines");
    FL_CHECK(count(">far 57.1 s \xe2\x86\x92<") == 1 && !count(">60<") && count(">far<") == 1,
             "the run beyond the axis");
    FL_CHECK(strstr(picture, ">requests on board; each mark is a run"), "what it is about");
    const char *line = strstr(picture, "<path stroke='rgb(168,  51,  10)'");
    double x1 = 0, y1, x2 = 1, y2;
    FL_CHECK(line && sscanf(strstr(line, "d='"), "d='M%lf,%lf L%lf,%lf", &x1, &y1, &x2, &y2) == 4 && x1 == x2,
             "the target's line is not upright");
    double x, y, name_x = 0, name_y = 0;
    const char *name = strstr(picture, ">near<");
    while (name && name > picture && strncmp(name, "translate(", 10) != 0)
        name--;
    CU_ASSERT_FATAL(name && sscanf(name, "translate(%lf,%lf)", &name_x, &name_y) == 2);
    bool beside = false;
    for (const char *at = picture; (at = strstr(at, "<use xlink:href='#gpPt6'")); at++)
        if (sscanf(at, "<use xlink:href='#gpPt6' transform='translate(%lf,%lf)", &x, &y) == 2)
            beside |= fabs(x - name_x) < 60 && fabs(y - name_y) < 25;
    FL_CHECK(beside, "the name at %g, %g is far from its mark", name_x, name_y);
}

/* Predictions are hollow marks or crosses; filled ones were measured. */
static void test_frontier(void) {
    write_text(
        "bert.frontier.csv",
        "kind,name,time_s,energy_j,bound_j,gap_pct,judge_time_s,judge_energy_j,measured_time_s,measured_energy_j\n"
        "plan,0,1,100,99,1,n/a,n/a,n/a,n/a\nplan,1,2,90,89,1,n/a,n/a,n/a,n/a\nrank,0,1.5,95,n/a,n/a,n/a,n/a,n/a,n/a\n"
        "static,0,1.6,97,n/a,n/a,n/a,n/a,n/a,n/a\ndefault,0,1.1,99,n/a,n/a,n/a,n/a,n/a,n/a\n"
        "measured,m,n/a,n/a,n/a,n/a,n/a,n/a,1.3,96\n");
    draw("frontier", "bert.frontier.csv");
    FL_CHECK(strstr(picture, ">bert; filled: measured, hollow or cross: predicted<"), "what it is about");
    size_t filled = 0;
    for (const char *at = picture; (at = strstr(at, "<use xlink:href='#gpPt")); at++) {
        const int point = atoi(at + sizeof "<use xlink:href='#gpPt" - 1);
        filled += point == 4 || point == 6 || point == 8 || point == 10 || point == 12 || point == 14;
    }
    FL_CHECK(filled == 2, "%zu filled marks, expected the measured one and that of the legend", filled);
    FL_CHECK(count(">measured: executed plans<") == 1 && count(">predicted: planned<") == 1, "the legend");
}

static void test_timeline(void) {
    write_text("time.csv",
               "# foldline-telemetry 1\n# workload: some/folder/mine.csv\n# platform: board\n# policy: p_{x}\n"
               "t_ns,device,sm_mhz,power_w,power_limit_w\n0,0,1500,,150\n100000000,0,900,80,150\n"
               "200000000,0,1200,120,150\n");
    draw("timeline", "time.csv");
    FL_CHECK(strstr(picture, ">mine on board, policy p_{x}<") != NULL, "what it is about");
    double x1, y1, x2, y2, zero = NAN;
    const char *wall = strstr(picture, "stroke='rgb(168,  51,  10)' stroke-dasharray");
    FL_CHECK(wall && sscanf(strstr(wall, "d='"), "d='M%lf,%lf L%lf,%lf", &x1, &y1, &x2, &y2) == 4 && y1 == y2 &&
                 x2 - x1 > 400 && strstr(picture, ">wall 150 W<"),
             "the wall");
    /* the lowest tick of power is 0 W, at the foot of its panel: it lies below the wall by what 150 W are */
    FL_CHECK(strstr(picture, ">power, W<") != NULL, "no axis of power");
    for (const char *at = picture; (at = strstr(at, "text-anchor=\"end\">\n\t\t<text>0</text>")); at++) {
        const char *open = at;
        while (strncmp(open, "translate(", 10) != 0)
            open--;
        sscanf(open, "translate(%lf,%lf)", &x1, &zero);
    }
    FL_CHECK(zero - y1 > 100, "the axis of power does not begin at 0 W");
}

static void test_regret_axes(void) {
    static const char head[] = "workload,policy,platform,variant,step,runs,reward_regret,low,high\n";
    FILE *f = make("near.regret.csv");
    fprintf(f, "%s", head);
    static const char *const policy[] = {"learns", "fixed:sm_mhz=1", "fixed:sm_mhz=2"};
    for (int i = 0; i < 3; i++)
        for (int k = 1; k <= 4; k++)
            fprintf(f, "a,%s,x,,%d000,2,%d,1,2\n", policy[i], k, i ? 30 * k / i : 20 + k);
    fclose(f);
    write_text("far.regret.csv", "workload,policy,platform,variant,step,runs,reward_regret,low,high\n"
                                 "a,learns,x,,1000,2,10,9,11\na,learns,x,,100000,2,20,19,21\n"
                                 "a,wanders,x,,1000,2,1000,900,1100\na,wanders,x,,100000,2,100000,90000,110000\n");
    draw("regret-curves", "near.regret.csv");
    FL_CHECK(strstr(picture, ">steps, thousands<") && strstr(picture, ">learns<") &&
                 !strstr(picture, ">fixed:sm_mhz=1<") && strstr(picture, ">2 fixed clocks<") &&
                 strstr(picture, "rgb(215, 220, 225)"),
             "linear axes, one band");
    draw("regret-curves", "far.regret.csv");
    FL_CHECK(strstr(picture, ">steps<") && strstr(picture, ">10k<") && strstr(picture, ">100k<") &&
                 strstr(picture, ">wanders<"),
             "both axes are logarithmic");
    double x1, y1, x2, y2; /* a decade of steps against a decade of regret: the dotted line rises by as many */
    const char *slope = strstr(picture, "stroke-dasharray='1.2,1.8'");
    slope = slope ? slope : strstr(picture, "stroke-dasharray='2.4,3.6'");
    FL_CHECK(slope && sscanf(strstr(slope, "d='"), "d='M%lf,%lf L%lf,%lf", &x1, &y1, &x2, &y2) == 4 && x2 > x1 &&
                 y2 < y1,
             "no line of a steady loss");
}

static void test_ticks(void) {
    write_text("tried.csv", "workload,policy,energy_j,slowdown,energy_saving_pct,seed\n"
                            "a,\"p:x=0.7\",90,0,10,1\na,\"p:x=0.93\",90,0,12,1\na,\"p:x=1.81\",90,0,13,1\n");
    draw("sensitivity", "tried.csv");
    FL_CHECK(count(">0.7<") == 2 && count(">0.93<") == 2 && count(">1.81<") == 2 && !count(">1<") && !count(">1.5<"),
             "ticks stand elsewhere: %zu, %zu, %zu", count(">0.7<"), count(">0.93<"), count(">1.81<"));
}

/* A name is no markup, no format and no command, whatever is in it. A backslash in a table is one that only looks so.
 */
static void test_names(void) {
    write_text("names.csv", "workload,policy,energy_j,slowdown,energy_saving_pct,seed\n"
                            "'w`id`,\"a%d_{b}<i>&\"\"q\"\"'`id`\",90,0.01,10,1\n'w`id`,'$(id)\\n,95,0,5,1\n");
    static const char *const kinds[] = {"pareto", "intervals", "ranks"};
    for (size_t i = 0; i < 3; i++) {
        draw(kinds[i], "names.csv");
        FL_CHECK(strstr(picture, ">a%d_{b}&lt;i>&amp;") &&
                     (strstr(picture, "$(id)\\n<") || strstr(picture, "$(id)\xe2\x88\x96n<")) &&
                     strstr(picture, "w`id`"),
                 "%s: names are changed", kinds[i]);
        FL_CHECK(!strstr(picture, "uid=") && !strstr(picture, "<i>"), "%s: a name is carried out", kinds[i]);
    }
}

static void test_away(void) {
    char line[300];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    FL_CHECK(*folder && system(line) == 0 && access(folder, F_OK), "%s is left", folder);
}

FL_SUITE("pictures", {"fifteen policies", test_pareto}, {"seven at one place", test_one_place},
         {"large numbers", test_large_numbers}, {"a long front", test_long_front},
         {"intervals where they are", test_intervals}, {"bars carry values", test_bars},
         {"every run of a policy", test_workloads}, {"servers", test_serving},
         {"predicted and measured", test_frontier}, {"timeline from 0 W with its wall", test_timeline},
         {"axes of regret", test_regret_axes}, {"ticks at the values tried", test_ticks}, {"names", test_names},
         {"nothing left", test_away})
