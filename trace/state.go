package trace

import (
	"encoding/binary"
	"encoding/json"
)

// State is numbers under names: what a replay knows at a moment beside the live blocks. Each package that follows a
// trace keeps tables of its own in it and reads them back; nobody else interprets them.
type State struct {
	names  []string // in the order in which they were made
	tables map[string]*Numbers
}

// Numbers is a table: varints in a row. What is read of it is checked by its reader: after the last number that is
// there every further one is 0, and Failed.
type Numbers struct {
	data   []byte
	failed bool
}

const (
	// maxStateTables bounds the tables of a state, maxStateName their names.
	maxStateTables = 1 << 10
	maxStateName   = 64
)

// Table returns the table of a name, which is empty where there was none.
func (s *State) Table(name string) *Numbers {
	if t := s.tables[name]; t != nil {
		return t
	}
	if s.tables == nil {
		s.tables = make(map[string]*Numbers)
	}
	t := &Numbers{}
	s.tables[name] = t
	s.names = append(s.names, name)
	return t
}

// Names lists the tables in the order in which they were made.
func (s *State) Names() []string { return s.names }

// Put appends numbers.
func (n *Numbers) Put(values ...uint64) {
	for _, v := range values {
		n.data = binary.AppendUvarint(n.data, v)
	}
}

// PutSigned appends numbers that may be negative.
func (n *Numbers) PutSigned(values ...int64) {
	for _, v := range values {
		n.data = binary.AppendUvarint(n.data, zigzag(v))
	}
}

// PutText appends a text.
func (n *Numbers) PutText(s string) { n.data = appendText(n.data, s) }

// PutBool appends whether something is so.
func (n *Numbers) PutBool(is bool) {
	if is {
		n.Put(1)
	} else {
		n.Put(0)
	}
}

// More reports whether numbers are left to read.
func (n *Numbers) More() bool { return len(n.data) > 0 && !n.failed }

// Next reads a number.
func (n *Numbers) Next() uint64 {
	d := decoder{data: n.data, failed: n.failed}
	v := d.uvarint()
	n.data, n.failed = d.data, d.failed
	return v
}

// Signed reads a number that may be negative.
func (n *Numbers) Signed() int64 { return unzigzag(n.Next()) }

// ID reads a number that fits 32 bits.
func (n *Numbers) ID() uint32 {
	v := n.Next()
	if v > 1<<32-1 {
		n.failed = true
		return 0
	}
	return uint32(v)
}

// Bool reads whether something is so.
func (n *Numbers) Bool() bool { return n.Next() != 0 }

// Text reads a text.
func (n *Numbers) Text() string {
	d := decoder{data: n.data, failed: n.failed}
	s := d.text(MaxString)
	n.data, n.failed = d.data, d.failed
	return s
}

// PutJSON appends a value as JSON, for few values of many fields. The error is that of one that JSON cannot hold.
func (n *Numbers) PutJSON(v any) error {
	text, err := json.Marshal(v)
	n.PutText(string(text))
	return err
}

// JSON reads what PutJSON wrote into v.
func (n *Numbers) JSON(v any) {
	if text := n.Text(); !n.failed && json.Unmarshal([]byte(text), v) != nil {
		n.failed = true
	}
}

// Fail marks a table whose numbers make no sense.
func (n *Numbers) Fail() { n.failed = true }

// Failed names a table of which more was read than is there, or whose numbers make no sense; "" where there is none.
func (s *State) Failed() string {
	for _, name := range s.names {
		if s.tables[name].failed {
			return name
		}
	}
	return ""
}

// append writes the tables from one of them on, up to about a section's worth, and returns the next one.
func (s *State) append(dst []byte, from int) (_ []byte, next int) {
	for next = from; next < len(s.names); next++ {
		t := s.tables[s.names[next]]
		if next > from && len(dst)+len(t.data) > keyframePart {
			break
		}
		dst = appendText(dst, s.names[next])
		dst = binary.AppendUvarint(dst, uint64(len(t.data)))
		dst = append(dst, t.data...)
	}
	return dst, next
}

// decode adds the tables of a section, copied.
func (s *State) decode(d *decoder) {
	for len(d.data) > 0 && !d.failed {
		name := d.text(maxStateName)
		data := d.bytes(d.uvarint())
		if len(s.names) == maxStateTables || s.tables[name] != nil {
			d.fail()
		}
		if d.failed {
			return
		}
		s.Table(name).data = append([]byte(nil), data...)
	}
}
