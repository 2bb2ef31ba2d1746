/* Loads for measuring a GPU from outside. Each prints what it did, with times of CLOCK_MONOTONIC, and sets nothing.
 *   load square ON_MS OFF_MS COUNT        full load, then none, COUNT times: t_on_ns,t_off_ns
 *   load levels SECONDS                   a share of the multiprocessors busy, then memory copies: name,t_from_ns,t_to_ns
 *   load kernels                          kernels of several lengths, back to back: mode,length_us,count,wall_us
 *   load idle SECONDS                     holds a context open and does nothing
 * Built by nvcc -O2 -o load load.cu (any compute capability). */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>
#include <cuda_runtime.h>

static void need(cudaError_t e, const char *what) {
    if (e != cudaSuccess) {
        fprintf(stderr, "load: %s: %s\n", what, cudaGetErrorString(e));
        exit(3);
    }
}

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

__device__ unsigned long long global_ns(void) {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

/* Multiplies and adds for a given time; keeps its result so that nothing is optimised away. */
__global__ void busy(float *out, long long for_ns) {
    const unsigned long long until = global_ns() + for_ns;
    float a = threadIdx.x, b = 1.0001f, c = 0.5f, d = 2.0f, e = 3.0f;
    while (global_ns() < until)
        for (int i = 0; i < 256; i++) {
            a = a * b + c;
            d = d * b + c;
            e = e * b + c;
            c = c * b + 0.1f;
        }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + c + d + e;
}

/* Takes a given number of cycles of its own multiprocessor: its length follows the clock. */
__global__ void cycles(long long count) {
    const long long from = clock64();
    while (clock64() - from < count) {
    }
}

__global__ void copy(float4 *to, const float4 *from, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i];
}

static int multiprocessors(void) {
    int n = 0;
    need(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0), "multiprocessors");
    return n;
}

static void run_square(int on_ms, int off_ms, int count) {
    float *out;
    const int blocks = multiprocessors() * 2;
    need(cudaMalloc(&out, blocks * 1024 * sizeof(float)), "memory");
    busy<<<blocks, 1024>>>(out, 1000000);
    need(cudaDeviceSynchronize(), "first kernel");
    usleep(2000000);
    puts("t_on_ns,t_off_ns");
    for (int i = 0; i < count; i++) {
        const long long on = now_ns();
        busy<<<blocks, 1024>>>(out, on_ms * 1000000LL);
        need(cudaDeviceSynchronize(), "kernel");
        printf("%lld,%lld\n", on, now_ns());
        usleep(off_ms * 1000);
    }
}

static void run_levels(int seconds) {
    float *out;
    float4 *a, *b;
    const int sms = multiprocessors();
    const size_t n = (size_t)1 << 28;
    need(cudaMalloc(&out, sms * 2 * 1024 * sizeof(float)), "memory");
    need(cudaMalloc(&a, n * sizeof *a), "memory");
    need(cudaMalloc(&b, n * sizeof *b), "memory");
    puts("name,t_from_ns,t_to_ns");
    long long from = now_ns();
    usleep(seconds * 1000000);
    printf("context,%lld,%lld\n", from, now_ns());
    for (int share = 0; share <= 4; share++) {
        const int blocks = share ? sms * 2 * share / 4 : 1;
        from = now_ns();
        busy<<<blocks, 1024>>>(out, seconds * 1000000000LL);
        need(cudaDeviceSynchronize(), "kernel");
        printf("alu-%d-blocks,%lld,%lld\n", blocks, from, now_ns());
    }
    const int grids[] = {sms / 8, sms / 4, sms, sms * 8};
    for (int g = 0; g < 4; g++) {
        long long copied = 0;
        from = now_ns();
        while (now_ns() - from < seconds * 1000000000LL) {
            copy<<<grids[g], 1024>>>(b, a, n);
            need(cudaDeviceSynchronize(), "copy");
            copied++;
        }
        const long long to = now_ns();
        printf("copy-%d-blocks-%.0f-gb_s,%lld,%lld\n", grids[g], copied * 2.0 * n * sizeof *a / (to - from), from, to);
    }
    from = now_ns();
    usleep(seconds * 1000000);
    printf("context-after,%lld,%lld\n", from, now_ns());
}

