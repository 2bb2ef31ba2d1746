/* What is told of scenes in plain words: their clocks, and what a result on them stands on. */
#pragma once

#include "harness/input/scene/scene.h"

/* "1200 MHz", or "1200 MHz, memory 810 MHz" where the device has several memory clocks; into buf. Returns buf. */
char *fl_clocks_text(const fl_device *dev, double sm_mhz, double mem_mhz, char *buf, size_t size);

/* Whether joules of this scene come from a platform's law of power that nobody measured: it is neither a table of rows
 * nor laws fitted to them. */
bool fl_scene_power_assumed(const fl_scene *s);
/* Whether nobody measured the clocks, but others of the same table: time and power there are interpolated. */
bool fl_scene_interpolated(const fl_scene *s, double sm_mhz, double mem_mhz);
/* Notes on what a result stands on (assumed loads, gaps as host time, ignored controls), one line each, to out. */
void fl_scene_notes(const fl_scenes *scenes, FILE *out);
/* On stderr, each once: what the formats of the traces do not carry. */
void fl_scene_warnings(const fl_scenes *scenes);
