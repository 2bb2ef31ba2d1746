/* The clock daemon of GEEPAFS (EuroSys '24), policy Assure, written a second time: an ordinary NVML program with its
 * own arithmetic, in the daemon's order of operations, and its log on standard output. It shares no line with the
 * policy of this program, so that the two can be held to each other. daemon v100|v100-maxq THETA LOOPS >LOG The daemon
 * runs until Ctrl-C; this one presses Ctrl-C itself after LOOPS loops. On standard error: how many fits of each kind
 * there were. */
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { DEVICES = 16, M = 4, N = 2 * M, WINDOW = 16, PERIOD_US = 200000, PROBE_US = 15000000, LADDER = 512 };

static const struct {
    const char *name;
    int first, top, memory, lowest, efficient;
    double probe[M];
} MACHINES[] = {{"v100", 135, 1530, 877, 952, 952, {952, 1147, 1335, 1530}},
                {"v100-maxq", 135, 1440, 810, 855, 855, {855, 1050, 1245, 1440}}};

static void *device[DEVICES];
static unsigned devices;
static volatile sig_atomic_t stopped;
static long lines, folds, fixed, nones, voids, at_ends;

static int (*get_utilisation)(void *, unsigned *), (*get_clock)(void *, int, unsigned *),
    (*get_power)(void *, unsigned *);
static int (*set_clocks)(void *, unsigned, unsigned), (*reset_clocks)(void *);

static void *need(void *library, const char *name) {
    void *f = dlsym(library, name);
    if (!f) {
        fprintf(stderr, "daemon: no %s\n", name);
        exit(1);
    }
    return f;
}

static void check(int error, const char *what) {
    if (error) {
        fprintf(stderr, "daemon: %s: error %d\n", what, error);
        exit(1);
    }
}

static void open_library(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "daemon: %s\n", dlerror());
        exit(1);
    }
    int (*init)(void), (*count)(unsigned *), (*by_index)(unsigned, void **);
    *(void **)&init = need(library, "nvmlInit_v2");
    *(void **)&count = need(library, "nvmlDeviceGetCount_v2");
    *(void **)&by_index = need(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&get_utilisation = need(library, "nvmlDeviceGetUtilizationRates");
    *(void **)&get_clock = need(library, "nvmlDeviceGetClockInfo");
    *(void **)&get_power = need(library, "nvmlDeviceGetPowerUsage");
    *(void **)&set_clocks = need(library, "nvmlDeviceSetApplicationsClocks");
    *(void **)&reset_clocks = need(library, "nvmlDeviceResetApplicationsClocks");
    check(init(), "init");
    check(count(&devices), "count");
    devices = devices < DEVICES ? devices : DEVICES;
    for (unsigned d = 0; d < devices; d++)
        check(by_index(d, &device[d]), "handle");
}

static void reset_all(void) {
    printf("Reset GPU frequency for: ");
    for (unsigned d = 0; d < devices; d++) {
        check(reset_clocks(device[d]), "reset");
        printf("device %u. ", d);
    }
    printf("\n");
}

/* One line, and every fold with two clocks or more on each side; v[0..3]: what is best so far, as slope and offset
 * below and above; *turn: the first clock of the high line, M for one line. Returns the smallest error. */
