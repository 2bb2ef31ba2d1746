/* The laws by which clocks give times and powers, and their conversion to the engine's integers.
 *
 * fl_row_make turns a load (fl_load) on a device at a pair of clocks into one fl_row; fl_base_make gives the board's
 * power beside it; fl_cpu_row_make does it for the host. fl_step_at is the law of a serving engine's step,
 * fl_shares_rates the law of kernels that share a GPU. All are pure. Outside the measured range a law returns
 * FL_MODEL_RANGE and never extrapolates. The caller owns loads, curves and laws. */
#pragma once

#include "models/laws/device.h"
#include "models/math/math.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- power: power-capping Eq. 2, extended by the memory clock, idle memory and the idle clock tree ---- */

#define FL_POWER_MAX_MW 2.0e9 /* 2 MW: the engine's 32-bit milliwatts hold it with room to add parts */

typedef struct fl_base { /* power of a GPU with an open context, whether or not a kernel runs */
    int32_t static_mw;   /* C V */
    int32_t memory_mw;   /* B0(m) */
    int32_t tree_mw;     /* A0 V^2 f */
    int32_t total_mw;    /* their sum */
} fl_base;

fl_model_status fl_base_make(const fl_device *dev, double sm_mhz, double mem_mhz, fl_base *base);

/* Compute watts by the law, unrounded: *sm_w = alpha A V^2 f, *memory_w = beta B m/m_ref (power-capping Eq. 2). */
fl_model_status fl_power_dynamic(const fl_device *dev, double alpha, double beta, double sm_mhz, double mem_mhz,
                                 double *sm_w, double *memory_w);

/* ---- rows: from laws to the engine's integers ----
 *
 * A kind of kernel at a pair of clocks becomes one 16-byte row. Each part of the
 * power is a whole number of milliwatts, and a length is one multiplication. Energy is therefore exact, and every way
 * of advancing the simulation gives the same bits. */

/* Utilisation readings of a board: mean and standard deviation. */
typedef enum fl_reading_kind {
    FL_READING_GPU,
    FL_READING_GPU_SD,
    FL_READING_MEM,
    FL_READING_MEM_SD,
    FL_READINGS
} fl_reading_kind;

/* One workload at one memory clock, measured or predicted: its time relative to the reference, and the board's power.
 */
typedef struct fl_measured {
    fl_curve *time_ratio;        /* against SM MHz; the table at ref_mem_mhz has 1 at ref_sm_mhz */
    fl_curve *power_w;           /* power of the whole board while the workload runs */
    fl_curve *util[FL_READINGS]; /* utilisation readings, %; NULL = not measured */
    double mem_mhz;              /* 0 = the load's reference */
    double ref_s;                /* time at the reference: the weight of a kernel among those of its workload */
    struct fl_measured *next;    /* the same workload at another memory clock; NULL = no more */
} fl_measured;

void fl_measured_free(fl_measured *m); /* frees the curves and all following tables, but not *m itself */
/* Return the table at a memory clock, or NULL. */
const fl_measured *fl_measured_find(const fl_measured *m, double ref_mem_mhz, double mem_mhz);

/* How one kind of kernel loads a device. */
typedef struct fl_load {
    double tc, tm, tl;              /* terms at the reference clocks; only their ratios matter */
    double sharpness;               /* p; 0 = the device's */
    fl_fold_line bandwidth;         /* its memory term is tm B(ref_sm_mhz) / B(f) */
    double alpha, beta;             /* shares of A and B */
    double sm_demand;               /* share of the SMs that it uses when it runs alone, 0..1 */
    double ref_sm_mhz, ref_mem_mhz; /* clocks at which its work was recorded */
    const fl_measured *measured;    /* where given, it supplies time and power; terms give the memory's share */
} fl_load;

/* Return a measured utilisation reading at a pair of clocks, %. Beyond the measured clocks it is that of the nearest.
 * NAN: not measured. */
double fl_reading_at(const fl_load *load, fl_reading_kind kind, double sm_mhz, double mem_mhz);

typedef struct fl_row {
    uint32_t mul;      /* length in ps = (work_ns * mul + 2^15) >> 16 */
    int32_t dyn_mw;    /* power above the base while the kernel runs alone: sm + memory + unsplit */
    uint16_t memory;   /* memory controller active while it runs alone, in 1/32768 of the time */
    uint16_t sms;      /* SM demand, in 1/32768; with a measured GPU utilisation, that */
    uint16_t alu;      /* share of time the ALUs are active, in 1/32768 */
    uint16_t resident; /* FL_RESIDENT_*. The caller sets it; fl_row_make leaves 0 */
} fl_row;

