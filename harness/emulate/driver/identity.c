/* What a simulated board is: its family, names, numbers, its place on the bus. */
#include "harness/emulate/driver/inside.h"

#include "harness/emulate/client/abi.h"
#include "harness/emulate/client/client.h"
#include "harness/emulate/driver/driver.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "harness/live/collector/ring.h"
#include "sim/gpu/gpu.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUS 0x10u
#define NVIDIA 0x10deu
#define PCI_SUBSYSTEM 0x145f10deu /* if no board states it */
#define MIB (UINT64_C(1) << 20)

/* The facts that nvidia-smi reported; NULL where the user gave none, or beyond the GPUs that it lists. */
static const fl_smi_gpu *told(const fl_emulate_options *o, uint32_t gpu) {
    return o->smi && gpu < o->smi->count ? &o->smi->gpu[gpu] : NULL;
}

/* ---- families ---- */

/* Boards by a part of their names, the longer parts first. Device ids: the PCI ID repository (pci-ids.ucw.cz). Memory:
 * what nvidia-smi shows as total. The first row answers for a board whose name is not here. */
static const struct {
    const char *word;
    fl_family is;
} families[] = {
    {"", {NVML_ARCH_AMPERE, 8, 0, 0x20b0, 16384}},
    {"K20Xm", {NVML_ARCH_KEPLER, 3, 5, 0x1021, 5760}},
    {"TITAN X", {NVML_ARCH_MAXWELL, 5, 2, 0x17c2, 12288}},
    {"GTX 1080 Ti", {NVML_ARCH_PASCAL, 6, 1, 0x1b06, 11264}},
    {"V100", {NVML_ARCH_VOLTA, 7, 0, 0x1db1, 16384}},
    {"T4", {NVML_ARCH_TURING, 7, 5, 0x1eb8, 15360}},
    {"A100-PCIE-80", {NVML_ARCH_AMPERE, 8, 0, 0x20b5, 81920}},
    {"A100-PCIE", {NVML_ARCH_AMPERE, 8, 0, 0x20f1, 40960}},
    {"A100-SXM4-40", {NVML_ARCH_AMPERE, 8, 0, 0x20b0, 40960}},
    {"A100", {NVML_ARCH_AMPERE, 8, 0, 0x20b2, 81920}},
    {"A30", {NVML_ARCH_AMPERE, 8, 0, 0x20b7, 24576}},
    {"A40", {NVML_ARCH_AMPERE, 8, 6, 0x2235, 46068}},
    {"A10G", {NVML_ARCH_AMPERE, 8, 6, 0x2237, 23028}},
    {"A10", {NVML_ARCH_AMPERE, 8, 6, 0x2236, 23028}},
    {"RTX 3090", {NVML_ARCH_AMPERE, 8, 6, 0x2204, 24576}},
    {"RTX 3080 Ti", {NVML_ARCH_AMPERE, 8, 6, 0x2208, 12288}},
    {"Orin", {NVML_ARCH_AMPERE, 8, 7, 0, 65536}},
    {"RTX 4090", {NVML_ARCH_ADA, 8, 9, 0x2684, 24564}},
    {"RTX 4070 Laptop", {NVML_ARCH_ADA, 8, 9, 0x2820, 8188}},
    {"RTX 6000 Ada", {NVML_ARCH_ADA, 8, 9, 0x26b1, 49140}},
    {"L40S", {NVML_ARCH_ADA, 8, 9, 0x26b9, 46068}},
    {"L4", {NVML_ARCH_ADA, 8, 9, 0x27b8, 23034}},
    {"H100 NVL", {NVML_ARCH_HOPPER, 9, 0, 0x2321, 95830}},
    {"H100 PCIe", {NVML_ARCH_HOPPER, 9, 0, 0x2331, 81559}},
    {"H100", {NVML_ARCH_HOPPER, 9, 0, 0x2330, 81559}},
    {"H200", {NVML_ARCH_HOPPER, 9, 0, 0x2335, 143771}},
    {"GB200", {NVML_ARCH_BLACKWELL, 10, 0, 0x2941, 189471}},
    {"B200", {NVML_ARCH_BLACKWELL, 10, 0, 0x2901, 183359}},
    {"B300", {NVML_ARCH_BLACKWELL, 10, 3, 0x3182, 275040}},
    {"RTX 5090", {NVML_ARCH_BLACKWELL, 12, 0, 0x2b85, 32607}},
    {"RTX PRO 6000", {NVML_ARCH_BLACKWELL, 12, 0, 0x2bb4, 97887}},
};

