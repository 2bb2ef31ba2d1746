#include "harness/base/cli/command.h"

#include "harness/base/cli/terminal.h"
#include "harness/base/cli/ticker.h"

const char *fl_command_name;
const fl_command_reader *fl_command_read_by;

int fl_command_fail(const char *command, const fl_diag *d) {
    char text[2048];
    fl_ticker_stop();
    fl_terminal_say(stderr, "%s%s: %s", command ? fl_args_prefix : "foldline", command ? command : "",
                    fl_diag_text(d, text, sizeof text));
    return d->status == FL_BAD_INPUT ? FL_EXIT_USAGE : FL_EXIT_SYSTEM;
}

void fl_command_end(const fl_option *option, size_t count, fl_texts *rest) {
    fl_texts_free(rest);
    for (size_t i = 0; i < count; i++)
        if (option[i].type == FL_OPTION_LIST)
            fl_texts_free(option[i].into);
}

int fl_command_close(const char *command, fl_status s, const fl_diag *d, const fl_option *option, size_t count,
                     fl_texts *rest) {
    const int status = s ? fl_command_fail(command, d) : FL_EXIT_OK;
    fl_command_end(option, count, rest);
    return status;
}

bool fl_command_begin(int argc, char **argv, const fl_command_help *help, const fl_option *option, size_t count,
                      fl_texts *rest, int *status) {
    fl_diag d = {0};
    bool wanted;
    fl_command_name = help->name;
    const fl_status s = fl_args_parse(argc, argv, option, count, rest, &wanted, &d);
    if (!s && !wanted)
        return true;
    *status = wanted ? FL_EXIT_OK : fl_command_fail(help->name, &d);
    if (wanted && fl_command_read_by)
        fl_command_read_by->take(fl_command_read_by->to, help, option, count);
    else if (wanted)
        fl_args_help(stdout, help, option, count);
    fl_command_end(option, count, rest);
    return false;
}
