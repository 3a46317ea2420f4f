package report

import "fmt"

// EndOf returns when the iteration of a number ended; found is false where none did. t may be nil.
func (t *Training) EndOf(number uint64) (timeNS int64, found bool) {
	if t == nil || t.IterationsBy == IterationsByNothing {
		return 0, false
	}
	for i := range t.Iterations {
		if it := &t.Iterations[i]; it.Ended && it.Number == number {
			return it.EndNS, true
		}
	}
	return 0, false
}

// EndedWords says of which iterations the end is known. t may be nil.
func (t *Training) EndedWords() string {
	if t == nil || t.IterationsBy == IterationsByNothing {
		return "no iterations were detected; call memtrace.step() in the training loop"
	}
	var first, last uint64
	for i := range t.Iterations {
		if it := &t.Iterations[i]; it.Ended {
			if last = it.Number; first == 0 {
				first = last
			}
		}
	}
	if last == 0 {
		return "the first iteration did not end"
	}
	return fmt.Sprintf("the iterations whose end is known are %d to %d", first, last)
}
