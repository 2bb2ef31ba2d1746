#include "harness/cmd/pages_read.h"

#include <string.h>

#define ROW(name, summary) {#name, summary},
#define FIT_ROW(name, summary) {"fit " #name, summary},
#define SYNTH_ROW(name, summary) {"synth " #name, summary},

const fl_pages_entry fl_pages_row[FL_PAGES_ROWS] = {FL_COMMANDS(ROW) FL_FITS(FIT_ROW) FL_SYNTHS(SYNTH_ROW)};

const char *fl_pages_summary(const char *name) {
    for (size_t i = 0; i < FL_PAGES_ROWS; i++)
        if (!strcmp(name, fl_pages_row[i].name))
            return fl_pages_row[i].summary;
    return NULL;
}

void fl_pages_list(const fl_page *page) {
    enum { COLUMN = 15 };
    for (size_t i = 0; i < FL_PAGES_COMMANDS; i++)
        fl_page_row(page, COLUMN, fl_pages_row[i].name, fl_pages_row[i].summary);
}

void fl_pages_read(fl_command_runner run, fl_command_reader reader) {
    static char wanted[] = "--help";
    fl_command_read_by = &reader;
    for (size_t i = 0; i < FL_PAGES_ROWS; i++) {
        char command[64];
        int status, argc = 0;
        char *argv[4] = {command};
        (void)snprintf(command, sizeof command, "%s", fl_pages_row[i].name);
        char *part = strchr(command, ' ');
        argc++;
        if (part) {
            *part = '\0';
            argv[argc++] = part + 1;
        }
        argv[argc++] = wanted;
        (void)run(argc, argv, &status);
    }
    fl_command_read_by = NULL;
}