enum {
    FL_RESIDENT_NO,     /* a copy or a marker */
    FL_RESIDENT_KERNEL, /* a kernel, or its last phase */
    FL_RESIDENT_PART    /* a phase of a kernel that continues: not counted as a kernel by itself */
};

typedef struct fl_row_parts {             /* the sum equals dyn_mw exactly */
    int32_t sm_mw, memory_mw, unsplit_mw; /* unsplit: a measured table does not say which part drew the power */
} fl_row_parts;

#define FL_ROW_ONE 32768
#define FL_MUL_ONE 65536000u /* 1000 ps per ns in 16.16 */

/* Make the row at clocks (sm_mhz, mem_mhz). FL_MODEL_RANGE: the clock lies outside the points of a measured load. */
fl_model_status fl_row_make(const fl_device *dev, const fl_load *load, double sm_mhz, double mem_mhz, fl_row *row,
                            fl_row_parts *parts);

/* ---- the host CPU: one row per host load and state (the laws are in fl_cpu_spec) ---- */

typedef struct fl_host_load { /* how a thread's host time loads the CPU */
    double bound;             /* share of host time that scales with 1 / CPU clock, 0..1 */
    double alpha;             /* activity of a thread that computes */
    double upc;               /* micro-operations per cycle, at the reference clock */
    double bytes_per_s;       /* memory traffic, at the reference clock */
} fl_host_load;

typedef struct fl_cpu_row {
    uint32_t mul;     /* length in ps = (host_ns * mul + 2^15) >> 16 */
    int32_t mw;       /* power of a thread that computes */
    uint32_t uops;    /* per ps of work, in 2^-20 */
    uint32_t bytes;   /* per ps of work, in 2^-20 */
    uint32_t traffic; /* APU: share of the bus in 1/65536 */
} fl_cpu_row;

typedef struct fl_cpu_state {
    int32_t mhz;
    int32_t static_mw; /* static power of the package */
    int32_t wait_mw;   /* power of a thread that waits */
    uint32_t cycles;   /* per ps of a thread not asleep, in 2^-20 */
    uint32_t wait_uops;
} fl_cpu_state;

/* Number of states, in this order: those that software may set, then the boost states. */
uint32_t fl_cpu_state_count(const fl_cpu_spec *cpu);
double fl_cpu_ref_mhz(const fl_cpu_spec *cpu);
/* Return the CPU clock of a node where nothing is set. If the default is the highest state that software may set, this
 * is the highest boost state. */
double fl_cpu_default_mhz(const fl_cpu_spec *cpu);

/* The load that the platform assumes for host time. */
fl_host_load fl_cpu_default_load(const fl_cpu_spec *cpu);

fl_model_status fl_cpu_state_make(const fl_cpu_spec *cpu, uint32_t state, fl_cpu_state *out);
/* bus_bytes_per_s: bandwidth of the bus that CPU and GPU share; 0 = none. */
fl_model_status fl_cpu_row_make(const fl_cpu_spec *cpu, const fl_host_load *load, uint32_t state,
                                double bus_bytes_per_s, fl_cpu_row *row);

/* ---- steps of a serving engine: time and load by the batch and the clocks ----
 * A step runs the matrix products of all its tokens (weights are read once, whatever the batch), the attention of its
 * prompt chunks (compute: query tokens times keys) and of its decodes (memory: the KV cache is read), and a few kernels
 * per sequence (output head, sampler). One after another, so their times add; within each, compute and memory overlap
 * as far as the p-norm |x, y| = (x^p + y^p)^(1/p) says. With n tokens, s sequences, D decodes, f = SM clock in GHz,
 * m = memory clock over that at which the law was measured:
 *
 *   T = t0 + d s + all-reduces(n)
 *       + |(a q(n) + e s) / f, w / m + w' / f|                                           matrix products
 *       + |c pairs / f, KV of the chunks (k / m + (k' + c') / f)|                        attention of prompt chunks
 *       + |e' D / f, KV of the decodes (k / m + k' / f)|                                 attention of decodes
 *       + max over ranks r of M(n_r, E_r) + exchanges(N)                                 mixture of experts
 *
 * A mixture of experts: M(n, E) = m0 + |a_e n / f, E (w_e / m + w_e' / f)|. The weights of the E experts that a rank's
 * tokens touch are read once, and n tokens of top_k expert rows each are computed. N counts the tokens of all
 * data-parallel replicas, which step together and share the experts.
 *
 * q(n) rounds up to the tiles of a matrix product: powers of two to 128, then multiples of 128. c': a chunk walks all
 * keys before it one after another, which bounds a short chunk over a long context. Beside a prompt chunk decodes run
 * in its kernel, which cannot share the keys among the query heads of a group: e' and k have values of their own there.
 * Layer tables of one clock replace a q(n) + e s and w there, see fl_step_grid: their least time is the memory's part,
 * and the rest compute. At other clocks the law then assumes that compute goes as 1 / f and memory as 1 / m, except for
 * w' / f of the least time of by_tokens, and the same share of that of by_sequence. */

