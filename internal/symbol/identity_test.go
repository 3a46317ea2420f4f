package symbol

import "testing"

// TestIdentity: what a frame is the same by makes its hash, which is the one that earlier versions wrote: tables and
// profiles of several versions are compared. The values are those of FNV-1a, reckoned by another program.
func TestIdentity(t *testing.T) {
	base := Identity{Function: "train", File: "exp/train.py", Line: 7, Python: true}
	for i, other := range []Identity{{Function: "trai", File: "nexp/train.py", Line: 7, Python: true},
		{Function: "train", File: "exp/train.py", Line: 8, Python: true},
		{Function: "train", File: "exp/train.py", Line: 7}} {
		if base.Hash() == other.Hash() {
			t.Errorf("frame %d has the hash of another frame", i)
		}
	}
	if got, want := base.Hash(), uint64(2323539887219488868); got != want {
		t.Errorf("%d, want %d", got, want)
	}
	if got, want := HashStack([]uint64{base.Hash()}), uint64(7422219231057200063); got != want {
		t.Errorf("of the stack: %d, want %d", got, want)
	}
	if HashStack(nil) != 0 {
		t.Error("no stack has another hash than 0")
	}
	for _, address := range []uint64{0x7f0000001000, 0x7f0000002000} {
		f := Frame{Kind: JIT, Address: address}
		if got := f.Identity(""); got != (Identity{Function: "[jit]"}) {
			t.Errorf("code without a name at %#x is %+v", address, got)
		}
	}
}
