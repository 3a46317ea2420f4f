package report

// Trend is the judgement on whether one kind of memory grows, from the memory of each of its call stacks over the run,
// before its teardown, in which all is freed. Every sentence on growth uses it.
type Trend struct {
	Level string `json:"level"` // a level, or another kind of memory by the name of Summary.Other
	// GrowthUnknown, GrowthNone or GrowthSteady; the rest is zero unless it is that, or FloorBytes is not zero
	Kind string `json:"kind"`
	// with GrowthNone: memory grows steadily, but by less than this in all, which a run's ordinary rise may be, too
	FloorBytes uint64 `json:"floor_bytes,omitempty"`
	FromTimeNS int64  `json:"from_time_ns"` // since when
	ToTimeNS   int64  `json:"to_time_ns"`   // end of the judged part: about the last allocation
	FromBytes  uint64 `json:"from_bytes"`   // that stayed then
	ToBytes    uint64 `json:"to_bytes"`     // the same at the end: Bytes more
	// how much more is held since then, without what was only held for a while
	Bytes uint64 `json:"bytes"`
	// 0 on the null GPU, where no kernel takes the time that it takes on a device
	BytesPerSecond float64 `json:"bytes_per_second"`
	// the same for each iteration; 0 where the program's iterations are not known
	BytesPerIteration uint64 `json:"bytes_per_iteration,omitempty"`
	// the places that grow, most first; the rest of Bytes is spread over others that do not grow steadily
	Owners []TrendOwner `json:"owners"`
	// until the device is full at this rate; 0: not known
	FullInSeconds float64 `json:"full_in_seconds,omitempty"`
}

// TrendOwner is one place whose memory grows.
type TrendOwner struct {
	Site  string `json:"site"`
	User  bool   `json:"user"` // the program's own code, not a library's
	Bytes uint64 `json:"bytes"`

	// the line that allocated all of it, where Site is one that called it; "" if that is Site, or if there are several
	Inner string `json:"-"`
}

// Whether memory grows.
const (
	// too short a run, records were lost, or growth that may be a leak or the first round of many
	GrowthUnknown = "unknown"
	GrowthNone    = "none"
	// the same places hold more repeatedly, up to the end or the last iteration
	GrowthSteady = "steady"
)

// Rises reports whether memory grows steadily, be it by so little that it is not called growth.
func (t *Trend) Rises() bool { return t.Kind == GrowthSteady || t.FloorBytes > 0 }

// Growing lists the judgements by which memory grows, the one on the main level first.
func (s *Summary) Growing() []*Trend {
	return s.trends(func(t *Trend) bool { return t.Kind == GrowthSteady })
}

// GrowingLittle lists the judgements by which memory grows steadily, but by so little that it is not called growth.
func (s *Summary) GrowingLittle() []*Trend {
	return s.trends(func(t *Trend) bool { return t.FloorBytes > 0 })
}

// Rising lists both: what grows, then what rises by less than that.
func (s *Summary) Rising() []*Trend { return append(s.Growing(), s.GrowingLittle()...) }

func (s *Summary) trends(are func(*Trend) bool) (list []*Trend) {
	if s.Trend != nil && are(s.Trend) {
		list = append(list, s.Trend)
	}
	for i := range s.OtherTrends {
		if t := &s.OtherTrends[i]; are(t) {
			list = append(list, t)
		}
	}
	return list
}

// GrowthKind is the judgement on all memory: no growth only where none of it grows, and all was judged.
func (s *Summary) GrowthKind() string {
	if len(s.Growing()) > 0 {
		return GrowthSteady
	}
	if s.Trend == nil || s.Trend.Kind == GrowthUnknown {
		return GrowthUnknown
	}
	for _, t := range s.OtherTrends {
		if t.Kind == GrowthUnknown {
			return GrowthUnknown
		}
	}
	return GrowthNone
}

// Owned is the part of the growth whose places are known.
func (t *Trend) Owned() (sum uint64) {
	for _, o := range t.Owners {
		sum += o.Bytes
	}
	return sum
}
