#include "harness/base/command.h"

int fl_command_fail(const char *command, const fl_diag *d) {
    char text[2048];
    fprintf(stderr, "foldline%s%s: %s\n", command ? " " : "", command ? command : "",
            fl_diag_text(d, text, sizeof text));
    return d->status == FL_BAD_INPUT ? FL_EXIT_USAGE : FL_EXIT_SYSTEM;
}

static void drop(const fl_option *option, size_t count, fl_texts *rest) {
    fl_texts_free(rest);
    for (size_t i = 0; i < count; i++)
        if (option[i].type == FL_OPTION_LIST)
            fl_texts_free(option[i].into);
}

bool fl_command_begin(int argc, char **argv, const fl_command_help *help, const fl_option *option, size_t count,
                      fl_texts *rest, int *status) {
    fl_diag d = {0};
    bool wanted;
    if (fl_args_parse(argc, argv, option, count, rest, &wanted, &d) && !wanted) {
        *status = fl_command_fail(help->name, &d);
        drop(option, count, rest);
        return false;
    }
    if (wanted) {
        fl_args_help(stdout, help, option, count);
        *status = FL_EXIT_OK;
        drop(option, count, rest);
        return false;
    }
    return true;
}
