/* A libcupti for machines without a GPU: the functions that hotspan calls, with a device that a test drives through the
 * fake_* functions. It can refuse, drop, deliver late, slowly or out of order. Written from the documented interface; the
 * layouts below are checked against NVIDIA's headers by cupti_layout.rs.
 *
 * -DFAKE_OLD leaves out what libraries before CUDA 12 lack.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MEMCPY = 1, MEMSET = 2, DRIVER = 4, RUNTIME = 5, CONTEXT = 9, KERNEL = 10, OVERHEAD = 17, MEMCPY2 = 22, EVENT = 36, SYNC = 38 };
enum { OK = 0, INVALID_PARAMETER = 1, MAX_LIMIT_REACHED = 12 };

typedef struct {
    uint32_t kind;
    uint8_t cache, shared_config;
    uint16_t registers;
    uint32_t partitioned[2];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_shared, dynamic_shared;
    uint32_t local[2], correlation;
    int64_t grid_id;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch[4];
    uint32_t shared_executed;
    uint64_t node;
    uint32_t shared_limit, graph;
    uint8_t rest[56];
} Kernel;

typedef struct {
    uint32_t kind;
    uint8_t copy, source, destination, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation, runtime_correlation, pad;
    void *reserved;
    uint64_t node;
    uint32_t graph;
    uint8_t rest[20];
} Memcpy;

typedef struct {
    uint32_t kind;
    uint8_t copy, source, destination, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, source_device, source_context, destination_device, destination_context, correlation;
    void *reserved;
    uint64_t node;
    uint32_t graph, channel[2], pad;
} MemcpyPeer;

typedef struct {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory;
    uint32_t pad;
    void *reserved;
    uint64_t node;
    uint32_t graph;
    uint8_t rest[12];
} Memset;

typedef struct {
    uint32_t kind, cbid;
    uint64_t start, end;
    uint32_t process, thread, correlation, returned;
} Api;

typedef struct {
    uint32_t kind, type;
    uint64_t start, end;
    uint32_t correlation, context, stream, event;
    uint64_t event_sync;
    uint32_t returned, pad;
} Sync;

typedef struct {
    uint32_t kind, overhead, object, id[3];
    uint64_t start, end;
    uint32_t correlation, reserved;
    void *data;
} Overhead;

typedef struct {
    uint32_t kind, correlation, context, stream, event, pad;
    uint32_t device, pad2;
    uint64_t rest[3];
} Event;

typedef void (*Requested)(uint8_t **, size_t *, size_t *);
typedef void (*Completed)(void *, uint32_t, uint8_t *, size_t, size_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Requested requested;
static Completed completed;
static uint8_t enabled[64], off[2][64];
static uint32_t thread_type, next_correlation = 1, version = 130001;
static int64_t clock_offset;
static uint64_t (*clock_function)(void);
static size_t dropped;
static int fail_code, records_per_buffer, is_reversed, is_late, slow_ms;
static char fail_function[64];
static uint32_t fail_kind;

/* The buffer being filled, and those that wait to be delivered. */
static struct { uint8_t *base; size_t size, valid; int records; } now, waiting[4096];
static int waiting_count;

static uint64_t clock_now(void) {
    if (clock_function) return clock_function();
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec + clock_offset;
}

static int fails(const char *function, uint32_t kind) {
    return strcmp(function, fail_function) == 0 && (fail_kind == 0 || fail_kind == kind) ? fail_code : OK;
}

static void put_aside(void) {
    if (now.base) {
        waiting[waiting_count].base = now.base;
        waiting[waiting_count].size = now.size;
        waiting[waiting_count++].valid = now.valid;
        memset(&now, 0, sizeof now);
    }
}

static void deliver(void) {
    for (int i = 0; i < waiting_count; i++) {
        int at = is_reversed ? waiting_count - 1 - i : i;
        if (slow_ms) usleep(slow_ms * 1000);
        completed(NULL, 0, waiting[at].base, waiting[at].size, waiting[at].valid);
    }
    waiting_count = 0;
}

