package report

import "iter"

// DeviceReport is what the devices reported, joined with the trace's own figures.
type DeviceReport struct {
	Status  string          `json:"status"`  // "on"; "off" without samples
	Why     string          `json:"why"`     // why there are no samples or no more; "" otherwise
	Notes   []string        `json:"notes"`   // what limits the figures, as the recorder found it
	Devices []DeviceSamples `json:"devices"` // those that were sampled
}

// Highest yields the ledgers of the samples at which the process used most, by the index of the device. r may be nil.
func (r *DeviceReport) Highest() iter.Seq2[int16, *DeviceLedger] {
	return func(yield func(int16, *DeviceLedger) bool) {
		if r == nil {
			return
		}
		for i := range r.Devices {
			d := &r.Devices[i]
			for k := range d.Ledgers {
				if l := &d.Ledgers[k]; l.Moment == MomentHighest && !yield(d.Index, l) {
					return
				}
			}
		}
	}
}

// DeviceSamples is one device's samples, with the ledger at some of them.
type DeviceSamples struct {
	Index       int16          `json:"index"`
	SampleCount uint64         `json:"sample_count"`
	Ledgers     []DeviceLedger `json:"ledgers"` // per moment and grouping
	Samples     []Sample       `json:"samples"` // thinned out when there are very many
}

// DeviceLedger is the memory of a device at one sample, by owner. The sum of its rows is the memory that the device
// reports as used.
type DeviceLedger struct {
	By     string `json:"by"`
	Moment string `json:"moment"` // MomentHighest, MomentLast, or the requested moment
	// of the device, including the driver's reserve, which CUDA excludes from its size
	TotalBytes uint64 `json:"total_bytes"`
	Sample     Sample `json:"sample"`
	// PartialPageBytes is by how much the pages of 2 MiB that blocks touch exceed the blocks: on hardware, that much of
	// the remainder explains itself.
	PartialPageBytes uint64      `json:"partial_page_bytes"`
	Rows             []DeviceRow `json:"rows"`
}

// DeviceRow is one owner. Slack, unlisted bytes and the remainder may be negative.
type DeviceRow struct {
	Owner string `json:"owner"`
	Key   string `json:"key,omitempty"` // for blocks and outside
	Label string `json:"label,omitempty"`
	Bytes int64  `json:"bytes"`

	Requested *Requested `json:"requested,omitempty"` // of a framework's blocks, as of a Level
}

// DeviceSizes compares the memory requested on a device with its size there, regardless of filters.
type DeviceSizes struct {
	AtPeak SizesAt `json:"at_peak"` // at the first peak of the requested bytes
	AtEnd  SizesAt `json:"at_end"`
}

// SizesAt is the comparison at one moment. The blocks' size is their page bytes; idle pool memory and the graph pool
// are added.
type SizesAt struct {
	RequestedBytes uint64 `json:"requested_bytes"` // live driver memory
	// the same with plain blocks, arrays and variables in multiples of 512 bytes
	RoundedBytes uint64 `json:"rounded_bytes"`
	// an estimate: the same with plain blocks and variables in the 2 MiB pages that they touch
	PageBytes         uint64 `json:"page_bytes"`
	PoolReservedBytes uint64 `json:"pool_reserved_bytes"` // memory held by pools, as far as it was queried
	PoolIdleBytes     uint64 `json:"pool_idle_bytes"`     // of it in no live block
	GraphPoolBytes    uint64 `json:"graph_pool_bytes"`    // held for the allocation nodes of graphs
}

// Sample is a device's report at one moment, with the trace's figures of that moment. Used = tracked + context + others
// + kept + remainder.
type Sample struct {
	TimeNS     int64  `json:"time_ns"`
	Occasion   string `json:"occasion"`    // "context", "period", "peak", "oom" or "exit"
	Settled    bool   `json:"settled"`     // no memory call was in progress meanwhile
	ShareKnown bool   `json:"share_known"` // the device reported the use of each process

	UsedBytes   uint64 `json:"used_bytes"`   // in use on the device, by whomever
	OwnBytes    uint64 `json:"own_bytes"`    // by this process; 0 unless ShareKnown
	OthersBytes uint64 `json:"others_bytes"` // by other listed processes; 0 unless ShareKnown
	KeptBytes   uint64 `json:"kept_bytes"`   // by the driver and the firmware for themselves
	// what the trace accounts for: rounded blocks, idle pool memory, the graph pool
	TrackedBytes   uint64 `json:"tracked_bytes"`
	ContextBytes   uint64 `json:"context_bytes"`   // context and code, as measured when the context was new
	RemainderBytes int64  `json:"remainder_bytes"` // unexplained memory; negative if a free was missed
}

// Rank orders samples by how complete they are: those whose figures belong to one moment before others, those that
// distinguish processes before the rest.
func (s *Sample) Rank() int {
	switch {
	case !s.Settled:
		return 0
	case !s.ShareKnown:
		return 1
	}
	return 2
}

// Own is the memory that the process used, or the closest known figure.
func (s *Sample) Own() uint64 {
	if s.ShareKnown {
		return s.OwnBytes
	}
	return s.UsedBytes
}

// PartialPages is by how much the pages that blocks touch exceed the blocks.
func (v *SizesAt) PartialPages() uint64 { return v.PageBytes - min(v.PageBytes, v.RoundedBytes) }

// The values of a device ledger's Moment if Question.At requests none.
const (
	MomentHighest = "highest" // the sample at which the process used most
	MomentLast    = "last"
)

// Fragments describes how an allocator's memory outside of blocks is distributed between its blocks.
type Fragments struct {
	FreeBytes        uint64 `json:"free_bytes"`         // in no block
	FreePieces       uint64 `json:"free_pieces"`        // into how many pieces it is cut
	LargestFreeBytes uint64 `json:"largest_free_bytes"` // the largest of them: the largest possible allocation
	// in segments without any block, which the allocator can release
	WholeFreeBytes uint64 `json:"whole_free_bytes"`
	// of these pieces, what is in pages of a segment that grows, which PyTorch can give back one by one
	PageFreeBytes uint64 `json:"-"`
}

// GrowingPage is what PyTorch's segments for more than a MiB grow by (c10/cuda/CUDACachingAllocator.cpp in PyTorch
// 2.7.1).
const GrowingPage = 20 << 20

func (f *Fragments) Piece(start, end uint64) {
	if end <= start {
		return
	}
	f.FreeBytes += end - start
	f.FreePieces++
	f.LargestFreeBytes = max(f.LargestFreeBytes, end-start)
	f.PageFreeBytes += (end - start) / GrowingPage * GrowingPage
}

// DevicePart divides what one device held at the moment of a summary's ledgers, as those divide what all held.
type DevicePart struct {
	Index      int16
	Ledgers    []Ledger
	Categories []Categories
}

// Ledger is Summary.Ledger for one device.
func (p *DevicePart) Ledger(by string) *Ledger { return ledgerBy(p.Ledgers, by) }

// CategoriesBy is Summary.CategoriesBy for one device.
func (p *DevicePart) CategoriesBy(by string) *Categories { return categoriesBy(p.Categories, by) }
