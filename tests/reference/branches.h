/* The branches of the course that the suite counts, so that it can say which of them its runs reached.
 * X(ID, in words). REF_NEVER: the rules themselves rule them out. */
#pragma once

#include <stdint.h>

#define REF_BRANCHES(X)                                                                                                \
    X(GATE_PASSED, "idle gate passes at once")                                                                         \
    X(GATE_UNTOUCHED, "idle gate of step 1 waits, clocks untouched")                                                   \
    X(GATE_SLOWED, "idle gate sets gear 0 and waits")                                                                  \
    X(WINDOW_REPEATED, "window without a kernel or sample, repeated and pooled")                                       \
    X(LENGTH_UNLIKE, "length: r > 0.18, merged by 0.01")                                                               \
    X(LENGTH_ADDED_01, "length: 4 s more, merged by 0.1")                                                              \
    X(LENGTH_ADDED_08, "length: 4 s more, merged by 0.8")                                                              \
    X(LENGTH_ADDED_DIFFERENCE, "length: 4 s more for |dU| alone")                                                      \
    X(LENGTH_ALIKE, "length: count + 1")                                                                               \
    X(LENGTH_MOST, "length: ends at 20 s")                                                                             \
    X(LENGTH_3, "length: ends at count 3")                                                                             \
    X(LENGTH_1, "length: ends at count 1, D > 10")                                                                     \
    X(BASE_VIOLATION, "database: a violation")                                                                         \
    X(BASE_DOUBLED, "database: third violation, D doubled")                                                            \
    X(BASE_09, "database: violation merged by 0.9")                                                                    \
    X(BASE_07, "database: violation merged by 0.7")                                                                    \
    X(BASE_06, "database: violation merged by 0.6")                                                                    \
    X(BASE_04, "database: violation merged by 0.4")                                                                    \
    X(BASE_NONE, "database: no violation")                                                                             \
    X(BASE_PAUSE, "database: pause of 0.3 D")                                                                          \
    X(BASE_GOES_ON, "database: another window")                                                                        \
    X(BASE_MOST, "database: ends at the fifth")                                                                        \
    X(INDEX_NONE, "index: no matched stream, 0.05")                                                                    \
    X(INDEX_SEVERAL, "index: mean over several streams")                                                               \
    X(INDEX_WITHOUT_GAP, "index: a matched stream without matched gap")                                                \
    X(MEM_NONE, "memory: none, V > 20")                                                                                \
    X(MEM_5001_KEPT, "memory: 5001 accepted")                                                                          \
    X(MEM_5001_REJECTED, "memory: 5001 rejected")                                                                      \
    X(MEM_810_KEPT, "memory: 810 accepted")                                                                            \
    X(MEM_810_LOSS, "memory: 810 rejected for its loss")                                                               \
    X(MEM_810_OBJECTIVE, "memory: 810 rejected for its objective")                                                     \
    X(MEM_SECOND, "memory: second window after loss < 0")                                                              \
    X(START_95, "start: 0.95 N")                                                                                       \
    X(START_65, "start: 0.65 N")                                                                                       \
    X(START_70, "start: 0.7 N")                                                                                        \
    X(START_90, "start: 0.9 N")                                                                                        \
    X(START_V20, "start: the shares of V = 20")                                                                        \
    X(START_CAPPED, "start: at most the gear of the mean clock")                                                       \
    X(REFRESH_2, "refresh: after 2 adjustments")                                                                       \
    X(REFRESH_5, "refresh: after 5 adjustments")                                                                       \
    X(REFRESH_COVER, "refresh: covered or matched < 0.75")                                                             \
    X(REFRESH_STREAMS, "refresh: unmatched streams > 0.1")                                                             \
    X(REFRESH_CHANGE, "refresh: after a phase change")                                                                 \
    X(REFRESH_08, "refresh merged by 0.8")                                                                             \
    X(REFRESH_04, "refresh merged by 0.4, relative")                                                                   \
    X(REFRESH_03, "refresh merged by 0.3, relative")                                                                   \
    X(REFRESH_02, "refresh merged by 0.2, relative")                                                                   \
    X(LOOP_LONGER, "loop: window longer than D")                                                                       \
    X(LOOP_UNMATCHED, "loop: matched < 0.5625, no adjustment")                                                         \
    X(BOUND_01, "bound: less 0.1 points, below 2000 kernels/s")                                                        \
    X(BOUND_03, "bound: less 0.3 points")                                                                              \
    X(GAIN_FIRST, "gain: first call")                                                                                  \
    X(GAIN_15_CLOCK, "gain: compound 1.5 for the measured clock")                                                      \
    X(GAIN_15_SLOPE, "gain: compound 1.5 for the slope")                                                               \
    X(GAIN_175, "gain: compound 1.75")                                                                                 \
    X(GAIN_COMPOUND_FIRST, "gain: compound for the first time")                                                        \
    X(GAIN_COMPOUND_LATER, "gain: compound later")                                                                     \
    X(GAIN_CAP, "gain: compound at most 8")                                                                            \
    X(GAIN_NEAR, "gain: 0.75")                                                                                         \
    X(GAIN_22, "gain: 2.2")                                                                                            \
    X(GAIN_25, "gain: 2.5")                                                                                            \
    X(GAIN_OVER_4, "gain: 4, just over the bound")                                                                     \
    X(GAIN_OVER_25, "gain: 2.5, over by < 0.006")                                                                      \
    X(GAIN_OVER_175, "gain: 1.75, over by < 0.025")                                                                    \
    X(GAIN_ELSE, "gain: Kp")                                                                                           \
    X(SIGN_CHANGED, "controller: change of sign")                                                                      \
    X(KD_ACTS, "controller: Kd acts")                                                                                  \
    X(PUSHED_UP, "controller: over and not above: old + 1")                                                            \
    X(PUSHED_DOWN, "controller: under and not below: old - 1")                                                         \
    X(DEAD_ZONE, "controller: dead zone")                                                                              \
    X(CLAMPED_LOW, "controller: clamped at gear 0")                                                                    \
    X(CLAMPED_HIGH, "controller: clamped at the top")                                                                  \
    X(STOP_5, "stop: best at n >= 5")                                                                                  \
    X(STOP_75, "stop: best at n >= 4 after 75 s of windows")                                                           \
    X(STOP_SAME, "stop: best as next = m")                                                                             \
    X(STOP_NEAR, "stop: best as range <= 3 and rho < 0")                                                               \
    X(BEST_LATEST, "best: the latest")                                                                                 \
    X(BEST_EARLIER, "best: an earlier one")                                                                            \
    X(BEST_HIGHEST, "best breaks the bound: the highest")                                                              \
    X(BEST_WITH_NEXT, "best: next is among the gears, and is the highest")                                             \
    X(STOP_LOW, "stop: last 3 proposals < 0.6 N")                                                                      \
    X(JUDGED_055, "judged by 2, 0.55")                                                                                 \
    X(JUDGED_040, "judged by 2, 0.40")                                                                                 \
    X(JUDGED_030, "judged by 2, 0.30")                                                                                 \
    X(JUDGED_025, "judged by 2, 0.25")                                                                                 \
    X(JUDGED_020, "judged by 2, 0.20")                                                                                 \
    X(JUDGED_3, "judged by 3, 0.20")                                                                                   \
    X(LEFT_OUT_BEST, "judged without the one that disturbs most")                                                      \
    X(LEFT_OUT_OLDEST, "judged without the oldest")                                                                    \
    X(LEFT_OUT_NONE, "judged over all there are")                                                                      \
    X(UNSTABLE_SPREAD, "unstable: mean |rho| > T")                                                                     \
    X(UNSTABLE_MEAN, "unstable: mean rho > 0")                                                                         \
    X(UNSTABLE_LATEST, "unstable: latest rho > 0.05")                                                                  \
    X(UNSTABLE_RANGE, "unstable: range of m > 8")                                                                      \
    X(STABLE, "stable: weighted mean")                                                                                 \
    X(STABLE_QUARTER, "stable: a weight of a quarter")                                                                 \
    X(MONITOR_GOOD, "monitoring: a good window")                                                                       \
    X(MONITOR_BAD, "monitoring: a bad window")                                                                         \
    X(MONITOR_PAUSE, "monitoring: pause")                                                                              \
    X(MONITOR_CHANGE, "monitoring: change")

#define REF_ID_OF(id, words) REF_##id,
enum { REF_BRANCHES(REF_ID_OF) REF_BRANCH_COUNT };

/* "never if C > 3.3 %", and C is at least 4.7 %; at n = 5 the best is taken at once, so that no refresh comes for n = 5
 * and nothing is judged then or later. */
#define REF_NEVER(branch)                                                                                              \
    ((branch) == REF_GAIN_22 || (branch) == REF_REFRESH_5 || (branch) == REF_JUDGED_030 || (branch) == REF_JUDGED_025)

extern const char *const ref_branch_words[REF_BRANCH_COUNT];
