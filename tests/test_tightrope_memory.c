/* tightrope: the memory clock as a further control. It holds its bound at every instant, whatever a lower memory clock
 * does to the program, and saves more where that does little. */
#include "policies/tightrope_curve.h"
#include "policies/tightrope_gpu.h"
#include "tests/support/tightrope_world.h"

static double between(fl_random *random, double least, double most) {
    return least + (most - least) * fl_random_unit(random);
}

/* Constants were fixed before any result was seen. A quarter of the worlds turn, in the midst of whatever runs, to
 * kernels that wait for the memory all the time. */
static void test_bound(void) {
    const char *trials = getenv("FL_TRIALS");
    const uint64_t count = trials ? strtoull(trials, NULL, 10) : 60;
    static const double bounds[] = {0.02, 0.05, 0.1};
    double lowered_s = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        fl_random random = fl_random_seed(seed, 41);
        world w = {.seed = seed,
                   .bound = bounds[seed % 3],
                   .arrival_s = 0.02,
                   .memory = true,
                   .records = true,
                   .free_records = true};
        world_law(&w, between(&random, 0, 1), 4, 60, 190);
        w.memory_q = seed % 2 ? between(&random, 0, 0.002) : between(&random, 0, 0.5);
        w.memory_w = between(&random, 5, 40);
        w.unit_s = between(&random, 0.002, 0.03);
        w.jitter = between(&random, 0, 0.05);
        w.lag_s = seed % 4 ? 0 : 0.8 * fl_random_unit(&random);
        w.length_s = between(&random, 80, 200);
        if (seed % 4 == 1)
            w.turn_s = between(&random, 0.3, 0.8) * w.length_s, w.turned_unit_s = between(&random, 0.05, 1);
        world_play(&w);
        lowered_s += w.lowered_s;
        FL_CHECK(w.worst <= w.bound, "seed %llu: elapsed time passed the work by %.6f after %g s, bound %g",
                 (unsigned long long)seed, w.worst, w.worst_at_s, w.bound);
    }
    FL_CHECK(lowered_s > 5 * (double)count, "of %llu worlds %.1f s at a lower memory clock", (unsigned long long)count,
             lowered_s);
}

/* Three quarters of what the best pair of static clocks saves, and more than without that control. */
static void test_saving(void) {
    for (uint64_t seed = 1; seed <= 6; seed++) {
        world w = {.seed = seed, .bound = 0.05, .arrival_s = 0.02, .memory = true, .records = true, .unit_s = 0.005};
        world_law(&w, 0.05, 4, 60, 190);
        w.memory_q = 0.0002 * (double)seed;
        w.memory_w = 40;
        w.length_s = 300;
        world fixed = w;
        fixed.memory = false;
        world_play(&w);
        world_play(&fixed);
        double best_j = INFINITY;
        for (int m = 0; m < WORLD_MEMORIES; m++)
            for (int i = 0; i < WORLD_CLOCKS; i++)
                if (world_slowdown(&w, i, m) <= 1 + w.bound)
                    best_j = fmin(best_j, w.work_s * world_slowdown(&w, i, m) * world_power_w(&w, i, m));
        const double top_j = w.work_s * w.power_w[WORLD_CLOCKS - 1];
        FL_CHECK(w.energy_j < fixed.energy_j, "seed %llu: %.1f J, at one memory clock %.1f J", (unsigned long long)seed,
                 w.energy_j, fixed.energy_j);
        FL_CHECK(top_j - w.energy_j > 0.75 * (top_j - best_j), "seed %llu: %.1f J saved, the best pair saves %.1f J",
                 (unsigned long long)seed, top_j - w.energy_j, top_j - best_j);
    }
}

