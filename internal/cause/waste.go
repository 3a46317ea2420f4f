package cause

import (
	"slices"
	"strings"

	"memtrace/analyzer/report"
)

// Why an allocator holds memory that is in no block, where that is a large part of what it holds.
const (
	WasteSegments = "segments" // segments without a block
	WasteGaps     = "gaps"     // in segments that hold blocks
	WastePools    = "pools"    // private pools, as those of CUDA graphs
)

// Waste is memory that is reserved at the peak and in no block.
type Waste struct {
	Why       string
	Bytes     uint64 // that are idle for this reason
	Pools     uint64 // private ones
	Frees     uint64 // what one pool for all graphs gives back, or segments that grow; 0: none, or not known
	CouldGrow bool   // segments, which do not yet
}

const (
	// wastePart is the least part of what is in blocks, as a divisor, that makes idle memory worth a reason.
	wastePart  = 4
	leastWaste = 64 << 20
)

// WasteOf finds the reason for most of what is idle at the peak of PyTorch's memory; nil where little is idle, no
// single reason explains most of it, or it is not known.
func WasteOf(s *report.Summary) *Waste {
	idle := s.IdleAtPeak
	if idle == nil || s.Versions["torch"] == "" || s.Bounds != nil ||
		idle.All.FreeBytes < max(s.Framework.PeakBytes/wastePart, leastWaste) {
		return nil
	}
	most := idle.All.FreeBytes / 2
	private, shared := report.PrivateBytes(idle.Private)
	whole := idle.Common.WholeFreeBytes
	gaps := idle.Common.FreeBytes - whole
	switch {
	case private > most:
		return &Waste{Why: WastePools, Bytes: private, Pools: uint64(len(idle.Private)), Frees: shared}
	case whole > most:
		return &Waste{Why: WasteSegments, Bytes: whole, Frees: idle.GrowingFrees, CouldGrow: CouldGrow(s)}
	case gaps > most:
		return &Waste{Why: WasteGaps, Bytes: gaps, Frees: idle.GrowingFrees, CouldGrow: CouldGrow(s)}
	}
	return nil
}

// CouldGrow reports whether PyTorch could let its segments grow and does not. What streams beside the default one have
// cached stays apart even then.
func CouldGrow(s *report.Summary) bool {
	expands := func(v report.Setting) bool { return report.ExpandsSegments(v.Text) }
	a := s.Allocator
	if a == nil || slices.ContainsFunc(a.Settings, expands) {
		return false
	}
	return a.StreamCount == 1 && !strings.HasPrefix(s.Versions["torch"], "1.") &&
		!strings.HasPrefix(s.Versions["torch"], "2.0.")
}
