package training

import "memtrace/trace"

// Elements are the bytes of an element of parameters, buffers and optimizer state, by their names, where they are one
// or two.
type Elements map[trace.StringID]uint8

// Named takes in a name and returns what is known then; the last one holds.
func (l Elements) Named(e *trace.Event) Elements {
	switch e.Category {
	case trace.CategoryParameter, trace.CategoryBuffer, trace.CategoryOptimizer:
		bytes := e.ElementBytes()
		if bytes == trace.WideElement {
			delete(l, e.Name)
			break
		}
		if l == nil {
			l = make(Elements)
		}
		l[e.Name] = bytes
	}
	return l
}
