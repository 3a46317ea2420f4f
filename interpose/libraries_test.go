package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/callstack"
)

// lay makes files below a folder: path and text in turns.
func lay(t *testing.T, root string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		file := filepath.Join(root, files[i])
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPackagesOfTargetFolders(t *testing.T) {
	root := t.TempDir()
	lay(t, root,
		"libs/accelerate-1.10.dist-info/RECORD",
		"accelerate/__init__.py,sha256=x,3\naccelerate/utils/operations.py,,\n../../bin/accelerate,,\n",
		"libs/accelerate/utils/operations.py", "",
		"libs/six-1.16.dist-info/RECORD", "six.py,sha256=x,3\nsix-1.16.dist-info/RECORD,,\n",
		"libs/six.py", "",
		"libs/train.py", "", // the program's own, laid beside the packages
		"libs/broken-1.dist-info/METADATA", "",
		"project/model/net.py", "")
	if err := os.Symlink("/dev/zero", filepath.Join(root, "libs/broken-1.dist-info/RECORD")); err != nil {
		t.Fatal(err)
	}
	f := newPackageFinder()
	for _, file := range []string{"libs/accelerate/utils/operations.py", "libs/six.py", "libs/train.py",
		"project/model/net.py", "project/lib/python3.11/site-packages/torch/nn.py"} {
		f.note(filepath.Join(root, file))
	}
	f.note("<string>")
	f.note("relative.py")
	f.note("/no/such/folder/x.py")
	want := root + "/libs/accelerate\x00" + root + "/libs/six.py"
	if got := f.look()[callstack.LibrariesKey]; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.note(filepath.Join(root, "libs/accelerate/big.py"))
	if got := f.look(); got != nil {
		t.Errorf("nothing is new, yet %q is written", got)
	}
}

// TestPackagesAreBounded: a program that makes files without end, or one of huge packages, costs a bounded amount.
func TestPackagesAreBounded(t *testing.T) {
	root := t.TempDir()
	lay(t, root, "libs/huge-1.dist-info/RECORD", strings.Repeat("huge/x.py,,\n", maxRecord/8), "libs/huge/x.py", "")
	f := newPackageFinder()
	f.note(filepath.Join(root, "libs/huge/x.py"))
	if got := f.look(); got != nil {
		t.Errorf("a list of %d bytes was read: %q", maxRecord*3/2, got)
	}
	for i := range maxFiles + 10 {
		f.note(fmt.Sprintf("/nowhere/%d/%d.py", i%maxFolders, i))
	}
	if len(f.seen) > maxFiles {
		t.Errorf("%d files were kept", len(f.seen))
	}
	f.look()
	if len(f.folders) > maxFolders {
		t.Errorf("%d folders were looked into", len(f.folders))
	}
}
