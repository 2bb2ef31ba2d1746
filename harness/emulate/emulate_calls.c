#include "harness/emulate/emulate_calls.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static uint32_t bus_of(uint32_t gpu) { return 0x10 + gpu; }

static void text_of(const fl_emulator *e, uint32_t gpu, fl_ask_text what, char *out, size_t size) {
    const unsigned long long seed = e->o->scene->facts.seed & 0xffff;
    switch (what) {
    case FL_TEXT_NAME:
        snprintf(out, size, "%s", fl_calls_device(e, gpu)->name);
        break;
    case FL_TEXT_UUID:
        snprintf(out, size, "GPU-f01d0000-0000-4000-8000-%04llx%08x", seed, gpu);
        break;
    case FL_TEXT_SERIAL:
        snprintf(out, size, "%013u", gpu + 1);
        break;
    case FL_TEXT_PCI:
        snprintf(out, size, "%08X:%02X:%02X.0", bus_of(gpu) >> 8, bus_of(gpu) & 0xff, 0u);
        break;
    case FL_TEXT_DRIVER:
        snprintf(out, size, "550.54.15");
        break;
    case FL_TEXT_LIBRARY:
        snprintf(out, size, "12.550.54.15");
        break;
    case FL_TEXT_VBIOS:
        snprintf(out, size, "00.00.00.00.01");
        break;
    }
}

/* Domains are written with four digits or with eight. */
static const char *short_pci(const char *id) { return strlen(id) > 12 && id[8] == ':' ? id + 4 : id; }

static int32_t find(const fl_emulator *e, const fl_ask *q, uint32_t *index) {
    for (uint32_t i = 0; i < e->gpu_count; i++) {
        char text[96];
        text_of(e, i, (fl_ask_text)q->a, text, sizeof text);
        const bool pci = q->a == FL_TEXT_PCI;
        if (!strcasecmp(pci ? short_pci(text) : text, pci ? short_pci(q->text) : q->text)) {
            *index = i;
            return NVML_SUCCESS;
        }
    }
    return NVML_NOT_FOUND;
}

static nvmlPciInfo_t pci_of(uint32_t gpu) {
    nvmlPciInfo_t p = {
        .domain = bus_of(gpu) >> 8, .bus = bus_of(gpu) & 0xff, .pciDeviceId = 0x20b010de, .pciSubSystemId = 0x145f10de};
    snprintf(p.busIdLegacy, sizeof p.busIdLegacy, "%04X:%02X:00.0", p.domain & 0xffff, p.bus & 0xff);
    snprintf(p.busId, sizeof p.busId, "%08X:%02X:00.0", p.domain, p.bus & 0xff);
    return p;
}

int32_t fl_calls_refused(const fl_emulator *e, const fl_peer *peer, const fl_ask *q) {
    const bool system = q->op == FL_ASK_TEXT && (q->a == FL_TEXT_DRIVER || q->a == FL_TEXT_LIBRARY);
    const bool about_gpu = q->op >= FL_ASK_TEXT && q->op != FL_ASK_NODE && !system;
    if (q->op != FL_ASK_INIT && !peer->inits)
        return NVML_UNINITIALIZED;
    if (about_gpu && q->gpu >= e->gpu_count)
        return NVML_INVALID_ARGUMENT;
    if (q->op == FL_ASK_NUMBER && q->a == FL_NUMBER_LOCK)
        return NVML_SUCCESS;
    for (size_t i = 0; i < e->o->refusal_count; i++) {
        const fl_refusal *r = &e->o->refusal[i];
        const bool there = r->gpu < 0 || (about_gpu && (uint32_t)r->gpu == q->gpu);
        const bool then = e->now_ns >= r->from_ns && e->now_ns < r->until_ns;
        if (there && then && (r->call[0] ? !fnmatch(r->call, q->call, FNM_EXTMATCH) : about_gpu))
            return r->result;
    }
    return about_gpu && fl_node_gpu(e->node, q->gpu)->lost ? NVML_GPU_IS_LOST : NVML_SUCCESS;
}

void fl_calls_answer(fl_emulator *e, fl_peer *peer, const fl_ask *q, fl_answer *out, bool *reading) {
    uint64_t v = 0;
    uint32_t index = 0;
    char text[96] = "";
    nvmlPciInfo_t pci;
    *reading = false;
    out->size = 0;
    out->result = fl_calls_refused(e, peer, q);
    if (out->result)
        return;
    switch ((fl_ask_op)q->op) {
    case FL_ASK_INIT:
        peer->inits = q->a ? 1 : peer->inits + 1;
        break;
    case FL_ASK_SHUTDOWN:
        peer->inits--;
        break;
    case FL_ASK_COUNT:
        fl_calls_reply(out, &e->gpu_count, sizeof e->gpu_count);
        break;
    case FL_ASK_BY_INDEX:
        out->result = q->a < e->gpu_count ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
        fl_calls_reply(out, &q->a, sizeof q->a);
        break;
    case FL_ASK_BY_TEXT:
        out->result = find(e, q, &index);
        fl_calls_reply(out, &index, sizeof index);
        break;
    case FL_ASK_TEXT:
        text_of(e, q->gpu < e->gpu_count ? q->gpu : 0, (fl_ask_text)q->a, text, sizeof text);
        fl_calls_reply(out, text, strlen(text) + 1);
        break;
    case FL_ASK_NUMBER:
        out->result = fl_calls_number(e, q, &v);
        *reading = fl_calls_reads(q);
        fl_calls_reply(out, &v, sizeof v);
        break;
    case FL_ASK_PCI:
        pci = pci_of(q->gpu);
        fl_calls_reply(out, &pci, sizeof pci);
        break;
    case FL_ASK_CLOCKS:
        fl_calls_clocks(fl_calls_device(e, q->gpu), q, out);
        break;
    case FL_ASK_PROCESSES:
        fl_calls_processes(e, q, out);
        break;
    case FL_ASK_SHARES:
        out->result = fl_calls_shares(e, q, out);
        *reading = true;
        break;
    case FL_ASK_SAMPLES:
        out->result = fl_calls_samples(e, q, out);
        *reading = true;
        break;
    case FL_ASK_FIELD:
        fl_calls_field(e, q, out);
        *reading = true;
        break;
    case FL_ASK_PROFILE:
        fl_calls_profile(e, q, out);
        *reading = true;
        break;
    case FL_ASK_NODE:
        fl_calls_read_node(e, q->a != 0, out);
        *reading = true;
        break;
    default:
        out->result = NVML_INVALID_ARGUMENT;
    }
}
