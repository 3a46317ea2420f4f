/* The spool: the only contract between the C half and every reader of what it records (internal/spool in Go).
 *
 * One sparse file, mapped MAP_SHARED for its whole life, so that what was stored survives any death of the process:
 *
 *   header      one page: geometry, process identity, clock, then the words that both sides change, each group on a
 *               cache line of its own
 *   rings       MT_RINGS_MAX descriptors; a thread owns one from its first event to its end
 *   index       MT_INDEX_MAX fixed slots; slot i describes dictionary entry i + 1
 *   data        payloads of dictionary entries, append only
 *   segments    16 KiB each: slot 0 is the segment's head, the other 255 slots are records; the file is made for
 *               segments_first of them and grows up to segments_max
 *
 * A ring is a chain of segments with one producer (its thread) and one consumer (whoever drains). The producer fills
 * slots in order and publishes each by a release store of its sequence number; the consumer reads until it meets a slot
 * with sequence 0. A full segment is linked to the next one. The consumer zeroes a drained segment and puts it on the
 * free list. Ids, segments and rings are 1-based; 0 means none.
 *
 * This layout may change with every build: the version below is compared for equality. internal/spool/layout.go mirrors
 * it, and a test compares the two. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MT_SPOOL_MAGIC "MTSPOOL"
#define MT_SPOOL_VERSION 11u

#define MT_PAGE 4096u
#define MT_RECORD_SIZE 64u
#define MT_SEGMENT_SIZE 16384u
#define MT_SEGMENT_SLOTS (MT_SEGMENT_SIZE / MT_RECORD_SIZE) /* slot 0 is the head */
#define MT_RINGS_MAX 65536u
#define MT_RINGS_FEW 4096u /* where the file may not be large */
#define MT_INDEX_MAX 262144u

/* Event kinds, numbered as trace.EventKind. */
enum mt_kind { MT_ALLOC = 1, MT_FREE = 2, MT_MAP = 3, MT_UNMAP = 4, MT_OOM = 5, MT_MARK = 6, MT_STEP = 7, MT_EPOCH = 8,
               MT_CREATE = 10, MT_DESTROY = 11, MT_RESERVE = 12, MT_LAUNCH = 13, MT_SAMPLE = 14, MT_NAME = 15,
               MT_WAIT = 16, MT_COMPLETE = 17, MT_EMPTY = 18, MT_ASK = 19, MT_POOL = 20, MT_SETTING = 21 };

/* A framework's counts of bytes share their words with the operator that allocates: a word of 40 bits, 0 none, in two
 * halves.
 *
 *   allocated    bits 0-43 count    bits 44-63 lower half of the operator's word
 *   reserved     bits 0-43 count    bits 44-63 upper half
 *
 *   operator     bits 0-25          1 + its number
 *                bits 26-38         the framework's number of the thread that recorded it, 0 unknown
 *                bit 39             its backward runs (MT_FLAG_BACKWARD) */
#define MT_COUNT_BITS 44u
#define MT_OP_HALF 20u
#define MT_OP_BITS 26u
#define MT_OP_THREAD_BITS 13u
#define MT_OP_BACKWARD (1ull << (MT_OP_BITS + MT_OP_THREAD_BITS))

#define MT_ELEMENT_SHIFT 8u /* NAME: api has the category below it, above it the bytes of an element, 0 unknown */

/* So does the rest of a framework's block: 1 + its bytes beyond those that were requested, 0 unknown.
 *
 *   size         bits 0-43 bytes    bits 44-63 lower 20 bits
 *   tag          bits 0-18 id       bits 19-31 upper 13 bits */
#define MT_ID_BITS 19u
#define MT_REST_LOW 20u
#define MT_REST_BITS 33u
_Static_assert(MT_INDEX_MAX < 1u << MT_ID_BITS, "ids are from 1 to MT_INDEX_MAX");

/* And so does where a framework's block was allocated: the id of an entry MT_DICT_PLACE, 0 for the default stream and
 * no private pool.
 *
 *   stack        bits 0-18 id       bits 19-31 lower 13 bits
 *   pystack      bits 0-18 id       bits 19-24 upper 6 bits */
