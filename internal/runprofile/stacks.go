package runprofile

import (
	"fmt"

	"memtrace/internal/symbol"
)

// Stacks are call stacks, each of which has the same identifier in every rank.
type Stacks struct {
	ID     []string `json:"id"`     // see stackID
	Stack  [][]int  `json:"frames"` // innermost first: index in Frames
	Frames []Frame  `json:"table"`
}

// Frame is a function of a call stack.
type Frame struct {
	Function string `json:"function"`
	Place    string `json:"place,omitempty"` // file, relative to the working directory or to its package; "" unknown
	Line     int    `json:"line,omitempty"`  // 0 unknown
	Native   bool   `json:"native,omitempty"`
	User     bool   `json:"user,omitempty"` // the program's own code
}

// identity is what a frame is the same by in every rank.
func (f Frame) identity() symbol.Identity {
	return symbol.Identity{Function: f.Function, File: f.Place, Line: f.Line, Python: !f.Native}
}

// stackID is symbol.HashStack of a stack, in 16 hexadecimal digits.
func stackID(frames []Frame) string {
	list := make([]uint64, len(frames))
	for i, f := range frames {
		list[i] = f.identity().Hash()
	}
	return fmt.Sprintf("%016x", symbol.HashStack(list))
}

// frameOf is a frame as profiles have it.
func frameOf(f symbol.Frame, place string, user bool) Frame {
	i := f.Identity(place)
	return Frame{Function: i.Function, Place: i.File, Line: i.Line, Native: !i.Python, User: user}
}

// stackTable numbers stacks and names.
type stackTable struct {
	stacks Stacks
	names  []string
	byID   map[string]int
	frame  map[Frame]int
	name   map[string]int
}

func newStackTable() *stackTable {
	return &stackTable{byID: map[string]int{}, frame: map[Frame]int{}, name: map[string]int{},
		stacks: Stacks{ID: []string{}, Stack: [][]int{}, Frames: []Frame{}}, names: []string{}}
}

// add returns the number of a stack, -1 for one without frames.
func (t *stackTable) add(frames []Frame) int {
	if len(frames) == 0 {
		return -1
	}
	id := stackID(frames)
	if n, known := t.byID[id]; known {
		return n
	}
	list := make([]int, len(frames))
	for i, f := range frames {
		n, known := t.frame[f]
		if !known {
			n = len(t.stacks.Frames)
			t.frame[f], t.stacks.Frames = n, append(t.stacks.Frames, f)
		}
		list[i] = n
	}
	n := len(t.stacks.ID)
	t.byID[id] = n
	t.stacks.ID, t.stacks.Stack = append(t.stacks.ID, id), append(t.stacks.Stack, list)
	return n
}

func (t *stackTable) named(name string) int {
	n, known := t.name[name]
	if !known {
		n = len(t.names)
		t.name[name], t.names = n, append(t.names, name)
	}
	return n
}
