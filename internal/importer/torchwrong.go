package importer

// wrong returns the first fault of a record, or "". The caller rejects the record.
type wrong string

func (w *wrong) set(what string) {
	if *w == "" {
		*w = wrong(what)
	}
}

// address is a number of 64 bits, which pickles write with or without a sign.
func (w *wrong) address(what string, v any) uint64 {
	n, ok := v.(int64)
	if !ok && v != nil {
		w.set("the " + what + " is not a whole number")
	}
	return uint64(n)
}

func (w *wrong) bytes(what string, v any) uint64 {
	n, ok := v.(int64)
	if !ok || n < 0 {
		w.set("the " + what + " is not a number of bytes")
	}
	return uint64(max(n, 0))
}

func (w *wrong) missing(what string, has bool) {
	if !has {
		w.set("the " + what + " is missing")
	}
}

func (w *wrong) end(addr, size uint64) {
	if addr+size < addr {
		w.set("what begins at an address ends beyond all addresses")
	}
}

// Keys that PyTorch's own snapshots do not have: 'memtrace export memory_viz' writes them.
const (
	writerKey = "memtrace" // of the snapshot: who wrote it
	// of blocks and entries: driver memory that the framework's allocator does not hold, which has a segment, too
	besideKey    = "memtrace_driver"
	blockSizeKey = "memtrace_block_size" // of entries: bytes of the block; "size" is the requested size
	virtualKey   = "memtrace_no_segment" // of segments: not in the snapshot, but a block needs one
	orderKey     = "memtrace_order"      // of entries: their order among those of all devices
)