#define MT_PLACE_LOW 13u

/* What a framework takes memory or an object for, numbered as trace.Category. */
enum mt_category {
  MT_CATEGORY_MODULE = 1,
  MT_CATEGORY_PARAMETER = 2,
  MT_CATEGORY_BUFFER = 3,
  MT_CATEGORY_GRADIENT = 4,
  MT_CATEGORY_OPTIMIZER = 5,
  MT_CATEGORY_STEP = 6
};

/* Memory kinds, numbered as cuda.MemoryKind. */
enum mt_mem {
  MT_MEM_DEVICE = 1,
  MT_MEM_MANAGED = 2,
  MT_MEM_HOST = 3,
  MT_MEM_REGISTERED = 4,
  MT_MEM_ASYNC = 5,
  MT_MEM_VMM = 6,
  MT_MEM_ARRAY = 7,
  MT_MEM_FOREIGN = 8,
  MT_MEM_GRAPH = 9,
  MT_MEM_ADDRESS = 10,
  MT_MEM_MULTICAST = 11,
  MT_MEM_IMPORTED = 12,
  MT_MEM_MODULE = 13
};

/* Object kinds, numbered as cuda.ObjectKind. */
enum mt_object {
  MT_OBJECT_CONTEXT = 1,
  MT_OBJECT_GREEN = 2,
  MT_OBJECT_POOL = 3,
  MT_OBJECT_MODULE = 4,
  MT_OBJECT_LIBRARY = 5,
  MT_OBJECT_GRAPH = 6,
  MT_OBJECT_EXEC = 7,
  MT_OBJECT_EXTERNAL = 8,
  MT_OBJECT_GRAPH_POOL = 9,
  MT_OBJECT_OWN_POOL = 10
};

/* Dictionary kinds. */
enum mt_dict_kind {
  MT_DICT_STRING = 1,  /* bytes */
  MT_DICT_STACK = 2,   /* u64 enum mt_stack_end; u64 return addresses, innermost first */
  MT_DICT_MODULE = 3,  /* u64 start, end, base, file size, file time (ns); u32 build-id length, path length; build-id;
                          path */
  MT_DICT_THREAD = 4,  /* s32 tid; name bytes */
  MT_DICT_DEVICE = 5,  /* s32 index, u32 name length; u64 total bytes; 16 bytes uuid; name */
  MT_DICT_INFO = 6,    /* key, NUL, value */
  MT_DICT_PYSTACK = 7, /* u64 enum mt_stack_end; struct mt_pyframe, innermost first */
  MT_DICT_CODE = 8,    /* struct mt_code; name, qualified name, file, line table */
  MT_DICT_PLACE = 9,   /* u64 stream handle, u64 private pool: for a framework's block, see MT_PLACE_LOW */
};

/* Why a stack ends where it does, numbered as trace.StackEnd. */
enum mt_stack_end {
  MT_STACK_WHOLE = 0,       /* its outermost frame was reached */
  MT_STACK_INTERPRETER = 1, /* native: cut at the innermost frame of the Python interpreter; the Python stack goes on
                               from there */
  MT_STACK_DEPTH = 2,       /* as deep as was asked for */
  MT_STACK_NO_ROW = 3,      /* code without unwind information: compiled at run time, or Go */
  MT_STACK_UNSUPPORTED = 4, /* a rule that the unwinder does not follow */
  MT_STACK_BOUNDS = 5,      /* the next frame would lie outside of the thread's stack */
  MT_STACK_UNREADABLE = 6,  /* Python: what should be a frame does not look like one */
  MT_STACK_CALLER = 7,      /* only the caller was asked for */
};

/* One frame of a Python stack. */
struct mt_pyframe {
  uint32_t code;  /* dictionary id of its code object */
  uint32_t where; /* byte offset into its bytecode << 1, plus 1 where C code entered the interpreter with this frame */
  uint64_t self;  /* address of the object whose method this is, for the frames that call a framework's modules; else
                     0 */
};

/* Offset of a frame that has not run its first instruction, as while a profile function runs for the call. */
#define MT_PY_NOT_BEGUN 0x7fffffffu

