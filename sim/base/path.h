/* Ways of advancing. All give the same bits, so a run takes whichever is fastest where it applies; tests force one of
 * them, and one that does not apply to a workload gives way to the plain one there (of several streams or launches that
 * is the way of events). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FL_PATHS(X)                                                                                                    \
    X(AUTO, auto, "whichever is fastest")                                                                              \
    X(PLAIN, plain, "a lone stream op by op in one loop: what all others mean")                                        \
    X(VECTOR, vector, "several ops at a time in the processor's vector registers")                                     \
    X(PREFIX, prefix, "a lone stream by sums over its ops, made once per clock")                                       \
    X(EVENTS, events, "any streams of an island from event to event")                                                  \
    X(LAUNCHES, launches, "one stream with its launches as a recurrence")

#define FL_ROW_PATH_ID(id, name, meaning) FL_PATH_##id,
typedef enum fl_path { FL_PATHS(FL_ROW_PATH_ID) FL_PATH_COUNT } fl_path;
extern const char *const fl_path_names[FL_PATH_COUNT];

/* Forces a path on every node of this process that is opened afterwards and does not ask for one itself. To be called
 * before any thread starts. */
void fl_path_force(fl_path path);
fl_path fl_path_forced(void); /* FL_PATH_AUTO where nobody forced one */

/* Whether a path may be taken where `path` is asked for. */
static inline bool fl_path_may(fl_path path, fl_path taken) { return path == FL_PATH_AUTO || path == taken; }

/* How often each path was taken, by all nodes of this process that have been closed: a stretch of work between two
 * boundaries counts once for each path that carried a part of it. Thread-safe. */
void fl_path_count(const uint64_t taken[FL_PATH_COUNT]);
uint64_t fl_path_taken(fl_path path);
