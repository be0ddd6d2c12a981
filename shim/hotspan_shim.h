/* The C ABI between the torch shim and hotspan-collect: plain structs, plain functions.
 *
 * Rust owns all memory that is written here. The shim fills a thread's chunk from both ends: records (slots of 32 bytes)
 * grow down from the end, blocks (names, encoded inputs) grow up from the start. When they meet, the shim asks for
 * another chunk through the sink. crates/hotspan-collect/src/torch/abi.rs mirrors this file; `hotspan_shim_abi` tells
 * them apart. Fresh memory is the largest cost of recording, hence the tight packing.
 */
#ifndef HOTSPAN_SHIM_H
#define HOTSPAN_SHIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a struct or a function of this file changes. */
#define HOTSPAN_ABI 7

/* Values of `kind` beside those of at::RecordScope (0 to 9). */
#define HOTSPAN_KIND_ASYNC 0x40 /* added to the scope of a range that ended as an asynchronous one */
#define HOTSPAN_KIND_MEMORY 0x80
#define HOTSPAN_KIND_OUT_OF_MEMORY 0x81
#define HOTSPAN_KIND_EXTRA 0x82 /* in the slots of an allocation, of the operator that follows: see HotspanExtra */

/* An operator, autograd node or user range: one slot. */
typedef struct HotspanOperator {
  uint64_t start;          /* ticks */
  uint64_t end;            /* ticks; 0 while it runs; written atomically, on any thread, even after the session */
  uint32_t name;           /* which block of names of this thread and session, counted from 1 */
  uint32_t inputs;         /* which block of inputs likewise; 0: none */
  uint32_t sequence_low;   /* autograd's sequence number; all 40 bits set: none */
  uint8_t sequence_high;
  uint8_t kind;            /* at::RecordScope; written atomically by the end of the range */
  uint16_t forward_thread; /* torch's number of the thread that ran the forward; 0: none, 0xffff: too large to tell */
} HotspanOperator;

/* An allocation (positive) or a release (negative): two slots, this one at the higher address … */
typedef struct HotspanMemory {
  uint64_t time;
  uint64_t address; /* never 0, like the end of an operator that has ended */
  int64_t bytes;
  int32_t device_index;
  uint8_t device_type; /* c10::DeviceType */
  uint8_t kind;
  uint16_t unused;
} HotspanMemory;

/* … and this one below. */
typedef struct HotspanMemoryTotals {
  uint64_t allocated;
  uint64_t one; /* where the slot of an operator has its end: this one has ended */
  uint64_t reserved;
  uint64_t unused;
} HotspanMemoryTotals;

/* What few ask for, in the slots of an allocation before the operator that it is about. */
typedef struct HotspanExtra {
  uint64_t id;      /* torch's number of the operator; 0: not asked for */
  uint64_t one;     /* as above */
  uint64_t tensors; /* which block of tensors of this thread and session, counted from 1; 0: none */
  uint32_t modules; /* which block of names likewise: the modules of TorchScript that it runs in; 0: none */
  uint8_t unused_too;
  uint8_t kind;
  uint16_t unused_also;
} HotspanExtra;

#define HOTSPAN_BLOCK_NAME 1
#define HOTSPAN_BLOCK_INPUTS 2
#define HOTSPAN_BLOCK_TENSORS 3

/* The head of every block; blocks are aligned to 8 bytes.
 * A name: `count` bytes, then `more` bytes of the operator's overload.
 * Inputs: one item for each of `count` inputs, then pairs of items, which are keyword inputs; all in 64-bit words. The
 * first word of an item: bits 0-7 tag, 8-15 dtype, 16-23 flags, 32-63 count.
 * Tensors: three words for each tensor among the positional inputs that has a shape, those of lists included, in order: the
 * address of its TensorImpl, that of its storage's data, and what it is: bits 0-7 dtype, 8-15 layout, 16-23 device type,
 * 32-63 device index. */
typedef struct HotspanBlock {
  uint32_t words; /* of head and content */
  uint32_t type;
  uint32_t count;
  uint32_t more;
} HotspanBlock;

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
  HOTSPAN_INPUT_TEXT = 10,       /* count bytes, padded to words */
  HOTSPAN_INPUT_TEXT_LIST = 11   /* count items follow */
};
#define HOTSPAN_INPUT_FLAG 1

#define HOTSPAN_NAME_SLOTS 1024
#define HOTSPAN_TEXT_SLOTS 512
#define HOTSPAN_INPUT_SLOTS 512

/* What was written before, so that it need not be written again. Blocks are named by number and compared by hash: the
 * chunk they are in may be gone already when a thread is late to learn that recording has stopped. */
typedef struct HotspanNameSlot {
  const char *key; /* where torch has the name of an operator */
  uint32_t name;
  uint32_t unused;
} HotspanNameSlot;

