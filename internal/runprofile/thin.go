package runprofile

import "memtrace/analyzer/report"

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
