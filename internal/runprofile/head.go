package runprofile

import (
	"slices"

	"memtrace/analyzer/report"
)

// headOf takes from a summary what the comparison of ranks needs.
func headOf(s *report.Summary) Head {
	short := &report.Summary{LostRecords: s.LostRecords, Process: s.Process, Versions: s.Versions, NullGPU: s.NullGPU,
		Devices: slices.Clone(s.Devices), Driver: s.Driver, Framework: s.Framework, Trend: s.Trend,
		OtherTrends: s.OtherTrends, Health: s.Health}
	short.OOM.Count, short.OOM.RecoveredCount = s.OOM.Count, s.OOM.RecoveredCount
	for i := range short.Devices {
		short.Devices[i].Sizes = report.DeviceSizes{}
	}
	return Head{Summary: short, Categories: categoriesOf(s), Steps: stepsOf(s.Training)}
}

// HeadOf is the head of the profile that a summary of a report would have.
func HeadOf(s *report.Summary) *Head {
	h := headOf(s)
	return &h
}

// categoriesOf lists what memory was for.
func categoriesOf(s *report.Summary) []Category {
	t := s.Training
	list := []Category{}
	if t == nil || t.Level != s.MainLevel() {
		return list
	}
	for n, name := range t.Categories {
		c := Category{Name: name}
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

// stepsOf makes the table of the iterations that ended.
func stepsOf(t *report.Training) (s Steps) {
	s = Steps{Number: []uint64{}, Count: []uint64{}, StartNS: []int64{}, EndNS: []int64{}, Peak: []uint64{},
		End: []uint64{}, Requests: []uint64{}}
	if t == nil || t.IterationsBy == report.IterationsByNothing {
		return s
	}
	s.By = t.IterationsBy
	ended := slices.DeleteFunc(slices.Clone(t.Iterations), func(it report.Iteration) bool { return !it.Ended })
	each := (len(ended) + MaxSteps - 1) / MaxSteps
	for ; len(ended) > 0; ended = ended[min(each, len(ended)):] {
		row := ended[:min(each, len(ended))]
		peak, allocs := uint64(0), uint64(0)
		for i := range row {
			peak, allocs = max(peak, row[i].Peak.Bytes), allocs+row[i].AllocCount
		}
		last := &row[len(row)-1]
		s.Number, s.Count = append(s.Number, row[0].Number), append(s.Count, uint64(len(row)))
		s.StartNS, s.EndNS = append(s.StartNS, row[0].StartNS), append(s.EndNS, last.EndNS)
		s.Peak, s.End = append(s.Peak, peak), append(s.End, report.SumOf(last.End))
		s.Requests = append(s.Requests, allocs)
	}
	return s
}

// maxIterations bounds the iterations that the report of a profile has one by one.
const maxIterations = 64

// thinIterations leaves at most maxIterations iterations, at even distances, with the first and the last ones and the
// highest, and counts the others as left out.
func thinIterations(s *report.Summary) {
	t := s.Training
	if t == nil || len(t.Iterations) <= maxIterations {
		return
	}
	list := make([]report.Iteration, 0, maxIterations)
	highest, last := t.Highest, len(t.Iterations)-1
	step := (last + maxIterations - 4) / (maxIterations - 4)
	for i := range t.Iterations {
		if i == t.Highest {
			highest = len(list)
		}
		if i <= 1 || i >= last-1 || i%step == 0 || i == t.Highest {
			list = append(list, t.Iterations[i])
		} else {
			t.LeftOut++
		}
	}
	t.Iterations, t.Highest = list, highest
}