/* Clocks too close to the one before are left out, and the driver's own is the highest. */
static void test_clocks(void) {
    static const int32_t sm[] = {1000, 1100}, mem[] = {405, 810, 5001, 9251, 9501};
    fl_gpu_facts f = {.sm = {sm, 2}, .mem = {mem, 5}, .default_mem_mhz = 9501};
    static const double mhz[] = {9501, 5001, 810, 405};
    CU_ASSERT(fl_tightrope_memories(&f) == 4);
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT_DOUBLE_EQUAL(fl_tightrope_memory_mhz(&f, i), mhz[i], 0);
    f.default_mem_mhz = 5001;
    CU_ASSERT(fl_tightrope_memories(&f) == 3 && fl_tightrope_memory_mhz(&f, 1) == 810);
    f.mem.count = 0, f.default_mem_mhz = 0;
    CU_ASSERT(fl_tightrope_memories(&f) == 1);
    f.mem = (fl_ladder){mem, 5};
    int32_t many[300];
    for (int i = 0; i < 300; i++)
        many[i] = 500 + i;
    f.sm = (fl_ladder){many, 300}; /* two blocks of them have no room */
    CU_ASSERT(fl_tightrope_memories(&f) == 1);
}

/* Four clocks of the cores, two of the memory, of half the clock; only the highest was tried. A probe costs 0.2 s at
 * half the clock at worst: 0.2 s (1 - 1.05 / 2) = 0.095 s, and the tolerance is none. */
static void test_probe(void) {
    static const int32_t mhz[] = {1000, 1100, 1200, 1300};
    const fl_tightrope_chip chip = {.mhz = mhz,
                                    .count = 8,
                                    .memories = 2,
                                    .memory = {1, 2},
                                    .memory_w = 30,
                                    .sharpness = 4,
                                    .fixed_share = 0.4,
                                    .roughness = 0.025,
                                    .smooth = 0.2,
                                    .reach = 0.15};
    fl_tightrope_seen seen[8] = {[4] = {1.2, 120, 0, 0, 1.2, 1, 1, 0},
                                 [5] = {1.1, 150, 0, 0, 1.1, 1, 1, 0},
                                 [6] = {1.03, 170, 0, 0, 1.03, 1, 1, 0},
                                 [7] = {1, 200, 0, 0, 1, 1, 1, 0}};
    fl_tightrope_wish wish = {.allowed = 1.04,
                              .slack_s = 0.0951,
                              .bound = 0.05,
                              .window_s = 0.1,
                              .first_window_s = 0.1,
                              .probe_s = 0.2,
                              .elapsed_s = 20,
                              .look = 1,
                              .now = 6};
    fl_tightrope_choice c = fl_tightrope_choose(&chip, seen, &wish);
    FL_CHECK(c.probed && c.looked && c.clock == 2, "affordable: clock %u", c.clock);
    wish.slack_s = 0.0949;
    c = fl_tightrope_choose(&chip, seen, &wish);
    FL_CHECK(!c.probed && c.clock > 3 && fabs(c.wanted_s - 0.095) < 1e-9, "saves %.6f s for it", c.wanted_s);
    wish.slack_s = 1, wish.elapsed_s = 18.9; /* a tenth of the bound pays 0.0945 s */
    c = fl_tightrope_choose(&chip, seen, &wish);
    FL_CHECK(!c.probed && c.wanted_s == 0, "too early");
    wish.elapsed_s = 20, wish.probe_s = 0;
    FL_CHECK(!fl_tightrope_choose(&chip, seen, &wish).probed, "it may not");
    /* It was tried, and is fast enough and saves more: no untried pair below it is taken for granted. */
    seen[2] = (fl_tightrope_seen){1.031, 140, 0, 0, 1.031, 1, 1, 0};
    wish.look = 0;
    c = fl_tightrope_choose(&chip, seen, &wish);
    FL_CHECK(c.clock < 4, "clock %u", c.clock);
    wish.slack_s = 0; /* at worst it loses nothing by itself, but nobody may see more for 0.1 s */
    wish.blind_s = 0.1;
    c = fl_tightrope_choose(&chip, seen, &wish);
    FL_CHECK(c.clock > 3, "without slack the memory goes up first: clock %u", c.clock);
}

FL_SUITE("tightrope_memory", {"the bound holds at every instant", test_bound}, {"it saves more", test_saving},
         {"which clocks", test_clocks}, {"probes", test_probe})