/* The architectures as nvidia-smi names them, each with the compute capability of most of its boards. */
static const struct {
    const char *name;
    uint32_t architecture, major, minor;
} architectures[] = {
    {"Kepler", NVML_ARCH_KEPLER, 3, 5},        {"Maxwell", NVML_ARCH_MAXWELL, 5, 2},
    {"Pascal", NVML_ARCH_PASCAL, 6, 1},        {"Volta", NVML_ARCH_VOLTA, 7, 0},
    {"Turing", NVML_ARCH_TURING, 7, 5},        {"Ampere", NVML_ARCH_AMPERE, 8, 6},
    {"Ada Lovelace", NVML_ARCH_ADA, 8, 9},     {"Hopper", NVML_ARCH_HOPPER, 9, 0},
    {"Blackwell", NVML_ARCH_BLACKWELL, 12, 0},
};

/* Return true if the word stands in the name, neither within a longer word nor before a further digit or letter: an L40
 * is no L4, a T400 no T4. */
static bool has_word(const char *name, const char *word) {
    for (const char *at = name; (at = strcasestr(at, word)); at++)
        if ((at == name || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[strlen(word)]))
            return true;
    return false;
}

fl_family fl_identity_family(const fl_emulate_options *o, uint32_t gpu) {
    const fl_smi_gpu *g = told(o, gpu);
    const fl_node_spec *node = &o->scene->platform.node;
    const char *name = g ? g->name : node->device[node->gpu[gpu]].name;
    fl_family f = families[0].is;
    bool known = false;
    for (size_t i = 1; i < sizeof families / sizeof *families && !known; i++) {
        known = has_word(name, families[i].word);
        if (known)
            f = families[i].is;
    }
    for (size_t i = 0; g && i < sizeof architectures / sizeof *architectures; i++)
        if (!strcasecmp(g->architecture, architectures[i].name) && f.architecture != architectures[i].architecture)
            f = (fl_family){architectures[i].architecture, architectures[i].major, architectures[i].minor,
                            families[0].is.pci_device, families[0].is.memory_mib};
    return f;
}

/* ---- the identity of a GPU ---- */

/* "GPU-0a1b2c3d-..." */
static bool parse_uuid(const char *text, uint8_t uuid[FL_RING_UUID]) {
    size_t digits = 0;
    if (strncmp(text, "GPU-", 4) != 0)
        return false;
    for (text += 4; *text; text++) {
        const char *hex = "0123456789abcdef", *at = *text == '-' ? NULL : strchr(hex, *text | 0x20);
        if (*text == '-')
            continue;
        if (!at || digits >= (size_t)2 * FL_RING_UUID)
            return false;
        uuid[digits / 2] = (uint8_t)((digits % 2 ? uuid[digits / 2] : 0) << 4 | (at - hex));
        digits++;
    }
    return digits == (size_t)2 * FL_RING_UUID;
}

