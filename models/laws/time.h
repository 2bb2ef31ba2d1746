/* Kernel time against clocks: T(f, m) = ((Tc f_ref/f)^p + (Tm m_ref/m)^p)^(1/p) + Tl. With p = INFINITY it is the max
 * of the two terms (power-capping Eq. 3); V100 and PVC measurements prefer p near 9-10, a rounded knee. */
#pragma once

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
