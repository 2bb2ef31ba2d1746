#include "harness/base/cli/command.h"
#include "harness/base/cli/commands.h"
#include "harness/report/data/bounds.h"
#include "harness/report/page/report_page.h"
#include "harness/report/data/summary.h"

static const fl_command_help help = {
    "report", "RESULTS.csv -o report.html [--timeline FILE ...]",
    "Makes one page from a result: policies with 95 % intervals, comparisons in pairs, ranks, figures, and the origin "
    "of the data.",
    "RESULTS.csv is a file that compare, sweep or merge wrote. The command also uses the files beside it: "
    "RESULTS.provenance.json, RESULTS.published.json (published and simulated results) and RESULTS.regret.csv (curves "
    "of a distribution replay). The page contains its figures, style and script, so it needs no network. gnuplot draws "
    "the figures, as it does for foldline plot.\n\n"
    "The intervals are a two-level bootstrap over workloads and seeds. The page ranks policies by the objective of the "
    "experiment, and compares them with --reference or else with the best policy that holds all bounds. The bounds are "
    "those of --bound, or else those that the result was made under. Where requests arrive, the page begins with their "
    "latency. Of servers of a language model it shows what policies save against the load. Add ?sort=TABLE,COLUMN or "
    "?theme=dark to the page's address to open it sorted or dark."};

int fl_cmd_report(int argc, char **argv) {
    fl_texts rest = {0}, timelines = {0}, instructions = {0}, bounds = {0};
    const char *output = NULL, *about = NULL, *reference = NULL;
    int64_t seed = 1, draws = 0;
    bool no_figures = false;
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &output, 0, 0, "the page to write"},
        {"timeline", "FILE", FL_OPTION_LIST, &timelines, 0, 0,
         "of run --timeline: clock, power, residency (may be repeated)"},
        {"instructions", "FILE", FL_OPTION_LIST, &instructions, 0, 0,
         "of run --instructions: what each rank of a pipeline did (a second plan stands below the first)"},
        {"reference", "POLICY", FL_OPTION_TEXT, &reference, 0, 0,
         "policy that the others are compared with (the best)"},
        FL_BOUND_OPTION(&bounds),
        {"about", "TEXT", FL_OPTION_TEXT, &about, 0, 0, "the question, as the page's title (that of the experiment)"},
        {"no-figures", NULL, FL_OPTION_FLAG, &no_figures, 0, 0, "tables alone: faster, and without gnuplot"},
        {"seed", "N", FL_OPTION_INT, &seed, 0, 1e15, "of the bootstrap (1)"},
        {"draws", "N", FL_OPTION_INT, &draws, 100, 1e6,
         "of the bootstrap (" FL_AS_TEXT(FL_DRAWS_STANDARD) "; " FL_AS_TEXT(FL_DRAWS_GRID) " above " FL_AS_TEXT(
             FL_GRID_POLICIES) " policies)"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_report_data data = {0};
    const fl_report_options o = {.about = about,
                                 .reference = reference,
                                 .timelines = &timelines,
                                 .instructions = &instructions,
                                 .no_figures = no_figures,
                                 .bootstrap = {.seed = (uint64_t)seed, .draws = (size_t)draws}};
    fl_status s = rest.count == 1 && output ? fl_report_read(rest.item[0], &data, &d)
                                            : fl_refuse(&d, "expected RESULTS.csv -o report.html, see --help");
    if (!s && no_figures && (timelines.count || instructions.count))
        s = fl_refuse(&d, "%s has no effect with --no-figures, expected it without --no-figures",
                      timelines.count ? "--timeline" : "--instructions");
    if (!s)
        s = fl_report_judge(&data, &bounds, &d);
    if (!s)
        s = fl_report_write(&data, &o, output, &d);
    if (!s)
        printf("written: %s\n", output);
    fl_report_free(&data);
    return fl_command_close("report", s, &d, option, sizeof option / sizeof *option, &rest);
}
