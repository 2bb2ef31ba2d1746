/* Manual pages, and the topics of `foldline help`. */
#include "harness/cmd/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/cmd/cmd.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/platform/platform.h"
#include "policies/registry/registry.h"
#include "traces/io/io.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The summary of a command as the list of commands has it, also of a part; NULL where there is none. */
static const char *fl_pages_summary(const char *name) {
    for (size_t i = 0; i < fl_command_rows_count; i++)
        if (!strcmp(name, fl_command_rows[i].name))
            return fl_command_rows[i].summary;
    return NULL;
}

void fl_pages_list(const fl_page *page) {
    enum { COLUMN = 15 };
    for (size_t i = 0; i < fl_command_rows_count; i++)
        if (fl_part_of(&fl_command_rows[i], ""))
            fl_page_row(page, COLUMN, fl_command_rows[i].name, fl_command_rows[i].summary);
}

/* ---- topics of `foldline help` ---- */

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
                 "foldline import makes canonical files of what profilers and sensor tools write. foldline show "
                 "says what is in one, foldline synth draws one. Every command that takes a file of "
                 "measurements finds its format by itself:\n");
    fl_page_gap(page);
    fl_formats_print(page);
    return FL_OK;
}

static fl_status platforms(const fl_page *page, fl_diag *d) {
    char **name = NULL;
    size_t count = 0;
    fl_status s = fl_platform_list(&name, &count, d);
    fl_page_text(page,
                 "A platform describes a machine: its GPUs with clocks, voltage, power, sensors and actuators, and "
                 "its host. Each value names its source. foldline list platforms NAME prints one; a path to a file of "
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
    fl_page_text(page,
                 "A policy reads what sensors show and sets clocks or limits. The simulator, a live host and a "
                 "replay run the same code. foldline list policies NAME prints its source, its parameters and what it "
                 "reads and sets. A command takes parameters after a colon, assure:theta=0.9, and a plug-in by "
                 "its path. To make one, copy policies/skeleton.c, whose first lines say how to compile it. These come "
                 "with foldline:\n");
    fl_page_gap(page);
    for (size_t i = 0; i < fl_policies_count; i++)
        fl_page_row(page, COLUMN, fl_policies[i]->name, fl_policies[i]->summary);
    return FL_OK;
}

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

enum { PATH_ROOM = 4096, NAMED_ROOM = 64 };

/* ---- manual pages ---- */

typedef struct manual {
    const char *folder;
    fl_status status; /* of the first page that could not be written */
    fl_diag *d;
} manual;

/* "foldline-fit-device" of "fit device". */
static void page_name(const char *command, char *buf, size_t size) {
    (void)snprintf(buf, size, "foldline%s%s", *command ? "-" : "", command);
    for (char *at = buf; *at; at++)
        *at = *at == ' ' ? '-' : *at;
}

static fl_output *open_page(manual *m, const char *command, const char *summary) {
    char path[PATH_ROOM], name[80], title[80];
    page_name(command, name, sizeof name);
    (void)snprintf(path, sizeof path, "%s/man1/%s.1", m->folder, name);
    fl_output *o = fl_output_open(path, m->d);
    if (!o) {
        m->status = m->d->status;
        return NULL;
    }
    size_t n = 0;
    for (; name[n]; n++)
        title[n] = (char)toupper((unsigned char)name[n]);
    title[n] = '\0';
    const fl_page page = {.out = fl_output_file(o), .roff = true};
    fprintf(page.out, ".TH %s 1 \"\" \"foldline %s\" Foldline\n.nh\n.ad l\n.ss 12 0\n", title, FL_VERSION);
    fl_page_heading(&page, "NAME");
    fprintf(page.out, "%s \\- ", name);
    fl_page_fill(&page, 0, 0, summary);
    return o;
}

/* Every command that the text names with "foldline" before it. */
static void mark_named(const char *text, bool *named) {
    static const char program[] = "foldline ";
    while (text && (text = strstr(text, program))) {
        text += sizeof program - 1;
        for (size_t i = 0; i < fl_command_rows_count; i++) {
            const size_t n = strlen(fl_command_rows[i].name);
            if (!strncmp(text, fl_command_rows[i].name, n) && !isalnum((unsigned char)text[n]))
                named[i] = true;
        }
    }
}

static void see_also(const fl_page *page, const char *own, const bool *named) {
    fl_page_heading(page, "SEE ALSO");
    const char *before = "";
    if (*own) {
        fprintf(page->out, ".BR foldline (1)");
        before = ",";
    }
    for (size_t i = 0; i < fl_command_rows_count; i++) {
        char name[80];
        if (!named[i] || !strcmp(fl_command_rows[i].name, own))
            continue;
        page_name(fl_command_rows[i].name, name, sizeof name);
        fprintf(page->out, "%s%s.BR ", before, *before ? "\n" : "");
        for (const char *at = name; *at; at++)
            fprintf(page->out, *at == '-' ? "\\-" : "%c", *at);
        fprintf(page->out, " (1)");
        before = ",";
    }
    putc('\n', page->out);
}

static void close_page(manual *m, fl_output *o, const char *command, const bool *named) {
    const fl_page page = {.out = fl_output_file(o), .roff = true};
    fl_page_heading(&page, "EXIT STATUS");
    fl_page_fill(&page, 0, 0, FL_EXIT_STATUSES);
    fl_args_examples(&page, command);
    see_also(&page, command, named);
    m->status = fl_output_commit(o, m->d);
}

static void command_page(void *to, const fl_command_help *help, const fl_option *option, size_t count) {
    manual *m = to;
    bool named[NAMED_ROOM] = {false};
    fl_output *o = m->status ? NULL : open_page(m, help->name, fl_pages_summary(help->name));
    if (!o)
        return;
    const fl_page page = {.out = fl_output_file(o), .roff = true};
    char text[1024];
    fl_page_heading(&page, "SYNOPSIS");
    (void)snprintf(text, sizeof text, "foldline %s %s", help->name, help->usage);
    fl_page_fill(&page, 0, 0, text);
    fl_page_heading(&page, "DESCRIPTION");
    fl_page_fill(&page, 0, 0, help->summary);
    if (help->details) {
        fl_page_gap(&page);
        fl_page_text(&page, help->details);
    }
    fl_page_heading(&page, "OPTIONS");
    fl_args_options(&page, option, count);
    for (size_t i = 0; i < count; i++)
        mark_named(option[i].help, named);
    mark_named(help->summary, named);
    mark_named(help->details, named);
    close_page(m, o, help->name, named);
}

/* What stands in foldline(1) alone. tests/program/pages.sh holds the variables to those that the program asks for. */
typedef struct named_thing {
    const char *name, *meaning;
} named_thing;

static const named_thing files[] = {
    {"PREFIX/share/foldline/", "platforms, boards, sample traces and experiments that come with the program"},
    {"TRACE.foldline-cache", "a trace in a form that loads fast; safe to delete, --no-cache makes and uses none"},
    {"RESULT.provenance.json", "beside a result: versions, hashes of the inputs, parameters, seeds"},
    {"OUT.journal", "beside the result of a grid that is not finished: the same command continues from it"},
    {"/var/lib/foldline/", "state of live control: prior settings of each GPU, the guardian's log"},
    {"/run/foldline/", "a lock for each GPU that is under control"},
};

static const named_thing variables[] = {
    {"FOLDLINE_SHARE", "folder of platforms and boards, instead of those that come with the program"},
    {"FOLDLINE_PLOTS", "folder of the plot scripts, instead of those that come with the program"},
    {"FOLDLINE_STATE", "folder of the state of live control, instead of /var/lib/foldline"},
    {"FOLDLINE_RUN", "folder of the locks of live control, instead of /run/foldline"},
    {"FOLDLINE_ROOT", "root of the file system in which live control looks for devices; for tests"},
    {"FOLDLINE_NVML, FOLDLINE_RSMI, FOLDLINE_ZE", "path of the library of NVIDIA, AMD or Intel that is loaded"},
    {"FOLDLINE_CLIENT_DIR",
     "folder of the simulated libraries of emulate, instead of those that come with the program"},
    {"FOLDLINE_RINGS", "folder into which a program under the collector writes its activity records"},
    {"FOLDLINE_COLLECTOR", "the collector library, instead of the one that comes with the program"},
    {"FOLDLINE_CUPTI", "path of CUPTI, where the collector does not find it"},
    {"CUDA_HOME, CUDA_PATH", "where the collector looks for CUPTI, too"},
    {"COLUMNS", "width of what --help and help print"},
    {"TMPDIR", "folder of temporary files, instead of /tmp"},
};

static void named_section(const fl_page *page, const char *heading, const named_thing *thing, size_t count) {
    fl_page_heading(page, heading);
    for (size_t i = 0; i < count; i++)
        fl_page_row(page, FL_ARGS_COLUMN, thing[i].name, thing[i].meaning);
}

static void program_page(manual *m) {
    bool named[NAMED_ROOM];
    memset(named, true, sizeof named);
    fl_output *o = open_page(m, "", "GPU clock policies, simulated and live");
    if (!o)
        return;
    const fl_page page = {.out = fl_output_file(o), .roff = true};
    fl_page_heading(&page, "SYNOPSIS");
    fl_page_fill(&page, 0, 0, FL_USAGE);
    fl_page_heading(&page, "DESCRIPTION");
    fl_page_fill(&page, 0, 0, FL_ABOUT);
    fl_page_gap(&page);
    fl_pages_list(&page);
    fl_page_heading(&page, "OPTIONS");
    fl_page_fill(&page, 0, 0, FL_MORE_HELP);
    named_section(&page, "FILES", files, sizeof files / sizeof *files);
    named_section(&page, "ENVIRONMENT", variables, sizeof variables / sizeof *variables);
    close_page(m, o, "", named);
}

static fl_status make_folder(const char *path, fl_diag *d) {
    if (!mkdir(path, 0777) || errno == EEXIST)
        return FL_OK;
    return fl_fail(d, FL_IO, path, 0, 0, "%s", fl_reason(errno));
}

static fl_status write_completion(const char *folder, const char *file, fl_status (*put)(FILE *out, fl_diag *d),
                                  fl_diag *d) {
    char path[PATH_ROOM];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    const fl_status s = put(fl_output_file(o), d);
    if (!s)
        return fl_output_commit(o, d);
    fl_output_abort(o);
    return s;
}

fl_status fl_pages_write(const char *folder, fl_diag *d) {
    static const char *const inside[] = {"", "/man1", "/bash", "/zsh"};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < sizeof inside / sizeof *inside; i++) {
        char path[PATH_ROOM];
        (void)snprintf(path, sizeof path, "%s%s", folder, inside[i]);
        s = make_folder(path, d);
    }
    manual m = {folder, s, d};
    if (!m.status)
        program_page(&m);
    if (!m.status)
        fl_command_rows_read((fl_command_reader){command_page, &m});
    s = m.status;
    if (!s)
        s = write_completion(folder, "bash/foldline", fl_completion_bash, d);
    return s ? s : write_completion(folder, "zsh/_foldline", fl_completion_zsh, d);
}
