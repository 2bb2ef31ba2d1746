/* NVML as programs are compiled against it: layouts, constants and results, written from the interface's facts. Sizes
 * and offsets are checked in harness/live/vendor/nvml/read.c. */
#pragma once

typedef struct fl_nvml_device *nvmlDevice_t; /* opaque */
typedef int nvmlReturn_t;

enum {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_IN_USE = 19,
    NVML_NO_MEMORY = 20,
    NVML_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_DEPRECATED = 26,
    NVML_UNKNOWN = 999
};
enum { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO };
enum {
    NVML_ARCH_KEPLER = 2,
    NVML_ARCH_MAXWELL,
    NVML_ARCH_PASCAL,
    NVML_ARCH_VOLTA,
    NVML_ARCH_TURING,
    NVML_ARCH_AMPERE,
    NVML_ARCH_ADA,
    NVML_ARCH_HOPPER,
    NVML_ARCH_BLACKWELL
};
enum { /* clock event reasons */
       NVML_REASON_IDLE = 0x1,
       NVML_REASON_POWER = 0x4,
       NVML_REASON_THERMAL = 0x20
};
enum { /* samples */
       NVML_SAMPLE_POWER = 0,
       NVML_SAMPLE_GPU = 1,
       NVML_SAMPLE_MEMORY = 2,
       NVML_SAMPLE_SM_CLOCK = 5,
       NVML_SAMPLE_MEM_CLOCK = 6
};
enum { /* types of values */
       NVML_VALUE_UINT = 1,
       NVML_VALUE_ULL = 3
};
enum { /* fields */
       NVML_FIELD_VIOLATION_POWER = 74,
       NVML_FIELD_VIOLATION_THERMAL = 75,
       NVML_FIELD_TOTAL_ENERGY = 83,
       NVML_FIELD_POWER_AVERAGE = 185,
       NVML_FIELD_POWER_INSTANT = 186,
       NVML_FIELD_LIMIT_MIN = 187,
       NVML_FIELD_LIMIT_MAX = 188,
       NVML_FIELD_LIMIT_DEFAULT = 189,
       NVML_FIELD_LIMIT_CURRENT = 190,
       NVML_FIELD_LIMIT_REQUESTED = 192
};
enum { NVML_SCOPE_GPU, NVML_SCOPE_MODULE, NVML_SCOPE_MEMORY };
enum { /* events */
       NVML_EVENT_PSTATE = 0x4,
       NVML_EVENT_XID = 0x8,
       NVML_EVENT_CLOCK = 0x10
};
#define FL_FAN_PERCENT 30 /* not simulated: fixed */
#define FL_CODER_PERIOD_US 167000
#define NVML_CLOCK_LIMIT_SYMBOLIC 0xffffff00u
#define NVML_CLOCK_LIMIT_TDP 0xffffff01u
#define NVML_CLOCK_LIMIT_UNLIMITED 0xffffff02u

typedef struct nvmlUtilization_t {
    unsigned int gpu, memory;
} nvmlUtilization_t;
typedef struct nvmlMemory_t {
    unsigned long long total, free, used;
} nvmlMemory_t;
typedef struct nvmlMemory_v2_t {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
typedef struct nvmlPciInfo_t {
    char busIdLegacy[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;
typedef struct nvmlPciInfo_v1_t { /* of the unversioned symbol */
    char busId[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    unsigned int reserved[4];
} nvmlPciInfo_v1_t;
typedef struct nvmlProcessInfo_v1_t {
    unsigned int pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;
typedef struct nvmlProcessInfo_t {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;
typedef struct nvmlProcessUtilizationSample_t {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;
typedef union nvmlValue_t {
    double real;
    unsigned int number;
    unsigned long long wide;
} nvmlValue_t;
typedef struct nvmlSample_t {
    unsigned long long timeStamp;
    nvmlValue_t sampleValue;
} nvmlSample_t;
typedef struct nvmlFieldValue_t {
    unsigned int fieldId, scopeId;
    long long timestamp, latencyUsec;
    int valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;
typedef struct nvmlTemperature_t {
    unsigned int version;
    int sensorType, temperature;
} nvmlTemperature_t;
typedef struct nvmlViolationTime_t {
    unsigned long long referenceTime, violationTime;
} nvmlViolationTime_t;
typedef struct nvmlDeviceAddressingMode_v1_t {
    unsigned int version, value;
} nvmlDeviceAddressingMode_v1_t;
typedef struct nvmlPciInfoExt_v1_t {
    unsigned int version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
    char busId[32];
} nvmlPciInfoExt_v1_t;
typedef struct nvmlUUID_v1_t {
    unsigned int version, type; /* 1 text, 2 bytes */
    union {
        char str[41];
        unsigned char bytes[16];
    } value;
} nvmlUUID_v1_t;
typedef struct nvmlSystemDriverBranchInfo_v1_t {
    unsigned int version;
    char branch[80];
} nvmlSystemDriverBranchInfo_v1_t;
typedef struct nvmlEventData_t {
    nvmlDevice_t device;
    unsigned long long eventType, eventData;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
typedef struct nvmlEventData_v1_t { /* of the symbol without a version */
    nvmlDevice_t device;
    unsigned long long eventType, eventData;
} nvmlEventData_v1_t;
typedef struct fl_event_set *nvmlEventSet_t; /* its number */
typedef struct nvmlBAR1Memory_t {
    unsigned long long total, free, used;
} nvmlBAR1Memory_t;
typedef struct nvmlPowerValue_v2_t {
    unsigned int version;
    unsigned int powerScope;
    unsigned int powerValueMw;
} nvmlPowerValue_v2_t;
typedef struct nvmlGpmMetric_t {
    unsigned int metricId;
    nvmlReturn_t nvmlReturn;
    double value;
    struct {
        char *shortName, *longName, *unit;
    } metricInfo;
} nvmlGpmMetric_t;
typedef struct fl_gpm_sample *nvmlGpmSample_t;
typedef struct nvmlGpmMetricsGet_t { /* metrics: as many as numMetrics says; programs' own arrays differ in length */
    unsigned int version, numMetrics;
    nvmlGpmSample_t sample1, sample2;
    nvmlGpmMetric_t metrics[];
} nvmlGpmMetricsGet_t;
typedef struct nvmlGpmSupport_t {
    unsigned int version, isSupportedDevice;
} nvmlGpmSupport_t;
