/* A whole command (FL_FUZZ_COMMAND) against bytes that nobody meant, for libFuzzer: it may not crash, hang or leak, and
 * ends with 0, 1 or 2; with 2 it has said why, in a text that does not disturb a terminal.
 *
 * Of the words of FL_FUZZ_COMMAND, "@NAME" is an argument that names a file of the input, "+NAME" a file of the input
 * that is not named, "I/NAME" one of those that tests/fuzz/seeds.sh made (FL_FUZZ_INPUTS). An input is the files in
 * that order, each but the last ended by the byte 0x1c. */
#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/cmd/cmd.h"
#include "tests/fuzz/fuzz_folder.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 32, SAID = 1 << 16 };

static char words[WORDS][600];
static size_t word_count;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    const char *inputs = getenv("FL_FUZZ_INPUTS"), *text = FL_FUZZ_COMMAND;
    (void)argc;
    (void)argv;
    while (*text && word_count + 1 < WORDS) {
        const int size = (int)strcspn(text, " ");
        if (!strncmp(text, "I/", 2))
            snprintf(words[word_count++], sizeof *words, "%s/%.*s", inputs ? inputs : ".", size - 2, text + 2);
        else
            snprintf(words[word_count++], sizeof *words, "%.*s", size, text);
        text += size + (text[size] == ' ');
    }
    unsetenv("FOLDLINE_SHARE");
    fuzz_enter();
    return 0;
}

/* What the command says while it runs goes into the file "said"; libFuzzer has a copy of the descriptor for itself. */
static int listen(void) {
    const int kept = dup(STDERR_FILENO), fd = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (kept < 0 || fd < 0 || dup2(fd, STDERR_FILENO) < 0)
        exit(1);
    close(fd);
    return kept;
}

static void check_said(int kept, int status) {
    static char text[SAID + 1];
    fflush(stderr);
    const ssize_t n = pread(STDERR_FILENO, text, SAID, 0);
    text[n < 0 ? 0 : n] = '\0';
    dup2(kept, STDERR_FILENO);
    close(kept);
    if (status != FL_EXIT_OK && status != FL_EXIT_GATE && status != FL_EXIT_USAGE)
        fuzz_broken("it ended as if the system had failed", text);
    if (status == FL_EXIT_USAGE && n <= 0)
        fuzz_broken("it refused and said nothing", "");
    for (ssize_t i = 0; i < n; i++)
        if (((unsigned char)text[i] < 0x20 && text[i] != '\n') || text[i] == 0x7f)
            fuzz_broken("a control character in what it said", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *argv[WORDS + 1];
    int argc = 0, status = FL_EXIT_OK;
    const uint8_t *part;
    size_t part_size;
    fuzz_clear();
    for (size_t i = 0; i < word_count; i++) {
        const bool file = words[i][0] == '@' || words[i][0] == '+';
        if (file && fuzz_part(&data, &size, &part, &part_size) && !fuzz_write(words[i] + 1, part, part_size))
            return 0;
        if (words[i][0] != '+')
            argv[argc++] = words[i] + file;
    }
    argv[argc] = NULL;
    const int kept = listen();
    fl_commands_open();
    if (!fl_command_run(argc, argv, &status))
        status = FL_EXIT_SYSTEM;
    fflush(stdout);
    check_said(kept, status);
    return 0;
}
