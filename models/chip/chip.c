#include "models/chip/chip.h"
#include "models/laws/time.h"

#include <math.h>

static double line_at(const double *x, const double *y, uint32_t n, double at) {
    if (n == 0 || at <= x[0])
        return n ? y[0] : 0;
    for (uint32_t i = 1; i < n; i++)
        if (at <= x[i])
            return y[i - 1] + (y[i] - y[i - 1]) * ((at - x[i - 1]) / (x[i] - x[i - 1]));
    return y[n - 1];
}

double fl_chip_volt(const fl_chip *chip, double sm_mhz, double mem_mhz) {
    return fmax(line_at(chip->knot_mhz, chip->volt, chip->knots, sm_mhz),
                line_at(chip->mem_mhz, chip->volt_floor, chip->mems, mem_mhz));
}

double fl_chip_b0(const fl_chip *chip, double mem_mhz) {
    return line_at(chip->mem_mhz, chip->b0_w, chip->mems, mem_mhz);
}

double fl_chip_memory_ratio(const fl_chip *chip, double sm_mhz, double mem_mhz) {
    const double dram = chip->mem_ref / mem_mhz;
    if (!(chip->link_mhz > 0))
        return dram;
    const double q = chip->link_sharp;
    return fl_time_norm(dram, pow(chip->link_mhz / sm_mhz, chip->link_slope), q) /
           fl_time_norm(1, pow(chip->link_mhz / chip->sm_ref, chip->link_slope), q);
}

double fl_chip_time(const fl_chip *chip, const fl_chip_load *load, double sm_mhz, double mem_mhz) {
    return fl_time_norm(load->tc * chip->sm_ref / sm_mhz, load->tm * fl_chip_memory_ratio(chip, sm_mhz, mem_mhz),
                        chip->sharpness) +
           load->tl;
}

double fl_chip_power(const fl_chip *chip, const fl_chip_load *load, double sm_mhz, double mem_mhz, double time_s) {
    const double v = fl_chip_volt(chip, sm_mhz, mem_mhz), ghz = sm_mhz / 1000, m = mem_mhz / chip->mem_ref;
    const double rate = fl_chip_time(chip, load, chip->sm_ref, chip->mem_ref) / time_s;
    const double core = chip->stall + (1 - chip->stall) * rate * chip->sm_ref / sm_mhz;
    const double memory = chip->stall_memory + (1 - chip->stall_memory) * rate / m;
    return load->alpha * chip->a_w * v * v * ghz * core + load->beta * chip->b_w * m * memory +
           fl_chip_b0(chip, mem_mhz) + chip->c_w * v + chip->a0_w * v * v * ghz;
}

double fl_voltage_floor_mhz(const double *sm_mhz, const double *volt, size_t clocks, double tolerance) {
    double mhz = NAN;
    for (size_t i = 0; i < clocks && volt[i] <= 1 + tolerance; i++)
        mhz = sm_mhz[i];
    return mhz;
}
