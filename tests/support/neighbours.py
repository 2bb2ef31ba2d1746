#!/usr/bin/env python3
"""Programs made against a policy that tells kernels of a kind apart by what runs before them: in the last two parts of each,
the kernel K runs behind a neighbour that it never had before, first as long as ever, then for most of the time with less than
a third of its length and bound by the cores as before. Each obeys the facts that policies/tightrope.md rests on, with kinds
that are not alike.
  neighbours.py FOLDER [SEED]    writes 24 programs to neighbours.programs.csv there, and k.kinds.csv (seed 7)
"""
import random
import sys

PROGRAMS = 24
KINDS = """# foldline-kinds 1
# source: made up
name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz
K,1,0.05,0,9,1,0.3,1,1500,1000
P1,0.3,1,0,9,0.45,0.9,1,1500,1000
P2,0.3,1,0,9,0.45,0.9,1,1500,1000
*,0,1,0.1,inf,0.1,0.6,0,1500,1000
"""
HEAD = """# foldline-programs 1
# source: made up
# sm_mhz: 1500
# mem_mhz: 1000
# kinds: k.kinds.csv
program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv,stream,grid_x,block_x,cycles
"""


def parts(draw):
    part_s = draw.choice([2.1, 3.1, 5.3, 7.7])
    for _ in range(draw.choice([8, 12, 16, 24])):
        yield part_s, "P2", 1, draw.choice([1000, 400, 700])
    yield draw.choice([2, 4, 8, 15]), "P1", 1, 1000
    yield draw.choice([60, 120]), "P1", 6, 300


def main(folder, seed=7):
    draw = random.Random(int(seed))
    with open(folder + "/k.kinds.csv", "w") as f:
        f.write(KINDS)
    with open(folder + "/neighbours.programs.csv", "w") as f:
        f.write(HEAD)
        for program in range(PROGRAMS):
            for number, (part_s, neighbour, count, time_us) in enumerate(parts(draw), 1):
                for kernel, times, us in ((neighbour, 1, 2000), ("K", count, time_us)):
                    f.write(f"p{program:02},{number},{part_s},{kernel},{times},{us},0.02,20,0.1,0,256,256,1\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
