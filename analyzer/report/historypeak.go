package report

// PeakEvent is the first event behind which most is live.
func (h *History) PeakEvent() uint32 {
	change := make([]int64, len(h.Times)+1)
	for _, b := range h.Blocks {
		change[b.Born] += int64(b.Size)
		change[b.Died] -= int64(b.Size)
	}
	best, live, most := 0, int64(0), int64(0)
	for i := range h.Times {
		if live += change[i]; live > most {
			most, best = live, i
		}
	}
	return uint32(best)
}