static void add(uint32_t kind, const void *record, size_t size) {
    if (!enabled[kind]) return;
    size = (size + 7) & ~(size_t)7;
    if (now.base && (now.valid + size > now.size || (records_per_buffer && now.records >= records_per_buffer))) put_aside();
    if (!now.base) {
        size_t most = 0;
        requested(&now.base, &now.size, &most);
        now.valid = now.records = 0;
    }
    if (!now.base) { dropped++; return; }
    memcpy(now.base + now.valid, record, size);
    now.valid += size;
    now.records++;
}

/* ---- what a test drives ---- */

static void forget_watcher(void);

void fake_reset(void) {
    memset(off, 0, sizeof off);
    memset(enabled, 0, sizeof enabled);
    memset(&now, 0, sizeof now);
    clock_offset = 0;
    clock_function = NULL;
    dropped = 0;
    fail_code = records_per_buffer = is_reversed = is_late = slow_ms = waiting_count = 0;
    fail_function[0] = 0;
    fail_kind = 0;
    version = 130001;
    thread_type = 0;
    forget_watcher();
}
void fake_fail(const char *function, uint32_t kind, int code) { strncpy(fail_function, function, 63); fail_kind = kind; fail_code = code; }
void fake_version(uint32_t number) { version = number; }
void fake_records_per_buffer(int count) { records_per_buffer = count; }
void fake_reverse(void) { is_reversed = 1; }
void fake_late(void) { is_late = 1; }
void fake_slow(int milliseconds) { slow_ms = milliseconds; }
void fake_drop(size_t count) { dropped += count; }
void fake_move_clock(int64_t nanoseconds) { clock_offset += nanoseconds; }
/* As another profiler does through cuptiActivityRegisterTimestampCallback. */
void fake_clock(uint64_t (*function)(void)) { clock_function = function; }
void fake_deliver(void) { put_aside(); deliver(); }
static int is_watched(void);
int fake_enabled(void) { int count = is_watched(); for (int i = 0; i < 64; i++) count += enabled[i]; return count; }
int fake_enabled_kind(uint32_t kind) { return enabled[kind]; }
uint32_t fake_thread_type(void) { return thread_type; }

static uint32_t thread_id(void) { return thread_type == 1 ? (uint32_t)syscall(SYS_gettid) : (uint32_t)pthread_self(); }