void fl_identity_uuid(const fl_emulate_options *o, uint32_t gpu, uint8_t *uuid) {
    const fl_smi_gpu *g = told(o, gpu);
    const uint64_t seed = o->scene->facts.seed;
    const uint8_t own[FL_RING_UUID] = {0xf0,
                                       0x1d,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0x40,
                                       0,
                                       0x80,
                                       0,
                                       (uint8_t)(seed >> 8),
                                       (uint8_t)seed,
                                       (uint8_t)(gpu >> 24),
                                       (uint8_t)(gpu >> 16),
                                       (uint8_t)(gpu >> 8),
                                       (uint8_t)gpu};
    if (!g || !parse_uuid(g->uuid, uuid))
        memcpy(uuid, own, sizeof own);
}

static void place(const fl_emulate_options *o, uint32_t gpu, unsigned int *domain, unsigned int *bus,
                  unsigned int *device) {
    const fl_smi_gpu *g = told(o, gpu);
    if (g && sscanf(g->bus_id, "%x:%x:%x", domain, bus, device) == 3 && *domain <= 0xffff && *bus <= 0xff &&
        *device <= 0x1f)
        return;
    *domain = (FIRST_BUS + gpu) >> 8;
    *bus = (FIRST_BUS + gpu) & 0xff;
    *device = 0;
}

nvmlPciInfo_t fl_identity_pci(const fl_emulate_options *o, uint32_t gpu) {
    const fl_smi_gpu *g = told(o, gpu);
    nvmlPciInfo_t p = {.pciDeviceId = fl_identity_family(o, gpu).pci_device << 16 | NVIDIA,
                       .pciSubSystemId = PCI_SUBSYSTEM};
    place(o, gpu, &p.domain, &p.bus, &p.device);
    if (g && g->device_id[0])
        p.pciDeviceId = (unsigned int)strtoul(g->device_id, NULL, 16);
    if (g && g->subsystem_id[0])
        p.pciSubSystemId = (unsigned int)strtoul(g->subsystem_id, NULL, 16);
    snprintf(p.busIdLegacy, sizeof p.busIdLegacy, "%04X:%02X:%02X.0", p.domain & 0xffff, p.bus & 0xff, p.device & 0x1f);
    snprintf(p.busId, sizeof p.busId, "%08X:%02X:%02X.0", p.domain, p.bus & 0xff, p.device & 0x1f);
    return p;
}

uint64_t fl_identity_memory(const fl_emulate_options *o, uint32_t gpu) {
    const fl_smi_gpu *g = told(o, gpu);
    return g && !isnan(g->memory_mib) ? (uint64_t)g->memory_mib * MIB : fl_identity_family(o, gpu).memory_mib * MIB;
}

void fl_identity_text(const fl_emulate_options *o, uint32_t gpu, fl_ask_text what, char *out, size_t size) {
    const fl_smi_gpu *g = told(o, gpu);
    const fl_node_spec *node = &o->scene->platform.node;
    uint8_t uuid[FL_RING_UUID];
    switch (what) {
    case FL_TEXT_NAME:
        snprintf(out, size, "%s", g ? g->name : node->device[node->gpu[gpu]].name);
        break;
    case FL_TEXT_UUID:
        fl_identity_uuid(o, gpu, uuid);
        fl_ring_uuid_text(uuid, out);
        break;
    case FL_TEXT_SERIAL:
        if (g)
            snprintf(out, size, "%s", g->serial);
        else
            snprintf(out, size, "%013u", gpu + 1);
        break;
    case FL_TEXT_PCI:
        snprintf(out, size, "%s", fl_identity_pci(o, gpu).busId);
        break;
    case FL_TEXT_DRIVER:
        snprintf(out, size, "%s", o->driver.text);
        break;
    case FL_TEXT_LIBRARY:
        snprintf(out, size, "%u.%s", o->driver.cuda / 1000, o->driver.text);
        break;
    case FL_TEXT_VBIOS:
        snprintf(out, size, "%s", g && g->vbios[0] ? g->vbios : "00.00.00.00.01");
        break;
    case FL_TEXT_CUDA:
        snprintf(out, size, "%u", o->driver.cuda);
        break;
    }
}
