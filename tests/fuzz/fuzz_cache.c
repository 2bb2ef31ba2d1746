/* The cache of kernel traces against bytes that nobody meant, for libFuzzer. Sizes, version, source and hashes are put
 * right in the head, as no fuzzer finds a hash: what is behind them must hold by itself. */
#include "traces/import/import.h"
#include "traces/io/records.h"
#include "traces/open/inside.h"
#include "traces/open/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VERSION = 16, ORDER = 20, KEY = 24, BODY_SIZE = KEY + sizeof(fl_cache_key), BODY_HASH = BODY_SIZE + 8 };
enum { HEAD = BODY_HASH + 16 + 9 * 8 };

static char source[256], cache[300];

static void remove_files(void) {
    unlink(source);
    unlink(cache);
}

static bool write_file(const char *path, const void *bytes, size_t size) {
    FILE *f = fopen(path, "wb");
    return f && (fwrite(bytes, 1, size, f) == size) + (fclose(f) == 0) == 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!source[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(source, sizeof source, "%s/fuzz-cache-XXXXXX", base && *base ? base : "/tmp");
        int fd = mkstemp(source);
        if (fd < 0)
            return 0;
        close(fd);
        snprintf(cache, sizeof cache, "%s" FL_CACHE_SUFFIX, source);
        atexit(remove_files);
    }
    fl_cache_key key;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes || size < HEAD || !write_file(source, "x", 1) || !fl_cache_key_make(source, "kineto", NULL, &key)) {
        free(bytes);
        return 0;
    }
    memcpy(bytes, data, size);
    const uint32_t version = FL_CACHE_VERSION, order = 0x01020304;
    const uint64_t body = size - HEAD;
    memcpy(bytes, "foldline cache\n", 16);
    memcpy(bytes + VERSION, &version, 4);
    memcpy(bytes + ORDER, &order, 4);
    memcpy(bytes + KEY, &key, sizeof key);
    memcpy(bytes + BODY_SIZE, &body, 8);
    uint64_t hash[2];
    fl_cache_hash(bytes + HEAD, (size_t)body, hash);
    memcpy(bytes + BODY_HASH, hash, sizeof hash);
    fl_imported x;
    if (write_file(cache, bytes, size) && fl_cache_load(cache, source, "kineto", NULL, &x)) {
        /* What came is sound enough to be walked through from end to end. */
        uint64_t sum = 0;
        const fl_kernel_trace *t = &x.kernels;
        for (size_t i = 0; i < t->op_count; i++) {
            const fl_trace_op *op = &t->ops[i];
            sum += strlen(t->names[t->kinds[op->kind].name]);
            for (uint32_t k = 0; k < op->waits_count; k++)
                sum += (uint64_t)t->ops[t->waits[op->waits_first + k]].end_ns;
            if (op->end_ns < op->start_ns || op->start_ns < 0 || op->launch_ns > op->start_ns || op->device < 0)
                abort();
        }
        __asm__ volatile("" : : "r"(sum));
        if (!fl_cache_save(cache, &key, &x, 0600))
            abort();
        fl_imported y;
        if (!fl_cache_load(cache, source, "kineto", NULL, &y) || y.kernels.op_count != t->op_count)
            abort();
        fl_imported_free(&y);
        fl_imported_free(&x);
    }
    free(bytes);
    return 0;
}
