package trace

// The limits keep a damaged or hostile file from costing more memory than its size justifies. Raising one keeps old
// files readable; lowering one refuses files that an earlier version wrote, so it needs a new format version.
const (
	// MaxBlockEvents is the number of events at which the writer closes a block, and the most a reader accepts in one.
	MaxBlockEvents = 64 << 10
	// MaxString bounds a dictionary string, a path and a name, in bytes.
	MaxString = 1 << 20
	// MaxFrames bounds the frames of one call stack, native or Python.
	MaxFrames = 4096
	// MaxLineTable bounds the line table of one Python code object, in bytes.
	MaxLineTable = 1 << 20

	// compressAbove is the size at which a dictionary is worth a zstd frame.
	compressAbove = 256
	// dictionaryTarget is the size at which the writer closes a dictionary section without being asked, which bounds
	// its buffer.
	dictionaryTarget = 1 << 20
	// batchEvents is the number of events that travel through the column codecs at a time: their rows (112 bytes each)
	// stay in a second-level cache.
	batchEvents = 1024
)
