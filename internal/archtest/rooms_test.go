package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// rooms lists the folders of the C half from the bottom up. A room may use itself and those before it, and the shared
// headers in cshim itself.
var rooms = []string{"elf", "base", "unwind", "spool", "python", "record", "attach", "hooks", "device", "nvtx",
	"allocator", "adapters", "process"}

// contracts may be included by every room.
var contracts = []string{"spool.h", "hooks.def", "include/memtrace.h"}

// upward lists the names that a room uses and a room above it defines, and why that may be.
var upward = map[string]string{
	"mt_thread_attach": "base/thread.h declares it and process/recorder.c defines it: the first event of a process may come before anything could be registered. Ends when the loader runs our constructor before all others.",
}

// filesOfRoom is how many files of production code a folder may have.
const filesOfRoom = 40

// include matches an include of the project's, which contains the room.
var include = regexp.MustCompile(`(?m)^#\s*include\s+"([^"]+)"`)

// rank returns a room's place from the bottom, -1 for other folders.
func rank(room string) int { return slices.Index(rooms, room) }

// filesIn returns a room's C files.
func filesIn(t *testing.T, room string) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.c", "*.h"} {
		found, err := filepath.Glob(filepath.Join(root(t), "cshim", room, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// TestEveryCTestRuns: a program of cshim/ctest that scripts/test-c.sh does not name is never run. The test of what
// control groups leave of memory was such a one.
func TestEveryCTestRuns(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root(t), "scripts", "test-c.sh"))
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob(filepath.Join(root(t), "cshim", "ctest", "*_test.c"))
	if err != nil || len(programs) < 20 {
		t.Fatalf("%d programs: %v", len(programs), err)
	}
	for _, program := range programs {
		name := strings.TrimSuffix(filepath.Base(program), "_test.c")
		if !regexp.MustCompile(`\b` + name + `\b`).Match(script) {
			t.Errorf("cshim/ctest/%s is not in the lists of scripts/test-c.sh", filepath.Base(program))
		}
	}
}

// TestEveryFolderIsARoom: C lies in a room, each room says what it is for, and none is a hall.
func TestEveryFolderIsARoom(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(root(t), "cshim", "*", "*.c"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range folders {
		if room := filepath.Base(filepath.Dir(file)); rank(room) < 0 && room != "ctest" {
			t.Errorf("%s lies in no room: add cshim/%s to the list of rooms here and in cshim/cshim.mk", file, room)
		}
	}
	loose, err := filepath.Glob(filepath.Join(root(t), "cshim", "*.c"))
	if err != nil || len(loose) > 0 {
		t.Errorf("C beside the rooms: %v %v", loose, err)
	}
	for _, room := range rooms {
		switch files := filesIn(t, room); {
		case len(files) == 0:
			t.Errorf("cshim/%s has no C", room)
		case len(files) > filesOfRoom:
			t.Errorf("cshim/%s has %d files; split it, %d are the most", room, len(files), filesOfRoom)
		}
		if _, err := os.Stat(filepath.Join(root(t), "cshim", room, "README.md")); err != nil {
			t.Errorf("cshim/%s does not say what it is for: %v", room, err)
		}
	}
}

// TestRoomsIncludeDownwards: a file includes what lies in its own room or below it, by a path from cshim.
func TestRoomsIncludeDownwards(t *testing.T) {
	seen := 0
	for _, room := range rooms {
		for _, file := range filesIn(t, room) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range include.FindAllStringSubmatch(string(text), -1) {
				seen++
				if slices.Contains(contracts, match[1]) {
					continue
				}
				used, _, _ := strings.Cut(match[1], "/")
				switch {
				case rank(used) < 0:
					t.Errorf("%s/%s includes %q: name it from cshim, as in \"base/sys.h\"", room, filepath.Base(file),
						match[1])
				case rank(used) > rank(room):
					t.Errorf(
						"%s/%s includes %q, of a room above: have it registered at load instead (register_listeners in cshim/process/recorder.c)", room, filepath.Base(file), match[1])
				}
			}
		}
	}
	if seen < 200 {
		t.Errorf("%d includes are too few to believe", seen)
	}
}

// TestRoomsCallDownwards counts from the objects, where no declaration by hand can hide a use. It needs those of the
// present sources: make lib.
func TestRoomsCallDownwards(t *testing.T) {
	build := filepath.Join(root(t), "build", "cshim")
	archive, err := os.Stat(filepath.Join(build, "libcshim.a"))
	if err != nil {
		t.Skip("no objects: run `make lib`")
	}
	defined, wanted := map[string]string{}, map[string][]string{}
	for _, room := range rooms {
		for _, file := range filesIn(t, room) {
			if newer(t, file, archive.ModTime()) {
				t.Skipf("%s is newer than its object: run `make lib`", file)
			}
			if name, isC := strings.CutSuffix(filepath.Base(file), ".c"); isC {
				symbols(t, filepath.Join(build, room, name+".o"), room, defined, wanted)
			}
		}
	}
	if len(defined) < 200 {
		t.Fatalf("%d names are too few to believe", len(defined))
	}
	used := map[string]bool{}
	for name, by := range wanted {
		above, ours := defined[name]
		for _, room := range by {
			if !ours || rank(above) <= rank(room) {
				continue
			}
			used[name] = true
			if _, excepted := upward[name]; !excepted {
				t.Errorf("%s uses %s of %s, a room above", room, name, above)
			}
		}
	}
	for name := range upward {
		if !used[name] {
			t.Errorf("%s points up no more: take it from the list", name)
		}
	}
}

func newer(t *testing.T, file string, than time.Time) bool {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime().After(than)
}

// symbols adds what an object defines and what is undefined in it, from nm.
func symbols(t *testing.T, object, room string, defined map[string]string, wanted map[string][]string) {
	t.Helper()
	out, err := exec.Command("nm", object).Output()
	if err != nil {
		t.Fatalf("nm %s: %v", object, err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		kind, name := fields[len(fields)-2], fields[len(fields)-1]
		switch {
		case strings.ContainsAny(kind, "Uwv"):
			wanted[name] = append(wanted[name], room)
		case strings.ContainsAny(kind, "TDBRVWC"):
			defined[name] = room
		}
	}
}
