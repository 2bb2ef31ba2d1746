#include "harness/cmd/pages.h"

#include "harness/cmd/completion.h"
#include "traces/io/writing.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_ROOM = 4096 };

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
static void mark_named(const char *text, bool named[FL_PAGES_ROWS]) {
    static const char program[] = "foldline ";
    while (text && (text = strstr(text, program))) {
        text += sizeof program - 1;
        for (size_t i = 0; i < FL_PAGES_ROWS; i++) {
            const size_t n = strlen(fl_pages_row[i].name);
            if (!strncmp(text, fl_pages_row[i].name, n) && !isalnum((unsigned char)text[n]))
                named[i] = true;
        }
    }
}

static void see_also(const fl_page *page, const char *own, const bool named[FL_PAGES_ROWS]) {
    fl_page_heading(page, "SEE ALSO");
    const char *before = "";
    if (*own) {
        fprintf(page->out, ".BR foldline (1)");
        before = ",";
    }
    for (size_t i = 0; i < FL_PAGES_ROWS; i++) {
        char name[80];
        if (!named[i] || !strcmp(fl_pages_row[i].name, own))
            continue;
        page_name(fl_pages_row[i].name, name, sizeof name);
        fprintf(page->out, "%s%s.BR ", before, *before ? "\n" : "");
        for (const char *at = name; *at; at++)
            fprintf(page->out, *at == '-' ? "\\-" : "%c", *at);
        fprintf(page->out, " (1)");
        before = ",";
    }
    putc('\n', page->out);
}

static void close_page(manual *m, fl_output *o, const char *command, const bool named[FL_PAGES_ROWS]) {
    const fl_page page = {.out = fl_output_file(o), .roff = true};
    fl_page_heading(&page, "EXIT STATUS");
    fl_page_fill(&page, 0, 0, FL_EXIT_STATUSES);
    fl_args_examples(&page, command);
    see_also(&page, command, named);
    m->status = fl_output_commit(o, m->d);
}

static void command_page(void *to, const fl_command_help *help, const fl_option *option, size_t count) {
    manual *m = to;
    bool named[FL_PAGES_ROWS] = {false};
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
    for (size_t i = 0; i < count; i++) {
        fl_args_left(&option[i], text, sizeof text);
        fl_page_row(&page, FL_ARGS_COLUMN, text, option[i].help);
        mark_named(option[i].help, named);
    }
    fl_page_row(&page, FL_ARGS_COLUMN, "--help", "this text");
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
    {"OUT.journal", "beside a sweep that is not finished: a sweep that was interrupted goes on from it"},
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
    {"FOLDLINE_RINGS", "folder into which a program under the collector writes its kernel records"},
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
    bool named[FL_PAGES_ROWS];
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

static fl_status write_completion(const char *folder, const char *file,
                                  fl_status (*put)(FILE *out, fl_command_runner run, fl_diag *d), fl_command_runner run,
                                  fl_diag *d) {
    char path[PATH_ROOM];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d->status;
    const fl_status s = put(fl_output_file(o), run, d);
    if (!s)
        return fl_output_commit(o, d);
    fl_output_abort(o);
    return s;
}

fl_status fl_pages_write(const char *folder, fl_command_runner run, fl_diag *d) {
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
        fl_pages_read(run, (fl_command_reader){command_page, &m});
    s = m.status;
    if (!s)
        s = write_completion(folder, "bash/foldline", fl_completion_bash, run, d);
    return s ? s : write_completion(folder, "zsh/_foldline", fl_completion_zsh, run, d);
}
