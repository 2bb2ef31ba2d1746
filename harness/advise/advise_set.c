#include "harness/advise/advise_set.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum board { LOCKS, APPLICATION, NEITHER, NOT_KNOWN, AMD, INTEL } board;

/* No GeForce is a Volta: GTX 16xx and later are Turing, lower numbers are Pascal and older. */
#define GEFORCE_VOLTA 1600

/* A chip's letter and its number: K20Xm, M60, P100, GP100, P6000. */
static bool is_old_chip(const char *word) {
    word += toupper((unsigned char)word[0]) == 'G' && toupper((unsigned char)word[1]) == 'P';
    const char letter = (char)toupper((unsigned char)word[0]);
    return (letter == 'K' || letter == 'M' || letter == 'P') && isdigit((unsigned char)word[1]);
}

/* "GTX 1080 Ti", "GTX1080", "GeForce 940M": the number after the words. */
static bool is_old_geforce(const char *word, const char *before) {
    static const char *const series[] = {"GTX", "GTS", "GT", "GeForce"};
    for (size_t i = 0; i < sizeof series / sizeof *series; i++) {
        const size_t n = strlen(series[i]);
        const char *number = !strcasecmp(before, series[i]) ? word : !strncasecmp(word, series[i], n) ? word + n : "";
        if (isdigit((unsigned char)*number))
            return strtol(number, NULL, 10) < GEFORCE_VOLTA;
    }
    return false;
}

static board nvidia(const char *device) {
    char name[128], before[128] = "";
    const bool titan = strcasestr(device, "titan") != NULL;
    (void)snprintf(name, sizeof name, "%s", device);
    if (titan)
        return strcasestr(device, "titan v") || strcasestr(device, "titan rtx") ? LOCKS : APPLICATION;
    char *rest = NULL;
    for (char *word = strtok_r(name, " -_()", &rest); word; word = strtok_r(NULL, " -_()", &rest)) {
        if (is_old_geforce(word, before))
            return NEITHER;
        if (is_old_chip(word))
            return APPLICATION;
        (void)snprintf(before, sizeof before, "%s", word);
    }
    return LOCKS;
}

static board board_of(const char *device) {
    if (!*device)
        return NOT_KNOWN;
    if (strcasestr(device, "amd") || strcasestr(device, "radeon") || strcasestr(device, "instinct"))
        return AMD;
    if (strcasestr(device, "intel") || strcasestr(device, "data center gpu max"))
        return INTEL;
    return nvidia(device);
}

bool fl_advise_other_vendor(const char *measured, const char *device) {
    const board of = board_of(measured), other = board_of(device);
    const bool nvidias = strcasestr(measured, "nvidia") || strcasestr(measured, "geforce");
    if (other == NOT_KNOWN || (of != AMD && of != INTEL && !nvidias))
        return false;
    return nvidias ? other == AMD || other == INTEL : other != of;
}

static void lock(fl_advise_commands *c, fl_setting_clocks at, bool memory) {
    const int n = snprintf(c->set, sizeof c->set, "nvidia-smi -lgc %.0f,%.0f", at.sm_mhz, at.sm_mhz);
    if (memory)
        (void)snprintf(c->set + n, sizeof c->set - (size_t)n, " && nvidia-smi -lmc %.0f,%.0f", at.mem_mhz, at.mem_mhz);
    (void)snprintf(c->undo, sizeof c->undo, "nvidia-smi -rgc%s", memory ? " && nvidia-smi -rmc" : "");
}

fl_advise_commands fl_advise_commands_of(const char *device, fl_setting_clocks at, bool memory) {
    fl_advise_commands c = {.set = ""};
    switch (board_of(device)) {
    case AMD:
        (void)snprintf(c.set, sizeof c.set, "rocm-smi --setperfdeterminism %.0f", at.sm_mhz);
        (void)snprintf(c.undo, sizeof c.undo, "rocm-smi --resetperfdeterminism");
        break;
    case INTEL:
        (void)snprintf(c.set, sizeof c.set, "xpu-smi config -d 0 -t 0 --frequencyrange %.0f,%.0f", at.sm_mhz,
                       at.sm_mhz);
        (void)snprintf(c.undo, sizeof c.undo,
                       "xpu-smi config -d 0 -t 0 --frequencyrange MIN,MAX (as it was: xpu-smi config -d 0)");
        break;
    case APPLICATION:
        (void)snprintf(c.set, sizeof c.set, "nvidia-smi -ac %.0f,%.0f", at.mem_mhz, at.sm_mhz);
        (void)snprintf(c.undo, sizeof c.undo, "nvidia-smi -rac");
        break;
    case NEITHER:
        c.note = "no command sets it: GeForce boards before Volta have neither clock locks nor application clocks";
        break;
    case NOT_KNOWN:
        c.note =
            "for NVIDIA boards from Volta on; before, nvidia-smi -ac MEM,SM, undone by nvidia-smi -rac, but GeForce "
            "boards of that time have neither";
        lock(&c, at, memory);
        break;
    case LOCKS:
        lock(&c, at, memory);
        break;
    }
    return c;
}