/* What one step of an engine computes: all that its time depends on. Zero it, then add each request's part. */
typedef struct fl_step_shape {
    uint32_t tokens;        /* computed in this step: those of prompt chunks, and one for each decode */
    uint32_t sequences;     /* requests in the step: prompts + decodes */
    uint32_t prompts;       /* of them, those with a chunk of their prompt */
    uint32_t decodes;       /* of them, those that decode one token */
    uint32_t prompt_tokens; /* of all tokens, those of prompt chunks */
    uint64_t pairs;         /* of prompt chunks: query tokens times the keys that each looks at */
    uint64_t kv_read;       /* tokens of KV that attention reads, by chunks and decodes */
    uint64_t kv_decode;     /* of them, by decodes */
    uint32_t group_tokens;  /* of all data-parallel replicas, this one's included; 0: this one has no others */
} fl_step_shape;

/* Add a request that computes `tokens` tokens of its prompt, after `context` tokens in the KV cache: query i of the
 * chunk reads context + i keys. */
void fl_step_add_prompt(fl_step_shape *s, uint32_t tokens, uint64_t context);
/* Add a request that decodes one token after `context` tokens in the KV cache; with its own token it reads one more. */
void fl_step_add_decode(fl_step_shape *s, uint64_t context);

/* The step of a data-parallel replica that has no requests while others have: one token without context. */
static inline fl_step_shape fl_step_empty(void) { return (fl_step_shape){.tokens = 1, .sequences = 1}; }

/* Seconds measured at ref_sm_mhz, against tokens or sequences (kv NULL), for `at` decodes with `kv` tokens of KV each,
 * or for a prompt chunk of `at` tokens over kv earlier ones: rows ascending by at, then by kv. Joined by lines along
 * either; below the first its value, beyond the last proportional. A grid with kv corrects the law's equation by the
 * factor by which that is off there, at all clocks. */
typedef struct fl_step_grid {
    double *at, *kv, *time_s; /* owned by the law */
    size_t count;             /* 0 = the law has no such grid */
} fl_step_grid;

enum { FL_STEP_GRIDS = 6 };
enum { FL_STEP_CLOCKS = 64 }; /* clocks of a law's measurements, at most */