static double fit(const double *p, const double *x, const double *y, double v[4], int *turn) {
    double best = 0;
    *turn = M;
    for (int turn_at = 1; turn_at <= M - 2; turn_at++) {
        const int t = turn_at == 1 ? M : turn_at; /* the single line first */
        double n[3] = {0}, sx[3] = {0}, sy[3] = {0}, sxx[3] = {0}, sxy[3] = {0}, syy[3] = {0}, a[3], b[3], r[3];
        for (int i = 0; i < N; i++) {
            const int side = t == M ? 0 : x[i] < p[t] ? 1 : 2; /* 0: all samples, 1: low ones, 2: high ones */
            n[side] += 1, sx[side] += x[i], sy[side] += y[i];
            sxx[side] += x[i] * x[i], sxy[side] += x[i] * y[i], syy[side] += y[i] * y[i];
        }
        for (int s = 0; s < 3; s++) {
            const double under = n[s] * sxx[s] - sx[s] * sx[s];
            a[s] = (n[s] * sxy[s] - sx[s] * sy[s]) / under;
            b[s] = (sy[s] * sxx[s] - sx[s] * sxy[s]) / under;
            r[s] = syy[s] + a[s] * a[s] * sxx[s] + n[s] * b[s] * b[s] - 2 * a[s] * sxy[s] - 2 * b[s] * sy[s] +
                   2 * a[s] * b[s] * sx[s];
        }
        if (t == M) {
            best = r[0], v[0] = v[2] = a[0], v[1] = v[3] = b[0];
            continue;
        }
        double error = r[1] + r[2];
        const double cross = a[1] == a[2] ? -1 : (b[1] - b[2]) / (a[2] - a[1]);
        const int apart = p[t - 1] <= cross && cross <= p[t];
        if (!apart) {
            const double X = p[t - 1], k = n[2];
            const double c11 = sxx[1] + k * X * X, c12 = X * sx[2] - k * X * X, c13 = sx[1] + X * k, c21 = c12;
            const double c22 = sxx[2] - 2 * X * sx[2] + k * X * X, c23 = sx[2] - k * X, c31 = c13, c32 = c23;
            const double c33 = n[1] + n[2], c14 = -(sxy[1] + sy[2] * X), c24 = -(sxy[2] - X * sy[2]);
            const double c34 = -(sy[1] + sy[2]);
            const double H = c11 * c22 * c33 + c12 * c23 * c31 + c21 * c32 * c13 - c13 * c22 * c31 - c12 * c21 * c33 -
                             c11 * c23 * c32;
            a[1] = -(c14 * c22 * c33 + c12 * c23 * c34 + c13 * c24 * c32 - c13 * c22 * c34 - c12 * c24 * c33 -
                     c23 * c32 * c14) /
                   H;
            a[2] = -(c11 * c24 * c33 + c21 * c34 * c13 + c14 * c23 * c31 - c13 * c31 * c24 - c11 * c23 * c34 -
                     c33 * c14 * c21) /
                   H;
            b[1] = -(c11 * c22 * c34 + c21 * c32 * c14 + c12 * c24 * c31 - c22 * c14 * c31 - c12 * c21 * c34 -
                     c11 * c32 * c24) /
                   H;
            b[2] = X * (a[1] - a[2]) + b[1];
            error = H == 0 ? 12345678 : 0;
            for (int side = 1; side <= 2; side++)
                for (int i = 0; i < N && H != 0; i++)
                    if ((x[i] < p[t]) == (side == 1)) {
                        const double off = y[i] - (a[side] * x[i] + b[side]);
                        error += off * off;
                    }
        }
        at_ends += apart && (cross == p[t - 1] || cross == p[t]);
        if (!(a[1] <= a[2]) && error < best)
            best = error, *turn = apart ? t : -t, v[0] = a[1], v[1] = b[1], v[2] = a[2], v[3] = b[2];
    }
    return best;
}

/* The clock chosen, before the ladder. */
static double choose(const double *p, const double *x, const double *y, const double *mw, double theta, double cap,
                     double lowest, double average) {
    const double fmax = p[M - 1];
    double v[4], bound = fmax, efficient = average, most = -DBL_MAX, seen = 0;
    int turn;
    for (int i = 0; i < N; i++)
        seen += y[i];
    if (!(seen > 0)) {
        voids++;
    } else if (fit(p, x, y, v, &turn) > 100 * N) {
        nones++;
    } else {
        const double a1 = v[0], b1 = v[1], a2 = v[2], b2 = v[3], cross = (b1 - b2) / (a2 - a1); /* unused by a line */
        ++*(turn == M ? &lines : turn < 0 ? &fixed : &folds);
        for (int c = 0; c < M; c++) {
            double power = 0, speed = a1 * p[c] + b1;
            if (a1 <= 0)
                speed = a1 * p[0] + b1;
            else if (c >= abs(turn))
                speed = a2 > 0 ? a2 * p[c] + b2 : a1 * cross + b1;
            for (int i = 0; i < N; i++)
                power += x[i] == p[c] ? mw[i] / 2 : 0;
            if (speed / power > most)
                most = speed / power, efficient = p[c];
        }
        if (a1 <= 0) {
            bound = p[0];
        } else if (turn == M) {
            bound = (theta * (a1 * fmax + b1) - b1) / a1;
        } else if (a2 <= 0) {
            bound = (theta * (a1 * cross + b1) - b1) / a1;
        } else {
            bound = (theta * (a2 * fmax + b2) - b2) / a2;
            if (bound <= cross)
                bound = (theta * (a2 * fmax + b2) - b1) / a1;
        }
    }
    double wish = bound < cap ? bound : cap;
    wish = wish > efficient ? wish : efficient;
    wish = wish > lowest ? wish : lowest;
    return wish < fmax ? wish : fmax;
}

static long long now_us(void) {
    struct timeval t;
    gettimeofday(&t, NULL);
    return (long long)t.tv_sec * 1000000 + t.tv_usec;
}

static void on_interrupt(int number) {
    (void)number;
    stopped = 1;
}