/* A Python code object, copied at its first use. Texts have the width that CPython keeps them in: 1, 2 or 4 bytes a
 * character, 1 is Latin-1 (PyUnicode_KIND, PEP 393). */
struct mt_code {
  int32_t first_line;
  uint8_t table;       /* enum mt_line_table */
  uint8_t module_call; /* its first argument is the module that is called */
  uint8_t name_width, qualname_width, file_width;
  uint8_t pad[3];
  uint32_t name_bytes, qualname_bytes, file_bytes, table_bytes;
};
_Static_assert(sizeof(struct mt_code) == 28, "without gaps");

/* How a code object's line table is encoded. */
enum mt_line_table {
  MT_LINES_NONE = 0,
  MT_LINES_LNOTAB = 1,   /* to 3.9: co_lnotab, Objects/lnotab_notes.txt */
  MT_LINES_RANGES = 2,   /* 3.10: co_linetable, PEP 626, Objects/lnotab_notes.txt */
  MT_LINES_LOCATIONS = 3 /* from 3.11: co_linetable, PEP 657, Objects/locations.md */
};

/* Flags of a record, as trace.Flags. */
enum {
  MT_FLAG_RUNTIME_ONLY = 2,
  MT_FLAG_ESTIMATED = 4,
  MT_FLAG_REFERENCE = 8,
  MT_FLAG_NOTICED = 16,
  MT_FLAG_UNSETTLED = 32,
  MT_FLAG_SHARE_UNKNOWN = 64,
  MT_FLAG_BACKWARD = 128
};

struct mt_record {
  uint64_t seq;   /* 0 until committed, then the order number: stored last, with release */
  uint64_t ticks; /* clock ticks of the header's clock source */
  uint64_t addr;  /* SAMPLE: bytes of other processes; ASK: bytes that were free */
  uint64_t size;  /* bytes; STEP, EPOCH: the number; SAMPLE: bytes in use on the device; ASK: bytes of the device;
                     EMPTY, POOL: 1 begun, 2 ended; SETTING: its value */
  union {
    uint64_t stream;    /* ALLOC and FREE of stream-ordered memory */
    uint64_t owner;     /* ALLOC of other driver memory: the context or graph that it ends with, 0 unknown; of a pool
                           of the program's own: that pool */
    uint64_t handle;    /* MAP; NAME: address of the framework's object; WAIT, COMPLETE: the event */
    uint64_t pool;      /* POOL: the private pool */
    uint64_t allocated; /* framework: its own count after the event, below one half of the operator; RESERVE: bytes in
                           use; SAMPLE: the process's own bytes */
  };
  uint32_t stack;   /* SAMPLE: string id of the occasion */
  uint32_t pystack; /* SAMPLE: flags */
  uint32_t tag;
  uint16_t api;     /* NAME: enum mt_category, with MT_ELEMENT_SHIFT */
  uint8_t kind;
  int8_t device;
  union {
    uint64_t reserved; /* framework: as allocated; SAMPLE: bytes that the driver keeps for itself */
    uint64_t name;     /* MARK, NAME, SETTING: string id; ALLOC, FREE of a pool of the program's own: its name */
    uint64_t waits_on; /* WAIT: handle of the event's stream */
    struct {
      int32_t status;
      uint16_t runtime;
      uint8_t mem;     /* enum mt_mem; CREATE, DESTROY, RESERVE, LAUNCH: enum mt_object */
      uint8_t flags;
    };
  };
};
_Static_assert(sizeof(struct mt_record) == MT_RECORD_SIZE, "a record is one cache line");

struct mt_segment_head {
  uint32_t next; /* release-stored by the producer when it moves on */
  uint32_t ring;
  uint32_t free_next; /* link of the free list, valid only while free */
  uint32_t pad[13];
};
_Static_assert(sizeof(struct mt_segment_head) == MT_RECORD_SIZE, "the head takes one slot");

enum mt_ring_state { MT_RING_FREE = 0, MT_RING_ACTIVE = 1, MT_RING_DEAD = 2 };

