package account

import (
	"os"
	"path/filepath"
	"testing"
)

// What two accounts do not share is found, wherever it is; blocks that go together may do so in any order.
func TestDiffers(t *testing.T) {
	log := filepath.Join(t.TempDir(), "null.log")
	text := "1 10 0 device alloc 0x100 512\n2 11 0 device alloc 0x200 512\n3 12 0 host oom 0 99\n" +
		"4 13 0 device free 0x200 512\n5 14 0 device free 0x100 512\n6 15 1 host alloc 0x300 64\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Log(log)
	if err != nil || len(all) != 6 {
		t.Fatalf("%v, %v", all, err)
	}
	a := all.Of("device", "host")
	if live := a.Live("host"); live != (Total{1, 64}) || a.Live("device") != (Total{}) || a[4].Device != -1 {
		t.Errorf("%+v of %v", live, a)
	}
	swapped := append(Account{a[0], a[1], a[3], a[2]}, a[4])
	if words := a.Differs(swapped); words != "" {
		t.Errorf("frees in another order: %s", words)
	}
	for i := range a {
		less := append(append(Account{}, a[:i]...), a[i+1:]...)
		other := append(Account{}, a...)
		other[i].Size++
		for name, b := range map[string]Account{"less": less, "other": other} {
			if a.Differs(b) == "" || b.Differs(a) == "" {
				t.Errorf("change %d, %s: no difference", i, name)
			}
		}
	}
	if err := os.WriteFile(log, []byte("1 2 x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Log(log); err == nil {
		t.Error("a line that is none is read")
	}
}
