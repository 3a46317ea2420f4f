package heap

// blockTable keeps the live blocks by number. There are two kinds: one for readers, in which blocks stand as they are,
// and a packed one for the replay inside a recorded program, in which each takes as little memory as it can
// (packedBlocks).
type blockTable struct {
	list   []Block
	packed *packedBlocks // instead of list, if not nil
}

// count is one more than the highest number that was ever given out. Numbers that are not in use have blocks of
// AccountNone.
func (t *blockTable) count() uint32 {
	if t.packed != nil {
		return t.packed.count
	}
	return uint32(len(t.list))
}

// at returns a block to look at. What is changed in it holds once it was put; it is valid until the next but three that
// is looked at.
func (t *blockTable) at(id uint32) *Block {
	if t.packed == nil {
		return &t.list[id]
	}
	return t.packed.at(id)
}

// fullAt is how many of n slots an index may use: speed is what counts for a reader, and room for a program.
func (t *blockTable) fullAt(n int) int {
	if t.packed != nil {
		return n / 8 * 7
	}
	return n / 2
}

// put keeps what was changed in a block that at returned.
func (t *blockTable) put(id uint32, b *Block) {
	if t.packed != nil {
		t.packed.put(id, b)
	}
}

// seq and addr look at one word of a block.
func (t *blockTable) seq(id uint32) uint64 {
	if t.packed != nil {
		return t.packed.entry(id).seq
	}
	return t.list[id].Seq
}

func (t *blockTable) addr(id uint32) uint64 {
	if t.packed != nil {
		return t.packed.entry(id).addr
	}
	return t.list[id].Addr
}

// add makes room for a block and returns its number.
func (t *blockTable) add() uint32 {
	if t.packed != nil {
		return t.packed.add()
	}
	t.list = append(t.list, Block{})
	return uint32(len(t.list) - 1)
}

// each calls visit for every block; visit must change none.
func (t *blockTable) each(visit func(id uint32, b *Block)) {
	for id := range t.count() {
		if b := t.at(id); b.Account != AccountNone {
			visit(id, b)
		}
	}
}