typedef struct fl_step_law {
    double host_s;          /* t0: per step, follows no clock: host work that the GPU waits for */
    double host_sequence_s; /* d: per sequence */

    /* Matrix products: a, e in GHz s per token and sequence; w, w' in s and GHz s. */
    double token, sequence, weights_s, weights_clock;
    /* Attention: c in GHz s per query token and key; c' in GHz s per key of a chunk; k, k' in s and GHz s per token of
     * KV that is read; e' in GHz s per decode. _beside: in a step that has a prompt chunk too. */
    double pair, chunk_key, kv_s, kv_clock, decode;
    double kv_beside_s, decode_beside;
    double beside_token; /* decodes beside n prompt tokens take 1 + beside_token n times as long as beside few */
    double sharpness, attention_sharpness; /* p of the norms, >= 1 */
    union {                                /* in the order of a serving file */
        struct {
            fl_step_grid by_tokens;   /* all that depends on the tokens of the step, and what each step costs anyway */
            fl_step_grid by_sequence; /* all that depends on its sequences */
            fl_step_grid by_decodes, by_decodes_beside; /* attention of decodes: alone, and beside a chunk */
            fl_step_grid by_chunk;                      /* attention of a prompt chunk */
            fl_step_grid by_experts; /* of a mixture, in all blocks: `at` tokens, kv experts that they touch */
        };
        fl_step_grid grid[FL_STEP_GRIDS];
    };
    /* Steps of no more tokens than this are padded to the sizes of captured CUDA graphs: 1, 2, 4, multiples of 8 to
     * 256, of 16 beyond. 0 = none are. Only where by_tokens is there: a law fitted to whole steps has it in them. */
    uint32_t graph_tokens;

    /* Tensor parallel: each rank computes its share, and the ranks meet `reduces` times a step (two per layer), each
     * time for reduce_s + reduce_token_s n. 0 = one GPU. No clock changes it; neither SMs nor memory count as loaded.
     */
    uint32_t reduces;
    double reduce_s, reduce_token_s;

    /* Mixture of experts: each token chooses top_k of `experts` in every block. Expert e lies on rank e expert_ranks /
     * experts, cut into expert_slices parts on as many GPUs. m0 and w_e in s, w_e' and a_e in GHz s, for all blocks
     * together; w_e' > 0: they were measured at several clocks. expert_load: how much they load the chip, over products
     * of the same times; 0: not known, taken as 1. experts 0: the model has none. */
    uint32_t experts, top_k, expert_ranks, expert_slices;
    double expert_floor_s, expert_s, expert_clock, expert_token, expert_sharpness, expert_load;
    double expert_skew; /* exponent of the experts' popularity by Zipf's law; 0: all alike */
    uint32_t expert_seed;
    double *popularity; /* probability that a token chooses an expert; owned; NULL: top_k / experts of each */
    /* Data parallel: this many replicas step together. Their ranks exchange tokens `exchanges` times a step. */
    uint32_t replicas, exchanges;
    double exchange_s, exchange_token_s;

    double kv_bytes; /* of a token, of all GPUs of a server; 0 = not known. No time depends on it */

    /* Where it was measured. Clocks in MHz, ascending; one clock: all that the law says of others is assumed. */
    double sm_mhz[FL_STEP_CLOCKS];
    uint32_t sm_count;
    double ref_sm_mhz, ref_mem_mhz; /* at which tables hold, and to which memory terms refer; 0 = not known */

    /* Errors on what the fit did not see, as mean shares; negative = not known. */
    double time_error, power_error;
    /* Load of the chip by a step that does nothing but compute, or nothing but read memory: shares of the platform's
     * A and B (models/laws/laws.h). 1 where a platform was fitted together with the law. */
    double sm_load, memory_load;
} fl_step_law;

/* A law of nothing but zeros, sharpness 1, loads 1, errors not known. */
fl_step_law fl_step_law_none(void);
/* Frees the tables, zeroes the law. */
void fl_step_law_free(fl_step_law *law);
/* Make `popularity` for expert_skew and expert_seed: ranks of Zipf's law in a seeded order, cut where an expert would
 * be chosen more than once by a token. FL_MODEL_NO_MEMORY. [assumed: no table of any router's choices is behind it] */
fl_model_status fl_step_law_skew(fl_step_law *law);
/* Experts that n tokens touch on expert rank `rank`, and its share of the tokens' rows times the number of ranks, 1
 * with even routing. Even: E = X (1 - (1 - K/X)^n) / R. */
double fl_step_touched(const fl_step_law *law, uint32_t rank, double tokens, double *load);
/* FL_MODEL_INVALID where a member is negative, not finite, or a table is not ascending; a law that gives no time. */
fl_model_status fl_step_law_check(const fl_step_law *law);

/* Tokens rounded up to the tiles of a matrix product. */
uint32_t fl_step_tiles(uint32_t tokens);

/* A step at clocks. */
typedef struct fl_step_point {
    double time_s;
    double compute, memory; /* shares of time_s in which SMs, and memory, are busy: 0..1 each */
    bool outside;           /* the SM clock lies outside those measured, or only one was measured and this is another */
} fl_step_point;

/* At sm_mhz and mem_ratio = memory clock over the law's (1 where the law does not know it). FL_MODEL_INVALID: a clock
 * that is not positive. A step without sequences takes no time. A continuous function of both clocks. */
fl_model_status fl_step_at(const fl_step_law *law, const fl_step_shape *shape, double sm_mhz, double mem_ratio,
                           fl_step_point *point);

/* Experts alone, as one GPU computes n tokens' rows with E touched experts: M(n, E). `outside` stays false. */
fl_step_point fl_step_experts_row(const fl_step_law *law, double n, double touched, double sm_mhz, double mem_ratio);

/* The time alone; 0 where fl_step_at would refuse. */
double fl_step_time_s(const fl_step_law *law, const fl_step_shape *shape, double sm_mhz, double mem_ratio);

/* ---- sharing a GPU: max-min fair ----
 *
 * Where all demands fit, each is met. Otherwise the capacity is divided evenly, and none gets more than its demand.
 * Integers are in 1/65536; the result does not depend on the order of the demands. */

