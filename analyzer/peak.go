package analyzer

// meter is one running total with its high-water mark: the first moment at which it was as high as it ever got. epoch counts the new maxima; a share
// that remembers its value under an epoch can tell what it was at the peak.
type meter struct {
	current    uint64
	peak       uint64
	epoch      uint64
	peakTime   int64
	allocs     uint64
	frees      uint64
	refused    uint64
	allocBytes uint64

	sure, surePeak uint64 // of current and peak, what is certain; kept by losses
}

// grow adds a new block. Shares of the total must have been grown before, so that they are part of a new maximum.
func (m *meter) grow(size uint64, time int64) {
	m.allocs++
	m.allocBytes += size
	m.current += size
	if m.current > m.peak {
		m.peak = m.current
		m.peakTime = time
		m.epoch++
	}
}

func (m *meter) shrink(size uint64) {
	m.frees++
	m.current -= size
}

// pass counts a block that was never seen live.
func (m *meter) pass(size uint64) {
	m.allocs++
	m.frees++
	m.allocBytes += size
}

// share is one key's part of a meter's total. It knows its value at the meter's peak without being told when a peak happens: the first change after a
// new maximum saves the value that stood until then. Every operation is O(1).
type share struct {
	current uint64
	atPeak  uint64 // value at the maximum number epoch
	epoch   uint64
}

// settle must come before every change, with the epoch of the meter whose peak is asked for.
func (s *share) settle(epoch uint64) {
	if s.epoch != epoch {
		s.atPeak = s.current
		s.epoch = epoch
	}
}

func (s *share) grow(size, epoch uint64) {
	s.settle(epoch)
	s.current += size
}

func (s *share) shrink(size, epoch uint64) {
	s.settle(epoch)
	s.current -= size
}

// peak returns the value at the meter's latest maximum.
func (s *share) peak(epoch uint64) uint64 {
	if s.epoch == epoch {
		return s.atPeak
	}
	return s.current
}
