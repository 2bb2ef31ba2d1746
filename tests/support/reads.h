/* Signal rows for sets of signals, for policies that a test makes as it runs. */
#pragma once

#include "policies/policy.h"

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct rx_set {
    uint64_t gpu, host, server;            /* needed: FL_BIT of FL_GPU_..., FL_HOST_..., FL_SERVER_... */
    uint64_t gpu_uses, stand_ins, instead; /* used; those that stand in, each for all of `instead` */
    uint64_t records, steps;               /* 1: activity records are needed, steps of engines used */
} rx_set;

/* Give the policy the rows. They last as long as the program: policies point to them. */
static inline void rx_read(fl_policy *p, rx_set set) {
    enum { SETS = 64, ROWS = 2 * FL_SIGNAL_COUNT };
    static struct {
        rx_set set;
        uint32_t count;
        fl_signal_row row[ROWS];
    } known[SETS];
    static uint32_t sets;
    uint32_t i = 0;
    while (i < sets && memcmp(&known[i].set, &set, sizeof set) != 0)
        i++;
    CU_ASSERT_FATAL(i < SETS);
    if (i == sets) {
        known[sets++].set = set;
        for (uint32_t s = 0; s < FL_SIGNAL_COUNT; s++) {
            const uint32_t host = s - FL_GPU_SIGNAL_COUNT, server = host - FL_HOST_SIGNAL_COUNT;
            const bool of_gpu = s < FL_GPU_SIGNAL_COUNT, of_host = host < FL_HOST_SIGNAL_COUNT,
                       of_server = server < FL_SERVER_SIGNAL_COUNT;
            if ((of_gpu && set.gpu >> s & 1) || (of_host && set.host >> host & 1) ||
                (of_server && set.server >> server & 1) || (s == FL_SIGNAL_KERNEL_RECORDS && set.records))
                known[i].row[known[i].count++] = (fl_signal_row){.signal = s, .how = FL_NEEDED};
            if ((of_gpu && set.gpu_uses >> s & 1) || (s == FL_SIGNAL_ENGINE_STEPS && set.steps))
                known[i].row[known[i].count++] = (fl_signal_row){.signal = s, .how = FL_USED};
            for (uint32_t of = 0; of_gpu && of < FL_GPU_SIGNAL_COUNT; of++)
                if (set.stand_ins >> s & 1 && set.instead >> of & 1)
                    known[i].row[known[i].count++] =
                        (fl_signal_row){.signal = s, .how = FL_INSTEAD_OF, .instead_of = of};
        }
    }
    p->signal = known[i].row;
    p->signal_count = known[i].count;
}
