/* What the files of harness/live/records share. Other modules include the public header alone. */
#pragma once

#include "harness/live/collector/ring.h"
#include "harness/live/records/records.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The bits of fl_ring_head.wanted for the names that count. */
uint64_t fl_marks_wanted(const fl_marks *m);
/* Makes room for that many GPUs. */
fl_status fl_marks_size(fl_marks *m, uint32_t gpus, fl_diag *d);
/* gpu -1: none that is watched. The name is compared as it is; fl_marks_text shows it with '?' for what is not
 * printable. */
fl_status fl_marks_add(fl_marks *m, const char *name, int64_t time_ns, int32_t gpu, uint32_t program, fl_diag *d);
void fl_marks_clear(fl_marks *m);

void fl_marks_free(fl_marks *m);

/* The kernel classes that a host has seen, found by hash: one entry per distinct name, grid and block. */

typedef struct fl_kind_table {
    fl_kernel_kind *kind; /* their names are those of `name` */
    size_t count, room;
    char **name; /* name_id is the index */
    size_t name_count, name_room;
    fl_intern by_name, by_kind;
} fl_kind_table;

/* *index of that kind, added where it is new and `add` is true (the name is copied), else UINT32_MAX. */
fl_status fl_kind_of(fl_kind_table *k, const char *name, const uint32_t grid[3], const uint32_t block[3], bool add,
                     uint32_t *index, fl_diag *d);
void fl_kind_table_free(fl_kind_table *k);

/* The folder of rings, which programs of any user may write to. Each look covers a bounded number of files, so no
 * user's files can delay the host. A file that is not a believable ring is set aside, and named once. */

enum { FL_RING_FILE_MAX = 256 };

typedef struct fl_ring_folder fl_ring_folder;

typedef struct fl_ring_file {
    char name[FL_RING_FILE_MAX];
    ino_t inode;
} fl_ring_file;

typedef void fl_ring_tell(void *user, const char *line);

/* The folder is made where it is missing (mode 0700). */
fl_status fl_ring_folder_open(fl_ring_folder **out, const char *path, fl_diag *d);
void fl_ring_folder_close(fl_ring_folder *f);                                  /* NULL is allowed */
int fl_ring_folder_fd(const fl_ring_folder *f);                                /* valid until close */
void fl_ring_folder_teller(fl_ring_folder *f, fl_ring_tell *tell, void *user); /* until then nothing is told */

/* A look through the folder: begin, then next until false, for each *.ring that was not set aside. It ends after a
 * bounded number of files; the next look goes on from there. */
void fl_ring_folder_begin(fl_ring_folder *f);
bool fl_ring_folder_next(fl_ring_folder *f, fl_ring_file *file);

void fl_ring_folder_set_aside(fl_ring_folder *f, const fl_ring_file *file, const char *why);
/* One line about the folder, under the same bound. */
void fl_ring_folder_say(fl_ring_folder *f, const char *name, const char *text);

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

/* Opens the rings of new programs, and sets a ring aside that cannot be believed. */
fl_status fl_kernels_find(fl_kernels *k, fl_diag *d);
void fl_kernels_set_aside(fl_kernels *k, const fl_ring_file *file, const char *why);
/* The host's GPU that has this number in the program, or FL_GPU_NOBODYS. */
int32_t fl_kernels_gpu_of(const fl_kernels *k, fl_source *s, uint32_t number);

/* The guard. A program that cuts the file of its ring short would end the host by SIGBUS at its next look, so all
 * reading of rings runs in fl_ring_guard. Only one thread at a time may use it. */

/* Runs work(user). False: work met memory whose file is gone, and was left at that point. While it reads a ring, work
 * must hold nothing that it would have to give back. */
bool fl_ring_guard(void (*work)(void *user), void *user);
