/* What the files of kernel_feed share; no others include it. */
#pragma once

#include "harness/live/collector/ring.h"
#include "harness/live/records/counts.h"
#include "harness/live/records/kind_table.h"
#include "harness/live/records/marks.h"
#include "harness/live/records/ring_folder.h"

#include <sys/types.h>

/* What one call takes at most, whoever writes how much. Programs of any user are behind the rings, and a host that
 * looks at one of them for too long is late for the GPUs. */
enum {
    FL_RINGS_MAX = 1024, /* and half of the files that this process may have open: each is one */
    /* A record costs one, and one more for each 64 bytes of its name; a marker one. Each ring gets its share. */
    FL_COST_AT_ONCE = 1 << 19,
    FL_COST_OF_ONE = 4096 /* at least */
};
#define FL_LOST_AT_ONCE (UINT64_C(1) << 36) /* no program drops as many between two calls */
#define FL_TIME_MAX_NS (INT64_MAX / 4)      /* 73 years of uptime */

enum { FL_GPU_UNKNOWN = -2 /* not asked yet */, FL_GPU_NOBODYS = -1 };

typedef struct fl_source { /* one program */
    fl_ring ring;
    fl_ring_file file;
    uid_t owner;
    pid_t pid;
    uint64_t stamp;
    uint32_t program;             /* its number, in the order in which they were seen */
    int32_t gpu[FL_RING_DEVICES]; /* of the program's numbers those of the host */
    uint64_t lost, marks_lost;    /* of it, told already */
    uint32_t kinds;               /* that it brought */
    int32_t last;                 /* the host's GPU that it last used, -1 = none yet */
    bool over;                    /* ended, killed or set aside: closed; the next program takes its place */
} fl_source;

struct fl_kernels {
    fl_ring_folder *folder;
    fl_source *source;
    size_t source_count, source_room;
    size_t rings_max;
    fl_kind_table kinds;
    fl_kernel_record *record;
    size_t record_count, record_room, program_room;
    uint32_t *program;  /* of each record */
    uint64_t lost;      /* found by the take under way */
    uint64_t *finished; /* per GPU */
    size_t finished_count, finished_room;
    fl_kernels_counts counts;
    fl_kernels_position *position; /* may be NULL */
    void *user;
    bool told_kinds, told_rings;
    fl_marks marks;
    bool all_marks;
    uint64_t shown; /* iterations that the last take had */
    int wake;       /* the FIFO, -1 = nothing wakes */
    int64_t origin_ns;
};

typedef struct fl_emptying {
    fl_kernels *k;
    fl_source *s;
    int64_t origin_ns;
    uint32_t gpus;
    uint64_t share; /* of the cost of this call */
    bool over;      /* the program has ended in whatever way */
    bool ended;     /* in order */
    bool emptied;
    const char *why; /* it is set aside; NULL = it is not */
    fl_status status;
    fl_diag *d;
} fl_emptying;

/* kernel_programs.c: opens the rings of programs that are new; sets one aside that is not believed. */
fl_status fl_kernels_find(fl_kernels *k, fl_diag *d);
void fl_kernels_set_aside(fl_kernels *k, const fl_ring_file *file, const char *why);
/* The host's GPU that has this number in the program, or FL_GPU_NOBODYS. */
int32_t fl_kernels_gpu_of(const fl_kernels *k, fl_source *s, uint32_t number);

/* kernel_marks.c: takes the markers of one ring; runs in fl_ring_guard. */
void fl_kernels_empty_marks(fl_emptying *e);
