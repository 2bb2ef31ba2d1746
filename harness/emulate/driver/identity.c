#include "harness/emulate/driver/identity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_TOTAL (UINT64_C(16) << 30) /* if no board states it */
#define FIRST_BUS 0x10u
#define PCI_DEVICE 0x20b010deu
#define PCI_SUBSYSTEM 0x145f10deu

/* The facts that nvidia-smi reported; NULL where the user gave none, or beyond the GPUs that it lists. */
static const fl_smi_gpu *told(const fl_emulate_options *o, uint32_t gpu) {
    return o->smi && gpu < o->smi->count ? &o->smi->gpu[gpu] : NULL;
}

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

void fl_identity_uuid(const fl_emulate_options *o, uint32_t gpu, uint8_t uuid[FL_RING_UUID]) {
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
    nvmlPciInfo_t p = {.pciDeviceId = PCI_DEVICE, .pciSubSystemId = PCI_SUBSYSTEM};
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
    return g && !isnan(g->memory_mib) ? (uint64_t)g->memory_mib << 20 : MEMORY_TOTAL;
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
