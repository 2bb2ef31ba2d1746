/* Every trace reader against bytes that nobody meant: none may crash, each must leave its struct zeroed when it refuses
 * a file and say why.
 *
 *   fuzz_traces FILE...                       runs all readers on the files as they are
 *   fuzz_traces --mutate SEED COUNT FILE...   and on COUNT damaged copies of each file and of the built-in samples
 *
 * Built with -fsanitize=fuzzer and -DFL_LIBFUZZER, libFuzzer supplies the bytes instead. */
#include "tests/support/arrivals_write.h"
#include "tests/support/target_write.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/pipeline/pipeline.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program in a way that sanitizers and libFuzzer report. */
static void broken(const char *reader, const char *what, const char *message) {
    fprintf(stderr, "%s: %s (message '%s')\n", reader, what, message);
    abort();
}

static void check(const char *reader, fl_status status, const void *result, size_t size, const fl_diag *d) {
    const unsigned char *bytes = result;
    bool zero = true;
    for (size_t i = 0; i < size; i++)
        zero = zero && bytes[i] == 0;
    if (status == FL_OK && d->status != FL_OK)
        broken(reader, "a diagnostic without a failure", d->message);
    if (status == FL_OK)
        return;
    if (status != FL_BAD_INPUT)
        broken(reader, "bad bytes are bad input, nothing else", d->message);
    if (!zero)
        broken(reader, "something was left in the struct", d->message);
    if (d->status != status || d->message[0] == '\0')
        broken(reader, "no message", d->message);
    for (const char *c = d->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            broken(reader, "a control character in the message", d->message);
}

/* What a reader takes, its writer must be able to write and the reader to take again. */
#define CHECK_READER(type, reader, writer, again, release)                                                             \
    do {                                                                                                               \
        type x_, y_;                                                                                                   \
        fl_diag d_;                                                                                                    \
        memset(&x_, 0xaa, sizeof x_);                                                                                  \
        memset(&d_, 0, sizeof d_);                                                                                     \
        fl_status status_ = reader(path, &x_, &d_);                                                                    \
        check(#reader, status_, &x_, sizeof x_, &d_);                                                                  \
        if (status_ == FL_OK) {                                                                                        \
            memset(&y_, 0, sizeof y_);                                                                                 \
            if (writer(copy, &x_, &d_) != FL_OK || again(copy, &y_, &d_) != FL_OK)                                     \
                broken(#reader, "what was read cannot be written and read again", d_.message);                         \
            release(&y_);                                                                                              \
            unlink(copy);                                                                                              \
        }                                                                                                              \
        release(&x_);                                                                                                  \
    } while (0)

/* Layer and step tables are only read. */
static void check_step_tables(const char *path) {
    fl_layers l;
    fl_attention a;
    fl_expert_rows e;
    fl_step_rows r;
    fl_diag d;
    memset(&l, 0xaa, sizeof l);
    memset(&d, 0, sizeof d);
    check("fl_layers_read", fl_layers_read(path, "tokens", &l, NULL, &d), &l, sizeof l, &d);
    fl_layers_free(&l);
    memset(&a, 0xaa, sizeof a);
    memset(&d, 0, sizeof d);
    check("fl_attention_read", fl_attention_read(path, &a, NULL, &d), &a, sizeof a, &d);
    fl_attention_free(&a);
    memset(&e, 0xaa, sizeof e);
    memset(&d, 0, sizeof d);
    check("fl_expert_rows_read", fl_expert_rows_read(path, &e, NULL, &d), &e, sizeof e, &d);
    fl_expert_rows_free(&e);
    memset(&r, 0xaa, sizeof r);
    memset(&d, 0, sizeof d);
    check("fl_step_rows_read", fl_step_rows_read(path, &r, NULL, &d), &r, sizeof r, &d);
    fl_step_rows_free(&r);
}

/* Lists of instructions are only read. */
static void check_order(const char *path) {
    fl_pipeline_order o;
    fl_diag d = {0};
    memset(&o, 0xaa, sizeof o);
    const fl_status status = fl_pipeline_order_read(path, 2, 4, &o, &d);
    check("fl_pipeline_order_read", status, &o, sizeof o, &d);
    fl_pipeline_order_free(&o);
}

/* Four files with a common beginning: the same bytes stand for one of them, whole ones for those before it. */
static void check_runs(const char *path) {
    static const char *const ENDING[] = {"plans.csv", "measured.csv", "instructions.csv", "caps.csv"};
    static const char *const WHOLE[] = {
        "plan,rank,instruction,first_microbatch,count,sm_mhz\n0,0,forward,0,2,1410\n0,0,backward,0,2,1410\n",
        "plan,rank,iter_time_s,iter_energy_j,plan_time_s,plan_energy_j\n0,0,6.3,1811,6.3,1811\n",
        "plan,rank,kind,sm_mhz,count,time_mean_s,time_sd_s\n0,0,forward,1410,2,0.04,0.001\n"};
    char name[4][340];
    for (size_t k = 0; k < 4; k++)
        snprintf(name[k], sizeof name[k], "%s.%s", path, ENDING[k]);
    for (size_t k = 0; k < 4; k++) {
        fl_pipeline_runs r;
        fl_diag d = {0};
        memset(&r, 0xaa, sizeof r);
        for (size_t i = 0; i < 3 && i <= k; i++) { /* those before it stay whole */
            FILE *f = i < k ? fopen(name[i], "wb") : NULL;
            if (f)
                fputs(WHOLE[i], f), fclose(f);
        }
        if (link(path, name[k]))
            break;
        const fl_status status = fl_pipeline_runs_read(path, &r, &d);
        check("fl_pipeline_runs_read", status, &r, sizeof r, &d);
        fl_pipeline_runs_free(&r);
        unlink(name[k]);
    }
    for (size_t k = 0; k < 4; k++)
        unlink(name[k]);
}

/* Readers that leave rows out, with a count of them. */
static fl_status read_telemetry(const char *path, fl_telemetry *t, fl_diag *d) {
    fl_left_out left;
    return fl_telemetry_read(path, t, &left, d);
}

static fl_status read_kernels(const char *path, fl_kernel_trace *t, fl_diag *d) {
    fl_left_out left;
    return fl_kernels_read(path, t, &left, d);
}

static fl_status read_sweep(const char *path, fl_sweep *s, fl_diag *d) {
    fl_left_out left;
    return fl_sweep_read(path, s, &left, d);
}

static fl_status read_requests(const char *path, fl_requests *r, fl_diag *d) {
    fl_left_out left;
    return fl_requests_read(path, r, &left, d);
}

/* plans: the bytes speak of plans. Four files more for each of all other inputs would take most of the time. */
static int run(const char *path, const char *copy, bool plans) {
    CHECK_READER(fl_kernel_trace, read_kernels, fl_kernels_write, read_kernels, fl_kernel_trace_free);
    CHECK_READER(fl_kinds, fl_kinds_read, fl_kinds_write, fl_kinds_read, fl_kinds_free);
    CHECK_READER(fl_telemetry, read_telemetry, fl_telemetry_write, read_telemetry, fl_telemetry_free);
    CHECK_READER(fl_sweep, read_sweep, fl_sweep_write, read_sweep, fl_sweep_free);
    CHECK_READER(fl_arrivals, fl_arrivals_read, arrivals_write, fl_arrivals_read, fl_arrivals_free);
    CHECK_READER(fl_target, fl_target_read, target_write, fl_target_read, fl_target_free);
    CHECK_READER(fl_requests, read_requests, fl_requests_write, read_requests, fl_requests_free);
    CHECK_READER(fl_programs, fl_programs_read, fl_programs_write, fl_programs_read, fl_programs_free);
    CHECK_READER(fl_plans, fl_plans_read, fl_plans_write, fl_plans_read, fl_plans_free);
    CHECK_READER(fl_pipeline, fl_pipeline_read, fl_pipeline_write, fl_pipeline_read, fl_pipeline_free);
    CHECK_READER(fl_serving, fl_serving_read, fl_serving_write, fl_serving_read, fl_serving_free);
    check_step_tables(path);
    check_order(path);
    if (plans)
        check_runs(path);
    CHECK_READER(fl_decisions, fl_decisions_read, fl_decisions_write, fl_decisions_read, fl_decisions_free);
    CHECK_READER(fl_decisions, fl_trajectory_read, fl_decisions_write, fl_decisions_read, fl_decisions_free);
    CHECK_READER(fl_decisions, fl_geepafs_read, fl_decisions_write, fl_decisions_read, fl_decisions_free);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[256], copy[300];
    const char *base = getenv("TMPDIR");
    if (!path[0]) {
        snprintf(path, sizeof path, "%s/fuzz-traces-XXXXXX", base && *base ? base : "/tmp");
        int first = mkstemp(path);
        if (first < 0)
            return 0;
        close(first);
        snprintf(copy, sizeof copy, "%s.copy", path);
    }
    FILE *f = fopen(path, "wb");
    if (!f)
        return 0;
    bool written = fwrite(data, 1, size, f) == size;
    written = fclose(f) == 0 && written;
    if (written)
        run(path, copy, memmem(data, size, "plan", 4) != NULL);
    unlink(path);
    return 0;
}

#ifndef FL_LIBFUZZER

static const char *const SAMPLE[] = {
    "# foldline-kernels 1\n# device: x\n"
    "device,process,stream,start_ns,end_ns,name,grid_x,grid_y,grid_z,block_x,block_y,block_z,launch_ns,host_thread,"
    "waits_for,bytes,sm_mhz\n"
    "0,0,7,100,200,\"f<int, 2>\",4,1,1,64,1,1,50,1,,,1410\n0,0,7,200,260,[CUDA memcpy HtoD],,,,,,,120,1,0,4096,\n"
    "0,0,7,110,260,[sync],,,,,,,,1,0+1,,\n0,0,7,300,300,[iteration],,,,,,,,1,,,\n",
    "# foldline-kinds 1\nname,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\n"
    "f,0.7,0.2,0.1,9.5,1,0.4,0.5,1410,1593\n*,1,0,0,inf,0.5,0.25,,,\n",
    "# foldline-telemetry 1\nt_ns,device,power_w,sm_mhz\n0,0,47.5,\n0,host,,\n100,0,48,1410\n50,1,,135\n",
    "workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j\nw,,1005,,150,2,100,200.5\nw,k,,810,,4,,100\n",
    "# foldline-programs 1\n# sm_mhz: 800\n# kinds: k.csv\n"
    "program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv,stream,grid_x,block_x,cycles\n"
    "a,1,0.5,f,3,25,0.2,55,0.2,0,8,64,2\na,2,1,g,1,120.5,0,0,0,1,,,2\nb,1,60,f,1600,120,0.2,60,0.2,,,,\n",
    "# foldline-pipeline 1\n# schedule: interleaved\n# stages: 2\n# microbatches: 4\n# chunks: 2\n"
    "rank,what,sm_mhz,time_s,power_w,chunk\n*,forward,1410,0.045,280.5,\n0,forward,1410,0.044,281,1\n"
    "*,backward,1050,0.15,220,*\n*,backward,1410,0.13,290,\n*,blocked,,,92,\n0,act,,0.003,,\n1,load,,0.009,,\n",
    "stage,index,instruction,microbatch,microbatch2\n0,0,forward,0,-1\n0,1,send_act_recv_grad,1,0\n1,0,step,-1,-1\n",
    "plan,rank,instruction,first_microbatch,count,sm_mhz\n0,0,forward,0,2,1410\n0,0,backward,0,1,1410\n0,0,backward,1,"
    "1,1395\n",
    "family,plan,rank,power_limit_w,plan_time_s,plan_energy_j\nall,0,0,300,6.3,1811\nall,1,0,250,6.5,1800\n",
    "# foldline-serving 1\n# max_seqs: 8\n# token_budget: 64\n# block_tokens: 16\n# prefix_cache: "
    "no\nwhat,at,kv,value\n"
    "host_s,,,0.0002\nref_sm_mhz,,,1500\nclock,,,1500\nby_tokens,1,,0.01\nby_tokens,8,,0.011\nby_sequence,1,,0.001\n"
    "by_decodes,1,16,0.0001\nby_decodes,1,32,0.0002\nby_decodes,4,16,0.0003\nby_chunk,16,0,0.0004\n"
    "by_experts,2,8,0.001\n",
    "layer,tokens,time_us\nqkv_proj,1,54.5\nqkv_proj,2,56\no_proj,1,38\n",
    "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n16,0,0,0,9.5\n0,0,2,16,13.5\n16,64,2,16,15\n",
    "tokens,activated_experts,time_us\n1,8,50\n2,8,56.5\n2,16,135\n",
    "phase,sm_mhz,batch,tokens,context_tokens,time_s,power_w\nprefill,1000,1,100,0,0.1,100\ndecode,1000,2,2,300,0.03,"
    "\n",
    "# foldline-arrivals 1\n# source: x\nt_ns\n0\n1000\n1000\n2500000000\n",
    "# foldline-target 1\n# source: x\nt_ns,watts\n0,180\n60000000000,270.5\n",
    "t_s,demand_w,power_w,set_w,sm_mhz\n0,180,75.51,,1530\n1.0113,180,,232,1410\n",
    "# foldline-requests 1\n# source: "
    "x\nt_ns,prompt_tokens,output_tokens,model,class,cached_tokens,queued_ns,last_token_ns\n"
    "0,374,44,m,high,16,5,9000\n0,91,1,,low,0,,\n4314579000,1,16,\"m,2\",,,4314579000,\n",
    "# foldline-decisions 1\n"
    "step,t_ns,device,power_w,fresh,set_sm_mhz,delay_ns,lost,kind,name_id,name,grid,block,gpu,stream,start_ns,end_ns\n"
    "0,0,host,,,,5,,,,,,,,,,\n0,0,kind,,,,,,0,4,\"f<1,2>\",8x1x2,64x1x1,,,,\n0,0,kernel,,,,,,0,,,,,0,7,-3,9\n"
    "0,0,0,4,*,1410,,,,,,,,,,,\n1,5,host,,,,5,2,,,,,,,,,\n1,5,kernel,,,,,,0,,,,,0,7,1,\n1,5,0,4,,,,,,,,,,,,,\n",
    "# foldline-decisions 1\n# policy: p\n# gpus: 2\n"
    "step,t_ns,device,util_gpu_pct,power_w,loop_ns,fresh,set_sm_mhz,set_cpu_mhz,delay_ns\n"
    "0,0,host,,,,,,2000,1500\n0,0,0,98,47.5,,*,1410,,\n0,0,1,0,,,,default,,\n"
    "1,200,host,,,300,loop_ns,,,\n1,200,0,97,48,,power_w+util_gpu_pct,,,\n1,200,1,3,9,,power_w,135,,\n",
    "Apply policy: Assure\nMACHINE v100\nstart..\nMain loop start..\n"
    "2024-1-2 3:4:5, 10, 20, 40500, 855, 1050, 0, 0, 30000, 135, -1, 150000\n"
    "2024-1-2 3:4:5, 11, 21, 50250, 1050, -1, 0, 1, 31000, 855, 1440, 250001\n",
};

static uint64_t next(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

typedef struct text {
    uint8_t *bytes;
    size_t size, room;
} text;

/* Puts `size` bytes in the place of `gone` bytes at `at`. */
static void splice(text *t, size_t at, size_t gone, const void *bytes, size_t size) {
    if (t->size - gone + size > t->room)
        return;
    memmove(t->bytes + at + size, t->bytes + at + gone, t->size - at - gone);
    if (size)
        memcpy(t->bytes + at, bytes, size);
    t->size = t->size - gone + size;
}

/* One small damage: a bit, a byte, a token that readers may trip over, a piece cut out, doubled or moved, the end lost.
 */
static void damage(text *t, uint64_t *state) {
    static const char *const TOKEN[] = {"\"",
                                        "\"\"",
                                        ",",
                                        "\n",
                                        "\r",
                                        "\r\n",
                                        "#",
                                        "-1",
                                        "0",
                                        "9223372036854775808",
                                        "1e999",
                                        "nan",
                                        "inf",
                                        "\xef\xbb\xbf",
                                        "\xff",
                                        "+",
                                        ":",
                                        " ",
                                        "host",
                                        "default",
                                        "*",
                                        "99999999999999999999999",
                                        "0x1",
                                        "[",
                                        "]",
                                        "1,1,1,1,1",
                                        "# gpus: 65535\n"};
    size_t at = t->size ? next(state) % (t->size + 1) : 0;
    size_t left = t->size - at, size = left ? 1 + next(state) % (left < 40 ? left : 40) : 0;
    const char *token = TOKEN[next(state) % (sizeof TOKEN / sizeof *TOKEN)];
    uint8_t piece[40], byte = (uint8_t)next(state);
    memcpy(piece, t->bytes + at, size);
    switch (next(state) % 8) {
    case 0:
        if (left)
            t->bytes[at] ^= (uint8_t)(1u << next(state) % 8);
        break;
    case 1:
        splice(t, at, left ? 1 : 0, &byte, 1);
        break;
    case 2:
    case 3:
        splice(t, at, next(state) % 2 ? size : 0, token, strlen(token));
        break;
    case 4:
        splice(t, at, size, NULL, 0);
        break;
    case 5:
        splice(t, at, 0, piece, size);
        break;
    case 6:
        splice(t, at, size, NULL, 0);
        splice(t, t->size ? next(state) % t->size : 0, 0, piece, size);
        break;
    default:
        t->size = next(state) % 4 ? t->size : at;
        break;
    }
}

static void mutate(const uint8_t *bytes, size_t size, uint64_t seed, unsigned long count) {
    text t = {.room = size + 4096};
    t.bytes = malloc(t.room);
    for (unsigned long i = 0; t.bytes && i < count; i++) {
        uint64_t state = seed * 1000003 + i;
        memcpy(t.bytes, bytes, size);
        t.size = size;
        for (uint64_t n = 1 + next(&state) % 4; n; n--)
            damage(&t, &state);
        LLVMFuzzerTestOneInput(t.bytes, t.size);
    }
    free(t.bytes);
}

/* The first MiB of a file is enough to damage. */
static bool run_file(const char *path, uint64_t seed, unsigned long count) {
    enum { MOST = 1 << 20 };
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = malloc(MOST);
    bool good = f && bytes;
    if (!good)
        fprintf(stderr, "%s: cannot be read\n", path);
    if (good) {
        size_t size = fread(bytes, 1, MOST, f);
        LLVMFuzzerTestOneInput(bytes, size);
        mutate(bytes, size, seed, count);
    }
    if (f)
        fclose(f);
    free(bytes);
    return good;
}

int main(int argc, char **argv) {
    uint64_t seed = 0;
    unsigned long count = 0;
    int first = 1;
    if (argc >= 4 && strcmp(argv[1], "--mutate") == 0) {
        seed = strtoull(argv[2], NULL, 10);
        count = strtoul(argv[3], NULL, 10);
        first = 4;
        printf("seed %llu, %lu damaged copies of each file\n", (unsigned long long)seed, count);
        fflush(stdout); /* known also when a reader crashes */
    }
    for (size_t i = 0; i < sizeof SAMPLE / sizeof *SAMPLE; i++) {
        LLVMFuzzerTestOneInput((const uint8_t *)SAMPLE[i], strlen(SAMPLE[i]));
        mutate((const uint8_t *)SAMPLE[i], strlen(SAMPLE[i]), seed, count);
    }
    bool good = true;
    for (int i = first; i < argc; i++)
        good = run_file(argv[i], seed, count) && good;
    if (good)
        puts("every reader stood");
    return good ? 0 : 1;
}

#endif
