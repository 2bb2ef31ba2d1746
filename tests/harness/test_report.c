/* The report of a result, by the real program from end to end: what the page says, that it needs nothing else, and,
 * where there is a Chromium, that it works in a browser, at the width of a phone too. */
#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/data/inside.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/suite.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[200], said[1 << 16];

/* Runs a command line in the folder; what it says is in `said`. */
static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int run(const char *format, ...) {
    char line[4096];
    int used = snprintf(line, sizeof line, "cd '%s' && ", folder);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, sizeof line - (size_t)used, format, args);
    va_end(args);
    FILE *p = popen(line, "r");
    size_t n = p ? fread(said, 1, sizeof said - 1, p) : 0;
    said[n] = 0;
    while (p && fgetc(p) != EOF)
        ;
    const int status = p ? pclose(p) : -1;
    return status < 0 || !WIFEXITED(status) ? 255 : WEXITSTATUS(status);
}

static char *slurp(const char *name) {
    char path[512];
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    char *text = f ? malloc(64u << 20) : NULL;
    if (text) {
        size = fread(text, 1, (64u << 20) - 1, f);
        text[size] = 0;
    }
    if (f)
        fclose(f);
    return text;
}

static void spit(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
}

static const char replay[] =
    "{\"foldline_experiment\": 1, \"about\": \"Is <random> better & cheaper?\",\n"
    "\"platform\": \"pvc-max1550x6\", \"sweep\": \"" FL_ROOT "/traces/samples/energyucb-table1.csv\",\n"
    "\"workloads\": [\"505.lbm\", \"518.tealeaf\", \"519.clvleaf\"],\n"
    "\"draws\": {\"step_ms\": 10}, \"seeds\": 3, \"variants\": {\"no noise\": {\"energy_cv\": 0}},\n"
    "\"policies\": [\"random\", {\"policy\": \"fixed\", \"set\": {\"sm_mhz\": {\"from\": 800, "
    "\"to\": 1600, \"step\": 200}}}],\n"
    "\"assumed\": [\"nothing of note\"], \"published\": [{\"quantity\": \"static, \\\"top\\\"\", "
    "\"unit\": \"kJ\", \"published\": 100, \"note\": \"as printed\",\n"
    "\"simulated\": {\"policy\": \"fixed:sm_mhz=1600\", \"column\": \"energy_kj\"}, \"gate\": "
    "{\"above\": 1}}]}\n";

