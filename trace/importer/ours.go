package importer

// Keys that PyTorch's own snapshots do not have: 'memtrace export memory_viz' writes them.
const (
	writerKey = "memtrace" // of the snapshot: who wrote it
	// of blocks and entries: driver memory that the framework's allocator does not hold, which has a segment, too
	besideKey    = "memtrace_driver"
	blockSizeKey = "memtrace_block_size" // of entries: bytes of the block; "size" is what was asked for
	virtualKey   = "memtrace_no_segment" // of segments: there is none, but a block needs one
	orderKey     = "memtrace_order"      // of entries: their order among those of all devices
)
