package heap

import (
	"memtrace/cuda"
	"memtrace/internal/offheap"
	"memtrace/trace"
)

// packedBlock is a live block in 32 bytes. When the allocation happened stands in a column of its own, which only
// readers have.
type packedBlock struct {
	addr  uint64
	sized uint64 // bytes, and above packedState the block's state
	seq   uint64
	what  uint32 // number of the description
	link  uint32
}

// packedState is the lowest bit of a block's state: sizes are at most MaxBlockBytes.
const packedState = 58

func (p *packedBlock) state() blockState { return blockState(p.sized >> packedState) }

// description is what many blocks have in common.
type description struct {
	stack, pyStack trace.StackID
	tag            trace.StringID
	thread         trace.ThreadID
	call           cuda.API
	device         int16
	account        Account
	mem            cuda.MemoryKind
	hidden         bool
}

const (
	// blockViews is how many blocks can be looked at at the same time.
	blockViews = 4
	// keptDescriptions is how many there may be before those of no live block are dropped.
	keptDescriptions = 1 << 16
)

// blockTable keeps the live blocks by number, packed: a Block is a copy to look at.
type blockTable struct {
	packed offheap.Column[packedBlock]
	times  offheap.Column[int64] // unless not timed
	timed  bool
	count  uint32 // one more than the highest number that was ever given out
	unused uint32 // first number that is not in use, plus one
	// changes is how often a block came or went
	changes uint64

	descriptions []description // 0: of what is no block
	numbers      map[description]uint32
	followers    []uint32 // by number: the description that came next, the last time
	latest       uint32
	most         int    // descriptions, before they are compacted
	compacted    uint32 // how often they were, plus one

	views [blockViews]Block
	view  uint
}

func newBlockTable(room *offheap.Room, timed bool) blockTable {
	return blockTable{packed: offheap.NewColumn[packedBlock](room), times: offheap.NewColumn[int64](room), timed: timed,
		descriptions: make([]description, 1), followers: make([]uint32, 1), numbers: make(map[description]uint32),
		most: keptDescriptions, compacted: 1}
}

// seq and addr look at one word of a block.
func (t *blockTable) seq(id uint32) uint64  { return t.packed.At(id).seq }
func (t *blockTable) addr(id uint32) uint64 { return t.packed.At(id).addr }

// take returns the number of an unused block, which is at an address from now on.
func (t *blockTable) take(addr uint64) (id uint32) {
	t.changes++
	if t.unused == 0 {
		id = t.add()
	} else {
		id = t.unused - 1
		t.unused = t.packed.At(id).link
	}
	t.packed.At(id).addr = addr
	return id
}

// add makes room for a block and returns its number.
func (t *blockTable) add() uint32 {
	t.packed.Slot(t.count)
	if t.timed {
		t.times.Slot(t.count)
	}
	t.count++
	return t.count - 1
}

// next returns where a block to look at is put together. What was there is valid no more.
func (t *blockTable) next() *Block {
	t.view = (t.view + 1) % blockViews
	return &t.views[t.view]
}

// at returns a block to look at. What is changed in it holds once it was put; it is valid until the next but three that
// is looked at. Blocks of numbers that are not in use have AccountNone.
func (t *blockTable) at(id uint32) *Block {
	b := t.next()
	t.load(id, b)
	return b
}

func (t *blockTable) load(id uint32, b *Block) {
	p := t.packed.At(id)
	d := &t.descriptions[p.what]
	// one by one: a whole block would be put together elsewhere and copied
	b.Addr, b.Size, b.Seq, b.Time = p.addr, p.sized&(1<<packedState-1), p.seq, 0
	b.Stack, b.PyStack, b.Tag, b.Thread = d.stack, d.pyStack, d.tag, d.thread
	b.Call, b.Device, b.Account, b.Mem, b.Hidden = d.call, d.device, d.account, d.mem, d.hidden
	b.state, b.link = p.state(), p.link
	if t.timed {
		b.Time = *t.times.At(id)
	}
}

// put keeps what was changed in a block that at or next returned.
func (t *blockTable) put(id uint32, b *Block) {
	p := t.packed.At(id)
	p.addr, p.sized, p.seq, p.link = b.Addr, b.Size|uint64(b.state)<<packedState, b.Seq, b.link
	if t.timed {
		*t.times.At(id) = b.Time
	}
	if p.what == 0 || !t.descriptions[p.what].is(b) {
		p.what = t.number(b)
	}
}

// is reports whether a description is that of a block. What differs most often comes first.
func (d *description) is(b *Block) bool {
	return d.stack == b.Stack && d.pyStack == b.PyStack && d.tag == b.Tag && d.thread == b.Thread && d.call == b.Call &&
		d.device == b.Device && d.account == b.Account && d.mem == b.Mem && d.hidden == b.Hidden
}

// number returns the number of a block's description. Programs repeat themselves, so that the one that came next the
// last time is mostly the right one.
func (t *blockTable) number(b *Block) uint32 {
	n := t.followers[t.latest]
	if !t.descriptions[n].is(b) {
		d := description{stack: b.Stack, pyStack: b.PyStack, tag: b.Tag, thread: b.Thread, call: b.Call,
			device: b.Device, account: b.Account, mem: b.Mem, hidden: b.Hidden}
		var known bool
		if n, known = t.numbers[d]; !known {
			n = t.describe(d)
		}
		t.followers[t.latest] = n
	}
	t.latest = n
	return n
}

// describe numbers a new description. Programs that name every iteration make ever new ones, so that now and then those
// of the live blocks alone stay.
func (t *blockTable) describe(d description) uint32 {
	if len(t.descriptions) >= t.most {
		old := t.descriptions
		t.descriptions, t.followers, t.latest = make([]description, 1), make([]uint32, 1), 0
		clear(t.numbers)
		for id := range t.count {
			if p := t.packed.At(id); p.what != 0 {
				n, known := t.numbers[old[p.what]]
				if !known {
					n = t.describe(old[p.what])
				}
				p.what = n
			}
		}
		t.most = max(keptDescriptions, 2*len(t.descriptions))
		t.compacted++
	}
	n := uint32(len(t.descriptions))
	t.descriptions, t.followers = append(t.descriptions, d), append(t.followers, 0)
	t.numbers[d] = n
	return n
}

// recycle makes a block's number one that is not in use.
func (t *blockTable) recycle(id uint32) {
	t.changes++
	p := t.packed.At(id)
	p.what, p.link = 0, t.unused
	t.unused = id + 1
}

// each calls visit for every block; visit must change none.
func (t *blockTable) each(visit func(id uint32, b *Block)) {
	var b Block
	for id := range t.count {
		if t.packed.At(id).what != 0 {
			t.load(id, &b)
			visit(id, &b)
		}
	}
}