#define FL_SHARE_ONE 65536u
#define FL_SHARES_MAX 256 /* kernels at once on one GPU */

/* Fills grant[i] <= demand[i], sum(grant) <= capacity (up to the rounding down of each). Equal demands get equal
 * grants. */
void fl_shares_fill(const uint32_t *demand, uint32_t *grant, size_t count, uint32_t capacity);

/* Rates of kernels that share a GPU, in 1/65536 of the speed that each has alone, 1..65536. The function divides the
 * SMs first, then the bandwidth by the demand that the SM shares leave. A kernel runs at the smaller of its two ratios.
 * sms, memory: demands when alone in 1/65536; a demand of 0 never limits. capacity: of the bandwidth, FL_SHARE_ONE =
 * all. interference: see below, 0 = none. */
void fl_shares_rates(const uint32_t *sms, const uint32_t *memory, uint32_t *rate, size_t count, uint32_t capacity,
                     uint32_t interference);

/* Interference: kernels that, with the SMs they have, ask for D > 1 times the bandwidth get 1 / (1 + gamma (D - 1)) of
 * it, because row conflicts and lost cache lines grow with the excess of requests. A faster core clock raises D, so
 * beyond saturation a faster clock costs bandwidth. asked is D; all values are in 1/65536. */
uint32_t fl_shares_capacity(uint64_t asked, uint32_t capacity, uint32_t gamma);

/* ---- training stages: laws of one part (a forward or a backward) over the SM clock ----
 * Clocks are shares of the top clock
 * and powers shares of the board's limit, so that one set of expectations serves any chip.
 *
 * Time: what does not follow the clock, and what does, up to the clock at which the board's power limit holds it:
 *     T(f) = T0 ((1 - share) + share f0 / min(f, wall)), the minimum rounded off
 * Power while it computes: P(f) = min(p law(f), most), law(f) = s + (1 - s) (f / f0) (v(f) / v(f0))^2, the V^2 f law
 * with a voltage that is flat up to a knee and then rises in a line. */

#define FL_STAGE_F0 0.75 /* clock of reference */

typedef struct fl_stage_time {
    double log_t0; /* of T0 in seconds */
    double share, wall;
    /* What measured clocks say beyond the law: smoothed residuals of the logarithm, at count clocks. */
    double *clock, *weight; /* owned */
    size_t count;
} fl_stage_time;

typedef struct fl_stage_power {
    double s, knee, rise; /* v(f) = 1 + rise max(f - knee, 0) */
} fl_stage_power;

double fl_stage_time_at(const fl_stage_time *t, double clock);   /* seconds, with what measured clocks say */
double fl_stage_law_at(const fl_stage_time *t, double clock);    /* seconds, the law alone */
double fl_stage_power_at(const fl_stage_power *p, double clock); /* 1 at FL_STAGE_F0 */

/* Smooth the residuals of `log_s` (measured logarithms of seconds at `clock`, with their spreads sd) after the law, and
 * keep them in *t. Returns 0, or -1: no memory. */
int fl_stage_time_correct(fl_stage_time *t, const double *clock, const double *log_s, const double *sd, size_t count);
void fl_stage_time_free(fl_stage_time *t);

/* ---- kernel time against clocks ----
 *
 * The law: T(f, m) = ((Tc f_ref/f)^p + (Tm m_ref/m)^p)^(1/p) + Tl. With p = INFINITY it is the max
 * of the two terms (power-capping Eq. 3); V100 and PVC measurements prefer p near 9-10, a rounded knee. With a fold
 * line (fl_fold_line) Tm becomes Tm B(f_ref) / B(f), and the memory controller is active as far as bandwidth is used:
 * the share is relative to the bandwidth at the highest clock of the ladder. */

/* core, memory: the two terms at the clocks asked for (>= 0). Overflow-free p-norm; p >= 1. */
double fl_time_norm(double core, double memory, double p);

/* Time at clocks (f, m), in the unit of the terms, which are times at (f_ref, m_ref). All clocks > 0. */
double fl_time_at(double tc, double tm, double tl, double p, double f_ratio /* f_ref/f */,
                  double m_ratio /* m_ref/m */);

/* Share of the time in which the memory controller is active, 0..1. The number of bytes moved does not depend on the
 * clock, so the share is the memory term over the whole time. */
double fl_memory_active(double tc, double tm, double tl, double p, double f_ratio, double m_ratio);

/* Share of the time in which the ALUs work, 0..1: likewise the core term over the whole time. */
double fl_core_active(double tc, double tm, double tl, double p, double f_ratio, double m_ratio);