struct mt_ring {
  /* The producer's line. inflight is the lowest order number that this thread may have drawn and not yet committed, 0
   * if none: a reader that takes the minimum over all rings after reading header.seq knows that every lower number is
   * visible. */
  uint64_t inflight;
  uint64_t lost_others;   /* records that released no memory */
  uint32_t state;
  uint32_t thread;        /* dictionary id */
  int32_t tid;
  uint32_t first_segment; /* set when the ring is taken; the consumer starts here */
  uint64_t calls;         /* driver calls begun plus driver calls ended: odd while the thread is inside one */
  uint64_t lost_frees;    /* records that released memory, counted apart so that a reader may take the two counters one
                             after the other */
  uint64_t lost_from;     /* the lowest possible order number of the first lost record; 0 while nothing is lost,
                             stored before the counters */
  uint64_t pad;
  /* The consumer's line. */
  uint32_t read_segment;  /* 0: start at first_segment */
  uint32_t read_slot;
  uint64_t pad2[7];
};
_Static_assert(sizeof(struct mt_ring) == 128, "two cache lines");

struct mt_index_entry {
  uint32_t kind; /* 0 until committed; stored last, with release */
  uint32_t length;
  uint64_t offset; /* from data_offset */
};
_Static_assert(sizeof(struct mt_index_entry) == 16, "index entry");

struct mt_clock_pair {
  uint64_t ticks;
  int64_t monotonic_ns;
  int64_t realtime_ns;
};

enum { MT_DRAINER_FAILED = 2 };
#define MT_EXITED 0x100u /* in exit_status below: the program exited normally */

enum mt_control { MT_RECORDING = 0, MT_STOP_REQUESTED = 1, MT_DRAINED = 2 };

struct mt_spool_header {
  char magic[8];
  uint32_t version;
  uint32_t record_size;
  uint32_t segment_size;
  uint32_t segments_max;
  uint32_t rings_max;
  uint32_t index_max;
  uint64_t rings_offset;
  uint64_t index_offset;
  uint64_t data_offset;
  uint64_t data_max;
  uint64_t segments_offset;
  uint64_t file_size;
  int32_t pid;
  uint32_t clock_is_tsc;
  uint64_t process_start; /* field 22 of /proc/PID/stat: tells a reused pid apart */
  uint64_t boot_hash;     /* of the kernel's boot id: tells another machine apart */
  uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
  struct mt_clock_pair clock_first;
  struct mt_clock_pair clock_last; /* refreshed on segment changes; written with clock_version odd */
  uint32_t clock_version;
  uint32_t segments_first; /* the file is made with so many; file_size is its size then */

  _Alignas(64) uint64_t seq; /* last order number drawn */

  _Alignas(64) uint32_t rings_used; /* descriptors ever used */
  uint32_t index_used;
  uint64_t data_used;

  _Alignas(64) uint64_t free_segments; /* tag << 32 | first free segment */
  uint32_t segments_used;
  uint32_t segments_free;

  _Alignas(64) uint64_t lost_no_ring; /* records of threads that found no ring */
  uint64_t lost_dict;
  uint64_t lost_nested;
  uint64_t lost_threads; /* threads that lost records so */

  _Alignas(64) uint32_t control;
  uint32_t drain_wake;    /* futex: bumped to wake the drainer */
  uint32_t drain_wake_at; /* segments in use from which on the drainer is to be woken; 0 while it is awake */
  uint32_t drain_state;   /* 0 none, 1 running, MT_DRAINER_FAILED: stopped after a fault */
  uint64_t drained_seq;   /* every number up to here is in the trace file */
  uint32_t exit_status;   /* MT_EXITED | status (0 to 255) once the program called exit or _exit; 0: not yet, or it
                             ended some other way */

  /* Threads that wait for room: see cshim/spool/overflow.h. */
  _Alignas(64) uint32_t room; /* futex: bumped when segments were given back while threads wait */
  uint32_t waiting;           /* threads that wait now */
  uint64_t waiting_since;     /* CLOCK_MONOTONIC in ns, since when at least one waits; 0: none does */
  uint64_t waited_ns;         /* time during which at least one waited, before that */
  uint64_t waits;             /* records that were waited for */
};
_Static_assert(sizeof(struct mt_spool_header) <= MT_PAGE, "the header is one page");
