package offheap

// Column is a list by number that grows in parts, without being copied or moved, outside of Go's heap as long as there
// is room. The zero value is a column in Go's heap.
type Column[T any] struct {
	room  *Room
	parts []*[part]T
}

const (
	partBits = 15
	part     = 1 << partBits
)

// NewColumn returns an empty column.
func NewColumn[T any](r *Room) Column[T] { return Column[T]{room: r} }

// Len is how many elements there are.
func (c *Column[T]) Len() int { return len(c.parts) << partBits }

// At returns an element below Len.
func (c *Column[T]) At(i uint32) *T { return &c.parts[i>>partBits][i%part] }

// Slot returns an element, growing the column as needed by zero ones.
func (c *Column[T]) Slot(i uint32) *T {
	if int(i>>partBits) >= len(c.parts) {
		c.grow(i)
	}
	return c.At(i)
}

// grow is apart from Slot so that Slot can be inlined.
func (c *Column[T]) grow(i uint32) {
	for int(i>>partBits) >= len(c.parts) {
		more, ok := Make[T](c.room, part)
		if !ok {
			more = make([]T, part)
		}
		c.parts = append(c.parts, (*[part]T)(more))
	}
}
