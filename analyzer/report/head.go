package report

import "slices"

// Head is what the comparison of many ranks needs of a summary.
type Head struct {
	Memtrace string `json:"memtrace"` // version of the command that made it
	// without what divides memory: process, levels, devices, growth, health
	Summary    *Summary  `json:"summary"`
	Categories []Purpose `json:"categories"` // of the main level; empty where no framework told what memory is for
	Steps      StepTable `json:"steps"`
}

// Purpose is the memory for one purpose.
type Purpose struct {
	Name         string `json:"name"`
	PeakBytes    uint64 `json:"peak_bytes"`    // of it at the peak of the level
	HighestBytes uint64 `json:"highest_bytes"` // its own highest, whenever that was
}

// MaxSteps bounds StepTable: of more iterations, consecutive ones share a row.
const MaxSteps = 128

// StepTable is a table with a row for each iteration that ended, or for several consecutive ones.
type StepTable struct {
	By       string   `json:"by"`     // one of the IterationsBy constants; "" if the iterations are not known
	Number   []uint64 `json:"number"` // of the first iteration of the row
	Count    []uint64 `json:"count"`  // iterations
	StartNS  []int64  `json:"start_ns"`
	EndNS    []int64  `json:"end_ns"`
	Peak     []uint64 `json:"peak_bytes"` // the highest of these iterations
	End      []uint64 `json:"end_bytes"`  // held when the last of them ended
	Requests []uint64 `json:"alloc_count"`
	// for each of Head.Categories a column: how much of Peak was for it; empty in profiles of an earlier memtrace
	Held [][]uint64 `json:"held_bytes"`
}

// HeadOf takes the head from a summary.
func HeadOf(s *Summary) *Head {
	short := &Summary{LostRecords: s.LostRecords, Process: s.Process, Versions: s.Versions, NullGPU: s.NullGPU,
		Devices: slices.Clone(s.Devices), Driver: s.Driver, Framework: s.Framework, Trend: s.Trend,
		OtherTrends: s.OtherTrends, Health: s.Health}
	short.OOM.Count, short.OOM.RecoveredCount = s.OOM.Count, s.OOM.RecoveredCount
	for i := range short.Devices {
		short.Devices[i].Sizes = DeviceSizes{}
	}
	categories := categoriesOf(s)
	return &Head{Summary: short, Categories: categories, Steps: stepsOf(s.Training, categories)}
}

// categoriesOf lists what memory was for.
func categoriesOf(s *Summary) []Purpose {
	t := s.Training
	list := []Purpose{}
	if t == nil || t.Level != s.MainLevel() {
		return list
	}
	for n, name := range t.Categories {
		c := Purpose{Name: name}
		for i := range t.Iterations {
			it := &t.Iterations[i]
			if n < len(it.Highest) {
				c.HighestBytes = max(c.HighestBytes, it.Highest[n])
			}
			if i == t.Highest && n < len(it.Peak.Held) {
				c.PeakBytes = it.Peak.Held[n]
			}
		}
		if c.HighestBytes > 0 {
			list = append(list, c)
		}
	}
	return list
}

// stepsOf makes the table of the iterations that ended, divided by some of the training's categories.
func stepsOf(t *Training, categories []Purpose) (s StepTable) {
	s = StepTable{Number: []uint64{}, Count: []uint64{}, StartNS: []int64{}, EndNS: []int64{}, Peak: []uint64{},
		End: []uint64{}, Requests: []uint64{}, Held: make([][]uint64, len(categories))}
	for i := range s.Held {
		s.Held[i] = []uint64{}
	}
	if t == nil || t.IterationsBy == IterationsByNothing {
		return s
	}
	s.By = t.IterationsBy
	ended := slices.DeleteFunc(slices.Clone(t.Iterations), func(it Iteration) bool { return !it.Ended })
	each := (len(ended) + MaxSteps - 1) / MaxSteps
	for ; len(ended) > 0; ended = ended[min(each, len(ended)):] {
		row := ended[:min(each, len(ended))]
		peak, allocs := &row[0].Peak, uint64(0)
		for i := range row {
			if allocs += row[i].AllocCount; row[i].Peak.Bytes > peak.Bytes {
				peak = &row[i].Peak
			}
		}
		last := &row[len(row)-1]
		s.Number, s.Count = append(s.Number, row[0].Number), append(s.Count, uint64(len(row)))
		s.StartNS, s.EndNS = append(s.StartNS, row[0].StartNS), append(s.EndNS, last.EndNS)
		s.Peak, s.End = append(s.Peak, peak.Bytes), append(s.End, SumOf(last.End))
		s.Requests = append(s.Requests, allocs)
		for i := range categories {
			bytes := uint64(0)
			if n := slices.Index(t.Categories, categories[i].Name); n >= 0 && n < len(peak.Held) {
				bytes = peak.Held[n]
			}
			s.Held[i] = append(s.Held[i], bytes)
		}
	}
	return s
}
