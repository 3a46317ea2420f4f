package importer

// memo keeps the values that a pickle numbers so that it can use them again. What was taken in is released and costs
// 4 bytes from then on; of values that are alike one is kept.
type memo struct {
	pages  []*[memoPage]uint32 // by number: 1 + index of values; 0 is released, or was never there
	count  uint64              // numbers assigned
	values []any
	free   []uint32       // places in values
	shared map[any]uint32 // of values that are kept once: as in pages
}

// memoPage is how many numbers a page has: pages never move.
const memoPage = 1 << 16

// ref is the place of a number, which must have been assigned.
func (m *memo) ref(n uint64) *uint32 { return &m.pages[n/memoPage][n%memoPage] }

// memoGap is how far a number may be ahead of their count: pickles count them.
const memoGap = 1 << 16

// put gives a value a number; it reports whether that is one that a pickle could use.
func (m *memo) put(n uint64, v any) bool {
	if n > m.count+memoGap || n > 1<<31 {
		return false
	}
	for uint64(len(m.pages))*memoPage <= n {
		m.pages = append(m.pages, new([memoPage]uint32))
	}
	m.count = max(m.count, n+1)
	switch v := v.(type) {
	case *list:
		v.number = uint32(n) + 1
		m.place(n, v)
	case *dict:
		v.number = uint32(n) + 1
		m.place(n, v)
	case string, stackRef, pair, *frame:
		m.share(n, v)
	default:
		m.place(n, v)
	}
	return true
}

// place keeps a value for itself.
func (m *memo) place(n uint64, v any) {
	if last := len(m.free) - 1; last >= 0 {
		at := m.free[last]
		m.free, m.values[at] = m.free[:last], v
		*m.ref(n) = at + 1
		return
	}
	m.values = append(m.values, v)
	*m.ref(n) = uint32(len(m.values))
}

// share keeps a comparable value once, whatever its numbers.
func (m *memo) share(n uint64, v any) {
	if m.shared == nil {
		m.shared = map[any]uint32{}
	}
	ref, known := m.shared[v]
	if !known {
		m.values = append(m.values, v)
		ref = uint32(len(m.values))
		m.shared[v] = ref
	}
	*m.ref(n) = ref
}

// become puts another value in a container's place; nil releases it. number is 1 + the container's, 0 for none.
func (m *memo) become(number uint32, v any) {
	if number == 0 || *m.ref(uint64(number - 1)) == 0 {
		return
	}
	at := *m.ref(uint64(number - 1)) - 1
	switch m.values[at].(type) {
	case *list, *dict:
	default: // the number was reassigned meanwhile
		return
	}
	m.values[at], *m.ref(uint64(number - 1)) = nil, 0
	m.free = append(m.free, at)
	if v != nil {
		m.share(uint64(number-1), v)
	}
}

func (m *memo) get(n uint64) (any, bool) {
	if n >= m.count || *m.ref(n) == 0 {
		return nil, false
	}
	return m.values[*m.ref(n)-1], true
}
