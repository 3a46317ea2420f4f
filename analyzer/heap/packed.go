package heap

import (
	"memtrace/cuda"
	"memtrace/internal/offheap"
	"memtrace/trace"
)

// packedBlock is a live block in 32 bytes. It lacks what only a reader asks for: when the allocation happened, and
// which one of its thread's it was.
type packedBlock struct {
	addr  uint64
	sized uint64 // bytes, and above packedState the block's state
	seq   uint64
	what  uint32 // number of the description
	link  uint32
}

// packedState is the lowest bit of a block's state: sizes are at most MaxBlockBytes.
const packedState = 58

// description is what many blocks have in common.
type description struct {
	stack, pyStack trace.StackID
	tag            trace.StringID
	thread         trace.ThreadID
	call           cuda.API
	device         int16
	account        Account
	mem            cuda.MemoryKind
}

const (
	// packedPart is how many blocks are made room for at once: 1 MiB of them.
	packedPart = 1 << 15
	// packedViews is how many blocks can be looked at at the same time.
	packedViews = 4
)

// packedBlocks is a table of blocks outside of Go's heap, where nothing scans or doubles it.
type packedBlocks struct {
	parts [][]packedBlock
	count uint32

	descriptions []description // 0: of what is no block
	numbers      map[description]uint32
	followers    []uint32 // by number: the description that came next, the last time
	latest       uint32

	views [packedViews]Block
	view  int

	most    int64 // bytes that all tables outside of Go's heap may have
	outside int   // how many parts, the first ones, stand there
	short   bool  // there was no room for more: the rest stands in Go's heap
}

func newPackedBlocks(most int64) *packedBlocks {
	return &packedBlocks{most: most, descriptions: make([]description, 1), followers: make([]uint32, 1),
		numbers: make(map[description]uint32)}
}

func (t *packedBlocks) entry(id uint32) *packedBlock { return &t.parts[id/packedPart][id%packedPart] }

func (t *packedBlocks) add() uint32 {
	if int(t.count) == len(t.parts)*packedPart {
		t.parts = append(t.parts, t.part())
	}
	t.count++
	return t.count - 1
}

func (t *packedBlocks) part() []packedBlock {
	if !t.short {
		if part, ok := roomOutside[packedBlock](t.most, packedPart); ok {
			t.outside++
			return part
		}
		t.short = true
	}
	return make([]packedBlock, packedPart)
}

// roomOutside returns n elements outside of Go's heap, unless that has more than most bytes then.
func roomOutside[T any](most int64, n int) ([]T, bool) {
	list, err := offheap.Make[T](n)
	if err == nil && offheap.Bytes() > most {
		offheap.Free(list)
		return nil, false
	}
	return list, err == nil
}

func (t *packedBlocks) at(id uint32) *Block {
	e := t.entry(id)
	d := &t.descriptions[e.what]
	t.view = (t.view + 1) % packedViews
	b := &t.views[t.view]
	*b = Block{Addr: e.addr, Size: e.sized & (1<<packedState - 1), Seq: e.seq, Stack: d.stack, PyStack: d.pyStack,
		Tag: d.tag, Thread: d.thread, Call: d.call, Device: d.device, Account: d.account,
		Mem: d.mem, state: blockState(e.sized >> packedState), link: e.link}
	return b
}

func (t *packedBlocks) put(id uint32, b *Block) {
	e := t.entry(id)
	e.addr, e.sized, e.seq, e.link = b.Addr, b.Size|uint64(b.state)<<packedState, b.Seq, b.link
	if b.Account == AccountNone {
		e.what = 0
		return
	}
	d := description{stack: b.Stack, pyStack: b.PyStack, tag: b.Tag, thread: b.Thread, call: b.Call, device: b.Device,
		account: b.Account, mem: b.Mem}
	if t.descriptions[e.what] != d {
		e.what = t.number(d)
	}
}

// number returns a description's number. Programs repeat themselves, so that the one that came next the last time is
// mostly the right one.
func (t *packedBlocks) number(d description) uint32 {
	n := t.followers[t.latest]
	if t.descriptions[n] != d {
		var known bool
		if n, known = t.numbers[d]; !known {
			n = uint32(len(t.descriptions))
			t.descriptions, t.followers = append(t.descriptions, d), append(t.followers, 0)
			t.numbers[d] = n
		}
		t.followers[t.latest] = n
	}
	t.latest = n
	return n
}

// free gives the memory back; the table is not to be used any more.
func (t *packedBlocks) free() {
	for _, part := range t.parts[:t.outside] {
		offheap.Free(part)
	}
	t.parts = nil
}