static void run_kernels(void) {
    const int lengths_us[] = {0, 2, 5, 10, 20, 50, 100, 500, 2000};
    int mhz_k = 0;
    need(cudaDeviceGetAttribute(&mhz_k, cudaDevAttrClockRate, 0), "clock");
    cudaStream_t s;
    need(cudaStreamCreate(&s), "stream");
    for (int i = 0; i < 2000; i++) /* the clock rises */
        cycles<<<1, 32, 0, s>>>(100LL * mhz_k / 1000);
    need(cudaStreamSynchronize(s), "start");
    puts("mode,length_us,count,wall_us");
    for (int l = 0; l < (int)(sizeof lengths_us / sizeof *lengths_us); l++) {
        const long long c = (long long)lengths_us[l] * mhz_k / 1000;
        const int count = lengths_us[l] < 20 ? 5000 : lengths_us[l] < 500 ? 1500 : 100;
        long long from = now_ns();
        for (int i = 0; i < count; i++)
            cycles<<<1, 32, 0, s>>>(c);
        need(cudaStreamSynchronize(s), "kernels");
        printf("stream,%d,%d,%.3f\n", lengths_us[l], count, (now_ns() - from) / 1e3 / count);
        const int waited = count / 5;
        from = now_ns();
        for (int i = 0; i < waited; i++) {
            cycles<<<1, 32, 0, s>>>(c);
            need(cudaStreamSynchronize(s), "kernel");
        }
        printf("waited,%d,%d,%.3f\n", lengths_us[l], waited, (now_ns() - from) / 1e3 / waited);
        cudaGraph_t graph;
        cudaGraphExec_t run;
        need(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal), "capture");
        for (int i = 0; i < 50; i++)
            cycles<<<1, 32, 0, s>>>(c);
        need(cudaStreamEndCapture(s, &graph), "capture");
        need(cudaGraphInstantiate(&run, graph, 0), "graph");
        need(cudaGraphLaunch(run, s), "graph");
        need(cudaStreamSynchronize(s), "graph");
        from = now_ns();
        for (int i = 0; i < count / 50; i++)
            need(cudaGraphLaunch(run, s), "graph");
        need(cudaStreamSynchronize(s), "graph");
        printf("graph,%d,%d,%.3f\n", lengths_us[l], count / 50 * 50, (now_ns() - from) / 1e3 / (count / 50 * 50));
        cudaGraphExecDestroy(run);
        cudaGraphDestroy(graph);
    }
    /* Two streams at once, as programs that overlap have them. */
    cudaStream_t t;
    need(cudaStreamCreate(&t), "stream");
    for (int l = 1; l < (int)(sizeof lengths_us / sizeof *lengths_us); l++) {
        const long long c = (long long)lengths_us[l] * mhz_k / 1000;
        const int count = lengths_us[l] < 20 ? 2500 : lengths_us[l] < 500 ? 750 : 50;
        const long long from = now_ns();
        for (int i = 0; i < count; i++) {
            cycles<<<1, 32, 0, s>>>(c);
            cycles<<<1, 32, 0, t>>>(c);
        }
        need(cudaDeviceSynchronize(), "kernels");
        printf("pair,%d,%d,%.3f\n", lengths_us[l], count, (now_ns() - from) / 1e3 / count);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    need(cudaFree(0), "context");
    if (!strcmp(what, "square") && argc == 5)
        run_square(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    else if (!strcmp(what, "levels") && argc == 3)
        run_levels(atoi(argv[2]));
    else if (!strcmp(what, "kernels"))
        run_kernels();
    else if (!strcmp(what, "idle") && argc == 3)
        usleep(atoi(argv[2]) * 1000000);
    else {
        fprintf(stderr, "load: square ON_MS OFF_MS COUNT | levels SECONDS | kernels | idle SECONDS\n");
        return 2;
    }
    return 0;
}
