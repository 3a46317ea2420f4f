package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestReportsOfAFolderDoNotDependOnProcessors: the same bytes, whether traces are read one by one or at the same time.
func TestReportsOfAFolderDoNotDependOnProcessors(t *testing.T) {
	folder := t.TempDir()
	for n := range 6 {
		text := fmt.Sprintf("trace version=1\nstring id=1 value=\"model.%d\"\n", n)
		for seq := 1; seq <= 400; seq++ {
			text += fmt.Sprintf("alloc seq=%d time=%d thread=1 level=framework mem=device addr=%d size=%d tag=1\n", seq,
				seq*1000, seq*4096, 512*(1+(seq+n)%7))
		}
		text += fmt.Sprintf("end reason=\"exit\" lost_records=0 lost_rings=0 lost_dict=0 events=400 time=%d\n", 401000)
		source := filepath.Join(folder, "text")
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, problems := execute(t, []string{"-q", "dump", "--encode", "-o",
			filepath.Join(folder, fmt.Sprintf("memtrace.rank.%d.bin", n)), source}); problems != "" {
			t.Fatal(problems)
		}
	}
	for _, args := range [][]string{{"report", "--json", folder}, {"report", "--all", folder},
		{"report", "--brief", folder}} {
		var outputs []string
		for _, processors := range []int{1, 8} {
			before := runtime.GOMAXPROCS(processors)
			out, problems := execute(t, args)
			runtime.GOMAXPROCS(before)
			if problems != "" {
				t.Fatal(problems)
			}
			outputs = append(outputs, out)
		}
		if outputs[0] != outputs[1] || len(outputs[0]) < 1000 {
			t.Errorf("%v: %d and %d bytes, which differ", args, len(outputs[0]), len(outputs[1]))
		}
	}
}
