/* Files that are packed as they are written, the names that say so, and the standard output as a file. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/io/io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES = 30000 }; /* several of zlib's and of our chunks */

static void test_names(void) {
    static const struct {
        const char *name, *ending;
        bool packed, ends;
        size_t stem;
    } ROWS[] = {
        {"a.csv", ".csv", false, true, 1},        {"a.csv.gz", ".csv", true, true, 1},
        {"a.gz", ".csv", true, false, 1},         {".gz", ".csv", false, false, 3},
        {".csv", ".csv", false, false, 4},        {"x/.csv.gz", ".csv", true, true, 2},
        {"a.csv.gz.b", ".csv", false, false, 10}, {"a.telemetry.csv.gz", ".telemetry.csv", true, true, 1},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *name = ROWS[i].name;
        FL_CHECK(fl_gzip_named(name) == ROWS[i].packed && fl_name_ends(name, ROWS[i].ending) == ROWS[i].ends &&
                     fl_stem_length(name, ROWS[i].ending) == ROWS[i].stem,
                 "%s: %d, %d, %zu", name, fl_gzip_named(name), fl_name_ends(name, ROWS[i].ending),
                 fl_stem_length(name, ROWS[i].ending));
    }
}

static fl_output *left; /* what was not ended */

static fl_status write_lines(const char *path, bool stream, bool end) {
    fl_diag d = {0};
    fl_output *o = stream ? fl_output_stream(path, &d) : fl_output_open(path, &d);
    if (!o)
        return d.status;
    for (int i = 0; i < LINES; i++)
        fprintf(fl_output_file(o), "%d,%d\n", i, i * 7919 % 1000);
    if (end)
        return fl_output_commit(o, &d);
    fflush(fl_output_file(o));
    left = o; /* as a kill finds it */
    return FL_OK;
}

static void test_packed(void) {
    char plain[512], packed[512], again[512];
    size_t size = 0, packed_size = 0, again_size = 0, back_size = 0;
    snprintf(plain, sizeof plain, "%s", fl_temp_path("a.csv"));
    snprintf(packed, sizeof packed, "%s", fl_temp_path("a.csv.gz"));
    snprintf(again, sizeof again, "%s", fl_temp_path("b.csv.gz"));
    FL_CHECK(!write_lines(plain, false, true) && !write_lines(packed, false, true), "written");
    sleep(1); /* another second: a time in the head would differ */
    FL_CHECK(!write_lines(again, false, true), "written");
    char *text = fl_temp_slurp(plain, &size), *a = fl_temp_slurp(packed, &packed_size),
         *b = fl_temp_slurp(again, &again_size), *back = NULL;
    FL_CHECK(a && b && packed_size == again_size && !memcmp(a, b, packed_size), "the same bytes each time");
    FL_CHECK(a && !memcmp(a + 4, "\0\0\0\0", 4) && !(a[3] & 8), "no time and no name in the head");
    FL_CHECK(packed_size < size / 2, "%zu of %zu", packed_size, size);
    fl_diag d = {0};
    FL_CHECK(!fl_gunzip_text(packed, SIZE_MAX / 2, &back, &back_size, &d) && back_size == size &&
                 !memcmp(back, text, size),
             "unpacks to what a plain one holds: %s", d.message);
    free(back);
    FL_CHECK(fl_gunzip_text(packed, 1000, &back, &back_size, &d) == FL_BAD_INPUT && strstr(d.message, "more than 1000"),
             "%s", d.message);
    const int fd = fl_gunzip_whole(packed, &d);
    struct stat s = {0};
    char first[4] = "";
    FL_CHECK(fd >= 0 && !fstat(fd, &s) && (size_t)s.st_size == size && read(fd, first, 4) == 4 &&
                 !memcmp(first, text, 4),
             "whole in a file: %s", d.message);
    if (fd >= 0)
        close(fd);
    free(text);
    free(a);
    free(b);
}

/* All that was flushed can be read, though the end is missing; what is whole at once is not there before its end. */
static void test_streams(void) {
    static char read[1 << 20];
    size_t got = 0, size = 0;
    fl_diag d = {0};
    char *whole = fl_temp_slurp(fl_temp_path("a.csv"), &size);
    const char *path = fl_temp_path("live.csv.gz");
    FL_CHECK(!write_lines(path, true, false), "written");
    fl_gunzip *g = fl_gunzip_open(path, &d);
    FL_CHECK(g && fl_gunzip_read(g, read, sizeof read, &got, &d) == FL_BAD_INPUT && strstr(d.message, "cut off"), "%s",
             d.message);
    FL_CHECK(whole && got == size && !memcmp(read, whole, size), "%zu of %zu bytes", got, size);
    free(whole);
    fl_gunzip_close(g);
    fl_output_abort(left);
    path = fl_temp_path("whole.csv.gz");
    FL_CHECK(!write_lines(path, false, false) && access(path, F_OK), "not there before it is whole");
    fl_output_abort(left);
}

/* In a child, whose standard output is a file of ours. */
static void test_stdout(void) {
    char kept[512], command[1400];
    snprintf(kept, sizeof kept, "%s", fl_temp_path("kept"));
    fflush(stdout);
    const int real = dup(STDOUT_FILENO), error = dup(STDERR_FILENO);
    const int to = open(kept, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    const int told = open(fl_temp_path("told"), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(to, STDOUT_FILENO);
    dup2(told, STDERR_FILENO);
    fl_diag d = {0};
    fl_status s = fl_stdout_claim(&d);
    printf("a message\n");
    fflush(stdout);
    fl_output *o = s ? NULL : fl_output_open("-", &d);
    if (o)
        fputs("half", fl_output_file(o));
    fl_output_abort(o); /* nothing of it */
    if (!s)
        s = write_lines("-", false, true);
    fflush(stdout);
    dup2(real, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    close(to), close(told), close(real), close(error);
    size_t size = 0, message = 0;
    char *text = fl_temp_slurp(kept, &size), *said = fl_temp_slurp(fl_temp_path("told"), &message);
    FL_CHECK(!s && text && !strncmp(text, "0,0\n", 4) && !strstr(text, "half") && !strstr(text, "message"),
             "%s: '%.20s'", d.message, text ? text : "");
    FL_CHECK(said && !strcmp(said, "a message\n"), "'%s'", said ? said : "");
    snprintf(command, sizeof command, "cmp '%s' '%.*s/a.csv'", kept, (int)(strlen(kept) - 5), kept);
    FL_CHECK(!system(command), "the whole file, once");
    free(text);
    free(said);
    fl_temp_remove();
}

FL_SUITE("standard", {"names", test_names}, {"packed", test_packed}, {"streams", test_streams},
         {"standard output", test_stdout})
