package runprofile

import (
	"fmt"
	"hash/fnv"

	"memtrace/internal/symbol"
)

// Stacks are call stacks, each of which has the same identifier in every rank.
type Stacks struct {
	ID     []string `json:"id"`     // see StackID
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

// StackID is the 64-bit FNV-1a hash of a stack, in 16 hexadecimal digits. Of each frame, innermost first, it has the
// language, the function as reports name it, the file as reports shorten it, and the line, each ended by a zero byte.
// The folders in which a machine has its files, and addresses, are not part of it.
func StackID(frames []Frame) string {
	h := fnv.New64a()
	for _, f := range frames {
		language := "python"
		if f.Native {
			language = "native"
		}
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00%d\x00", language, f.Function, f.Place, f.Line)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// jit names code without a name, whose address differs from process to process.
const jit = "[jit]"

// frameOf is a frame as profiles have it.
func frameOf(f symbol.Frame, place string, user bool) Frame {
	function := f.Name()
	if f.Kind == symbol.JIT && f.Function == "" {
		function = jit
	}
	return Frame{Function: function, Place: place, Line: f.Line, Native: f.Kind != symbol.Python, User: user}
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
	id := StackID(frames)
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