/* Names of functions by number: the runtime's 1 is not worth a record, the others are. */
static const char *runtime_names[] = {"cudaGetDevice_v3020", "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "cudaMemsetAsync_v3020", "cudaDeviceSynchronize_v3020", "cudaGraphLaunch_v10000", "cudaEventRecord_v3020", "cudaStreamWaitEvent_v3020"};
static const char *driver_names[] = {"cuLaunchKernel", "cuCtxGetCurrent"};

/* CUpti_CallbackData. */
typedef struct {
    uint32_t site;
    const char *name;
    const void *parameters;
    void *result;
    const char *symbol;
    void *context;
    uint32_t context_number;
    uint64_t *kept;
    uint32_t correlation;
} Watched;
typedef void (*Callback)(void *, uint32_t, uint32_t, const Watched *);
static Callback watcher;
static uint8_t watched[2][64];
static int unwatched_entry, is_taken;

static void watch(uint32_t kind, uint32_t cbid, uint32_t correlation) {
    if (!watcher || !watched[kind == RUNTIME][cbid]) return;
    uint64_t kept = 0;
    Watched call = {0, "", NULL, NULL, NULL, NULL, 1, &kept, correlation};
    if (!unwatched_entry) watcher(NULL, kind == RUNTIME ? 2 : 1, cbid, &call);
    if (kind == RUNTIME && cbid == 2) watch(DRIVER, 1, correlation); /* how the runtime launches */
    usleep(20);
    call.site = 1;
    watcher(NULL, kind == RUNTIME ? 2 : 1, cbid, &call);
}
static int is_watched(void) { return watcher != NULL; }
static void forget_watcher(void) {
    watcher = NULL;
    unwatched_entry = is_taken = 0;
    memset(watched, 0, sizeof watched);
}

/* Another tool watches calls. */
void fake_taken(void) { is_taken = 1; }
/* The next calls began before anybody watched. */
void fake_entered(int before) { unwatched_entry = before; }

uint32_t fake_call(uint32_t kind, uint32_t cbid) {
    pthread_mutex_lock(&lock);
    uint64_t start = clock_now();
    uint32_t correlation = next_correlation++;
    Api api = {kind, cbid, start, start + 1000, (uint32_t)getpid(), thread_id(), correlation, 0};
    if (!off[kind == RUNTIME][cbid]) add(kind, &api, sizeof api);
    pthread_mutex_unlock(&lock);
    watch(kind, cbid, correlation);
    return correlation;
}

void fake_kernel(const char *name, uint32_t correlation, uint32_t stream, uint64_t duration, uint32_t graph, uint64_t node) {
    pthread_mutex_lock(&lock);
    Kernel kernel;
    memset(&kernel, 0xee, sizeof kernel); /* whatever hotspan does not read */
    uint64_t start = clock_now() + 2000;
    kernel.kind = KERNEL;
    kernel.registers = 32;
    kernel.start = duration ? start : 0;
    kernel.end = duration ? start + duration : 0;
    kernel.device = 0;
    kernel.context = 1;
    kernel.stream = stream;
    kernel.grid[0] = 132, kernel.grid[1] = 2, kernel.grid[2] = 1;
    kernel.block[0] = 128, kernel.block[1] = kernel.block[2] = 1;
    kernel.static_shared = 1024, kernel.dynamic_shared = 512;
    kernel.correlation = correlation;
    kernel.name = name;
    kernel.graph = graph;
    kernel.node = node;
    add(KERNEL, &kernel, sizeof kernel);
    pthread_mutex_unlock(&lock);
}

uint32_t fake_launch(const char *name, uint32_t stream, uint64_t duration) {
    uint32_t correlation = fake_call(RUNTIME, 2);
    fake_kernel(name, correlation, stream, duration, 0, 0);
    return correlation;
}

void fake_copy(uint64_t bytes, uint64_t duration) {
    uint32_t correlation = fake_call(RUNTIME, 3);
    pthread_mutex_lock(&lock);
    uint64_t start = clock_now();
    Memcpy copy = {MEMCPY, 1, 2, 3, 1, bytes, start, start + duration, 0, 1, 7, correlation, 0, 0, NULL, 0, 0, {0}};
    add(MEMCPY, &copy, sizeof copy);
    pthread_mutex_unlock(&lock);
}

void fake_peer_copy(uint64_t bytes) {
    uint32_t correlation = fake_call(RUNTIME, 3);
    pthread_mutex_lock(&lock);
    uint64_t start = clock_now();
    MemcpyPeer copy = {MEMCPY2, 10, 3, 3, 1, bytes, start, start + 10, 0, 1, 7, 0, 1, 1, 2, correlation, NULL, 0, 0, {0, 0}, 0};
    add(MEMCPY2, &copy, sizeof copy);
    pthread_mutex_unlock(&lock);
}

void fake_fill(uint64_t bytes, uint64_t duration) {
    uint32_t correlation = fake_call(RUNTIME, 4);
    pthread_mutex_lock(&lock);
    uint64_t start = clock_now();
    Memset fill = {MEMSET, 0, bytes, start, start + duration, 0, 1, 7, correlation, 1, 3, 0, NULL, 0, 0, {0}};
    add(MEMSET, &fill, sizeof fill);
    pthread_mutex_unlock(&lock);
}

void fake_wait(uint32_t type, uint32_t stream, uint32_t event) {
    uint32_t correlation = fake_call(RUNTIME, 5);
    pthread_mutex_lock(&lock);
    uint64_t start = clock_now();
    Sync sync = {SYNC, type, start, start + 500, correlation, 1, stream, event, 0, 0, 0};
    add(SYNC, &sync, sizeof sync);
    pthread_mutex_unlock(&lock);
}

void fake_event(uint32_t stream, uint32_t event) {
    uint32_t correlation = fake_call(RUNTIME, 7);
    pthread_mutex_lock(&lock);
    Event record = {EVENT, correlation, 1, stream, event, 0, 0, 0, {0}};
    add(EVENT, &record, sizeof record);
    pthread_mutex_unlock(&lock);
}

void fake_overhead(void) {
    pthread_mutex_lock(&lock);
    uint64_t start = clock_now();
    Overhead overhead = {OVERHEAD, 7 << 16, 2, {1, 2, 0}, start, start + 100, 0, 0, NULL};
    add(OVERHEAD, &overhead, sizeof overhead);
    pthread_mutex_unlock(&lock);
}

/* A record of a kind that nobody asked for. */
void fake_stranger(void) {
    pthread_mutex_lock(&lock);
    uint64_t record[2] = {60, 0};
    enabled[60] = 1;
    add(60, record, sizeof record);
    enabled[60] = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- what hotspan calls ---- */

int cuptiGetVersion(uint32_t *number) { *number = version; return fails("cuptiGetVersion", 0); }
int cuptiGetTimestamp(uint64_t *time) { *time = clock_now(); return fails("cuptiGetTimestamp", 0); }
int cuptiGetResultString(int result, const char **text) {
    *text = result == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : result == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : NULL;
    return *text ? OK : INVALID_PARAMETER;
}
int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name) {
    size_t count = domain == 2 ? sizeof runtime_names / sizeof *runtime_names : sizeof driver_names / sizeof *driver_names;
    if (cbid == 0 || cbid > count) return INVALID_PARAMETER;
    *name = (domain == 2 ? runtime_names : driver_names)[cbid - 1];
    return OK;
}
int cuptiActivityRegisterCallbacks(Requested request, Completed complete) {
    requested = request;
    completed = complete;
    return fails("cuptiActivityRegisterCallbacks", 0);
}
int cuptiActivityEnable(uint32_t kind) {
    int result = fails("cuptiActivityEnable", kind);
    if (result == OK) {
        enabled[kind] = 1;
        if (kind == RUNTIME || kind == DRIVER) memset(off[kind == RUNTIME], 0, 64);
    }
    return result;
}
int cuptiActivityDisable(uint32_t kind) { enabled[kind] = 0; return fails("cuptiActivityDisable", kind); }
int cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    pthread_mutex_lock(&lock);
    put_aside();
    pthread_mutex_unlock(&lock);
    if (!is_late) deliver();
    return fails("cuptiActivityFlushAll", 0);
}
static size_t size_of(uint32_t kind) {
    switch (kind) {
    case KERNEL: return sizeof(Kernel);
    case MEMCPY: return sizeof(Memcpy);
    case MEMCPY2: return sizeof(MemcpyPeer);
    case MEMSET: return sizeof(Memset);
    case RUNTIME: case DRIVER: return sizeof(Api);
    case SYNC: return sizeof(Sync);
    case OVERHEAD: return sizeof(Overhead);
    case EVENT: return sizeof(Event);
    default: return 16;
    }
}
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint32_t **record) {
    int result = fails("cuptiActivityGetNextRecord", 0);
    if (result != OK) return result;
    uint8_t *next = *record ? (uint8_t *)*record + ((size_of(**record) + 7) & ~(size_t)7) : buffer;
    if (next >= buffer + valid) return MAX_LIMIT_REACHED;
    *record = (uint32_t *)next;
    return OK;
}
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count) {
    (void)context, (void)stream;
    *count = dropped;
    dropped = 0;
    return OK;
}
#ifndef FAKE_OLD
int cuptiSubscribe(void **subscriber, Callback callback, void *data) {
    (void)data;
    if (watcher || is_taken) return 39; /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
    watcher = callback;
    *subscriber = &watcher;
    return OK;
}
int cuptiUnsubscribe(void *subscriber) {
    if (subscriber != &watcher) return INVALID_PARAMETER;
    forget_watcher();
    return OK;
}
int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid) {
    if (subscriber != &watcher) return INVALID_PARAMETER;
    watched[domain == 2][cbid] = enable;
    return OK;
}
int cuptiGetThreadIdType(uint32_t *type) { *type = thread_type; return OK; }
int cuptiSetThreadIdType(uint32_t type) {
    int result = fails("cuptiSetThreadIdType", 0);
    if (result == OK) thread_type = type;
    return result;
}
int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable) { off[1][cbid] = !enable; return OK; }
int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable) { off[0][cbid] = !enable; return OK; }
#endif
