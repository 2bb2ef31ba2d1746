/* Plain and gzipped files read alike, in pieces of any size; damage and cuts are seen. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/io/io.h"

#include <sys/stat.h>
#include <zlib.h>

enum { TEXT = 300000, ROOM = 400000 };

static void make_text(char *text) {
    uint32_t s = 1;
    for (size_t i = 0; i < TEXT; i++) {
        s = s * 1664525u + 1013904223u;
        text[i] = "0123456789abcdef"[(i / 7 + (s >> 28 & 1)) % 16]; /* packs well, but not to nothing */
    }
}

static size_t pack(const void *bytes, size_t size, unsigned char *packed, size_t room) {
    z_stream z = {0};
    if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        exit(1);
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (uInt)size;
    z.next_out = packed;
    z.avail_out = (uInt)room;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        exit(1);
    deflateEnd(&z);
    return z.total_out;
}

/* Reads the file in pieces; *size is what came. */
static fl_status slurp(const char *path, size_t piece, char *bytes, size_t *size, double *share, fl_diag *d) {
    *size = 0;
    fl_gunzip *g = fl_gunzip_open(path, d);
    if (!g)
        return d->status;
    fl_status s = FL_OK;
    for (size_t got = piece; got == piece && s == FL_OK;) {
        s = fl_gunzip_read(g, bytes + *size, piece, &got, d);
        *size += got;
        if (*size > ROOM - piece)
            break;
    }
    *share = fl_gunzip_share(g);
    fl_gunzip_close(g);
    return s;
}

static char text[TEXT], back[ROOM];
static unsigned char packed[ROOM];

static void test_same(void) {
    make_text(text);
    size_t packed_size = pack(text, TEXT, packed, sizeof packed);
    static const size_t PIECE[] = {1, 7, 4096, 65536, 100003};
    for (int gz = 0; gz < 2; gz++) {
        const char *path = gz ? fl_temp_write("t.gz", packed, packed_size) : fl_temp_write("t", text, TEXT);
        for (size_t i = 0; i < sizeof PIECE / sizeof *PIECE; i++) {
            fl_diag d = {0};
            size_t size = 0;
            double share = -1;
            fl_status s = slurp(path, PIECE[i], back, &size, &share, &d);
            FL_CHECK(s == FL_OK && size == TEXT && memcmp(back, text, TEXT) == 0, "gz %d, pieces of %zu: %zu bytes: %s",
                     gz, PIECE[i], size, d.message);
            FL_CHECK(share == 1, "share %g at the end", share);
        }
    }
    FL_CHECK(packed_size > 1000 && packed_size < TEXT / 2, "%zu bytes packed: the file spans chunks", packed_size);
}

static void test_members(void) {
    size_t a = pack("one ", 4, packed, sizeof packed), b = pack("two", 3, packed + a, sizeof packed - a);
    static const struct {
        const char *tail;
        size_t size;
        const char *message; /* NULL: good */
    } ROWS[] = {{"", 0, NULL},
                {"\0\0\0\0\0", 5, NULL}, /* as tapes fill up */
                {"\0", 1, NULL},
                {"x", 1, "something else follows"},
                {"\0\0junk", 6, "something else follows"},
                {"\x1f", 1, "something else follows"},
                {"\x1f\x8b", 2, "cut off"},
                {"\x1f\x8b\x09\0", 4, "damaged"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        memcpy(packed + a + b, ROWS[i].tail, ROWS[i].size);
        const char *path = fl_temp_write("m.gz", packed, a + b + ROWS[i].size);
        fl_diag d = {0};
        size_t size = 0;
        double share;
        fl_status s = slurp(path, 100, back, &size, &share, &d);
        if (!ROWS[i].message)
            FL_CHECK(s == FL_OK && size == 7 && memcmp(back, "one two", 7) == 0, "row %zu: %s", i, d.message);
        else
            FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, ROWS[i].message), "row %zu: %d '%s'", i, s, d.message);
    }
}

static void test_cut_and_damaged(void) {
    static const char WORDS[] = "a text that is packed, a text that is packed";
    size_t size = pack(WORDS, 44, packed, sizeof packed), got;
    double share;
    for (size_t cut = 0; cut < size; cut++) {
        fl_diag d = {0};
        fl_status s = slurp(fl_temp_write("c.gz", packed, cut), 100, back, &got, &share, &d);
        if (cut < 2) /* too short to be known as gzip: a text of one byte */
            FL_CHECK(s == FL_OK && got == cut, "cut at %zu", cut);
        else
            FL_CHECK(s == FL_BAD_INPUT && strstr(d.message, "cut off"), "cut at %zu: %d '%s'", cut, s, d.message);
    }
    for (size_t i = 10; i < size; i++) { /* the head carries a date, which may be any */
        fl_diag d = {0};
        packed[i] ^= 0x10;
        fl_status s = slurp(fl_temp_write("d.gz", packed, size), 100, back, &got, &share, &d);
        /* A bit that fills up the last byte of the packed data means nothing. */
        FL_CHECK(s == FL_BAD_INPUT || (s == FL_OK && got == 44 && memcmp(back, WORDS, 44) == 0), "byte %zu: %d", i, s);
        packed[i] ^= 0x10;
    }
}

static void test_not_openable(void) {
    fl_diag d = {0};
    size_t got;
    double share;
    FL_CHECK(slurp(fl_temp_path("no-such"), 10, back, &got, &share, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "cannot open"),
             "%s", d.message);
    const char *path = fl_temp_path("folder");
    mkdir(path, 0777);
    FL_CHECK(slurp(path, 10, back, &got, &share, &d) == FL_BAD_INPUT && strstr(d.message, "directory"), "%s",
             d.message);
    rmdir(path);
    fl_temp_remove();
}

FL_SUITE("gunzip", {"the same bytes", test_same}, {"members", test_members}, {"cut and damaged", test_cut_and_damaged},
         {"not openable", test_not_openable})
