package trace

import (
	"bufio"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var updateLines = flag.Bool("update-lines", false, "rewrite testdata/cpython-*.txt of the interpreters that are there")

// sample is what an interpreter reports for one code object, see testdata/lines.py.
type sample struct {
	table     LineTable
	lines     []byte
	firstLine int32
	size      uint32 // bytes of bytecode
	changes   string // START:LINE,... where the line changes
}

func parseSample(line string) (s sample, err error) {
	var kind int
	var table string
	if _, err := fmt.Sscan(line, &kind, &s.firstLine, &s.size, &table, &s.changes); err != nil {
		return s, fmt.Errorf("sample %q: %w", line, err)
	}
	s.table = LineTable(kind)
	if table != "-" {
		s.lines, err = hex.DecodeString(table)
	}
	return s, err
}

// decoded writes the result of LineRanges in the form of changes.
func (s sample) decoded() string {
	var parts []string
	last := ""
	for r := range LineRanges(s.table, s.lines, s.firstLine) {
		line := "-"
		if !r.None {
			line = strconv.Itoa(int(r.Line))
		}
		if r.Start >= s.size || line == last {
			continue
		}
		last = line
		parts = append(parts, fmt.Sprintf("%d:%s", r.Start, line))
	}
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, ",")
}

// checkSamples compares every code object in r, and the lines of instructions of each, and returns how many there were.
func checkSamples(t *testing.T, r io.Reader) (codes int) {
	t.Helper()
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return codes
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseSample(line)
		if err != nil {
			t.Fatal(err)
		}
		codes++
		if got := s.decoded(); got != s.changes {
			t.Fatalf("code object %d of kind %v, table %x: lines are\n%s\nwant\n%s", codes, s.table, s.lines,
				got, s.changes)
		}
		checkDecode(t, s)
	}
}

// checkDecode checks the line of every instruction of the first kilobyte. Where the line changes was compared already.
func checkDecode(t *testing.T, s sample) {
	t.Helper()
	want, changes := "-", strings.Split(s.changes, ",")
	for offset := uint32(0); offset < min(s.size, 1000); offset += 2 {
		for len(changes) > 0 && strings.HasPrefix(changes[0], fmt.Sprintf("%d:", offset)) {
			_, want, _ = strings.Cut(changes[0], ":")
			changes = changes[1:]
		}
		got := "-"
		if line, ok := DecodeLine(s.table, s.lines, s.firstLine, offset); ok {
			got = strconv.Itoa(int(line))
		}
		if got != want {
			t.Fatalf("kind %v, table %x: byte %d is on line %s, want %s", s.table, s.lines, offset, got, want)
		}
	}
}

// interpreters finds what CPython there is, by version: in PATH, under pyenv, and where testdata/python/interpreters.py
// keeps what it fetched. It fetches nothing.
func interpreters(t *testing.T) map[string]string {
	t.Helper()
	var candidates []string
	for minor := 8; minor < 20; minor++ {
		if path, err := exec.LookPath(fmt.Sprintf("python3.%d", minor)); err == nil {
			candidates = append(candidates, path)
		}
	}
	home, cache := os.Getenv("HOME"), os.Getenv("MEMTRACE_CACHE")
	if folder := os.Getenv("XDG_CACHE_HOME"); cache == "" && folder != "" {
		cache = filepath.Join(folder, "memtrace")
	} else if cache == "" {
		cache = filepath.Join(home, ".cache", "memtrace")
	}
	for _, pattern := range []string{filepath.Join(home, ".pyenv/versions/3.*/bin/python3"),
		filepath.Join(cache, "interpreters/3.*/usr/bin/python3.*[0-9]")} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		candidates = append(candidates, found...)
	}
	versions := make(map[string]string)
	for _, path := range candidates {
		out, err := exec.Command(path, "-c",
			"import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2], sys.version_info >= (3, 8))").Output()
		if words := strings.Fields(string(out)); err == nil && len(words) == 3 && words[0] == "cpython" &&
			words[2] == "True" && versions[words[1]] == "" {
			versions[words[1]] = path
		}
	}
	return versions
}

