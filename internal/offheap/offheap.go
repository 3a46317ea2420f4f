// Package offheap hands out memory that the garbage collector neither scans nor multiplies, for large tables without
// pointers: those of a reader, whose size is that of what is live in a trace, and those in a process that is not ours.
package offheap

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

var mapped atomic.Int64

// Bytes returns how many bytes are handed out. Pages count from their first use on, so that the process may hold fewer.
func Bytes() int64 { return mapped.Load() }

// Room hands out lists and gives them all back at once. A nil Room has no memory outside of Go's heap.
type Room struct {
	most  int64
	lists map[unsafe.Pointer]uintptr // what is handed out, and its size
	short bool
}

// NewRoom returns a Room that hands out nothing more where the process would have more than most bytes outside of Go's
// heap.
func NewRoom(most int64) *Room { return &Room{most: most, lists: make(map[unsafe.Pointer]uintptr)} }

// Short reports that there was no more room at some time.
func (r *Room) Short() bool { return r != nil && r.short }

// Free gives back all that was handed out; nothing may refer to it any more.
func (r *Room) Free() {
	if r == nil {
		return
	}
	for at := range r.lists {
		r.drop(at)
	}
}

func (r *Room) drop(at unsafe.Pointer) {
	if size := r.lists[at]; size > 0 && unix.MunmapPtr(at, size) == nil {
		mapped.Add(-int64(size))
	}
	delete(r.lists, at)
}

// Make returns n zeroed elements outside of Go's heap; ok is false where there is no room. T must not contain pointers.
// Children of a fork do not get a copy.
func Make[T any](r *Room, n int) (list []T, ok bool) {
	if r == nil {
		return nil, false
	}
	var element T
	size := uintptr(n) * unsafe.Sizeof(element)
	if mapped.Load()+int64(size) > r.most {
		r.short = true
		return nil, false
	}
	at, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		r.short = true
		return nil, false
	}
	// a fork would copy the page tables, and no thread of a child looks there
	unix.Madvise(unsafe.Slice((*byte)(at), size), unix.MADV_DONTFORK)
	mapped.Add(int64(size))
	r.lists[at] = size
	return unsafe.Slice((*T)(at), n), true
}

// Drop gives back a list; one that Make did not return is left to the garbage collector.
func Drop[T any](r *Room, list []T) {
	if r != nil && len(list) > 0 {
		r.drop(unsafe.Pointer(&list[0]))
	}
}
