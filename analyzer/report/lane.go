package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Lane is what lies below a picture of memory over time: items in the order of time. Names may hold what a trace says.
type Lane struct {
	Name  string
	Items []LaneItem
}

// LaneItem is a stretch of time, or a moment.
type LaneItem struct {
	Name   string // as short as there is room for
	Title  string // the same in words
	FromNS int64
	ToNS   int64       // FromNS of a moment
	Moment bool        // it has no end
	Parts  []PhasePart // of a lane of phases
}

// Names of lanes.
const (
	LaneIterations  = "iterations"
	LaneEpochs      = "epochs"
	LanePhases      = "phases"
	LaneMarks       = "marks"
	LaneOutOfMemory = "no memory"
)

// MaxLaneItems bounds the items of a lane. Of more iterations, epochs and phases, those that follow each other are one;
// of more moments the first ones are kept.
const MaxLaneItems = MaxPhaseSpans

// Lanes are those that have items: iterations, epochs, phases, marks, and moments at which memory ran out.
func (s *Summary) Lanes() []Lane {
	lanes := []Lane{{Name: LaneMarks, Items: s.markItems()}, {Name: LaneOutOfMemory, Items: s.oomItems()}}
	if t := s.Training; t != nil {
		lanes = append([]Lane{{LaneIterations, t.iterationItems()}, {LaneEpochs, t.epochItems()}, {LanePhases, t.phaseItems()}}, lanes...)
	}
	return slices.DeleteFunc(lanes, func(l Lane) bool { return len(l.Items) == 0 })
}

// iterationItems are the iterations that ended, and the one that memtrace.step() began last.
func (t *Training) iterationItems() (items []LaneItem) {
	if t.IterationsBy == IterationsByNothing {
		return nil
	}
	list := make([]*Iteration, 0, len(t.Iterations))
	for i := range t.Iterations {
		if t.Iterations[i].Ended || t.IterationsBy == IterationsByStep {
			list = append(list, &t.Iterations[i])
		}
	}
	together := 1
	for len(list) > together*MaxLaneItems {
		together *= 2
	}
	for i := 0; i < len(list); i += together {
		first, last := list[i], list[min(i+together, len(list))-1]
		item := LaneItem{Name: fmt.Sprint(first.Number), Title: fmt.Sprintf("iteration %d", first.Number), FromNS: first.StartNS, ToNS: last.EndNS}
		if first != last {
			item.Name, item.Title = fmt.Sprintf("%d-%d", first.Number, last.Number), fmt.Sprintf("iterations %d to %d", first.Number, last.Number)
		}
		items = append(items, item)
	}
	return items
}

// epochItems go from an epoch's first iteration to its last one.
func (t *Training) epochItems() (items []LaneItem) {
	before := uint64(0)
	for i := range t.Iterations {
		it := &t.Iterations[i]
		switch {
		case !it.Ended && t.IterationsBy != IterationsByStep || it.Epoch == 0:
			continue
		case it.Epoch == before:
			items[len(items)-1].ToNS = it.EndNS
		default:
			items = append(items, LaneItem{Name: fmt.Sprint(it.Epoch), Title: fmt.Sprintf("epoch %d", it.Epoch), FromNS: it.StartNS, ToNS: it.EndNS})
		}
		before = it.Epoch
	}
	for len(items) > MaxLaneItems {
		items = JoinPairs(items, func(a, b LaneItem) LaneItem {
			first, _, _ := strings.Cut(a.Name, "-")
			_, last, several := strings.Cut(b.Name, "-")
			if !several {
				last = b.Name
			}
			return LaneItem{Name: first + "-" + last, Title: "epochs " + first + " to " + last, FromNS: a.FromNS, ToNS: b.ToNS}
		})
	}
	return items
}

func (t *Training) phaseItems() (items []LaneItem) {
	for _, v := range t.Phases {
		item := LaneItem{FromNS: v.FromNS, ToNS: v.ToNS, Parts: v.Parts}
		if len(v.Parts) == 1 {
			item.Name, item.Title = v.Parts[0].Phase, v.Parts[0].Phase
		}
		items = append(items, item)
	}
	return items
}

// markItems are the first moments of the program's marks.
func (s *Summary) markItems() (items []LaneItem) {
	for _, m := range s.Marks {
		if !strings.HasPrefix(m.Name, "memtrace.") {
			items = append(items, LaneItem{Name: m.Name, Title: m.Name, FromNS: m.FirstTimeNS, ToNS: m.FirstTimeNS, Moment: true})
		}
	}
	slices.SortStableFunc(items, func(a, b LaneItem) int { return cmp.Compare(a.FromNS, b.FromNS) })
	return items[:min(len(items), MaxLaneItems)]
}

func (s *Summary) oomItems() (items []LaneItem) {
	for i := range s.OOM.Events {
		at := s.OOM.Events[i].TimeNS
		items = append(items, LaneItem{FromNS: at, ToNS: at, Moment: true})
	}
	return items[:min(len(items), MaxLaneItems)]
}