// TestSamples: what each version's own compiler made of testdata/program.txt, and what its interpreter reports for it.
func TestSamples(t *testing.T) {
	if *updateLines {
		for version, path := range interpreters(t) {
			out, err := exec.Command(path, "testdata/lines.py", "testdata/program.txt").Output()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("testdata/cpython-"+version+".txt", out, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	found, err := filepath.Glob("testdata/cpython-*.txt")
	if err != nil || len(found) < 7 {
		t.Fatalf("samples of %d versions: %v", len(found), err)
	}
	for _, path := range found {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if codes := checkSamples(t, file); codes < 25 {
				t.Errorf("%d code objects", codes)
			}
		})
	}
}

// TestStandardLibrary: the code objects of every 20th module of the standard library, of every interpreter that is
// there. LINES_STEP=1 takes all modules, which takes minutes.
func TestStandardLibrary(t *testing.T) {
	step := 20
	if testing.Short() {
		step = 60
	}
	if text := os.Getenv("LINES_STEP"); text != "" {
		var err error
		if step, err = strconv.Atoi(text); err != nil || step < 1 {
			t.Fatalf("LINES_STEP=%s: want a number from 1 on", text)
		}
	}
	found := interpreters(t)
	if len(found) == 0 {
		t.Skip("no CPython from 3.8 on; testdata/python/interpreters.py fetches some")
	}
	for version, path := range found {
		t.Run(version, func(t *testing.T) {
			cmd := exec.Command(path, "testdata/lines.py", "--library", strconv.Itoa(step))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			codes := checkSamples(t, out)
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if codes < 10000/step {
				t.Errorf("%d code objects", codes)
			}
			t.Logf("%s: %d code objects", path, codes)
		})
	}
}

func TestUnknownTables(t *testing.T) {
	for _, table := range []LineTable{LinesNone, 77} {
		if line, ok := DecodeLine(table, []byte{0x80, 0}, 5, 0); ok {
			t.Errorf("a table of kind %v says line %d", table, line)
		}
		if line, ok := DecodeLine(table, nil, 5, LineNotBegun); !ok || line != 5 {
			t.Errorf("code that has not begun is on line %d, %v", line, ok)
		}
	}
}

// A table that is cut gives the lines before the cut; after it nothing is known.
func TestCutTables(t *testing.T) {
	cases := []struct {
		name   string
		table  LineTable
		lines  []byte
		offset uint32
		line   int32
		ok     bool
	}{
		{"lnotab, odd", LinesLnotab, []byte{4, 1, 9}, 6, 11, true},
		{"lnotab, empty", LinesLnotab, nil, 1 << 31, 10, true},
		{"ranges, odd", LinesRanges, []byte{4, 1, 9}, 3, 11, true},
		{"ranges, behind", LinesRanges, []byte{4, 1, 9}, 4, 0, false},
		{"ranges, none and back", LinesRanges, []byte{4, 1, 2, 0x80, 2, 0}, 6, 11, true},
		{"ranges, none", LinesRanges, []byte{4, 1, 2, 0x80, 2, 0}, 4, 11, false},
		{"locations, number cut", LinesLocations, []byte{0x81, 0, 0xe8, 0x42}, 4, 0, false},
		{"locations, number missing", LinesLocations, []byte{0x81, 0, 0xe8}, 4, 0, false},
		{"locations, before the cut", LinesLocations, []byte{0x81, 0, 0xe8, 0x42}, 3, 10, true},
		{"locations, no beginning", LinesLocations, []byte{0x01, 0x80, 0}, 0, 0, false},
		{"locations, wide number", LinesLocations, []byte{0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f,
			0x3f}, 0, 10 - 1<<31 + 1, true},
		{"locations, none and back", LinesLocations, []byte{0xe8, 4, 0xf8, 0x80, 0}, 4, 12, true},
		{"locations, none", LinesLocations, []byte{0xe8, 4, 0xf8, 0x80, 0}, 2, 12, false},
	}
	for _, c := range cases {
		if line, ok := DecodeLine(c.table, c.lines, 10, c.offset); ok != c.ok || line != c.line {
			t.Errorf("%s: line %d, %v, want %d, %v", c.name, line, ok, c.line, c.ok)
		}
	}
}

// FuzzRanges: any bytes give ranges that follow each other without gaps, within what the table can cover, and
// DecodeLine agrees with them.
func FuzzRanges(f *testing.F) {
	f.Add(uint8(LinesLnotab), []byte{0, 1, 255, 127, 0, 127, 6, 128}, int32(1), uint32(3))
	f.Add(uint8(LinesRanges), []byte{0, 1, 254, 127, 0, 128, 6, 129}, int32(-1), uint32(255))
	f.Add(uint8(LinesLocations), []byte{0x80, 0, 0xd8, 1, 2, 0xe8, 0x41, 3, 0xf7, 5, 0, 1, 2, 0xff},
		int32(1<<31-1), uint32(9))
	f.Fuzz(func(t *testing.T, kind uint8, lines []byte, firstLine int32, offset uint32) {
		if offset == LineNotBegun {
			return
		}
		table := LineTable(kind % 5)
		end, want, known := uint32(0), int32(0), false
		for r := range LineRanges(table, lines, firstLine) {
			if r.Start != end || r.End <= r.Start || r.End != LineOpen && r.End > uint32(len(lines))*255 {
				t.Fatalf("range %+v behind %d, table of %d bytes", r, end, len(lines))
			}
			if end = r.End; offset >= r.Start && (offset < r.End || end == LineOpen) {
				want, known = r.Line, !r.None
			}
		}
		if line, ok := DecodeLine(table, lines, firstLine, offset); line != want || ok != known {
			t.Fatalf("byte %d is on line %d, %v; the ranges say %d, %v", offset, line, ok, want, known)
		}
	})
}

// A frame that has not begun is on the line of its definition, whatever its table has for the first instruction.
func TestNotBegun(t *testing.T) {
	for _, table := range []LineTable{LinesLnotab, LinesRanges, LinesLocations} {
		if line, ok := DecodeLine(table, []byte{2, 1}, 34, LineNotBegun); line != 34 || !ok {
			t.Errorf("%s: line %d, %t", table, line, ok)
		}
	}
}
