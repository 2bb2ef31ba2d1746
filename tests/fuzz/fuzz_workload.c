/* The workload kept beside a trace against bytes that nobody meant, for libFuzzer. An input is a list of changes to a
 * kept file that was written well: two bytes say where, eight what stands there then. The hash is put right afterwards,
 * as no fuzzer finds one: what is behind it must hold by itself. */
#include "harness/input/outline_file.h"
#include "harness/input/platform.h"
#include "traces/cache_hash.h"
#include "traces/trace_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE = 16 + 8 + sizeof(fl_cache_key), HASH = SIZE + 8, HEAD = HASH + 16, CHANGE = 10 };
enum { PADS = 5, PAD = 1 << 20 }; /* only a source of some size has anything kept */

static char source[256], kept[300];
static uint8_t *base; /* the file as it was written */
static size_t base_size;
static fl_platform platform;
static const fl_build_options how = {.windows = 20, .assume = "balanced"};

static void remove_files(void) {
    unlink(source);
    unlink(kept);
}

static void write_source(void) {
    const char *folder = getenv("TMPDIR");
    snprintf(source, sizeof source, "%s/fuzz-workload-XXXXXX", folder && *folder ? folder : "/tmp");
    snprintf(kept, sizeof kept, "%s", source);
    const int fd = mkstemp(source);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        abort();
    snprintf(kept, sizeof kept, "%s" FL_OUTLINE_SUFFIX, source);
    atexit(remove_files);
    fputs("# foldline-kernels 1\n", f);
    for (int i = 0; i < PADS; i++) {
        fprintf(f, "# pad%d: ", i);
        for (int k = 0; k < PAD - 100; k++)
            fputc('x', f);
        fputc('\n', f);
    }
    fputs("device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z\n"
          "0,0,7,0,10,f,1,1,1,1,1,1\n",
          f);
    if (fclose(f))
        abort();
}

/* A file as the program keeps it, of a small sample with launches and synchronisations. */
static void begin(void) {
    static const fl_import_options all = {.device = -1};
    const fl_reader *reader;
    fl_imported in;
    fl_outline outline;
    fl_workload *w;
    fl_cache_key key;
    fl_diag d = {0};
    write_source();
    if (fl_platform_open("generic", 0, &platform, &d) ||
        fl_trace_open(FL_ROOT "/traces/samples/launches.csv", NULL, &all, &in, &d) ||
        fl_reader_find(source, NULL, &reader, &d) || !fl_cache_key_make(source, reader->name, &all, &key) ||
        fl_build_trace_outline(&w, &outline, "a trace", &in.kernels, &platform.node, &how, &d))
        abort();
    fl_kept_workload_save(source, &key, &in, &outline, w);
    fl_outline_free(&outline);
    fl_workload_free(w);
    fl_imported_free(&in);
    FILE *f = fopen(kept, "rb");
    if (!f || fseek(f, 0, SEEK_END) || (base_size = (size_t)ftell(f)) <= HEAD || fseek(f, 0, SEEK_SET) ||
        !(base = malloc(base_size)) || fread(base, 1, base_size, f) != base_size)
        abort();
    fclose(f);
}

/* Of what was taken every class is one that there is. */
static void walk(const fl_kept_workload *k) {
    fl_diag d = {0};
    bool fits;
    if (fl_build_outline(k->w, &k->outline, &k->t, &platform.node, &how, &fits, &d) || !fits)
        return;
    for (uint32_t i = 0; i < k->w->stream_count; i++)
        for (uint64_t op = 0; op < k->w->stream[i].count; op++) {
            int64_t gap_ns, work_ns;
            uint32_t class_id;
            fl_workload_op(&k->w->stream[i], op, &gap_ns, &work_ns, &class_id);
            if (class_id >= k->w->class_count || gap_ns < 0 || work_ns < 0)
                abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!base)
        begin();
    const size_t cut = size % CHANGE == 1 ? data[size - 1] % (base_size - HEAD) : 0, length = base_size - cut;
    uint8_t *bytes = malloc(base_size);
    if (!bytes)
        return 0;
    memcpy(bytes, base, base_size);
    for (size_t i = 0; i + CHANGE <= size; i += CHANGE) {
        const size_t at = HEAD + ((size_t)data[i] | (size_t)data[i + 1] << 8) % (base_size - HEAD);
        memcpy(bytes + at, data + i + 2, base_size - at < 8 ? base_size - at : 8);
    }
    const uint64_t contents = length - HEAD;
    uint64_t hash[2];
    fl_cache_hash(bytes + HEAD, (size_t)contents, hash);
    memcpy(bytes + SIZE, &contents, sizeof contents);
    memcpy(bytes + HASH, hash, sizeof hash);
    FILE *f = fopen(kept, "wb");
    const int written = f && (fwrite(bytes, 1, length, f) == length) + (fclose(f) == 0) == 2;
    fl_kept_workload k;
    if (written && fl_kept_workload_load(source, &k)) {
        walk(&k);
        fl_kept_workload_free(&k);
    }
    free(bytes);
    return 0;
}
