// Package offheap hands out memory that the garbage collector neither scans nor multiplies, for large tables without
// pointers in a process that is not ours.
package offheap

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

var mapped atomic.Int64

// Bytes returns how many bytes are handed out. Pages count from their first use on, so that the process may hold fewer.
func Bytes() int64 { return mapped.Load() }

// Make returns n zeroed elements, which Free has to give back. T must not contain pointers. Children of a fork do not
// get a copy. The errors are those of mmap.
func Make[T any](n int) ([]T, error) {
	var element T
	size := uintptr(n) * unsafe.Sizeof(element)
	data, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	// a fork would copy the page tables, and no thread of a child looks there
	unix.Madvise(unsafe.Slice((*byte)(data), size), unix.MADV_DONTFORK)
	mapped.Add(int64(size))
	return unsafe.Slice((*T)(data), n), nil
}

// Free gives back what Make returned; nothing may refer to it any more.
func Free[T any](list []T) {
	if len(list) == 0 {
		return
	}
	size := uintptr(len(list)) * unsafe.Sizeof(list[0])
	if unix.MunmapPtr(unsafe.Pointer(&list[0]), size) == nil {
		mapped.Add(-int64(size))
	}
}
