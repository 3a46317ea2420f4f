package heap

// Meter is one running total with its high-water mark: the first moment of the highest value. epoch counts the new
// maxima; a share that keeps its value with an epoch has its value at the peak.
type Meter struct {
	Current    uint64
	Peak       uint64
	Epoch      uint64
	PeakTime   int64
	Allocs     uint64
	Frees      uint64
	Refused    uint64
	AllocBytes uint64

	Certain, CertainPeak uint64 // the certain part of current and peak; reduced by losses
}

// Grow adds a new block. Shares of the total must have been grown before, so that they are part of a new maximum.
func (m *Meter) Grow(size uint64, time int64) {
	m.Allocs++
	m.AllocBytes += size
	m.Current += size
	if m.Current > m.Peak {
		m.Peak = m.Current
		m.PeakTime = time
		m.Epoch++
	}
}

// Events is how many blocks came and went: the number of the latest of these events.
func (m *Meter) Events() uint64 { return m.Allocs + m.Frees }

func (m *Meter) Shrink(size uint64) {
	m.Frees++
	m.Current -= size
}

// Pass counts a block that was never seen live.
func (m *Meter) Pass(size uint64) {
	m.Allocs++
	m.Frees++
	m.AllocBytes += size
}

// Share is one key's part of a meter's total. It has its value at the meter's peak without a notification of the peak:
// the first change after a new maximum saves the previous value. Every operation is O(1).
type Share struct {
	Current uint64
	AtPeak  uint64 // value at the maximum number epoch
	Epoch   uint64
}

// Sync must be called before every change, with the epoch of the meter whose peak is needed.
func (s *Share) Sync(epoch uint64) {
	if s.Epoch != epoch {
		s.AtPeak = s.Current
		s.Epoch = epoch
	}
}

func (s *Share) Grow(size, epoch uint64) {
	s.Sync(epoch)
	s.Current += size
}

func (s *Share) Shrink(size, epoch uint64) {
	s.Sync(epoch)
	s.Current -= size
}

// Peak returns the value at the meter's latest maximum.
func (s *Share) Peak(epoch uint64) uint64 {
	if s.Epoch == epoch {
		return s.AtPeak
	}
	return s.Current
}

func (m *Meter) Restart(time int64) {
	m.Peak, m.PeakTime, m.CertainPeak = m.Current, time, m.Certain
	m.Epoch++
}

// AddCertain adds a new block: a certain one, or one of which only the beginning is certain, unless it came late and
// other blocks may have ended since.
func (m *Meter) AddCertain(size uint64, sure, alone bool) {
	if sure {
		m.Certain += size
		m.CertainPeak = max(m.CertainPeak, m.Certain)
	} else if alone {
		m.CertainPeak = max(m.CertainPeak, m.Certain+size)
	}
}