static void prepare(void) {
    if (*folder)
        return;
    snprintf(folder, sizeof folder, "%s/fl-report-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    spit("e.json", replay);
    FL_CHECK(run("'%s' compare e.json -o r.csv 2>&1", FL_PROGRAM) == 0, "compare: %s", said);
    FL_CHECK(
        run("'%s' run '%s/traces/samples/mix8.csv' --kinds '%s/traces/samples/mix8.kinds.csv' --platform v100-300w "
            "--policy assure --timeline t.csv 2>&1",
            FL_PROGRAM, FL_ROOT, FL_ROOT) == 0,
        "run: %s", said);
    FL_CHECK(run("'%s' report r.csv -o r.html --timeline t.csv 2>&1", FL_PROGRAM) == 0, "report: %s", said);
}

static size_t count(const char *text, const char *what) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* ---- the page as text ---- */

static void test_says(void) {
    prepare();
    char *page = slurp("r.html");
    CU_ASSERT_PTR_NOT_NULL_FATAL(page);
    static const char *const says[] = {"Is &lt;random&gt; better &amp; cheaper?",
                                       "<b>6</b> policies",
                                       "<b>3</b> workloads",
                                       "<b>3</b> seeds",
                                       "<b>2</b> variants",
                                       "Platform: pvc-max1550x6",
                                       "id=\"policies-0\"",
                                       "id=\"pairs-0\"",
                                       "id=\"policies-1\"", /* the variant */
                                       "static, &quot;top&quot;",
                                       "above 1</td><td class=\"text good\">reproduced",
                                       "as printed",
                                       "nothing of note",
                                       "Sensitivity to parameters",
                                       "Cumulative regret",
                                       "519.clvleaf [no noise]",
                                       "t.csv: residency",
                                       "baseline:<wbr>static",
                                       "energyucb-table1.csv",
                                       "Policy archive, SHA-256",
                                       "sm_mhz=800"};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        FL_CHECK(strstr(page, says[i]) != NULL, "the page does not say '%s'", says[i]);
    /* nothing from elsewhere, nothing that is no number */
    static const char *const never[] = {"http:",   "https:", "src=", "@import", "url(", "gnuplot", "rgb(", "=\"nan",
                                        "=\"-nan", "=\"inf", "Mnan", "Lnan",    ">nan", ">inf",    "%!",   "(null)"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        FL_CHECK(strstr(page, never[i]) == NULL, "the page has '%s'", never[i]);
    FL_CHECK(count(page, "</figure>") == count(page, "<figcaption>") && count(page, "</figure>") >= 15, "%zu figures",
             count(page, "</figure>"));
    FL_CHECK(count(page, "role=\"img\" aria-label=\"") == count(page, "</figure>"), "figures without a text");
    FL_CHECK(count(page, "<table") == count(page, "<caption>"), "tables without a caption");
    FL_CHECK(count(page, "<details") == count(page, "</details>") && count(page, "<tr") == count(page, "</tr>"),
             "tags that are not closed");
    for (const char *at = page; (at = strstr(at, " id=\"")); at += 5) {
        char id[100];
        snprintf(id, sizeof id, "%.*s\"", (int)strcspn(at + 5, "\"") + 5, at);
        FL_CHECK(count(page, id) == 1, "%zu elements have the%s", count(page, id), id);
    }
    char *again = NULL;
    FL_CHECK(run("'%s' report r.csv -o again.html --timeline t.csv", FL_PROGRAM) == 0, "%s", said);
    again = slurp("again.html");
    FL_CHECK(again && !strcmp(page, again), "two reports of one result differ");
    free(page);
    free(again);
}

static void test_refusals(void) {
    prepare();
    static const struct {
        const char *name, *text, *arguments, *says;
        int status;
    } row[] = {
        {"x.csv", "", "x.csv -o x.html", "empty", 2},
        {"x.csv", "a,b\n1,2\n", "x.csv -o x.html", "expected the CSV of compare", 2},
        {"x.csv", "workload,policy,energy_j,slowdown\nmean,p,1,0\n", "x.csv -o x.html", "no row of a workload", 2},
        {"x.csv", "workload,policy,energy_j,slowdown\na,p,1\n", "x.csv -o x.html", "x.csv:2", 2},
        {"x.csv", "workload,policy,energy_j,slowdown\na,p,much,0\n", "x.csv -o x.html", "x.csv:2:5", 2},
        {"x.provenance.json", "{", "x.csv -o x.html", "x.csv:2", 2},
        {"x.csv", "workload,policy,energy_j,slowdown\na,p,1,0\n", "x.csv -o x.html", "x.provenance.json", 2},
        {"x.json", "", "nowhere.csv -o x.html", "nowhere.csv", 2},
        {"x.json", "", "r.csv", "expected RESULTS.csv -o", 2},
        {"x.json", "", "r.csv -o x.html --reference nobody", "no policy 'nobody'", 2},
        {"x.json", "", "r.csv -o x.html --timeline r.csv", "r.csv", 2},
        {"x.json", "", "r.csv -o no/such/x.html", "no/such", 3},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        spit(row[i].name, row[i].text);
        const int status = run("'%s' report %s 2>&1", FL_PROGRAM, row[i].arguments);
        FL_CHECK(status == row[i].status, "row %zu: status %d: %s", i, status, said);
        FL_CHECK(strstr(said, row[i].says) != NULL, "row %zu says: %s", i, said);
        FL_CHECK(run("ls x.html* no 2>/dev/null") != 0 && !*said, "row %zu left %s", i, said);
    }
    /* another result under a name, or another's record beside it */
    FL_CHECK(
        run("cp r.csv swapped.csv && cp r.provenance.json swapped.provenance.json && '%s' report swapped.csv -o s.html",
            FL_PROGRAM) == 0,
        "a copy with its record: %s", said);
    FL_CHECK(run("sed '$d' r.csv >swapped.csv; '%s' report swapped.csv -o x.html 2>&1", FL_PROGRAM) == 2 &&
                 strstr(said, "swapped.provenance.json: the record of another result"),
             "another result: %s", said);
    FL_CHECK(run("'%s' compare '%s/traces/samples/mix8.csv' --kinds '%s/traces/samples/mix8.kinds.csv' --platform "
                 "v100-300w --policy nvboost "
                 "--no-oracle -o other.csv && cp other.provenance.json swapped.provenance.json",
                 FL_PROGRAM, FL_ROOT, FL_ROOT) == 0 &&
                 run("cp r.csv swapped.csv; '%s' report swapped.csv -o x.html 2>&1", FL_PROGRAM) == 2 &&
                 strstr(said, "of another result") && run("ls x.html 2>/dev/null") != 0,
             "another's record: %s", said);
    /* alone, a result still makes a page that says what is missing */
    spit("alone.csv", "workload,policy,energy_j,slowdown\na,p,1,0\n");
    FL_CHECK(run("'%s' report alone.csv -o alone.html", FL_PROGRAM) == 0, "%s", said);
    char *page = slurp("alone.html");
    FL_CHECK(page && strstr(page, "No record of where this result comes from"), "alone.html");
    free(page);
}

/* ---- the numbers ---- */

static void test_numbers(void) {
    prepare();
    /* two workloads, two seeds of q; p once each. Savings of p 10 and 20, of q 12, 14 and 30, 32: means 15 and 22, and
     * q ahead by 3 and 11. r does not hold the bound, so it ranks behind both. */
    spit("n.csv", "workload,policy,energy_j,makespan_s,slowdown,violated,seed,energy_saving_pct,platform,variant\n"
                  "a,baseline:default,100,1,0,0,1,0,x,\na,p,90,1.1,0.1,0,1,10,x,\na,q,88,1,0,0,1,12,x,\n"
                  "a,q,86,1,0,0,2,14,x,\na,r,10,2,1,1,1,90,x,\n"
                  "b,baseline:default,100,1,0,0,1,0,x,\nb,p,80,1.3,0.3,0,1,20,x,\nb,q,70,1,0,0,1,30,x,\n"
                  "b,q,68,1,0,0,2,32,x,\nb,r,10,2,1,1,1,90,x,\nmean,q,1,1,9,0,1,77,x,\n"
                  "a [v],p,50,1,0.5,0,1,50,x,v\n");
    char path[512];
    snprintf(path, sizeof path, "%s/n.csv", folder);
    fl_report_data data;
    fl_scope *scope;
    size_t scopes;
    fl_summary s;
    fl_diag d = {0};
    FL_CHECK(fl_report_read(path, &data, &d) == FL_OK, "%s", d.message);
    fl_scopes_make(&data, &scope, &scopes);
    FL_CHECK(scopes == 2 && data.workload.count == 2 && data.row_count == 11, "%zu scopes, %zu workloads, %zu rows",
             scopes, data.workload.count, data.row_count);
    const fl_bootstrap b = {.seed = 1};
    CU_ASSERT_EQUAL(fl_summary_make(&scope[0], &b, NULL, &s, &d), FL_OK);
    static const struct {
        const char *policy;
        double merit, low, high, slowdown, violations, difference;
        size_t wins, losses, runs;
        double rank;
    } is[] = {{"baseline:default", 0, 0, 0, 0, 0, -22, 0, 2, 2, NAN},
              {"p", 15, 10, 20, 0.2, 0, -7, 0, 2, 2, 2},
              {"q", 22, 12, 32, 0, 0, 0, 0, 0, 4, 1},
              {"r", 90, 90, 90, 1, 2, 68, 2, 0, 2, 3}};
    FL_CHECK(s.count == 4 && !strcmp(fl_summary_name(&s, s.reference), "q"), "the reference is %zu", s.reference);
    FL_CHECK(s.order[0] == 2 && s.order[3] == 3, "q stands first and r, which breaks the bound, last: %zu, %zu",
             s.order[0], s.order[3]);
    for (size_t i = 0; i < 4 && i < s.count; i++) {
        const fl_policy_summary *p = &s.item[i];
        FL_CHECK(!strcmp(fl_summary_name(&s, i), is[i].policy), "policy %zu is %s", i, fl_summary_name(&s, i));
        FL_CHECK(fabs(p->merit.mean - is[i].merit) < 1e-9 && fabs(p->merit.low - is[i].low) < 1.01 &&
                     fabs(p->merit.high - is[i].high) < 1.01,
                 "%s saves %g [%g, %g]", is[i].policy, p->merit.mean, p->merit.low, p->merit.high);
        FL_CHECK(fabs(p->value[FL_REPORT_SLOWDOWN].mean - is[i].slowdown) < 1e-12 && p->violations == is[i].violations,
                 "%s: slowdown %g, %g violations", is[i].policy, p->value[FL_REPORT_SLOWDOWN].mean, p->violations);
        FL_CHECK(fabs(p->merit_pair.difference.mean - is[i].difference) < 1e-9 && p->merit_pair.wins == is[i].wins &&
                     p->merit_pair.losses == is[i].losses && p->merit.runs == is[i].runs,
                 "%s: %g, %zu wins, %zu losses of %zu runs", is[i].policy, p->merit_pair.difference.mean,
                 p->merit_pair.wins, p->merit_pair.losses, p->merit.runs);
        FL_CHECK(isnan(is[i].rank) ? isnan(p->rank.rank.mean) : p->rank.rank.mean == is[i].rank, "%s ranks %g",
                 is[i].policy, p->rank.rank.mean);
    }
    fl_summary_free(&s);
    fl_scopes_free(scope, scopes);
    fl_report_free(&data);
}

static void test_labels(void) {
    static const struct {
        const char *label, *family, *name, *value;
        size_t index;
    } row[] = {{"assure:theta=0.9,probe_mhz=855/1050", "assure", "probe_mhz", "855/1050", 1},
               {"assure:theta=0.9", "assure", "theta", "0.9", 0},
               {"assure:theta=0.9", "assure", NULL, NULL, 1},
               {"maxfreq", "maxfreq", NULL, NULL, 0},
               {"baseline:static", "baseline:static", NULL, NULL, 0},
               {"my label: fine", "my label: fine", NULL, NULL, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char family[128], name[64], value[64];
        FL_CHECK(!strcmp(fl_label_family(row[i].label, family), row[i].family), "row %zu: family %s", i, family);
        const bool found = fl_label_setting(row[i].label, row[i].index, name, value);
        FL_CHECK(found == (row[i].name != NULL), "row %zu: %d", i, found);
        if (found && row[i].name)
            FL_CHECK(!strcmp(name, row[i].name) && !strcmp(value, row[i].value), "row %zu: %s=%s", i, name, value);
    }
}

static void test_residency(void) {
    /* two devices, 10 s each: 800 MHz for 4 + 1 s, 1200 MHz for 5 s, 1000 MHz for 10 s; a first row says nothing of
     * time */
    static int64_t t_ns[] = {0, 0, 4000000000, 9000000000, 10000000000, 10000000000};
    static int32_t device[] = {0, 1, 0, 0, 0, 1};
    static double value[] = {1500, 1500, 800, 1200, 800, 1000};
    static char name[] = "sm_mhz", other[] = "power_w";
    char *signal[] = {name}, *none[] = {other};
    static const fl_share is[] = {{800, 800, 0.25}, {1000, 1000, 0.5}, {1200, 1200, 0.25}};
    fl_telemetry t = {
        .signal = signal, .signal_count = 1, .t_ns = t_ns, .device = device, .value = value, .row_count = 6};
    fl_share *share = NULL;
    size_t n = 0;
    double all = 0;
    fl_diag d = {0};
    CU_ASSERT_EQUAL(fl_residency(&t, "t", &share, &n, &d), FL_OK);
    FL_CHECK(n == 3, "%zu clocks", n);
    for (size_t i = 0; i < 3 && i < n; i++)
        FL_CHECK(share[i].low == is[i].low && share[i].high == is[i].high && fabs(share[i].share - is[i].share) < 1e-12,
                 "%g MHz: %g", share[i].low, share[i].share);
    free(share);
    /* many clocks become classes, and nothing is lost */
    enum { ROWS = 101 };
    int64_t many_t[ROWS];
    int32_t zero[ROWS] = {0};
    double many[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        many_t[i] = (int64_t)i * 1000;
        many[i] = 1000 + (double)i;
    }
    t = (fl_telemetry){
        .signal = signal, .signal_count = 1, .t_ns = many_t, .device = zero, .value = many, .row_count = ROWS};
    CU_ASSERT_EQUAL(fl_residency(&t, "t", &share, &n, &d), FL_OK);
    for (size_t i = 0; i < n; i++)
        all += share[i].share;
    FL_CHECK(n == 16 && fabs(all - 1) < 1e-12 && share[0].low == 1001 && share[n - 1].high == 1100,
             "%zu classes from %g to %g, %g in all", n, share[0].low, share[n - 1].high, all);
    free(share);
    /* nothing is known of a pause */
    for (size_t i = 0; i < ROWS; i++) {
        many[i] = i < 51 ? 1000 : 1410;
        many_t[i] += i < 51 ? 0 : 1000000000;
    }
    CU_ASSERT_EQUAL(fl_residency(&t, "t", &share, &n, &d), FL_OK);
    FL_CHECK(n == 2 && fabs(share[0].share - 50. / 99) < 1e-12 && fabs(share[1].share - 49. / 99) < 1e-12,
             "%g of the time at %g MHz", share[0].share, share[0].low);
    free(share);
    t.signal = none;
    FL_CHECK(fl_residency(&t, "t.csv", &share, &n, &d) == FL_BAD_INPUT && strstr(d.message, "sm_mhz"), "%s", d.message);
}

/* ---- in a browser ---- */

static const char *browser(void) {
    static const char *const path[] = {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"};
    const char *given = getenv("FOLDLINE_CHROMIUM");
    if (given && *given)
        return access(given, X_OK) ? NULL : given;
    for (size_t i = 0; i < sizeof path / sizeof *path; i++)
        if (!access(path[i], X_OK))
            return path[i];
    return NULL;
}

/* The page after its scripts have run, into dom.html; complaints of the console into console.txt. */
static int show(const char *page_and_query, const char *flags) {
    return run("timeout 90 '%s' --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars "
               "--no-first-run "
               "--user-data-dir='%s/browser' --allow-file-access-from-files --window-size=1280,1000 "
               "--virtual-time-budget=4000 %s --enable-logging=stderr --v=0 --dump-dom 'file://%s/%s' >dom.html "
               "2>console.txt",
               browser(), folder, flags, folder, page_and_query);
}

static size_t console_lines(char *first, size_t size) {
    char *text = slurp("console.txt");
    const size_t n = text ? count(text, "CONSOLE") : 1;
    const char *at = text ? strstr(text, "CONSOLE") : NULL;
    snprintf(first, size, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
    free(text);
    return n;
}

/* The numbers that the cells of a column are sorted by, in the order of the rows; n/a as NAN. */
static size_t column_of(const char *dom, const char *table, size_t column, double *value, size_t room) {
    char id[100];
    snprintf(id, sizeof id, "id=\"%s\"", table);
    const char *at = strstr(dom, id), *end = at ? strstr(at, "</table>") : NULL;
    size_t n = 0;
    for (at = at ? strstr(at, "<tbody") : NULL; at && at < end && n < room;) {
        at = strstr(at, "<tr");
        if (!at || at > end)
            break;
        for (size_t k = 0; k < column && at; k++)
            at = strstr(at, "<td") ? strstr(at, "<td") + 3 : NULL;
        const char *v = at ? strstr(at, "data-v=\"") : NULL;
        if (v)
            value[n++] = v[8] == '"' ? (double)NAN : strtod(v + 8, NULL);
    }
    return n;
}

static void test_sorting(void) {
    prepare();
    if (!browser()) {
        printf("skipped: no Chromium (Debian package chromium, or set FOLDLINE_CHROMIUM) ");
        return;
    }
    static const struct {
        const char *table;
        size_t column;
        bool up;
    } row[] = {{"policies-0", 1, true}, {"policies-0", 2, false}, {"pairs-0", 7, true}, {"workloads", 3, false}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char query[200], first[400];
        double value[400];
        snprintf(query, sizeof query, "r.html?sort=%s,%zu%s", row[i].table, row[i].column, row[i].up ? ",up" : "");
        FL_CHECK(show(query, "") == 0, "%s: the browser failed", query);
        FL_CHECK(console_lines(first, sizeof first) == 0, "%s: the console says %s", query, first);
        char *dom = slurp("dom.html");
        const size_t n = dom ? column_of(dom, row[i].table, row[i].column, value, 400) : 0;
        FL_CHECK(n >= 8, "%s: %zu rows", query, n);
        bool ended = false;
        for (size_t k = 1; k < n; k++) {
            ended |= isnan(value[k - 1]);
            FL_CHECK(isnan(value[k]) || (!ended && (row[i].up ? value[k] >= value[k - 1] : value[k] <= value[k - 1])),
                     "%s: row %zu has %g after %g", query, k, value[k], value[k - 1]);
        }
        FL_CHECK(dom && count(dom, " aria-sort=\"") == 1 && strstr(dom, "class=\"theme\""), "%s: no sign of the script",
                 query);
        free(dom);
    }
}

/* Asks the page itself, from within a frame as wide as a phone: how wide it is, and which figures cannot be seen. */
static const char probe[] =
    "<script>addEventListener('load',function(){document.querySelectorAll('details').forEach(function(d){d.open=true});"
    "var hidden=0,n=0,bad=0;document.querySelectorAll('figure .plot').forEach(function(p){n++;"
    "var all=p.querySelectorAll('svg'),seen=[].filter.call(all,function(s){return s.getClientRects().length});"
    "if(seen.length!=1){hidden++;return}" /* of two drawings, the one for this width */
    "var s=seen[0],b=s.getBoundingClientRect();if(b.width<200||b.height<50)hidden++;"
    "s.querySelectorAll('use,path,polygon,text').forEach(function(m){var r=m.getBoundingClientRect();"
    "if(r.width+r.height>0&&(r.right>b.right+2||r.left<b.left-2||r.bottom>b.bottom+2||r.top<b.top-2))bad++})});"
    "document.querySelectorAll('.wide').forEach(function(t){if(t.scrollWidth<=0)bad++});"
    "parent.postMessage('figures '+n+' hidden '+hidden+' outside '+bad+' width '+document.documentElement.scrollWidth+"
    "' theme '+getComputedStyle(document.body).backgroundColor,'*')})</script></body>";

static void test_phone(void) {
    prepare();
    if (!browser()) {
        printf("skipped: no Chromium (Debian package chromium, or set FOLDLINE_CHROMIUM) ");
        return;
    }
    char *page = slurp("r.html"), *end = page ? strstr(page, "</body>") : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    char *whole = malloc(strlen(page) + sizeof probe + 1);
    snprintf(whole, strlen(page) + sizeof probe, "%.*s%s", (int)(end - page), page, probe);
    spit("inner.html", whole);
    free(whole);
    static const struct {
        const char *theme, *flags, *paper;
        int width;
    } row[] = {{"light", "", "rgb(255, 255, 255)", 390},
               {"dark", "", "rgb(20, 24, 28)", 390},
               {"dark", "", "rgb(20, 24, 28)", 1180},
               {"", "--blink-settings=preferredColorScheme=0", "rgb(20, 24, 28)", 390}, /* as the system has it */
               {"", "--blink-settings=preferredColorScheme=1", "rgb(255, 255, 255)", 390},
               {"light", "--blink-settings=preferredColorScheme=0", "rgb(255, 255, 255)", 390}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char frame[800], first[400], expected[200];
        snprintf(
            frame, sizeof frame,
            "<!DOCTYPE html><link rel=\"icon\" href=\"data:,\"><body><script>addEventListener('message',function(e){"
            "document.title=e.data})</script><iframe src=\"inner.html?theme=%s\" style=\"border:0;width:%dpx;height:"
            "800px\"></iframe></body>",
            row[i].theme, row[i].width);
        spit("frame.html", frame);
        FL_CHECK(show("frame.html", row[i].flags) == 0, "the browser failed");
        FL_CHECK(console_lines(first, sizeof first) == 0, "the console says %s", first);
        char *dom = slurp("dom.html"), *title = dom ? strstr(dom, "<title>") : NULL;
        snprintf(expected, sizeof expected, "<title>figures %zu hidden 0 outside 0 width %d theme %s</title>",
                 count(page, "</figure>"), row[i].width, row[i].paper);
        FL_CHECK(title && !strncmp(title, expected, strlen(expected)), "expected %s, the page says %.120s", expected,
                 title ? title : "nothing");
        free(dom);
    }
    free(page);
    /* that such a complaint would be heard */
    char first[400];
    spit("broken.html", "<!DOCTYPE html><link rel=\"icon\" href=\"data:,\"><script>nothing.here()</script>");
    show("broken.html", "");
    FL_CHECK(console_lines(first, sizeof first) == 1, "an error of a script was not heard");
    run("rm -rf browser");
}

static void test_away(void) {
    if (*folder) {
        run("rm -rf '%s'", folder);
        FL_CHECK(access(folder, F_OK) != 0, "%s is left", folder);
    }
}

/* Where each seed has a default of its own (arrivals that are drawn), a run counts against the one of its seed. */
static void test_default_of_each_seed(void) {
    prepare();
    char path[512];
    spit("seeds.csv", "workload,policy,energy_j,makespan_s,slowdown,seed,edp\n"
                      "w,baseline:default,10,1,0,1,10\nw,p,8,1,0,1,8\nw,baseline:default,40,1,0,2,40\nw,p,20,1,0,2,20\n"
                      "v,baseline:default,10,1,0,1,10\nv,p,9,1,0,1,9\nv,p,7,1,0,2,7\n");
    spit("seeds.provenance.json", "{\"options\": {\"objective\": \"edp\"}}\n");
    snprintf(path, sizeof path, "%s/seeds.csv", folder);
    fl_report_data r = {0};
    fl_diag d = {0};
    fl_scope *scope = NULL;
    size_t scopes = 0;
    FL_CHECK(!fl_report_read(path, &r, &d), "%s", d.message);
    fl_scopes_make(&r, &scope, &scopes);
    CU_ASSERT_EQUAL(scopes, 1);
    double *merit = scopes ? fl_scope_merit(scope) : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(merit);
    static const double expected[] = {20, 50, 10, 30}; /* of p: w under both seeds, v under both */
    for (size_t i = 0; i < 4; i++)
        FL_CHECK(fabs(merit[4 + i] - expected[i]) < 1e-9, "cell %zu: %g %%, expected %g", i, merit[4 + i], expected[i]);
    free(merit);
    fl_scopes_free(scope, scopes);
    fl_report_free(&r);
}

FL_SUITE("report", {"a default of each seed", test_default_of_each_seed}, {"labels", test_labels},
         {"what the page says", test_says}, {"refusals", test_refusals}, {"numbers", test_numbers},
         {"residency", test_residency}, {"tables sort in a browser", test_sorting},
         {"figures and width in a browser", test_phone}, {"nothing left", test_away})
