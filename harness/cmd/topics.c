#include "harness/cmd/topics.h"

#include "harness/base/cli/page.h"
#include "harness/base/cli/place_list.h"
#include "harness/base/cli/terminal.h"
#include "harness/base/cli/commands.h"
#include "harness/input/experiment/keys.h"
#include "harness/input/platform/platform.h"
#include "policies/registry/registry.h"
#include "traces/import/import.h"

#include <string.h>

enum { COLUMN = 22 };

static fl_status experiments(const fl_page *page, fl_diag *d) {
    (void)d;
    fl_keys_print(&fl_experiment_keys, page->out);
    return FL_OK;
}

static fl_status traces(const fl_page *page, fl_diag *d) {
    (void)d;
    fl_page_text(page,
                 "A kernel trace says when each kernel of a program ran, and at which clocks. Telemetry says what "
                 "sensors showed over time. A sweep says what a program took at each measured setting.\n\n"
                 "foldline import makes canonical files of what profilers and sensor tools write. foldline trace "
                 "stats says what is in one, foldline synth draws one. Every command that takes a file of "
                 "measurements finds its format by itself:\n");
    fl_page_gap(page);
    for (size_t i = 0; i < fl_readers_count; i++)
        fl_page_row(page, COLUMN, fl_readers[i]->name, fl_readers[i]->what);
    return FL_OK;
}

static fl_status platforms(const fl_page *page, fl_diag *d) {
    char **name = NULL;
    size_t count = 0;
    fl_status s = fl_platform_list(&name, &count, d);
    fl_page_text(page,
                 "A platform describes a machine: its GPUs with clocks, voltage, power, sensors and actuators, and "
                 "its host. Each value names its source. foldline platforms NAME prints one; a path to a file of "
                 "your own goes wherever a platform is asked for. These come with foldline:\n");
    fl_page_gap(page);
    for (size_t i = 0; !s && i < count; i++) {
        fl_platform p = {0};
        if (!(s = fl_platform_open(name[i], 0, &p, d)))
            fl_page_row(page, COLUMN, name[i], p.title);
        fl_platform_free(&p);
    }
    fl_place_list_free(name, count);
    return s;
}

static fl_status policies(const fl_page *page, fl_diag *d) {
    (void)d;
    fl_page_text(page, "A policy reads what sensors show and sets clocks or limits. The simulator, a live host and a "
                       "replay run the same code. foldline policies NAME prints its source, its parameters and what it "
                       "reads and sets. A command takes parameters after a colon, assure:theta=0.9, and a plug-in by "
                       "its path. These come with foldline:\n");
    fl_page_gap(page);
    for (size_t i = 0; i < fl_policies_count; i++)
        fl_page_row(page, COLUMN, fl_policies[i]->name, fl_policies[i]->summary);
    return FL_OK;
}

const char *const fl_topics[] = {"experiment", "experiments", "traces", "platforms", "policies"};
const size_t fl_topics_count = sizeof fl_topics / sizeof *fl_topics;
static fl_status (*const print[])(const fl_page *page, fl_diag *d) = {experiments, experiments, traces, platforms,
                                                                      policies};

fl_status fl_topic_print(const char *name, bool *known, fl_diag *d) {
    const fl_page page = {.out = stdout, .width = fl_terminal_width(stdout)};
    *known = false;
    for (size_t i = 0; i < fl_topics_count; i++)
        if (!strcmp(name, fl_topics[i])) {
            *known = true;
            return print[i](&page, d);
        }
    return FL_OK;
}
