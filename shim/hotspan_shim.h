/* The C ABI between the torch shim and hotspan-collect: plain structs, plain functions.
 *
 * Rust owns all memory that is written here. The shim fills a thread's chunk from both ends: records (fixed size) grow
 * down from the end, bytes (names, encoded inputs) grow up from the start. When they meet, the shim asks for another
 * chunk through the sink. crates/hotspan-collect/src/torch/abi.rs mirrors this file; `hotspan_shim_abi` tells them apart.
 */
#ifndef HOTSPAN_SHIM_H
#define HOTSPAN_SHIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a struct or a function of this file changes. */
#define HOTSPAN_ABI 1

/* Words before a record that belong to the shim: the pointer to the virtual functions of torch's observer context. */
#define HOTSPAN_RECORD_BYTES 56
#define HOTSPAN_RECORD_SHIM_BYTES 8

/* Values of HotspanOperator.kind above the values of at::RecordScope (0 to 9). */
#define HOTSPAN_KIND_MEMORY 0x80
#define HOTSPAN_KIND_OUT_OF_MEMORY 0x81

/* An operator, autograd node or user range. */
typedef struct HotspanOperator {
  uint64_t start;          /* ticks */
  uint64_t end;            /* ticks; 0 while it runs; written atomically, on any thread, even after the session */
  const uint8_t *name;     /* HotspanName in the bytes of the same thread and session */
  const uint64_t *inputs;  /* HotspanInputs likewise, or null */
  int64_t sequence;        /* autograd's sequence number, -1 for none */
  uint32_t forward_thread; /* torch's number of the thread that ran the forward, 0 for none */
  uint8_t kind;            /* at::RecordScope */
  uint8_t async;           /* 1: ended as an asynchronous range */
  uint8_t released;        /* 1: torch holds no pointer to this record any more; written last, atomically */
  uint8_t unused;
} HotspanOperator;

/* An allocation (positive) or a release (negative), laid over the same bytes. */
typedef struct HotspanMemory {
  uint64_t time;
  uint64_t address;
  uint64_t total_allocated;
  uint64_t total_reserved;
  int64_t bytes;
  int32_t device_index;
  uint8_t kind;
  uint8_t device_type; /* c10::DeviceType */
  uint8_t released;    /* always 1 */
  uint8_t unused;
} HotspanMemory;

/* A name: this header, then `length` bytes, a zero, `overload_length` bytes. */
typedef struct HotspanName {
  uint32_t length;
  uint32_t overload_length;
  uint64_t cache; /* for the reader, written as 0 */
} HotspanName;

/* Encoded inputs: this header, then one item for each input, in 64-bit words.
 * The first word of an item: bits 0-7 tag, 8-15 dtype, 16-23 flags, 32-63 count. */
typedef struct HotspanInputs {
  uint32_t words; /* of header and items together */
  uint32_t count; /* of inputs; those after them are pairs of texts: keyword inputs */
  uint64_t cache; /* for the reader, written as 0 */
} HotspanInputs;

enum {
  HOTSPAN_INPUT_OTHER = 0,       /* no words: None, strings, devices, ... */
  HOTSPAN_INPUT_UNDEFINED = 1,   /* no words: a tensor without shape */
  HOTSPAN_INPUT_TENSOR = 2,      /* count sizes, then count strides unless flag 1 is set; dtype */
  HOTSPAN_INPUT_INT = 3,         /* 1 word */
  HOTSPAN_INPUT_DOUBLE = 4,      /* 1 word */
  HOTSPAN_INPUT_BOOL = 5,        /* no words: count is 0 or 1 */
  HOTSPAN_INPUT_COMPLEX = 6,     /* 2 words */
  HOTSPAN_INPUT_SYMBOLIC = 7,    /* no words: a scalar torch.compile has not given a value */
  HOTSPAN_INPUT_TENSOR_LIST = 8, /* count items follow; flag 1: too long, none follow */
  HOTSPAN_INPUT_SCALAR_LIST = 9, /* count items follow */
  HOTSPAN_INPUT_TEXT = 10        /* count bytes, padded to words */
};
#define HOTSPAN_INPUT_FLAG 1

#define HOTSPAN_NAME_SLOTS 256
#define HOTSPAN_INPUT_SLOTS 512

typedef struct HotspanNameSlot {
  const char *key;
  const uint8_t *name;
} HotspanNameSlot;

typedef struct HotspanInputSlot {
  uint64_t hash;
  const uint64_t *inputs;
} HotspanInputSlot;

/* What a thread writes to. Only its own thread writes; `records`, `session` and the counts may be read by others. */
typedef struct HotspanThread {
  uint64_t session; /* which session `bytes` and `records` belong to */
  uint8_t *bytes;   /* the next free byte */
  uint8_t *records; /* the last record written; published after the record is whole */
  uint64_t dropped; /* records lost because there was no room */
  uint64_t inputs_dropped;
  HotspanNameSlot names[HOTSPAN_NAME_SLOTS];    /* names written in this session, by address of torch's text */
  HotspanInputSlot inputs[HOTSPAN_INPUT_SLOTS]; /* inputs written in this session, by hash */
} HotspanThread;

/* What the shim calls, rarely. None of these may unwind. */
typedef struct HotspanSink {
  /* The buffer of the calling thread for `session`; null: do not record. `torch_thread` is torch's own number. */
  HotspanThread *(*attach)(uint64_t session, uint64_t torch_thread);
  /* Makes room for a record and `room` bytes; 0: there is none. */
  int32_t (*grow)(HotspanThread *thread, uint64_t room);
  /* The thread of this buffer ends. */
  void (*detach)(HotspanThread *thread);
} HotspanSink;

#define HOTSPAN_FLAG_INPUTS 1
#define HOTSPAN_FLAG_MEMORY 2
#define HOTSPAN_FLAG_TICKS 4 /* the cheap counter of the processor; otherwise nanoseconds of CLOCK_MONOTONIC */

enum {
  HOTSPAN_OK = 0,
  HOTSPAN_TORCH_PROFILER_ACTIVE = 1,
  HOTSPAN_FAILED = 2 /* hotspan_shim_error says why */
};

#pragma GCC visibility push(default)

uint32_t hotspan_shim_abi(void);
/* Begins to record. `session` is not 0 and new. The sink must live as long as the process. */
int32_t hotspan_shim_begin(const HotspanSink *sink, uint64_t session, uint32_t flags);
/* Stops (0) or resumes (the number of the running session) without ending anything. */
void hotspan_shim_gate(uint64_t session);
/* Ends recording. Operators that still run write their end into their records when they end. */
int32_t hotspan_shim_end(void);
/* To be called in a forked child: nothing is recorded there until the next begin. Takes no lock. */
void hotspan_shim_forked(void);
/* torch's name of a dtype, as it is printed in traces. */
const char *hotspan_shim_dtype(uint8_t dtype, uint64_t *length);
/* The last failure on this thread. */
const char *hotspan_shim_error(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