typedef struct HotspanTextSlot {
  uint64_t hash; /* of a name, its overload, and whether it is an operator's */
  uint32_t name; /* 0: none */
  uint32_t unused;
} HotspanTextSlot;

typedef struct HotspanInputSlot {
  uint64_t hash;
  uint32_t inputs;
  uint32_t unused;
} HotspanInputSlot;

/* What a thread writes to. Only its own thread writes; blocks, records and the counts of losses may be read by others. */
typedef struct HotspanThread {
  uint64_t session; /* which session the rest belongs to */
  uint8_t *blocks;  /* the next free byte; published after the block before it is whole */
  uint8_t *records; /* the last slot written; published likewise */
  uint64_t dropped; /* records lost because there was no room */
  uint64_t inputs_dropped;
  uint32_t name_count;
  uint32_t inputs_count;
  uint32_t unregistered; /* how many operators had been unregistered when `names` was last cleared */
  uint32_t tensors_count;
  uint32_t unused[2];
  HotspanNameSlot names[HOTSPAN_NAME_SLOTS];
  HotspanTextSlot texts[HOTSPAN_TEXT_SLOTS];
  HotspanInputSlot inputs[HOTSPAN_INPUT_SLOTS];
} HotspanThread;

/* What the shim calls, rarely. None of these may unwind. */
typedef struct HotspanSink {
  /* The buffer of the calling thread for `session`; null: do not record. `torch_thread` is torch's own number. */
  HotspanThread *(*attach)(uint64_t session, uint64_t torch_thread);
  /* Makes room for two slots and `room` bytes; 0: there is none. */
  int32_t (*grow)(HotspanThread *thread, uint64_t room);
  /* The thread of this buffer ends. */
  void (*detach)(HotspanThread *thread);
} HotspanSink;

#define HOTSPAN_FLAG_INPUTS 1
#define HOTSPAN_FLAG_MEMORY 2
#define HOTSPAN_FLAG_RANGES 8 /* let torch make the ranges that it makes for profilers only */
#define HOTSPAN_FLAG_PREPARED 32 /* let torch prepare the inputs that it prepares for profilers only; not beside torch's RPC */
#define HOTSPAN_FLAG_IDS 16 /* torch's numbers of operators, which an execution trace has too */
#define HOTSPAN_FLAG_TENSORS 64 /* which tensors the inputs are; none of their addresses is used again while it records */
#define HOTSPAN_FLAG_MODULES 128 /* the modules of TorchScript that operators run in */
#define HOTSPAN_FLAG_TICKS 4 /* the cheap counter of the processor; otherwise nanoseconds of CLOCK_MONOTONIC */

enum {
  HOTSPAN_OK = 0,
  HOTSPAN_TORCH_PROFILER_ACTIVE = 1,
  HOTSPAN_FAILED = 2, /* hotspan_shim_error says why */
  HOTSPAN_CHECK_FIRST = 3 /* torch's list of callbacks may be locked for ever: hotspan_shim_check finds out */
};

#pragma GCC visibility push(default)

uint32_t hotspan_shim_abi(void);
/* Runs one range on this thread and looks at what torch says of it, before anything else is called. Fails where torch's
 * libraries are not those of the headers that this was compiled with.
 *
 * Takes all locks of torch's that recording needs. In a forked child another thread may have held one of them when the
 * process was forked, and then this never returns: call it on a new thread that nobody needs. */
int32_t hotspan_shim_check(void);
/* Begins to record. `session` is not 0 and new. The sink must live as long as the process. Takes no lock of torch's unless
 * hotspan_shim_check has returned in this process. */
int32_t hotspan_shim_begin(const HotspanSink *sink, uint64_t session, uint32_t flags);
/* Stops (0) or resumes (the number of the running session) without ending anything. */
void hotspan_shim_gate(uint64_t session);
/* Stops recording memory only, and leaves the slot to torch.profiler, which refuses to start while it is taken. */
int32_t hotspan_shim_release_memory(void);
/* Ends recording. Operators that still run write their end into their records when they end. Takes no lock of torch's
 * either, unless it was checked. */
int32_t hotspan_shim_end(void);
/* To be called on a thread that is about to fork: its first operator in the child takes no lock of torch's then. */
void hotspan_shim_before_fork(void);
/* To be called in a forked child: nothing is recorded there until the next begin. Takes no lock. */
void hotspan_shim_forked(void);
/* Whether a program wants forward operators linked with their backward: torch._C._profiler._set_fwd_bwd_enabled_val. */
int32_t hotspan_shim_links(void);
/* torch's name of a dtype, as it is printed in traces. */
const char *hotspan_shim_dtype(uint8_t dtype, uint64_t *length);
/* The last failure on this thread. */
const char *hotspan_shim_error(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
