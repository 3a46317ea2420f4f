package export

import (
	"cmp"
	"slices"

	"memtrace/analyzer"
	"memtrace/internal/symbol"
)

// sample is a call stack, outermost frame first, as numbers of its sampler's frames, and its value.
type sample struct {
	frames []int32
	value  uint64
}

// sampler converts rows to samples. A row's frame becomes one of those that the format distinguishes, and these are
// numbered in the order of their names, so that samples sorted by number are in an order independent of the rows'
// order.
type sampler struct {
	rows   []analyzer.StackRow
	stacks [][]int32 // by row, outermost frame first
	frames []frame   // by number
}

// newSampler numbers what shape makes of the rows' frames.
func newSampler(rows []analyzer.StackRow, shape func(*symbol.Frame) frame) *sampler {
	s := &sampler{rows: rows, stacks: make([][]int32, len(rows))}
	shaped := make(map[symbol.Frame]int32)
	numbers := make(map[frame]int32)
	number := func(f frame) int32 {
		n, known := numbers[f]
		if !known {
			n = int32(len(s.frames))
			numbers[f] = n
			s.frames = append(s.frames, f)
		}
		return n
	}
	for i := range rows {
		stack := make([]int32, 0, max(len(rows[i].Frames), 1))
		for k := len(rows[i].Frames) - 1; k >= 0; k-- {
			f := &rows[i].Frames[k]
			n, known := shaped[*f]
			if !known {
				n = number(shape(f))
				shaped[*f] = n
			}
			stack = append(stack, n)
		}
		if len(stack) == 0 {
			stack = append(stack, number(noStack))
		}
		s.stacks[i] = stack
	}
	s.sortFrames()
	return s
}

func (s *sampler) sortFrames() {
	order := make([]int32, len(s.frames))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return s.frames[a].compare(&s.frames[b]) })
	renamed := make([]int32, len(order))
	frames := make([]frame, len(order))
	for to, from := range order {
		renamed[from], frames[to] = int32(to), s.frames[from]
	}
	for _, stack := range s.stacks {
		for i := range stack {
			stack[i] = renamed[stack[i]]
		}
	}
	s.frames = frames
}

// samples returns what has a value: every stack once, sorted by its frames from the outermost on, and the sum.
func (s *sampler) samples(value Value) (list []sample, sum uint64) {
	for i := range s.rows {
		if v := value.of(&s.rows[i]); v > 0 {
			list = append(list, sample{s.stacks[i], v})
			sum += v
		}
	}
	slices.SortFunc(list, func(a, b sample) int {
		return cmp.Or(slices.Compare(a.frames, b.frames), cmp.Compare(b.value, a.value))
	})
	merged := list[:0]
	for _, next := range list {
		if last := len(merged) - 1; last >= 0 && slices.Equal(merged[last].frames, next.frames) {
			merged[last].value += next.value
		} else {
			merged = append(merged, next)
		}
	}
	return merged, sum
}