static double x[DEVICES][N], y[DEVICES][N], mw[DEVICES][N], cap[DEVICES];
static int ladder[LADDER], last[DEVICES], chosen[DEVICES], window[DEVICES][WINDOW], rungs, counter = N, before;

/* The clock above the largest one that is strictly below `mhz`; `otherwise` where none is below. */
static int on_ladder(double mhz, int otherwise) {
    for (int i = rungs - 1; i >= 0; i--)
        if (ladder[i] < mhz)
            return i + 1 < rungs ? ladder[i + 1] : ladder[i];
    return otherwise;
}

/* Reads device d, then sets what the phase asks for, and writes both. */
static void turn_of(unsigned d, size_t machine, double theta, long loop) {
    const double *p = MACHINES[machine].probe, fmax = p[M - 1];
    unsigned util[2], mhz, power;
    int set = -1;
    check(get_utilisation(device[d], util), "utilisation");
    check(get_clock(device[d], 1, &mhz), "clock");
    check(get_power(device[d], &power), "power");
    window[d][loop % WINDOW] = (int)util[0];
    if (before > 0) { /* a clock shows in the loop after the one that set it */
        const int i = N - before;
        const double f = mhz, u = util[0] > 1 ? util[0] : 1;
        const double most = f / ((1 - theta) * (f / fmax + 100 / u - 1) + f / fmax);
        x[d][i] = p[i < M ? i : N - 1 - i], y[d][i] = util[1], mw[d][i] = power;
        cap[d] = i == 0 || most > cap[d] ? most : cap[d];
    }
    if (counter >= 0) {
        const int i = counter > 0 ? N - counter : N - 1;
        set = (int)p[i < M ? i : N - 1 - i];
    } else if (counter == -1) {
        set = chosen[d];
    }
    if (set > 0) {
        check(set_clocks(device[d], (unsigned)MACHINES[machine].memory, (unsigned)set), "set");
        last[d] = set;
    }
    printf("%u, %u, %u, %u, %d, ", util[0], util[1], power, mhz, set);
}

/* What the next loop is for. */
static void count_down(long long took, long long *waited) {
    before = counter;
    if (*waited >= PROBE_US) {
        double busy = 0;
        for (unsigned d = 0; d < devices; d++) {
            double sum = 0;
            for (int i = 0; i < WINDOW; i++)
                sum += window[d][i];
            busy += sum / WINDOW;
        }
        counter = busy >= 1 ? N : -2;
        *waited = 0;
        return;
    }
    *waited = counter > -1 ? 0 : *waited + (took > PERIOD_US ? took : PERIOD_US);
    counter -= counter > -99;
}

int main(int argc, char **argv) {
    size_t m = 0;
    while (argc == 4 && m < sizeof MACHINES / sizeof *MACHINES && strcmp(argv[1], MACHINES[m].name) != 0)
        m++;
    if (argc != 4 || m == sizeof MACHINES / sizeof *MACHINES)
        return fputs("daemon v100|v100-maxq THETA LOOPS\n", stderr), 2;
    const double theta = strtod(argv[2], NULL);
    const long loops = strtol(argv[3], NULL, 10);
    for (int mhz = MACHINES[m].first; mhz <= MACHINES[m].top; mhz += rungs % 2 ? 7 : 8)
        ladder[rungs++] = mhz; /* the first step is 7 */
    signal(SIGINT, on_interrupt);
    printf("Apply policy: Assure\nMACHINE %s\nGPU freqset tool start..\n", MACHINES[m].name);
    open_library();
    reset_all();
    printf("Main loop start..\n");
    long long waited = 0;
    for (long loop = 0; !stopped; loop++) {
        const long long start = now_us();
        const time_t seconds = (time_t)(start / 1000000);
        struct tm t;
        localtime_r(&seconds, &t);
        printf("%d-%d-%d %d:%d:%d, ", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
        for (unsigned d = 0; d < devices; d++)
            turn_of(d, m, theta, loop);
        for (unsigned d = 0; counter == 0 && d < devices; d++)
            chosen[d] = on_ladder(
                choose(MACHINES[m].probe, x[d], y[d], mw[d], theta, cap[d], MACHINES[m].lowest, MACHINES[m].efficient),
                last[d]);
        const long long took = now_us() - start;
        printf("%lld\n", took);
        fflush(stdout);
        count_down(took, &waited);
        if (loop + 1 == loops)
            raise(SIGINT);
        if (!stopped && took < PERIOD_US)
            usleep((useconds_t)(PERIOD_US - took));
    }
    printf("Interrupted.\n");
    reset_all();
    fprintf(stderr, "line %ld fold %ld fixed %ld none %ld void %ld ends %ld\n", lines, folds, fixed, nones, voids,
            at_ends);
    return 0;
}
