package report

// Fragments tells how the memory of an allocator that is in no block lies between its blocks.
type Fragments struct {
	FreeBytes        uint64 `json:"free_bytes"`         // in no block
	FreePieces       uint64 `json:"free_pieces"`        // into how many pieces it is cut
	LargestFreeBytes uint64 `json:"largest_free_bytes"` // the largest of them: what the allocator can hand out at once
	WholeFreeBytes   uint64 `json:"whole_free_bytes"`   // in segments without any block, which the allocator can give back
}

func (f *Fragments) Piece(start, end uint64) {
	if end <= start {
		return
	}
	f.FreeBytes += end - start
	f.FreePieces++
	f.LargestFreeBytes = max(f.LargestFreeBytes, end-start)
}
