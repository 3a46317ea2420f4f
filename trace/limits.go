package trace

// The limits keep a damaged or hostile file from costing more memory than its size justifies. Raising one keeps old
// files readable; lowering one refuses files that an earlier version wrote, so it needs a new format version.
const (
	// MaxBlockEvents is the number of events at which the writer closes a block, and the most a reader accepts in one.
	MaxBlockEvents = 64 << 10
	// MaxSectionBytes bounds a section's payload, as stored and uncompressed.
	MaxSectionBytes = 16 << 20
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

	// A compressed section may state at most ratioSlack + ratio * stored bytes as its raw size, and the writer stores
	// it plain where it would be more. Events are decoded in passing, so their ratio may be generous; what a dictionary
	// holds stays in memory.
	ratioSlack      = 64 << 10
	ratioEvents     = 4096
	ratioDictionary = 256
)

// rawSizeAllowed reports whether a section of the given kind may claim raw bytes for stored compressed ones.
func rawSizeAllowed(kind SectionKind, stored, raw int) bool {
	ratio := ratioDictionary
	if kind == SectionEvents {
		ratio = ratioEvents
	}
	return raw <= MaxSectionBytes && raw <= ratioSlack+ratio*stored
}
