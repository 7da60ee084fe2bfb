/* A stand-in for libnvidia-ml.so.1: one scripted GPU, to drive the real pynvml where there is none.
 *
 * The environment variable NVML_SCRIPT holds entries separated by blanks, each
 *     <function or *>=<nvmlReturn_t>[@<answers>]
 * "nvmlDeviceGetPowerUsage=3" makes that call fail with code 3 every time; with "@2" it answers
 * twice first. "*" stands for every call that takes a device. Built with -DOLD_DRIVER the library
 * lacks what drivers gained later; with -DUNIFIED_MEMORY the GPU has no memory of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UUID "GPU-11111111-2222-3333-4444-555555555555"
#define PART_UUID "MIG-66666666-7777-8888-9999-000000000000"
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7

typedef struct { unsigned int gpu, memory; } utilization_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef union { double real; unsigned int count; unsigned long long large; } value_t;
typedef struct { unsigned int field, scope; long long at, latency; int type, result; value_t value; } field_t;
typedef struct { unsigned int pid; unsigned long long used; unsigned int instance, part; } process_t;

static int gpu, part; /* only their addresses matter: they are the handles */

/* Return whether a script's entry speaks of the function `name`. */
static int is_about(const char *entry, const char *name)
{
    return !strcmp(entry, name) || (!strcmp(entry, "*") && strstr(name, "DeviceGet"));
}

/* Return the scripted code for call number `calls` (from 0) of `name`; 0 to answer. */
static int scripted(const char *name, int calls)
{
    const char *script = getenv("NVML_SCRIPT");
    char entry[128];
    int code, answers, read;

    while (script && sscanf(script, " %127[^= ]=%d%n", entry, &code, &read) == 2) {
        script += read;
        answers = 0;
        if (sscanf(script, "@%d%n", &answers, &read) == 1)
            script += read;
        if (calls >= answers && is_about(entry, name))
            return code;
    }
    return 0;
}

#define ANSWER_OR_FAIL                                 \
    do {                                               \
        static int calls;                              \
        int code = scripted(__func__, calls++);        \
        if (code)                                      \
            return code;                               \
    } while (0)

int nvmlInitWithFlags(unsigned int flags) { (void)flags; ANSWER_OR_FAIL; return 0; }

int nvmlShutdown(void)
{
    ANSWER_OR_FAIL;
    if (getenv("NVML_SHUTDOWN_NOTE"))
        puts("shut down");
    fflush(stdout);
    return 0;
}

const char *nvmlErrorString(int code) { (void)code; return "scripted error"; }

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    ANSWER_OR_FAIL;
    *device = &gpu;
    return index == 0 ? 0 : NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    ANSWER_OR_FAIL;
    *device = strcmp(uuid, PART_UUID) ? &gpu : &part;
    return strcmp(uuid, UUID) && strcmp(uuid, PART_UUID) ? NOT_FOUND : 0;
}

int nvmlDeviceIsMigDeviceHandle(void *device, unsigned int *is_part)
{
    *is_part = device == &part;
    return 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending)
{
    (void)device;
    *current = *pending = getenv("NVML_MIG") != NULL;
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, utilization_t *busy)
{
    ANSWER_OR_FAIL;
    if (device == &part || getenv("NVML_MIG"))
        return NOT_SUPPORTED;
    busy->gpu = getenv("NVML_BUSY") ? (unsigned int)strtoul(getenv("NVML_BUSY"), NULL, 10) : 75;
    busy->memory = 50;
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory)
{
    (void)device;
    ANSWER_OR_FAIL;
#ifdef UNIFIED_MEMORY
    memset(memory, 0, sizeof *memory);
#else
    memory->total = 8ULL << 30;
    memory->used = 3ULL << 30;
    memory->free = 5ULL << 30;
#endif
    return 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts)
{
    (void)device;
    ANSWER_OR_FAIL;
    *milliwatts = 250500;
    return 0;
}

int nvmlDeviceGetClockInfo(void *device, int clock, unsigned int *megahertz)
{
    (void)device;
    ANSWER_OR_FAIL;
    *megahertz = clock == 1 ? 1980 : clock == 2 ? 2619 : 0; /* NVML_CLOCK_SM, NVML_CLOCK_MEM */
    return 0;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius)
{
    (void)device;
    ANSWER_OR_FAIL;
    *celsius = sensor == 0 ? 61 : 0; /* NVML_TEMPERATURE_GPU */
    return 0;
}

int nvmlDeviceGetPcieThroughput(void *device, int way, unsigned int *kilobytes)
{
    (void)device;
    ANSWER_OR_FAIL;
    *kilobytes = way == 0 ? 1500 : 2500; /* NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES */
    return 0;
}

/* Two programs: this one, unless NVML_FOREIGN hides it, and another. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, process_t *programs)
{
    (void)device;
    ANSWER_OR_FAIL;
    if (*count < 2) {
        *count = 2;
        return INSUFFICIENT_SIZE;
    }
    memset(programs, 0, 2 * sizeof(process_t));
    programs[0].pid = getenv("NVML_FOREIGN") ? 1 : (unsigned int)getpid();
    programs[1].pid = 2;
    *count = 2;
    return 0;
}

/* The older name of what follows; newer drivers answer to both. */
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits)
{
    (void)device;
    ANSWER_OR_FAIL;
    *bits = 0x40;
    return 0;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *bits)
{
    (void)device;
    ANSWER_OR_FAIL;
    *bits = 0x1 | 0x4;
    return 0;
}

/* Power of this moment, where NVML_INSTANT says that this GPU has it; each field has its own code. */
int nvmlDeviceGetFieldValues(void *device, int count, field_t *fields)
{
    (void)device;
    ANSWER_OR_FAIL;
    for (int i = 0; i < count; i++) {
        int has_it = fields[i].field == 186 && getenv("NVML_INSTANT"); /* NVML_FI_DEV_POWER_INSTANT */
        fields[i].result = has_it ? 0 : NOT_SUPPORTED;
        fields[i].type = 1; /* NVML_VALUE_TYPE_UNSIGNED_INT */
        fields[i].value.count = has_it ? 310250 : 0;
    }
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    (void)device;
    static unsigned long long spent = 1000000;
    ANSWER_OR_FAIL;
    *millijoules = spent += 25000;
    return 0;
}
#endif
